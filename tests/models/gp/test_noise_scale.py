"""Intervals of outputs are right where one looks: noise that differs with the inputs."""

import numpy as np
import pytest

from reticent import Bounds, GPRegressor

LINE = Bounds(x=[(-1, 1)], y=(-3, 3))
PLANE = Bounds(x=[(-1, 1)], y={"a": (-3, 3), "b": (-30, 30)})
PROMISE = {"epsilon": 2.0, "delta": 1e-5, "random_state": 0}


def table(n, seed=0):
    """Noise with a standard deviation from .05 at one end to .95 at the other."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1, 1, (n, 1))
    return x, np.sin(3 * x[:, 0]) + (0.5 + 0.45 * x[:, 0]) * rng.normal(size=n)


@pytest.fixture(scope="module")
def fitted():
    return GPRegressor(bounds=LINE, **PROMISE).fit(*table(5_000))


def covered(model, low, high):
    """Share of new outputs in their 95 % intervals, with inputs between these."""
    x, y = table(6_000, seed=1)
    lower, upper = model.predict_band(x, outputs=True)
    inside = (lower <= y) & (y <= upper)
    return inside[(low <= x[:, 0]) & (x[:, 0] <= high)].mean()


def test_intervals_hold_outputs_in_quiet_and_in_noisy_places(fitted):
    assert 0.9 < covered(fitted, -1, -1 / 3) < 0.985
    assert 0.9 < covered(fitted, 1 / 3, 1) < 0.985
    stated = GPRegressor(noise=0.57, bounds=LINE, **PROMISE).fit(*table(5_000))
    assert covered(stated, -1, -1 / 3) > 0.995
    assert covered(stated, 1 / 3, 1) < 0.9


def test_the_noise_is_told_by_place(fitted):
    at = np.array([[-0.8], [0.0], [0.8]])
    sd = np.sqrt(fitted.variance_parts(at)["noise"])
    assert sd == pytest.approx([0.14, 0.5, 0.86], rel=0.25)
    low, high = fitted.noise_range_
    assert 0.02 < low < sd[0]
    assert sd[2] < high < 1.3
    stated = GPRegressor(noise=0.5, bounds=LINE, **PROMISE).fit(*table(500))
    assert (stated.variance_parts(at)["noise"] == 0.25).all()
    assert stated.noise_range_ == (0.5, 0.5)


def test_bands_of_the_function_are_shorter_where_outputs_are_quiet(fitted):
    at = np.array([[-0.7], [0.7]])
    _, (quiet, noisy) = fitted.predict(at, return_std=True)
    assert 1.3 * quiet < noisy
    parts = fitted.variance_parts(at)
    assert parts["model"][0] < parts["model"][1]
    assert (parts["privacy"] >= 0).all()


def test_rebuilt_from_its_releases_to_the_last_bit(fitted):
    at = np.linspace(-1, 1, 50)[:, None]
    again = GPRegressor.from_releases(fitted.releases_, **fitted.get_params(deep=False))
    assert again.noise_range_ == fitted.noise_range_
    for cause, values in fitted.variance_parts(at).items():
        assert (again.variance_parts(at)[cause] == values).all()


def test_each_output_has_its_own_noise():
    x, y = table(5_000)
    rng = np.random.default_rng(2)
    both = np.column_stack([y, 10 * np.sin(3 * x[:, 0]) + 3 * rng.normal(size=len(x))])
    model = GPRegressor(bounds=PLANE, **{**PROMISE, "epsilon": 5.0}).fit(x, both)
    at = np.array([[-0.8], [0.8]])
    sd = np.sqrt(model.variance_parts(at)["noise"])
    assert sd[1, 0] > 3 * sd[0, 0]
    assert sd[:, 1] == pytest.approx([3.0, 3.0], rel=0.2)
    assert model.noise_range_.shape == (2, 2)


def test_few_stages_release_no_sizes():
    model = GPRegressor(bounds=LINE, stages=5, **PROMISE).fit(*table(500))
    low, high = model.noise_range_
    assert low == high == model.noise_


def test_skewed_outputs_whose_spread_grows_are_not_told_too_low_where_it_is_large():
    """One shift for all places would leave a slope of −.036, with a standard error of .01."""
    at = np.linspace(-0.95, 0.95, 39)[:, None]
    slopes = []
    for seed in range(3):
        rng = np.random.default_rng(seed)
        x = rng.uniform(-1, 1, (40_000, 1))
        noise = np.exp(rng.normal(size=len(x))) - np.exp(0.5)
        y = 5 + np.sin(3 * x[:, 0]) + (0.2 + 0.18 * x[:, 0]) * noise
        model = GPRegressor(
            bounds=Bounds(x=[(-1, 1)], y=(0, 30)), epsilon=1.0, delta=1e-5, random_state=seed
        )
        error = model.fit(x, y).predict(at) - 5 - np.sin(3 * at[:, 0])
        slopes.append(np.polyfit(at[:, 0], error, 1)[0])
    assert abs(np.mean(slopes)) < 0.02
