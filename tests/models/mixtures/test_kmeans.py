"""KMeans: what it finds in few and in many columns, and what it survives."""

import numpy as np
import pytest
from sklearn import cluster
from sklearn.datasets import load_digits

import reticent
from reticent.inference.mixtures.weighted_kmeans import (
    nearest_centres,
    residual_radius,
    significant_points,
    squared_distances,
    weighted_kmeans,
)
from reticent.privacy.row_maps.grid_counts import GridCounts, bins_for

BOX = reticent.Bounds(x=(-1, 1))


def blobs(n, d, k, seed=0):
    rng = np.random.default_rng(seed)
    centres = rng.uniform(-0.6, 0.6, size=(k, d))
    return centres, centres[rng.integers(k, size=n)] + 0.06 * rng.normal(size=(n, d))


def fitted(k, data, **params):
    settings = {"bounds": BOX, "epsilon": 1, "delta": 1e-6, "random_state": 0} | params
    return reticent.KMeans(k, **settings).fit(data)


@pytest.mark.parametrize(("d", "k"), [(1, 2), (2, 4), (3, 4), (6, 4)])
def test_clusters_are_found(d, k):
    centres, data = blobs(20_000, d, k)
    model = fitted(k, data)
    _, away = nearest_centres(centres, model.cluster_centers_)
    assert np.sqrt(away.max()) < 0.05
    assert model.cluster_sizes_.sum() == pytest.approx(20_000, rel=0.05)
    assert (np.diff(model.cluster_sizes_) <= 0).all(), "the largest comes first"
    ideal = -np.mean(nearest_centres(data, centres)[1])
    assert model.score(data) > 1.05 * ideal
    assert np.array_equal(
        model.predict(data[:50]),
        squared_distances(data[:50], model.cluster_centers_).argmin(axis=1),
    )
    assert model.transform(data[:50]) ** 2 == pytest.approx(
        squared_distances(data[:50], model.cluster_centers_), abs=1e-9
    )
    assert list(model.get_feature_names_out()) == [f"kmeans{i}" for i in range(k)]


@pytest.mark.parametrize(("n", "d"), [(400, 2), (20_000, 2), (5_000, 6)])
def test_sizes_are_those_of_the_centres_that_are_told(n, d):
    """Not of those before the last step, nor of the cells that were clustered."""
    data = np.clip(0.3 * np.random.default_rng(1).normal(size=(n, d)), -1, 1)
    errors = []
    for seed in range(6):
        model = fitted(5, data, random_state=seed)
        own = np.bincount(model.predict(data), minlength=5)
        errors.append((model.cluster_sizes_ - own) / model.cluster_sizes_sd_)
    assert np.sqrt(np.mean(np.square(errors))) == pytest.approx(1.0, abs=0.35)


def test_what_would_tell_of_single_records_is_not_there():
    model = fitted(2, blobs(500, 2, 2)[1])
    for name in ("labels_", "inertia_", "n_iter_"):
        assert not hasattr(model, name)


def test_distances_are_measured_on_the_bounds_scale():
    """Otherwise incomes would drown ages."""
    rng = np.random.default_rng(0)
    ages = rng.choice([20.0, 80.0], size=20_000) + rng.normal(size=20_000)
    data = np.column_stack([ages, rng.uniform(0, 1e6, size=20_000)])
    model = fitted(2, data, bounds=reticent.Bounds(x=[(0, 100), (-4e6, 5e6)]))
    assert np.sort(model.cluster_centers_[:, 0]) == pytest.approx([20, 80], abs=1)


def test_public_numbers_alone_decide_what_is_asked():
    few = blobs(300, 2, 3)[1]
    many = blobs(200_000, 2, 3)[1]
    names = [one.statistic["name"] for one in fitted(3, few).releases_]
    assert names == ["GridCounts", "NearestCounts"]
    asked = [(one.statistic["name"], one.shares_spent) for one in fitted(3, many).releases_]
    steps = [("ResidualMoments", 1)] * 3
    assert asked == [("GridCounts", 6), ("LeafSums", 6), *steps, ("NearestCounts", 1)]
    wide = [one.shares_spent for one in fitted(3, blobs(300, 5, 3)[1]).releases_]
    assert sum(wide) == 16
    assert bins_for(1_256_384, 450.0, 2) == 37
    assert (bins_for(10, 1e6, 2), bins_for(10**12, 1.0, 2), bins_for(10**12, 1.0, 3)) == (2, 64, 16)


@pytest.mark.parametrize("d", [1, 2, 5])
@pytest.mark.parametrize("k", [1, 25])
@pytest.mark.parametrize("value", [0.3, 1e300, np.nan])
def test_hopeless_records_give_a_usable_model(d, k, value):
    """More clusters than records, all points equal, far outside, missing."""
    data = np.full((20, d), value)
    for epsilon in (0.01, 1e4):
        model = fitted(k, data, epsilon=epsilon)
        assert model.cluster_centers_.shape == (k, d)
        assert (np.abs(model.cluster_centers_) <= 1).all()
        assert np.isfinite(model.score(np.nan_to_num(data)))
        assert np.isnan(model.score(data)) == np.isnan(value)
    if not np.isnan(value):  # else nothing is known of any place
        where = min(value, 1.0)
        assert np.abs(model.cluster_centers_ - where).max(axis=1).min() < 0.6


def test_a_constant_column_and_a_norm():
    data = blobs(20_000, 5, 3)[1]
    data[:, 2] = 0.25
    model = fitted(3, data)
    assert model.cluster_centers_[:, 2] == pytest.approx(0.25, abs=0.05)
    ball = fitted(3, data, bounds=reticent.Bounds(x=[(-1, 1)] * 5, norm=1.5))
    assert ball.score(data) == pytest.approx(model.score(data) / 1.5**2, rel=0.05)


@pytest.mark.parametrize("k", [0, -1, True, 1.5, "2", 2000])
def test_wrong_numbers_of_clusters_are_refused(k):
    with pytest.raises(reticent.BadInput, match="n_clusters"):
        fitted(k, np.zeros((5, 2)))


def test_noise_far_away_is_not_a_cluster():
    rng = np.random.default_rng(0)
    counts = rng.normal(size=(20, 20)) * 10
    counts[4:6, 4:6] += 5000
    points, weights = significant_points(counts.ravel(), 20, 2, 10.0)
    inside = (np.abs(points - GridCounts(2, 20).centres()[84]) < 0.35).all(axis=1)
    assert weights[inside].sum() > 0.99 * weights.sum()


def test_what_is_spread_thinly_is_seen_as_a_whole():
    """A hundred records in each of many cells with a noise of 200.

    No cell stands out, all together do.
    """
    rng = np.random.default_rng(1)
    counts = rng.normal(size=(16, 16)) * 200
    counts[8:, 8:] += 300
    points, weights = significant_points(counts.ravel(), 16, 2, 200.0)
    assert weights[(points > 0).all(axis=1)].sum() == pytest.approx(64 * 300, rel=0.3)


def test_weighted_points_are_clustered_as_repeated_ones():
    points = np.array([[0.0], [1.0], [10.0], [11.0]])
    found = weighted_kmeans(points, np.array([3.0, 1.0, 1.0, 1.0]), 2, np.random.default_rng(0))
    assert np.sort(found.ravel()) == pytest.approx([0.25, 10.5])
    for weights in (np.zeros(4), np.array([1.0, 0, 0, 0])):  # fewer points than centres
        assert weighted_kmeans(points, weights, 3, np.random.default_rng(0)).shape == (3, 1)


def test_residuals_reach_as_far_as_noise_allows():
    reaches = [residual_radius(10_000, sd, 5, 4) for sd in (1, 20, 1000)]
    assert reaches == sorted(reaches, reverse=True)
    assert (reaches[0], reaches[-1]) == (pytest.approx(500**0.5), 1.2)


def test_empty_cells_stay_empty_however_large_the_budget_is():
    """Noise is cut to whole records: counts are half a record off, and once were believed."""
    rng = np.random.default_rng(4)
    X = np.clip(0.02 * np.exp(1.2 * rng.normal(size=(20_000, 2))) - 0.5, -1, 1)
    given = {"bounds": reticent.Bounds(x=[(-1, 1)] * 2), "delta": 1e-6, "random_state": 0}
    found = reticent.KMeans(6, epsilon=1e5, **given).fit(X)
    best = cluster.KMeans(6, n_init=5, random_state=0).fit(X).inertia_ / len(X)
    assert -found.score(X) < 1.02 * best


def test_centres_that_would_be_lost_in_noise_cost_no_more_than_one():
    """Forty columns, few records: centres lie at the mean and along the axes."""
    rng = np.random.default_rng(5)
    X = np.clip(0.3 + 0.2 * rng.normal(size=(1500, 40)), -1, 1)
    given = {"bounds": reticent.Bounds(x=[(-1, 1)] * 40), "delta": 1e-6}
    costs = []
    for seed in range(3):
        found = reticent.KMeans(10, epsilon=0.5, random_state=seed, **given).fit(X)
        assert [one.shares_spent for one in found.releases_][-2:] == [3, 1]
        costs.append(-found.score(X))
    assert np.mean(costs) < 1.3 * X.var(axis=0).sum()


@pytest.mark.parametrize(("epsilon", "most"), [(0.1, 2.45), (0.3, 1.8)])
def test_at_small_budgets_clusters_cost_no_more_than_one_private_mean(epsilon, most):
    """Digits, ten clusters: one exact centre costs 1.85 times what k-means does without privacy.

    At ε = .1 a private mean costs more than that.
    """
    X = load_digits().data
    bounds = reticent.Bounds(x=(0, 16))
    params = {"bounds": bounds, "epsilon": epsilon, "delta": 1e-5}
    ours, one = [], []
    for seed in range(3):
        found = reticent.KMeans(10, **params, random_state=seed).fit(X).cluster_centers_
        mean = reticent.PrivateMean(**params, random_state=seed).fit(X).mean_
        ours.append(np.min([((X - c) ** 2).sum(axis=1) for c in found], axis=0).mean())
        one.append(((X - mean) ** 2).sum(axis=1).mean())
    assert np.mean(ours) < np.mean(one)
    assert np.mean(ours) < most * 648.4  # squared distance of k-means without privacy


def test_single_records_far_away_count_where_there_is_no_noise():
    """Counts of leaves are finer than whole records, other than those of cells."""
    rng = np.random.default_rng(3)
    X = np.clip(np.exp(rng.normal(size=(5_000, 2)) @ [[1.0, 0.5], [0.0, 0.5]]), 0, 100)
    model = reticent.KMeans(
        5, bounds=reticent.Bounds(x=[(0, 100)] * 2), epsilon=1e6, delta=2e-5, random_state=0
    ).fit(X)
    away = np.linalg.norm(X[:, None] - model.cluster_centers_, axis=2).min(axis=1)
    exact = cluster.KMeans(5, n_init=10, random_state=0).fit(X).inertia_
    assert (away**2).sum() < 1.02 * exact
