"""Cloaks: shapes of noise that hide every label and disturb the points of interest least.

A linear map of the labels, D v with one public column d_j per label, is released with noise of
covariance M. One label changes the part of its own column only, so d_jᵀM⁻¹d_j ≤ 1 for all j says
that no label moves the release further than one standard deviation of the noise, in the noise's own
metric. Among these M two are offered:

    trace    least tr M: the least mean squared error at the points of interest. M = (Σ λ_j d_j
             d_jᵀ)^½
    logdet   least log det M (Smith et al. 2018), the smallest ellipsoid around ±d_j. M = rank·Σ λ_j
             d_j d_jᵀ

Both are convex. λ is found by multiplicative updates, which are steps of log λ, with Nesterov's
momentum; every λ ≥ 0 gives a feasible M (after division by the largest d_jᵀM⁻¹d_j) and a bound that
no M can beat, so the distance from the optimum is known at each step and is the stopping rule. When
it grows, momentum begins anew.

    trace    with S = Σ λ_j d_j d_jᵀ, tr N ≥ 2 tr S^½ − Σλ, since tr N + tr N⁻¹S ≥ 2 tr S^½. The
             best multiple of λ: (tr S^½)²/Σλ
    logdet   with Σλ = 1: log det N ≥ log det(rank·S), since log det N + tr N⁻¹(rank·S) ≥ log
             det(rank·S) + rank, and tr N⁻¹S ≤ 1
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from reticent.inference.labels.settings import CLOAK

__all__ = ["CRITERIA", "Cloak", "cloak"]

Array = NDArray[np.float64]
CRITERIA = ("trace", "logdet")


@dataclass(frozen=True, eq=False)
class Cloak:
    """Noise of covariance M = back·backᵀ, white as ``whiten @ (D v)``.

    Whiten·back = 1 on the columns' span.
    """

    whiten: Array  # rank × rows of D: no whitened column is longer than one
    back: Array  # rows of D × rank
    value: float  # tr M, or log det M
    bound: float  # what no M can go below
    # λ of each label, with sum one: where the search for another cloak like this may begin
    weight: Array
    # largest distance from the optimum, relative to tr M, or to each axis of the ellipsoid (mean)
    gap: float


def cloak(
    columns: Array, criterion: str = "trace", tolerance: float = 1e-3, similar: Cloak | None = None
) -> Cloak:
    """The cloak of ``columns`` (one per label), within ``tolerance`` of the optimum.

    ``similar``: the cloak of similar columns, from which the search begins.
    """
    axes, values, _ = np.linalg.svd(columns @ columns.T)
    axes = axes[:, : max(int((values > CLOAK.min_eigenvalue * values[0]).sum()), 1)]
    d = axes.T @ columns
    weight = np.full(d.shape[1], 1.0 / d.shape[1])
    if similar is not None:
        uniform = CLOAK.uniform_weight
        weight = (1 - uniform) * similar.weight + uniform * weight
    if criterion == "trace":
        step = _trace
        power = CLOAK.trace_power
    else:
        step = _logdet
        power = CLOAK.logdet_power
    previous = np.log(weight)
    momentum_age = 1.0
    least_gap = math.inf
    for _ in range(CLOAK.max_steps):
        whiten, back, lengths, value, bound = step(d, weight)
        gap = (value - bound) / (value if criterion == "trace" else len(d))
        if gap <= tolerance:
            break
        updated = np.log(weight * (lengths / lengths.max()) ** power + CLOAK.min_weight)
        next_age = (1 + math.sqrt(1 + 4 * momentum_age**2)) / 2
        if gap <= CLOAK.max_growth * least_gap:
            momentum = (momentum_age - 1) / next_age
            momentum_age = next_age
            least_gap = min(gap, least_gap)
        else:
            momentum = 0.0
            momentum_age = 1.0
            least_gap = gap
        weight = _weights_from_logs(updated + momentum * (updated - previous))
        previous = updated
    scale = math.sqrt(float(lengths.max()))
    return Cloak(whiten @ axes.T / scale, axes @ back * scale, value, bound, weight, gap)


def _weights_from_logs(logs: Array) -> Array:
    weight = np.exp(logs - logs.max())
    return np.asarray(weight / weight.sum())


def _trace(d: Array, weight: Array) -> tuple[Array, Array, Array, float, float]:
    """M = S^½, its half powers, each label's d_jᵀM⁻¹d_j, tr M once feasible, and the bound."""
    values, vectors = _eigen((d * weight) @ d.T)
    quarter = values**0.25
    whiten = vectors.T / quarter[:, None]
    back = vectors * quarter
    lengths = np.square(whiten @ d).sum(axis=0)
    trace = float(np.sqrt(values).sum())
    return whiten, back, lengths, trace * float(lengths.max()), trace**2 / float(weight.sum())


def _logdet(d: Array, weight: Array) -> tuple[Array, Array, Array, float, float]:
    """M = rank·S, its half powers, each label's d_jᵀM⁻¹d_j, feasible log det M, and the bound."""
    values, vectors = _eigen((d * weight) @ d.T * len(d))
    half = np.sqrt(values)
    whiten = vectors.T / half[:, None]
    back = vectors * half
    lengths = np.square(whiten @ d).sum(axis=0)
    bound = float(np.log(values).sum())
    return whiten, back, lengths, bound + len(d) * math.log(float(lengths.max())), bound


def _eigen(matrix: Array) -> tuple[Array, Array]:
    values, vectors = np.linalg.eigh(matrix)
    return np.maximum(values, CLOAK.min_eigenvalue * values[-1]), vectors
