"""``reticent ledger …``: what can be said about budgets."""

from shlex import quote
from typing import Annotated

import typer

from reticent.cli.options import Json, example
from reticent.cli.terminal import advise, console, guarded, ledger_word, line, print_json

__all__ = ["ledger_app"]

ledger_app = typer.Typer(
    no_args_is_help=True,
    help="Budgets: what was promised, what is spent, what is left.",
    epilog=example("reticent ledger open budget.db patients --epsilon 3 --delta 1e-5"),
)

LedgerUrl = Annotated[
    str, typer.Argument(metavar="LEDGER", help="A file such as budget.db, or postgresql://…")
]
OneDataset = Annotated[
    str | None, typer.Argument(metavar="DATASET", help="One data set; all if left out.")
]


@ledger_app.command(
    "open",
    epilog=example(
        "reticent ledger open budget.db patients --epsilon 3 --delta 1e-5",
        "reticent ledger open budget.db visits --epsilon 3 --delta 1e-5 --person patient_id",
        "reticent ledger open budget.db extract --epsilon 1 --delta 1e-6 --within patients",
    ),
)
@guarded
def ledger_open(
    ledger: LedgerUrl,
    dataset: Annotated[str, typer.Argument(metavar="DATASET", help="A name for the data set.")],
    epsilon: Annotated[float, typer.Option(metavar="NUMBER", help="Cap on ε. It never changes.")],
    delta: Annotated[
        float, typer.Option(metavar="NUMBER", help="The cap's δ; well below 1/records.")
    ],
    relation: Annotated[
        str,
        typer.Option(
            metavar="RELATION", help="What is protected: record, or label (inputs are public)."
        ),
    ] = "record",
    person: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            help="Protect people with all of their records: the column that says whose a record "
            "is, as fits will name it.",
        ),
    ] = None,
    neighbours: Annotated[
        str,
        typer.Option(
            metavar="HOW",
            help="replace (the number of people or records is public) or add-remove (it is "
            "protected, too).",
        ),
    ] = "replace",
    records_per_person: Annotated[
        int,
        typer.Option(
            metavar="K",
            help="Where no column says whose a record is: protect people who have up to K records "
            "each.",
        ),
    ] = 1,
    within: Annotated[
        str | None,
        typer.Option(
            metavar="DATASET",
            help="An account of the same people, from whose cap this one's is set aside: one cap "
            "over both.",
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Give a data set its budget, once. Makes the ledger if there is none.

    An account is for one unit of privacy: fits that protect another one are refused.
    Releases compose to less than their sum: a cap of ε = 1.5 holds two fits with ε = 1 and the same
    δ, not three.
    """
    from reticent.validation import check_epsilon_delta

    check_epsilon_delta(epsilon, delta, pure=True)  # before accounting is imported
    from reticent.cli.parsing.unit_options import parse_unit, unit_words

    unit = parse_unit(
        person=person,
        neighbours=neighbours,
        records_per_person=records_per_person,
        relation=relation,
    )
    from reticent.cli.views.accounts import accounts_table, open_account

    states = open_account(ledger, dataset, epsilon=epsilon, delta=delta, unit=unit, within=within)
    if json:
        return print_json(states[0])
    console().print(accounts_table(states))
    account = f"--ledger {ledger_word(ledger)} --dataset {quote(dataset)}"
    options = " ".join([account, *unit_words(unit)])
    return advise(f"reticent fit with {options}: see reticent fit --help")


@ledger_app.command("show", epilog=example("reticent ledger show budget.db"))
@guarded
def ledger_show(ledger: LedgerUrl, dataset: OneDataset = None, json: Json = False) -> None:
    """Show what is spent and what is left, and which curves were obfuscated."""
    from reticent.cli.views.accounts import accounts, accounts_table, curves, curves_table

    found = curves(ledger, dataset)
    if dataset is not None and found:
        states = []
    else:
        states = accounts(ledger, dataset)
    if json:
        kept = (
            {"dataset": one["dataset"], "relation": "obfuscated curve, not DP", **one}
            for one in found
        )
        return print_json([*states, *kept])
    if states or not found:
        console().print(accounts_table(states))
    if found:
        console().print(*([""] if states else []), curves_table(found), sep="\n")
    return advise(f"reticent ledger history {ledger_word(ledger)}, for every charge")


@ledger_app.command("history", epilog=example("reticent ledger history budget.db patients"))
@guarded
def ledger_history(ledger: LedgerUrl, dataset: OneDataset = None, json: Json = False) -> None:
    """Show the cap and every charge: when, by whom, what for."""
    from reticent.cli.views.accounts import history, history_table

    entries = history(ledger, dataset)
    if json:
        return print_json(entries)
    console().print(history_table(entries) if entries else "No data set was opened yet.")
    return advise(
        f"reticent ledger verify {ledger_word(ledger)}, to check that nothing was altered"
    )


@ledger_app.command("verify", epilog=example("reticent ledger verify budget.db"))
@guarded
def ledger_verify(
    ledger: LedgerUrl,
    head: Annotated[
        str | None,
        typer.Option(metavar="HASH", help="A head noted earlier; shows that nothing was cut off."),
    ] = None,
    json: Json = False,
) -> None:
    """Check that the history was not altered.

    Recomputes the chain of hashes and every total.
    """
    from reticent.cli.views.accounts import verify

    found = verify(ledger, head)
    if json:
        return print_json({"head": found})
    line("Verified", "every row fits, and no data set is past its cap")
    line("Head", found)
    return advise("note the head elsewhere, and give it to the next verify with --head")
