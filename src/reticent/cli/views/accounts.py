"""``reticent ledger``: what was promised, what is spent, what is left, and who spent it."""

from typing import TYPE_CHECKING, Any

from reticent.cli.encoding import spelled
from reticent.cli.terminal import indented, table
from reticent.obfuscation.register import remembered
from reticent.privacy.accounting.composition import account_epsilon
from reticent.privacy.ledger.ledger import Account, Entry, Ledger
from reticent.privacy.people.unit import REPLACE, PrivacyUnit
from reticent.reporting.budget import COMPOSITION_NOTE, spendable
from reticent.reporting.formatting import format_short, format_short_up, printable

if TYPE_CHECKING:
    from rich.console import RenderableType

__all__ = [
    "accounts",
    "accounts_table",
    "curves",
    "curves_table",
    "history",
    "history_table",
    "open_account",
    "verify",
]


def open_account(
    url: str,
    dataset: str,
    *,
    epsilon: float,
    delta: float,
    unit: PrivacyUnit,
    within: str | None = None,
) -> list[dict[str, Any]]:
    """Give a data set its cap; give its state as ``accounts`` does."""
    Ledger(url).open(dataset, epsilon, delta, within=within, **unit.for_account())
    return accounts(url, dataset)


def verify(url: str, head: str | None) -> str:
    """Check a ledger's history, and that of obfuscated curves, and give its head."""
    remembered(url)
    return Ledger(url).verify(head)


def curves(url: str, dataset: str | None) -> list[dict[str, Any]]:
    """Give every obfuscated curve that a ledger remembers, or that of one data set."""
    return [one for one in remembered(url) if dataset in (None, one["dataset"])]


def curves_table(found: list[dict[str, Any]]) -> "RenderableType":
    """Lay out what ``curves`` gives."""
    rows = table("obfuscated curve (not DP)", "released (UTC)", "who", "values", "releases", left=3)
    for one in found:
        when = one["when"][:16].replace("T", " ")
        rows.add_row(one["dataset"], when, one["who"], f"{one['values']:,}", str(one["releases"]))
    return rows


def accounts(url: str, dataset: str | None) -> list[dict[str, Any]]:
    """Give the state of every account of a ledger, or of one."""
    ledger = Ledger(url)
    if dataset is None:
        chosen = ledger.datasets()
    else:
        chosen = [ledger.account(dataset)]
    return [
        {
            "dataset": one.dataset,
            **_unit(one),
            "within": one.within,
            "epsilon": one.epsilon,
            "delta": one.delta,
            "spent": ledger.spent(one.dataset),
            "left": ledger.remaining(one.dataset),
            "charges": len(ledger.history(one.dataset)),
        }
        for one in chosen
    ]


def _unit(one: Account | Entry) -> dict[str, Any]:
    """Who is protected, for machines."""
    return {
        "relation": one.relation,
        "records_per_person": one.records_per_person,
        "person": one.person,
        "neighbours": one.neighbours,
    }


def _protected_unit(one: dict[str, Any]) -> str:
    """What of one person an account protects, in words."""
    what = f"{one['records_per_person']} {one['relation']}s"
    if one["person"] is not None:
        what = f"a person ({printable(one['person'])})"
        if one["relation"] == "label":
            what = f"a person's labels ({printable(one['person'])})"
    elif one["records_per_person"] == 1:
        what = f"a {one['relation']}"
    if one["neighbours"] != REPLACE:
        return f"{what}, added or removed"
    return what


def accounts_table(states: list[dict[str, Any]]) -> "RenderableType":
    """Lay out what ``accounts`` gives."""
    from rich.console import Group
    from rich.text import Text

    rows = table(
        "data set",
        "protects",
        "cap ε",
        "δ",
        "spent ε",
        "left ε (one more release)",
        "charges",
        left=2,
    )
    for one in states:
        cap, delta, spent = (format_short_up(one[key]) for key in ("epsilon", "delta", "spent"))
        left = format_short(spendable(one["left"]))
        name = one["dataset"]
        whole = one.get("within")
        if whole is not None:
            name = f"{name} (within {whole})"
        rows.add_row(name, _protected_unit(one), cap, delta, spent, left, f"{one['charges']:,}")
    if any(one["delta"] and one["charges"] for one in states):
        return Group(rows, Text(""), indented(Text(spelled(COMPOSITION_NOTE), "dim")))
    return rows


def history(url: str, dataset: str | None) -> list[dict[str, Any]]:
    """Give every row of a ledger, or of one data set, in order.

    How accounts were opened, and every charge.
    """
    ledger = Ledger(url)
    rows: list[dict[str, Any]] = []
    for account in ledger.datasets() if dataset is None else [ledger.account(dataset)]:
        rows.append(
            {
                "kind": "open",
                "number": account.number,
                "when": account.opened,
                "who": account.who,
                "dataset": account.dataset,
                **_unit(account),
                "epsilon": account.epsilon,
                "delta": account.delta,
                "hash": account.hash,
            }
        )
        rows += [
            {
                "kind": "charge",
                "number": entry.number,
                "when": entry.when,
                "who": entry.who,
                "dataset": entry.dataset,
                **_unit(entry),
                "what": entry.what,
                "event": entry.event.to_dict(),
                "epsilon_alone": account_epsilon([entry.event], account.delta),
                "hash": entry.hash,
            }
            for entry in ledger.history(account.dataset)
        ]
    return sorted(rows, key=lambda row: row["number"])


def history_table(entries: list[dict[str, Any]]) -> "RenderableType":
    """Lay out what ``history`` gives, one data set after the other."""
    from rich.console import Group
    from rich.text import Text

    parts: list[RenderableType] = []
    for dataset in dict.fromkeys(one["dataset"] for one in entries):
        rows = table("row", "when (UTC)", "what", "ε alone", "who", left=3)
        rows.columns[-1].justify = "left"
        own = [one for one in entries if one["dataset"] == dataset]
        for one in own:
            number = str(one["number"])
            when = one["when"][:16].replace("T", " ")
            if one["kind"] == "open":
                cap = (
                    f"cap ε={format_short_up(one['epsilon'])} "
                    f"δ={format_short_up(one['delta'])}, protects {_protected_unit(one)}"
                )
                rows.add_row(number, when, cap, "", one["who"])
            else:
                rows.add_row(
                    number, when, one["what"], format_short_up(one["epsilon_alone"]), one["who"]
                )
        parts += [Text(""), Text(f'Data set "{dataset}"', "bold"), indented(rows)]
        if len(own) == 1:
            parts.append(Text("  Nothing was charged yet.", "dim"))
    if any(one["kind"] == "charge" for one in entries):
        parts += [
            Text(""),
            indented(Text(spelled("ε alone: of this charge by itself, at the cap's δ."), "dim")),
        ]
    return Group(*parts[1:])
