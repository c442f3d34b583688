"""Cells and lines, one by one: what each value and each line turns into, to the byte."""

import io
import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from reticent.errors import BadInput
from reticent.privacy.sources import csv_dialect
from reticent.privacy.sources import csv_lines as lines
from reticent.privacy.sources.cell_values import (
    fitting_width,
    label_table,
    labels,
    list_cells,
    number,
    numbers,
    plain_array,
    text_label,
    text_number,
)
from reticent.privacy.sources.csv_dialect import Dialect

NAN = math.nan
INF = math.inf


def same(found, wanted):
    return np.array_equal(
        np.asarray(found, dtype=float), np.asarray(wanted, dtype=float), equal_nan=True
    )


@pytest.mark.parametrize(
    ("value", "result"),
    [
        (3, 3),
        (True, 1),
        (np.bool_(True), 1),
        (-2.5, -2.5),
        (Fraction(1, 4), 0.25),
        (Decimal("1.5"), 1.5),
        (10**400, INF),
        (-(10**400), -INF),
        (Fraction(10**400, 3), INF),
        (Decimal("sNaN"), NAN),
        ("1", NAN),
        (b"1", NAN),
        (None, NAN),
        (1j, NAN),
        ([1.0], NAN),
    ],
)
def test_a_python_object_as_a_number(value, result):
    assert same(number(value), result)
    cells = np.empty((2, 1), dtype=object)
    cells[:, 0] = [7, None]
    cells[1, 0] = value
    assert same(numbers(cells), [[7], [result]])


def test_arrays_of_numbers_are_converted_and_float64_is_not_copied():
    table = np.arange(4.0).reshape(2, 2)
    assert numbers(table) is table
    assert same(numbers(np.array([True, False])), [1, 0])
    assert same(numbers(np.array([1, 255], dtype=np.uint8)), [1, 255])
    assert same(numbers(np.array(["1", "x"])), [NAN, NAN])


def test_a_text_of_a_thousand_bytes_may_be_a_number_and_a_longer_one_is_none():
    assert text_number(b"1".rjust(1000, b"0")) == 1
    assert math.isnan(text_number(b"1".rjust(1001, b"0")))
    assert same(
        [text_number(text) for text in (b" -1.5e1\t", b"+.5", b"5.", b"inf")], [-15, 0.5, 5, INF]
    )
    assert same([text_number(text) for text in (b"", b".", b"1 2", b"1e", b"\n1")], [NAN] * 5)


def test_labels_are_found_by_value_by_text_and_by_the_number_of_a_text():
    assert label_table(("a", "b", "a")) == {"a": 0, b"a": 0, "b": 1, b"b": 1}
    assert label_table((False, True)) == {
        **{False: 0, b"False": 0, b"false": 0, b"FALSE": 0},
        **{True: 1, b"True": 1, b"true": 1, b"TRUE": 1},
    }
    table = label_table((3, 7, "x"))
    found = labels([7, 7.0, "7", "x", [], None, 3, 9], table)
    assert same(found, [1, 1, 1, 2, NAN, NAN, 0, NAN])
    texts = (b"7", b" 7.0", b"x", b" x", b"", b"3", b"9")
    assert same([text_label(text, table) for text in texts], [1, 1, 2, NAN, NAN, 0, NAN])
    truths = dict.fromkeys((b"True", b"true", b"TRUE"), 1)
    assert label_table(("1", "True")) == {"1": 0, b"1": 0, "True": 1, 1: 0, **truths}


class Unhashable(str):
    __slots__ = ()
    __hash__ = None


def test_a_label_is_read_by_its_text_whatever_its_class_says():
    assert labels([Unhashable("x"), "x"], label_table(("y", "x"))).tolist() == [1, 1]


class Endless(list):
    def __iter__(self):
        raise RuntimeError("looked at")


def test_a_record_of_a_list_has_as_many_cells_as_the_others_or_none():
    records = [[1, 2], (3, "x"), np.array([4, 5]), [6], [7, 8, 9], 10, "ab", None, Endless([1, 2])]
    missing = [[None, None]]
    assert list_cells(records, 2).tolist() == [[1, 2], [3, "x"], [4, 5], *missing * 6]
    table = np.zeros((2, 1))
    scalar = np.array(3.0)
    single = list_cells([[1], 2, "ab", table, scalar, [3, 4], ()], 1)
    assert single[:3].tolist() == [[1], [2], ["ab"]]
    assert single[3, 0] is table
    assert single[4, 0] is scalar
    assert single[5:].tolist() == [[None], [None]]


def test_the_first_width_that_some_row_has():
    rows = [[1, 2, 3], [1, 2], [1, 2, 3]]
    assert fitting_width(rows, [4, 2, 3]) == 2
    assert fitting_width(rows, [3, 2]) == 3
    assert fitting_width(rows, [4]) is None
    assert fitting_width([None, [1.0, 2.0]], [1, 2]) == 2
    assert fitting_width([None], [1, 2]) == 1


def test_what_is_masked_is_missing():
    masked = np.ma.array([1.0, 2.0], mask=[False, True])
    assert same(numbers(plain_array(masked)), [1.0, NAN])
    plain = np.array([1.0, 2.0])
    assert plain_array(plain) is plain


def test_a_header_may_have_as_many_bytes_as_a_line(monkeypatch):
    monkeypatch.setattr(lines, "LONGEST_HEADER", 10)
    monkeypatch.setattr(csv_dialect, "LONGEST_HEADER", 10)
    assert lines.read_header(io.BytesIO(b"aaaa,bbbb\n1,2\n"), "t.csv", Dialect()) == (
        "aaaa",
        "bbbb",
    )
    with pytest.raises(BadInput, match="more than 10 bytes"):
        lines.read_header(io.BytesIO(b"aaaa,bbbbb\n1,2\n"), "t.csv", Dialect())


def test_lines_are_numbered_in_order_and_blank_ones_left_out():
    text = b'1,2\r\n\n \t\n"3,4",5\n\r6\n7'
    assert list(lines.lines_in_order(io.BytesIO(text), b",")) == [
        (1, [b"1", b"2"]),
        (4, [b"3,4", b"5"]),
        (5, None),
        (6, [b"7"]),
    ]


@pytest.mark.parametrize("size", [1, 3, 4, 10])
def test_a_file_is_cut_at_line_ends_and_lines_beyond_the_limit_are_replaced(monkeypatch, size):
    monkeypatch.setattr(lines, "LONGEST", 10)
    short = b"ab"
    limit = b"c" * 10
    long = b"d" * 11
    for order in (
        (short, limit, long),
        (long, short, limit),
        (limit, long, long),
        (long * 3, limit, b""),
    ):
        for end in (b"", b"\n"):
            blocks = list(lines.cut(io.BytesIO(b"\n".join(order) + end), size))
            assert all(block.endswith(b"\n") for block in blocks)
            wanted = [b"?\r?" if len(line) > 10 else line for line in order]
            if not wanted[-1]:
                wanted = [*wanted[:-1], b""] if end else wanted[:-1]
            assert b"".join(blocks) == b"\n".join(wanted) + b"\n"


def test_a_line_that_begins_in_one_piece_is_as_long_as_all_its_pieces(monkeypatch):
    monkeypatch.setattr(lines, "LONGEST", 10)
    assert list(lines.cut(io.BytesIO(b"1234567890\n2\n3"), 8)) == [b"1234567890\n2\n", b"3\n"]
    assert list(lines.cut(io.BytesIO(b"12345678901\n2\n3"), 8)) == [b"?\r?\n2\n", b"3\n"]


BLOCKS = [  # block, records, plain lines, odd lines; the delimiter is a comma
    (b"1,2\n3,4\n", 2, b"1,2\n3,4\n", {}),
    (b"1\r\n2\r\n", 2, b"1\r\n2\r\n", {}),
    (b"\n1\n", 1, b"1\n", {}),
    (b"1\n\n2\n", 2, b"1\n2\n", {}),
    (b"1\n\n", 1, b"1\n", {}),
    (b"1\n \t\r\n2\n", 2, b"1\n2\n", {}),
    (b" 1\n2\n", 2, b" 1\n2\n", {}),
    (b"1\n 2\n", 2, b"1\n 2\n", {}),
    (b"\t1\n", 1, b"\t1\n", {}),
    (b"1\n\t\n", 1, b"1\n", {}),
    (b"1\r2\n3\n", 2, b"3\n", {0: b"1\r2"}),
    (b"1\n2\r3\r\n4\n", 3, b"1\n4\n", {1: b"2\r3"}),
    (b'"1",2\n3,4\n', 2, b"1,2\n3,4\n", {}),
    (b'1,"2"\r\n3\n', 2, b"1,2\n3\n", {}),
    (b'1\n"2,3",4\n"5"\n6\n', 4, b"1\n5\n6\n", {1: b'"2,3",4'}),
    (b'"a\n"b\r\n1\n', 3, b"1\n", {0: b'"a', 1: b'"b'}),
    (b'""\n1\n', 2, b"1\n", {0: b'""'}),
    (b'" "\n1\n', 2, b"1\n", {0: b'" "'}),
]


@pytest.mark.parametrize(("block", "records", "plain", "odd"), BLOCKS)
def test_lines_are_counted_and_sorted(block, records, plain, odd):
    assert lines.count_lines(block, b",") == records
    assert lines.sort_out(block, b",") == (plain, odd)


def test_a_tab_is_blank_only_where_it_is_no_delimiter():
    assert lines.count_lines(b"\t\n1\n", b"\t") == 2
    assert lines.count_lines(b"\t\n1\n", b",") == 1
    assert lines.sort_out(b"\t\n \n1\n", b"\t") == (b"\t\n1\n", {})


def test_odd_lines_are_split_by_the_rules_for_quotes_or_not_at_all():
    assert lines.split(b'1,"2,""3",\xff', b",") == [b"1", b'2,"3', b"\xff"]
    assert lines.split(b"?\r?", b",") is None


@pytest.mark.parametrize(
    ("text", "names", "rest"),
    [
        (b"a,b\n1,2\n", ("a", "b"), b"1,2\n"),
        (b"\xef\xbb\xbfa, b \r\n1\n", ("a", "b"), b"1\n"),
        (b"\n \t\n a\n1\n", ("a",), b"1\n"),
        (b"2020,b\n1\n", ("2020", "b"), b"1\n"),  # a year
        (b"a", ("a",), b""),
    ],
)
def test_a_header_is_read_and_no_more(text, names, rest):
    file = io.BytesIO(text)
    assert lines.read_header(file, "t.csv", Dialect()) == names
    assert file.read() == rest


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (b"", "is empty"),
        (b"\n \n", "is empty"),
        (b"a,a\n", "not unique"),
        (b"a,1.5\n", "numbers stand there"),
        (b"-1\n", "numbers stand there"),
        (b'"a\n', "could not be read"),
    ],
)
def test_a_header_that_names_no_columns(text, words):
    with pytest.raises(BadInput, match=words):
        lines.read_header(io.BytesIO(text), "t.csv", Dialect())
