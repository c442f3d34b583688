"""Enforced limits: the numbers of a statistic, asked for once, checked and frozen.

Enforcement and noise both use them, and nothing else. A statistic is written by its user, and what
an object of theirs answers may change from one question to the next. So the core asks it for its
numbers (columns, norms, bits, groups, …) once each, before any record is read, turns them into
Python's own integers and fractions, and derives limits, sensitivity, multiplicities and step from
these. From then on the object is asked for rows alone, under the guard (guard.py), and whatever
they are, they are clipped to these limits.

The kind of a statistic is the class of the core that it really descends from: one and only one.
Proof: statistics.md, 2, 4 and 6.
"""

import json
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import Field, dataclass, fields, is_dataclass
from fractions import Fraction
from hashlib import sha256
from operator import index
from typing import TYPE_CHECKING, Any, ClassVar, SupportsIndex, TypeVar

import numpy as np
from numpy.typing import NDArray

from reticent.errors import BadInput, ReleaseRefused
from reticent.privacy.people.unit import ADD_REMOVE
from reticent.privacy.statistics.integer_grid import fraction

if TYPE_CHECKING:
    from reticent.privacy.statistics.base import Statistic

__all__ = [
    "Enforced",
    "Sensitivity",
    "common",
    "enforce",
    "is_kind",
    "positive",
    "saved_as",
    "saved_name",
    "whole",
]

Rows = NDArray[np.float64]
_MOST = 2**40  # of released numbers


@dataclass(frozen=True, eq=False)
class Sensitivity:
    """How far two neighbours' sums can be apart, in grid steps.

    Attributes
    ----------
    l2_squared : int
        Bound on the squared distance, in which number i counts ``multiplicity[i]`` times.
    l1 : int or None
        Bound on the sum of absolute differences; None where none is enforced.
    multiplicity : array of integers, shape (size,)
        The noise of number i has the variance of l2_squared / multiplicity[i].
    """

    l2_squared: int
    l1: int | None
    multiplicity: NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Enforced(ABC):
    """Abstract: the numbers of one statistic, and what the core makes of its rows.

    ``statistic`` is asked for rows, and for the fields that a release tells of.
    """

    statistic: Any
    name: str
    output_limit: float
    complete_records: bool

    kind: ClassVar[str]
    saved_as: ClassVar[str]  # in the state of a stream (`key`), whatever the class is called

    @property
    @abstractmethod
    def size(self) -> int:
        """How many numbers are released."""

    @property
    def sum_shape(self) -> tuple[int, ...]:
        """Shape of a sum, before `coordinates` picks the released numbers."""
        return (self.size,)

    @property
    @abstractmethod
    def sensitivity2(self) -> int:
        """Squared L2 distance, in grid steps, that replacing one record can move the sum.

        Each number counts `coordinate_multiplicity` times.
        """

    @property
    @abstractmethod
    def sensitivity1(self) -> int | None:
        """L1 distance, in grid steps, or None where no L1 bound is enforced."""

    @abstractmethod
    def contribution(self) -> Sensitivity:
        """How far from zero one record can move the sum: what adding or removing one does."""

    def sensitivity(self, neighbours: str) -> Sensitivity:
        """How far apart the sums of two neighbours can be: of "replace" or "add-remove"."""
        if neighbours == ADD_REMOVE:
            return self.contribution()
        return Sensitivity(self.sensitivity2, self.sensitivity1, self.coordinate_multiplicity())

    @property
    @abstractmethod
    def step(self) -> float:
        """The grid step of the released numbers: a power of two."""

    @property
    @abstractmethod
    def block_rows(self) -> int:
        """Rows per block such that a block's sum is exact in float64."""

    @abstractmethod
    def block_sum(self, records: Rows) -> NDArray[Any]:
        """Sum over one block of scaled records, as whole numbers."""

    def raw_block_sum(self, raw: Rows, scale: Callable[[Rows], Rows]) -> NDArray[Any]:
        """Sum over one block of raw records, which ``scale`` scales, each by itself."""
        return self.block_sum(scale(raw))

    def fill(self, records: Rows) -> tuple[Rows, NDArray[np.bool_] | None]:
        """Records to ask for rows of, and which of them lack a value; None if none does.

        A record that lacks a value adds nothing. Its map is asked all the same, with the middle of
        the range in place of the value, so that how maps are asked depends on no record. A
        statistic that does not ask for ``complete_records`` sees NaN instead.
        """
        if not self.complete_records or not np.isnan(records.sum()):
            return records, None
        missing: NDArray[np.bool_] = np.isnan(records)
        lacking: NDArray[np.bool_] = np.any(missing, axis=1)
        return np.where(missing, 0.0, records), lacking

    def coordinates(self, total: NDArray[Any]) -> NDArray[Any]:
        """The released numbers of a total, each once."""
        return total

    def coordinate_multiplicity(self) -> NDArray[np.int64]:
        """For each released number, how often its square counts in the squared distance.

        Once, or twice off a Gram matrix's diagonal.
        """
        return np.ones(self.size, dtype=np.int64)

    def accumulates(self) -> NDArray[np.bool_]:
        """Which of the released numbers of a stream are worth adding up over its steps."""
        return np.ones(self.size, dtype=bool)

    def numbers(self) -> tuple[object, ...]:
        """All that decides rows' limits and noise."""
        own = [one.name for one in fields(self) if one.name not in ("statistic", "feature_map")]
        multiplicity = sha256(
            self.coordinate_multiplicity().tobytes() + self.accumulates().tobytes()
        ).hexdigest()
        values = [getattr(self, name) for name in own]
        return (
            self.kind,
            self.saved_as,
            self.sensitivity2,
            self.sensitivity1,
            self.step,
            multiplicity,
            *values,
        )

    def describe(self) -> dict[str, Any]:
        """Everything public about the statistic, in plain JSON values.

        Name, kind and size, then its fields.
        """
        settled = {"name": self.name, "kind": self.kind, "size": self.size}
        described = settled | _fields(self.statistic) | settled
        try:
            return {name: _plain(value) for name, value in described.items()}
        except (TypeError, ValueError):
            fields = ", ".join(name for name in described if name not in settled)
        raise BadInput(
            f"The fields of {self.name} ({fields}) are written into the release: make them "
            "numbers, texts, tuples or dataclasses of these."
        )

    def key(self, described: dict[str, Any]) -> str:
        """The plan and its description as a text.

        Equal for statistics that are the same in every respect.
        """
        return json.dumps([described, [str(value) for value in self.numbers()]], sort_keys=True)


def saved_as(key: str) -> dict[str, str]:
    """Metadata of a field that releases, and files of them, know by another name."""
    return {"saved_as": key}


def saved_name(field: Field[Any]) -> str:
    """The name that releases, and files of them, know a field by."""
    return str(field.metadata.get("saved_as", field.name))


def _fields(thing: Any) -> dict[str, Any]:
    """The fields of a dataclass, by the names that they are saved as.

    `dataclasses.asdict` would copy a large basis number by number.
    """
    return {saved_name(one): getattr(thing, one.name) for one in fields(thing)}


_PLAIN = {int, float, str, bool}
_NUMBERS = ({int}, {float})


def _plain(value: Any) -> Any:
    """A value as JSON would give it back.

    Long tables of numbers, which are most of it, without the detour.
    """
    if type(value) in _PLAIN:
        return value
    if isinstance(value, tuple):
        if set(map(type, value)) in _NUMBERS:
            return list(value)
        return list(map(_plain, value))
    if is_dataclass(value):
        return {name: _plain(one) for name, one in _fields(value).items()}
    return json.loads(json.dumps(value, default=_fields))


# ---- which kind

_KINDS: dict[type, Callable[[Any], Enforced]] = {}
C = TypeVar("C", bound=type)


def is_kind(enforce: Callable[[Any], Enforced]) -> Callable[[C], C]:
    """Make a class of the core one of the kinds; ``enforce`` reads such a statistic's numbers."""

    def register(cls: C) -> C:
        _KINDS[cls] = enforce
        return cls

    return register


def enforce(statistic: object) -> Enforced:
    """Ask a statistic for its numbers, once each.

    Refuses what is not of one kind, and numbers that prove nothing.
    """
    lineage = type.__dict__["__mro__"].__get__(
        type(statistic)
    )  # the real one, whatever a metaclass says
    found = [one for base in lineage for one in _KINDS if one is base]
    if not found:
        raise ReleaseRefused(
            "Only a Sum, Gram, Counts, ColumnSum or AssignmentMoments can be released: "
            "their bounds are enforced."
        )
    if any(one not in found[0].__mro__ for one in found):
        names = ", ".join(one.__name__ for one in found)
        raise ReleaseRefused(
            f"A statistic is of one kind, and this one is of several ({names}): make one of each."
        )
    return _KINDS[found[0]](statistic)


# ---- numbers that a statistic is asked for


def whole(what: str, value: SupportsIndex, least: int = 1, most: int = _MOST) -> int:
    """A whole number, as Python's own: NumPy's would wrap around."""
    try:
        number = index(value)
    except TypeError:
        raise BadInput(f"{what} must be a whole number, not {value!r}.") from None
    if not least <= number <= most:
        raise BadInput(f"{what} must be at least {least} and at most {most}, not {number}.")
    return number


def positive(what: str, value: int | float | Fraction) -> Fraction:
    """A positive number, as a fraction of Python's own integers."""
    try:
        number = fraction(value)
        number = Fraction(index(number.numerator), index(number.denominator))
    except (TypeError, ValueError, ArithmeticError):
        raise BadInput(f"{what} must be a positive number, not {value!r}.") from None
    if number <= 0:
        raise BadInput(f"{what} must be a positive number, not {value!r}.")
    return number


def common(statistic: "Statistic") -> tuple["Statistic", str, float, bool]:
    """What all plans begin with.

    The statistic, its name, how far from the middle outputs may lie, and whether a record that
    lacks a value adds nothing.
    """
    name = type.__dict__["__name__"].__get__(type(statistic))
    output_limit = float(statistic.output_limit)
    if not 0 < output_limit < 2.0**40:
        raise BadInput(f"{name}.output_limit must be a positive number, not {output_limit!r}.")
    return statistic, name, output_limit, bool(statistic.complete_records)
