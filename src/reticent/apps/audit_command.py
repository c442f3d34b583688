"""``reticent audit``: what can be said to it. The attacks are in `audit`, imported when it runs."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from reticent.apps.options import Json, Quiet
from reticent.apps.terminal import advise, aside, console, print_json, progress
from reticent.errors import ReleaseRefused

if TYPE_CHECKING:
    from reticent.apps.audit_evidence import Finding

__all__ = ["audit_command"]


def audit_command(
    model: Annotated[
        str,
        typer.Argument(
            metavar="MODEL",
            help="mean, histogram, covariance, bins, bins-labels, mixture, gp, gp-inputs, kmeans, factors, components, "
            "classifier, classifier-inputs, gp-labels, gp-labels-functional, gp-labels-inducing, bandit, "
            "bandit-running, bandit-rewards, bandit-local, search or all.",
        ),
    ] = "all",
    quick: Annotated[
        bool, typer.Option("--quick", help="Only as many runs as find half the noise: half a minute for all.")
    ] = False,
    epsilon: Annotated[float, typer.Option(metavar="NUMBER", help="The promise to attack.")] = 1.0,
    delta: Annotated[
        float,
        typer.Option(
            metavar="NUMBER", help="The promise's δ; large, so that few runs can test it. 0 audits Laplace noise."
        ),
    ] = 0.05,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Attack all that models release, with two tables that differ in one record.

    Calls the public methods again and again, with real noise, and shows what the releases of a fit prove
    together, and which mistakes would have been found. Charges nothing. All models take about eight minutes.
    """
    from reticent.apps.audit import FULL, QUICK, chosen
    from reticent.apps.audit import audit as run

    names = chosen(model, delta)
    effort = QUICK if quick else FULL
    with progress("Attacking", effort.most * len(names), quiet=quiet) as advance:
        findings = run(names, epsilon=epsilon, delta=delta, effort=effort, advance=advance)
    if json:
        print_json([{**asdict(one), "verdict": one.verdict} for one in findings])
    else:
        _print(findings, epsilon, delta)
    if any(one.verdict == "violated" for one in findings):
        raise ReleaseRefused("a promise is violated, and not by accident. Release nothing; report this.")
    if not (json or quiet):
        few = any(one.verdict == "too few runs" for one in findings)
        another = "reticent audit --epsilon 4, to attack another promise"
        advise("reticent audit, without --quick, for more runs" if few and quick else another)


def _print(findings: "Sequence[Finding]", epsilon: float, delta: float) -> None:
    from reticent.apps.audit import NOT_ATTACKED, findings_table

    console().print(findings_table(findings))
    for one in findings:
        for fault in one.faults:
            aside(f"{one.model}: {fault}.")
    print()
    aside(
        f"The promise is ε = {epsilon:g} at δ = {delta:g}. Seen: releases attacked, of those that one call makes. Shift: how "
        "much of the promise the two tables use. ε ≥: what the attack proves. ½, 0.7, 0.9: the probability that so "
        "little of the stated noise, in any one release, would have been found. Holds: as far as these runs can "
        "tell, with half the noise found at 95 % or more."
    )
    print()
    aside(f"Not attacked: {NOT_ATTACKED}")
