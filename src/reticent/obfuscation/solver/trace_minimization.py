"""Trace minimization: weakly privacy-aware noise (Tuo & Bhattacharya, Eq. 10), with a bound.

    minimise tr S   subject to   S ⪰ 0,   M + S ⪰ cᵢcᵢᵀ,   i = 1 … g

Three reductions, none of which changes the answer:

* Few constraints matter: a working set grows by those that are broken, until none is.
* If S has eigenvalue θ > 0 with vector x, then x ∈ (M + θI)⁻¹·span(C). For optimal S equals the
  positive part of CPCᵀ − M for some P ⪰ 0 (obfuscator.md, 4), so CPCᵀx = (M + θI)x. So S is
  looked for in a span of such blocks, for some θ at first and then for the ones found.
* In a subspace B the problem is the same again, with E = (BᵀM⁻¹B)⁻¹ and dᵢ = EBᵀM⁻¹cᵢ in place of M
  and cᵢ.

The certificate needs no trust in any of it: every Y with ‖Y‖₂ ≤ 1 gives a lower bound D(Y) =
Σ(cᵢ·yᵢ)² − tr YᵀMY on the trace of every feasible S, and feasibility is checked on M and cᵢ
themselves.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve, qr

from reticent.obfuscation.solver.barrier import Centre, follow
from reticent.obfuscation.solver.settings import SOLVER

__all__ = ["Weak", "dual_bound", "weak"]

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Weak:
    """S = factor·factorᵀ, and a lower bound on the trace of every feasible S."""

    factor: Array
    bound: float


def dual_bound(m: Array, c: Array, y: Array) -> float:
    """D(Y) after Y's singular values are cut to at most one."""
    y = _cut(y)
    return float((np.einsum("ij,ij->j", c, y) ** 2).sum() - np.einsum("ij,ij->", y, m @ y))


def _cut(y: Array) -> Array:
    left, values, right = np.linalg.svd(y, full_matrices=False)
    return (left * np.minimum(values, 1 / (1 + 1e-14))) @ right


def weak(m: Array, c: Array, *, gap: float = SOLVER.gap) -> Weak:
    """Solve the weak problem for positive definite ``m`` (q × q) and columns ``c`` (q × g)."""
    if len(m) <= SOLVER.small_dimension:
        gap = min(gap, SOLVER.small_gap)
    factored = cho_factor(m, lower=True, check_finite=False)
    a = np.einsum("ij,ij->j", c, cho_solve(factored, c, check_finite=False))
    if a.max() <= 1:
        return Weak(np.zeros((len(m), 0)), 0.0)
    needed = np.flatnonzero(a > 1)
    working: NDArray[np.intp] = needed[_evenly_spread(len(needed))]
    largest = float(np.linalg.norm(c[:, needed], 2)) ** 2  # no eigenvalue of an optimal S is larger
    shifts = largest * np.logspace(-6, 0, 7)
    basis = _basis(m, c[:, working], shifts)
    s = None
    t = 0.0
    best = 0.0
    gone: list[int] = []
    for _ in range(SOLVER.working_set_rounds):
        part = _Subproblem.of(basis, m, factored, c, a)
        found = part.solve(working, s, t)
        u = cho_solve(
            cho_factor(m + basis @ found.s @ basis.T, lower=True, check_finite=False),
            c,
            check_finite=False,
        )
        h = np.einsum("ij,ij->j", c, u)
        multipliers = found.multipliers / part.room[working]
        y = _cut(u[:, working] * np.sqrt(multipliers))
        best = max(best, dual_bound(m, c[:, working], y))
        trace = float(np.trace(found.s))
        terms = len(basis.T) + len(working)
        # ``aim``: what the barrier alone leaves
        off = (trace - best) / trace
        aim = terms / (found.t * trace)
        if off <= gap and h.max() <= 1 + SOLVER.constraint_tolerance:
            break
        broken = _apart(h, u, c, working)
        if broken:
            # what the barrier keeps far from its edge is let go, once: if that was
            # wrong it comes back for good
            far = working[(found.h < 1 - 1e3 * aim) & ~np.isin(working, gone)]
            gone = [*gone, *far]
            working = np.union1d(np.setdiff1d(working, far), broken).astype(np.intp)
        elif off > 2 * aim and len(basis.T) < len(m):
            values = np.linalg.eigvalsh(found.s)
            before = len(shifts)
            shifts = _merged(shifts, values[values > SOLVER.negligible_noise * values[-1]])
            if len(shifts) == before:  # small directions of M matter
                shifts = _merged(shifts, largest * np.logspace(-12, -6, 7))
            if len(shifts) == before:
                break
        elif aim <= gap / 2:
            break  # as near as float64 comes
        else:
            aim = max(aim / 1e3, gap / 3)
        t = terms / (aim * trace)
        new = _basis(m, c[:, working], shifts)
        s = new.T @ basis @ found.s @ basis.T @ new
        basis = new
    values, vectors = np.linalg.eigh(found.s)
    kept = values > SOLVER.negligible_noise * values[-1]
    return Weak(basis @ (vectors[:, kept] * np.sqrt(values[kept])), best)


def _evenly_spread(count: int) -> NDArray[np.intp]:
    return np.unique(
        np.linspace(0, count - 1, min(count, SOLVER.first_constraints)).round().astype(np.intp)
    )


def _apart(h: Array, u: Array, c: Array, working: NDArray[np.intp]) -> list[int]:
    """Broken constraints, the worst first, without those that say nearly the same as one before."""
    order = [
        int(i)
        for i in np.argsort(-h)[: 50 * SOLVER.first_constraints]
        if h[i] > 1 + SOLVER.constraint_tolerance and i not in working
    ]
    chosen: list[int] = []
    for i in order:
        if len(chosen) == SOLVER.first_constraints // 2:
            break
        alike = (c[:, chosen].T @ u[:, i]) ** 2 / (
            h[chosen] * h[i]
        )  # squared cosine in the metric of A⁻¹
        if not len(chosen) or alike.max() < SOLVER.similar_constraints:
            chosen.append(i)
    return chosen


def _basis(m: Array, c: Array, shifts: Array) -> Array:
    """An orthonormal basis of the span of cᵢ and (M + θI)⁻¹cᵢ.

    Of everything, where that is little.
    """
    if len(m) <= SOLVER.whole_dimension:
        return np.eye(len(m))
    unit = np.eye(len(m))
    blocks = [c, *(cho_solve(cho_factor(m + one * unit, lower=True), c) for one in shifts)]
    together = np.hstack([block / np.linalg.norm(block, axis=0) for block in blocks])
    q, r, _ = qr(together, mode="economic", pivoting=True)
    return np.asarray(q[:, np.abs(np.diag(r)) > 1e-9])


def _merged(shifts: Array, found: Array) -> Array:
    """The shifts that there are, and new ones where none is near."""
    for one in found:
        if np.abs(np.log(shifts / one)).min() > 0.2:
            shifts = np.append(shifts, one)
    return shifts


@dataclass(frozen=True)
class _Subproblem:
    """The problem in the span of an orthonormal basis: constraint i is dᵢᵀ(E + S)⁻¹dᵢ ≤ roomᵢ."""

    e: Array
    d: Array
    room: Array  # 1 − what of hᵢ no S in this span can lower

    @classmethod
    def of(
        cls, basis: Array, m: Array, factored: tuple[Array, bool], c: Array, a: Array
    ) -> "_Subproblem":
        if len(basis.T) == len(m):
            return cls(m, c, np.ones(c.shape[1]))
        mb = cho_solve(factored, basis, check_finite=False)
        e = np.linalg.inv(basis.T @ mb)
        e = (e + e.T) / 2
        b = mb.T @ c
        d = e @ b
        room = 1 - a + np.einsum("ij,ij->j", b, d)
        return cls(e, d, room)

    def solve(self, working: NDArray[np.intp], s: Array | None, last: float) -> Centre:
        """Follow the path to t = ``last``, from near ``s`` if there is one.

        Without, to a rough solution.
        """
        d = self.d[:, working] / np.sqrt(self.room[working])
        k, a = d.shape
        size = float(np.linalg.norm(d, axis=0).max()) ** 2
        wide = 1.1 * size * np.eye(k)
        if s is None:
            at = wide
        else:
            at = s + 1e-2 * np.trace(s) / k * np.eye(k)
        while (
            np.linalg.norm(np.linalg.solve(np.linalg.cholesky(self.e + at), d), axis=0).max()
            >= 0.9999
        ):
            at = 1.1 * at + 1e-3 * wide
        first = (k + a) / np.trace(at)  # (k + a)/t is the gap
        return follow(self.e, d, at, first, last or first / SOLVER.first_gap)
