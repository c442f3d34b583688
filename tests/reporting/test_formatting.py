"""Numbers and names as people read them, on the page and in a terminal: every form by hand."""

import io
import json
import math
import sys

import numpy as np
import pytest

import reticent
from reticent.cli.commands.predict import digits_for_std, exact_cell
from reticent.cli.encoding import SPELLED, spelled
from reticent.cli.terminal import ledger_word, wrapped
from reticent.cli.views.synthetic import digits_for_range
from reticent.privacy.accounting.guarantee import Guarantee
from reticent.reporting.attack_curve import composed_mu, percent, recognised
from reticent.reporting.budget import spendable
from reticent.reporting.columns import column_names, noise_column_name
from reticent.reporting.formatting import (
    decimal_places,
    format_count,
    format_number,
    format_short,
    format_with_error,
    join_names,
    printable,
    truncate_name,
)
from reticent.reporting.presenters.class_probabilities import format_band, format_probability
from tests.support.stand_ins import Bare


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (-0.0, "0"),
        (9999.4, "9999"),
        (9999.5, "10,000"),  # and not 1e+04
        (9999.97, "10,000"),
        (-9999.97, "-10,000"),
        (10000, "10,000"),
        (999999999999.4, "999,999,999,999"),
        (1e12, "1e+12"),
        (-0.000123456, "-0.0001235"),
        (0.0000123456, "1.235e-5"),
        (1e-10, "1e-10"),
        (1234.5678, "1235"),
        (math.inf, "inf"),
    ],
)
def test_four_digits_are_enough(number, text):
    assert format_short(number) == text


@pytest.mark.parametrize(
    ("number", "digits", "text"), [(214.3, 2, "210"), (9876.5, 3, "9880"), (12345.6, 2, "12,000")]
)
def test_few_digits_of_a_large_number_are_no_power_of_ten(number, digits, text):
    """A page had said *from 92 to 2.1·10²*."""
    assert format_short(number, digits) == text


@pytest.mark.parametrize(
    ("left", "shown"),
    [
        (2.3798, 2.37),
        (2.37, 2.37),
        (0.70419, 0.704),
        (12.399, 12.3),
        (1234.9, 1230.0),
        (0.0, 0.0),
        (4.4e-7, 4.4e-7),
    ],
)
def test_what_is_left_is_rounded_down_so_that_it_can_be_spent(left, shown):
    assert spendable(left) == pytest.approx(shown, rel=1e-12)
    assert spendable(left) <= left * (1 + 1e-12)


@pytest.mark.parametrize(
    ("number", "digits", "text"),
    [
        (1e-5, 4, "10⁻⁵"),
        (-3.0, 4, "−3"),
        (2.5e-7, 4, "2.5·10⁻⁷"),
        (1.2345e-12, 2, "1.2·10⁻¹²"),
        (1e13, 4, "10¹³"),
        (9999.97, 4, "10,000"),
        (123456.0, 2, "120,000"),
        (0.999, 2, "1"),
        (0.0, 4, "0"),
        (1e-5 * 0.99999, 2, "10⁻⁵"),
        (0.66370978, 6, "0.66371"),
        (0.66370978, 7, "0.6637098"),
    ],
)
def test_powers_are_raised_as_in_print(number, digits, text):
    assert format_number(number, digits) == text


@pytest.mark.parametrize(
    ("sd", "digits"),
    [
        (0.0283, 3),
        (0.1, 2),
        (0.999, 2),
        (1.0, 1),
        (9.99, 1),
        (10.0, 0),
        (1e6, 0),
        (1e-20, 12),
        (0.0, 6),
        (math.nan, 6),
    ],
)
def test_two_digits_of_the_noise_are_shown(sd, digits):
    assert decimal_places(sd) == digits


@pytest.mark.parametrize(
    ("value", "sd", "text"),
    [
        (1234567.891, 45.6, "1,234,568 ± 46"),
        (-0.00012, 0.00034, "-0.00012 ± 0.00034"),
        (2.0, 0.0, "2.000000 ± 0.000000"),
        (99.96, 1.26, "100.0 ± 1.3"),
        (-0.04, 13.0, "0 ± 13"),
    ],
)
def test_a_number_with_its_noise(value, sd, text):
    assert format_with_error(value, sd) == text


@pytest.mark.parametrize(
    ("names", "text"),
    [
        ([], ""),
        (["a"], "a"),
        (["a", "b"], "a and b"),
        (["a", "b", "c"], "a, b and c"),
        (list("abcde"), "a, b, c, d and e"),
        (list("abcdef"), "a, b, c, d and 2 more"),
        (["a"] * 1000, "a, a, a, a and 996 more"),
    ],
)
def test_the_first_few_are_named(names, text):
    assert join_names(names) == text


@pytest.mark.parametrize(
    ("number", "text"),
    [(0, "0 releases"), (1, "1 release"), (2, "2 releases"), (1234, "1,234 releases")],
)
def test_things_are_counted(number, text):
    assert format_count(number, "release") == text


def test_a_long_name_is_cut_and_a_name_of_just_the_length_is_not():
    assert truncate_name("a" * 28) == "a" * 28
    assert truncate_name("a" * 29) == "a" * 27 + "…"
    assert truncate_name("abcdef", 3) == "ab…"
    assert len(truncate_name("\x00" * 40, 16)) == 16


@pytest.mark.parametrize(
    "letter",
    ["\x1b", "\x07", "\r", "\n", "\t", "\u202e", "\u2066", "\x9b", "\u2028", "\ufeff", "\x7f"],
)
def test_no_letter_talks_to_a_terminal_or_turns_a_line(letter):
    assert printable(f"a{letter}b") == "a�b"


def test_other_peoples_letters_are_left_alone():
    assert printable("Größe, 年齢, возраст, عمر 👩 – €") == "Größe, 年齢, возраст, عمر 👩 – €"


def test_columns_have_names_or_numbers():
    assert column_names(Bare(feature_names_in_=np.array(["a\n", "b"]), n_features_in_=2)) == [
        "a�",
        "b",
    ]
    assert column_names(Bare(n_features_in_=3)) == ["column 0", "column 1", "column 2"]
    assert column_names(Bare(feature_names_in_=[], n_features_in_=1)) == ["column 0"]
    assert noise_column_name(Bare(name="sd\x1b", at=1)) == "sd� (noise level)"
    assert noise_column_name(Bare(name=None, at=1)) == "column 1 (noise level)"


@pytest.mark.parametrize(
    ("share", "text"),
    [
        (0.0721, "7.3 %"),
        (0.07, "7 %"),
        (1.0, "100 %"),
        (0.0, "0 %"),
        (1e-9, "0.1 %"),
        (0.9991, "100 %"),
    ],
)
def test_what_can_be_recognised_is_rounded_up(share, text):
    assert percent(share) == text
    assert float(text.split()[0]) >= 100 * share - 1e-12


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.5, "50 %"),
        (0.02, "2 %"),
        (0.0199, "2.0 %"),
        (0.001, "0.1 %"),
        (0.0009, "< 0.1 %"),
        (0.981, "98.1 %"),
        (0.98, "98 %"),
        (0.999, "99.9 %"),
        (0.9991, "> 99.9 %"),
        (1.0, "> 99.9 %"),
        (0.0, "< 0.1 %"),
    ],
)
def test_chances(value, text):
    assert format_probability(value) == text


@pytest.mark.parametrize(
    ("low", "high", "text"),
    [
        (0.2, 0.31, "20 to 31 %"),
        (0.0001, 0.31, "< 0.1 % to 31 %"),
        (0.2, 0.99999, "20 % to > 99.9 %"),
        (0.015, 0.99, "1.5 to 99.0 %"),
    ],
)
def test_bands_of_chances_say_per_cent_once_where_they_can(low, high, text):
    assert format_band(low, high) == text


@pytest.mark.parametrize(
    ("std", "digits"), [(1000.0, 0), (999.0, 1), (1.0, 3), (0.5, 4), (0.0, 15), (1e-30, 15)]
)
def test_predictions_resolve_a_thousandth_of_their_doubt(std, digits):
    assert digits_for_std(std) == digits


def test_a_given_number_is_written_so_that_it_is_read_back():
    for value in (0.1, 1 / 3, -1e-300, 12345678901234567.0, 5.0):
        assert float(exact_cell(value)) == value
    assert exact_cell(math.nan) == ""


@pytest.mark.parametrize(
    ("low", "high", "digits"),
    [(0, 1, 5), (0, 110, 3), (0, 1e6, 0), (0, 1e-3, 8), (0, 1e-20, 15), (-5, 5, 4)],
)
def test_samples_resolve_a_hundred_thousandth_of_their_range(low, high, digits):
    assert digits_for_range(low, high) == digits


@pytest.mark.parametrize(
    ("encoding", "text", "shown"),
    [
        ("ascii", "ε=1, δ=1e-5, 2 ± 1", "epsilon=1, delta=1e-5, 2 +/- 1"),
        ("ascii", "−3 × 4 – 5 …", "-3 x 4 - 5 ..."),
        ("latin-1", "Größe ± ε", "Größe ± epsilon"),
        ("ascii", "年", "\\u5e74"),
        ("utf-8", "ε 年 ±", "ε 年 ±"),
    ],
)
def test_letters_that_a_terminal_lacks_are_spelled(monkeypatch, encoding, text, shown):
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(io.BytesIO(), encoding=encoding))
    assert spelled(text) == shown
    assert text.encode(encoding, SPELLED).decode(encoding) == shown


def test_bytes_that_are_no_text_are_not_spelled():
    with pytest.raises(UnicodeDecodeError):
        b"\xff".decode("ascii", SPELLED)


def test_a_password_is_not_repeated():
    assert ledger_word("postgresql://me:secret@host/db") == "LEDGER"
    assert ledger_word("it's.db") == "'it'\"'\"'s.db'"


def test_a_paragraph_hangs_below_the_first_and_none_is_lost():
    text = wrapped("one two three\nfour five six\n\n      --x a=0:1\nseven", width=9)
    assert text.split("\n") == [
        "one two",
        "  three",
        "  four",
        "  five",
        "  six",
        "      --x a=0:1",
        "  seven",
    ]
    assert wrapped("Error: " + "a-b" * 20, width=20).split("\n")[1] == "  " + "a-b" * 20


def test_a_machine_gets_letters_or_escapes_as_its_pipe_can_take_them(monkeypatch):
    for encoding, kept in (("utf-8", True), ("ascii", False)):
        out = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
        monkeypatch.setattr(sys, "stdout", out)
        reticent.cli.terminal.print_json({"ε": 0.1 + 0.2})
        out.flush()
        text = out.buffer.getvalue().decode(encoding)
        assert ("ε" in text) == kept
        assert json.loads(text) == {"ε": 0.1 + 0.2}
    with pytest.raises(ValueError, match="Out of range float"):
        reticent.cli.terminal.print_json(math.nan)


def guarantee(*events, delta=1e-5, private=True):
    return Guarantee(delta, "record", events, private=private)


def test_gaussian_releases_compose_to_one_curve():
    two = guarantee(
        reticent.Gaussian(noise_multiplier=5.0), reticent.Gaussian(noise_multiplier=2.5)
    )
    assert composed_mu(two) == pytest.approx(math.hypot(1 / 5, 1 / 2.5))
    assert composed_mu(
        guarantee(reticent.Gaussian(noise_multiplier=5.0, count=9))
    ) == pytest.approx(3 / 5)
    assert recognised(two, 0.0) == 0
    assert recognised(two, 1.0) == 1


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0])
def test_no_attacker_is_worse_than_guessing_and_none_better_than_the_promise(epsilon):
    pure = guarantee(reticent.Pure(epsilon=epsilon), delta=0.0)
    rate = np.linspace(0, 1, 101)
    best = recognised(pure, rate)
    assert (best >= rate).all()
    assert (np.diff(best) >= 0).all()
    assert (best <= np.exp(epsilon) * rate + 1e-12).all()
    assert (1 - best >= np.exp(-epsilon) * (1 - rate) - 1e-12).all()
    turned = recognised(
        pure, 1 - best
    )  # the curve is its own mirror image: attack and defence change places
    assert turned == pytest.approx(1 - rate, abs=1e-9)


def test_nothing_is_promised_by_a_seed():
    assert recognised(
        guarantee(reticent.Pure(epsilon=0.1), private=False), [0.0, 1.0]
    ).tolist() == [1, 1]
