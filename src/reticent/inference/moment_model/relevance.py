"""Relevance of inputs: factors on the prior variances of independent weights, by evidence.

A prior says how smooth a function is along every input alike, and how large its effects of one, two
and three inputs are. Releases that know more speak for some inputs and against others: the
variances become s·exp(D·t), with a row of D for each weight and a normal prior of t around zero
(automatic relevance determination; Rasmussen and Williams, section 5.1). Whether t is worth its
freedom is told by the ratio of the evidences with t (by Laplace's method) and without.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import expit

from reticent.inference.linalg import (
    SMALL_JITTER,
    cholesky,
    inverse_diagonal,
    inverse_from_cholesky,
    solve_lower,
    solve_upper,
)
from reticent.inference.moment_model.settings import RELEVANCE

__all__ = ["RelevanceModel", "learned_relevance", "mixed_factor"]

Array = NDArray[np.float64]


@dataclass(frozen=True)
class RelevanceModel:
    """What variances of weights may depend on.

    Attributes
    ----------
    exponents : (m, p) array
        D: what the logarithm of each variance changes by, per unit of each parameter.
    sds : (p,) array
        Prior standard deviations of the parameters t.
    """

    exponents: Array
    sds: Array


@dataclass(frozen=True)
class _Fit:
    log_evidence: float
    gradient: Array  # by the logarithms of the variances, (m,)
    mean: Array  # of the weights by the roots of their variances, (m,)
    lower: Array  # Cholesky factor (m, m) of the precision of the same


def learned_relevance(
    model: RelevanceModel, variances: Array, information: Array, pull: Array
) -> tuple[Array, float]:
    """Parameters t (p,) of the largest posterior, and the log odds that they are needed.

    Parameters
    ----------
    model : RelevanceModel
        What variances may depend on.
    variances : (m,) array
        Prior variances s of the weights where t is zero.
    information : (m, m) array
        Inverse covariance of what was observed about the weights.
    pull : (m,) array
        Information times what was observed.
    """
    sds = model.sds

    def objective(scaled: Array) -> tuple[float, Array]:
        fit = _fitted(variances * np.exp(model.exponents @ (sds * scaled)), information, pull)
        slope = sds * (model.exponents.T @ fit.gradient)
        return float(scaled @ scaled) / 2 - fit.log_evidence, scaled - slope

    without = _fitted(variances, information, pull)
    climbed = minimize(
        objective,
        np.zeros(len(sds)),
        jac=True,
        method="L-BFGS-B",
        bounds=[(-RELEVANCE.farthest, RELEVANCE.farthest)] * len(sds),
        options={"maxiter": RELEVANCE.steps},
    )
    # where an ascent ends differs between machines; the mode does not, nor its rounded place
    scaled = climbed.x
    for _ in range(RELEVANCE.newton_steps):
        scaled = _newton_step(model, scaled, variances, information, pull)
    scaled = np.round(scaled / RELEVANCE.grid) * RELEVANCE.grid
    found = variances * np.exp(model.exponents @ (sds * scaled))
    fit = _fitted(found, information, pull)
    slopes = model.exponents * sds
    curvature = np.eye(len(sds)) - slopes.T @ _curvature(fit) @ slopes
    eigenvalues = np.maximum(np.linalg.eigvalsh(curvature), 1.0)
    gain = fit.log_evidence - without.log_evidence
    log_bayes_factor = gain - scaled @ scaled / 2 - float(np.log(eigenvalues).sum()) / 2
    return sds * scaled, RELEVANCE.log_odds + float(log_bayes_factor)


def _newton_step(
    model: RelevanceModel, scaled: Array, variances: Array, information: Array, pull: Array
) -> Array:
    """Parameters (p,), by their standard deviations, nearer to the mode; where it curves down."""
    slopes = model.exponents * model.sds
    found = variances * np.exp(slopes @ scaled)
    fit = _fitted(found, information, pull)
    values, vectors = np.linalg.eigh(np.eye(len(scaled)) - slopes.T @ _curvature(fit) @ slopes)
    if values[0] <= RELEVANCE.grid:
        return scaled
    gradient = scaled - slopes.T @ fit.gradient
    step = vectors @ ((vectors.T @ gradient) / values)
    return np.clip(scaled - step, -RELEVANCE.farthest, RELEVANCE.farthest)


def mixed_factor(model: RelevanceModel, parameters: Array, log_odds: float) -> Array:
    """Factor (m,) on the variances: the mean of one, and of what the parameters say."""
    weight = float(expit(log_odds))
    return 1 - weight + weight * np.exp(model.exponents @ parameters)


def _fitted(variances: Array, information: Array, pull: Array) -> _Fit:
    root = np.sqrt(variances)
    precision = root[:, None] * information * root
    size = 1 + np.trace(precision) / len(root)
    precision.ravel()[:: len(root) + 1] += 1 + SMALL_JITTER * size
    lower = cholesky(precision, overwrite=True)
    half = solve_lower(lower, root * pull)
    whitened = solve_upper(lower, half)
    gradient = (inverse_diagonal(lower) - 1 + whitened**2) / 2
    log_evidence = float(half @ half / 2 - np.log(np.diag(lower)).sum())
    return _Fit(log_evidence, gradient, whitened, lower)


def _curvature(fit: _Fit) -> Array:
    """Second derivatives (m, m) of the log evidence by the logarithms of the variances."""
    inverse = inverse_from_cholesky(fit.lower)
    covariance = inverse + np.tril(inverse, -1).T
    curvature = covariance**2 / 2 + np.outer(fit.mean, fit.mean) * covariance
    curvature.ravel()[:: len(covariance) + 1] -= (np.diag(covariance) + fit.mean**2) / 2
    return curvature
