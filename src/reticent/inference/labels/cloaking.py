"""Cloaks: shapes of noise that hide every label and disturb the points of interest least.

A linear map of the labels, D v with one public column d_j per label, is released with noise of
covariance M. One label changes its own column's share only, so d_jᵀM⁻¹d_j ≤ 1 for all j says that
no label moves the release further than one standard deviation of the noise, in the noise's own
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

__all__ = ["CRITERIA", "Cloak", "cloak"]

Array = NDArray[np.float64]
CRITERIA = ("trace", "logdet")
_STEPS = 20_000
_EVEN = 0.05
_GROWN = 1.5  # a distance from the optimum that has grown so much: momentum has gone too far
_NEVER = 1e-30  # a weight that may still come back
_LEAST = 1e-12  # of the largest eigenvalue: what lies below is arithmetic
_POWER = {
    "trace": 2.0,
    "logdet": 1.0,
}  # of an update; S^½ answers half as much to a weight as S, so its steps may be longer


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
    # how far from the optimum at most: a share of tr M, or of each axis of the ellipsoid on average
    gap: float


def cloak(
    columns: Array, criterion: str = "trace", tolerance: float = 1e-3, like: Cloak | None = None
) -> Cloak:
    """The cloak of ``columns`` (one per label), within ``tolerance`` of the optimum; ``like``.

    Of similar columns.
    """
    axes, values, _ = np.linalg.svd(columns @ columns.T)
    axes = axes[:, : max(int((values > _LEAST * values[0]).sum()), 1)]
    d = axes.T @ columns
    weight = np.full(d.shape[1], 1.0 / d.shape[1])
    if like is not None:
        weight = (
            1 - _EVEN
        ) * like.weight + _EVEN * weight  # a label that did not matter there may matter here
    if criterion == "trace":
        step = _trace
    else:
        step = _logdet
    before = np.log(weight)
    age = 1.0
    least = math.inf
    for _ in range(_STEPS):
        whiten, back, reach, value, bound = step(d, weight)
        gap = (value - bound) / (value if criterion == "trace" else len(d))
        if gap <= tolerance:
            break
        moved = np.log(weight * (reach / reach.max()) ** _POWER[criterion] + _NEVER)
        older = (1 + math.sqrt(1 + 4 * age**2)) / 2
        if gap <= _GROWN * least:
            ahead = (age - 1) / older
            age = older
            least = min(gap, least)
        else:
            ahead = 0.0
            age = 1.0
            least = gap
        weight = _shares(moved + ahead * (moved - before))
        before = moved
    most = math.sqrt(float(reach.max()))
    return Cloak(whiten @ axes.T / most, axes @ back * most, value, bound, weight, gap)


def _shares(logs: Array) -> Array:
    weight = np.exp(logs - logs.max())
    return np.asarray(weight / weight.sum())


def _trace(d: Array, weight: Array) -> tuple[Array, Array, Array, float, float]:
    """M = S^½, its half powers, each label's d_jᵀM⁻¹d_j, tr M once feasible, and the bound."""
    values, vectors = _eigen((d * weight) @ d.T)
    quarter = values**0.25
    whiten = vectors.T / quarter[:, None]
    back = vectors * quarter
    reach = np.square(whiten @ d).sum(axis=0)
    trace = float(np.sqrt(values).sum())
    return whiten, back, reach, trace * float(reach.max()), trace**2 / float(weight.sum())


def _logdet(d: Array, weight: Array) -> tuple[Array, Array, Array, float, float]:
    """M = rank·S, its half powers, each label's d_jᵀM⁻¹d_j, feasible log det M, and the bound."""
    values, vectors = _eigen((d * weight) @ d.T * len(d))
    half = np.sqrt(values)
    whiten = vectors.T / half[:, None]
    back = vectors * half
    reach = np.square(whiten @ d).sum(axis=0)
    bound = float(np.log(values).sum())
    return whiten, back, reach, bound + len(d) * math.log(float(reach.max())), bound


def _eigen(matrix: Array) -> tuple[Array, Array]:
    values, vectors = np.linalg.eigh(matrix)
    return np.maximum(values, _LEAST * values[-1]), vectors
