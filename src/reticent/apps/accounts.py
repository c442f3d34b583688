"""``reticent ledger``: what was promised, what is spent, what is left, and who spent it."""

from typing import TYPE_CHECKING, Any

from reticent.apps.terminal import compact, indented, table
from reticent.privacy.ledger import Ledger

if TYPE_CHECKING:
    from rich.console import RenderableType

__all__ = ["accounts", "accounts_table", "charges", "charges_table", "open_account", "verify"]


def open_account(url: str, dataset: str, *, epsilon: float, delta: float, relation: str) -> list[dict[str, Any]]:
    """Give a data set its cap; give its state as ``accounts`` does."""
    Ledger(url).open(dataset, epsilon, delta, relation=relation)
    return accounts(url, dataset)


def verify(url: str, head: str | None) -> str:
    """Check a ledger's history and give its head."""
    return Ledger(url).verify(head)


def accounts(url: str, dataset: str | None) -> list[dict[str, Any]]:
    """Give the state of every account of a ledger, or of one."""
    ledger = Ledger(url)
    chosen = ledger.datasets() if dataset is None else [ledger.account(dataset)]
    return [
        {
            "dataset": one.dataset,
            "relation": one.relation,
            "epsilon": one.epsilon,
            "delta": one.delta,
            "spent": ledger.spent(one.dataset),
            "left": ledger.remaining(one.dataset),
            "charges": len(ledger.history(one.dataset)),
        }
        for one in chosen
    ]


def accounts_table(states: list[dict[str, Any]]) -> "RenderableType":
    """Lay out what ``accounts`` gives."""
    rows = table("data set", "protects", "cap ε", "δ", "spent ε", "left ε", "charges", left=2)
    for one in states:
        cap, delta, spent, left = (compact(one[key]) for key in ("epsilon", "delta", "spent", "left"))
        rows.add_row(one["dataset"], f"a {one['relation']}", cap, delta, spent, left, f"{one['charges']:,}")
    return rows


def charges(url: str, dataset: str | None) -> list[dict[str, Any]]:
    """Give every charge of a ledger, or of one data set, in the order in which they were made."""
    ledger = Ledger(url)
    chosen = [one.dataset for one in ledger.datasets()] if dataset is None else [dataset]
    entries = sorted((e for name in chosen for e in ledger.history(name)), key=lambda entry: entry.number)
    return [
        {
            "number": entry.number,
            "when": entry.when,
            "who": entry.who,
            "dataset": entry.dataset,
            "what": entry.what,
            "event": entry.event.to_dict(),
            "hash": entry.hash,
        }
        for entry in entries
    ]


def charges_table(entries: list[dict[str, Any]]) -> "RenderableType":
    """Lay out what ``charges`` gives, one data set after the other."""
    from rich.console import Group
    from rich.text import Text

    parts: list[RenderableType] = []
    for dataset in dict.fromkeys(one["dataset"] for one in entries):
        rows = table("row", "when (UTC)", "what", "noise", "who", left=5)
        for one in entries:
            if one["dataset"] == dataset:
                when = one["when"][:16].replace("T", " ")
                rows.add_row(str(one["number"]), when, one["what"], _strength(one["event"]), one["who"])
        parts += [Text(""), Text(f'Data set "{dataset}"', "bold"), indented(rows)]
    return Group(*parts[1:])


def _strength(event: dict[str, Any]) -> str:
    if "noise_multiplier" in event:
        return f"{event['kind']} × {event['noise_multiplier']:.3g}"
    return f"ε = {event['epsilon']:.3g} each"
