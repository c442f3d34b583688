"""Staged fit: feature map, representative points and one posterior per output.

How a release updates them, and how a posterior is carried over to a refined basis.
"""

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from reticent.inference.inputs.complete_records import CompleteRecords, UnitTotal
from reticent.inference.kernels.anova import AnovaPriors
from reticent.inference.kernels.projection import KernelPriors
from reticent.inference.moment_model.posterior import StagedPosterior
from reticent.models.gp.input_features import count_from_gram
from reticent.privacy.curator import Release
from reticent.privacy.row_maps.features.basis_features import FeatureMap
from reticent.privacy.row_maps.residual_gram import ResidualGram, SizeMoments

__all__ = ["Prior", "StageState", "Warp", "ingest_release"]

Array = NDArray[np.float64]
Prior = AnovaPriors | KernelPriors  # hypotheses about the function: default, or around a kernel
Warp = tuple[tuple[float, ...], ...]  # knots of each input's monotone map; () for none


@dataclass
class StageState:
    """State of a staged fit.

    Attributes
    ----------
    feature_map : FeatureMap
        m features.
    representative_points : array (points, d)
        Scaled inputs that are distributed as the records, for all that is known.
    posteriors : list of StagedPosterior
        One for each output.
    prior : Prior
        What basis and posteriors were made from.
    input_densities : list of arrays
        Density of the records along each input, in equal bins of [−1, 1]; [] if it is not known.
    warp : Warp
        Given maps of the inputs; () for those that follow from the densities.
    first_stage : int
        Stage that this state begins with.
    truncation_fraction : float
        Fraction of the prior variance that the basis does not represent.
    mean_square_weight : float
        Mean square of the weights that records have because their features are clipped.
    unrefined : StageState, optional
        The state before the kernels were refined.
    sizes : list of SizeMoments
        Released sizes of the residuals of each output; [] as long as there are none.
    """

    feature_map: FeatureMap
    representative_points: Array
    posteriors: list[StagedPosterior]
    prior: Prior
    input_densities: list[Array]
    warp: Warp
    first_stage: int
    truncation_fraction: float
    mean_square_weight: float
    unrefined: "StageState | None" = None
    sizes: list[SizeMoments] = field(default_factory=list)

    def truncation_ratio(self, truncation_variance: float | None = None) -> float:
        """Truncation variance over posterior variance of the first output.

        ``truncation_variance``: default, the mean of the hypotheses'.
        """
        posterior = self.posteriors[0]
        if truncation_variance is None:
            truncation_variance = float(
                posterior.hypothesis_weights @ posterior.truncation_variance
            )
        return truncation_variance / max(posterior.posterior_variance(), 1e-300)

    def transfer_posterior(
        self, old: "StageState", log_weights: Array, stages_ratio: float
    ) -> "StageState":
        """Return this state with the posterior of another one, which has other functions.

        For one output and kernel hypotheses. ``log_weights``: prior weights of the hypotheses here,
        made with the releases so far; ``stages_ratio``: stages to come, by those before.
        """
        assert isinstance(self.prior, KernelPriors)
        assert isinstance(old.prior, KernelPriors)
        values, projection = self.prior.leading_functions(self.feature_map.columns)
        old_scale = np.array(old.feature_map.feature_scale)
        onto_old = old.prior.leading_functions(old.feature_map.columns)[1] / old_scale[:, None]
        (old_posterior,) = old.posteriors
        (new_posterior,) = self.posteriors
        onto = onto_old @ (values * np.array(self.feature_map.feature_scale))
        beyond = self.prior.residual_covariance(onto_old - onto_old @ values @ projection)
        posterior = replace(
            new_posterior,
            prior_observation=old_posterior.transferred_observation(onto, beyond, stages_ratio),
            log_prior_weights=log_weights,
            initial_noise_variance=old_posterior.s2,
        )
        posterior.noise_per_threshold = old_posterior.noise_per_threshold
        posterior.second_sd_per_threshold = old_posterior.second_sd_per_threshold
        observation = None
        if old_posterior.two_values is not None:
            observation = old_posterior.two_values.transferred_observation(
                onto, beyond, stages_ratio
            )
        posterior.inherit_two_values(old_posterior, observation)
        return replace(self, posteriors=[posterior], unrefined=old)

    def count_records(self, release: Release, total: UnitTotal) -> CompleteRecords:
        """How many records of a ``total`` are complete, from the Gram matrix of a first stage.

        Sets the count of all posteriors.
        """
        decoded = ResidualGram.decode(release)
        phi = self.feature_map.rows(self.representative_points)
        constant = self.feature_map.constant
        complete = count_from_gram(decoded.gram, decoded.gram_sd, phi, total, constant)
        for posterior in self.posteriors:
            posterior.set_count(complete.mean, complete.relative_variance)
        return complete

    def prior_centred_variance(self, posterior: StagedPosterior) -> float:
        """Variance of the function around its own mean over the records, before any release.

        In squared half-ranges of y.
        """
        state = self
        if self.unrefined is not None:
            state = self.unrefined
            posterior = state.posteriors[0]
        phi = state.feature_map.functions(state.representative_points)
        return (
            float((posterior.initial_prior * np.cov(phi.T, bias=True)).sum())
            + float(posterior.truncation_variance.mean()) / state.mean_square_weight
        )


def ingest_release(release: Release, state: StageState) -> None:
    """Update the posterior of each output with the release of a stage.

    And the feature map with the one that was released: what was asked counts, since machines differ
    in the last bits of sums.
    """
    decoded = ResidualGram.decode(release)
    for posterior, moments in zip(state.posteriors, decoded.outputs(), strict=True):
        posterior.add(
            moments.cross,
            moments.cross_sd,
            decoded.gram,
            decoded.gram_sd,
            moments.square,
            moments.square_sd,
            moments.clip_threshold,
            moments.weights,
        )
    state.feature_map = decoded.feature_map
    if decoded.size_thresholds:
        state.sizes = decoded.sizes()
