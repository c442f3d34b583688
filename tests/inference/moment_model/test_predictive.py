"""What one fitted output says: means, variances by cause, and covariances that fit them."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reticent.inference.moment_model.outcomes import Outcome
from reticent.inference.moment_model.predictive import OutputPosterior

NEAR = np.zeros(6)
FAR = np.ones(6)


def spread(seed, m=4, size=1.0):
    root = np.random.default_rng(seed).normal(size=(m, m)) * size
    return root @ root.T / m


def fitted(**changed):
    own = spread(0, size=0.5)
    one = OutputPosterior(
        10.0,
        3.0,
        None,
        0.3,
        np.array([1.0, -1.0, 0.5, 0.0]),
        own + spread(1),
        own,
        0.25,
        1.5,
        40.0,
        Outcome("real", 7.0, 13.0),
        0.09,
    )
    return replace(one, **changed)


def features(seed=2, count=6):
    return np.random.default_rng(seed).normal(size=(count, 4))


def by_hand(one, phi):
    """Variances by the whole covariance, and by the model's own, in the output's units."""
    return [
        one.half_range**2 * np.array([row @ C @ row for row in phi])
        for C in (one.covariance, one.nonprivate_covariance)
    ]


def test_the_mean_is_in_the_units_of_the_output():
    assert fitted().mean_at(np.eye(4)) == pytest.approx([13.0, 7.0, 11.5, 10.0])


def test_variances_by_cause_add_up_among_the_records():
    one = fitted()
    phi = features()
    whole, own = by_hand(one, phi)
    model, privacy = one.variance_parts(phi, NEAR)
    assert model == pytest.approx(own + one.half_range**2 * one.truncation_variance)
    assert privacy == pytest.approx(whole - own)


def test_without_privacy_noise_there_is_no_variance_by_it():
    one = fitted()
    model, privacy = replace(one, covariance=one.nonprivate_covariance).variance_parts(
        features(), NEAR
    )
    assert (privacy == 0).all()
    assert model == pytest.approx(
        by_hand(one, features())[1] + one.half_range**2 * one.truncation_variance
    )


def test_a_model_is_never_in_more_doubt_than_with_noise():
    """Two approximations need not be in order.

    Then the smaller one is the model's, and nothing is the noise's.
    """
    one = fitted()
    turned = replace(
        one, covariance=one.nonprivate_covariance, nonprivate_covariance=one.covariance
    )
    model, privacy = turned.variance_parts(features(), NEAR)
    assert (privacy == 0).all()
    assert model == pytest.approx(
        by_hand(one, features())[1] + one.half_range**2 * one.truncation_variance
    )


def test_negative_variances_by_rounding_count_as_none():
    one = fitted(
        covariance=-np.eye(4),
        nonprivate_covariance=-2 * np.eye(4),
        truncation_variance=0.0,
        prior_centred_variance=0.0,
    )
    assert (np.array(one.variance_parts(features(), NEAR)) == 0).all()


@pytest.mark.parametrize("remote", [0.0, 0.3, 1.0])
def test_far_from_the_records_the_doubt_is_that_before_the_fit(remote):
    one = fitted()
    phi = features()
    near, noise = one.variance_parts(phi, NEAR)
    model, privacy = one.variance_parts(phi, remote * FAR)
    before = one.half_range**2 * one.prior_centred_variance
    assert (near + noise < before).all()
    assert model + privacy == pytest.approx((1 - remote) * (near + noise) + remote * before)
    assert privacy == pytest.approx(noise), "distance is no privacy noise"
    known = replace(one, prior_centred_variance=0.0)
    assert known.variance_parts(phi, FAR)[0] == pytest.approx(near), (
        "doubt is never less for being far away"
    )


@settings(max_examples=25)
@given(st.integers(0, 10**6), st.floats(0, 1))
def test_covariances_have_the_variances_on_their_diagonal(seed, remote):
    one = fitted(covariance=spread(seed), nonprivate_covariance=spread(seed + 1, size=0.3))
    phi = features(seed)
    joint = one.covariance_between(phi, remote * FAR)
    assert np.diag(joint) == pytest.approx(np.sum(one.variance_parts(phi, remote * FAR), axis=0))
    between = one.half_range**2 * phi @ one.covariance @ phi.T
    assert (joint - between)[~np.eye(6, dtype=bool)] == pytest.approx(np.zeros(30), abs=1e-9)
    assert np.linalg.eigvalsh(joint)[0] > 0
