"""Regressions and classifiers along their inputs, by functions that are known.

Tables and numbers are theirs.
"""

import numpy as np
import pytest

import reticent
from reticent.reporting.columns import Column
from reticent.reporting.presenter import PAGE, SCREEN
from reticent.reporting.presenters.class_probabilities import (
    average_probabilities,
    probability_grid,
    probability_lines,
    probability_readings,
    reference_class,
)
from reticent.reporting.presenters.classification import ClassificationPresenter
from reticent.reporting.presenters.effects import (
    BAND,
    RegressionOutput,
    average_std,
    effect_grid,
    effect_lines,
)
from reticent.reporting.presenters.input_distribution import (
    anchored_lines,
    box_points,
    cumulative_shares,
    grid_points,
    input_ranges,
    populated_ranges,
    rebin,
)
from reticent.reporting.presenters.regression import RegressionPresenter
from reticent.reporting.presenters.wording.prior_words import prior_sentences
from reticent.reporting.released_counts import merge_bins
from tests.support.prose import says
from tests.support.stand_ins import Classifier, Regression, printed_summary

BOX = {"age": (0.0, 100.0), "dose": (-2.0, 2.0)}


@pytest.fixture
def plane():
    return Regression(lambda x: 3 + 0.05 * x[:, 0] - x[:, 1], BOX)


def test_lines_go_along_one_input_and_stay_in_the_middle_of_the_others(plane):
    first, second = effect_lines(RegressionOutput(plane))
    assert (first.name, second.name) == ("age", "dose")
    assert first.at[[0, 50, -1]].tolist() == [0, 50, 100]
    assert first.mean == pytest.approx(3 + 0.05 * first.at)  # dose 0
    assert second.mean == pytest.approx(3 + 2.5 - second.at)  # age 50
    assert {name: set(values.round(9)) for name, values in first.std.items()} == {
        "model": {0.2},
        "privacy": {0.3},
        "noise": {0.5},
    }
    assert not first.extrapolated.any()
    assert first.populated == (0, 100)


def test_noise_that_is_not_known_is_no_part_of_a_line():
    model = Regression(lambda x: x[:, 0], BOX, variances=(0.04, 0.05, np.nan))
    assert list(effect_lines(RegressionOutput(model))[0].std) == ["model", "privacy"]
    assert list(average_std(RegressionOutput(model), box_points(model))) == [
        "model",
        "privacy",
        "function",
    ]


def test_averages_over_the_box_add_up(plane):
    found = average_std(RegressionOutput(plane), box_points(plane))
    assert found == pytest.approx(
        {"model": 0.2, "privacy": 0.05**0.5, "noise": 0.4, "function": 0.3, "output": 0.5}
    )


def test_a_grid_has_a_row_for_each_value_of_the_second_input(plane):
    found = effect_grid(RegressionOutput(plane))
    assert [column.name for column in found.columns] == ["age", "dose"]
    assert found.mean.shape == (41, 41)
    assert found.mean[0] == pytest.approx(3 + 0.05 * found.x + 2)
    assert found.mean[:, -1] == pytest.approx(3 + 5 - found.y)
    x, y, points = grid_points(plane, 3)
    assert points.tolist() == [[a, b] for b in y for a in x]


def test_points_are_spread_over_the_whole_box_and_not_beyond(plane):
    points = box_points(plane)
    assert (points >= [0, -2]).all()
    assert (points <= [100, 2]).all()
    assert points.mean(axis=0) == pytest.approx([50, 0], abs=1)
    counts, _, _ = np.histogram2d(*points.T, bins=4, range=[(0, 100), (-2, 2)])
    assert counts.min() > 0.8 * len(points) / 16


def test_a_norm_shortens_the_lines_that_it_must():
    model = Regression(lambda x: x[:, 0], BOX, norm=10.0)
    low, middle, high = input_ranges(model)
    assert (low.tolist(), middle.tolist(), high.tolist()) == ([40, -2], [50, 0], [60, 2])
    assert [line.points[-1].tolist() for line in anchored_lines(model, 5)] == [[60, 0], [50, 2]]


def test_without_counts_nobody_knows_where_people_are(plane):
    assert populated_ranges(plane) == [(0, 100), (-2, 2)]
    assert says(RegressionPresenter(plane).remarks(SCREEN)[0], "middle", "age 50", "dose 0")


def test_shares_are_spread_evenly_over_their_places():
    whole = rebin(np.array([-1.0]), np.array([1.0]), np.array([1.0]))
    assert whole == pytest.approx(np.full(64, 1 / 64))
    halves = rebin(np.array([-1.0, 0.0]), np.array([0.0, 1.0]), np.array([0.25, 0.75]))
    assert halves[:32] == pytest.approx(np.full(32, 0.25 / 32))
    assert halves[32:] == pytest.approx(np.full(32, 0.75 / 32))
    points = rebin(np.array([-1.0, 1.0]), np.array([-1.0, 1.0]), np.array([0.3, 0.7]))
    assert points[[0, -1]] == pytest.approx([0.3, 0.7])
    assert points.sum() == pytest.approx(1)


def test_noisy_shares_make_a_curve_that_rises():
    below = cumulative_shares(np.array([0.4, -0.3, 0.2, 0.7]))
    assert (np.diff(below) >= 0).all()
    assert below[0] >= 0
    assert cumulative_shares(np.full(4, 0.25)) == pytest.approx([0, 0.25, 0.5, 0.75, 1])


@pytest.mark.parametrize(
    ("most", "edges", "sums"),
    [(2, [0, 3, 5], [3, 7]), (5, [0, 1, 2, 3, 4, 5], [0, 1, 2, 3, 4]), (1, [0, 5], [10])],
)
def test_bins_are_put_together(most, edges, sums):
    found, total, noise = merge_bins(np.arange(6.0), np.arange(5.0), 2.0, most)
    assert (found.tolist(), total.tolist()) == (edges, sums)
    assert noise == pytest.approx(2 * (-(-5 // most)) ** 0.5)


class ManyParts:
    """A kernel that is no sum of smooth parts."""

    def __str__(self):
        return "many parts"


def test_the_page_says_what_moves_most_first_and_the_table_holds_the_bands(plane):
    plane.kernel_ = ManyParts()
    (page,) = RegressionPresenter(plane).sections()
    assert "from 3 at 0 to 8 at 100, lowest 3 at 0, highest 8 at 100" in page.description
    assert "from 7.5 at −2 to 3.5 at 2, lowest 3.5 at 2, highest 7.5 at −2" in page.description
    (doubt,) = RegressionPresenter(plane).quality().tables
    assert [row[1] for row in doubt.rows] == ["0.20", "0.22", "0.30", "0.40", "0.50"]
    assert len(doubt.head) == 2  # over the box alone


def test_rows_of_a_curve_are_its_predictions_and_bands(plane):
    plane.kernel_ = ManyParts()
    (page,) = RegressionPresenter(plane).sections()
    first, second = page.tables
    assert first.head == ["age", "mean of yield", "95 % band of the mean", "95 % of yield"]
    assert [row[0] for row in first.rows] == [str(10 * i) for i in range(11)]
    half = BAND * 0.3
    wide = BAND * 0.5
    for row, at in zip(second.rows, np.linspace(-2, 2, 11), strict=True):
        mean = 5.5 - at
        assert row[1:] == [
            f"{mean:.2f}",
            f"{mean - half:.2f} to {mean + half:.2f}",
            f"{mean - wide:.2f} to {mean + wide:.2f}",
        ]
    first, second, prior, noise = page.findings
    assert "age" in first
    assert first.endswith("moves by 5")
    assert "dose" in second
    assert second.endswith("moves by 4")
    assert "many parts" in prior
    assert "by about 0.4 " in noise


def test_what_there_is_no_room_for_is_in_json_and_only_a_terminal_says_so():
    effects = {f"c{j}": {"at": [0.0, 10.0]} for j in range(7)}
    parts = [
        {
            "std": 1.0 + j,
            "lengths": {name: 1.0 if i == j else None for i, name in enumerate(effects)},
        }
        for j in range(7)
    ]
    found = {"output": "y", "default_prior": None, "kernel_parts": parts, "effects": effects}
    column = Column("y", reticent.Number(0, 10))
    screen = prior_sentences(found, SCREEN, column)
    page = prior_sentences(found, PAGE, column)
    assert len(screen) == len(page) == 6
    assert "±7 " in screen[0]  # the largest first
    assert "2 more" in screen[-1]
    assert "--json" in screen[-1]
    assert "--json" not in page[-1]


def test_a_band_that_reaches_below_zero_has_a_minus_sign_of_print():
    model = Regression(lambda x: 0 * x[:, 0], {"age": (0, 1)}, kernel_=ManyParts())
    (page,) = RegressionPresenter(model).sections()
    assert page.tables[0].rows[0][2] == "−0.59 to 0.59"


@pytest.mark.parametrize(("prior", "noted"), [(0.44, False), (0.42, True)])
def test_a_function_known_no_better_than_before_is_noted(plane, prior, noted):
    plane.prior_std_ = prior  # 0.3 is the doubt now, and 0.7 of the prior the limit
    assert bool(RegressionPresenter(plane).notes()) == (prior * 0.7 <= 0.3) == noted


def test_tables_have_no_negative_zero():
    for level, column in ((0.0, 1), (BAND * 0.3, 2)):  # the mean, and the lower end of its band
        model = Regression(
            lambda x, level=level: 0 * x[:, 0] + level - 1e-9, BOX, kernel_=ManyParts()
        )
        (first, *_) = RegressionPresenter(model).sections()[0].tables
        assert {row[column].split(" to ")[0] for row in first.rows} == {"0.00"}


def test_numbers_for_machines_are_the_models(plane):
    plane.kernel_ = type(
        "Kernel", (), {"shares": (0.6, 0.3, 0.1), "variance": 0.25, "linear": 0.5, "length": 0.8}
    )()
    found = RegressionPresenter(plane).results()
    assert list(found["effects"]) == ["age", "dose"]
    age = found["effects"]["age"]
    assert age["mean"] == pytest.approx([3 + 0.05 * at for at in age["at"]])
    assert set(np.round(age["model_std"], 9)) == {0.2}
    assert set(np.round(age["privacy_std"], 9)) == {round(0.05**0.5, 9)}
    prior = found["default_prior"]
    assert prior["std"] == pytest.approx(0.5 * 10 / 2)  # the range of the output is 10
    assert prior["shares"] == pytest.approx([2 / 3, 1 / 3])  # of two inputs there are no triples
    assert prior["length"] == pytest.approx(0.4)
    (told,) = prior_sentences(found, SCREEN, RegressionOutput(plane).column)
    assert says(told, "yield", "±2.5", "67 % single", "33 % pairs", "40 %")


def logistic(x):
    yes = 1 / (1 + np.exp(-(x[:, 0] - 50) / 10))
    return np.column_stack([1 - yes, yes])


def three(x):
    """The first class below 40, the second to 80, then the third; dose says nothing."""
    place = np.digitize(x[:, 0], [40, 80])
    return np.array([[0.7, 0.2, 0.1], [0.3, 0.6, 0.1], [0.05, 0.1, 0.85]])[place]


def test_chances_along_an_input_are_the_models():
    model = Classifier(logistic, BOX)
    age, dose = probability_lines(model)
    assert age.names == ("age",)
    assert age.probabilities[:, 1] == pytest.approx(1 / (1 + np.exp(-(age.at[0] - 50) / 10)))
    assert dose.probabilities == pytest.approx(np.full((101, 2), 0.5))
    low, high = age.bands["privacy"]
    assert (high - low).max() == pytest.approx(0.2)
    assert age.width[50] == pytest.approx(0.2)
    inner_low, inner_high = age.bands["model"]
    assert (inner_high - inner_low).max() == pytest.approx(0.1)
    assert reference_class(model) == 1


def test_of_very_many_inputs_those_that_move_the_chances_most_are_told_in_their_order():
    def chances(x):
        yes = 0.5 + x @ (np.arange(26) / 2000)
        return np.column_stack([1 - yes, yes])

    found = probability_lines(Classifier(chances, {f"c{j}": (0.0, 1.0) for j in range(26)}), 5)
    assert [line.names[0] for line in found] == [f"c{j}" for j in range(2, 26)]


def test_a_grid_of_chances_is_laid_out_as_that_of_a_regression():
    found = probability_grid(Classifier(three, BOX, classes=["low", "mid", "high"]))
    assert found.probabilities.shape == (41, 41, 3)
    at = found.at[0]
    assert (found.likeliest == np.digitize(at, [40, 80])[None, :]).all()
    readings = probability_readings(found)
    assert readings["names"] == ("age", "dose")
    assert readings["likeliest"][0][:41] == np.digitize(at, [40, 80]).tolist()
    assert [one[0] for one in readings["likeliest"]] == [0, 1, 2]
    assert [one[0] for one in readings["chances"]] == [0.7, 0.2, 0.1]
    assert (readings["low"][0], readings["high"][0]) == (0.6, 0.8)


def test_averages_of_chances_over_the_box():
    found = average_probabilities(Classifier(three, BOX, classes=["low", "mid", "high"]))
    assert found.fractions == pytest.approx([0.4, 0.4, 0.2], abs=0.01)
    assert found.likeliest == pytest.approx(0.4 * 0.7 + 0.4 * 0.6 + 0.2 * 0.85, abs=0.01)
    assert found.widths == pytest.approx({"model": 0.1, "privacy": 0.2})
    model = Classifier(three, BOX, classes=["low", "mid", "high"])
    (table,) = ClassificationPresenter(model).quality().tables
    assert [row[0] for row in table.rows[3:]] == [
        f"part of the box where {c} is likeliest" for c in ("low", "mid", "high")
    ]
    assert [row[1] for row in table.rows[:3]] == ["69 %", "20 %", "10 %"]


def test_a_class_that_is_never_likeliest_has_no_part_of_the_box():
    model = Classifier(lambda x: np.tile([0.9, 0.1], (len(x), 1)), BOX)
    (table,) = ClassificationPresenter(model).quality().tables
    (part,) = [row[0] for row in table.rows[3:]]
    assert says(part, "no is likeliest")


def test_the_page_of_two_classes_tells_the_second_ones_chance():
    model = Classifier(logistic, BOX)
    page = ClassificationPresenter(model).sections()[0]
    table = page.tables[0]
    assert table.head == ["age", "chance of yes", "95 % band"]
    assert table.rows[5] == ["50", "50 %", "40 to 60 %"]
    assert says(page.findings[0], "age", "yes", "0.7 % (at 0)", "99.3 % (at 100)")
    assert says(page.caption, "dashed lines")
    assert says(page.description, "age", "no", "99.3 % at 0", "yes", "99.3 % at 100")
    assert len(page.readings) == 4


def test_the_page_of_more_classes_tells_the_chance_of_every_class():
    model = Classifier(three, {"age": (0.0, 100.0)}, classes=["low", "mid", "high"])
    page = ClassificationPresenter(model).sections()[0]
    table = page.tables[0]
    assert table.head == ["age", "low", "mid", "high"]
    assert table.rows[0] == [
        "0",
        "70 % (60 to 80 %)",
        "20 % (10 to 30 %)",
        "10 % (< 0.1 % to 20 %)",
    ]
    assert [cell.split(" (")[0] for cell in table.rows[10]] == ["100", "5 %", "10 %", "85 %"]
    (found,) = page.findings
    assert says(found, "age", "high", "10 % (at 0)", "85 % (at 80)")
    assert len(page.readings) == 1
    assert reference_class(model) is None


def test_what_is_shown_of_a_classifier_in_a_terminal(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    text = printed_summary(
        capsys, ClassificationPresenter(Classifier(logistic, {"age": (0.0, 60.0)}))
    )
    assert [line.split()[0] for line in text.splitlines()[1:]] == [
        "0",
        "10",
        "20",
        "30",
        "40",
        "50",
        "60",
    ]
    assert [line[:3] for line in text.splitlines()[:3]] == ["age", "  0", " 10"], (
        "places are numbers, and stand right"
    )
    assert text.splitlines()[6].split()[1:] == ["50", "%", "40", "to", "60", "%"]
    model = Classifier(three, {"age": (0.0, 60.0)}, classes=["low", "mid", "high"])
    text = printed_summary(capsys, ClassificationPresenter(model))
    assert text.splitlines()[1].split() == ["0", "70", "%", "20", "%", "10", "%"]


def test_machines_are_told_the_chance_of_each_class():
    found = ClassificationPresenter(
        Classifier(three, BOX, classes=["low", "mid", "high"])
    ).results()
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
        ((0.99, 0.01), 0.1, "nearly every record seems to be no"),
        ((0.97, 0.03), 0.1, None),
    ],
)
def test_chances_that_say_nothing_or_look_misspelt_are_noted(chances, doubt, words):
    notes = ClassificationPresenter(
        Classifier(lambda x: np.tile(chances, (len(x), 1)), BOX, doubt=doubt)
    ).notes()
    assert notes == [] if words is None else words in notes[0]


def test_a_record_without_a_label_is_said_to_be_left_out():
    assert (
        ClassificationPresenter(Classifier(logistic, BOX))
        .remarks(SCREEN)[0]
        .endswith("or not among the classes, is left out.")
    )


def test_noise_that_differs_is_told_by_its_range(plane):
    def told():
        (section,) = RegressionPresenter(plane).sections()
        return section.findings[-1]

    def assumed():
        return RegressionPresenter(plane).assumptions()[-1]

    plane.kernel_ = ManyParts()
    plane.noise_range_ = (0.3, 0.4)
    assert "place to place" not in told()
    assert "of one size" in assumed()
    plane.noise_range_ = (0.123, 1.6)
    assert says(told(), "by about 0.12 to 1.6", "from place to place", "may be wider")
    assert "the size told for each place" in assumed()
    assert RegressionOutput(plane).noise_range == (0.123, 1.6)
    plane.noise_range_ = (0.5, 0.5)
    assert RegressionOutput(plane).noise_range is None


def test_noise_of_amounts_is_told_to_grow_with_the_mean(plane):
    plane.kernel_ = ManyParts()
    plane._params["outcome"] = "positive"
    presenter = RegressionPresenter(plane)
    (section,) = presenter.sections()
    assert section.findings[-1].endswith("around the function on average; it grows with the mean")
    assert "sizes that grow with the mean" in presenter.assumptions()[-1]
