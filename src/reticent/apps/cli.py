"""The command line: what can be said to it. Each command imports what it needs when it runs, so that help is quick."""

import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

import reticent
from reticent.apps.terminal import advise, console, guarded, line, print_json, progress
from reticent.errors import ReleaseRefused

__all__ = ["app", "main"]


def _example(*lines: str) -> str:
    """Give the end of a help text."""
    # the backspace keeps the lines as they are
    return "\b\nExample:\n" + "\n".join(f"  {line}" for line in lines)


app = typer.Typer(
    name="reticent",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,  # its tracebacks show values
    rich_markup_mode=None,  # plain help: narrower, and Rich need not be imported for it
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog=_example("reticent tour"),
)
ledger_app = typer.Typer(
    no_args_is_help=True,
    help="Budgets: what was promised, what is spent, what is left.",
    epilog=_example("reticent ledger open budget.db patients --epsilon 3 --delta 1e-5"),
)
app.add_typer(ledger_app, name="ledger")

Json = Annotated[bool, typer.Option("--json", help="Print the result for machines.")]
Quiet = Annotated[bool, typer.Option("--quiet", help="No progress, no advice.")]
LedgerUrl = Annotated[str, typer.Argument(metavar="LEDGER", help="A file such as budget.db, or postgresql://…")]
OneDataset = Annotated[str | None, typer.Argument(metavar="DATASET", help="One data set; all if left out.")]


def _version(wanted: bool) -> None:
    if wanted:
        print(f"reticent {reticent.__version__}")
        raise typer.Exit


@app.callback()
def reticent_command(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and stop.")
    ] = False,
) -> None:
    """Models that learn from everyone and tell on no one: differentially private releases from sensitive records."""


@app.command(epilog=_example("reticent tour --out tour"))
@guarded
def tour(
    out: Annotated[
        Path,
        typer.Option(metavar="FOLDER", help="Folder to make; if it is in use, the next free one: tour-2, tour-3, …"),
    ] = Path("tour"),
    json: Json = False,
) -> None:
    """See it all at work, in seconds, on people who never lived."""
    from reticent.apps.tour import speaker, take

    screen = console()
    found = take(out, (lambda *_: None) if json else speaker(screen))
    if json:
        return print_json(found)
    folder = found["folder"]
    advise(
        f"reticent inspect {folder}/covariance.reticent",
        f"reticent ledger history {folder}/budget.db",
        "reticent fit --help, for a file of your own",
    )


@app.command(
    epilog=_example(
        "reticent fit mean patients.csv --x age=0:110 --x height=40:220 \\",
        "    --epsilon 1 --delta 1e-6 --ledger budget.db --dataset patients --out m.reticent",
    )
)
@guarded
def fit(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="mean, histogram or covariance.")],
    data: Annotated[str, typer.Argument(metavar="DATA", help="A CSV or Parquet file, or a folder of them.")],
    out: Annotated[Path, typer.Option(metavar="FILE", help="Model file to write; an existing file is never replaced.")],
    x: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMN=LOW:HIGH", help="A column and its public range. Give one for each."),
    ] = None,
    epsilon: Annotated[
        float | None, typer.Option(metavar="NUMBER", help="Strength of the promise: smaller protects more.")
    ] = None,
    delta: Annotated[
        float | None, typer.Option(metavar="NUMBER", help="Chance that the promise may fail; well below 1/records.")
    ] = None,
    norm: Annotated[
        float | None,
        typer.Option(metavar="NUMBER", help="Public bound on a record's distance from the middle of the ranges."),
    ] = None,
    bins: Annotated[
        int | None, typer.Option(metavar="NUMBER", help="histogram: number of bins of each column.")
    ] = None,
    ledger: Annotated[
        str | None, typer.Option(metavar="LEDGER", help="Ledger to charge, before any record is read.")
    ] = None,
    dataset: Annotated[str | None, typer.Option(metavar="NAME", help="Data set to charge in the ledger.")] = None,
    records_per_person: Annotated[
        int, typer.Option(metavar="K", help="Protect people who have up to K records each.")
    ] = 1,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Fit a model to a file, charge the budget, and write the release."""
    from reticent.apps.fit import fit as run
    from reticent.apps.inspection import describe, print_fit

    with progress(f"Reading {Path(data).name}", quiet=quiet):
        fitted = run(
            model,
            data,
            x=x or (),
            norm=norm,
            epsilon=epsilon,
            delta=delta,
            own={"bins": bins},
            ledger=ledger,
            dataset=dataset,
            records_per_person=records_per_person,
            out=out,
        )
    if json:
        return print_json(describe(out)[1])
    if not quiet:
        print_fit(console(), fitted, ledger=ledger, dataset=dataset, out=out)
    return None


@app.command(epilog=_example("reticent inspect m.reticent"))
@guarded
def inspect(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A model file.")],
    json: Json = False,
) -> None:
    """Show a model file: the promise, the releases, the results."""
    from reticent.apps.inspection import describe, print_model

    model, about = describe(file)
    if json:
        return print_json(about)
    print_model(console(), model, about)
    return advise(f"in Python, reticent.load({str(file)!r})")


@app.command(epilog=_example("reticent audit mean --quick"))
@guarded
def audit(
    statistic: Annotated[str, typer.Argument(metavar="STATISTIC", help="mean, histogram, covariance or all.")] = "all",
    quick: Annotated[bool, typer.Option("--quick", help="Fewer runs: seconds, and a weaker bound.")] = False,
    epsilon: Annotated[float, typer.Option(metavar="NUMBER", help="The claim to attack.")] = 1.0,
    delta: Annotated[
        float,
        typer.Option(
            metavar="NUMBER", help="The claim's δ; large, so that an attack can show it. 0 audits Laplace noise."
        ),
    ] = 0.05,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Attack the noise with worst-case records.

    Shows how much of the claimed ε an attacker can prove from many releases. Charges nothing.
    """
    from reticent.apps.audit import QUICK_RUNS, RUNS, chosen, findings_table
    from reticent.apps.audit import audit as run

    names, runs = chosen(statistic, delta), QUICK_RUNS if quick else RUNS
    with progress("Attacking", 2 * runs * len(names), quiet=quiet) as advance:
        findings = run(names, epsilon=epsilon, delta=delta, runs=runs, advance=advance)
    if json:
        print_json([{**asdict(one), "delta": delta, "power": one.power, "verdict": one.verdict} for one in findings])
    else:
        console().print(findings_table(findings, delta))
    if any(one.verdict == "BROKEN" for one in findings):
        raise ReleaseRefused("an attack shows more than was claimed, and not by chance. Release nothing; report this.")
    if not (json or quiet):
        unclear = any(one.verdict == "unclear" for one in findings)
        again = "run it again: a bound just above the claim happens by chance, at most once in twenty times"
        advise(again if unclear else "reticent audit --epsilon 4, to attack another claim")


@ledger_app.command("open", epilog=_example("reticent ledger open budget.db patients --epsilon 3 --delta 1e-5"))
@guarded
def ledger_open(
    ledger: LedgerUrl,
    dataset: Annotated[str, typer.Argument(metavar="DATASET", help="A name for the data set.")],
    epsilon: Annotated[float, typer.Option(metavar="NUMBER", help="Cap on ε. It never changes.")],
    delta: Annotated[float, typer.Option(metavar="NUMBER", help="The cap's δ; well below 1/records.")],
    relation: Annotated[
        str, typer.Option(metavar="RELATION", help="What is protected: record, or label (inputs are public).")
    ] = "record",
    json: Json = False,
) -> None:
    """Give a data set its budget, once. Makes the ledger if there is none."""
    from reticent.apps.accounts import accounts_table, open_account

    states = open_account(ledger, dataset, epsilon=epsilon, delta=delta, relation=relation)
    if json:
        return print_json(states[0])
    console().print(accounts_table(states))
    return advise("reticent fit --help, with --ledger and --dataset")


@ledger_app.command("show", epilog=_example("reticent ledger show budget.db"))
@guarded
def ledger_show(ledger: LedgerUrl, dataset: OneDataset = None, json: Json = False) -> None:
    """Show what is spent and what is left."""
    from reticent.apps.accounts import accounts, accounts_table

    states = accounts(ledger, dataset)
    if json:
        return print_json(states)
    console().print(accounts_table(states))
    return advise("reticent ledger history, for every charge")


@ledger_app.command("history", epilog=_example("reticent ledger history budget.db patients"))
@guarded
def ledger_history(ledger: LedgerUrl, dataset: OneDataset = None, json: Json = False) -> None:
    """Show every charge: when, by whom, what for."""
    from reticent.apps.accounts import charges, charges_table

    entries = charges(ledger, dataset)
    if json:
        return print_json(entries)
    console().print(charges_table(entries) if entries else "Nothing was charged yet.")
    return advise("reticent ledger verify, to check that nothing was altered")


@ledger_app.command("verify", epilog=_example("reticent ledger verify budget.db"))
@guarded
def ledger_verify(
    ledger: LedgerUrl,
    head: Annotated[
        str | None, typer.Option(metavar="HASH", help="A head noted earlier; shows that nothing was cut off.")
    ] = None,
    json: Json = False,
) -> None:
    """Check that the history was not altered.

    Recomputes the chain of hashes and every total.
    """
    from reticent.apps.accounts import verify

    found = verify(ledger, head)
    if json:
        return print_json({"head": found})
    line("Verified", "every row fits, and no data set is past its cap")
    line("Head", found)
    return advise("note the head elsewhere, and give it to the next verify with --head")


def main() -> None:
    """Run the command line."""
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors="replace")  # type: ignore[union-attr]  # a terminal without ε gets a question mark
    app(prog_name="reticent")
