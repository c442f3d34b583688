"""``reticent plan``: what can be said to it."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from reticent.cli.options import (
    ABOUT_DATA,
    UNIT,
    Json,
    LevelColumn,
    Quiet,
    option,
    with_options,
)
from reticent.cli.terminal import print_json, progress

__all__ = ["plan_command"]


_OWN = {  # of the model and of its bounds
    "delta": option(float, "NUMBER", "As for reticent fit; 1e-6 if left out."),
    "noise": option(
        float,
        "SD",
        "Spread of outputs with the same inputs; if left out, a tenth of the output's range.",
    ),
    "noise_column": (LevelColumn, None),
    "norm": option(
        float, "NUMBER", "Public bound on the inputs' distance from the middle of the ranges."
    ),
    **UNIT,
    "records_guess": option(
        str,
        "NUMBERS",
        "With --person: a public guess of how many records people have, 3, or several numbers that "
        "are about equally frequent, 1,2,10. Compares contributions.",
        "--records-per-person-guess",
    ),
    "codebook": ABOUT_DATA["codebook"],
    "keep_missing": ABOUT_DATA["keep_missing"],
    "basis": option(
        str, "NUMBERS", "Numbers of basis functions to compare; if left out, what fit would choose."
    ),
}
_COST = {  # how long a fit takes
    "rows": option(
        str,
        "NUMBER",
        "Instead of --n: how long would a fit of so many records take, for example 1e9? Measured "
        "on this machine, with made-up records.",
    ),
    "source": option(
        str,
        "KIND",
        "With --rows: where records are, memory, parquet or csv.",
        default="parquet",
    ),
    "workers": option(str, "NUMBERS", "With --rows: cores of a cluster, 8,64."),
}


@with_options(own=_OWN, cost=_COST)
def plan_command(
    x: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN=…",
            help="An input and its public range, words or dates, as for reticent fit.",
        ),
    ] = None,
    y: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMN=LOW:HIGH", help="The output and its public range."),
    ] = None,
    n: Annotated[
        str | None,
        typer.Option(
            "--n",
            metavar="NUMBERS",
            help="Number of records (with --person, of people), or several: 1000,5000.",
        ),
    ] = None,
    epsilon: Annotated[
        str, typer.Option(metavar="NUMBERS", help="Values of ε to compare.")
    ] = "0.1,0.3,1,3",
    own: Any = None,
    cost: Any = None,
    error: Annotated[
        float | None,
        typer.Option(
            metavar="SIZE", help="Which ε, and how many records, would bring the error to this?"
        ),
    ] = None,
    draws: Annotated[
        int,
        typer.Option(metavar="N", help="Functions to simulate; four times as many halve the ±."),
    ] = 6,
    out: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Draw it: a new .png or .svg, or .html with the table."),
    ] = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """See which error to expect from which ε, before any record is read.

    Draws functions from the prior of reticent fit gp, makes up records of them, with inputs spread
    evenly over their ranges, fits them as real ones, and measures how far off the fits are. Real
    functions may be easier or harder than such ones. With --rows in the place of --n: how long a
    fit takes, and how much memory. Reads nothing, charges nothing.
    """
    from reticent.cli.views.cost import parse_cost, print_cost
    from reticent.cli.views.plan import answers, check_out, parse_question, print_plan, write_plan

    asked_cost = parse_cost(n, error, out, **cost)
    if asked_cost is not None:
        question = parse_question(x or (), y or (), str(asked_cost.rows), epsilon, **own)
        question.check(draws, error)
        with progress("Measuring", asked_cost.steps(question), quiet=quiet) as advance:
            costs = asked_cost.measure(question, advance)
        if json:
            print_json({"costs": [one.for_machines() for one in costs]})
        else:
            print_cost(asked_cost, question, costs)
        return
    asked = parse_question(x or (), y or (), n, epsilon, **own)
    asked.check(draws, error)
    if out is not None:
        check_out(out)
    with progress("Simulating fits", asked.fits(draws), quiet=quiet) as advance:
        found = asked.answer(draws, advance)
    with progress("Looking for the answer", quiet=quiet):
        if error is None:
            told = []
        else:
            told = answers(asked, found, error)
    if out is not None:
        write_plan(asked, found, out)
    if json:
        compared = [asdict(row) for row in asked.contributions()]
        print_json({**found.for_machines(), "answers": told, "contributions": compared})
    else:
        print_plan(asked, found, told, error, quiet=quiet)
