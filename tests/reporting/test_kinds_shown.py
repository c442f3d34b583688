"""Columns of every kind as people expect them: words, dates, cycles, rates, units."""

from datetime import date
from itertools import pairwise

import numpy as np
import pytest

import reticent
from reticent.reporting.columns import Column, as_given, encoded_columns, public_columns
from reticent.reporting.figures.classification import draw_classification
from reticent.reporting.figures.mixture import draw_mixture
from reticent.reporting.figures.regression import draw_regression
from reticent.reporting.formatting import format_in_range
from reticent.reporting.presenter import SCREEN
from reticent.reporting.presenters.class_probabilities import probability_lines
from reticent.reporting.presenters.classification import ClassificationPresenter
from reticent.reporting.presenters.clusters import ClusterPresenter
from reticent.reporting.presenters.effects import (
    RegressionOutput,
    draws_map,
    effect_lines,
    level_curves,
    readings,
)
from reticent.reporting.presenters.factors import FactorPresenter
from reticent.reporting.presenters.input_distribution import (
    anchored_lines,
    box_points,
    input_ranges,
    record_like_points,
)
from reticent.reporting.presenters.mixture import MixturePresenter, _moments
from reticent.reporting.presenters.regression import RegressionPresenter
from tests.support.stand_ins import PROMISE, Bare, BareRelease

AGE = reticent.Number(0, 110, label="Age at admission", unit="years", missing=[0])
SEX = reticent.Words(["F", "M"])
STAGE = reticent.Ordered(["I", "II", "III"])
VISIT = reticent.Date(date(2019, 1, 1), date(2024, 12, 31))
WEIGHT = reticent.Number(2, 150, label="Weight", unit="kg")
WIDE = 7.2
NARROW = 3.6


class Fitted:
    """A regression or classification of rows as a user gives them: words as words.

    ``counts``: what it has counted of its inputs, a list for each.
    """

    def __init__(self, function, x, *, y=None, classes=None, counts=None, sd=1.0):
        self.function = function
        given = {"y": y} if y is not None else {"classes": classes}
        if y is None and classes is None:
            given = {}
        bounds = reticent.Bounds(x=x, **given)
        self.asked = []
        self.releases_ = [BareRelease(bounds=bounds, n=1000, statistic={"name": "Sums"})]
        if counts is not None:
            value = np.concatenate(counts)
            self.releases_.append(
                BareRelease(
                    bounds=bounds,
                    n=1000,
                    statistic={"name": "InputCounts", "bins": [len(one) for one in counts]},
                    value=value,
                    sd=np.full(len(value), sd),
                )
            )
        self.n_features_in_ = len(x)
        self.feature_names_in_ = np.array(list(x), dtype=object)
        self.guarantee_ = PROMISE
        self.noise_ = 0.4
        self.prior_std_ = 1.0
        self.kernel_ = type("Kernel", (), {})()
        self._params = {"kernel": None, "learn_kernel": True}
        if classes is not None:
            self.classes_ = np.array(next(iter(classes.values())), dtype=object)

    def predict(self, X, return_std=False):
        self.asked += list(X)
        mean = np.array([self.function(row) for row in X], dtype=float)
        return (mean, np.full(len(mean), 0.3)) if return_std else mean

    def variance_parts(self, X):
        return {
            part: np.full(len(X), v)
            for part, v in (("model", 0.04), ("privacy", 0.05), ("noise", 0.16))
        }

    def predict_proba(self, X):
        return np.array([self.function(row) for row in X], dtype=float)

    def predict_proba_band(self, X, privacy=True):
        found = self.predict_proba(X)
        return found - 0.1, found + 0.1  # beyond 0 and 1 on purpose


def growth(**options):
    """Taller with age, and M by 10."""
    return Fitted(
        lambda row: 50 + row[0] + 10 * (row[1] == "M"),
        {"age": AGE, "sex": SEX, "visit": VISIT},
        y={"weight": WEIGHT},
        **options,
    )


# ---- what a column is called


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        (SEX, "F, M"),
        (STAGE, "I < II < III"),
        (reticent.Ordered(["I", "II"], keep_missing=True), "I < II, or missing"),
        (AGE, "0 to 110 years"),
        (VISIT, "2019-01-01 to 2024-12-31"),
        (reticent.Whole(0, 15), "0 to 15, whole numbers"),
        (reticent.Cyclic(0, 24, unit="h"), "0 to 24 h, coming round"),
        (reticent.YesNo("alive", "dead"), "alive, dead"),
    ],
)
def test_what_was_public_is_told_by_kind(kind, words):
    assert Column("x", kind).describe() == words


def test_the_table_of_what_was_public_has_labels_and_missing_codes():
    rows = public_columns(growth())
    assert rows[0] == ["age: Age at admission", "0 to 110 years", "0"]
    assert rows[1] == ["sex", "F, M", ""]
    assert rows[-1] == ["weight: Weight (output)", "2 to 150 kg", ""]
    plain = Fitted(lambda row: 0.0, {"a": (0, 1)}, y={"b": (0, 1)})
    assert public_columns(plain) == [["a", "0 to 1"], ["b (output)", "0 to 1"]]


@pytest.mark.parametrize(
    ("value", "ends", "shown"),
    [
        (45.00826, (45.0, 45.02), "45.00826"),
        (18.3333, (0, 110), "18.33"),
        (0.0, (0, 1), "0"),
        (1500.25, (1500, 1501), "1500.25"),
        (-0.0001, (-1, 1), "-0.0001"),
        (123456.5, (123456, 123457), "123,456.5"),
    ],
)
def test_digits_suit_the_range(value, ends, shown):
    assert format_in_range(value, *ends) == shown


# ---- where a model is asked


def test_models_are_asked_for_words_and_dates_and_never_between():
    model = growth()
    effect_lines(RegressionOutput(model))
    ages, sexes, visits = zip(*model.asked, strict=True)
    assert set(sexes) == {"F", "M"}
    assert all(isinstance(visit, date) for visit in visits)
    assert 0 not in ages  # a code for "missing": asked just beside it
    assert min(ages) == pytest.approx(0)


def test_others_stand_at_the_most_frequent_level_or_else_at_the_first():
    even = np.full(8, 125.0)
    counts = [even, np.array([300.0, 700.0]), even]
    assert input_ranges(growth(counts=counts))[1][1] == 1
    assert "sex = M" in RegressionPresenter(growth(counts=counts)).remarks(SCREEN)[0]
    remark = RegressionPresenter(growth()).remarks(SCREEN)[0]
    assert "sex = F" in remark
    assert "first level" in remark
    assert "Age at admission 55 years" in remark


def test_points_over_the_box_and_like_the_records_are_values_of_their_columns():
    even = np.full(8, 125.0)
    model = growth(counts=[even, np.array([900.0, 100.0]), even])
    box = box_points(model)
    assert set(box[:, 1]) == {0.0, 1.0}
    assert box[:, 1].mean() == pytest.approx(0.5, abs=0.02)
    alike = record_like_points(model)
    assert set(alike[:, 1]) == {0.0, 1.0}
    assert alike[:, 1].mean() == pytest.approx(0.1, abs=0.02)
    assert (alike[:, 2] % 1 == 0).all()  # whole days


def test_an_indicator_of_missing_values_becomes_a_missing_value():
    bounds = reticent.Bounds(x=[reticent.Number(0, 10, keep_missing=True)])
    bounds, _ = bounds.resolve(reticent.scan(np.zeros((2, 1))), targets=False)
    assert as_given(bounds, np.array([[4.0, 0.0], [5.0, 1.0]])) == [[4.0], [None]]


def test_many_words_are_cut_to_the_most_frequent():
    words = [f"w{i}" for i in range(40)]
    counts = [np.where(np.arange(40) % 4 == 3, 80.0, 5.0)]
    model = Fitted(lambda row: 1.0, {"w": words}, y={"y": (0, 2)}, counts=counts)
    (line,) = effect_lines(RegressionOutput(model))
    assert len(line.at) == 12
    assert {3.0, 7.0, 39.0} <= set(line.at)
    (section,) = RegressionPresenter(model).sections()
    assert any("Of 40 values of w, the 12" in remark for remark in section.remarks)


# ---- regressions


def test_words_are_blocks_with_names_and_no_line_between():
    model = growth()
    figure = draw_regression(RegressionPresenter(model), RegressionOutput(model), WIDE)
    axes = figure.axes[1]
    assert [label.get_text() for label in axes.get_xticklabels()] == ["F", "M"]
    assert len(axes.lines) == 2
    assert [line.get_ydata()[0] for line in axes.lines] == pytest.approx([105, 115])
    assert figure.axes[0].get_xlabel() == "Age at admission (years)"
    assert figure.axes[0].get_ylabel() == "Weight (kg)"


def test_dates_are_on_an_axis_of_dates():
    model = growth()
    figure = draw_regression(RegressionPresenter(model), RegressionOutput(model), WIDE)
    figure.draw_without_rendering()
    labels = [label.get_text() for label in figure.axes[2].get_xticklabels()]
    assert {"2020", "2022", "2024"} <= set(labels)


@pytest.mark.parametrize(("days", "label"), [(40, "10 Jan"), (200, "Mar 2019")])
def test_short_spans_of_dates_have_days_or_months(days, label):
    end = date.fromordinal(date(2019, 1, 1).toordinal() + days)
    visit = reticent.Date(date(2018, 12, 31), end)
    model = Fitted(lambda row: 1.0, {"visit": visit}, y={"y": (0, 2)})
    figure = draw_regression(RegressionPresenter(model), RegressionOutput(model), WIDE)
    figure.draw_without_rendering()
    labels = [one.get_text() for one in figure.axes[0].get_xticklabels()]
    assert label in labels


def test_a_cycle_is_drawn_over_one_period():
    model = Fitted(lambda row: 1.0, {"hour": reticent.Cyclic(0, 24)}, y={"y": (0, 2)})
    figure = draw_regression(RegressionPresenter(model), RegressionOutput(model), WIDE)
    assert figure.axes[0].get_xlim() == (0, 24)
    assert figure.axes[0].get_xticks().tolist() == [0, 6, 12, 18, 24]


def test_a_number_and_a_word_have_a_curve_for_each_level_and_no_map():
    model = Fitted(
        lambda row: 50 + row[0] * (1 + (row[1] == "M")),
        {"age": (0, 10), "sex": SEX},
        y={"weight": WEIGHT},
    )
    output = RegressionOutput(model)
    assert not draws_map(model)
    first, second = level_curves(output)
    assert (first.level, second.level) == ("F", "M")
    assert second.mean - first.mean == pytest.approx(first.at)
    figure = draw_regression(RegressionPresenter(model), output, WIDE)
    legend = [one.get_text() for one in figure.legends[0].get_texts()]
    assert legend[-2:] == ["sex = F", "sex = M"]
    (section,) = RegressionPresenter(model).sections()
    assert [one["level"] for one in section.readings[0]["curves"]] == ["F", "M"]
    assert section.tables[0].head[0] == "age, F"
    assert len(section.readings) == len(figure.axes)


def test_maps_are_of_two_numbers_only():
    numbers = Fitted(lambda row: 0.0, {"a": (0, 1), "b": VISIT}, y={"y": (0, 1)})
    words = Fitted(lambda row: 0.0, {"a": SEX, "b": STAGE}, y={"y": (0, 1)})
    assert draws_map(numbers)
    assert not draws_map(words)
    figure = draw_regression(RegressionPresenter(words), RegressionOutput(words), WIDE)
    assert len(figure.axes) == 2


def rate():
    """Below 0 at I, beyond 1 at III."""
    place = {"I": -0.2, "II": 0.25, "III": 1.2}
    return Fitted(lambda row: place[row[0]], {"stage": STAGE}, y={"died": bool})


def test_a_rate_is_in_percent_and_within_0_and_1():
    model = rate()
    output = RegressionOutput(model)
    (line,) = effect_lines(output)
    assert line.mean.tolist() == [0, 0.25, 1]
    assert "noise" not in line.std  # single outputs are yes or no
    low, high = line.band("privacy")
    assert (low.min(), high.max()) == (0, 1)
    (section,) = RegressionPresenter(model).sections()
    table = section.tables[0]
    assert table.head == ["stage", "rate of died = yes (%)", "95 % band"]
    assert [row[:2] for row in table.rows] == [["I", "0"], ["II", "25"], ["III", "100"]]
    assert not any("spreads" in found for found in section.findings)
    figure = draw_regression(RegressionPresenter(model), output, WIDE)
    assert figure.axes[0].get_ylabel() == "rate of died = yes"
    assert figure.axes[0].get_ylim() == (0, 1)
    assert any("percentage points" in found for found in section.findings)
    scale = readings(line, output)["scale"]
    assert (scale["factor"], scale["unit"], scale["low"], scale["high"]) == (100, " %", 0, 1)


def test_counts_are_not_predicted_below_zero():
    model = Fitted(lambda row: -3.0, {"a": (0, 1)}, y={"falls": reticent.Whole(0, 9)})
    (line,) = effect_lines(RegressionOutput(model))
    assert line.mean.max() == 0
    assert line.band("noise")[0].min() == 0


def test_released_counts_are_among_the_numbers_as_they_were_released():
    even = np.full(8, 125.5)
    model = growth(counts=[even, np.array([1003.5, -4.5]), even])
    (section,) = RegressionPresenter(model).sections()
    table = next(one for one in section.tables if "may be negative" in one.head[1])
    words = section.tables[-2]
    assert table.head == ["Age at admission (years)", "records ± 1 (noisy: may be negative)"]
    assert words.rows == [["F", "1,003"], ["M", "−5"]]


def test_many_bins_of_released_counts_are_merged_and_add_up():
    counts = np.where(np.arange(128) % 2, 30.5, -10.5)
    model = Fitted(lambda row: 1.0, {"a": (0, 1)}, y={"y": (0, 2)}, counts=[counts])
    table = RegressionPresenter(model).sections()[0].tables[-1]
    assert [row[1] for row in table.rows] == ["80"] * 16


def test_words_that_do_not_differ_are_said_not_to():
    model = Fitted(lambda row: 1.0 + 0.01 * (row[0] == "M"), {"sex": SEX}, y={"y": (0, 2)})
    findings = RegressionPresenter(model).sections()[0].findings
    assert "by sex the mean of y differs by 0.01, less than its error" in findings


def test_machines_are_told_words_and_dates():
    effects = RegressionPresenter(growth()).results()["effects"]
    assert effects["sex"]["at"] == ["F", "M"]
    assert effects["visit"]["at"][0] == "2019-01-01"
    assert isinstance(effects["age"]["at"][0], float)


def test_no_sentence_says_that_missing_values_count_as_something():
    for presenter in (RegressionPresenter(growth()), ClassificationPresenter(ward())):
        said = " ".join([presenter.clipping, *presenter.remarks(SCREEN)])
        assert "left out" in said
        assert "middle of its range" not in said
        assert "first class" not in said


# ---- classifiers


def ward(chances=((0.6, 0.3, 0.1), (0.2, 0.3, 0.5))):
    return Fitted(
        lambda row: chances[row[0] == "M"],
        {"sex": SEX},
        classes={"ward": ["A", "B", "C"]},
    )


def test_chances_are_within_0_and_1_whatever_the_bands():
    (line,) = probability_lines(ward(((0.95, 0.05, 0.0), (0.0, 0.0, 1.0))))
    low, high = line.bands["privacy"]
    assert low.min() == 0
    assert high.max() == 1


def test_every_class_has_its_chance_at_every_word():
    model = ward()
    (section,) = ClassificationPresenter(model).sections()
    table = section.tables[0]
    assert table.head == ["sex", "A", "B", "C"]
    assert [cell.split(" (")[0] for cell in table.rows[1]] == ["M", "20 %", "30 %", "50 %"]
    (axes,) = draw_classification(ClassificationPresenter(model), WIDE).axes
    assert [label.get_text() for label in axes.get_xticklabels()] == ["F", "M"]
    left, right = axes.get_xlim()
    marks = np.concatenate(
        [path.vertices[:, 0] for one in axes.collections for path in one.get_paths()]
    )
    assert left < marks.min()  # none is cut off
    assert marks.max() < right
    assert section.findings[0].startswith("the chance of ")
    assert " is lowest for sex = " in section.findings[0]


def test_two_classes_of_a_number_and_a_word_have_a_curve_for_each_level():
    def chance(row):
        yes = 0.1 + 0.05 * row[0] + 0.2 * (row[1] == "M")
        return 1 - yes, yes

    model = Fitted(chance, {"age": (0, 10), "sex": SEX}, classes={"ill": ["no", "yes"]})
    presenter = ClassificationPresenter(model)
    (section,) = presenter.sections()
    figure = draw_classification(presenter, WIDE)
    assert len(section.readings) == len(figure.axes) == 3
    first, second = section.readings[0]["curves"]
    assert np.subtract(second["chance"], first["chance"]) == pytest.approx(0.2)


# ---- clusters, factors, mixtures


def law(**values):
    columns = {"age": AGE, "sex": SEX, "stage": STAGE}
    bounds = reticent.Bounds(x=columns)
    release = BareRelease(bounds=bounds, n=1000, statistic={"name": "Sums"})
    names = np.array(list(columns), dtype=object)
    return Bare(
        releases_=[release],
        n_features_in_=3,
        feature_names_in_=names,
        guarantee_=PROMISE,
        _params={"n_components": 2},
        **values,
    )


def test_centres_of_words_are_shares_and_ordered_words_the_nearest():
    model = law(
        encoded_names_=["age", "sex=M", "stage"],
        cluster_centers_=np.array([[40.0, 0.25, 1.1], [70.0, 1.02, 2.0]]),
        cluster_sizes_=np.array([600.0, 400.0]),
        cluster_sizes_sd_=np.array([5.0, 5.0]),
    )
    (section,) = ClusterPresenter(model).sections()
    table = section.tables[0]
    assert table.head[2:] == ["Age at admission (years)", "sex = M", "stage"]
    assert [row[2:] for row in table.rows] == [["40", "25 %", "II"], ["70", "100 %", "III"]]
    assert [column.name for column in encoded_columns(model)] == ["age", "sex = M", "stage"]


def test_parts_of_a_mixture_tell_their_words_with_chances():
    model = law(
        n_components_=2,
        weights_=np.array([0.7, 0.3]),
        means_=np.array([[40.0, 0.2, 1.0], [70.0, 0.9, 2.0]]),
        covariances_=np.array([np.diag([25.0, 0.2, 0.2])] * 2),
        pooled_mean_=np.array([49.0, 0.4, 1.3]),
        pooled_covariance_=np.diag([200.0, 0.2, 0.2]),
        level_probabilities_={
            "sex": np.array([[0.8, 0.2], [0.1, 0.9]]),
            "stage": np.array([[0.2, 0.6, 0.2], [0.0, 0.1, 0.9]]),
        },
    )
    presenter = MixturePresenter(model)
    (section,) = presenter.sections()
    first, second = [
        [cell.replace("\N{NO-BREAK SPACE}", " ") for cell in row] for row in section.tables[0].rows
    ]
    assert first == ["70.0 %", "40.0 ± 5.0", "F 80 %, M 20 %", "II 60 %, I 20 %, III 20 %"]
    assert second[-1] == "III 90 %, II 10 %"  # nothing of 0 %
    assert ", " in section.tables[0].rows[0][2]  # where lines may end, and nowhere else
    assert section.tables[0].rows[0][2].count(" ") == 1
    (block,) = presenter.summary()
    assert block.tables[0].rows[0][2] == "F 80 %\nM 20 %"
    assert "no ± of their own" in presenter.uncertainty
    assert [row[0] for row in presenter.quality().tables[0].rows] == ["Age at admission (years)"]
    figure = draw_mixture(presenter, WIDE)
    density, sex, stage = figure.axes
    assert density.get_xlabel() == "Age at admission (years)"
    assert [bar.get_height() for bar in sex.patches] == pytest.approx([0.8, 0.2, 0.1, 0.9])
    assert [label.get_text() for label in stage.get_xticklabels()] == ["I", "II", "III"]


def test_moments_of_dates_are_dates():
    assert _moments(Column("visit", VISIT), [18_700.2, 18_800.0, 31.4, 29.0]) == [
        "2021-03-14",
        "2021-06-22",
        "31 days",
        "29 days",
    ]


@pytest.mark.parametrize("kind", [reticent.Whole(1, 5), reticent.Ordered(["no", "some", "much"])])
def test_a_questionnaire_is_not_an_image(kind):
    def side(kind):
        bounds = reticent.Bounds(x=[kind] * 25)
        release = BareRelease(bounds=bounds, n=1000, statistic={"name": "Sums"})
        return FactorPresenter(Bare(releases_=[release], n_features_in_=25)).image_side()

    assert side(kind) == 0
    assert side(reticent.Number(0, 255)) == 5


# ---- on a narrow paper


@pytest.mark.parametrize("width", [WIDE, NARROW])
def test_names_of_words_are_not_cut_off(width):
    words = ["general surgery", "internal medicine", "paediatrics", "neurology", "other"]
    model = Fitted(lambda row: 1.0, {"ward": words, "sex": SEX, "age": AGE}, y={"y": (0, 2)})
    figure = draw_regression(RegressionPresenter(model), RegressionOutput(model), width)
    figure.draw_without_rendering()
    boxes = [
        label.get_window_extent() for axes in figure.axes[:2] for label in axes.get_xticklabels()
    ]
    right = figure.bbox.x1
    assert all(box.x0 >= -1 and box.x1 <= right + 1 and box.y0 >= -1 for box in boxes)
    ward = [label.get_window_extent() for label in figure.axes[0].get_xticklabels()]
    assert all(a.x1 <= b.x0 + 1 for a, b in pairwise(ward))


def test_lines_of_whole_numbers_are_at_whole_numbers():
    model = Fitted(lambda row: row[0], {"n": reticent.Whole(0, 500)}, y={"y": (0, 500)})
    (line,) = anchored_lines(model, 7)
    assert not line.separate
    assert (line.at % 1 == 0).all()
    assert (line.at[0], line.at[-1]) == (0, 500)
    few = Fitted(lambda row: row[0], {"n": reticent.Whole(0, 4)}, y={"y": (0, 5)})
    (line,) = anchored_lines(few, 7)
    assert line.separate
    assert line.at.tolist() == [0, 1, 2, 3, 4]
