"""What a source refuses, it refuses for public reasons: dtypes, names, shapes, files."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from reticent.errors import BadInput
from reticent.privacy.columns.dates import Date
from reticent.privacy.columns.words import Labels
from reticent.privacy.sources.base import Field, scan


def parquet(table, folder):
    pq.write_table(table, folder / "t.parquet")
    return folder / "t.parquet"


class Sparse:
    nnz = 0

    def toarray(self):
        raise AssertionError


@pytest.mark.parametrize(
    ("data", "y", "words"),
    [
        (np.zeros(3), None, "Expected 2D array, got 1D array instead.*Reshape your data"),
        (pd.Series([1.0]), None, "Expected 2D array, got 1D array instead.*Reshape your data"),
        (np.float64(1), None, "Expected 2D array, got scalar array"),
        (np.zeros((2, 2, 2)), None, "Expected 2D array, got 3D array"),
        (
            np.zeros((4, 0)),
            None,
            r"0 feature\(s\) \(shape=\(4, 0\)\) while a minimum of 1 is required\.",
        ),
        (
            pd.DataFrame(),
            None,
            r"0 feature\(s\) \(shape=\(0, 0\)\) while a minimum of 1 is required\.",
        ),
        (np.zeros((2, 2), complex), None, "Complex data not supported"),
        (Sparse(), None, "Sparse input is not supported"),
        (np.zeros((2, 1)), Sparse(), "Sparse input is not supported"),
        (np.zeros((2, 1)), np.zeros(3), "inconsistent numbers of samples. Each"),
        (np.zeros((2, 1)), 5.0, "y of type float"),
        (np.zeros((2, 1)), np.zeros((2, 0)), "0 feature"),
        (object(), None, "X of type object cannot be read. Give a NumPy array"),
        (pl.LazyFrame({"a": [1]}), np.zeros(1), "X is a lazy frame, and columns beside"),
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), None, "not unique"),
        ("data.csv", [1], "y goes with arrays"),
        ("no-such-file.csv", None, "There is no file no-such-file.csv"),
        ("no-such-file.parquet", None, "There is no file"),
    ],
)
def test_unusable_data_is_refused(data, y, words):
    with pytest.raises(BadInput, match=words):
        scan(data, y=y)


DATE = pd.Timestamp("2020-01-01")


@pytest.mark.parametrize(
    ("data", "field", "words"),
    [
        (np.zeros((1, 2)), Field(2), "no column 2: there are 2"),
        (np.zeros((1, 2)), Field(-1), "no column -1"),
        (np.zeros((1, 2)), Field("a"), "no names"),
        (pd.DataFrame({"a": [1]}), Field("b"), "no column 'b'. The columns are: 'a'"),
        (pd.DataFrame({"a": [DATE]}), Field("a"), "datetime64"),
        (
            pd.DataFrame({"a": [DATE]}),
            Field("a", Labels(("x",))),
            "datetime64.*cannot be read as labels",
        ),
        (pd.DataFrame({"a": [1j]}), Field("a"), "complex128"),
        (pl.DataFrame({"a": [[1]]}), Field("a"), r"List\(Int64\)"),
        (pa.table({"a": [{"x": 1}]}), Field("a"), "struct"),
        (np.array([[b"secret"]]), Field(0, Labels(("a",))), "S6"),
        (
            np.array([["2020-01-01"]], dtype="M8[D]"),
            Field(0),
            "Give its bounds as dates",
        ),
        (
            pd.DataFrame({"a": [20200101]}),
            Field("a", Date("2019-01-01", "2020-12-31")),
            "int64 and cannot be read as dates. If its digits are dates",
        ),
        (pa.table({"a": pa.nulls(2)}), Field("a"), "dtype null"),
        (pa.table({"a": pa.array([5], pa.duration("s"))}), Field("a"), "duration"),
    ],
)
def test_a_wrong_column_is_refused_by_its_dtype(data, field, words, tmp_path):
    sources = [scan(data)]
    if isinstance(data, pa.Table):
        sources.append(scan(parquet(data, tmp_path)))
    for source in sources:
        with pytest.raises(BadInput, match=words) as caught:
            source.check([field])
        assert "secret" not in str(caught.value)


def test_unusable_files_are_refused(tmp_path):
    (tmp_path / "empty").mkdir()
    mixed = tmp_path / "mixed"
    mixed.mkdir()
    (mixed / "a.csv").write_text("a\n1\n")
    pq.write_table(pa.table({"a": [1]}), mixed / "a.parquet")
    differing = tmp_path / "differing"
    differing.mkdir()
    pq.write_table(pa.table({"a": [1]}), differing / "1.parquet")
    pq.write_table(pa.table({"a": ["x"]}), differing / "2.parquet")
    whole = tmp_path / "whole.parquet"
    pq.write_table(pa.table({"a": np.arange(1000.0)}), whole, compression="none")
    (tmp_path / "cut.parquet").write_bytes(whole.read_bytes()[:-300])
    (tmp_path / "text.txt").write_text("a\n1\n")
    for name, words in {
        "empty": "no CSV or Parquet file in the folder",
        "mixed": "mixed has files of several kinds",
        "differing": "2.parquet does not have the columns of .*1.parquet",
        "cut.parquet": "cut.parquet cannot be read: it is truncated",
        "text.txt": r"Known endings: \.csv",
    }.items():
        with pytest.raises(BadInput, match=words):
            scan(tmp_path / name)
    damaged = bytearray(whole.read_bytes())
    damaged[10:40] = b"\xff" * 30
    (tmp_path / "damaged.parquet").write_bytes(damaged)
    with pytest.raises(BadInput, match=r"damaged\.parquet cannot be read"):
        list(scan(tmp_path / "damaged.parquet").blocks([Field("a")]))


def test_two_columns_of_one_name_in_a_parquet_file(tmp_path):
    pq.write_table(
        pa.Table.from_arrays([pa.array([1.0]), pa.array([2.0])], names=["a", "a"]),
        tmp_path / "t.parquet",
    )
    with pytest.raises(BadInput, match="not unique"):
        scan(tmp_path / "t.parquet")


def test_a_file_that_may_not_be_read(tmp_path, monkeypatch):
    pq.write_table(pa.table({"a": [1.0]}), tmp_path / "t.parquet")

    def refused(*args, **options):
        raise PermissionError

    monkeypatch.setattr(
        pq, "ParquetFile", refused
    )  # the superuser, who may run the tests, is never refused
    with pytest.raises(BadInput, match="permission denied"):
        scan(tmp_path / "t.parquet")


def test_a_list_has_no_columns_before_bounds_say_how_many():
    source = scan([[1.0, 2.0], [3.0]], y=[0, 1])
    assert (source.known_n, source.count(), source.width) == (2, 2, 0)
    for ask in (source.kind, source.position):
        with pytest.raises(BadInput, match="one range per column"):
            ask(0)
    with pytest.raises(BadInput, match="one range per column"):
        source.blocks([Field(0)])
    with pytest.raises(BadInput, match="one range per column"):
        source.shaped(None, 1)
    assert source.shaped(2, 1).width == 3


def test_what_fails_to_become_an_array_is_refused_without_its_words():
    class Odd:
        def __array__(self, *args, **options):
            raise ValueError("record 17 is 4711")

    with pytest.raises(BadInput, match="cannot be turned into an array") as caught:
        scan(Odd())
    assert caught.value.__context__ is None


def test_a_refusal_does_not_tell_how_many_records_there_are():
    """Their number is protected where people are the unit, and under add-remove."""
    with pytest.raises(BadInput) as refused:
        scan(np.zeros((2713, 1)), y=np.zeros(2712), person=np.zeros(2713))
    assert not any(letter.isdigit() for letter in str(refused.value))


def test_masked_is_missing():
    masked = np.ma.masked_array([[1.0, 2.0], [3.0, 4.0]], mask=[[False, True], [False, False]])
    (block,) = scan(masked).blocks([Field(0), Field(1)])
    assert np.isnan(block).tolist() == [[False, True], [False, False]]
    words = np.ma.masked_array(np.array([["1", "2"]], dtype=object), mask=[[False, True]])
    (block,) = scan(words).blocks([Field(0), Field(1)])
    assert np.isnan(block[0, 1])
