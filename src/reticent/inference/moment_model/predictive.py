"""Predictive distribution of one output of a fitted regression at features φ(x).

Means, variances by cause, covariances.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sklearn.gaussian_process.kernels import Kernel

from reticent.inference.linalg import quadratic_forms
from reticent.inference.moment_model.noise_scale import NoiseScale
from reticent.inference.moment_model.outcomes import Outcome

__all__ = ["OutputPosterior"]

Array = NDArray[np.float64]


@dataclass(frozen=True)
class OutputPosterior:
    """Posterior of one output's function f(x) = φ(x)ᵀw.

    In the methods ``phi`` is (points, m), and ``extrapolation_weight`` (points,) the weight of
    each point: 0 among the records, 1 where they say nothing.

    Parameters
    ----------
    midpoint, half_range : float
        Middle and half-width of the output's range, in its own units.
    kernel : scikit-learn kernel
        The one with the largest weight.
    noise_std : float or None
        Standard deviation of the observation noise, in the output's own units, over the records;
        None where each record has a noise level of its own.
    mean : (m,) array
        Posterior mean of w, in half-ranges of y.
    covariance, nonprivate_covariance : (m, m) arrays
        Posterior covariance of w, with and without the privacy noise.
    truncation_variance : float
        Variance of f that the basis does not represent, in squared half-ranges of y.
    prior_std : float
        Standard deviation of f before the fit, over the box, in the output's own units.
    prior_centred_variance : float
        Variance of f around its own mean before the fit, in squared half-ranges of y: what both
        parts add up to, at least, where the extrapolation weight is 1.
    outcome : Outcome
        What outputs are: where their mean lies, and how their variance depends on it.
    dispersion : float
        Factor of that variance, in squared units of y but for ``outcome.unit_variance``.
    noise_scale : NoiseScale or None
        How the noise's variance depends on the inputs beside that; None: not at all.
    """

    midpoint: float
    half_range: float
    kernel: Kernel
    noise_std: float | None  # None where each record has a level of its own
    mean: Array
    covariance: Array
    nonprivate_covariance: Array  # covariance without the privacy noise
    truncation_variance: float  # variance of what the basis cannot represent
    prior_std: float  # standard deviation of the function before the fit, over the box
    prior_centred_variance: float  # variance of the function around its own mean, before the fit
    outcome: Outcome
    dispersion: float
    noise_scale: NoiseScale | None = None

    @property
    def noise_range(self) -> tuple[float, float] | None:
        """Least and largest standard deviation of the noise, if it is one's.

        It is that among the middle 98 % of the records (`tail_records`), in units of y.
        """
        if self.noise_std is None:
            return None
        if self.noise_scale is None:
            return float(self.noise_std), float(self.noise_std)
        low, high = self.noise_scale.range
        return float(self.noise_std * low), float(self.noise_std * high)

    def mean_at(self, phi: Array) -> Array:
        """Mean of f (points,), in the units of y and where a mean of y can lie."""
        return self.outcome.bounded(self._unbounded_mean(phi))

    def output_mean_at(self, phi: Array, function_variance: Array) -> Array:
        """Mean of an output (points,), given that the mean of y lies where it can.

        ``function_variance`` (points,): sum of `variance_parts`. Of two values, the probability of
        one may be nearly zero, and is not zero for certain.
        """
        return self.outcome.possible_moments(self._unbounded_mean(phi), function_variance)[0]

    def _unbounded_mean(self, phi: Array) -> Array:
        return np.asarray(self.midpoint + self.half_range * (phi @ self.mean))

    def noise_variance_at(
        self, phi: Array, extrapolation_weight: Array, function_variance: Array
    ) -> Array:
        """Variance of the observation noise (points,), in squared units of y.

        Where the records say nothing it is as large as it is among them on average.
        ``function_variance`` (points,): sum of `variance_parts`.
        """
        mean = self._unbounded_mean(phi)
        variance = self.dispersion * self.outcome.unit_variance(mean, function_variance)
        if self.noise_scale is not None:
            log_ratio = (1 - extrapolation_weight) * self.noise_scale.log_ratio(phi)
            variance = variance * np.exp(log_ratio)
        return np.asarray(variance)

    def variance_parts(self, phi: Array, extrapolation_weight: Array) -> tuple[Array, Array]:
        """Variances of f by cause (points,), in squared units of y: the model, and privacy noise.

        Far from the records the model's variance is raised until both are `prior_centred_variance`.
        """
        whole, nonprivate = (
            np.maximum(quadratic_forms(phi, covariance), 0.0)
            for covariance in (self.covariance, self.nonprivate_covariance)
        )
        half2 = self.half_range**2
        model = half2 * (np.minimum(nonprivate, whole) + self.truncation_variance)
        privacy = half2 * np.maximum(whole - nonprivate, 0.0)
        return model + extrapolation_weight * np.maximum(
            half2 * self.prior_centred_variance - model - privacy, 0.0
        ), privacy

    def covariance_between(self, phi: Array, extrapolation_weight: Array) -> Array:
        """Covariance (points, points) of f between points, in squared units of y.

        What the basis does not represent is taken as independent between points.
        """
        independent = sum(
            self.variance_parts(phi, extrapolation_weight)
        ) / self.half_range**2 - quadratic_forms(phi, self.covariance)
        return np.asarray(
            self.half_range**2
            * (phi @ self.covariance @ phi.T + np.diag(np.maximum(independent, 0.0)))
        )
