"""Sheets of workbooks: rows are records, cells have types of their own."""

from datetime import date, datetime

import numpy as np
import openpyxl
import pytest

import reticent
from reticent.errors import BadInput
from reticent.privacy.columns.words import Labels
from reticent.privacy.sources.base import Field, scan

VISIT = reticent.Date("2019-01-01", "2024-12-31")
FIELDS = [
    Field("age"),
    Field("sex", Labels(("F", "M"))),
    Field("visit", VISIT),
    Field("weight", reticent.Number(0, 150)),
]


def write(path, *rows, **others):
    book = openpyxl.Workbook()
    for row in rows:
        book.active.append(row)
    for name, more in others.items():
        sheet = book.create_sheet(name)
        for row in more:
            sheet.append(row)
    book.save(path)
    return path


HEADER = ["age", "sex", " visit ", "weight"]
ROWS = [
    [34, "F", date(2020, 2, 29), 70.5],
    [61.5, "M", datetime(2020, 1, 1, 12), "82"],
    [None, None, None, None],
    ["old", "?", "2020-02-29", "72 kg"],
    [True, "F"],
    [1, "M", 20, 3, "beyond the header"],
]


def rows(source):
    return np.concatenate([np.empty((0, 4)), *source.blocks(FIELDS)])


def test_rows_and_cells(tmp_path):
    source = scan(write(tmp_path / "p.xlsx", [], HEADER, *ROWS))
    assert source.names == ("age", "sex", "visit", "weight")
    assert source.count() == 5  # a blank row is none
    nan = np.nan
    leap = (date(2020, 2, 29) - date(1970, 1, 1)).days
    new_year = (date(2020, 1, 1) - date(1970, 1, 1)).days + 0.5
    expected = [
        [34, 0, leap, 70.5],
        [61.5, 1, new_year, 82],
        [nan, nan, leap, nan],
        [1, 0, nan, nan],
        [1, 1, nan, 3],
    ]
    assert np.array_equal(rows(source), expected, equal_nan=True)


def test_a_record_changes_no_other(tmp_path):
    plain = rows(scan(write(tmp_path / "p.xlsx", HEADER, *ROWS)))
    for odd in (
        [1e308] * 4,
        ["=1/0", "F", "=1/0", "=1/0"],
        ["x" * 30_000] * 9,
        [datetime(1900, 1, 1)] * 4,
        ["\t"],
    ):
        changed = [odd if i == 1 else row for i, row in enumerate(ROWS)]
        found = rows(scan(write(tmp_path / "q.xlsx", HEADER, *changed)))
        if odd == ["\t"]:  # a blank row: not a record any more, and n is public
            assert len(found) == len(plain) - 1
        else:
            others = [0, 2, 3, 4]
            assert np.array_equal(found[others], plain[others], equal_nan=True)


def test_one_sheet_is_chosen(tmp_path):
    path = write(tmp_path / "p.xlsx", HEADER, ROWS[0], old=[["age"], [1], [2]])
    with pytest.raises(BadInput, match=r"which sheet .*: Sheet, old\."):
        scan(path)
    with pytest.raises(BadInput, match="Sheet, old"):
        scan(path, sheet="new")
    assert scan(path, sheet="old").names == ("age",)
    assert scan([path, path], sheet="old").count() == 4
    with pytest.raises(BadInput, match="sheet is for workbooks"):
        scan(np.zeros((2, 1)), sheet="old")
    with pytest.raises(BadInput, match="separator is for CSV files"):
        scan(path, sheet="old", separator=";")


def test_the_same_integers_as_from_lists(tmp_path):
    ages = [[float(age)] for age in range(90)]
    bounds = reticent.Bounds(x={"age": (0, 110)})
    options = {"epsilon": 1, "delta": 1e-6, "random_state": 3}
    by_name = reticent.PrivateMean(bounds=bounds, **options)
    by_place = reticent.PrivateMean(bounds=reticent.Bounds(x=[(0, 110)]), **options)
    found = by_name.fit(scan(write(tmp_path / "p.xlsx", ["age"], *ages)))
    assert np.array_equal(found.releases_[0].value, by_place.fit(ages).releases_[0].value)


def test_what_is_no_workbook(tmp_path):
    (tmp_path / "t.xlsx").write_text("age,sex\n12.75,F\n")
    with pytest.raises(BadInput, match=r"t\.xlsx cannot be read: it is damaged") as told:
        scan(tmp_path / "t.xlsx")
    assert "12.75" not in str(told.value)
    with pytest.raises(BadInput, match=r"There is no file .*none\.xlsx"):
        scan(tmp_path / "none.xlsx")
    for header in ([], [1, 2], ["a", None, "b"]):
        with pytest.raises(BadInput, match="must name the columns"):
            scan(write(tmp_path / "h.xlsx", header))
    with pytest.raises(BadInput, match="not unique"):
        scan(write(tmp_path / "u.xlsx", ["a", "a"]))
    path = write(tmp_path / "cut.xlsx", HEADER, *ROWS * 50)
    whole = path.read_bytes()
    source = scan(path)
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(BadInput, match="is damaged, or no workbook"):
        rows(source)
