"""The budget part of the report: what was spent from a data set's cap before a release, by it, and after it."""

from typing import Any

from reticent.apps.accounts import spendable
from reticent.apps.notes import COMPOSED
from reticent.errors import BadInput
from reticent.models.base import columns_words
from reticent.privacy.accounting import account_epsilon
from reticent.privacy.ledger import Entry, Ledger

__all__ = ["budget"]

_SHOWN = 5


def budget(model: Any, url: str, dataset: str | None) -> dict[str, Any]:
    """Give the state of the account that a model was charged to, and the charge for it if there is one.

    Who made a charge is left out: a name and a host are in the ledger, and nobody else's business.
    """
    name = dataset if dataset is not None else model._params["dataset"]
    if name is None:
        raise BadInput("The model does not say which data set of the ledger it was charged to: give --dataset.")
    ledger = Ledger(url)
    head, account, entries = ledger.verify(), ledger.account(name), ledger.history(name)
    mine = [i for i, entry in enumerate(entries) if _is_for(entry, model)]
    at = mine[-1] if mine else None

    def spent(until: int) -> float:
        return account_epsilon([one.event for one in entries[:until]], account.delta)

    stops = [("before", "spent", spent(len(entries)))]
    if at is not None:
        whole = stops[0][-1]
        stops = [
            ("before", "spent before", spent(at)),
            ("this", "this release", spent(at + 1)),
            ("after", "spent since", whole),
        ]
    parts, before = [], 0.0
    for kind, title, until in [*stops, ("left", "not spent", account.epsilon)]:
        share = max(until - before, 0.0) / account.epsilon
        if share or kind in ("this", "left"):
            parts.append(
                {"kind": kind, "title": title, "epsilon": share * account.epsilon, "percent": f"{100 * share:.2f}"}
            )
        before = until
    return {
        "dataset": name,
        "epsilon": account.epsilon,
        "delta": account.delta,
        "spent": stops[-1][-1],
        "remaining": spendable(ledger.remaining(name)),
        "parts": parts,
        "alike": len(mine),
        "alone": None if at is None else account_epsilon([entries[at].event], account.delta),
        "charged": f"{_time(entries[mine[0]])} UTC" if len(mine) == 1 else None,
        "entries": [
            {
                "number": entry.number,
                "when": _time(entry),
                "what": entry.what,
                "alone": account_epsilon([entry.event], account.delta),
                "this": i == at,
            }
            for i, entry in enumerate(entries)
            if i == at or i >= len(entries) - _SHOWN
        ],
        "charges": len(entries),
        "head": head,
        "composed": COMPOSED if account.delta else "",
    }


def _is_for(entry: Entry, model: Any) -> bool:
    fitting = (f"{type(model).__name__},", f"{type(model).__name__} of ")
    columns = entry.what.partition(": ")[2]  # none from fits whose bounds have no names, and from searches
    own = columns_words(model.releases_[0].bounds).removeprefix(": ") if columns else ""
    return entry.event == model.releases_[0].event and entry.what.startswith(fitting) and columns == own


def _time(entry: Entry) -> str:
    return entry.when[:16].replace("T", " ")
