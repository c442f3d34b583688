"""Truncation, clipping and sensitivities on the integers, number by number.

What every bound of a statistic rests on.
"""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest

from reticent.errors import BadInput
from reticent.privacy.bounds import Bounds
from reticent.privacy.guard import InvalidRows, check_rows
from reticent.privacy.record_sum import try_out
from reticent.privacy.statistics.counts import Counts
from reticent.privacy.statistics.enforced import enforce
from reticent.privacy.statistics.gram import Gram, upper_triangle
from reticent.privacy.statistics.integer_grid import (
    fraction,
    limit,
    log2_ceiling,
    quantize_and_clip,
)
from reticent.privacy.statistics.sum import Sum


def on_grid(rows, *, bits=2, limit2=100, **more):
    rows = np.array(rows, dtype=np.float64)
    return quantize_and_clip(rows, bits, limit2, **more).tolist()


def test_rows_are_truncated_toward_zero():
    assert on_grid([[0.9, -0.9, 0.25, -0.24]]) == [[3.0, -3.0, 1.0, 0.0]]


def test_a_row_at_the_limit_is_kept_and_one_beyond_it_is_shortened():
    assert on_grid([[1.5, 2.0]], limit2=100) == [[6.0, 8.0]]  # 36 + 64
    assert on_grid([[1.5, 2.0]], limit2=99) == [[5.0, 7.0]]
    assert on_grid([[2.5]], limit2=100) == [[10.0]]
    assert on_grid([[2.75]], limit2=100) == [[9.0]]  # 10 less a hair, truncated


def test_the_sum_of_absolute_values_is_held_too():
    assert on_grid([[1.5, -2.0]], limit1=14) == [[6.0, -8.0]]
    assert on_grid([[1.5, -2.0]], limit1=13) == [[5.0, -7.0]]
    assert on_grid([[1.5, -2.0]], limit1=7) == [[2.0, -3.0]]


def test_both_limits_hold_at_once_whichever_is_narrower():
    assert on_grid([[3.0, 4.0]], limit2=25, limit1=100) == [[3.0, 3.0]]  # each number first: (5, 5)
    assert on_grid([[3.0, 4.0]], limit2=400, limit1=14) == [[5.0, 7.0]]


def test_only_long_rows_are_shortened():
    assert on_grid([[1.0, 1.0], [30.0, 40.0], [2.0, 1.5]]) == [[4.0, 4.0], [7.0, 7.0], [8.0, 6.0]]


def test_what_is_no_number_counts_as_nothing_and_infinity_as_the_edge():
    assert on_grid([[np.nan, 1.0]]) == [
        [0.0, 3.0]
    ]  # within its limit, but shortened with the rest of the row
    assert on_grid([[np.inf, 0.0], [-np.inf, 0.0], [np.inf, -np.inf]]) == [
        [9.0, 0.0],
        [-9.0, 0.0],
        [7.0, -7.0],
    ]
    assert on_grid([[1e300, 1e-300]], limit1=5) == [[4.0, 0.0]]
    assert on_grid([[np.nan, 1.75, 2.0]], limit2=1000, limit1=10) == [
        [0.0, 4.0, 5.0]
    ]  # 7 and 8, times 10/15


def test_negative_entries_go_where_none_are_allowed():
    assert on_grid([[-1.0, 1.0]], nonnegative=True) == [[0.0, 4.0]]
    assert on_grid([[-1.0, 1.0]], nonnegative=False) == [[-4.0, 4.0]]


@pytest.mark.parametrize("rows", [np.array([["a"]]), np.array([[1j]]), np.array([[None]])])
def test_rows_that_are_no_numbers_are_refused(rows):
    with pytest.raises(InvalidRows, match="real numbers"):
        check_rows(rows, (1, 1))


def test_rows_of_another_shape_are_refused():
    with pytest.raises(InvalidRows, match="one row of 3 numbers"):
        check_rows(np.zeros((2, 2)), (2, 3))


def test_single_precision_is_widened_before_it_is_scaled():
    assert quantize_and_clip(np.array([[0.1]], dtype=np.float32), 24, 2**48) == [[1677721.0]]


def test_limits_are_rounded_down_and_lie_between_1_and_2_to_the_52():
    assert limit(Fraction(7, 3), 4, "bound") == 9
    assert limit(1, 1, "bound") == 1
    assert limit(2**52, 1, "bound") == 2**52
    for bound in (Fraction(99, 100), 0, -1, 2**52 + 1):
        with pytest.raises(BadInput, match="between 1 and 2"):
            limit(bound, 1, "bound")


def test_numpys_whole_numbers_do_not_wrap_around():
    assert fraction(np.int64(2**62)) * 4 == 2**64
    assert fraction(np.int8(100)) * 2 == 200
    for value in (0.5, 3, Fraction(1, 3), np.int32(7)):
        assert fraction(value) == value
        assert type(fraction(value)) is Fraction


@pytest.mark.parametrize(
    ("value", "least"),
    [(1, 0), (2, 1), (3, 2), (4, 2), (5, 3), (Fraction(1, 9), 0), (Fraction(9, 2), 3)],
)
def test_log2_ceiling_is_the_least(value, least):
    assert log2_ceiling(value) == least


def test_a_norm_of_nothing_is_refused():
    with pytest.raises(BadInput, match="positive"):
        log2_ceiling(0)


@dataclass(frozen=True)
class AsTheyAre:
    norm: Fraction = Fraction(3)
    norm2 = property(lambda self: self.norm)

    def rows(self, records):
        return records


class Plain(AsTheyAre, Sum):
    columns = 2


class Above(Plain):
    norm1 = Fraction(5, 2)
    nonnegative = True


class Products(AsTheyAre, Gram):
    columns = 3


class TwoGroups(Counts):
    groups = (3, 4)

    def cells(self, records):
        return records


@pytest.mark.parametrize(
    ("norm", "bits"), [(Fraction(3), 24), (Fraction(1), 24), (16, 23), (17, 22), (2**20, 15)]
)
def test_the_grid_of_a_sum_is_as_fine_as_exactness_allows(norm, bits):
    one = Plain(norm)
    assert one.bits == bits
    assert one.step == 2.0**-bits
    assert one.limit2 == norm * 4**bits
    assert one.sensitivity2 == 4 * norm * 4**bits  # (√norm + √norm)²
    assert (one.limit1, one.sensitivity1, one.size) == (None, None, 2)


def test_sums_of_rows_that_are_not_negative_move_less():
    one = Above()
    assert one.sensitivity2 == 2 * 3 * 4**24
    assert one.limit1 == 5 * 2**23
    assert one.sensitivity1 == 5 * 2**24


@pytest.mark.parametrize(
    ("norm", "bits"), [(1, 20), (Fraction(3), 20), (4, 20), (5, 19), (2**20, 11)]
)
def test_the_grid_of_a_gram_matrix(norm, bits):
    one = Products(norm)
    assert one.bits == bits
    assert one.step == 4.0**-bits
    assert one.sensitivity2 == 2 * (norm * 4**bits) ** 2
    assert one.sensitivity1 is None
    assert one.size == 6
    assert one.block_rows == min(4096, 2**53 // (norm * 4**bits))
    assert one.coordinate_multiplicity().tolist() == [1, 2, 2, 1, 2, 1]
    assert one.coordinates(np.arange(9).reshape(3, 3)).tolist() == [0, 1, 2, 4, 5, 8]


def test_blocks_fit_in_cache_and_are_not_too_short():
    assert Plain().block_rows == 2**16
    assert enforce(Products()).piece_rows == 2**16 // 3
    assert TwoGroups().block_rows == 2**16
    assert type("Long", (Plain,), {"columns": 10**6})().block_rows == 64
    assert type("Many", (TwoGroups,), {"groups": (1,) * 10**4})().block_rows == 64


def test_sums_and_products_are_those_of_the_integer_rows():
    records = np.array([[0.5, -0.25], [1.0, 1.0], [100.0, 0.0]])
    q = Plain().integers(records)
    assert np.square(q).sum(axis=1).max() <= Plain().limit2
    assert Plain().block_sum(records).tolist() == q.sum(axis=0).tolist()
    rows = np.column_stack([records, [0.0, 0.5, 0.0]])
    q = Products().integers(rows)
    assert Products().block_sum(rows).tolist() == (q.T @ q).tolist()


def test_counts_move_by_two_for_each_group():
    one = TwoGroups()
    assert (one.size, one.sensitivity2, one.sensitivity1, one.step) == (7, 4, 4, 1.0)
    assert one.coordinate_multiplicity().tolist() == [1] * 7
    assert one.coordinates(np.arange(7)).tolist() == list(range(7))


def test_every_record_is_counted_once_in_each_group_unless_it_lacks_a_value():
    cells = [[0, 0], [2, 3], [3, 9], [-1, -9], [np.nan, np.inf], [1.9, -np.inf], [1, 1]]
    assert TwoGroups().block_sum(np.array(cells)).tolist() == [2, 2, 2, 3, 1, 0, 2]
    partly = type("Partly", (TwoGroups,), {"complete_records": False})()
    assert partly.block_sum(np.array(cells)).tolist() == [2, 2, 2, 3, 1, 0, 3]


def test_groups_lie_behind_each_other_and_may_have_one_cell_or_very_many():
    three = type("Three", (TwoGroups,), {"groups": (2, 1, 3)})()
    assert three.block_sum(np.array([[1.0, 0.0, 2.0], [0.0, 5.0, 1.0]])).tolist() == [
        1,
        1,
        2,
        0,
        1,
        1,
    ]
    assert type("One", (TwoGroups,), {"groups": (1,)})().size == 1
    assert type("Huge", (TwoGroups,), {"groups": (2**40,)})().size == 2**40


@pytest.mark.parametrize("groups", [(), (0,), (3, -1), (2**40, 1)])
def test_groups_without_cells_are_refused(groups):
    wrong = type("Wrong", (TwoGroups,), {"groups": groups})()
    with pytest.raises(BadInput, match="at least 1"):
        _ = wrong.size


def test_cells_of_another_shape_are_refused_beforehand():
    texts = type(
        "Texts", (TwoGroups,), {"cells": lambda self, records: np.full((len(records), 2), "a")}
    )
    with pytest.raises(BadInput, match="one row of 2 numbers"):
        try_out(enforce(TwoGroups()), Bounds(x=[(-1, 1)] * 3))
    with pytest.raises(BadInput, match="real numbers"):
        try_out(enforce(texts()), Bounds(x=[(-1, 1)] * 2))
    try_out(enforce(TwoGroups()), Bounds(x=[(-1, 1)] * 2))
    assert enforce(texts()).block_sum(np.ones((3, 2))).tolist() == [0] * 7


@pytest.mark.parametrize("columns", [3, 70, 2**11])
def test_a_block_is_the_sum_of_its_pieces(columns):
    wide = enforce(type("Wide", (Products,), {"columns": columns})())
    rows = wide.piece_rows
    assert rows == max(2**10, 2**16 // columns)
    count = min(rows + 131, 2**13)
    records = np.zeros((count, columns))
    records[np.arange(count), np.arange(count) % columns] = np.linspace(-1.5, 1.5, count)
    q = wide.integers(records).astype(np.int64)
    assert (wide.block_sum(records) == q.T @ q).all()
    assert not wide.block_sum(records[:0]).any()


SAID = {
    "sensitivity2": 1,
    "sensitivity1": 1,
    "step": 2.0,
    "size": 1,
    "kind": "sum",
    "limit2": 2**50,
    "block_rows": 10**9,
}
SAID |= {
    name: lambda *given: np.zeros(1)
    for name in ("block_sum", "coordinates", "shares", "lasting", "integers")
}


@pytest.mark.parametrize("kind", [Plain, Products, TwoGroups])
@pytest.mark.parametrize("name", SAID)
def test_what_a_subclass_says_of_its_own_sensitivity_is_not_asked(kind, name):
    """Nor what a mixin says, a field, an attribute that is looked up in another way, or the
    object's own dictionary.
    """
    given = np.full((5, 2 + (kind is Products)), 0.5)
    honest = enforce(kind())
    said = SAID[name]
    own = [
        type("Own", (kind,), {name: said})(),
        type("Own", (type("Mixin", (), {name: said}), kind), {})(),
        type(
            "Own",
            (kind,),
            {
                "__getattribute__": lambda self, n: (
                    said if n == name else object.__getattribute__(self, n)
                )
            },
        )(),
        kind(),
    ]
    own[-1].__dict__[name] = said
    for one in own:
        enforced = enforce(one)
        own = [
            (value, other)
            for value, other in zip(enforced.numbers(), honest.numbers(), strict=True)
            if value != other
        ]
        assert own in ([], [("Own", kind.__name__)])
        assert enforced.size == honest.size
        assert enforced.block_rows == honest.block_rows
        assert (enforced.coordinate_multiplicity() == honest.coordinate_multiplicity()).all()
        assert (
            enforced.coordinates(enforced.block_sum(given))
            == honest.coordinates(honest.block_sum(given))
        ).all()
        assert enforced.kind == honest.kind


def test_fields_that_cannot_be_written_into_a_release_are_refused():
    with pytest.raises(BadInput, match=r"fields of Plain \(norm\) are written into the release"):
        enforce(Plain()).describe()
    assert enforce(Plain(3)).describe() == {"name": "Plain", "kind": "sum", "size": 2, "norm": 3}


def test_a_gram_matrix_has_neither_a_sign_nor_an_l1_bound():
    for name in ("nonnegative", "norm1"):
        enforced = enforce(type("Own", (Products,), {name: True})())
        assert (enforced.limit1, enforced.nonnegative, enforced.sensitivity1) == (None, False, None)
        assert enforced.integers(np.array([[-1.0, 1.0, 0.0]])).tolist() == [
            [-(2.0**20), 2.0**20, 0.0]
        ]
    assert Plain().integers(np.array([[-1.0, 1.0]])).tolist() == [[-(2.0**24), 2.0**24]]


def test_places_of_a_triangle_are_shared_and_cannot_be_changed():
    row, column = upper_triangle(3)
    assert (row.tolist(), column.tolist()) == ([0, 0, 0, 1, 1, 2], [0, 1, 2, 1, 2, 2])
    for one in (row, column):
        with pytest.raises(ValueError, match="read-only"):
            one[0] = 1
