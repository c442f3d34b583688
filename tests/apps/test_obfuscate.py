"""``reticent obfuscate``: the file, the page with its seal, the refusals."""

import csv
import json

import numpy as np
import pytest

from reticent.experiments.tuo_orbit import orbit

SENSITIVE = ("--x", "time", "--y", "radius", "--sensitive", "1.4:1.8")
FAST = ("--length", "0.2", "--share", "0.5")


@pytest.fixture
def data(tmp_path):
    t = np.linspace(0, 3, 31)
    path = tmp_path / "orbit.csv"
    lines = "".join(f"{a!r},{b!r},x\n" for a, b in zip(t.tolist(), orbit(t)[:, 0].tolist(), strict=True))
    path.write_text("time,radius,note\n" + lines)
    return path


def test_release_report_and_memory(run, data, tmp_path):
    out, page, ledger = tmp_path / "W.csv", tmp_path / "page.html", tmp_path / "b.db"
    common = ["obfuscate", str(data), *SENSITIVE, *FAST, "--ledger", str(ledger), "--dataset", "orbit"]
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
