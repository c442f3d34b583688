"""Settings of mixtures, clusters and factors: their tuned numbers, in one place for each engine.

They were found on development seeds; docs/lab says what else was tried (mixtures.md, clusters.md).
"Budget shares" are the equal releases that a fit pays for: a release may spend several of them, and
has the less noise.
"""

from dataclasses import dataclass

from reticent.inference.mixtures.settings import FactorModelSettings, MixtureMomentSettings
from reticent.number_kinds import Limit, Numerical, Tuned

__all__ = [
    "COMPLETE",
    "COVARIANCE",
    "KMEANS",
    "MIXTURE",
    "CompleteRecordsSettings",
    "CovarianceSettings",
    "KMeansSettings",
    "MixtureSchedule",
    "MixtureSettings",
]


@dataclass(frozen=True)
class CompleteRecordsSettings:
    """Tuned number of `CompleteRecords`."""

    visible_sd: float = MixtureMomentSettings.significant_sd
    """Standard deviations of its noise by which a count must fall short of the public number of
    records to be believed. Without it, noise would spoil the moments of complete tables."""


@dataclass(frozen=True)
class MixtureSchedule:
    """Budget shares of each release after the pooled stage, and weights of the last ones' moments.

    ``moment_weights``: squared weights of counts, sums and second moments in the last stage; a
    larger one buys less noise on these at the expense of the others.
    """

    each_centre_step: int
    tied: tuple[int, int]
    components: int
    moment_weights: tuple[int, int, int]


@dataclass(frozen=True)
class MixtureSettings:
    """Tuned numbers of `GaussianMixture`. Lengths are in standard deviations of a component."""

    # Budget shares, 160 in all
    pooled: Tuned[tuple[int, int, int]] = (4, 8, 12)
    """For the histogram of record norms, the first moments, and a look at whitened residuals."""
    comparison: Tuned[int] = 2
    """For each question whether one mixture fits better than another."""
    comparison_noise: Tuned[float] = 0.02
    """Noise of a mean log-ratio in such a question, which log-ratios are clipped for."""
    wide_log_ratio: Tuned[float] = 30.0
    """A second clip threshold of log-ratios, in first ones,"""
    visible_ratio: float = MixtureMomentSettings.significant_sd
    """and standard deviations of its noise by which such a mean must be negative to decide."""
    least_log_ratio: Tuned[float] = 2.0
    """Least clip threshold of a log-ratio: as far as a probability tells two mixtures apart."""
    uncertain_centres: Tuned[MixtureSchedule] = MixtureSchedule(2, (12, 18), 62, (1, 2, 8))
    """Second moments have four times the weight of sums: 22 % less noise than balanced weights."""
    certain_centres: Tuned[MixtureSchedule] = MixtureSchedule(1, (8, 12), 92, (1, 4, 32))
    """Where centres are certain, most is spent on covariances. Both schedules spend as much."""
    certain_centre_sd: Tuned[float] = 0.06
    """How far noise may move a centre in one step for centres to count as certain."""

    # Pooled normal distribution
    least_sd: Numerical[float] = 1e-5
    """Standard deviation of a column that does not vary, in half-ranges."""
    norm_bins_per_octave: Numerical[int] = 4
    norm_bins: Numerical[int] = 48
    """Edges of the histogram of record norms, downwards from the longest record possible."""
    idle_noise: float = FactorModelSettings.idle_noise
    """Noise of second moments, relative to that of sampling, which costs nothing."""
    long_tails: Tuned[float] = 0.5
    """Width of the shorter half of the records, relative to that of normal ones with their
    covariance, below which components are looked for where that half is."""
    length_shares: Tuned[int] = 16
    """One in so many budget shares of a look at residuals is spent on a histogram of their lengths,
    which says where to clip them."""
    intercept: Tuned[float] = 0.35
    """The constant beside the coordinates of a row: weight of means against second moments."""
    clip_quantile: Tuned[float] = 0.6
    """Quantile of the length of standard normal residuals that they are clipped to."""
    narrowest_variance: Tuned[float] = 0.1
    """Least factor by which one step changes a variance."""

    # Centres
    centres_per_component: Tuned[int] = 3
    """Centres that search, which are merged afterwards."""
    centre_steps: Tuned[tuple[int, int]] = (14, 6)
    """Steps before and after centres are merged. The first ones assign each record to its nearest
    centre: soft assignments draw random centres together to one point."""
    visible_centre: float = MixtureMomentSettings.significant_sd
    """Standard deviations of its noise that the number of records nearest to a centre must exceed,
    else it is put beside the centre with most records,"""
    splitting_steps: Tuned[int] = 9
    """in so many first steps."""
    split_distance: Tuned[float] = 0.25
    """How far both are moved apart, in standard deviations of all records."""
    directions_per_component: Tuned[float] = 1.5
    """Leading directions in which centres search, at least two."""
    least_count: Tuned[float] = 4.0
    """Standard deviations of its noise that a component's count is taken to be at least."""
    tied_moment_weights: Tuned[tuple[int, int, int]] = (1, 4, 4)
    """Squared weights of counts, sums and second moments where components share a covariance."""

    # How many components
    carried_centre_sd: Tuned[float] = 0.5
    """How far noise may move a centre in one step before there are fewer components."""
    single_look_noise: Tuned[float] = 1.0
    """Noise in the eigenvalues of a component's covariance, relative to them, above which all that
    is left is spent on one look."""
    hopeless_noise: Tuned[float] = 3.0
    """The same noise, above which components have one covariance."""
    converging_noise: Tuned[float] = 0.15
    """The same noise, with which one more step of EM is worth its share of the budget."""
    most_components: Limit[int] = 200
    """That a user may ask for."""
    free_components: Tuned[tuple[int, int]] = (3, 10)
    """How many are sought where none are asked for: at least, if the budget carries them, and at
    the most; they are joined afterwards,"""
    free_centre_sd: Tuned[float] = 0.05
    """and must be found: so far may noise move a centre in one step, before fewer are sought."""
    question: Tuned[int] = 1
    """Budget shares for each question how many there are, which the last stage has less."""
    most_covariance_numbers: Limit[int] = 5 * 10**6
    """Numbers of all covariances together, at most."""

    # Histogram, in one or two dimensions
    most_histogram_columns: Tuned[int] = 2
    """With more columns a histogram has too many cells, and centres search instead."""
    histogram_cells: Tuned[float] = 0.22
    """Cells for each n over the noise of a count."""
    fewest_bins: Tuned[int] = 8
    """Along each column, whatever the noise: fewer show no components."""
    most_bins: Numerical[tuple[int, int]] = (256, 48)
    """Along each column, with one column and with two."""
    histogram_half_width: Tuned[float] = 4.0
    """In standard deviations of all records."""
    refined_component_size: Tuned[float] = 300.0
    """Records of a component over the noise of a count, with the whole budget, from which residuals
    improve on the histogram."""

    # Mixed columns
    most_whole_levels: Tuned[int] = 12
    """Whole numbers with so many values are levels; with more they are numbers, and are rounded."""
    cycle_cells: Tuned[int] = 12
    """Equal cells of a cycle, which are levels."""
    margins: Tuned[int] = 12
    """Budget shares for the counts of all levels, which the last stage has less."""
    words_part: Tuned[tuple[float, float]] = (0.3, 0.7)
    """Least and largest part of a step's budget shares that is spent on words: else their part of
    the columns."""

    # Sampling
    redraws: Numerical[int] = 50
    """Of synthetic records that fall outside a ball (`Bounds(norm=...)`); then they are moved to
    its surface."""

    @property
    def shares(self) -> int:
        """Budget shares of a fit."""
        plan = self.uncertain_centres
        return (
            sum(self.pooled)
            + self.search_shares(plan)
            + self.comparison
            + plan.components
            + self.comparison
        )

    def search_shares(self, plan: MixtureSchedule) -> int:
        """Budget shares of the centres and the tied stage together."""
        return sum(self.centre_steps) * plan.each_centre_step + sum(plan.tied)


@dataclass(frozen=True)
class KMeansSettings:
    """Tuned numbers of `KMeans`. Distances are on the bounds' scale."""

    shares: Tuned[int] = 16
    """Budget shares of a fit."""
    count_shares: Tuned[int] = 1
    """Those of them that count the records nearest to each centre, once the centres stand."""
    most_clusters: Limit[int] = 1000
    """That a user may ask for."""
    most_grid_columns: Tuned[int] = 3
    """With more columns a grid has too many cells, and centres search instead."""

    # Few columns: coarse grid, leaves, one Lloyd step
    refined_cluster_size: Tuned[float] = 600.0
    """Records of a cluster over the noise of a count, with the whole budget, from which the grid is
    refined; with fewer, all is spent on one grid."""
    coarse_shares: Tuned[int] = 6
    leaf_shares: Tuned[int] = 6
    step_shares: Tuned[int] = 3
    """Budget shares of the coarse grid, of its leaves, and of the last steps together."""
    coarse_cells: Tuned[float] = 0.04
    """Cells of the coarse grid for each n over the noise of a count."""
    step_clip: Tuned[float] = 2.5
    """Least clip threshold of the last step, in root mean squares of each cluster."""
    idle_clip: Tuned[float] = 8.0
    """Clip threshold that noise allows, from which there are several last steps instead of one."""

    # Many columns: covariance, search in the leading directions, steps in all columns
    covariance_shares: Tuned[int] = 4
    """Budget shares of the covariance, whose leading directions centres search in."""
    lost_covariance_shares: Tuned[int] = 12
    """The same, where noise would move centres farther than records lie apart,"""
    lost_looks: Tuned[int] = 4
    """looks for the mean among these,"""
    lost_look_parts: Tuned[tuple[float, float]] = (2 / 3, 1 / 2)
    """with one share each if looks would pay at the first part of the budget, two if they would at
    the second; if at neither, all the budget is for one look."""
    search_steps: Tuned[int] = 5
    """Steps of one budget share in the leading directions,"""
    final_steps: Tuned[int] = 3
    final_step_shares: Tuned[int] = 2
    """and those in all columns, with the budget shares of each."""
    centres_per_cluster: int = MixtureSettings.centres_per_component
    most_per_cluster: Tuned[int] = 20
    """Centres that search, least and most; weighted k-means of them leaves one for each cluster."""
    clear_centre: Tuned[float] = 200.0
    """Records over the noise of one budget share and the root of the number of directions, from
    which one more centre searches."""
    directions_per_cluster: float = MixtureSettings.directions_per_component
    """Leading directions in which centres search."""
    search_clip: Tuned[float] = 1.2
    """Largest clip threshold, in root mean squares, while centres are far from their places."""
    moment_weights: Tuned[tuple[int, int, int]] = (4, 4, 1)
    """Squared weights of counts, sums, and the one sum of squares, which costs 6 % more noise."""
    least_count: float = MixtureSettings.least_count
    """Standard deviations of its noise that a cluster's count is taken to be at least."""
    least_mean_square: Tuned[float] = 0.05
    """Least factor by which one step changes the mean square of residuals."""


@dataclass(frozen=True)
class CovarianceSettings:
    """Tuned numbers of the covariance that factors and clusters begin with."""

    shares: Tuned[int] = 8
    """Budget shares for factors: half for the columns, half for the correlations."""
    column_norm: Tuned[tuple[float, float]] = (0.2, 0.7)
    record_norm: Tuned[tuple[float, float]] = (0.6, 1)
    """Squared norms that rows of column moments, and standardised records, are clipped to, where
    noise is high: d·(a + b/√d), a little more than normal columns have."""
    low_noise: Tuned[float] = 0.05
    """Noise of a correlation, below which standardised records are clipped less,"""
    most_room: Tuned[float] = 6.0
    """up to so many times their expected squared length: then hardly any normal one is clipped."""
    idle_noise: float = FactorModelSettings.idle_noise
    """Noise of a correlation, relative to that of sampling, which costs nothing: with less,
    standardised records are clipped ever less."""
    column_clip: Tuned[float] = 4.0
    """Standard deviations that a standardised column is clipped to, where noise is not idle: a rare
    value far away in a column that hardly varies shall not shorten the rest of its record."""
    hidden_for_directions: Tuned[float] = 0.02
    """Noise of a column's variance, relative to it, above which columns are not standardised for
    the directions of most variance, which are measured on the bounds' scale,"""
    hidden_for_density: Tuned[float] = 0.6
    """and for a density, which says what is likely in each column: there noise must hide more."""
    looks_part: Tuned[float] = 0.35
    """Part of the budget shares for looks at the mean, where columns are not standardised."""
    look_weights: tuple[int, int, int] = KMeansSettings.moment_weights
    """Squared weights of the count, the sums, and the one sum of squares of a look for the mean,
    which costs nothing: the sums alone have as much noise."""
    high_noise: Tuned[float] = 0.4
    """In the first mean squares, of columns within ±1: with more, finer stages find nothing, and
    all is spent on one."""


COMPLETE = CompleteRecordsSettings()
MIXTURE = MixtureSettings()
KMEANS = KMeansSettings()
COVARIANCE = CovarianceSettings()
