"""DP-SGD on random Fourier features, with the best settings a competent user could have chosen.

    standardise   a tenth of μ² buys noisy means and mean squares of all columns; where that says
                  little, the box is kept
    features      constant; inputs, up to 3 standard deviations and beyond; cosines and sines of 150
                  random projections with three length scales; scaled to vectors of length about 1
    train         noisy gradients of the squared error, or of softmax's −log likelihood, Poisson
                  samples (all records if there are few), the mean of the last third of the iterates

Each example's gradient is clipped at C. With vectors of length 1 and rate 1, T steps leave noise of
about T·C/(n·μ) in a prediction, whatever the number of features, so T·C is a fixed part of n·μ. All
constants were chosen on the tuning tasks.

Neighbours: one record replaced, as in reticent, or one added or removed, as is usual for DP-SGD and
the easier task. One example moves a step by 2C or by C, so that under replacement noise is twice as
large, and the rules for C and T see half of μ: on all records that is the problem for which they
were tuned, so nothing is tuned again.

With Poisson samples of share q, a step under replacement is counted by the pair that dp_accounting
takes for it (REPLACE_ONE),

    P = (1−q) N(0, σ²) + q N(−C, σ²)    against    Q = (1−q) N(0, σ²) + q N(C, σ²)

which is the worst. Given the other records' samples the step compares means g and g′ of at most C
instead of ∓C. For α ≥ 1 the divergence sup_S P(S) − αQ(S) is E_g (q − aX − bX′)₊ with a =
(1−q)(α−1), b = qα and X, X′ the densities of N(0), N(g′) over N(g): log-normal with mean one,
covariances of their logarithms (‖g‖², ‖g‖² − g·g′, ‖g − g′‖²)/σ². All second derivatives of this
price of a put option are ≥ 0, so it grows with each of the covariances (Black and Scholes's
equation, along the line between two covariance matrices); g′ = −g of length C is where all are
largest. P and Q mirror each other, so α < 1 follows.
"""

import math
from collections.abc import Callable
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from reticent.privacy.accounting.composition import calibrate
from reticent.privacy.bounds import Bounds

__all__ = ["Settings", "chances", "predict", "settings"]

Array = NDArray[np.float64]
Single = NDArray[np.float32]
_SHARE = 0.1  # of μ², for standardising
_WITHIN = 3.0  # standard deviations in which the cosines look at the inputs
_PROJECTIONS = 150
_LENGTHS = (0.5, 1.0, 2.0)  # in standard deviations, times √d
# rate of a softmax, and T·C·rate as a part of n·μ
_CLASS_CLIP = 0.3
_CLASS_RATE = 3.0
_CLASS_NOISE = 3.0
# shares of the squared length
_CONSTANT = 0.1
_LINEAR = 0.3
_WAVES = 0.6


class Settings:
    """What the public numbers n, ε and δ settle, and whether classes are to be told."""

    def __init__(
        self, n: int, epsilon: float, delta: float, replaced: bool, classes: bool = False
    ) -> None:
        exact = 1 / calibrate(epsilon, delta)
        # for what one example moves by its length
        if replaced:
            mu = exact / 2
        else:
            mu = exact
        self.replaced = replaced
        self.standardising = 1 / (exact * math.sqrt(_SHARE))  # noise, in units of the sensitivity
        usual = float(
            np.clip(0.3 * (n * mu / 100) ** (1 / 3), 0.2, 3.0)
        )  # in standard deviations of the output
        if classes:
            self.clip = _CLASS_CLIP
            self.rate = _CLASS_RATE
            part = _CLASS_NOISE
        else:
            self.clip = usual
            self.rate = 1.0
            part = 0.6
        self.steps = int(np.clip(part * n * mu / (self.clip * self.rate), 5, min(n, 2000)))
        # share of the records in a step
        if n < 8000:
            self.sampled = 1.0
        else:
            self.sampled = max(4000, n / 16) / n
        alone = (
            math.sqrt(self.steps / (1 - _SHARE)) / mu
        )  # noise of a step with all records, in units of C
        if self.sampled == 1:
            self.noise = alone
        else:
            self.noise = _subsampled(self, alone, epsilon, delta)


@lru_cache
def settings(
    n: int, epsilon: float, delta: float, replaced: bool, classes: bool = False
) -> Settings:
    """Give the settings, found once for all splits of a task."""
    return Settings(n, epsilon, delta, replaced, classes)


def _subsampled(chosen: Settings, alone: float, epsilon: float, delta: float) -> float:
    """Least noise, in units of C, with which all steps are (ε, δ)-DP, to half a per cent.

    The steps are sampled; the standardising counts as well.
    """
    from dp_accounting import NeighboringRelation
    from dp_accounting.pld import privacy_loss_distribution as pld

    if chosen.replaced:
        relation = NeighboringRelation.REPLACE_ONE
    else:
        relation = NeighboringRelation.ADD_OR_REMOVE_ONE
    grid = 1e-4 * max(1.0, epsilon)
    first = pld.from_gaussian_mechanism(chosen.standardising, value_discretization_interval=grid)

    def fits(noise: float) -> bool:
        step = pld.from_gaussian_mechanism(
            noise,
            sampling_prob=chosen.sampled,
            value_discretization_interval=grid,
            neighboring_relation=relation,
        )
        return bool(
            step.self_compose(chosen.steps).compose(first).get_epsilon_for_delta(delta) <= epsilon
        )

    low = chosen.sampled * alone  # what it would be if many small steps were Gaussian
    high = 1.05 * low
    while not fits(high):
        low = high
        high = 1.3 * high
    while high > 1.005 * low:
        middle = math.sqrt(low * high)
        if fits(middle):
            low = low
            high = middle
        else:
            low = middle
            high = high
    return high


def predict(
    X: Array,
    y: Array,
    X_new: Array,
    bounds: Bounds,
    epsilon: float,
    delta: float,
    seed: int,
    replaced: bool,
) -> Array:
    """Train on (X, y) and predict at ``X_new``.

    ``replaced``: which neighbours are protected.
    """
    rng = np.random.default_rng(seed)
    chosen = settings(len(y), epsilon, delta, replaced)
    low, high = np.array([*bounds.x, bounds.y[0]]).T
    middle = (low + high) / 2
    half = (high - low) / 2
    records = np.clip((np.column_stack([X, y]) - middle) / half, -1, 1)
    centre, scale = standardise(records, chosen, rng)
    records = (records - centre) / scale
    features = _features(X.shape[1], rng)
    weights = train(
        features(records[:, :-1]),
        records[:, -1:].astype(np.float32),
        chosen,
        rng,
        lambda values: values,
    )
    u = (np.clip((X_new - middle[:-1]) / half[:-1], -1, 1) - centre[:-1]) / scale[:-1]
    return middle[-1] + half[-1] * (centre[-1] + scale[-1] * (features(u) @ weights)[:, 0])


def chances(
    X: Array,
    y: Array,
    X_new: Array,
    bounds: Bounds,
    epsilon: float,
    delta: float,
    seed: int,
    replaced: bool,
) -> Array:
    """Train on inputs and classes, numbered from 0; class probabilities at ``X_new``."""
    rng = np.random.default_rng(seed)
    chosen = settings(len(y), epsilon, delta, replaced, True)
    low, high = np.array(bounds.x).T
    middle = (low + high) / 2
    half = (high - low) / 2
    records, new = (np.clip((one - middle) / half, -1, 1) for one in (X, X_new))
    centre, scale = standardise(records, chosen, rng)
    features = _features(X.shape[1], rng)
    target = np.eye(len(bounds.classes or ()), dtype=np.float32)[y.astype(int)]
    weights = train(features((records - centre) / scale), target, chosen, rng, softmax)
    return softmax(features((new - centre) / scale) @ weights).astype(np.float64)


def softmax(logits: Single) -> Single:
    """Probabilities of classes, one row a record."""
    grown = np.exp(logits - logits.max(axis=1, keepdims=True))
    return np.asarray(grown / grown.sum(axis=1, keepdims=True))


def standardise(records: Array, chosen: Settings, rng: np.random.Generator) -> tuple[Array, Array]:
    """Noisy centre and scale of each column.

    In each, (u, u²) is no longer than √2; two of them are no further apart than 2: (u−v)²(1+(u+v)²)
    with |u+v| ≤ 2−|u−v|.
    """
    n, columns = records.shape
    sd = chosen.standardising * math.sqrt((4 if chosen.replaced else 2) * columns) / n
    mean = records.mean(axis=0) + sd * rng.normal(size=columns)
    square = (records**2).mean(axis=0) + sd * rng.normal(size=columns)
    centre = (
        np.clip(mean, -1, 1) * 0.25 / (0.25 + sd * sd)
    )  # as if the centres of columns had a spread of a half
    variance = np.maximum(square - mean**2, 2 * sd)
    return centre, np.sqrt(np.clip(variance, 1e-4, 1))


def _features(d: int, rng: np.random.Generator) -> Callable[[Array], Single]:
    lengths = np.repeat(_LENGTHS, _PROJECTIONS // len(_LENGTHS)) * math.sqrt(d)
    frequencies = rng.normal(size=(d, _PROJECTIONS)) / lengths

    def features(u: Array) -> Single:
        inner = np.clip(u, -_WITHIN, _WITHIN)
        angles = inner @ frequencies
        waves = np.hstack([np.cos(angles), np.sin(angles)]) * math.sqrt(_WAVES / _PROJECTIONS)
        linear = np.hstack([inner, u - inner]) * math.sqrt(_LINEAR / d)
        return np.hstack([np.full((len(u), 1), math.sqrt(_CONSTANT)), linear, waves]).astype(
            np.float32
        )

    return features


def train(
    phi: Single,
    target: Single,
    chosen: Settings,
    rng: np.random.Generator,
    link: Callable[[Single], Single],
) -> Single:
    """Noisy gradient descent.

    A gradient is φ⊗error, a column for each output: it is clipped by shortening the error to C/‖φ‖.
    """
    n, size = phi.shape
    most = chosen.clip / np.linalg.norm(phi, axis=1)
    weights, total = (np.zeros((size, target.shape[1]), np.float32) for _ in range(2))
    counted = max(1, chosen.steps // 3)
    for step in range(chosen.steps):
        rows = (
            slice(None) if chosen.sampled == 1 else np.flatnonzero(rng.random(n) < chosen.sampled)
        )
        part = phi[rows]
        limit = most[rows]
        error = link(part @ weights) - target[rows]
        length = np.linalg.norm(error, axis=1)
        error *= (limit / np.maximum(length, limit))[:, None]
        noise = chosen.clip * chosen.noise * rng.standard_normal(weights.shape, dtype=np.float32)
        weights = weights - np.float32(chosen.rate) * (part.T @ error + noise) / np.float32(
            n * chosen.sampled
        )
        if step >= chosen.steps - counted:
            total += weights
    return total / np.float32(counted)
