"""Rounds as callers bring them: candidates and rewards become numbers by a public shape.

Proof: joint.md.

Public of a call are: whether it is one round or several, the lengths of its outermost containers,
and the shapes and dtypes of arrays and frames. Only these are checked, before anything is charged.
All that lies inside belongs to the people whose rounds they are, and is read cell by cell
by the kinds of the bounds (`privacy.sources.codes`): what is not of its kind, or does not fit, is
missing in its own round, and changes nothing in any other.
"""

from collections.abc import Sequence
from typing import Any, NoReturn, TypeAlias

import numpy as np
from numpy.typing import NDArray

from reticent.errors import BadInput
from reticent.privacy.bounds import Bounds
from reticent.privacy.schema import by_position
from reticent.privacy.sources import cell_values as cells
from reticent.privacy.sources.base import Field
from reticent.privacy.sources.codes import code_rows

__all__ = ["AskedRounds", "ToldRounds"]

Array = NDArray[np.float64]
Container: TypeAlias = list[object] | NDArray[Any]


class ToldRounds:
    """Candidates that were tried, and their rewards. ``several``: None where the shape says it.

    A reward in a list, an array or a series makes several rounds, one for each; anything else is
    the reward of one round. Candidates are rows, one for each reward; that of one round need not be
    in a row.
    """

    def __init__(
        self, candidate: object, reward: object, bounds: Bounds, several: bool | None = None
    ) -> None:
        _check_several(several)
        self._rewards = _container(reward)
        self._candidates = _container(candidate)
        self._reward = reward
        self._candidate = candidate
        self._fields = by_position(bounds)[1]
        inputs = bounds.columns_in
        self._inputs = inputs
        if several is None:
            self._several = self._rewards is not None
        else:
            self._several = several
        self.count = 1
        if self._several:
            if self._rewards is None:
                _refuse_rounds(inputs)
            self.count = len(self._rewards)
            _check_rows(self._rewards, self.count, 1, inputs)
        if self.count == 1:
            self._check_one()
        elif self._candidates is None:
            _refuse_rounds(inputs)
        else:
            _check_rows(self._candidates, self.count, inputs, inputs)

    def _check_one(self) -> None:
        """A candidate of one round may be a row of its own, or the only row."""
        container = self._candidates
        inputs = self._inputs
        if isinstance(container, list) and len(container) not in (1, inputs):
            _refuse_rounds(inputs)
        if isinstance(container, np.ndarray) and container.shape not in ((inputs,), (1, inputs)):
            _refuse_rounds(inputs)

    def read(self) -> Array:
        """The codes of the records: (rounds, inputs + 1), candidates and then the reward.

        NaN where something is missing.
        """
        rewards = self._rewards
        if not self._several or rewards is None:
            rewards = [_unwrapped(self._reward)]
        candidates = self._candidates
        if candidates is None:
            candidates = [_unwrapped(self._candidate)]
        elif self.count == 1 and isinstance(candidates, list) and len(candidates) != 1:
            candidates = [candidates]
        reward = self._fields[-1]
        return np.hstack(
            [
                _read_rows(candidates, self.count, self._inputs, self._fields[:-1]),
                _read_rows(rewards, self.count, 1, [Field(0, reward.kind)]),
            ]
        )


class AskedRounds:
    """Sets of candidates, one for each round. ``several``: None where the shape says it.

    An array of three dimensions holds several sets, and so does a list in which anything is a set:
    an array of two dimensions, or a list that holds lists. Everything else is one set.
    """

    def __init__(self, candidates: object, bounds: Bounds, several: bool | None = None) -> None:
        _check_several(several)
        container = _container(candidates)
        self._fields = by_position(bounds.inputs_alone())[1]
        inputs = bounds.columns_in
        self._inputs = inputs
        if container is None or len(container) == 0:
            _refuse_sets(inputs)
        self._container: Container = container
        if several is None:
            if isinstance(container, list):
                several = any(map(_is_set, container))
            else:
                several = container.ndim == 3
        self.several = several
        if not isinstance(container, list):
            sets = container.ndim == 3 and several and container.shape[1] > 0
            rows = container.ndim == 2 and not several
            if not (container.shape[-1] == inputs and (sets or rows)):
                _refuse_sets(inputs)
        if several:
            self.count = len(container)
        else:
            self.count = 1

    def read(self) -> Array | list[Array]:
        """The codes of the sets: (rounds, candidates, inputs) of an array.

        Of a list each by itself, (candidates, inputs).
        """
        if isinstance(self._container, list):
            if self.several:
                sets: list[object] = self._container
            else:
                sets = [self._container]
            return [_read_set(candidates, self._inputs, self._fields) for candidates in sets]
        rows = code_rows(self._container.reshape(-1, self._inputs), self._fields)
        return rows.reshape(self.count, -1, len(self._fields))


def _check_several(several: object) -> None:
    if several is not None and not isinstance(several, bool):
        raise BadInput("several must be True, False, or left out.")


def _container(value: object) -> Container | None:
    """The list, or the array of one dimension or more, that a value is; None if it is a cell.

    An array of objects in one dimension is a list: what its objects are is not in its shape.
    """
    try:
        if isinstance(value, (list, tuple)):
            return list(value)
        if not hasattr(value, "__array__"):
            return None
        if isinstance(value, np.ndarray):
            array = cells.plain_array(value)
        else:
            array = np.asarray(value)
        if array.dtype.kind == "O" and array.ndim == 1:
            return array.tolist()
        if array.ndim:
            return array
        return None
    except Exception:  # an object that pretends to be a container
        return None


def _unwrapped(value: object) -> object:
    """The one value of an array without dimensions; anything else as it is."""
    try:
        if isinstance(value, np.ndarray) and value.ndim == 0:
            return value[()]
    except Exception:  # an object that pretends to be an array
        return None
    return value


def _is_set(value: object) -> bool:
    container = _container(value)
    if isinstance(container, list):
        return any(_container(cell) is not None for cell in container)
    return container is not None and container.ndim >= 2


def _read_set(value: object, inputs: int, fields: Sequence[Field]) -> Array:
    """One person's candidates, (candidates, inputs).

    They are that person's own: nothing about them fails.
    """
    container = _container(value)
    if container is None:
        return np.empty((0, len(fields)))
    if isinstance(container, np.ndarray) and not _is_table(container, len(container), inputs):
        container = [None] * len(container)
    return _read_rows(container, len(container), inputs, fields)


def _check_rows(container: Container, count: int, columns: int, inputs: int) -> None:
    """Refuse a container that does not hold so many rows, by its length or shape alone."""
    if isinstance(container, list) and len(container) != count:
        _refuse_rounds(inputs)
    if isinstance(container, np.ndarray) and not _is_table(container, count, columns):
        _refuse_rounds(inputs)


def _is_table(container: NDArray[Any], count: int, columns: int) -> bool:
    """Whether an array has that many rows and columns.

    One column may have no dimension of its own.
    """
    return container.shape == (count, columns) or (columns == 1 and container.shape == (count,))


def _read_rows(container: Container, count: int, columns: int, fields: Sequence[Field]) -> Array:
    if isinstance(container, list):
        container = cells.list_cells(container, columns)
    return code_rows(container.reshape(count, columns), fields)


def _refuse_rounds(inputs: int) -> NoReturn:
    raise BadInput(
        f"tell takes a candidate of {inputs} numbers and its reward, or a list or an array of "
        "each, of the same length: one row and one reward for each round."
    )


def _refuse_sets(inputs: int) -> NoReturn:
    raise BadInput(
        f"candidates must be rows of {inputs} numbers, at least one, or several such sets: an "
        "array of three dimensions, or a list of sets."
    )
