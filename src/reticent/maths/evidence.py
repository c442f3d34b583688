"""Hypotheses weighed by their evidence: points in a box of parameters, with weights that add up to one.

The prior is even over the box. Points come from two proposals, an even one over the box (which finds where the evidence is) and a
normal one around the highest place that was climbed to (which is fine enough there); each point's weight is its evidence over the
density of both proposals together, so that neither needs to be right by itself.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import logsumexp
from scipy.stats import norm, qmc

__all__ = ["weigh"]

Array = NDArray[np.float64]
Evidence = Callable[[Array], tuple[float, Array]]  # its logarithm, and the gradient

_CLIMBS, _STEPS = 2, 25
_WIDER = 1.3  # than the curvature says: tails of the evidence are heavier than normal ones
_DIFFERENCE = 0.05
_NOTHING = 1e-3  # share of weight that is left out


def weigh(evidence: Evidence, low: Array, high: Array, trials: int, most: int) -> tuple[Array, Array, Array]:
    """The highest point; then points and their weights, at most ``most``, from about two times ``trials``."""
    p = len(low)
    if not p or (high <= low).all():
        return low, low[None, :], np.ones(1)
    free = high > low
    inside, outer = np.flatnonzero(free), low.copy()

    def full(theta: Array) -> Array:
        point = outer.copy()
        point[inside] = theta
        return point

    def climb(theta: Array) -> tuple[float, Array]:
        value, slope = evidence(full(theta))
        return -value, -slope[inside]

    low, high = low[inside], high[inside]
    places = qmc.Halton(len(low), scramble=False).random(2 * trials + 1)[1:]
    even = low + (high - low) * places[:trials]
    values = np.array([-climb(theta)[0] for theta in even])
    best, top = even[int(values.argmax())], float(values.max())
    for start in np.argsort(-values)[:_CLIMBS]:
        found = minimize(
            climb,
            even[start],
            jac=True,
            method="L-BFGS-B",
            bounds=np.column_stack([low, high]),
            options={"maxiter": _STEPS},
        )
        if -found.fun > top:
            best, top = found.x, -float(found.fun)
    covariance = _around(climb, best, low, high)
    lower = np.linalg.cholesky(covariance)
    near = best + norm.ppf(places[trials:] * 0.998 + 0.001) @ lower.T
    points = np.vstack([even, near, best])
    held = ((points >= low) & (points <= high)).all(axis=1)
    points = points[held]
    values = np.array([-climb(theta)[0] for theta in points])
    distance = np.linalg.solve(lower, (points - best).T)
    normal = -0.5 * (distance**2).sum(axis=0) - np.log(np.diag(lower)).sum() - 0.5 * len(low) * np.log(2 * np.pi)
    proposal = np.logaddexp(normal, -np.log(high - low).sum()) - np.log(2)
    weights = np.exp(values - proposal - logsumexp(values - proposal))
    order = np.argsort(-weights, kind="stable")
    order = order[: min(most, int(np.searchsorted(np.cumsum(weights[order]), 1 - _NOTHING)) + 1)]
    return full(best), np.array([full(theta) for theta in points[order]]), weights[order] / weights[order].sum()


def _around(climb: Evidence, best: Array, low: Array, high: Array) -> Array:
    """A covariance from the curvature at the highest point, nowhere wider than the box."""
    p = len(best)
    curvature = np.empty((p, p))
    for k in range(p):
        step = np.zeros(p)
        step[k] = _DIFFERENCE if best[k] + _DIFFERENCE <= high[k] else -_DIFFERENCE
        curvature[k] = (climb(best + step)[1] - climb(best)[1]) / step[k]
    even = 12 / (high - low) ** 2  # one over the variance of an even law
    scaled = (curvature + curvature.T) / 2 / np.sqrt(np.outer(even, even))
    values, vectors = np.linalg.eigh(scaled)
    inverse = (vectors / np.maximum(values, 1.0)) @ vectors.T
    return np.asarray(_WIDER**2 * inverse / np.sqrt(np.outer(even, even)))
