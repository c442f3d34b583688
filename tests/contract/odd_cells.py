"""Odd cells and odd records.

What a caller may give where a number, a label or a record is expected. Used wherever it is shown
that one record changes nothing but itself: the fuzz of reading, and that of the bandits. None of
them may raise, warn, or change what is read for another record.
"""

import datetime
import math
from collections import namedtuple
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pyarrow as pa


class Trap:
    """An object that breaks whoever touches it."""

    def _fail(self, *arguments, **options):
        raise RuntimeError("a record's value")

    __float__ = __int__ = __index__ = __complex__ = __eq__ = __hash__ = __bool__ = __len__ = _fail
    __array__ = __iter__ = __getitem__ = __lt__ = __gt__ = __repr__ = __str__ = _fail


class Pretender(float):
    """A number that is none."""

    def __float__(self):
        raise ValueError("a record's value")

    __eq__ = __gt__ = __lt__ = __float__

    def __hash__(self):
        raise ValueError("a record's value")


class Classless:
    """An object that will not say what it is."""

    @property
    def __class__(self):
        raise ValueError("a record's value")


class Endless(list):
    """A list that says it has one cell, and breaks whoever looks."""

    def __len__(self):
        return 1

    def __iter__(self):
        raise ValueError("a record's value")


def nested(depth: int) -> object:
    """A tuple in a tuple in a tuple."""
    cell: object = ()
    for _ in range(depth):
        cell = (cell,)
    return cell


Pair = namedtuple("Pair", "first second")

ODD_CELLS = {
    # numbers, and what is close to one
    "none": None,
    "nan": math.nan,
    "infinity": math.inf,
    "minus infinity": -math.inf,
    "minus zero": -0.0,
    "subnormal": 5e-324,
    "huge": 10**400,
    "minus huge": -(10**400),
    "huge longdouble": np.longdouble("1e4000"),
    "huge fraction": Fraction(10**400, 3),
    "decimal": Decimal("1.5"),
    "decimal out of range": Decimal("1e999999"),
    "signalling decimal": Decimal("sNaN"),
    "true": True,
    "numpy true": np.True_,
    "half": np.float16(0.5),
    "unsigned": np.uint64(2**64 - 1),
    "complex": 1 + 2j,
    "numpy complex": np.complex64(1j),
    "pandas NA": pd.NA,
    "no time": pd.NaT,
    "masked": np.ma.masked,
    # text
    "text": "text",
    "empty text": "",
    "text of a number": "1.5",
    "numpy text": np.str_("text"),
    "bytes": b"1",
    "bytearray": bytearray(b"1"),
    "surrogate": "\udc80",
    "nul": "\x00",
    # time
    "date": datetime.date(2020, 1, 1),
    "difference": datetime.timedelta(1),
    "numpy time": np.datetime64("2020-01-01"),
    "numpy difference": np.timedelta64(5, "ns"),
    # containers
    "empty list": [],
    "list of one": [1.0],
    "list of two": [1.0, 2.0],
    "list of three": [1.0, 2.0, 3.0],
    "list of lists": [[1.0, 2.0], [3.0]],
    "list of texts": ["a", None],
    "tuple": (1.0, 2.0),
    "named tuple": Pair(1.0, 2.0),
    "nested": nested(50_000),
    "dict": {"a": 1.0},
    "set": {1.0},
    "range": range(3),
    "array": np.array([1.0]),
    "array of two": np.array([1.0, 2.0]),
    "array of no dimension": np.array(1.0),
    "array of two dimensions": np.ones((2, 2)),
    "array of objects": np.array([None, "x"], dtype=object),
    "masked array": np.ma.array([1.0, 2.0], mask=[True, False]),
    "structured": np.array([(1, 2.0)], dtype=[("a", int), ("b", float)])[0],
    "matrix": np.ones((1, 2)).view(np.matrix),
    "series": pd.Series([1.0, 2.0]),
    "frame": pd.DataFrame({"a": [1.0]}),
    "arrow scalar": pa.scalar(1.5),
    "arrow null": pa.scalar(None),
    "arrow array": pa.array([1.0, 2.0]),
    # programs
    "object": object(),
    "type": float,
    "trap": Trap(),
    "pretender": Pretender(1),
    "classless": Classless(),
    "endless": Endless([1.0]),
}

__all__ = ["ODD_CELLS", "Classless", "Endless", "Pair", "Pretender", "Trap", "nested"]
