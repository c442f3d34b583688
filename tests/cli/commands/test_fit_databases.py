"""``reticent fit`` and what goes before it, on databases, patterns and compressed files."""

import gzip
import sqlite3
from pathlib import Path

import duckdb
import openpyxl
import pytest

import reticent
from tests.support.prose import says

PROMISE = ("--epsilon", 0.5, "--delta", 1e-5)
AGE = ("--x", "age=0:110")
SECRET = "s3cret"


@pytest.fixture
def clinic(tmp_path, monkeypatch, people_csv):
    """The people of the CSV file, in an SQLite file and in a DuckDB file."""
    monkeypatch.chdir(tmp_path)
    with duckdb.connect("clinic.duckdb") as connection:
        rows = connection.sql(f"SELECT age, weight FROM '{people_csv}'").fetchall()
        connection.execute(f"CREATE TABLE people AS SELECT * FROM '{people_csv}'")
    connection = sqlite3.connect("clinic.db")
    with connection:
        connection.execute("CREATE TABLE people (age, weight)")
        connection.executemany("INSERT INTO people VALUES (?, ?)", rows)
    connection.close()


@pytest.mark.parametrize("address", ["sqlite:///clinic.db", "duckdb:///clinic.duckdb"])
@pytest.mark.parametrize(
    "which", [("--table", "people"), ("--query", "SELECT age FROM people WHERE age >= 0")]
)
def test_a_fit_of_a_database(run, clinic, address, which, budget):
    account = ("--ledger", budget, "--dataset", "people")
    answer = run("fit", "mean", address, *which, *AGE, *PROMISE, *account, "--out", "m.reticent")
    assert answer.code == 0, answer.err
    assert "500 records" in answer.out
    assert list(reticent.load("m.reticent").feature_names_in_) == ["age"]
    assert reticent.Ledger(budget).spent("people") == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("data", "options", "code", "words"),
    [
        ("sqlite:///clinic.db", (), 2, "Say which records of clinic.db to read"),
        ("sqlite:///clinic.db", ("--table", "patients"), 5, "no such table: patients"),
        ("sqlite:///none.db", ("--table", "people"), 5, "There is no file none.db"),
        ("duckdb:///clinic.duckdb", ("--table", "patients"), 5, "patients"),
        ("sqlite:///clinic.db", ("--table", "people", "--decimal", ","), 2, "decimal"),
        (f"postgresql://u:{SECRET}@127.0.0.1:1/c", ("--table", "people"), 5, "Cannot connect"),
        (f"postgresql://u:{SECRET}@127.0.0.1:1/c", (), 2, "Say which records"),
        (f"mysql://u:{SECRET}@127.0.0.1:1/c", ("--table", "people"), 5, "mysql://…"),
    ],
)
def test_what_cannot_be_read_is_refused_before_the_charge(
    run, clinic, data, options, code, words, budget
):
    account = ("--ledger", budget, "--dataset", "people")
    for command in (("fit", "mean"), ("search", "gp"), ("check",), ("codebook",)):
        rest = (*AGE, *PROMISE, *account, "--out", "m.reticent")
        if command == ("search", "gp"):
            rest = ("--y", "weight=2:150", "--try", "basis=20,50", *rest)
        if command == ("check",):
            rest = AGE
        if command == ("codebook",):
            rest = ("--out", "c.toml")
        answer = run(*command, data, *options, *rest)
        assert answer.code == code, (command, answer.err)
        assert says(answer.err, words), (command, answer.err)
        assert SECRET not in answer.out + answer.err
    assert not reticent.Ledger(budget).history("people")


def test_columns_are_named_without_the_address_of_a_person(run, clinic):
    answer = run("fit", "mean", "sqlite:///clinic.db", "--table", "people", *PROMISE, "--out", "m")
    assert answer.code == 4
    assert says(answer.err, "Columns in clinic.db: age, weight")
    answer = run(
        *("fit", "mean", "sqlite:///clinic.db", "--table", "people", "--x", "agee=0:110"),
        *(*PROMISE, "--out", "m.reticent"),
    )
    assert answer.code == 2
    assert says(answer.err, "age")


def test_a_codebook_of_a_table(run, clinic):
    answer = run("codebook", "sqlite:///clinic.db", "--table", "people", "--out", "c.toml")
    assert answer.code == 0, answer.err
    assert "[columns.weight]" in Path("c.toml").read_text()


def test_a_check_and_predictions_are_of_files(run, clinic):
    answer = run("check", "sqlite:///clinic.db", "--table", "people", *AGE)
    assert answer.code == 5
    assert says(answer.err, "A check is for CSV and Parquet files")
    table = ("--table", "people")
    fitted = run(
        "fit",
        "gp",
        "sqlite:///clinic.db",
        *table,
        *AGE,
        "--y",
        "weight=2:150",
        *PROMISE,
        "--out",
        "m.reticent",
    )
    assert fitted.code == 0, fitted.err
    answer = run("predict", "m.reticent", f"postgresql://u:{SECRET}@h/c", "--out", "p.csv")
    assert answer.code == 2
    assert says(answer.err, "Predictions are made for files")
    assert SECRET not in answer.err


def test_patterns_and_compressed_files(run, people_csv, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = people_csv.read_bytes()
    for part in (1, 2):
        (tmp_path / f"part-{part}.csv.gz").write_bytes(gzip.compress(text))
    answer = run("fit", "mean", "part-*.csv.gz", *AGE, *PROMISE, "--out", "m.reticent")
    assert answer.code == 0, answer.err
    assert "1,000 records" in answer.out
    answer = run("check", "part-1.csv.gz", *AGE)
    assert answer.code == 0, answer.err
    assert "500 records" in answer.out
    answer = run("fit", "mean", "none-*.csv", *AGE, *PROMISE, "--out", "n.reticent")
    assert answer.code == 5
    assert says(answer.err, "no CSV or Parquet file that fits none-*.csv")


def test_a_sheet_of_a_workbook(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    book = openpyxl.Workbook()
    book.active.append(["notes"])
    sheet = book.create_sheet("2024")
    for row in (["age"], *([age] for age in range(50))):
        sheet.append(row)
    book.save("people.xlsx")
    fit = ("fit", "mean", "people.xlsx", *AGE, *PROMISE, "--out", "m.reticent")
    answer = run(*fit)
    assert answer.code == 2
    assert says(answer.err, "Say which sheet of people.xlsx to read")
    answer = run(*fit, "--sheet", "2024")
    assert answer.code == 0, answer.err
    assert "50 records" in answer.out
