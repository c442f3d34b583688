"""``reticent plan``: what can be said to it."""

from pathlib import Path
from typing import Annotated

import typer

from reticent.apps.options import Json, LevelColumn, Quiet
from reticent.apps.terminal import print_json, progress

__all__ = ["plan_command"]


def plan_command(
    x: Annotated[
        list[str] | None, typer.Option(metavar="COLUMN=LOW:HIGH", help="An input and its public range; one for each.")
    ] = None,
    y: Annotated[
        list[str] | None, typer.Option(metavar="COLUMN=LOW:HIGH", help="The output and its public range.")
    ] = None,
    n: Annotated[
        str | None, typer.Option("--n", metavar="NUMBERS", help="Number of records, or several to compare: 1000,5000.")
    ] = None,
    epsilon: Annotated[str, typer.Option(metavar="NUMBERS", help="Values of ε to compare.")] = "0.1,0.3,1,3",
    delta: Annotated[
        float | None, typer.Option(metavar="NUMBER", help="As for reticent fit; 1e-6 if left out.")
    ] = None,
    noise: Annotated[
        float | None,
        typer.Option(
            metavar="SD", help="Spread of outputs with the same inputs; if left out, a tenth of the output's range."
        ),
    ] = None,
    noise_column: LevelColumn = None,
    norm: Annotated[
        float | None,
        typer.Option(metavar="NUMBER", help="Public bound on the inputs' distance from the middle of the ranges."),
    ] = None,
    records_per_person: Annotated[int, typer.Option(metavar="K", help="Protect people with up to K records each.")] = 1,
    basis: Annotated[
        str | None,
        typer.Option(
            metavar="NUMBERS", help="Numbers of basis functions to compare; if left out, what fit would choose."
        ),
    ] = None,
    error: Annotated[
        float | None, typer.Option(metavar="SIZE", help="Which ε, and how many records, would bring the error to this?")
    ] = None,
    draws: Annotated[int, typer.Option(metavar="N", help="Functions to simulate; four times as many halve the ±.")] = 6,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Draw it: a new .png or .svg, or .html with the table.")
    ] = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """See which error to expect from which ε, before any record is read.

    Draws functions from the prior of reticent fit gp, makes up records of them, with inputs spread evenly over their ranges, fits
    them as real ones, and measures how far off the fits are. Real functions may be easier or harder than such ones. Reads
    nothing, charges nothing.
    """
    from reticent.apps.plan_answers import answers, check_out, print_plan, question, write

    own = {"noise": noise, "noise_column": noise_column, "norm": norm, "records_per_person": records_per_person}
    asked = question(x or (), y or (), n, epsilon, delta=delta, basis=basis, **own)
    asked.check(draws, error)
    if out is not None:
        check_out(out)
    with progress("Simulating fits", asked.fits(draws), quiet=quiet) as advance:
        found = asked.answer(draws, advance)
    with progress("Looking for the answer", quiet=quiet):
        told = [] if error is None else answers(asked, found, error)
    if out is not None:
        write(asked, found, out)
    if json:
        return print_json({**found.for_machines(), "answers": told})
    print_plan(asked, found, told, error, quiet=quiet)
    return None
