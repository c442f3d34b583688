"""Certificate of the noise: from a promise to the least noise that keeps it.

Every way of Tuo & Bhattacharya, Section 4, in one place. Whatever the way, the end is the same: the
promise is checked on the data's own covariance, the noise is scaled up where rounding or a finite
subset has left it short, and what still falls short is said so (``Certificate.held``), for the
caller to refuse.
"""

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh
from sklearn.gaussian_process.kernels import Kernel

from reticent.obfuscation.solver import spectral_density as spectra
from reticent.obfuscation.solver.constraints import Promise
from reticent.obfuscation.solver.covariance import Raw, between, diagonal, pivots, positive_part
from reticent.obfuscation.solver.settings import SOLVER
from reticent.obfuscation.solver.trace_minimization import weak

__all__ = ["Certificate", "Noise", "solve"]

Array = NDArray[np.float64]
_STRONG = ("strong", "kernel")


@dataclass(frozen=True)
class Certificate:
    """What was promised, what is attained, and how near the noise is to the least that does it.

    Attributes
    ----------
    solution : str
    promised, attained : float
        The promised variance where ``attained`` comes nearest to it, and the attained one; for
        regions, the attained variance is a lower bound for the points between those that were
        checked too.
    ratio : float
        The smallest attained/promised: at least 1.
    eigenvalue : float
        The smallest eigenvalue of the constraints, relative to M + Σ (1 − h) or, for strong
        promises, of Cov[f(S)|W] − Ξ: at least 0, but for rounding.
    checked, regions : int
        Points checked; number of regions they fill (0: they are the sensitive points themselves).
    trace, bound, gap : float
        The trace of the noise covariance, a lower bound that no noise with this promise can pass,
        and their relative difference.
    converged : float
        Strong promises on regions: relative change of the trace when the subset loses its last
        point; 0 otherwise.
    rank, floor : number of directions with noise worth the name; variance of the white noise that
    is added to all.
    """

    solution: str
    promised: float
    attained: float
    ratio: float
    eigenvalue: float
    checked: int
    regions: int
    trace: float
    bound: float
    gap: float
    converged: float
    rank: int
    floor: float

    @property
    def held(self) -> bool:
        """Whether the promise is kept."""
        return bool(
            self.attained >= self.promised * (1 - 1e-10)  # relative: variances have units
            and self.eigenvalue >= -(SOLVER.strong_slack if self.solution in _STRONG else 0.0)
        )

    def to_dict(self) -> dict[str, Any]:
        """Give it as plain values."""
        return {**asdict(self), "held": self.held}


@dataclass(frozen=True)
class Noise:
    """Σ = factor·factorᵀ + floor·I, with n rows, and its certificate.

    Attained variances at the checked points.
    """

    factor: Array
    floor: float
    certificate: Certificate
    attained: Array

    def per_release(self, releases: int) -> tuple[Array, float]:
        """Factor (n, r) and floor of the noise in each of ``releases`` independent releases.

        Together they tell as much as one release with this noise.
        """
        if releases == 1:
            return self.factor, self.floor
        scale = np.sqrt(releases) * (1 + 4 * np.finfo(np.float64).eps)
        return self.factor * scale, self.floor * releases


def solve(
    kernel: Kernel,
    x: Array,
    raw: Raw,
    promise: Promise,
    *,
    solution: str,
    hidden: Kernel | None = None,
    share: float | None = None,
    xi: Array | None = None,
) -> Noise:
    """Find the noise. ``hidden`` or ``share``: H, for kernel and uniform; ``xi``: Ξ, for strong."""
    cross = between(kernel, x, promise.at)  # n × g
    strong: tuple[Array, Array] | None = (
        None  # K(X, S) and K(S, S) − Ξ of what is checked as a matrix
    )
    converged = 0.0
    spread = promise.at
    if solution in ("weak", "diagonal"):
        scaled, outside = raw.into(cross / np.sqrt(promise.prior - promise.kept))
        scaled = scaled / np.sqrt(np.maximum(1 - outside / raw.rest, 1e-3))
        factor, bound = (_weak if solution == "weak" else _diagonal)(raw, scaled, promise)
    elif solution == "uniform":
        g = _everywhere(kernel, x, raw, hidden, share)
        values, vectors = eigh(g - raw.inner)
        factor = vectors[:, values > 0] * np.sqrt(values[values > 0])
        bound = float(values[values > 0].sum())
    else:
        if promise.regions:
            _, chosen, _ = pivots(
                kernel, promise.at, left_out=SOLVER.strong_tolerance, most=SOLVER.strong_subset
            )
            spread = promise.at[chosen]
        p = between(kernel, spread, spread) - _xi(kernel, spread, promise, hidden, share, xi)
        c = between(kernel, x, spread)
        strong = c, p
        factor, bound = _strong_noise(raw, c, p)
        if promise.regions and len(spread) > 1:
            fewer = (
                len(spread) - 1
            )  # pivots are in order, the last one adds least: without it, a coarser subset
            less = _strong_noise(raw, c[:, :fewer], p[:fewer, :fewer])[1]
            converged = abs(bound - less) / max(bound, 1e-300)
    return _checked(raw, promise, cross, factor, bound, solution, strong, converged)


def _weak(raw: Raw, scaled: Array, promise: Promise) -> tuple[Array, float]:
    if scaled.shape[1] == 1:  # Eq. 8
        factor = positive_part(scaled, raw.inner)
        return factor, float((factor**2).sum()) - raw.left
    found = weak(raw.inner, scaled, gap=SOLVER.gap)
    # K has up to ``left`` more than its factor, which the bound must not count on
    return found.factor, found.bound - raw.left


def _diagonal(raw: Raw, scaled: Array, promise: Promise) -> tuple[Array, float]:
    if raw.n > SOLVER.max_diagonal_records or raw.basis is not None:
        raise ValueError(
            "independent noise is there to compare with, for at most 64 smooth or "
            f'{SOLVER.max_diagonal_records} rough records: take fewer, or solution="weak"'
        )
    if promise.regions:
        scaled = scaled[:, :: max(len(promise.at) // 100, 1)]
    variances, bound = diagonal(raw.inner, scaled)
    return np.diag(np.sqrt(variances)), bound


def _strong_noise(raw: Raw, c: Array, p: Array) -> tuple[Array, float]:
    """The positive part of C P⁻¹Cᵀ − M, in the basis."""
    values, vectors = eigh((p + p.T) / 2)
    scale = float(np.abs(values).max())
    if values[0] < -1e-10 * scale:
        raise ValueError(
            f"K(S, S) − Ξ has the negative eigenvalue {values[0]:.4g}: Ξ asks for more uncertainty "
            "than the prior has about some combination of the sensitive values. Lower Ξ, or its "
            "correlations where they exceed the prior's"
        )
    kept = values > 1e-11 * scale
    u = raw.into(c @ (vectors[:, kept] / np.sqrt(values[kept])))[0]
    factor = positive_part(u, raw.inner)
    return factor, float((factor**2).sum())


def _xi(
    kernel: Kernel,
    at: Array,
    promise: Promise,
    hidden: Kernel | None,
    share: float | None,
    xi: Array | None,
) -> Array:
    """Ξ: given, or H(S, S), or the prior's own correlations with the promised variances."""
    if xi is not None:
        if (least := float(np.linalg.eigvalsh((xi + xi.T) / 2)[0])) < -1e-12 * float(
            np.abs(xi).max()
        ):
            raise ValueError(
                f"Ξ has the negative eigenvalue {least:.4g}: it is no covariance matrix. Lower its "
                "entries off the diagonal, or raise those on it"
            )
        return xi
    if hidden is not None:
        spectra.check_below(kernel, hidden, at.shape[1])
        return between(hidden, at, at)
    prior = between(kernel, at, at)
    if share is not None:
        return share * prior
    nearest = [int(np.abs(promise.at - one).sum(axis=1).argmin()) for one in at]
    root = np.sqrt(promise.kept[nearest] / promise.prior[nearest])
    return np.asarray(prior * np.outer(root, root))


def _everywhere(
    kernel: Kernel, x: Array, raw: Raw, hidden: Kernel | None, share: float | None
) -> Array:
    """G of all inputs, in the basis."""
    if share is not None:
        if raw.basis is None:
            k = between(kernel, x, x)
        else:
            k = raw.inner - raw.rest * np.eye(len(raw.inner))
        return np.asarray(k / (1 - share))
    g = spectra.everywhere(kernel, hidden, x)
    if raw.basis is None:
        return g
    return raw.basis.T @ g @ raw.basis


def _checked(
    raw: Raw,
    promise: Promise,
    cross: Array,
    factor: Array,
    bound: float,
    solution: str,
    strong: tuple[Array, Array] | None,
    converged: float,
) -> Noise:
    """Check every constraint, scale the noise up where it falls short, and certify it."""
    room = promise.prior - promise.kept
    for tried in range(SOLVER.scaling_attempts):
        reduction = raw.reductions(cross, factor)
        eigenvalue = float((1 - reduction / room).min())
        matrix = 0.0
        if strong is not None:
            # relative to the prior's variance, for Ξ has that unit
            rest = np.linalg.eigvalsh(strong[1] - raw.reduced(strong[0], factor))[0] / float(
                promise.prior.max()
            )
            matrix = float(rest)
        if eigenvalue >= 0 and matrix >= -SOLVER.strong_slack / 2:
            break
        # how much helps is not known beforehand: more each time, and twice what
        # small promises are short of
        short = max(float((1 - (promise.prior - reduction) / promise.kept).max()), 0.0)
        factor = factor * np.sqrt(
            1 + 2 * short + 1.5**tried * (abs(min(eigenvalue, matrix)) + 1e-12)
        )
    attained = (
        np.maximum(np.sqrt(np.maximum(promise.prior - reduction, 0)) - promise.margin, 0) ** 2
    )
    worst = int((attained / promise.promised).argmin())
    trace = float((factor**2).sum()) + raw.n * raw.floor
    certificate = Certificate(
        solution=solution,
        promised=float(promise.promised[worst]),
        attained=float(attained[worst]),
        ratio=float(attained[worst] / promise.promised[worst]),
        eigenvalue=min(eigenvalue, matrix),
        checked=len(promise.at),
        regions=promise.regions,
        trace=trace,
        bound=bound,
        gap=(trace - bound) / trace if factor.size else 0.0,
        converged=converged,
        rank=int(((size := (factor**2).sum(axis=0)) > 1e-6 * size.max(initial=0)).sum()),
        floor=raw.floor,
    )
    return Noise(raw.out(factor), raw.floor, certificate, attained)
