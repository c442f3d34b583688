"""Files that are cut short, that change, or that disappear.

What comes of it is about the file, not about a record.
"""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import reticent
from reticent.errors import BadInput, ReleaseRefused
from reticent.privacy.columns.words import Labels
from reticent.privacy.sources import csv_dialect
from reticent.privacy.sources import csv_lines as lines
from reticent.privacy.sources.base import Field, scan
from reticent.privacy.sources.parquet import ParquetSource

BOUNDS = reticent.Bounds(x={"a": (0, 10), "b": (0, 10)}, classes={"c": ["no", "yes"]})
FIELDS = [Field("a"), Field("b"), Field("c", Labels(("no", "yes")))]


class Inputs(reticent.Sum):
    columns = 2
    norm2 = 2

    def rows(self, records):
        return records[:, :2]


def rows(source):
    return np.concatenate([np.empty((0, 3)), *source.blocks(FIELDS)])


def outcome(path):
    """What comes of reading a file: the shape of the rows, or the words of a refusal."""
    try:
        return rows(scan(path)).shape
    except reticent.ReticentError as error:
        return str(error)


def test_a_csv_file_cut_anywhere(tmp_path):
    """Lines before the cut are read as they were.

    The last one is whatever is left of it, a record like any other.
    """
    head = b"a,b,c\n"
    path = tmp_path / "t.csv"
    whole = head + b"1,2,yes\n3.5,4,no\n5,6,yes\n"
    path.write_bytes(whole)
    full = rows(scan(path))
    assert full.tolist() == [[1, 2, 1], [3.5, 4, 0], [5, 6, 1]]
    for length in range(len(head), len(whole)):
        path.write_bytes(whole[:length])
        got = rows(scan(path))
        complete = whole[len(head) : length].count(b"\n")
        assert got[:complete].tolist() == full[:complete].tolist()
        assert len(got) == complete + (whole[length - 1 : length] != b"\n")


def test_where_a_csv_file_is_cut_says_nothing_of_a_record(tmp_path):
    """Two files that differ in one record, cut at the same place: the same outcome."""
    path = tmp_path / "t.csv"
    files = [
        b"a,b,c\n1,2,yes\n" + line + b"\n5,6,yes\n"
        for line in (b"3.5,4,no", b'"",x,\xff\x00\x00', b",,,,,,,,")
    ]
    for length in range(len(files[0]) + 1):
        told = set()
        for content in files:
            path.write_bytes(content[:length])
            told.add(outcome(path))
        assert len(told) == 1


@pytest.mark.parametrize("label", ["yes", "x" * 50])
def test_a_parquet_file_cut_anywhere_is_refused_before_anything_is_read(label, tmp_path):
    table = pa.table({"a": [1.0, 2.0], "b": [3.0, 4.0], "c": ["no", label]})
    path = tmp_path / "t.parquet"
    pq.write_table(table, path, compression="none")
    whole = path.read_bytes()
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        with pytest.raises(
            BadInput, match=r"cannot be read: it is truncated, damaged, or of another format\.$"
        ):
            scan(path)


def curator(path):
    event = reticent.Gaussian(noise_multiplier=10.0, count=2)
    one = reticent.Curator(reticent.scan(path), bounds=BOUNDS, event=event, targets=True)
    one.release(Inputs())
    return one


def write(path, table):
    if path.suffix == ".parquet":
        pq.write_table(pa.table(table), path)
    else:
        columns = list(table.values())
        text = [",".join(map(str, record)) for record in zip(*columns, strict=True)]
        path.write_text("\n".join([",".join(table), *text]) + "\n")


TABLE = {"a": [1.0, 2.0, 3.0], "b": [4.0, 5.0, 6.0], "c": ["no", "yes", "no"]}
CHANGES = {
    "disappears": (None, "There is no file"),
    "another order of columns": (
        {name: TABLE[name] for name in "bac"},
        "columns of .* have changed",
    ),
    "a column less": ({name: TABLE[name] for name in "ac"}, "columns of .* have changed"),
    "a record more": (
        {name: [*cells, cells[0]] for name, cells in TABLE.items()},
        "number of records changed",
    ),
    "a record less": (
        {name: cells[:-1] for name, cells in TABLE.items()},
        "number of records changed",
    ),
    "no record": (
        {name: [] for name in TABLE},
        "number of records changed|columns of .* have changed",
    ),
}


@pytest.mark.parametrize("ending", ["csv", "parquet"])
@pytest.mark.parametrize("change", CHANGES)
def test_a_file_that_changes_between_two_releases(change, ending, tmp_path):
    path = tmp_path / f"t.{ending}"
    write(path, TABLE)
    one = curator(path)
    table, words = CHANGES[change]
    path.unlink()
    if table is not None:
        write(path, table)
    with pytest.raises(ReleaseRefused, match=words):
        one.release(Inputs())
    assert len(one.releases) == 1


def test_a_column_that_becomes_one_of_another_kind(tmp_path):
    path = tmp_path / "t.parquet"
    write(path, TABLE)
    one = curator(path)
    write(path, {**TABLE, "b": ["x", "y", "z"]})
    with pytest.raises(ReleaseRefused, match="have changed since it was scanned"):
        one.release(Inputs())


def test_a_damaged_page_is_refused_in_words_that_quote_nothing(tmp_path):
    path = tmp_path / "t.parquet"
    pq.write_table(
        pa.table({**TABLE, "b": [11.0, 12.0, 13.0]}), path, compression="none", use_dictionary=False
    )
    source = scan(path)
    damaged = bytearray(path.read_bytes())
    damaged[4:30] = b"\xff" * 26
    path.write_bytes(damaged)
    with pytest.raises(BadInput, match=r"t\.parquet cannot be read: it is truncated, damaged"):
        rows(source)


def test_every_text_column_is_read_as_plain_text(tmp_path):
    """Dictionaries, and casts to 32-bit offsets, have a size at which the length of one label is
    too much.
    """
    words = pa.array(["no", "yes", None])
    columns = {
        "plain": words,
        "large": words.cast(pa.large_string()),
        "view": words.cast(pa.string_view()),
        "dictionary": words.dictionary_encode(),
        "large dictionary": words.cast(pa.large_string()).dictionary_encode(),
    }
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table(columns), path)
    from reticent.privacy.sources.parquet import _open_parquet, _plain_metadata

    with _open_parquet(path, _plain_metadata(path)) as file:
        assert {field.type for field in file.schema_arrow} == {pa.string()}
    source = ParquetSource([path])
    fields = [Field(name, Labels(("no", "yes"))) for name in columns]
    rows = np.concatenate(list(source.blocks(fields)))
    assert rows[:2].tolist() == [[0] * 5, [1] * 5]
    assert np.isnan(rows[2]).all()


def test_a_column_named_as_arrows_notes_is_refused(tmp_path):
    pq.write_table(pa.table({"ARROW:schema": [1.0]}), tmp_path / "t.parquet")
    with pytest.raises(BadInput, match="Rename it"):
        scan(tmp_path / "t.parquet")


def test_a_header_that_is_too_long_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(lines, "LONGEST_HEADER", 64)
    monkeypatch.setattr(csv_dialect, "LONGEST_HEADER", 64)
    path = tmp_path / "t.csv"
    path.write_text(",".join(f"c{i}" for i in range(100)) + "\n")
    with pytest.raises(BadInput, match="more than 64 bytes"):
        scan(path)


def test_a_line_that_is_too_long_is_a_record_of_missing_cells(tmp_path, monkeypatch):
    monkeypatch.setattr(lines, "LONGEST", 4096)
    path = tmp_path / "t.csv"
    for long in (b"1,2," + b"y" * 10_000, b"," * 10_000, b'"' * 10_000):
        path.write_bytes(b"a,b,c\n1,2,yes\n" + long + b"\n5,6,yes\n")
        got = rows(reticent.privacy.sources.csv.CsvSource([path], block_bytes=1024))
        assert got[[0, 2]].tolist() == [[1, 2, 1], [5, 6, 1]]
        assert np.isnan(got[1, :2]).all()
