"""The budget part of the report: what was spent from a data set's cap before a release, by it, and after it."""

from typing import Any

from reticent.apps.accounts import spendable
from reticent.apps.figures import figure, figure_up
from reticent.apps.notes import COMPOSED
from reticent.errors import BadInput
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
    paid = model.releases_[0].entry  # the hash of the charge that paid for it
    hashes = [entry.hash for entry in entries]
    at = hashes.index(paid) if paid in hashes else None

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
            epsilon = share * account.epsilon
            shown = figure(epsilon, 3) if kind == "left" else figure_up(round(epsilon, 12), 3)
            numbers = {"epsilon": epsilon, "shown": shown, "percent": f"{100 * share:.2f}"}
            parts.append({"kind": kind, "title": title, **numbers})
        before = until
    return {
        "dataset": name,
        "epsilon": account.epsilon,
        "delta": account.delta,
        "spent": stops[-1][-1],
        "remaining": spendable(ledger.remaining(name)),
        "parts": parts,
        "alone": None if at is None else account_epsilon([entries[at].event], account.delta),
        "charged": None if at is None else f"{_time(entries[at])} UTC",
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


def _time(entry: Entry) -> str:
    return entry.when[:16].replace("T", " ")
