"""Columns of numbers: their ranges, their codes, and the way back."""

import math

import numpy as np
import pytest

from reticent import BadInput, Cyclic, Number, Whole
from reticent.privacy.columns.numbers import HUGE, checked_range

NAN = math.nan

# ---- ranges


@pytest.mark.parametrize("value", [True, np.bool_(0), np.timedelta64(1, "D"), "1", None, 1j])
@pytest.mark.parametrize("kind", [Number, Whole, Cyclic])
def test_a_bound_is_a_number(kind, value):
    for ends in ((value, 9), (-9, value)):
        with pytest.raises(BadInput, match="must be a number, not"):
            kind(*ends)


@pytest.mark.parametrize(
    "value", [NAN, math.inf, 1.01 * HUGE, 10**400], ids=["nan", "inf", "1.01e150", "1e400"]
)
@pytest.mark.parametrize("kind", [Number, Whole, Cyclic])
def test_bounds_are_finite_and_not_too_large(kind, value):
    for ends in ((0, value), (-value, 0)):
        with pytest.raises(BadInput, match=r"must be finite numbers up to 1e\+150"):
            kind(*ends)


def test_the_largest_bounds():
    assert checked_range("x", -HUGE, HUGE) == (-HUGE, HUGE)
    assert checked_range("x", np.int8(-1), np.float32(0.5)) == (-1.0, 0.5)


def test_bounds_in_the_wrong_order_are_refused_with_the_right_one():
    with pytest.raises(BadInput, match=r"low < high, not \(2, 1\)\. Did you mean \(1, 2\)\?"):
        Number(2, 1)
    with pytest.raises(BadInput, match=r"low < high, not \(2, 2\)\.$"):
        Number(2, 2)


@pytest.mark.parametrize("size", [1.0, 1000.0, 1e-30])
def test_bounds_too_close_together_for_the_precision_of_a_number_are_refused(size):
    for ends in ((size, size * (1 + 1.9e-9)), (-size, -size * (1 - 1.9e-9))):
        with pytest.raises(BadInput, match="too close together"):
            checked_range("x", *ends)
    for ends in ((size, size * (1 + 2.1e-9)), (-size, -size * (1 - 2.1e-9)), (0, size)):
        assert checked_range("x", *ends) == ends


def test_the_narrowest_bounds():
    assert checked_range("x", 0, 2 * (1 / HUGE)) == (0, 2e-150)
    for width in (1.9, 1.1, 0.1):
        with pytest.raises(BadInput, match="too close together"):
            checked_range("x", 0, width / HUGE)


@pytest.mark.parametrize("ends", [(0.5, 3), (0, 3.5), (0.5, 3.5), (0, 2**51), (-(2**51), 0)])
def test_bounds_of_whole_numbers_are_whole_and_exact(ends):
    with pytest.raises(BadInput, match=r"must be whole .* at most 2\^50"):
        Whole(*ends)


def test_whole_numbers_may_reach_far():
    far = Whole(-(2**50), 2**50)
    assert (far.low, far.high) == (-(2**50), 2**50)
    assert far.range == (-(2**50) - 0.5, 2**50 + 0.5)
    with pytest.raises(BadInput):
        Whole(0, 2**50 + 1)


def test_where_codes_of_whole_numbers_lie():
    kind = Whole(3, 7)
    assert kind.range == (2.5, 7.5)
    assert kind.output_range == (3.0, 7.0)
    assert kind.cells == 5
    assert Whole(-2, 2).cells == 5


# ---- codes


def test_numbers_come_round_whatever_the_first_period():
    kind = Cyclic(6, 12)
    assert kind.range == (6, 12)
    given = np.array([6, 11.5, 12, 13, 5, 0, -1, 60, math.inf, -math.inf, NAN])
    codes = [6, 11.5, 6, 7, 11, 6, 11, 6, NAN, NAN, NAN]
    assert np.array_equal(kind.code_numbers(given), codes, equal_nan=True)


def test_codes_of_a_cycle_lie_in_the_first_period_after_rounding():
    assert Cyclic(0, 24).code_text(b"-1e-20") == 0  # 24 as a float64, which is 0 again
    tiny = np.nextafter(0.1, 1)
    for kind in (Cyclic(0.1, 0.7), Cyclic(-0.3, 0.1)):
        given = np.concatenate([k * 0.2 + np.array([0.1, tiny]) for k in range(-99, 99)])
        codes = kind.code_numbers(given)
        assert codes.min() >= kind.low
        assert codes.max() < kind.high


def test_numbers_outside_are_left_to_scaling_and_whole_ones_are_moved_in():
    assert Number(0, 1, missing=[5]).code_numbers(np.array([-3.0, 9.0])).tolist() == [-3, 9]
    given = np.array([-3.0, 2.5, 9.0, -math.inf])
    codes = [3, NAN, 7, 3]
    assert np.array_equal(Whole(3, 7).code_numbers(given), codes, equal_nan=True)


# ---- the way back


def test_numbers_for_people():
    codes = np.array([3.4, NAN, 99, -5])
    assert Number(0, 10).values(codes) == [3.4, None, 99, -5]
    assert Cyclic(0, 10).values(codes) == [3.4, None, 99, -5]
    whole = Whole(3, 7).values(codes)
    assert whole == [3, None, 7, 3]
    assert type(whole[0]) is int
    assert Whole(3, 7).show(4.6) == "5"


@pytest.mark.parametrize(
    ("low", "high", "number", "cyclic"),
    [
        (0, 1, "0.500", "0.50"),
        (100, 101, "0.500", "0.50"),
        (0, 0.001, "0.500000", "0.50000"),
        (0, 50, "0.50", "0.5"),
        (0, 1000, "0", "0"),
        (0, 1e6, "0", "0"),
        (0, 1e-30, "0.500000000000", "0.500000000000"),
    ],
)
def test_numbers_have_as_many_digits_as_their_range_deserves(low, high, number, cyclic):
    assert Number(low, high).show(0.5) == number
    assert Cyclic(low, high).show(0.5) == cyclic


def test_numbers_are_described_as_the_command_line_writes_them():
    assert Number(0, 0.1).describe() == "0:0.1"
    assert Whole(0, 15).describe() == "0:15:whole"
    assert Cyclic(0, 24).describe() == "0:24:cyclic"
