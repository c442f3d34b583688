"""Attacks on an obfuscated curve.

Predictors that learn from simulated releases, five fresh releases, a learned kernel. Each attacker
is given curves of the prior, their releases, and the hidden value, and is judged on curves that it
has not seen. None may come below the promised variance but by chance; from the mean of five
releases with fresh noise, which a ledger refuses, they do. Five *planned* releases have so much
more noise that their mean tells no more than one.

A variance that is learned from the curve itself, σ̂² = yᵀR⁻¹y/n, is the last attack: noise of one
direction leaves y = W − Fg, and σ̂² is a quadratic equation for g. Two curves are left, one of them
the truth.
"""

from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.gaussian_process.kernels import RBF
from sklearn.linear_model import LinearRegression, Ridge
from threadpoolctl import threadpool_limits

from reticent.obfuscation.obfuscator import Obfuscator
from reticent.studies.common.figures import Line, Panel, draw
from reticent.studies.common.results import Claim, Findings, Progress, ResultTable, Value

__all__ = ["run"]

Array = NDArray[np.float64]
KERNEL = RBF(np.sqrt(1 / 20), "fixed")
X = np.arange(1, 10) / 10
AT = 0.47
_PROMISED = 0.5


def gp_attacker(length: float, sigma: Array) -> Callable[[Array, Array, Array], Array]:
    """The posterior mean of an attacker with this lengthscale, who knows the noise covariance."""
    kernel = RBF(length)
    x = X[:, None]
    s = np.array([[AT]])
    weights = cho_solve(cho_factor(kernel(x) + sigma + 1e-6 * np.eye(9)), kernel(x, s))[:, 0]
    return lambda seen, told, new: new @ weights


def variance_kept(rng: np.random.Generator, count: int) -> Array:
    """Kept variance over promised, for curves whose variance is learned from themselves.

    The hidden value is at a record.
    """
    model = Obfuscator(KERNEL, sensitive=[X[4]], share=_PROMISED, mean=0.0, random_state=0)
    model.obfuscate(X, np.zeros(9))
    r = KERNEL(X[:, None]) + 1e-10 * np.eye(9)
    inverse = np.linalg.inv(r)
    f = model.factor_[:, 0]
    y = rng.normal(size=(count, 9)) @ np.linalg.cholesky(r).T
    sd = np.sqrt(np.einsum("ij,jk,ik->i", y, inverse, y) / 9)
    w = (
        y / sd[:, None] + rng.normal(size=(count, 1)) * f
    )  # all in units of the learned standard deviation
    a = f @ inverse @ f
    b = -2 * w @ inverse @ f
    c = np.einsum("ij,jk,ik->i", w, inverse, w) - 9
    g = (-b + np.array([[1], [-1]]) * np.sqrt(np.maximum(b**2 - 4 * a * c, 0))) / (2 * a)
    chance = np.exp(-(g**2) / 2)  # given the learned variance, all y are equally likely
    chance /= chance.sum(axis=0)
    return np.asarray(chance[0] * chance[1] * (f[4] * (g[0] - g[1])) ** 2 / _PROMISED)


def run(out: Path, *, repeats: int, quick: bool, seed: int, progress: Progress) -> Findings:
    """Simulate releases, half to learn from and half to be judged by."""
    if quick:
        count = 4_000
    else:
        count = 100_000
    model = Obfuscator(KERNEL, sensitive=[AT], variance=_PROMISED, mean=0.0, random_state=seed)
    model.obfuscate(X, np.zeros(9))
    sigma = model.covariance_
    learners = {
        "best linear predictor": lambda seen, told, new: (
            LinearRegression().fit(seen, told).predict(new)
        ),
        "ridge": lambda seen, told, new: Ridge(1.0).fit(seen, told).predict(new),
        "gradient boosting": lambda seen, told, new: (
            HistGradientBoostingRegressor(random_state=0).fit(seen, told).predict(new)
        ),
        "GP, half the length scale": gp_attacker(np.sqrt(1 / 20) / 2, sigma),
        "GP, twice the length scale": gp_attacker(np.sqrt(1 / 20) * 2, sigma),
    }
    rng = np.random.default_rng(seed)
    points = np.append(X, AT)[:, None]
    values, vectors = np.linalg.eigh(KERNEL(points))
    root = vectors * np.sqrt(np.maximum(values, 0))
    noise = np.linalg.cholesky(sigma)
    half = count // 2
    records: list[dict[str, Value]] = []
    f = rng.normal(size=(count, 10)) @ root.T
    cases = ((1, 1), (5, 1), (5, 5))  # releases whose mean is seen, and how many were planned
    total = len(cases) * len(learners)
    for i, (fresh, planned) in enumerate(cases):
        w = f[:, :9] + rng.normal(size=(count, 9)) @ noise.T * np.sqrt(planned / fresh)
        for j, (name, learn) in enumerate(learners.items()):
            progress(
                i * len(learners) + j, total, f"{name}, {fresh} release{'s' if fresh > 1 else ''}"
            )
            with threadpool_limits(
                1
            ):  # boosting's own threads wait for each other on a busy machine
                missed = (learn(w[:half], f[:half, 9], w[half:]) - f[half:, 9]) ** 2
            error = float(missed.std()) / np.sqrt(half)
            one = {
                "attacker": name,
                "releases": fresh,
                "planned": planned,
                "variance": float(missed.mean()),
                "error": error,
            }
            records.append(one)
    once, five, planned_five = (
        [r for r in records if (r["releases"], r["planned"]) == case] for case in cases
    )
    rows = [
        (str(group[0]["attacker"]), *(f"{r['variance']:.4f} ± {r['error']:.4f}" for r in group))
        for group in zip(once, planned_five, five, strict=True)
    ]
    kept = variance_kept(rng, 400 if quick else 20_000)
    below = [float((kept < part).mean()) for part in (1.0, 0.5, 0.1)]
    told: dict[str, Value] = {
        "attacker": "variance learned from the curve itself: median kept",
        "releases": 1,
        "planned": 1,
    }
    records.append({**told, "variance": _PROMISED * float(np.median(kept)), "error": 0.0})
    least = min(once, key=lambda r: float(r["variance"]))
    claims = [
        Claim(
            "no attacker gets under the promised variance 0.5 but by chance (3 standard errors)",
            f"{least['attacker']}: {least['variance']:.4f} ± {least['error']:.4f}",
            all(float(r["variance"]) > _PROMISED - 3 * float(r["error"]) for r in once),
        ),
        Claim(
            "nor from five that were planned",
            f"{min(float(r['variance']) for r in planned_five):.4f}",
            all(float(r["variance"]) > _PROMISED - 3 * float(r["error"]) for r in planned_five),
        ),
        Claim(
            "a variance learned from the curve itself breaks it: most releases keep less than "
            "half of what is promised",
            f"{100 * below[1]:.0f} % of releases",
            below[1] > 0.5,
        ),
        Claim(
            "five fresh releases would break the promise",
            f"{min(float(r['variance']) for r in five):.3f}",
            min(float(r["variance"]) for r in five) < 0.25,
        ),
    ]
    head = (
        "attacker",
        "error² from one release",
        "from five planned ones",
        "from five fresh ones, which a ledger refuses",
    )
    found = Findings(
        "Attacks on an obfuscated curve",
        records,
        [
            ResultTable(
                f"Mean squared error of f({AT}), promised at least {_PROMISED:g}; {half:,} "
                "curves to learn from",
                head,
                rows,
            ),
            ResultTable(
                "The variance learned from the curve itself: what one release keeps of the promise",
                ("median", "releases below it", "below half", "below a tenth"),
                [(f"{100 * np.median(kept):.1f} %", *(f"{100 * part:.0f} %" for part in below))],
                4,
            ),
        ],
        [] if quick else claims,
        ["Inferential privacy, not differential privacy."],
    )
    numbers = list(range(len(once)))
    parts = [
        Line("one release", [float(r["variance"]) for r in once], numbers, marker="o", style=""),
        Line(
            "five",
            [float(r["variance"]) for r in five],
            numbers,
            marker="o",
            style="",
            colour="paper",
        ),
        Line("promised", [_PROMISED], colour="naive", style=":"),
    ]
    found.files = [
        draw(
            out / "attacks.png",
            [[Panel("Attackers' squared error", parts, {"xlabel": "attacker", "ylim": (0, 1.1)})]],
        )
    ]
    return found.write(out)
