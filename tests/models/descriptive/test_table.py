"""PrivateTable: right on average, as noisy as stated, margins that agree, small cells."""

from datetime import date

import numpy as np
import pandas as pd
import pytest

from reticent import (
    BadInput,
    Bounds,
    BoundsMissing,
    Cyclic,
    Number,
    Ordered,
    PrivateTable,
    Whole,
    YesNo,
    load,
)
from reticent.inference.tables.cell_estimates import cell_means, overall_mean

PROMISE = {"epsilon": 1.0, "delta": 1e-6}
BOUNDS = Bounds(
    x={
        "sex": ["F", "M"],
        "ward": ["A", "B", "C", "D"],
        "stay": (0, 60),
        "died": bool,
        "age": (0, 110),
    }
)


def stays(n: int = 4000, seed: int = 0) -> pd.DataFrame:
    """Stays in wards: few in C, none in D; a third of the lengths are missing, some keys too."""
    rng = np.random.default_rng(seed)
    ward = rng.choice(["A", "B", "C"], n, p=[0.6, 0.39, 0.01])
    frame = pd.DataFrame(
        {
            "sex": rng.choice(["F", "M", "?"], n, p=[0.5, 0.4, 0.1]),
            "ward": ward,
            "stay": rng.gamma(2, 4, n) + 10 * (ward == "B"),
            "died": np.where(rng.random(n) < 0.1 + 0.2 * (ward == "B"), "yes", "no"),
            "age": rng.uniform(0, 100, n),
        }
    )
    frame.loc[rng.random(n) < 0.3, "stay"] = np.nan
    return frame


def truth(frame: pd.DataFrame) -> pd.DataFrame:
    """The same table without noise, in the order of the cells; a row for each cell."""
    cells = pd.MultiIndex.from_product([["F", "M"], ["A", "B", "C", "D"]], names=["sex", "ward"])
    kept = frame[frame.sex != "?"].assign(died=frame.died == "yes")
    groups = kept.groupby(["sex", "ward"])
    found = pd.DataFrame(
        {
            "count": groups.size(),
            "stay_mean": groups.stay.mean(),
            "stay_total": groups.stay.sum(),
            "died_rate": groups.died.mean(),
            "stay_q50": groups.stay.median(),
        }
    )
    return found.reindex(cells).fillna({"count": 0, "stay_total": 0})


def table(**options) -> PrivateTable:
    asked = {"by": ["sex", "ward"], "mean": ["stay"], "rate": ["died"], "bounds": BOUNDS}
    return PrivateTable(**(asked | PROMISE | options))


@pytest.mark.parametrize("delta", [1e-6, 0.0])
@pytest.mark.parametrize("smooth", [False, True])
def test_cells_are_as_far_off_as_stated(delta, smooth):
    frame = stays()
    expected = truth(frame)
    known = expected["stay_mean"].notna().to_numpy()
    far = {}
    for _ in range(40):
        model = table(total=["stay"], delta=delta, smooth=smooth).fit(frame)
        rows = pd.DataFrame(model.table_)
        for name in ("count", "stay_mean", "died_rate", "stay_total"):
            off = (rows[name] - expected[name].to_numpy()) / rows[f"{name}_sd"]
            far.setdefault(name, []).append(off[known])
    for name, off in far.items():
        flat = np.concatenate(off)
        assert np.mean(np.abs(flat) < 2.5) > 0.93, name
        assert np.abs(np.median(flat)) < 0.6, name


def test_what_was_released_is_unbiased_and_as_noisy_as_stated():
    frame = stays(1000)
    expected = truth(frame)
    models = [table(total=["stay"]).fit(frame) for _ in range(150)]
    counts = np.array([model.cells_.counts.ravel() for model in models])
    sums = np.array([model.cells_.sums["stay"].ravel() for model in models])
    for found, name, sd in (
        (counts, "count", models[0].cells_.counts_sd),
        (sums, "stay_total", models[0].cells_.sums_sd["stay"]),
    ):
        error = found - expected[name].to_numpy()
        assert np.abs(error.mean(axis=0)).max() < 5 * sd / np.sqrt(150)
        assert error.std() == pytest.approx(sd, rel=0.06)
    # with M averaged columns the L2 sensitivity is √(2M), and the count the mean of M sums of three
    multiplier = models[0].releases_[0].event.noise_multiplier
    assert models[0].cells_.counts_sd == pytest.approx(np.sqrt(6) * multiplier, rel=1e-6)


def test_margins_agree_with_cells():
    model = table(total=["stay"], epsilon=0.3).fit(stays())
    cells = pd.DataFrame(model.table_)
    margins = pd.DataFrame(model.margins_)
    assert (cells["count"] >= 0).all()
    assert cells["died_rate"].between(0, 1).all()
    assert cells["stay_mean"].between(0, 60).all()
    assert len(cells) == 8
    assert len(margins) == 2 + 4 + 1
    for name in ("count", "stay_total"):
        for key in ("sex", "ward"):
            rest = {"sex": "ward", "ward": "sex"}[key]
            own = margins[(margins[rest] == "all") & (margins[key] != "all")]
            summed = cells.groupby(key, sort=False)[name].sum()
            assert own.set_index(key)[name].to_dict() == pytest.approx(summed.to_dict())
        assert margins.iloc[-1][name] == pytest.approx(cells[name].sum())
    assert margins.iloc[-1]["count"] <= 4000


def test_cells_put_to_zero_do_not_add_up_in_the_margins():
    """Of 400 cells 390 are empty: clipping each by itself would add 160 standard deviations."""
    frame = pd.DataFrame({"a": ["0"] * 5000, "b": [str(i % 10) for i in range(5000)]})
    bounds = Bounds(x={"a": [str(i) for i in range(10)], "b": [str(i) for i in range(40)]})
    model = PrivateTable(by=["a", "b"], bounds=bounds, **PROMISE).fit(frame)
    assert min(row["count"] for row in model.table_) >= 0
    for row in model.margins_:
        expected = 0
        if row["a"] in ("0", "all") and (row["b"] == "all" or int(row["b"]) < 10):
            expected = 5000 if row["b"] == "all" else 500
        assert abs(row["count"] - expected) < 5 * row["count_sd"]


def test_small_cells_borrow_from_others():
    frame = stays()
    expected = truth(frame)
    errors = {}
    for smooth in (False, True):
        off = []
        for _ in range(15):
            rows = pd.DataFrame(table(smooth=smooth).fit(frame).table_)
            small = (expected["count"].to_numpy() < 40) & (expected["count"].to_numpy() > 0)
            off.append(rows["stay_mean"][small] - expected["stay_mean"].to_numpy()[small])
        errors[smooth] = np.sqrt(np.mean(np.square(off)))
    assert errors[True] < 0.75 * errors[False]


def test_low_rates_of_small_groups_are_not_drawn_to_the_middle():
    """A flat prior on a rate told .02 of 50 records with a noise of .1 as .1, and of 5 as .5."""
    rng = np.random.default_rng(3)
    group = np.repeat(list("abcd"), [3000, 300, 50, 5])
    frame = pd.DataFrame({"group": group, "died": rng.random(len(group)) < 0.02})
    expected = frame.groupby("group")["died"].mean().to_numpy()
    bounds = Bounds(x={"group": list("abcd"), "died": bool})
    errors = []
    spreads = []
    for seed in range(30):
        model = PrivateTable(
            by=["group"], rate=["died"], bounds=bounds, random_state=seed, **PROMISE
        ).fit(frame)
        told = np.array([(row["died_rate"], row["died_rate_sd"]) for row in model.table_])
        assert ((told[:, 0] >= 0) & (told[:, 0] <= 1)).all()
        errors.append(told[:, 0] - expected)
        spreads.append(told[:, 1])
    z = np.array(errors) / np.array(spreads)
    assert np.abs(z.mean(axis=0)).max() < 0.5
    assert (np.abs(z) < 1.96).mean() > 0.9
    assert np.mean(spreads, axis=0)[-1] > 0.4  # five records in a noise of twelve: any rate


@pytest.mark.parametrize("mean", [-1.0, -0.84, 0.0, 0.3, 1.0])
@pytest.mark.parametrize("records", [0.1, 1.0, 3.0, 5.0, 30.0])
def test_bands_hold_a_mean_wherever_it_lies(mean, records):
    """Also at an end of its range, and where the noise hides all records: one person's, say."""
    rng = np.random.default_rng(5)
    covered = []
    for cells in (1, 3):
        covariance = np.array([[1.0, 0.3], [0.3, 0.8]])
        noise = rng.multivariate_normal([0.0, 0.0], covariance, (1000, cells))
        for error in noise:
            total = records * mean + error[:, 0]
            present = records + error[:, 1]
            overall = overall_mean(total, present, covariance, 1.0)
            found, sd = cell_means(total, present, covariance, 1.0, overall)
            assert (1.96 * sd <= 1 + np.abs(found) + 1e-12).all()
            covered += (np.abs(found - mean) <= 1.96 * sd + 1e-12).tolist()
    share = np.mean(covered)
    assert share > 0.93
    if records > 20 and abs(mean) < 0.5:  # where noise alone decides
        assert share < 0.965


def test_quantiles_of_all_kinds_that_have_an_order():
    frame = pd.DataFrame(
        {
            "sex": ["F", "M"] * 5000,
            "stage": ["I", "II", "II", "III"] * 2500,
            "children": [1, 2, 2, 3] * 2500,
            "visit": ["2020-03-01"] * 10_000,
            "stay": [10.0, 20.0] * 5000,
        }
    )
    bounds = Bounds(
        x={
            "sex": ["F", "M"],
            "stage": Ordered(["I", "II", "III"]),
            "children": Whole(0, 12),
            "visit": (date(2020, 1, 1), date(2020, 12, 31)),
            "stay": (0, 60),
        }
    )
    model = PrivateTable(
        by=["sex"],
        quantile={"stage": 0.5, "children": [0.5], "visit": 0.5, "stay": [0.1, 0.5]},
        bins=60,
        bounds=bounds,
        epsilon=20,
        delta=1e-6,
    ).fit(frame)
    total = model.margins_[-1]
    assert total["stage_q50"] == "II"
    assert total["children_q50"] == 2
    assert "2020-02-20" <= total["visit_q50"] <= "2020-03-10"
    first, second = model.table_
    assert first["stay_q50"] == pytest.approx(10, abs=1.5)
    assert second["stay_q10"] == pytest.approx(20, abs=1.5)
    assert first["stay_q50_sd"] < 2


def test_keys_by_edges():
    frame = pd.DataFrame(
        {
            "age": [0, 17.99, 18, 64, 65, 110, 200] * 1000,
            "born": ["2019-12-31", "2020-01-01", "2020-12-31", None, "x", "", "2019-01-01"] * 1000,
            "children": [0, 1, 2, 3, 4, 5, 6] * 1000,
        }
    )
    bounds = Bounds(
        x={
            "age": (0, 110),
            "born": (date(2019, 1, 1), date(2020, 12, 31)),
            "children": Whole(0, 6),
        }
    )
    rich = {"epsilon": 50, "delta": 1e-6, "bounds": bounds}
    model = PrivateTable(by=[("age", [0, 18, 65, 110])], **rich).fit(frame)
    assert [row["age"] for row in model.table_] == ["0 – 18", "18 – 65", "65 – 110"]
    assert [round(row["count"] / 1000) for row in model.table_] == [2, 2, 3]
    model = PrivateTable(by={"born": ["2019-01-01", "2020-01-01"]}, **rich).fit(frame)
    assert [row["born"] for row in model.table_] == [
        "2019-01-01 – 2019-12-31",
        "2020-01-01 – 2020-12-31",
    ]
    assert [round(row["count"] / 1000) for row in model.table_] == [2, 2]
    model = PrivateTable(by=[("children", [0, 2, 6])], **rich).fit(frame)
    assert [row["children"] for row in model.table_] == ["0 – 1", "2 – 6"]
    assert [round(row["count"] / 1000) for row in model.table_] == [2, 5]
    model = PrivateTable(by=["children"], **rich).fit(frame)
    assert [row["children"] for row in model.table_] == list(range(7))


def test_arrays_and_missing_levels():
    data = np.column_stack([np.tile([0.0, 1.0, np.nan], 2000), np.tile([1.0, 2.0, 3.0], 2000)])
    bounds = Bounds(x=[YesNo(keep_missing=True), Number(0, 4, keep_missing=True)])
    model = PrivateTable(by=[0], mean=[1], bounds=bounds, epsilon=20, delta=1e-6).fit(data)
    assert [row["column 0"] for row in model.table_] == ["no", "yes", "missing"]
    assert [round(row["column 1_mean"]) for row in model.table_] == [1, 2, 3]


def test_a_file_gives_the_same_table(tmp_path):
    model = table(quantile={"stay": [0.5]}, smooth=True).fit(stays())
    model.save(tmp_path / "t.reticent")
    again = load(tmp_path / "t.reticent")
    assert again.table_ == model.table_
    assert again.margins_ == model.margins_
    params = model.get_params(deep=False)
    assert PrivateTable.from_releases(model.releases_, **params).table_ == model.table_


def test_outputs_of_a_codebook_are_columns_like_others():
    bounds = Bounds(x={"sex": ["F", "M"], "age": (0, 110)}, y={"stay": (0, 60)})
    model = PrivateTable(by=["sex"], mean=["stay"], bounds=bounds, **PROMISE).fit(stays())
    assert list(model.feature_names_in_) == ["sex", "stay"]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"by": ["sex", "age"]}, "edges"),
        ({"by": ["sex", "name"]}, "'name' has no bounds"),
        ({"by": ["sex", "sex"]}, "twice"),
        ({"by": ["stay"]}, "key"),
        ({"by": [("age", [0, 90, 18])]}, "rise"),
        ({"by": [("age", [0, 18, 200])]}, "within its bounds"),
        ({"by": [("age", "0:18")]}, "edges"),
        ({"by": [("sex", [0, 1])]}, "levels"),
        ({"by": 3.5}, "list of columns"),
        ({"by": [None]}, "names of columns"),
        ({"mean": ["ward"], "by": ["sex"]}, "no mean of 'ward'"),
        ({"rate": ["stay"]}, "yes and no"),
        ({"rate": [], "quantile": ["died"]}, "no quantile of 'died'"),
        ({"quantile": {"stay": 1.5}}, "between 0 and 1"),
        ({"count": False, "mean": None, "rate": None}, "Nothing"),
        ({"bins": 1}, "bins"),
        ({"by": [("age", np.linspace(0, 110, 150_002).tolist())]}, "cells"),
    ],
)
def test_what_makes_no_sense_is_refused_before_the_charge(options, words, monkeypatch):
    monkeypatch.setattr("reticent.models.base.Curator", pytest.fail)
    with pytest.raises((BadInput, BoundsMissing), match=words):
        table(**options).fit(stays(10))


def test_kinds_without_a_mean_or_a_total():
    bounds = Bounds(x={"hour": Cyclic(0, 24), "visit": (date(2020, 1, 1), date(2021, 1, 1))})
    frame = pd.DataFrame({"hour": [1.0], "visit": ["2020-02-01"]})
    with pytest.raises(BadInput, match="no mean of 'hour'"):
        PrivateTable(mean=["hour"], bounds=bounds, **PROMISE).fit(frame)
    with pytest.raises(BadInput, match="dates do not add up"):
        PrivateTable(total=["visit"], bounds=bounds, **PROMISE).fit(frame)
    model = PrivateTable(mean=["visit"], bounds=bounds, **PROMISE).fit(pd.concat([frame] * 9000))
    assert "2020-01-20" < model.table_[0]["visit_mean"] < "2020-02-12"
