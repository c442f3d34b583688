"""Posterior of a function with public inputs, from noisy linear maps of its labels.

The model is v = f(x) + noise of variance s², f ~ GP(0, k). Some q of the inputs, z, carry the
function: f(x) = ψ(x)ᵀw + rest, ψ(x) = L⁻¹k(z, x) with LLᵀ = k(z, z), w ~ N(0, I); the rest has
variance k(x, x) − ‖ψ(x)‖² and is taken as independent between inputs (FITC). Each release gives o =
Σ a_j v_j + noise with public columns a_j, clipped and centred as in `moment_model.posterior`. All
of them together are one linear observation of w, whose distribution is known:

    o = Gw + normal noise of covariance N,   G = Σ c_j a_j ψ_jᵀ,
    N = Σ (c_j s² + c_j² rest_j) a_j a_jᵀ + privacy noise,

with c_j labels at input j. What the releases say together is kept as rows b of Σ b_j v̄_j + noise
of variance one, v̄_j the mean label at an input and b_j = c_j a_j, as few as span them: turning
white noise leaves it white, and these sums are the same for every hypothesis.

Some labels may be missing: c_j is what the releases say of the number that is there
(`missing_labels`), and what is not known of it is noise in proportion to the residuals.

Hypotheses about the kernel are weighed by their evidence, and their noise by the released second
moments: free post-processing.

What a clip moves the mean by is modelled as in `moment_model`: the noise is a normal core with a
rare part, and each release is off by its clip's bias per unit of the core's skewness and of the
rare part's lopsidedness. These two are unknown numbers like w; releases of different clip
thresholds tell them.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sklearn.gaussian_process.kernels import Kernel

from reticent.inference.kernels.projection import white_noise_variance
from reticent.inference.labels.missing_labels import MissingLabels
from reticent.inference.labels.noise_laws import (
    LevelEvidence,
    NoiseLaws,
    SecondMoments,
    noise_laws,
)
from reticent.inference.labels.settings import LABEL_POSTERIOR
from reticent.inference.linalg import SMALL_JITTER, quadratic_forms, robust_cholesky, solve_lower
from reticent.inference.moment_model.clipping import (
    NoiseTail,
    clip_effect,
    clipped_second_moment,
    prior_bias_variances,
    second_moment_misfit,
    unclipped_variance,
    untold_level_error,
    weigh_clip_bias,
)
from reticent.inference.moment_model.settings import CLIPPED_MOMENTS, POSTERIOR
from reticent.number_kinds import Numerical

__all__ = [
    "AveragedKernel",
    "InducingFeatures",
    "LabelPosterior",
    "PosteriorMixture",
    "average_kernels",
    "inducing_inputs",
]

Array = NDArray[np.float64]
_NOISE_GRID = np.geomspace(*LABEL_POSTERIOR.noise_grid)
_NEVER: Numerical[float] = 1e3  # a clip threshold that no residual reaches, in half-ranges of y


@dataclass(frozen=True, eq=False)
class AveragedKernel:
    """A mean of kernels, between scaled inputs, in units of y's half-range.

    White noise is left out.
    """

    kernels: list[Kernel]
    weights: Array
    natural: Callable[[Array], Array]
    half: float

    def __call__(self, a: Array, b: Array) -> Array:
        """Covariance between two sets of inputs."""
        at = self.natural(a)
        other = self.natural(b)
        total = sum(
            w * kernel(at, other.copy())
            for w, kernel in zip(self.weights, self.kernels, strict=True)
        )
        return np.asarray(total / self.half**2)

    def diag(self, a: Array) -> Array:
        """Variance at each input."""
        at = self.natural(a)
        weighted_kernels = zip(self.weights, self.kernels, strict=True)
        return np.asarray(
            sum(
                w * (kernel.diag(at) - white_noise_variance(kernel, at))
                for w, kernel in weighted_kernels
            )
            / self.half**2
        )


def inducing_inputs(
    k: AveragedKernel,
    inputs: Array,
    most: int,
    tolerance: float = LABEL_POSTERIOR.inducing_variance,
) -> Array:
    """Inputs that carry the function.

    Each next one is where the ones before leave the largest variance (pivoted Cholesky).
    """
    variance = k.diag(inputs)
    enough = tolerance * float(variance.max())
    rows = np.zeros((0, len(inputs)))
    chosen = list[int]()
    # one call is faster than many
    if len(inputs) <= LABEL_POSTERIOR.whole_matrix_ratio * most:
        whole = k(inputs, inputs)
    else:
        whole = None
    while len(chosen) < min(most, len(inputs)):
        best = int(np.argmax(variance))
        if variance[best] <= enough:
            break
        if whole is None:
            covariance = k(inputs[best : best + 1], inputs)[0]
        else:
            covariance = whole[best]
        row = (covariance - rows[:, best] @ rows) / math.sqrt(variance[best])
        rows = np.vstack([rows, row])
        variance = np.maximum(variance - row**2, 0.0)
        variance[best] = 0.0
        chosen.append(best)
    if chosen:
        return inputs[np.sort(chosen)]
    return inputs[:1]


@dataclass(frozen=True, eq=False)
class InducingFeatures:
    """ψ(x) = L⁻¹k(z, x) for one kernel."""

    k: AveragedKernel
    at: Array  # z
    root: Array  # L

    @classmethod
    def from_kernel(cls, k: AveragedKernel, at: Array) -> "InducingFeatures":
        """Those of kernel ``k`` with the inducing inputs ``at``."""
        return cls(k, at, robust_cholesky(k(at, at), LABEL_POSTERIOR.jitter))

    def __call__(self, x: Array) -> tuple[Array, Array]:
        """Features, a column for each input, and the variance of what they leave out."""
        psi = solve_lower(self.root, self.k(self.at, x))
        return psi, np.maximum(self.k.diag(x) - np.square(psi).sum(axis=0), 0.0)


@dataclass(frozen=True, eq=False)
class PosteriorComponent:
    """w ~ N(mean, covariance) for one kernel.

    ``nonprivate_covariance``: had the labels been seen without privacy noise.
    """

    features: InducingFeatures
    weight: float
    mean: Array
    covariance: Array
    nonprivate_covariance: Array


@dataclass(frozen=True, eq=False)
class PosteriorMixture:
    """The hypotheses that count, heaviest first: a mixture."""

    parts: list[PosteriorComponent]

    def moments(self, x: Array) -> Array:
        """Mean at each x, and variances by the model and by privacy noise; (3, points).

        The model's includes what hypotheses about the kernel disagree on.
        """
        mean, square, model, privacy = np.zeros((4, len(x)))
        for component in self.parts:
            psi, left_out = component.features(x)
            component_mean = component.mean @ psi
            whole, nonprivate = (
                np.maximum(quadratic_forms(psi.T, matrix), 0.0)
                for matrix in (component.covariance, component.nonprivate_covariance)
            )
            mean += component.weight * component_mean
            square += component.weight * component_mean**2
            model += component.weight * (np.minimum(nonprivate, whole) + left_out)
            privacy += component.weight * np.maximum(whole - nonprivate, 0.0)
        return np.stack([mean, model + np.maximum(square - mean**2, 0.0), privacy])

    def joint(self, x: Array) -> tuple[Array, Array]:
        """Mean, and covariance between points.

        What the inducing inputs leave out is taken as independent.
        """
        means = []
        covariance = np.zeros((len(x), len(x)))
        for component in self.parts:
            psi, left_out = component.features(x)
            means.append(component.mean @ psi)
            covariance += component.weight * (
                psi.T @ component.covariance @ psi + np.diag(left_out)
            )
        weights = np.array([component.weight for component in self.parts])
        deviations = np.array(means) - weights @ np.array(means)
        return weights @ np.array(means), covariance + (deviations.T * weights) @ deviations


@dataclass(frozen=True, eq=False)
class _Stage:
    """One release: its clip, and the mean of the squared residuals, in half-ranges of y."""

    centre: Array  # what residuals were about, (inputs,)
    clip_threshold: float
    gain: float
    skew_bias: float  # of the mean of a label, per third cumulant of the noise
    second: float  # NaN if no second moment was released
    second_sd: float


class LabelPosterior:
    """Posterior of the function, release by release.

    Parameters: one covariance and one noise variance for each hypothesis; inputs and how many
    ``records`` stand at each; the inducing inputs; whether noise and kernel are to be learned.
    ``counts`` is the expected number of labels at each input.
    """

    def __init__(
        self,
        kernels: list[AveragedKernel],
        s2: Array,
        inputs: Array,
        records: Array,
        at: Array,
        *,
        learn_noise: bool,
        learn_kernel: bool,
    ) -> None:
        self.inputs = inputs
        self.records = records
        self.counts = counts = records
        mean_features = InducingFeatures.from_kernel(average_kernels(kernels), at)
        lengths = np.sqrt(mean_features.k.diag(inputs))
        self._missing = MissingLabels(mean_features(inputs)[0] / lengths, records)
        self._features = [InducingFeatures.from_kernel(k, at) for k in kernels]
        self._s2 = s2.copy()
        self._guess = s2.copy()
        self._learn_noise = learn_noise
        self._learn_kernel = learn_kernel
        self.weights = np.full(len(kernels), 1 / len(kernels))
        self._rows = np.zeros((0, len(inputs)))
        self._observed = np.zeros(0)
        self._levels = np.zeros((0, 0))  # each row's sum over inputs, in the column of its stage
        self._stages: list[_Stage] = []
        self._columns = np.zeros((len(inputs), 0))  # of the last release
        self._noise_per_threshold = 0.0  # its noise, and that of its second moment, by r and r²
        self._second_sd_per_threshold = 0.0
        # factor on the odds that noise is not normal
        self._doubt = 1.0 if learn_noise else POSTERIOR.doubt_of_normal_noise
        self._kept: dict[int, tuple[Array, Array]] = {}
        self.centre = np.zeros(len(inputs))  # the mean of the function at the inputs
        prior_variances = [
            float(counts @ features.k.diag(inputs)) / counts.sum() for features in self._features
        ]
        self.posterior_variance = float(
            np.mean(prior_variances)
        )  # its variance there, on average over the records
        self._core_variance = self.posterior_variance  # the same if clips cut nothing off unseen
        self.prior_std = math.sqrt(self.posterior_variance)
        self._bias_mean = np.zeros(2)  # skewness and lopsidedness of the noise
        self._bias_covariance = np.zeros((2, 2))
        self._shift_mean = np.zeros(0)  # of each stage, by a rare part on a known side
        self._shift_covariance = np.zeros((0, 0))
        self._fit_tails()

    @property
    def s2(self) -> float:
        """Variance of the observation noise if it is normal, as far as is known."""
        return float(self.weights @ self._s2)

    @property
    def noise_variance(self) -> float:
        """Variance of the observation noise, with its rare part."""
        return self.s2 + self._excess

    @property
    def _excess(self) -> float:
        """What the rare part of the noise adds to its variance."""
        return max(self._laws.tail.variance() - self.s2, 0.0)

    @property
    def labels(self) -> tuple[float, float]:
        """Number of labels that are not missing, as far as is known, and its standard deviation."""
        variance = self._missing.covariance(np.ones((len(self.counts), 1)))[0, 0]
        return float(self.counts.sum()), math.sqrt(max(float(variance), 0.0))

    def residual_sd(self) -> float:
        """Standard deviation of a label about the centre, as far as is known."""
        return math.sqrt(self.posterior_variance + self.s2)

    def add(
        self,
        columns: Array,
        value: Array,
        sd: float,
        centre: Array,
        clip_threshold: float,
        squares: tuple[float, float] | None,
        missing: tuple[Array, float] | None = None,
    ) -> None:
        """Condition on a release of Σ clip(v − centre, ±clip_threshold)·column.

        ``columns``: (inputs, k); ``value``: (k,), with noise of standard deviation ``sd``;
        ``squares``: the released Σ(2t² − 1) of the clipped residuals t, in units of the threshold,
        and the standard deviation of its noise, or None; ``missing``: Σ(column, 1) over records
        without a label, (k + 1,), and the standard deviation of its noise, or None if none is.
        """
        if missing is not None:
            with_number = np.column_stack([columns, np.ones(len(columns))])
            number = float(missing[0][-1]), missing[1]
            self._missing.add(with_number, *missing, total=number)
            self.counts = self.records - self._missing.mean
        second = None
        if squares is not None:
            second = self._mean_square(*squares, clip_threshold)
            self._second_sd_per_threshold = second[1] / clip_threshold**2
        self._noise_per_threshold = sd / clip_threshold
        self._columns = columns
        gain = 1.0
        distortion = 0.0
        skew_bias = 0.0
        if clip_threshold >= 1 + float(np.abs(centre).max()):  # the bounds alone clip
            clip_threshold = _NEVER
        else:
            variance = self.posterior_variance + self.s2
            if second is not None:
                variance = unclipped_variance(variance, *second, clip_threshold)
            clip = clip_effect(variance, clip_threshold)
            gain = clip.gain
            distortion = clip.added_variance
            skew_bias = clip.skew_bias
        observed = value / gain + columns.T @ (self.counts * centre)
        noise = (sd / gain) ** 2 * np.eye(len(value)) + distortion * (
            columns.T * self.counts
        ) @ columns
        if missing is not None:
            noise += self._missing_noise(columns, centre)
        lower = robust_cholesky(noise, SMALL_JITTER)
        self._take(solve_lower(lower, columns.T * self.counts), solve_lower(lower, observed))
        self._stages.append(
            _Stage(centre, clip_threshold, gain, skew_bias, *(second or (math.nan, math.nan)))
        )
        self._fit_tails()
        self._fit_clip_bias()
        self._weigh()
        self._fit_tails()
        self._fit_clip_bias()

    def _missing_noise(self, columns: Array, centre: Array) -> Array:
        """Covariance that the unknown numbers of labels give to sums of residuals (k, k).

        Residuals f − centre: their mean as far as it is known, which all inputs share, and a rest
        that is taken as independent between inputs.
        """
        residual = self.centre - centre
        shared = self._missing.covariance(columns * residual[:, None])
        share = self._missing.mean / np.maximum(self.records, 1e-300)
        own = self.records * share * (1 - share) * self.posterior_variance
        return np.asarray(shared + (columns.T * own) @ columns)

    def _mean_square(self, value: float, sd: float, clip_threshold: float) -> tuple[float, float]:
        """Mean of the squared residuals and the sd of its noise, from Σ(2t² − 1)."""
        labels, labels_sd = self.labels
        excess = float(np.clip(value / labels, -1.0, 1.0))
        error = math.hypot(sd, excess * labels_sd) / labels
        unit = clip_threshold**2 / 2
        return (1 + value / labels) * unit, error * unit

    def _take(self, rows: Array, observed: Array) -> None:
        """Add rows that were observed with noise of variance one; keep as few as span all."""
        stage = self._levels.shape[1]
        levels = np.zeros((len(self._rows) + len(rows), stage + 1))
        levels[: len(self._rows), :stage] = self._levels
        levels[len(self._rows) :, stage] = rows.sum(axis=1)
        rows = np.vstack([self._rows, rows])
        observed = np.append(self._observed, observed)
        values, axes = np.linalg.eigh(rows @ rows.T + levels @ levels.T)
        axes = axes[:, values > LABEL_POSTERIOR.negligible_row * values[-1]]
        self._rows = axes.T @ rows
        self._levels = axes.T @ levels
        self._observed = axes.T @ observed

    def _fit_tails(self) -> None:
        """Noise as a normal core with a rare part, from the second moments of all stages.

        As releases show it, and as it may be. Noise whose size is given is taken for normal.
        """
        stages = self._stages
        normal = NoiseTail(np.array([self.s2]), np.zeros(1), np.ones(1), np.ones(1))
        self._laws = self._possible_laws = NoiseLaws(normal, np.zeros(1))
        self._shift_mean = np.zeros(len(stages))
        self._shift_covariance = np.zeros((len(stages), len(stages)))
        if not self._learn_noise:
            return
        laws = noise_laws(self.s2, self.longest_residual(), self.centre, self.counts)
        fits = at_end = np.zeros(len(laws.side))
        if stages:
            fits, at_end = laws.fits(
                *self._clips(), self._second_moments(), self._level_evidence(laws)
            )
        tail = laws.tail
        log_variances = np.log((1 - tail.mass) * tail.core + tail.mass * tail.length**2)
        guess = float(np.log(self._guess).mean())
        near = -np.log1p((log_variances - math.log(self.s2)) ** 2)
        anywhere = -(((log_variances - guess) / POSTERIOR.log_noise_sd) ** 2) / 2
        near += at_end * (anywhere - near)
        self._laws = laws.reweighed(fits + near)
        self._possible_laws = laws.reweighed(fits + anywhere)
        if stages:
            self._fit_shifts()

    def _fit_shifts(self) -> None:
        """By how much clips have moved the level of each stage: mean and covariance.

        About what is told, as releases show it, for what may be; and the sampling error of rare
        labels, which all stages share.
        """
        clips = self._clips()
        self._shift_mean, _ = self._laws.shift_moments(*clips)
        mean, covariance = self._possible_laws.shift_moments(*clips)
        apart = mean - self._shift_mean
        shared = self._possible_laws.one_sided_excess(self.noise_variance) / self.counts.sum()
        self._shift_covariance = covariance + np.outer(apart, apart) + shared

    def _second_moments(self) -> SecondMoments:
        """What the second moments of the stages are compared with."""
        stages = self._stages
        weights = self.counts / self.counts.sum()
        apart = self.centre - np.array([stage.centre for stage in stages])
        return SecondMoments(
            np.array([stage.second for stage in stages]),
            np.array([stage.second_sd for stage in stages]),
            float(self.centre @ weights),
            apart @ weights,
            apart**2 @ weights,
            self._core_variance,
        )

    def _level_evidence(self, laws: NoiseLaws) -> LevelEvidence:
        """What the levels of the stages say of shifts, under the likeliest hypothesis."""
        h = int(np.argmax(self.weights))
        psi, left_out = self._at_inputs(h)
        covariance = self._covariance(psi, left_out, self._s2[h])[0]
        off = self._levels @ self._clip_biases(laws.two_sided)
        covariance += (off * prior_bias_variances(self._doubt)) @ off.T
        lower = robust_cholesky(covariance, SMALL_JITTER)
        observed = solve_lower(lower, self._observed)
        levels = solve_lower(lower, self._levels)
        mean_psi = psi @ self.counts / self.counts.sum()
        seen = solve_lower(lower, self._rows @ psi.T) @ mean_psi
        return LevelEvidence(
            levels.T @ levels,
            levels.T @ observed,
            float(seen @ observed),
            math.sqrt(max(float(mean_psi @ mean_psi - seen @ seen), 1e-300)),
            levels.T @ seen,
        )

    def _clips(self) -> tuple[Array, Array]:
        """Clip thresholds and gains of all stages."""
        r, gain = np.array([(stage.clip_threshold, stage.gain) for stage in self._stages]).T
        return r, gain

    def longest_residual(self) -> float:
        """Largest residual of labels within their bounds, in half-ranges of y."""
        return 1 + float(np.abs(self.centre).max())

    def _clip_biases(self, tail: NoiseTail) -> Array:
        """Bias of a label's mean in each stage (stages, 2).

        Per unit of the skewness of the noise's core, and of the lopsidedness of its rare part.
        """
        r, gain, skew_bias = np.array(
            [(stage.clip_threshold, stage.gain, stage.skew_bias) for stage in self._stages]
        ).T
        return np.column_stack([self.s2**1.5 * skew_bias, -tail.shortfall(r) / gain])

    def _fit_clip_bias(self) -> None:
        """Skewness and lopsidedness of the noise: mean and covariance."""
        self._bias_mean, self._bias_covariance = self._clip_bias(self._doubt)

    def _clip_bias(self, doubt: float) -> tuple[Array, Array]:
        """The same by stages that were clipped elsewhere, under the likeliest hypothesis."""
        h = int(np.argmax(self.weights))
        psi, left_out = self._at_inputs(h)
        lower = robust_cholesky(self._covariance(psi, left_out, self._s2[h])[0], SMALL_JITTER)
        off = solve_lower(lower, self._levels @ self._clip_biases(self._laws.two_sided))
        observed = solve_lower(lower, self._observed - self._levels @ self._shift_mean)
        return weigh_clip_bias(off.T @ off, off.T @ observed, doubt)

    def _stage_weights(self) -> Array:
        """What each stage counts for in the level of the function (stages,)."""
        information = np.square(self._levels).sum(axis=0)
        return np.asarray(information / information.sum())

    def clip_errors(self, thresholds: Array, stages: int) -> Array:
        """Mean squared error of the function if so many stages were clipped at each threshold.

        Thresholds and roots of the errors (thresholds,) in half-ranges of y. Sampling noise,
        privacy noise and what a clip may move the mean by, as far as releases tell how lopsided
        the noise is.
        """
        variance = self.posterior_variance + self.s2
        clip = clip_effect(variance, thresholds)
        gain = clip.gain
        biases = np.column_stack(
            [
                self.s2**1.5 * clip.skew_bias,
                -self._laws.two_sided.shortfall(thresholds) / gain,
            ]
        )
        shifts = self._laws.shifts(thresholds, gain)
        seen_shifts = self._laws.shifts(*self._clips())
        weights = self._laws.tail.weights
        mean, covariance = self._clip_bias(POSTERIOR.doubt_of_normal_noise)
        moments = mean**2 + covariance.diagonal()
        bias2 = biases**2 @ moments + weights @ shifts**2
        sampling = self.s2 + clip.added_variance
        sampling += self._laws.tail.excess_variance(self.s2, thresholds) / gain**2
        privacy = (self._noise_per_threshold * thresholds / gain) ** 2 / stages
        seen2 = self._clip_biases(self._laws.two_sided) ** 2 @ moments + weights @ seen_shifts**2
        level = untold_level_error(bias2, seen2, np.square(self._levels).sum(axis=0))
        local = POSTERIOR.local_bias**2 * bias2
        return np.asarray(self._function_errors(sampling, privacy) + level + local)

    def _function_errors(self, sampling: Array, privacy: Array) -> Array:
        """Mean posterior variance of the function at the records, from columns like the last ones.

        For each variance of a label, and each variance of the privacy noise of a column.
        """
        psi, left_out = self._at_inputs(int(np.argmax(self.weights)))
        weighted = self._columns.T * self.counts
        G = weighted @ psi.T
        target = (psi * (self.counts / self.counts.sum())) @ psi.T
        fixed = G @ G.T + (weighted * (self.counts * left_out)) @ self._columns
        own = weighted @ self._columns
        errors = []
        for label_variance, noise in zip(sampling, privacy, strict=True):
            S = fixed + label_variance * own + noise * np.eye(len(G))
            g = solve_lower(robust_cholesky(S, SMALL_JITTER), G)
            errors.append(float(np.trace(target) - np.sum((g @ target) * g)))
        return np.array(errors)

    def negligible_threshold(self, stages: int) -> float:
        """Clip threshold, in standard deviations of a residual, at which noises are equal.

        Those of privacy and of sampling in a release, over so many stages.
        """
        sampling_variance = float(self.counts @ np.square(self._columns).sum(axis=1))
        sampling_variance /= self._columns.shape[1]
        return math.sqrt(sampling_variance * stages) / self._noise_per_threshold

    def informative_threshold(self) -> float:
        """Clip threshold at which a second moment still tells the noise, rare parts included."""
        return math.sqrt(self._possible_laws.tail.variance() / self._second_sd_per_threshold)

    def total_sd(self) -> float:
        """Standard deviation of a residual, with a rare part that releases show."""
        return math.sqrt(self.posterior_variance + self.noise_variance)

    def _weigh(self) -> None:
        """Solve for every hypothesis, and weigh them by evidence and second moments."""
        scores = np.full(len(self._features), -math.inf)
        variances = np.zeros(len(self._features))
        cores = np.zeros(len(self._features))
        centres = np.zeros((len(self._features), len(self.inputs)))
        for h in np.flatnonzero(self.weights > LABEL_POSTERIOR.negligible_weight).tolist():
            psi, left_out = self._at_inputs(h)
            for _ in range(LABEL_POSTERIOR.noise_steps):
                before = self._s2[h]
                mean, X, scores[h], shifted = self._solve(psi, left_out, before)
                centres[h] = mean @ psi
                remaining = np.square(psi).sum(axis=0) - np.square(X @ psi).sum(axis=0)
                spread = np.maximum(remaining, 0.0) + left_out
                cores[h] = float(self.counts @ spread) / self.counts.sum()
                spread += np.square(shifted.T @ psi).sum(axis=0)
                variances[h] = float(self.counts @ spread) / self.counts.sum()
                if not self._learn_noise:
                    break
                labels = self._labels(psi, left_out, before)
                self._s2[h], fit = self._noise(h, centres[h], variances[h], labels)
                if abs(math.log(self._s2[h] / before)) < CLIPPED_MOMENTS.second_moment_error:
                    scores[h] += fit
                    break
            else:
                scores[h] += fit
        if self._learn_kernel:
            weights = np.exp(scores - scores.max())
            self.weights = weights / weights.sum()
        self.centre = self.weights @ centres
        between = np.square(centres - self.centre) @ self.counts / self.counts.sum()
        self.posterior_variance = float(self.weights @ (variances + between))
        self._core_variance = float(self.weights @ (cores + between))

    def _at_inputs(self, h: int) -> tuple[Array, Array]:
        """Features of the inputs, kept from stage to stage where that takes little memory."""
        if h not in self._kept:
            features = self._features[h](self.inputs)
            if features[0].size * len(self._features) > LABEL_POSTERIOR.cached_numbers:
                return features
            self._kept[h] = features
        return self._kept[h]

    def _solve(self, psi: Array, left_out: Array, s2: float) -> tuple[Array, Array, float, Array]:
        """Mean of w; X, whose covariance is 1 − XᵀX + UUᵀ, and U: of what clips may have cut off.

        And the evidence of all releases, but for what all hypotheses share.
        """
        lower, z, G = self._factor(psi, left_out, s2)
        X = solve_lower(lower, G)
        evidence = float(-np.log(np.diag(lower)).sum() - z @ z / 2)
        return X.T @ z, X, evidence, self._shifted(lower, X)

    def _shifted(self, lower: Array, X: Array) -> Array:
        """A root of the covariance that shifts of the levels leave to w; (features, stages)."""
        values, axes = np.linalg.eigh(self._shift_covariance)
        root = axes * np.sqrt(np.maximum(values, 0.0))
        return np.asarray(X.T @ solve_lower(lower, self._levels @ root))

    def _covariance(self, psi: Array, left_out: Array, s2: float) -> tuple[Array, Array]:
        """Covariance of the observations, if clips are right on average, and G."""
        B = self._rows
        G = B @ psi.T
        s2 = s2 + self._excess
        return (B * (s2 / self.counts + left_out)) @ B.T + np.eye(len(B)) + G @ G.T, G

    def _factor(self, psi: Array, left_out: Array, s2: float) -> tuple[Array, Array, Array]:
        """A root of the covariance of the observations, the observations whitened by it, and G."""
        covariance, G = self._covariance(psi, left_out, s2)
        observed = self._observed
        if self._stages:
            biases = self._clip_biases(self._laws.two_sided)
            off = self._levels @ biases
            observed = observed - off @ self._bias_mean - self._levels @ self._shift_mean
            covariance += off @ self._bias_covariance @ off.T
            moments = self._bias_covariance + np.outer(self._bias_mean, self._bias_mean)
            stages = self._stage_weights()
            bias = stages @ biases
            shift2 = stages @ self._shift_covariance @ stages + (stages @ self._shift_mean) ** 2
            bias2 = float(bias @ moments @ bias + shift2)
            covariance += bias2 * self._local(psi) * (G @ G.T)
        lower = robust_cholesky(covariance, SMALL_JITTER)
        return lower, solve_lower(lower, observed), G

    def _local(self, psi: Array) -> float:
        """Squared bias that differs from place to place, per prior variance of the function.

        By the bias of the level: clips may move the mean more at one place than at another.
        """
        prior = float(self.counts @ np.square(psi).sum(axis=0)) / self.counts.sum()
        return POSTERIOR.local_bias**2 / max(prior, 1e-300)

    def _labels(self, psi: Array, left_out: Array, s2: float) -> tuple[Array, float]:
        """What is known of the labels.

        The mean at each input, and the variance of one about it, on average. The function follows
        the labels it was learned from, so they lie nearer to it than new ones would.
        """
        lower, z, G = self._factor(psi, left_out, s2)
        U = solve_lower(lower, G @ psi + self._rows * (left_out + s2 / self.counts))
        label_variance = np.square(psi).sum(axis=0) + left_out + s2 - np.square(U).sum(axis=0)
        return z @ U, float(self.counts @ np.maximum(label_variance, 0.0)) / self.counts.sum()

    def _noise(
        self, h: int, centre: Array, variance: float, labels: tuple[Array, float]
    ) -> tuple[float, float]:
        """The noise variance that fits the released second moments best, and how well."""
        s2 = self._guess[h] * _NOISE_GRID
        misfit = np.zeros(len(_NOISE_GRID))
        for stage in self._stages:
            shift, label_shift = (
                float(self.counts @ np.square(mean - stage.centre)) / self.counts.sum()
                for mean in (centre, labels[0])
            )
            noise_fraction = (labels[1] + label_shift - variance - shift) / self._s2[
                h
            ]  # one, if labels say nothing about the fit
            expected = clipped_second_moment(
                variance + shift + max(noise_fraction, LABEL_POSTERIOR.min_noise_fraction) * s2,
                stage.clip_threshold,
            )
            misfit += second_moment_misfit(stage.second, stage.second_sd, expected)
        fits = -(misfit + (np.log(_NOISE_GRID) / POSTERIOR.log_noise_sd) ** 2) / 2
        best = int(np.argmax(fits))
        return float(s2[best]), float(fits[best])

    def posterior(self) -> PosteriorMixture:
        """What is known in the end."""
        order = np.argsort(-self.weights, kind="stable")
        reached = np.cumsum(self.weights[order])
        enough = int(np.searchsorted(reached, LABEL_POSTERIOR.predictive_weight)) + 1
        order = order[: min(enough, LABEL_POSTERIOR.max_predictive)]
        components = []
        for h in order.tolist():
            psi, left_out = self._at_inputs(h)
            mean, X, unseen = self._with_unseen_bias(psi, left_out, self._s2[h])
            s2 = self._s2[h] + self._excess
            information = (psi * (self.counts / (s2 + self.counts * left_out))) @ psi.T
            half = solve_lower(
                robust_cholesky(np.eye(len(psi)) + information, SMALL_JITTER), np.eye(len(psi))
            )
            weight = float(self.weights[h] / self.weights[order].sum())
            components.append(
                PosteriorComponent(
                    self._features[h],
                    weight,
                    mean,
                    np.eye(len(psi)) - X.T @ X + unseen,
                    half.T @ half,
                )
            )
        return PosteriorMixture(components)

    def _with_unseen_bias(
        self, psi: Array, left_out: Array, s2: float
    ) -> tuple[Array, Array, Array]:
        """As `_solve`, and what a rare part of the noise that no release shows may add.

        To the covariance of w, if clips cut it and it is all on one side.
        """
        lower, z, G = self._factor(psi, left_out, s2)
        X = solve_lower(lower, G)
        shift = self._clip_biases(self._possible_laws.two_sided)
        shift = shift - self._clip_biases(self._laws.two_sided)
        bias = float(self._stage_weights() @ shift[:, 1])
        along = X.T @ solve_lower(lower, self._levels.sum(axis=1))
        seen = X.T @ X
        unseen = bias**2 * (np.outer(along, along) + self._local(psi) * seen @ seen)
        shifted = self._shifted(lower, X)
        return X.T @ z, X, unseen + shifted @ shifted.T

    def weight_covariance(self, psi: Array, left_out: Array) -> Array:
        """Posterior covariance of w under another kernel, with these features at the inputs."""
        if len(self._rows):
            _, X, _, shifted = self._solve(psi, left_out, self.s2)
            return np.eye(len(psi)) - X.T @ X + shifted @ shifted.T
        return np.eye(len(psi))

    def mean_kernel(self) -> AveragedKernel:
        """The mean of the kernels by their weights, and a little of all.

        What seems false now must still be tested.
        """
        uniform = LABEL_POSTERIOR.uniform_weight
        weights = (1 - uniform) * self.weights + uniform / len(self.weights)
        return average_kernels([features.k for features in self._features], weights)

    def inducing_features(self, k: AveragedKernel) -> InducingFeatures:
        """Features of another kernel, at the same inducing inputs."""
        return InducingFeatures.from_kernel(k, self._features[0].at)


def average_kernels(kernels: list[AveragedKernel], weights: Array | None = None) -> AveragedKernel:
    """The weighted mean of some kernels."""
    if weights is None:
        weights = np.ones(len(kernels))
    first = kernels[0]
    return AveragedKernel(
        [kernel for k in kernels for kernel in k.kernels],
        weights / weights.sum(),
        first.natural,
        first.half,
    )
