"""Sums that count complete records, and sums of single columns, number by number."""

from dataclasses import dataclass
from fractions import Fraction
from math import inf, isqrt, nan

import numpy as np
import pytest

from reticent.errors import BadInput
from reticent.privacy.statistics.enforced import enforce
from reticent.privacy.statistics.sum import COLUMN_BITS, ColumnSum, EnforcedColumnSum, Sum

ONE = 2**COLUMN_BITS


@dataclass(frozen=True)
class Counted(Sum):
    """Two numbers a record, and how many records are complete."""

    norm2: Fraction = Fraction(3)
    norm1: Fraction | None = None
    nonnegative: bool = False
    columns = 2
    counts_records = True

    def rows(self, records):
        return records


@dataclass(frozen=True)
class Values(ColumnSum):
    """The values of two columns."""

    laplace: bool = False
    columns = 2

    def values(self, records):
        return records


# ---- the number of complete records


def test_complete_records_are_counted_in_one_more_coordinate():
    one = enforce(Counted())
    assert one.size == 3
    assert enforce(type("Bare", (Counted,), {"counts_records": False})()).size == 2
    complete = np.array([[0.5, -0.25], [1.0, 0.5]])
    assert one.block_sum(complete).tolist() == [1.5 * ONE, 0.25 * ONE, 2 * one.count_weight]
    lacking = np.vstack([complete, [[nan, 1.0]], [[1.0, nan]]])
    assert one.block_sum(lacking).tolist() == [1.5 * ONE, 0.25 * ONE, 2 * one.count_weight]
    assert one.block_sum(lacking[2:]).tolist() == [0, 0, 0]


@pytest.mark.parametrize(
    ("statistic", "weight"),
    [
        (Counted(), 3 * ONE),  # √(3·3)
        (Counted(norm2=Fraction(4)), isqrt(3 * 4 * ONE**2)),
        (Counted(norm2=Fraction(4), nonnegative=True), 2 * ONE),
        (Counted(norm1=Fraction(5, 2)), 5 * ONE // 2),
        (Counted(norm1=Fraction(7, 2)), 3 * ONE),
    ],
)
def test_the_count_of_complete_records_costs_nothing(statistic, weight):
    """A complete and an incomplete record are no further apart than two complete ones."""
    one = enforce(statistic)
    assert one.count_weight == weight
    assert one.limit2 + weight**2 <= one.sensitivity2 < one.limit2 + (weight + 1) ** 2 or (
        one.limit1 == weight
    )
    if one.limit1 is not None:
        assert one.limit1 + weight <= one.sensitivity1


def test_what_counts_complete_records_asks_for_them():
    partly = type("Partly", (Counted,), {"complete_records": False})
    with pytest.raises(BadInput, match=r"^Partly counts complete records, and so must ask for"):
        enforce(partly())
    for wanted in (True, False):  # of complete records, by what does not count them
        fields = {"complete_records": wanted, "counts_records": False}
        assert not enforce(type("Bare", (Counted,), fields)()).counts_records


@pytest.mark.parametrize("kind", [Counted, Values])
def test_columns_that_are_not_whole_are_refused_by_name(kind):
    with pytest.raises(BadInput, match=r"^Odd\.columns must be a whole number"):
        enforce(type("Odd", (kind,), {"columns": 1.5})())


def test_norms_that_are_not_positive_are_refused_by_name():
    with pytest.raises(BadInput, match=r"^Counted\.norm1 must be a positive number"):
        enforce(Counted(norm1=0))
    unlimited = type("Unlimited", (Counted,), {"bits": 24})
    with pytest.raises(BadInput, match=r"^Unlimited\.norm2 must be a positive number"):
        enforce(unlimited(norm2=inf))
    with pytest.raises(BadInput, match=r"^Counted: norm1 · 2\^bits must"):
        enforce(Counted(norm1=Fraction(1, 2**30)))


# ---- single columns


def test_numbers_of_a_sum_of_columns():
    one = enforce(Values())
    assert (one.size, one.step, one.block_rows) == (4, 1 / ONE, 2**16)
    assert one.count_weight == isqrt(3 * ONE**2)
    assert one.sensitivity2 == 2 * 4 * ONE**2  # that of the sums alone
    assert one.sensitivity1 == 2 * (ONE + one.count_weight)
    assert Values().count_weight == one.count_weight / ONE
    assert type("Wide", (Values,), {"columns": 10**6})().block_rows == 64


def test_numbers_of_a_sum_of_columns_for_laplace_noise():
    one = enforce(Values(laplace=True))
    assert one.count_weight == ONE
    assert one.sensitivity1 == 2 * 2 * ONE  # that of the sums alone
    assert one.sensitivity2 == 2 * 4 * ONE**2
    assert Values(laplace=True).count_weight == 1.0


def test_counts_are_free_under_gaussian_noise_unless_another_is_named():
    class Unnamed(ColumnSum):
        columns = 1

        def values(self, records):
            return records

    plain = dataclass(frozen=True)(Unnamed)()
    assert enforce(plain).count_weight == enforce(Values()).count_weight


@pytest.mark.parametrize("weight", [1, ONE // 2, 2 * ONE, 10 * ONE])
def test_sensitivities_cover_whatever_weight_the_counts_have(weight, monkeypatch):
    monkeypatch.setattr(EnforcedColumnSum, "count_weight", property(lambda self: weight))
    one = enforce(Values())
    ends = [(-ONE, weight), (ONE, weight), (0, 0)]  # a value at either end, or none
    pairs = [(abs(a - b), abs(v - w)) for a, v in ends for b, w in ends]
    assert one.sensitivity2 == 2 * max(q**2 + w**2 for q, w in pairs)
    assert one.sensitivity1 == 2 * max(q + w for q, w in pairs)


def test_values_are_truncated_and_clipped_and_missing_ones_add_nothing():
    one = enforce(Values())
    weight = one.count_weight
    given = [[0.5, nan], [1.5, -3.0], [inf, -inf], [1.75 / ONE, -1.75 / ONE], [nan, nan], [0, 1]]
    assert one.integers(np.array(given)).tolist() == [
        [ONE // 2, 0, weight, 0],
        [ONE, -ONE, weight, weight],
        [ONE, -ONE, weight, weight],
        [1, -1, weight, weight],
        [0, 0, 0, 0],
        [0, ONE, weight, weight],
    ]
    sums = [5 * ONE // 2 + 1, -ONE - 1, 5 * weight, 4 * weight]
    assert one.block_sum(np.array(given)).tolist() == sums


def test_single_precision_is_widened_before_it_is_truncated():
    values = np.array([[0.1, 1.0]], dtype=np.float32)
    narrow = type("Narrow", (Values,), {"values": lambda self, records: values})
    assert enforce(narrow()).integers(np.zeros((1, 2)))[0, 0] == 1677721.0


def test_where_complete_records_are_wanted_one_that_lacks_a_value_lacks_all():
    whole = enforce(type("Whole", (Values,), {"complete_records": True})())
    weight = whole.count_weight
    assert whole.integers(np.array([[0.5, nan], [0.5, 1.0]])).tolist() == [
        [0, 0, 0, 0],
        [ONE // 2, ONE, weight, weight],
    ]


def test_a_record_whose_map_fails_lacks_all_values():
    def values(self, records):
        if (records == 0.25).any():
            raise ValueError("this record's value")
        return records

    one = enforce(type("Failing", (Values,), {"values": values})())
    weight = one.count_weight
    sums = one.block_sum(np.array([[0.5, 1.0], [0.25, 1.0]]))
    assert sums.tolist() == [ONE // 2, ONE, weight, weight]
