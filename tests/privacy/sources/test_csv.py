"""CSV: a record is a line, and no line, however nasty, changes what any other line gives."""

import codecs
import io
import math
import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reticent.errors import BadInput
from reticent.privacy.columns.words import Labels, Words, YesNo
from reticent.privacy.sources import csv_lines as lines
from reticent.privacy.sources.base import Field, scan
from reticent.privacy.sources.csv import CsvSource
from reticent.privacy.sources.csv_dialect import Dialect

FIELDS = (Field("a"), Field("b"), Field("c", Labels(("no", "yes"))))
NAN = math.nan
MISSING = (NAN, NAN, NAN)

# (line, the row that it gives)
NASTY = {
    "open quote at the end": (b'1,2,"yes', (1, 2, 1)),
    "open quote at the start": (b'"1,2,yes', MISSING),
    "quote in a field": (b'1,2"3,yes', (1, NAN, 1)),
    "odd quotes": (b'"1","2"","yes"', MISSING),
    "needless quotes": (b'"1","-2.5","yes"', (1, -2.5, 1)),
    "escaped quote": (b'1,"2""",yes', (1, NAN, 1)),
    "quoted delimiter": (b'1,2,"yes, no"', (1, 2, NAN)),
    "only quotes": (b'""', MISSING),
    "backslash": (b"1,2\\,yes", (1, NAN, 1)),
    "too few": (b"1,2", MISSING),
    "too many": (b"1,2,yes,", MISSING),
    "far too many": (b"," * 500, MISSING),
    "too few, not UTF-8": (b"\xff\xfe", MISSING),
    "NUL": (b"1,\x00,yes", (1, NAN, 1)),
    "NUL only": (b"\x00", MISSING),
    "not UTF-8": (b"1,2\xff,\xfe", (1, NAN, NAN)),
    "byte-order mark": (b"\xef\xbb\xbf1,2,yes", (NAN, 2, 1)),
    "stray carriage return": (b"1,2\r3,yes", MISSING),
    "a stray carriage return between two rows": (b"1,2,yes\r3,4,no", MISSING),
    "carriage returns at the end": (b"1,2,yes\r\r", (1, 2, 1)),
    "CRLF": (b"1,2,yes\r", (1, 2, 1)),
    "quotes and CRLF": (b'"1",2,"yes"\r', (1, 2, 1)),
    "huge": (b"9" * 309 + b",1e300,yes", (math.inf, 1e300, 1)),
    "overflow": (b"1e999,-1e999,yes", (math.inf, -math.inf, 1)),
    "underflow": (b"1e-999,-1e-400,yes", (0, -0.0, 1)),
    "many digits": (
        b"0." + b"0" * 350 + b"1,0.1000000000000000055511151231257827021181583404541015625,yes",
        (0, 0.1, 1),
    ),
    "nan": (b"nan,NaN,yes", (NAN, NAN, 1)),
    "inf": (b"inf,-Infinity,yes", (math.inf, -math.inf, 1)),
    "nan with a load": (b"nan(3),+nan,yes", (NAN, NAN, 1)),
    "hexadecimal": (b"0x10,0b1,yes", (NAN, NAN, 1)),
    "spaces": (b" 1.5 ,\t2,yes", (1.5, 2, 1)),
    "spaces at a label": (b"1,2, yes", (1, 2, NAN)),
    "underscores": (b"1_000,1,yes", (NAN, 1, 1)),
    "other digits": ("١,１,yes".encode(), (NAN, NAN, 1)),
    "signs": (b"+1,--1,yes", (1, NAN, 1)),
    "points": (b".5,5.,yes", (0.5, 5, 1)),
    "only a point": (b".,e5,yes", (NAN, NAN, 1)),
    "null words": (b"NA,null,None", (NAN, NAN, NAN)),
    "empty fields": (b",,", MISSING),
    "one megabyte": (b"1,2," + b"y" * 2**20, (1, 2, NAN)),
    "one megabyte of digits": (b"9" * 2**20 + b",2,yes", (NAN, 2, 1)),
    "one megabyte of quotes": (b'"' * 2**20, MISSING),
    "formula": (b"=1+1,2,yes", (NAN, 2, 1)),
}
GOOD = [
    (f"{i},{i / 7!r},{'yes' if i % 3 else 'no'}".encode(), (i, i / 7, float(i % 3 > 0)))
    for i in range(40)
]


def read(path, fields=FIELDS, *, block_bytes):
    source = CsvSource([path], block_bytes=block_bytes)
    source.check(fields)
    rows = [row for block in source.blocks(fields) for row in map(tuple, block.tolist())]
    assert source.count() == len(rows)
    return sorted(map(repr, rows))


def as_read(rows):
    return sorted(repr(tuple(map(float, row))) for row in rows)


@pytest.mark.parametrize("name", NASTY)
def test_a_nasty_line_gives_its_own_row_and_changes_no_other(name, tmp_path, capfd):
    nasty, row = NASTY[name]
    path = tmp_path / "t.csv"
    for position in (0, 20, 40):
        together = [*GOOD[:position], (nasty, row), *GOOD[position:]]
        path.write_bytes(b"a,b,c\n" + b"\n".join(line for line, _ in together))
        sizes = (64, 4096) if len(nasty) > 10**5 else (1, 57, 2**22)
        for block_bytes in sizes:
            assert read(path, block_bytes=block_bytes) == as_read(r for _, r in together)
    assert capfd.readouterr() == ("", "")


def test_all_nasty_lines_together_in_any_order(tmp_path):
    pairs = [*NASTY.values(), *GOOD]
    for seed, block_bytes in enumerate((2**22, 2**22, 1000, 2**16)):
        random.Random(seed).shuffle(pairs)
        path = tmp_path / "t.csv"
        path.write_bytes(b"a,b,c\r\n" + b"\n".join(line for line, _ in pairs) + b"\n")
        assert read(path, block_bytes=block_bytes) == as_read(row for _, row in pairs)


BYTES = st.lists(
    st.sampled_from([b'"', b",", b"\r", b" ", b"\t", b"1", b"-2.5", b"yes", b"\xff", b"\x00"]),
    max_size=9,
)


@given(
    parts=st.lists(BYTES, min_size=1, max_size=12), block_bytes=st.sampled_from([1, 3, 20, 2**22])
)
def test_a_file_is_read_as_its_lines_are_one_by_one(tmp_path_factory, parts, block_bytes):
    path = tmp_path_factory.getbasetemp() / "fuzz.csv"
    alone = []
    texts = [b"".join(part) for part in parts]
    for text in texts:
        path.write_bytes(b"a,b,c\n" + text)
        alone += read(path, block_bytes=2**22)
    path.write_bytes(b"a,b,c\n" + b"\n".join(texts))
    assert read(path, block_bytes=block_bytes) == sorted(alone)
    assert len(alone) == sum(1 for text in texts if text.strip(b" \t\r"))


@given(values=st.lists(st.floats(), min_size=1, max_size=30), crlf=st.booleans())
def test_floats_survive_a_csv_file(tmp_path_factory, values, crlf):
    path = tmp_path_factory.getbasetemp() / "floats.csv"
    path.write_bytes(
        b"\n".join([b"x", *(repr(v).encode() for v in values)]).replace(
            b"\n", b"\r\n" if crlf else b"\n"
        )
    )
    got = np.concatenate(list(scan(path).blocks([Field("x")])))[:, 0]
    assert np.array_equal(np.sort(got), np.sort(values), equal_nan=True)
    assert sorted(np.signbit(got[got == 0])) == sorted(np.signbit([v for v in values if v == 0]))


def test_a_line_beyond_the_limit_is_a_record_of_missing_values(tmp_path, monkeypatch):
    monkeypatch.setattr(lines, "LONGEST", 100)
    path = tmp_path / "t.csv"
    for length, row in ((100, (1, 2, NAN)), (101, MISSING), (5000, MISSING)):
        line = (b"1,2," + b"y" * 5000)[:length]
        for text in (line, line + b"\n", line + b"\n5,6,yes\n", b"5,6,yes\n" + line):
            path.write_bytes(b"a,b,c\n" + text)
            want = [row, (5, 6, 1)] if b"5,6" in text else [row]
            for block_bytes in (7, 100):
                assert read(path, block_bytes=block_bytes) == as_read(want)


def test_a_very_long_line_is_not_kept_in_memory(monkeypatch):
    monkeypatch.setattr(lines, "LONGEST", 1000)
    blocks = list(lines.cut(io.BytesIO(b"x" * 10**6 + b"\n1\n"), 100))
    assert sum(map(len, blocks)) < 100


@pytest.mark.parametrize(
    ("text", "names"),
    [
        (b"\xef\xbb\xbfa,b\n1,2\n", ("a", "b")),
        (b"\n\n a , b\r\n1,2\r\n", ("a", "b")),
        (b'"a","b, c"\n1,2\n', ("a", "b, c")),
        ("größe,b\n1,2".encode(), ("größe", "b")),
        (b",0\n1,2\n", ("", "0")),
    ],
)
def test_headers(tmp_path, text, names):
    path = tmp_path / "t.csv"
    path.write_bytes(text)
    source = scan(path)
    assert source.names == names
    assert np.concatenate(list(source.blocks([Field(0), Field(1)]))).tolist() == [[1, 2]]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (b"", "is empty"),
        (b"\n\n", "is empty"),
        (b"a,a\n1,2\n", "not unique"),
        (b'a,"b\n1,2\n', "could not be read"),
        (b"a\rb\rc\r", "LF or CRLF"),
        (b"1.5,2.5\n3,4\n", "numbers stand there"),
    ],
)
def test_wrong_headers_are_refused_without_quoting_them(tmp_path, text, words):
    path = tmp_path / "t.csv"
    path.write_bytes(text)
    with pytest.raises(BadInput, match=words) as caught:
        scan(path)
    assert "1.5" not in str(caught.value)


def test_numeric_and_boolean_labels(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,b\n2,True\n2.0,true\n 2e0,1\n3,False\nx,\n")
    got = np.concatenate(
        list(scan(path).blocks([Field("a", Labels((1, 2))), Field("b", Labels((False, True)))]))
    )
    assert got[:3].tolist() == [[1, 1]] * 3
    assert np.isnan(got[3:]).tolist() == [[True, False], [True, True]]
    assert got[3, 1] == 0


def test_a_tab_is_a_delimiter_in_tsv_and_a_space_in_csv(tmp_path):
    (tmp_path / "t.tsv").write_text("a\tb\n1\t2\n\t\n \n")
    (tmp_path / "t.csv").write_text("a\n1\n\t\n")
    assert scan(tmp_path / "t.tsv").count() == 2
    assert scan(tmp_path / "t.csv").count() == 1


def test_an_encoding_of_the_callers_own_is_refused(tmp_path):
    """A registered codec would see cells, and could change its mind at one of them."""
    seen = []

    def search(name):
        if name != "spy":
            return None

        def decode(text, errors="strict"):
            seen.append(bytes(text))
            return "a", len(text)

        return codecs.CodecInfo(lambda text, errors="strict": (b"", 0), decode, name="spy")

    path = tmp_path / "t.csv"
    path.write_bytes(b"x,label\n0,\xe4\n")
    codecs.register(search)
    try:
        for wrong in ("spy", "unicode_escape", "utf-16", "utf-7", "rot13", "nothing", 7):
            with pytest.raises(BadInput, match="is not known, or is not one that ASCII is part of"):
                scan(path, encoding=wrong)
            with pytest.raises(BadInput, match="is not known"):
                Dialect(encoding=wrong)
    finally:
        codecs.unregister(search)
    assert not seen
    label = Field("label", Labels(("a", "\u00e4")))
    for encoding in ("latin-1", "CP1252", None):
        assert next(scan(path, encoding=encoding).blocks([label])).tolist() == [[1]]
    assert np.isnan(next(scan(path, encoding="utf-8").blocks([label]))).all()


@pytest.mark.parametrize(
    ("header", "said", "words"),
    [
        ("a;b,c", {}, "does not say what separates"),
        ("a,b", {"separator": ":"}, "a comma, a semicolon, a tab or a pipe"),
        ("a,b", {"decimal": "'"}, "a point or a comma"),
        ("a,b", {"decimal": ","}, "are both"),
        ("sep=:\na:b", {}, "a comma, a semicolon, a tab or a pipe"),
    ],
)
def test_a_dialect_that_cannot_be_is_refused(tmp_path, header, said, words):
    (tmp_path / "t.csv").write_text(header + "\n1,2\n")
    with pytest.raises(BadInput, match=words):
        scan(tmp_path / "t.csv", **said)


def test_levels_that_are_numbers_have_the_decimal_sign_too(tmp_path):
    (tmp_path / "t.csv").write_text("a;b\n1,0;0\n0,0;1\n2;1,5\n")
    fields = [Field("a", YesNo()), Field("b", Words([0, 1], keep_missing=True))]
    got = next(scan(tmp_path / "t.csv").blocks(fields))
    assert got[:, 1].tolist() == [0, 1, 2]
    assert got[:2, 0].tolist() == [1, 0]
    assert np.isnan(got[2, 0])
