"""Law of the observation noise, as counts of residuals by their size show it.

Releases of clipped residuals tell what lies inside the clip. How many records lie how far outside,
and on which side, is counted once. By these counts a clip threshold is chosen, the level that
clips have moved is corrected, and what the counts leave open stands in the bands.

The law has a mass for each bin of sizes: that of a normal law, and a difference to it. Either there
is none, or it is a smooth function of the size (a Gaussian process); beside that each bin outside
two standard deviations may hold a rare part of some mass, most of them none. Both may be the same
on both sides of zero.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import erf, stdtr

from reticent.inference.moment_model.settings import NOISE_LAW

__all__ = ["NoiseLaw", "ResidualSizes", "fit_noise_law", "residual_edges"]

Array = NDArray[np.float64]
_TAIL_MASSES = np.concatenate([[0.0], np.geomspace(*NOISE_LAW.tail_masses)])


@dataclass(frozen=True, eq=False)
class ResidualSizes:
    """Counted residuals of one output.

    Attributes
    ----------
    counts : array (bins,)
        Noisy number of records in each bin.
    sd : float
        Standard deviation of the noise of each.
    edges : array (bins − 1,)
        Between bins, ascending, in half-ranges of y.
    explained : float
        Variance of the residuals that is not noise: of the function around their centre.
    """

    counts: Array
    sd: float
    edges: Array
    explained: float


def residual_edges(sd: float, longest: float) -> Array:
    """Edges between bins of residuals with a standard deviation ``sd``, up to the longest.

    Equal bins in the core, geometric ones outside; the same on both sides.
    """
    core = sd * np.arange(1, NOISE_LAW.core_bins + 1) * NOISE_LAW.core / NOISE_LAW.core_bins
    outside = max(math.log(longest / core[-1]) / math.log(NOISE_LAW.bin_ratio), 1.0)
    tail = core[-1] * NOISE_LAW.bin_ratio ** np.arange(1, math.ceil(outside) + 1)
    sizes = np.concatenate([core, tail])
    return np.concatenate([-sizes[::-1], [0.0], sizes])


@dataclass(frozen=True, eq=False)
class NoiseLaw:
    """Differences to a normal law in each bin of sizes, under several models.

    With or without a smooth difference, the same on both sides of zero or not.

    Attributes
    ----------
    sizes : array (bins,)
        Residual of each bin, in half-ranges of y, signed.
    widths : array (bins,)
        How far a residual of the bin may be from that: standard deviation.
    means : array (models, bins)
        Posterior mean of the difference of mass.
    covariances : array (models, bins, bins)
        Its covariance.
    log_weights : array (models,)
        Logarithms of the models' weights.
    """

    sizes: Array
    widths: Array
    means: Array
    covariances: Array
    log_weights: Array

    @classmethod
    def normal(cls) -> "NoiseLaw":
        """A law that nothing is known about but its variance."""
        return cls(np.zeros(1), np.zeros(1), np.zeros((1, 1)), np.zeros((1, 1, 1)), np.zeros(1))

    def bias_rows(self, r: Array, gain: Array) -> Array:
        """By how much a clip at each r moves the mean, per unit of mass; (thresholds, bins)."""
        clipped = np.clip(self.sizes, -r[:, None], r[:, None])
        return np.asarray(clipped / gain[:, None] - self.sizes)

    def moments(self) -> tuple[Array, Array]:
        """Mean (bins,) and covariance (bins, bins) of the differences."""
        weights = np.exp(self.log_weights - self.log_weights.max())
        weights /= weights.sum()
        mean = weights @ self.means
        apart = self.means - mean
        covariance = np.tensordot(weights, self.covariances, 1) + apart.T @ (
            weights[:, None] * apart
        )
        return mean, covariance

    def bias_moments(self, rows: Array, r: Array) -> tuple[Array, Array]:
        """Mean and variance (thresholds,) of what clips move the mean by."""
        mean, covariance = self.moments()
        inside = self._inside(r, mean)
        return rows @ mean, ((rows @ covariance) * rows).sum(axis=1) + inside

    def _inside(self, r: Array, mean: Array) -> Array:
        """Variance (thresholds,) by not knowing where in its bin a residual is."""
        cut = np.abs(self.sizes) > r[:, None]
        return np.asarray(cut @ (mean * self.widths) ** 2)

    def excess_variance(self, r: Array) -> Array:
        """By how much the second moment of residuals clipped at each r exceeds a normal law's."""
        mean, _ = self.moments()
        return np.asarray(np.minimum(np.abs(self.sizes), r[:, None]) ** 2 @ mean)

    def given_levels(self, levels: Array, variances: Array, rows: Array) -> "NoiseLaw":
        """The law once stages have seen levels that their clips have moved.

        ``levels`` and the ``variances`` of their noise (stages,); ``rows`` (stages, bins): of
        `bias_rows`.
        """
        precision = 1 / variances
        centred = rows - precision @ rows / precision.sum()
        information = centred.T @ (precision[:, None] * centred)
        evidence = centred.T @ (precision * levels)
        inner = np.eye(rows.shape[1]) + information @ self.covariances
        covariances = self.covariances @ np.linalg.inv(inner)
        surprises = evidence - self.means @ information
        steps = (covariances @ surprises[:, :, None])[:, :, 0]
        means = self.means + steps
        log_weights = (
            self.log_weights
            + self.means @ evidence
            - ((self.means @ information) * self.means).sum(axis=1) / 2
            + (surprises * steps).sum(axis=1) / 2
            - np.linalg.slogdet(inner)[1] / 2
        )
        return NoiseLaw(self.sizes, self.widths, means, covariances, log_weights)


def fit_noise_law(
    residuals: ResidualSizes,
    noise_variance: float,
    n: float,
    doubt: float,
    log_variance: tuple[float, float] | None = None,
    *,
    may_be_symmetric: bool = True,
) -> NoiseLaw:
    """Posterior of the law of the noise, given counts of residuals.

    ``noise_variance``: what looks like the variance if noise is normal; ``n``: number of records;
    ``doubt``: factor on the prior odds that noise is not normal; ``log_variance``: mean and
    standard deviation of the logarithm of the noise's variance a priori, if a rare part is to be
    the likelier, the less the core alone agrees with it; ``may_be_symmetric``: whether it is
    likely that both sides are the same.
    """
    sd = math.sqrt(noise_variance + residuals.explained)
    inner = residuals.edges / sd
    normal = np.diff(_with_ends((1 + erf(inner / math.sqrt(2))) / 2, 1.0))
    heavy = np.diff(_with_ends(stdtr(NOISE_LAW.degrees, inner), 1.0))
    density = _with_ends(np.exp(-(inner**2) / 2) / math.sqrt(2 * math.pi), 0.0)
    ends = np.concatenate([residuals.edges[:1], residuals.edges, residuals.edges[-1:]])
    sizes = (ends[1:] + ends[:-1]) / 2
    widths = (ends[1:] - ends[:-1]) / math.sqrt(12)
    # residuals of a normal law with another level (all that is explained may be of it), or another
    # variance
    shift = -np.diff(density) / sd
    spread = -np.diff(density * _with_ends(inner, 0.0)) / 2
    noise = np.diag((residuals.sd / n) ** 2 + normal / n)
    noise += residuals.explained * np.outer(shift, shift)
    noise += NOISE_LAW.variance_error**2 * np.outer(spread, spread)
    scale = NOISE_LAW.smooth_spread * (normal + heavy) / 2
    place = np.arcsinh(sizes / sd)
    correlation = np.exp(-np.abs(place[:, None] - place) / NOISE_LAW.smooth_length)
    smooth = np.outer(scale, scale) * correlation
    # what is explained need not be normal either
    fraction = noise_variance / sd**2
    noise += (1 - fraction) ** 2 * smooth
    smooth = fraction**2 * smooth
    rare = _RareParts(NOISE_LAW.core * sd, noise_variance, doubt, log_variance)
    observed = residuals.counts / n - normal
    half = len(sizes) // 2
    mirror = np.vstack([np.eye(half)[::-1], np.eye(half)])
    sides = [(np.eye(len(sizes)), NOISE_LAW.asymmetric_log_odds)]
    if may_be_symmetric:
        sides.append((mirror, 0.0))
    means = []
    covariances = []
    log_weights = []
    for prior, log_odds in (
        (np.zeros_like(smooth), 0.0),
        (smooth, NOISE_LAW.smooth_log_odds + math.log(doubt)),
    ):
        for bins, side_log_odds in sides:
            own = slice(len(sizes) - bins.shape[1], None)
            mean, covariance, evidence = _fit_masses(
                observed, bins, prior[own, own], noise, sizes[own], rare
            )
            means.append(bins @ mean)
            covariances.append(bins @ covariance @ bins.T)
            log_weights.append(evidence + log_odds + side_log_odds)
    weights = np.array(log_weights)
    return NoiseLaw(sizes, widths, np.array(means), np.array(covariances), weights - weights.max())


def _with_ends(values: Array, last: float) -> Array:
    """The values between 0 and a last one."""
    return np.concatenate([[0.0], values, [last]])


@dataclass(frozen=True)
class _RareParts:
    """Prior of rare parts of the noise.

    Attributes
    ----------
    least : float
        Size from which on there may be one in a bin.
    noise_variance : float
        Variance of the noise without them, if it is normal.
    doubt : float
        Factor on the prior odds that there is one.
    log_variance : pair of float, optional
        Mean and standard deviation of the logarithm of the noise's variance a priori.
    """

    least: float
    noise_variance: float
    doubt: float
    log_variance: tuple[float, float] | None

    def log_weights(self, sizes: Array) -> Array:
        """Logarithms of prior weights (bins, masses) in bins of these sizes."""
        odds = self.doubt * math.exp(NOISE_LAW.tail_log_odds) / (len(_TAIL_MASSES) - 1) / len(sizes)
        log_weights = np.log(np.where(_TAIL_MASSES > 0, odds, 1.0)) + np.zeros((len(sizes), 1))
        if self.log_variance is None:
            return log_weights
        mean, sd = self.log_variance
        total = self.noise_variance + _TAIL_MASSES * sizes[:, None] ** 2
        log_weights -= ((np.log(total) - mean) / sd) ** 2 / 2
        return np.asarray(log_weights - log_weights[:, :1])

    def fit(self, observed: Array, variances: Array, sizes: Array) -> tuple[Array, Array, float]:
        """Mean and variance (bins,) of the masses of rare parts, where they may be.

        And the logarithm of how much likelier they make what was observed.
        """
        if not len(observed):
            return np.zeros(0), np.zeros(0), 0.0
        misfit = (observed[:, None] - _TAIL_MASSES) ** 2 / variances[:, None]
        log_weights = self.log_weights(sizes) - misfit / 2
        largest = log_weights.max(axis=1)
        weights = np.exp(log_weights - largest[:, None])
        totals = weights.sum(axis=1)
        weights /= totals[:, None]
        mean = weights @ _TAIL_MASSES
        log_evidence = float((largest + np.log(totals) - log_weights[:, 0]).sum())
        return mean, weights @ _TAIL_MASSES**2 - mean**2, log_evidence


def _fit_masses(
    observed: Array, design: Array, prior: Array, noise: Array, sizes: Array, rare: _RareParts
) -> tuple[Array, Array, float]:
    """Mean (bins,), covariance (bins, bins) and log evidence of masses of a smooth and rare parts.

    ``observed`` is ``design`` times the masses, with ``noise``; ``prior`` (bins, bins): of the
    smooth part. A rare part is told by what is observed beyond that.
    """
    precision = np.linalg.inv(design @ prior @ design.T + noise)
    evidence = float(np.linalg.slogdet(precision)[1] - observed @ precision @ observed) / 2
    outside = np.abs(sizes) > rare.least
    information = np.einsum("ib,ij,jb->b", design, precision, design)
    masses = np.zeros(len(sizes))
    variances = np.zeros(len(sizes))
    masses[outside], variances[outside], rare_evidence = rare.fit(
        (design.T @ precision @ observed / information)[outside],
        1 / information[outside],
        sizes[outside],
    )
    rare_noise = (design * variances) @ design.T
    gain = prior @ design.T @ np.linalg.inv(design @ prior @ design.T + noise + rare_noise)
    mean = masses + gain @ (observed - design @ masses)
    left = np.eye(len(mean)) - gain @ design
    covariance = left @ (prior + np.diag(variances)) @ left.T + gain @ noise @ gain.T
    return mean, covariance, evidence + rare_evidence
