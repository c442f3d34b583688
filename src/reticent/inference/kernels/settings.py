"""Settings of the kernels: their tuned numbers, with their meaning and reason.

Lengthscales are in half-widths of the box, variances in squared half-ranges of y. Ranges are given
as (lowest, highest).
"""

from dataclasses import dataclass

from reticent.number_kinds import Derived, Numerical, Prior, Tuned

__all__ = [
    "ANOVA",
    "INTEGRAL",
    "PROJECTION",
    "AnovaSettings",
    "IntegralSettings",
    "ProjectionSettings",
]

Range = tuple[float, float]


@dataclass(frozen=True)
class AnovaSettings:
    """Tuned numbers of `anova`, the default prior.

    Parameters
    ----------
    lengthscales : tuple of float
        Lengthscales that an effect of one input is averaged over.
    log_length_sd : float
        Standard deviation of the logarithm of the lengthscale around ``length``.
    quadrature_nodes : int
        Gauss–Legendre nodes of the integrals along an input.
    constant_variance : float
        Prior variance of the constant: that of a level within ±1, about the middle.
    functions_per_input : int
        Eigenfunctions of one input that products are made of.
    max_words : int
        Most words of one input that have an effect of their own; of more, the rare ones share one.
    harmonics : int
        Harmonics of a cycle: as many as polynomials of degree 31 represent to 1e-4.
    max_combinations : int
        Most pairs or triples of inputs: with more, each is too small to be found.
    max_products_per_combination, max_functions : int
        Most products of one pair or triple of inputs, and functions in all: far more than the
        largest basis has.
    min_variance : float
        Smallest variance of an eigenfunction under a hypothesis, relative to the effect's.
    unconditional_size : int
        Functions that are taken, if the budget can carry so many, whatever the prior says.
    min_relative_signal : float
        Fraction of the prior variance, times records over noise, from which on a function is worth
        having.
    variance_range, pair_range, triple_range, length_range : Range
        Hypotheses, geometric: variance of all effects; variances of pairs and of triples relative
        to single inputs; lengthscale.
    min_linear, linear_span : float
        Smallest fraction of an effect that is linear, and by how much it may be larger.
    """

    lengthscales: Prior[tuple[float, ...]] = (0.1, 0.2, 0.4, 0.8, 1.6)
    log_length_sd: Prior[float] = 0.7
    quadrature_nodes: Numerical[int] = 64
    constant_variance: Prior[float] = 0.25
    functions_per_input: Numerical[int] = 20
    max_words: Tuned[int] = 40
    harmonics: Derived[int] = 6
    max_combinations: Tuned[int] = 300
    max_products_per_combination: Numerical[int] = 200
    max_functions: Numerical[int] = 1200
    min_variance: Numerical[float] = 1e-9
    unconditional_size: Tuned[int] = 60
    min_relative_signal: Tuned[float] = 0.15
    variance_range: Prior[Range] = (0.003, 1.0)
    pair_range: Prior[Range] = (0.003, 1.0)
    triple_range: Prior[Range] = (0.001, 0.3)
    length_range: Prior[Range] = (0.12, 1.6)
    min_linear: Prior[float] = 0.05
    linear_span: Prior[float] = 0.9


@dataclass(frozen=True)
class ProjectionSettings:
    """Tuned numbers of `projection`, the prior from a kernel that was given.

    Parameters
    ----------
    points : int
        Public points at which kernels are evaluated; half as many for one input, whose functions
        are few.
    most_missed : float
        Fraction of the variance along an input that polynomials may leave out before their degree
        is doubled, where it may be.
    digits : int
        Digits of a fraction of the variance by which functions are ordered: far more than matter,
        fewer than machines agree on.
    jitter : float
        Added to a projected covariance, relative to its mean variance, so that it can be factored.
    min_scaling_variance : float
        Smallest variance that a feature is scaled by, relative to the largest.
    unconditional_size : int
        As in `AnovaSettings`: none, because this prior is the user's own.
    min_relative_signal : float
        Fraction of the prior variance from which on a function is worth having, as in
        `AnovaSettings`.
    drowned_snr, negligible_noise_snr : float
        Squared signal over privacy noise, per function: below the first, features are clipped at
        ``drowned_quantile`` of their norms; below the second at ``noisy_quantile``; from there on
        none is clipped.
    drowned_quantile, noisy_quantile : float
        Clipping blurs corners of the box and saves noise.
    hyperparameter_factor : float
        Factor within which hyperparameters are tried around those given.
    length_range : Range
        Lengthscales that a box can tell apart.
    """

    points: Numerical[int] = 512
    most_missed: Numerical[float] = 1e-3
    digits: Numerical[int] = 9
    jitter: Numerical[float] = 1e-7
    min_scaling_variance: Numerical[float] = 1e-9
    unconditional_size: Derived[int] = 0
    min_relative_signal: Tuned[float] = 0.1
    drowned_snr: Tuned[float] = 1.0
    negligible_noise_snr: Tuned[float] = 30.0
    drowned_quantile: Tuned[float] = 0.5
    noisy_quantile: Tuned[float] = 0.95
    hyperparameter_factor: Prior[float] = 10.0
    length_range: Prior[Range] = (0.1, 10.0)


@dataclass(frozen=True)
class IntegralSettings:
    """Numbers of `integral`: accuracies of closed forms and quadratures.

    Parameters
    ----------
    mixture_error : float
        Error of a scale mixture, relative to its variance.
    mixture_step : float
        Largest step of the trapezoidal rule in log w, whose error is about exp(−π²/step).
    shape_step : float
        The same times the root of the shape: Gamma distributions get narrow.
    coarse_factor, coarse_error : float
        Of a prior that nobody gave: how many times the step is longer, and the least weight of a
        Gaussian. Matérn 5/2 has 8 of them then, instead of 50, and is right to 4·10⁻⁴.
    max_terms : int
        Most Gaussians of a mixture; time is in proportion.
    constant_exponent : float
        p·z² below which a factor exp(−pz²/2) is one.
    """

    mixture_error: Numerical[float] = 1e-12
    mixture_step: Numerical[float] = 0.3
    shape_step: Numerical[float] = 0.6
    coarse_factor: Numerical[float] = 2.5
    coarse_error: Numerical[float] = 1e-4
    max_terms: Numerical[int] = 2000
    constant_exponent: Numerical[float] = 1e-14


ANOVA = AnovaSettings()
PROJECTION = ProjectionSettings()
INTEGRAL = IntegralSettings()
