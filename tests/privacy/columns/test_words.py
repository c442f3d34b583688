"""Columns of words: levels, their codes, and the way back."""

import math

import numpy as np
import pytest

from reticent import BadInput, BoundsMissing, Number, Ordered, Words, YesNo
from reticent.privacy.columns.words import MOST_LEVELS, Labels, MissingIndicator

NAN = math.nan

# ---- levels


@pytest.mark.parametrize("kind", [Words, Ordered])
def test_levels_are_texts_or_numbers(kind):
    assert kind(["a", 1, 2.0, 2.5, np.float64(3), np.int8(4), " b\t"]).levels == (
        *("a", "1", "2", "2.5"),
        *("3", "4", "b"),
    )
    assert kind(np.array([1.0, 2.0])).levels == ("1", "2")
    assert kind(("a", "b"), keep_missing=True).levels == ("a", "b", "missing")


@pytest.mark.parametrize("level", [True, np.bool_(0), None, b"a", ("a",), 1j])
def test_other_levels_are_refused(level):
    with pytest.raises(BadInput, match="A level is a text or a number"):
        Words(["a", level])


@pytest.mark.parametrize("given", ["ab", b"ab", {"a", "b"}, 3, None])
def test_levels_are_a_list(given):
    with pytest.raises(BadInput, match="Words are given as the list of all levels"):
        Words(given)
    with pytest.raises(BadInput, match="Ordered words are given as the list of all levels"):
        Ordered(given)


def test_a_thousand_levels_are_allowed():
    levels = [str(i) for i in range(MOST_LEVELS)]
    assert Words(levels).code_text(b"999") == 999
    with pytest.raises(BadInput, match="1001 levels are more than 1000"):
        Words([*levels, "one more"])


def test_the_level_that_is_wrong_is_named():
    with pytest.raises(BadInput, match="The level 'a' is given twice"):
        Words(["b", "b", "a", "a"])
    with pytest.raises(BadInput, match="The level '=2' would run as a formula"):
        Words(["c", "=2", "@1"])
    with pytest.raises(BadInput, match='The level "\'＝2" would run as a formula'):
        Words(["c", "'＝2"])


# ---- codes


def test_codes_are_positions_of_levels():
    kind = Words(["b", "a", "10", "2"])
    assert kind.range == (-0.5, 3.5)
    assert [kind.code_text(t) for t in (b"b", b" a ", b"10.0", b"2e0", b"+2")] == [0, 1, 2, 3, 3]
    codes = kind.code_numbers(np.array([2.0, 10.0, 2.0, 3.0, 99.0, -1.0, NAN]))
    assert np.array_equal(codes, [3, 2, 3, NAN, NAN, NAN, NAN], equal_nan=True)
    assert np.isnan(kind.code_text(b"B"))


def test_words_that_are_none_of_the_levels_are_one_more_level_where_asked():
    kind = Ordered(["I", "II"], keep_missing=True, missing=["?", 9])
    assert kind.range == (-0.5, 2.5)
    assert [kind.code_text(t) for t in (b"I", b"II", b"III", b"?", b"9", b"")] == [0, 1, 2, 2, 2, 2]
    assert kind.code_numbers(np.array([1.0, 9.0, NAN])).tolist() == [2, 2, 2]


def test_spellings_of_a_number_are_one_level_and_listed_once():
    kind = Words(["1", "x"])
    assert [kind.code_text(text) for text in (b"1", b"1.0", b"1.00")] == [0, 0, 0]
    assert kind.code_numbers(np.array([1.0])).tolist() == [0]
    with pytest.raises(BoundsMissing):
        Words(["1", "1.0", "x"])


@pytest.mark.parametrize("place", [0, 1])
def test_yes_and_no_have_many_spellings(place):
    kind = YesNo("ledig", "verheiratet")
    spellings = (["ledig", "no", "n", "false", "f", "0"], ["verheiratet", "yes", "y", "true", "t"])
    for word in spellings[place]:
        assert kind.code_text(word.encode()) == place
    for word in spellings[place][1:]:
        assert kind.code_text(word.upper().encode()) == place
        assert kind.code_text(word.capitalize().encode()) == place
    assert kind.code_value(bool(place)) == place
    assert kind.code_text(b"%d" % place) == place
    assert np.isnan(kind.code_text(b"Ledig"))


def test_yes_and_no_as_numbers():
    given = np.array([0.0, 1.0, 2.0, -1.0, NAN])
    assert np.array_equal(YesNo().code_numbers(given), [0, 1, NAN, NAN, NAN], equal_nan=True)
    coded = YesNo(no="2", yes="1")
    assert np.array_equal(coded.code_numbers(given), [0, 1, 0, NAN, NAN], equal_nan=True)
    turned = YesNo(no="1", yes="2")
    assert np.array_equal(turned.code_numbers(given), [0, 0, 1, NAN, NAN], equal_nan=True)
    assert YesNo().output_range == (0.0, 1.0)
    assert YesNo().range == (-0.5, 1.5)


def test_labels_of_a_column_of_numbers():
    kind = Labels((3, "b", 1))
    assert kind.range == (-0.5, 2.5)
    assert kind.levels == ("3", "b", "1")
    codes = kind.code_numbers(np.array([1.0, 3.0, 1.0, 2.0, NAN]))
    assert np.array_equal(codes, [2, 0, 2, NAN, NAN], equal_nan=True)


def test_an_indicator_of_missing_values_is_yes_or_no():
    kind = MissingIndicator(Number(0, 9, missing=[9], keep_missing=True))
    assert kind.range == (-0.5, 1.5)
    assert kind.levels == ("no", "yes")
    assert kind.code_numbers(np.array([3.0, 9.0, NAN])).tolist() == [0, 1, 1]
    assert kind.code_texts([b"3", b"9", b"x"]).tolist() == [0, 1, 1]
    assert kind.code_values([3, 9, None]).tolist() == [0, 1, 1]
    assert kind.to_dict() == {"kind": "indicator"}


# ---- the way back

FAR = np.array([-7.0, -0.4, 0.6, 1.4, 99.0, NAN])  # codes that a model predicts or draws


def test_words_for_people_are_the_nearest_ones():
    words = Words(["a", "b"])
    assert words.values(FAR) == ["a", "a", "b", "b", "b", None]
    assert words.values(np.array(words.range)) == ["a", "b"]  # a draw at the edge is no missing one
    assert words.values(np.array([NAN, 0.0])) == [None, "a"]
    assert [words.show(code) for code in FAR[:5]] == ["a", "a", "b", "b", "b"]
    kept = Ordered(["a", "b", "c"], keep_missing=True)
    assert kept.values(np.array([0.0, 2.0, 3.0, 99.0, NAN])) == ["a", "c", None, None, None]
    assert [kept.show(code) for code in (1.0, 2.0, 3.0, 99.0)] == ["b", "c", "missing", "missing"]


def test_labels_and_indicators_for_people():
    labels = Labels((3, "b"))
    assert labels.values(np.array([0.0, 1.0, NAN])) == [3, "b", None]
    assert [labels.show(code) for code in (0.0, 1.0)] == ["3", "b"]
    indicator = MissingIndicator(Number(0, 1))
    assert indicator.values(np.array([0.0, 1.0, NAN])) == ["no", "yes", None]
    assert [indicator.show(code) for code in FAR[:5]] == ["no", "no", "yes", "yes", "yes"]


def test_words_are_described_as_the_command_line_writes_them():
    assert Words(["a", "b"], keep_missing=True).describe() == "a,b"
    assert Ordered(["a", "b"]).describe() == "a<b"
    assert YesNo("n", "y").describe() == "n/y"
    assert Labels((3, "b")).describe() == "3,b"
    assert MissingIndicator(Number(0, 1)).describe() == "no/yes"
