"""Settings of the moment model: its tuned numbers, with their meaning and reason.

Grids are given as (lowest, highest, number of values).
"""

from dataclasses import dataclass

from reticent.number_kinds import Numerical, Prior, Tuned

__all__ = [
    "CLIPPED_MOMENTS",
    "EVIDENCE_SEARCH",
    "GRAM",
    "JOINT",
    "NOISE_SCALE",
    "POSTERIOR",
    "RELEVANCE",
    "TWO_VALUES",
    "ClippedMomentSettings",
    "EvidenceSearchSettings",
    "GramSettings",
    "JointSettings",
    "NoiseScaleSettings",
    "RelevanceSettings",
    "StagedPosteriorSettings",
    "TwoValueSettings",
]

Grid = tuple[float, float, int]


@dataclass(frozen=True)
class StagedPosteriorSettings:
    """Tuned numbers of `posterior.StagedPosterior`, given the releases of some stages.

    How many stages there are, and at which thresholds they clip, is up to the model
    (`reticent.models.gp.settings.StagedFitSettings`).

    Parameters
    ----------
    max_iterations : int
        Steps of the fixed point between the posterior and the covariance of the error in B̂.
    noise_grid : Grid
        Candidates of s², geometric, as multiples of the first guess.
    excess_noise_grid : Grid
        The same as multiples of a given s²: residuals may be larger than it explains.
    excess_noise_penalty : float
        Nats by which more noise than was given must fit better.
    doubt_of_normal_noise : float
        Factor on the odds of skewed noise, or of noise with a rare large part, where its standard
        deviation was given (who states it speaks of normal noise); and on those of skewed noise
        where clips are chosen: they widen by what releases show, while bands hold what may be.
    log_noise_sd : float
        Standard deviation of log s² a priori.
    log_truncation_sd : float
        Standard deviation of the logarithm of the truncation variance a priori.
    noise_fraction_logits : Grid
        Logits, equidistant, of the fraction of residual variance that is noise.
    min_truncation : float
        Smallest truncation variance, relative to s²: its logarithm must be finite.
    local_bias : float
        Part by which clips may move the mean more at one place than at another.
    max_gram_error : float
        Cap on the error in B̂, relative to the noise in A, where steps are damped. Later stages
        correct that error; uncapped, it dominates where w is poorly determined.
    tolerance : float
        Change of w, in posterior standard deviations, at which the fixed point stops.
    review_growth : float
        Factor on the number of stages from one estimate of B̂, of the noise and of the hypotheses'
        weights to the next: a little more than is known already hardly changes them, and they take
        most of the time. All are made once more after the last stage.
    unlikely : float
        Posterior weight of a hypothesis, relative to the best one's, below which it is left out.
        Early evidence misleads: with 1e-6, and no second look for long, errors were 3 % larger on
        two splits of a table whose inputs are tied.
    stages_until_all_compared : float
        Factor on the number of stages after which those left out are compared again.
    block_entries : int
        Entries of the matrices of several hypotheses that are solved together: they fit a cache.
    """

    max_iterations: Numerical[int] = 20
    noise_grid: Numerical[Grid] = (1e-4, 1e2, 61)
    excess_noise_grid: Numerical[Grid] = (1.0, 1e2, 41)
    excess_noise_penalty: Prior[float] = 2.0
    doubt_of_normal_noise: Prior[float] = 0.05
    log_noise_sd: Prior[float] = 3.0
    log_truncation_sd: Prior[float] = 1.0
    noise_fraction_logits: Numerical[Grid] = (-12, 12, 121)
    min_truncation: Numerical[float] = 1e-9
    local_bias: Prior[float] = 0.5
    max_gram_error: Tuned[float] = 0.3
    tolerance: Numerical[float] = 0.01
    review_growth: Numerical[float] = 1.2
    unlikely: Numerical[float] = 1e-9
    stages_until_all_compared: Numerical[float] = 3.0
    block_entries: Numerical[int] = 2**16


@dataclass(frozen=True)
class ClippedMomentSettings:
    """Tuned numbers of `clipping`: what clipped moments say. None of them is a clip threshold.

    Parameters
    ----------
    min_gain : float
        Smallest gain of a clip that sums are divided by; a smaller one would amplify noise. Clips
        are wider, unless residuals were much smaller a priori than they are.
    variance_grid : Grid
        Candidates of a residual's variance, geometric, as multiples of the expected one.
    surprise : float
        Scale of the logarithm of that multiple: small ones count as noise, large ones as a wrong
        prior.
    core_grid : Grid
        Candidates of the variance of the noise's normal core, geometric, as multiples of s², which
        is the last.
    tail_masses : Grid
        Candidates, geometric, of the fraction of the records in its rare part; none is another.
    tail_lengths, shortest_tail : int, float
        Candidates of the size of residuals of the rare part, geometric, from so many standard
        deviations to the range of y.
    negligible_weight : float
        Weight of such a candidate, relative to the best one's, below which it is left out: less
        than rounding, in a ten-thousandth of the time.
    tail_log_odds : float
        Log odds a priori that there is a rare part.
    lopsidedness_sd : float
        Standard deviation a priori of what the rare part is more above than below; 1: all above.
    skew_log_odds : float
        Log odds a priori that the noise is skewed at all; and that its rare part is lopsided.
    skew_sd : float
        Standard deviation of the skewness of skewed noise.
    block_rows : int
        Points whose correlations with all others fit a cache; no result depends on it but by
        rounding.
    second_moment_error : float
        Relative error of a second moment: residuals are not quite normal.
    size_slices : int
        Shares of the records, ordered by how large their noise is, that have one size each.
    """

    min_gain: Tuned[float] = 0.3
    variance_grid: Numerical[Grid] = (1e-3, 1e2, 101)
    surprise: Prior[float] = 0.2
    core_grid: Prior[Grid] = (0.01, 1.0, 33)
    tail_masses: Prior[Grid] = (1e-3, 0.3, 13)
    tail_lengths: Numerical[int] = 8
    shortest_tail: Prior[float] = 2.0
    negligible_weight: Numerical[float] = 1e-18
    tail_log_odds: Prior[float] = -1.5
    lopsidedness_sd: Prior[float] = 1.0
    skew_log_odds: Prior[float] = -1.0
    skew_sd: Prior[float] = 2.0
    block_rows: Numerical[int] = 64
    second_moment_error: Prior[float] = 0.05
    size_slices: Numerical[int] = 8


@dataclass(frozen=True)
class GramSettings:
    """Tuned numbers of `gram_estimation.GramEstimator`.

    Parameters
    ----------
    damping : float
        Ridge on B̂ for inputs that may depend on each other, relative to the noise's largest
        eigenvalue. Found on two tuning tasks; flat from 0.05 to 0.2.
    min_error : float
        Smallest error of the estimate, relative to the noise's variance.
    min_density_error : float
        Smallest error of the mean over densities, in units of its sampling variance: a record may
        be unlike the points.
    hidden_error : float
        Error that no density shows, relative to what noise hides of the difference to a uniform
        density.
    densities : int
        Number of densities that are fitted; their differences are the uncertainty.
    prior_records : float
        α: number of records that the prior guess of a density counts for.
    log_density_sd : float
        Standard deviation of the logarithm of the error of that guess, from point to point.
    steps, first_steps : int
        Steps of mirror descent in a stage, and in the first one.
    first_step : float
        First length of a step, in units of the inverse of the largest curvature.
    step_growth, step_shrinkage : float
        Factors on the length of a step that was accepted, and of one that was not.
    min_log_probability : float
        Smallest logarithm of a probability: exp must not underflow.
    rounding : float
        Relative difference that is rounding: machines must not differ in which steps they accept.
    """

    damping: Tuned[float] = 0.1
    min_error: Tuned[float] = 0.02
    min_density_error: Tuned[float] = 1.0
    hidden_error: Tuned[float] = 2.0
    densities: Numerical[int] = 8
    prior_records: Prior[float] = 10.0
    log_density_sd: Prior[float] = 2.0
    steps: Numerical[int] = 12
    first_steps: Numerical[int] = 60
    first_step: Numerical[float] = 5
    step_growth: Numerical[float] = 1.5
    step_shrinkage: Numerical[float] = 0.4
    min_log_probability: Numerical[float] = -700.0
    rounding: Numerical[float] = 1e-9


@dataclass(frozen=True)
class EvidenceSearchSettings:
    """Numbers of `hyperparameters`.

    Parameters
    ----------
    ascents : int
        Starts from which the evidence is maximised.
    ascent_steps : int
        Steps of L-BFGS-B from each.
    proposal_inflation : float
        Factor on the standard deviations of the normal proposal: the evidence has heavier tails.
    proposal_tail : float
        Probability of either tail that the normal proposal leaves out.
    max_curvature : float
        Largest curvature, relative to that of the uniform distribution over the box.
    difference : float
        Step of the finite differences of the gradient.
    dropped_weight : float
        Total weight of the hypotheses that are left out.
    grid : float
        Spacing of the grid on which points are rounded, so that machines agree.
    """

    ascents: Numerical[int] = 2
    ascent_steps: Numerical[int] = 25
    proposal_inflation: Numerical[float] = 1.3
    proposal_tail: Numerical[float] = 0.001
    max_curvature: Numerical[float] = 1e10
    difference: Numerical[float] = 0.05
    dropped_weight: Numerical[float] = 1e-3
    grid: Numerical[float] = 0.01


@dataclass(frozen=True)
class JointSettings:
    """Numbers of `joint_posterior`: two priors, a level of chance, and numerical ones.

    Parameters
    ----------
    log_density_sd, density_length : float
        Prior of the logarithm of the records' density: standard deviation, and length in half-boxes
        for one input; √d times that for d inputs. Chosen on two tasks out of three pairs.
    density_modes : int
        Leading modes of that prior.
    chance_sd : float
        Standard deviations by which the mean square of residuals may be larger than expected before
        the model of the density, or of the noise, counts as wrong.
    max_size : int
        Most functions for which it is computed: a matter of time alone, which grows with the cube.
    iterations, density_iterations : int
        Newton steps, at most, of all latents, and of the density alone.
    halvings : int
        How often a step is halved, at most.
    tolerance : float
        Root mean square of a step, in posterior standard deviations, at which iterations stop.
    rounding : float
        Relative difference that is rounding: machines must not differ in which steps they take.
    least_records : float
        Least number of records in an eigen-direction of the Gram matrix: variances stay positive.
    quadrature_sd, quadrature_nodes : float, int
        Range, in standard deviations, and number of nodes by which clips of normal noise are
        integrated.
    smallest_variance : float
        Least variance of a residual of fixed size, by that of the core: slopes stay finite.
    largest_log_factor, bisections : float, int
        How factors on the errors of density and noise law are searched for, in their logarithm.
    block_rows : int
        Products of features that are written out together: they fit a cache.
    jitter : float
        Relative ridge of matrices that are factorised: above rounding.
    """

    log_density_sd: Prior[float] = 3.0
    density_length: Prior[float] = 0.3
    density_modes: Numerical[int] = 60
    chance_sd: Tuned[float] = 2.0
    max_size: Numerical[int] = 200
    iterations: Numerical[int] = 12
    density_iterations: Numerical[int] = 30
    halvings: Numerical[int] = 6
    tolerance: Numerical[float] = 0.02
    rounding: Numerical[float] = 1e-9
    least_records: Numerical[float] = 0.1
    quadrature_sd: Numerical[float] = 4.0
    quadrature_nodes: Numerical[int] = 33
    smallest_variance: Numerical[float] = 1e-9
    largest_log_factor: Numerical[float] = 60.0
    bisections: Numerical[int] = 20
    block_rows: Numerical[int] = 256
    jitter: Numerical[float] = 1e-12


@dataclass(frozen=True)
class NoiseScaleSettings:
    """Numbers of `noise_scale`: priors of the logarithm g of the noise's variance, and others.

    Parameters
    ----------
    amplitudes : Grid
        Standard deviations of g over the records a priori, geometric; zero is another, as likely as
        all of these together.
    log_level_sd : float
        Standard deviation of the level of g a priori: where sizes of residuals are told by another
        law than the normal one, their mean by their standard deviation is another.
    functions : int
        Most functions that g is made of: the leading ones of the function's own.
    tail_records : float
        Share of the records at either end whose g may be beyond its limits: where hardly any are,
        polynomials go astray.
    log_range : pair of floats
        Range of g while it is searched for: exp must not overflow.
    iterations, halvings, tolerance : int, int, float
        As in `JointSettings`.
    """

    amplitudes: Prior[Grid] = (0.25, 4.0, 5)
    log_level_sd: Prior[float] = 3.0
    functions: Numerical[int] = 60
    tail_records: Tuned[float] = 0.01
    log_range: Numerical[tuple[float, float]] = (-30.0, 30.0)
    iterations: int = JointSettings.iterations
    halvings: int = JointSettings.halvings
    tolerance: float = JointSettings.tolerance


@dataclass(frozen=True)
class RelevanceSettings:
    """Numbers of `relevance`: priors, the others numerical.

    Parameters
    ----------
    log_odds : float
        Log odds that variances differ at all from what the hypotheses say. Even odds lost 2 to 3 %
        where the budget tells nothing (concrete, ε = .3 and 1).
    log_relevance_sd, roughness_sd, log_order_sd : float
        Prior standard deviations: of the logarithm of an input's factor; of the power of the number
        of a function along an input by which its variance falls faster or more slowly; of the
        logarithm of the factor of all effects of two, and of three inputs.
    steps : int
        Steps of L-BFGS-B.
    newton_steps : int
        Newton steps from where that ends: so near the mode that rounding finds the same place on
        every machine.
    farthest : float
        Prior standard deviations that a parameter may be from zero, at most: factors stay finite.
    grid : float
        Spacing, in prior standard deviations, of the grid on which parameters are rounded.
    """

    log_odds: Prior[float] = -2.0
    log_relevance_sd: Prior[float] = 1.5
    roughness_sd: Prior[float] = 1.0
    log_order_sd: Prior[float] = 1.5
    steps: Numerical[int] = 30
    newton_steps: Numerical[int] = 2
    farthest: Numerical[float] = 5.0
    grid: Numerical[float] = 0.01


@dataclass(frozen=True)
class TwoValueSettings:
    """Numbers of `reticent.inference.two_values`: priors, one tuned, the others numerical.

    Parameters
    ----------
    log_odds : float
        Log odds that numbers are all at an end of the range of y: about one in five.
    wrong_model_error : float
        Relative error of moments where the distribution of outputs is none of those considered.
    cores, rare_masses, rare_lengths : Grid, Grid, int
        Other outputs with noise: variances of its core in squared half-ranges of y, fractions of
        the records in its rare part, and how many lengths that may have, up to the longest.
    amount_masses, amount_sizes : Grid
        Other outputs that are amounts: fractions of the records off the end, and by how many
        half-ranges of y.
    nodes : int
        Places, as many records at each, at which the latter are compared with a stage's centre.
    recognised : float
        Probability from which on an answer, and the next stage, is that of two values. The mean of
        both answers was worse; with one half, one fit of 28 to zero-inflated amounts (5,000
        records, ε = .1) was off by fourteen times as much, while a missed recognition costs half.
    negligible : float
        Probability below which it is not asked any more.
    largest_miss : float
        Mean squared error of the function 1 in a basis, above which it is not asked at all: levels
        are told along that function.
    least_variance : float
        Least variance of outputs of two values, in squared half-ranges: matrices stay regular.
    newton_steps, level_step, longest_step : int, float, float
        Steps to the most likely level of a law, the step of its differences, and the longest one,
        in half-ranges of y.
    rounding : float
        Least gain, information and eigenvalue of a correlation.
    """

    log_odds: Prior[float] = -1.5
    wrong_model_error: Prior[float] = 0.5
    cores: Prior[Grid] = (1e-5, 1.0, 16)
    rare_masses: Prior[Grid] = (1e-3, 0.3, 6)
    rare_lengths: Numerical[int] = 4
    amount_masses: Prior[Grid] = (1e-3, 1.0, 13)
    amount_sizes: Prior[Grid] = (0.01, 2.0, 10)
    nodes: Numerical[int] = 8
    recognised: Tuned[float] = 0.9
    negligible: Numerical[float] = 1e-9
    largest_miss: Numerical[float] = 0.1
    least_variance: Numerical[float] = 1e-6
    newton_steps: Numerical[int] = 3
    level_step: Numerical[float] = 1e-4
    longest_step: Numerical[float] = 0.3
    rounding: Numerical[float] = 1e-9


POSTERIOR = StagedPosteriorSettings()
TWO_VALUES = TwoValueSettings()
CLIPPED_MOMENTS = ClippedMomentSettings()
GRAM = GramSettings()
EVIDENCE_SEARCH = EvidenceSearchSettings()
JOINT = JointSettings()
NOISE_SCALE = NoiseScaleSettings()
RELEVANCE = RelevanceSettings()
