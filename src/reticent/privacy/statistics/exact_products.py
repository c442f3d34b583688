"""Products of whole numbers by BLAS: exact, and checked to be so at the very sizes in use.

Proof: statistics.md, 3.

A matrix product in float64 of whole numbers is exact, in whatever order a library adds, as long as
the absolute values of all terms of one output add up to at most 2⁵³. That holds for libraries which
multiply in the classical way, and not for Strassen's method, lower precision or emulation, which
some libraries take from some size on. So before a product of new sizes is used, products of public
numbers of these sizes are made, close to the limit, and verified in integers.

Verified by Freivalds' method in the integers modulo 2⁶⁴, where NumPy's own int64 arithmetic is
exact: C = A·B if C·r = A·(B·r) for random vectors r. An entry of C that is off by e, 0 < |e| ≤ 2⁵⁴,
is overlooked by one r with a probability of at most 2⁻¹⁰, and of 2⁻⁶³ where e is odd or twice an
odd number; there are two such r.
"""

from math import isqrt
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from reticent.errors import ReleaseRefused
from reticent.privacy.statistics.exact_sum import EXACT, one_blas_thread

__all__ = ["check_blas", "gram", "product"]

Matrix = NDArray[np.float64]
Axis = Literal["inner", "left", "right"]
Order = Literal["C", "F"]

_LEAST_ROWS = 2**12  # of the records' side of a product: at least so many are tried,
_MOST_ROWS = 2**17  # and at most so many
_COLUMNS = 24, 256  # that are tried before anything is charged, when the statistic is not known yet
_VECTORS = 2
_NEAR = 512  # entries lie within 1/512 of the largest that the limit allows

# What a library may choose its algorithm by: public columns on either side, which side the records
# are on, the layout in memory, and how many records there are at most. Left out: True for the
# product of a matrix and its own transpose.
_Sizes = tuple[int, int, Axis, Order, Order, bool, int]
_verified: set[_Sizes] = set()


def gram(q: Matrix) -> Matrix:
    """qᵀq of whole numbers, a row for each record, exact; refused if this machine's BLAS is not."""
    columns = q.shape[1]
    order = _order(q)
    _check((columns, columns, "inner", order, order, True, _most(len(q))))
    return np.matmul(q.T, q)


def product(a: Matrix, b: Matrix, *, records: Axis) -> Matrix:
    """a·b of whole numbers (or of whole multiples of powers of two), exact.

    Refused if this machine's BLAS is not.

    ``records`` says which side has one row or column for each record: the "inner" one, the "left"
    or the "right".
    """
    shape = a.shape[0], a.shape[1], b.shape[1]
    place = {"left": 0, "inner": 1, "right": 2}[records]
    first, second = (size for i, size in enumerate(shape) if i != place)
    _check((first, second, records, _order(a), _order(b), False, _most(shape[place])))
    return np.matmul(a, b)


def check_blas() -> None:
    """Refuse a BLAS that is not exact at common sizes, before anything is charged.

    Checked once per process.
    """
    for columns in _COLUMNS:
        _check((columns, columns, "inner", "C", "C", True, _LEAST_ROWS))


def _order(matrix: Matrix) -> Order:
    """Whether rows ("C") or columns ("F") lie in one piece."""
    if matrix.strides[1] == matrix.itemsize:
        return "C"
    return "F"


def _most(rows: int) -> int:
    """How many records to try: a power of two, and the same for all blocks but very long ones."""
    return min(max(_LEAST_ROWS, 1 << (rows - 1).bit_length()), _MOST_ROWS)


def _check(sizes: _Sizes) -> None:
    """Verify products of these sizes, once.

    Fewer records are tried too, since the last block of a table is shorter.
    """
    if sizes in _verified:
        return
    most = sizes[-1]
    lengths = [max(1, (most >> 2 * i) - i % 2) for i in range(most.bit_length() // 2 + 1)]
    with one_blas_thread():
        exact = all(_is_exact(sizes, rows) for rows in lengths)
    if not exact:
        raise ReleaseRefused(
            "This machine's BLAS does not multiply whole numbers exactly in float64 (products with "
            f"{sizes[0]} × {sizes[1]} columns), so no sum can be trusted. Install NumPy from a "
            "standard wheel (OpenBLAS, MKL or Accelerate, without reduced precision) and try again."
        )
    _verified.add(sizes)


def _is_exact(sizes: _Sizes, rows: int) -> bool:
    """Multiply public numbers in the way that records are multiplied, and verify the product."""
    first, second, records, left, right, same, _ = sizes
    shape = {
        "inner": (first, rows, second),
        "left": (rows, first, second),
        "right": (first, second, rows),
    }[records]
    random = np.random.default_rng(shape)
    b = _public(random, shape[1], shape[2])
    x = b.astype(np.float64, order=right)
    if same:
        return _is_product(np.matmul(x.T, x), b.T, b, random)
    a = _public(random, shape[1], shape[0]).T
    return _is_product(np.matmul(a.astype(np.float64, order=left), x), a, b, random)


def _public(random: np.random.Generator, rows: int, columns: int) -> NDArray[np.int64]:
    """Whole numbers of which products of two columns stay within 2⁵³.

    Close to that in most columns; in others of either sign and of very different sizes.
    """
    most = isqrt(EXACT // rows)
    bits = random.integers(0, 2**32, (rows, columns), dtype=np.uint32).astype(np.int64)
    near = most - bits % (most // _NEAR + 1)
    wide = (most >> bits % most.bit_length()) * (1 - (bits >> 30 & 2))
    return np.where(random.permutation(columns) % 4 == 3, wide, near)


def _is_product(
    c: Matrix, a: NDArray[np.int64], b: NDArray[np.int64], random: np.random.Generator
) -> bool:
    """Whether c = a·b, in integers modulo 2⁶⁴."""
    if not (np.abs(c) <= EXACT).all() or (np.trunc(c) != c).any():  # not so for NaN
        return False
    whole = c.astype(np.int64)
    for _ in range(_VECTORS):
        vector = random.integers(-(2**63), 2**63 - 1, b.shape[1], endpoint=True)
        first: NDArray[np.int64] = (b * vector).sum(axis=1)  # without BLAS
        if ((whole * vector).sum(axis=1) != (a * first).sum(axis=1)).any():
            return False
    return True
