"""What a fit takes: that costs add up and grow as they must, and are of the fit that is asked."""

import warnings
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from sklearn.gaussian_process.kernels import RBF

import reticent
from reticent.planning import cost as measured
from reticent.planning.cost import FitCost, ReleaseCost, fit_cost
from reticent.privacy.statistics.feature_cache import CACHE_BYTES

BOUNDS = reticent.Bounds(x={"x0": (0, 1), "x1": (0, 1)}, y={"y": (-2, 2)})


@pytest.fixture(autouse=True)
def _short(monkeypatch):
    """A look at some thousand records, once: times are not what is tested here."""
    for name, value in {"_LEAST": 2**15, "_MOST": 2**15, "_PILOT": 2**9, "_REPEATS": 1}.items():
        monkeypatch.setattr(measured, name, value)


def gp(**params):
    given = {"basis": 10, "stages": 3, "noise": 0.3, "learn_kernel": False, "bounds": BOUNDS}
    given |= {"epsilon": 1, "delta": 1e-9} | params
    return reticent.GPRegressor(RBF(0.5, "fixed"), **given)


PLAIN = FitCost(
    rows=1000,
    source="parquet",
    once=2.0,
    counted=False,
    counting_per_row=0.0,
    releases=(
        ReleaseCost("A", 3, readings=1, kept=0, once=0.5, per_row=0.01),
        ReleaseCost("B", 9, 2, 3, 0.25, 0.1, per_kept_row=0.02, keeping_per_row=0.04),
    ),
    row_bytes=24.0,
    kept_bytes=5000.0,
    block_bytes=700.0,
    person_bytes=30.0,
)


def test_a_cost_adds_up():
    assert PLAIN.readings == 3
    assert PLAIN.bytes_read == 3 * 1000 * 24
    assert PLAIN.memory == 5730
    once = 2.0 + 0.5 + 5 * 0.25
    assert PLAIN.seconds == pytest.approx(once + 1000 * (0.01 + 2 * 0.1 + 3 * 0.02 + 0.04))
    # on a cluster all five releases of the second kind read
    assert PLAIN.seconds_on(1) == pytest.approx(once + 1000 * (0.01 + 5 * 0.1))
    assert PLAIN.seconds_on(10) == pytest.approx(once + 100 * (0.01 + 5 * 0.1))
    counted = replace(PLAIN, counted=True, counting_per_row=0.3)
    assert counted.seconds == pytest.approx(PLAIN.seconds + 300)
    assert counted.readings == 4
    assert PLAIN.for_machines()["seconds"] == PLAIN.seconds
    with pytest.raises(reticent.errors.BadInput, match="workers"):
        PLAIN.seconds_on(0)


def test_the_releases_are_those_of_the_fit():
    model = reticent.GPRegressor(bounds=BOUNDS, epsilon=1, delta=1e-6, basis=12)
    told = fit_cost(model, 20_000)
    rng = np.random.default_rng(0)
    X = rng.random((20_000, 2))
    table = pa.table({"x0": X[:, 0], "x1": X[:, 1], "y": np.sin(X.sum(axis=1))})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.set_params(random_state=0).fit(table)
    assert sum(one.readings + one.kept for one in told.releases) == len(model.releases_) == 24
    names = {release.statistic["name"] for release in model.releases_}
    assert {one.statistic for one in told.releases} == names
    assert max(one.columns for one in told.releases if one.statistic == "ResidualGram") == 13


def test_rows_are_kept_as_a_fit_keeps_them():
    few = fit_cost(gp(), 10_000)
    (release,) = few.releases
    assert (release.readings, release.kept) == (1, 2)
    row = 4 * 10 + 8 * 3
    assert few.kept_bytes == 10_000 * row
    most = CACHE_BYTES // row
    assert fit_cost(gp(), most).readings == 1
    many = fit_cost(gp(), most + 1)
    assert many.readings == 3
    assert many.kept_bytes == 0
    assert many.memory < 2**29


def test_more_records_take_longer_and_workers_share_them():
    some = fit_cost(gp(), 10**8)
    more = replace(some, rows=10**10)
    assert more.seconds > 20 * some.seconds
    assert more.bytes_read == 100 * some.bytes_read
    assert some.seconds > some.seconds_on(4) > some.seconds_on(64) > some.once


@pytest.mark.parametrize("source", ["memory", "parquet", "csv"])
def test_columns_of_all_kinds_in_all_sources(source):
    kinds = {"age": (0, 110), "sex": ["F", "M"], "ill": bool, "children": reticent.Whole(0, 9)}
    bounds = reticent.Bounds(x=kinds, y={"weight": (2, 150)})
    told = fit_cost(gp(bounds=bounds, stages=2, basis=5).set_params(kernel=None), 10**7, source)
    assert told.source == source
    assert told.seconds > 0.1
    assert 16 < told.row_bytes < 200
    steps = []
    mean = reticent.PrivateMean(bounds=reticent.Bounds(x={"age": (0, 110)}), epsilon=1, delta=0)
    readings = 2 if source == "csv" else 1  # lines are counted first
    assert fit_cost(mean, 1000, source, progress=steps.append).readings == readings
    assert sum(steps) == 4


def test_columns_without_names():
    bounds = reticent.Bounds(x=[(0, 1), (0, 2)], y=(0, 1))
    assert fit_cost(gp(bounds=bounds), 1000, "memory").readings == 1


def test_people_are_counted_and_remembered():
    with_person = fit_cost(gp(person="patient"), 10**6, records_per_person=5)
    assert with_person.counted
    assert with_person.readings == 2
    # an identifier of 16 bytes and a count for each of 200,000 people at the least
    assert with_person.person_bytes > 200_000 * 20
    assert fit_cost(gp(), 10**6).person_bytes == 0


def test_a_noise_column_is_no_input():
    bounds = reticent.Bounds(x={"x0": (0, 1), "sd": (0.1, 1)}, y={"y": (-2, 2)})
    assert fit_cost(gp(bounds=bounds, noise=None, noise_column="sd"), 10**5).seconds > 0


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"rows": 0}, "rows must be"),
        ({"rows": 1.5}, "rows must be"),
        ({"rows": 10**14}, "rows must be"),
        ({"source": "floppy"}, "source must be"),
        ({"records_per_person": 0}, "records_per_person"),
    ],
)
def test_what_makes_no_sense_is_refused(given, words):
    with pytest.raises(reticent.errors.BadInput, match=words):
        fit_cost(gp(), **{"rows": 1000, **given})


def test_models_whose_cost_cannot_be_told_are_refused():
    labels = reticent.Bounds(x=[(0, 1)], classes=["a", "b"])
    for model in (
        reticent.GPClassifier(bounds=labels, epsilon=1, delta=1e-6),
        reticent.LabelGPRegressor(bounds=BOUNDS, epsilon=1, delta=1e-6),
        reticent.PrivateMean(bounds=reticent.Bounds(x=(0, 1)), epsilon=1, delta=0),
    ):
        with pytest.raises(reticent.errors.BadInput, match="range for each input"):
            fit_cost(model, 1000)
