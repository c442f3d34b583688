"""Arrow streams and lazy frames: streamed, never collected, refused where they can be read once."""

import gzip
from decimal import Decimal

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet as pq
import pytest

import reticent
from reticent.errors import BadInput, ReleaseRefused
from reticent.privacy.columns.identifiers import Identifier
from reticent.privacy.columns.words import Labels
from reticent.privacy.sources.arrow import streams
from reticent.privacy.sources.arrow.columns import arrow_codes
from reticent.privacy.sources.arrow.rereading import Readings
from reticent.privacy.sources.base import Field, scan
from reticent.privacy.sources.codes import code_texts

BOUNDS = reticent.Bounds(x={"a": (0, 10)}, y={"b": (0, 10)})
EVENT = reticent.Gaussian(noise_multiplier=1.0, count=3)


class Inputs(reticent.Sum):
    columns = 1
    norm2 = 1

    def rows(self, records):
        return records[:, :1]


class Export:
    """Something that exports a stream and is nothing else; counts how often."""

    def __init__(self, table, times=None):
        self.table = table
        self.exports = 0
        self.times = times

    def __arrow_c_stream__(self, requested_schema=None):
        self.exports += 1
        if self.times is not None and self.exports > self.times:
            raise RuntimeError("12.75 was read before")
        return self.table.__arrow_c_stream__(requested_schema)


def rows(source, *fields):
    return np.concatenate([np.empty((0, len(fields))), *source.blocks(fields)])


def curator(source, ledger):
    return reticent.Curator(
        source, bounds=BOUNDS, event=EVENT, targets=True, ledger=ledger.url, dataset="people"
    )


@pytest.fixture
def ledger(tmp_path):
    made = reticent.Ledger(tmp_path / "budget.db")
    made.open("people", 10.0, 1e-3)
    return made


TABLE = pa.table({"a": [1.0, 2.0, None], "b": [4, 5, 6], "c": ["x", None, "z"]})


def test_whatever_exports_a_stream_is_a_source():
    source = scan(Export(TABLE))
    assert source.names == ("a", "b", "c")
    assert [source.kind(i)[0] for i in range(3)] == ["number", "number", "text"]
    found = rows(source, Field("b"), Field("a"), Field("c", Labels(("x", "z"))))
    assert np.array_equal(found, [[4, 1, 0], [5, 2, np.nan], [6, np.nan, 1]], equal_nan=True)
    assert source.count() == 3
    assert source.known_n is None
    assert not source.ordered


@pytest.mark.parametrize(
    "once",
    [
        TABLE.to_reader(),
        Export(TABLE, times=1),
        pa.RecordBatchReader.from_stream(TABLE),
    ],
)
def test_what_can_be_read_once_is_refused_before_the_charge(once):
    with pytest.raises(BadInput, match=r"can be read once, .* [wW]rite it to a (Parquet )?file"):
        scan(once)


def test_a_stream_that_fails_later_tells_nothing_but_that(ledger):
    fit = curator(scan(Export(TABLE, times=3)), ledger)
    with pytest.raises(ReleaseRefused, match=r"could not be run to its end.* charge stays") as told:
        fit.release(Inputs())
    assert "12.75" not in str(told.value)
    assert not fit.releases
    assert len(ledger.history("people")) == 1


def test_a_lazy_frame_is_never_collected(monkeypatch):
    def collected(*_, **__):
        raise AssertionError("collected")

    monkeypatch.setattr(pl.LazyFrame, "collect", collected)
    source = scan(pl.LazyFrame({"a": [1, 2], "b": ["x", "y"]}).filter(pl.col("a") > 1))
    assert rows(source, Field("a")).tolist() == [[2.0]]
    assert source.count() == 1


def test_columns_that_are_not_wanted_are_not_asked_for():
    def asked(column):
        raise AssertionError("asked for b")

    frame = pl.LazyFrame({"a": [1, 2], "b": [3, 4]}).with_columns(
        pl.col("b").map_batches(asked, return_dtype=pl.Int64)
    )
    assert rows(scan(frame), Field("a")).tolist() == [[1.0], [2.0]]
    with pytest.raises(BadInput, match="could not be run to its end"):
        rows(scan(frame), Field("b"))


def test_long_batches_are_cut(monkeypatch):
    monkeypatch.setattr(streams, "BATCH_ROWS", 2)
    table = pa.table({"a": range(5)})
    blocks = list(scan(Export(table)).blocks([Field("a")]))
    assert [len(block) for block in blocks] == [2, 2, 1]
    assert np.concatenate(blocks)[:, 0].tolist() == [0, 1, 2, 3, 4]


def test_data_sets_of_several_files(tmp_path):
    for part in range(3):
        pq.write_table(pa.table({"a": [part, part + 10]}), tmp_path / f"{part}.parquet")
    source = scan(pa.dataset.dataset(tmp_path))
    assert sorted(rows(source, Field("a"))[:, 0]) == [0, 1, 2, 10, 11, 12]


def test_records_that_change_between_two_stages_are_refused(ledger):
    connection = duckdb.connect()
    connection.execute("CREATE TABLE people AS SELECT 1.0 AS a, 2.0 AS b FROM range(100)")
    source = scan(connection.table("people"))
    fit = curator(source, ledger)
    fit.release(Inputs())
    connection.execute("UPDATE people SET a = 9.0 WHERE rowid = 7")
    with pytest.raises(ReleaseRefused, match=r"records changed while they were read"):
        fit.release(Inputs())
    assert len(fit.releases) == 1
    fit.close()
    again = reticent.Curator(source, bounds=BOUNDS, event=EVENT, targets=True)  # a new fit
    again.release(Inputs())
    connection.execute("DELETE FROM people WHERE rowid = 7")
    with pytest.raises(ReleaseRefused, match=r"number of records changed|records changed"):
        again.release(Inputs())


def test_another_order_is_no_change_and_another_cell_is():
    readings = Readings()
    records = np.array([[1.0, 2.0], [3.0, np.nan], [-0.0, 5.0]])
    fields = [Field("a"), Field("b")]

    def read(block):
        return list(readings.watch(fields, iter(np.array_split(block, 2))))

    read(records)
    read(records[[2, 0, 1]])
    for i in range(3):
        for j in range(2):
            other = records.copy()
            other[i, j] = 7.0
            with pytest.raises(ReleaseRefused, match="changed"):
                read(other)
    with pytest.raises(ReleaseRefused, match="changed"):
        read(records[:, ::-1])
    with pytest.raises(ReleaseRefused, match="changed"):
        read(records[:2])


@pytest.mark.parametrize("values", [pa.string(), pa.large_string(), pa.string_view()])
@pytest.mark.parametrize("index", [pa.int8(), pa.uint32()])
def test_dictionaries_are_read_as_their_texts(values, index):
    texts = [None, "x", "z", "é", "", "1e3", "x"]
    plain = pa.array(texts, pa.string())
    cells = pa.DictionaryArray.from_arrays(
        pa.array([None, 0, 1, 2, 3, 4, 0], index), pa.array(["x", "z", "é", "", "1e3"], values)
    )
    for kind in (None, Labels(("x", "z", 1000)), Identifier(half=0, key=b"k" * 16)):
        assert np.array_equal(arrow_codes(cells, kind), code_texts(plain, kind), equal_nan=True)
    numbers = pa.array([1.5, None, 1.5]).dictionary_encode()
    assert np.array_equal(arrow_codes(numbers, None), [1.5, np.nan, 1.5], equal_nan=True)


def test_a_dictionary_of_128_entries_and_a_null():
    """The place after the last entry, where the null goes, is not one of an int8."""
    entries = pa.array([f"{i}" for i in range(128)])
    cells = pa.DictionaryArray.from_arrays(pa.array([127, None], pa.int8()), entries)
    assert np.array_equal(arrow_codes(cells, None), [127, np.nan], equal_nan=True)


@pytest.mark.parametrize(
    ("dtype", "values", "wanted"),
    [
        (pa.decimal128(38, 0), [Decimal(10**30), None], [1e30, np.nan]),
        (pa.float16(), [np.float16(0.5), None], [0.5, np.nan]),
        (pa.uint64(), [2**64 - 1, None], [2.0**64, np.nan]),
        (pa.bool_(), [True, None], [1.0, np.nan]),
        (pa.int64(), [2**53 + 1], [2.0**53]),
    ],
)
def test_numbers_of_every_type(dtype, values, wanted):
    source = scan(Export(pa.table({"a": pa.array(values, dtype)})))
    assert np.array_equal(rows(source, Field("a"))[:, 0], wanted, equal_nan=True)


@pytest.mark.parametrize("dtype", [pa.list_(pa.int8()), pa.binary(), pa.time64("us"), pa.null()])
def test_other_types_are_refused_by_the_schema(dtype):
    source = scan(Export(pa.table({"a": pa.nulls(1, dtype)})))
    with pytest.raises(BadInput, match="cannot be read as numbers"):
        source.check([Field("a")])


def test_names_that_are_not_unique_are_refused():
    table = pa.table([pa.array([1]), pa.array([2])], names=["a", "a"])
    with pytest.raises(BadInput, match="not unique"):
        scan(Export(table))


def test_lazy_frames_have_no_columns_beside_them():
    with pytest.raises(BadInput, match="Join all of them to one frame"):
        scan(pl.LazyFrame({"a": [1]}), person=[1])


# ---- files


def write(path, text):
    if path.suffix == ".gz":
        path.write_bytes(gzip.compress(text[:20]) + gzip.compress(text[20:]))  # two members
    elif path.suffix == ".zst":
        codec = pa.Codec("zstd")
        whole = codec.compress(text[:20], asbytes=True) + codec.compress(text[20:], asbytes=True)
        path.write_bytes(whole)
    else:
        path.write_bytes(text)
    return path


TEXT = b"age,weight\n34,70\n61,82\n,75\n29,heavy\n"


@pytest.mark.parametrize("ending", [".gz", ".zst"])
def test_compressed_texts(ending, tmp_path):
    plain = scan(write(tmp_path / "p.csv", TEXT))
    path = write(tmp_path / f"p.csv{ending}", TEXT)
    fields = [Field("age"), Field("weight")]
    assert np.array_equal(rows(scan(path), *fields), rows(plain, *fields), equal_nan=True)
    assert scan(path).count() == 4
    assert scan(write(tmp_path / f"e.csv{ending}", b"a,b\n")).known_n == 0
    assert scan(write(tmp_path / f"t.tsv{ending}", b"a\n1\n")).dialect.separator == b"\t"
    assert scan(write(tmp_path / f"s.csv{ending}", b"sep=;\na;b\n1;2\n")).names == ("a", "b")
    whole = path.read_bytes()
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        try:
            found = rows(scan(path), *fields)
        except BadInput as error:
            told = str(error)
            assert "is truncated, damaged" in told or "is empty" in told or "first line" in told
        else:  # cut between the two members: a file of its own
            assert len(found) < 4


def test_lists_and_patterns_of_files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    frame = pd.DataFrame({"a": np.arange(6.0), "b": ["x"] * 6})
    for part in range(3):
        frame[2 * part : 2 * part + 2].to_parquet(f"2024-{part}.parquet")
        frame[2 * part : 2 * part + 2].to_csv(f"2024-{part}.csv", index=False)
    (tmp_path / "deep" / "er").mkdir(parents=True)
    frame.to_parquet("deep/er/x.parquet")
    for data in ("2024-*.parquet", "2024-?.csv", ["2024-1.csv", tmp_path / "2024-0.csv"]):
        found = rows(scan(data), Field("a"))[:, 0].tolist()
        assert found == ([2, 3, 0, 1] if isinstance(data, list) else [0, 1, 2, 3, 4, 5])
    assert scan("**/x.parquet").count() == 6
    (tmp_path / "[a].csv").write_text("a\n5\n")  # the name of a file, though it looks like one
    assert rows(scan("[a].csv"), Field("a")).tolist() == [[5.0]]
    with pytest.raises(BadInput, match=r"no CSV or Parquet file that fits 2025-\*"):
        scan("2025-*")
    with pytest.raises(BadInput, match="has files of several kinds"):
        scan(["2024-0.csv", "2024-0.parquet"])
    with pytest.raises(BadInput, match="has files of several kinds"):
        scan("2024-*")


def test_a_list_of_texts_is_not_quoted_and_a_fit_takes_every_list_for_records(tmp_path):
    with pytest.raises(BadInput, match="Entry 1 of the list") as told:
        scan([write(tmp_path / "p.csv", TEXT), "Smith"])
    assert "Smith" not in str(told.value)
    words = ["F", "M", "F", "p.csv"] * 50
    bounds = reticent.Bounds(x=[reticent.Words(["F", "M"])])
    model = reticent.PrivateHistogram(bounds=bounds, bins=2, epsilon=1, delta=1e-6)
    assert model.fit(words).releases_[0].n == 200
