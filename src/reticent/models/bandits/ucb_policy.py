"""UCB policy of joint and local bandits: feature map, posterior, batches, and choice of candidates.

All of it is public: the policy is a function of releases and public numbers. It says which
statistic the next batch is added up with (`Policy.statistic`), learns from what was released of it
(`ingest_release`), and chooses (`choose`) the candidate with the highest upper confidence bound, in
the first batch any of them. Between two releases it does not change. Before each batch it simulates
the batch, with candidates where the releases say that they are, to know which features to expect,
and scales features so that the functions with the largest posterior variance get most of the row's
norm.
"""

import math
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from hashlib import sha256

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Kernel

from reticent.errors import BadInput
from reticent.inference.inputs.complete_records import UnitTotal, complete_records
from reticent.inference.kernels.anova import Anova, AnovaPriors
from reticent.inference.kernels.axes import LINE
from reticent.inference.kernels.eigenbasis import quasi_random_points
from reticent.inference.kernels.projection import KernelPriors, feature_scales, kernels_around
from reticent.inference.kernels.settings import PROJECTION
from reticent.inference.linalg import as_matrix
from reticent.inference.online.batch_gram import MISMATCH_GRID, SimulatedGramPrior
from reticent.inference.online.candidate_density import CandidateDensity
from reticent.inference.online.kalman_posterior import KalmanPosterior
from reticent.models.bandits.settings import GROWTH, POLICY, PolicySettings
from reticent.models.gp.prior_hypotheses import axes_of, check_kernel_columns
from reticent.privacy.bounds import Bounds
from reticent.privacy.curator import Release
from reticent.privacy.row_maps.features.basis_features import FeatureMap
from reticent.privacy.row_maps.features.polynomial_basis import HIGHEST_DEGREE
from reticent.privacy.row_maps.residual_gram import ResidualGram, stage

__all__ = [
    "Policy",
    "batch_sizes",
    "best_candidates",
    "random_words",
    "upper_confidence_bound",
]

Array = NDArray[np.float64]
Words = NDArray[np.uint64]
# With many inputs: effects of single inputs, whose variances are learned degree by degree, so that
# a rough guess will do
_ADDITIVE_PRIOR = Anova(
    variance=POLICY.additive_variance,
    shares=POLICY.additive_order_weights,
    linear=0.0,
    length=POLICY.additive_length,
)


class Policy:
    """The public state of a bandit.

    Parameters
    ----------
    bounds
        Ranges of the candidates' d coordinates and of the reward. Rewards are modelled in
        half-ranges about the middle of their range.
    kernel
        Prior of the reward function, in the data's own units; None: the default prior.
    mu
        Strength of a release: one over its noise multiplier.
    horizon
        Rounds that the basis is chosen for.
    arms
        About how many candidates a round has.
    exploration_weight
        Standard deviations that are added to the mean.
    basis
        Number of basis functions m, or None to choose it.
    staged
        Whether residuals of the current fit are added up, or rewards as they are.

    Attributes
    ----------
    feature_map
        From candidates in [−1, 1]ᵈ to m features.
    posterior
        Of the weights of the features, in half-ranges of the reward.
    mean, covariance_root
        What `scores` uses: the posterior mean (m,), and a Cholesky factor (m, m) of the covariance
        in single precision, which is enough for a choice and twice as fast. Hypotheses that the
        evidence speaks against keep a share in it, to be explored. Both are zero before the first
        release, so that all candidates are equal.
    clip_threshold
        Of the next batch's residuals, in half-ranges of the reward.
    statistic
        What the next batch is added up with.
    """

    def __init__(
        self,
        bounds: Bounds,
        *,
        kernel: Kernel | None,
        mu: float,
        horizon: int,
        arms: int,
        exploration_weight: float,
        basis: int | None = None,
        staged: bool = True,
        settings: PolicySettings = POLICY,
    ) -> None:
        self._settings = settings
        self._staged = staged
        self.bounds = bounds
        self.mu = mu
        self.exploration_weight = exploration_weight
        self.arms = int(arms)
        self._basis_size = basis
        self.dimension = len(bounds.x)
        low, high = bounds.y[0]
        self._reward_middle = low / 2 + high / 2
        self._reward_half_range = high / 2 - low / 2
        self._prior = _prior(bounds, kernel, self._reward_half_range, mu, horizon, settings)
        # public, so that everyone simulates the same
        random = np.random.Generator(np.random.PCG64(8))
        self._sample_candidates: Callable[[int], Array] = lambda count: (
            2 * random.random((count, self.dimension)) - 1
        )
        self._candidate_density: CandidateDensity | None = None
        if staged and self.dimension <= settings.most_interacting_inputs:
            points = quasi_random_points(self.dimension, settings.uniform_points)
            density = CandidateDensity(points, self.arms)
            self._candidate_density = density
            self._sample_candidates = lambda count: density.draw(random, count)
        self._simulated_rounds = settings.least_simulated_rounds
        self._informed = False
        self._batch_rounds = 0
        self._rounds = 0
        self._public_rounds = self._missing_rewards = self._missing_variance = 0.0
        self._choose_basis(horizon)
        self.reset()
        self._replan_batch()

    def _choose_basis(self, horizon: int) -> None:
        """Choose basis functions for so many rounds, and scale the features by the prior."""
        settings = self._settings
        prior = self._prior
        if self._basis_size is None:
            relative = prior.variances / max(float(prior.variances[1:].sum()), 1e-12)
            worthwhile = relative >= settings.worthwhile_variance / (self.mu * horizon)
            smallest = settings.smallest_basis + 2 * self.dimension
            size = min(max(int(worthwhile.sum()), smallest), settings.largest_basis, prior.max_size)
        else:
            size = min(max(int(self._basis_size), 1), prior.max_size)
        basis, covariances, self._truncation_variance = prior.choose(size)
        scale = feature_scales(
            basis,
            prior.variances[:size],
            settings.prior_scaling_exponent,
            self._norm_quantile(size),
        )
        self._feature_scale = scale
        self.feature_map = FeatureMap(basis, tuple(scale.tolist()), 1.0)
        self._prior_covariances = [as_matrix(S) / np.outer(scale, scale) for S in covariances]
        self._equal_variance_groups: NDArray[np.int64] | None = None
        if isinstance(prior, AnovaPriors):
            self._equal_variance_groups = prior.degree_groups(size)

    def reset(self) -> None:
        """Return to the prior: forget all batches, where a running sum holds them anyway."""
        self.posterior = KalmanPosterior(
            self._prior_covariances,
            self._truncation_variance,
            self._settings.least_noise_sd**2,
            self._equal_variance_groups,
        )
        self._context_misfit = np.zeros(len(MISMATCH_GRID))

    def grow(self, horizon: int) -> None:
        """Add basis functions for more rounds; the posterior of the old ones stays."""
        old_scale = self._feature_scale
        self._choose_basis(horizon)
        units = old_scale / self._feature_scale[: len(old_scale)]
        if len(self._feature_scale) > len(old_scale):
            self.posterior = self.posterior.with_more_features(
                self._prior_covariances,
                self._truncation_variance,
                units,
                self._equal_variance_groups,
            )
        else:
            self.posterior.rescale(units)
        self._replan_batch()

    def _replan_batch(self) -> None:
        """Get ready for the next batch: feature scales, expected features, clip threshold."""
        if self._informed and self._staged:
            self._rescale_features()
        self._exact_root = _root(self.posterior.covariance)
        self.mean = self.posterior.mean * self._informed
        explored = _root(self.posterior.open_covariance(self._settings.open_share))
        self.covariance_root = (explored * self._informed).astype(np.float32)
        self._simulated_features = self._simulate_contexts()
        self.clip_threshold, centre = self._clip_window()
        self.statistic = stage(self.feature_map, centre[None, :], [self.clip_threshold])

    def _rescale_features(self) -> None:
        """Give most of the row's norm to functions with a large posterior variance.

        Noise is the same for all features: the larger a feature, the more is learned about it.
        """
        settings = self._settings
        old_scale = self._feature_scale
        variances = np.diag(self.posterior.covariance) * old_scale**2
        self._feature_scale = feature_scales(
            self.feature_map.basis,
            _scaling_variances(variances, settings.largest_scaling_variance),
            settings.posterior_scaling_exponent,
            self._norm_quantile(self.feature_map.columns),
        )
        self.feature_map = replace(
            self.feature_map, feature_scale=tuple(self._feature_scale.tolist())
        )
        self.posterior.rescale(old_scale / self._feature_scale)

    def _norm_quantile(self, size: int) -> float:
        """Quantile of the feature norm that is scaled to one: all, where noise is negligible.

        Clipped features bend functions: a bias that stays, while noise becomes less.
        """
        if self._squared_signal_to_noise(size) >= PROJECTION.negligible_noise_snr:
            return 1.0
        return self._settings.norm_quantile

    def _squared_signal_to_noise(self, size: int) -> float:
        """Sampling variance of Σφe over the variance of its noise, for one of ``size`` functions.

        Of a batch as long as the last one, for rewards that are clipped at one standard deviation.
        The noise's standard deviation is 2/μ, that of the sum √(rounds/size) where ‖φ‖ ≈ 1.
        """
        return self._batch_rounds * self.mu**2 / (4 * size)

    def _simulate_contexts(self) -> Array:
        """Features (rounds, m) of what would be chosen among sampled candidates.

        Other candidates each time.
        """
        rounds = self._settings.least_simulated_rounds
        parts = []
        for _ in range(0, self._simulated_rounds, rounds):
            candidates = self._sample_candidates(rounds * self.arms)
            phi = self.feature_map.features(candidates).reshape(rounds, self.arms, -1)
            parts.append(phi[np.arange(rounds), self.scores(phi).argmax(axis=1)])
        return np.concatenate(parts)

    def _clip_window(self) -> tuple[float, Array]:
        """Clip threshold, in half-ranges, and the weights (m,) of the fit that it lies around.

        Noise grows with the threshold. Rewards within it count as they are; a threshold of 1 around
        the middle of the range clips none. A normal residual tells most within .8 standard
        deviations of the fit; of rewards that are mostly at either end of their range, that would
        cut off the rare ones, from which all is learned.
        """
        settings = self._settings
        posterior = self.posterior
        points = self._simulated_features
        middle_of_range = 0 * posterior.mean
        residual_sd = posterior.residual_sd(
            points.T @ points / len(points), self._largest_noise_variance()
        )
        if not self._staged:  # one sum for all rounds: what it adds up must never change
            return 1.0, middle_of_range
        if not self._informed:
            return min(settings.first_clip * residual_sd, 1.0), middle_of_range
        # Up to here a narrower clip would save no noise: privacy noise is half of sampling noise
        free = math.sqrt(self._squared_signal_to_noise(len(posterior.mean))) / 2
        clip = settings.clip * (1 + posterior.s2)
        widest = self._largest_residual()
        if free * residual_sd < widest and (
            residual_sd >= settings.wide_residual_sd or self._rewards_are_extreme()
        ):
            return 1.0, middle_of_range
        return min(max(clip, free) * residual_sd, widest), posterior.mean

    def _largest_residual(self) -> float:
        """The largest residual of the present fit that a reward can have anywhere."""
        points = quasi_random_points(self.dimension, self._settings.uniform_points)
        fit = self.feature_map.features(points) @ self.posterior.mean
        return 1 + max(float(np.abs(fit).max()), 1.0)

    def _largest_noise_variance(self) -> float:
        """The largest variance of rewards about their mean that is likely, in squared half-ranges.

        A clip that is too narrow hides what would show it: rare rewards far from the others. But no
        reward within ±1 of the middle has a larger variance than 1 less its squared mean.
        """
        fit = np.clip(self._simulated_features @ self.posterior.mean, -1, 1)
        possible = 1 - float(np.mean(fit**2))
        return max(min(self.posterior.largest_s2, possible), self.posterior.s2)

    def _rewards_are_extreme(self) -> bool:
        """Whether rewards seem to lie mostly at either end of their range.

        By the noise variance beyond the least one, as a fraction of the largest that rewards can
        have about the present fit.
        """
        posterior = self.posterior
        fit = np.clip(self._simulated_features @ posterior.mean, -1, 1)
        truncation_variance = float(posterior.hypothesis_weights @ posterior.truncation_variance)
        least = self._settings.least_noise_sd**2 + truncation_variance
        excess = posterior.s2 - least
        largest_excess = max(1 - float(np.mean(fit**2)) - least, excess, 1e-6)
        return excess / largest_excess >= self._settings.two_point_fraction

    def _nothing_clipped(self, clip_threshold: float, centre: Array) -> bool:
        """Whether no residual lies beyond the threshold, of rewards within ±1 of their middle."""
        if not centre.any():
            return clip_threshold >= 1
        return clip_threshold >= self._largest_residual()

    def set_context_sampler(self, draw: Callable[[int], Array]) -> None:
        """Simulate batches with candidates from ``draw(count)``, (count, d) in [−1, 1]ᵈ.

        Only accuracy rests on it. Default: candidates are uniform over the box at first, and then
        where the releases say.
        """
        self._sample_candidates = draw
        self._candidate_density = None
        self._replan_batch()

    @property
    def exploration_share(self) -> float:
        """Share of rounds in which any candidate may be chosen, whatever the posterior says.

        Forced exploration: c/√t after t rounds. It costs 2c√t of t rounds, and every direction in
        which candidates differ is seen √t times, so that no wrong belief stays for good.
        """
        if self.exploration_weight == 0 or self._rounds == 0:
            return 0.0
        return min(self._settings.exploration_share / math.sqrt(self._rounds), 1.0)

    def scores(self, phi: Array) -> Array:
        """Upper confidence bound at feature rows (…, m), in half-ranges of the reward."""
        return upper_confidence_bound(phi, self.mean, self.covariance_root, self.exploration_weight)

    def features(self, candidates: Array) -> Array:
        """Features (…, m) of candidates (…, d) in their own units.

        Of one that lacks a value, those with the middle of the range in its place.
        """
        flat = candidates.reshape(-1, self.dimension)
        unit = self.bounds.inputs_alone().scale(flat)
        phi = self.feature_map.features(np.where(np.isnan(unit), 0.0, unit))
        return phi.reshape(*candidates.shape[:-1], self.feature_map.columns)

    def choose(self, candidates: Array | Sequence[Array], words: Words) -> NDArray[np.int64]:
        """Index of the best candidate of each set; of an empty set 0.

        Among equals, the one that the round's own word draws. ``candidates``: (rounds, candidates,
        d), or a list of sets (candidates, d) of any size. Those are scored one by one, so that not
        even the rounding of a score depends on how many candidates others have.
        """
        if not isinstance(candidates, np.ndarray):
            chosen = np.zeros(len(candidates), dtype=np.int64)
            for i, rows in enumerate(candidates):
                if len(rows):
                    chosen[i] = self.choose(rows[None], words[i : i + 1])[0]
            return chosen
        numbers = candidates.shape[1] * self.feature_map.columns
        rounds = max(self._settings.cached_numbers // numbers, 1)
        scores = [
            self.scores(self.features(candidates[start : start + rounds]))
            for start in range(0, len(candidates), rounds)
        ]
        known = ~np.isnan(candidates).any(axis=2)
        return best_candidates(
            np.where(known, np.concatenate(scores), -math.inf), words, self.exploration_share
        )

    def ingest_release(self, release: Release, noise: float = 1.0) -> None:
        """Learn from a released batch.

        ``noise``: standard deviation of its noise over the release's stated scale.
        """
        decoded = ResidualGram.decode(release)
        centre = decoded.weights[0]
        clip_threshold = decoded.clip_thresholds[0]
        cross_sd = float(decoded.scaled_cross_sd[0] * noise)
        square_sd = float(decoded.scaled_square_sd[0] * noise)
        if release.n > 0:
            n = self._complete_rounds(decoded.gram, decoded.off_diagonal_sd * noise, release.n)
            points = self._settings.uniform_points
            uniform = self.feature_map.features(quasi_random_points(self.dimension, points))
            gram = SimulatedGramPrior(
                self._simulated_features,
                uniform.T @ uniform / points,
                n,
                decoded.gram,
                decoded.off_diagonal_sd * noise,
                self._context_misfit,
            )
            self._context_misfit = gram.misfit
            self._learn_candidates(uniform, decoded.gram, decoded.off_diagonal_sd * noise, n)
            echo = release.statistic.get("echo", 0.0)
            self.posterior.add(
                A=decoded.scaled_cross[:, 0] * clip_threshold,
                A_sd=_fresh_noise(cross_sd, clip_threshold, echo),
                B=gram.estimate,
                q=float(decoded.scaled_square[0]) * clip_threshold * clip_threshold,
                q_sd=square_sd * clip_threshold * clip_threshold,
                n=n,
                clip_threshold=clip_threshold,
                centre=centre,
                entry_variance=gram.entry_variance,
                axes=gram.axes,
                noise_carryover=echo,
                unclipped=self._nothing_clipped(clip_threshold, centre),
                noise_variances=gram.noise_variances,
                hidden=gram.hidden,
            )
        most = self._settings.least_simulated_rounds
        if self._staged:
            most = self._settings.most_simulated_rounds
        self._after_batch(release.n, most)

    def _learn_candidates(self, features: Array, gram: Array, sd: float, n: float) -> None:
        """Learn from a released Gram matrix where candidates are, for the batches to come.

        ``features`` (points, m): at the points of the density; ``sd``: of the matrix's noise.
        """
        density = self._candidate_density
        if density is not None:
            density.learn(features, self.scores(features), gram, sd, n)

    def _complete_rounds(self, gram: Array, sd: float, n: int) -> float:
        """About how many of n rounds lack nothing, from their noisy Gram matrix.

        By its trace beside that of the simulated rounds, which is right to about a ``size_error``
        of itself, wherever candidates are: most features have about the same norm. Many missing
        rounds show, few do not matter.
        """
        squared_norm = float((self._simulated_features**2).sum(axis=1).mean())
        count = float(np.trace(gram)) / squared_norm
        noise = math.sqrt(2 * len(gram)) * sd / squared_norm
        error = math.hypot(noise, self._settings.size_error * n)
        return complete_records(count, error, UnitTotal(n)).mean

    def ingest_public_contexts(
        self,
        A: Array,
        A_sd: float,
        B: Array,
        n: float,
        clip_threshold: float,
        centre: Array,
        echo: float = 0.0,
        missing: tuple[float, float] = (0.0, 1.0),
    ) -> None:
        """Learn from a batch whose n contexts, and so B = Σφφᵀ (m, m), are public.

        ``A``: Σφe (m,), in units of the clip threshold, with noise of standard deviation ``A_sd``.
        ``missing``: how many rewards are missing, and the standard deviation of that. They are
        taken to be missing at random, the same share of them in all batches.
        """
        if n > 0:
            share, share_sd = self._share_of_rewards(n, *missing)
            diagonal = np.diag(B)
            thinned = share * (1 - share) * np.outer(diagonal, diagonal) / n
            self.posterior.add(
                A=A * clip_threshold,
                A_sd=_fresh_noise(A_sd, clip_threshold, echo),
                B=B * share,
                q=0.0,
                q_sd=math.inf,
                n=max(share * n, 1.0),
                clip_threshold=clip_threshold,
                centre=centre,
                entry_variance=(share_sd * B) ** 2 + thinned,
                axes=np.eye(len(B)),
                noise_carryover=echo,
                unclipped=self._nothing_clipped(clip_threshold, centre),
            )
        self._after_batch(int(n), self._settings.most_simulated_rounds)

    def _share_of_rewards(self, n: float, missing: float, sd: float) -> tuple[float, float]:
        """Share of the rewards that are there, in all batches so far, and its sd."""
        self._public_rounds += n
        self._missing_rewards += missing
        self._missing_variance += sd**2
        rounds = max(round(self._public_rounds), 1)
        there = complete_records(
            rounds - self._missing_rewards, math.sqrt(self._missing_variance), UnitTotal(rounds)
        )
        return there.mean / rounds, there.sd / rounds

    def _after_batch(self, n: int, most_simulated_rounds: int) -> None:
        least = self._settings.least_simulated_rounds
        self._simulated_rounds = min(max(n, least), most_simulated_rounds)
        self._informed = True
        self._batch_rounds = n
        if not self._staged:  # a running sum holds all rounds
            self._rounds = 0
        self._rounds += n
        self._replan_batch()

    def information_gain(self) -> float:
        """log det of the prior covariance over that of the posterior, privacy noise included."""
        covariances = np.array(self._prior_covariances)
        prior = np.einsum("h,hij->ij", self.posterior.hypothesis_weights, covariances)
        gain = np.linalg.slogdet(prior)[1] - np.linalg.slogdet(self._exact_root)[1] * 2
        return max(float(gain), 0.0)

    def moments(self, candidates: Array) -> tuple[Array, Array]:
        """Posterior mean and standard deviation of the reward function, in the reward's units."""
        phi = self.features(candidates)
        truncation_variance = float(
            self.posterior.hypothesis_weights @ self.posterior.truncation_variance
        )
        variance = ((phi @ self._exact_root) ** 2).sum(axis=-1) + truncation_variance
        mean = self._reward_middle + self._reward_half_range * (phi @ self.posterior.mean)
        return mean, self._reward_half_range * np.sqrt(variance)


def _root(covariance: Array) -> Array:
    """Cholesky factor (m, m), of a covariance that may be singular up to rounding."""
    jitter = 1e-12 * np.trace(covariance) * np.eye(len(covariance))
    return np.asarray(np.linalg.cholesky(covariance + jitter))


def _fresh_noise(sd: float, clip_threshold: float, echo: float) -> float:
    """Standard deviation of the noise that a batch adds, in half-ranges.

    ``sd``: that of its release, which also holds ``echo`` times the last batch's noise.
    """
    return sd * clip_threshold / math.sqrt(1 + echo**2)


def _scaling_variances(variances: Array, largest: float) -> Array:
    """Variances that features are scaled by: the largest one is limited.

    To the second largest, or to the fraction ``largest`` of the sum of all others. The constant may
    vary much, but one batch tells most of it.
    """
    if len(variances) == 1:
        return variances
    limit = max(np.sort(variances)[-2], largest * (variances.sum() - variances.max()))
    return np.minimum(variances, limit)


def upper_confidence_bound(
    phi: Array, mean: Array, covariance_root: NDArray[np.float32], exploration_weight: float
) -> Array:
    """Posterior mean + exploration_weight · standard deviation at feature rows (…, m)."""
    expected = phi @ mean
    if exploration_weight == 0:
        return np.asarray(expected)
    squares = phi.astype(np.float32) @ covariance_root
    np.multiply(squares, squares, out=squares)
    return np.asarray(expected + exploration_weight * np.sqrt(squares.sum(axis=-1)))


def random_words(count: int, first: int = 0, seed: bytes | None = None) -> Words:
    """One word of 64 random bits for each round, however many candidates it has.

    From the operating system. With a ``seed`` (tests; nothing is private then) the word of a round
    follows from the seed and the round's number.
    """
    if seed is None:
        return np.frombuffer(os.urandom(8 * count), dtype="<u8")
    names = (
        b"reticent, not private: round %d of " % number + seed
        for number in range(first, first + count)
    )
    return np.frombuffer(b"".join(sha256(name).digest()[:8] for name in names), dtype="<u8")


def best_candidates(
    scores: Array, words: Words, exploration_share: float = 0.0
) -> NDArray[np.int64]:
    """Index of the highest score in each row of (rounds, candidates).

    Among k equals, the ⌊uk⌋-th, u the first 53 bits of the row's word (k·2⁻⁵³ from uniform). In a
    round with u below ``exploration_share`` all candidates that lack nothing (a score above −∞) are
    equals, and what is left of u picks one.
    """
    u = (words >> np.uint64(11)) * 2.0**-53
    if exploration_share > 0:
        explore = u < exploration_share
        scores = np.where(explore[:, None] & (scores > -math.inf), 0.0, scores)
        rest = (u - exploration_share) / max(1 - exploration_share, 2.0**-53)
        u = np.where(explore, u / exploration_share, np.maximum(rest, 0.0))
    best = scores == scores.max(axis=1, keepdims=True)
    equals = best.cumsum(axis=1, dtype=np.int32)
    drawn = np.minimum(u, 1 - 2.0**-53) * equals[:, -1]
    return np.asarray((equals > drawn.astype(np.int32)[:, None]).argmax(axis=1))


def batch_sizes(
    mu: float,
    horizon: int | None,
    growth: float = GROWTH,
    first: float | None = None,
    settings: PolicySettings = POLICY,
) -> Iterator[int]:
    """Rounds of each batch, ``growth`` times as many as in the one before.

    Public, and without end if the horizon is not known. ``first``: rounds of the first batch, if
    not chosen by ``mu``.
    """
    if first is None:
        first = settings.first_batch / mu
    size = max(first, settings.smallest_batch, settings.first_batch_fraction * (horizon or 0))
    rounds_left = horizon
    while rounds_left is None or rounds_left > 0:
        rounds = round(size)
        if rounds_left is not None:
            if rounds_left - rounds < settings.shortest_last_batch * growth * size:
                rounds = rounds_left
            rounds_left -= rounds
        yield rounds
        size *= growth


def _prior(
    bounds: Bounds,
    kernel: Kernel | None,
    reward_half_range: float,
    mu: float,
    horizon: int,
    settings: PolicySettings,
) -> AnovaPriors | KernelPriors:
    """The prior of the reward function in half-ranges."""
    d = len(bounds.x)
    axes = axes_of(bounds)
    check_kernel_columns(kernel, bounds)
    if kernel is None and d > settings.most_interacting_inputs:
        return AnovaPriors(d, 0, [_ADDITIVE_PRIOR], axes)
    if kernel is None and any(axis != LINE for axis in axes):  # words, levels, cycles
        return AnovaPriors(d, 0, axes=axes)
    if kernel is None:
        # The same variance everywhere: where no candidates are, nothing draws the choice there
        kernels = [
            ConstantKernel(settings.constant_variance) + ConstantKernel(variance) * RBF(length)
            for variance in settings.function_variances
            for length in _lengths(d, mu, horizon, settings)
        ]
        return KernelPriors(kernels, d, lambda unit: unit, 1.0, highest_degree=HIGHEST_DEGREE)
    if not isinstance(kernel, Kernel):
        raise BadInput(
            f"kernel must be a scikit-learn kernel such as RBF(2.0), or None, not {kernel!r}."
        )
    half_ranges = np.array([high / 2 - low / 2 for low, high in bounds.x])
    kernels = kernels_around(clone(kernel), half_ranges, settings.kernel_trials)
    return KernelPriors(
        kernels, d, bounds.unscale, reward_half_range, highest_degree=HIGHEST_DEGREE
    )


def _lengths(
    dimension: int, mu: float, horizon: int, settings: PolicySettings
) -> tuple[float, ...]:
    """Lengthscales of the default prior, in half-widths of the box: halves of the shortest, too.

    As long as an early part of the rounds tells their functions: above the noise of rewards, whose
    variance is at most 1, with negligible privacy noise. Functions of a length ℓ are about
    (2/(ℓ√π))^d, the inverse of the mean of k² over the box.
    """
    lengths = list(settings.lengths)
    above_privacy_noise = mu**2 / (4 * PROJECTION.negligible_noise_snr)
    above_sampling_noise = max(settings.function_variances)
    carried = settings.early_part * horizon * min(above_privacy_noise, above_sampling_noise)
    while True:
        shorter = min(lengths) / 2
        functions = (2 / (shorter * math.sqrt(math.pi))) ** dimension
        if functions > min(carried, settings.largest_basis) or shorter < settings.shortest_length:
            return tuple(lengths)
        lengths.append(shorter)
