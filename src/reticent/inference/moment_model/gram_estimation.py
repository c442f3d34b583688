"""Estimation of a Gram matrix, and of the density of the records, from noisy Gram matrices.

B = Σφφᵀ is released in every stage. It is a mean over a density of the inputs, n·Σ_g p_g φ_gφ_gᵀ on
points g of the box, with p ≥ 0 and Σp = 1: that says more than the noise hides. Densities that fit
the mean of all releases are those with the least

    ‖B − n·Σ p_g φ_gφ_gᵀ‖²/2σ² + α·KL(p ‖ p₀),

a quadratic form in p: (φ_gᵀφ_h)² and φ_gᵀBφ_g are all it needs.

Few points are a poor quadrature of many functions. What the mean of φφᵀ over many more points
differs by is a control variate: it is added to n·Σ p_g φ_gφ_gᵀ, in full where p is even, and the
less the fewer points 1/Σp² a density is on.

Several are kept, each found from its own p₀ (the guess, times a random function) and with noise of
its own added to B: how they differ is what is not known about B. To their mean comes the difference
to the releases, whose eigenvalues are shrunk as the noise, whose distribution is known, asks for.

Records may be weighted: then φ is its product with a weight of at most one, and the guess is scaled
by the mean square of the weights (``mean_square_weight``). It is estimated from the released B.
"""

import math

import numpy as np
from numpy.typing import NDArray

from reticent.inference.linalg import cholesky, quadratic_forms
from reticent.inference.moment_model.log_density import DensityModel, density_modes
from reticent.inference.moment_model.settings import GRAM

__all__ = ["DAMPING", "GramEstimator", "denoise_spectrum"]

Array = NDArray[np.float64]
DAMPING = GRAM.damping


class GramEstimator:
    """Estimate of B = Σφφᵀ from noisy releases, with the variances of its error.

    Parameters
    ----------
    points : (points, m) array
        Features at public points that fill the box.
    n : float
        Number of records that the sums are over.
    damping : float
        Ridge on the diagonal, relative to the noise's largest eigenvalue. Where inputs depend on
        each other, what noise hides of the largest eigenvalues of B would let steps go too far.
        Functions get it in proportion to their squares: of one that is small at all records nothing
        large is hidden, and its noise would be taken for a well-determined coefficient.
    min_square_weight : float
        Square of the smallest weight a record can have; 1 if records are not weighted.
    count_variance : float
        Squared relative error of ``n``: the guess of B is as wrong.
    even_moment : (m, m) array, optional
        E[φφᵀ] over points that are as evenly spread as ``points``, and far more; of ``points`` if
        not given.

    Attributes
    ----------
    estimate : (m, m) array
        B̂ without damping, its trace at most that of features of length one.
    damped_estimate : (m, m) array
        B̂ with damping.
    entry_variance : (m, m) array
        Variances of the error in its entries.
    densities : (densities, points) array
        Densities of the records on the points that agree with the releases.
    feature_moment : (m, m) array
        E[φφᵀ] under them.
    mean_square_weight : float
        Mean of the squared record weights.
    """

    def __init__(
        self,
        points: Array,
        n: float,
        *,
        damping: float = 0.0,
        min_square_weight: float = 1.0,
        count_variance: float = 0.0,
        even_moment: Array | None = None,
    ) -> None:
        self.n = n
        self._count_variance = count_variance
        self._damping = damping
        self._min_square_weight = min_square_weight
        # of weights between the least and one, evenly spread on a logarithmic scale
        if min_square_weight < 1:
            self.mean_square_weight = self._prior_square_weight = (
                1 - min_square_weight
            ) / -math.log(min_square_weight)
        else:
            self.mean_square_weight = self._prior_square_weight = 1.0
        self._points = points
        m = points.shape[1]
        self._squared_products = _squared_products(points)
        self._largest_square = float((points * points).sum(axis=1).max()) ** 2
        rng = np.random.default_rng(0)  # public: what is drawn stands for what is not known
        random_functions = points @ rng.normal(size=(m, GRAM.densities))
        random_functions = (random_functions - random_functions.mean(axis=0)) / np.maximum(
            random_functions.std(axis=0), 1e-12
        )
        self._guesses = _log_normalised(GRAM.log_density_sd * random_functions.T)
        for _ in range(GRAM.steps):  # their mean is the guess
            self._guesses = _log_normalised(
                self._guesses - np.log(np.exp(self._guesses).mean(axis=0))
            )
        self._logs = self._guesses.copy()
        self._pace = np.zeros(GRAM.densities)
        noise = rng.normal(size=(GRAM.densities, m, m))
        self._blurs = np.stack(
            [quadratic_forms(points, (noise_matrix + noise_matrix.T) / 2) for noise_matrix in noise]
        )
        self.densities = np.exp(self._guesses)
        at_points = points.T @ points / len(points)
        self._even: Array = at_points if even_moment is None else even_moment
        self._quadrature_error = self._even - at_points
        self.feature_moment = self._even
        self.damped_estimate = self.estimate = n * self.mean_square_weight * self.feature_moment
        self.entry_variance = np.zeros_like(self.feature_moment)
        self._sum = np.zeros_like(self.feature_moment)
        self._weight = np.zeros_like(self.feature_moment)

    def set_count(self, n: float, count_variance: float) -> None:
        """Learn the number of records, and its squared relative error, before the first matrix."""
        self.damped_estimate = self.estimate = self.estimate * (n / self.n)
        self.n = n
        self._count_variance = count_variance

    def add(self, B: Array, sd: Array) -> None:
        """Take in one more noisy matrix (m, m), with noise of standard deviations ``sd``.

        It counts from the next `update` on.
        """
        self._sum += B / sd**2
        self._weight += 1 / sd**2

    def update(self) -> None:
        """Estimate B from all matrices so far."""
        released = self._sum / self._weight
        noise2 = (
            float(np.mean(np.diag(1 / self._weight))) / 2
        )  # outside the diagonal, where it is half
        if self._min_square_weight < 1:
            self.mean_square_weight = self._estimate_mean_square_weight(noise2)
        n = self.n * self.mean_square_weight
        control = n * self._evenness() * self._quadrature_error
        self.densities = self._fitted(released - control, 2 * noise2)
        roots = [np.sqrt(n * p)[:, None] * self._points for p in self.densities]
        # which takes half the time of other products
        moments = [root.T @ root for root in roots]
        moment = sum(moments[1:], moments[0]) / len(moments)
        moment_variance = np.zeros_like(moment)
        for one in moments:
            one -= moment
            one *= one
            moment_variance += one
        moment_variance /= len(moments)
        guess = moment + n * self._evenness() * self._quadrature_error
        self.feature_moment = guess / n
        denoised, remaining_error, signal = denoise_spectrum(released - guess, noise2)
        possible = np.outer(np.diag(guess), np.diag(guess))
        signal_variance = (
            signal / float(possible.sum()) + GRAM.min_density_error / self.n + self._count_variance
        ) * possible
        error = remaining_error + GRAM.min_error * noise2
        floor = self._damping * 2 * math.sqrt(len(guess) * noise2)
        undamped = _positive(guess + denoised * signal_variance / (signal_variance + error))
        self.damped_estimate = undamped + floor * np.diag(np.diag(guess) / np.diag(guess).max())
        self.estimate = undamped * min(1.0, self.n / max(float(np.trace(undamped)), 1e-300))
        unlike_even: Array = np.linalg.eigvalsh(released - n * self._even).astype(np.float64)
        _, hidden_variance, _ = shrink_spectrum(unlike_even, noise2)
        self.entry_variance = np.maximum(
            moment_variance + signal_variance * error / (signal_variance + error),
            GRAM.hidden_error * hidden_variance,
        )

    def density_model(self, coordinates: Array) -> DensityModel:
        """The density as a latent, given all matrices so far, at points (points, d)."""
        return DensityModel(
            self._points,
            density_modes(coordinates),
            self.n,
            math.sqrt(self._count_variance),
            self._sum / self._weight,
            float(np.mean(np.diag(1 / self._weight))) / 2,
            self._quadrature_error,
        )

    def _evenness(self) -> float:
        """Number of points that the mean density is on, as a fraction of all."""
        mean = self.densities.mean(axis=0)
        return float(1 / (len(mean) * (mean @ mean)))

    def _fitted(self, released: Array, noise2: float) -> Array:
        """Densities that fit the releases, by mirror descent from the last ones.

        Steps get longer while they help.
        """
        n = self.n * self.mean_square_weight
        slope = (
            n / noise2 * (quadratic_forms(self._points, released) + math.sqrt(noise2) * self._blurs)
        )
        curve = n * n / noise2
        logs = self._logs
        if self._pace.any():
            steps = GRAM.steps
        else:
            steps = GRAM.first_steps
        curvature = curve * self._largest_square + GRAM.prior_records
        pace = np.maximum(self._pace, GRAM.first_step / curvature)

        def at(logs: Array) -> tuple[Array, Array, Array]:
            p = np.exp(logs)
            if len(self._squared_products) == 1:
                product = p @ self._squared_products[0]
            else:
                product = p @ self._squared_products[0] @ self._squared_products[1]
            value = (
                (curve / 2 * product - slope + GRAM.prior_records * (logs - self._guesses)) * p
            ).sum(axis=1)
            return p, curve * product - slope + GRAM.prior_records * (logs - self._guesses), value

        p, gradient, value = at(logs)
        for _ in range(steps):
            tried = _log_normalised(
                logs - pace[:, None] * (gradient - (p * gradient).sum(axis=1, keepdims=True))
            )
            new = at(tried)
            better = new[2] <= value + GRAM.rounding * np.abs(value)
            logs = np.where(better[:, None], tried, logs)
            p, gradient = (
                np.where(better[:, None], a, b) for a, b in zip(new[:2], (p, gradient), strict=True)
            )
            value = np.where(better, new[2], value)
            pace = np.where(better, GRAM.step_growth * pace, GRAM.step_shrinkage * pace)
        self._logs = logs
        self._pace = pace
        return p

    def _estimate_mean_square_weight(self, noise2: float) -> float:
        """Posterior mean of the mean squared record weight, by the length of B along the guess."""
        length2 = float((self.feature_moment**2).sum())
        estimate = float((self._sum / self._weight * self.feature_moment).sum()) / (
            self.n * length2
        )
        error_variance = 2 * noise2 / (self.n**2 * length2)
        posterior_mean = (estimate / error_variance + 1 / self._prior_square_weight) / (
            1 / error_variance + 1 / self._prior_square_weight**2
        )
        return min(max(posterior_mean, self._min_square_weight), 1.0)


def _squared_products(points: Array) -> tuple[Array, ...]:
    """(φ_gᵀφ_h)² of all points.

    With few functions as two factors, pairs' products, whose product is never written out.
    """
    m = points.shape[1]
    if m * (m + 1) >= len(points):
        return ((points @ points.T) ** 2,)
    i, j = np.triu_indices(m)
    pairs = points[:, i] * points[:, j] * np.where(i == j, 1.0, math.sqrt(2.0))
    return pairs, np.ascontiguousarray(pairs.T)


def _log_normalised(logs: Array) -> Array:
    """Logarithms of weights, in rows, that add up to one."""
    logs = np.maximum(logs - logs.max(axis=1, keepdims=True), GRAM.min_log_probability)
    return np.asarray(logs - np.log(np.exp(logs).sum(axis=1, keepdims=True)))


def _positive(matrix: Array) -> Array:
    """The nearest positive semi-definite matrix."""
    even = (matrix + matrix.T) / 2
    try:
        cholesky(even)
    except np.linalg.LinAlgError:
        values, vectors = np.linalg.eigh(even)
        even = (vectors * np.maximum(values, 0.0)) @ vectors.T
    return np.asarray(even)


def denoise_spectrum(noisy: Array, noise2: float) -> tuple[Array, float, float]:
    """A symmetric matrix without its noise, the mean squared error left, and the sum of squares.

    ``noise2``: variance of the noise off the diagonal; twice that on it. The best that can be done
    without knowing the eigenvectors (`shrink_spectrum`). Pure noise becomes nothing.
    """
    values, vectors = np.linalg.eigh(noisy)
    shrunk, remaining_error, signal = shrink_spectrum(values, noise2)
    return (vectors * shrunk) @ vectors.T, remaining_error, signal


def shrink_spectrum(values: Array, noise2: float) -> tuple[Array, float, float]:
    """Eigenvalues (m,) of a noisy symmetric matrix, shrunk; otherwise as `denoise_spectrum`.

    An eigenvalue λ becomes λ − 2·m·noise2·H(λ), where H is the Hilbert transform of the density of
    eigenvalues (Bun, Bouchaud and Potters).
    """
    m = len(values)
    width2 = 4 * noise2  # that of single eigenvalues: 2√(m·noise2)/√m
    gaps = values[:, None] - values
    shrunk = values - 2 * noise2 * (gaps / (gaps * gaps + width2)).sum(axis=1)
    shrunk = np.where(values > 0, np.clip(shrunk, 0, values), np.clip(shrunk, values, 0))
    signal = max(float(values @ values) - noise2 * m * (m + 1), 0.0)
    remaining_error = max(signal - float(shrunk @ shrunk), 0.0) / m**2
    return shrunk, remaining_error, signal
