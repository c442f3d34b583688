"""PrivateMean: right on average, and with the error it states."""

import numpy as np
import pytest

from reticent import Bounds, PrivateMean


def test_right_on_average_and_as_noisy_as_stated():
    data = np.random.default_rng(0).uniform([0, 100], [10, 200], size=(50, 2))
    bounds = Bounds(x=[(-10, 20), (0, 400)])
    models = [PrivateMean(bounds=bounds, epsilon=2, delta=1e-5).fit(data) for _ in range(400)]
    means = np.array([model.mean_ for model in models])
    sd = models[0].mean_sd_
    assert np.abs(means.mean(axis=0) - data.mean(axis=0)).max() < 5 * sd.max() / 20
    assert means.std(axis=0) == pytest.approx(sd, rel=0.2)
    # d = 2 columns on [−1, 1]: L2 sensitivity 2√2, over n, times the half-width
    multiplier = models[0].releases_[0].event.noise_multiplier
    assert sd == pytest.approx(2 * np.sqrt(2) * multiplier / 50 * np.array([15, 200]), rel=1e-9)


def test_a_norm_bound_needs_less_noise_than_its_box():
    data = np.random.default_rng(0).normal(size=(1000, 10)) * 0.1
    box = PrivateMean(bounds=Bounds(x=(-1, 1)), epsilon=1, delta=1e-6).fit(data)
    ball = PrivateMean(bounds=Bounds(x=(-1, 1), norm=1.0), epsilon=1, delta=1e-6).fit(data)
    assert ball.mean_sd_ == pytest.approx(box.mean_sd_ / np.sqrt(10), rel=1e-6)
    assert np.abs(ball.mean_ - data.mean(axis=0)).max() < 6 * ball.mean_sd_[0]


def test_values_outside_and_missing_are_moved():
    data = np.array([[np.nan], [1e300], [-np.inf], [5.0]] * 5000)
    model = PrivateMean(bounds=Bounds(x=(0, 10)), epsilon=5, delta=1e-6).fit(data)
    assert model.mean_[0] == pytest.approx((5 + 10 + 0 + 5) / 4, abs=0.05)


def test_score_is_the_distance_from_the_released_mean():
    data = np.random.default_rng(0).uniform(0, 10, size=(5000, 2))
    model = PrivateMean(bounds=Bounds(x=(0, 10)), epsilon=5, delta=1e-6).fit(data)
    assert model.score(data) == pytest.approx(-2 / 3, abs=0.03)
    assert model.score(data) > model.score(data * 0)
