"""GaussianMixture.

What it finds, how it gives way, and that nothing depends on records but through releases.
"""

import math
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy.special import softmax
from sklearn.base import clone

import reticent
from reticent.privacy.row_maps.mixture_moments import _chances
from reticent.privacy.statistics.assignment_moments import (
    RESPONSIBILITY_BITS,
    ROW_BITS,
    AssignmentMoments,
)

BOX = reticent.Bounds(x=(-10, 10))


def two(n=4000, d=3, seed=0):
    """Two round heaps, 40 % and 60 %."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, d))
    x[: int(0.4 * n)] += 2.5
    x[int(0.4 * n) :] -= 2.5
    return x[rng.permutation(n)]


def model(parts=2, epsilon=4.0, **params):
    return reticent.GaussianMixture(
        parts, **{"bounds": BOX, "epsilon": epsilon, "delta": 1e-6, "random_state": 1} | params
    )


@pytest.fixture(scope="module", params=["full", "tied", "diag", "spherical"])
def fitted(request):
    return model(covariance_type=request.param).fit(two())


def test_it_finds_two_heaps(fitted):
    order = np.argsort(fitted.means_[:, 0])
    assert fitted.weights_[order] == pytest.approx([0.6, 0.4], abs=0.03)
    assert fitted.means_[order] == pytest.approx(np.array([[-2.5] * 3, [2.5] * 3]), abs=0.2)
    assert fitted.covariances_ == pytest.approx(np.array([np.eye(3)] * 2), abs=0.35)
    new = two(1000, seed=9)
    assert (fitted.predict(new) == order[(new.sum(axis=1) > 0).astype(int)]).mean() > 0.99
    assert fitted.predict_proba(new).sum(axis=1) == pytest.approx(np.ones(1000))


def test_covariances_have_the_shape_that_was_asked_for(fitted):
    off = fitted.covariances_ - np.array([np.diag(np.diag(c)) for c in fitted.covariances_])
    if fitted.covariance_type in ("diag", "spherical"):
        assert not off.any()
    if fitted.covariance_type == "tied":
        assert fitted.covariances_[0] == pytest.approx(fitted.covariances_[1])
    if fitted.covariance_type == "spherical":
        assert np.diagonal(fitted.covariances_[0]) == pytest.approx(
            np.full(3, fitted.covariances_[0, 0, 0])
        )


def test_rebuilt_from_releases_bit_for_bit_without_data(fitted, tmp_path):
    again = reticent.GaussianMixture.from_releases(
        fitted.releases_, **fitted.get_params(deep=False)
    )
    fitted.save(tmp_path / "m", overwrite=True)
    for other in (again, reticent.load(tmp_path / "m")):
        for name in ("weights_", "means_", "covariances_"):
            assert np.array_equal(getattr(fitted, name), getattr(other, name))
    assert (
        sum(release.shares_spent for release in fitted.releases_) == fitted.releases_[0].event.count
    )


def test_the_same_from_arrays_parquet_and_dask(tmp_path):
    import dask.dataframe as dd

    data = two(3000)
    frame = pd.DataFrame(data, columns=["a", "b", "c"])
    frame.to_parquet(tmp_path / "t.parquet")
    by_name = {"bounds": reticent.Bounds(x=dict.fromkeys("abc", (-10, 10)))}
    expected = model().fit(data)
    assert expected.n_components_ == 2
    for table in (tmp_path / "t.parquet", dd.from_pandas(frame, npartitions=3)):
        found = model(**by_name).fit(reticent.scan(table))
        assert all(
            np.array_equal(a.value, b.value)
            for a, b in zip(found.releases_, expected.releases_, strict=True)
        )


def test_records_that_lack_a_value_add_nothing():
    """Half of the records lack a value; weights and covariances are those of the others."""
    data = two(12_000)
    data[::2, 1] = np.nan
    found = model().fit(data)
    order = np.argsort(found.means_[:, 0])
    assert found.weights_[order] == pytest.approx([0.6, 0.4], abs=0.03)
    assert found.covariances_ == pytest.approx(np.array([np.eye(3)] * 2), abs=0.35)
    others = model().fit(data[1::2])
    assert found.pooled_covariance_ == pytest.approx(others.pooled_covariance_, rel=0.15)
    query = two(4)
    query[1, 2] = np.nan
    assert found.predict(query)[1] == -1
    assert np.isnan(found.predict_proba(query)[1]).all()
    assert np.isfinite(found.score(query))


@pytest.mark.parametrize("d", [1, 2])
def test_one_or_two_columns_are_fitted_to_a_histogram(d):
    found = model().fit(two(8000, d))
    assert [release.statistic["name"] for release in found.releases_][4] == "CellCounts"
    assert np.sort(found.means_[:, 0]) == pytest.approx([-2.5, 2.5], abs=0.2)
    again = reticent.GaussianMixture.from_releases(found.releases_, **found.get_params(deep=False))
    assert np.array_equal(again.means_, found.means_)


def test_one_normal_law_is_not_taken_for_several():
    data = np.random.default_rng(3).normal(size=(3000, 3))
    test = np.random.default_rng(4).normal(size=(2000, 3))
    several = model(3, 1.0).fit(data)
    single = model(1, 1.0).fit(data)
    assert several.score(test) >= single.score(test) - 0.1


def test_parts_that_the_budget_cannot_carry_are_left_out():
    """Decided by public numbers: the same for all records."""
    found = {
        model(5, 0.5).fit(data).n_components_
        for data in (two(200), np.zeros((200, 3)), np.full((200, 3), np.nan))
    }
    assert found == {1}


NASTY = {
    "more components than records": (two(5), 8),
    "all points equal": (np.full((300, 3), 2.0), 2),
    "all on the edge": (np.full((300, 3), 1e9), 2),
    "not numbers": (np.full((300, 3), np.nan), 2),
    "one column": (two(300, 1), 3),
    "a constant column": (np.hstack([two(2000, 2), np.zeros((2000, 1))]), 2),
    "far outside": (np.vstack([two(2000), np.full((20, 3), 1e300)]), 2),
    "an empty component": (two(2000), 6),
    "one component": (two(300), 1),
    "one record": (two(1), 2),
}


@pytest.mark.parametrize("name", NASTY)
@pytest.mark.parametrize("epsilon", [0.1, 20.0])
def test_nothing_makes_it_fail_or_singular(name, epsilon):
    data, parts = NASTY[name]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = model(parts, epsilon, random_state=2).fit(data)
    scores = found.score_samples(np.vstack([data, two(20, data.shape[1])]))
    assert np.array_equal(np.isnan(scores[: len(data)]), np.isnan(data).any(axis=1))
    assert np.isfinite(scores[len(data) :]).all()
    assert (np.linalg.eigvalsh(found.covariances_) > 0).all()
    assert found.weights_.sum() == pytest.approx(1)
    assert (found.weights_ > 0).all()
    assert np.isfinite(found.sample(50, random_state=0)).all()


def test_samples_lie_within_the_bounds_and_are_repeatable():
    narrow = reticent.Bounds(x={"age": (0, 100), "height": (150, 190)})
    data = pd.DataFrame(
        np.random.default_rng(5).normal([10, 170], [15, 15], size=(3000, 2)),
        columns=["age", "height"],
    )
    found = model(2, bounds=narrow).fit(data)
    drawn = found.sample(5000, random_state=7)
    assert (drawn >= [0, 150]).all()
    assert (drawn <= [100, 190]).all()
    assert np.array_equal(drawn, found.sample(5000, random_state=7))
    assert not np.array_equal(drawn, found.sample(5000))
    assert drawn.mean(axis=0) == pytest.approx(
        np.clip(data, [0, 150], [100, 190]).mean(axis=0).to_numpy(), abs=4
    )
    single = model(1, bounds=narrow).fit(data)
    drawn = single.sample(40_000, random_state=0)
    assert drawn.mean(axis=0) == pytest.approx(single.means_[0], abs=0.3)
    sd = np.sqrt(np.diagonal(single.covariances_[0]))
    assert drawn.std(axis=0) == pytest.approx(sd, rel=0.02), "truncated, and as wide as it was"
    ball = model(1, bounds=reticent.Bounds(x=[(-1, 1)] * 2, norm=1.0)).fit(
        np.random.default_rng(6).normal(size=(500, 2))
    )
    assert (np.linalg.norm(ball.sample(500, random_state=0), axis=1) <= 1 + 1e-9).mean() > 0.95
    for wrong in (0, -1, 1.5, True):
        with pytest.raises(reticent.BadInput):
            found.sample(wrong)


@pytest.mark.parametrize(
    "params",
    [
        {"n_components": 0},
        {"n_components": 1.5},
        {"n_components": True},
        {"n_components": 10**6},
        {"covariance_type": "round"},
        {"delta": 0.0},
        {"n_components": 100, "bounds": reticent.Bounds(x=[(0, 1)] * 400)},
    ],
    ids=str,
)
def test_wrong_parameters_are_refused_before_any_charge(params, tmp_path):
    book = reticent.Ledger(tmp_path / "b.db")
    book.open("people", 9, 1e-5)
    wrong = model(ledger=str(tmp_path / "b.db"), dataset="people").set_params(**params)
    with pytest.raises(reticent.BadInput):
        wrong.fit(np.zeros((10, 400 if "bounds" in params else 3)))
    assert book.history("people") == []


def test_a_search_over_the_number_of_components():
    search = reticent.PrivateSearch(
        reticent.GaussianMixture(),
        {"n_components": [1, 2]},
        expected_runs=3,
        bounds=BOX,
        epsilon=8,
        delta=1e-6,
        random_state=3,
    ).fit(two(3000))
    assert search.best_candidate_ in ({"n_components": 1}, {"n_components": 2})
    assert search.sample(10, random_state=0).shape == (10, 3)
    again = reticent.PrivateSearch.from_releases(search.releases_, **search.get_params(deep=False))
    assert np.array_equal(again.best_estimator_.means_, search.best_estimator_.means_)


def ggg(epsilon, delta, parts, iterations):
    """Noise multiplier of each release of the paper's scheme under zCDP.

    J(2K+1) Gaussian mechanisms (Sec 5).
    """
    log = math.log(1 / delta)
    rho = (math.sqrt(log + epsilon) - math.sqrt(log)) ** 2
    return math.sqrt(iterations * (2 * parts + 1) / (2 * rho))


@pytest.mark.parametrize("epsilon", [0.1, 0.3, 0.5, 1.0, 2.0, 4.0])
def test_joint_releases_need_less_noise_than_the_papers_scheme(epsilon):
    """K = 3, J = 10, δ = 1e-4.

    Noise in Σγxxᵀ at the same (ε, δ), 2.65 times lower on the diagonal, 3.75 off it.
    """

    class Joint(AssignmentMoments):
        def responsibilities(self, records):
            raise AssertionError("its sensitivity is a matter of weights: no record is read")

    one = Joint(3, 10, "full", False, (1, 4, 4))
    unit = 2.0 ** (RESPONSIBILITY_BITS + 2 * ROW_BITS)
    ours = reticent.calibrate(epsilon, 1e-4, releases=10) * math.sqrt(one.sensitivity2 / 4) / unit
    # Eq (17): sensitivity 2 of a covariance times its count; the same noise everywhere
    theirs = 2 * ggg(epsilon, 1e-4, 3, 10)
    assert theirs / ours >= 2.65
    assert theirs / (ours / math.sqrt(2)) >= 3.75


def test_chances_from_a_table_are_right_and_a_matter_of_each_record():
    """As right as steps of 2^-12 can tell.

    The same bits alone and among others, for logits of any size, sure or not.
    """
    for spread in (2, 5, 30):  # with most records unsure, about half, and few
        logits = np.random.default_rng(0).normal(0, spread, size=(4, 500))
        logits[:, :3] = [[0, 0, -1e300], [0, -750, 1e300], [0, 5e4, 0], [0, 0, 0]]
        found = _chances(logits.copy())
        right = softmax(logits, axis=0)
        sure = found.max(axis=0) == 1
        assert np.abs(found - right)[:, ~sure].max() < 2**-14
        # the other three have nothing on the grid
        assert (4096 * right[:, sure] * (1 + 1e-4) < 1).sum() == 3 * sure.sum()
        assert 0 < sure.sum() < 500
        assert found.sum(axis=0) == pytest.approx(1)
        alone = [_chances(logits[:, i : i + 1].copy())[:, 0] for i in range(500)]
        assert np.array_equal(found.T, alone)


def test_priors_are_applied_to_the_releases_alone():
    """The same releases.

    Weights nearer to equal, means and covariances nearer to those of all records.
    """
    rng = np.random.default_rng(5)
    data = np.vstack([rng.normal(-2, 1, size=(4500, 2)), rng.normal(2, 1, size=(500, 2))])
    given = {"bounds": reticent.Bounds(x=(-8, 8)), "epsilon": 2, "delta": 1e-6, "random_state": 1}
    priors = {
        "weight_concentration_prior": 1e4,
        "mean_precision_prior": 1e7,
        "degrees_of_freedom_prior": 1e7,
    }
    plain = reticent.GaussianMixture(2, **given).fit(data)
    held = reticent.GaussianMixture(2, **given, **priors).fit(data)
    assert [one.value.tolist() for one in plain.releases_] == [
        one.value.tolist() for one in held.releases_
    ]
    assert held.weights_.min() > 0.35 > plain.weights_.min()
    assert (
        np.abs(held.means_ - plain.pooled_mean_).max()
        < 0.01
        < np.abs(plain.means_ - plain.pooled_mean_).max()
    )
    assert held.covariances_ == pytest.approx(
        np.array([plain.pooled_covariance_] * 2), rel=0.02, abs=0.02
    )


@pytest.mark.parametrize(
    "prior",
    [
        *(
            {"weight_concentration_prior": 0.5},
            {"mean_precision_prior": -1},
            {"degrees_of_freedom_prior": 1},
        ),
        *(
            {"weight_concentration_prior": np.nan},
            {"mean_precision_prior": True},
            {"degrees_of_freedom_prior": "2"},
        ),
    ],
    ids=str,
)
def test_priors_that_are_none_are_refused(prior):
    with pytest.raises(reticent.BadInput, match=next(iter(prior))):
        reticent.GaussianMixture(
            2, bounds=reticent.Bounds(x=(-8, 8)), epsilon=1, delta=1e-6, **prior
        ).fit(np.zeros((9, 2)))


@pytest.mark.parametrize(("n", "value"), [(1, 0.0), (5, 0.2), (200, 0.2), (200, 1e9)])
def test_few_records_do_not_seem_to_lie_at_a_point(n, value):
    """Noisy counts of lengths once said so.

    The law was sure of a wrong place, with log-densities below −10⁵.
    """
    for seed in range(3):
        given = {
            "bounds": reticent.Bounds(x=[(-1, 1)] * 2),
            "epsilon": 0.5,
            "delta": 1e-6,
            "random_state": seed,
        }
        model = reticent.GaussianMixture(3, **given).fit(np.full((n, 2), value))
        assert model.score(np.clip(np.full((n, 2), value), -1, 1)) > -20
        assert (np.abs(model.means_) <= 1).all()


def test_where_centres_are_clear_more_is_spent_on_covariances():
    """By public numbers; all that was paid is used either way."""
    rng = np.random.default_rng(5)
    X = np.vstack([rng.normal(-0.4, 0.1, size=(6000, 3)), rng.normal(0.4, 0.1, size=(6000, 3))])
    asked = {}
    for epsilon in (0.2, 8.0):
        model = reticent.GaussianMixture(
            2, bounds=reticent.Bounds(x=(-1, 1)), epsilon=epsilon, delta=1e-6, random_state=0
        ).fit(X)
        asked[epsilon] = [
            (one.shares_spent, one.statistic.get("weights")) for one in model.releases_
        ]
        assert sum(times for times, _ in asked[epsilon]) == 160
    each = {
        epsilon: [one for one in some if one[1] in ([1, 2, 8], [1, 4, 32])]
        for epsilon, some in asked.items()
    }
    # a third for steps of EM and one histogram of lengths, two thirds for the last look and another
    assert {weights[2] for _, weights in each[0.2]} == {8}
    assert {weights[2] for _, weights in each[8.0]} == {32}
    assert [sum(shares for shares, _ in looks[:-1]) for looks in each.values()] == [19, 29]
    assert [looks[-1][0] for looks in each.values()] == [40, 59]
    assert 1 < len(each[0.2]) < len(each[8.0])


def long_tailed(law, n):
    rng = np.random.default_rng(3)
    if law == "t2":
        return rng.standard_t(2, size=(n, 2))
    if law == "lognormal":
        return np.exp(1.2 * rng.normal(size=(n, 2)))
    if law == "mostly zero":
        return np.where(rng.random((n, 2)) < 0.9, 0.0, rng.exponential(5, size=(n, 2)))
    return rng.uniform(-30, 30, size=(n, 2))


@pytest.mark.parametrize("law", ["t2", "lognormal", "mostly zero", "even"])
def test_one_component_tends_to_mean_and_covariance_of_any_law(law):
    X = np.clip(long_tailed(law, 5000), -60, 60)
    found = reticent.GaussianMixture(
        1, bounds=reticent.Bounds(x=[(-60, 60)] * 2), epsilon=1e6, delta=1e-6, random_state=0
    ).fit(X)
    sd = X.std(axis=0)
    assert found.means_[0] / sd == pytest.approx(X.mean(axis=0) / sd, abs=0.01)
    expected = np.cov(X.T) / np.outer(sd, sd)
    assert found.covariances_[0] / np.outer(sd, sd) == pytest.approx(expected, abs=0.02)


def test_a_mixture_that_misses_a_tail_loses_against_one_normal_distribution():
    """Three clear heaps, and two records in a hundred far away, which the heaps make impossible."""
    rng = np.random.default_rng(1)
    heaps = np.array([[-4, -3, 0, 0], [0, 4, 0, 0], [4, -2, 0, 0]])
    X = heaps[rng.choice(3, 10_000)] + rng.normal(size=(10_000, 4))
    X[:200] = 15 * rng.standard_t(2, size=(200, 4))
    X = np.clip(X, -60, 60)
    given = {"bounds": reticent.Bounds(x=[(-60, 60)] * 4), "epsilon": 100, "delta": 1e-6}
    three = reticent.GaussianMixture(3, random_state=0, **given).fit(X)
    one = reticent.GaussianMixture(1, random_state=0, **given).fit(X)
    assert three.score(X) > one.score(X) - 0.1


def heaps(centres, n=6000, seed=0, sd=0.8):
    """Round heaps at these centres (K, d), of equal sizes."""
    rng = np.random.default_rng(seed)
    centres = np.asarray(centres, dtype=float)
    places = centres[rng.integers(len(centres), size=n)]
    return places + sd * rng.normal(size=places.shape)


CENTRES = {
    "one column": [[-6.0], [0.0], [6.0]],
    "two columns": [[-5, -5], [0, 4], [5, -3], [6, 6]],
    "three columns": [[-5, 0, 0], [5, 0, 0], [0, 6, 3]],
}


@pytest.mark.parametrize("columns", CENTRES)
def test_how_many_components_there_are_is_found_from_releases(columns):
    centres = CENTRES[columns]
    data, new = heaps(centres), heaps(centres, seed=99)
    found = model(None, 1.0).fit(data)
    assert found.n_components is None
    assert len(centres) <= found.n_components_ <= len(centres) + 1
    assert found.score(new) > model(len(centres), 1.0).fit(data).score(new) - 0.05
    for centre in centres:
        assert np.linalg.norm(found.means_ - centre, axis=1).min() < 0.5
    paid = found.releases_[0].event.count
    assert sum(release.shares_spent for release in found.releases_) <= paid


@pytest.mark.parametrize("d", [1, 2, 3, 8])
def test_one_heap_is_told_as_well_where_no_number_was_asked_for(d):
    one = np.zeros((1, d))
    data, new = heaps(one, seed=d), heaps(one, seed=99)
    found = model(None, 1.0).fit(data)
    assert found.n_components_ <= 3
    assert found.score(new) > model(1, 1.0).fit(data).score(new) - 0.05


def test_a_chosen_number_is_rebuilt_bit_for_bit_and_cloned(tmp_path):
    found = model(None, 1.0).fit(heaps(CENTRES["three columns"]))
    assert clone(found).get_params()["n_components"] is None
    found.save(tmp_path / "m")
    again = reticent.GaussianMixture.from_releases(found.releases_, **found.get_params(deep=False))
    for other in (again, reticent.load(tmp_path / "m")):
        assert other.n_components is None
        assert np.array_equal(other.means_, found.means_)
        assert np.array_equal(other.covariances_, found.covariances_)


def test_a_chosen_number_has_the_type_of_covariance_asked_for():
    found = model(None, 1.0, covariance_type="tied").fit(heaps(CENTRES["three columns"]))
    assert found.n_components_ == 3
    assert found.covariances_[0] == pytest.approx(found.covariances_[2])


def test_where_noise_hides_covariances_components_share_one():
    """40 columns at ε = .2: each covariance has 820 numbers, within the noise."""
    d = 40
    centres = np.zeros((2, d))
    centres[:, :4] = [[3.0] * 4, [-3.0] * 4]
    found = model(2, 0.2).fit(heaps(centres, 6000))
    if found.n_components_ == 2:
        assert found.covariances_[0] == pytest.approx(found.covariances_[1])
    stages = [release.statistic for release in found.releases_]
    assert not any(one.get("second") == "full" and not one["together"] for one in stages)
