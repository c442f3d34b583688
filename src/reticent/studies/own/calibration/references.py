"""Models without privacy, by code that shares nothing with the private ones."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import KMeans
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.linear_model import LogisticRegression
from sklearn.mixture import GaussianMixture

__all__ = [
    "class_chances",
    "clusters_cost",
    "dense_regression_mean",
    "mixture_log_likelihood",
    "regression_mean",
    "upper_confidence_choices",
]

Array = NDArray[np.float64]
_LANDMARKS = 48  # a smooth function on the box has some ten degrees of freedom
_LENGTHS = (0.35, 0.5, 0.7, 1.0, 1.4, 2.0, 3.0)
_FACTORS = tuple(2.0**power for power in range(-4, 5))
_STARTS = 20


def _features(x: Array, landmarks: Array, length: float) -> Array:
    """Features whose products are an RBF kernel of variance 1, (len(x), landmarks)."""
    among = np.exp(-0.5 * ((landmarks[:, None] - landmarks) / length) ** 2)
    values, vectors = np.linalg.eigh(among)
    kept = values > 1e-9 * values[-1]
    across = np.exp(-0.5 * ((x[:, None] - landmarks) / length) ** 2)
    return np.asarray(across @ (vectors[:, kept] / np.sqrt(values[kept])))


def _landmarks(x: Array) -> Array:
    return np.linspace(x.min(), x.max(), _LANDMARKS)


def regression_mean(
    x: Array,
    y: Array,
    at: Array,
    *,
    constant: float,
    spread: float,
    noise: float,
    length: float | None,
    learn_noise: bool,
) -> Array:
    """Posterior mean at ``at`` of a Gaussian process, an RBF kernel and a constant.

    ``constant`` and ``spread`` are prior standard deviations. Without a length, length, spread and
    noise are those of the largest evidence among a few; ``learn_noise``: the noise alone.
    """
    lengths: Sequence[float] = _LENGTHS if length is None else (length,)
    spreads: Sequence[float] = _FACTORS if length is None else (1.0,)
    noises: Sequence[float] = _FACTORS if learn_noise or length is None else (1.0,)
    best = -math.inf
    mean = np.zeros(len(at))
    for one in lengths:
        phi = _features(x, _landmarks(x), one)
        phi_at = _features(at, _landmarks(x), one)
        for factor in spreads:
            scale = np.append(np.full(phi.shape[1], factor * spread), constant)
            design = np.column_stack([phi, np.ones(len(x))]) * scale
            values, vectors = np.linalg.eigh(design.T @ design)
            values = np.maximum(values, 0.0)
            moments = vectors.T @ (design.T @ y)
            for multiple in noises:
                variance = (multiple * noise) ** 2
                fit = (y @ y - np.sum(moments**2 / (values + variance))) / variance
                volume = np.sum(np.log1p(values / variance)) + len(y) * math.log(variance)
                evidence = -0.5 * float(fit + volume)
                if evidence > best:
                    best = evidence
                    weights = vectors @ (moments / (values + variance))
                    mean = (np.column_stack([phi_at, np.ones(len(at))]) * scale) @ weights
    return mean


def dense_regression_mean(X: Array, y: Array, at: Array, *, kernel: Any, noise: float) -> Array:
    """Posterior mean at ``at`` of an exact Gaussian process with this kernel."""
    model = GaussianProcessRegressor(kernel, alpha=noise**2, optimizer=None)
    return np.asarray(model.fit(X, y).predict(at))


def class_chances(
    x: Array, y: NDArray[np.int64], at: Array, *, length: float, spread: float
) -> Array:
    """Chances of class 1 at ``at``: logistic regression on features with a normal prior."""
    if len(np.unique(y)) < 2:
        return np.full(len(at), float(y[0]))
    phi = _features(x, _landmarks(x), length)
    model = LogisticRegression(C=spread**2, max_iter=1000).fit(phi, y)
    return np.asarray(model.predict_proba(_features(at, _landmarks(x), length))[:, 1])


def mixture_log_likelihood(X: Array, tests: Array, components: int, seed: int) -> float:
    """Mean log-density of test records; of one component by sample mean and covariance."""
    model = GaussianMixture(components, n_init=3, random_state=seed, reg_covar=1e-9).fit(X)
    return float(model.score(tests))


def clusters_cost(X: Array, clusters: int, seed: int) -> float:
    """Mean squared distance of the records from the nearest centre; the best of many starts."""
    model = KMeans(clusters, n_init=_STARTS, random_state=seed).fit(X)
    return float(model.inertia_) / len(X)


def upper_confidence_choices(
    candidates: Array,
    rewards: Array,
    *,
    constant: float,
    spread: float,
    noise: float,
    length: float,
    weight: float,
) -> NDArray[np.intp]:
    """Choices of GP-UCB that learns after every round: number of a candidate, (rounds,).

    ``candidates`` and ``rewards`` are (rounds, arms); the mean is that of an RBF kernel and a
    constant, whose posterior of the features' weights is updated round by round.
    """
    rounds, arms = candidates.shape
    phi = spread * _features(candidates.ravel(), _landmarks(candidates), length)
    phi = np.column_stack([phi, np.full(len(phi), constant)]).reshape(rounds, arms, -1)
    covariance = np.eye(phi.shape[2])
    mean = np.zeros(phi.shape[2])
    chosen = np.empty(rounds, dtype=np.intp)
    for i in range(rounds):
        projected = phi[i] @ covariance
        variance = np.sum(projected * phi[i], axis=1)
        chosen[i] = np.argmax(phi[i] @ mean + weight * np.sqrt(np.maximum(variance, 0.0)))
        row = projected[chosen[i]]
        total = variance[chosen[i]] + noise**2
        mean = mean + row * ((rewards[i, chosen[i]] - phi[i, chosen[i]] @ mean) / total)
        covariance = covariance - np.outer(row, row) / total
    return chosen
