"""The statistics of classification.

Staged gradients of a softmax or linear model, Gram matrices by class. Proof: class_gram.md.

ClassGram     Σ f fᵀ of f = (φ(x), t), t = R·e / max(‖e‖, r), e = onehot(y) − softmax(φW), or
              onehot(y) − 1/C − φW
GramByClass   Σ f fᵀ of f = onehot(y) ⊗ (φ(x), s): a Gram matrix for each class, beside each other
"""

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from reticent.errors import BadInput
from reticent.privacy.release import Release
from reticent.privacy.row_maps.features.basis_features import FeatureMap
from reticent.privacy.row_maps.residual_gram import WeightedGram, in_steps, weights_from_steps
from reticent.privacy.statistics.enforced import saved_as
from reticent.privacy.statistics.exact_products import product
from reticent.privacy.statistics.gram import Gram

__all__ = [
    "ClassGram",
    "DecodedClassGram",
    "DecodedGramByClass",
    "GramByClass",
    "class_stage",
    "exponential",
    "softmax",
]

Array = NDArray[np.float64]
_LN2_HIGH = float.fromhex("0x1.62e42fee00000p-1")
_LN2_LOW = float.fromhex("0x1.a39ef35793c76p-33")
_TAYLOR = tuple(1 / math.factorial(k) for k in range(13, -1, -1))
_LOWEST = -700.0


def exponential(x: Array) -> Array:
    """e^x for x ≤ 0 by +, −, ×, floor and a shift of exponents.

    The same bits wherever a number stands, unlike NumPy's.
    """
    x = np.maximum(x, _LOWEST)
    k = np.floor(x * (1 / math.log(2)) + 0.5)
    f = (x - k * _LN2_HIGH) - k * _LN2_LOW
    total = np.full_like(f, _TAYLOR[0])
    for coefficient in _TAYLOR[1:]:
        total *= f
        total += coefficient
    return np.asarray(np.ldexp(total, k.astype(np.int32)))


def softmax(logits: Array) -> Array:
    """Chances of the classes, row by row; sums are taken column by column."""
    chances = exponential(logits - logits.max(axis=1, keepdims=True))
    total = np.zeros(len(chances))
    for column in chances.T:
        total += column
    return np.asarray(chances / total[:, None])


@dataclass(frozen=True)
class ClassGram(WeightedGram):
    """Σ f fᵀ of f = (φ, t): one column of t for each class.

    The class is the last column of a record.
    """

    clip_threshold: float = field(metadata=saved_as("reach"))  # r
    link: str  # "softmax" or "linear"

    LINKS: ClassVar[tuple[str, str]] = ("softmax", "linear")

    def __post_init__(self) -> None:
        if self.link not in self.LINKS:
            raise BadInput(f"link must be one of {', '.join(self.LINKS)}, not {self.link!r}.")
        super().__post_init__()

    def residuals(self, features: Array, records: Array) -> Array:
        """Scaled differences of what is and what was expected.

        The products with the weights are exact, whole numbers.
        """
        logits = product(features, self._weights, records="left") * 2.0 ** -(self.bits + self.shift)
        if self.link == "softmax":
            e = -softmax(logits)
        else:
            e = -(logits + 1 / logits.shape[1])
        square = np.zeros(len(e))
        for c, column in enumerate(e.T):
            column += records[:, -1] == c
            square += column * column
        e *= (math.sqrt(self.residual_norm2) / np.maximum(np.sqrt(square), self.clip_threshold))[
            :, None
        ]
        return e

    @classmethod
    def decode(cls, release: Release) -> "DecodedClassGram":
        """Moments of features and clipped label residuals."""
        asked = release.statistic
        feature_map = FeatureMap.from_dict(asked["head"])
        m = feature_map.columns
        G = release.matrix()
        sd = release.matrix_sd()
        classes = len(G) - m
        unit = asked["reach"] / math.sqrt(feature_map.radius2)
        return DecodedClassGram(
            feature_map=feature_map,
            gram=G[:m, :m],
            gram_sd=sd[:m, :m],
            cross=G[:m, m:] * unit,
            cross_sd=sd[0, m] * unit,
            square=np.trace(G[m:, m:]) * unit**2,
            square_sd=math.sqrt(classes) * sd[m, m] * unit**2,
            clip_threshold=asked["reach"],
            weights=weights_from_steps(asked["weights"], asked["shift"]).T,
        )


@dataclass(frozen=True, eq=False)
class DecodedClassGram:
    """Noisy moments of m features φ and residuals e of C one-hot labels, ‖e‖ ≤ r.

    Attributes
    ----------
    feature_map : FeatureMap
        φ, no longer than R.
    gram, gram_sd : arrays (m, m)
        ΦᵀΦ, and the standard deviation of each entry's noise.
    cross : array (m, C)
        Φᵀe.
    cross_sd : float
        Standard deviation of each entry's noise.
    square, square_sd : float
        Σ‖e‖².
    clip_threshold : float
        r.
    weights : array (m, C)
        W that the residuals are taken from.
    """

    feature_map: FeatureMap
    gram: Array
    gram_sd: Array
    cross: Array
    cross_sd: float
    square: float
    square_sd: float
    clip_threshold: float
    weights: Array


def class_stage(feature_map: FeatureMap, W: Array, r: float, link: str) -> ClassGram:
    """The statistic of one stage, for weights W (m, C).

    Weights are in steps as fine as an exact product allows.
    """
    threshold = float(r)
    bits = ClassGram(
        feature_map, ((0,) * feature_map.columns,) * W.shape[1], 0, threshold, link
    ).bits
    return ClassGram(feature_map, *in_steps(W.T, feature_map, bits), threshold, link)


@dataclass(frozen=True)
class GramByClass(Gram):
    """Σ f fᵀ of f = onehot(y) ⊗ (φ, s): for each class Σφφᵀ, s·Σφ and s²·(number of records).

    Other entries hold noise only.
    """

    feature_map: FeatureMap = field(metadata=saved_as("head"))
    classes: int
    side: float  # s

    columns = property(
        lambda self: self.classes * (self.feature_map.columns + 1)
    )  # features and s for each class
    # R² + s²: a record has one class
    norm2 = property(lambda self: Fraction(self.feature_map.norm2) + Fraction(self.side) ** 2)

    def rows(self, records: Array) -> Array:
        """Features and s in the columns of the record's class, zeros elsewhere."""
        phi = np.hstack([self.feature_map.rows(records), np.full((len(records), 1), self.side)])
        return np.hstack([phi * (records[:, -1:] == c) for c in range(self.classes)])

    @classmethod
    def decode(cls, release: Release) -> "DecodedGramByClass":
        """Second and first moments of the features, class by class."""
        asked = release.statistic
        feature_map = FeatureMap.from_dict(asked["head"])
        m = feature_map.columns
        side = asked["side"]
        G = release.matrix()
        sd = release.matrix_sd()
        blocks = [slice(c * (m + 1), (c + 1) * (m + 1)) for c in range(asked["classes"])]
        grams = np.array([G[block, block] for block in blocks])
        return DecodedGramByClass(
            feature_map=feature_map,
            grams=grams[:, :m, :m],
            gram_sd=sd[:m, :m],
            sums=grams[:, :m, m] / side,
            sums_sd=float(sd[0, m]) / side,
            counts=grams[:, m, m] / side**2,
            counts_sd=float(sd[m, m]) / side**2,
        )


@dataclass(frozen=True, eq=False)
class DecodedGramByClass:
    """Noisy moments of m features φ over the records of each of C classes.

    Attributes
    ----------
    feature_map : FeatureMap
    grams : array (C, m, m)
        Σφφᵀ of each class.
    gram_sd : array (m, m)
        Standard deviation of each entry's noise, the same for all classes.
    sums : array (C, m)
        Σφ of each class.
    sums_sd : float
        Standard deviation of each entry's noise.
    counts, counts_sd : array (C,) and float
        Number of records of each class, and the standard deviation of its noise.
    """

    feature_map: FeatureMap
    grams: Array
    gram_sd: Array
    sums: Array
    sums_sd: float
    counts: Array
    counts_sd: float
