"""Honkela et al., Sec 6.3 (Fig 3).

Four ways to choose the noise level and the length scale among nine, at the same (ε, δ).

* paper: Algorithm 2 as printed, many fits of Algorithm 1, paid for by Liu and Talwar's theorem.
* papernot-steinke: the same fits and scores; the number of runs and their noise are those of
  `PrivateSearch`.
* PrivateSearch: the product, on `GPRegressor` (fewer repeats: a fit has six stages).
* evidence: one fit, whose releases choose at no further cost: these choices do not change what is
  released, and need no search.
"""

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from sklearn.gaussian_process.kernels import RBF

from reticent.models.gp.regressor import GPRegressor
from reticent.models.selection.private_search import PrivateSearch
from reticent.privacy.bounds import Bounds
from reticent.studies.common.results import Claim, Findings, Progress, mean_error, times
from reticent.studies.honkela2021 import hyperparameters_free as gp_hyperparameters
from reticent.studies.honkela2021 import nine_candidates as choices
from reticent.studies.honkela2021.data import HALF, SETUPS
from reticent.studies.honkela2021.nine_candidates import (
    DELTA,
    LENGTHS,
    REACH,
    SIGMAS,
    Choice,
    Method,
    N,
    Trials,
    right,
    tried,
)
from reticent.studies.honkela2021.vectorized_search import (
    Halves,
    Scheme,
    liu_talwar,
    papernot_steinke,
)

__all__ = ["run"]

Array = NDArray[np.float64]

EPSILONS = (1.0, 3.0, 10.0, 30.0)
_RUNS = 100  # expected, as in the paper
SECONDS = 60.0  # for 400 searches
_FEWER = 10  # times, for PrivateSearch
AT = np.linspace(-HALF, HALF, 200)


def _by(scheme: Callable[[float], Scheme]) -> Method:
    def search(x: Array, y: Array, epsilon: float, rng: np.random.Generator) -> Choice:
        halves = Halves(x, y, LENGTHS, np.array(SETUPS[0].inducing), AT, REACH)
        found = halves.select(SIGMAS, scheme(epsilon), rng)
        return found.length, found.sigma, found.mean

    return search


def _product(x: Array, y: Array, epsilon: float, rng: np.random.Generator) -> Choice:
    kernels = [
        {"kernel": RBF(length, "fixed"), "noise": sigma} for length in LENGTHS for sigma in SIGMAS
    ]
    search = PrivateSearch(
        GPRegressor(learn_kernel=False, stages=6, basis=16),
        kernels,
        scoring="likelihood",
        mean="coinpress",
        bounds=Bounds(x=[(-HALF, HALF)], y=(-REACH, REACH)),
        epsilon=epsilon,
        delta=DELTA,
        random_state=rng,
    ).fit(x[:, None], y)
    best = search.best_candidate_
    return best["kernel"].length_scale, best["noise"], search.predict(AT[:, None])


def _evidence(x: Array, y: Array, epsilon: float, rng: np.random.Generator) -> Choice:
    length, sigma, mean = gp_hyperparameters._reticent(x, y, epsilon, rng)
    return length, sigma, np.interp(AT, gp_hyperparameters._AT, mean)


METHODS: dict[str, Method] = {
    "paper": _by(lambda epsilon: liu_talwar(epsilon, DELTA)),
    "papernot-steinke": _by(lambda epsilon: papernot_steinke(epsilon, DELTA, _RUNS)),
    "PrivateSearch": _product,
    "evidence": _evidence,
}


def run(out: Path, *, repeats: int, quick: bool, seed: int, progress: Progress) -> Findings:
    """Compute, tabulate and draw."""
    epsilons = EPSILONS[1:2] if quick else EPSILONS
    often = {
        method: max(repeats // _FEWER, 1) if method == "PrivateSearch" else repeats
        for method in METHODS
    }
    cells = [
        (method, epsilon, i)
        for method in METHODS
        for epsilon in epsilons
        for i in range(often[method])
    ]
    trials = tried(METHODS, cells, AT, (seed, 63), progress)
    return Findings(
        "Hyperparameters by private selection (Honkela, Fig 3)",
        [
            {**choices.record(*key, found), "seconds": mean_error(one.seconds for one in found)[0]}
            for key, found in trials.items()
        ],
        [choices.selection_table(trials, "searches")],
        [] if quick else judge(trials),
        [
            f"N = {N}, δ = {DELTA:g}, {times(repeats)} (PrivateSearch {often['PrivateSearch']}), "
            f"seed {seed}. Noise multipliers of one run: {_multipliers(epsilons)}. The first two "
            "fit the paper's Algorithm 1 as printed, and are not private releases to use."
        ],
        [choices.picture(out, trials, "searches")],
    ).write(out)


def _multipliers(epsilons: Sequence[float]) -> str:
    said = []
    for name, scheme in (
        ("paper", liu_talwar),
        ("papernot-steinke", lambda e, d: papernot_steinke(e, d, _RUNS)),
    ):
        said.append(
            f"{name} "
            f"{', '.join(f'{scheme(epsilon, DELTA).multiplier:.3g}' for epsilon in epsilons)}"
        )
    return f"{'; '.join(said)} at ε = {', '.join(f'{epsilon:g}' for epsilon in epsilons)}"


def judge(trials: Trials) -> list[Claim]:
    """Claims, each kept or not by these results."""
    both = {key: right(found) for key, found in trials.items()}
    noise = [right(trials["paper", epsilon], 1) for epsilon in EPSILONS[1:]]
    chance = 1 / (len(LENGTHS) * len(SIGMAS))
    weak = both["paper", 1.0]
    sensible = both["paper", 3.0]
    claims = [
        Claim(
            "paper: ε = 3 is needed for any sensible result",
            f"both right {weak:.0%} at 1, {sensible:.0%} at 3 (chance {chance:.0%})",
            weak < 2.5 * chance < sensible,
        ),
        Claim(
            "paper: the noise level is found better up to ε = 30",
            ", ".join(f"{share:.0%}" for share in noise) + " at 3, 10, 30",
            noise[0] < noise[-1] and noise[1] <= noise[2] + 0.02,
        ),
    ]
    for epsilon in EPSILONS:
        ours, theirs, free = (
            both[method, epsilon] for method in ("papernot-steinke", "paper", "evidence")
        )
        found = f"{ours:.0%} and {theirs:.0%}; evidence {free:.0%}"
        claims.append(
            Claim(
                f"ε={epsilon:g}: papernot-steinke is no worse than the paper",
                found,
                ours >= theirs - 0.03,
            )
        )
    for method in ("paper", "papernot-steinke"):
        seconds = 400 * float(
            np.mean(
                [one.seconds for key, found in trials.items() if key[0] == method for one in found]
            )
        )
        claims.append(
            Claim(
                f"{method}: 400 searches within {SECONDS:g} s CPU",
                f"{seconds:.0f} s",
                seconds <= SECONDS,
            )
        )
    return claims
