"""Text that spreadsheet programs would run is written as text, numbers as they are, and names of
columns come back.
"""

import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

import reticent
from reticent.files.csv_tables import TableWriter
from reticent.privacy.sources.formulas import neutral, original

FORMULAS = [
    '=HYPERLINK("http://x.example")',
    "+1+cmd|' /C calc'!A0",
    "-2+3",
    "@SUM(A1)",
    "\t=1",
    "\r=1",
    "\n=1",
    "＝1",
    "＠SUM(A1)",
    "-inf",
    "=",
    "-",
]
PLAIN = ["", "age", "72 kg", "a=b", "'quoted'", "0", "-1", "+2.5", "-.5e-3", "1e5", " =1", "no"]


@pytest.mark.parametrize("text", FORMULAS)
def test_formulas_become_text(text):
    assert neutral(text) == f"'{text}"
    assert original(neutral(text)) == text


@pytest.mark.parametrize("text", PLAIN)
def test_what_is_no_formula_stays(text):
    assert neutral(text) == text
    assert original(text) == text


@given(st.text(alphabet="=+-@'\t\ra1. ", max_size=6))
def test_what_was_written_comes_back_and_does_not_begin_like_a_formula(text):
    written = neutral(text)
    assert original(written) == text
    if written[:1] and written[0] in "=+-@\t\r":
        float(written)  # a number


def test_all_cells_of_a_table_are_looked_at():
    file = io.StringIO()
    table = TableWriter(file)
    table.line(["=a", "b"])
    table.lines([["-1.5", "@c"], ["d", "-e"]])
    assert list(csv.reader(io.StringIO(file.getvalue()))) == [
        ["'=a", "b"],
        ["-1.5", "'@c"],
        ["d", "'-e"],
    ]


def test_column_names_come_back_as_they_were(tmp_path):
    names = ["=1+1", "@x", "-y", "'-z", "age", "'quoted'"]
    with open(tmp_path / "table.csv", "w", newline="", encoding="utf-8") as file:
        table = TableWriter(file)
        table.line(names)
        table.line(["1"] * len(names))
    assert reticent.scan(tmp_path / "table.csv").names == tuple(names)
