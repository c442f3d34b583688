"""Means, histograms, correlations, mixtures, clusters and factors.

Each number shown is the model's, wherever it is shown.
"""

import json

import numpy as np
import pandas as pd
import pytest

import reticent
from reticent.reporting.presenter import SCREEN
from reticent.reporting.presenters.clusters import ClusterPresenter
from reticent.reporting.presenters.descriptive import (
    CovariancePresenter,
    HistogramPresenter,
    MeanPresenter,
)
from reticent.reporting.presenters.factors import ComponentPresenter, FactorPresenter
from reticent.reporting.presenters.mixture import MixturePresenter
from reticent.reporting.registry import presenter_of
from tests.support.prose import says
from tests.support.stand_ins import Bare, BareRelease, printed_summary, simple

RANGES = [(0, 100), (-1, 1)]
NAMES = ["age", "mood"]


@pytest.fixture(autouse=True)
def eighty_letters(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")


def means(**values):
    return simple(
        RANGES,
        NAMES,
        mean_=np.array([41.3719, -0.25]),
        mean_sd_=np.array([0.283, 0.0028]),
        **values,
    )


def test_means_are_shown_and_told_alike(capsys):
    model = means()
    assert MeanPresenter(model).results() == {
        "mean": {
            "age": {"value": 41.3719, "noise_sd": 0.283},
            "mood": {"value": -0.25, "noise_sd": 0.0028},
        }
    }
    shown = printed_summary(capsys, MeanPresenter(model)).splitlines()
    assert [line.split() for line in shown] == [
        ["column", "mean", "±", "privacy", "noise"],
        ["age", "41.37", "±", "0.28"],
        ["mood", "-0.2500", "±", "0.0028"],
    ]
    assert len({len(line.rstrip()) for line in shown}) == 1, "numbers end below each other"
    (table,) = MeanPresenter(model).sections()[0].tables
    assert table.rows == [["age", "41.37 ± 0.28"], ["mood", "-0.2500 ± 0.0028"]]
    (told,) = MeanPresenter(model).quality().sentences
    assert says(told, "± 0.3 %", "range")


@pytest.mark.parametrize(("title", "ranges"), [("Mean of", RANGES[:1]), ("Means of", RANGES)])
def test_one_is_no_plural(title, ranges):
    assert MeanPresenter(simple(ranges)).subject() == title


@pytest.mark.parametrize(
    ("sds", "noted"),
    [((50.1, 1.01), True), ((50.0, 1.01), False), ((50.1, 0.9), False), ((1, 0.01), False)],
)
def test_means_are_called_useless_when_all_of_them_are(sds, noted):
    notes = MeanPresenter(simple(RANGES, NAMES, mean_=np.zeros(2), mean_sd_=np.array(sds))).notes()
    assert bool(notes) == noted
    assert all("--epsilon" in note for note in notes)


def histogram(counts, edges=None, sd=4.0, n=100):
    counts = np.array(counts, dtype=float)
    edges = (
        np.array([np.linspace(0, 100, counts.shape[1] + 1)] * len(counts))
        if edges is None
        else np.array(edges)
    )
    return simple(
        [(0, 100)] * len(counts),
        ["a", "b"][: len(counts)],
        n=n,
        counts_=counts,
        counts_sd_=sd,
        edges_=edges,
    )


def test_counts_are_whole_numbers_and_bars_are_as_long_as_they_are_large(capsys):
    model = histogram([[10.5, -3.5, 36.5, 0.5], [1, 2, 3, 4]])
    first, second = printed_summary(capsys, HistogramPresenter(model)).split("\n\n")
    rows = [line.split() for line in first.splitlines()]
    assert rows[0] == ["a", "count", "±", "4"]
    assert [row[:4] for row in rows[1:]] == [
        ["0", "–", "25", "10"],
        ["25", "–", "50", "0"],
        ["50", "–", "75", "36"],
        ["75", "–", "100", "0"],
    ]
    assert [line.count("█") for line in first.splitlines()[1:]] == [10, 0, 36, 0]
    assert [line.count("█") for line in second.splitlines()[1:]] == [9, 18, 27, 36]
    tables = HistogramPresenter(model).sections()[0].tables
    assert tables[0].head == ["a", "records ± 4"]
    assert [row[1] for row in tables[0].rows] == ["10", "0", "36", "0"]
    assert HistogramPresenter(model).results()["histogram"]["a"]["counts"] == [
        10.5,
        -3.5,
        36.5,
        0.5,
    ]
    told = HistogramPresenter(model).quality().sentences[0]
    assert says(told, "± 4;", "25 records")


def test_counts_below_zero_are_explained_and_only_they():
    assert says(HistogramPresenter(histogram([[1, -0.5]])).remarks(SCREEN)[0], "negative", "noise")
    assert HistogramPresenter(histogram([[1, 0.0]])).remarks(SCREEN) == []


def test_of_many_bins_neighbours_are_put_together_and_none_is_lost(capsys):
    model = histogram([np.arange(50.0)], sd=2.0)
    shown = [
        line.split() for line in printed_summary(capsys, HistogramPresenter(model)).splitlines()
    ]
    assert shown[0][-1] == "3"  # 2·√3
    assert sum(int(row[3].replace(",", "")) for row in shown[1:]) == sum(range(50))
    assert len(shown) - 1 == 17
    assert shown[-1][:3] == ["96", "–", "100"]
    (table,) = HistogramPresenter(model).sections()[0].tables
    assert sum(int(count) for _, count in table.rows) == sum(range(50))
    assert len(table.rows) <= 22
    assert table.head[1] == "records ± 3.5"
    (told,) = HistogramPresenter(histogram([np.arange(50.0)], sd=1.234)).quality().sentences
    assert says(told, "± 1.2;", "2 records")


def test_a_little_noise_is_not_rounded_to_none(capsys):
    assert printed_summary(capsys, HistogramPresenter(histogram([[5, 6]], sd=0.04))).split("\n")[
        0
    ].split() == [
        "a",
        "count",
        "±",
        "0.04",
    ]


def covariance(matrix, sd, names=("a", "b")):
    matrix, spread = np.array(matrix, dtype=float), np.sqrt(np.diag(matrix))
    correlation = matrix / np.where(np.outer(spread, spread) > 0, np.outer(spread, spread), np.inf)
    np.fill_diagonal(correlation, 1.0)
    own = {
        "covariance_": matrix,
        "covariance_sd_": np.array(sd, dtype=float),
        "correlation_": correlation,
    }
    zeros = {"mean_": np.zeros(len(names)), "mean_sd_": np.full(len(names), 0.1)}
    return simple([(0, 10)] * len(names), list(names), **own, **zeros)


def test_the_noise_of_spreads_and_correlations_is_carried_over_to_first_order(capsys):
    """sd(√v) = sd(v)/2√v; sd(c/√(v₁v₂)), all three independent."""
    model = covariance([[4, 3], [3, 9]], [[0.4, 0.3], [0.3, 0.9]])
    found = CovariancePresenter(model).results()
    assert found["standard_deviation"]["a"] == pytest.approx(
        {"value": 2.0, "noise_sd": 0.4 / (2 * 2)}
    )
    assert found["standard_deviation"]["b"] == pytest.approx(
        {"value": 3.0, "noise_sd": 0.9 / (2 * 3)}
    )
    of_c = 0.3 / 6
    of_a = 0.5 * 0.4 / (2 * 4)
    of_b = 0.5 * 0.9 / (2 * 9)
    assert found["correlation_noise_sd"][0][1] == pytest.approx(
        np.sqrt(of_c**2 + of_a**2 + of_b**2)
    )
    assert found["correlation"][0][1] == pytest.approx(0.5)
    assert [found["correlation_noise_sd"][j][j] for j in (0, 1)] == [0, 0]
    json.dumps(found, allow_nan=False)
    text = printed_summary(capsys, CovariancePresenter(model))
    assert [line.split() for line in text.splitlines()[-3:]] == [
        ["correlation", "a", "b"],
        ["a", "1", "±", "0.061"],
        ["b", "0.500", "1"],
    ]
    spreads, pairs = CovariancePresenter(model).sections()[0].tables
    assert [row[2] for row in spreads.rows] == ["2.00 ± 0.10", "3.00 ± 0.15"]
    assert pairs.rows == [["a and b", "0.500 ± 0.061"]]


@pytest.mark.parametrize(
    ("noise", "shown"),
    [(20.0, ["0.50", "2.00"]), (0.5, ["0.500", "0.050"]), (1e-8, ["0.500000", "0.000000"])],
)
def test_correlations_have_two_to_six_digits(capsys, noise, shown):
    """However much noise there is; and spreads below one have theirs as well."""
    model = covariance([[0.25, 0.75], [0.75, 9]], np.array([[0, 1], [1, 0]]) * noise * 0.15)
    first, second = (
        line.split()
        for line in printed_summary(capsys, CovariancePresenter(model)).splitlines()[-2:]
    )
    assert [second[1], first[-1]] == shown
    spreads = [
        line.split()
        for line in printed_summary(capsys, CovariancePresenter(model)).splitlines()[1:3]
    ]
    assert [row[4] for row in spreads] == ["0.500000", "3.000000"]


def test_a_variance_that_came_out_as_zero_has_no_noise_to_tell(capsys):
    model = covariance([[0, 0], [0, 9]], [[0.4, 0.3], [0.3, 0.9]])
    found = CovariancePresenter(model).results()
    assert found["standard_deviation"]["a"] == {"value": 0.0, "noise_sd": None}
    assert found["correlation_noise_sd"][0] == [0.0, None]
    json.dumps(found, allow_nan=False)
    spreads, pairs = CovariancePresenter(model).sections()[0].tables
    assert spreads.rows[0][2] == "0"
    assert pairs.rows == [["a and b", "0.00"]]
    assert "nan" not in printed_summary(capsys, CovariancePresenter(model))


def test_one_column_has_no_table_of_correlations(capsys):
    assert "correlation" not in printed_summary(
        capsys, CovariancePresenter(covariance([[4]], [[0.4]], names=["a"]))
    )


def test_pairs_of_many_columns_are_cut_to_the_first_ten():
    model = covariance(np.eye(12), np.full((12, 12), 0.1), names=[f"c{j}" for j in range(12)])
    assert len(CovariancePresenter(model).sections()[0].tables[1].rows) == 45


def mixture(weights=(0.25, 0.75), asked=2, ranges=RANGES, **own):
    k = len(weights)
    d = len(ranges)
    centres = np.array([[20.0, 0.5], [60.0, -0.5]])[:k, :d]
    spreads = np.array([[16.0, 0.01], [100.0, 0.04]])[:k, :d]
    values = {
        "weights_": np.array(weights),
        "means_": centres,
        "covariances_": np.array([np.diag(one) for one in spreads]),
        "n_components_": k,
        "_params": {"n_components": asked},
        "pooled_mean_": np.array([50.0, -0.25])[:d],
        "pooled_covariance_": np.diag([400.0, 0.25])[:d, :d],
        **own,
    }
    return simple(ranges, NAMES[:d], **values)


def test_parts_of_a_mixture_come_with_the_largest_first(capsys):
    model = mixture()
    (table,) = MixturePresenter(told(model)).sections()[0].tables
    assert table.head == ["share ± privacy noise", "age", "mood"]
    assert table.rows == [
        ["75.00 ± 0.50 %", "60 ± 10", "-0.50 ± 0.20"],
        ["25.00 ± 0.50 %", "20.0 ± 4.0", "0.50 ± 0.10"],
    ]
    assert [
        line.split()[0]
        for line in printed_summary(capsys, MixturePresenter(model)).splitlines()[1:]
    ] == [
        "75.00",
        "25.00",
    ]


def told(model, sd=5.0, n=1000):
    """Give a mixture releases of counts, which say how noisy its weights are."""
    one = BareRelease(
        statistic={"name": "ResidualMoments", "parts": 2},
        value=np.array([250.0, 750.0]),
        sd=np.array([sd]),
        n=n,
        bounds=model.releases_[0].bounds,
    )
    model.releases_ = [*model.releases_, one, one]
    return model


def test_what_a_mixture_implies_for_a_column_stands_beside_what_was_released_of_it():
    model = told(mixture())
    quality = MixturePresenter(model).quality()
    age = quality.tables[0].rows[0]
    mean = 0.25 * 20 + 0.75 * 60
    spread = (0.25 * (16 + (20 - mean) ** 2) + 0.75 * (100 + (60 - mean) ** 2)) ** 0.5
    assert age == ["age", f"{mean:.1f}", "50.0", f"{spread:.1f}", "20.0"]
    assert says(quality.sentences[0], "share", "± 0.5 %")
    assert MixturePresenter(model).results()["weights_noise_sd"] == pytest.approx(5 / 1000)


def test_fewer_parts_than_were_asked_for_and_parts_as_wide_as_the_ranges_are_said():
    assert len(MixturePresenter(mixture()).remarks(SCREEN)) == 1
    assert says(MixturePresenter(mixture(asked=3)).remarks(SCREEN)[1], "3 components", "carries 2")
    assert MixturePresenter(mixture()).notes() == []
    wide = mixture(covariances_=np.array([np.diag([2501.0, 1.01])] * 2))
    assert "--epsilon" in MixturePresenter(wide).notes()[0]
    assert MixturePresenter(mixture(weights=(1.0,))).subject() == "Mixture of 1 normal law for"


def clusters(sizes=(600.0, 390.0, 10.0), sds=(4.0, 4.0, 4.0)):
    centres = np.array([[20.0, 0.5], [60.0, -0.5], [90.0, 0.0]])[: len(sizes)]
    own = {
        "cluster_centers_": centres,
        "cluster_sizes_": np.array(sizes),
        "cluster_sizes_sd_": np.array(sds),
    }
    return simple(RANGES, NAMES, **own)


def test_clusters_have_their_centres_and_sizes(capsys):
    model = clusters()
    found = ClusterPresenter(model).results()["clusters"]
    assert found[1] == {"center": {"age": 60.0, "mood": -0.5}, "records": 390.0, "noise_sd": 4.0}
    rows = [
        line.split() for line in printed_summary(capsys, ClusterPresenter(model)).splitlines()[1:]
    ]
    assert rows[0] == ["0", "600.0", "±", "4.0", "20", "0.5"]
    assert ClusterPresenter(model).sections()[0].tables[0].rows[2] == ["2", "10.0 ± 4.0", "90", "0"]
    assert ClusterPresenter(model).quality().sentences[0].count("± 0.004") == 1
    assert ClusterPresenter(model).subject() == "3 clusters of"
    assert ClusterPresenter(clusters(sizes=(1000.0,), sds=(4.0,))).subject() == "One cluster of"


@pytest.mark.parametrize(
    ("sizes", "words"),
    [
        ((600.0, 390.0, 12.0), None),
        ((600.0, 390.0, 11.9), "cluster 2 has no more"),
        ((600.0, 3.0, -2.0), "clusters 1, 2 have no more"),
    ],
)
def test_clusters_that_noise_may_have_made_up(sizes, words):
    notes = ClusterPresenter(clusters(sizes)).notes()
    assert notes == [] if words is None else notes[0].startswith(words)


def test_a_record_is_told_the_nearest_cluster_and_how_far_it_is():
    model = Bare(
        cluster_centers_=None, transform=lambda block: np.array([[3.0, 1.25, 2.0], [0.5, 9.0, 9.0]])
    )
    assert ClusterPresenter(model).transform_rows(None) == [["1", "1.25"], ["0", "0.5"]]
    assert ClusterPresenter(model).transform_names() == ["cluster", "cluster_distance"]


def factors(components, noise, **own):
    components = np.array(components, dtype=float)
    whole = components.T @ components + np.diag(noise)
    names = [f"c{j}" for j in range(len(noise))]
    values = {
        "components_": components,
        "noise_variance_": np.array(noise),
        "get_covariance": lambda: whole,
    }
    zeros = {"mean_": np.zeros(len(noise)), "mean_sd_": np.full(len(noise), 0.1)}
    return simple([(0, 1)] * len(noise), names, **values, **zeros, **own)


def test_loadings_are_correlations_of_factors_with_columns():
    model = factors([[3.0, 0.0, -1.2]], [16.0, 1.0, 1.56])
    assert FactorPresenter(model).loadings()[0] == pytest.approx([3 / 5, 0, -1.2 / 3**0.5])
    page = FactorPresenter(model).sections()[0]
    (found,) = page.findings
    assert says(found, "factor 1", "less c2", "more c0")
    assert [row[2] for row in page.tables[0].rows] == ["0.60", "0.00", "−0.69"]
    assert FactorPresenter(model).subject() == "1 factor of"
    assert FactorPresenter(model).transform_names() == ["factor_1"]


def test_loadings_of_components_are_correlations_too_and_never_beyond_one():
    own = {
        "components_": np.array([[0.8, 0.6]]),
        "explained_variance_": np.array([4.0]),
        "column_std_": np.array([2.0, 1.0]),
    }
    model = simple(
        RANGES,
        NAMES,
        explained_variance_ratio_=np.array([0.9]),
        mean_=np.zeros(2),
        mean_sd_=np.ones(2),
        **own,
    )
    assert ComponentPresenter(model).loadings()[0] == pytest.approx([0.8, 1.0])  # 1.2 is noise
    (found,) = ComponentPresenter(model).sections()[0].findings
    assert says(found, "component 1", "90%", "more mood", "more age")
    assert ComponentPresenter(model).subject() == "1 principal component of"


def test_a_long_table_on_a_terminal_says_how_much_is_left_out(capsys):
    model = factors(np.ones((1, 30)), np.ones(30))
    assert printed_summary(capsys, FactorPresenter(model)).splitlines()[-1].strip() == "and 6 more"
    assert len(FactorPresenter(model).sections()[0].tables[0].rows) == 30


@pytest.mark.parametrize(("count", "side"), [(25, 5), (24, 0), (16, 0), (400, 20), (441, 0)])
def test_columns_are_pixels_where_they_make_a_square(count, side):
    assert FactorPresenter(simple([(0, 1)] * count)).image_side() == side
    assert FactorPresenter(simple([(0, 1)] * (count - 1) + [(0, 2)])).image_side() == 0


def test_tables_by_group_have_labels_units_and_dates():
    random = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "sex": random.choice(["F", "M"], 4000),
            "stay": random.uniform(0, 20, 4000),
            "visit": random.choice(["2021-03-01", "2021-05-01"], 4000),
        }
    )
    bounds = reticent.Bounds(
        x={
            "sex": reticent.Words(["F", "M"], label="Sex"),
            "stay": reticent.Number(0, 60, label="Length of stay", unit="days"),
            "visit": reticent.Date("2021-01-01", "2021-12-31"),
        }
    )
    model = reticent.PrivateTable(
        by=["sex"], mean=["stay", "visit"], bounds=bounds, epsilon=3, delta=1e-6
    ).fit(frame)
    presenter = presenter_of(model)
    assert presenter.title() == "Table of records, mean of Length of stay and mean of visit by Sex"
    table = presenter.sections()[0].tables[0]
    assert list(table.head) == [
        "Sex",
        "records ±",
        "mean of Length of stay (days) ±",
        "mean of visit ±",
    ]
    assert table.rows[0][3].startswith("2021-0")
    assert table.rows[0][3].endswith(" days")


def test_rates_of_cells_that_noise_hides_are_near_that_of_the_table():
    """Not near the middle of the range, which would be a half."""
    frame = pd.DataFrame({"ward": np.arange(40_000) % 400, "died": "no"})
    bounds = reticent.Bounds(x={"ward": reticent.Whole(0, 399), "died": bool})
    model = reticent.PrivateTable(
        by=["ward"], rate=["died"], bounds=bounds, epsilon=0.5, delta=1e-6
    ).fit(frame)
    total = model.margins_[-1]
    assert total["died_rate"] == pytest.approx(0, abs=0.01)
    assert np.mean([row["died_rate"] for row in model.table_]) < 0.1
    assert total["count"] == pytest.approx(sum(row["count"] for row in model.table_))
