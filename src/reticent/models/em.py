"""Expectation–maximisation by releases: each step asks for one joint release of moments, the rest is computed from it.

`step` is the general scheme: a mixture says which residuals it wants, one release tells what they are, and the M-step moves the
mixture. Stages differ in what second moments they ask for, and in how many of the paid releases one step takes.
"""

import math

import numpy as np
from numpy.typing import NDArray

from reticent.maths.mixture import Gains, Mixture, corrected, gains, grid_mixture, merged, positive, reach, supported
from reticent.models.responsibilities import CellCounts, CentredGram, LengthCounts, metric, residual_moments, told
from reticent.privacy.curator import Oracle

__all__ = ["axes", "better", "centres", "closer", "from_grid", "pooled", "step"]

Array = NDArray[np.float64]
LEAST = 1e-5  # standard deviation of a column that does not vary, in half-ranges
_EDGES = 2.0 ** (np.arange(-47, 1) / 4)  # of lengths, as shares of the longest
_QUANTILE, _CLIP, _SEEN = 0.9, 0.6, 3.0
_SIDE = 0.35
_FINENESS, _LEAST_CUTS, _MOST_CUTS = 0.22, 8, {1: 256, 2: 48}  # of a histogram: records of a cell over their noise
_SIDE_OF_GRID = 4.0  # standard deviations
_NARROWEST = 0.1  # share of a variance that parts leave within them
_SURE = 4.0  # standard deviations of noise that a count is taken to be at least
_TIED_WEIGHTS, _WEIGHTS = (1, 4, 4), (1, 2, 8)  # of counts, sums and second moments


def pooled(curator: Oracle, rounds: tuple[int, ...]) -> tuple[Mixture, float]:
    """One normal law for all records, and the noise that a count has if its release takes one of the paid ones.

    ``rounds``: paid releases for lengths, for a first look, and for each look at residuals.
    """
    d, n, longest = len(curator.bounds.x), curator.n, math.sqrt(curator.bounds.radius2)
    here = metric(np.eye(d), np.zeros((1, d)))
    edges = longest * _EDGES
    lengths = curator.release(LengthCounts(here, tuple(edges.tolist())), times=rounds[0])
    found, noise = np.cumsum(lengths.value)[:-1], float(lengths.sd[0]) * np.sqrt(np.arange(1, len(edges) + 1))
    # where noise is not seen through, a few records seem to lie at a point
    within = np.flatnonzero((found >= _QUANTILE * n) & (found >= _SEEN * noise))
    radius = float(edges[within[0]] if len(within) else edges[-1])
    release = curator.release(CentredGram(here, radius, _SIDE), times=rounds[1])
    moments, sd = release.matrix() / n, float(release.matrix_sd()[0, 1]) / n * radius**2
    mean = np.clip(moments[0, 1:] / _SIDE * radius, -1.0, 1.0)
    noisy = moments[1:, 1:] * radius**2 - np.outer(mean, mean)
    level = max(float(np.trace(noisy)) / d, LEAST**2)
    _, values, vectors = corrected(_PLAIN, np.zeros(d), noisy / level, (sd / level) ** 2)
    spread = positive(level * (vectors * values) @ vectors.T, max(sd, LEAST**2))
    one = Mixture(np.ones(1), mean[None], np.asarray(np.linalg.cholesky(spread))[None])
    for times in rounds[2:]:
        one = closer(curator, one, times)
    return one, float(lengths.sd[0]) * math.sqrt(rounds[0])


_PLAIN = Gains(1.0, 1.0, 1.0, 1.0, 1.0)  # of vectors that are not shortened


def closer(curator: Oracle, one: Mixture, times: int) -> Mixture:
    """A normal law, after a look at its whitened residuals."""
    d, n = one.means.shape[1], curator.n
    gain = gains(d, reach(d, _CLIP))
    where = metric(one.maps[0], one.means @ one.maps[0])
    release = curator.release(CentredGram(where, gain.radius, _SIDE), times=times)
    moments, sd = release.matrix() / n, float(release.matrix_sd()[0, 1]) / n
    shift, *found = corrected(gain, moments[0, 1:] / _SIDE, moments[1:, 1:], sd**2 + gain.level**2 / n)
    return Mixture(one.weights, one.means + one.roots[0] @ shift, moved(one.roots[0], *found)[None])


def moved(root: Array, values: Array, vectors: Array) -> Array:
    """Root of a covariance whose whitened residuals have a covariance with these eigenvalues and eigenvectors."""
    new = root @ (vectors * np.sqrt(np.maximum(values, _NARROWEST)))
    spread, axes = np.linalg.eigh(new @ new.T)
    return np.asarray((axes * np.sqrt(np.maximum(spread, LEAST**2))) @ axes.T)


def centres(curator: Oracle, one: Mixture, parts: int, steps: tuple[int, int], times: int) -> Mixture:
    """Weights and centres of parts, with one covariance: many centres in the leading directions, joined, moved again."""
    mean, d = one.means[0], one.means.shape[1]
    values, vectors = np.linalg.eigh(one.covariances[0])
    q = min(d, max(2, math.ceil(1.5 * parts)))
    down = vectors[:, -q:] / np.sqrt(values[-q:])  # y = (x − m)·down has mean 0 and covariance I
    up = vectors[:, -q:] * np.sqrt(values[-q:])
    rng = np.random.default_rng(0)  # public: the same for all records
    weights, means = np.full(3 * parts, 1 / (3 * parts)), rng.normal(size=(3 * parts, q))
    radius, origin = reach(q, _CLIP), mean @ down
    gain = gains(q, radius)
    for again in range(sum(steps)):
        if again == steps[0]:
            whiten = np.linalg.inv(_within(weights, means)).T
            weights, joined = merged(weights, means @ whiten, parts)
            means = joined @ np.linalg.inv(whiten)
        hard = again < steps[0]  # soft shares would draw all centres together, where they say nothing
        root = np.eye(q) if hard else _within(weights, means)
        whiten = np.linalg.inv(root).T
        where = metric(down @ whiten, (origin + means) @ whiten)
        levels = np.zeros(len(means)) if hard else np.log(weights)
        asked = residual_moments(where, radius=np.full(len(means), radius), levels=levels, hard=hard)
        found = told(curator.release(asked, times=times))
        size = np.maximum(found.counts, _SURE * found.counts_sd)
        means = means + (found.first / (size[:, None] * gain.mean)) @ root.T
        weights = np.maximum(found.counts, found.counts_sd)
        weights = weights / weights.sum()
    apart = means @ up.T
    white = (apart - weights @ apart) @ one.maps[0]
    within = positive(np.eye(d) - white.T @ (white * weights[:, None]), _NARROWEST)
    root = moved(one.roots[0], *np.linalg.eigh(within))
    return Mixture(weights, mean + apart, np.repeat(root[None], len(means), axis=0))


def _within(weights: Array, means: Array) -> Array:
    """Root of the covariance within parts, where that of all records is I."""
    middle = weights @ means
    between = (means - middle).T @ ((means - middle) * weights[:, None])
    return np.asarray(np.linalg.cholesky(positive(np.eye(means.shape[1]) - between, _NARROWEST)))


def step(
    curator: Oracle,
    mixture: Mixture,
    times: int,
    *,
    kind: str,
    keep: float,
    weights: tuple[int, int, int] = _WEIGHTS,
) -> Mixture:
    """One step of expectation–maximisation in all directions. ``kind``: of covariance; ``keep``: of what is known of centres.

    ``weights``: of counts, sums and second moments, unless the covariance is tied.
    """
    parts, d = mixture.means.shape
    n = curator.n
    gain = gains(d, reach(d, _CLIP))
    tied = kind == "tied"
    maps = mixture.maps[0] if tied else mixture.maps
    at = np.einsum("kd,kdp->kp", mixture.means, mixture.maps)
    second = {"full": "full", "tied": "full", "diag": "diagonal", "spherical": "trace"}[kind]
    statistic = residual_moments(
        metric(maps, at),
        radius=np.full(parts, gain.radius),
        levels=mixture.levels,
        second=second,
        together=tied,
        weights=_TIED_WEIGHTS if tied else weights,
    )
    found = told(curator.release(statistic, times=times))
    size = np.maximum(found.counts, _SURE * found.counts_sd)
    chances = np.maximum(found.counts, found.counts_sd)
    chances = chances / chances.sum()
    shift = found.first / size[:, None] / gain.mean
    noise2 = (found.first_sd / size / gain.mean) ** 2 + 1 / size
    spread = np.maximum((shift**2).mean(axis=1) - noise2, 0.0)
    share = np.maximum(spread / (spread + noise2), keep)[:, None]
    shift = shift * share
    means = mixture.means + np.einsum("kp,kdp->kd", shift, mixture.roots)
    if tied:
        total = found.second[0] / n
        around = np.einsum("k,kp,kq->pq", chances, shift, shift) * gain.spread
        _, *both = corrected(gain, np.zeros(d), total - around, (found.second_sd / n) ** 2 + gain.level**2 / n)
        roots = np.repeat(moved(mixture.roots[0], *both)[None], parts, axis=0)
        return Mixture(chances, means, roots)
    each = []
    for k in range(parts):
        noise = (found.second_sd / size[k]) ** 2 + gain.level**2 / size[k]
        about = found.second[k] / size[k]
        _, *both = corrected(gain, shift[k] * gain.mean, np.squeeze(about), noise)
        each.append(moved(mixture.roots[k], *both))
    return Mixture(chances, means, np.array(each))


def from_grid(curator: Oracle, one: Mixture, parts: int, times: int, noise: float) -> Mixture:
    """A mixture fitted to one noisy histogram of whitened records; for one or two dimensions."""
    d = one.means.shape[1]
    wanted = (_FINENESS * curator.n * math.sqrt(times) / noise) ** (1 / d)
    cuts = int(min(max(wanted, _LEAST_CUTS), _MOST_CUTS[d]))
    where = metric(one.maps[0], one.means @ one.maps[0])
    counts = curator.release(CellCounts(where, _SIDE_OF_GRID, cuts), times=times)
    width = 2 * _SIDE_OF_GRID / cuts
    line = (np.arange(cuts) + 0.5) * width - _SIDE_OF_GRID
    points = np.stack(np.meshgrid(*[line] * d, indexing="ij"), axis=-1).reshape(-1, d)
    found = grid_mixture(points, supported(counts.value.reshape((cuts,) * d), float(counts.sd[0])), width, parts)
    return Mixture(found.weights, one.means + found.means @ one.roots[0].T, one.roots[0] @ found.roots)


def axes(mixture: Mixture, *, spherical: bool) -> Mixture:
    """The mixture with covariances along the columns only, or the same in all directions."""
    variances = np.diagonal(mixture.covariances, axis1=1, axis2=2)
    if spherical:
        variances = np.repeat(variances.mean(axis=1, keepdims=True), variances.shape[1], axis=1)
    return Mixture(mixture.weights, mixture.means, np.array([np.diag(np.sqrt(v)) for v in variances]))


def better(curator: Oracle, mixture: Mixture, other: Mixture, times: int) -> bool:
    """Whether the records are rather from the first mixture than from the other: the mean chance of that, given even odds."""
    both = Mixture(
        np.concatenate([mixture.weights, other.weights]) / 2,
        np.vstack([mixture.means, other.means]),
        np.concatenate([mixture.roots, other.roots]),
    )
    at = np.einsum("kd,kdp->kp", both.means, both.maps)
    radius = np.full(len(at), reach(at.shape[1], _CLIP))
    statistic = residual_moments(metric(both.maps, at), radius=radius, levels=both.levels, weights=(2**20, 1, 0))
    counts = told(curator.release(statistic, times=times)).counts
    own = len(mixture.weights)
    return bool(counts[:own].sum() > counts[own:].sum())
