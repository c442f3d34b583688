"""``reticent audit``: its options, and the table of findings; `auditing` holds the attacks."""

import math
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from reticent.cli.options import Json, Quiet
from reticent.cli.terminal import advise, aside, console, print_json, progress, table
from reticent.errors import ReleaseRefused
from reticent.reporting.formatting import format_short

if TYPE_CHECKING:
    from rich.console import RenderableType

    from reticent.auditing.evidence import Finding

__all__ = ["audit_command"]


def audit_command(
    model: Annotated[
        str,
        typer.Argument(
            metavar="MODEL",
            help="mean, histogram, covariance, table, bins, bins-labels, mixture, gp, gp-inputs, "
            "kmeans, factors, components, classifier, classifier-inputs, gp-labels, "
            "gp-labels-functional, gp-labels-inducing, mean-missing, histogram-words, "
            "table-words, table-missing, bins-words, mixture-words, "
            "mixture-classes, mixture-missing, kmeans-words, kmeans-missing, factors-words, "
            "gp-words, gp-missing, classifier-words, gp-labels-words, gp-labels-missing, bandit, "
            "bandit-running, bandit-rewards, bandit-local, search or all.",
        ),
    ] = "all",
    quick: Annotated[
        bool,
        typer.Option("--quick", help="Only as many runs as find half the noise: a minute for all."),
    ] = False,
    epsilon: Annotated[float, typer.Option(metavar="NUMBER", help="The promise to attack.")] = 1.0,
    delta: Annotated[
        float,
        typer.Option(
            metavar="NUMBER",
            help="The promise's δ; large, so that few runs can test it. 0 audits Laplace noise.",
        ),
    ] = 0.05,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Attack all that models release, with two tables that differ in one record.

    Calls the public methods again and again, with real noise, and shows what the releases of a fit
    prove together, and which mistakes would have been found. Charges nothing. All models take about
    a quarter of an hour.
    """
    from reticent.auditing.attack import FULL, QUICK, named_attacks
    from reticent.auditing.attack import audit as run

    names = named_attacks(model, delta)
    if quick:
        effort = QUICK
    else:
        effort = FULL
    with progress("Attacking", effort.most * len(names), quiet=quiet) as advance:
        findings = run(names, epsilon=epsilon, delta=delta, effort=effort, advance=advance)
    if json:
        print_json([{**asdict(one), "verdict": one.verdict} for one in findings])
    else:
        _print(findings, epsilon, delta)
    if any(one.verdict == "violated" for one in findings):
        raise ReleaseRefused(
            "a promise is violated, and not by accident. Release nothing; report this."
        )
    if not (json or quiet):
        few = any(one.verdict == "too few runs" for one in findings)
        another = "reticent audit --epsilon 4, to attack another promise"
        advise("reticent audit, without --quick, for more runs" if few and quick else another)


def _print(findings: "Sequence[Finding]", epsilon: float, delta: float) -> None:
    from reticent.auditing.attack import NOT_ATTACKED

    console().print(findings_table(findings))
    for one in findings:
        for fault in one.faults:
            aside(f"{one.model}: {fault}.")
    print()
    aside(
        f"The promise is ε = {epsilon:g} at δ = {delta:g}. Seen: releases attacked, of those that "
        "one call makes. Shift: how much of the promise the two tables use. ε ≥: what the attack "
        "proves. ½, 0.7, 0.9: the probability that so little of the stated noise, in any one "
        "release, would have been found. Holds: as far as these runs can tell, with half the noise "
        "found at 95 % or more."
    )
    print()
    aside(f"Not attacked: {NOT_ATTACKED}")


def findings_table(findings: "Sequence[Finding]") -> "RenderableType":
    """Lay out what attacks found: one line for each model."""
    rows = table("model", "seen", "runs", "shift", "ε ≥", "½", "0.7", "0.9", "verdict")
    for one in findings:
        rows.add_row(
            one.model,
            f"{one.attacked}/{one.released}",
            f"{one.runs:,}",
            f"{one.shift:.0%}",
            format_short(max(one.shown, one.shown_normal or 0.0), 2),
            *(_percent(power) for power in one.power.values()),
            one.verdict,
        )
    return rows


def _percent(power: float) -> str:
    """A probability; never rounded up to certainty, nor down to nothing."""
    if power > 0.99:
        return ">99%"
    if power < 0.01:
        return "<1%"
    return f"{math.floor(100 * power)}%"
