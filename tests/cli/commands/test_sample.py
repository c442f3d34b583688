"""``reticent fit mixture`` and ``reticent sample``.

From a file to synthetic records that look like it.
"""

import json

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import reticent
from reticent.cli.main import app
from tests.support.prose import says

BOUNDS = reticent.Bounds(x={"age": (0, 100), "height": (50, 200)})


def people(n=3000):
    rng = np.random.default_rng(0)
    old = rng.random(n) < 0.6
    return pd.DataFrame(
        {
            "age": np.where(old, 55, 8) + 5 * rng.normal(size=n),
            "height": np.where(old, 170, 115) + 9 * rng.normal(size=n),
        }
    )


def run(*words):
    return CliRunner().invoke(app, [str(word) for word in words])


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sample")
    people().to_csv(folder / "p.csv", index=False)
    done = run(
        *(
            "fit",
            "mixture",
            folder / "p.csv",
            "--x",
            "age=0:100",
            "--x",
            "height=50:200",
            "--n-components",
            2,
        ),
        *("--epsilon", 3, "--delta", 1e-6, "--out", folder / "m.reticent"),
    )
    assert done.exit_code == 0, done.output
    assert "reticent sample" in done.output
    reticent.PrivateMean(bounds=BOUNDS, epsilon=1, delta=1e-6).fit(people()).save(
        folder / "mean.reticent"
    )
    return folder


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_synthetic_records_have_the_names_ranges_and_relations_of_the_data(folder, ending):
    out = folder / f"s.{ending}"
    done = run("sample", folder / "m.reticent", "-n", 2000, "--out", out, "--seed", 1, "--json")
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["columns"] == ["age", "height"]
    drawn = pd.read_csv(out) if ending == "csv" else pd.read_parquet(out)
    assert list(drawn) == ["age", "height"]
    assert len(drawn) == 2000
    assert drawn["age"].between(0, 100).all()
    assert drawn["height"].between(50, 200).all()
    assert drawn.corr().iloc[0, 1] == pytest.approx(people().corr().iloc[0, 1], abs=0.05)
    assert run("sample", folder / "m.reticent", "--out", out).exit_code == 5  # never replaced


def test_samples_charge_nothing_and_say_so(folder):
    done = run("sample", folder / "m.reticent", "-n", 10, "--out", folder / "few.csv")
    assert says(done.output, "nothing", "releases only")
    assert len((folder / "few.csv").read_text().splitlines()) == 11


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("mean.reticent", "--out", "x.csv"), 2, "draws no records"),
        (("m.reticent", "--out", "x.txt"), 2, ".csv or .parquet"),
        (("m.reticent", "-n", "0", "--out", "x.csv"), 2, "at least 1"),
        (("nothing.reticent", "--out", "x.csv"), 5, "cannot be read"),
    ],
)
def test_wrong_use_says_what_to_do(folder, words, code, said):
    done = run("sample", *(folder / word if "." in word else word for word in words))
    assert done.exit_code == code
    assert said in " ".join(done.output.split())
    assert not (folder / "x.csv").exists()


def test_inspect_and_report_show_parts(folder):
    told = json.loads(run("inspect", folder / "m.reticent", "--json").stdout)
    assert told["results"]["components"] == 2
    assert sorted(np.round(told["results"]["weights"], 1)) == [0.4, 0.6]
    assert run("report", folder / "m.reticent", "--out", folder / "r.html").exit_code == 0
    page = (folder / "r.html").read_text()
    assert says(page, "mixture of 2", "age", "height")
    assert says(page, "mixture", "each column")


def test_without_a_number_of_components_it_is_chosen_and_said(folder):
    out = folder / "free.reticent"
    columns = ("--x", "age=0:100", "--x", "height=50:200")
    promise = ("--epsilon", 3, "--delta", 1e-6, "--out", out)
    done = run("fit", "mixture", folder / "p.csv", *columns, *promise)
    assert done.exit_code == 0, done.output
    assert says(done.output, "chosen from the releases", "cost in privacy: 2")
    assert run("report", out, "--out", folder / "free.html").exit_code == 0
    assert says((folder / "free.html").read_text(), "chosen from the releases")


@pytest.mark.parametrize("columns", [1, 3])
def test_densities_and_ellipses_are_drawn(columns):
    data = np.random.default_rng(1).normal(size=(500, columns))
    model = reticent.GaussianMixture(
        1, bounds=reticent.Bounds(x=(-5, 5)), epsilon=5, delta=1e-6
    ).fit(data)
    drawn = reticent.plot.release(model)
    assert len(drawn.axes) == (1 if columns == 1 else 3)
    assert all(axes.lines for axes in drawn.axes)


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_factors_can_be_sampled_too(folder, ending, tmp_path):
    reticent.FactorAnalysis(1, bounds=BOUNDS, epsilon=3, delta=1e-6).fit(people()).save(
        tmp_path / "f.reticent"
    )
    done = run(
        "sample", tmp_path / "f.reticent", "-n", 50, "--out", tmp_path / f"s.{ending}", "--json"
    )
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["records"] == 50
