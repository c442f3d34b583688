"""What is shown of a regression along its inputs: where people are."""

import numpy as np
import pytest
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure

import reticent
from reticent.reporting.figures.palette import LIGHT
from reticent.reporting.figures.regression import draw_bins, draw_line, frame_axes
from reticent.reporting.formatting import format_number
from reticent.reporting.presenter import SCREEN
from reticent.reporting.presenters.binned import ReleasedBins
from reticent.reporting.presenters.effects import (
    BAND,
    EffectLine,
    RegressionOutput,
    average_std,
    effect_lines,
)
from reticent.reporting.presenters.input_distribution import (
    binary_inputs,
    box_points,
    record_like_points,
)
from reticent.reporting.presenters.regression import (
    LEARNED_PRIOR,
    PRIOR,
    RegressionPresenter,
)
from tests.support.fitted_models import crowd, kept
from tests.support.stand_ins import Bare, BareRelease


def test_an_input_that_is_0_or_1_is_shown_there_and_nowhere_between():
    random = np.random.default_rng(0)
    x = np.column_stack([random.uniform(0, 100, 4000), random.random(4000) < 0.25])
    bounds = reticent.Bounds(x=[(0, 100), (0, 1)], y=(-3, 3))
    model = reticent.GPRegressor(bounds=bounds, epsilon=8.0, delta=1e-6, stages=24, basis=12).fit(
        x, x[:, 1]
    )
    assert binary_inputs(model) == [False, True]
    age, smoker = effect_lines(RegressionOutput(model))
    assert len(age.at) == 101
    assert smoker.at.tolist() == [0, 1]
    assert np.ptp(smoker.mean) == pytest.approx(1, abs=0.3)
    axes = reticent.plot.map(model).axes[3]
    assert axes.get_xticks().tolist() == [0, 1]
    for level, (left, right) in zip(
        smoker.mean, ((-0.15, 0.15), (0.85, 1.15)), strict=True
    ):  # and no line between
        block = next(one for one in axes.lines if one.get_xdata() == pytest.approx([left, right]))
        assert block.get_ydata() == pytest.approx([level, level])
    assert len(axes.lines) == 2
    low, high = axes.get_xlim()
    assert np.diff((low, 0, 1, high)) / (high - low) == pytest.approx(
        [smoker.inset, 1 - 2 * smoker.inset, smoker.inset]
    )
    (found,) = RegressionPresenter(model).sections()
    assert [row[0] for row in found.tables[1].rows] == ["0", "1"]
    assert any(text.startswith("along column 1 from 0 to 1 the mean of") for text in found.findings)
    assert any(
        text.startswith("Nearly all records have column 1 at 0 or 1")
        for text in RegressionPresenter(model).remarks(SCREEN)
    )


@pytest.mark.parametrize(
    ("ends", "noise", "binary"),
    [
        ((0.7, 0.3), 0.01, True),
        ((0.99, 0.01), 0.01, False),
        ((0.5, 0.3), 0.01, False),
        ((0.7, 0.3), 0.03, False),
    ],
)
def test_two_values_are_told_by_much_at_both_ends_and_little_noise(ends, noise, binary):
    """``noise``: standard deviation of the fraction of the records in one of 64 bins."""
    n = 1000
    counts = n * np.array([ends[0], *[(1 - sum(ends)) / 62] * 62, ends[1]])
    release = BareRelease(
        statistic={"name": "InputCounts"},
        bounds=reticent.Bounds(x=[(0, 1)]),
        n=n,
        value=counts,
        sd=np.full(64, noise * n),
    )
    assert binary_inputs(Bare(releases_=[release])) == [binary]


def test_what_a_curve_moves_by_is_told_where_people_are():
    x = np.random.default_rng(0).gamma(4, 12 / 3.67, (4000, 1))
    bounds = reticent.Bounds(x=[(0, 100)], y=(-3, 3))
    model = reticent.GPRegressor(
        bounds=bounds, epsilon=8.0, delta=1e-6, stages=24, basis=12, learn_kernel=False
    )
    model.fit(x, x[:, 0] / 50)
    (drawn,) = effect_lines(RegressionOutput(model))
    assert drawn.extrapolated.any()
    assert not drawn.extrapolated.all()
    low, high = drawn.populated
    moved = np.ptp(drawn.mean[~drawn.extrapolated])
    alike = record_like_points(model)
    assert np.quantile(alike, [0.25, 0.5, 0.75]) == pytest.approx(
        np.quantile(x, [0.25, 0.5, 0.75]), abs=2
    )
    quality = RegressionPresenter(model).quality()
    (table,) = quality.tables
    assert table.head[1:] == ["where records are", "over the whole box"]
    where = average_std(RegressionOutput(model), alike, 0.95)["function"]
    box = average_std(RegressionOutput(model), box_points(model))["function"]
    sd = np.sort(model.predict(alike, return_std=True)[1])
    assert where == pytest.approx(
        np.sqrt(np.mean(sd[: round(0.95 * len(sd))] ** 2)), rel=1e-3
    )  # few, far out, count for much
    assert where < box / 2  # which most of the box, with nobody in it, would have hidden
    assert [float(cell) for cell in table.rows[2][1:]] == pytest.approx([where, box], abs=0.01)
    assert "what the released counts tell" in quality.about
    said = (
        f"along column 0 from {format_number(low, 2)} to {format_number(high, 2)} the mean "
        f"of output moves by {format_number(moved, 2)}"
    )
    assert said in RegressionPresenter(model).sections()[0].findings


def test_a_model_that_has_not_counted_its_inputs_tells_of_the_box_alone():
    bounds = reticent.Bounds(x=[(0, 1)], y=(-3, 3))
    model = reticent.GPRegressor(
        bounds=bounds, epsilon=1.0, delta=1e-6, stages=4, basis=4
    )  # too few stages for counts
    model.fit(np.zeros((50, 1)), np.zeros(50))
    assert record_like_points(model) is None
    assert RegressionPresenter(model).quality().tables[0].head[1:] == ["over the whole box"]


def test_a_guess_is_grey_and_does_not_set_the_axis():
    line = EffectLine(
        "x",
        np.arange(5.0),
        np.zeros(5),
        {"model": np.array([1.0, 1.0, 1.0, 1.0, 90.0])},
        (0.0, 3.0),
    )
    axes = Figure().subplots()
    draw_line(axes, line)
    frame_axes(axes, [line])
    assert axes.get_ylim() == pytest.approx(
        (-1.5 * BAND, 1.5 * BAND)
    )  # half as long again as what is known
    band, guess = axes.collections
    assert band.get_paths()[0].vertices[:, 0].max() == 3
    assert guess.get_paths()[0].vertices[:, 0].min() == 3
    assert guess.get_facecolor()[0] == pytest.approx(to_rgba(LIGHT["rule"]))
    known = kept("gp", columns=("age", "height"))
    with_guess, without = (
        reticent.plot.effects(one).legends[0].get_texts() for one in (crowd(), known)
    )
    assert with_guess[-1].get_text() == "a guess, all together"
    assert len(without) == len(with_guess) - 1


def test_a_bin_with_few_records_does_not_set_the_axis():
    line = EffectLine(
        "x", np.array([0.0, 0.5, 1.0]), np.zeros(3), {"model": np.ones(3)}, (0.0, 1.0)
    )
    axes = Figure().subplots()
    draw_line(axes, line)
    draw_bins(
        axes, ReleasedBins(np.array([0.0, 0.5, 1.0]), np.array([0.1, 90.0]), np.array([0.1, 50.0]))
    )
    frame_axes(axes, [line])
    assert axes.get_ylim() == pytest.approx((-1.5 * BAND, 1.5 * BAND))


def test_a_prior_learned_among_the_records_is_said_to_hold_there():
    assert RegressionPresenter(crowd()).remarks(SCREEN)[-1] == PRIOR
    assert RegressionPresenter(crowd(learn_kernel=True)).remarks(SCREEN)[-1] == LEARNED_PRIOR
