"""Every record once, in its row, in the columns that were asked for: small tables, cell by cell."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from reticent.errors import BadInput
from reticent.privacy.columns.words import Labels
from reticent.privacy.sources.base import Field, scan
from reticent.privacy.sources.csv import CsvSource
from reticent.privacy.sources.in_memory import MemorySource

NAN = np.nan


def rows(source, *fields):
    """All rows; labels are wanted where a field is a pair."""
    wanted = [
        Field(one[0], Labels(one[1])) if isinstance(one, tuple) else Field(one) for one in fields
    ]
    source.check(wanted)
    blocks = list(source.blocks(wanted))
    assert all(block.flags.c_contiguous and block.dtype == np.float64 for block in blocks)
    return np.vstack([np.empty((0, len(fields))), *blocks])


def same(found, wanted):
    return np.array_equal(found, np.array(wanted, dtype=float), equal_nan=True)


X = np.arange(12.0).reshape(4, 3)


@pytest.mark.parametrize("dtype", ["float64", "int64", "object"])
@pytest.mark.parametrize("columns", [(0, 1, 2), (0,), (1, 2), (2, 0), (0, 2), (1, 1), (2, 1, 0)])
def test_columns_of_an_array(dtype, columns):
    assert same(rows(scan(X.astype(dtype)), *columns), X[:, columns])


@pytest.mark.parametrize(
    ("y", "targets"), [(X[:, 0] * 10, 1), (X[:, :2] * 10, 2), ((X[:, 0] * 10).tolist(), 1)]
)
def test_outputs_stand_behind_the_inputs(y, targets):
    source = scan(X, y=y).shaped(None, targets)
    assert (source.width, source.targets, source.known_n, source.count()) == (
        3 + targets,
        targets,
        4,
        4,
    )
    assert same(rows(source, 3, 0), np.column_stack([X[:, 0] * 10, X[:, 0]]))
    assert same(rows(source, 2), X[:, 2:])
    assert source.names is None
    with pytest.raises(BadInput, match=f"there are {3 + targets} columns"):
        source.position(3 + targets)
    assert source.position(2 + targets) == 2 + targets


@pytest.mark.parametrize(
    ("y", "names"),
    [
        (X[:, 0], ("a", "b", "c", "y")),
        (X[:, :2], ("a", "b", "c", "y0", "y1")),
        (pd.DataFrame({"t": X[:, 0]}), ("a", "b", "c", "t")),
        (None, ("a", "b", "c")),
    ],
)
def test_outputs_have_names_where_inputs_have(y, names):
    source = scan(pd.DataFrame(X, columns=["a", "b", "c"]), y=y)
    assert source.names == names
    assert source.width == len(names)
    if y is not None:
        assert same(rows(source, names[3], "c"), X[:, [0, 2]])


def test_labels_beside_numbers():
    table = np.array([[1, "yes", 3.5], [2, "no", None], [3, "?", "x"]], dtype=object)
    wanted = [[0, 1, 1, 3.5], [NAN, 0, 2, NAN], [1, NAN, 3, NAN]]
    assert same(rows(scan(table), (0, (1, 3)), (1, ("no", "yes")), 0, 2), wanted)
    assert same(
        rows(scan(pd.DataFrame({"l": ["b", "a", "c"]})), ("l", ("a", "b"))), [[1], [0], [NAN]]
    )
    assert same(rows(scan(np.array([[1.0], [2.0]])), (0, (1, 2))), [[0], [1]])


@pytest.mark.parametrize(
    ("shape", "sizes"), [((70_000, 1), [65_536, 4_464]), ((40_000, 32), [32_768, 7_232])]
)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_blocks_are_of_the_same_size_and_none_is_left_out(shape, sizes, dtype):
    table = np.zeros(shape, dtype=dtype)
    table[:, 0] = np.arange(shape[0])
    blocks = list(scan(table).blocks([Field(i) for i in range(shape[1])]))
    assert [len(block) for block in blocks] == sizes
    assert np.concatenate([block[:, 0] for block in blocks]).tolist() == list(range(shape[0]))


def test_only_a_whole_array_is_passed_on_as_it_is():
    (block,) = scan(X).blocks([Field(0), Field(1), Field(2)])
    assert np.shares_memory(block, X)
    assert not block.flags.writeable
    for source, fields in (
        (scan(X), [Field(0), Field(1)]),
        (scan(X), [Field(1), Field(0), Field(2)]),
        (scan(X), [Field(0), Field(1), Field(2, Labels((2.0, 5.0)))]),
        (scan(X, y=X[:, 0]), [Field(i) for i in range(4)]),
    ):
        assert not any(np.shares_memory(block, X) for block in source.blocks(fields))


def lists(X, y=None, *, inputs=1, targets=1):
    return scan(X, y=y).shaped(inputs, targets)


def test_rows_of_lists_and_what_is_no_row():
    assert same(rows(lists([(1, None), [2.5, "x"]], inputs=2), 0, 1), [[1, NAN], [2.5, NAN]])
    assert same(
        rows(lists([[1.0], [2.0]], [[3.0], 4.0]), 1), [[3], [4]]
    )  # a column of one cell, either way
    assert same(rows(lists([[1.0], [2.0]], [[3.0], [4.0]]), 1), [[3], [4]])
    assert same(rows(lists([np.array([1.0, 2.0])], inputs=2), 1), [[2]])
    assert same(rows(lists(([1.0], 2.0, [2.0, 3.0], None, [])), 0), [[1], [2], [NAN], [NAN], [NAN]])
    assert same(
        rows(lists([[1.0, 2.0], 2.0, [3.0]], inputs=2), 0, 1), [[1, 2], [NAN, NAN], [NAN, NAN]]
    )
    labels = rows(lists(X, ["b", ["b"], ["b", "b"], None], inputs=None), (3, ("a", "b")))
    assert same(labels, [[1], [1], [NAN], [NAN]])
    assert lists([]).known_n == 0


def test_a_list_is_not_laid_out_before_it_is_read():
    class Unread(list):
        def __iter__(self):
            raise AssertionError("a record was read")

        __getitem__ = __iter__

    source = lists(Unread([[1.0], [2.0]]), Unread([0.0, 1.0]))
    source.check([Field(0), Field(1, Labels((0, 1)))])
    assert (source.known_n, source.width, source.targets) == (2, 2, 1)


def test_which_columns_there_are():
    names = [f"c{i}" for i in range(21)]
    with pytest.raises(BadInput, match=r"'c18', 'c19'\.$"):
        scan(pd.DataFrame(np.zeros((1, 20)), columns=names[:20])).position("x")
    with pytest.raises(BadInput, match=r"'c18', 'c19', …\.$"):
        scan(pd.DataFrame(np.zeros((1, 21)), columns=names)).position("x")
    source = scan(X)
    assert [source.position(i) for i in range(3)] == [0, 1, 2]
    for wrong in (-1, 3):
        with pytest.raises(BadInput, match=f"no column {wrong}"):
            source.position(wrong)


NUMBER = X[:, :1]
TEXT = np.array([["a"]])
ANY = np.array([[1]], dtype=object)
CATEGORY = pd.DataFrame({"a": pd.Categorical(["a"])})
OTHER = np.array([["2020-01-01"]], dtype="M8[D]")


@pytest.mark.parametrize(
    ("data", "numbers", "texts", "values", "mixed"),
    [
        (NUMBER, True, True, True, True),
        (TEXT, True, True, True, True),
        (ANY, True, True, True, True),
        (CATEGORY, True, True, True, True),
        (OTHER, False, False, False, False),
    ],
)
def test_what_a_column_can_be_read_as(data, numbers, texts, values, mixed):
    for classes, usable in (
        (None, numbers),
        (("a", "b"), texts),
        ((1, 2), values),
        ((1, "a"), mixed),
    ):
        field = Field(0, None if classes is None else Labels(classes))
        if usable:
            scan(data).check([field])
        else:
            with pytest.raises(
                BadInput, match="cannot be read as " + ("numbers" if classes is None else "labels")
            ):
                scan(data).check([field])


def test_a_file_goes_without_y():
    with pytest.raises(BadInput, match="y goes with arrays"):
        scan(MemorySource(X), y=X[:, 0])
    with pytest.raises(BadInput, match="y goes with arrays"):
        scan("t.csv", y=X[:, 0])


def test_what_comes_from_dask_is_asked_there():
    class Frame:
        __module__ = "dask.dataframe"

    with pytest.raises(BadInput, match="A dask Frame cannot be read"):
        scan(Frame())
    with pytest.raises(BadInput, match="y cannot be given beside a dask frame"):
        scan(Frame(), y=X[:, 0])


def test_data_without_columns():
    with pytest.raises(BadInput, match=r"0 feature\(s\) \(shape=\(4, 0\)\)"):
        scan(np.zeros((4, 0)))


CSV = b'a,b,c\n1,2,no\n"3",4,"yes"\n5\n6,"7,8",yes\n\n9,x,yes\r\n10,11,no,\n" 12",13,\xff\n'
READ = [
    [1, 2, 0],
    [3, 4, 1],
    [NAN, NAN, NAN],
    [6, NAN, 1],
    [9, NAN, 1],
    [NAN, NAN, NAN],
    [12, 13, NAN],
]


@pytest.mark.parametrize("size", [1, 20, 2**22])
def test_lines_of_a_file_keep_their_order(tmp_path, size):
    path = tmp_path / "t.csv"
    path.write_bytes(CSV)
    source = CsvSource([path], block_bytes=size)
    assert (source.names, source.width, source.known_n, source.count()) == (
        ("a", "b", "c"),
        3,
        None,
        7,
    )
    label = ("c", ("no", "yes"))
    assert same(rows(source, "a", "b", label), READ)
    assert same(rows(source, label, "a"), [[row[2], row[0]] for row in READ])
    assert same(rows(source, "b", "b"), [[row[1]] * 2 for row in READ])


def test_numbers_of_a_file_are_those_of_python(tmp_path):
    texts = [
        "0",
        "-1.5",
        "+2",
        " 3 ",
        "1e5",
        "1E-7",
        "1" * 21,
        "1e308",
        "1e400",
        ".5",
        "5.",
        "0.1",
        "",
        "nan",
        "-inf",
        "0x1",
    ]
    (tmp_path / "t.tsv").write_text("k\tx\n" + "".join(f"1\t{text}\n" for text in texts))
    wanted = [[float(text)] if text not in ("", "0x1") else [NAN] for text in texts]
    assert same(rows(scan(tmp_path / "t.tsv"), "x"), wanted)


def test_files_of_a_folder(tmp_path):
    (tmp_path / "b.CSV").write_text("a\n3\n")
    (tmp_path / "a.csv").write_text("a\n1\n2\n")
    (tmp_path / ".hidden.csv").write_text("b\n9\n")
    (tmp_path / "notes.txt").write_text("b\n9\n")
    (tmp_path / "c.csv").mkdir()
    assert same(rows(scan(tmp_path), "a"), [[1], [2], [3]])
    (tmp_path / "d.tsv").write_text("a\n4\n")
    with pytest.raises(BadInput, match="has files of several kinds"):
        scan(tmp_path)
    (tmp_path / "d.tsv").unlink()
    (tmp_path / "d.csv").write_text("b\n4\n")
    with pytest.raises(BadInput, match="does not have the columns"):
        scan(tmp_path)


def test_a_file_that_is_no_longer_than_its_header_has_no_records(tmp_path):
    (tmp_path / "a.csv").write_text("a\n")
    assert scan(tmp_path).known_n == 0
    (tmp_path / "b.csv").write_text("a\n1\n")
    assert scan(tmp_path).known_n is None
    assert scan(tmp_path).count() == 1


def test_long_texts_of_a_parquet_file_are_read_a_few_at_a_time(tmp_path):
    rows = 3 * 4_096
    texts = pa.array(["no" * 2_000, "yes"] * (rows // 2))
    pq.write_table(pa.table({"b": texts}), tmp_path / "1.parquet", use_dictionary=False)
    blocks = list(scan(tmp_path).blocks([Field("b", Labels(("no", "yes")))]))
    assert [len(block) for block in blocks] == [2 * 4_096, 4_096]  # 8 MB each
    assert same(np.vstack(blocks)[:, 0], np.tile([NAN, 1.0], rows // 2))


def test_parquet_files_one_after_the_other(tmp_path):
    long = np.arange(70_000)
    table = pa.table(
        {"a": long, "b": pa.array([None if i % 2 else "yes" for i in long]), "c": long % 3 == 0}
    )
    pq.write_table(table, tmp_path / "1.parquet")
    pq.write_table(table.slice(0, 2), tmp_path / "2.pq")
    source = scan(tmp_path)
    assert (source.known_n, source.count(), source.width) == (70_002, 70_002, 3)
    fields = [
        Field("b", Labels(("no", "yes"))),
        Field("a"),
        Field("c", Labels((False, True))),
        Field("a"),
    ]
    blocks = list(source.blocks(fields))
    assert [len(block) for block in blocks] == [65_536, 4_464, 2]  # short labels are joined
    assert [len(block) for block in source.blocks([Field("a")])] == [65_536, 4_464, 2]
    both = np.concatenate([long, [0, 1]])
    label = np.where(both % 2 == 0, 1.0, NAN)
    assert same(np.vstack(blocks), np.column_stack([label, both, both % 3 == 0, both]))


def test_kinds_of_parquet_columns(tmp_path):
    table = pa.table(
        {
            "whole": [1],
            "real": [0.5],
            "yes": [True],
            "money": pa.array([1]).cast(pa.decimal128(21, 2)),
            "text": ["a"],
            "large": pa.array(["a"], pa.large_string()),
            "kind": pa.array(["a"]).dictionary_encode(),
            "day": pa.array([0], pa.date32()),
        }
    )
    pq.write_table(table, tmp_path / "t.parquet")
    source = scan(tmp_path / "t.parquet")
    kinds = [source.kind(i)[0] for i in range(source.width)]
    assert kinds == ["number"] * 4 + ["text"] * 2 + ["category", "moment"]
    assert same(rows(source, "whole", "real", "yes", "money"), [[1, 0.5, 1, 1]])
    label = ("z", "a")
    assert same(rows(source, ("text", label), ("large", label), ("kind", label)), [[1, 1, 1]])
