"""Clusters, factors and components on the command line, in drawings and in reports."""

import csv
import json

import numpy as np
import pytest

import reticent
from reticent import plot
from reticent.reporting.figures.style import raw_svg
from reticent.reporting.presenters.clusters import ClusterPresenter
from reticent.reporting.registry import presenter_of
from tests.support.prose import says

COMMON = {"epsilon": 1, "delta": 1e-6, "random_state": 0}
PLANE = reticent.Bounds(x={"longitude": (5, 15), "latitude": (47, 55)})


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("structure")
    rng = np.random.default_rng(0)
    places = rng.choice([[13.4, 52.5], [11.6, 48.1]], size=4000) + 0.3 * rng.normal(size=(4000, 2))
    lines = [f"{a:.3f},{b:.3f}" for a, b in places]
    (folder / "places.csv").write_text("longitude,latitude\n" + "\n".join(lines) + "\n")
    return folder


@pytest.fixture(scope="module")
def clusters(folder):
    return reticent.KMeans(2, bounds=PLANE, **COMMON).fit(folder / "places.csv")


@pytest.fixture(scope="module")
def factors():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4000, 1)) * [1.0, -0.8, 0.1] + 0.3 * rng.normal(size=(4000, 3))
    box = reticent.Bounds(x=(-4, 4))
    return {
        cls.__name__: cls(1, bounds=box, **COMMON).fit(X)
        for cls in (reticent.FactorAnalysis, reticent.PCA)
    }


X = ["--x", "longitude=5:15", "--x", "latitude=47:55", "--epsilon", "1", "--delta", "1e-6"]


def test_from_a_file_to_clusters_of_its_lines(run, folder):
    data, model, out = (str(folder / name) for name in ("places.csv", "m.reticent", "p.csv"))
    shown = run("fit", "kmeans", data, *X, "--n-clusters", "2", "--out", model)
    assert shown.code == 0, shown.err
    assert "cluster" in shown.out
    assert "reticent predict" in shown.out
    told = json.loads(run("inspect", model, "--json").out)["results"]["clusters"]
    latitudes = sorted(one["center"]["latitude"] for one in told)
    assert latitudes == pytest.approx([48.1, 52.5], abs=0.1)
    said = run("predict", model, data, "--out", out)
    assert said.code == 0, said.err
    assert "nearest centre" in " ".join(said.out.split())
    with open(out, newline="") as file:
        rows = list(csv.DictReader(file))
    assert set(rows[0]) == {"longitude", "latitude", "cluster", "cluster_distance"}
    assert {(row["cluster"], float(row["latitude"]) > 50) for row in rows} in (
        {("0", True), ("1", False)},
        {("0", False), ("1", True)},
    )
    assert run("report", model, "--out", str(folder / "r.html")).code == 0
    page = (folder / "r.html").read_text()
    assert says(page, "2 clusters", "longitude", "latitude")
    assert "noisy counts that were released" in page


@pytest.mark.parametrize(
    ("word", "column"), [("factors", "factor_1"), ("components", "component_1")]
)
def test_from_a_file_to_factors_of_its_lines(run, folder, word, column):
    data, model, out = (
        str(folder / name) for name in ("places.csv", f"{word}.reticent", f"{word}.csv")
    )
    shown = run("fit", word, data, *X, "--n-components", "1", "--out", model)
    assert shown.code == 0, shown.err
    assert run("predict", model, data, "--out", out).code == 0
    with open(out, newline="") as file:
        assert next(csv.DictReader(file)).keys() == {"longitude", "latitude", column}
    assert len(json.loads(run("inspect", model, "--json").out)["results"]["loadings"]) == 1


def test_options_of_other_models_are_refused(run, folder):
    wrong = run(
        "fit",
        "kmeans",
        str(folder / "places.csv"),
        *X,
        "--n-components",
        "2",
        "--out",
        str(folder / "w"),
    )
    assert wrong.code == 2
    assert "kmeans has no option --n-components" in wrong.err


def test_drawings(clusters, factors):
    drawn = raw_svg(plot.release(clusters))
    assert "longitude" in drawn
    assert "latitude" in drawn
    wide = np.random.default_rng(0).uniform(-1, 1, size=(300, 3))
    several = reticent.KMeans(2, bounds=reticent.Bounds(x=(-1, 1)), **COMMON).fit(wide)
    assert "column 2" in raw_svg(plot.release(several, width=3.6))
    assert "−0.9" in raw_svg(plot.release(factors["FactorAnalysis"]))


def test_columns_that_can_be_pixels_are_drawn_as_images(tmp_path):
    pixels = np.random.default_rng(0).uniform(0, 16, size=(200, 49))
    model = reticent.FactorAnalysis(3, bounds=reticent.Bounds(x=(0, 16)), **COMMON).fit(pixels)
    assert len(plot.release(model).axes) == 3
    model.report(tmp_path / "r.html")
    page = (tmp_path / "r.html").read_text()
    assert "pixels of an image" in page
    assert "that come first are drawn" not in page


def test_loadings_are_correlations(factors):
    for model in factors.values():
        assert presenter_of(model).loadings()[0] == pytest.approx([0.96, -0.94, 0.32], abs=0.06)


def test_a_cluster_that_noise_may_have_made_up_is_noted():
    model = reticent.KMeans(5, bounds=reticent.Bounds(x=(-1, 1)), **COMMON).fit(np.zeros((30, 2)))
    assert "take fewer clusters" in ClusterPresenter(model).notes()[0]
