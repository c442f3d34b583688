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
from reticent.privacy.statistics.counts import Counts
from reticent.privacy.statistics.enforced import saved_as
from reticent.privacy.statistics.exact_products import product
from reticent.privacy.statistics.partitioned_gram import PartitionedGram

__all__ = [
    "DecodedResidualCounts",
    "DecodedResidualGram",
    "OutputMoments",
    "ResidualCounts",
    "ResidualGram",
    "WeightedGram",
    "count_residuals",
    "in_steps",
    "stage",
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

    def residuals(self, features: Array, records: Array) -> Array:
        """Scaled residuals; the prediction is an exact product of whole numbers."""
        t = product(features, self._weights, records="left")
        t *= 2.0 ** -(self.bits + self.shift)
        outputs = records[:, -t.shape[1] :]
        feature_map = self.feature_map
        constant = feature_map.constant
        if constant >= 0:  # the record's weight is read off the constant feature
            one = (
                2.0**self.bits * feature_map.feature_scale[constant]
            )  # of a record that counts whole
            outputs = outputs * (features[:, constant, None] / one)
        elif feature_map.weighted:
            outputs = outputs * feature_map.weight(records)
        np.subtract(outputs, t, out=t)
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
        G = release.matrix()
        sd = release.matrix_sd()
        return DecodedResidualGram(
            feature_map=feature_map,
            gram=G[:m, :m],
            gram_sd=sd[:m, :m],
            off_diagonal_sd=float(sd[0, 1]),
            scaled_cross=G[:m, m:],
            scaled_cross_sd=sd[0, m:],
            scaled_square=np.diagonal(G)[m:],
            scaled_square_sd=np.diagonal(sd)[m:],
            clip_thresholds=tuple(asked["reach"]),
            weights=weights_from_steps(asked["weights"], asked["shift"]),
        )


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

    def outputs(self) -> list[OutputMoments]:
        """Moments of each output's residuals, in half-ranges of y."""
        p = len(self.clip_thresholds)
        found = []
        for j, r in enumerate(self.clip_thresholds):
            unit = r * math.sqrt(p / self.feature_map.radius2)
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


@dataclass(frozen=True)
class ResidualCounts(Counts):
    """For each output, how many records have a residual y − φᵀw between two edges.

    The residuals are those of a `ResidualGram` of the same weights. ``edges``: of each output,
    ascending, in half-ranges of y; the first and the last bin have no other end.
    """

    feature_map: FeatureMap = field(metadata=saved_as("head"))
    weights: tuple[tuple[int, ...], ...]  # w of each output, in steps of 2^-shift
    shift: int
    edges: tuple[tuple[float, ...], ...]
    output_limit: ClassVar[float] = ResidualGram.output_limit

    @property
    def groups(self) -> tuple[int, ...]:
        """One group of bins per output."""
        return tuple(len(edges) + 1 for edges in self.edges)

    @cached_property
    def _gram(self) -> ResidualGram:
        limits = tuple(self.output_limit for _ in self.edges)
        return ResidualGram(self.feature_map, self.weights, self.shift, limits)

    def cells(self, records: Array) -> Array:
        """The bin of each output's residual: the scaled residual of a stage, and a search."""
        features = self._gram.enforced().feature_integers(records)
        scaled = self._gram.residuals(features, records)
        unit = math.sqrt(self._gram.residual_norm2 / len(self.edges)) / self.output_limit
        cells = np.empty(scaled.shape)
        for j, edges in enumerate(self.edges):
            cells[:, j] = np.searchsorted(np.array(edges) * unit, scaled[:, j])
        return cells

    @classmethod
    def decode(cls, release: Release) -> "DecodedResidualCounts":
        """The counts of each output, and what was asked for."""
        asked = release.statistic
        edges = [np.array(one) for one in asked["edges"]]
        ends = np.cumsum([len(one) + 1 for one in edges])[:-1]
        return DecodedResidualCounts(
            np.split(release.value, ends),
            float(release.sd[0]),
            edges,
            weights_from_steps(asked["weights"], asked["shift"]),
        )


@dataclass(frozen=True, eq=False)
class DecodedResidualCounts:
    """Noisy number of records by the size of their residuals.

    Attributes
    ----------
    counts : list of arrays (bins,)
        Of each output.
    sd : float
        Standard deviation of the noise of each count.
    edges : list of arrays (bins − 1,)
        Between the bins of each output, in half-ranges of y.
    weights : array (p, m)
        w of each output, in half-ranges of y.
    """

    counts: list[Array]
    sd: float
    edges: list[Array]
    weights: Array


def count_residuals(
    feature_map: FeatureMap, W: Array, edges: Sequence[Sequence[float] | Array]
) -> ResidualCounts:
    """Counts of residuals around weights W (p, m), for the edges of each output."""
    gram = stage(feature_map, W, [1.0] * len(W))
    given = tuple(tuple(float(v) for v in one) for one in edges)
    return ResidualCounts(feature_map, gram.weights, gram.shift, given)


def stage(feature_map: FeatureMap, W: Array, r: Sequence[float]) -> ResidualGram:
    """The statistic of one stage, for weights W (p, m) and clip thresholds r (p,).

    Weights are in steps as fine as an exact product allows: ‖φ‖·‖w_j‖ < 2⁵² on the grid.
    """
    thresholds = tuple(float(v) for v in r)
    bits = ResidualGram(feature_map, ((0,) * feature_map.columns,) * len(W), 0, thresholds).bits
    return ResidualGram(feature_map, *in_steps(W, feature_map, bits), thresholds)


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
