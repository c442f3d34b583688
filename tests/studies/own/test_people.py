"""Panels, and what is said of people with several rows: weights, people drawn, the two rules."""

import numpy as np
import pytest

from reticent.studies.own import people, people_clipping
from reticent.studies.own.panels import simulated


@pytest.fixture
def panel():
    return simulated(np.random.default_rng(0), people=40)


def test_weights_of_a_person_add_up_to_at_most_one(panel):
    for contribution in (1, 3):
        each = np.bincount(panel.person, panel.weights(contribution))
        expected = np.minimum(1, panel.records_of_each / contribution)
        np.testing.assert_allclose(each, expected)


def test_people_who_are_drawn_bring_all_of_their_rows(panel):
    drawn = panel.of_people(np.array([5, 5, 7]))
    assert drawn.people == 3
    rows = [panel.output[panel.person == who] for who in (5, 5, 7)]
    np.testing.assert_array_equal(drawn.output, np.concatenate(rows))
    np.testing.assert_array_equal(drawn.records_of_each, list(map(len, rows)))


def test_means_without_privacy_are_those_of_each_person(panel):
    own = [
        np.clip(panel.output[panel.person == who], *panel.output_range).mean()
        for who in range(panel.people)
    ]
    groups = people._groups(panel, "mean")
    found = people._means(panel, groups, panel.weights(1))
    np.testing.assert_allclose(found, [np.mean(own)])


def test_private_means_come_near_with_no_noise(panel):
    for model in ("mean", "table"):
        options = {"epsilon": 1e6, "delta": 1e-6, "random_state": 1}
        found = people._private_means(panel, model, options, panel.person)
        exact = people._means(panel, people._groups(panel, model), panel.weights(1))
        np.testing.assert_allclose(found.value, exact, atol=1e-3)


def test_nothing_is_lost_where_nobody_is_beyond_the_bound(panel):
    own = people_clipping._sums(panel)
    total = own.sum(axis=0)
    for lengths in (panel.records_of_each.astype(float), np.linalg.norm(own, axis=1)):
        bounds, lost = people_clipping._curve(own, total, lengths)
        assert lost[-1] < 1e-12
        assert np.all(np.diff(lost) <= 1e-12)
        assert bounds[-1] == pytest.approx(lengths.max())


def test_a_gram_matrix_of_a_person_is_no_longer_than_her_rows(panel):
    own = people_clipping._grams(panel)
    assert np.all(np.linalg.norm(own, axis=1) <= panel.records_of_each + 1e-9)
    assert own.shape == (panel.people, 21**2)
