"""``reticent audit``: what can be said to it. The attacks are in `audit`, imported when it runs."""

from dataclasses import asdict
from typing import Annotated

import typer

from reticent.apps.options import Json, Quiet
from reticent.apps.terminal import advise, aside, console, print_json, progress
from reticent.errors import ReleaseRefused

__all__ = ["audit_command"]


def audit_command(
    statistic: Annotated[
        str,
        typer.Argument(
            metavar="STATISTIC",
            help="mean, histogram, covariance, bins, bins-labels, gp, gp-labels, gp-labels-functional, gp-labels-inducing, "
            "classifier, mixture, kmeans, factors, bandit, bandit-running, bandit-rewards, bandit-local, search or all.",
        ),
    ] = "all",
    quick: Annotated[
        bool, typer.Option("--quick", help="Fewer runs: seconds instead of minutes, and a weaker bound.")
    ] = False,
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

    Shows how much of the claimed ε an attacker can prove from many releases. Charges nothing. All of them take about eight
    minutes, bandits and searches nearly all of that, or half a minute with --quick.
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
        print()
        aside("Power: the share of the claim that the attack could show; low is a weak test.")
    if any(one.verdict == "BROKEN" for one in findings):
        raise ReleaseRefused("an attack shows more than was claimed, and not by chance. Release nothing; report this.")
    if not (json or quiet):
        unclear = any(one.verdict == "unclear" for one in findings)
        again = "run it again: a bound just above the claim happens by chance, at most once in twenty times"
        advise(again if unclear else "reticent audit --epsilon 4, to attack another claim")
