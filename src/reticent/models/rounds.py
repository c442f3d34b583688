"""Rounds as callers bring them: candidates and rewards become numbers by a public shape. Proof: bandit.md.

Public of a call are: whether it is one round or several, the lengths of its outermost containers,
and the shapes and dtypes of arrays and frames. Only these are checked, before anything is charged.
All that lies inside belongs to the people whose rounds they are, and is read cell by cell
(`privacy.cells`): what is not a number, or does not fit, is missing in its own round, and changes
nothing in any other.
"""

from typing import Any, NoReturn, TypeAlias

import numpy as np
from numpy.typing import NDArray

from reticent.errors import BadInput
from reticent.privacy import cells

__all__ = ["AskedRounds", "ToldRounds"]

Array = NDArray[np.float64]
Container: TypeAlias = list[object] | NDArray[Any]


class ToldRounds:
    """Candidates that were tried, and their rewards. ``several``: None where the shape says it.

    A reward in a list, an array or a series makes several rounds, one for each; anything else is
    the reward of one round. Candidates are rows, one for each reward; that of one round need not be
    in a row.
    """

    def __init__(self, candidate: object, reward: object, width: int, several: bool | None = None) -> None:
        _check_several(several)
        self._rewards = _container(reward)
        self._candidates = _container(candidate)
        self._reward = reward
        self._candidate = candidate
        self._width = width
        self._several = self._rewards is not None if several is None else several
        self.count = 1
        if self._several:
            if self._rewards is None:
                _refuse_rounds(width)
            self.count = len(self._rewards)
            _check_rows(self._rewards, self.count, 1, width)
        if self.count == 1:
            self._check_one()
        elif self._candidates is None:
            _refuse_rounds(width)
        else:
            _check_rows(self._candidates, self.count, width, width)

    def _check_one(self) -> None:
        """A candidate of one round may be a row of its own, or the only row."""
        held = self._candidates
        width = self._width
        if isinstance(held, list) and len(held) not in (1, width):
            _refuse_rounds(width)
        if isinstance(held, np.ndarray) and held.shape not in ((width,), (1, width)):
            _refuse_rounds(width)

    def read(self) -> Array:
        """The records: (rounds, width + 1), candidates and then the reward; NaN where something is missing."""
        rewards = self._rewards
        if not self._several or rewards is None:
            rewards = [_unwrapped(self._reward)]
        candidates = self._candidates
        if candidates is None:
            candidates = [_unwrapped(self._candidate)]
        elif self.count == 1 and isinstance(candidates, list) and len(candidates) != 1:
            candidates = [candidates]
        return np.hstack([_rows(candidates, self.count, self._width), _rows(rewards, self.count, 1)])


class AskedRounds:
    """Sets of candidates, one for each round. ``several``: None where the shape says it.

    An array of three dimensions holds several sets, and so does a list in which anything is a set:
    an array of two dimensions, or a list that holds lists. Everything else is one set.
    """

    def __init__(self, candidates: object, width: int, several: bool | None = None) -> None:
        _check_several(several)
        held = _container(candidates)
        self._width = width
        if held is None or len(held) == 0:
            _refuse_sets(width)
        self._held: Container = held
        if several is None:
            several = any(map(_is_set, held)) if isinstance(held, list) else held.ndim == 3
        self.several = several
        if not isinstance(held, list):
            sets = held.ndim == 3 and several and held.shape[1] > 0
            rows = held.ndim == 2 and not several
            if not (held.shape[-1] == width and (sets or rows)):
                _refuse_sets(width)
        self.count = len(held) if several else 1

    def read(self) -> Array | list[Array]:
        """The sets: (rounds, candidates, width) of an array; of a list each by itself, (candidates, width)."""
        if isinstance(self._held, list):
            sets: list[object] = self._held if self.several else [self._held]
            return [_one_set(one, self._width) for one in sets]
        found = cells.numbers(self._held)
        return found if self.several else found[None]


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
        found = cells.plain_array(value) if isinstance(value, np.ndarray) else np.asarray(value)
        if found.dtype.kind == "O" and found.ndim == 1:
            return found.tolist()
        return found if found.ndim else None
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


def _is_set(one: object) -> bool:
    held = _container(one)
    if isinstance(held, list):
        return any(_container(cell) is not None for cell in held)
    return held is not None and held.ndim >= 2


def _one_set(one: object, width: int) -> Array:
    """One person's candidates, (candidates, width). They are that person's own: nothing about them fails."""
    held = _container(one)
    if held is None:
        return np.empty((0, width))
    if isinstance(held, np.ndarray) and not _is_table(held, len(held), width):
        return np.full((len(held), width), np.nan)
    return _rows(held, len(held), width)


def _check_rows(held: Container, count: int, columns: int, width: int) -> None:
    """Refuse a container that does not hold so many rows, by its length or shape alone."""
    if isinstance(held, list) and len(held) != count:
        _refuse_rounds(width)
    if isinstance(held, np.ndarray) and not _is_table(held, count, columns):
        _refuse_rounds(width)


def _is_table(held: NDArray[Any], count: int, columns: int) -> bool:
    """Whether an array has that many rows and columns; one column may have no dimension of its own."""
    return held.shape == (count, columns) or (columns == 1 and held.shape == (count,))


def _rows(held: Container, count: int, columns: int) -> Array:
    if isinstance(held, list):
        held = cells.list_cells(held, columns)
    return cells.numbers(held).reshape(count, columns)


def _refuse_rounds(width: int) -> NoReturn:
    raise BadInput(
        f"tell takes a candidate of {width} numbers and its reward, or a list or an array of each, "
        "of the same length: one row and one reward for each round."
    )


def _refuse_sets(width: int) -> NoReturn:
    raise BadInput(
        f"candidates must be rows of {width} numbers, at least one, or several such sets: an array of "
        "three dimensions, or a list of sets."
    )
