"""What a caller gives: numbers, whole numbers, and what only looks like them."""

import math

import numpy as np
import pytest

from reticent.errors import BadInput
from reticent.privacy.given import check_whole, number, whole


@pytest.mark.parametrize("value", [2, 2.0, np.int8(2), np.float32(2)])
def test_numbers_of_every_kind_become_floats(value):
    assert number(value) == 2.0
    assert type(number(value)) is float


@pytest.mark.parametrize("value", [True, np.True_, "2", None, 2j, [2], 10**400, math.nan])
def test_what_is_no_number_or_has_no_float_is_nan_which_no_bound_holds_for(value):
    assert math.isnan(number(value))


def test_a_number_that_rounds_to_zero_is_not_taken_for_zero():
    assert number(0) == 0
    assert number(0.0) == 0
    tiny = np.longdouble("1e-400")
    assert math.isnan(number(tiny)) or tiny == 0  # where a long double is no longer than a float


def test_whole_numbers_and_their_limits():
    assert whole(1)
    assert whole(np.uint64(3), 3, 3)
    assert not any(whole(value) for value in (0, True, 1.0, "1", None))
    assert not whole(4, 1, 3)
    assert not whole(2, 3)


def test_the_refusal_says_which_numbers_will_do():
    check_whole("stages", 64, 1, 64)
    with pytest.raises(BadInput, match=r"^stages must be a whole number from 1 to 64, not 65\.$"):
        check_whole("stages", 65, 1, 64)
    with pytest.raises(BadInput, match=r"^n must be a whole number of at least 1, not 0\.5\.$"):
        check_whole("n", 0.5)
