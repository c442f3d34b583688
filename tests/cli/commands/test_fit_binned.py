"""``reticent fit gp-binned``: from a file to model, predictions, report and pictures."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

import reticent
from reticent.cli.demo_data import people, write_csv
from reticent.cli.main import app
from reticent.reporting.presenters.binned import BinnedPresenter
from tests.support.prose import says


def run(*words: object):
    return CliRunner().invoke(app, [str(word) for word in words])


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("binned")
    write_csv(people(800, seed=2), place / "people.csv")
    common = ["--epsilon", 1, "--delta", "1e-6", "--x", "age=0:110"]
    made = {
        "mean": [*common, "--y", "weight=2:150", "--bins", 11],
        "count": [*common, "--kind", "count", "--bins", 11],
        "plane": [
            *common,
            "--x",
            "height=40:220",
            "--y",
            "weight=2:150",
            "--bins",
            "5,4",
            "--noise",
            10,
        ],
    }
    for name, options in made.items():
        done = run(
            "fit", "gp-binned", place / "people.csv", *options, "--out", place / f"{name}.reticent"
        )
        assert done.exit_code == 0, done.output
        assert "protects any one of the" in done.output
    return place


def test_a_negative_count_is_shown_and_said(folder):
    model = reticent.load(folder / "count.reticent")
    told = run("inspect", folder / "count.reticent")
    assert told.exit_code == 0, told.output
    said = " ".join(told.output.split())
    assert (says(said, "negative", "noise")) == bool((model.counts_ < 0).any())
    numbers = json.loads(run("inspect", folder / "count.reticent", "--json").stdout)["results"]
    assert numbers["bins"]["counts"] == model.counts_.tolist()
    assert numbers["kind"] == "count"


@pytest.mark.parametrize(
    ("name", "column"), [("mean", "weight"), ("count", "density"), ("plane", "weight")]
)
def test_predictions_and_report(folder, name, column, tmp_path):
    done = run(
        "predict", folder / f"{name}.reticent", folder / "people.csv", "--out", tmp_path / "p.csv"
    )
    assert done.exit_code == 0, done.output
    assert (
        f"{column},{column}_std,{column}_output_std"
        in (tmp_path / "p.csv").read_text().splitlines()[0]
    )
    done = run("report", folder / f"{name}.reticent", "--out", tmp_path / "r.html")
    assert done.exit_code == 0, done.output
    page = (tmp_path / "r.html").read_text()
    assert says(page, "each bin", "empty")
    assert ("released bins" in page) == (name != "plane")


def test_bars_are_the_released_bins(folder):
    model = reticent.load(folder / "count.reticent")
    found = BinnedPresenter(model).released_bins()
    counts = np.maximum(model.counts_, 0)  # noise makes a count negative, a bar cannot be
    assert found.height * np.diff(found.edges) == pytest.approx(counts)
    means = BinnedPresenter(reticent.load(folder / "mean.reticent")).released_bins()
    assert np.isfinite(means.height[:5]).all()
    assert np.isnan(means.height[-1])  # hardly anybody is older than a hundred
    assert BinnedPresenter(reticent.load(folder / "plane.reticent")).released_bins() is None


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--kind", "count", "--y", "weight=2:150"], "no outputs"),
        (["--y", "weight=2:150", "--bins", "many"], "whole number"),
        (["--y", "weight=2:150", "--bins", "3,4"], "Edges of"),
        (["--kind", "median", "--y", "weight=2:150"], "kind must be"),
        ([], "no bounds"),
    ],
)
def test_wrong_use_is_refused(folder, options, said, tmp_path):
    words = [
        "fit",
        "gp-binned",
        folder / "people.csv",
        "--x",
        "age=0:110",
        "--epsilon",
        1,
        "--delta",
        "1e-6",
    ]
    done = run(*words, *options, "--out", tmp_path / "m")
    assert done.exit_code in (2, 4)
    assert said in " ".join(done.output.split())
