"""Budget: the state of the account that a model was charged to.

What was spent from a data set's cap before a release, by it, and after it.
"""

from math import floor, log10
from typing import Any

from reticent.errors import BadInput
from reticent.privacy.accounting.composition import account_epsilon
from reticent.privacy.ledger.ledger import Entry, Ledger
from reticent.privacy.release import Release
from reticent.reporting.formatting import format_number, format_number_up

__all__ = ["COMPOSITION_NOTE", "budget", "is_used_up", "spendable"]

_NEGLIGIBLE = 0.01  # of a cap: what is left by the rounding of noise to the safe side

COMPOSITION_NOTE = (
    "Spent is at the cap's δ. Releases compose to less than their sum, so "
    "spent + left may exceed the cap."
)
_SHOWN = 5


def budget(releases: list[Release], url: str, dataset: str | None) -> dict[str, Any]:
    """Give the state of the account of ``dataset``, and the charge for these releases, if any.

    Who made a charge is left out: a name and a host are in the ledger, and nobody else's business.
    """
    if dataset is None:
        raise BadInput(
            "The model does not say which data set of the ledger it was charged to: give --dataset."
        )
    ledger = Ledger(url)
    head = ledger.verify()
    account = ledger.account(dataset)
    entries = ledger.history(dataset)
    paid = releases[0].entry  # the hash of the charge that paid for it
    hashes = [entry.hash for entry in entries]
    at = None
    if paid in hashes:
        at = hashes.index(paid)

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
    parts = []
    before = 0.0
    for kind, title, until in [*stops, ("left", "not spent", account.epsilon)]:
        share = max(until - before, 0.0) / account.epsilon
        if share or kind in ("this", "left"):
            epsilon = share * account.epsilon
            if kind == "left":
                shown = format_number(epsilon, 3)
            else:
                shown = format_number_up(round(epsilon, 12), 3)
            numbers = {"epsilon": epsilon, "shown": shown, "percent": f"{100 * share:.2f}"}
            parts.append({"kind": kind, "title": title, **numbers})
        before = until
    left = ledger.remaining(dataset)
    return {
        "dataset": dataset,
        "epsilon": account.epsilon,
        "delta": account.delta,
        "spent": stops[-1][-1],
        "remaining": spendable(left),
        "used_up": is_used_up(left, account.epsilon),
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
        "composed": COMPOSITION_NOTE if account.delta else "",
    }


def is_used_up(left: float, cap: float) -> bool:
    """Whether what is left of a cap is too little for any release worth the name."""
    return left < _NEGLIGIBLE * cap


def spendable(left: float) -> float:
    """What is left, rounded down to three digits: rounded up, it would be refused."""
    if left > 0:
        unit = 10.0 ** (floor(log10(left)) - 2)
    else:
        unit = 1.0
    return float(f"{floor(left / unit) * unit:.3g}")


def _time(entry: Entry) -> str:
    return entry.when[:16].replace("T", " ")
