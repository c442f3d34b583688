"""What all kinds of columns share: missing codes, the middle of the range, and the way to JSON."""

import math

import numpy as np
import pytest

from reticent import BadInput, Cyclic, Date, Number, Ordered, Whole, Words, YesNo


def test_missing_values_that_are_kept_are_the_middle_of_the_range():
    assert Number(10, 20, keep_missing=True).code_text(b"") == 15
    assert Number(-30, -10, keep_missing=True).code_text(b"") == -20
    assert Whole(3, 7, keep_missing=True).code_text(b"x") == 5
    assert Cyclic(6, 12, keep_missing=True).code_text(b"inf") == 9
    codes = Number(10, 20, keep_missing=True).code_numbers(np.array([math.nan, 12.0, 99.0]))
    assert codes.tolist() == [15, 12, 99]
    assert math.isnan(Number(10, 20).code_text(b""))


def test_only_what_was_given_is_written():
    assert Number(0, 1).to_dict() == {"kind": "number", "low": 0, "high": 1}
    assert Date("2019-01-01", "2020-01-01", unit="d").to_dict() == {
        "kind": "date",
        "unit": "d",
        "low": "2019-01-01",
        "high": "2020-01-01",
    }
    kept = Words(["a", "b"], missing=["?", 9], keep_missing=True, label="what")
    assert kept.to_dict() == {
        "kind": "words",
        "missing": ["?", 9],
        "keep_missing": True,
        "label": "what",
        "words": ["a", "b"],
    }


def test_a_kind_is_shown_as_it_is_made():
    assert repr(Whole(0, 15, unit="years")) == "Whole(unit='years', low=0, high=15)"
    assert repr(Ordered(["I", "II"])) == "Ordered(words=['I', 'II'])"
    assert eval(repr(Number(0, 9, missing=[9]))) == Number(0, 9, missing=[9])


@pytest.mark.parametrize("what", ["label", "unit"])
@pytest.mark.parametrize("text", ["a\nb", "\x1b[2J", 3, b"kg"])
def test_labels_and_units_are_printable_texts(what, text):
    with pytest.raises(BadInput, match=f"The {what} of a column is a printable text"):
        Number(0, 1, **{what: text})
    assert getattr(Number(0, 1, **{what: "größe in kg"}), what) == "größe in kg"


def test_how_many_values_there_are():
    assert Words(["a", "b"], keep_missing=True).cells == 3
    assert YesNo().cells == 2
    assert Whole(3, 7).cells == 5
    assert Number(0, 1).cells is None
    assert Date("2019-01-01", "2020-01-01").cells is None


@pytest.mark.parametrize(
    ("given", "codes"),
    [
        ("NA", ("NA",)),
        (999, (999.0,)),
        (np.float32(9), (9.0,)),
        ([9, 9.0, "9", math.nan], (9.0, "9")),
        ({-1}, (-1.0,)),
        (np.array([8, 9]), (8.0, 9.0)),
        ((), ()),
    ],
)
def test_missing_codes_are_texts_and_finite_numbers(given, codes):
    assert Number(0, 1, missing=given).missing == codes


@pytest.mark.parametrize("given", [b"NA", None, {9: "NA"}, [True], [np.bool_(1)], [[9]], [10**400]])
def test_other_missing_codes_are_refused(given):
    with pytest.raises(BadInput, match=r"(?i)missing code"):
        Number(0, 1, missing=given)
    with pytest.raises(BadInput, match=r"(?i)missing code"):
        Words(["a", "b"], missing=given)
