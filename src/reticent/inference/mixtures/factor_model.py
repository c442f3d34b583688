"""Factor model: means, scales, correlations and factors from noisy moments.

* `ColumnEstimates`: mean and variance of each column, from stages of noisy means and mean squares;
* `CorrelationEstimate`: correlations, from a noisy Gram matrix of standardised records, its
  spectrum denoised;
* `factor_analysis`: W and Ψ of WWᵀ + Ψ, by EM on a covariance matrix.
"""

import math

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from reticent.inference.mixtures.settings import FACTOR_MODEL
from reticent.inference.moment_model.clipping import NoiseTail, TailPrior, fit_noise_tails
from reticent.inference.moment_model.gram_estimation import denoise_spectrum
from reticent.inference.moment_model.settings import CLIPPED_MOMENTS

__all__ = [
    "ROTATIONS",
    "ColumnEstimates",
    "CorrelationEstimate",
    "factor_analysis",
    "factor_log_density",
    "factor_scores",
    "rotate_loadings",
]

Array = NDArray[np.float64]
ROTATIONS = ("varimax", "quartimax")


class ColumnEstimates:
    """Mean and variance of each column of scaled records, from stages that look ever closer.

    ``mean_sd`` and ``variance_sd`` are the standard deviations of their noise, the first with what
    windows may have cut off on one side; all are (d,).
    """

    def __init__(self, d: int) -> None:
        self.mean = np.zeros(d)
        self.mean_sd = np.full(d, np.inf)
        self.variance = np.zeros(d)
        self.variance_sd = np.full(d, np.inf)
        self._means: list[tuple[Array, Array]] = []
        self._variances: list[tuple[Array, Array]] = []
        self._reaches: list[Array] = []
        self._tails: list[NoiseTail] = []

    def next_window(
        self, n: float, sd: float, *, whole: bool = False
    ) -> tuple[Array, Array, Array]:
        """Middle and half-width of the next windows, and the mean squares expected there; all (d,).

        Mean squares are about the middle, in units of the squared half-width, and 1 at most.
        ``sd``: noise that the next mean squares will have, in the same units. A window reaches at
        least so far that its noise is far below that of sampling ``n`` records: as the budget
        grows, it grows to the box. And once two windows of different width have shown a column's
        tails, it is as wide as makes the error of the mean least, that of noise and of what a
        window cuts off.

        ``whole``: no row will be shortened, however far from the middle it is. Then a window ends
        where the box does, and is half as wide for the same reach where the mean lies at its end.
        """
        known = np.maximum(self.variance, 0.0)
        far = 1 + np.abs(self.mean)  # the far end of the box
        near = far
        if whole:
            near = 1 - np.abs(self.mean)
        idle = np.sqrt(FACTOR_MODEL.idle_noise * known * np.sqrt(2 / n) / sd)
        reach = np.maximum(
            FACTOR_MODEL.window_upper_sd * np.sqrt(known + 2 * self.variance_sd),
            FACTOR_MODEL.window_sd * np.sqrt(known),
        )
        reach = np.minimum(np.maximum(reach, _reach(idle, near)), far)
        if self._tails:
            idle = FACTOR_MODEL.idle_noise * np.sqrt(known / n) / sd
            reach = np.minimum(np.maximum(reach, _reach(idle, near)), far)
            for j, tail in enumerate(self._tails):
                reaches = np.geomspace(reach[j], far[j], FACTOR_MODEL.windows)
                half_widths = np.minimum(reaches, (reaches + near[j]) / 2)
                error2 = (sd * half_widths) ** 2 + tail.shortfall(reaches) ** 2
                reach[j] = reaches[np.argmin(error2)]
        half_width = np.minimum(reach, (reach + near) / 2)
        centre = self.mean - np.sign(self.mean) * (reach - half_width)
        square = np.maximum(self.variance, self.variance_sd) + (self.mean - centre) ** 2
        return centre, half_width, np.minimum(square / half_width**2, 1.0)

    def add(
        self,
        centre: Array,
        half_width: Array,
        offset: Array,
        moments: Array,
        sd: float,
        n: float = math.inf,
    ) -> None:
        """Condition on noisy means of t = clip((u − centre)/half_width, ±1) and of t² − offset.

        ``n``: records, to whose sampling noise in a mean is compared.
        """
        step, square = np.split(moments, 2)
        step = np.clip(step, -1.0, 1.0)
        self._means.append((np.clip(centre + half_width * step, -1.0, 1.0), half_width * sd))
        self._reaches.append(self._seen_from_mean(centre, half_width))
        tau = half_width**2 * sd * np.sqrt(1 + 4 * step**2)
        self._variances.append((half_width**2 * (square + offset - step**2), tau))
        self.variance, self.variance_sd = self._combined_variance()
        self._tails = []
        if len(self._means) > 1:
            self.mean = self._means[-1][0]  # what distances are measured from
            self._tails = self._fit_tails()
            self.variance = self._variance_with_tails()
        self.mean, self.mean_sd = self._best_mean(n)

    def _seen_from_mean(self, centre: Array, half_width: Array) -> Array:
        """Distance from the mean within which a window cuts nothing off; ends of the box do not.

        Infinite for the whole box.
        """
        least = FACTOR_MODEL.rounding
        above = centre + half_width
        below = centre - half_width
        return np.minimum(
            np.where(above < 1 - least, above - self.mean, np.inf),
            np.where(below > least - 1, self.mean - below, np.inf),
        )

    def _best_mean(self, n: float) -> tuple[Array, Array]:
        """That of the window with the least error: of noise, and of what it may have cut off.

        Noise far below that of sampling costs nothing: then the window that cuts off least.
        """
        means, noises = (np.array(rows) for rows in zip(*self._means, strict=True))
        error2 = noises**2
        idle2 = FACTOR_MODEL.idle_noise**2 * np.maximum(self.variance, 0.0) / n
        widths = self._widths()
        for j, tail in enumerate(self._tails):
            error2[:, j] += tail.shortfall(widths[:, j]) ** 2
        counted2 = error2 + np.maximum(idle2 - noises**2, 0.0)
        best = counted2.argmin(axis=0)[None]
        return (
            np.take_along_axis(means, best, 0)[0],
            np.sqrt(np.take_along_axis(error2, best, 0)[0]),
        )

    def _widths(self) -> Array:
        """Distances from the mean within which windows cut nothing off, (windows, d)."""
        return np.minimum(np.array(self._reaches), 1 + np.abs(self.mean))

    def _fit_tails(self) -> list[NoiseTail]:
        """Each column as a normal core with a rare, larger part, by variances of all windows."""
        variances, noises = (np.array(rows) for rows in zip(*self._variances, strict=True))
        widths = self._widths()
        least = FACTOR_MODEL.hidden_variance * self._variances[0][1]
        s2 = np.maximum(self.variance, least)
        prior = TailPrior(doubt=FACTOR_MODEL.tail_odds)
        return [
            fit_noise_tails(
                float(s2[j]),
                np.zeros(len(widths)),
                variances[:, j],
                noises[:, j],
                widths[:, j],
                float(widths[0, j]),
                [prior],
            )[0]
            for j in range(len(s2))
        ]

    def _variance_with_tails(self) -> Array:
        """What tails add to the core, and what windows saw that cut nothing off.

        The variance of a normal core and a rare part is off by a fraction of itself. As noise
        vanishes, that of the whole box is the records' own.
        """
        told = np.array([tail.mean_variance() for tail in self._tails])
        precision = 1 / (CLIPPED_MOMENTS.second_moment_error * told) ** 2
        total = precision * told
        for (variance, noise), reach in zip(self._variances, self._reaches, strict=True):
            weight = np.where(np.isinf(reach), 1 / noise**2, 0.0)
            precision += weight
            total += weight * variance
        return np.asarray(total / precision)

    def _combined_variance(self) -> tuple[Array, Array]:
        """Narrow stages have less noise, but miss what lies outside.

        A wider one is believed where it surely found more.
        """
        variance, tau = self._variances[-1]
        for wide, noise in reversed(self._variances[:-1]):
            missed = _surely_more(wide - variance, noise**2 + tau**2, FACTOR_MODEL.cut_off_sd)
            a = 1 / noise**2
            b = 1 / tau**2
            variance = missed * wide + (1 - missed) * (a * wide + b * variance) / (a + b)
            tau = missed * noise + (1 - missed) / np.sqrt(a + b)
        return variance, tau

    def scale(self) -> Array:
        """Standard deviations, none below what noise could hide."""
        least = np.maximum(self.variance_sd, FACTOR_MODEL.hidden_variance * self._variances[0][1])
        return np.sqrt(np.maximum(self.variance, least))


def _reach(half_width: Array, near: Array) -> Array:
    """How far a window of this half-width reaches, which ends ``near`` the mean on one side."""
    return np.maximum(half_width, 2 * half_width - near)


def _surely_more(difference: Array, noise2: Array, cut_off_sd: float) -> Array:
    """How surely a wider window found more than a narrower one, from 0 to 1."""
    excess = difference / np.sqrt(noise2)
    return np.asarray(expit(FACTOR_MODEL.cut_off_slope * (excess - cut_off_sd)))


class CorrelationEstimate:
    """Means, scales and correlations of scaled records.

    ``gram`` is the noisy mean of zzᵀ over records standardised with ``columns.mean`` and ``scale``,
    ``sd`` the noise of its diagonal. Shortened records make it smaller than a correlation matrix;
    columns whose variance is known show by how much.
    """

    def __init__(self, columns: ColumnEstimates, scale: Array, gram: Array, sd: float) -> None:
        d = len(scale)
        precision = (scale**2 / columns.variance_sd) ** 2  # how well variances are known
        expected = np.clip(columns.variance / scale**2, 0.0, 1.0)
        weight = expected / (sd**2 + 1 / precision)  # a column that does not vary shows nothing
        length = max(
            float(weight @ np.diag(gram)) / max(float(weight @ expected), 1e-9),
            FACTOR_MODEL.min_signal,
        )
        noise2 = (sd / length) ** 2 / 2  # outside the diagonal
        denoised, _, _ = denoise_spectrum(gram / length - np.eye(d), noise2)
        self.least = float(min(FACTOR_MODEL.max_floor, np.sqrt(noise2))) + 1e-6
        self.edge = 2 * float(np.sqrt(d * noise2))  # largest eigenvalue of the noise alone
        self.correlation = nearest_correlation(denoised + np.eye(d), self.least)
        gram_precision = 1 / (2 * noise2)
        correction = (precision + gram_precision * np.diag(gram) / length) / (
            precision + gram_precision
        )
        self.mean = columns.mean
        self.mean_sd = columns.mean_sd
        self.scale = scale * np.sqrt(np.clip(correction, *FACTOR_MODEL.scale_correction_range))

    @property
    def covariance(self) -> Array:
        """Of the scaled records."""
        return self.correlation * np.outer(self.scale, self.scale)


def nearest_correlation(matrix: Array, least: float) -> Array:
    """A correlation matrix near a symmetric one.

    Ones on the diagonal, no eigenvalue below ``least``.
    """
    root = np.sqrt(np.maximum(np.diag(matrix), FACTOR_MODEL.min_signal))
    matrix = matrix / np.outer(root, root)
    np.fill_diagonal(matrix, 1.0)
    values, vectors = np.linalg.eigh(matrix)
    matrix = (vectors * np.maximum(values, least)) @ vectors.T
    root = np.sqrt(np.diag(matrix))
    matrix = matrix / np.outer(root, root)
    return np.asarray((matrix + matrix.T) / 2)


def factor_analysis(
    covariance: Array, k: int, least: float, iterations: int = FACTOR_MODEL.em_steps
) -> tuple[Array, Array]:
    """W (d × k) and the diagonal of Ψ ≥ ``least`` such that WWᵀ + Ψ is near the covariance.

    EM, O(d²k) for each iteration. With B = Ψ⁻¹W, G = (I + WᵀB)⁻¹ and Λ the covariance: W ← ΛBG·(G +
    GBᵀΛBG)⁻¹, Ψ ← diag(Λ − W_new·GBᵀΛ).
    """
    values, vectors = np.linalg.eigh(covariance)
    diagonal = np.diag(covariance)
    psi = np.maximum(diagonal / 2, least)
    W = vectors[:, -k:] * np.sqrt(np.maximum(values[-k:], least))
    for _ in range(iterations):
        W, psi = factor_em_step(covariance, W, psi, least)
    return W, psi


def factor_em_step(covariance: Array, W: Array, psi: Array, least: float) -> tuple[Array, Array]:
    """One iteration of EM."""
    B = W / psi[:, None]
    G = np.linalg.inv(np.eye(W.shape[1]) + W.T @ B)
    BG = B @ G
    S = covariance @ BG  # the only product of d²k numbers
    new = np.asarray(np.linalg.solve(G + BG.T @ S, S.T).T, dtype=np.float64)
    return new, np.maximum(np.diag(covariance) - np.einsum("ij,ij->i", new, S), least)


def rotate_loadings(W: Array, method: str, iterations: int = FACTOR_MODEL.rotation_steps) -> Array:
    """Loadings (d, k) in rotated factors, the one with the largest loadings first.

    "varimax" maximises the variance of squared loadings within factors, "quartimax" Σ W⁴: Kaiser's
    criteria, by singular value decompositions.
    """
    d, k = W.shape
    rotation = np.eye(k)
    within = float(method == "varimax")
    for _ in range(iterations):
        rotated = W @ rotation
        target = rotated**3 - within * rotated * (rotated**2).sum(axis=0) / d
        left, _, right = np.linalg.svd(W.T @ target)
        rotation = left @ right
    rotated = W @ rotation
    order = np.argsort(-(rotated**2).sum(axis=0), kind="stable")
    return np.asarray(rotated[:, order])


def factor_scores(x: Array, W: Array, psi: Array) -> Array:
    """Posterior means of the factors of centred records."""
    B = W / psi[:, None]
    return np.asarray(np.linalg.solve(np.eye(W.shape[1]) + W.T @ B, (x @ B).T).T)


def factor_log_density(x: Array, W: Array, psi: Array) -> Array:
    """Log-density of centred records under N(0, WWᵀ + Ψ), by the matrix inversion lemma."""
    B = W / psi[:, None]
    inner = np.eye(W.shape[1]) + W.T @ B
    y = x @ B
    square = np.sum(x * x / psi, axis=1) - np.sum(y * np.linalg.solve(inner, y.T).T, axis=1)
    return -(square + np.linalg.slogdet(inner)[1] + np.log(2 * np.pi * psi).sum()) / 2
