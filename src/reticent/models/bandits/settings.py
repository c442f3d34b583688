"""Settings of bandits: tuned numbers, checks of a user's parameters, and correlation of the noise.

Everything here is public and settled before anything is charged.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from reticent.errors import BadInput, BoundsMissing
from reticent.inference.kernels.settings import AnovaSettings
from reticent.inference.online.matrix_factorization import (
    buffer_coefficients,
    optimised_buffers,
    root_coefficients,
    row_variances,
    tree_variances,
)
from reticent.number_kinds import Derived, Numerical, Prior, Tuned
from reticent.privacy.bounds import Bounds
from reticent.privacy.streams.correlated_noise import (
    BinaryTree,
    BufferedToeplitz,
    Correlation,
    GeometricCorrelation,
    Toeplitz,
)
from reticent.validation import as_float, check_choice, check_integer

__all__ = [
    "BATCH_CORRELATION",
    "EXPLORATION_WEIGHT",
    "GROWTH",
    "POLICY",
    "UNLIMITED_STEPS",
    "PolicySettings",
    "check_parameters",
    "running_sum_correlation",
]

Array = NDArray[np.float64]

EXPLORATION_WEIGHT: Tuned[float] = 0.7
"""Posterior standard deviations that are added to the mean, if the user gives no other number."""
GROWTH: Tuned[float] = 1.2
"""Length of each batch over that of the one before, if the user gives no other number."""
UNLIMITED_STEPS: Numerical[int] = 2**30
"""Releases that the noise is made for where the horizon is not known."""
# coefficients of correlations are whole multiples of its inverse
_COEFFICIENT_UNIT: Numerical[float] = 2.0**30
BATCH_CORRELATION: Tuned[GeometricCorrelation] = GeometricCorrelation(int(0.65 * _COEFFICIENT_UNIT))
"""Each batch subtracts 65 % of the noise that the last one had in Σφe."""


@dataclass(frozen=True)
class PolicySettings:
    """Tuned numbers of the UCB policy. Only accuracy rests on them.

    They were found on the environments of the regret study, with seeds that it does not report;
    docs/lab/bandits.md says what else was tried.
    """

    # Batches
    first_batch: Tuned[float] = 8.0
    """Rounds of the first batch, times μ: its sums then stand above their noise."""
    smallest_batch: Tuned[int] = 6
    """Rounds of the first batch, at least."""
    first_batch_fraction: Tuned[float] = 0.01
    """Of the horizon: the first batch, which is chosen at random, is no shorter."""
    shortest_last_batch: Tuned[float] = 0.3
    """A last batch shorter than this part of its planned length is joined to the one before."""
    planned_rounds: Tuned[int] = 1024
    """Rounds that the basis is chosen for first where the horizon is not known; then it doubles."""

    # Basis and feature map
    worthwhile_variance: Tuned[float] = 5.0
    """A function has a place in the basis if its part of the prior variance, times μ · horizon, is
    at least this. Half of it was worse: the functions that it adds are lost in the noise."""
    smallest_basis: Tuned[int] = 4
    """Functions that a chosen basis has at least, and two more for each input."""
    largest_basis: Numerical[int] = 200
    """Functions that a chosen basis has at most. 150 are too few for 20 inputs without noise."""
    prior_scaling_exponent: Tuned[float] = 0.4
    """Exponent of the prior variance in the scale of a feature, before anything is known."""
    posterior_scaling_exponent: Tuned[float] = 0.3
    """The same of the posterior variance, from the second batch on."""
    norm_quantile: Tuned[float] = 0.5
    """Quantile of the feature norm that is scaled to one; longer feature vectors are clipped."""
    largest_scaling_variance: Tuned[float] = 0.1
    """Part of all other functions' variance that the largest one counts for, at most (or as much as
    the second largest does). It is about the constant: with the scale of the largest effect its
    value stays unknown and clips too wide, with a quarter of all variance others go short."""

    # Clip threshold of residuals
    first_clip: Tuned[float] = 1.5
    """In standard deviations of the residual, in the first batch, whose spread is a guess."""
    clip: Tuned[float] = 0.8
    """The same afterwards, and wider the nearer the noise variance is to the largest possible."""
    wide_residual_sd: Tuned[float] = 0.7
    """In half-ranges of the reward: from here on rewards count as they are. A normal residual that
    is clipped at .8 standard deviations has 1.39 times their noise."""
    two_point_fraction: Tuned[float] = 0.5
    """Part of the largest possible variance from which rewards count as lying at either end of
    their range, and are not clipped: a rare 1 would count as a quarter of itself."""
    least_noise_sd: Tuned[float] = 0.2
    """Least standard deviation of rewards that is distinguished, in half-ranges of the reward."""

    # Simulation of the next batch
    least_simulated_rounds: Numerical[int] = 256
    most_simulated_rounds: Numerical[int] = 2048
    """About as many rounds are simulated as a batch has, within these limits."""
    uniform_points: Numerical[int] = 1024
    """Points that stand for candidates anywhere in the box."""

    # Prior without a kernel: constant + variance · RBF(length), in half-ranges
    constant_variance: float = AnovaSettings.constant_variance
    """Of the level, about the middle of the range of rewards."""
    function_variances: Prior[tuple[float, ...]] = (0.15, 0.4)
    lengths: Prior[tuple[float, ...]] = (0.3, 0.6)
    """Hypotheses between which the evidence chooses: variance and lengthscale."""
    early_part: Tuned[float] = 0.1
    """Of the rounds: shorter lengths are tried if so many of them could tell their functions."""
    shortest_length: Numerical[float] = 0.03
    """What polynomials of the highest degree still show."""
    most_interacting_inputs: Tuned[int] = 5
    """With more inputs the prior is a sum of functions of single inputs."""
    kernel_trials: Numerical[int] = 8
    """Values of the free hyperparameters that are tried for a kernel that the user gave."""

    additive_variance: Prior[float] = 0.1
    additive_order_weights: Prior[tuple[float, float, float]] = (1.0, 1e-3, 1e-4)
    additive_length: Prior[float] = 0.13
    """That sum (`Anova`): variance, relative variances of one, two and three inputs, lengthscale.
    It has no linear part."""

    # Exploration
    exploration_share: Tuned[float] = 0.03
    """c of forced exploration: of t rounds, 2c√t are chosen at random (2 of the first 1,000). Any
    number above zero does in the end; .1 cost .006 of random play in 1,024 rounds."""

    # Local privacy
    farthest_report: Derived[float] = 50.0
    """Standard deviations of the noise beyond which no honest report lies, but once in e^1000: a
    forged one then moves a sum no more than an unlucky one."""
    local_first_batch_root: Tuned[float] = 4.0
    """√rounds of the first batch, times μ: the noise of a sum of n reports grows as √n."""

    size_error: Prior[float] = 0.2
    """How wrong the size of a simulated Gram matrix may be, relative to itself: what is smaller by
    more is taken as rounds that lack something."""

    # Speed
    cached_numbers: Numerical[int] = 2**18
    """Features of candidates that are computed at once: 2 MB, so that they stay in cache."""


POLICY = PolicySettings()

_CHOICES = {
    "release": ("batches", "every"),
    "mechanism": ("sqrt", "blt", "tree"),
    "contexts": ("private", "public"),
}
_LARGEST = {"horizon": 10**9, "arms": 1000, "records_per_person": 10**6, "basis": 500}
_OPTIONAL = ("horizon", "basis")


def check_parameters(params: Mapping[str, object]) -> None:
    """Refuse parameters of a bandit that make no sense."""
    bounds = params["bounds"]
    if bounds is None:
        raise BoundsMissing(
            "The candidates and rewards have no bounds, and reticent never takes them from the "
            "data. Give their plausible ranges: bounds=reticent.Bounds(x=[(0, 1)], y=(0, 1))."
        )
    if not isinstance(bounds, Bounds) or len(bounds.y) != 1 or bounds.broadcast:
        raise BadInput(
            "bounds must be a reticent.Bounds with one range for each coordinate of a candidate, "
            "and y, the reward's."
        )
    for name, known in _CHOICES.items():
        check_choice(name, params.get(name, known[0]), known)
    for name, largest in _LARGEST.items():
        value = params.get(name, 1)
        if value is not None or name not in _OPTIONAL:
            check_integer(name, value, 1, largest)
    exploration_weight = params["exploration_weight"]
    if not 0 <= as_float(exploration_weight) < 1e6:
        raise BadInput(
            "exploration_weight must be a number of standard deviations, such as 0.7, "
            f"not {exploration_weight!r}."
        )
    growth = params["growth"]
    if not 1 <= as_float(growth) <= 100:
        raise BadInput(f"growth must be a number from 1 to 100, not {growth!r}.")
    every = params.get("release") == "every"
    if every and (params["horizon"] is None or params["contexts"] == "public"):
        raise BadInput(
            'release="every" needs a horizon, which its noise is made for, and private contexts: '
            'give horizon, and leave contexts out, or choose release="batches".'
        )


def running_sum_correlation(mechanism: str, steps: int) -> tuple[Correlation, Array]:
    """Correlation of the noise of running sums, and the variance of each sum's noise.

    The variances, (steps,), are in units of the fresh noise's variance.
    """
    if mechanism == "tree":
        return BinaryTree(), tree_variances(steps)
    if mechanism == "sqrt":
        c = np.floor(root_coefficients(steps) * _COEFFICIENT_UNIT)
        return Toeplitz([int(v) for v in c]), row_variances(c / _COEFFICIENT_UNIT)
    decays, weights = (
        np.floor(np.array(v) * _COEFFICIENT_UNIT) for v in optimised_buffers(max(steps, 8))
    )
    c = buffer_coefficients(decays / _COEFFICIENT_UNIT, weights / _COEFFICIENT_UNIT, steps)
    return BufferedToeplitz([int(v) for v in decays], [int(v) for v in weights]), row_variances(c)
