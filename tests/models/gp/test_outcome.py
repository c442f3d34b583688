"""What outputs are: yes and no, counts, positive amounts; and means that clips do not move."""

import numpy as np
import pytest

import reticent
from reticent.errors import BadInput
from reticent.inference.moment_model.outcomes import Outcome
from reticent.reporting.registry import presenter_of


def flat(chance, n, seed):
    rng = np.random.default_rng(seed)
    return rng.uniform(-1, 1, (n, 1)), (rng.uniform(size=n) < chance) * 1.0


def fitted(x, y, high, epsilon=1.0, **own):
    bounds = reticent.Bounds(x=[(-1, 1)], y=(0, high))
    model = reticent.GPRegressor(bounds=bounds, epsilon=epsilon, delta=1e-6, random_state=0, **own)
    return model.fit(x, y)


def noise_of_two_values(model, points):
    """Expected p(1 − p), p normal and in its range."""
    parts = model.variance_parts(points)
    mean = model.predict(points)
    unknown = parts["model"] + parts["privacy"]
    # near an end of the range p is not normal any more
    inside = mean > 3 * np.sqrt(unknown)
    assert parts["noise"][inside] == pytest.approx((mean * (1 - mean) - unknown)[inside], rel=0.02)
    return parts["noise"]


def test_a_rare_one_is_not_told_as_never():
    """Version 0.1.0 said .0001 ± .0001, and a noise of .001."""
    model = fitted(*flat(0.02, 20_000, 0), 1)
    mean, std = model.predict([[0.0]], return_std=True)
    assert abs(mean[0] - 0.02) < 3 * std[0]
    assert std[0] < 0.02
    assert model.noise_ == pytest.approx(0.14, rel=0.2)
    assert [type(end) for end in model.noise_range_] == [float, float]


def test_yes_and_no_are_known_by_their_mean():
    model = fitted(*flat(0.05, 4_000, 1), 1, outcome="binary")
    points = np.linspace(-0.9, 0.9, 7)[:, None]
    mean, std = model.predict(points, return_std=True)
    assert (np.abs(mean - 0.05) < 3 * std).all()
    assert ((mean >= 0) & (mean <= 1)).all()
    assert (noise_of_two_values(model, points) > 0).all()
    lower, upper = model.predict_band(points)
    assert ((lower >= 0) & (upper <= 1) & (lower <= mean) & (mean <= upper)).all()


def test_columns_of_yes_and_no_are_binary_unless_said_otherwise():
    x, y = flat(0.3, 300, 2)
    bounds = reticent.Bounds(x=[(-1, 1)], y={"smoker": bool})
    options = {"bounds": bounds, "epsilon": 5.0, "delta": 1e-5, "stages": 2, "random_state": 0}
    binary = reticent.GPRegressor(**options).fit(x, y)
    real = reticent.GPRegressor(outcome="real", **options).fit(x, y)
    assert (binary.outcome_, real.outcome_) == ("binary", "real")
    assert noise_of_two_values(binary, np.array([[0.0]])) > 0.1
    assert real.variance_parts([[0.0]])["noise"] == pytest.approx(real.noise_**2)


@pytest.mark.parametrize("seed", [0, 1])
def test_numbers_of_two_values_are_recognised_where_the_releases_tell(seed):
    model = fitted(*flat(0.02, 5_000, seed), 1, epsilon=3.0)
    assert model.outcome_ == "binary"
    points = np.linspace(-0.9, 0.9, 7)[:, None]
    mean, std = model.predict(points, return_std=True)
    assert (np.abs(mean - 0.02) < 3 * std).all()
    assert (noise_of_two_values(model, points) > 0).all()
    lower, upper = model.predict_band(points)
    assert ((lower >= 0) & (upper <= 1)).all()
    (block,) = presenter_of(model).summary()
    assert "output is 0 or 1, as far as the releases tell" in block.sentences


@pytest.mark.parametrize("spread", [0.1, 0.5, 1.0])
def test_other_numbers_are_not_taken_for_two_values(spread):
    """With a spread of half a range their mean square is that of two values, by accident."""
    rng = np.random.default_rng(5)
    x = rng.uniform(-1, 1, (5_000, 1))
    model = fitted(x, rng.normal(0.5, spread, 5_000), 1)
    assert model.outcome_ == "real"
    assert model.noise_ == pytest.approx(spread, rel=0.15)


def test_each_output_has_an_outcome_of_its_own():
    x, y = flat(0.3, 2_000, 6)
    both = np.stack([y, 0.5 + 0.1 * x[:, 0]], axis=1)
    bounds = reticent.Bounds(x=[(-1, 1)], y=[(0, 1), (0, 1)])
    model = reticent.GPRegressor(bounds=bounds, epsilon=5.0, delta=1e-6, random_state=0)
    assert model.fit(x, both).outcome_ == ["binary", "real"]


@pytest.mark.parametrize(("outcome", "power"), [("count", 1), ("positive", 2)])
def test_the_spread_of_amounts_grows_with_their_mean(outcome, power):
    rng = np.random.default_rng(3)
    x = rng.uniform(-1, 1, (10_000, 1))
    means = 5 + 4 * x[:, 0]
    if outcome == "count":
        y = rng.poisson(means).astype(float)
    else:
        y = means * rng.gamma(4.0, 0.25, len(x))
    model = fitted(x, y, 30, epsilon=3.0, outcome=outcome)
    points = np.array([[-0.8], [0.8]])
    told = np.sqrt(model.variance_parts(points)["noise"])
    true = np.sqrt(0.25 ** (power - 1)) * (5 + 4 * points[:, 0]) ** (power / 2)
    assert told == pytest.approx(true, rel=0.3)
    lower, upper = model.predict_band(x, outputs=True)
    assert (lower >= 0).all()
    inside = (y >= lower) & (y <= upper)
    for side in (x[:, 0] < 0, x[:, 0] > 0):  # bands of small counts hold more: counts are whole
        assert 0.91 < inside[side].mean() < 0.995


def test_bands_of_two_values_hold_both_unless_one_is_rare():
    lower, upper = Outcome("binary", 0.0, 1.0).output_band(
        np.array([0.01, 0.5, 0.99]), np.full(3, 0.2), 0.95
    )
    assert lower.tolist() == [0, 0, 1]
    assert upper.tolist() == [0, 1, 1]


@pytest.mark.parametrize("outcome", ["count", "positive"])
def test_bands_of_amounts_are_numbers_wherever_their_mean_is(outcome):
    """A mean may lie at zero, or be known for certain."""
    mean, variance = np.meshgrid([-0.3, 0.0, 1e-160, 0.5, 1e80], [0.0, 1e-160, 0.1, 1e200])
    with np.errstate(all="raise", under="ignore"):
        lower, upper = Outcome(outcome, 0.0, 1.0).output_band(mean, variance, 0.95)
    assert np.isfinite(upper).all()
    assert ((lower >= 0) & (lower <= upper)).all()


@pytest.mark.parametrize("outcome", ["binary", "count", "positive"])
def test_means_that_can_be_are_those_of_draws_in_their_range(outcome):
    kind = Outcome(outcome, 0.0, 1.0)
    mean = np.array([-0.05, 0.0, 0.02, 0.5, 0.97, 1.1])
    sd = np.array([0.04, 0.1, 0.05, 0.1, 0.05, 0.1])
    draws = np.random.default_rng(0).normal(mean, sd, (400_000, 6))
    low, high = kind.limits
    draws = np.where((draws >= low) & (draws <= high), draws, np.nan)
    inside, variance = kind.possible_moments(mean, sd**2)
    assert inside == pytest.approx(np.nanmean(draws, axis=0), rel=0.02)
    assert variance == pytest.approx(np.nanvar(draws, axis=0), rel=0.03)
    spread = np.nanmean(kind.unit_variance(draws, np.zeros(6)), axis=0)
    assert kind.unit_variance(mean, sd**2) == pytest.approx(spread, rel=0.03)


@pytest.mark.parametrize("outcome", ["binary", "count", "positive"])
def test_means_that_can_be_are_numbers_wherever_the_mean_is(outcome):
    kind = Outcome(outcome, 0.0, 1.0)
    mean, variance = np.meshgrid([-1e80, -0.3, 0.0, 1e-160, 0.5, 1e80], [0.0, 1e-160, 0.1, 1e100])
    with np.errstate(all="raise", under="ignore"):
        inside, uncertain = kind.possible_moments(mean, variance)
        spread = kind.unit_variance(mean, variance)
    low, high = kind.limits
    assert ((inside >= low) & (inside <= high)).all()
    assert ((uncertain >= 0) & np.isfinite(uncertain)).all()
    assert ((spread >= 0) & np.isfinite(spread)).all()


def test_a_rate_that_is_cut_at_zero_is_not_zero_for_certain():
    """Yes and no, one in fifty: where the mean is cut, single outputs spread nevertheless."""
    rng = np.random.default_rng(5)
    x = rng.uniform(-1, 1, (2_000, 1))
    y = (rng.random(2_000) < 0.02).astype(float)
    for epsilon in np.linspace(1.0, 0.8, 20):  # another noise each
        model = fitted(x, y, 1, epsilon=epsilon, outcome="binary")
        mean = model.predict(x)
        if (mean == 0).any():
            break
    noise = model.variance_parts(x)["noise"]
    assert (mean == 0).any()
    assert (noise > 0.001).all()


@pytest.mark.parametrize(
    ("wrong", "word"),
    [
        ({"outcome": "yes"}, "or left out, not 'yes'"),
        ({"outcome": "binary", "noise": 0.1}, "leave out"),
        (
            {"outcome": "count", "bounds": reticent.Bounds(x=[(-1, 1)], y=(-1, 1))},
            "begin at 0 or above",
        ),
    ],
)
def test_outcomes_that_cannot_be_are_refused(wrong, word):
    options = {"bounds": reticent.Bounds(x=[(-1, 1)], y=(0, 1)), "epsilon": 1.0, "delta": 1e-6}
    with pytest.raises(BadInput, match=word):
        reticent.GPRegressor(**{**options, **wrong}).fit(*flat(0.5, 50, 0))


@pytest.mark.parametrize("level", [0, 1, "most"])
def test_a_band_needs_a_level_between_0_and_1(level):
    model = fitted(*flat(0.5, 200, 0), 1, stages=1, basis=4)
    with pytest.raises(BadInput, match="level must be"):
        model.predict_band([[0.0]], level=level)
