"""PrivateHistogram: counts, quantiles, and what noise does to them."""

from datetime import date

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from reticent import BadInput, Bounds, Ordered, PrivateHistogram, Whole
from reticent.inference.linalg import project_onto_simplex
from reticent.models.base import COMMON as FOR_ALL

COMMON = {"epsilon": 1.0, "delta": 1e-6}


def test_counts_of_known_records():
    data = np.array(
        [[0.0, 9.99], [0.99, 10.0], [1.0, -5.0], [4.999, np.nan], [5.0, 0.0], [10.0, 25.0]] * 1000
    )
    model = PrivateHistogram(bins=10, bounds=Bounds(x=(0, 10)), epsilon=100, delta=1e-6).fit(data)
    assert np.round(model.counts_[0] / 1000).tolist() == [2, 1, 0, 0, 1, 1, 0, 0, 0, 1]
    assert np.round(model.counts_[1] / 1000).tolist() == [2, 0, 0, 0, 0, 0, 0, 0, 0, 3]
    assert model.edges_[0].tolist() == list(range(11))


def test_noise_is_as_stated_and_empty_bins_have_it_too():
    data = np.zeros((100, 3))
    models = [
        PrivateHistogram(bins=20, bounds=Bounds(x=(0, 10)), **COMMON).fit(data) for _ in range(60)
    ]
    empty = np.concatenate([model.counts_[:, 1:].ravel() for model in models])
    assert empty.std() == pytest.approx(models[0].counts_sd_, rel=0.1)
    assert (empty < 0).any()
    assert models[0].counts_sd_ == pytest.approx(
        np.sqrt(2 * 3) * models[0].releases_[0].event.noise_multiplier
    )


def test_quantiles():
    data = np.random.default_rng(0).uniform(20, 60, size=(100_000, 1))
    model = PrivateHistogram(bins=110, bounds=Bounds(x=(0, 110)), **COMMON).fit(data)
    for q in (0.01, 0.25, 0.5, 0.9):
        assert model.quantile(q)[0] == pytest.approx(20 + 40 * q, abs=0.5)
    assert 0 <= model.quantile(0)[0] <= model.quantile(1)[0] <= 110
    for q in (-0.1, 1.1, float("nan")):
        with pytest.raises(BadInput):
            model.quantile(q)


def test_a_norm_bound_keeps_the_edges():
    data = np.random.default_rng(0).uniform(-0.4, 0.4, size=(20_000, 2))
    model = PrivateHistogram(
        bins=8, bounds=Bounds(x=(-1, 1), norm=0.7), epsilon=50, delta=1e-6
    ).fit(data)
    expected = np.histogram(data[:, 0], bins=model.edges_[0])[0]
    assert np.abs(model.counts_[0] - expected).max() < 10


def test_bins_by_kind():
    frame = pd.DataFrame(
        {
            "sex": ["F"] * 6000 + ["M"] * 2000 + ["unknown"] * 2000,
            "stage": ["I", "II", "III", "II"] * 2500,
            "children": [0, 1, 2, 25] * 2500,
            "visit": ["2020-01-01", "2020-01-31"] * 5000,
            "weight": [70.0, np.nan] * 5000,
        }
    )
    kinds = {
        "sex": ["F", "M"],
        "stage": Ordered(["I", "II", "III"]),
        "children": Whole(0, 24),
        "visit": (date(2020, 1, 1), date(2020, 1, 31)),
        "weight": (0, 100),
    }
    model = PrivateHistogram(bins=10, bounds=Bounds(x=kinds), epsilon=50, delta=1e-6).fit(frame)
    rounded = [np.round(counts / 1000).tolist() for counts in model.counts_]
    assert rounded[0] == [6, 2]
    assert [len(counts) for counts in model.counts_] == [2, 3, 9, 8, 10]  # 3 numbers, 4 days a bin
    assert np.round(model.counts_[2] / 2500).tolist() == [3, 0, 0, 0, 0, 0, 0, 0, 1]
    assert rounded[3] == [5, 0, 0, 0, 0, 0, 0, 5]
    assert rounded[4] == [0, 0, 0, 0, 0, 0, 0, 5, 0, 0]
    assert model.levels_ == [["F", "M"], ["I", "II", "III"], None, None, None]
    assert model.probabilities()[0] == pytest.approx([0.75, 0.25], abs=0.01)
    assert model.probabilities()[4].sum() == pytest.approx(1)
    median = model.quantile(0.5)
    assert np.isnan(median[0])
    assert median[1] == 1
    assert 0 <= median[2] <= 2
    assert np.isfinite(model.score(frame))
    words = PrivateHistogram(bounds=Bounds(x={"sex": ["F", "M"]}), **COMMON).fit(frame)
    assert words.counts_.shape == (1, 2)
    with pytest.raises(BadInput, match="'sex'"):
        words.quantile(0.5)


@pytest.mark.parametrize("bins", [1, 0, -3, 2.5, True, 10**6, "ten"])
def test_bins_that_make_no_sense(bins):
    with pytest.raises(BadInput):
        PrivateHistogram(bins=bins, bounds=Bounds(x=(0, 1)), **COMMON).fit(np.zeros((3, 1)))


def test_score_prefers_the_data_it_was_fitted_to():
    data = np.random.default_rng(0).normal(5, 0.5, size=(20_000, 1))
    model = PrivateHistogram(bins=20, bounds=Bounds(x=(0, 10)), **COMMON).fit(data)
    assert model.score(data) > model.score(data + 3)
    assert np.isfinite(model.score(data + 1e9))


@given(arrays(float, st.integers(1, 20), elements=st.floats(-1e3, 1e3)))
def test_simplex_projection(v):
    p = project_onto_simplex(v)
    assert p.sum() == pytest.approx(1)
    assert (p >= 0).all()
    # optimality: on the support all entries are shifted by the same number, off it by no more
    shift = (v - p)[p > 0]
    assert np.ptp(shift) < 1e-9
    assert (v[p == 0] <= shift.max() + 1e-9).all()


class Forgetful(PrivateHistogram):
    """Has an ``__init__`` of its own, which leaves one parameter out."""

    def __init__(self, forgotten, **given):
        defaults = {
            "forgotten": forgotten,
            "bins": 10,
            **dict.fromkeys(FOR_ALL),
            "records_per_person": 1,
            "contribution": 1,
            "neighbours": "replace",
            **given,
        }
        vars(self).update({name: value for name, value in defaults.items() if name != forgotten})


@pytest.mark.parametrize("name", sorted(FOR_ALL))
def test_a_subclass_that_forgets_a_parameter_reads_nothing(name, monkeypatch):
    given = {"bounds": Bounds(x=(0, 10)), **COMMON}
    assert Forgetful("", **given).fit(np.zeros((9, 1))).counts_.shape == (1, 10)
    monkeypatch.setattr("reticent.privacy.curator.Curator.release", pytest.fail)
    with pytest.raises(
        AttributeError, match=f"no attribute '{name}'"
    ):  # not: no ledger, one record per person
        Forgetful(name, **given).fit(np.zeros((9, 1)))
