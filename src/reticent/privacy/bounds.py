"""Bounds: what is public about one record, and the first thing that happens to every record.

Columns have kinds (columns/kinds.py): ranges of numbers, levels of words, spans of dates. A value
outside its range is moved to the edge, a public point; a value that is missing, or not of its kind,
stays missing (NaN), and a record that lacks a value adds nothing to a sum (statistics/base.py). So
a record cannot make anything fail, and it cannot go further than the bounds allow. Bounds come from
a codebook or from common knowledge, never from the data.
"""

import json
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reticent.errors import BadInput, BoundsMissing
from reticent.privacy.columns.base import Kind, exact_text
from reticent.privacy.columns.kinds import (
    KINDS,
    as_literal,
    is_plain_number,
    kinds_from_dicts,
    read_columns,
    with_missing_codes,
)
from reticent.privacy.columns.numbers import Number
from reticent.privacy.columns.words import MissingIndicator, YesNo
from reticent.privacy.noise_column import NoiseColumn
from reticent.privacy.schema import by_position, resolve, shaped
from reticent.privacy.sources.base import Field, Source
from reticent.validation import is_integer

__all__ = ["Bounds", "checked_bounds"]

_LOOP = 512  # numbers that one loop goes over
_HUGE = 1e150  # ranges up to here scale without overflow or subnormal numbers

Range = tuple[float, float]


@dataclass(frozen=True, init=False)
class Bounds:
    """What is public about every column of one record: its kind and its range or levels.

    Parameters
    ----------
    x : dict of name → column, list of columns, or one column
        The inputs: by name for frames and files, by position for arrays, or one for every column.
        A column is a range of numbers ``(0, 110)``, a list of words ``["F", "M"]``, ``bool`` for
        yes and no, a span of dates ``(date(2019, 1, 1), date(2024, 12, 31))``, or a kind:
        `Number`, `Whole`, `Words`, `Ordered`, `YesNo`, `Date`, `Cyclic`.
    y : the same, optional
        The outputs: numbers, whole numbers, or yes and no (1 and 0).
    classes : list of labels, optional
        For classification: all labels that can occur, in place of ``y``. Of yes and no in all
        their spellings (true, 1): the kind `YesNo`.
    norm : float, optional
        A public bound on the Euclidean distance of a record's inputs from the middle of the box, in
        the inputs' own units; all of them numbers.
    missing : dict of name → codes, or a list of codes, optional
        Codes that mean "missing" in a column, such as 999, or in all of them.

    Privacy
    -------
    What is given here must be public. Numbers outside their range are moved to the edge. What is
    not of its column's kind, a word that is not listed, a code that means missing: all these are
    missing, and a record that lacks a value which a model needs has weight zero in it.

    Examples
    --------
    >>> Bounds(x={"age": (0, 110), "sex": ["F", "M"]}, y={"weight": (2, 150)})
    Bounds(x={'age': (0.0, 110.0), 'sex': ['F', 'M']}, y={'weight': (2.0, 150.0)})
    """

    x_kinds: tuple[Kind, ...]
    y_kinds: tuple[Kind, ...]
    x_names: tuple[str, ...] | None
    y_names: tuple[str, ...] | None
    classes: tuple[Any, ...] | None
    norm: float | None
    broadcast: bool  # one range for every column, however many there are
    noise_column: NoiseColumn | None  # a column of X that is no input (`with_noise_column`)
    class_kind: YesNo | None  # how labels are read, where that is more than being one of them

    def __init__(
        self,
        x: Any,
        *,
        y: Any = None,
        classes: Sequence[Any] | YesNo | Mapping[str, Sequence[Any] | YesNo] | None = None,
        norm: float | None = None,
        missing: Mapping[str, Any] | Sequence[str | float] | None = None,
    ) -> None:
        x_names, x_kinds, broadcast = read_columns("x", x)
        y_names, y_kinds, _ = read_columns("y", y) if y is not None else (None, (), False)
        labelled: tuple[str, ...] | None = None
        class_kind: YesNo | None = None
        if classes is not None:
            if y is not None:
                raise BadInput("Give either y (numbers) or classes (labels), not both.")
            labelled, class_kind, classes = _classes(classes)
        x_kinds, y_kinds = with_missing_codes(
            (x_names, x_kinds), (y_names, y_kinds), missing, labels=(labelled, classes)
        )
        if class_kind is not None:
            class_kind = _with_codes(class_kind, labelled, missing)
        _check_outputs(y_kinds)
        if classes is not None:
            y_names = labelled
        fields = {
            "x_kinds": x_kinds,
            "y_kinds": y_kinds,
            "x_names": x_names,
            "y_names": y_names,
            "classes": None if classes is None else tuple(classes),
            "norm": None if norm is None else _number("norm", norm),
            "broadcast": broadcast,
            "noise_column": None,
            "class_kind": class_kind,
        }
        for name, value in fields.items():
            object.__setattr__(self, name, value)  # the dataclass is frozen
        if self.norm is not None and not 1 / _HUGE <= self.norm <= _HUGE:
            raise BoundsMissing(f"norm must be a positive number, not {norm!r}.", parameter="norm")
        if self.norm is not None and not all(type(kind) is Number for kind in x_kinds):
            raise BadInput("norm is for inputs that are numbers, all of them.", parameter="norm")

    def __getstate__(self) -> dict[str, Any]:
        """The fields, without what is computed from them when it is asked for."""
        return {name: getattr(self, name) for name in Bounds.__dataclass_fields__}

    @cached_property
    def x(self) -> tuple[Range, ...]:
        """Ranges of the inputs' codes: those of numbers, and (−½, L − ½) for L levels."""
        return tuple(kind.range for kind in self.x_kinds)

    @cached_property
    def y(self) -> tuple[Range, ...]:
        """Ranges of the outputs."""
        return tuple(kind.output_range for kind in self.y_kinds)

    @classmethod
    def from_codebook(cls, path: str | os.PathLike[str], **choice: Any) -> "Bounds":
        """Bounds from a codebook: a TOML file that says what is public about each column.

        Inputs are the columns whose ``use`` is "x", outputs "y", labels "class"; ``choice`` takes
        other ones: ``x=["age", "sex"], y="weight"``, or ``classes="ill"``.
        """
        from reticent.codebook import read_codebook

        return read_codebook(path).bounds(**choice)

    def __repr__(self) -> str:
        if self.noise_column is not None:
            column: str | int | None = self.noise_column.name
            if self.x_names is None:
                column = self.noise_column.at
            whole = self.without_noise_column(self.noise_column)
            return f"{whole!r}.with_noise_column({column!r})"
        parts = [f"x={_show(self.x_kinds, self.x_names, self.broadcast)}"]
        if self.y_kinds:
            parts.append(f"y={_show(self.y_kinds, self.y_names, False)}")
        if self.classes is not None:
            labels: Any = list(self.classes)
            if self.class_kind is not None:
                labels = self.class_kind
            parts.append(
                f"classes={labels if self.y_names is None else {self.y_names[0]: labels}!r}"
            )
        if self.norm is not None:
            parts.append(f"norm={self.norm!r}")
        return f"Bounds({', '.join(parts)})"

    def to_dict(self) -> dict[str, Any]:
        """Give the bounds as plain JSON values; ``from_dict`` is the inverse."""
        kinds: dict[str, Any] = {}
        if not all(is_plain_number(kind) for kind in self.x_kinds + self.y_kinds):
            kinds = {
                "x_kinds": [kind.to_dict() for kind in self.x_kinds],
                "y_kinds": [kind.to_dict() for kind in self.y_kinds],
            }
        if self.class_kind is not None:
            kinds |= {"class_kind": self.class_kind.to_dict()}
        return kinds | {
            "x": [list(r) for r in self.x],
            "y": [list(r) for r in self.y],
            "x_names": None if self.x_names is None else list(self.x_names),
            "y_names": None if self.y_names is None else list(self.y_names),
            "classes": None if self.classes is None else list(self.classes),
            "norm": self.norm,
            "same": self.broadcast,
            "level": None if self.noise_column is None else self.noise_column.to_dict(),
        }

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> "Bounds":
        """Rebuild bounds from ``to_dict``."""

        def given(side: str) -> Any:
            columns: list[Any] = [(low, high) for low, high in fields[side]]
            if f"{side}_kinds" in fields:
                columns = kinds_from_dicts(fields[f"{side}_kinds"])
            if side == "x" and fields["same"]:
                return columns[0]
            names = fields[f"{side}_names"]
            return columns if names is None else dict(zip(names, columns, strict=True))

        x = given("x")
        y = given("y") if fields["y"] else None
        classes: Any = fields["classes"]
        if "class_kind" in fields:
            (classes,) = kinds_from_dicts([fields["class_kind"]])
        if classes is not None and fields["y_names"] is not None:
            classes = {fields["y_names"][0]: classes}
        level = fields.get("level")
        return cls(x, y=y, classes=classes, norm=fields["norm"])._with(
            noise_column=None if level is None else NoiseColumn.from_dict(level)
        )

    def with_noise_column(self, column: str | int) -> "Bounds":
        """Take one column of X out of the inputs.

        It holds each record's known noise level, a standard deviation. In scaled records (`scale`)
        its weight, low/level, stands between inputs and outputs.
        """
        if self.broadcast:
            raise BadInput(
                "A noise column needs a range of its own: give each column of "
                "X its range in the bounds."
            )
        known: Sequence[str | int] = self.x_names or range(len(self.x))
        if is_integer(column, -math.inf) and self.x_names is None:
            column = int(column)
            if column < 0:
                column += len(self.x)
            else:
                column += 0
        if isinstance(column, bool) or column not in known:
            if isinstance(column, str):
                how = f"Bounds(x={{..., {column!r}: (0.1, 5)}}, ...)"
            else:
                how = "its position in Bounds(x=[...])"
            raise BoundsMissing(
                f"The noise column {column!r} has no bounds. Give it a public range beside the "
                f"inputs, with a lower bound above 0: {how}. Columns that have one: "
                f"{', '.join(map(repr, known))}."
            )
        at = known.index(column)
        low, high = self.x[at]
        kind = self.x_kinds[at]
        if type(kind) is not Number or kind.keep_missing:
            raise BadInput(
                f"The noise column {column!r} must be a number, with a range such as (0.1, 5); a "
                "record whose level is missing does not count."
            )
        if not low > 0:
            raise BadInput(
                f"The noise column {column!r} needs a lower bound above 0, not {low:g}: a record "
                "counts by (lower bound / level)², so the bound is what limits a record. Give the "
                "smallest level that is worth telling apart; smaller ones count as that."
            )
        if len(self.x) == 1:
            raise BadInput(
                f"Beside the noise column {column!r} there must be at least one input with bounds."
            )
        names = self.x_names and self.x_names[:at] + self.x_names[at + 1 :]
        level = NoiseColumn(
            at, column if isinstance(column, str) else None, low, high, kind.missing
        )
        kinds = self.x_kinds[:at] + self.x_kinds[at + 1 :]
        return self._with(x_kinds=kinds, x_names=names, noise_column=level)

    def without_noise_column(self, level: NoiseColumn) -> "Bounds":
        """What `with_noise_column` was asked of."""
        noise = level.kind
        kinds = (*self.x_kinds[: level.at], noise, *self.x_kinds[level.at :])
        names = self.x_names and (
            *self.x_names[: level.at],
            str(level.name),
            *self.x_names[level.at :],
        )
        return self._with(x_kinds=kinds, x_names=names, noise_column=None)

    def shaped(self, source: Source, *, targets: bool) -> Source:
        """The source, told how many columns these bounds are for (`schema.shaped`)."""
        return shaped(self, source, targets=targets)

    def resolve(self, source: Source, *, targets: bool) -> tuple["Bounds", tuple[Field, ...]]:
        """Bounds of a source's columns, and the columns to ask it for (`schema.resolve`)."""
        return resolve(self, source, targets=targets)

    def with_indicators(self) -> "Bounds":
        """The same bounds with an input for each number that may be missing: whether it is."""
        return by_position(self)[0]

    def with_columns(
        self,
        x_kinds: tuple[Kind, ...],
        x_names: tuple[str, ...] | None,
        noise_column: NoiseColumn | None,
    ) -> "Bounds":
        """The same bounds for inputs that are known: a kind for each, and a name if they have."""
        return self._with(
            x_kinds=x_kinds, x_names=x_names, noise_column=noise_column, broadcast=False
        )

    def with_kinds(self, x_kinds: tuple[Kind, ...]) -> "Bounds":
        """The same bounds with other kinds of the same inputs."""
        return self._with(x_kinds=x_kinds)

    def inputs_alone(self) -> "Bounds":
        """The bounds of the inputs, without those of the outputs."""
        return self._with(
            y_kinds=(), y_names=None, classes=None, class_kind=None, noise_column=None
        )

    def without_names(self) -> "Bounds":
        """The same ranges, by position instead of by name."""
        return self._with(
            x_names=None, noise_column=self.noise_column and replace(self.noise_column, name=None)
        )

    def scale(self, records: NDArray[np.float64], output_limit: float = 1.0) -> NDArray[np.float64]:
        """Move raw records (inputs, then outputs) into the bounds and scale each range to [−1, 1].

        Labels stay as they are. Outputs are moved to [−output_limit, output_limit], in half-ranges,
        for statistics that clip them to bounds of their own. With ``norm``, the inputs are scaled
        by it instead, to a ball of radius 1. What is missing stays NaN; with ``norm``, all inputs
        of a record that lacks one of them. A function of each record alone, bit for bit:
        elementwise additions, multiplications and comparisons (and a division, for a noise level)
        only, in an order that does not depend on the record's place.
        """
        if self.noise_column is not None:
            rest = self._with(noise_column=None).scale(
                np.delete(records, len(self.x), axis=1), output_limit
            )
            return np.insert(
                rest, len(self.x), self.noise_column.weights(records[:, len(self.x)]), axis=1
            )
        d = len(self.x)
        numeric = len(self.x) + len(self.y)
        with np.errstate(all="ignore"):
            u = self.scale_unclipped(records[:, :numeric])
            if self.norm is not None:  # the box, seen from the ball
                low, high = self.scale_unclipped(np.array(self.x + self.y).T)
                low[d:] = -output_limit
                high[d:] = output_limit
                np.minimum(np.maximum(u, low, out=u), high, out=u)
            else:
                np.clip(u[:, :d], -1.0, 1.0, out=u[:, :d])
                if self.y:
                    np.clip(u[:, d:], -output_limit, output_limit, out=u[:, d:])
            if self.norm is not None:
                square = np.zeros(len(u))
                for j in range(d):
                    square += u[:, j] * u[:, j]
                u[:, :d] *= (1 / np.sqrt(np.maximum(square, 1.0)))[:, None]
        if self.classes is None:
            return u
        return np.hstack([u, records[:, numeric:]])

    def scale_unclipped(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Scale numbers without clipping: v ↦ (v − middle) · scale, which keeps their order."""
        u = np.empty(np.shape(values))
        columns, many, (middle, scale) = len(self.x) + len(self.y), *self._abreast
        if values.flags.c_contiguous:
            whole = len(u) - len(u) % many
        else:
            whole = 0
        for some, length in ((slice(0, whole), many * columns), (slice(whole, len(u)), columns)):
            moved = u[some].reshape(-1, length)
            np.subtract(values[some].reshape(-1, length), middle[:length], out=moved)
            moved *= scale[:length]
        return u

    @cached_property
    def _abreast(self) -> tuple[int, tuple[NDArray[np.float64], NDArray[np.float64]]]:
        """How many records are scaled abreast (a loop over a few columns would be slow).

        The middles and scales of so many.
        """
        low, high = np.array(self.x + self.y).reshape(-1, 2).T
        scale = 2 / (high - low)
        if self.norm is not None:
            scale[: len(self.x)] = 1 / self.norm
        many = max(1, _LOOP // max(1, len(scale)))
        return many, (np.tile(low / 2 + high / 2, many), np.tile(scale, many))

    def _with(self, **fields: Any) -> "Bounds":
        """Copy with some fields replaced (all have been checked before)."""
        new = object.__new__(Bounds)
        for name in Bounds.__dataclass_fields__:
            object.__setattr__(new, name, fields.get(name, getattr(self, name)))
        return new

    def given_inputs(self) -> list[int]:
        """Places of the inputs that are columns of X: all but indicators of missing values."""
        return [i for i, kind in enumerate(self.x_kinds) if type(kind) is not MissingIndicator]

    @property
    def columns_in(self) -> int:
        """How many columns of X are inputs."""
        return len(self.given_inputs())

    @property
    def radius2(self) -> int:
        """Squared length that the scaled inputs of a record cannot exceed."""
        if self.norm is not None:
            return 1
        return len(self.x)

    def unscale(self, unit: NDArray[np.float64]) -> NDArray[np.float64]:
        """Turn scaled inputs back into the inputs' own units."""
        low, high = np.array(self.x).T
        if self.norm is None:
            scale = (high - low) / 2
        else:
            scale = self.norm
        return (low + high) / 2 + unit * scale


def checked_bounds(bounds: object) -> Bounds:
    """Give a copy of bounds, or refuse what is not `Bounds` itself.

    They see every record: a subclass could fail for some of them, or answer otherwise when it is
    asked again.
    """
    if type(bounds) is not Bounds:
        raise BadInput(
            "bounds must be a reticent.Bounds itself, not "
            f"{type(bounds).__name__}; subclasses are not taken."
        )
    kinds = [*bounds.x_kinds, *bounds.y_kinds]
    if bounds.class_kind is not None:
        kinds.append(bounds.class_kind)
    if not all(type(kind) in KINDS for kind in kinds):
        raise BadInput("The kinds of columns must be reticent's own; subclasses are not taken.")
    # By way of a text: all numbers, words, names and labels are then of Python's own classes, and
    # everything is checked anew. A label of a class of the caller's own would see records.
    return Bounds.from_dict(json.loads(json.dumps(Bounds.to_dict(bounds))))


def _number(what: str, value: object) -> float:
    if isinstance(value, (bool, np.bool_, np.timedelta64)) or not isinstance(
        value, (int, float, np.integer, np.floating)
    ):
        raise BoundsMissing(f"A bound of {what} must be a number, not {value!r}.")
    return float(value)


def _check_outputs(kinds: Sequence[Kind]) -> None:
    for kind in kinds:
        if kind.keep_missing:
            raise BadInput(
                "keep_missing is for inputs: a record whose output is missing has nothing to learn "
                "from.",
                parameter="y",
            )
        if not kind.has_output_range:
            raise BadInput(
                f"An output is a number, a whole number, or yes and no, not {kind.name}. Words are "
                "predicted by a classifier: give them as classes.",
                parameter="y",
            )


def _classes(given: Any) -> tuple[tuple[str, ...] | None, YesNo | None, Sequence[Any]]:
    """Name of the column, its kind and all labels: what is not given is None."""
    names = None
    if isinstance(given, Mapping):
        if len(given) != 1:
            raise BadInput(
                "classes by name must name one column, for example classes={'ill': ['no', 'yes']}."
            )
        names = tuple(given)
        given = next(iter(given.values()))
    if type(given) is YesNo:
        if given.keep_missing:
            raise BadInput(
                "keep_missing is for inputs: a record whose label is missing has nothing to learn "
                "from.",
                parameter="classes",
            )
        return names, given, given.levels
    if isinstance(given, str) or not isinstance(given, (Sequence, np.ndarray)):
        raise BoundsMissing(
            "classes must be the list of all labels that can occur, for example ['no', 'yes']."
        )
    labels = [label.item() if isinstance(label, np.generic) else label for label in given]
    labels = [exact_text(label) if isinstance(label, str) else label for label in labels]
    texts = all(isinstance(label, str) for label in labels)
    numbers = all(isinstance(label, (bool, int, float)) for label in labels)
    if len(labels) < 2 or len(set(labels)) < len(labels) or not (texts or numbers):
        raise BoundsMissing(
            "classes must be at least two different labels, all texts or all numbers."
        )
    if numbers and not all(math.isfinite(label) for label in labels):
        raise BoundsMissing("classes must be finite numbers.")
    return names, None, labels


def _with_codes(kind: YesNo, names: tuple[str, ...] | None, missing: Any) -> YesNo:
    """The kind of the labels with the codes that mean "missing" in their column."""
    codes = missing
    if isinstance(missing, Mapping):
        codes = () if names is None else missing.get(names[0], ())
    ((coded,), _) = with_missing_codes((None, (kind,)), (None, ()), codes)
    assert isinstance(coded, YesNo)
    return coded


def _show(kinds: tuple[Kind, ...], names: tuple[str, ...] | None, broadcast: bool) -> str:
    literals = list(map(as_literal, kinds))
    if broadcast:
        return repr(literals[0])
    return repr(literals if names is None else dict(zip(names, literals, strict=True)))
