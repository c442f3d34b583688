"""Settings of inference from binned sums: tuned numbers, with their meaning and reason.

Ranges are given as (lowest, highest).
"""

from dataclasses import dataclass
from math import log

from reticent.number_kinds import Numerical, Prior, Tuned

__all__ = ["BINNED_POSTERIOR", "BinnedPosteriorSettings"]

Range = tuple[float, float]


@dataclass(frozen=True)
class BinnedPosteriorSettings:
    """Tuned numbers of `hyperparameters` and `posterior`.

    Parameters
    ----------
    max_hypotheses : int
        Most hypotheses that predictions are averaged over.
    log_noise_range : Range
        Logarithms of s², the variance of outputs at one place, in squared half-ranges of where
        outputs lie.
    log_dispersion_range : Range
        Logarithms of the variance of a count over its expectation: from Poisson to clustered.
    min_count : float
        Smallest expected count of a region, where noise says less: variances stay positive.
    empty_sd : float
        Standard deviations of a count's error below which a region may have no records.
    min_output_variance : float
        Least variance of all outputs that priors are scaled by, of that of even ones.
    min_noise_variance : float
        Smallest s², in squared half-ranges of y, in the uncertainty of a sum of squares.
    step_nodes : int
        Places of a step in the density of records, within a region, that are averaged over.
    first_trials_fraction, min_trials : int
        Hypotheses of all but the last fit: one in so many, and at least so many.
    min_variance : float
        Added to variances of observations, where nothing was observed without noise.
    jitter, jitter_per_pair : float
        Relative to the mean variance of an observation: what arithmetic loses, and what it loses
        more with narrow boxes, times their squared number.
    """

    max_hypotheses: Numerical[int] = 16
    log_noise_range: Prior[Range] = (log(0.02**2), log(0.9**2))
    log_dispersion_range: Prior[Range] = (0.0, log(400.0))
    min_count: Tuned[float] = 0.3
    empty_sd: Tuned[float] = 2.0
    min_output_variance: Numerical[float] = 1e-4
    min_noise_variance: Numerical[float] = 1e-4
    step_nodes: Numerical[int] = 16
    first_trials_fraction: Numerical[int] = 3
    min_trials: Numerical[int] = 4
    min_variance: Numerical[float] = 1e-12
    jitter: Numerical[float] = 1e-9
    jitter_per_pair: Numerical[float] = 1e-13


BINNED_POSTERIOR = BinnedPosteriorSettings()
