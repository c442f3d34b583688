"""Covariance of the raw data, and noise in closed form (Tuo & Bhattacharya 2023).

    y = f(X) + e,  f ~ GP(m, K),  e ~ N(0, V),   W = y + z,  z ~ N(0, Σ),   M = K(X, X) + V

    Var[f(s) | W] ≥ ξ   ⇔ M + Σ ⪰ ccᵀ, c = K(X, s)/√(K(s, s) − ξ) ⇔ h = cᵀ(M + Σ)⁻¹c ≤ 1 (Eqs 5–7)
    Var[βᵀf(S) | W] ≥ βᵀΞβ for all β   ⇔ M + Σ ⪰ UUᵀ, UUᵀ = K(X, S)(K(S, S) − Ξ)⁻¹K(S, X) (Eq. 11)
    the least such Σ is the positive part of UUᵀ − M (Theorem 1)

Two things keep arithmetic from weakening a promise. White noise of a tiny variance, the floor, is
added to every released value *in fact*, so that M + floor·I, which is what is inverted, is no
pretence; the check at the end counts half of it. And a low-rank K is an incomplete Cholesky factor
LLᵀ ⪯ K, with which noise comes out larger, never smaller.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve, eigh, qr
from sklearn.gaussian_process.kernels import Kernel

from reticent.obfuscation.solver.settings import SOLVER

__all__ = [
    "Raw",
    "between",
    "diagonal",
    "observe",
    "pivots",
    "positive_part",
    "prior_variance",
    "white_noise",
]

Array = NDArray[np.float64]
# of a variance, for each record: far above what a factorisation loses
_ROUNDING = 64 * np.finfo(np.float64).eps


def between(kernel: Kernel, a: Array, b: Array) -> Array:
    """K(a, b) of the function itself.

    White noise, which scikit-learn puts on the diagonal, is no part of it.
    """
    return np.asarray(kernel(a, b.copy()))


def prior_variance(kernel: Kernel, at: Array) -> Array:
    """K(s, s) for each row."""
    values = np.empty(len(at))
    size = SOLVER.covariance_block
    for start in range(0, len(at), size):  # white noise may differ from place to place
        some = at[start : start + size]
        values[start : start + size] = between(kernel, some, some).diagonal()
    return values


def white_noise(kernel: Kernel, x: Array) -> float | Array:
    """Variance of the kernel's own white noise at each record.

    One number if it is the same for all.
    """
    white = np.maximum(kernel.diag(x) - prior_variance(kernel, x), 0.0)
    if np.ptp(white) <= 1e-12 * white.max():
        return float(white[0])
    return np.asarray(white)


@dataclass(frozen=True)
class Raw:
    """M + floor·I = Q·inner·Qᵀ + rest·(I − QQᵀ), or a little less than M's.

    Q = ``basis``, or the identity.

    ``left``: the trace of what K has more than its factor.
    """

    n: int
    basis: Array | None
    inner: Array
    rest: float
    floor: float
    left: float

    def into(self, columns: Array) -> tuple[Array, Array]:
        """Coordinates of n-vectors in the basis, and the squared norm of what it does not hold."""
        if self.basis is None:
            return columns, np.zeros(columns.shape[1])
        inside = self.basis.T @ columns
        outside = columns - self.basis @ inside
        return inside, np.einsum("ij,ij->j", outside, outside)

    def out(self, inside: Array) -> Array:
        """Back to n-vectors."""
        if self.basis is None:
            return inside
        return self.basis @ inside

    def mean(self, w: Array, factor: Array) -> float:
        """The likeliest constant mean of W (n,), with noise factor·factorᵀ + floor·I.

        ``factor``: (n, r).
        """
        ones = np.ones((self.n, 1))
        inside, _ = self.into(ones)
        own, _ = self.into(factor)
        weights = self.out(np.asarray(np.linalg.solve(self.inner + own @ own.T, inside)))
        weights = weights + (ones - self.out(inside)) / self.rest
        return float(weights[:, 0] @ w / weights.sum())

    def with_floor(self, floor: float) -> "Raw":
        """The same raw data under another floor."""
        more = floor - self.floor
        return replace(
            self,
            inner=self.inner + more * np.eye(len(self.inner)),
            rest=self.rest + more,
            floor=floor,
        )

    def reduced(self, columns: Array, factor: Array) -> Array:
        """KᵀA⁻¹K (g, g) for ``columns`` K (n, g), with A = M + factor·factorᵀ + floor/2·I.

        ``factor``: in coordinates of the basis.
        """
        inside, outside = self.into(columns)
        a = self.inner + factor @ factor.T
        a[np.diag_indices_from(a)] -= self.floor / 2
        return np.asarray(inside.T @ cho_solve(cho_factor(a, lower=True), inside)) + np.diag(
            outside
        ) / (self.rest - self.floor / 2)

    def reductions(self, columns: Array, factor: Array) -> Array:
        """The diagonal of ``reduced``."""
        inside, outside = self.into(columns)
        a = self.inner + factor @ factor.T
        a[np.diag_indices_from(a)] -= self.floor / 2
        if len(a) <= SOLVER.lanczos_dimension:
            half = np.linalg.solve(np.linalg.cholesky(a), inside)
            explained = np.einsum("ij,ij->j", half, half)
        else:
            explained = np.einsum("ij,ij->j", inside, cho_solve(cho_factor(a, lower=True), inside))
        return explained + outside / (self.rest - self.floor / 2)


def pivots(
    kernel: Kernel, at: Array, *, left_out: float, most: int
) -> tuple[Array, list[int], float]:
    """Incomplete Cholesky factor of K(at, at) by largest remaining variance.

    LLᵀ ⪯ K, and the trace of what is left.
    """
    rest = prior_variance(kernel, at).copy()
    stop = left_out * rest.max()
    rows = np.empty((most, len(at)))
    chosen: list[int] = []
    while len(chosen) < most:
        best = int(rest.argmax())
        if rest[best] <= stop:
            break
        k = len(chosen)
        column = between(kernel, at, at[best : best + 1])[:, 0] - rows[:k].T @ rows[:k, best]
        rows[k] = column / np.sqrt(rest[best])
        rest = np.maximum(rest - rows[k] ** 2, 0.0)
        rest[best] = 0.0
        chosen.append(best)
    return rows[: len(chosen)].T, chosen, float(rest.sum())


def observe(kernel: Kernel, x: Array, v: float | Array, sensitive: Array) -> Raw:
    """The covariance of raw data at ``x``.

    ``v``, of the measurement errors: a variance, variances (n,), or a covariance matrix (n, n).
    ``sensitive`` points are among those that the incomplete factor is made for, so that it holds
    K(X, s) as well.
    """
    n = len(x)
    scale = float(prior_variance(kernel, x).mean())
    floor = scale * max(SOLVER.floor, n * _ROUNDING)
    white = np.ndim(v) == 0
    if white and n > SOLVER.dense_records:
        most = min(n // 2, SOLVER.max_factor_rank)
        lower, chosen, left = pivots(
            kernel, np.vstack([x, sensitive]), left_out=SOLVER.factor_tolerance, most=most
        )
        if len(chosen) < most:
            q, r = np.linalg.qr(lower[:n])
            rest = float(v) + floor
            inner = r @ r.T
            return Raw(n, q, inner + rest * np.eye(len(r)), rest, floor, left)
    if n > SOLVER.max_dense_records:
        raise ValueError(
            f"{n:,} records need a kernel that is smooth over them (it has more than "
            f"{SOLVER.max_factor_rank} directions here) and measurement errors of one variance: "
            "take a longer length scale, or fewer records"
        )
    m = between(kernel, x, x) + (v if np.ndim(v) == 2 else np.diag(np.broadcast_to(v, n)))
    return Raw(n, None, (m + m.T) / 2 + floor * np.eye(n), 1.0, floor, 0.0)


def positive_part(u: Array, m: Array) -> Array:
    """F with FFᵀ = (UUᵀ − M)⁺.

    It has at most as many columns as U, and only those eigenpairs are computed.
    """
    n, wanted = u.shape
    found = None
    if n > SOLVER.lanczos_dimension and 3 * wanted <= n:
        found = few_positive(u, m)
    if found is None:
        values, vectors = eigh(u @ u.T - m, check_finite=False)
    else:
        values, vectors = found
    kept = values > 0
    return np.asarray(vectors[:, kept] * np.sqrt(values[kept]))


def few_positive(u: Array, m: Array) -> tuple[Array, Array] | None:
    """Positive eigenvalues of UUᵀ − M and their vectors, by block Lanczos from U.

    None if it would take too many steps. M alone has no positive part to offer, so all that is
    looked for has a share in U: the start is fixed, and good. It ends when each Ritz pair is either
    exact or next to nothing, if it is positive at all.
    """
    block = orthonormal_basis(u)
    basis = block
    image = u @ (u.T @ block) - m @ block
    small = np.zeros((0, 0))
    look = SOLVER.lanczos_check_every
    for step in range(1, len(u) // (3 * block.shape[1]) + 1):
        image_in = basis.T @ image
        size = basis.shape[1]
        width = block.shape[1]
        grown = np.zeros((size, size))
        grown[: len(small), : len(small)] = small
        grown[:, size - width :] = image_in
        grown[size - width :, :] = image_in.T
        small = grown
        rest = image - basis @ image_in
        rest -= basis @ (basis.T @ rest)
        if step == look:
            look += max(SOLVER.lanczos_check_every, look // 2)
            values, vectors = np.linalg.eigh(small)
            off = np.linalg.norm(rest @ vectors[size - width :], axis=0)
            top = max(values[-1], 0.0)
            exact = off <= SOLVER.lanczos_residual * top
            negligible = values + off <= SOLVER.lanczos_negligible * top
            if (exact | negligible).all():
                return values[values > 0], basis @ vectors[:, values > 0]
        block = orthonormal_basis(rest, float(np.abs(small).max()))
        if not block.shape[1]:
            values, vectors = np.linalg.eigh(small)  # the whole space that M and U can reach
            return values, basis @ vectors
        basis = np.hstack([basis, block])
        image = u @ (u.T @ block) - m @ block
    return None


def orthonormal_basis(columns: Array, scale: float = 0.0) -> Array:
    """An orthonormal basis of the columns, without what rounding has made."""
    q, r, _ = qr(columns, mode="economic", pivoting=True, check_finite=False)
    sizes = np.abs(np.diag(r))
    largest = max(float(sizes.max(initial=0.0)), scale)
    return np.asarray(q[:, sizes > SOLVER.span_tolerance * largest])


def diagonal(m: Array, c: Array, *, gap: float = SOLVER.gap) -> tuple[Array, float]:
    """The least *independent* noise, to compare with: variances v ≥ 0, M + diag(v) ⪰ ccᵀ.

    And a lower bound on their sum. A barrier method on n numbers; every Y whose rows are no longer
    than one gives a bound, as in the weak problem.
    """
    n, g = c.shape
    if np.einsum("ij,ij->j", c, np.linalg.solve(m, c)).max() <= 1:
        return np.zeros(n), 0.0
    v: Any = np.full(n, 1.1 * float(np.linalg.norm(c, axis=0).max()) ** 2)
    t = (n + g) / v.sum()
    while True:
        for _ in range(60):
            inverse = np.linalg.inv(m + np.diag(v))
            u: Any = inverse @ c
            w = 1 / (1 - np.einsum("ij,ij->j", c, u))
            gradient = t - 1 / v - (u**2 * w).sum(axis=1)
            hessian = np.diag(1 / v**2) + 2 * inverse * ((u * w) @ u.T) + (u**2 * w**2) @ (u**2).T
            step = -np.linalg.solve(hessian * np.outer(v, v), gradient * v) * v
            decrement = -float(gradient @ step)
            size = 1.0
            while size > 1e-12 and not _descends(
                m, c, v + size * step, v, t, 0.1 * size * decrement
            ):
                size /= 2
            v = v + size * step
            if decrement < 1e-3 or size <= 1e-12:
                break
        if (n + g) / t <= gap / 3 * v.sum():
            break
        t *= 10
    u = np.linalg.solve(m + np.diag(v), c)
    y = u / np.sqrt(t * (1 - np.einsum("ij,ij->j", c, u)))
    y = y / np.maximum(1, np.linalg.norm(y, axis=1) * (1 + 1e-14))[:, None]
    return v, float((np.einsum("ij,ij->j", c, y) ** 2).sum() - np.einsum("ij,ij->", y, m @ y))


def _descends(m: Array, c: Array, v: Array, before: Array, t: float, less: float) -> bool:
    """Whether the barrier at v is below that at ``before`` by ``less``."""

    def barrier(v: Array) -> float:
        if v.min() <= 0:
            return np.inf
        h = np.einsum("ij,ij->j", c, np.linalg.solve(m + np.diag(v), c))
        if h.max() >= 1:
            return np.inf
        return t * v.sum() - np.log(v).sum() - np.log1p(-h).sum()

    old = barrier(before)
    return barrier(v) <= old - less + 1e-13 * abs(old)
