"""Design of the linear maps of the labels that are released.

One public column for each input, none longer than one. All mechanisms release w̄ = Σ h_j v_j,
coefficients of a Gaussian process's mean: h_j = Hψ_j/ν_j, H = (1 + Σ c_jψ_jψ_jᵀ/ν_j)⁻¹.

    functional   noise that is white in the function's own norm (Hall, Rinaldo and Wasserman): f =
                 ψᵀw̄ has the norm ‖w̄‖, so one label moves it by |Δv|·‖h_j‖. Of the path of a
                 Gaussian process only the part within the span of the ψ is drawn: the rest would
                 not depend on any label.
    inducing     the same coefficients for a few inducing inputs (FITC: ν_j = s² + rest_j; Titsias:
                 ν_j = s²), with a cloak
    cloak        noise shaped for the points of interest T: the cloak (`cloaking`) of the columns
                 T^½h_j

ν_j is multiplied by a factor that is chosen, from public numbers, for the least expected error: a
map that is smoother than the best one without noise has shorter columns, and noise is spread over
fewer of them. Directions in which the noise is a thousand times the signal are left out.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from reticent.inference.labels.cloaking import Cloak, cloak
from reticent.inference.labels.settings import DESIGN
from reticent.inference.linalg import JITTER, SMALL_JITTER, robust_cholesky, solve_lower

__all__ = ["DesignProblem", "design_release", "mean_coefficients"]

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class DesignProblem:
    """What is public.

    Features of the inputs (columns), records at each, noise variances, features of the points of
    interest.
    """

    psi: Array
    counts: Array
    nu: Array  # of one record
    target: Array  # (points of interest)ᵀ(points of interest), as features
    noise: float  # variance of the privacy noise on a column of length one

    def expected_error(self, columns: Array) -> float:
        """Total posterior variance at the points of interest, given these columns (inputs, k)."""
        G = (columns.T * self.counts) @ self.psi.T
        S = (
            G @ G.T
            + (columns.T * (self.counts * self.nu)) @ columns
            + self.noise * np.eye(columns.shape[1])
        )
        g = solve_lower(robust_cholesky(S, JITTER), G)
        return float(np.trace(self.target) - np.sum((g @ self.target) * g))

    def informative_axes(self, columns: Array) -> Array:
        """Orthonormal axes of what is released, as columns.

        Those along which there is any signal beside the noise.
        """
        G = (columns.T * self.counts) @ self.psi.T
        values, axes = np.linalg.eigh(G @ G.T)
        return axes[:, values > min(DESIGN.negligible_signal * self.noise, values[-1] / 2)]


def mean_coefficients(psi: Array, counts: Array, nu: Array) -> Array:
    """h_j, a column for each input.

    What one more unit of a label there adds to the coefficients of the mean.
    """
    lower = robust_cholesky(np.eye(len(psi)) + (psi * (counts / nu)) @ psi.T, SMALL_JITTER)
    return np.asarray(solve_lower(lower, np.eye(len(psi))).T @ solve_lower(lower, psi) / nu)


def design_release(problem: DesignProblem, criterion: str | None) -> tuple[Array, Cloak | None]:
    """Columns, a row for each input, none longer than one, and their cloak.

    ``criterion`` None: noise that is white for the coefficients, and no cloak.
    """
    root = np.eye(len(problem.psi))
    if criterion is not None:
        values, vectors = np.linalg.eigh(problem.target)
        root = (vectors * np.sqrt(np.maximum(values, 0.0))).T
    least_error = math.inf
    rough_cloak = None
    best = _Map(root, None)
    for smoother in DESIGN.smoothing_factors:  # the expected error falls, then rises
        d = root @ mean_coefficients(problem.psi, problem.counts, smoother * problem.nu)
        if criterion is None:
            rough_cloak = None
        else:
            rough_cloak = cloak(d, criterion, DESIGN.rough_tolerance, rough_cloak)
        expected = problem.expected_error(_Map(d, rough_cloak).columns)
        if expected > least_error:
            break
        least_error = expected
        best = _Map(d, rough_cloak)
    d = best.part(problem.informative_axes(best.columns))
    last = _Map(d, None if criterion is None else cloak(d, criterion, DESIGN.tolerance, best.cloak))
    return last.columns, last.cloak


@dataclass(frozen=True, eq=False)
class _Map:
    """A map of labels, one column each, and its noise: a cloak's, or white."""

    d: Array
    cloak: Cloak | None

    @property
    def columns(self) -> Array:
        """What is released: a row for each input, none longer than one."""
        if self.cloak is None:
            return self.d.T / (
                math.sqrt(float(np.square(self.d).sum(axis=0).max())) * (1 + DESIGN.norm_margin)
            )
        return (self.cloak.whiten @ self.d).T / (1 + DESIGN.norm_margin)

    def part(self, axes: Array) -> Array:
        """The part of the map along some axes of what is released.

        Errors are as long as they are in the whole map.
        """
        if self.cloak is None:
            return axes.T @ self.d
        return np.asarray(
            np.linalg.qr(self.cloak.back @ axes)[1] @ (axes.T @ self.cloak.whiten @ self.d)
        )
