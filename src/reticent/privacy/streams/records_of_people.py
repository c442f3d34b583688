"""Records of people in a stream: how many of each person's have counted so far.

In a stream nobody knows how many records a person will have, so they cannot be weighed by that. The
first ``most`` records of each person count, and later ones add nothing: a person adds at most that
many rows to all sums together. Which records count depends on that person's own records alone.
Identifiers are stored as pairs of numbers (columns/identifiers.py), of texts a keyed hash. Proof:
stream.md.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reticent.privacy.columns.identifiers import Identifier
from reticent.privacy.sources.cell_values import plain_array
from reticent.privacy.sources.codes import code_array
from reticent.validation import is_integer

__all__ = ["RecordsOfPeople"]

_KEY = "multilinear key"


class RecordsOfPeople:
    """Number of records that have counted, of each person. TRUSTED: never to be shown.

    Parameters
    ----------
    key : bytes
        The secret of the hash of identifiers, for the whole stream.
    counts : dict
        Number of records by identifier.
    """

    def __init__(self, key: bytes, counts: dict[str, int]) -> None:
        self._key = key
        self._counts = counts

    def count(self, person: Sequence[object] | NDArray[Any], most: int) -> NDArray[np.bool_]:
        """Count one record of each of these, in order: True where it is among the first ``most``.

        False for a record of nobody.
        """
        if isinstance(person, np.ndarray):
            cells = plain_array(person)  # what is masked is nobody's
        else:
            cells = np.fromiter(person, dtype=object, count=len(person))
        halves = [code_array(cells, Identifier(half, self._key)) for half in (0, 1)]
        among = np.zeros(len(cells), dtype=bool)
        for place, (first, second) in enumerate(zip(*halves, strict=True)):
            if np.isnan(first) or np.isnan(second):
                continue
            name = f"{first:.0f} {second:.0f}"
            before = self._counts.get(name, 0)
            if before < most:
                self._counts[name] = before + 1
                among[place] = True
        return among

    def to_dict(self) -> dict[str, Any]:
        """As JSON values.

        The name of the key says which hash it belongs to: a state with identifiers of another hash
        must be refused, or its people would be counted anew.
        """
        return {_KEY: self._key.hex(), "counts": self._counts}

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> "RecordsOfPeople":
        """Rebuild from `to_dict`."""
        return cls(bytes.fromhex(stored[_KEY]), dict(stored["counts"]))

    @staticmethod
    def is_stored(stored: object) -> bool:
        """Whether this is what `to_dict` gives."""
        if not isinstance(stored, dict) or stored.keys() != {_KEY, "counts"}:
            return False
        key = stored[_KEY]
        counts = stored["counts"]
        try:
            bytes.fromhex(key)
        except (TypeError, ValueError):
            return False
        return isinstance(counts, dict) and all(is_integer(one) for one in counts.values())
