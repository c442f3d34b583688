"""`reticent bandit simulate`: a private bandit on a made-up problem."""

from typing import Annotated

import typer

from reticent.apps.options import Json, Quiet
from reticent.apps.terminal import advise, line, print_json, progress

__all__ = ["simulate"]


def simulate(
    where: Annotated[
        str, typer.Argument(metavar="ENVIRONMENT", help="gp-sum, camel, styblinski or michalewicz.")
    ] = "gp-sum",
    epsilon: Annotated[float, typer.Option(metavar="NUMBER", help="Strength of the promise.")] = 1.0,
    delta: Annotated[float, typer.Option(metavar="NUMBER", help="Chance that the promise may fail.")] = 1e-5,
    rounds: Annotated[int | None, typer.Option(metavar="N", help="Rounds; as in the study if left out.")] = None,
    seed: Annotated[int, typer.Option(metavar="N", help="Draws the function, the candidates and the noise.")] = 0,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Play a private bandit on a made-up problem, and see what privacy costs. Reads nothing, charges nothing."""
    from reticent.errors import BadInput
    from reticent.experiments.arms import ENVIRONMENTS, environment
    from reticent.experiments.gpucb_regret import play
    from reticent.models.bandit import JointBandit

    if where not in ENVIRONMENTS:
        raise BadInput(f"There is no environment {where!r}: choose one of {', '.join(ENVIRONMENTS)}.")
    if rounds is not None and rounds < 1:
        raise BadInput(f"rounds must be at least 1, not {rounds}.")
    with progress(f"Playing {where}", quiet=quiet):
        place = environment(where, seed)
        n = rounds or place.rounds
        shares = {}
        for name, eps in (("private", epsilon), ("not private", 1e6)):
            bandit = JointBandit(bounds=place.bounds, horizon=n, epsilon=eps, delta=delta, random_state=seed)
            regret, chance = play(place, bandit, seed, n)
            shares[name] = float(regret.sum() / chance.sum())
            if name == "private":
                last, releases = float(regret[-n // 4 :].sum() / chance[-n // 4 :].sum()), len(bandit.releases_)
    if json:
        return print_json({"environment": where, "rounds": n, "releases": releases, "last_quarter": last, **shares})
    line("Played", f"{where}, {n:,} rounds, {releases} releases, ε={epsilon:g}, δ={delta:g}")
    line("Regret", f"{shares['private']:.3f} of random play ({last:.3f} in the last quarter)")
    line("Without privacy", f"{shares['not private']:.3f}")
    return advise(
        "reticent reproduce gpucb-regret, for many runs",
        "reticent.JointBandit, in Python, for an experiment of your own",
    )
