"""Smith, Zwiessele and Lawrence, supplement.

Kernel parameters by the exponential mechanism, **to compare with, not to use**. A histogram of ages
y (ε-DP needs its own noise on top), a grid of (scale, length, noise), and the log-likelihood of y
as utility:

    u(θ) = −½ yᵀGy − ½ log|K|,   G = K⁻¹; one record replaced: y′ = y + d, d = e_b − e_c, so |Δu| =
                                 |½(y + y′)ᵀGd|.

*As printed*, 2·y_max·max_i Σ_j G_ij + G_nn·y_max has no absolute values, so it is no bound (entries
of G have both signs), and each vertex seems to be divided by its own sensitivity, which the
mechanism does not allow. *Corrected*: |G_ij| in the sum, one sensitivity for all vertices, the
largest. *Exact*: |Δu| is convex in y, whose other n − 1 records are then all in one bin a: max
|(n−1)(G_ab − G_ac) + ½(G_bb − G_cc)|, attained. *Free*: the bins are released with Gaussian noise
at the same ε, and the vertex with the highest likelihood of the noisy bins, whose noise is known,
is taken: `BinnedGPRegressor` learns in this way, and the bins are there to be used. Probabilities
are NumPy's.
"""

from itertools import product
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from reticent.privacy.accounting.composition import calibrate
from reticent.studies.common.results import (
    Claim,
    Findings,
    Progress,
    ResultTable,
    Value,
    mean_error,
    plus_minus,
)
from reticent.studies.smith2018.fig1c_integral_kernel import ages

__all__ = ["chosen", "likelihoods", "run", "sensitivities"]

Array = NDArray[np.float64]

_BINS = 20
_DELTA = 1e-5
_EPSILONS = (0.3, 1.0, 3.0, 10.0, 30.0)
_VALUES = np.geomspace(0.01, 12000, 7)  # the paper's range of each parameter
_METHODS = ("corrected", "exact", "free")


def candidate_covariances(bins: int, values: Array) -> list[Array]:
    """Covariances of outputs at the centres of bins, one for each candidate."""
    at = (np.arange(bins) + 0.5) * 100 / bins
    square = (at[:, None] - at) ** 2
    return [
        a * np.exp(-square / ell**2) + s * np.eye(bins)
        for a, ell, s in product(values, values, values)
    ]


def likelihoods(y: Array, covariances: list[Array], noise: float = 0.0) -> Array:
    """Of the histogram, at every vertex; ``noise`` is a known variance of each bin."""
    found = []
    for K in covariances:
        lower = np.linalg.cholesky(K + noise * np.eye(len(y)))
        white = np.linalg.solve(lower, y)
        found.append(
            -0.5 * white @ white - np.log(np.diag(lower)).sum() - 0.5 * len(y) * np.log(2 * np.pi)
        )
    return np.array(found)


def sensitivities(covariances: list[Array], n: int) -> dict[str, Array]:
    """By how much one replaced record can move the likelihood, at every vertex.

    As printed, with |G|, and exactly.
    """
    told: dict[str, list[float]] = {"printed": [], "corrected": [], "exact": []}
    for K in covariances:
        G = np.linalg.inv(K)
        diagonal = np.diag(G)
        told["printed"].append(2 * n * float(G.sum(axis=1).max()) + float(diagonal[-1]) * n)
        told["corrected"].append(
            2 * n * float(np.abs(G).sum(axis=1).max()) + float(diagonal.max()) * n
        )
        others = (n - 1) * (G[:, :, None] - G[:, None, :])
        told["exact"].append(float(np.abs(others + 0.5 * (diagonal[:, None] - diagonal)).max()))
    return {name: np.array(values) for name, values in told.items()}


def chosen(utility: Array, sensitivity: float, epsilon: float) -> Array:
    """Probabilities of the exponential mechanism."""
    weights = np.exp(epsilon * (utility - utility.max()) / (2 * sensitivity))
    return np.asarray(weights / weights.sum())


def run(out: Path, *, repeats: int, quick: bool, seed: int, progress: Progress) -> Findings:
    """Expected log-likelihood of the chosen parameters, against ε."""
    if quick:
        values = _VALUES[::2]
    else:
        values = _VALUES
    covariances = candidate_covariances(_BINS, values)
    found: dict[tuple[str, float], list[float]] = {}
    best = []
    chance = []
    below = []
    for i in range(repeats):
        rng = np.random.default_rng([seed, i])
        people = ages(rng)[1]
        y = np.histogram(people, np.linspace(0, 100, _BINS + 1))[0] + 0.0
        n = len(people)
        utility = likelihoods(y, covariances)
        moves = sensitivities(covariances, n)
        best.append(float(utility.max()))
        chance.append(float(utility.mean()))
        below.append(float(np.mean(moves["printed"] < moves["exact"])))
        for epsilon in _EPSILONS:
            for method in _METHODS[:2]:
                p = chosen(utility, float(moves[method].max()), epsilon)
                found.setdefault((method, epsilon), []).append(float(p @ utility))
            sd = np.sqrt(2) * calibrate(epsilon, _DELTA)
            noisy = y + sd * rng.normal(size=_BINS)
            free = int(likelihoods(noisy, covariances, sd**2).argmax())
            found.setdefault(("free", epsilon), []).append(float(utility[free]))
        progress(i + 1, repeats, f"area {i + 1}")
    records: list[dict[str, Value]] = []
    for (method, epsilon), values_ in found.items():
        mean, error = mean_error(values_)
        records.append(
            {"method": method, "epsilon": epsilon, "log_likelihood": mean, "error": error}
        )
    rows = [
        (f"{eps:g}", *(plus_minus(found[method, eps], 1) for method in _METHODS))
        for eps in _EPSILONS
    ]
    table = ResultTable(
        f"Log-likelihood of the histogram at the chosen parameters; best {np.mean(best):.0f}, by "
        f"chance {np.mean(chance):.0f}",
        ("ε", "exponential, |G|", "exponential, exact", "free: bins at this ε"),
        rows,
    )
    means = {key: mean_error(values_)[0] for key, values_ in found.items()}
    claims = [
        Claim(
            "the printed sensitivity is below the exact one at some vertices: no guarantee there",
            f"at {100 * np.mean(below):.0f} % of them",
            bool(np.mean(below) > 0),
        ),
        Claim(
            "from ε = 1 on, free evidence of released bins is better than the exponential "
            "mechanism, bins included",
            ", ".join(
                f"{means['free', eps]:.0f} against {means['exact', eps]:.0f}"
                for eps in _EPSILONS[1:]
            ),
            all(means["free", eps] > means["exact", eps] for eps in _EPSILONS[1:]),
        ),
    ]
    return Findings(
        "Smith et al., supplement: kernel parameters by the exponential mechanism",
        records,
        [table],
        claims,
    )
