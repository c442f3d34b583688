"""Replacing one record never changes what is read for another, never raises and never warns.

Whatever a caller may give: lists, ragged rows, objects, masked arrays, frames, Arrow, CSV and
Parquet files; with the odd cells of `odd_cells`; read by themselves, by every estimator, and by a
stream. Claim and argument: reading.md.
"""

import math
import warnings
from datetime import date, datetime
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sklearn.base import clone
from sklearn.gaussian_process.kernels import RBF

import reticent
from reticent.privacy.columns.words import Labels
from reticent.privacy.sources.base import Field, Source, scan
from reticent.privacy.sources.csv import CsvSource
from reticent.privacy.streams.stream import Stream
from tests.contract.cases import ESTIMATORS, relation, uses_outputs
from tests.contract.odd_cells import ODD_CELLS, Trap

# what releases tell of the number of complete records may be said, and nothing else
pytestmark = pytest.mark.filterwarnings("error", "ignore:About .* of the records:UserWarning")

CLASSED = reticent.Bounds(x=[(-2.0, 3.0), (0.0, 110.0)], classes=["no", "yes"])
NUMBERED = reticent.Bounds(x=[(-2.0, 3.0), (0.0, 110.0)], y=(0.0, 9.0))
TWO = reticent.Bounds(x=[(-2.0, 3.0), (0.0, 110.0)], y=[(0.0, 9.0), (0.0, 1.0)])
KINDED = reticent.Bounds(
    x=[
        reticent.Words(["a", "b", "3"], missing=["?"]),
        reticent.Date("2019-01-01", "2024-12-31", keep_missing=True),
    ],
    y=reticent.YesNo(),
)
WORDS = ["yes", "no", "yes", "yes", "no"]


def rows_of(source: Source, bounds: reticent.Bounds) -> np.ndarray:
    """All records as a model reads them, in the order of the source; nothing warns."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")  # as an error, it could be taken for one of the cell's
        source = bounds.shaped(source, targets=True)
        fields = bounds.resolve(source, targets=True)[1]
        source.check(fields)
        rows = np.concatenate(list(source.blocks(fields)))
    assert not caught
    return rows


def bits(rows: np.ndarray) -> list[bytes]:
    return [row.tobytes() for row in np.where(np.isnan(rows), np.nan, rows)]


def same_others(rows: np.ndarray, ordinary: np.ndarray, at: int) -> bool:
    """Whether all records but one are read as they were, bit for bit."""
    assert rows.shape == ordinary.shape
    return np.delete(bits(rows), at).tolist() == np.delete(bits(ordinary), at).tolist()


# ---- lists and arrays


def table(bounds: reticent.Bounds) -> tuple[list[object], list[object]]:
    """Five ordinary records, as lists."""
    X = [[0.5, 20.0], [1, 30], [-1.5, 2**53 + 1], [2.0, 0.1], [0.0, 99.0]]
    if bounds is KINDED:
        day = date(2020, 2, 29)
        X = [["a", day], ["b", "2020-02-29"], [3, None], ["?", 20200229], [None, datetime.max]]
        return X, list(WORDS)
    if bounds is CLASSED:
        return X, list(WORDS)
    if bounds is TWO:
        return X, [[1.0, 0.5], [2, 0.25], [3.5, 1], [4.0, 0.1], [5.0, 0.0]]
    return X, [1.0, 2, 3.5, 4.0, 5.0]


def spoiled(
    bounds: reticent.Bounds, odd: object, at: int, where: str
) -> tuple[list[object], list[object]]:
    """The same, with something odd in place of a record's row, cell, label, or cell of a label."""
    X, y = table(bounds)
    if where == "row":
        X[at] = odd
    elif where == "cell":
        X[at][1] = odd
    elif where == "label":
        y[at] = odd
    else:
        y[at] = [odd, 0.5] if bounds is TWO else [odd]
    return X, y


def objects(rows: list[object], width: int) -> np.ndarray:
    """An object array, cell by cell; what is no row of so many cells stands in the first one."""
    cells = np.empty((len(rows), width), dtype=object)
    for i, row in enumerate(rows):
        if type(row) is list and len(row) == width:
            for j, cell in enumerate(row):
                cells[i, j] = cell
        else:
            cells[i, 0] = row
    return cells


def as_arrays(X, y, width):
    return objects(X, 2), objects(y, width)


def as_masked(X, y, width):
    masked = np.ma.array(objects(X, 2), mask=np.zeros((len(X), 2), dtype=bool))
    return masked, np.ma.array(objects(y, width))


def as_rows_of_arrays(X, y, width):
    rows = [objects([row], len(row))[0] if type(row) is list else row for row in X]
    return rows, y


CONTAINERS = {
    "lists": lambda X, y, width: (X, y),
    "tuples": lambda X, y, width: (tuple(tuple(r) if type(r) is list else r for r in X), tuple(y)),
    "lists of arrays": as_rows_of_arrays,
    "a list beside an array": lambda X, y, width: (X, objects(y, width)),
    "an array beside a list": lambda X, y, width: (objects(X, 2), y),
    "object arrays": as_arrays,
    "masked arrays": as_masked,
}


@pytest.mark.parametrize("where", ["row", "cell", "label", "cell of a label"])
@pytest.mark.parametrize(
    "bounds",
    [NUMBERED, CLASSED, TWO, KINDED],
    ids=["numbers", "labels", "two outputs", "kinds"],
)
@pytest.mark.parametrize("container", CONTAINERS)
def test_lists_and_arrays(container, bounds, where):
    make = CONTAINERS[container]
    width = 2 if bounds is TWO else 1
    X, y = make(*table(bounds), width)
    ordinary = rows_of(scan(X, y=y), bounds)
    for odd in ODD_CELLS.values():
        for at in (0, 3):
            X, y = make(*spoiled(bounds, odd, at, where), width)
            assert same_others(rows_of(scan(X, y=y), bounds), ordinary, at)


def test_what_does_not_fit_has_missing_cells():
    for odd in (None, [], [1.0], [1.0, 2.0, 3.0], 1.0, "ab", {1.0: 2.0}, np.ones((2, 2)), Trap()):
        X, y = spoiled(NUMBERED, odd, 2, "row")
        row = rows_of(scan(X, y=y), NUMBERED)[2]
        assert np.isnan(row[:2]).all()
        assert row[2] == 3.5


def test_masked_is_missing_and_nothing_else_is():
    X = objects(table(CLASSED)[0], 2)
    y = objects(WORDS, 1)
    ordinary = rows_of(scan(X, y=y), CLASSED)
    for at in range(5):
        mask = np.zeros((5, 2), dtype=bool)
        mask[at, 1] = True
        rows = rows_of(scan(np.ma.array(X, mask=mask), y=np.ma.array(y, mask=mask[:, 1:])), CLASSED)
        assert same_others(rows, ordinary, at)
        assert np.isnan(rows[at, 1:]).all()


# ---- columns that have a dtype

BIG = 2**53 + 1
WHOLE = [1, BIG, 2**63 - 1, -(2**63), 0]
REAL = [0.5, -0.0, math.inf, 5e-324, 1e308]
YES = [True, False, True, True, False]
MONEY = [
    Decimal("0.50"),
    Decimal("-12345678901234567.89"),
    Decimal("0.01"),
    Decimal("1"),
    Decimal("0"),
]
ODD_WORDS = [None, "", "\x00", "YES", "yes ", "y" * 100_000, "ÿ"]


def column(kind):
    """A maker of columns of one dtype, its five ordinary cells, and odd ones."""
    makers = {
        "pandas float64": (
            lambda c: pd.Series(c, dtype="float64"),
            REAL,
            [math.nan, None, -math.inf],
        ),
        "pandas float32": (
            lambda c: pd.Series(c, dtype="float32"),
            [0.5, 1.5, 2, 3, 4],
            [math.nan, math.inf],
        ),
        "pandas Int64": (lambda c: pd.Series(c, dtype="Int64"), WHOLE, [pd.NA, 7]),
        "pandas UInt64": (
            lambda c: pd.Series(c, dtype="UInt64"),
            [1, BIG, 2**64 - 1, 5, 0],
            [pd.NA],
        ),
        "pandas Float64": (lambda c: pd.Series(c, dtype="Float64"), REAL, [pd.NA, math.inf]),
        "pandas boolean": (lambda c: pd.Series(c, dtype="boolean"), YES, [pd.NA]),
        "pandas arrow": (lambda c: pd.Series(c, dtype="int64[pyarrow]"), WHOLE, [pd.NA]),
        "polars Int64": (lambda c: pl.Series(c, dtype=pl.Int64), WHOLE, [None]),
        "polars UInt64": (
            lambda c: pl.Series(c, dtype=pl.UInt64),
            [1, BIG, 2**64 - 1, 5, 0],
            [None],
        ),
        "polars Int128": (lambda c: pl.Series(c, dtype=pl.Int128), [*WHOLE[:4], 2**100], [None]),
        "polars Float64": (lambda c: pl.Series(c, dtype=pl.Float64), REAL, [None, math.nan]),
        "polars Boolean": (lambda c: pl.Series(c, dtype=pl.Boolean), YES, [None]),
        "polars Decimal": (lambda c: pl.Series(c, dtype=pl.Decimal(25, 2)), MONEY, [None]),
        **{
            f"arrow {dtype}": (lambda c, dtype=dtype: pa.array(c, dtype), cells, [None])
            for dtype, cells in {
                pa.int8(): [1, -128, 127, 0, 5],
                pa.int64(): WHOLE,
                pa.uint64(): [1, BIG, 2**64 - 1, 5, 0],
                pa.float16(): [np.float16(v) for v in (0.5, 1, 2, 3, -0.0)],
                pa.float32(): [0.5, 1.5, 2.5, 3.5, -0.0],
                pa.float64(): REAL,
                pa.bool_(): YES,
                pa.decimal128(25, 2): MONEY,
                pa.decimal256(60, 2): MONEY,
            }.items()
        },
    }
    return makers[kind]


NUMBER_COLUMNS = [
    *[
        f"pandas {kind}"
        for kind in ("float64", "float32", "Int64", "UInt64", "Float64", "boolean", "arrow")
    ],
    *[f"polars {kind}" for kind in ("Int64", "UInt64", "Int128", "Float64", "Boolean", "Decimal")],
    *[
        f"arrow {kind}"
        for kind in ("int8", "int64", "uint64", "halffloat", "float", "double", "bool")
    ],
    *[f"arrow decimal{size}" for size in ("128(25, 2)", "256(60, 2)")],
]
ONE = reticent.Bounds(x={"x": (-1.0, 1.0)}, y={"y": (-1.0, 1.0)})


def frame_of(kind, **columns):
    if kind.startswith("pandas"):
        return pd.DataFrame(columns)
    return pl.DataFrame(columns) if kind.startswith("polars") else pa.table(columns)


def through(data, way, folder):
    """A frame as it is, or as a Parquet file."""
    if way == "frame":
        return scan(data)
    if isinstance(data, pd.DataFrame):
        data = pa.Table.from_pandas(data, preserve_index=False)
    elif isinstance(data, pl.DataFrame):
        data = data.to_arrow()
    pq.write_table(data, folder / "t.parquet", row_group_size=2)
    return scan(folder / "t.parquet")


WAYS = [(kind, way) for kind in NUMBER_COLUMNS for way in ("frame", "parquet")]
WAYS.remove(("polars Int128", "parquet"))  # Parquet has no such integers
WAYS.remove(("arrow decimal256(60, 2)", "frame"))  # refused by its dtype


@pytest.mark.parametrize(("kind", "way"), WAYS)
def test_columns_of_numbers(kind, way, tmp_path):
    make, cells, odds = column(kind)
    full = frame_of(kind, x=make(cells), y=make(cells))
    ordinary = rows_of(through(full, way, tmp_path), ONE)
    assert ordinary[:, 0].tolist() == [float(cell) for cell in cells]
    for odd in odds:
        for at in (0, 2):
            changed = [odd if i == at else cell for i, cell in enumerate(cells)]
            data = frame_of(kind, x=make(changed), y=make(cells))
            assert same_others(rows_of(through(data, way, tmp_path), ONE), ordinary, at)


LABEL_COLUMNS = {
    "pandas object": lambda c: pd.Series(c, dtype=object),
    "pandas str": lambda c: pd.Series(c, dtype="str"),
    "pandas string": lambda c: pd.Series(c, dtype="string"),
    "pandas category": lambda c: pd.Series(c, dtype="category"),
    "polars String": lambda c: pl.Series(c, dtype=pl.String),
    "polars Categorical": lambda c: pl.Series(c, dtype=pl.Categorical),
    "polars Enum": lambda c: pl.Series(
        c, dtype=pl.Enum([w for w in ["no", "yes", *ODD_WORDS] if w is not None])
    ),
    "arrow string": lambda c: pa.array(c, pa.string()),
    "arrow large_string": lambda c: pa.array(c, pa.large_string()),
    "arrow string_view": lambda c: pa.array(c, pa.string_view()),
    "arrow dictionary": lambda c: pa.array(c).dictionary_encode(),
    "arrow large dictionary": lambda c: pa.array(c, pa.large_string()).dictionary_encode(),
    "arrow dictionary with null": lambda c: pa.DictionaryArray.from_arrays(
        pa.array([0, 1, 2, 3, 4], pa.int8()), pa.array(c)
    ),
}
LABELLED = reticent.Bounds(x={"x": (-1.0, 1.0)}, classes={"y": ["no", "yes"]})


LABEL_WAYS = [(kind, way) for kind in LABEL_COLUMNS for way in ("frame", "parquet")]
LABEL_WAYS.remove(
    ("arrow dictionary with null", "parquet")
)  # arrow does not write such a dictionary


@pytest.mark.parametrize(("kind", "way"), LABEL_WAYS)
def test_columns_of_labels(kind, way, tmp_path):
    make = LABEL_COLUMNS[kind]
    numbers = {"pandas": pd.Series(REAL), "polars": pl.Series(REAL), "arrow": pa.array(REAL)}[
        kind.split()[0]
    ]
    ordinary = rows_of(through(frame_of(kind, x=numbers, y=make(WORDS)), way, tmp_path), LABELLED)
    assert ordinary[:, 1].tolist() == [float(word == "yes") for word in WORDS]
    for odd in ODD_WORDS:
        for at in (0, 4):
            changed = [odd if i == at else word for i, word in enumerate(WORDS)]
            data = frame_of(kind, x=numbers, y=make(changed))
            rows = rows_of(through(data, way, tmp_path), LABELLED)
            assert same_others(rows, ordinary, at)
            assert np.isnan(rows[at, 1])


def test_a_pandas_column_of_objects_takes_any_label():
    for odd in ODD_CELLS.values():
        cells = pd.Series(WORDS, dtype=object)
        cells._values[2] = odd  # pandas itself would look into some of them
        rows = rows_of(scan(pd.DataFrame({"x": REAL, "y": cells})), LABELLED)
        assert rows[[0, 1, 3, 4], 1].tolist() == [1, 0, 1, 0]


@pytest.mark.parametrize("number", [True, False])
def test_a_dtype_is_usable_or_not_whatever_the_cells_are(number):
    """Columns that hold anything at all are refused as numbers, and polars' as labels too, by their
    dtypes.
    """
    wanted = Field("x") if number else Field("x", Labels(("no", "yes")))
    for odd in ODD_CELLS.values():
        told = set()
        for cells in ([1.0, 2.0], [1.0, odd]):
            column = np.empty(2, dtype=object)
            column[:] = [1.0, None]
            column[1] = cells[1]
            for frame in (
                pd.DataFrame({"x": column}),
                pl.DataFrame({"x": pl.Series(cells, dtype=pl.Object)}),
            ):
                try:
                    scan(frame).check([wanted])
                    told.add((type(frame).__module__, "usable"))
                except reticent.BadInput as error:
                    told.add((type(frame).__module__, str(error)))
        assert len(told) == 2


# ---- CSV files

CSV_CELLS = [
    *(
        b"",
        b" ",
        b"nan",
        b"inf",
        b"-1e999",
        b"1e-999",
        b"0x10",
        b"1_000",
        b"1,5",
        b"NULL",
        b"\x00",
        b"\xff\xfe",
        b"'",
    ),
    *(
        b'"',
        b'""',
        b'"1.5"',
        b'"1,5"',
        b'"a""b"',
        b'a"b',
        b'"open',
        b"1\r2",
        b"\r",
        b"\xef\xbb\xbf1",
        b"yes",
        b"#1",
    ),
    *(
        b"9" * 2000,
        b"1" + b"," * 5000,
        b"x" * 70_000,
        "٣".encode(),
        b"\x1a",
        b"\\",
        b"\\,",
        b"=1+1",
        b"1;2",
        b"\x0b\x0c",
    ),
]
CSV_LINES = [b"0", b",", b",,,", b"1,2,3,4", b'"1,2', b"\xff", b"\x00", b'""', b"a,b,c,d,e" * 1000]


@pytest.mark.parametrize("size", [2**22, 64])
def test_csv_files(size, tmp_path):
    lines = [b"0.5,20,yes", b"1,30,no", b"-1.5,9007199254740993,yes", b"2.,.1,yes", b"0,99,no"]
    path = tmp_path / "t.csv"

    def rows(some):
        path.write_bytes(b"a,b,c\n" + b"".join(line + b"\n" for line in some))
        bounds = reticent.Bounds(x={"a": (-2, 3), "b": (0, 110)}, classes={"c": ["no", "yes"]})
        return rows_of(CsvSource([path], block_bytes=size), bounds)

    ordinary = rows(lines)
    assert np.isnan(rows([b"1,2"] * 5)[:, :2]).all()
    for at in (0, 3):
        cells = [
            b",".join(odd if i == j else b"1" for j in range(3))
            for odd in CSV_CELLS
            for i in range(3)
        ]
        for line in (*CSV_LINES, *cells):
            if line.strip(b" \t\r"):  # a blank line is no record
                changed = [line if i == at else one for i, one in enumerate(lines)]
                assert same_others(rows(changed), ordinary, at), line


# ---- sums, fits and streams


class Inputs(reticent.Sum):
    """The scaled inputs of a record."""

    columns = 2
    norm2 = 2

    def rows(self, records):
        return records[:, :2]


def test_an_exact_sum_moves_by_no_more_than_its_sensitivity():
    """With the same noise, by a seed, released sums differ by as much as exact ones."""
    event = reticent.Gaussian(noise_multiplier=2.0)

    def released(X):
        curator = reticent.Curator(scan(X), bounds=NUMBERED.inputs_alone(), event=event, seed=b"1")
        return curator.release(Inputs())

    first = released(table(NUMBERED)[0] * 20)
    for where in ("row", "cell"):
        for odd in ODD_CELLS.values():
            changed = table(NUMBERED)[0] * 19 + spoiled(NUMBERED, odd, 2, where)[0]
            second = released(changed)
            moved = np.linalg.norm((first.value - second.value) / first.scale)
            assert moved <= 1 / event.noise_multiplier + 1e-9


def cheap(model):
    given = (
        {"kernel": RBF(100.0, "fixed")}
        if isinstance(model, (reticent.GPRegressor, reticent.GPClassifier))
        else {}
    )
    return clone(model).set_params(random_state=0, **given)


def lists_for(model) -> tuple[list[object], list[object] | None]:
    """Ordinary records as lists, of the width that the bounds of a model say."""
    rng = np.random.default_rng(0)
    columns = np.array(model.bounds.x)
    X = rng.uniform(columns[:, 0], columns[:, 1], size=(90, len(columns))).tolist()
    if not uses_outputs(model):
        return X, None
    if model.bounds.classes is not None:
        return X, rng.choice(model.bounds.classes, size=90).tolist()
    return X, rng.uniform(*model.bounds.y[0], size=90).tolist()


@pytest.mark.parametrize("name", ESTIMATORS)
def test_every_estimator(name):
    """All odd records at once, and one more.

    No fit raises or warns, and the first release moves as far as it may.
    """
    model = cheap(ESTIMATORS[name])
    X, y = lists_for(model)
    labels_only = relation(model) == "label"
    odd = list(ODD_CELLS.values())
    for i, cell in enumerate(odd):
        if not labels_only:
            X[i] = [cell, *X[i][1:]] if i % 2 else cell
        if y is not None:
            y[i] = cell if i % 3 else [cell]
    fits = [clone(model).fit(X, y) if y is not None else clone(model).fit(X)]
    if labels_only:
        y[80] = "x"
    else:
        X[80] = None
    fits.append(clone(model).fit(X, y) if y is not None else clone(model).fit(X))
    first, second = (one.releases_[0] for one in fits)
    assert first.n == second.n == 90
    if (
        not isinstance(model, reticent.PrivateSearch)
        and first.scale.all()
        and first.event.kind == "gaussian"
    ):
        moved = np.linalg.norm((first.value - second.value) / first.scale)
        assert moved <= math.sqrt(first.shares_spent) / first.event.noise_multiplier + 1e-6


def test_a_stream():
    event = reticent.Gaussian(noise_multiplier=2.0)
    bounds = reticent.Bounds(x=[(-2.0, 3.0)], y=(0.0, 110.0))

    def released(records):
        stream = Stream(bounds=bounds, event=event, seed=b"1")
        stream.add(Inputs(), records)
        return stream.release(Inputs())

    X = table(NUMBERED)[0]
    first = released(X)
    for odd in ODD_CELLS.values():
        for where in ("row", "cell"):
            second = released(spoiled(NUMBERED, odd, 2, where)[0])
            moved = np.linalg.norm((first.value - second.value) / first.scale)
            assert moved <= 1 / event.noise_multiplier + 1e-9
        array = objects(spoiled(NUMBERED, odd, 2, "cell")[0], 2)
        assert np.array_equal(
            released(array).value, released(spoiled(NUMBERED, odd, 2, "cell")[0]).value
        )


# ---- what is refused, and what is not, by what is public


def test_a_list_is_refused_where_nothing_public_says_how_many_columns_it_has():
    model = reticent.PrivateMean(bounds=reticent.Bounds(x=(-1, 1)), epsilon=1, delta=1e-6)
    told = set()
    for X in ([[0.0, 1.0]] * 3, [[0.0], None, [1.0, 2.0]], [0.0, "x", Trap()]):
        with pytest.raises(
            reticent.BadInput, match=r"Give one range per column in the bounds, as in Bounds\(x=\["
        ) as refused:
            model.fit(X)
        told.add(str(refused.value))
    assert len(told) == 1
    model.fit(np.zeros((3, 2)))


def test_a_list_of_columns_of_one_cell_warns_of_nothing():
    """That y is a column is a warning for arrays, whose shape is public; a list has none."""
    model = cheap(ESTIMATORS["BinnedGPRegressor"])
    X, y = lists_for(model)
    ordinary = clone(model).fit(X, y)
    for labels in ([[label] for label in y], [[y[0]], *y[1:]], [*y[:-1], [1.0, 2.0]]):
        assert clone(model).fit(X, labels).releases_[0].n == ordinary.releases_[0].n
    with pytest.warns(UserWarning, match="column-vector y"):
        clone(model).fit(X, np.array(y)[:, None])


def test_queries_are_read_as_records_are():
    model = cheap(ESTIMATORS["BinnedGPRegressor"])
    model.fit(*lists_for(model))
    rows = [[0.5, 20.0], [1.0, 30.0]]
    assert np.array_equal(model.predict(rows), model.predict(np.array(rows)))
    missing = model.predict(np.array([*rows, [np.nan, np.nan]]))
    assert np.isnan(missing).tolist() == [False, False, True]
    for odd in (None, [1.0], [1.0, 2.0, 3.0], "x", Trap()):
        assert np.array_equal(model.predict([*rows, odd]), missing, equal_nan=True)
    for wrong in ([[1.0]], [1.0, 2.0], [None], [[1.0, 2.0, 3.0]] * 2):
        with pytest.raises(reticent.BadInput, match="No row of X has 2 features"):
            model.predict(wrong)
    with pytest.raises(reticent.BadInput, match=r"0 sample\(s\)"):
        model.predict([])


def test_queries_with_and_without_noise_levels():
    model = cheap(ESTIMATORS["GPRegressor with noise levels"])
    model.fit(*lists_for(model))
    assert np.array_equal(model.predict([[0.5]]), model.predict(np.array([[0.5]])))
    assert np.array_equal(
        model.predict([[0.5, 1.0], None])[:1], model.predict(np.array([[0.5, 1.0]]))
    )
