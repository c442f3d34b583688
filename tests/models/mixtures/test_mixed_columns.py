"""Mixtures, clusters and factors of words, dates, whole numbers and cycles."""

from datetime import date, timedelta

import numpy as np
import pandas as pd
import pytest

import reticent
from reticent.privacy.row_maps.features.column_encoding import encode

BOUNDS = reticent.Bounds(
    x={
        "sex": ["F", "M"],
        "ward": list("ABCD"),
        "stage": reticent.Ordered(["I", "II", "III"]),
        "age": (0, 100),
        "visits": reticent.Whole(0, 60),
        "day": (date(2020, 1, 1), date(2024, 12, 31)),
    }
)
WORDS = ("sex", "ward", "stage")


def table(n=10_000, seed=0):
    """Three latent classes; a tenth of the records lack a word, another tenth an age."""
    rng = np.random.default_rng(seed)
    part = rng.choice(3, size=n, p=[0.5, 0.3, 0.2])

    def words(levels, chances):
        ends = np.cumsum(np.array(chances), axis=1)[part]
        return np.array(levels)[(rng.uniform(size=n)[:, None] > ends[:, :-1]).sum(axis=1)]

    days = np.clip(rng.normal(np.array([300, 700, 1000])[part], 100), 0, 1825)
    frame = pd.DataFrame(
        {
            "sex": words(["F", "M"], [[0.8, 0.2], [0.3, 0.7], [0.5, 0.5]]),
            "ward": words(
                list("ABCD"), [[0.7, 0.2, 0.05, 0.05], [0.1, 0.6, 0.2, 0.1], [0.05, 0.05, 0.1, 0.8]]
            ),
            "stage": words(
                ["I", "II", "III"], [[0.8, 0.15, 0.05], [0.3, 0.4, 0.3], [0.05, 0.25, 0.7]]
            ),
            "age": np.clip(rng.normal(np.array([12, 55, 75])[part], 9), 0, 100),
            "visits": np.clip(np.round(rng.normal(np.array([5, 20, 30])[part], 4)), 0, 60),
            "day": [date(2020, 1, 1) + timedelta(days=int(v)) for v in days],
        }
    )
    complete = frame.copy()
    frame.loc[rng.uniform(size=n) < 0.1, "ward"] = "unknown"
    frame.loc[rng.uniform(size=n) < 0.1, "age"] = np.nan
    return complete, frame


def distance(drawn, truth, columns):
    """Total variation distance of the margins of some columns."""
    a = drawn.groupby(list(columns)).size() / len(drawn)
    b = truth.groupby(list(columns)).size() / len(truth)
    return float(a.sub(b, fill_value=0).abs().sum() / 2)


@pytest.mark.parametrize(("epsilon", "one_way", "two_way"), [(1.0, 0.04, 0.07), (10.0, 0.02, 0.05)])
def test_synthetic_tables_have_the_margins_and_moments_of_the_records(epsilon, one_way, two_way):
    complete, frame = table()
    model = reticent.GaussianMixture(
        3, bounds=BOUNDS, epsilon=epsilon, delta=1e-6, random_state=0
    ).fit(frame)
    assert sum(release.shares_spent for release in model.releases_) == 160
    drawn = pd.DataFrame(model.sample(20_000, random_state=0))
    for i, word in enumerate(WORDS):
        assert distance(drawn, complete, [word]) < one_way
        for other in WORDS[i + 1 :]:
            assert distance(drawn, complete, [word, other]) < two_way
    for column in ("age", "visits"):
        spread = complete[column].std()
        assert drawn[column].mean() == pytest.approx(complete[column].mean(), abs=0.05 * spread)
        assert drawn[column].std() == pytest.approx(spread, rel=0.06)
    assert drawn["visits"].map(type).eq(int).all()
    days = [date.fromisoformat(day).toordinal() for day in drawn["day"]]
    truth = [day.toordinal() for day in complete["day"]]
    assert np.mean(days) == pytest.approx(np.mean(truth), abs=20)
    assert np.std(days) == pytest.approx(np.std(truth), rel=0.06)
    lacking = (frame["ward"] == "unknown") | frame["age"].isna()
    assert np.array_equal(model.predict(frame) == -1, lacking)
    assert np.isfinite(model.score(frame))
    again = reticent.GaussianMixture.from_releases(model.releases_, **model.get_params(deep=False))
    assert np.array_equal(again.means_, model.means_)
    assert again.sample(5, random_state=1) == model.sample(5, random_state=1)


def test_a_table_of_words_and_cycles_alone():
    complete, frame = table(4000)
    frame["hour"] = np.random.default_rng(1).normal(1, 2, size=len(frame)) % 24
    bounds = reticent.Bounds(
        x={"sex": ["F", "M"], "ward": list("ABCD"), "hour": reticent.Cyclic(0, 24)}
    )
    model = reticent.GaussianMixture(2, bounds=bounds, epsilon=5, delta=1e-6, random_state=0)
    drawn = pd.DataFrame(model.fit(frame).sample(4000, random_state=0))
    assert distance(drawn, complete, ["ward"]) < 0.06
    turn = np.exp(2j * np.pi * drawn["hour"] / 24).mean()
    assert np.angle(turn) * 24 / (2 * np.pi) == pytest.approx(1, abs=0.5)


def test_clusters_and_factors_of_mixed_columns():
    complete, frame = table(8000)
    common = {"bounds": BOUNDS, "epsilon": 5, "delta": 1e-6, "random_state": 0}
    clusters = reticent.KMeans(3, **common).fit(frame)
    assert clusters.encoded_names_[:3] == ["sex=M", "ward=A", "ward=B"]
    wards = clusters.cluster_centers_[:, 1:5]
    assert wards.sum(axis=1) == pytest.approx(np.ones(3), abs=0.2), "shares of the levels"
    assert (clusters.predict(frame) == -1).sum() == np.isnan(clusters.transform(frame)[:, 0]).sum()
    factors = reticent.FactorAnalysis(2, rotation="varimax", **common).fit(frame)
    shares = dict(zip(factors.encoded_names_, factors.mean_, strict=True))
    assert shares["sex=M"] == pytest.approx((complete["sex"] == "M").mean(), abs=0.04)
    assert shares["ward=A"] == pytest.approx((complete["ward"] == "A").mean(), abs=0.06)
    with pytest.raises(reticent.BadInput, match="GaussianMixture"):
        factors.sample(3)
    plain = reticent.FactorAnalysis(2, **common).fit(frame)
    assert plain.get_covariance() == pytest.approx(factors.get_covariance(), rel=1e-6, abs=1e-9)
    with pytest.raises(reticent.BadInput, match="rotation"):
        reticent.FactorAnalysis(2, rotation="oblimin", **common).fit(frame)


def test_a_cycle_is_a_circle_and_levels_are_one_apart():
    hours = np.linspace(-1, 1, 401)
    cosine, sine = encode(hours[:, None], (-1,)).T
    assert cosine == pytest.approx(np.cos(np.pi * (hours + 1)) / 2, abs=1e-9)
    assert sine == pytest.approx(np.sin(np.pi * (hours + 1)) / 2, abs=1e-9)
    for levels in (2, 5):
        middles = (2 * np.arange(levels) + 1 - levels) / levels
        rows = encode(middles[:, None], (levels,))
        assert np.linalg.norm(rows[0] - rows[-1]) == pytest.approx(1)


def test_how_many_latent_classes_there_are_is_found_from_releases():
    rng = np.random.default_rng(4)
    old = rng.random(8000) < 0.4
    table = {
        "age": np.where(old, 60, 15) + 5 * rng.normal(size=8000),
        "height": np.where(old, 170, 120) + 6 * rng.normal(size=8000),
        "word": np.where(rng.random(8000) < np.where(old, 0.9, 0.1), "a", "b"),
    }
    bounds = reticent.Bounds(x={"age": (0, 100), "height": (50, 250), "word": ["a", "b"]})
    model = reticent.GaussianMixture(bounds=bounds, epsilon=1, delta=1e-6, random_state=0)
    model.fit(pd.DataFrame(table))
    assert model.n_components_ == 2
    assert np.sort(model.weights_) == pytest.approx([0.4, 0.6], abs=0.05)
    again = reticent.GaussianMixture.from_releases(model.releases_, **model.get_params(deep=False))
    assert np.array_equal(again.means_, model.means_)
