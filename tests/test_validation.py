"""Argument validation: numbers, integers, choices, and what only looks like them."""

import math

import numpy as np
import pytest

from reticent.errors import BadInput
from reticent.privacy.bounds import Bounds
from reticent.validation import as_float, as_generator, check_choice, check_integer, is_integer


@pytest.mark.parametrize("value", [2, 2.0, np.int8(2), np.float32(2)])
def test_numbers_of_every_kind_become_floats(value):
    assert as_float(value) == 2.0
    assert type(as_float(value)) is float


@pytest.mark.parametrize("value", [True, np.True_, "2", None, 2j, [2], 10**400, math.nan])
def test_what_is_no_number_or_has_no_float_is_nan_which_no_bound_holds_for(value):
    assert math.isnan(as_float(value))


def test_a_number_that_rounds_to_zero_is_not_taken_for_zero():
    assert as_float(0) == 0
    assert as_float(0.0) == 0
    tiny = np.longdouble("1e-400")
    assert math.isnan(as_float(tiny)) or tiny == 0  # where a long double is no longer than a float


def test_whole_numbers_and_their_limits():
    assert is_integer(1)
    assert is_integer(np.uint64(3), 3, 3)
    assert not any(is_integer(value) for value in (0, True, 1.0, "1", None))
    assert not is_integer(4, 1, 3)
    assert not is_integer(2, 3)


def test_the_refusal_says_which_numbers_will_do():
    check_integer("stages", 64, 1, 64)
    with pytest.raises(BadInput, match=r"^stages .*\b1 to 64\b.*\b65\b"):
        check_integer("stages", 65, 1, 64)
    with pytest.raises(BadInput, match=r"^n .*\b1\b.*\b0\.5\b"):
        check_integer("n", 0.5)


@pytest.mark.parametrize(
    "value", [np.timedelta64(3), np.timedelta64(3, "s"), np.timedelta64("NaT")], ids=repr
)
def test_a_duration_is_no_number(value):
    """NumPy derives it from its integers, and int() of one with a unit raises."""
    assert math.isnan(as_float(value))
    assert not is_integer(value)
    with pytest.raises(BadInput, match="must be a number"):
        Bounds(x=(0, value))
    with pytest.raises(BadInput, match="noise column"):
        Bounds(x=[(0, 1), (1, 2)], y=(0, 1)).with_noise_column(value)


@pytest.mark.parametrize(
    "value", ["c", "", None, 1, ["a"], np.array(["a", "b"]), np.array("a"), b"a"], ids=repr
)
def test_anything_but_a_word_that_is_known_is_refused_with_those_that_are(value):
    check_choice("kind", "a", ("a", "b"))
    check_choice("kind", np.str_("b"), {"a": 1, "b": 2})
    with pytest.raises(BadInput, match=r"^kind .*\ba, b\b"):
        check_choice("kind", value, ("a", "b"))


def test_a_generator_comes_of_seeds_generators_and_the_old_random_states():
    assert as_generator(3).integers(1000) == np.random.default_rng(3).integers(1000)
    generator = np.random.default_rng(3)
    assert as_generator(generator) is generator
    state = np.random.RandomState(3)
    assert as_generator(state).bit_generator is state._bit_generator
    with pytest.raises(BadInput, match="random_state"):
        as_generator("3")
