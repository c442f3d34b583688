"""Environments for bandits, defined here since the paper leaves arms, noise and scales open.

All rewards lie about [0, 1].

gp-sum       Sec 6.1 of the GP bandit paper: f(x) = Σ α_i k(x_i, x), four points in the disc of
             radius 2, α in the L1 ball, RBF of length 1, drawn until 1 % of the disc has f ≥ .8 and
             20 % has f ≤ .6. Each round one candidate with f ≥ .8, the others with f ≤ .6;
             Bernoulli rewards; T = 1024
camel        six-hump camel on [−2, 2] × [−1, 1] candidates evenly from the box; f scaled so that
             its least and
styblinski   Styblinski–Tang on [−5, 5]²⁰ largest value at 100,000 points are 0 and 1; normal noise
             of
michalewicz  Michalewicz on [0, π]¹⁰                sd .1; T = 10,000
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from reticent.privacy.bounds import Bounds

__all__ = ["ENVIRONMENTS", "Environment", "environment"]

Array = NDArray[np.float64]
ARMS = 25


@dataclass(frozen=True)
class Environment:
    """A reward function, where candidates come from, and how rewards scatter."""

    name: str
    box: tuple[tuple[float, float], ...]
    rounds: int
    f: Callable[[Array], Array]
    draw: Callable[[np.random.Generator, int, int], Array]
    binary: bool = False

    @property
    def bounds(self) -> Bounds:
        """What a bandit is told."""
        return Bounds(x=list(self.box), y=(0.0, 1.0))

    def values(self, candidates: Array) -> Array:
        """f at candidates, whatever the shape before the last axis."""
        return self.f(candidates.reshape(-1, len(self.box))).reshape(candidates.shape[:-1])

    def rewards(self, rng: np.random.Generator, values: Array) -> Array:
        """Rewards where the function has these values."""
        if self.binary:
            return (rng.uniform(size=values.shape) < values).astype(np.float64)
        return np.asarray(values + 0.1 * rng.normal(size=values.shape))


def camel(x: Array) -> Array:
    """Minus the six-hump camel function; its maximum is 1.0316."""
    a, b = x.T
    return np.asarray(-((4 - 2.1 * a**2 + a**4 / 3) * a**2 + a * b + (4 * b**2 - 4) * b**2))


def styblinski(x: Array) -> Array:
    """Minus the Styblinski-Tang function; its maximum is 39.17 an input."""
    return np.asarray(-0.5 * (x**4 - 16 * x**2 + 5 * x).sum(axis=1))


def michalewicz(x: Array) -> Array:
    """Minus the Michalewicz function with m = 10."""
    i = np.arange(1, x.shape[1] + 1)
    return np.asarray((np.sin(x) * np.sin(i * x**2 / math.pi) ** 20).sum(axis=1))


def _scaled(
    name: str, raw: Callable[[Array], Array], box: tuple[tuple[float, float], ...]
) -> Environment:
    low, high = np.array(box).T
    values = raw(np.random.default_rng(1).uniform(low, high, size=(100_000, len(box))))
    least = values.min()
    span = np.ptp(values)

    def draw(rng: np.random.Generator, rounds: int, arms: int) -> Array:
        return rng.uniform(low, high, size=(rounds, arms, len(box)))

    return Environment(name, box, 10_000, lambda x: (raw(x) - least) / span, draw)


def _disc(rng: np.random.Generator, n: int) -> Array:
    angle = rng.uniform(0, 2 * math.pi, n)
    radius = 2 * np.sqrt(rng.uniform(size=n))
    return np.column_stack([radius * np.cos(angle), radius * np.sin(angle)])


def _gp_sum(seed: int) -> Environment:
    rng = np.random.default_rng([seed, 61])
    while True:
        centres, parts = _disc(rng, 4), rng.exponential(size=5)
        alpha = np.sign(rng.normal(size=4)) * parts[:4] / parts.sum()

        def f(x: Array, centres: Array = centres, alpha: Array = alpha) -> Array:
            squares = ((x[:, None] - centres) ** 2).sum(axis=-1)
            return np.clip(np.exp(-squares / 2) @ alpha, 0.0, 1.0)

        values = f(_disc(rng, 2000))
        if np.mean(values >= 0.8) >= 0.01 and np.mean(values <= 0.6) >= 0.2:
            break
    points = _disc(rng, 20_000)
    values = f(points)
    good = points[values >= 0.8]
    bad = points[values <= 0.6]

    def draw(rng: np.random.Generator, rounds: int, arms: int) -> Array:
        found = bad[rng.integers(len(bad), size=(rounds, arms))]
        found[np.arange(rounds), rng.integers(arms, size=rounds)] = good[
            rng.integers(len(good), size=rounds)
        ]
        return found

    return Environment("gp-sum", ((-2.0, 2.0),) * 2, 1024, f, draw, binary=True)


ENVIRONMENTS = ("gp-sum", "camel", "styblinski", "michalewicz")


def environment(name: str, seed: int) -> Environment:
    """One of ``ENVIRONMENTS``; the seed draws the function of gp-sum."""
    if name == "gp-sum":
        return _gp_sum(seed)
    if name == "camel":
        return _scaled(name, camel, ((-2.0, 2.0), (-1.0, 1.0)))
    if name == "styblinski":
        return _scaled(name, styblinski, ((-5.0, 5.0),) * 20)
    return _scaled(name, michalewicz, ((0.0, math.pi),) * 10)
