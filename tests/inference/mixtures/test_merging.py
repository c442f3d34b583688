"""How many components there are: joined pairs, and what a histogram says."""

import numpy as np
import pytest

from reticent.inference.mixtures.gaussian_mixture import NormalMixture, count_deviance, grid_mixture
from reticent.inference.mixtures.latent_class import LatentClassMixture
from reticent.inference.mixtures.merging import best_by_counts, heavy_components, merge_path


def classes():
    """Four components: two alike at each of two places, with words that go with the place."""
    weights = np.array([0.3, 0.2, 0.4, 0.1])
    means = np.array([[0.0, 0.0], [0.3, 0.0], [6.0, 6.0], [6.0, 5.6]])
    words = np.array([[0.9, 0.1], [0.8, 0.2], [0.1, 0.9], [0.1, 0.9]])
    roots = np.repeat(np.eye(2)[None], 4, axis=0)
    return LatentClassMixture(weights, NormalMixture(weights, means, roots), (words,))


def test_joined_pairs_keep_moments_and_chances_and_the_nearest_come_first():
    path = merge_path(classes())
    assert sorted(path) == [1, 2, 3, 4]
    two = path[2]
    order = np.argsort(two.normal.means[:, 0])
    assert two.weights[order] == pytest.approx([0.5, 0.5])
    assert two.normal.means[order] == pytest.approx(np.array([[0.12, 0.0], [6.0, 5.92]]))
    assert two.level_probabilities[0][order] == pytest.approx(np.array([[0.86, 0.14], [0.1, 0.9]]))
    for one in path.values():
        mean = one.weights @ one.normal.means
        away = one.normal.means - mean
        second = one.normal.covariances + away[:, :, None] * away[:, None]
        covariance = np.einsum("k,kpq->pq", one.weights, second)
        if len(one.weights) == 4:
            expected = mean, covariance
        assert mean == pytest.approx(path[4].weights @ path[4].normal.means)
    assert path[1].normal.covariances[0] == pytest.approx(expected[1])
    assert path[1].normal.means[0] == pytest.approx(expected[0])


def test_words_alone_are_joined_by_what_they_tell():
    whole = classes()
    path = merge_path(LatentClassMixture(whole.weights, None, whole.level_probabilities))
    assert path[3].weights[-1] == pytest.approx(0.5)  # the two with the same words


def test_light_components_are_left_out_but_for_the_heaviest():
    assert heavy_components(classes(), 0.25).weights == pytest.approx([3 / 7, 4 / 7])
    assert heavy_components(classes(), 2.0).weights == pytest.approx([1.0])
    assert heavy_components(classes(), 0.1) is not None
    assert max(merge_path(classes(), 0.15)) == 3


@pytest.mark.parametrize("sd", [2.0, 8.0])
@pytest.mark.parametrize("centres", [[0.0], [-1.5, 1.5], [-2.0, 0.0, 2.0]])
def test_a_histogram_tells_how_many_components_there_are(sd, centres):
    rng = np.random.default_rng(len(centres))
    x = np.concatenate([rng.normal(centre, 0.45, 9000 // len(centres)) for centre in centres])
    counts, edges = np.histogram(x, bins=64, range=(-4, 4))
    points = ((edges[1:] + edges[:-1]) / 2)[:, None]
    noisy = counts + rng.normal(0, sd, 64)
    found = best_by_counts(
        lambda many: grid_mixture(points, noisy, 0.125, many, sd), 6, points, noisy, 0.125, sd
    )
    assert np.sort(found.means[:, 0]) == pytest.approx(centres, abs=0.1)


def test_a_component_that_follows_noise_in_empty_cells_gains_little():
    """Log-densities weighed by noisy counts would prefer it by far."""
    points = (np.arange(64) / 8 - 4 + 1 / 16)[:, None]
    one = NormalMixture(np.ones(1), np.zeros((1, 1)), np.full((1, 1, 1), 0.4))
    counts = 5000 / 8 * np.exp(one.score(points))
    counts[60] += 30.0  # three standard deviations of the noise
    weights = np.array([0.994, 0.006])
    spike = NormalMixture(weights, np.array([[0.0], points[60]]), np.array([[[0.4]], [[0.05]]]))
    assert counts @ spike.score(points) - counts @ one.score(points) > 100
    gain = count_deviance(one, points, counts, 0.125, 10.0)
    gain -= count_deviance(spike, points, counts, 0.125, 10.0)
    assert gain < 10
