"""Kinds of columns: one cell, one code; the same from every source; what is wrong is said first."""

import copy
import datetime
import math
import pickle
from dataclasses import replace
from decimal import Decimal

import dask.dataframe as dd
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import reticent
from reticent import BadInput, Bounds, Cyclic, Date, Number, Ordered, Whole, Words, YesNo, scan
from reticent.privacy.bounds import checked_bounds
from reticent.privacy.columns.words import Labels, MissingIndicator
from reticent.privacy.sources.base import Field
from reticent.privacy.sources.codes import code_array, code_texts
from reticent.privacy.sources.formulas import neutral
from tests.contract.odd_cells import ODD_CELLS

NAN = math.nan
DAY = datetime.date
SPAN = (DAY(2019, 1, 1), DAY(2024, 12, 31))
KINDS = {
    "age": Number(0, 110, missing=[999]),
    "children": Whole(0, 15),
    "town": Words(["Köln", "Bonn"]),
    "stage": Ordered(["I", "II", "III"], keep_missing=True),
    "smoker": YesNo(),
    "visit": Date(*SPAN),
    "hour": Cyclic(0, 24),
}
TABLE = {
    "age": [42.5, 999.0, None, 0.0, 110.0],
    "children": [0, 3, 99, None, 1],
    "town": ["Köln", "Bonn", "Rom", None, "Köln"],
    "stage": ["I", "III", "IV", None, "II"],
    "smoker": [True, False, None, True, False],
    "visit": [DAY(2019, 1, 1), DAY(2020, 2, 29), None, DAY(1999, 1, 1), DAY(2024, 12, 31)],
    "hour": [0.0, 25.0, 23.5, None, -1.0],
}
DAYS = [(DAY(*day) - DAY(1970, 1, 1)).days for day in ((2019, 1, 1), (2020, 2, 29), (1999, 1, 1))]
CODES = np.array(
    [
        [42.5, NAN, NAN, 0, 110],
        [0, 3, 15, NAN, 1],
        [0, 1, NAN, NAN, 0],
        [0, 2, 3, 3, 1],
        [1, 0, NAN, 1, 0],
        [DAYS[0], DAYS[1], NAN, DAYS[2], (DAY(2024, 12, 31) - DAY(1970, 1, 1)).days],
        [0, 1, 23.5, NAN, 23],
    ]
).T
FIELDS = [Field(name, kind) for name, kind in KINDS.items()]


def text(cell, decimal="."):
    if cell is None:
        return ""
    return str(cell).replace(".", decimal)


def csv(separator=",", decimal=".", encoding="utf-8", bom=b"", first=""):
    rows = [separator.join(TABLE)]
    rows += [separator.join(text(c, decimal) for c in row) for row in zip(*TABLE.values())]  # noqa: B905
    return bom + (first + "\n".join(rows)).encode(encoding)


CSV = {
    "comma": csv(),
    "semicolon and decimal comma": csv(";", ","),
    "semicolon and decimal point": csv(";"),
    "tab": csv("\t"),
    "pipe": csv("|"),
    "latin-1": csv(encoding="latin-1"),
    "cp1252": csv(";", ",", encoding="cp1252"),
    "mark": csv(bom=b"\xef\xbb\xbf"),
    "sep line": csv("|", first="sep=|\n"),
}


def frame(**dtypes):
    table = pd.DataFrame({name: pd.Series(cells, dtype=object) for name, cells in TABLE.items()})
    for name, dtype in dtypes.items():
        table[name] = pd.Series(TABLE[name], dtype=dtype)
    return table


def arrow(**types):
    plain = pa.table({name: pa.array(cells) for name, cells in TABLE.items()})
    columns = {name: plain[name] for name in TABLE}
    for name, dtype in types.items():
        if pa.types.is_dictionary(dtype):
            columns[name] = plain[name].dictionary_encode()
        else:
            columns[name] = plain[name].cast(dtype)
    return pa.table(columns)


PARQUET = {
    "plain": arrow(),
    "dictionaries": arrow(
        town=pa.dictionary(pa.int8(), pa.string()), stage=pa.dictionary(pa.int32(), pa.string())
    ),
    "timestamps": arrow(visit=pa.timestamp("ns"), age=pa.decimal128(9, 2), hour=pa.float32()),
    "zone": arrow(visit=pa.timestamp("ms", "UTC"), children=pa.uint8(), town=pa.large_string()),
    "date64": arrow(visit=pa.date64(), town=pa.string_view(), age=pa.decimal256(50, 3)),
    "texts": pa.table({name: pa.array([text(c) for c in cells]) for name, cells in TABLE.items()}),
}
CATEGORIES = ["Bonn", "Köln", "Rom"]
FRAMES = {
    "pandas object": frame(),
    "pandas string": frame(town="string", stage="str"),
    "pandas category": frame(town="category", stage="category", smoker="category"),
    "pandas nullable": frame(age="Float64", children="Int64", smoker="boolean", hour="Float32"),
    "pandas datetime": frame(visit="datetime64[ns]", age="float64"),
    "pandas zone": frame().assign(visit=pd.to_datetime(frame().visit).dt.tz_localize("UTC")),
    "pandas arrow": frame(visit="date32[pyarrow]", children="int64[pyarrow]"),
    "polars": pl.DataFrame(TABLE),
    "polars Enum": pl.DataFrame(TABLE).with_columns(
        pl.col("town").cast(pl.Enum(CATEGORIES)),
        pl.col("stage").cast(pl.Categorical),
        pl.col("visit").cast(pl.Datetime("ns")),
        pl.col("age").cast(pl.Decimal(9, 2)),
    ),
    "pyarrow": arrow(),
    "pyarrow dictionaries": arrow(
        children=pa.dictionary(pa.int8(), pa.int64()), town=pa.dictionary(pa.int8(), pa.string())
    ),
}


def read(source, fields=FIELDS):
    source.check(fields)
    return np.concatenate(list(source.blocks(fields)))


@pytest.mark.parametrize("way", CSV)
def test_codes_of_csv_files(way, tmp_path):
    (tmp_path / "t.csv").write_bytes(CSV[way])
    assert np.array_equal(read(scan(tmp_path / "t.csv")), CODES, equal_nan=True)


@pytest.mark.parametrize("way", PARQUET)
def test_codes_of_parquet_files(way, tmp_path):
    pq.write_table(PARQUET[way], tmp_path / "t.parquet", row_group_size=2)
    assert np.array_equal(read(scan(tmp_path / "t.parquet")), CODES, equal_nan=True)


@pytest.mark.parametrize("way", FRAMES)
def test_codes_of_frames(way):
    assert np.array_equal(read(scan(FRAMES[way])), CODES, equal_nan=True)


def test_codes_of_lists_arrays_and_dask():
    positions = [Field(i, kind) for i, kind in enumerate(KINDS.values())]
    rows = [list(row) for row in zip(*TABLE.values(), strict=True)]
    table = np.empty((5, 7), dtype=object)
    table[:] = rows
    masked = np.ma.array(table, mask=[[cell is None for cell in row] for row in rows])
    for data in (scan(rows).shaped(7, 0), scan(table), scan(masked)):
        assert np.array_equal(read(data, positions), CODES, equal_nan=True)
    parts = scan(dd.from_pandas(FRAMES["pandas datetime"], npartitions=2))
    assert np.array_equal(read(parts), CODES, equal_nan=True)


def test_masked_moments_are_missing():
    cells = np.array(["2019-01-01", "2020-02-29"], dtype="M8[ns]")
    masked = np.ma.array(cells, mask=[False, True])
    codes = read(scan(np.zeros((2, 1)), y=masked), [Field(1, Date(*SPAN))])[:, 0]
    assert codes[0] == DAYS[0]
    assert np.isnan(codes[1])


# ---- a whole column is read as its cells are

MORE = {
    **KINDS,
    "formatted": Date(*SPAN, format="%d.%m.%Y", missing=["31.12.2024"]),
    "digits": Date(*SPAN, format="%Y%m%d", keep_missing=True),
    "numbers": Words([1, 2, 10], missing=[9]),
    "labels": Labels(("no", "yes", "3")),
    "whole labels": Labels((1, 2**53 + 1, 2**53)),
    "indicator": MissingIndicator(Number(0, 9, missing=["?"], keep_missing=True)),
    "dates' indicator": MissingIndicator(Date(*SPAN, keep_missing=True)),
    "kept": Cyclic(0, 12, keep_missing=True),
}
CELLS = [
    *ODD_CELLS.values(),
    *("1", " 2 ", "2.0", "1e1", "9", "no", "yes", "TRUE", "II", "Bonn ", "Ko\u0308ln", "?", "nan"),
    *("2020-02-29", "2020-02-30", "29.02.2020", "31.12.2024", "20200229", "2020-02-29T12:00+05:00"),
    *("2020-W09-6", "0000-00-00", "10000-01-01", b"2020-02-29", 20200229, 20200229.5, 2**53 + 1),
    *(pd.Timestamp("2020-02-29 12:00", tz="Asia/Tokyo"), datetime.datetime.max, DAY.min),
    *(
        np.datetime64(2**62, "s"),
        np.datetime64("NaT"),
        np.datetime64("1969-12-31T23:59:59.9999995"),
    ),
    datetime.datetime(9999, 12, 31, 23, tzinfo=datetime.timezone(-datetime.timedelta(hours=9))),
]


@pytest.mark.parametrize("name", MORE)
def test_a_column_of_objects_is_read_as_its_cells_are(name):
    kind = MORE[name]
    cells = np.empty(len(CELLS), dtype=object)
    for place, cell in enumerate(CELLS):
        cells[place] = cell
    alone = [kind.code_value(cell) for cell in CELLS]
    assert np.array_equal(code_array(cells, kind), alone, equal_nan=True)
    for at in (0, 7):  # an odd cell beside others, and without them
        some = np.delete(cells, at)
        assert np.array_equal(code_array(some, kind), np.delete(alone, at), equal_nan=True)


@pytest.mark.parametrize("name", MORE)
def test_a_column_of_texts_is_read_as_its_cells_are(name):
    kind = MORE[name]
    texts = [c for c in CELLS if type(c) is str and c.isprintable()]
    alone = [kind.code_text(text.encode()) for text in texts]
    assert np.array_equal(code_texts(pa.array(texts), kind), alone, equal_nan=True)
    assert np.array_equal([kind.code_value(text) for text in texts], alone, equal_nan=True)


def test_numbers_give_the_code_of_their_texts():
    for kind in (KINDS["age"], KINDS["children"], MORE["numbers"], KINDS["smoker"], KINDS["hour"]):
        values = np.array([0.0, 1.0, 2.0, 2.5, 9.0, 999.0, -1.0, 1e300, NAN])
        texts = [b"" if math.isnan(v) else repr(v).encode() for v in values.tolist()]
        assert np.array_equal(kind.code_numbers(values), kind.code_texts(texts), equal_nan=True)


# the same cells as numbers, truth values and texts: levels that are numbers, or spelled like truth
SAME_CELLS = {
    "whole": ([1, 2, 0, None, 10], ["1", "2.0", "10"]),
    "real": ([0.1, 1.0, 2.5, None, -0.0], ["0.10", "+1", "25e-1", "0"]),
    "whole, 1 and 2": ([1, 2, 0, None, 3], YesNo("1", "2")),
    "real, written long": ([1.0, 2.0, 0.0, None, 3.0], YesNo("1.0", "2.0")),
    "truth": ([True, False, None, True, False], ["True", "False"]),
    "truth, small": ([True, False, None, True, False], Words(["false", "true"])),
    "truth, numbered": ([True, False, None, True, False], ["1", "0"]),
    "truth, partly": ([True, False, None, True, False], ["1", "2", "FALSE"]),
    "truth of yes and no": ([True, False, None, True, False], YesNo()),
    "truth of 1 and 2": ([True, False, None, True, False], YesNo("1", "2")),
    "truth, other way round": ([True, False, None, True, False], YesNo("True", "False")),
    "truth, kept": ([True, False, None, True, False], Words(["0", "1"], keep_missing=True)),
    "truth of labels": ([True, False, None, True, False], Labels((0, 1))),
    "truth of words as labels": ([True, False, None, True, False], Labels(("true", "FALSE"))),
}


@pytest.mark.parametrize("name", SAME_CELLS)
def test_one_table_has_the_same_codes_from_every_source(name, tmp_path):
    cells, given = SAME_CELLS[name]
    kind = Words(given) if isinstance(given, list) else given
    column = pa.table({"id": range(5), "w": pa.array(cells)})
    frame = column.to_pandas()
    dtype = {int: "Int64", float: "Float64", bool: "boolean"}[type(cells[0])]
    frame.to_csv(tmp_path / "pandas.csv", index=False)
    frame.astype({"w": dtype}).to_csv(tmp_path / "nullable.csv", sep=";", decimal=",", index=False)
    pl.DataFrame({"id": range(5), "w": cells}).write_csv(tmp_path / "polars.csv")
    pq.write_table(column, tmp_path / "t.parquet", row_group_size=2)
    sources = {
        **{file: scan(tmp_path / file) for file in ("pandas.csv", "nullable.csv", "polars.csv")},
        "parquet": scan(tmp_path / "t.parquet"),
        "pandas": scan(frame),
        "nullable": scan(frame.astype({"w": dtype})),
        "polars": scan(pl.from_arrow(column)),
        "arrow": scan(column),
        "dask": scan(dd.from_pandas(frame, npartitions=2)),
    }
    alone = [kind.code_value(cell) for cell in cells]
    assert len(set(alone)) > 2
    for way, source in sources.items():
        found = read(source, [Field("w", kind)])[:, 0]
        assert np.array_equal(found, alone, equal_nan=True), way
    there = [cell for cell in cells if cell is not None]  # an array of their own dtype
    by_position = [Field(0, kind)]
    for source in (scan(np.array(there)[:, None]), scan([[cell] for cell in there]).shaped(1, 0)):
        found = read(source, by_position)[:, 0]
        assert np.array_equal(found, [kind.code_value(cell) for cell in there], equal_nan=True)


def test_levels_that_are_written_with_an_apostrophe_are_read_with_it():
    kind = Words(["+", "-", "-1", "'x"])
    written = [neutral(level).encode() for level in kind.words]
    assert written == [b"'+", b"'-", b"-1", b"'x"]
    assert kind.code_texts(written).tolist() == [0, 1, 2, 3]
    assert kind.code_texts([b"+", b"-", b"x"])[:2].tolist() == [0, 1]
    assert math.isnan(kind.code_text(b"x"))


def test_moments_are_the_same_bits_from_arrays_texts_and_objects():
    kind = Date("1700-01-01", "2300-01-01")
    moments = [datetime.datetime(1700, 1, 1, 1, 2, 3, 456789), datetime.datetime(2299, 7, 5, 23, 1)]
    array = kind.code_moments(np.array(moments, dtype="M8[us]"))
    assert array.tolist() == [kind.code_value(one) for one in moments]
    assert array.tolist() == [kind.code_text(one.isoformat().encode()) for one in moments]
    far = np.array([2**62, 0], dtype="int64").view("M8[s]")
    assert np.isnan(kind.code_moments(far)).tolist() == [True, False]


def test_labels_beyond_floats_stay_apart():
    kind = MORE["whole labels"]
    cells = [2**53, 2**53 + 1, 1]
    assert code_array(np.array(cells), kind).tolist() == [2, 1, 0]
    assert [kind.code_value(cell) for cell in cells] == [2, 1, 0]


def test_words_in_number_columns_and_numbers_in_word_columns():
    for classes in (("0", "1"), (0, 1), (False, True), ("False", "True")):
        for cells in (np.array([0, 1]), np.array([False, True]), np.array(["0", "1"])):
            assert code_array(cells, Labels(classes)).tolist() == [0, 1]


def test_the_way_back():
    assert Date(*SPAN).values(np.array([DAYS[0], NAN, 1e9, -1e9])) == [
        "2019-01-01",
        None,
        "2024-12-31",
        "2019-01-01",
    ]
    assert Date("2019-01-01", "9999-12-31").show(1e9) == "9999-12-31"
    for kind in KINDS.values():
        assert reticent.Bounds.from_dict(Bounds(x=[kind]).to_dict()) == Bounds(x=[kind])


# ---- declarations that are refused, before a ledger is asked

WRONG = [
    (lambda: {"x": {"a": ["F", "M", "F"]}}, "'F' is given twice"),
    (lambda: {"x": {"a": ["F", "1", "M", "1.0"]}}, "'1' and '1.0' are the same number"),
    (lambda: {"x": {"a": ["01", "1"]}}, "'01' and '1' are the same number"),
    (lambda: {"x": {"a": YesNo("1E1", "10")}}, "'1E1' and '10' are the same number"),
    (lambda: {"x": {"a": Ordered(["true", "True"])}}, "'True' are the same truth value"),
    (lambda: {"x": {"a": ["F", ""]}}, "A level is empty"),
    (lambda: {"x": {"a": ["F"]}}, "one level"),
    (lambda: {"x": {"a": [str(i) for i in range(1001)]}}, "1001 levels are more than 1000"),
    (lambda: {"x": {"a": ["no", "=1+1"]}}, "'=1\\+1' would run as a formula"),
    (lambda: {"x": {"a": ["no", "a\nb"]}}, "cannot be printed"),
    (lambda: {"x": {"a": ["no", "\udc80"]}}, "cannot be printed"),
    (lambda: {"x": {"a": Words(["a", "b"], missing=["b"])}}, "'b' is among the missing codes"),
    (lambda: {"x": {"a": ["a", "9"]}, "missing": [9]}, "'9' is among the missing codes"),
    (lambda: {"x": {"a": Words(["a", "missing"], keep_missing=True)}}, "called so already"),
    (lambda: {"x": {"a": SPAN[::-1]}}, "They are reversed"),
    (lambda: {"x": {"a": Date("2019-02-30", "2020-01-01")}}, "must be a date such as"),
    (lambda: {"x": {"a": Date(*SPAN, format="%d.%m.")}}, "do not say which year"),
    (lambda: {"x": {"a": Date(*SPAN, format=3)}}, "format of dates is a text"),
    (lambda: {"x": {"a": (0, 1), "b": ["u", "v"]}, "norm": 1.0}, "norm is for inputs"),
    (lambda: {"x": {"a": (0, 1)}, "missing": {"b": [9]}}, "'b', which has no bounds"),
    (lambda: {"x": {"a": Number(0, 1, missing=[None])}}, "missing code is a text or a number"),
    (lambda: {"x": {"a": Number(0, 1, missing=None)}}, "Missing codes are a list"),
    (lambda: {"x": {"a": Number(0, 1, missing=[math.inf])}}, "finite"),
    (lambda: {"x": {"a": Number(0, 1, keep_missing="no")}}, "True or False"),
    (lambda: {"x": {"a": Number(0, 1, unit=3)}}, "unit of a column is a printable text"),
    (lambda: {"x": (0, 1), "y": ["a", "b"]}, "predicted by a classifier"),
    (lambda: {"x": (0, 1), "y": Date(*SPAN)}, "not date"),
    (lambda: {"x": (0, 1), "y": Number(0, 1, keep_missing=True)}, "keep_missing is for inputs"),
    (lambda: {"x": (0, 1), "classes": [0, 1, 9], "missing": [9]}, "9.0 is a label and means miss"),
    (
        lambda: {"x": (0, 1), "classes": ["0", "9"], "missing": [9]},
        "9.0 is a label and means missing",
    ),
    (lambda: {"x": (0, 1), "classes": [0, 9], "missing": ["9.0"]}, "'9.0' is a label and means m"),
]


@pytest.mark.parametrize(("given", "words"), WRONG, ids=[words for _, words in WRONG])
def test_bad_declarations_are_refused_with_a_sentence(given, words):
    with pytest.raises(BadInput, match=words):
        Bounds(**given())


def test_missing_codes_may_name_the_label():
    bounds = Bounds(x={"a": (0, 1)}, classes={"ill": ["no", "yes"]}, missing={"ill": ["?"]})
    assert bounds.classes == ("no", "yes")


# ---- what a caller holds is copied


class Spy(str):
    """A text that says whatever it likes about others."""

    __slots__ = ()

    def __eq__(self, other):
        return True

    def __hash__(self):
        return hash("yes")


def test_bounds_are_copied_down_to_their_words():
    bounds = Bounds(x={"a": Words(["x", "y"]), "d": Date(*SPAN)}, classes=["no", "yes"])
    object.__setattr__(bounds, "classes", (Spy("no"), Spy("maybe")))
    kind = bounds.x_kinds[0]
    kind.__dict__["_texts"] = {b"x": 1, b"y": 0}  # a cached table
    copy = checked_bounds(bounds)
    kind.__dict__["_texts"][b"x"] = 0
    object.__setattr__(kind, "words", ("y", "x"))
    assert {type(one) for one in copy.classes} == {str}
    assert copy.x_kinds[0].code_text(b"x") == 0
    assert copy.x_kinds[0] == Words(["x", "y"])
    assert copy.x_kinds[0] is not kind


def test_a_tampered_kind_is_checked_again():
    bounds = Bounds(x={"a": Number(0, 1)})
    object.__setattr__(bounds.x_kinds[0], "high", math.inf)
    with pytest.raises(BadInput):
        checked_bounds(bounds)


def test_subclasses_of_kinds_are_refused():
    class Oracle(Number):
        def code_numbers(self, values):
            raise AssertionError("a record was seen")

    with pytest.raises(BadInput, match="must be one of reticent's own"):
        Bounds(x=[Oracle(0, 1)])
    bounds = Bounds(x=[(0, 1)])
    object.__setattr__(bounds, "x_kinds", (Oracle(0, 1),))
    with pytest.raises(BadInput, match="subclasses are not taken"):
        checked_bounds(bounds)
    object.__setattr__(bounds, "x_kinds", (Number(0, 1), MissingIndicator(Oracle(0, 1))))
    assert type(checked_bounds(bounds).x_kinds[1].of) is Number


def test_money_in_a_column_of_numbers_that_may_be_missing():
    kind = replace(KINDS["age"], keep_missing=True)
    assert [kind.code_value(c) for c in (Decimal("1.50"), None, 999)] == [1.5, 55, 55]
    indicator = MissingIndicator(kind)
    assert [indicator.code_value(c) for c in (Decimal("1.50"), None, 999)] == [0, 1, 1]


def test_copies_of_kinds_are_whole_and_hold_nothing_computed():
    """Fits ask the caller's bounds for tables: that changes neither their pickle nor their hash."""
    bounds = Bounds(x=KINDS, y=(0, 1))
    before = pickle.dumps(bounds)
    codes = [kind.code_text(b"Bonn") for kind in bounds.x_kinds]
    ranges = bounds.x
    assert pickle.dumps(bounds) == before
    for other in (pickle.loads(before), copy.deepcopy(bounds), copy.copy(bounds)):
        assert other == bounds
        assert other.x == ranges
        found = [kind.code_text(b"Bonn") for kind in other.x_kinds]
        assert np.array_equal(found, codes, equal_nan=True)
        assert [kind.levels for kind in other.x_kinds] == [kind.levels for kind in bounds.x_kinds]


def test_dates_with_a_format_are_read_from_iso_texts_too():
    dates = Date("2019-01-01", "2024-12-31", format="%d.%m.%Y")
    plain = Date("2019-01-01", "2024-12-31")
    for text in (b"2020-03-31", b" 2020-03-31T12:30"):
        assert dates.code_text(text) == plain.code_text(text)
    assert dates.code_text(b"31.03.2020") == plain.code_text(b"2020-03-31")
    assert np.isnan(dates.code_text(b"20200331"))
    turned = Date("2019-01-01", "2024-12-31", format="%Y-%d-%m")
    assert np.isnan(turned.code_text(b"2020-03-31"))  # the 3rd of month 31
