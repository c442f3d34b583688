"""Settings of the Gaussian-process models: every tuned number, with its reason.

Studies that chose them are in ``docs/lab``. They are public and the same in every fit: a model that
is rebuilt from releases must use those it was fitted with.
"""

from dataclasses import dataclass

from reticent.inference.binned.settings import BinnedPosteriorSettings
from reticent.number_kinds import Derived, Limit, Numerical, Prior, Tuned

__all__ = [
    "BASIS",
    "BINNED",
    "CLASSES",
    "INPUTS",
    "LABELS",
    "LIMITS",
    "PRIOR",
    "STAGED_FIT",
    "BasisSettings",
    "BinnedSettings",
    "ClassifierSettings",
    "InputSettings",
    "LabelSettings",
    "LimitSettings",
    "PriorSettings",
    "StagedFitSettings",
]


@dataclass(frozen=True)
class StagedFitSettings:
    """Numbers of a staged regression.

    Attributes
    ----------
    stages : int
        Releases of a fit, unless the user says how many.
    stages_per_input_release : int
        One release in so many is about the inputs alone, if no kernel is given.
    clip_schedule : tuple of float
        Least clip threshold of each stage, in standard deviations of the residual; the last one
        repeats. Wide where the function is not known yet: what is clipped of it is distorted in all
        stages alike. `GPRegressor._clip_thresholds` has the rule.
    first_clip : float
        The same for the first stage, which is clipped at the bounds of y if they are wider. And
        where sizes of residuals end at least: they tell most of noise that is a quarter larger than
        on average.
    negligible_noise : float
        Privacy noise by sampling noise that no clip need save.
    many_records : float
        n / noise multiplier above which the default prior's clips are widened.
    largest_clip : float
        Threshold that is never exceeded, in standard deviations of the residual, if it is wider
        than the bounds of y: they may be too narrow.
    clip_candidates : int
        Thresholds between which the expected error chooses.
    early_stages : int
        Stages in which the range of y, or a given prior, may prove too small: priors are rescaled
        and clips inflated.
    review_stages : tuple of int
        Stages before which a given kernel's box and hypotheses are reviewed, if as many are left.
    largest_truncation_fraction : float
        Fraction of the prior variance that the basis may miss before it is asked whether the
        records are in a small part of the box.
    coarse_ratio : float
        Truncation variance over posterior variance from which on kernels are refined.
    coarse_ratio_of_refined : float
        The same under the refined kernels, from which on the basis is refined with them.
    noise_guess : float
        First guess of the noise's standard deviation, in half-ranges of y.
    min_noise_fraction : float
        Least fraction of the noise's variance that is left where clips of different widths, or the
        truncation variance, say that there is less.
    min_noise_variance : float
        Least variance of the noise, relative to that of a residual.
    drowned_snr : float
        Squared signal over privacy noise, per function and input, below which hardly any effect is
        found and the constant gets more of a row's norm.
    """

    stages: Tuned[int] = 24
    stages_per_input_release: Tuned[int] = 12
    clip_schedule: Tuned[tuple[float, ...]] = (2.0, 1.5, 1.0, 0.5)
    first_clip: Tuned[float] = 2.0
    negligible_noise: Tuned[float] = 0.25
    many_records: Tuned[float] = 20.0
    largest_clip: Tuned[float] = 8.0
    clip_candidates: Numerical[int] = 24
    early_stages: Tuned[int] = 3
    review_stages: Tuned[tuple[int, ...]] = (4, 8, 12)
    largest_truncation_fraction: Tuned[float] = 0.05
    coarse_ratio: Tuned[float] = 0.25
    coarse_ratio_of_refined: Tuned[float] = 0.025
    noise_guess: Prior[float] = 0.2
    min_noise_fraction: Tuned[float] = 0.25
    min_noise_variance: Numerical[float] = 1e-4
    drowned_snr: Tuned[float] = 0.0125


@dataclass(frozen=True)
class BasisSettings:
    """Numbers of the prior and of its basis.

    Attributes
    ----------
    min_size, max_size : int
        Number of basis functions, at least and at most. The most is a matter of time alone, which
        grows with its cube: privacy noise allows for more from d = 4, n = 20,000, ε = 10 on.
    hypotheses : int
        Kernels within a factor of ten of the one given, between which the evidence chooses.
    refined_hypotheses : int
        Kernels around the best one, once the releases speak for it.
    gradient_step : float
        Difference of log-hyperparameters for the slope of a kernel matrix.
    inputs_room : int
        Basis functions beyond ``min_size`` for each input, at least.
    scaling_exponent_range : tuple of float
        Power of the prior variance that a feature is scaled by, where privacy noise is low and
        where it drowns small coefficients.
    trial_scaling_exponent, trial_norm_quantile : float
        Power of the prior variance, and quantile of the features' norms, with which a kernel is
        tried before the charge. They are among the values that fits use.
    middle_snr : float
        Squared signal over privacy noise, per function, at which the power is in the middle.
    snr_ratio : float
        Factor on that ratio by which the power goes from the middle to an end of the range.
    negligible_signal : float
        Prior variance of a function, relative and times signal over noise, below which it is left
        out however much room there is.
    many_records : float
        Records by the noise multiplier from which on a known small noise makes smaller functions
        worthwhile.
    """

    min_size: Tuned[int] = 4
    max_size: Numerical[int] = 400
    hypotheses: Numerical[int] = 48
    refined_hypotheses: Numerical[int] = 24
    gradient_step: Numerical[float] = 1e-4
    inputs_room: Tuned[int] = 3
    scaling_exponent_range: Tuned[tuple[float, float]] = (0.25, 0.5)
    trial_scaling_exponent: Numerical[float] = 0.25
    trial_norm_quantile: Numerical[float] = 0.95
    middle_snr: Tuned[float] = 1.3
    snr_ratio: Tuned[float] = 2.2
    negligible_signal: Tuned[float] = 0.01
    many_records: Tuned[float] = 1000.0


@dataclass(frozen=True)
class InputSettings:
    """Numbers of feature maps on inputs with an estimated density.

    Attributes
    ----------
    points : int
        Representative points, by which moments over the records are predicted.
    quadrature_points : int
        Points by which the mean of products of features is integrated.
    quadrature_dimension : int
        Inputs from which on it is: the points of fewer inputs are enough.
    few_points, few_functions : int
        Points that suffice for one input and at most so many functions.
    nonlinear_fraction : float
        Fraction of an input's variance that no straight line of its warped values explains, from
        which on it gets a linear term of its own.
    unclipped_fraction : float
        Fraction of the records whose features are not clipped, where features are rescaled to the
        data.
    most_whole_levels : int
        Most values of a whole number that are levels; one with more is treated as any number.
    gram_count_error : float
        Relative error of a count of the complete records that is read off a Gram matrix of features
        whose density is not known.
    """

    points: Numerical[int] = 512
    quadrature_points: Numerical[int] = 8192
    quadrature_dimension: Numerical[int] = 3
    few_points: Numerical[int] = 256
    few_functions: Numerical[int] = 40
    nonlinear_fraction: Tuned[float] = 0.15
    unclipped_fraction: Tuned[float] = 0.05
    most_whole_levels: Tuned[int] = 32
    gram_count_error: Prior[float] = 0.15


@dataclass(frozen=True)
class ClassifierSettings:
    """Numbers of a staged classification.

    Attributes
    ----------
    stages, stages_per_input_release : int
        Releases of a fit, and how many there are for one about the inputs alone, as for
        `StagedFitSettings`.
    logit_variance : float
        Variance of logits as a multiple of the default prior's, which is made for numbers between
        −1 and 1.
    max_size : int
        Most basis functions that are chosen: hypotheses are weighed in every stage, each by a
        factorisation of its own, and 400 functions take a minute.
    max_basis_size : int
        Most basis functions that a user may ask for.
    scaling_exponent : float
        Power of the prior variance that features are scaled by.
    constant_feature : float
        Constant s beside the features in the release by class, which gives Σφ and counts.
    max_class_columns : int
        Most columns, classes × (functions + 1), of the release by class: their square is released.
    """

    stages: int = StagedFitSettings.stages
    stages_per_input_release: int = StagedFitSettings.stages_per_input_release
    logit_variance: Prior[float] = 64.0
    max_size: Numerical[int] = 150
    max_basis_size: Limit[int] = 500
    scaling_exponent: Tuned[float] = 0.4
    constant_feature: Tuned[float] = 0.5
    max_class_columns: Limit[int] = 1500


@dataclass(frozen=True)
class LabelSettings:
    """Numbers of a label-only regression.

    Attributes
    ----------
    stages : int
        Releases of a fit, unless the user says how many.
    clip_schedule : tuple of float
        Least clip threshold of each stage after the first, in standard deviations of the residual;
        the last one repeats. `LabelGPRegressor._clip_threshold` has the rule.
    square_fraction : float
        Fraction of a row's squared norm that goes to the residuals' size, where the noise is to be
        learned.
    hypotheses : int
        Kernels within a factor of ten of the one given.
    max_inducing_inputs, inducing_candidates : int
        Inputs that carry the function, and inputs that they are chosen from.
    default_inducing : int
        Inducing inputs of mechanism "inducing" if their number is not given.
    max_inputs, max_points : int
        Most different inputs of the records, and most points of interest.
    no_records : float
        Number of records that a fit without complete inputs is made with: weights stay positive.
    noise_guess : float
        First guess of the noise's standard deviation, in half-ranges of y.
    input_trace : float
        Part of the records' own target that stays beside given points of interest: points far from
        all records would ask for nothing.
    prior_variance, prior_factor : float
        Prior variance of the constant and of the function without a kernel, in squared half-ranges
        of y; it and lengthscales may be smaller or larger by the factor.
    """

    stages: Tuned[int] = 8
    clip_schedule: Tuned[tuple[float, ...]] = (3.0, 2.0, 1.5)
    square_fraction: Tuned[float] = 0.1
    hypotheses: Numerical[int] = 48
    max_inducing_inputs: Numerical[int] = 256
    inducing_candidates: Numerical[int] = 2000
    default_inducing: Tuned[int] = 10
    max_inputs: Limit[int] = 20_000
    max_points: Limit[int] = 10_000
    no_records: Numerical[float] = 1e-6
    noise_guess: float = StagedFitSettings.noise_guess
    input_trace: Numerical[float] = 1e-6
    prior_variance: Prior[float] = 0.3
    prior_factor: Prior[float] = 10


@dataclass(frozen=True)
class PriorSettings:
    """Numbers of the prior of label-only and of binned regressions.

    Attributes
    ----------
    level_variance : float
        Variance of the function's level beside a kernel that is given, in squared half-ranges of y:
        that of a number which may be anywhere in them. A kernel says how a function varies about
        its level; without this, functions were drawn to the middle of the range.
    """

    level_variance: Prior[float] = 1 / 3


@dataclass(frozen=True)
class BinnedSettings:
    """Numbers of a binned regression.

    Attributes
    ----------
    hypotheses, min_hypotheses : int
        Kernels that are tried in a round, at most and at least.
    work : float
        Kernels times the cube of the number of bins, at most: the time of a fit.
    kernel_candidates : int
        Kernels that the exponential mechanism chooses between.
    releases_of_bins : int
        Where a kernel is chosen by the exponential mechanism, releases for the bins; the choice
        takes one more.
    max_scored_regions : int
        Most regions of such a choice: scores are quadratic forms of their sums.
    noise_guess, min_noise : float
        Standard deviation of the outputs that scores assume, in half-ranges of y, and the least
        (for counts, relative to a Poisson distribution).
    min_count : float
        Smallest number of records in a bin that scores assume: variances stay positive.
    constant_variance, function_variance : float
        Prior variances without a kernel: of the constant in squared half-ranges of y, of the
        function in those of where outputs lie.
    smoothness : float
        Of the default's means, ν of a Matérn kernel, which is as likely beforehand as an RBF
        kernel: functions of real data bend more in some places than in others.
    density_variance : float
        Prior variance of a density without a kernel, relative to a uniform one.
    length_range : tuple of float
        Lengthscales without a kernel, in half-ranges of the input; the shortest one in those of
        where records stand, and shorter where bins are narrower.
    variance_range : tuple of float
        Least and largest of those variances.
    fewest_bins : int
        Bins of each input, at least, if the user gives none.
    most_bins : tuple of int
        Bins of each of one, two, three, or more inputs, at most: a matter of time, not of noise.
    max_regions : int
        Most regions: a Gaussian process takes their cube of time.
    max_cells : int
        Most cells of a grid, before they are joined to regions.
    narrowest_bin : float
        Narrowest bin whose edges a user may give, as a part of the range: distances between
        narrower ones are lost in rounding.
    smallest_volume : float
        Smallest volume of a bin, and one over the largest of a box: squares of densities, in many
        more bins where they are chosen, do not overflow.
    prediction_block : int
        Points that are predicted together, so that memory stays bounded.
    """

    hypotheses: Numerical[int] = 24
    min_hypotheses: Numerical[int] = 4
    work: Numerical[float] = 1e8
    kernel_candidates: Tuned[int] = 48
    releases_of_bins: Tuned[int] = 3
    max_scored_regions: Limit[int] = 1000
    noise_guess: float = StagedFitSettings.noise_guess
    min_noise: Tuned[float] = 0.01
    min_count: float = BinnedPosteriorSettings.min_count
    constant_variance: Prior[float] = 0.2
    function_variance: Prior[float] = 0.1
    smoothness: Prior[float] = 2.5
    density_variance: Prior[float] = 0.3
    length_range: Prior[tuple[float, float]] = (0.1, 5)
    variance_range: Prior[tuple[float, float]] = (1e-5, 1e5)
    fewest_bins: Tuned[int] = 4
    most_bins: Numerical[tuple[int, ...]] = (128, 20, 9, 6)
    max_regions: Limit[int] = 4096
    max_cells: Limit[int] = 2**20
    narrowest_bin: Limit[float] = 1e-12
    smallest_volume: Limit[float] = 1e-120
    prediction_block: Numerical[int] = 2048


@dataclass(frozen=True)
class LimitSettings:
    """Limits that all these models share. None of them is tuned.

    Attributes
    ----------
    max_stages, max_basis_size : int
        Most stages, and basis functions of a regression, that a user may ask for.
    largest_noise : float
        Largest standard deviation of the noise that may be given: its square must be a number.
    smallest_variance : float
        Smallest variance of a kernel, in squared half-ranges of y; the largest is its inverse.
        Beyond, matrices cannot be factored.
    prediction_block : int
        Points that are predicted together, so that memory stays bounded.
    band_sd : float
        Half-width of a 95 % band, in standard deviations.
    """

    max_stages: Limit[int] = 64
    max_basis_size: Limit[int] = 1000
    largest_noise: Limit[float] = 1e150
    smallest_variance: Limit[float] = 1e-24
    prediction_block: Numerical[int] = 4096
    band_sd: Derived[float] = 1.959963984540054


BINNED = BinnedSettings()
LIMITS = LimitSettings()
PRIOR = PriorSettings()
STAGED_FIT = StagedFitSettings()
CLASSES = ClassifierSettings()
LABELS = LabelSettings()
BASIS = BasisSettings()
INPUTS = InputSettings()
