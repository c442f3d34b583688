"""``reticent fit gp-labels``.

What a person sees of a label-only model, from the fit to the report.
"""

import json

import pytest

import reticent
from reticent.cli.fit_run import fit
from tests.support.prose import says

ASK = ("--x", "age=0:110", "--y", "weight=2:150", "--epsilon", 1, "--delta", 1e-5)
QUICK = ("--mechanism", "functional", "--noise", 10)


@pytest.fixture(scope="module")
def model_file(tmp_path_factory, people_csv):
    path = tmp_path_factory.mktemp("labels") / "m.reticent"
    bounds = reticent.Bounds(x={"age": (0, 110)}, y={"weight": (2, 150)})
    how = {"epsilon": 1, "delta": 1e-5, "stages": 3, "noise": 10.0, "learn_kernel": False}
    reticent.LabelGPRegressor(bounds=bounds, **how).fit(people_csv).save(path)
    return path


def test_fit_charges_an_account_for_labels_and_says_what_is_not_protected(
    run, tmp_path, people_csv, budget
):
    out = tmp_path / "m.reticent"
    charge = ("--ledger", budget)
    refused = run(
        "fit", "gp-labels", people_csv, *ASK, *QUICK, *charge, "--dataset", "people", "--out", out
    )
    assert refused.code != 0
    assert says(refused.err, "not add up")
    opened = run(
        "ledger", "open", budget, "weights", "--epsilon", 1, "--delta", 1e-5, "--relation", "label"
    )
    assert opened.code == 0
    answer = run(
        "fit", "gp-labels", people_csv, *ASK, *QUICK, *charge, "--dataset", "weights", "--out", out
    )
    assert answer.code == 0
    words = " ".join(answer.out.split())
    assert says(words, "protects the label of any one of", "inputs are NOT protected")
    assert "Inputs are NOT protected: they are part of this release" in words
    assert "LabelGPRegressor, 8 releases" in " ".join(
        run("ledger", "history", budget, "weights").out.split()
    )


def test_predict_and_inspect(run, model_file, tmp_path):
    (tmp_path / "new.csv").write_text("age\n30\n50\n")
    answer = run("predict", model_file, tmp_path / "new.csv", "--out", tmp_path / "p.csv")
    assert answer.code == 0
    first = (tmp_path / "p.csv").read_text().splitlines()
    assert first[0] == "age,weight,weight_std,weight_output_std"
    assert len(first) == 3
    words = " ".join(run("inspect", model_file).out.split())
    assert says(words, "LabelSum", "3 times", "cloak", "trace", "inputs")
    assert says(words, "neighbours", "label of one record")
    about = json.loads(run("inspect", model_file, "--json").out)
    assert about["guarantee"]["relation"] == "label"


def test_the_report_says_it_too(run, model_file, tmp_path):
    assert run("report", model_file, "--out", tmp_path / "r.html").code == 0
    page = (tmp_path / "r.html").read_text()
    assert "protects the label of one record; inputs are <b>not</b> protected" in page
    assert says(page, "the inputs of the records")
    assert "the labels in the data" in page


def test_wrong_use(run, people_csv, tmp_path):
    out = ("--out", tmp_path / "m")
    answer = run("fit", "gp-labels", people_csv, *ASK, "--mechanism", "magic", *out)
    assert answer.code == 2
    assert "mechanism must be one of" in answer.err
    assert run("fit", "gp-labels", people_csv, *ASK, "--basis", 9, *out).code == 2
    assert run("fit", "gp", people_csv, *ASK, "--mechanism", "cloak", *out).code == 2


def test_a_slow_fit_tells_of_its_releases_and_keeps_no_listener(people_csv, tmp_path):
    heard = []
    own = {
        "x": ["age=0:110"],
        "y": ["weight=2:150"],
        "classes": (),
        "norm": None,
        "own": {},
        "ledger": None,
    }
    promise = {"epsilon": 1.0, "delta": 1e-5, "dataset": None, "records_per_person": 1}
    (tmp_path / "few.csv").write_text(
        "".join(people_csv.read_text().splitlines(keepends=True)[:40])
    )
    model, _, _ = fit(
        "gp-labels",
        str(tmp_path / "few.csv"),
        **own,
        **promise,
        out=tmp_path / "m.reticent",
        advance=heard.append,
    )
    assert heard == [1] * 8
    assert "_listen" not in vars(model)
