"""Files as people have them, and names as nobody should.

What commands read, and what they write.
"""

import csv
import json
import re

import numpy as np
import pandas as pd
import pytest

import reticent
from reticent.cli.columns import column_name
from reticent.reporting.search_result import search_results, search_table
from tests.support.fitted_models import Page

ALMOST_EXACT = ("--epsilon", 1e6, "--delta", 1e-5)
PROMISE = ("--epsilon", 1, "--delta", 1e-5)
COLOURED = "a\x1b[31mred\x1b]0;pwned\x07"
TURNED = "b\u202eevil"
FORMULA = '=HYPERLINK("http://evil","x")'
MARKUP = "<script>alert(1)</script>"
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\x9b\u202e]")


@pytest.fixture
def mean(run, tmp_path):
    """The mean of the column age of a file with these bytes, with next to no noise."""

    def call(content, name="data.csv", column="age"):
        (tmp_path / name).write_bytes(content)
        option = column
        if column.startswith('"'):  # a name in quotes is written as in a CSV file
            option = column_name(column)
        answer = run(
            "fit",
            "mean",
            tmp_path / name,
            "--x",
            f"{option}=0:100",
            *ALMOST_EXACT,
            "--out",
            tmp_path / "m",
            "--json",
        )
        assert answer.code == 0, answer.err
        return json.loads(answer.out)["results"]["mean"][column]["value"]

    return call


@pytest.mark.parametrize(
    ("content", "wanted"),
    [
        (b"age\n10\n20\n30\n", 20),
        (b"\xef\xbb\xbfage\n10\n20\n30\n", 20),  # Excel's mark of UTF-8
        (b"age\r\n10\r\n20\r\n30\r\n", 20),
        (b"age\n10\n20\n30", 20),  # no line break at the end
        (b'"age"\n"10"\n"20"\n"30"\n', 20),
        (b"age\n 10\n20 \n\t30\n", 20),
        (b'name,age\n"a, b",10\n\'c,20\n,30\n', 20),
        (b"age,age2\n10,1\n20,\n30,x\n", 20),
        (b"age\n1e1\n2.0E+1\n+30\n", 20),
        (b'age,x\n"1,000",1\n10,2\n', 10),  # thousands are no plain number: missing, left out
        (b"age,x\n40\xc2\xa0,1\n10,2\n", 10),  # nor is a number with a space that cannot be seen
        (b"age\n72 kg\n10\n", 10),
        (b"age\nNA\n10\n", 10),
        (b"age\n-50\n10\n", 5),  # outside: the nearest edge
        (b"age\ninf\n10\n", 55),
        (b"name,age\n\xff,10\n\xfe,30\n", 20),  # other columns need not be UTF-8
        (b"n\xe4me,age\n1,10\n2,30\n", 20),  # nor their names
    ],
)
def test_cells_of_a_text_file(mean, content, wanted):
    assert mean(content) == pytest.approx(wanted, abs=0.5)


def test_tabs_and_folders(mean, run, tmp_path):
    assert mean(b"id\tage\n1\t10\n2\t30\n", "data.tsv") == pytest.approx(20, abs=0.5)
    folder = tmp_path / "parts"
    folder.mkdir()
    for i, age in enumerate((10, 20, 60)):
        (folder / f"{i}.csv").write_text(f"age\n{age}\n")
    answer = run(
        "fit", "mean", folder, "--x", "age=0:100", *ALMOST_EXACT, "--out", tmp_path / "f", "--json"
    )
    assert json.loads(answer.out)["results"]["mean"]["age"]["value"] == pytest.approx(30, abs=0.5)
    assert json.loads(answer.out)["releases"][0]["n"] == 3


@pytest.mark.parametrize(
    "name", ["body mass", "größe", "年齢", "a=b", "a:b", '"q"', "--x", MARKUP, FORMULA, "$x^2$"]
)
def test_a_column_may_have_any_name(mean, name):
    header = '"' + name.replace('"', '""') + '"'
    assert mean(f"{header},z\n10,1\n30,2\n".encode(), column=name) == pytest.approx(20, abs=0.5)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "data.csv"),
        (b"\n\n", "data.csv"),
        (b"age,age\n1,2\n", "Give each column a name of its own"),
        (b"age\n", "no records"),
        (b"PK\x03\x04\x00\x00", "is no text"),
    ],
)
def test_what_is_no_table_is_refused_in_words(run, tmp_path, content, words):
    (tmp_path / "data.csv").write_bytes(content)
    answer = run(
        "fit", "mean", tmp_path / "data.csv", "--x", "age=0:100", *PROMISE, "--out", tmp_path / "m"
    )
    assert answer.code in (2, 5)
    assert words in answer.err
    assert "Traceback" not in answer.err
    assert "went wrong inside" not in answer.err
    assert not (tmp_path / "m").exists()


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    """A file whose columns try to talk to terminals, pages and spreadsheets."""
    path = tmp_path_factory.mktemp("hostile") / "data.csv"
    random = np.random.default_rng(0)
    frame = pd.DataFrame(
        random.uniform(0, 10, (200, 4)), columns=[COLOURED, TURNED, FORMULA, MARKUP]
    )
    frame.to_csv(path, index=False)
    return path


def test_no_refusal_lets_a_column_talk_to_the_terminal(run, hostile, tmp_path):
    for options, code in (
        ((), 4),
        (("--x", "none=0:1"), 2),
        (("--x", f"{COLOURED}=0:1", "--x", f"{COLOURED}=0:1"), 2),
        (("--x", f"{COLOURED}=9:1"), 4),
    ):
        answer = run("fit", "mean", hostile, *options, *PROMISE, "--out", tmp_path / "m")
        assert answer.code == code
        assert "pwned" in answer.err or "none" in answer.err
        assert not CONTROL.search(answer.err)


def test_nothing_that_is_shown_lets_a_column_talk_to_the_terminal(run, hostile, tmp_path):
    columns = [
        word for name in (COLOURED, TURNED, FORMULA, MARKUP) for word in ("--x", f"{name}=0:10")
    ]
    for word in ("mean", "histogram", "covariance", "mixture", "kmeans", "factors"):
        answer = run("fit", word, hostile, *columns, *PROMISE, "--out", tmp_path / word)
        assert answer.code == 0, answer.err
        for out in (answer.out, run("inspect", tmp_path / word).out):
            assert "a�[31mred" in out
            assert not CONTROL.search(out)


def test_nor_does_the_table_of_a_search(hostile):
    both, one = (dict.fromkeys(names, (0, 10)) for names in ((COLOURED, TURNED), (COLOURED,)))
    candidates = [
        {"bounds": reticent.Bounds(x=inputs, y={MARKUP: (0, 10)})} for inputs in (both, one)
    ]
    model = reticent.GPRegressor(basis=4, stages=1, learn_kernel=False)
    promise = {"bounds": candidates[0]["bounds"], "epsilon": 1, "delta": 1e-5, "expected_runs": 2}
    search = reticent.PrivateSearch(model, candidates, **promise).fit(reticent.scan(hostile))
    cells = [cell for row in search_table(search).rows for cell in row]
    assert "inputs a�[31mred�]0;pwned� + b�evil" in cells
    assert not CONTROL.search(" ".join(cells) + str(search_results(search)["candidates"]))


@pytest.fixture(scope="module")
def predicting(hostile, tmp_path_factory):
    """A model of the hostile file that predicts."""
    path = tmp_path_factory.mktemp("model") / "gp.reticent"
    bounds = reticent.Bounds(x={COLOURED: (0, 10), FORMULA: (0, 10)}, y={MARKUP: (0, 10)})
    model = reticent.GPRegressor(
        bounds=bounds, epsilon=8, delta=1e-5, basis=5, stages=2, learn_kernel=False
    )
    model.fit(reticent.scan(hostile)).save(path)
    return path


def test_tables_that_are_written_are_read_back_whatever_the_names(
    run, predicting, hostile, tmp_path
):
    answer = run("predict", predicting, hostile, "--out", tmp_path / "p.csv")
    assert answer.code == 0, answer.err
    assert not CONTROL.search(answer.out)
    with open(tmp_path / "p.csv", newline="", encoding="utf-8") as file:
        head, *rows = csv.reader(file)
    # a name that a spreadsheet would run is written as text
    assert head == [COLOURED, f"'{FORMULA}", MARKUP, f"{MARKUP}_std", f"{MARKUP}_output_std"]
    given = pd.read_csv(hostile)
    assert np.array(rows, dtype=float)[:, :2] == pytest.approx(
        given[[COLOURED, FORMULA]].to_numpy()
    )


def test_no_cell_of_predictions_begins_a_formula(run, predicting, hostile, tmp_path):
    """Names are the user's own.

    But of cells that a model fills, none does more than hold a number.
    """
    run("predict", predicting, hostile, "--out", tmp_path / "p.csv")
    with open(tmp_path / "p.csv", newline="", encoding="utf-8") as file:
        _, *rows = csv.reader(file)
    assert all(re.fullmatch(r"-?\d+(\.\d+)?(e[-+]\d+)?", cell) for row in rows for cell in row)


def test_the_page_escapes_a_data_sets_name(run, people_csv, tmp_path):
    ledger = tmp_path / "budget.db"
    name = f"{MARKUP} & 'people' \"so\""
    assert run("ledger", "open", ledger, name, "--epsilon", 3, "--delta", 1e-5).code == 0
    fit = (
        "fit",
        "mean",
        people_csv,
        "--x",
        "age=0:110",
        *PROMISE,
        "--ledger",
        ledger,
        "--dataset",
        name,
    )
    assert run(*fit, "--out", tmp_path / "m").code == 0
    answer = run("report", tmp_path / "m", "--out", tmp_path / "r.html", "--ledger", ledger)
    assert answer.code == 0, answer.err
    page = Page(tmp_path / "r.html")
    assert name in page.text
    assert "alert(1)" not in "".join(
        re.findall(r"<script[^>]*>(.*?)</script>", page.source, re.DOTALL)
    )
    assert MARKUP not in page.source


@pytest.mark.parametrize("name", ["x\x1b[31m", "two\nlines", "", "n" * 201, "\u202eback"])
def test_a_data_set_that_would_talk_to_the_terminal_is_never_opened(run, tmp_path, name):
    answer = run("ledger", "open", tmp_path / "budget.db", name, "--epsilon", 1, "--delta", 1e-5)
    assert answer.code == 2
    assert not CONTROL.search(answer.err)


def test_labels_of_classes_are_written_as_they_are_but_for_formulas(run, tmp_path):
    labels = ["=1+1", "b,c", '"q"']
    random = np.random.default_rng(0)
    frame = pd.DataFrame({"x": random.uniform(0, 3, 300)})
    frame["kind"] = np.array(labels)[frame["x"].astype(int)]
    frame.to_csv(tmp_path / "d.csv", index=False)
    classes = ",".join('"' + label.replace('"', '""') + '"' for label in labels)
    fit = (
        "fit",
        "classifier",
        tmp_path / "d.csv",
        "--x",
        "x=0:3",
        "--classes",
        f"kind={classes}",
        "--basis",
        6,
    )
    answer = run(*fit, "--epsilon", 30, "--delta", 1e-5, "--out", tmp_path / "c", "--quiet")
    assert answer.code == 0, answer.err
    assert run("predict", tmp_path / "c", tmp_path / "d.csv", "--out", tmp_path / "p.csv").code == 0
    found = pd.read_csv(tmp_path / "p.csv")
    assert list(found)[1:] == ["kind", *(f"kind_{label}" for label in labels)]
    assert set(found["kind"]) <= {"'=1+1", "b,c", '"q"'}
    assert found[[f"kind_{label}" for label in labels]].sum(axis=1).to_numpy() == pytest.approx(
        1, abs=2e-3
    )
