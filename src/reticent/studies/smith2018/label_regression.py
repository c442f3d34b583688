"""Label-only Gaussian processes on functions of one input.

The papers' noise, single corrections, and ours.

200 records, inputs even on [0, 10], functions from a Gaussian process with length scale 1 and
variance 1, observation noise .25, labels in [−3, 3], δ = .01: one label may change by 24 times its
spread. All know the kernel and the noise but the last, which learns both. Errors are against noisy
test labels, of which the best possible prediction has .25.
"""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from sklearn.gaussian_process.kernels import RBF

from reticent.privacy.bounds import Bounds
from reticent.studies.common.figures import Band, Line, Panel, draw
from reticent.studies.common.results import (
    Claim,
    Findings,
    Progress,
    ResultTable,
    Value,
    mean_error,
    plus_minus,
)
from reticent.studies.smith2018.as_printed import DELTA, Problem, label_model, noise_root

__all__ = ["run"]

Array = NDArray[np.float64]
_N = 200
_TESTS = 300
_NOISE = 0.25
EPSILONS = (1.0, 5.0, 30.0, 60.0)
REFERENCE = (0.96, 0.37, 0.27, 0.265)  # a trace-optimal cloak on data of this kind
_BOUNDS = Bounds(x=[(0, 10)], y=(-3, 3))
_PAPERS = {
    "printed": "paper: printed bound",
    "exact": "exact sensitivity",
    "logdet cloak": "log det cloak (2018)",
}
_KNOWN = {"kernel": RBF(1.0, "fixed"), "noise": _NOISE, "learn_kernel": False}
_QUICK = {**_KNOWN, "stages": 2}
_OURS = {
    "cloak, one release": {**_KNOWN, "stages": 1},
    "functional": {**_KNOWN, "mechanism": "functional"},
    "inducing": {**_KNOWN, "mechanism": "inducing"},
    "cloak": _KNOWN,
    "cloak, all learned": {},
}


def run(out: Path, *, repeats: int, quick: bool, seed: int, progress: Progress) -> Findings:
    """Compute, tabulate and draw."""
    epsilons = EPSILONS[:2] if quick else EPSILONS
    if quick:
        ours = {"cloak, one release": _OURS["cloak, one release"], "cloak": _QUICK}
    else:
        ours = _OURS
    errors: dict[tuple[str, float], list[float]] = {}
    inside: dict[tuple[str, float], list[float]] = {}
    cells = [(repeat, epsilon) for repeat in range(repeats) for epsilon in epsilons]
    for done, (repeat, epsilon) in enumerate(cells):
        progress(done, len(cells), f"ε={epsilon:g}")
        x, y, at, f, labels = _data(np.random.default_rng([seed, repeat]))
        rng = np.random.default_rng([seed, repeat, round(epsilon)])
        problem = Problem(x, at, np.linspace(0, 10, 11)[:, None], 2**0.5, 1.0, _NOISE**2, 6.0)
        found = {"without privacy": problem.map(inducing=False) @ y}
        for method, name in (*_PAPERS.items(), ("trace cloak", "trace cloak")):
            C, root = noise_root(problem, method, epsilon, DELTA)
            found[name] = C @ y + root @ rng.normal(size=root.shape[1])
        for name, params in ours.items():
            model = label_model(_BOUNDS, epsilon, int(rng.integers(2**31)), params)
            mean, std = model.fit(x, y).predict(at, return_std=True)
            found[f"reticent: {name}"] = mean
            inside.setdefault((f"reticent: {name}", epsilon), []).append(
                float(np.mean(np.abs(mean - f) < 1.96 * std))
            )
        for name, mean in found.items():
            errors.setdefault((name, epsilon), []).append(
                float(np.sqrt(np.mean((mean - labels) ** 2)))
            )
    names = list(dict.fromkeys(name for name, _ in errors))
    findings = Findings(
        "Labels only: one input, 200 records",
        [_record(name, epsilon, errors, inside) for name, epsilon in errors],
        [
            _table("RMSE to noisy labels ± standard error", names, epsilons, errors, 3),
            _table(
                "Share of the function inside 95 % bands",
                [name for name in names if name.startswith("reticent")],
                epsilons,
                inside,
                2,
            ),
        ],
        [] if quick else judge(errors, epsilons),
    )
    findings.files.append(_picture(out, seed, quick=quick))
    findings.write(out)
    return findings


def _data(rng: np.random.Generator) -> tuple[Array, Array, Array, Array, Array]:
    x = rng.uniform(0, 10, size=(_N + _TESTS, 1))
    gram = np.exp(-np.square(x - x.T) / 2) + 1e-9 * np.eye(len(x))
    f = np.linalg.cholesky(gram) @ rng.normal(size=len(x))
    y = f + _NOISE * rng.normal(size=len(x))
    return x[:_N], y[:_N], x[_N:], f[_N:], y[_N:]


def _record(
    name: str,
    epsilon: float,
    errors: dict[tuple[str, float], list[float]],
    inside: dict[tuple[str, float], list[float]],
) -> dict[str, Value]:
    rmse, error = mean_error(errors[name, epsilon])
    covered = float(np.mean(inside[name, epsilon])) if (name, epsilon) in inside else ""
    return {"method": name, "epsilon": epsilon, "rmse": rmse, "rmse_se": error, "coverage": covered}


def _table(
    title: str,
    names: list[str],
    epsilons: tuple[float, ...],
    found: dict[tuple[str, float], list[float]],
    digits: int,
) -> ResultTable:
    rows = [
        (name, *(plus_minus(found[name, epsilon], digits) for epsilon in epsilons))
        for name in names
    ]
    return ResultTable(title, ("method", *(f"ε={epsilon:g}" for epsilon in epsilons)), rows)


def judge(errors: dict[tuple[str, float], list[float]], epsilons: tuple[float, ...]) -> list[Claim]:
    """Claims, each kept or not by these results."""
    one = [mean_error(errors["reticent: cloak, one release", epsilon])[0] for epsilon in epsilons]
    plain = [mean_error(errors["trace cloak", epsilon])[0] for epsilon in epsilons]
    limits = REFERENCE[: len(epsilons)]
    ours = [key for key in errors if key[0].startswith("reticent")]
    best = {
        epsilon: min(mean_error(errors[key])[0] for key in ours if key[1] == epsilon)
        for epsilon in epsilons
    }
    free = {epsilon: mean_error(errors["without privacy", epsilon])[0] for epsilon in epsilons}
    return [
        Claim(
            "a trace cloak in one release has an error of at most "
            f"{'/'.join(f'{v:g}' for v in limits)}",
            "/".join(f"{v:.3f}" for v in one),
            all(v <= limit for v, limit in zip(one, limits, strict=True)),
        ),
        Claim(
            "on the same records, that is below a trace cloak whose noise is only added; times "
            "the error without privacy",
            " and ".join(
                "/".join(
                    f"{v / free[epsilon]:.3f}" for v, epsilon in zip(some, epsilons, strict=True)
                )
                for some in (one, plain)
            ),
            all(v < other for v, other in zip(one, plain, strict=True)),
        ),
        *(
            Claim(
                f"at ε = {epsilon:g} the best of ours has at most 1.5 times "
                "the error without privacy",
                f"{best[epsilon] / free[epsilon]:.2f} times",
                best[epsilon] <= 1.5 * free[epsilon],
            )
            for epsilon in epsilons[:2]
        ),
    ]


def _picture(out: Path, seed: int, *, quick: bool) -> Path:
    """One fit at ε = 1: the papers' noise and ours, on the same records."""
    grid = np.linspace(0, 10, 201)[:, None]
    rng = np.random.default_rng([seed, 0])
    x, y, *_ = _data(rng)
    problem = Problem(x, grid, np.linspace(0, 10, 11)[:, None], 2**0.5, 1.0, _NOISE**2, 6.0)
    without = problem.map(inducing=False) @ y
    panels = []
    for title, mean, sd in (
        ("log det cloak (2018), ε = 1", *_noisy(problem, y, "logdet cloak", rng)),
        ("trace cloak, ε = 1", *_noisy(problem, y, "trace cloak", rng)),
        ("reticent, ε = 1", *_ours(x, y, grid, quick=quick)),
    ):
        at = grid[:, 0]
        parts: list[Line | Band] = [
            Band("95 % by its noise", at, mean - 1.96 * sd, mean + 1.96 * sd),
            Line("private", mean.tolist(), at.tolist()),
            Line("without privacy", without.tolist(), at.tolist(), colour="truth", style=":"),
        ]
        panels.append(Panel(title, parts, {"ylim": (-3, 3), "xlabel": "x"}))
    return draw(out / "fits.png", [panels])


def _noisy(
    problem: Problem, y: Array, method: str, rng: np.random.Generator
) -> tuple[Array, Array]:
    C, root = noise_root(problem, method, 1.0, DELTA)
    return C @ y + root @ rng.normal(size=root.shape[1]), np.sqrt(np.square(root).sum(axis=1))


def _ours(x: Array, y: Array, grid: Array, *, quick: bool) -> tuple[Array, Array]:
    mean, sd = (
        label_model(_BOUNDS, 1.0, 0, _QUICK if quick else {})
        .fit(x, y)
        .predict(grid, return_std=True)
    )
    return mean, sd
