"""Free checks of how records were read, from releases alone."""

import numpy as np
import pandas as pd
import pytest
from sklearn.gaussian_process.kernels import RBF, ConstantKernel

import reticent
from reticent.models.base import IncompleteRecords
from reticent.reporting.registry import PRESENTERS, presenter_of
from reticent.reporting.released_checks import complete_share, notes
from reticent.reporting.released_counts import released_counts


def frame(n=20_000):
    random = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "age": random.uniform(0, 100, n),
            "sex": random.choice(["F", "M"], n, p=[0.6, 0.4]),
            "dose": random.uniform(0, 100, n),
        }
    )


COLUMNS = {"age": (0, 100), "sex": ["F", "M"], "dose": (0, 100)}


def histogram(records):
    bounds = reticent.Bounds(x=COLUMNS)
    return reticent.PrivateHistogram(bounds=bounds, epsilon=1.0, delta=1e-6).fit(records)


def regression(records, **columns):
    bounds = reticent.Bounds(x=columns, y={"dose": (0, 100)})
    return reticent.GPRegressor(bounds=bounds, epsilon=3.0, delta=1e-6).fit(records)


def test_nothing_is_said_of_records_that_were_read():
    assert notes(histogram(frame())) == []


def test_a_column_in_one_bin_is_told():
    records = frame()
    records["dose"] = 1.5  # a decimal comma, a wrong unit
    (note,) = notes(histogram(records))
    assert note.startswith("nearly all of dose lies in one bin, 0 to 10: was the column read")


def test_one_word_for_nearly_everybody_is_told_by_its_name():
    records = frame()
    records["sex"] = "M"
    (note,) = notes(histogram(records))
    assert note.startswith("nearly all records have sex = M: was the column read")


def test_columns_that_lack_values_are_told_with_their_share():
    records = frame()
    records.loc[:8000, "age"] = np.nan
    (note,) = notes(histogram(records))
    assert "about 60 % of the records have a value of age" in note
    assert "were left out" in note


def test_the_share_of_complete_records_of_a_regression_is_that_of_its_counts():
    records = frame()
    records.loc[:8000, "sex"] = "?"
    with pytest.warns(UserWarning, match="records have all values"):
        model = regression(records, age=(0, 100), sex=["F", "M"])
    share, sd = complete_share(model)
    assert abs(share - 0.6) < 4 * sd + 0.02
    (note,) = notes(model)
    assert "of the records have all the values that the model needs" in note
    assert notes(regression(frame(), age=(0, 100), sex=["F", "M"])) == []


def test_counts_of_words_are_those_of_each_level():
    (sex,) = (one for one in released_counts(histogram(frame())) if one.column.name == "sex")
    assert sex.by_value
    assert sex.names() == ["F", "M"]
    assert sex.counts == pytest.approx([12_000, 8_000], abs=300)


def test_notes_are_part_of_report_and_notebook(tmp_path):
    records = frame()
    records["dose"] = 1.5
    model = histogram(records)
    model.report(tmp_path / "report.html")
    for page in ((tmp_path / "report.html").read_text(), model._repr_html_()):
        assert "Note: nearly all of dose lies in one bin" in page


def incomplete(share, n=6000):
    records = frame(n)
    records.loc[: int(n * (1 - share)) - 1, "age"] = np.nan
    return records


@pytest.mark.parametrize(
    "model",
    [
        reticent.GaussianMixture(2),
        reticent.KMeans(2),
        reticent.FactorAnalysis(1),
        reticent.PrivateCovariance(),
    ],
)
def test_models_of_all_columns_tell_how_many_records_are_complete(model):
    bounds = reticent.Bounds(x={"age": (0, 100), "dose": (0, 100)})
    model.set_params(bounds=bounds, epsilon=4.0, delta=1e-6)
    records = incomplete(0.5)[["age", "dose"]]
    (note,) = [one for one in notes(model.fit(records)) if "of the records have" in one]
    assert note.startswith("about 5") or note.startswith("about 4")
    assert not [one for one in notes(model.fit(frame()[["age", "dose"]])) if "records" in one]


GIVEN = {"kernel": ConstantKernel(900.0) * RBF(50.0), "learn_kernel": False}  # quick
QUICK = {
    "PrivateTable": {"mean": ["age"]},
    "GaussianMixture": {"n_components": 2},
    "KMeans": {"n_clusters": 2},
    "GPRegressor": {"basis": 9, "stages": 12, **GIVEN},
    "LabelGPRegressor": {"stages": 2, **GIVEN},
    "BinnedGPRegressor": {"bins": 4, "noise": 20.0, **GIVEN},
    "GPClassifier": {"basis": 9, "stages": 12},
}


@pytest.mark.filterwarnings("ignore", category=IncompleteRecords)
@pytest.mark.parametrize("name", PRESENTERS)
def test_every_model_that_is_shown_tells_if_hardly_anything_was_read(name):
    """A new model, too: its fitted attributes, or its releases, must say how many records it has.

    `released_checks` reads n_complete_ or count_; by column counts_ with mean_, or with edges_.
    """
    records = incomplete(0.1)
    columns = {"x": {"age": (0, 100), "dose": (0, 100)}}
    if name.endswith("Regressor"):
        columns = {"x": {"age": (0, 100)}, "y": {"dose": (0, 100)}}
    if name == "GPClassifier":
        columns["classes"] = {"sex": ["F", "M"]}
    model = getattr(reticent, name)(**QUICK.get(name, {}))
    model.set_params(bounds=reticent.Bounds(**columns), epsilon=10.0, delta=1e-6)
    found = notes(model.fit(records))
    assert found, "nothing tells how many records were read"
    assert found[0].startswith("Only about ")
    assert "were read" in found[0]


def test_hardly_any_complete_records_are_told_first_and_in_strong_words():
    bounds = reticent.Bounds(x={"age": (0, 100), "dose": (0, 100)})
    model = reticent.KMeans(2, bounds=bounds, epsilon=4.0, delta=1e-6)
    model.fit(incomplete(0.03)[["age", "dose"]])
    first = presenter_of(model).notes()[0]
    assert first.startswith("Only about ")
    assert "worthless until" in first


def test_a_table_tells_how_many_records_have_keys_and_values():
    records = incomplete(0.5)
    bounds = reticent.Bounds(x=COLUMNS)
    options = {"bounds": bounds, "epsilon": 4.0, "delta": 1e-6}
    by_sex = reticent.PrivateTable(by=["sex"], mean=["age"], **options)
    (note,) = notes(by_sex.fit(records))
    assert "of the records have a value of age and all keys" in note
    assert notes(by_sex.fit(frame())) == []
    records["sex"] = "?"
    (note,) = notes(by_sex.fit(records))
    assert note.startswith("Only about ")
