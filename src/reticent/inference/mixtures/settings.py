"""Settings of inference about mixtures, clusters and factors: tuned numbers, with their reason.

Budget shares, numbers of steps and clip thresholds are up to the models
(`reticent.models.mixtures.settings`).
"""

import math
from dataclasses import dataclass

from reticent.number_kinds import Derived, Numerical, Prior, Tuned

__all__ = [
    "ADAPTIVE_GRID",
    "BOUNDED_NORMAL",
    "FACTOR_MODEL",
    "LATENT_CLASS",
    "MIXTURE_MOMENTS",
    "SPREAD",
    "WEIGHTED_KMEANS",
    "AdaptiveGridSettings",
    "BoundedNormalSettings",
    "FactorModelSettings",
    "LatentClassSettings",
    "MixtureMomentSettings",
    "SpreadSettings",
    "WeightedKMeansSettings",
]


@dataclass(frozen=True)
class MixtureMomentSettings:
    """Tuned numbers of `gaussian_mixture`.

    Parameters
    ----------
    significant_sd : float
        Standard deviations by which a sum of squares, a count, a neighbourhood of cells or a mean
        log-ratio must exceed what noise gives, to be believed.
    visible_sd : float
        Standard deviations by which the number of records beyond a length must exceed its noise:
        there are some forty lengths to look beyond.
    length_concentration : float
        How near lengths of residuals are to those of normal ones, a priori: as a Dirichlet law of
        this concentration. A tenth of the records is then a tenth within a third of it.
    length_freedom : float
        Degrees of freedom of the t distribution that says where lengths depart from normal ones:
        there are more long residuals than normal ones have.
    min_variance_factor, noisy_min_variance_factor : float
        Smallest factor by which one step may change a variance, at little and at much noise.
    max_variance_factor : float
        Largest factor by which one step may change a variance.
    grid_starts, grid_steps : int
        Starts of EM on the counts of a grid, and its steps.
    patience : int
        Numbers of components, one after the other, that are worse than the best so far, after which
        more are not tried.
    min_component_fraction : float
        Fraction of an average component's records below which a component is left as it is.
    """

    significant_sd: Tuned[float] = 2.0
    visible_sd: Tuned[float] = 3.5
    length_concentration: Prior[float] = 80.0
    length_freedom: Prior[float] = 7.0
    min_variance_factor: Tuned[float] = 0.2
    noisy_min_variance_factor: Tuned[float] = 0.7
    max_variance_factor: Tuned[float] = 5.0
    grid_starts: Numerical[int] = 8
    grid_steps: Numerical[int] = 60
    patience: Tuned[int] = 2
    min_component_fraction: Numerical[float] = 1e-3


@dataclass(frozen=True)
class WeightedKMeansSettings:
    """Tuned numbers of `weighted_kmeans`.

    Parameters
    ----------
    restarts, few_distances_restarts : int
        Starts of k-means++; more where distances are few: 20 starts missed the best by 0.1 % on
        6 % of data sets.
    few_distances : int
        Points times centres up to which distances are few.
    first_steps, lloyd_steps : int
        Steps of Lloyd's algorithm from each start, and most steps of those that are continued.
    continued : int
        Starts that are continued: those with the least cost so far.
    excess_cost : float
        Mean squared distance that the noise of one step may add, relative to it.
    min_radius : float
        Least clip threshold of residuals, in root mean squares.
    significance_offset, min_significance : float
        A cell counts if it exceeds √(2 log cells) standard deviations of the noise less the first,
        and at least the second.
    """

    restarts: Numerical[int] = 20
    few_distances_restarts: Numerical[int] = 60
    few_distances: Numerical[int] = 20_000
    first_steps: Numerical[int] = 5
    lloyd_steps: Numerical[int] = 100
    continued: Numerical[int] = 5
    excess_cost: Tuned[float] = 0.0005
    min_radius: Tuned[float] = 1.2
    significance_offset: Tuned[float] = 0.2
    min_significance: float = MixtureMomentSettings.significant_sd


@dataclass(frozen=True)
class AdaptiveGridSettings:
    """Tuned numbers of `adaptive_grid`. Sizes of counts are in standard deviations of their noise.

    Parameters
    ----------
    leaf_size : float
        Expected size of a leaf's count: cells are cut until their leaves have no more.
    max_split : int
        Most leaves along a column of a cell.
    max_leaves : float
        Most leaves of all cells, about.
    min_blocks_across : int
        A block spans at most the inverse of this fraction of a column (and of the number of
        clusters).
    max_block_side : int
        Most cells along a side of a block.
    min_blocks_per_cluster : int
        Least number of blocks that hold as many records as a cluster has on average.
    prior_odds : float
        Odds a priori that a block has records.
    coupling : float
        Log odds that two blocks that touch are alike.
    log_size_range, sizes : (float, float), int
        Logarithms of the size of a count, if there are records: lowest, highest and how many.
    certain_size : float
        Size from which a count is taken as it is.
    propagation_rounds : int
        Rounds of belief propagation.
    min_size : float
        Smallest size that is distinguished: exp must not overflow.
    max_log_odds : float
        Largest log odds from a block's own count.
    min_significance : float
        Size that a heavy cell or leaf must have at least to stand out.
    """

    leaf_size: Tuned[float] = 6.0
    max_split: Numerical[int] = 32
    max_leaves: Numerical[float] = 4096.0
    min_blocks_across: Tuned[int] = 5
    max_block_side: Tuned[int] = 3
    min_blocks_per_cluster: Tuned[int] = 5
    prior_odds: Prior[float] = 0.2
    coupling: Prior[float] = 1.2
    log_size_range: Prior[tuple[float, float]] = (math.log(0.25), math.log(40.0))
    sizes: Numerical[int] = 64
    certain_size: Numerical[float] = 20.0
    propagation_rounds: Numerical[int] = 40
    min_size: Numerical[float] = -30.0
    max_log_odds: Numerical[float] = 40.0
    min_significance: float = MixtureMomentSettings.significant_sd


@dataclass(frozen=True)
class FactorModelSettings:
    """Tuned numbers of `factor_model`.

    Parameters
    ----------
    window_sd : float
        Half-width of the next window, in standard deviations as estimated.
    window_upper_sd : float
        The same in standard deviations as they may be, two standard errors above the estimate.
    idle_noise : float
        Noise of a mean or a mean square, relative to that of sampling, which costs nothing.
    tail_odds : float
        Factor on the odds of noise with a rare part: columns have long tails more often.
    rounding : float
        Distance from an end of the box that is none.
    windows : int
        Windows between which the error of the mean chooses.
    cut_off_sd : float
        Standard deviations of noise by which a wider window must find more variance, for the
        narrower one to have cut something off.
    cut_off_slope : float
        How sharply that is decided: slope of a logistic function.
    hidden_variance : float
        Variance that rare values far away may add unseen, relative to the first window's noise.
    min_signal : float
        Smallest fraction of the squared norm of standardised records that clipping may leave.
    max_floor : float
        Largest lower bound of Ψ and of eigenvalues of correlations; below, it is the noise.
    scale_correction_range : (float, float)
        Factors by which the Gram matrix may correct variances.
    em_steps : int
        Steps of EM.
    rotation_steps : int
        Steps of a rotation's singular value decompositions.
    """

    window_sd: Tuned[float] = 2.5
    window_upper_sd: Tuned[float] = 1.5
    idle_noise: Tuned[float] = 0.3
    cut_off_sd: Tuned[float] = 1.6
    rounding: Numerical[float] = 1e-9
    windows: Numerical[int] = 12
    tail_odds: Prior[float] = 4.5
    cut_off_slope: Tuned[float] = 4.0
    hidden_variance: Tuned[float] = 0.06
    min_signal: Tuned[float] = 0.3
    max_floor: Tuned[float] = 0.1
    scale_correction_range: Tuned[tuple[float, float]] = (0.5, 2.0)
    em_steps: Numerical[int] = 60
    rotation_steps: Numerical[int] = 100


@dataclass(frozen=True)
class SpreadSettings:
    """Tuned numbers of `spread`.

    Parameters
    ----------
    spread : float
        Fraction of the records' squared length that is left from their mean, a priori.
    box_square : float
        Mean square of a record that is anywhere in the box, relative to the largest.
    hidden_order : float
        What of the eigenvalues that noise would hide stays, so that directions have an order: far
        less than any that is told.
    max_floor : float
        Largest lower bound of eigenvalues, relative to their mean; below, it is the noise.
    cut_off : float
        How far a mean may move if records are shortened to their root mean squared length, in such
        lengths,
    least_excess : float
        and the least length that they are shortened to for a mean.
    saturated : float
        Largest mean square of lengths shortened to one that says how long they were before,
    largest_square : float
        and largest mean square that this may be.
    """

    spread: Prior[float] = 0.5
    box_square: Derived[float] = 1 / 3
    hidden_order: Numerical[float] = 1e-4
    max_floor: float = FactorModelSettings.max_floor
    cut_off: Tuned[float] = 0.4
    least_excess: Tuned[float] = 1.5
    saturated: Tuned[float] = 0.9
    largest_square: Tuned[float] = 20.0


@dataclass(frozen=True)
class BoundedNormalSettings:
    """Tuned numbers of `bounded_normal`. Lengths are in standard deviations.

    Parameters
    ----------
    farthest_edge : float
        How far from the mean an edge changes nothing.
    cells : int
        Cells that a density is tabulated in.
    most_variance : float
        Largest variance, relative to the largest that a distribution with this mean can have.
    least_margin : float
        How far from an edge a mean is at least, relative to the range.
    newton_steps, least_step : int, float
        Most steps of Newton's method, and the least fraction of one that is tried.
    """

    farthest_edge: Numerical[float] = 9.0
    cells: Numerical[int] = 2000
    most_variance: Tuned[float] = 0.9
    least_margin: Numerical[float] = 1e-6
    newton_steps: Numerical[int] = 60
    least_step: Numerical[float] = 1e-6


@dataclass(frozen=True)
class LatentClassSettings:
    """Tuned numbers of `latent_class`.

    Parameters
    ----------
    prior_records : float
        Records that the Dirichlet prior of the probabilities of a column's levels weighs.
    least_chance : float
        Least probability of a level, before all are divided by their sum.
    fitting_steps : int
        Steps of iterative proportional fitting.
    """

    prior_records: Prior[float] = 1.0
    least_chance: Numerical[float] = 1e-6
    fitting_steps: Numerical[int] = 30


MIXTURE_MOMENTS = MixtureMomentSettings()
WEIGHTED_KMEANS = WeightedKMeansSettings()
ADAPTIVE_GRID = AdaptiveGridSettings()
FACTOR_MODEL = FactorModelSettings()
SPREAD = SpreadSettings()
BOUNDED_NORMAL = BoundedNormalSettings()
LATENT_CLASS = LatentClassSettings()
