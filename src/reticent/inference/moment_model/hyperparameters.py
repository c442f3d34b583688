"""Hyperparameters: points in a box, weighed by their evidence.

Points in a box of parameters, with weights that add up to one. The prior is even over the box.
Points come from two proposals, an even one over the box (which finds where the evidence is) and a
normal one around the highest place that was climbed to (which is fine enough there); each point's
weight is its evidence over the density of both proposals together, so that neither needs to be
right by itself.
"""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import OptimizeResult, minimize
from scipy.special import logsumexp
from scipy.stats import norm, qmc

from reticent.inference.moment_model.settings import EVIDENCE_SEARCH

__all__ = ["sample_around_mode", "weigh_hypotheses", "weigh_models"]

Array = NDArray[np.float64]
Evidence = Callable[[Array], tuple[float, Array]]  # its logarithm, and the gradient


def weigh_hypotheses(
    evidence: Evidence, low: Array, high: Array, trials: int, most: int
) -> tuple[Array, Array, Array]:
    """Mode of the evidence, and points around it with their weights.

    Returns the highest point (p,), at most ``most`` points (k, p) of about twice ``trials``, and
    their weights (k,), which add up to one.
    """
    if not (high > low).any():
        return low, low[None, :], np.ones(1)
    return _weigh(evidence, low, high, trials, most)[:3]


def weigh_models(
    evidences: Sequence[Evidence], low: Array, high: Array, trials: int, most: int
) -> tuple[list[Array], NDArray[np.intp], Array, Array]:
    """The same for several models of equal prior odds, whose parameters are in the same box.

    Returns the highest point of each model; the number of the model of each point, (k,); the
    points, (k, p); and their weights, (k,). Models that hardly have any weight have no points.
    """
    found = [_weigh(evidence, low, high, trials, most) for evidence in evidences]
    totals = np.array([total for *_, total in found])
    odds = np.exp(totals - logsumexp(totals))
    kept = np.flatnonzero(odds > EVIDENCE_SEARCH.dropped_weight)
    weights = np.concatenate([odds[number] * found[number][2] for number in kept])
    numbers = np.repeat(kept, [len(found[number][2]) for number in kept])
    points = np.concatenate([found[number][1] for number in kept])
    return [best for best, *_ in found], numbers, points, weights / weights.sum()


def _weigh(
    evidence: Evidence, low: Array, high: Array, trials: int, most: int
) -> tuple[Array, Array, Array, float]:
    """Mode, points, their weights, and the logarithm of the mean evidence, up to a constant."""
    if not (high > low).any():
        return low, low[None, :], np.ones(1), evidence(low)[0]
    climb, full = _free_objective(evidence, low, high)
    low, high = low[high > low], high[high > low]
    places = qmc.Halton(len(low), scramble=False).random(2 * trials + 1)[1:]
    even = low + (high - low) * places[:trials]
    values = np.array([-climb(theta)[0] for theta in even])
    best = even[int(values.argmax())]
    top = float(values.max())
    for start in np.argsort(-values)[: EVIDENCE_SEARCH.ascents]:
        ascent = _climbed(climb, even[start], low, high)
        if -ascent.fun > top:
            best = ascent.x
            top = -float(ascent.fun)
    covariance = curvature_covariance(climb, best, low, high)
    lower = np.linalg.cholesky(covariance)
    tail = EVIDENCE_SEARCH.proposal_tail
    near = best + norm.ppf(places[trials:] * (1 - 2 * tail) + tail) @ lower.T
    points = np.vstack([even, near, best])
    drawn = len(points)
    inside = ((points >= low) & (points <= high)).all(axis=1)
    points = points[inside]
    values = np.array([-climb(theta)[0] for theta in points])
    distance = np.linalg.solve(lower, (points - best).T)
    normal = (
        -0.5 * (distance**2).sum(axis=0)
        - np.log(np.diag(lower)).sum()
        - 0.5 * len(low) * np.log(2 * np.pi)
    )
    proposal = np.logaddexp(normal, -np.log(high - low).sum()) - np.log(2)
    total = logsumexp(values - proposal)
    weights = np.exp(values - proposal - total)
    order = np.argsort(-weights, kind="stable")
    order = order[
        : min(
            most,
            int(np.searchsorted(np.cumsum(weights[order]), 1 - EVIDENCE_SEARCH.dropped_weight)) + 1,
        )
    ]
    return (
        full(best),
        np.array([full(theta) for theta in points[order]]),
        weights[order] / weights[order].sum(),
        float(total) - float(np.log(drawn)),
    )


def sample_around_mode(
    evidence: Evidence, start: Array, low: Array, high: Array, count: int
) -> tuple[Array, Array]:
    """Points around the mode that is reached from a start, and the logarithm of each one's weight.

    They are normal, by the curvature there; beyond the box, they are reflected at its border. A
    point's weight is the larger, the less likely its draw was. The mode and all points are on a
    grid: rounding, of machines and ascents that differ, must not decide between kernels.
    """
    if not (high > low).any():
        return low[None, :], np.zeros(1)
    climb, full = _free_objective(evidence, low, high)
    free = high > low
    low = low[free]
    high = high[free]
    best = _on_grid(_climbed(climb, start[free], low, high).x, low, high)
    lower = np.linalg.cholesky(curvature_covariance(climb, best, low, high))
    drawn = norm.ppf(qmc.Halton(len(best), scramble=False).random(count + 1)[1:])
    points = best + drawn @ lower.T
    points = np.where(
        points > high, 2 * high - points, np.where(points < low, 2 * low - points, points)
    )
    return np.array([full(point) for point in _on_grid(points, low, high)]), (drawn**2).sum(
        axis=1
    ) / 2


def _on_grid(points: Array, low: Array, high: Array) -> Array:
    return np.asarray(
        np.clip((points / EVIDENCE_SEARCH.grid).round() * EVIDENCE_SEARCH.grid, low, high)
    )


def _free_objective(
    evidence: Evidence, low: Array, high: Array
) -> tuple[Evidence, Callable[[Array], Array]]:
    """Negative log evidence of the free parameters; and all parameters, given the free ones."""
    inside = np.flatnonzero(high > low)

    def full(theta: Array) -> Array:
        point = low.copy()
        point[inside] = theta
        return point

    def climb(theta: Array) -> tuple[float, Array]:
        value, slope = evidence(full(theta))
        return -value, -slope[inside]

    return climb, full


def _climbed(climb: Evidence, start: Array, low: Array, high: Array) -> OptimizeResult:
    box = np.column_stack([low, high])
    options = {"maxiter": EVIDENCE_SEARCH.ascent_steps}
    return minimize(climb, start, jac=True, method="L-BFGS-B", bounds=box, options=options)


def curvature_covariance(climb: Evidence, best: Array, low: Array, high: Array) -> Array:
    """A covariance from the curvature at the highest point, nowhere wider than the box."""
    p = len(best)
    gradient = climb(best)[1]
    curvature = np.empty((p, p))
    for k in range(p):
        step = np.zeros(p)
        if best[k] + EVIDENCE_SEARCH.difference <= high[k]:
            step[k] = EVIDENCE_SEARCH.difference
        else:
            step[k] = -EVIDENCE_SEARCH.difference
        curvature[k] = (climb(best + step)[1] - gradient) / step[k]
    even = 12 / (high - low) ** 2  # one over the variance of a uniform distribution
    scaled = (curvature + curvature.T) / 2 / np.sqrt(np.outer(even, even))
    values, vectors = np.linalg.eigh(scaled)
    inverse = (
        vectors / np.clip(values, 1.0, EVIDENCE_SEARCH.max_curvature)
    ) @ vectors.T  # to be factorised whatever the evidence is
    return np.asarray(
        EVIDENCE_SEARCH.proposal_inflation**2 * inverse / np.sqrt(np.outer(even, even))
    )
