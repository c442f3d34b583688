"""Gaussian mixtures from noisy moments of clipped residuals.

Pure functions of public numbers and releases. The norm of a record's residual z = A(x − μ) is
clipped at r before it is released, u = z/max(‖z‖, r). For z ~ N(0, I) the moments of the clipped z
are known, and so is how they follow small changes of mean and covariance: E[u] and E[uuᵀ], released
with noise, show by how much the guess (μ, A) is wrong. At the true mixture responsibilities change
nothing of this: E[γ_k(x) h(x)] = π_k E_k[h(x)] for every h.
"""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import uniform_filter
from scipy.special import gammaln, logsumexp
from scipy.stats import chi2, f

from reticent.inference.mixtures.settings import MIXTURE_MOMENTS
from reticent.inference.moment_model.gram_estimation import denoise_spectrum
from reticent.memo import memo
from reticent.number_kinds import Numerical

__all__ = [
    "ClipGains",
    "LengthHistogram",
    "NormalMixture",
    "chi_quantile",
    "clamp_eigenvalues",
    "clip_edges",
    "clip_gains",
    "correct_moments",
    "count_deviance",
    "grid_mixture",
    "map_estimate",
    "merge_components",
    "significant_counts",
]

Array = NDArray[np.float64]
_EDGES_PER_OCTAVE: Numerical[int] = 4  # of a histogram of lengths


@dataclass(frozen=True)
class ClipGains:
    """What clipping of the norm at r leaves, in units of r.

    Of a mean, of I, and of changes of I (their trace, and the rest).
    """

    radius: float
    mean_gain: float
    identity_moment: float
    deviation_gain: float
    trace_gain: float
    beyond: float = 0.0
    """Share of lengths that are clipped, if the guess is right."""


@memo(64)
def chi_quantile(d: int, probability: float) -> float:
    """Norm that a vector (d,) from N(0, I) stays within with this probability."""
    return float(np.sqrt(chi2.ppf(probability, d)))


def clip_edges(first: float, longest: float) -> Array:
    """Edges of lengths, from a quarter of the first threshold to one that no length exceeds.

    Finely up to four times the first; then each is twice the one before: few bins have less noise
    together, and far away it matters little where exactly a threshold is.
    """
    fine = np.arange(-2 * _EDGES_PER_OCTAVE, 2 * _EDGES_PER_OCTAVE) / _EDGES_PER_OCTAVE
    octaves = math.ceil(math.log2(max(longest / first, 8.0)))
    return np.asarray(first * 2.0 ** np.concatenate([fine, np.arange(2, octaves + 1)]))


@dataclass(frozen=True, eq=False)
class LengthHistogram:
    """Noisy numbers of records with lengths up to each edge.

    Attributes
    ----------
    edges : array (J,)
        Upper ends of the bins; no length exceeds the last.
    counts : array (J,)
    count_sd : float
        Standard deviation of the error of each count, which is cut to whole records.
    noise_sd : float
        Standard deviation of the noise alone.
    n : float
        Number of records.
    """

    edges: Array
    counts: Array
    count_sd: float
    noise_sd: float
    n: float

    def best_clip(
        self,
        thresholds: Array,
        noise2: Array,
        gain: Array,
        d: int | None = None,
        *,
        hidden: bool = False,
    ) -> float:
        """The clip threshold (of T) with which bias and noise of E‖z‖² are least.

        Of a threshold r, E‖z‖² is estimated by E[min(‖z‖, r)²]/gain and a constant, with which
        there is no bias for normal z (d,); without ``d``, for z that are no longer than r.
        ``noise2``, (T,) as ``gain``: squared noise of the estimate. The bias is estimated from the
        counts, as far as these stand out from their noise; where they do not and ``hidden``, it is
        what a law of lengths may have that is not quite the normal one's. A bias that is seen may
        be all in one direction; one that is hidden is expected in all d alike, and its square in a
        matrix (d, d) is a d-th. Of equal thresholds the widest is chosen: as the budget grows, no
        record is clipped.
        """
        squares = self.edges**2
        middle = (squares + np.append(0.0, squares[:-1])) / 2
        bins, counts, sd = self._seen_bins(middle)

        def told(squared: Array) -> Array:  # (thresholds, bins)
            clipped = np.minimum(squared, (thresholds**2)[:, None])
            return np.asarray(squared - clipped / gain[:, None])

        weights = told(bins) / self.n
        significant = MIXTURE_MOMENTS.significant_sd * np.sqrt(weights**2 @ sd**2)
        bias = weights @ counts
        expected2 = np.zeros(len(thresholds))
        if d is not None:
            normal = np.diff(chi2.cdf(squares, d), prepend=0.0)
            bias = bias - told(middle) @ normal
            if hidden:
                expected2 = self._expected_bias2(told(middle), normal, d)
        cost = np.maximum(np.maximum(bias**2 - significant**2, 0.0), expected2) + noise2
        return float(thresholds[cost <= cost.min()][-1])

    def _expected_bias2(self, weights: Array, normal: Array, d: int) -> Array:
        """Expected square of a bias (T,) given the counts, for an excess in all d directions alike.

        ``weights`` (T, J): bias for each share of all records in a bin beyond the ``normal`` (J,)
        share. A priori shares are about the normal ones, and depart from them as a Dirichlet law
        about those of a t distribution does: one about the normal shares would allow next to
        nothing in far bins, where they are next to nothing. Shares and noise are taken for normal.
        """
        tailed = np.diff(f.cdf(self.edges**2 / d, d, MIXTURE_MOMENTS.length_freedom), prepend=0.0)
        prior = np.diag(tailed) - np.outer(tailed, tailed)
        prior /= 1 + MIXTURE_MOMENTS.length_concentration
        values, axes = np.linalg.eigh(prior)
        values = np.maximum(values, 0.0)
        trust = values / (values + (self.count_sd / self.n) ** 2)
        departure = axes @ (trust * (axes.T @ (self.counts / self.n - normal)))
        left = (axes * (values * (1 - trust))) @ axes.T
        spread = np.einsum("tj,jk,tk->t", weights, left, weights)
        return np.asarray(((weights @ departure) ** 2 + spread) / d)

    def holding(self) -> NDArray[np.bool_]:
        """Which edges (J,) half of the records are within; the last one holds all.

        Records within an edge are those counted there, and all but those counted beyond: of the
        two, the mean that has least noise, above which they must be.
        """
        many = len(self.counts)
        bins = np.arange(1, many + 1)
        counted = np.cumsum(self.counts)
        others = self.n - (counted[-1] - counted)
        within = ((many - bins) * counted + bins * others) / many
        noise = self.count_sd * np.sqrt(bins * (many - bins) / many)
        least = np.maximum(self.n / 2, MIXTURE_MOMENTS.visible_sd * noise)
        first = int(np.argmax(within > least))
        return np.asarray(np.arange(many) >= first)

    def median(self) -> float:
        """The length that half of the records do not exceed, even within a bin."""
        ends = np.maximum.accumulate(np.maximum(np.cumsum(self.counts), 0.0))
        half = min(self.n, float(ends[-1])) / 2
        return float(np.interp(half, np.append(0.0, ends), np.append(0.0, self.edges)))

    def _seen_bins(self, middle: Array) -> tuple[Array, Array, Array]:
        """Squared lengths, counts and their noise: of bins, and of all records beyond them.

        Bins end where the number of records beyond is last seen. These records are taken to be in
        one bin, whose place is averaged over its posterior probabilities given the counts.
        """
        many = len(self.counts)
        inside = np.arange(many)  # bins before each
        longer = np.cumsum(self.counts[::-1])[::-1]  # records in each bin and beyond
        shorter = np.cumsum(self.counts) - self.counts
        beyond = (inside * longer + (many - inside) * (self.n - shorter)) / many
        beyond_sd = self.count_sd * np.sqrt(inside * (many - inside) / many)
        extent = int(np.flatnonzero(beyond > MIXTURE_MOMENTS.visible_sd * beyond_sd)[-1])
        log_odds = self.counts[extent:] * beyond[extent] / self.count_sd**2
        chances = np.exp(log_odds - log_odds.max())
        place = chances @ middle[extent:] / chances.sum()
        return (
            np.append(middle[:extent], place),
            np.append(self.counts[:extent], beyond[extent]),
            np.append(np.full(extent, self.count_sd), beyond_sd[extent]),
        )


@memo(64)
def clip_gains(d: int, radius: float) -> ClipGains:
    """Moments of z/max(‖z‖, r) for z ~ N(δ, I + E), to first order in δ and E."""
    r2 = radius * radius
    beyond = float(chi2.sf(r2, d))
    inverse = 0.0  # E[r/‖z‖; ‖z‖ > r]
    if d > 1:
        inverse = (
            radius
            * math.exp(float(gammaln((d - 1) / 2) - gammaln(d / 2)))
            / math.sqrt(2)
            * float(chi2.sf(r2, d - 1))
        )
    mean = 1 - beyond + inverse * (1 - 1 / d)
    level = float(chi2.cdf(r2, d + 2)) + r2 * beyond / d
    fourth = -r2 * beyond / (d * (d + 2))
    return ClipGains(
        radius,
        mean / radius,
        level / r2,
        (level + 2 * fourth) / r2,
        (level + (2 + d) * fourth) / r2,
        beyond,
    )


def correct_moments(
    gain: ClipGains, first: Array, second: Array, noise2: float
) -> tuple[Array, Array, Array]:
    """δ, and eigenvalues and eigenvectors of I + E, of z ~ N(δ, I + E).

    From noisy means of u and of uuᵀ, or of its diagonal (a vector), or of its trace (a number).
    ``noise2``: variance of the noise off the diagonal; on it, it is twice that. The trace of E is
    taken as it is. What else is on the diagonal is shrunk as the noise asks for, and what is off it
    by its spectrum.
    """
    d = len(first)
    shift = first / gain.mean_gain
    squares = shift**2
    noise2 = noise2 / gain.deviation_gain**2
    # moments follow large changes as well as small ones where no length is clipped
    least = min(
        max(math.sqrt(noise2 * d) / 2, min(MIXTURE_MOMENTS.min_variance_factor, gain.beyond)),
        MIXTURE_MOMENTS.noisy_min_variance_factor,
    )
    most = max(MIXTURE_MOMENTS.max_variance_factor, gain.radius**2)
    if second.ndim == 0:
        level = 1 + (float(second) / d - gain.identity_moment) / gain.trace_gain - squares.sum() / d
        return shift, np.full(d, np.clip(level, least, most)), np.eye(d)
    if second.ndim == 1:
        diagonal = second
    else:
        diagonal = np.diag(second)
    middle = float(diagonal.mean())
    deviation = (diagonal - middle) / gain.deviation_gain - squares
    deviation = deviation - deviation.mean()
    signal = max(float(deviation @ deviation) / d - 2 * noise2, 0.0)
    values = (
        deviation * signal / (signal + 2 * noise2)
        + (middle - gain.identity_moment) / gain.trace_gain
        - squares.sum() / d
    )
    vectors = np.eye(d)
    if second.ndim == 2:
        off = second / gain.deviation_gain - np.outer(shift, shift)
        np.fill_diagonal(off, 0.0)
        # a sum of squares with standard deviation 2·d·noise2 from noise
        signal_squares = float((off**2).sum()) - noise2 * d * (d - 1)
        if signal_squares > 0:
            kept = max(1 - MIXTURE_MOMENTS.significant_sd * 2 * d * noise2 / signal_squares, 0.0)
        else:
            kept = 0.0
        if kept > 0:  # else there is only noise off the diagonal, which has its eigenvectors
            values, vectors = np.linalg.eigh(
                np.diag(values) + kept * denoise_spectrum(off, noise2)[0]
            )
    return shift, np.clip(1 + values, least, most), vectors


def clamp_eigenvalues(matrix: Array, least: float) -> Array:
    """The nearest matrix whose eigenvalues are not below ``least``."""
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    return np.asarray((vectors * np.maximum(values, least)) @ vectors.T)


@dataclass(frozen=True)
class NormalMixture:
    """Weights π (K), means (K × d), and roots (K × d × d).

    The covariance of part k is root·rootᵀ.
    """

    weights: Array
    means: Array
    roots: Array

    @cached_property
    def whitening(self) -> Array:
        """For each component the matrix A such that z = (x − μ)A is standard normal; (K, d, d)."""
        return np.asarray(np.linalg.inv(self.roots).transpose(0, 2, 1))

    @property
    def covariances(self) -> Array:
        """K × d × d."""
        return self.roots @ self.roots.transpose(0, 2, 1)

    @cached_property
    def log_heights(self) -> Array:
        """Logarithms of weight over volume of each part, up to a constant."""
        return np.log(self.weights) - np.linalg.slogdet(self.roots)[1]

    def log_densities(self, x: Array) -> Array:
        """log π_k N(x | μ_k, Σ_k), a row for each point."""
        d = self.means.shape[1]
        distance = [
            (((x - mean) @ whitening) ** 2).sum(axis=1)
            for mean, whitening in zip(self.means, self.whitening, strict=True)
        ]
        return np.asarray(
            self.log_heights - np.transpose(distance) / 2 - d / 2 * math.log(2 * math.pi)
        )

    def score(self, x: Array) -> Array:
        """Log-density of each point."""
        return np.asarray(logsumexp(self.log_densities(x), axis=1))

    def responsibilities(self, x: Array) -> Array:
        """Posterior probabilities of the components, a row for each point."""
        log = self.log_densities(x)
        return np.asarray(np.exp(log - logsumexp(log, axis=1, keepdims=True)))

    def sample(self, n: int, rng: np.random.Generator) -> Array:
        """Points of the mixture."""
        component = rng.choice(len(self.weights), size=n, p=self.weights / self.weights.sum())
        points = rng.normal(size=(n, self.means.shape[1]))
        for k, (mean, root) in enumerate(zip(self.means, self.roots, strict=True)):
            points[component == k] = mean + points[component == k] @ root.T
        return points


def map_estimate(
    mixture: NormalMixture,
    pooled: NormalMixture,
    n: float,
    alpha: float,
    kappa: float,
    nu: float | None,
) -> NormalMixture:
    """The mixture under priors.

    Dirichlet(α) for weights, normal–inverse-Wishart for means and covariances (MAP). With N_k =
    n·π_k: π_k ∝ N_k + α − 1; μ_k ← (N_k μ_k + κ m)/(N_k + κ); and if ν is given Σ_k ← (N_k Σ_k +
    N_k κ/(N_k + κ)·(μ_k − m)(μ_k − m)ᵀ + (ν + d + 2)·Σ)/(N_k + ν + d + 2), where m and Σ are those
    of the ``pooled`` normal distribution of all records: the prior's own most likely values. α = 1,
    κ = 0 and no ν change nothing.
    """
    size = n * mixture.weights
    pooled_mean = pooled.means[0]
    spread = pooled.covariances[0]
    d = pooled.means.shape[1]
    deviations = mixture.means - pooled_mean
    pull = kappa / (size + kappa)
    roots = mixture.roots
    if nu is not None:
        between = np.einsum("k,kp,kq->kpq", size * pull, deviations, deviations)
        prior = nu + d + 2
        whole = size[:, None, None] * mixture.covariances + between + prior * spread
        roots = np.linalg.cholesky(whole / (size + prior)[:, None, None])
    weights = size + alpha - 1
    return NormalMixture(weights / weights.sum(), mixture.means - pull[:, None] * deviations, roots)


def merge_components(weights: Array, means: Array, parts: int) -> tuple[Array, Array]:
    """Join parts until so many are left, by Ward's rule.

    The two whose joining spreads the records least.
    """
    w = list(weights)
    m = list(means)
    while len(w) > parts:
        cost = {
            (i, j): w[i] * w[j] / (w[i] + w[j]) * float(np.sum((m[i] - m[j]) ** 2))
            for i in range(len(w))
            for j in range(i)
        }
        i, j = min(cost, key=cost.__getitem__)
        m[j] = (w[i] * m[i] + w[j] * m[j]) / (w[i] + w[j])
        w[j] += w[i]
        del w[i], m[i]
    return np.array(w), np.array(m)


def significant_counts(counts: Array, sd: float) -> Array:
    """Noisy counts of a grid, as a list of cells; zero where neighbourhoods are below the noise.

    Noise in empty cells far from the records would distort variances.
    """
    around = uniform_filter(counts, size=3, mode="constant") * 3.0**counts.ndim
    return np.asarray(
        np.where(
            around > MIXTURE_MOMENTS.significant_sd * sd * math.sqrt(3.0**counts.ndim), counts, 0.0
        ).ravel()
    )


def grid_mixture(
    points: Array,
    counts: Array,
    width: float,
    parts: int,
    count_sd: float,
    *,
    starts: int = MIXTURE_MOMENTS.grid_starts,
    steps: int = MIXTURE_MOMENTS.grid_steps,
) -> NormalMixture:
    """A mixture fitted to noisy counts of cells about ``points``.

    EM with the counts, negative ones too, as weights.

    ``width``: of a cell; its variance width²/12 is added, as the points stand for whole cells. The
    start with the least deviance wins; ``count_sd`` is the noise of a count.
    """
    rng = np.random.default_rng(0)  # public: the same for all records
    n = max(float(counts.sum()), 1.0)
    d = points.shape[1]
    positive_counts = np.maximum(counts, 0.0)
    if positive_counts.sum() > 0:
        probabilities = positive_counts / positive_counts.sum()
    else:
        probabilities = np.full(len(points), 1 / len(points))
    mean = probabilities @ points
    pooled = clamp_eigenvalues(
        (points - mean).T @ ((points - mean) * probabilities[:, None]), width**2
    )
    least = np.inf
    best_mixture = None
    for _ in range(starts):
        centres = points[rng.choice(len(points), size=1, p=probabilities)]
        for _ in range(parts - 1):  # k-means++: far from those there are
            distances = probabilities * ((points[:, None, :] - centres) ** 2).sum(axis=2).min(
                axis=1
            )
            if distances.sum() > 0:
                distances = distances / distances.sum()
            else:
                distances = probabilities
            centres = np.vstack([centres, points[rng.choice(len(points), p=distances)]])
        root = np.linalg.cholesky(clamp_eigenvalues(pooled / parts ** (2 / d), width**2 / 4))
        mixture = NormalMixture(
            np.full(parts, 1 / parts), centres, np.repeat(root[None], parts, axis=0)
        )
        for _ in range(steps):
            weighted = mixture.responsibilities(points) * counts[:, None]
            total = weighted.sum(axis=0)
            weights = []
            means = []
            roots = []
            for k in range(parts):
                if total[k] < MIXTURE_MOMENTS.min_component_fraction * n / parts:
                    weights.append(MIXTURE_MOMENTS.min_component_fraction / parts)
                    means.append(mixture.means[k])
                    roots.append(mixture.roots[k])
                    continue
                mean = weighted[:, k] @ points / total[k]
                deviations = points - mean
                second = deviations.T @ (deviations * weighted[:, k : k + 1]) / total[k]
                weights.append(total[k] / n)
                means.append(np.clip(mean, points.min(axis=0), points.max(axis=0)))
                roots.append(
                    np.linalg.cholesky(
                        clamp_eigenvalues(second - np.eye(d) * width**2 / 12, width**2 / 16)
                    )
                )
            mixture = NormalMixture(
                np.array(weights) / sum(weights), np.array(means), np.array(roots)
            )
        deviance = count_deviance(mixture, points, counts, width, count_sd)
        if deviance < least or best_mixture is None:
            least = deviance
            best_mixture = mixture
    assert best_mixture is not None
    return best_mixture


def count_deviance(
    mixture: NormalMixture, points: Array, counts: Array, width: float, count_sd: float
) -> float:
    """−2 log-likelihood of noisy counts of cells (J,) about ``points`` (J, d), up to a constant.

    Counts are normal about their number times the probability of their cell, with that variance and
    that of the noise, ``count_sd``². Log-densities weighed by counts would not do: what a component
    gains by following noise in empty cells has no bound.
    """
    d = points.shape[1]
    covariances = mixture.covariances + np.eye(d) * width**2 / 12
    roots = np.asarray(np.linalg.cholesky(covariances))
    over_cells = NormalMixture(mixture.weights, mixture.means, roots)
    n = max(float(counts.sum()), 1.0)
    expected = n * width**d * np.exp(over_cells.score(points))
    variance = expected + count_sd**2
    return float(((counts - expected) ** 2 / variance + np.log(variance)).sum())
