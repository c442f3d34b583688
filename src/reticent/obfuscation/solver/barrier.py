"""Barrier method for the weak problem, with a Newton step for rank-one constraints.

    minimise tr S   subject to S ⪰ 0, hᵢ(S) = dᵢᵀ(E + S)⁻¹dᵢ < 1, i = 1 … a (Tuo & Bhattacharya,
    Eq. 10)

in its Schur form: hᵢ < 1 is E + S ≻ dᵢdᵢᵀ, and it is convex in S. The barrier is t·tr S − log det
S − Σ log(1 − hᵢ). With A = E + S, uᵢ = A⁻¹dᵢ and vᵢ = uᵢ/√(1 − hᵢ) its gradient is G = t·I − S⁻¹ −
VVᵀ, and the Newton step D solves

    S⁻¹DS⁻¹ + A⁻¹(DV)Vᵀ + V(DV)ᵀA⁻¹ + V diag(vᵢᵀDvᵢ) Vᵀ = −G,

in which D but for the first term enters through X = DV only, k × a numbers instead of k × k. In the
coordinates W with A = WWᵀ, S = W diag(σ) Wᵀ, and those in which T = VᵀSV is diagonal, what is left
couples a² + a numbers: J = XᵀA⁻¹SV and eᵢ = vᵢᵀxᵢ.

At the end of a stage, λᵢ = 1/(t(1 − hᵢ)) and yᵢ = √λᵢ·uᵢ are dual feasible: I − YYᵀ = S⁻¹/t + G/t,
with G ≈ 0.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

from reticent.obfuscation.solver.settings import SOLVER

__all__ = ["Centre", "centre", "follow"]

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Centre:
    """Where the barrier stands: S, its hᵢ and uᵢ, and the multipliers λᵢ."""

    s: Array
    t: float
    h: Array
    u: Array

    @property
    def multipliers(self) -> Array:
        """λᵢ."""
        return 1 / (self.t * (1 - self.h))


def follow(e: Array, d: Array, s: Array, first: float, last: float) -> Centre:
    """Follow the central path from t = ``first`` to ``last``, from the strictly feasible ``s``.

    ``e``: E (k, k); ``d``: the columns dᵢ (k, a); ``s``: S (k, k).
    """
    t = min(first, last)
    while True:
        found = centre(e, d, s, t)
        if t >= last:
            return found
        s = found.s
        t = min(t * SOLVER.barrier_growth, last)


def centre(e: Array, d: Array, s: Array, t: float) -> Centre:
    """Minimise the barrier at ``t`` by Newton's method, from the strictly feasible ``s``."""
    value, state = barrier_value(e, d, s, t)
    if state is None:
        raise ValueError("the start is not strictly feasible")
    for _ in range(SOLVER.newton_steps):
        step, decrement = newton_step(state, t)
        size = 1.0
        for _ in range(SOLVER.step_halvings):
            after, found = barrier_value(e, d, s + size * step, t)
            if found is not None and after <= value - 0.1 * size * decrement + 1e-13 * abs(value):
                break
            size /= 2
        else:
            break  # no descent left that float64 can see
        s = s + size * step
        value = after
        state = found
        if decrement < SOLVER.newton_decrement:
            break
    assert state is not None
    upper = state.upper
    x = state.x
    h = state.h
    return Centre(s, t, h, solve_triangular(upper, x, check_finite=False))


@dataclass(frozen=True)
class _State:
    upper: Array  # A = upperᵀ upper
    x: Array  # upper⁻ᵀ d
    h: Array
    root: Array  # S = root rootᵀ


def barrier_value(e: Array, d: Array, s: Array, t: float) -> tuple[float, _State | None]:
    """t·tr S minus the log-determinants, and its factors; infinite outside the cone."""
    try:
        root, lower = np.asarray(np.linalg.cholesky(s)), np.asarray(np.linalg.cholesky(e + s))
    except np.linalg.LinAlgError:
        return np.inf, None
    x = solve_triangular(lower, d, lower=True, check_finite=False)
    h = np.einsum("ij,ij->j", x, x)
    if not h.max() < 1:
        return np.inf, None
    value = t * np.trace(s) - 2 * np.log(np.diag(root)).sum() - np.log1p(-h).sum()
    return float(value), _State(lower.T, x, h, root)


def newton_step(state: _State, t: float) -> tuple[Array, float]:
    """Newton step (k, k), and its decrement: twice the descent of a quadratic barrier."""
    root = state.root
    half = solve_triangular(state.upper.T, root, lower=True, check_finite=False)
    v = half.T @ state.x / np.sqrt(1 - state.h)  # rootᵀV
    q, values, p = np.linalg.svd(v)
    m = min(v.shape)
    # v = q[:, :m] r, and r rᵀ = diag(ρ)
    rho = values**2
    r = values[:, None] * p[:m]
    root = root @ q
    gradient = t * (root.T @ root) - np.eye(len(q))  # rootᵀG root
    gradient[:m, :m] -= np.diag(rho)
    gamma = (half @ q).T @ (half @ q)  # rootᵀA⁻¹root
    n = solve_newton_system(gamma, rho, r, -gradient)
    return root @ n @ root.T, float(-np.einsum("ij,ij->", gradient, n))


def solve_newton_system(gamma: Array, rho: Array, r: Array, right: Array) -> Array:
    """N + Γ N diag(ρ, 0) + diag(ρ, 0) N Γ + R diag(rᵢᵀN₁₁rᵢ) Rᵀ = right, block by block.

    All that is inverted is positive.
    """
    m = len(rho)
    n = right.copy()  # N₂₂ is what stands there: the other terms have no such block
    s, o = np.linalg.eigh(gamma[m:, m:])
    across = gamma[:m, m:] @ o  # Γ₁₂ in the coordinates of Γ₂₂
    given = o.T @ right[m:, :m]
    weight = 1 / (1 + np.maximum(s, 0)[:, None] * rho)
    # N₂₁ = (right₂₁ − Γ₂₁N₁₁ρ) · weight leaves, for column k of N₁₁, the matrix
    # ρₖ(Γ₁₁ − ρₖ Γ₁₂ weightₖ Γ₂₁)
    psi = rho[:, None, None] * (
        gamma[:m, :m] - np.einsum("lj,jk,ij->kli", across, rho * weight, across, optimize=True)
    )
    first = right[:m, :m] - (moved := rho * (across @ (weight * given))) - moved.T
    i, j = np.triu_indices(m)
    n11 = np.zeros((m, m))
    n11[i, j] = np.linalg.solve(_first_block(psi, r, i, j), first[i, j])
    n11 = n11 + np.triu(n11, 1).T
    n[:m, :m] = n11
    n[m:, :m] = o @ ((given - across.T @ (n11 * rho)) * weight)
    n[:m, m:] = n[m:, :m].T
    return n


def _first_block(psi: Array, r: Array, i: NDArray[np.intp], j: NDArray[np.intp]) -> Array:
    """The map of N₁₁'s upper triangle: N[i, j] + (ψⱼN[:, j])ᵢ + (ψᵢN[:, i])ⱼ + Σ rᵢ rⱼ (rᵀN r)."""
    m = len(psi)
    size = len(i)
    at = np.zeros((m, m), dtype=np.intp)
    at[i, j] = at[j, i] = np.arange(size)
    rows = np.arange(size)[:, None]
    cells = np.arange(m)
    matrix = np.eye(size)
    np.add.at(matrix, (rows, at[cells, j[:, None]]), psi[j[:, None], i[:, None], cells])
    np.add.at(matrix, (rows, at[cells, i[:, None]]), psi[i[:, None], j[:, None], cells])
    pairs = r[i] * r[j]
    return matrix + pairs @ (pairs * np.where(i == j, 1.0, 2.0)[:, None]).T
