"""Codes of whole columns are those of their cells, whatever the array, the texts or the dialect."""

import itertools
import math

import numpy as np
import pyarrow as pa
import pytest

from reticent import Cyclic, Date, Number, Ordered, Whole, Words, YesNo
from reticent.privacy.columns.words import Labels, MissingIndicator
from reticent.privacy.sources.base import Field
from reticent.privacy.sources.codes import code_array, code_rows, code_text, code_texts, is_plain
from reticent.privacy.sources.csv_dialect import Dialect

NAN = math.nan
SPAN = ("2019-01-01", "2024-12-31")
DAY = 18321.0  # 2020-02-29
KINDS = {
    "none": None,
    "number": Number(0, 9),
    "number with codes": Number(0, 9, missing=[9]),
    "kept number": Number(0, 9, keep_missing=True),
    "whole": Whole(0, 9),
    "cyclic": Cyclic(0, 24),
    "words": Words(["a", "1.5", "2", "Köln"], missing=["?"]),
    "kept words": Ordered(["a", "1.5", "2"], keep_missing=True),
    "yes/no": YesNo(),
    "date": Date(*SPAN, format="%d.%m.%Y"),
    "labels": Labels((1.5, 2, "a")),
    "indicator of a number": MissingIndicator(Number(0, 9, missing=[9], keep_missing=True)),
    "indicator of words": MissingIndicator(Words(["a", "1.5"], keep_missing=True)),
    "indicator of a date": MissingIndicator(Date(*SPAN)),
}
TEXTS = ["", " ", "a", "1.5", "1,5", "2", "2.0", "2,0", "9", "+9", "1e1", "inf", "?", "yes", "1_5"]
TEXTS += ["29.02.2020", "2020-02-29", "1,5,5", "1.5,5", "0x1", "1" * 25, "Köln", "nan", "-1e-400"]


def same(found, expected):
    return np.array_equal(found, expected, equal_nan=True)


# ---- arrays


@pytest.mark.parametrize("name", KINDS)
def test_numbers_of_any_dtype_have_the_codes_of_their_objects(name):
    kind = KINDS[name]
    for dtype in ("?", "i1", "u8", "f2", "f4", "f8", "O"):
        values = np.array([2, 1, 9, 2, 0], dtype=dtype)
        expected = values.astype(float)
        if kind is not None:
            expected = [kind.code_value(value) for value in values.tolist()]
        assert same(code_array(values, kind), expected)


def test_objects_without_a_kind_are_numbers_or_missing():
    cells = np.array([1, 2.5, None, "7", DAY, (1,)], dtype=object)
    assert same(code_array(cells, None), [1, 2.5, NAN, NAN, DAY, NAN])


@pytest.mark.parametrize("name", KINDS)
def test_differences_of_time_are_missing(name):
    kind = KINDS[name]
    cells = np.array([1, 2], dtype="m8[D]")
    missing = NAN if kind is None else kind.missing_code
    assert same(code_array(cells, kind), [missing, missing])


@pytest.mark.parametrize("name", KINDS)
def test_moments_are_dates_where_dates_are_wanted_and_missing_elsewhere(name):
    kind = KINDS[name]
    cells = np.array(["2020-02-29", "NaT"], dtype="M8[s]")
    missing = NAN if kind is None else kind.missing_code
    expected = {"date": [DAY, NAN], "indicator of a date": [0, 1]}
    assert same(code_array(cells, kind), expected.get(name, [missing, missing]))


def test_an_indicator_of_dates_that_are_kept():
    kept = MissingIndicator(Date(*SPAN, keep_missing=True, missing=["2020-02-29"]))
    cells = np.array(["2020-02-29", "NaT", "2020-03-01"], dtype="M8[ns]")
    assert code_array(cells, kept).tolist() == [1, 1, 0]


def test_rows_are_read_column_by_column():
    table = np.array([[9, 1.5], [1, NAN], [2, 30.0]])
    fields = [Field(1, KINDS["cyclic"]), Field(0, KINDS["number with codes"]), Field(0, None)]
    assert same(code_rows(table, fields), [[1.5, NAN, 9], [NAN, 1, 1], [6, 2, 2]])
    plain = [Field(1, None), Field(0, KINDS["number"])]
    assert same(code_rows(table, plain), table[:, ::-1])
    objects = table.astype(object)
    objects[0, 0] = "2"  # a number to a kind
    assert same(code_rows(objects, plain), [[1.5, 2], [NAN, 1], [30, 2]])


def test_numbers_are_their_own_codes_where_nothing_is_said_about_missing_ones():
    plain = [name for name, kind in KINDS.items() if is_plain(kind)]
    assert plain == ["none", "number"]


# ---- texts

DIALECTS = [
    *(Dialect(), Dialect(b";", None), Dialect(b";", b","), Dialect(b";", b".", "latin-1")),
    *(Dialect(b";", b",", "cp1252"), Dialect(b"\t", b",", "utf-8")),
]


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_column_of_texts_is_read_as_its_cells_are(name, dialect):
    kind = KINDS[name]
    cells = [*TEXTS, TEXTS[4], TEXTS[2]]
    alone = [code_text(text.encode(), kind, dialect) for text in cells]
    for dtype in (pa.string(), pa.large_string(), pa.string_view()):
        assert same(code_texts(pa.array(cells, dtype), kind, dialect), alone)
        nulls = pa.array(["2", None, "1.5"], dtype)
        two, empty, more = (code_text(text, kind, dialect) for text in (b"2", b"", b"1.5"))
        assert same(code_texts(nulls, kind, dialect), [two, empty, more])


@pytest.mark.parametrize("name", KINDS)
def test_without_a_dialect_numbers_have_a_decimal_point(name):
    kind = KINDS[name]
    cells = pa.array(TEXTS)
    assert same(code_texts(cells, kind), code_texts(cells, kind, Dialect()))
    if kind is not None:
        assert same(code_texts(cells, kind), [kind.code_text(text.encode()) for text in TEXTS])


@pytest.mark.parametrize(
    ("decimal", "codes"),
    [(b".", [1.5, NAN, 2, NAN]), (b",", [NAN, 1.5, 2, NAN]), (None, [1.5, 1.5, 2, NAN])],
)
def test_decimal_signs(decimal, codes):
    dialect = Dialect(b";", decimal)
    texts = [b"1.5", b"1,5", b"2", b"1.5,5"]
    for kind, expected in (
        (None, codes),
        (Number(0, 9), codes),
        (MissingIndicator(Number(0, 9)), np.isnan(codes)),
        (Words(["x", "1.5", "2"]), {b".": [1, NAN, 2, NAN]}.get(decimal, [1, 1, 2, NAN])),
        (
            Words(["1.5", "2"], keep_missing=True),
            {b".": [0, 2, 1, 2]}.get(decimal, [0, 0, 1, 2]),
        ),
    ):
        assert same([code_text(text, kind, dialect) for text in texts], expected)


@pytest.mark.parametrize("decimal", [b".", b",", None])
def test_decimal_signs_are_of_numbers_and_not_of_dates(decimal):
    dialect = Dialect(b";", decimal)
    texts = [b"29.02.2020", b"29,02,2020"]
    codes = [code_text(text, KINDS["date"], dialect) for text in texts]
    assert same(codes, [DAY, NAN])
    turned = Date(*SPAN, format="%d,%m,%Y")
    assert same([code_text(text, turned, dialect) for text in texts], [NAN, DAY])


def test_cells_that_are_not_utf8_are_read_by_the_dialect():
    latin = ["Köln".encode("latin-1"), "Köln".encode(), b"a"]
    cells = pa.array(latin, pa.binary()).cast(pa.large_binary())
    view = pa.array(latin, pa.binary_view())
    kind = KINDS["words"]
    for dialect, expected in (
        (Dialect(), [3, 3, 0]),
        (Dialect(encoding="utf-8"), [NAN, 3, 0]),
        (Dialect(encoding="latin-1"), [3, NAN, 0]),
    ):
        assert same([code_text(text, kind, dialect) for text in latin], expected)
        for column in (
            cells.cast(pa.large_string(), safe=False),
            view.cast(pa.string_view(), safe=False),
        ):
            assert same(code_texts(column, kind, dialect), expected)


def test_texts_in_pieces_are_those_of_the_whole():
    whole = pa.array(TEXTS)
    for kind, cut in itertools.product((None, KINDS["number"], KINDS["words"]), (0, 3, len(whole))):
        parts = [code_texts(part, kind) for part in (whole[:cut], whole[cut:])]
        assert same(np.concatenate(parts), code_texts(whole, kind))
