"""Smith, Zwiessele and Lawrence, Fig 1c.

Integral kernel against point kernel over lengthscales, on a private histogram of ages. The paper's
255 people of one output area are not ours to give; an area is made up instead, from a smooth
density of ages that is known here, so errors are those of the density and not of one draw of
people. Every bin has the paper's ten years. For every lengthscale the scale of the kernel is
learned from the released bins, as in the paper; the noise of each bin is known. The histogram
itself is the third method. A second part is a one-dimensional regression with 200 records at δ =
0.01 and ε = 1, 5, 30, 60, where single outputs are predicted.
"""

import warnings
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.gaussian_process.kernels import RBF, ConstantKernel

from reticent.models.gp.binned_regressor import BinnedGPRegressor
from reticent.privacy.bounds import Bounds
from reticent.studies.common.figures import Line, Panel, draw
from reticent.studies.common.results import (
    Claim,
    Findings,
    Progress,
    ResultTable,
    Value,
    mean_error,
    plus_minus,
    times,
)

__all__ = ["ages", "run"]

Array = NDArray[np.float64]

_PEOPLE = 255
_EPSILON = 1.0
_DELTA = 1e-5
# years, of exp(−r²/2ℓ²): the paper's are √2 times as long
LENGTHSCALES = (4.0, 6.0, 8.0, 10.0, 13.0, 17.0, 22.0, 28.0, 36.0)
YEARS = np.arange(0.5, 100.0)
_BOX = Bounds(x=[(0.0, 100.0)])
_LINE = Bounds(x=[(0.0, 10.0)], y=(-2.0, 2.0))
_NOISE = 0.25
REGRESSION = {
    1.0: 0.88,
    5.0: 0.45,
    30.0: 0.34,
    60.0: 0.33,
}  # ε, and the error that is not to be exceeded
_METHODS = ("integral", "point", "histogram")


def ages(rng: np.random.Generator) -> tuple[Array, Array]:
    """An area: the expected number of people of each year of age, and people drawn from it.

    Students, families, the old.
    """
    parts = rng.dirichlet([2.0, 4.0, 3.0])
    centres = rng.normal((22.0, 35.0, 68.0), 2.0)
    widths = (5.0, 18.0, 10.0)
    density = sum(
        w * np.exp(-0.5 * ((YEARS - c) / s) ** 2) / s
        for w, c, s in zip(parts, centres, widths, strict=True)
    )
    density = density / density.sum()
    drawn = rng.choice(YEARS, _PEOPLE, p=density) + rng.uniform(-0.5, 0.5, _PEOPLE)
    return _PEOPLE * density, drawn[:, None]


def _fit(people: Array, length: float, seed: int, *, integral: bool) -> Array:
    unit = (_PEOPLE / 100) ** 2
    kernel = ConstantKernel(unit, (1e-2 * unit, 1e2 * unit)) * RBF(length, "fixed")
    model = BinnedGPRegressor(kernel, bins=10, kind="count", integral=integral, bounds=_BOX)
    model.set_params(epsilon=_EPSILON, delta=_DELTA, random_state=seed)
    return np.asarray(model.fit(people).predict(YEARS[:, None]))


def _regression(rng: np.random.Generator, epsilon: float, seed: int) -> tuple[float, float]:
    """Error of single outputs, and coverage of the function by 95 % bands."""

    def f(x: Array) -> Array:
        return np.sin(x[:, 0]) + 0.3 * np.sin(2.3 * x[:, 0] + 1)

    x, new = rng.uniform(0, 10, (200, 1)), rng.uniform(0, 10, (500, 1))
    y = f(x) + _NOISE * rng.normal(size=200)
    truth = f(new)
    model = BinnedGPRegressor(bounds=_LINE, epsilon=epsilon, delta=0.01, random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # δ is large, as in the paper
        mean, sd = model.fit(x, y).predict(new, return_std=True)
    output = truth + _NOISE * rng.normal(size=500)
    return float(np.sqrt(np.mean((mean - output) ** 2))), float(
        np.mean(np.abs(mean - truth) < 1.96 * sd)
    )


def run(out: Path, *, repeats: int, quick: bool, seed: int, progress: Progress) -> Findings:
    """Make Fig 1c, and the table of the regression."""
    lengths = LENGTHSCALES[1::3] if quick else LENGTHSCALES
    steps = repeats * (len(lengths) + len(REGRESSION))
    errors: dict[tuple[str, float], list[float]] = {}
    done = 0

    def off(guess: Array, truth: Array) -> float:
        return float(np.sqrt(np.mean((guess - truth) ** 2)))

    for i in range(repeats):
        truth, people = ages(np.random.default_rng([seed, i]))
        counts = np.histogram(people, np.linspace(0, 100, 11))[0] + 0.0
        noisy = counts + _noise(np.random.default_rng([seed, i, 1]))
        for length in lengths:
            for method in _METHODS[:2]:
                guess = _fit(people, length, seed + i, integral=method == "integral")
                errors.setdefault((method, length), []).append(off(guess, truth))
            errors.setdefault(("histogram", length), []).append(
                off(np.repeat(noisy / 10, 10), truth)
            )
            done += 1
            progress(done, steps, f"length {length:g}")
    found: dict[float, list[tuple[float, float]]] = {}
    for i in range(repeats):
        for epsilon in REGRESSION:
            found.setdefault(epsilon, []).append(
                _regression(np.random.default_rng([seed, i, 2]), epsilon, seed + i)
            )
            done += 1
            progress(done, steps, f"ε = {epsilon:g}")
    return findings(out, lengths, errors, found, repeats)


def _noise(rng: np.random.Generator) -> Array:
    from reticent.privacy.accounting.composition import calibrate

    return rng.normal(size=10) * np.sqrt(2) * calibrate(_EPSILON, _DELTA)


def findings(out: Path, lengths: Any, errors: Any, found: Any, repeats: int) -> Findings:
    """Records, table, claims and picture of these errors."""
    records: list[dict[str, Value]] = []
    for (method, length), values in errors.items():
        mean, error = mean_error(values)
        told: dict[str, Value] = {
            "part": "ages",
            "method": method,
            "length": length,
            "epsilon": _EPSILON,
        }
        records.append({**told, "rmse": mean, "error": error})
    for epsilon, pairs in found.items():
        mean, error = mean_error([rmse for rmse, _ in pairs])
        told = {"part": "regression", "method": "binned", "length": 0.0, "epsilon": epsilon}
        records.append({**told, "rmse": mean, "error": error})
    rows = [
        (f"{length:g}", *(plus_minus(errors[method, length]) for method in _METHODS))
        for length in lengths
    ]
    first = ResultTable(
        "People per year of age, root mean square error", ("length scale", *_METHODS), rows
    )
    second = ResultTable(
        "Error of single outputs (their noise is 0.25), and coverage of the function by 95 % bands",
        ("ε", "error", "not above", "coverage"),
        [
            (
                f"{eps:g}",
                plus_minus([p[0] for p in pairs]),
                f"{REGRESSION[eps]:g}",
                plus_minus([p[1] for p in pairs], 2),
            )
            for eps, pairs in found.items()
        ],
    )
    means = {key: mean_error(values)[0] for key, values in errors.items()}
    gains = [mean_error(np.subtract(errors["point", at], errors["integral", at])) for at in lengths]
    better = [gain for gain, _ in gains]
    best = {method: min(means[method, at] for at in lengths) for method in _METHODS}
    claims = [
        Claim(
            "the integral kernel is nowhere worse than the point kernel by 2 standard errors; it "
            "gains at short lengths (Fig 1c)",
            f"by {min(better):.3f} to {max(better):.3f}",
            all(gain >= -2 * error for gain, error in gains) and better[0] == max(better) > 0,
        ),
        Claim(
            "with the right length scale, both kernels are better than the histogram",
            ", ".join(f"{method} {value:.3f}" for method, value in best.items()),
            best["integral"] < best["histogram"] and best["point"] < best["histogram"],
        ),
        *(
            Claim(
                f"binned regression, ε = {eps:g}: error at most {REGRESSION[eps]:g}",
                f"{mean_error([p[0] for p in pairs])[0]:.3f}",
                mean_error([p[0] for p in pairs])[0] <= REGRESSION[eps],
            )
            for eps, pairs in found.items()
        ),
    ]
    looks = {"integral": "reticent", "point": "paper", "histogram": "naive"}
    parts = [
        Line(
            method,
            [means[method, at] for at in lengths],
            x=list(lengths),
            error=[mean_error(errors[method, at])[1] for at in lengths],
            colour=looks[method],
            marker="o",
        )
        for method in _METHODS
    ]
    options = {"xlabel": "length scale, years", "ylabel": "error, people per year", "xscale": "log"}
    files = [
        draw(
            out / "lengthscales.png",
            [[Panel(f"Ages of 255 people, ε = 1, {times(repeats)}", parts, options)]],
        )
    ]
    title = "Smith et al., Fig 1c: integral and point kernels on a private histogram"
    return Findings(title, records, [first, second], claims, files=files)
