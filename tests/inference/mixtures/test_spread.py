"""Mean and covariance on one scale: what looks say, and what noise leaves of them."""

import math

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from reticent.inference.mixtures.spread import (
    Middle,
    SpreadEstimate,
    first_radius,
    looks_pay,
    unshortened,
    wide_enough,
)

MEAN = np.array([0.3, -0.2, 0.0, 0.5])
COVARIANCE = 0.01 * (np.eye(4) + 3 * np.ones((4, 4)) / 4)


def shortened(records, centre, radius):
    z = (records - centre) / radius
    return z / np.maximum(np.linalg.norm(z, axis=1), 1.0)[:, None]


def looked(records, looks=4, sd=1e-5, noise=None):
    """Looks with exact moments, or with noise from a generator."""
    middle = Middle(4, 2.0, 2.0)
    for _ in range(looks):
        z = shortened(records, middle.mean, middle.radius)
        step = z.mean(axis=0)
        square = float((z**2).sum(axis=1).mean())
        if noise is not None:
            step = step + sd * noise.normal(size=4)
            square += 2 * sd * noise.normal()
        middle.add(step, sd, square, 2 * sd)
        middle.radius = middle.wide(1.5)
    return middle


def records(n=20_000, seed=0):
    return np.random.default_rng(seed).multivariate_normal(MEAN, COVARIANCE, size=n)


def test_looks_find_where_records_are_and_how_far_from_there():
    middle = looked(records())
    assert middle.mean == pytest.approx(MEAN, abs=0.01)
    assert middle.square == pytest.approx(np.trace(COVARIANCE), rel=0.2)
    assert middle.narrow() == pytest.approx(math.sqrt(middle.square), rel=0.01)


def test_stated_errors_of_the_mean_are_those_of_the_noise():
    rows = records(2_000)
    truth = rows.mean(axis=0)
    noise = np.random.default_rng(1)
    z = []
    for _ in range(100):
        middle = looked(rows, looks=3, sd=0.02, noise=noise)
        z.append((middle.mean - truth) / math.sqrt(middle.mean_variance))
    assert np.mean(np.square(z)) == pytest.approx(1.0, abs=0.3)


def test_a_mean_that_noise_would_hide_does_not_move():
    middle = Middle(2, 1.4, 1.4)
    middle.add(np.array([0.01, -0.02]), 0.5, 0.1, 0.5)
    assert (middle.mean == 0).all()
    assert middle.mean_variance > 0


def test_the_covariance_is_found_on_one_scale():
    rows = records()
    middle = looked(rows)
    radius = middle.narrow()
    z = shortened(rows, middle.mean, radius)
    found = SpreadEstimate(middle, z.T @ z / len(z), 1e-5, radius)
    # long records are shortened, and these lie along the leading direction
    assert found.covariance == pytest.approx(COVARIANCE, abs=0.003)
    assert np.trace(found.covariance) == pytest.approx(np.trace(COVARIANCE), rel=0.1)
    assert np.linalg.eigh(found.covariance)[1][:, -1].sum() ** 2 == pytest.approx(4, rel=0.01)
    assert np.diag(found.correlation) == pytest.approx(np.ones(4))


def test_with_noise_alone_all_directions_are_alike_but_in_an_order():
    rng = np.random.default_rng(0)
    noise = rng.normal(size=(4, 4))
    gram = 30 * (noise + noise.T)
    found = SpreadEstimate(Middle(4, 2.0, 0.5), gram, 60.0, 0.5, centred=False)
    values, vectors = np.linalg.eigh(found.covariance)
    assert values.max() < 1.2 * values.min()
    assert abs(vectors[:, -1] @ np.linalg.eigh(gram)[1][:, -1]) == pytest.approx(1.0)
    assert found.scale == pytest.approx(np.full(4, math.sqrt(1 / 3)), rel=0.05)  # all over the box


@pytest.mark.parametrize("whole", [0.2, 0.6, 1.0])
def test_lengths_are_what_they_were_before_they_were_shortened(whole):
    drawn = whole * np.random.default_rng(0).chisquare(6, size=200_000) / 6
    found, growth = unshortened(float(np.minimum(drawn, 1.0).mean()), 6.0)
    assert found == pytest.approx(whole, rel=0.03)
    assert growth >= 1.0


@given(st.floats(1e-12, 10), st.floats(1, 300))
@example(0.9, 1.0)
@example(1e-12, 300.0)
def test_any_mean_square_has_a_length(seen, dimensions):
    """Whatever noise makes of it: a fit must not fail by it."""
    whole, growth = unshortened(seen, dimensions)
    assert min(seen, 0.9) <= whole <= 20
    assert 1 <= growth < math.inf


def test_looks_pay_where_noise_in_the_mean_is_less_than_what_they_save():
    assert looks_pay(0.1, 0.35)
    assert not looks_pay(0.5, 0.35)
    noise = 0.3
    r = np.linspace(0.01, 1, 1_000)
    best = r[np.argmin((noise * r) ** 2 + (1 - r) ** 3 / 3)]
    assert first_radius(noise) == pytest.approx(best, abs=0.01)


def test_looks_grow_to_the_box_as_the_noise_vanishes():
    assert wide_enough(0.8) == 1.5
    assert wide_enough(1e-3) == pytest.approx(2 * wide_enough(8e-3))
