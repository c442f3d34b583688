"""CSV dialects: what the header line tells, what is said, and cells in them."""

import codecs
import io

import pyarrow as pa
import pytest

from reticent import BadInput
from reticent.privacy.sources.csv_dialect import (
    LONGEST_HEADER,
    Dialect,
    find_dialect,
    header_line,
    known_encoding,
)

BOM = codecs.BOM_UTF8


def found(tmp_path, text, name="t.csv", **said):
    path = tmp_path / name
    path.write_bytes(text)
    dialect = find_dialect(path, **said)
    return dialect.separator, dialect.decimal, dialect.encoding


# ---- what the header line tells


@pytest.mark.parametrize(
    ("text", "separator"),
    [
        (b"a,b\n1;2;3\n", b","),
        (b"a;b\n1,2,3\n", b";"),
        (b"a\tb\n", b"\t"),
        (b"a|b", b"|"),
        (b"\n  \na;b\n1,2,3\n", b";"),
        (BOM + b"a;b\n", b";"),
        (b"a,b;c,d\n", b","),
        (b"a|b;c;d\n", b";"),
        (b'"a;b;c",d\n', b","),
        (b'a,"b;c;d"\n', b","),
        (b'"x;y",a,"b;c;d"\n', b","),
        (b"a\n1;2\n", b","),
        (b"", b","),
        (b"sep=;\na,b,c\n", b";"),
        (b"SEP=|\r\na,b,c\n", b"|"),
        (BOM + b'"sep=;"\na,b,c\n', b";"),
        (b"sep=ab,c\n", b","),
        (b"sap=;,b\n1", b""),
    ],
)
def test_the_header_line_tells_the_separator(tmp_path, text, separator):
    if not separator:
        with pytest.raises(BadInput, match="does not say what separates its columns"):
            found(tmp_path, text)
        return
    decimal = None if separator == b";" else b"."
    assert found(tmp_path, text) == (separator, decimal, None)


def test_a_file_with_one_column_is_separated_as_its_name_says(tmp_path):
    assert found(tmp_path, b"a\n1\n", "t.tsv")[0] == b"\t"
    assert found(tmp_path, b"a\n1\n", "T.TSV")[0] == b"\t"
    assert found(tmp_path, b"a,b\n", "t.tsv")[0] == b","


@pytest.mark.parametrize("text", [b"a,b;c\n", b"a\tb|c\n", b"a,b,c;d;e\n"])
def test_a_header_line_that_does_not_tell_is_refused(tmp_path, text):
    with pytest.raises(BadInput, match="does not say what separates its columns"):
        found(tmp_path, text)
    assert found(tmp_path, text, separator=",")[0] == b","


@pytest.mark.parametrize("mark", ["x", ":", " "])
def test_a_sep_line_that_names_no_separator_is_refused(tmp_path, mark):
    with pytest.raises(BadInput, match="The separator is a comma, a semicolon, a tab or a pipe"):
        found(tmp_path, f"sep={mark}\na,b\n".encode())


# ---- what is said


@pytest.mark.parametrize(
    ("said", "separator", "decimal"),
    [
        ({"separator": ";"}, b";", None),
        ({"separator": "semicolon", "decimal": "."}, b";", b"."),
        ({"separator": "tab"}, b"\t", b"."),
        ({"separator": "pipe", "decimal": ","}, b"|", b","),
        ({"separator": "comma"}, b",", b"."),
        ({"decimal": ","}, b";", b","),
        ({}, b";", None),
    ],
)
def test_what_is_said_goes_before_what_the_header_tells(tmp_path, said, separator, decimal):
    assert found(tmp_path, b"a;b\n", **said) == (separator, decimal, None)


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({"separator": ",", "decimal": ","}, "The decimal sign and the separator are both ','"),
        ({"decimal": "'"}, "The decimal sign is a point or a comma"),
        ({"decimal": ""}, "The decimal sign is a point or a comma"),
        ({"separator": ""}, "The separator is a comma"),
        ({"separator": 3}, "The separator is a comma"),
        ({"separator": "."}, "The separator is a comma"),
        ({"encoding": "utf-16"}, "not one that ASCII is part of"),
        ({"encoding": "rot13"}, "not one that ASCII is part of"),
        ({"encoding": "no such"}, "is not known"),
        ({"encoding": 3}, "is not known"),
        ({"encoding": "cp500"}, "not one that ASCII is part of"),
    ],
)
def test_what_cannot_be_is_refused(tmp_path, said, words):
    with pytest.raises(BadInput, match=words):
        found(tmp_path, b"a;b\n", **said)


def test_encodings_have_one_name():
    assert known_encoding("Latin-1") == "iso8859-1"
    assert known_encoding("UTF8") == "utf-8"
    for part in (1, 2, 11, 13, 15, 16):
        assert known_encoding(f"iso-8859-{part}") == f"iso8859-{part}"
    for page in (1250, 1258):
        assert known_encoding(f"windows-{page}") == f"cp{page}"


# ---- the header line


def test_the_header_is_the_first_line_that_is_not_blank():
    file = io.BytesIO(BOM + b"sep=;\r\n\r\n \t\na;b\r\n1;2\r\n")
    assert header_line(file, "t.csv") == b"a;b\r\n"
    assert file.read() == b"1;2\r\n"
    assert header_line(io.BytesIO(b"\n\n"), "t.csv") == b""
    assert header_line(io.BytesIO(BOM + b"a\n"), "t.csv") == b"a\n"


@pytest.mark.parametrize("encoding", ["utf-16", "utf-32", "utf-16-be", "utf-32-be"])
def test_other_byte_order_marks_are_refused(encoding):
    mark = "" if encoding in ("utf-16", "utf-32") else "\ufeff"
    with pytest.raises(BadInput, match=r"t\.csv is written in UTF-16 or UTF-32"):
        header_line(io.BytesIO((mark + "a,b\n").encode(encoding)), "t.csv")


def test_a_header_line_is_cut_where_it_is_too_long():
    assert LONGEST_HEADER == 2**24
    line = header_line(io.BytesIO(b"a" * (2**24 + 5) + b"\n"), "t.csv")
    assert line == b"a" * 2**24


# ---- cells

NUMBERS = [b"1.5", b"1,5", b"15", b"1,5,0", b"1.5,0", b"", b"a,b"]


@pytest.mark.parametrize(
    ("decimal", "plain"),
    [
        (b".", NUMBERS),
        (b",", [b"", b"1.5", b"15", b"1.5.0", b"", b"", b"a.b"]),
        (None, [b"1.5", b"1.5", b"15", b"1.5.0", b"1.5.0", b"", b"a.b"]),
    ],
)
def test_numbers_with_a_decimal_point(decimal, plain):
    dialect = Dialect(b";", decimal)
    assert [dialect.plain_number(text) for text in NUMBERS] == plain
    cells = pa.array([text.decode() for text in NUMBERS])
    assert dialect.plain_numbers(cells).to_pylist() == [text.decode() for text in plain]


def test_cells_in_utf8():
    umlaut, latin = "ü€".encode(), "ü€".encode("cp1252")
    assert Dialect().utf8(b"a") == b"a"
    assert Dialect().utf8(umlaut) == umlaut
    assert Dialect().utf8(latin) == umlaut
    assert Dialect().utf8(b"\x81") == "\ufffd".encode()  # no sign of Windows-1252
    assert Dialect(encoding="cp1252").utf8(latin) == umlaut
    assert Dialect(encoding="utf-8").utf8(latin) == b""
    assert Dialect(encoding="utf-8").utf8(umlaut) == umlaut
    assert Dialect(encoding="ascii").utf8(umlaut) == b""
