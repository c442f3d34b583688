"""``reticent.plot``.

What is drawn is what was released, and nothing outside the figure is touched.
"""

import subprocess
import sys

import matplotlib
import numpy as np
import pytest
from matplotlib.figure import Figure
from scipy.stats import norm
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError
from sklearn.gaussian_process.kernels import RBF

import reticent
from reticent.reporting.attack_curve import composed_mu, percent, recognised
from reticent.reporting.figures.palette import COLOURS, LIGHT
from reticent.reporting.figures.style import raw_svg
from reticent.reporting.formatting import format_number as printed
from reticent.reporting.presenter import SCREEN
from reticent.reporting.presenters.effects import BAND, RegressionOutput, effect_lines
from reticent.reporting.presenters.input_distribution import (
    input_ranges,
    median_of_shares,
    populated_ranges,
)
from reticent.reporting.registry import presenter_of
from reticent.reporting.released_counts import merge_bins
from tests.support.fitted_models import crowd
from tests.support.prose import says
from tests.support.stand_ins import Regression


def regression(inputs, *, names=None, norm=None, epsilon=5.0, **options):
    """A cheap fit of y = x₀ + sin of the others, on [0, 10] each."""
    random = np.random.default_rng(0)
    x = random.uniform(0, 10, (400, inputs))
    y = x[:, 0] / 5 + np.sin(x[:, 1:]).sum(axis=1) + 0.1 * random.standard_normal(400)
    bounds = reticent.Bounds(x=[(0, 10)] * inputs, y=(-3, 5), norm=norm)
    model = reticent.GPRegressor(
        RBF(4.0, "fixed"),
        bounds=bounds,
        epsilon=epsilon,
        delta=1e-6,
        basis=6,
        stages=1,
        noise=0.5,
        **options,
    )
    return model.fit(x, y)


def simple(cls, columns=3, *, low=-1.0, high=3.0, **options):
    x = np.random.default_rng(1).uniform(low, high, (300, columns))
    options = {"epsilon": 1.0, "delta": 1e-6, **options}
    return cls(bounds=reticent.Bounds(x=(low, high)), **options).fit(x)


def test_the_curve_is_the_prediction_and_its_bands_are_the_parts_of_its_doubt():
    model = regression(1)
    (axes,) = reticent.plot.curve(model).axes
    (drawn,) = axes.lines
    at = drawn.get_xdata()
    assert (at[0], at[-1]) == (0, 10)
    assert drawn.get_ydata() == pytest.approx(model.predict(at[:, None]))
    parts = model.variance_parts(at[:, None])
    wanted = np.cumsum([parts["model"], parts["privacy"], parts["noise"]], axis=0)[
        ::-1
    ]  # the widest is drawn first
    for band, variance in zip(axes.collections, wanted, strict=True):
        upper = band.get_paths()[0].vertices[:, 1].max()
        assert upper == pytest.approx(
            (drawn.get_ydata() + 1.96 * np.sqrt(variance)).max(), rel=1e-3
        )
    assert axes.get_xlabel() == "column 0"


def test_effects_leave_the_other_inputs_in_the_middle():
    model = regression(4)
    panels = reticent.plot.effects(model).axes
    assert len(panels) == 4
    at = panels[2].lines[0].get_xdata()
    points = np.full((len(at), 4), 5.0)
    points[:, 2] = at
    assert panels[2].lines[0].get_ydata() == pytest.approx(model.predict(points))
    assert [axes.get_xlabel() for axes in panels] == [f"column {i}" for i in range(4)]
    assert panels[0].get_ylim() == panels[3].get_ylim()


def test_the_map_has_slices_through_the_middle():
    model = regression(2)
    mean, sd, first, second, *_ = reticent.plot.map(model).axes
    assert (mean.get_xlabel(), mean.get_ylabel()) == ("column 0", "column 1")
    assert {line.get_xdata()[0] for line in mean.lines} >= {5.0}
    for axes, shown in (
        (mean, model.predict([[5.0, 5.0]])),
        (sd, model.predict([[5.0, 5.0]], return_std=True)[1]),
    ):
        levels = axes.collections[0].levels
        assert levels[0] <= shown[0] <= levels[-1]
    at = second.lines[0].get_xdata()
    assert second.lines[0].get_ydata() == pytest.approx(
        model.predict(np.column_stack([np.full(len(at), 5.0), at]))
    )
    assert first.lines[0].get_ydata()[50] == pytest.approx(second.lines[0].get_ydata()[50])


def test_lines_go_through_the_people_where_released_counts_tell_where_they_are():
    anchor = input_ranges(crowd())[1]
    assert anchor == pytest.approx([12, 30], abs=2)
    assert anchor.tolist() == [round(value) for value in anchor]  # to be read
    assert input_ranges(crowd(kernel=RBF(30.0, "fixed")))[1].tolist() == [
        50,
        50,
    ]  # no counts were released
    assert input_ranges(crowd(stages=3))[1].tolist() == [50, 50]
    assert input_ranges(crowd(norm=60.0))[1].tolist() == [
        50,
        50,
    ]  # away from the middle, lines would leave the ball
    assert input_ranges(crowd(n=20, epsilon=0.1))[1].tolist() == [50, 50]  # nothing but noise


def test_a_curve_is_dashed_where_hardly_anybody_is():
    model = crowd()
    (low, high), (second, _) = populated_ranges(model)
    assert low < 10
    assert 20 < high < 50
    assert 2 < second < 25
    drawn = effect_lines(RegressionOutput(model))[0]
    assert drawn.extrapolated[drawn.at > high].all()
    assert not drawn.extrapolated[(drawn.at >= low) & (drawn.at <= high)].any()
    solid, dashed = reticent.plot.effects(model).axes[0].lines
    assert np.array_equal(np.isnan(solid.get_ydata()), drawn.extrapolated)
    assert np.array_equal(np.isnan(dashed.get_ydata()), ~drawn.extrapolated)
    words = presenter_of(model).sections()[0].findings
    assert any(f"hardly any records have column 0 outside {low:.2g} to" in text for text in words)
    assert words[-1].startswith("there (dashed, grey)")
    assert (
        f"to {printed(drawn.mean[drawn.at <= high][-1])} at"
        in presenter_of(model).sections()[0].description
    )
    assert "beyond, a guess" in presenter_of(model).sections()[0].description


@pytest.mark.parametrize("protect", ["labels", "bins"])
def test_regressions_on_public_inputs_and_on_bins_are_dashed_where_nobody_is(protect):
    x = np.linspace(20, 50, 400)[:, None]
    x[-1] = 99.0  # one record far away is hardly anybody
    y = np.sin(x[:, 0] / 10)
    y[-1] = 3.0
    params = {"bounds": reticent.Bounds(x=[(0, 100)], y=(-3, 3)), "epsilon": 20, "delta": 1e-5}
    how = (
        {"bins": 25, "protect": "labels"}
        if protect == "bins"
        else {"stages": 2, "learn_kernel": False}
    )
    model = (reticent.BinnedGPRegressor if protect == "bins" else reticent.LabelGPRegressor)(
        **how, **params
    ).fit(x, y)
    ((low, high),) = populated_ranges(model)
    assert 5 < low <= 20
    assert 50 <= high < 70
    assert any("hardly any records" in text for text in presenter_of(model).sections()[0].findings)
    assert len(reticent.plot.curve(model).axes[0].lines) == 2


def test_no_place_is_called_empty_without_counts_that_tell():
    for model in (crowd(kernel=RBF(30.0, "fixed")), crowd(n=20, epsilon=0.1)):
        assert populated_ranges(model) == [(0, 100), (0, 100)]
        assert not any("hardly" in text for text in presenter_of(model).sections()[0].findings)


def test_the_caption_says_where_the_lines_go():
    model = crowd()
    first, second = input_ranges(model)[1]
    said, *_ = presenter_of(model).remarks(SCREEN)
    assert said.endswith(
        "near their medians, as far as the noisy counts tell them: column 0 "
        f"{first:g}, column 1 {second:g}."
    )
    assert says(
        presenter_of(regression(2)).remarks(SCREEN)[0], "middle", "column 0 5", "column 1 5"
    )


def test_a_median_is_where_half_of_the_records_are():
    assert median_of_shares(np.array([10.0, 0, 40, 25, 25]) / 100, 0.0, 50.0) == 30.0
    assert median_of_shares(np.array([25.0, 40, 20, 15]) / 100, 0.0, 40.0) == pytest.approx(
        16.2, abs=0.1
    )
    assert (
        median_of_shares(np.array([52.0, 0, 0, 48]) / 100, 0.0, 1.0) == 0.0
    )  # a column of zeros and ones
    assert median_of_shares(np.array([48.0, 0, 0, 52]) / 100, 0.0, 1.0) == 1.0
    assert median_of_shares(np.array([-20.0, 30, 60, -10, 40]) / 100, 0.0, 5.0) == pytest.approx(
        2.7, abs=0.2
    )  # noise
    assert median_of_shares(np.full(4, 0.25), -1e-3, 1e-3) == 0.0


def test_several_outputs_are_drawn_one_at_a_time():
    random = np.random.default_rng(0)
    x = random.uniform(0, 10, (400, 1))
    bounds = reticent.Bounds(x=[(0, 10)], y={"a": (-3, 5), "b": (-3, 5)})
    model = reticent.GPRegressor(
        RBF(4.0, "fixed"), bounds=bounds, epsilon=5, delta=1e-6, basis=6, stages=1, noise=0.5
    )
    model.fit(x, np.column_stack([x[:, 0] / 5, -x[:, 0] / 5]))
    for output, j in (("a", 0), ("b", 1), (1, 1)):
        (axes,) = reticent.plot.curve(model, output=output).axes
        at = axes.lines[0].get_xdata()
        assert axes.lines[0].get_ydata() == pytest.approx(model.predict(at[:, None])[:, j])
        assert axes.get_ylabel() == "ab"[j]
    for output, words in (
        (None, "several outputs"),
        ("c", "no output 'c'"),
        (2, "no output 2"),
        (True, "no output True"),
    ):
        with pytest.raises(reticent.BadInput, match=f"{words}.*output='b'. There are a, b"):
            reticent.plot.release(model, output=output)


def test_the_wrong_kind_of_thing_is_refused_in_words():
    model = simple(reticent.PrivateMean)
    with pytest.raises(reticent.BadInput, match=r"give it model\.guarantee_, not a PrivateMean"):
        reticent.plot.attacker(model)
    with pytest.raises(reticent.BadInput, match="give it a Guarantee, not a float"):
        reticent.plot.attacker(1.0)
    for thing in (model, [1], None):
        with pytest.raises(reticent.BadInput, match=r"draws what reticent\.plan gives"):
            reticent.plot.expected_error(thing)
    for draw in ("release", "curve", "map", "effects"):
        with pytest.raises(reticent.BadInput, match="draws fitted models of reticent, not a str"):
            getattr(reticent.plot, draw)("m.reticent")


def test_plot_is_a_module_with_the_plots_in_it_and_imports_no_pyplot():
    code = """
import sys
import reticent.plot
from reticent.plot import curve
import reticent
assert reticent.plot.curve is curve
assert dir(reticent.plot) == [
    "attacker", "curve", "effects", "expected_error", "map", "release", "reliability", "search"
]
assert reticent.plot.__all__ == dir(reticent.plot)

import numpy as np
bounds = reticent.Bounds(x=(0, 1))
model = reticent.PrivateMean(bounds=bounds, epsilon=1, delta=1e-6).fit(np.zeros((10, 2)))
reticent.plot.release(model)
assert "matplotlib.pyplot" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_norm_keeps_the_drawing_where_records_can_be():
    assert [
        (one.at[0], one.at[-1]) for one in effect_lines(RegressionOutput(regression(2, norm=2)))
    ] == [(3, 7), (3, 7)]


def test_release_picks_the_drawing():
    assert [len(reticent.plot.release(regression(d)).axes) for d in (1, 2, 3)] == [1, 6, 3]
    mean = simple(reticent.PrivateMean)
    (axes,) = reticent.plot.release(mean).axes
    dots = [line for line in axes.lines if line.get_marker() == "o"]
    assert [line.get_xdata()[0] for line in dots] == pytest.approx((mean.mean_ + 1) / 4)
    counts = simple(reticent.PrivateHistogram, 2, bins=7)
    panels = reticent.plot.release(counts).axes
    for axes, values in zip(panels, counts.counts_, strict=True):
        assert [bar.get_height() for bar in axes.patches] == pytest.approx(values)
    covariance = simple(reticent.PrivateCovariance)
    (axes,) = reticent.plot.release(covariance).axes
    assert [text.get_text().replace("−", "-") for text in axes.texts] == [
        f"{value:.2f}" for value in covariance.correlation_.ravel()
    ]
    with pytest.raises(reticent.BadInput, match="no drawing of"):
        reticent.plot.release(_Fitted())


class _Fitted(BaseEstimator):
    def fit(self): ...
    def __sklearn_is_fitted__(self):
        return True


@pytest.mark.parametrize("draw", ["curve", "map"])
def test_the_wrong_drawing_names_the_right_one(draw):
    with pytest.raises(reticent.BadInput, match=r"plot\.release draws any model"):
        getattr(reticent.plot, draw)(regression(3))
    with pytest.raises(reticent.BadInput, match=r"plot\.release"):
        reticent.plot.effects(simple(reticent.PrivateMean))
    with pytest.raises(NotFittedError):
        reticent.plot.release(reticent.PrivateMean())


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 6.0])
def test_the_attackers_curve_is_where_epsilon_and_delta_say(epsilon):
    """TPR ≤ e^ε·FPR + δ everywhere, and it is reached.

    The curve and (ε, δ) speak of the same noise.
    """
    promise = simple(reticent.PrivateMean, epsilon=epsilon, delta=1e-3).guarantee_
    rate = np.concatenate([np.logspace(-12, -3, 4000), np.linspace(0.001, 1, 4000)])
    best = recognised(promise, rate)
    assert (best - np.exp(epsilon) * rate).max() == pytest.approx(1e-3, rel=1e-3)
    assert best == pytest.approx(norm.cdf(norm.ppf(rate) + composed_mu(promise)))
    (axes,) = reticent.plot.attacker(promise).axes
    assert axes.lines[1].get_ydata() == pytest.approx(
        recognised(promise, axes.lines[1].get_xdata())
    )
    assert percent(float(recognised(promise, 0.05))) in [text.get_text() for text in axes.texts]


def test_pure_noise_has_the_curve_of_pure_epsilon():
    promise = simple(reticent.PrivateMean, epsilon=1.0, delta=0.0).guarantee_
    assert composed_mu(promise) is None
    few = 0.05 * np.e
    many = 1 - 0.2 / np.e
    assert recognised(promise, [0.0, 0.05, 0.8, 1.0]) == pytest.approx([0, few, many, 1])


def test_a_mixture_is_held_to_epsilon_and_delta():
    events = (reticent.Pure(epsilon=0.5), reticent.Gaussian(noise_multiplier=5.0))
    promise = reticent.Guarantee(1e-3, "record", events, private=True)
    assert recognised(promise, 0.05) == pytest.approx(0.05 * np.exp(promise.epsilon) + 1e-3)


def test_a_seed_leaves_no_limit_and_is_said_in_every_drawing():
    model = simple(reticent.PrivateMean, random_state=1)
    assert recognised(model.guarantee_, [0.0, 0.05]).tolist() == [1, 1]
    for figure in (reticent.plot.release(model), reticent.plot.attacker(model.guarantee_)):
        assert "Not private" in figure.get_supxlabel()
    assert reticent.plot.release(simple(reticent.PrivateMean)).get_supxlabel() == ""


def test_nothing_outside_is_touched_and_nothing_outside_matters():
    model = regression(1)
    before = dict(matplotlib.rcParams)
    plain = raw_svg(reticent.plot.curve(model))
    assert dict(matplotlib.rcParams) == before
    with matplotlib.rc_context(
        {"axes.facecolor": "black", "lines.linewidth": 9, "font.size": 30, "axes.grid": True}
    ):
        assert raw_svg(reticent.plot.curve(model)) == plain


def test_a_notebook_shows_it_without_pyplot():
    figure = reticent.plot.release(simple(reticent.PrivateMean))
    assert isinstance(figure, Figure)
    assert figure._repr_png_().startswith(b"\x89PNG")


def test_names_are_shown_as_they_are(tmp_path):
    pandas = pytest.importorskip("pandas")
    names = ["$x^2$", "<b>&", "a" * 80, "bell\x07", "年齢"]
    bounds = reticent.Bounds(x=dict.fromkeys(names, (0, 1)))
    frame = pandas.DataFrame(np.zeros((50, 5)), columns=names)
    figure = reticent.plot.release(
        reticent.PrivateMean(bounds=bounds, epsilon=1, delta=1e-6).fit(frame)
    )
    shown = [label.get_text() for label in figure.axes[0].get_yticklabels()]
    assert shown == ["$x^2$", "<b>&", "a" * 27 + "…", "bell�", "年齢"]
    assert ">$x^2$<" in raw_svg(figure)


@pytest.mark.parametrize("width", [3.6, 7.2])
def test_many_columns_are_cut_and_not_squeezed(width):
    figure = reticent.plot.release(simple(reticent.PrivateMean, 60), width=width)
    assert len(figure.axes[0].get_yticklabels()) == 40
    figure = reticent.plot.release(simple(reticent.PrivateCovariance, 12), width=width)
    assert len(figure.axes[0].texts) == 0
    assert figure.get_figwidth() <= width


def test_bins_that_are_too_many_are_put_together():
    edges, sums, noise = merge_bins(np.linspace(0, 10, 11), np.arange(10.0), 2.0, 4)
    assert edges.tolist() == [0, 3, 6, 9, 10]
    assert sums.tolist() == [3, 12, 21, 9]
    assert noise == pytest.approx(2 * 3**0.5)


def test_with_very_many_inputs_those_that_matter_are_drawn():
    model = Regression(
        lambda points: points @ np.arange(30.0), [(0, 1)] * 30, variances=(1.0, 1.0, 1.0)
    )
    drawn = effect_lines(RegressionOutput(model))
    assert [line.name for line in drawn] == [f"column {j}" for j in range(6, 30)]
    assert drawn[0].std["noise"] == pytest.approx(np.full(101, 3**0.5))


def luminance(colour):
    channels = np.array(list(bytes.fromhex(colour[1:]))) / 255
    linear = np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])


def contrast(a, b):
    low, high = sorted([luminance(a), luminance(b)])
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("paper", [0, 1])
def test_text_is_readable_on_light_and_on_dark_paper(paper):
    shade = {name: pair[paper] for name, pair in COLOURS.items()}
    for ink in ("ink", "muted", "accent", "kept", "broken"):
        assert contrast(shade[ink], shade["paper"]) >= 4.5, ink
    for sign in ("below", "above"):  # numbers in the map of correlations
        for step in range(5):
            assert (
                contrast(shade["paper" if step > 2 else "ink"], shade[f"{sign}-{step}"]) >= 4.5
            ), (sign, step)


def test_shades_differ_in_lightness_and_can_be_told_apart_by_value():
    assert len(set(LIGHT.values())) == len(LIGHT)
    for paper in (0, 1):
        bands = [
            luminance(COLOURS[name][paper])
            for name in ("accent", "model", "privacy", "noise", "paper")
        ]
        assert bands == sorted(bands, reverse=paper == 1)
        ramp = [luminance(COLOURS[f"more-{i}"][paper]) for i in range(9)]
        assert ramp == sorted(ramp, reverse=paper == 0)


def test_the_band_is_95_per_cent():
    assert norm.cdf(BAND) - norm.cdf(-BAND) == pytest.approx(0.95)
