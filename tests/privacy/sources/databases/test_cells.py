"""Cells of databases: each type gives what the same cell gives from a list, whatever is in it."""

import sqlite3
from datetime import date, datetime
from decimal import Decimal

import duckdb
import numpy as np
import psycopg
import pytest

import reticent
from reticent.errors import BadInput
from reticent.privacy.columns.identifiers import Identifier
from reticent.privacy.columns.words import Labels
from reticent.privacy.sources.base import Field, scan

KINDS = [
    reticent.Number(-1e150, 1e150),
    reticent.Number(0, 110, missing=[999], keep_missing=True),
    reticent.Whole(0, 1000),
    reticent.Words(["a", "b", "3", "true"], missing=["?"]),
    reticent.YesNo(),
    reticent.Date("2019-01-01", "2024-12-31"),
    Labels(("a", "b", 3, True)),
    Identifier(half=0, key=b"k" * 16),
    Identifier(half=1, key=b"k" * 16),
]
NUMBERS = [0, 1, -1.5, 999, 1e300, 5e-324, 0.1, 2.0**53, None, float("inf"), -0.0]
INTEGERS = [0, 1, 3, 999, 2**53 + 1, 2**63 - 1, -(2**63), None]
TEXTS = [
    *(
        "",
        "a",
        " b ",
        "3",
        "3.0",
        "1e3",
        "true",
        "TRUE",
        "?",
        "Smith",
        "é",
        "日本",
        "\\N",
        "\\",
        "\\n",
    ),
    *(
        "a\tb",
        "a\nb",
        "\n",
        "\r",
        "a\rb",
        "\b\f\v",
        '"',
        "'",
        "\ufeff",
        "\ufeff3",
        " ",
        "inf",
        "nan",
    ),
    *("2020-02-29", "2020-02-29 10:00", "x" * 70_000, "1" * 999, "1" * 1001, ";", ",", "%s", "{}"),
    None,
]
TRUTHS = [True, False, None]
DAYS = [date(2020, 2, 29), date(1, 1, 1), date(9999, 12, 31), None]
MOMENTS = [datetime(2020, 2, 29, 10, 30, 0, 123_456), datetime(1, 1, 1), datetime.max, None]
DECIMALS = [Decimal("1.10"), Decimal("3"), Decimal("12345678901234567890.5"), Decimal(0), None]


def codes(source, kinds):
    fields = [Field("c", kind) for kind in kinds]
    source.check(fields)
    return np.concatenate(list(source.blocks(fields)))


def wanted(cells, kinds):
    source = scan([[cell] for cell in cells]).shaped(1, 0)
    return np.concatenate(list(source.blocks([Field(0, kind) for kind in kinds])))


def same(found, expected):
    return np.array_equal(found, expected, equal_nan=True)


def kinds_for(cells, source):
    """The kinds that the type of the column allows."""
    able = []
    for kind in KINDS:
        try:
            source.check([Field("c", kind)])
        except BadInput:
            continue
        able.append(kind)
    assert len(able) >= 1
    return able


@pytest.mark.parametrize(
    ("dtype", "cells"),
    [
        ("float8", NUMBERS),
        ("float4", [0.1, 1.5, None, float("-inf"), 3]),
        ("int8", INTEGERS),
        ("int2", [0, 1, 3, None]),
        ("numeric", DECIMALS),
        ("numeric(10, 2)", [Decimal("1.10"), Decimal("3.00"), None]),
        ("text", TEXTS),
        ("varchar", TEXTS),
        ("boolean", TRUTHS),
        ("date", DAYS),
        ("timestamp", MOMENTS),
    ],
)
def test_cells_of_postgresql(dtype, cells, postgres_database):
    with psycopg.connect(postgres_database.address) as connection:
        connection.execute(f"CREATE TABLE t (id serial, c {dtype})")
        for cell in cells:
            connection.execute("INSERT INTO t (c) VALUES (%s)", [cell])
    source = scan(postgres_database.address, table="t")
    if dtype == "float4":
        cells = [None if cell is None else float(np.float32(cell)) for cell in cells]
    kinds = kinds_for(cells, source)
    assert same(codes(source, kinds), wanted(cells, kinds))


def test_other_types_of_postgresql(postgres_database):
    run = postgres_database.run
    run("CREATE TYPE mood AS ENUM ('a', 'b')")
    run("CREATE DOMAIN whole AS int CHECK (value > 0)")
    run(
        "CREATE TABLE t (e mood, u uuid, p char(4), d whole, z timestamptz, far date, m money, "
        "j jsonb, i interval, l int[], n numeric, s text)"
    )
    run(
        "INSERT INTO t VALUES ('b', 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', 'a', 3, "
        "'2020-02-29 12:00+02', 'infinity', 5, '{}', '1 day', '{1}', 'NaN', NULL), "
        "(NULL, NULL, NULL, 1, '0044-03-15 BC', '0044-03-15 BC', 5, '{}', '1 day', '{1}', "
        "'Infinity', 'x')"
    )
    source = scan(postgres_database.address, table="t")
    kinds = {name: source.kind(place)[0] for place, name in enumerate(source.names)}
    assert [kinds[name] for name in ("e", "u", "p", "d", "z", "far", "n")] == [
        *("category", "text", "text", "number", "moment", "moment", "number")
    ]
    for name in ("m", "j", "i", "l"):  # money is in cents, somewhere: refused
        with pytest.raises(BadInput, match="cannot be read as numbers"):
            source.check([Field(name)])
    visit = reticent.Date("2019-01-01", "2024-12-31")
    letters = Labels(("a", "b"))
    fields = [Field("e", letters), Field("p", letters), Field("d")]
    fields += [Field("z", visit), Field("far", visit), Field("n")]
    (block,) = source.blocks(fields)
    noon = (datetime(2020, 2, 29, 10) - datetime(1970, 1, 1)).total_seconds() / 86_400
    expected = [[1, 0, 3, noon, np.nan, np.nan], [np.nan, np.nan, 1, np.nan, np.nan, np.inf]]
    assert same(block, expected)


@pytest.mark.parametrize("cells", [NUMBERS, INTEGERS, TEXTS, [*NUMBERS, *TEXTS, *INTEGERS]])
@pytest.mark.parametrize("declared", ["", "INTEGER", "TEXT", "DATE"])
def test_cells_of_sqlite(cells, declared, sqlite_database):
    """Whatever the column was declared as; what SQLite made of a cell when it came in, is it."""
    connection = sqlite3.connect("clinic.db")
    with connection:
        connection.execute(f"CREATE TABLE t (c {declared})")
        connection.executemany("INSERT INTO t VALUES (?)", [[cell] for cell in cells])
    stored = [cell for (cell,) in connection.execute("SELECT c FROM t")]
    connection.close()
    source = scan(sqlite_database.address, table="t")
    assert source.kind(0) == ("any", f"SQLite {declared or 'without type'}")
    assert same(codes(source, KINDS), wanted(stored, KINDS))


def test_text_of_sqlite_that_cannot_be_decoded(sqlite_database):
    sqlite_database.run("CREATE TABLE t AS SELECT CAST(x'ff41' AS TEXT) AS c UNION ALL SELECT 'a'")
    source = scan(sqlite_database.address, table="t")
    assert same(codes(source, [Labels(("a", "b"))]), [[np.nan], [0]])


@pytest.mark.parametrize(
    ("dtype", "cells"),
    [
        ("DOUBLE", NUMBERS),
        ("FLOAT", [0.1, 1.5, None, float("-inf"), 3]),
        ("BIGINT", INTEGERS),
        ("UBIGINT", [0, 2**64 - 1, None]),
        ("HUGEINT", [0, 3, 999, 2**127 - 1, None]),
        ("DECIMAL(20, 2)", [Decimal("1.10"), Decimal("3.00"), None]),
        ("VARCHAR", TEXTS),
        ("BOOLEAN", TRUTHS),
        ("DATE", DAYS),
        ("TIMESTAMP", MOMENTS),
        ("ENUM('a', 'b', '?')", ["a", "b", "?", None]),
        ("UUID", ["a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11", None]),
    ],
)
def test_cells_of_duckdb(dtype, cells, duckdb_database):
    with duckdb.connect("clinic.duckdb") as connection:
        connection.execute(f"CREATE TABLE t (c {dtype})")
        connection.executemany("INSERT INTO t VALUES (?)", [[cell] for cell in cells])
    source = scan(duckdb_database.address, table="t")
    if dtype == "FLOAT":
        cells = [None if cell is None else float(np.float32(cell)) for cell in cells]
    kinds = kinds_for(cells, source)
    assert same(codes(source, kinds), wanted(cells, kinds))


@pytest.mark.parametrize("name", ['a"b', "a`b", "a b", "SELECT", "ä", "a.b"])
def test_odd_names(name, database):
    quoted = '"' + name.replace('"', '""') + '"'
    database.run(f"CREATE TABLE t (x int, {quoted} int)")
    database.run("INSERT INTO t VALUES (1, 2)")
    source = scan(database.address, table="t")
    assert source.names == ("x", name)
    (block,) = source.blocks([Field(name), Field("x"), Field(name)])
    assert block.tolist() == [[2, 1, 2]]


def test_names_that_are_not_unique(database):
    database.run("CREATE TABLE t (x int)")
    database.run("INSERT INTO t VALUES (1)")
    if database.address.startswith("postgres"):
        with pytest.raises(BadInput, match="not unique"):
            scan(database.address, query="SELECT x, x + 1 AS x FROM t")
    else:  # they name the second one themselves
        source = scan(database.address, query="SELECT x, x + 1 AS x FROM t")
        (block,) = source.blocks([Field(name) for name in source.names])
        assert block.tolist() == [[1, 2]]
