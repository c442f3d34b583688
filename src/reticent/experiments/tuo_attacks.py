"""Attacks on an obfuscated curve: predictors that learn from simulated releases, and five fresh releases.

Each attacker is given curves of the prior, their releases, and the hidden value, and is judged on curves that it has not
seen. None may come below the promised variance but by chance; from the mean of five releases with fresh noise, which a
ledger refuses, they do.
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

from reticent.experiments.findings import Claim, Findings, Progress, Table, Value
from reticent.experiments.pictures import Line, Panel, draw
from reticent.models.obfuscator import Obfuscator

__all__ = ["run"]

Array = NDArray[np.float64]
_KERNEL = RBF(np.sqrt(1 / 20), "fixed")
_X, _AT, _PROMISED = np.arange(1, 10) / 10, 0.47, 0.5


def _gp(length: float, sigma: Array) -> Callable[[Array, Array, Array], Array]:
    kernel = RBF(length)
    x, s = _X[:, None], np.array([[_AT]])
    weights = cho_solve(cho_factor(kernel(x) + sigma + 1e-6 * np.eye(9)), kernel(x, s))[:, 0]
    return lambda seen, told, new: new @ weights


def run(out: Path, *, repeats: int, quick: bool, seed: int, progress: Progress) -> Findings:
    """Simulate releases, half to learn from and half to be judged by."""
    count = 4_000 if quick else 100_000
    model = Obfuscator(_KERNEL, sensitive=[_AT], variance=_PROMISED, mean=0.0, random_state=seed)
    model.obfuscate(_X, np.zeros(9))
    sigma = model.covariance_
    learners = {
        "best linear predictor": lambda seen, told, new: LinearRegression().fit(seen, told).predict(new),
        "ridge": lambda seen, told, new: Ridge(1.0).fit(seen, told).predict(new),
        "gradient boosting": lambda seen, told, new: (
            HistGradientBoostingRegressor(random_state=0).fit(seen, told).predict(new)
        ),
        "GP, half the length scale": _gp(np.sqrt(1 / 20) / 2, sigma),
        "GP, twice the length scale": _gp(np.sqrt(1 / 20) * 2, sigma),
    }
    rng = np.random.default_rng(seed)
    points = np.append(_X, _AT)[:, None]
    values, vectors = np.linalg.eigh(_KERNEL(points))
    root = vectors * np.sqrt(np.maximum(values, 0))
    noise = np.linalg.cholesky(sigma)
    half = count // 2
    records: list[dict[str, Value]] = []
    f = rng.normal(size=(count, 10)) @ root.T
    total = 2 * len(learners)
    for i, fresh in enumerate((1, 5)):
        w = f[:, :9] + rng.normal(size=(count, 9)) @ noise.T / np.sqrt(fresh)  # the mean of so many releases
        for j, (name, learn) in enumerate(learners.items()):
            progress(i * len(learners) + j, total, f"{name}, {fresh} release{'s' if fresh > 1 else ''}")
            with threadpool_limits(1):  # boosting's own threads wait for each other on a busy machine
                missed = (learn(w[:half], f[:half, 9], w[half:]) - f[half:, 9]) ** 2
            error = float(missed.std()) / np.sqrt(half)
            records.append({"attacker": name, "releases": fresh, "variance": float(missed.mean()), "error": error})
    once = [r for r in records if r["releases"] == 1]
    five = [r for r in records if r["releases"] == 5]
    rows = [
        (str(a["attacker"]), f"{a['variance']:.4f} ± {a['error']:.4f}", f"{b['variance']:.4f} ± {b['error']:.4f}")
        for a, b in zip(once, five, strict=True)
    ]
    least = min(once, key=lambda r: float(r["variance"]))
    claims = [
        Claim("no attacker gets under the promised variance 0.5 but by chance (3 standard errors)",
              f"{least['attacker']}: {least['variance']:.4f} ± {least['error']:.4f}",
              all(float(r["variance"]) > _PROMISED - 3 * float(r["error"]) for r in once)),
        Claim("five fresh releases would break the promise", f"{min(float(r['variance']) for r in five):.3f}",
              min(float(r["variance"]) for r in five) < 0.25),
    ]  # fmt: skip
    head = ("attacker", "error² from one release", "from five, which a ledger refuses")
    found = Findings(
        "Attacks on an obfuscated curve",
        records,
        [
            Table(
                f"Mean squared error of f({_AT}), promised at least {_PROMISED:g}; {half:,} curves to learn from",
                head,
                rows,
            )
        ],
        [] if quick else claims,
        ["Inferential privacy, not differential privacy."],
    )
    numbers = list(range(len(once)))
    parts = [
        Line("one release", [float(r["variance"]) for r in once], numbers, marker="o", style=""),
        Line("five", [float(r["variance"]) for r in five], numbers, marker="o", style="", colour="paper"),
        Line("promised", [_PROMISED], colour="naive", style=":"),
    ]
    found.files = [
        draw(
            out / "attacks.png", [[Panel("Attackers' squared error", parts, {"xlabel": "attacker", "ylim": (0, 1.1)})]]
        )
    ]
    found.write(out)
    return found
