"""Honkela et al., Sec 6.3 (Fig 3): how often the true noise level and length scale are found among nine, and how good the fit is.

The paper spends its budget on many private fits and compares them. Here one fit is released, and the evidence of its releases
chooses the length scale and the noise level at no further cost: the same records, ε and δ = 1e-5, no validation set.
"""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.gaussian_process.kernels import RBF

from reticent.experiments.findings import Claim, Findings, Progress, Table, Value, mean_error, plus_minus, times
from reticent.experiments.honkela_choices import (
    DELTA,
    LENGTHS,
    REACH,
    SIGMAS,
    TRUE,
    Choice,
    Method,
    N,
    Trial,
    Trials,
    tried,
)
from reticent.experiments.honkela_data import HALF, SETUPS
from reticent.experiments.honkela_selection import plan, select
from reticent.experiments.pictures import Line, Panel, draw
from reticent.maths.priors import KernelPriors
from reticent.models.gp import GPRegressor
from reticent.privacy.bounds import Bounds

__all__ = ["run"]

Array = NDArray[np.float64]

_EPSILONS = (0.3, 1.0, 3.0, 10.0, 30.0)
_WANTED = {0.3: 0.6, 1.0: 0.95, 3.0: 0.95}
_SECONDS = 0.3  # of one fit: 400 of them within 120
_AT = np.linspace(-HALF, HALF, 400)


class _OnGrid(GPRegressor):
    """GPRegressor that may choose among the paper's three length scales only."""

    def _priors(self, bounds: Bounds) -> KernelPriors:
        low, high = bounds.y[0]
        return KernelPriors([RBF(length) for length in LENGTHS], 1, bounds.natural, (high - low) / 2)


def _nearest(value: float, grid: Sequence[float]) -> float:
    return min(grid, key=lambda one: abs(math.log(one / value)))


def _reticent(x: Array, y: Array, epsilon: float, rng: np.random.Generator) -> Choice:
    bounds = Bounds(x=[(-HALF, HALF)], y=(-REACH, REACH))
    model = _OnGrid(RBF(1.0), bounds=bounds, epsilon=epsilon, delta=DELTA, random_state=rng).fit(x[:, None], y)
    kernel: Any = model.kernel_
    found = _nearest(kernel.length_scale, LENGTHS), _nearest(float(model.noise_), SIGMAS)
    return *found, model.predict(_AT[:, None])


def _paper(x: Array, y: Array, epsilon: float, rng: np.random.Generator) -> Choice:
    inducing = np.array(SETUPS[0].inducing)
    found = select(x, y, LENGTHS, SIGMAS, inducing, REACH, plan(epsilon, DELTA), rng)
    return found.length, found.sigma, np.zeros(len(_AT)) if found.model is None else found.model.predict(_AT)[0]


_METHODS: dict[str, Method] = {
    "reticent": _reticent,
    "paper": _paper,
}


def run(out: Path, *, repeats: int, quick: bool, seed: int, progress: Progress) -> Findings:
    """Compute, tabulate and draw."""
    epsilons = _EPSILONS[:2] if quick else _EPSILONS
    cells = [(method, epsilon, repeat) for method in _METHODS for epsilon in epsilons for repeat in range(repeats)]
    trials = tried(_METHODS, cells, _AT, (seed, 3), progress)
    findings = Findings(
        "Hyperparameters for nothing (Honkela, Fig 3)",
        [_record(method, epsilon, found) for (method, epsilon), found in trials.items()],
        [_table(trials)],
        [] if quick else _claims(trials),
        [
            f"N = {N}, δ = {DELTA:g}, {times(repeats)}, seed {seed}. Our noise level is learned as a number and counted as the "
            "nearest of the three. The paper's protocol is as printed, not a private release to use."
        ],
        [_picture(out, trials, epsilons)],
    )
    findings.write(out)
    return findings


def _share(trials: Sequence[Trial], what: int | None = None) -> float:
    """How often both were right, or only the length (0) or the noise level (1)."""
    return float(np.mean([one.chosen == TRUE if what is None else one[what] == TRUE[what] for one in trials]))


def _record(method: str, epsilon: float, trials: Sequence[Trial]) -> dict[str, Value]:
    rmse, error = mean_error(one.rmse for one in trials)
    return {
        "method": method,
        "epsilon": epsilon,
        "repeats": len(trials),
        "both_right": _share(trials),
        "length_right": _share(trials, 0),
        "sigma_right": _share(trials, 1),
        "rmse": rmse,
        "rmse_error": error,
        **{
            f"length {length:.3g}, sigma {sigma:.3g}": float(np.mean([one.chosen == (length, sigma) for one in trials]))
            for length in LENGTHS
            for sigma in SIGMAS
        },
    }


def _table(trials: Trials) -> Table:
    rows = []
    for (method, epsilon), found in trials.items():
        shares = [f"{_share(found, what):.2f}" for what in (None, 0, 1)]
        rows.append((method, f"{epsilon:g}", *shares, plus_minus([one.rmse for one in found])))
    headings = ("method", "ε", "both right", "length right", "noise right", "RMSE of the fit")
    return Table("Share of runs that choose the true ones among nine", headings, rows)


def _claims(trials: Trials) -> list[Claim]:
    claims = []
    for epsilon, wanted in _WANTED.items():
        share = _share(trials["reticent", epsilon])
        claims.append(Claim(f"ε={epsilon:g}: both right in at least {wanted:.0%}", f"{share:.0%}", share >= wanted))
    seconds = float(np.mean([one.seconds for key, found in trials.items() if key[0] == "reticent" for one in found]))
    return [*claims, Claim("400 fits within 120 s CPU", f"{400 * seconds:.0f} s", seconds <= _SECONDS)]


def _picture(out: Path, trials: Trials, epsilons: Sequence[float]) -> Path:
    """Like Fig 3: how often each pair was chosen, one line for each noise level."""
    rows = []
    for method in _METHODS:
        row = []
        for epsilon in epsilons:
            found = [one.chosen for one in trials[method, epsilon]]
            lines = []
            for sigma, colour in zip(SIGMAS, ("naive", "dots", "truth"), strict=True):
                shares = [found.count((length, sigma)) / len(found) for length in LENGTHS]
                lines.append(Line(f"σ={sigma:.2g}", shares, range(3), colour=colour, marker="o"))
            options = {
                "ylim": (-0.03, 1.03),
                "xlabel": "length scale",
                "ylabel": "share of runs",
                "xticks": range(3),
                "xticklabels": [f"{length:.2g}" for length in LENGTHS],
            }
            row.append(Panel(f"{method}, ε={epsilon:g}", lines, options))
        rows.append(row)
    return draw(out / "choices.png", rows)
