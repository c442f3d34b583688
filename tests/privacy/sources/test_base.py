"""Arrays, frames and files deliver the same rows, refuse for public reasons only, and never let a
value matter.
"""

import logging
import math
import os
import warnings
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reticent.privacy.columns.words import Labels
from reticent.privacy.sources.base import Field, Source, scan

N = 2500
CLASSES = ("no", "yes", "perhaps")
FIELDS = (Field("a"), Field("k"), Field("flag"), Field("label", Labels(CLASSES)), Field("a"))


def gram(block):
    """Exact: whole numbers up to 2^19, so that 8192 products add up to less than 2^53."""
    q = np.trunc(np.clip(np.nan_to_num(block, nan=-3.0, posinf=8.0, neginf=-8.0), -8, 8) * 2.0**16)
    return q.T @ q


def rows_of(source, fields):
    source.check(fields)
    blocks = list(source.blocks(fields))
    assert all(
        b.dtype == np.float64 and b.flags.c_contiguous and b.shape[1] == len(fields) for b in blocks
    )
    return np.concatenate(blocks) if blocks else np.empty((0, len(fields)))


def sorted_rows(rows):
    return sorted(map(tuple, np.nan_to_num(rows, nan=1e300).tolist()))


@pytest.fixture(scope="module")
def records():
    rng = np.random.default_rng(5)
    a = rng.normal(size=N)
    a[::17], a[3], a[4] = np.nan, np.inf, -np.inf
    label = rng.choice([*CLASSES, "unknown", None], size=N)
    return {
        "a": [None if math.isnan(v) else v for v in a.tolist()],
        "unused": ["text"] * N,
        "k": rng.integers(-9, 9, size=N).tolist(),
        "flag": [bool(v) for v in rng.integers(0, 2, size=N)],
        "label": label.tolist(),
    }


@pytest.fixture(scope="module")
def expected(records):
    columns = [records["a"], records["k"], records["flag"], records["label"], records["a"]]
    columns[3] = [CLASSES.index(v) if v in CLASSES else None for v in columns[3]]
    return np.array([[math.nan if v is None else float(v) for v in c] for c in columns]).T


def csv_text(records, rows):
    lines = [",".join(records)]
    for i in rows:
        cells = [column[i] for column in records.values()]
        lines.append(
            ",".join("" if v is None else f'"{v}"' if v == "yes" else str(v) for v in cells)
        )
    return "\n".join(lines).replace("True", "1").replace("False", "0") + "\n"


def make(kind, records, folder, order=None):
    order = np.arange(N) if order is None else order
    records = {name: [column[i] for i in order] for name, column in records.items()}
    table = pa.table(records)
    halves = (range(0, N // 3), range(N // 3, N))
    match kind:
        case "array":
            return np.array([records[name] for name in records], dtype=object).T
        case "pandas":
            return pd.DataFrame(records)
        case "pandas-nullable":
            return pd.DataFrame(records).convert_dtypes().astype({"label": "category"})
        case "polars":
            return pl.DataFrame(records).with_columns(pl.col("label").cast(pl.Categorical))
        case "pyarrow":
            return table.set_column(4, "label", table["label"].dictionary_encode())
        case "csv":
            (folder / "data.csv").write_text(csv_text(records, range(N)))
            return folder / "data.csv"
        case "tsv":
            (folder / "data.tsv").write_text(csv_text(records, range(N)).replace(",", "\t"))
            return folder / "data.tsv"
        case "parquet":
            pq.write_table(table, folder / "data.parquet", row_group_size=700)
            return os.fspath(folder / "data.parquet")
        case "csv-folder":
            for i, rows in enumerate(halves):
                (folder / f"part{i}.csv").write_text(csv_text(records, rows))
            (folder / ".part.csv").write_text("hidden")
            (folder / "_SUCCESS").write_text("")
            return folder
        case "parquet-folder":
            for i, rows in enumerate(halves):
                pq.write_table(table.slice(rows.start, len(rows)), folder / f"part{i}.parquet")
            return folder
    raise AssertionError(kind)


FILES = ("csv", "tsv", "parquet", "csv-folder", "parquet-folder")
KINDS = ("array", "pandas", "pandas-nullable", "polars", "pyarrow", *FILES)


@pytest.mark.parametrize("kind", KINDS)
def test_same_integers_from_every_kind_of_source(kind, records, expected, tmp_path):
    source = scan(make(kind, records, tmp_path))
    fields = (
        [Field(list(records).index(f.key), f.kind) for f in FIELDS] if kind == "array" else FIELDS
    )
    source.check(fields)
    assert source.count() == N
    assert source.known_n == (None if "csv" in kind or kind == "tsv" else N)
    assert source.names == (None if kind == "array" else tuple(records))
    assert source.width == 5
    q = (
        np.trunc(np.clip(np.nan_to_num(expected, nan=-3.0), -8, 8) * 2.0**16)
        .astype(np.int64)
        .astype(object)
    )
    exact = q.T @ q
    for rows in (1, 7, 1000, 8192):
        for threads in (1, 2):
            total = source.total(fields, gram, rows=rows, threads=threads)
            assert total.rows == N
            assert (total.integers() == exact).all()
    assert sorted_rows(rows_of(source, fields)) == sorted_rows(expected)


@pytest.mark.parametrize("kind", KINDS[1:])
def test_same_integers_from_shuffled_rows(kind, records, expected, tmp_path):
    order = np.random.default_rng(8).permutation(N)
    source = scan(make(kind, records, tmp_path, order))
    total = source.total(FIELDS, gram, rows=1000, threads=2)
    q = (
        np.trunc(np.clip(np.nan_to_num(expected, nan=-3.0), -8, 8) * 2.0**16)
        .astype(np.int64)
        .astype(object)
    )
    assert (total.integers() == q.T @ q).all()


def test_a_float64_array_is_passed_on_without_a_copy():
    X = np.random.default_rng(0).normal(size=(200_000, 3))
    blocks = list(scan(X).blocks([Field(0), Field(1), Field(2)]))
    assert all(np.shares_memory(b, X) and not b.flags.writeable for b in blocks)
    assert np.array_equal(np.concatenate(blocks), X)
    assert X.flags.writeable
    part = rows_of(scan(np.asfortranarray(X)), [Field(2), Field(0)])
    assert np.array_equal(part, X[:, [2, 0]])


@pytest.mark.parametrize(
    "dtype", ["float32", "float16", "int8", "uint64", "bool", "longdouble", ">f8", "object"]
)
def test_array_dtypes(dtype):
    X = np.array([[0, 1], [1, 0], [1, 1]]).astype(dtype)
    assert rows_of(scan(X), [Field(0), Field(1)]).tolist() == [[0, 1], [1, 0], [1, 1]]


class Trap:
    """An object that breaks whoever touches it."""

    def __float__(self):
        raise RuntimeError("a record's value")

    __eq__ = __hash__ = __bool__ = __len__ = __float__


class Pretender(float):
    def __float__(self):
        raise ValueError("a record's value")


OBJECTS = [
    (1, 1.0),
    (True, 1.0),
    (np.True_, 1.0),
    (np.float32(0.5), 0.5),
    (np.int8(-3), -3.0),
    (Decimal("1.5"), 1.5),
    (Fraction(1, 4), 0.25),
    (Decimal("1e999"), math.inf),
    (10**400, math.inf),
    (-(10**400), -math.inf),
    (Fraction(-(10**400), 3), -math.inf),
    (np.longdouble("1e4000"), math.inf),
    (math.inf, math.inf),
    (2**53 + 1, float(2**53)),
    *[
        (missing, math.nan)
        for missing in (
            None,
            math.nan,
            pd.NA,
            pd.NaT,
            "1.5",
            "x",
            b"1",
            {"a": 1},
            [1],
            (),
            set(),
            1j,
            np.complex128(1),
        )
    ],
    *[
        (odd, math.nan)
        for odd in (
            Decimal("sNaN"),
            Decimal("NaN"),
            Trap(),
            Pretender(1),
            np.array([1.0]),
            object(),
        )
    ],
]


@pytest.mark.parametrize("position", [0, 2])
@pytest.mark.parametrize(("value", "result"), OBJECTS, ids=lambda v: type(v).__name__)
def test_an_object_changes_its_own_cell_only_and_says_nothing(
    value, result, position, caplog, capfd
):
    X = np.empty((4, 2), dtype=object)
    X[:] = 7
    X[position, 0] = value
    want = np.full((4, 2), 7.0)
    want[position, 0] = result
    caplog.set_level(logging.DEBUG)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        got = rows_of(scan(X), [Field(0), Field(1)])
        labels = rows_of(scan(X), [Field(0, Labels((5, 7))), Field(1, Labels((5, 7)))])
    assert np.array_equal(got, want, equal_nan=True)
    assert np.isnan(labels[position, 0])  # the value itself is no class
    labels[position, 0] = 1.0
    assert (labels == 1.0).all()
    assert not caplog.records
    assert capfd.readouterr() == ("", "")


def test_nested_lists_do_not_take_their_dtype_from_their_values():
    plain = rows_of(scan([[1, 2.5], [3, 4]]).shaped(2, 1), [Field(0), Field(1)])
    odd = rows_of(scan([[1, "x"], [3, 4]]).shaped(2, 1), [Field(0), Field(1)])
    assert plain.tolist() == [[1, 2.5], [3, 4]]
    assert np.array_equal(odd, [[1, math.nan], [3, 4]], equal_nan=True)


@pytest.mark.parametrize(
    "frame",
    [pd.DataFrame, pl.DataFrame, lambda d: pa.table(d)],
    ids=["pandas", "polars", "pyarrow"],
)
@given(
    values=st.lists(st.floats(allow_nan=True, allow_infinity=True), min_size=1, max_size=20),
    whole=st.lists(st.integers(-(2**63), 2**63 - 1), min_size=20, max_size=20),
)
def test_floats_and_integers_pass_through_frames(frame, values, whole):
    data = {"x": np.array(values), "i": np.array(whole[: len(values)], dtype=np.int64)}
    got = rows_of(scan(frame(data)), [Field("x"), Field("i")])
    assert np.array_equal(got[:, 0], data["x"], equal_nan=True)
    assert got[:, 1].tolist() == [float(v) for v in whole[: len(values)]]


def test_rare_dtypes_of_frames():
    cells = [Decimal("1.50"), None, Decimal("-2.25")]
    want = [1.5, math.nan, -2.25]
    frames = {
        "decimal": pa.table({"x": pa.array(cells, pa.decimal128(9, 2))}),
        "polars": pl.DataFrame({"x": pl.Series(cells, dtype=pl.Decimal(9, 2))}),
        "half": pa.table({"x": pa.array([1.5, None, -2.25], pa.float16())}),
        "pandas": pd.DataFrame({"x": pd.array([1.5, None, -2.25], dtype="Float64")}),
    }
    for frame in frames.values():
        assert np.array_equal(rows_of(scan(frame), [Field("x")])[:, 0], want, equal_nan=True)
    wide = pl.DataFrame({"x": pl.Series([2**100, None], dtype=pl.Int128)})
    assert np.array_equal(
        rows_of(scan(wide), [Field("x")])[:, 0], [2.0**100, math.nan], equal_nan=True
    )


def parquet(table, folder):
    pq.write_table(table, folder / "t.parquet")
    return folder / "t.parquet"


@pytest.mark.parametrize("through", ["table", "parquet"])
def test_labels_by_type(through, tmp_path):
    bad_text = pa.array([b"b", b"\xff", None]).view(pa.string())
    columns = {
        "text": (pa.array(["b", "x", None]), ("a", "b")),
        "view": (pa.array(["b", "x", None]).cast(pa.large_string()), ("a", "b")),
        "undecodable": (bad_text, ("a", "b")),
        "dictionary": (pa.array(["b", None, "x"]).dictionary_encode(), ("a", "b")),
        "undecodable dictionary": (bad_text.dictionary_encode(), ("a", "b")),
        "dictionary of integers": (pa.array([7, None, 8]).dictionary_encode(), (5, 7)),
        "integers": (pa.array([7, None, 8]), (5, 7)),
        "floats": (pa.array([7.0, None, math.nan]), (5, 7)),
        "booleans": (pa.array([True, None, False]), (False, True)),
    }
    table = pa.table({name: cells for name, (cells, _) in columns.items()})
    source = scan(table if through == "table" else parquet(table, tmp_path))
    got = rows_of(source, [Field(name, Labels(classes)) for name, (_, classes) in columns.items()])
    assert (got[0] == 1).all()
    assert np.isnan(got[1]).all()
    assert np.isnan(got[2, :8]).all()
    assert got[2, 8] == 0


def test_labels_of_arrays_and_series():
    X = np.zeros((3, 1))
    for y in (
        ["b", "a", "z"],
        np.array(["b", "a", "z"]),
        pd.Series(["b", "a", "z"]),
        pd.Series(list("baz"), dtype=object),
    ):
        source = scan(X, y=y).shaped(None, 1)
        codes = rows_of(source, [Field(1, Labels(("a", "b")))])[:, 0]
        assert codes[:2].tolist() == [1, 0]
        assert np.isnan(codes[2])


@pytest.mark.parametrize("classes", [("a", "b"), (1, 2)])
def test_whether_an_object_column_is_refused_does_not_depend_on_its_values(classes):
    for cells in (["b", "a", "z"], ["b", 1, None], [2, 1, 2], [[], {}, None]):
        frame = pd.DataFrame({"y": pd.Series(cells, dtype=object)})
        want = [float(classes.index(c)) if c in classes else math.nan for c in cells]
        got = rows_of(scan(frame), [Field("y", Labels(classes))])[:, 0]
        assert np.array_equal(got, want, equal_nan=True)


@pytest.mark.parametrize(
    ("X", "y", "names", "targets"),
    [
        (np.zeros((3, 2)), [1, 2, 3], None, 1),
        (np.zeros((3, 2)), np.ones((3, 2)), None, 2),
        (np.zeros((3, 2)), pd.Series([1, 2, 3], name="t"), None, 1),
        (
            pd.DataFrame({"a": [0, 0, 0], "b": 0}),
            pd.Series([1, 2, 3], name="t"),
            ("a", "b", "t"),
            1,
        ),
        (pd.DataFrame({"a": [0, 0, 0], "b": 0}), [1, 2, 3], ("a", "b", "y"), 1),
        (pl.DataFrame({"a": [0, 0, 0], "b": 0}), np.ones((3, 2)), ("a", "b", "y0", "y1"), 2),
        (pd.DataFrame([[0, 0]] * 3), pl.Series("t", [1, 2, 3]), None, 1),
    ],
)
def test_pairs(X, y, names, targets):
    source = scan(X, y=y).shaped(None, targets)
    assert (source.names, source.targets, source.width, source.known_n) == (
        names,
        targets,
        2 + targets,
        3,
    )
    got = rows_of(source, [Field(i) for i in range(source.width)])
    assert np.array_equal(got[:, :2], np.zeros((3, 2)))
    assert got[:, 2].tolist() in ([1, 2, 3], [1, 1, 1])
    if names:
        assert np.array_equal(rows_of(source, [Field(name) for name in names]), got)


def test_a_source_is_returned_as_it_is():
    source = scan(np.zeros((2, 2)))
    assert isinstance(source, Source)
    assert scan(source) is source


def test_empty_sources_are_known_to_be_empty(tmp_path):
    (tmp_path / "e.csv").write_text("a,b\n")
    pq.write_table(pa.table({"a": pa.array([], pa.float64())}), tmp_path / "e.parquet")
    for data in (
        np.empty((0, 2)),
        pd.DataFrame({"a": []}),
        tmp_path / "e.csv",
        tmp_path / "e.parquet",
    ):
        source = scan(data)
        assert source.known_n == source.count() == 0
        assert rows_of(source, [Field(0)]).shape == (0, 1)


def test_blank_lines_are_found_to_be_no_records_only_by_reading(tmp_path):
    (tmp_path / "b.csv").write_text("a,b\n\n  \n")
    source = scan(tmp_path / "b.csv")
    assert source.known_n is None
    assert source.count() == 0


def test_what_numpy_cannot_have_seen_is_not_touched_before_it_is_paid_for():
    X = np.array([[Trap(), 1.0]], dtype=object)
    source = scan(X)
    source.check([Field(0), Field(1, Labels(("a", "b")))])
    assert source.known_n == 1


@pytest.mark.parametrize("odd", [[1.0], np.array([1.0, 2.0]), np.array(1.0), "text", None, 10**400])
def test_no_output_in_a_list_fails(odd):
    """Whether one label is a list or an array would be told by an error."""
    source = scan(np.zeros((3, 1)), y=[odd, 0.0, 1.0]).shaped(None, 1)
    (block,) = source.blocks((Field(0), Field(1)))
    assert block[1:, 1].tolist() == [0.0, 1.0]
