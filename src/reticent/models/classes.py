"""The statistics of classification: staged gradients of a softmax or linear model, Gram matrices by class. Proof: classes.md.

ClassGram     Σ f fᵀ of f = (φ(x), t),  t = R·e / max(‖e‖, r),  e = onehot(y) − softmax(φW), or onehot(y) − 1/C − φW
GramByClass   Σ f fᵀ of f = onehot(y) ⊗ (φ(x), s): a Gram matrix for each class, beside each other
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from reticent.errors import BadInput
from reticent.models.residuals import Features, WeightedGram, in_steps
from reticent.privacy.products import product
from reticent.privacy.statistic import Gram

__all__ = ["ClassGram", "GramByClass", "class_stage", "exponential", "softmax"]

Array = NDArray[np.float64]
_LN2_HIGH, _LN2_LOW = float.fromhex("0x1.62e42fee00000p-1"), float.fromhex("0x1.a39ef35793c76p-33")
_TAYLOR = tuple(1 / math.factorial(k) for k in range(13, -1, -1))
_LOWEST = -700.0


def exponential(x: Array) -> Array:
    """e^x for x ≤ 0 by +, −, ×, floor and a shift of exponents: the same bits wherever a number stands, unlike NumPy's."""
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
    """Σ f fᵀ of f = (φ, t): one column of t for each class; the class is the last column of a record."""

    reach: float  # r
    link: str  # "softmax" or "linear"

    LINKS: ClassVar[tuple[str, str]] = ("softmax", "linear")

    def __post_init__(self) -> None:
        if self.link not in self.LINKS:
            raise BadInput(f"link must be one of {', '.join(self.LINKS)}, not {self.link!r}.")
        super().__post_init__()

    def tail(self, head: Array, records: Array) -> Array:
        """Scaled differences of what is and what was expected; the products with the weights are exact, whole numbers."""
        logits = product(head, self._weights, records="left") * 2.0 ** -(self.bits + self.shift)
        e = -softmax(logits) if self.link == "softmax" else -(logits + 1 / logits.shape[1])
        square = np.zeros(len(e))
        for c, column in enumerate(e.T):
            column += records[:, -1] == c
            square += column * column
        e *= (math.sqrt(self.tail_norm2) / np.maximum(np.sqrt(square), self.reach))[:, None]
        return e


def class_stage(head: Features, W: Array, r: float, link: str) -> ClassGram:
    """The statistic of one stage, weights (a column for each class) in steps as fine as an exact product allows."""
    reach = float(r)
    bits = ClassGram(head, ((0,) * head.columns,) * W.shape[1], 0, reach, link).bits
    return ClassGram(head, *in_steps(W.T, head, bits), reach, link)


@dataclass(frozen=True)
class GramByClass(Gram):
    """Σ f fᵀ of f = onehot(y) ⊗ (φ, s): for each class Σφφᵀ, s·Σφ and s²·(number of records); other entries hold noise only."""

    head: Features
    classes: int
    side: float  # s

    columns = property(lambda self: self.classes * (self.head.columns + 1))  # features and s for each class
    # R² + s²: a record has one class
    norm2 = property(lambda self: Fraction(self.head.norm2) + Fraction(self.side) ** 2)

    def rows(self, records: Array) -> Array:
        """Features and s in the columns of the record's class, zeros elsewhere."""
        phi = np.hstack([self.head.rows(records), np.full((len(records), 1), self.side)])
        return np.hstack([phi * (records[:, -1:] == c) for c in range(self.classes)])
