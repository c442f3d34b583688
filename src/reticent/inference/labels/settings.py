"""Settings of inference from noisy sums of labels: tuned numbers, with their meaning and reason.

How many releases there are, and where labels are clipped, is up to the model
(`reticent.models.gp.settings.LabelSettings`).
"""

from dataclasses import dataclass

from reticent.number_kinds import Numerical, Prior, Tuned

__all__ = [
    "CLOAK",
    "DESIGN",
    "LABEL_POSTERIOR",
    "MISSING_LABELS",
    "CloakSettings",
    "DesignSettings",
    "LabelPosteriorSettings",
    "MissingLabelSettings",
]


@dataclass(frozen=True)
class LabelPosteriorSettings:
    """Tuned numbers of `posterior.LabelPosterior`.

    Parameters
    ----------
    jitter : float
        Added to the covariance of the inducing inputs, relative to its mean variance.
    noise_grid : (lowest, highest, number)
        Candidates of s², geometric, as multiples of the first guess, (1/5)² or more: up to 1, the
        largest variance of labels in [−1, 1]. Finer than `ClippedMomentSettings` has the error of
        a second moment: else hypotheses would be weighed by how near to the grid their noise is.
    noise_steps : int
        Rounds of noise variance and function, until the first changes by less than
        the error of a second moment: the evidence of a kernel under a wrong noise means nothing.
    min_noise_fraction : float
        Smallest fraction of s² that residuals of labels are taken to show: the function follows
        the labels it was learned from.
    uniform_weight : float
        Weight of all hypotheses alike in the kernel that the next release is designed for: what
        seems false now must still be tested.
    negligible_weight : float
        Weight of a hypothesis below which it is dropped.
    negligible_row : float
        Squared norm of an observation below which it says nothing, relative to the largest.
    predictive_weight, max_predictive : float, int
        Total weight, and largest number, of the hypotheses that predictions are averaged over.
    inducing_variance : float
        Variance that inducing inputs may leave out, relative to the largest.
    whole_matrix_ratio : int
        Inputs per inducing input up to which the whole kernel matrix is computed in one call.
    cached_numbers : int
        Numbers of all features that are kept from stage to stage (256 MB).
    """

    jitter: Numerical[float] = 1e-10
    noise_grid: Numerical[tuple[float, float, int]] = (1e-5, 25.0, 513)
    noise_steps: Numerical[int] = 4
    min_noise_fraction: Tuned[float] = 0.1
    uniform_weight: Tuned[float] = 0.1
    negligible_weight: Numerical[float] = 1e-5
    negligible_row: Numerical[float] = 1e-12
    predictive_weight: Numerical[float] = 0.995
    max_predictive: Numerical[int] = 16
    inducing_variance: Numerical[float] = 1e-6
    whole_matrix_ratio: Numerical[int] = 8
    cached_numbers: Numerical[int] = 2**25


@dataclass(frozen=True)
class MissingLabelSettings:
    """Tuned numbers of `missing_labels.MissingLabels`.

    Parameters
    ----------
    share_sd : float
        Standard deviation, about one half, of the share of missing labels: about uniform.
    amplitudes : tuple of float
        Standard deviations of how that share varies with the input.
    largest_share : float
        Largest share of missing labels at an input: variances stay finite.
    negligible_row : float
        As for `LabelPosteriorSettings`.
    """

    share_sd: Prior[float] = 0.3
    amplitudes: Prior[tuple[float, ...]] = (0.05, 0.1, 0.3)
    largest_share: Tuned[float] = 0.98
    negligible_row: Numerical[float] = 1e-12


@dataclass(frozen=True)
class DesignSettings:
    """Tuned numbers of `design`.

    Parameters
    ----------
    smoothing_factors : tuple of float
        Factors on the noise variances ν that are tried, increasing.
    negligible_signal : float
        Variance along an axis, relative to the privacy noise, below which it is left out.
    rough_tolerance, tolerance : float
        How near to the optimum the cloaks are that are compared, and the one that is used.
    norm_margin : float
        Relative margin by which columns stay below a norm of one, more than rounding.
    """

    smoothing_factors: Numerical[tuple[float, ...]] = tuple(4.0**k for k in range(8))
    negligible_signal: Numerical[float] = 1e-3
    rough_tolerance: Numerical[float] = 0.1
    tolerance: Numerical[float] = 1e-3
    norm_margin: Numerical[float] = 1e-12


@dataclass(frozen=True)
class CloakSettings:
    """Numbers of the optimiser in `cloaking`.

    Parameters
    ----------
    max_steps : int
        Most updates; the tolerance usually stops earlier.
    uniform_weight : float
        Weight of all labels alike where the search begins at the solution of a similar problem: a
        label that did not matter there may matter here.
    max_growth : float
        Factor by which the distance from the optimum may grow before momentum begins anew.
    min_weight : float
        Added to each weight, so that it may come back.
    min_eigenvalue : float
        Relative to the largest eigenvalue: what lies below is rounding.
    trace_power, logdet_power : float
        Exponents of an update. S^½ answers half as much to a weight as S, so its steps are longer.
    """

    max_steps: Numerical[int] = 20_000
    uniform_weight: Numerical[float] = 0.05
    max_growth: Numerical[float] = 1.5
    min_weight: Numerical[float] = 1e-30
    min_eigenvalue: Numerical[float] = 1e-12
    trace_power: Numerical[float] = 2.0
    logdet_power: Numerical[float] = 1.0


LABEL_POSTERIOR = LabelPosteriorSettings()
MISSING_LABELS = MissingLabelSettings()
DESIGN = DesignSettings()
CLOAK = CloakSettings()
