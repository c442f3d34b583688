"""Regressions and classifiers along their inputs, by functions that are known: tables, words and numbers are theirs."""

import numpy as np
import pytest

from reticent.apps.chances import (
    average_chances,
    chance_grid,
    chance_lines,
    class_notes,
    class_numbers,
    class_remarks,
    told_class,
)
from reticent.apps.effects import effect_numbers, kernel_words, regression_notes, regression_remarks
from reticent.apps.report_classes import CLASSIFIER, class_panels, class_readings
from reticent.apps.report_curves import REGRESSION, _line_table
from reticent.apps.slices import (
    BAND,
    _below,
    _evenly,
    along,
    average_sd,
    grid,
    grouped,
    inhabited,
    lines,
    mesh,
    ranges,
    spread_over,
)
from tests.apps.standins import Classifier, Regression, said

BOX = {"age": (0.0, 100.0), "dose": (-2.0, 2.0)}


@pytest.fixture
def plane():
    return Regression(lambda x: 3 + 0.05 * x[:, 0] - x[:, 1], BOX)


def test_lines_go_along_one_input_and_stay_in_the_middle_of_the_others(plane):
    first, second = lines(plane)
    assert (first.name, second.name) == ("age", "dose")
    assert first.at[[0, 50, -1]].tolist() == [0, 50, 100]
    assert first.mean == pytest.approx(3 + 0.05 * first.at)  # dose 0
    assert second.mean == pytest.approx(3 + 2.5 - second.at)  # age 50
    assert {name: set(values.round(9)) for name, values in first.sds.items()} == {
        "model": {0.2},
        "privacy": {0.3},
        "noise": {0.5},
    }
    assert not first.guessed.any()
    assert first.ends == (0, 100)


def test_noise_that_is_not_known_is_no_part_of_a_line():
    model = Regression(lambda x: x[:, 0], BOX, variances=(0.04, 0.05, np.nan))
    assert list(lines(model)[0].sds) == ["model", "privacy"]
    assert list(average_sd(model, spread_over(model))) == ["model", "privacy", "function"]


def test_averages_over_the_box_add_up(plane):
    found = average_sd(plane, spread_over(plane))
    assert found == pytest.approx({"model": 0.2, "privacy": 0.05**0.5, "noise": 0.4, "function": 0.3, "output": 0.5})


def test_a_grid_has_a_row_for_each_value_of_the_second_input(plane):
    found = grid(plane)
    assert found.names == ("age", "dose")
    assert found.mean.shape == (41, 41)
    assert found.mean[0] == pytest.approx(3 + 0.05 * found.x + 2)
    assert found.mean[:, -1] == pytest.approx(3 + 5 - found.y)
    x, y, points = mesh(plane, 3)
    assert points.tolist() == [[a, b] for b in y for a in x]


def test_points_are_spread_over_the_whole_box_and_not_beyond(plane):
    points = spread_over(plane)
    assert (points >= [0, -2]).all()
    assert (points <= [100, 2]).all()
    assert points.mean(axis=0) == pytest.approx([50, 0], abs=1)
    counts, _, _ = np.histogram2d(*points.T, bins=4, range=[(0, 100), (-2, 2)])
    assert counts.min() > 0.8 * len(points) / 16


def test_a_norm_shortens_the_lines_that_it_must():
    model = Regression(lambda x: x[:, 0], BOX, norm=10.0)
    low, middle, high = ranges(model)
    assert (low.tolist(), middle.tolist(), high.tolist()) == ([40, -2], [50, 0], [60, 2])
    assert [points[-1].tolist() for _, points in along(model, 5)] == [[60, 0], [50, 2]]


def test_without_counts_nobody_knows_where_people_are(plane):
    assert inhabited(plane) == [(0, 100), (-2, 2)]
    assert "in the middle of their ranges: age 50, dose 0." in regression_remarks(plane)[0]


def test_shares_are_spread_evenly_over_their_places():
    whole = _evenly(np.array([-1.0]), np.array([1.0]), np.array([1.0]))
    assert whole == pytest.approx(np.full(64, 1 / 64))
    halves = _evenly(np.array([-1.0, 0.0]), np.array([0.0, 1.0]), np.array([0.25, 0.75]))
    assert halves[:32] == pytest.approx(np.full(32, 0.25 / 32))
    assert halves[32:] == pytest.approx(np.full(32, 0.75 / 32))
    points = _evenly(np.array([-1.0, 1.0]), np.array([-1.0, 1.0]), np.array([0.3, 0.7]))
    assert points[[0, -1]] == pytest.approx([0.3, 0.7])
    assert points.sum() == pytest.approx(1)


def test_noisy_shares_make_a_curve_that_rises():
    below = _below(np.array([0.4, -0.3, 0.2, 0.7]))
    assert (np.diff(below) >= 0).all()
    assert below[0] >= 0
    assert _below(np.full(4, 0.25)) == pytest.approx([0, 0.25, 0.5, 0.75, 1])


@pytest.mark.parametrize(
    ("most", "edges", "sums"), [(2, [0, 3, 5], [3, 7]), (5, [0, 1, 2, 3, 4, 5], [0, 1, 2, 3, 4]), (1, [0, 5], [10])]
)
def test_bins_are_put_together(most, edges, sums):
    found, total, noise = grouped(np.arange(6.0), np.arange(5.0), 2.0, most)
    assert (found.tolist(), total.tolist()) == (edges, sums)
    assert noise == pytest.approx(2 * (-(-5 // most)) ** 0.5)


def test_the_page_says_what_moves_most_first_and_the_table_holds_the_bands(plane):
    plane.kernel_ = None
    plane.kind = "count"
    words = REGRESSION.described(plane)
    assert "Along age: from 3 at 0 to 8 at 100, lowest 3 at 0, highest 8 at 100." in words
    assert "Along dose: from 7.5 at −2 to 3.5 at 2, lowest 3.5 at 2, highest 7.5 at −2." in words
    doubt = REGRESSION.quality(plane)["tables"][0]
    assert [row[1] for row in doubt["rows"]] == ["0.20", "0.22", "0.30", "0.40", "0.50"]
    assert doubt["head"] == ["yield, standard deviation", "over the whole box"]


def test_rows_of_a_curve_are_its_predictions_and_bands(monkeypatch, plane):
    monkeypatch.setattr(
        "reticent.apps.report_curves.effect_numbers", lambda model: {"counts": False, "output": "yield"}
    )
    monkeypatch.setattr("reticent.apps.report_curves.kernel_words", lambda found: ["kernel: of many parts: see --json"])
    page = REGRESSION.page(plane)
    first, second = page["tables"]
    assert first["head"] == ["age", "mean of yield", "95 % band of the mean", "95 % of yield"]
    assert [row[0] for row in first["rows"]] == [str(10 * i) for i in range(11)]
    reach, wide = BAND * 0.3, BAND * 0.5
    for row, at in zip(second["rows"], np.linspace(-2, 2, 11), strict=True):
        mean = 5.5 - at
        assert row[1:] == [
            f"{mean:.2f}",
            f"{mean - reach:.2f} to {mean + reach:.2f}",
            f"{mean - wide:.2f} to {mean + wide:.2f}",
        ]
    assert page["words"][:3] == [
        "along age the mean of yield moves by 5",
        "along dose the mean of yield moves by 4",
        "kernel: of many parts",
    ]
    assert page["words"][3] == "yield spreads by about 0.4 around the function"


def test_a_band_that_reaches_below_zero_has_a_minus_sign_of_print(monkeypatch):
    monkeypatch.setattr("reticent.apps.report_curves.effect_numbers", lambda model: {"counts": True, "output": "yield"})
    monkeypatch.setattr("reticent.apps.report_curves.kernel_words", lambda found: [])
    page = REGRESSION.page(Regression(lambda x: 0 * x[:, 0], {"age": (0, 1)}))
    assert page["tables"][0]["rows"][0][2] == "−0.59 to 0.59"
    assert page["words"][-1] == "numbers of records scatter around it by chance"


@pytest.mark.parametrize(("prior", "noted"), [(0.44, False), (0.42, True)])
def test_a_function_known_no_better_than_before_is_noted(plane, prior, noted):
    plane.prior_std_ = prior  # 0.3 is the doubt now, and 0.7 of the prior the limit
    assert bool(regression_notes(plane)) == (prior * 0.7 <= 0.3) == noted


def test_tables_have_no_negative_zero():
    for level, column in ((0.0, 1), (BAND * 0.3, 2)):  # the mean, and the lower end of its band
        model = Regression(lambda x, level=level: 0 * x[:, 0] + level - 1e-9, BOX, variances=(0.04, 0.05, 0.16))
        (first, *_) = [_line_table(model, line) for line in lines(model)]
        assert {row[column].split(" to ")[0] for row in first["rows"]} == {"0.00"}


def test_numbers_for_machines_are_the_models(plane):
    plane.kernel_ = type("Kernel", (), {"shares": (0.6, 0.3, 0.1), "variance": 0.25, "linear": 0.5, "length": 0.8})()
    found = effect_numbers(plane)
    assert list(found["effects"]) == ["age", "dose"]
    age = found["effects"]["age"]
    assert age["mean"] == pytest.approx([3 + 0.05 * at for at in age["at"]])
    assert set(np.round(age["model_std"], 9)) == {0.2}
    assert set(np.round(age["privacy_std"], 9)) == {round(0.05**0.5, 9)}
    prior = found["default_prior"]
    assert prior["std"] == pytest.approx(0.5 * 10 / 2)  # the range of the output is 10
    assert prior["shares"] == pytest.approx([2 / 3, 1 / 3])  # of two inputs there are no triples
    assert prior["length"] == pytest.approx(0.4)
    assert kernel_words(found) == [
        "prior: yield usually varies by ±2.5 (of its variance 67 % single inputs, 33 % pairs); to change it much, an input has "
        "to move by about 40 % of its spread"
    ]


def logistic(x):
    yes = 1 / (1 + np.exp(-(x[:, 0] - 50) / 10))
    return np.column_stack([1 - yes, yes])


def three(x):
    """The first class below 40, the second to 80, then the third; dose says nothing."""
    place = np.digitize(x[:, 0], [40, 80])
    return np.array([[0.7, 0.2, 0.1], [0.3, 0.6, 0.1], [0.05, 0.1, 0.85]])[place]


def test_chances_along_an_input_are_the_models():
    model = Classifier(logistic, BOX)
    age, dose = chance_lines(model)
    assert age.names == ("age",)
    assert age.chances[:, 1] == pytest.approx(1 / (1 + np.exp(-(age.at[0] - 50) / 10)))
    assert dose.chances == pytest.approx(np.full((101, 2), 0.5))
    low, high = age.bands["privacy"]
    assert (high - low).max() == pytest.approx(0.2)
    assert age.width[50] == pytest.approx(0.2)
    inner_low, inner_high = age.bands["model"]
    assert (inner_high - inner_low).max() == pytest.approx(0.1)
    assert told_class(model) == 1


def test_of_very_many_inputs_those_that_move_the_chances_most_are_told_in_their_order():
    def chances(x):
        yes = 0.5 + x @ (np.arange(26) / 2000)
        return np.column_stack([1 - yes, yes])

    found = chance_lines(Classifier(chances, {f"c{j}": (0.0, 1.0) for j in range(26)}), 5)
    assert [line.names[0] for line in found] == [f"c{j}" for j in range(2, 26)]


def test_a_grid_of_chances_is_laid_out_as_that_of_a_regression():
    found = chance_grid(Classifier(three, BOX, classes=["low", "mid", "high"]))
    assert found.chances.shape == (41, 41, 3)
    at = found.at[0]
    assert (found.likeliest == np.digitize(at, [40, 80])[None, :]).all()
    readings = class_readings(found)
    assert readings["names"] == ("age", "dose")
    assert readings["likeliest"][0][:41] == np.digitize(at, [40, 80]).tolist()
    assert [one[0] for one in readings["likeliest"]] == [0, 1, 2]
    assert [one[0] for one in readings["chances"]] == [0.7, 0.2, 0.1]
    assert (readings["low"][0], readings["high"][0]) == (0.6, 0.8)


def test_averages_of_chances_over_the_box():
    found = average_chances(Classifier(three, BOX, classes=["low", "mid", "high"]))
    assert found["likeliest"] == pytest.approx([0.4, 0.4, 0.2], abs=0.01)
    assert found["sure"] == pytest.approx(0.4 * 0.7 + 0.4 * 0.6 + 0.2 * 0.85, abs=0.01)
    assert found["widths"] == pytest.approx({"model": 0.1, "privacy": 0.2})
    (table,) = CLASSIFIER.quality(Classifier(three, BOX, classes=["low", "mid", "high"]))["tables"]
    assert [row[0] for row in table["rows"][3:]] == [
        f"part of the box where {c} is likeliest" for c in ("low", "mid", "high")
    ]
    assert [row[1] for row in table["rows"][:3]] == ["69 %", "20 %", "10 %"]


def test_a_class_that_is_never_likeliest_has_no_part_of_the_box():
    (table,) = CLASSIFIER.quality(Classifier(lambda x: np.tile([0.9, 0.1], (len(x), 1)), BOX))["tables"]
    assert [row[0] for row in table["rows"][3:]] == ["part of the box where no is likeliest"]


def test_the_page_of_two_classes_tells_the_second_ones_chance():
    model = Classifier(logistic, BOX)
    page = CLASSIFIER.page(model)
    table = page["tables"][0]
    assert table["head"] == ["age", "chance of yes", "95 % band"]
    assert table["rows"][5] == ["50", "50 %", "40 to 60 %"]
    assert page["words"][0] == "along age the chance of yes lies between 0.7 % (at 0) and 99.3 % (at 100)"
    assert "between the dashed lines" in page["caption"]
    assert "Along age: no is likeliest with 99.3 % at 0, yes is likeliest with 99.3 % at 100." in CLASSIFIER.described(
        model
    )
    assert len(class_panels(model)) == 4


def test_the_page_of_more_classes_tells_the_likeliest_and_the_next():
    model = Classifier(three, {"age": (0.0, 100.0)}, classes=["low", "mid", "high"])
    page = CLASSIFIER.page(model)
    assert page["tables"][0]["rows"][0] == ["0", "low", "70 %", "60 to 80 %", "mid 20 %"]
    assert page["tables"][0]["rows"][10] == ["100", "high", "85 %", "75 to 95 %", "mid 10 %"]
    assert page["words"] == ["along age the chance of high lies between 10 % (at 0) and 85 % (at 80)"]
    assert len(class_panels(model)) == 1
    assert told_class(model) is None


def test_what_is_shown_of_a_classifier_in_a_terminal(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    text = said(capsys, CLASSIFIER.show(Classifier(logistic, {"age": (0.0, 60.0)})))
    assert [line.split()[0] for line in text.splitlines()[1:]] == ["0", "10", "20", "30", "40", "50", "60"]
    assert [line[:3] for line in text.splitlines()[:3]] == ["age", "  0", " 10"], "places are numbers, and stand right"
    assert text.splitlines()[6].split()[1:] == ["50", "%", "40", "to", "60", "%"]
    text = said(capsys, CLASSIFIER.show(Classifier(three, {"age": (0.0, 60.0)}, classes=["low", "mid", "high"])))
    assert text.splitlines()[1].split() == ["0", "low", "70", "%", "60", "to", "80", "%"]


def test_machines_are_told_the_chance_of_each_class():
    found = class_numbers(Classifier(three, BOX, classes=["low", "mid", "high"]))
    age = found["effects"]["age"]
    assert age["likeliest"] == ["low", "low", "low", "mid", "mid", "high", "high"]
    assert age["chances"]["mid"] == [0.2, 0.2, 0.2, 0.6, 0.6, 0.1, 0.1]
    assert age["low"]["high"][-1] == pytest.approx(0.75)
    assert found["classes"] == ["low", "mid", "high"]


@pytest.mark.parametrize(
    ("chances", "doubt", "words"),
    [
        ((0.5, 0.5), 0.1, None),
        ((0.5, 0.5), 0.45, "hardly known"),
        ((0.99, 0.01), 0.1, "nearly every record counted as no"),
        ((0.97, 0.03), 0.1, None),
    ],
)
def test_chances_that_say_nothing_or_look_misspelt_are_noted(chances, doubt, words):
    notes = class_notes(Classifier(lambda x: np.tile(chances, (len(x), 1)), BOX, doubt=doubt))
    assert notes == [] if words is None else words in notes[0]


def test_a_missing_label_is_said_to_count_as_the_first():
    assert class_remarks(Classifier(logistic, BOX))[0].endswith("counts as the first class, no.")
