"""Posterior of a linear model's weights if all outputs are at an end of the range of y.

And the probability that they are. The releases are those of `posterior.StagedPosterior`; residuals
of outputs of two values are linear in the outputs however they are clipped (`evidence`), so with
the gain g_k(x) and the offset b_k(x) of stage k

    A_k = Σ φ (g_k ω y + b_k)  =  D_k w + n·E[φ b_k] + noise,   D_k = n·E[φφᵀ g_k]

Stages merge with weights ω_k as there, each over its mean gain ḡ_k (ω without an index is the
weight of a record); the variance of the outputs is known given their mean. What gains differ from
place to place is integrated over the points, by the density of the records.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from reticent.inference.linalg import (
    JITTER,
    SMALL_JITTER,
    as_matrix,
    covariance_root,
    robust_cholesky,
    root_times,
    solve_lower,
    solve_upper,
    times_root,
)
from reticent.inference.moment_model.gram_estimation import GramEstimator
from reticent.inference.moment_model.relevance import (
    RelevanceModel,
    learned_relevance,
    mixed_factor,
)
from reticent.inference.moment_model.settings import CLIPPED_MOMENTS, POSTERIOR, TWO_VALUES
from reticent.inference.two_values.evidence import (
    ClippedMoments,
    TwoValuedResiduals,
    amounts_log_evidence,
    noise_log_evidence,
    two_valued_log_evidence,
)

__all__ = ["TwoValuedPosterior"]

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class _Stage:
    cross: Array  # Σφe (m,)
    cross_sd: float
    centre: Array  # weights (m,) that residuals were taken from
    threshold: float
    second: float  # Σe²/n
    second_sd: float


@dataclass(frozen=True, eq=False)
class _Merged:
    """What all stages say together: observed = design · w + N(0, noise)."""

    observed: Array
    design: Array
    noise: Array
    sampling: Array  # the part of the noise that all stages share


class TwoValuedPosterior:
    """Posterior of the weights w of one output, if it has two values, and whether it has.

    Parameters
    ----------
    points : (points, m) array
        Features at points that are distributed as the records may be.
    constant : (m,) array
        Weights of the function that is one everywhere.
    weighted : bool
        Whether that function tells the weights of the records, which otherwise count whole.
    log_odds : float
        Log odds a priori.
    damped : bool
        Whether steps are damped: then the error in B̂ is capped.
    prior_observation : ((k, m) array, (k,) array)
        Of `StagedPosterior`, if outputs have two values.
    relevance : RelevanceModel, optional
        Of `StagedPosterior`.

    Attributes
    ----------
    mean, covariance : (m,) and (m, m) arrays
        Posterior of w.
    residual_variance : float
        Mean square of a residual around it, in squared half-ranges of y.
    log_odds : float
        Log odds a posteriori that all outputs are at an end of the range.
    """

    def __init__(
        self,
        points: Array,
        constant: Array,
        log_odds: float,
        *,
        weighted: bool,
        damped: bool,
        prior_observation: tuple[Array, Array],
        relevance: RelevanceModel | None = None,
    ) -> None:
        self._points = points
        self._constant = constant
        self._weighted = weighted
        self._weights = np.ones(len(points))
        if weighted:
            self._weights = points @ constant
        self._prior_log_odds = log_odds
        self._damped = damped
        self._prior_observation = prior_observation
        self._stages: list[_Stage] = []
        self.mean = np.zeros(points.shape[1])
        self.covariance = np.eye(points.shape[1])
        self.residual_variance = 1.0
        self._hypothesis_weights = np.zeros(0)
        self._relevance = relevance
        self._relevance_factor = np.ones(points.shape[1])
        self.log_odds = log_odds

    @property
    def probability(self) -> float:
        """Probability that all outputs are at an end of the range."""
        return 1 / (1 + math.exp(min(-self.log_odds, 700.0)))

    def add(
        self,
        cross: Array,
        cross_sd: float,
        centre: Array,
        threshold: float,
        second: tuple[float, float],
    ) -> None:
        """Take in a stage, which counts from the next `update` on.

        ``cross`` (m,): Σφe, and ``second``: Σe²/n, each with its noise; ``centre`` (m,): weights
        that residuals were taken from; ``threshold``: of the clip. In half-ranges of y.
        """
        self._stages.append(_Stage(cross, cross_sd, centre, threshold, *second))

    def _residuals(self) -> TwoValuedResiduals:
        centres = np.array([stage.centre for stage in self._stages]) @ self._points.T
        thresholds = np.array([stage.threshold for stage in self._stages])
        return TwoValuedResiduals(centres, thresholds, self._weights)

    def _mean_function(self) -> Array:
        """The function at the points, where a mean can lie."""
        return np.asarray(np.clip(self._points @ self.mean, -self._weights, self._weights))

    def update(
        self, gram: GramEstimator, roots: Array, log_weights: Array, *, review: bool
    ) -> None:
        """Posterior of w given all stages.

        ``roots``: of the prior covariance under each hypothesis about the kernel, (H, m) or
        (H, m, m); ``log_weights`` (H,): of their prior weights; ``review``: whether hypotheses are
        weighed anew.
        """
        if not len(self._hypothesis_weights):
            self._hypothesis_weights = np.exp(log_weights)
            self.covariance = as_matrix(self._prior(roots))
        self._solve(gram, covariance_root(self._prior(roots)))
        if review and len(roots) > 1:
            self._weigh_hypotheses(roots, log_weights)
            self._solve(gram, covariance_root(self._prior(roots)))

    def _weigh_hypotheses(self, roots: Array, log_weights: Array) -> None:
        """Weigh hypotheses by their evidence, and inputs as in `StagedPosterior`."""
        design, z = self._whitened()
        scores = np.array([_log_evidence(design, z, root) for root in roots]) + log_weights
        weights = np.exp(scores - scores.max())
        self._hypothesis_weights = weights / weights.sum()
        if self._relevance is None:
            return
        self._relevance_factor = np.ones(len(self.mean))
        parameters, log_odds = learned_relevance(
            self._relevance, self._prior(roots), design.T @ design, design.T @ z
        )
        self._relevance_factor = mixed_factor(self._relevance, parameters, log_odds)

    def _prior(self, roots: Array) -> Array:
        """Mean of the prior covariances, (m, m), or of the variances, (m,)."""
        if roots.ndim == 2:
            return np.asarray(self._relevance_factor * (self._hypothesis_weights @ roots**2))
        squares = roots @ roots.transpose(0, 2, 1)
        return np.asarray(np.tensordot(self._hypothesis_weights, squares, 1))

    def _solve(self, gram: GramEstimator, root: Array) -> None:
        """Posterior of w under a prior with such a root."""
        n = gram.n
        B = gram.damped_estimate
        P = self._points
        density = _mean_density(gram)
        residuals = self._residuals()
        gain = np.maximum(residuals.gain @ density, TWO_VALUES.rounding)
        centres = np.array([stage.centre for stage in self._stages])
        noises = (np.array([stage.cross_sd for stage in self._stages]) / gain) ** 2
        # (A_k − n·E[φ b_k])/ḡ_k; the Σφφᵀc_k in it is taken out by B̂ and not by the points
        offset = residuals.offset + gain[:, None] * residuals.centres
        cross = np.array([stage.cross for stage in self._stages])
        observed = (cross - n * (offset * density) @ P) / gain[:, None] + centres @ B
        for _ in range(POSTERIOR.max_iterations):
            gram_errors = (self.mean - centres) ** 2 + np.diag(self.covariance)
            omega = 1 / (noises + gram_errors @ gram.entry_variance.mean(axis=0))
            omega /= omega.sum()
            relative_gain = (omega / gain) @ residuals.gain
            design = B + n * (P.T * (density * (relative_gain - 1))) @ P
            scatter = float(density @ (self._weights**2 - self._mean_function() ** 2))
            variance = max(scatter, TWO_VALUES.least_variance)
            # what all places have alike by B̂ itself, which knows small directions
            alike = float(relative_gain.min()) ** 2
            sampling = n * (P.T * (density * (relative_gain**2 - alike))) @ P
            sampling = variance * (sampling + alike * B)
            privacy = float(omega**2 @ noises)
            noise = sampling + self._gram_error(gram, omega @ centres, privacy)
            noise.ravel()[:: len(B) + 1] += privacy
            self._merged = _Merged(omega @ observed, design, noise, sampling)
            previous = self.mean
            self.mean, self.covariance = self._fit(root)
            change = float(np.linalg.norm(self.mean - previous))
            if change <= POSTERIOR.tolerance * math.sqrt(np.trace(self.covariance)):
                break
        unknown = max(float((self.covariance * gram.estimate).sum()) / n, 0.0)
        self.residual_variance = variance + unknown

    def _gram_error(self, gram: GramEstimator, centre: Array, privacy: float) -> Array:
        """Covariance (m, m) of what the error in B̂ does to the sums of all stages."""
        V = gram.entry_variance
        difference = self.mean - centre
        second = self.covariance + np.outer(difference, difference)
        error = V * second
        np.fill_diagonal(error, V @ np.diag(second))
        if self._damped:
            expected = max(float(np.trace(error)), 1e-300)
            error *= min(POSTERIOR.max_gram_error * len(error) * privacy / expected, 1.0)
        return np.asarray(error)

    def _whitened(self) -> tuple[Array, Array]:
        """What is known of w but for the prior: z = design·w + N(0, I)."""
        lower = robust_cholesky(self._merged.noise, JITTER)
        H, more = self._prior_observation
        design = np.vstack([solve_lower(lower, self._merged.design), H])
        return design, np.concatenate([solve_lower(lower, self._merged.observed), more])

    def _fit(self, root: Array) -> tuple[Array, Array]:
        """Posterior mean and covariance of w."""
        design, z = self._whitened()
        half = times_root(design, root)
        factor = _precision_factor(half)
        mean = root_times(root, solve_upper(factor, solve_lower(factor, half.T @ z)))
        rows = solve_lower(factor, as_matrix(root).T)
        return mean, rows.T @ rows

    def weigh(
        self,
        gram: GramEstimator,
        otherwise: tuple[Array, Array],
        longest: float,
        count_variance: float,
    ) -> None:
        """Probability that outputs have two values, by the moments of all stages.

        ``otherwise``: posterior mean (m,) and covariance (m, m) of w if they have not;
        ``longest``: largest residual that the bounds of y allow; ``count_variance``: squared
        relative error of the number of records.
        """
        P = self._points
        density = _mean_density(gram)
        residuals = self._residuals()
        moments, along = self._moments(gram, residuals, density)
        released = np.concatenate([moments.mean, moments.square])
        noise_variance = np.concatenate([moments.mean_sd, moments.square_sd]) ** 2
        f = self._mean_function()
        means = residuals.offset + residuals.gain * f
        squares = residuals.square_offset + residuals.square_slope * f
        expected = np.concatenate([means @ along, squares @ density])
        slopes = np.vstack([(residuals.gain * along) @ P, (residuals.square_slope * density) @ P])
        # what is not known of the function but for its level
        one = self._constant
        beside = np.eye(len(one)) - np.outer(one, density @ P) / float(density @ P @ one)
        root = slopes @ beside
        covariance = root @ self.covariance @ root.T
        places = np.sqrt(np.concatenate([_spread(means, density), _spread(squares, density)]))
        covariance += np.diag(noise_variance + (CLIPPED_MOMENTS.second_moment_error * places) ** 2)
        if self._weighted:  # records' weights are told by the Gram matrix itself
            share = np.concatenate([np.zeros(len(self._stages)), residuals.whole @ density])
            square_weight = float(one @ gram.estimate @ one) / gram.n
            expected += share * (square_weight - float(density @ self._weights**2))
            error = float(one**2 @ gram.entry_variance @ one**2) / gram.n**2
            covariance += error * np.outer(share, share)
        covariance += count_variance * np.outer(expected, expected)
        two_values = two_valued_log_evidence(released - expected, slopes @ one, covariance)
        mean, unknown = otherwise
        differences = P @ (mean - np.array([stage.centre for stage in self._stages])).T
        rows = P @ beside
        more = float(density @ ((rows @ unknown) * rows).sum(axis=1))
        spread = np.maximum(_spread(differences.T, density) + more, 0.0)
        noise = noise_log_evidence(moments, density @ differences, spread, longest)
        inside = np.stack([-self._weights - residuals.centres, -self._weights + residuals.centres])
        nodes = np.stack([_nodes(end, density) for end in inside])
        amounts = amounts_log_evidence(moments, nodes, float(density @ self._weights))
        other = float(np.logaddexp(noise, amounts)) - math.log(2)
        self.log_odds = self._prior_log_odds + two_values - other

    def _moments(
        self, gram: GramEstimator, residuals: TwoValuedResiduals, density: Array
    ) -> tuple[ClippedMoments, Array]:
        """Moments of the residuals of all stages, and by which weights (points,) means are taken.

        Sums along the function 1, which may count some records more than others.
        """
        one = self._constant
        along = density * (self._points @ one)
        records = gram.n * float(along.sum())
        cross, cross_sd, centres, thresholds, second, second_sd = (
            np.array([getattr(stage, name) for stage in self._stages])
            for name in ("cross", "cross_sd", "centre", "threshold", "second", "second_sd")
        )
        # the mean of a centre over the records is as uncertain as the Gram matrix
        place_variance = (centres**2 @ gram.entry_variance) @ one**2 / records**2
        place_variance *= (residuals.gain @ density) ** 2
        moments = ClippedMoments(
            cross @ one / records,
            np.sqrt((cross_sd / records) ** 2 * (one @ one) + place_variance),
            second,
            np.sqrt(second_sd**2 + 4 * np.maximum(second, 0.0) * place_variance),
            thresholds,
        )
        return moments, along / along.sum()

    def transferred_observation(
        self, onto: Array, beyond: Array, stages_to_come: float
    ) -> tuple[Array, Array]:
        """As that of `StagedPosterior`, if outputs have two values."""
        merged = self._merged
        sampling = merged.sampling
        fresh = merged.noise - sampling + merged.design @ beyond @ merged.design.T
        half = solve_lower(robust_cholesky(fresh, JITTER), sampling)
        noise = fresh + (2 * stages_to_come + 1) * sampling
        noise += stages_to_come * (stages_to_come + 1) * half.T @ half
        lower = robust_cholesky(noise, JITTER)
        return solve_lower(lower, merged.design @ onto), solve_lower(lower, merged.observed)


def _mean_density(gram: GramEstimator) -> Array:
    """Density of the records at the points, (points,)."""
    density = gram.densities.mean(axis=0)
    return np.asarray(density / density.sum())


def _spread(values: Array, density: Array) -> Array:
    """Variance (stages,) of values (stages, points) over the records."""
    mean = values @ density
    return np.asarray(np.maximum(values**2 @ density - mean**2, 0.0))


def _nodes(values: Array, density: Array) -> Array:
    """Values (stages, points) at evenly spaced quantiles over the records; (nodes, stages)."""
    shares = (np.arange(TWO_VALUES.nodes) + 0.5) / TWO_VALUES.nodes
    found = []
    for one in values:
        order = np.argsort(one, kind="stable")
        places = np.searchsorted(np.cumsum(density[order]), shares)
        found.append(one[order[np.minimum(places, len(one) - 1)]])
    return np.array(found).T


def _precision_factor(half: Array) -> Array:
    """Cholesky factor of 1 + halfᵀhalf."""
    precision = half.T @ half
    precision.ravel()[:: len(precision) + 1] += 1.0
    return robust_cholesky(precision, SMALL_JITTER)


def _log_evidence(design: Array, z: Array, root: Array) -> float:
    """Log evidence of a prior of w for z = design·w + N(0, I), but for what all have alike."""
    half = times_root(design, root)
    factor = _precision_factor(half)
    explained = solve_lower(factor, half.T @ z)
    return float(explained @ explained / 2 - np.log(np.diag(factor)).sum())
