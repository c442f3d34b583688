"""Kinds of numbers with a name: what a reader may expect of each, said in its annotation.

A field of a settings class is annotated by its kind, as in ``tolerance: Numerical[float] = 1e-3``.
The annotations change nothing; the field is a ``float`` for whoever uses it. A test refuses a field
without a kind, ``python -m tools.shape`` counts them, and docs/numbers.md lists them.

* `Prior`: a statement about the world that enters Bayes' rule: a prior, its support, or how wrong a
  likelihood may be. Data overrule it; another one is another belief, not a mistake.
* `Numerical`: resolution, iterations, rounding, memory or time. A finer one leaves the answer as it
  is, up to the resolution that it stands for.
* `Derived`: follows from a definition or from a derivation, which its description names.
* `Limit`: what a user may ask for, and when the interface refuses, warns or says no more.
* `Tuned`: everything else: thresholds, factors, floors, budget shares and schedules that were
  chosen because they measured better than others. Its description says what for.
"""

from enum import Enum
from typing import Annotated, TypeVar

__all__ = ["Derived", "Limit", "NumberKind", "Numerical", "Prior", "Tuned"]


class NumberKind(Enum):
    """What a number with a name is."""

    PRIOR = "prior"
    NUMERICAL = "numerical"
    DERIVED = "derived"
    LIMIT = "limit"
    TUNED = "tuned"


T = TypeVar("T")

Prior = Annotated[T, NumberKind.PRIOR]
Numerical = Annotated[T, NumberKind.NUMERICAL]
Derived = Annotated[T, NumberKind.DERIVED]
Limit = Annotated[T, NumberKind.LIMIT]
Tuned = Annotated[T, NumberKind.TUNED]
