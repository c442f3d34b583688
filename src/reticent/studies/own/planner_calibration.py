"""Calibration of `reticent plan`: expected errors against measured ones.

The measured side shares nothing with the planner but the stated assumptions (a function from the
prior, inside the output's bounds; inputs spread evenly). Functions are drawn in another way: by
random frequencies for kernels that are given; for the default prior as products of curves that are
drawn on a grid. All records are made, one by one, and fitted by ``fit``.

Errors differ more between functions than between planner and measurement, most of all by their
hyperparameters. So a function of the study has the hyperparameters of one of the planner's (whose
law has tests of its own), small ε and quick fits are tried on more functions, and slow fits on
fewer.
"""

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from sklearn.gaussian_process.kernels import RBF, Kernel, Matern

from reticent import Bounds, GPRegressor, plan
from reticent.inference.kernels.anova import Anova
from reticent.studies.common.figures import Line, Panel, draw
from reticent.studies.common.results import (
    Claim,
    Findings,
    Progress,
    ResultTable,
    Value,
    mean_error,
)

__all__ = ["run"]

Array = NDArray[np.float64]
Truth = Callable[[Array], Array]

DELTA = 1e-6
EPSILONS = (0.1, 0.3, 1.0, 3.0)
_WITHIN = 0.15
_FREQUENCIES = 2000
_TERMS = 24
_TESTS = 3000  # with four inputs much of the error is near a few corners
# with so small an ε, or smaller, twice as many functions: errors differ most, and fits are quick
_NOISY = 0.1


@dataclass(frozen=True)
class Setting:
    """A model, a number of records, and how functions of its prior are drawn.

    Inputs in ±2, outputs in ±3 or ±1.
    """

    name: str
    d: int
    n: int
    kernel: Kernel | None = None  # None: the default prior
    learn: bool = False
    often: float = 1.0  # functions, by the number of repeats

    def functions(self, epsilon: float, repeats: int) -> int:
        """On how many functions to try this ε."""
        return max(round(repeats * self.often * (2 if epsilon <= _NOISY else 1)), 1)

    @property
    def half(self) -> float:
        """Half the output's range.

        Three standard deviations of the function where the kernel says how large it is.
        """
        if self.kernel is None:
            return 1.0
        return 3.0

    @property
    def noise(self) -> float:
        """Spread of outputs around the function."""
        return 0.2 * self.half

    def model(self) -> GPRegressor:
        """The model to plan and to fit.

        Where it may learn, the kernel's length is free within a factor of three.
        """
        bounds = Bounds(x=[(-2, 2)] * self.d, y=(-self.half, self.half))
        return GPRegressor(
            self.kernel,
            noise=self.noise,
            learn_kernel=self.learn or self.kernel is None,
            bounds=bounds,
        )

    def truth(self, place: Array, rng: np.random.Generator) -> Truth:
        """A function from the prior that stays inside the output's bounds at 99 places in 100.

        ``place``: of its hyperparameters in their range, among functions that do so.
        """
        at = rng.uniform(-2, 2, (500, self.d))
        while True:
            if self.kernel is None:
                found = default_function(self.d, place, rng)
            else:
                found = kernel_function(self.kernel, self.d, place, rng)
            if np.mean(np.abs(found(at)) > self.half) <= 0.01:
                return found


_FREE = (1 / 3, 3.0)
SETTINGS = (
    Setting("RBF, length 1", 1, 500, RBF(1.0, "fixed")),
    Setting("Matérn 3/2, free length", 1, 5_000, Matern(0.8, _FREE, nu=1.5), learn=True, often=0.5),
    Setting("default", 1, 5_000, often=1.5),
    Setting("default", 1, 50_000),
    Setting("RBF, two lengths", 2, 5_000, RBF([0.8, 2.0], "fixed"), often=0.5),
    Setting("Matérn 5/2, length 1.5", 2, 500, Matern(1.5, "fixed", nu=2.5)),
    Setting("default", 2, 50_000, often=0.25),
    Setting("default", 4, 5_000, often=0.4),
    Setting("RBF, free length", 4, 50_000, RBF(2.0, (1.0, 4.0)), learn=True, often=0.2),
)


def kernel_function(kernel: Kernel, d: int, place: Array, rng: np.random.Generator) -> Truth:
    """A sum of cosines with frequencies from the kernel's spectral density.

    Its covariance over draws is the kernel.
    """
    scale = np.broadcast_to(kernel.length_scale, d).astype(np.float64)
    for share in place:  # of the length's range, on a logarithmic scale
        low, high = _FREE if isinstance(kernel, Matern) else (1.0, 4.0)
        scale = np.full(d, low * (high / low) ** share)
    frequency = rng.standard_normal((d, _FREQUENCIES)) / scale[:, None]
    if isinstance(kernel, Matern):  # a normal law whose variance is random: Student's t
        frequency /= np.sqrt(rng.gamma(kernel.nu, 1 / kernel.nu, _FREQUENCIES))
    phase = rng.uniform(0, 2 * math.pi, _FREQUENCIES)
    weight = rng.standard_normal(_FREQUENCIES) * math.sqrt(2 / _FREQUENCIES)

    # cosines in single precision take a tenth of the time, and their sum is exact to 1e-5
    waves = [one.astype(np.float32) for one in (frequency, phase, weight)]

    def truth(x: Array) -> Array:
        blocks = np.array_split(x.astype(np.float32), len(x) // 500 + 1)
        return np.concatenate(
            [np.cos(rows @ waves[0] + waves[1]) @ waves[2] for rows in blocks]
        ).astype(np.float64)

    return truth


def default_function(d: int, place: Array, rng: np.random.Generator) -> Truth:
    """A constant and, for each set of up to three inputs, a sum of products of functions of one."""
    kernel = Anova.from_unit_cube(place)
    grid = np.linspace(-1, 1, 241)
    values, vectors = np.linalg.eigh(kernel.input_kernel(grid[:, None], grid))
    root = vectors * np.sqrt(np.maximum(values, 0))
    effects = []
    for order, variance in enumerate(kernel.order_variances(d), 1):
        if order == 1:
            terms = 1
        else:
            terms = _TERMS
        for chosen in combinations(range(d), order):
            shapes = root @ rng.standard_normal((order, len(grid), terms))
            effects.append((chosen, shapes, math.sqrt(variance / terms)))
    level = math.sqrt(kernel.constant) * rng.standard_normal()

    def truth(x: Array) -> Array:
        u = x / 2
        total = np.full(len(x), level)
        for chosen, shapes, size in effects:
            for t in range(shapes.shape[2]):
                factors = [np.interp(u[:, j], grid, shapes[o, :, t]) for o, j in enumerate(chosen)]
                total += size * np.prod(factors, axis=0)
        return total

    return truth


def measured(
    setting: Setting,
    place: Array,
    epsilons: list[float],
    rng: np.random.Generator,
    done: Callable[[int], None],
) -> dict[float, float]:
    """Errors of fits to the records of one function, at each ε; ``done`` is told of each."""
    truth = setting.truth(place, rng)
    x = rng.uniform(-2, 2, (setting.n, setting.d))
    at = rng.uniform(-2, 2, (_TESTS, setting.d))
    y = truth(x) + setting.noise * rng.standard_normal(setting.n)
    target = truth(at)
    errors = {}
    for epsilon in epsilons:
        model = setting.model().set_params(
            epsilon=epsilon, delta=DELTA, random_state=int(rng.integers(2**31))
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            off = model.fit(x, y).predict(at) - target
        errors[epsilon] = float(np.sqrt(np.mean(off**2)))
        done(1)
    return errors


def run(out: Path, *, repeats: int, quick: bool, seed: int, progress: Progress) -> Findings:
    """Plan, measure, compare."""
    settings, epsilons = (SETTINGS[:1], EPSILONS[::2]) if quick else (SETTINGS, EPSILONS)
    records: list[dict[str, Value]] = []
    functions = [
        {epsilon: one.functions(epsilon, repeats) for epsilon in epsilons} for one in settings
    ]
    # a plan asks for no privacy, too
    total = sum(2 * sum(one.values()) + sum(set(one.values())) for one in functions)
    fits = 0
    for i, setting in enumerate(settings):

        def done(more: int, what: str = f"{setting.name}, d={setting.d}, n={setting.n:,}") -> None:
            nonlocal fits
            progress(fits, total, what)
            fits += more

        many = functions[i]
        model = setting.model().set_params(delta=DELTA)
        plans = {
            draws: plan(
                model,
                setting.n,
                [e for e in epsilons if many[e] == draws],
                draws=draws,
                seed=seed + 1,
                progress=done,
            )
            for draws in dict.fromkeys(many.values())
        }
        found = [
            measured(
                setting,
                place,
                [e for e in epsilons if r < many[e]],
                np.random.default_rng([seed, i, r]),
                done,
            )
            for r, place in enumerate(plans[max(plans)].planner.places)
        ]
        for draws, expected in plans.items():
            for row, trials in zip(expected.rows, expected.trials, strict=True):
                real = [one[row.epsilon] for one in found[:draws]]
                records.append(
                    summary_record(setting, row.epsilon, [trial.rmse for trial in trials], real)
                )
    ratios = np.array([record["ratio"] for record in records], dtype=np.float64)
    within = [r for r in records if abs(float(r["ratio"]) - 1) <= _WITHIN]
    beyond = [
        r for r in records if abs(float(r["ratio"]) - 1) > max(_WITHIN, 2 * float(r["ratio_error"]))
    ]
    worst = max(records, key=lambda r: abs(math.log(float(r["ratio"]))))
    claim = (
        f"the planner's error is within {_WITHIN:.0%} of what is measured, or "
        "within 2 standard errors"
    )
    counted = (
        f"{len(within)} and {len(records) - len(beyond)} of {len(records)}, farthest "
        f"{worst['ratio']:.2f}"
    )
    average = math.exp(float(np.mean(np.log(ratios))))
    findings = Findings(
        "The planner: what it expects and what is measured",
        records,
        [error_table(records, settings, epsilons)],
        [
            Claim(claim, counted, not beyond),
            Claim(
                "on average over settings within 5 %", f"{average:.3f}", abs(average - 1) <= 0.05
            ),
        ],
        [
            f"δ = {DELTA:g}; {repeats} functions for the plan and as many others for the "
            f"measurement, twice as many at ε = {_NOISY:g}, fewer where fits take long "
            f"(`functions` in results.csv), seed {seed}."
        ],
        [_picture(out, records, settings)],
    )
    findings.write(out)
    return findings


def summary_record(
    setting: Setting, epsilon: float, simulated: list[float], real: list[float]
) -> dict[str, Value]:
    """What a setting's expected and measured errors say of the planner."""
    expected, expected_error = mean_error(simulated)
    mean, error = mean_error(real)
    _, apart = mean_error(
        np.array(simulated) / expected - np.array(real) / mean
    )  # in pairs of the same hyperparameters
    return {
        "setting": setting.name,
        "d": setting.d,
        "n": setting.n,
        "epsilon": epsilon,
        "functions": len(real),
        "expected": expected,
        "expected_error": expected_error,
        "measured": mean,
        "measured_error": error,
        "ratio": expected / mean,
        "ratio_error": expected / mean * apart,
    }


def error_table(
    records: list[dict[str, Value]], settings: tuple[Setting, ...], epsilons: tuple[float, ...]
) -> ResultTable:
    """Expected over measured error, one row a setting and one column an ε."""
    rows = []
    for i, setting in enumerate(settings):
        own = records[i * len(epsilons) : (i + 1) * len(epsilons)]
        words = [f"{r['expected']:.3f} / {r['measured']:.3f} = {_ratio(r)}" for r in own]
        rows.append((setting.name, str(setting.d), f"{setting.n:,}", *words))
    return ResultTable(
        "RMSE expected / measured",
        ("prior", "d", "n", *(f"ε={epsilon:g}" for epsilon in epsilons)),
        rows,
        left=1,
    )


def _ratio(record: dict[str, Value]) -> str:
    error = float(record["ratio_error"])  # none after a single repeat
    return f"{record['ratio']:.2f}{f' ± {error:.2f}' if error else ''}"


def _picture(out: Path, records: list[dict[str, Value]], settings: tuple[Setting, ...]) -> Path:
    each = len(records) // len(settings)
    panels = []
    for i, setting in enumerate(settings):
        own = records[i * each : (i + 1) * each]
        epsilons = [float(r["epsilon"]) for r in own]
        lines = [
            Line(
                name,
                [float(r[name]) for r in own],
                epsilons,
                [float(r[f"{name}_error"]) for r in own],
                colour,
                marker="o",
            )
            for name, colour in (("expected", "reticent"), ("measured", "dots"))
        ]
        options = {"xscale": "log", "yscale": "log", "xlabel": "ε", "ylabel": "RMSE"}
        panels.append(Panel(f"{setting.name}, d={setting.d}, n={setting.n:,}", lines, options))
    return draw(out / "planner.png", [panels[i : i + 3] for i in range(0, len(panels), 3)])
