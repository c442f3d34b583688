"""Smith, Zwiessele and Lawrence, Table 1.

Weights of 89 children from ages and heights, whose weights alone are protected. Their records are
not public, so the children here are made up: ages 6 to 60 months, heights and weights around growth
curves, weights between 9.8 and 21.5 kg as in the paper. As there, lengths and noise are chosen
without looking at weights, δ = .01, and errors are those of the mean at the children's own ages and
heights. The paper's c(δ) gives no guarantee above ε = 1. Bins are of 6 months and 5 cm, as in the
paper; ours are sums with exact public counts, and the noise of each is known to the fit.
"""

import warnings
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Kernel

from reticent.models.gp.binned_regressor import BinnedGPRegressor
from reticent.privacy.bounds import Bounds
from reticent.studies.common.results import (
    Claim,
    Findings,
    Progress,
    ResultTable,
    mean_error,
    plus_minus,
)
from reticent.studies.smith2018.as_printed import DELTA, Problem, label_model, noise_root

__all__ = ["children", "run"]

Array = NDArray[np.float64]
_EPSILONS = (1.0, 5.0, 30.0, 60.0)
_LOW = 9.8
_HIGH = 21.5
_MIDDLE = 15.0
# lengths, noise, and standard deviation of the function
_MONTHS = 24.0
_CM = 20.0
_SD = 1.0
_SIZE = 3.0
_LITERAL = {
    "printed": "paper: GP",
    "printed, inducing": "paper: IV GP",
    "exact": "GP, exact",
    "exact, inducing": "IV GP, exact",
}
_BINS = {"bins, integral kernel": True, "bins, EQ kernel": False}
_CLOAKS = {"logdet cloak": "log det cloak (2018)", "trace cloak": "trace cloak"}


def children(rng: np.random.Generator, n: int = 89) -> tuple[Array, Array]:
    """Ages in months and heights in cm; weights in kg."""
    months = rng.uniform(6, 60, size=n)
    height = 62 + 9.2 * np.sqrt(months - 2) * 0.72 + rng.normal(0, 3.5, size=n)
    weight = (
        6.5
        + 0.115 * months
        + 0.11 * (height - 85)
        + 1.2 * np.sqrt(months / 60)
        + rng.normal(0, 0.9, size=n)
    )
    return np.column_stack([months, height]), np.clip(weight + 1.0, _LOW, _HIGH)


def run(out: Path, *, repeats: int, quick: bool, seed: int, progress: Progress) -> Findings:
    """Compute and tabulate; the records stay the same, the noise is drawn again."""
    epsilons = _EPSILONS[:1] if quick else _EPSILONS
    X, y = children(np.random.default_rng(seed))
    scaled = X / np.array([_MONTHS, _CM])
    low = scaled.min(axis=0)
    high = scaled.max(axis=0)
    grid = np.array(
        [(a, b) for a in np.linspace(low[0], high[0], 4) for b in np.linspace(low[1], high[1], 4)]
    )
    problem = Problem(scaled, scaled, grid, 2**0.5, _SIZE**2, _SD**2, _HIGH - _LOW)
    bounds = Bounds(x=[(0, 66), (50, 120)], y=(_LOW, _HIGH))
    prior = ConstantKernel(_SIZE**2) * RBF([_MONTHS, _CM])
    ours: dict[str, dict[str, Any]] = {
        "cloak": {"kernel": prior, "learn_kernel": False, "noise": _SD}
    }
    if quick:
        ours["cloak"]["stages"] = 2
    else:
        ours["cloak, all learned"] = {}
    errors: dict[tuple[str, float], list[float]] = {}
    cells = [(epsilon, repeat) for epsilon in epsilons for repeat in range(repeats)]
    for done, (epsilon, repeat) in enumerate(cells):
        progress(done, len(cells), f"ε={epsilon:g}")
        rng = np.random.default_rng([seed, round(epsilon), repeat])
        found = {}
        for method, name in {**_LITERAL, **_CLOAKS}.items():
            C, root = noise_root(problem, method, epsilon, DELTA)
            found[name] = _MIDDLE + C @ (y - _MIDDLE) + root @ rng.normal(size=root.shape[1])
        for name, params in ours.items():
            model = label_model(bounds, epsilon, int(rng.integers(2**31)), params)
            found[f"reticent: {name}"] = model.fit(X, y).predict(X)
        for name, integral in _BINS.items():
            found[f"reticent: {name}"] = _binned(
                X, y, bounds, prior, epsilon, int(rng.integers(2**31)), integral=integral
            )
        for name, mean in found.items():
            errors.setdefault((name, epsilon), []).append(float(np.sqrt(np.mean((mean - y) ** 2))))
    maps = {few: _rmse(_MIDDLE + problem.map(few) @ (y - _MIDDLE), y) for few in (False, True)}
    bins = {
        name: _rmse(_binned(X, y, bounds, prior, 1e6, 0, integral=one), y)
        for name, one in _BINS.items()
    }
    names = list(dict.fromkeys(name for name, _ in errors))
    rows = [
        (
            name,
            *(plus_minus(errors[name, epsilon], 2) for epsilon in epsilons),
            f"{bins.get(name.removeprefix('reticent: '), maps['IV' in name]):.2f}",
        )
        for name in names
    ]
    heads = ("method", *(f"ε={epsilon:g}" for epsilon in epsilons), "without privacy")
    first = epsilons[0]
    ours_first, printed = (
        mean_error(errors[name, first])[0] for name in ("reticent: cloak", "paper: GP")
    )
    return Findings(
        "Smith et al., Table 1: weights of 89 (made-up) children",
        [
            {
                "method": name,
                "epsilon": epsilon,
                "rmse": mean_error(values)[0],
                "rmse_se": mean_error(values)[1],
            }
            for (name, epsilon), values in errors.items()
        ],
        [ResultTable("RMSE in kg ± standard error", heads, rows)],
        []
        if quick
        else [
            Claim(
                f"at ε = {first:g} ours is below the spread of the weights, "
                "the paper's far above it",
                f"{ours_first:.2f} and {printed:.0f}, spread {np.std(y):.2f}",
                ours_first < float(np.std(y)) < printed,
            )
        ],
        [
            "The paper's own children: integral kernel and EQ kernel on noisy binned means were "
            "its best methods at every ε."
        ],
    ).write(out)


def _binned(
    X: Array, y: Array, bounds: Bounds, prior: Kernel, epsilon: float, seed: int, *, integral: bool
) -> Array:
    """Bins of 6 months and 5 cm."""
    model = BinnedGPRegressor(
        prior, bins=[11, 14], integral=integral, protect="labels", noise=_SD, learn_kernel=False
    )
    model.set_params(bounds=bounds, epsilon=epsilon, delta=DELTA, random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # δ is large, as in the paper
        return np.asarray(model.fit(X, y).predict(X))


def _rmse(mean: Array, y: Array) -> float:
    return float(np.sqrt(np.mean((mean - y) ** 2)))
