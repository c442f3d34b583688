"""Identifiers: equal ones are one person, whatever holds them; no others are."""

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from reticent.errors import BadInput
from reticent.privacy.columns.identifiers import Identifier
from reticent.privacy.sources.base import Field, scan
from reticent.privacy.unit import PrivacyUnit
from reticent.privacy.weight_columns import weight_columns

KEY = b"k" * 16
BIG = 2**53


def code(value, missing=()):
    """The pair of one Python object."""
    return tuple(Identifier(half, KEY, missing=missing).code_value(value) for half in (0, 1))


def codes(source, key="id"):
    """The pairs of all records of a source, whatever holds them."""
    fields = [Field(key, Identifier(half, KEY)) for half in (0, 1)]
    return [tuple(row) for block in source.blocks(fields) for row in block.tolist()]


def same(a, b):
    return np.array_equal(np.array(a), np.array(b), equal_nan=True)


@pytest.mark.parametrize(
    "value", [7, 7.0, np.int8(7), np.uint64(7), np.float32(7), "7", " 7\t", b"7"]
)
def test_one_person_however_seven_is_written(value):
    assert code(value) == (0.0, 7.0) == code(Decimal("7.00")) == code(Fraction(7))


@pytest.mark.parametrize(
    "value", ["07", "7.0", "+7", "7 a", "seven", "７", 7.5, "-7", -7, 7 + 2**32]
)
def test_others_are_others(value):
    assert code(value) != code(7)


@pytest.mark.parametrize(
    "value", [None, "", "  ", "\t", np.nan, float("nan"), Decimal("nan"), [7], {}, 1j]
)
def test_nobody(value):
    assert np.isnan(code(value)).all()


def test_case_blanks_inside_and_forms_of_a_letter_are_not_folded():
    names = ["ann", "Ann", "ANN", "a nn", "ann.", "é", "e\u0301"]
    assert len({code(name) for name in names}) == len(names)
    assert code(" ann ") == code("ann")


def test_whole_numbers_are_exact_at_all_sizes():
    edges = [2**k + d for k in (31, 32, 53, 62, 63, 64, 65, 100, 127) for d in (-1, 0, 1)]
    values = sorted({sign * edge for edge in edges for sign in (1, -1)})
    pairs = [code(value) for value in values]
    assert len(set(pairs)) == len(values)
    assert pairs == [code(str(value)) for value in values]
    assert pairs == [code(Decimal(value)) for value in values]
    assert all(float(half).is_integer() and abs(half) < BIG for pair in pairs for half in pair)
    for pair, value in zip(pairs, values, strict=True):
        if -(2**63) <= value < 2**64:
            assert int(pair[0]) * 2**32 + int(pair[1]) == value
        else:
            assert pair[0] >= 2**34


@pytest.mark.parametrize(
    "value", [10**400, -(10**400), Decimal("1e999999"), Decimal("sNaN"), "9" * 5000]
)
def test_no_number_is_too_long_to_be_read(value):
    pair = np.array(code(value))
    assert np.isnan(pair).all() or (np.abs(pair) <= BIG).all()


def test_floats_beyond_64_bits_are_the_whole_numbers_that_they_are():
    assert code(2.0**70) == code(2**70) == code(str(2**70))
    assert code(1e300) == code(int(1e300))
    assert code(-0.0) == code(0) == code(0.0)
    assert code(np.inf) != code(-np.inf)
    assert code(0.1) == code("0.1")


def test_missing_codes_are_nobodys():
    for value in ("NA", 999, "999", 999.0, " NA "):
        assert np.isnan(code(value, missing=("NA", 999))).all()
    assert not np.isnan(code(998, missing=("NA", 999))).any()


def test_the_key_is_secret_and_decides_the_codes_of_texts():
    one, other = Identifier(0, KEY), Identifier(0, b"j" * 16)
    assert one.code_value("ann") != other.code_value("ann")
    assert one.code_value(7) == other.code_value(7)
    assert "k" * 16 not in repr(one) + one.describe() + one.show(1.0)


def test_every_fit_has_a_key_of_its_own():
    source = scan(pl.DataFrame({"a": [1.0], "id": ["ann"]}))
    found = [weight_columns(source, PrivacyUnit(person="id")) for _ in range(2)]
    assert found[0].key != found[1].key
    keys = {field.kind.key for one in found for field in one.person}
    assert len(keys) == 2


def test_collisions_cannot_be_prepared():
    """Texts whose codes collide with one key (found by brute force over few bits) differ with
    another.
    """
    short = {}
    pair = None
    for number in range(100_000):
        name = f"p{number}"
        bits = int(Identifier(0, KEY).code_value(name)) % 2**24
        if bits in short:
            pair = short[bits], name
            break
        short[bits] = name
    assert pair is not None
    fresh = [int(Identifier(0, b"j" * 16).code_value(name)) % 2**24 for name in pair]
    assert fresh[0] != fresh[1]


INTEGERS = [BIG + 1, BIG, -1, 0, None, 2**62 + 1, 2**62]


def integer_frames():
    plain = pa.array(INTEGERS, pa.int64())
    yield "polars", pl.DataFrame({"a": range(7), "id": pl.Series(INTEGERS, dtype=pl.Int64)})
    yield "pyarrow", pa.table({"a": range(7), "id": plain})
    yield "pandas nullable", pd.DataFrame({"a": range(7), "id": pd.array(INTEGERS, dtype="Int64")})
    yield "pandas objects", pd.DataFrame({"a": range(7), "id": pd.Series(INTEGERS, dtype=object)})
    yield (
        "pandas arrow",
        pd.DataFrame({"a": range(7), "id": pd.Series(plain, dtype="int64[pyarrow]")}),
    )


@pytest.mark.parametrize("name", [name for name, _ in integer_frames()])
def test_a_missing_cell_rounds_nobody_elses_number(name):
    frame = dict(integer_frames())[name]
    assert same(codes(scan(frame)), [code(one) for one in INTEGERS])


def test_files_give_the_same_identifiers(tmp_path):
    table = pa.table({"a": range(7), "id": pa.array(INTEGERS, pa.int64())})
    pq.write_table(table, tmp_path / "t.parquet")
    lines = "\n".join(f"{i},{'' if one is None else one}" for i, one in enumerate(INTEGERS))
    (tmp_path / "t.csv").write_text(f"a,id\n{lines}\n")
    expected = [code(one) for one in INTEGERS]
    assert same(codes(scan(tmp_path / "t.parquet")), expected)
    assert same(codes(scan(tmp_path / "t.csv")), expected)


UNSIGNED = [2**64 - 1, 2**63, 2**63 - 1, 0]


def test_unsigned_integers_of_64_bits(tmp_path):
    expected = [code(one) for one in UNSIGNED]
    array = np.array(UNSIGNED, dtype=np.uint64)
    assert same(codes(scan(np.zeros((4, 1)), person=array), 1), expected)
    assert same(codes(scan(pl.DataFrame({"id": pl.Series(UNSIGNED, dtype=pl.UInt64)}))), expected)
    pq.write_table(pa.table({"id": array}), tmp_path / "t.parquet")
    assert same(codes(scan(tmp_path / "t.parquet")), expected)
    nullable = pa.array([*UNSIGNED, None], pa.uint64())
    pq.write_table(pa.table({"id": nullable}), tmp_path / "n.parquet")
    assert same(codes(scan(tmp_path / "n.parquet"))[:4], expected)
    assert same(codes(scan(pa.table({"id": nullable})))[:4], expected)


@pytest.mark.parametrize("value", [BIG + 1, 2**62 + 1])
def test_decimal_columns_are_exact(tmp_path, value):
    column = pa.array([Decimal(value), Decimal(value - 1), None], pa.decimal128(20, 0))
    pq.write_table(pa.table({"id": column}), tmp_path / "t.parquet")
    expected = [code(value), code(value - 1), code(None)]
    assert same(codes(scan(tmp_path / "t.parquet")), expected)
    assert same(codes(scan(pa.table({"id": column}))), expected)
    assert same(codes(scan(pl.from_arrow(pa.table({"id": column})))), expected)


def test_wide_integers_of_polars():
    values = [2**100, 2**100 + 1, 5, None]
    frame = pl.DataFrame({"id": pl.Series(values, dtype=pl.Int128)})
    assert same(codes(scan(frame)), [code(one) for one in values])


def test_texts_and_mixed_objects():
    values = ["7", 7, "07", None, "", "Ann", 2.5, "2.5", True]
    expected = [code(one) for one in values]
    assert same(codes(scan([[one] for one in values]).shaped(1, 0), 0), expected)
    frame = pd.DataFrame({"id": pd.Series(values, dtype=object)})
    assert same(codes(scan(frame)), expected)
    texts = ["7", "07", "ann", "", "ann "]
    for frame in (
        pl.DataFrame({"id": texts}),
        pl.DataFrame({"id": pl.Series(texts, dtype=pl.Categorical)}),
        pa.table({"id": texts}),
        pd.DataFrame({"id": texts}),
        pd.DataFrame({"id": pd.Categorical(texts)}),
    ):
        assert same(codes(scan(frame)), [code(one) for one in texts])


def test_masked_cells_are_nobodys():
    masked = np.ma.masked_array([BIG + 1, 5], mask=[False, True])
    assert same(codes(scan(np.zeros((2, 1)), person=masked), 1), [code(BIG + 1), code(None)])


def test_columns_that_cannot_be_identifiers_are_refused_beforehand():
    frame = pl.DataFrame({"a": [1.0], "t": [[1]]})
    with pytest.raises(BadInput, match="'t'"):
        weight_columns(scan(frame), PrivacyUnit(person="t"))
    with pytest.raises(BadInput, match="no column 'who'"):
        weight_columns(scan(frame), PrivacyUnit(person="who"))
    with pytest.raises(BadInput, match="by position"):
        weight_columns(scan(np.zeros((2, 2))), PrivacyUnit(person="2"))


def test_bytes_of_a_csv_file_that_are_no_utf8(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes("id;a\nJosé;1\n".encode("cp1252") + "José;2\n".encode())
    first, second = codes(scan(path))
    assert first == second == code("José")
