"""PrivateMean: right on average, and with the error it states."""

from datetime import date

import numpy as np
import pandas as pd
import pytest

from reticent import BadInput, Bounds, Cyclic, Number, Ordered, PrivateMean, Whole


def test_right_on_average_and_as_noisy_as_stated():
    data = np.random.default_rng(0).uniform([0, 100], [10, 200], size=(50, 2))
    bounds = Bounds(x=[(-10, 20), (0, 400)])
    models = [PrivateMean(bounds=bounds, epsilon=2, delta=1e-5).fit(data) for _ in range(400)]
    means = np.array([model.mean_ for model in models])
    sd = models[0].mean_sd_
    assert np.abs(means.mean(axis=0) - data.mean(axis=0)).max() < 5 * sd.max() / 20
    assert means.std(axis=0) == pytest.approx(sd, rel=0.2)
    # d = 2 columns on [−1, 1]: L2 sensitivity 2√2, over the count, times the half-width; and the
    # noise of the count, √3 times smaller
    release = models[0].releases_[0]
    counts = models[0].counts_
    unit = (means[0] - [5, 200]) / [15, 200]
    noise = 2 * np.sqrt(2) * release.event.noise_multiplier
    expected = noise * np.sqrt(1 + unit**2 / 3) / counts * np.array([15, 200])
    assert sd == pytest.approx(expected, rel=1e-6)


def test_a_norm_bound_needs_less_noise_than_its_box():
    data = np.random.default_rng(0).normal(size=(1000, 10)) * 0.1
    box = PrivateMean(bounds=Bounds(x=(-1, 1)), epsilon=1, delta=1e-6).fit(data)
    ball = PrivateMean(bounds=Bounds(x=(-1, 1), norm=1.0), epsilon=1, delta=1e-6).fit(data)
    assert ball.mean_sd_ == pytest.approx(box.mean_sd_ / np.sqrt(10), rel=0.2)
    assert np.abs(ball.mean_ - data.mean(axis=0)).max() < 6 * ball.mean_sd_[0]


def test_values_outside_are_moved_and_missing_ones_left_out():
    data = np.array([[np.nan], [1e300], [-np.inf], [6.0]] * 5000)
    model = PrivateMean(bounds=Bounds(x=(0, 10)), epsilon=5, delta=1e-6).fit(data)
    assert model.mean_[0] == pytest.approx((10 + 0 + 6) / 3, abs=0.05)
    assert model.counts_[0] == pytest.approx(15_000, abs=6 * model.counts_sd_)


@pytest.mark.parametrize("delta", [1e-5, 0.0])
@pytest.mark.parametrize("norm", [None, 6.0])
def test_missing_values_bias_nothing(delta, norm):
    rng = np.random.default_rng(1)
    data = rng.uniform(1, 4, size=(600, 2))
    data[rng.random(600) < 0.6, 0] = np.nan
    known = ~np.isnan(data)
    if norm is not None:
        known[:, :] = known.all(axis=1)[:, None]
    truth = np.array([data[known[:, j], j].mean() for j in range(2)])
    bounds = Bounds(x=[(-5, 5)] * 2, norm=norm)
    models = [PrivateMean(bounds=bounds, epsilon=3, delta=delta).fit(data) for _ in range(200)]
    score = np.array([(model.mean_ - truth) / model.mean_sd_ for model in models])
    assert np.abs(score.mean(axis=0)).max() < 5 / np.sqrt(200)
    assert np.abs(score.std(axis=0) - 1).max() < 0.25
    counts = np.array([model.counts_ for model in models])
    assert counts.mean(axis=0) == pytest.approx(known.sum(axis=0), abs=3 * models[0].counts_sd_)


def test_kinds_of_columns():
    frame = pd.DataFrame(
        {
            "smoker": ["yes"] * 3000 + ["no"] * 7000,
            "children": [0, 12] * 5000,
            "visit": ["2020-01-01"] * 10_000,
        }
    )
    bounds = Bounds(
        x={
            "smoker": bool,
            "children": Whole(0, 12),
            "visit": (date(2019, 1, 1), date(2024, 12, 31)),
        }
    )
    model = PrivateMean(bounds=bounds, epsilon=5, delta=1e-6).fit(frame)
    days = (date(2020, 1, 1) - date(1970, 1, 1)).days
    assert (np.abs(model.mean_ - [0.3, 6, days]) < 6 * model.mean_sd_).all()
    # yes and no are the ends of the range: as precise as a number in [0, 1]
    assert model.mean_sd_[0] == pytest.approx(model.mean_sd_[1] / 12, rel=0.1)


@pytest.mark.parametrize("kind", [["F", "M"], Ordered(["I", "II"]), Cyclic(0, 24)])
def test_words_have_no_mean(kind, tmp_path):
    with pytest.raises(BadInput, match=r"'a', a column of kind .*PrivateHistogram"):
        PrivateMean(bounds=Bounds(x={"a": kind}), epsilon=1, delta=1e-6).fit(
            pd.DataFrame({"a": ["F", "M"]})
        )


def test_an_indicator_of_missing_values_does_not_pull_the_mean():
    frame = pd.DataFrame({"age": [80.0] * 3000 + [np.nan] * 7000})
    bounds = Bounds(x={"age": Number(0, 110, keep_missing=True)})
    model = PrivateMean(bounds=bounds, epsilon=5, delta=1e-6).fit(frame)
    assert model.mean_.shape == (1,)
    assert model.mean_[0] == pytest.approx(80, abs=1)


def test_score_is_the_distance_from_the_released_mean():
    data = np.random.default_rng(0).uniform(0, 10, size=(5000, 2))
    model = PrivateMean(bounds=Bounds(x=(0, 10)), epsilon=5, delta=1e-6).fit(data)
    assert model.score(data) == pytest.approx(-2 / 3, abs=0.03)
    assert model.score(data) > model.score(data * 0)
