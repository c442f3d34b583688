"""Staged residual releases: the statistic that Gaussian-process models release again and again.

Proof: residual_gram.md.

A stage releases the Gram matrix of (φ(x), t): public features φ, those of a basis, and for each of
p outputs the residual of the last fit, clipped at its current scale r and brought to the length R
of the features:

    t_j = (R/√p)/r_j · clip(y_j − φᵀw_j, ±r_j)

Records whose noise levels are known are weighted, φ and y alike, by low/level ≤ 1
(noise_column.py). So are, on request, records whose features would be too long: shortened features
alone would bend functions, and a straight line would be none any more.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from reticent.errors import BadInput
from reticent.privacy.release import Release
from reticent.privacy.row_maps.features.basis_features import FeatureMap
from reticent.privacy.statistics.enforced import saved_as
from reticent.privacy.statistics.exact_products import product
from reticent.privacy.statistics.partitioned_gram import PartitionedGram

__all__ = [
    "DecodedResidualGram",
    "OutputMoments",
    "ResidualGram",
    "ResidualSizeGram",
    "SizeMoments",
    "WeightedGram",
    "in_steps",
    "stage",
    "stage_with_sizes",
    "weights_from_steps",
]

Array = NDArray[np.float64]


@dataclass(frozen=True)
class WeightedGram(PartitionedGram):
    """Abstract: Σ f fᵀ of f = (φ, t), t from exact products φᵀw, one per output or class."""

    weights: tuple[tuple[int, ...], ...]  # w of each, in steps of 2^-shift
    shift: int

    def __post_init__(self) -> None:
        if any(self.feature_limit2 * sum(v * v for v in w) > 4**52 for w in self.weights):
            raise BadInput(
                "The weights of a stage are too long for an exact product: choose a smaller shift."
            )

    @property
    def residual_columns(self) -> int:
        """One for each output or class."""
        return len(self.weights)

    @property
    def residual_norm2(self) -> Fraction:
        """R², as for the features; for all outputs together."""
        return Fraction(self.feature_map.norm2)

    @cached_property
    def _weights(self) -> Array:
        return np.array(self.weights, dtype=np.float64).T


@dataclass(frozen=True)
class ResidualGram(WeightedGram):
    """Σ f fᵀ of f = (φ, t).

    One column of t for each of the p outputs, which are the last columns of a record.
    """

    feature_map: FeatureMap = field(metadata=saved_as("head"))
    output_limit: ClassVar[float] = (
        64.0  # residuals are clipped, so bounds of y that are too narrow need not hurt
    )
    clip_thresholds: tuple[float, ...] = field(metadata=saved_as("reach"))  # r of each output

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_thresholds(self.clip_thresholds, len(self.weights))

    def record_weights(self, features: Array, records: Array) -> Array | None:
        """Weights ω of the records, (rows, 1); None if all count whole."""
        feature_map = self.feature_map
        constant = feature_map.constant
        if constant >= 0:  # the record's weight is read off the constant feature
            one = (
                2.0**self.bits * feature_map.feature_scale[constant]
            )  # of a record that counts whole
            return np.asarray(features[:, constant, None] / one)
        if feature_map.weighted:
            return np.asarray(feature_map.weight(records))
        return None

    def errors(self, features: Array, records: Array, weights: Array | None) -> Array:
        """Weighted residuals before the clip; the prediction is an exact product of integers."""
        t = product(features, self._weights, records="left")
        t *= 2.0 ** -(self.bits + self.shift)
        outputs = records[:, -t.shape[1] :]
        if weights is not None:
            outputs = outputs * weights
        np.subtract(outputs, t, out=t)
        return t

    def residuals(self, features: Array, records: Array) -> Array:
        """Scaled residuals."""
        t = self.errors(features, records, self.record_weights(features, records))
        radius = math.sqrt(self.residual_norm2 / t.shape[1])
        for j, r in enumerate(self.clip_thresholds):
            t[:, j] = np.clip(t[:, j], -r, r) * (radius / r)
        return t

    @classmethod
    def decode(cls, release: Release) -> "DecodedResidualGram":
        """The Gram matrix in blocks, and what was asked for."""
        asked = release.statistic
        feature_map = FeatureMap.from_dict(asked["head"])
        m = feature_map.columns
        clip_thresholds = tuple(asked["reach"])
        size_thresholds = tuple(asked.get("size_reach", ()))
        sizes = m + len(clip_thresholds)  # the first column of sizes, if there are any
        G = release.matrix()
        sd = release.matrix_sd()
        return DecodedResidualGram(
            feature_map=feature_map,
            gram=G[:m, :m],
            gram_sd=sd[:m, :m],
            off_diagonal_sd=float(sd[0, 1]),
            scaled_cross=G[:m, m:sizes],
            scaled_cross_sd=sd[0, m:sizes],
            scaled_square=np.diagonal(G)[m:sizes],
            scaled_square_sd=np.diagonal(sd)[m:sizes],
            clip_thresholds=clip_thresholds,
            weights=weights_from_steps(asked["weights"], asked["shift"]),
            scaled_sizes=G[:m, sizes:],
            scaled_sizes_sd=sd[0, sizes:],
            size_thresholds=size_thresholds,
        )


@dataclass(frozen=True)
class ResidualSizeGram(ResidualGram):
    """Σ f fᵀ of f = (φ, t, u): residuals as in `ResidualGram`, and their sizes.

    For each of p outputs, with the record's weight ω,

        u_j = R/√(2p) · (2·min(|e_j|, ω·s_j)/s_j − ω),   e_j = ω·y_j − (ω·φ)ᵀw_j

    so −ω where the residual is zero and ω from ±s_j on; residuals are brought to R/√(2p) too.
    """

    size_thresholds: tuple[float, ...] = field(metadata=saved_as("size_reach"))  # s of each output

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_thresholds(self.size_thresholds, len(self.weights))

    @property
    def residual_columns(self) -> int:
        """Two for each output: its residual, and the size of that."""
        return 2 * len(self.weights)

    def residuals(self, features: Array, records: Array) -> Array:
        """Scaled residuals, then their scaled sizes."""
        weights = self.record_weights(features, records)
        errors = self.errors(features, records, weights)
        whole = 1.0 if weights is None else weights[:, 0]
        radius = math.sqrt(self.residual_norm2 / self.residual_columns)
        outputs = errors.shape[1]
        t = np.empty((len(errors), 2 * outputs))
        for j, r in enumerate(self.clip_thresholds):
            t[:, j] = np.clip(errors[:, j], -r, r) * (radius / r)
        for j, s in enumerate(self.size_thresholds):
            size = np.minimum(np.abs(errors[:, j]), whole * s)
            t[:, outputs + j] = (size * (2.0 / s) - whole) * radius
        return t


@dataclass(frozen=True, eq=False)
class OutputMoments:
    """Noisy moments of the clipped residuals e of one output, in half-ranges of y."""

    cross: Array  # Φᵀe, (m,)
    cross_sd: float  # of the noise of each entry
    square: float  # Σe²
    square_sd: float
    clip_threshold: float  # of e
    weights: Array  # (m,), what the residuals are taken from: e = y − φᵀw


@dataclass(frozen=True, eq=False)
class SizeMoments:
    """Noisy moments of the sizes of one output's residuals: 2·min(|e|, s)/s − 1, in [−1, 1].

    ``cross``: their sums times features, (m,); ``cross_sd``: of the noise of each entry;
    ``threshold``: s, in half-ranges of y; ``weights`` (m,): what residuals are taken from.
    """

    cross: Array
    cross_sd: float
    threshold: float
    weights: Array


@dataclass(frozen=True, eq=False)
class DecodedResidualGram:
    """Noisy Gram matrix of m features φ and p scaled residuals t = (R/√p)/r · e.

    Attributes
    ----------
    feature_map : FeatureMap
        φ, no longer than R.
    gram, gram_sd : arrays (m, m)
        ΦᵀΦ, and the standard deviation of each entry's noise.
    off_diagonal_sd : float
        Standard deviation of the noise beside the diagonal of the whole matrix.
    scaled_cross : array (m, p)
        Φᵀt.
    scaled_cross_sd : array (p,)
        Standard deviation of the noise of a column's entries.
    scaled_square, scaled_square_sd : arrays (p,)
        Σt² of each output.
    clip_thresholds : array (p,)
        r of each output, in half-ranges of y.
    weights : array (p, m)
        w of each output, in half-ranges of y: e = clip(y − φᵀw, ±r).
    scaled_sizes, scaled_sizes_sd : arrays (m, p) and (p,)
        Φᵀu, u the scaled sizes of the residuals, and the standard deviation of its noise; without
        columns where they were not released. Then t is R/√(2p)/r · e.
    size_thresholds : array (p,)
        s of each output, in half-ranges of y.
    """

    feature_map: FeatureMap
    gram: Array
    gram_sd: Array
    off_diagonal_sd: float
    scaled_cross: Array
    scaled_cross_sd: Array
    scaled_square: Array
    scaled_square_sd: Array
    clip_thresholds: tuple[float, ...]
    weights: Array
    scaled_sizes: Array
    scaled_sizes_sd: Array
    size_thresholds: tuple[float, ...]

    @property
    def unit(self) -> float:
        """One by the length to which each residual, and each size, is brought."""
        columns = len(self.clip_thresholds) + len(self.size_thresholds)
        return math.sqrt(columns / self.feature_map.radius2)

    def sizes(self) -> list[SizeMoments]:
        """Moments of the sizes of each output's residuals; none if they were not released."""
        return [
            SizeMoments(
                self.scaled_sizes[:, j] * self.unit,
                self.scaled_sizes_sd[j] * self.unit,
                s,
                self.weights[j],
            )
            for j, s in enumerate(self.size_thresholds)
        ]

    def outputs(self) -> list[OutputMoments]:
        """Moments of each output's residuals, in half-ranges of y."""
        found = []
        for j, r in enumerate(self.clip_thresholds):
            unit = r * self.unit
            found.append(
                OutputMoments(
                    self.scaled_cross[:, j] * unit,
                    self.scaled_cross_sd[j] * unit,
                    self.scaled_square[j] * unit**2,
                    self.scaled_square_sd[j] * unit**2,
                    r,
                    self.weights[j],
                )
            )
        return found


def stage(feature_map: FeatureMap, W: Array, r: Sequence[float]) -> ResidualGram:
    """The statistic of one stage, for weights W (p, m) and clip thresholds r (p,).

    Weights are in steps as fine as an exact product allows: ‖φ‖·‖w_j‖ < 2⁵² on the grid.
    """
    thresholds = tuple(float(v) for v in r)
    bits = ResidualGram(feature_map, ((0,) * feature_map.columns,) * len(W), 0, thresholds).bits
    return ResidualGram(feature_map, *in_steps(W, feature_map, bits), thresholds)


def stage_with_sizes(
    feature_map: FeatureMap, W: Array, r: Sequence[float], s: Sequence[float]
) -> ResidualSizeGram:
    """The same with the sizes of the residuals, clipped at s (p,)."""
    plain = stage(feature_map, W, r)
    sizes = tuple(float(v) for v in s)
    return ResidualSizeGram(feature_map, plain.weights, plain.shift, plain.clip_thresholds, sizes)


def _check_thresholds(thresholds: Sequence[float], outputs: int) -> None:
    """Refuse thresholds that leave out an output.

    Its column would be what memory held before: no function of the record alone.
    """
    if len(thresholds) != outputs:
        raise BadInput(
            f"A stage needs one threshold for each of its {outputs} outputs, not {thresholds!r}."
        )


def in_steps(
    W: Array, feature_map: FeatureMap, bits: int
) -> tuple[tuple[tuple[int, ...], ...], int]:
    """Weights (outputs or classes, m) as whole numbers of steps of 2^-shift, and the shift."""
    length = max(math.sqrt(feature_map.radius2) * float(np.linalg.norm(W, axis=1).max()), 2.0**-40)
    shift = min(40, 51 - bits - math.ceil(math.log2(length)))
    return tuple(tuple(int(v) for v in w) for w in np.trunc(W * 2.0**shift)), shift


def weights_from_steps(steps: Sequence[Sequence[int]], shift: int) -> Array:
    """Weights (outputs or classes, m) from whole numbers of steps of 2^-shift."""
    return np.array(steps) * 2.0**-shift
