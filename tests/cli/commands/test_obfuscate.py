"""``reticent obfuscate``: the file, the page with its seal, the refusals."""

import csv
import json

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF

import reticent
from reticent.obfuscation import plots as obfuscation_plots
from reticent.studies.tuo2023.orbit import orbit
from tests.support.prose import says

SENSITIVE = ("--x", "time", "--y", "radius", "--sensitive", "1.4:1.8")
POINT = ("--x", "time", "--y", "radius", "--sensitive", "1.6")  # in closed form, so faster
KERNEL = ("--length", "0.2", "--spread", "0.2")
FAST = (*KERNEL, "--share", "0.5")


@pytest.fixture
def data(tmp_path):
    t = np.linspace(0, 3, 31)
    path = tmp_path / "orbit.csv"
    lines = "".join(
        f"{a!r},{b!r},x\n" for a, b in zip(t.tolist(), orbit(t)[:, 0].tolist(), strict=True)
    )
    path.write_text("time,radius,note\n" + lines)
    return path


def test_release_report_and_memory(run, data, tmp_path):
    out = tmp_path / "W.csv"
    page = tmp_path / "page.html"
    ledger = tmp_path / "b.db"
    common = [
        "obfuscate",
        str(data),
        *SENSITIVE,
        *FAST,
        "--ledger",
        str(ledger),
        "--dataset",
        "orbit",
    ]
    done = run(*common, "--out", str(out), "--report", str(page), "--new-ledger")
    assert done.code == 0, done.err
    assert "NOT differential privacy" in done.out
    with open(out, newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == ["time", "radius"]
    assert len(rows) == 31
    text = page.read_text(encoding="utf-8")
    assert "Inferential privacy, not DP" in text
    assert "Differentially private" not in text
    assert text.count("<svg") >= 4
    again = run(*common, "--out", str(tmp_path / "again.csv"), "--json")
    assert again.code == 0
    assert (tmp_path / "again.csv").read_text() == out.read_text()
    about = json.loads(again.out)
    assert about["differential_privacy"] is False
    assert about["certificate"]["held"] is True
    refused = run(*common, "--share", "0.4", "--out", str(tmp_path / "other.csv"))
    assert refused.code == 3
    assert not (tmp_path / "other.csv").exists()


@pytest.mark.parametrize(
    ("change", "code", "says"),
    [
        (["--sensitive", "a:b"], 2, "LOW:HIGH"),
        (["--sensitive", "80:100"], 2, "lies outside the curve"),
        (["--variance", "0.1"], 2, "either a variance or a share"),
        (["--solution", "best"], 2, "solution must be"),
        (["--share", "2"], 2, "share must be"),
        (["--y", "weight"], 5, "no column"),
        (["--y", "note"], 5, "no number"),
        (["--ledger", "nowhere.db", "--dataset", "a"], 5, "no ledger"),
        (["--length", "0"], 2, "--length must be"),
        (["--spread", "nan"], 2, "--spread must be"),
        (["--train-on", "nowhere.csv"], 5, "nowhere.csv"),
        (["--train-on", "a.csv", "--unprotected-training"], 2, "exclude each other"),
        (["--releases", "2"], 2, "needs a ledger"),
        (["--number", "2"], 3, "1 is planned"),
        (["--noise", "-1"], 2, "cannot be -1"),
    ],
)
def test_refusals(run, data, tmp_path, change, code, says):
    done = run("obfuscate", str(data), *SENSITIVE, *FAST, *change, "--out", str(tmp_path / "W.csv"))
    assert done.code == code, done.err
    assert says in done.err
    assert not (tmp_path / "W.csv").exists()


def test_an_existing_file_is_not_replaced(run, data, tmp_path):
    (tmp_path / "W.csv").write_text("mine")
    done = run("obfuscate", str(data), *SENSITIVE, *FAST, "--out", str(tmp_path / "W.csv"))
    assert done.code == 5
    assert (tmp_path / "W.csv").read_text() == "mine"


def test_a_kernel_is_given_or_learned_elsewhere_or_the_promise_is_conditional(run, data, tmp_path):
    common = ["obfuscate", str(data), *POINT, "--share", "0.5"]
    refused = run(*common, "--length", "0.2", "--out", str(tmp_path / "W.csv"))
    assert refused.code == 4
    assert says(refused.err, "spread", "not given")
    for option in ("--spread", "--train-on", "--unprotected-training"):
        assert option in refused.err
    assert not (tmp_path / "W.csv").exists()
    same = run(*common, "--train-on", str(data), "--out", str(tmp_path / "A.csv"))
    assert same.code == 2
    assert "no other curve" in same.err
    earlier = tmp_path / "earlier.csv"
    head, *rows = data.read_text().split()
    values = [row.split(",")[1] for row in rows]
    moved = values[7:] + values[:7]  # the same body, earlier
    earlier.write_text(
        "\n".join(
            [head, *(f"{row.split(',')[0]},{v},x" for row, v in zip(rows, moved, strict=True))]
        )
    )
    other = run(*common, "--train-on", str(earlier), "--out", str(tmp_path / "A.csv"), "--json")
    assert json.loads(other.out)["trained_on"] == "another curve"
    assert json.loads(other.out)["conditional"] is False
    page = tmp_path / "B.html"
    own = run(
        *common, "--unprotected-training", "--out", str(tmp_path / "B.csv"), "--report", str(page)
    )
    assert own.code == 0
    assert "CONDITIONAL" in own.out
    assert "The promise is conditional" in page.read_text()
    assert "; conditional" in page.read_text()


def test_planned_releases_the_ledger_and_files(run, data, tmp_path):
    ledger = tmp_path / "b.db"
    file = tmp_path / "W.reticent"
    common = [
        "obfuscate",
        str(data),
        *POINT,
        *FAST,
        "--ledger",
        str(ledger),
        "--dataset",
        "orbit",
        "--releases",
        "2",
    ]
    first = run(*common, "--out", str(tmp_path / "1.csv"), "--new-ledger", "--model", str(file))
    assert first.code == 0, first.err
    assert "number 1 of 2" in first.out
    assert run(*common, "--number", "2", "--out", str(tmp_path / "2.csv")).code == 0
    assert (tmp_path / "1.csv").read_text() != (tmp_path / "2.csv").read_text()
    assert run(*common, "--number", "3", "--out", str(tmp_path / "3.csv")).code == 3
    shown = run("ledger", "show", str(ledger))
    assert "orbit" in shown.out
    assert "not DP" in shown.out
    assert json.loads(run("ledger", "show", str(ledger), "orbit", "--json").out)[0]["releases"] == 2
    assert run("ledger", "verify", str(ledger)).code == 0
    opened = run("ledger", "open", str(ledger), "orbit", "--epsilon", "1", "--delta", "1e-6")
    assert opened.code == 3
    assert "obfuscated curve" in opened.err
    about = run("inspect", str(file))
    assert "NOT DP" in about.out
    assert "radius over time" in about.out
    assert json.loads(run("inspect", str(file), "--json").out)["differential_privacy"] is False
    told = run("predict", str(file), str(data), "--out", str(tmp_path / "p.csv"))
    assert told.code == 0, told.err
    assert (tmp_path / "p.csv").read_text().startswith("time,radius,radius_std\n")
    page = run("report", str(file), "--out", str(tmp_path / "page.html"))
    assert page.code == 0, page.err
    assert "Inferential privacy, not DP" in (tmp_path / "page.html").read_text()
    assert run("sample", str(file), "-n", "3", "--out", str(tmp_path / "s.csv")).code == 2


def test_noise_is_a_standard_deviation_and_rows_keep_their_order(run, data, tmp_path):
    head, *rows = data.read_text().splitlines()
    data.write_text("\n".join([head, *rows[::-1]]) + "\n")
    file = tmp_path / "W.reticent"
    done = run(
        "obfuscate",
        str(data),
        *POINT,
        *FAST,
        "--noise",
        "0.125",
        "--out",
        str(tmp_path / "W.csv"),
        "--model",
        str(file),
    )
    assert done.code == 0, done.err
    model = reticent.load(file)
    assert model.noise_ == 0.125
    assert model.noise_covariance_[0, 0] == 0.125**2
    with open(tmp_path / "W.csv", newline="", encoding="utf-8") as text:
        written = list(csv.DictReader(text))
    assert [float(row["time"]) for row in written] == np.linspace(0, 3, 31)[::-1].tolist()
    assert [float(row["radius"]) for row in written] == model.released_.tolist()
    assert "Standard deviation of the measurement error" in " ".join(
        run("obfuscate", "--help").out.split()
    )


@pytest.mark.parametrize("sensitive", [[1.2, 1.6], [[1.2], [1.6]]], ids=["list", "column"])
def test_sensitive_points_are_drawn_however_they_are_given(sensitive):
    t = np.linspace(0, 3, 31)
    model = reticent.Obfuscator(RBF(0.2, "fixed"), sensitive=sensitive, share=0.5, random_state=0)
    model.obfuscate(t, orbit(t)[:, 0])
    (axes,) = obfuscation_plots.draw_released_curve(model).axes
    at = [line.get_xdata()[0] for line in axes.lines if len(set(line.get_xdata())) == 1]
    assert at == [1.2, 1.6]
