"""Settings of the moment model: its tuned numbers, with their meaning and reason.

Grids are given as (lowest, highest, number of values).
"""

from dataclasses import dataclass

__all__ = [
    "CLIPPED_MOMENTS",
    "EVIDENCE_SEARCH",
    "GRAM",
    "NOISE_LAW",
    "POSTERIOR",
    "ClippedMomentSettings",
    "EvidenceSearchSettings",
    "GramSettings",
    "NoiseLawSettings",
    "StagedPosteriorSettings",
]

Grid = tuple[float, float, int]


@dataclass(frozen=True)
class StagedPosteriorSettings:
    """Tuned numbers of `posterior.StagedPosterior`, given the releases of some stages.

    How many stages there are, and at which thresholds they clip, is up to the model
    (`reticent.models.gp.settings.StagedFitSettings`).

    Parameters
    ----------
    min_gain : float
        Smallest gain of a clip that A is divided by; a smaller one would amplify noise.
    max_iterations : int
        Steps of the fixed point between the posterior and the covariance of the error in B̂.
    noise_grid : Grid
        Candidates of s², geometric, as multiples of the first guess.
    excess_noise_grid : Grid
        The same as multiples of a given s²: residuals may be larger than it explains.
    excess_noise_penalty : float
        Nats by which more noise than was given must fit better.
    doubt_of_normal_noise : float
        Factor on the odds that noise is not normal where clips are chosen and levels corrected:
        they follow what releases show, while bands hold what may be.
    log_noise_sd : float
        Standard deviation of log s² a priori.
    log_truncation_sd : float
        Standard deviation of the logarithm of the truncation variance a priori.
    noise_fraction_logits : Grid
        Logits, equidistant, of the fraction of residual variance that is noise.
    min_truncation : float
        Smallest truncation variance, relative to s²: its logarithm must be finite.
    gram_error_inflation : float
        How often the error in B̂ counts once more in reported covariances: its variance is made for
        the best estimate and falls short of the squared error.
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

    min_gain: float = 0.3
    max_iterations: int = 20
    noise_grid: Grid = (1e-4, 1e2, 61)
    excess_noise_grid: Grid = (1.0, 1e2, 41)
    excess_noise_penalty: float = 2.0
    doubt_of_normal_noise: float = 0.1
    log_noise_sd: float = 3.0
    log_truncation_sd: float = 1.0
    noise_fraction_logits: Grid = (-12, 12, 121)
    min_truncation: float = 1e-9
    gram_error_inflation: float = 1.0
    local_bias: float = 0.5
    max_gram_error: float = 0.3
    tolerance: float = 0.01
    review_growth: float = 1.2
    unlikely: float = 1e-9
    stages_until_all_compared: float = 3.0
    block_entries: int = 2**16


@dataclass(frozen=True)
class ClippedMomentSettings:
    """Tuned numbers of `clipping`: what clipped moments say. None of them is a clip threshold.

    Parameters
    ----------
    variance_grid : Grid
        Candidates of a residual's variance, geometric, as multiples of the expected one.
    surprise : float
        Scale of the logarithm of that multiple: small ones count as noise, large ones as a wrong
        prior.
    block_rows : int
        Points whose correlations with all others fit a cache; no result depends on it but by
        rounding.
    second_moment_error : float
        Relative error of a second moment: residuals are not quite normal.
    """

    variance_grid: Grid = (1e-3, 1e2, 101)
    surprise: float = 0.2
    block_rows: int = 64
    second_moment_error: float = 0.05


@dataclass(frozen=True)
class NoiseLawSettings:
    """Tuned numbers of `noise_law`.

    Parameters
    ----------
    core : float
        Standard deviations within which residuals are the core of the noise.
    core_bins : int
        Bins of the core, on either side.
    bin_ratio : float
        Upper by lower end of a bin outside the core.
    smooth_log_odds, tail_log_odds : float
        Log odds a priori that the law is not normal, and that there is a rare part outside.
    asymmetric_log_odds : float
        Log odds a priori that the law is not the same on both sides of zero.
    smooth_spread, smooth_length : float
        Standard deviation a priori of the difference to a normal law, relative to the mean of that
        law and Student's t; and how far it reaches, in units of arsinh(size / standard deviation).
    degrees : float
        Degrees of freedom of that t: tails of a smooth law that are heavier are told by rare parts.
    tail_masses : Grid
        Candidates, geometric, of the mass of a rare part.
    variance_error : float
        Relative error of the variance that the core is thought to have.
    """

    core: float = 2.0
    core_bins: int = 4
    bin_ratio: float = 1.2
    smooth_log_odds: float = -1.0
    tail_log_odds: float = -1.5
    asymmetric_log_odds: float = -1.0
    smooth_spread: float = 1.0
    smooth_length: float = 1.0
    degrees: float = 3.0
    tail_masses: Grid = (1e-4, 1.0, 190)
    variance_error: float = 0.1


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

    damping: float = 0.1
    min_error: float = 0.02
    min_density_error: float = 1.0
    hidden_error: float = 2.0
    densities: int = 8
    prior_records: float = 10.0
    log_density_sd: float = 2.0
    steps: int = 12
    first_steps: int = 60
    first_step: float = 5
    step_growth: float = 1.5
    step_shrinkage: float = 0.4
    min_log_probability: float = -700.0
    rounding: float = 1e-9


@dataclass(frozen=True)
class EvidenceSearchSettings:
    """Tuned numbers of `hyperparameters`.

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

    ascents: int = 2
    ascent_steps: int = 25
    proposal_inflation: float = 1.3
    proposal_tail: float = 0.001
    max_curvature: float = 1e10
    difference: float = 0.05
    dropped_weight: float = 1e-3
    grid: float = 0.01


POSTERIOR = StagedPosteriorSettings()
CLIPPED_MOMENTS = ClippedMomentSettings()
NOISE_LAW = NoiseLawSettings()
GRAM = GramSettings()
EVIDENCE_SEARCH = EvidenceSearchSettings()
