"""The same records give the same integers, wherever they are: releases with one seed are equal.

With and without a column that says whose a record is.
"""

import gzip
import sqlite3

import dask.dataframe as dd
import duckdb
import ibis
import numpy as np
import pandas as pd
import polars as pl
import psycopg
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet as pq
import pytest

import reticent
from reticent.privacy.sources.base import scan
from tests.support.one_table import Everything, N, people, released


def as_rows(frame):
    for row in frame.astype(object).itertuples(index=False):
        yield [None if value is pd.NaT or value != value else value for value in row]


def as_duckdb(frame, folder):
    with duckdb.connect(folder / "clinic.duckdb") as connection:
        connection.register("frame", frame)
        connection.execute("CREATE TABLE people AS SELECT * FROM frame")
    return "duckdb:///" + str(folder / "clinic.duckdb")


def as_sqlite(frame, folder):
    connection = sqlite3.connect(folder / "clinic.db")
    with connection:
        connection.execute("CREATE TABLE people (id TEXT, age INT, sex TEXT, visit, weight REAL)")
        rows = [[*row[:3], row[3].isoformat(" "), row[4]] for row in as_rows(frame)]
        connection.executemany("INSERT INTO people VALUES (?, ?, ?, ?, ?)", rows)
    connection.close()
    return "sqlite:///" + str(folder / "clinic.db")


def as_postgres(frame, server):
    with psycopg.connect(f"{server}/postgres") as connection:
        connection.execute("DROP TABLE IF EXISTS people")
        columns = "id text, age int, sex text, visit timestamp, weight float8"
        connection.execute(f"CREATE TABLE people ({columns})")
        with connection.cursor().copy("COPY people FROM STDIN") as copied:
            for row in as_rows(frame):
                copied.write_row(row)
    return f"{server}/postgres"


def parquet_folder(frame, folder):
    (folder / "parts").mkdir()
    table = pa.Table.from_pandas(frame)
    pq.write_table(table[:200], folder / "parts" / "1.parquet")
    pq.write_table(table[200:], folder / "parts" / "2.parquet")
    return folder / "parts"


def zipped(path):
    path.with_name("people.csv.gz").write_bytes(gzip.compress(path.read_bytes()))
    return path.with_name("people.csv.gz")


@pytest.fixture(scope="module")
def sources(tmp_path_factory, server):
    """The same table in all places; what keeps them open is in the last entry."""
    folder = tmp_path_factory.mktemp("places")
    frame = people()
    polars = pl.DataFrame(pa.Table.from_pandas(frame))
    csv = folder / "people.csv"
    frame.to_csv(csv, index=False)
    parts = parquet_folder(frame, folder)
    memory = duckdb.connect()
    memory.register("frame", frame)
    places = {
        "pandas": scan(frame),
        "polars": scan(polars),
        "polars, lazy": scan(polars.lazy()),
        "polars, from files": scan(pl.scan_parquet(parts / "*.parquet")),
        "pyarrow table": scan(pa.Table.from_pandas(frame)),
        "pyarrow batch": scan(pa.RecordBatch.from_pandas(frame)),
        "pyarrow data set": scan(pa.dataset.dataset(parts)),
        "DuckDB table": scan(as_duckdb(frame, folder), table="people"),
        "DuckDB query": scan(
            "duckdb:///" + str(folder / "clinic.duckdb"), query="SELECT * FROM people"
        ),
        "DuckDB relation": scan(memory.sql("SELECT * FROM frame")),
        "SQLite": scan(as_sqlite(frame, folder), table="people"),
        "PostgreSQL": scan(as_postgres(frame, server), table="people"),
        "PostgreSQL query": scan(f"{server}/postgres", query="SELECT * FROM people ORDER BY age"),
        "CSV": scan(csv),
        "CSV, compressed": scan(zipped(csv)),
        "Parquet folder": scan(parts),
        "list": scan([parts / "2.parquet", str(parts / "1.parquet")]),
        "pattern": scan(str(parts / "?.parquet")),
    }
    rows = ibis.sqlite.connect(folder / "clinic.db").table("people")
    places["Ibis"] = scan(rows.filter(rows.age >= 0))
    places["dask"] = scan(dd.from_pandas(frame, npartitions=3))
    yield places
    memory.close()


@pytest.mark.parametrize("person", [None, "id"])
def test_the_same_integers_from_everywhere(person, sources):
    wanted, n = released(sources["pandas"], person)
    assert n == (N if person is None else people()["id"].nunique())
    for name, source in sources.items():
        value, found = released(source, person)
        assert found == n, name
        assert np.array_equal(value, wanted), name


def test_an_array_gives_the_same_integers(sources):
    frame = people()
    columns = [frame["age"], frame["sex"], frame["visit"].dt.to_pydatetime()]
    array = np.array([list(column) for column in columns], dtype=object).T
    bounds = reticent.Bounds(
        x=[(0, 110), reticent.Words(["F", "M"]), reticent.Date("2019-01-01", "2024-12-31")],
        y=(2, 150),
    )
    curator = reticent.Curator(
        scan(array, y=frame["weight"].to_numpy()),
        bounds=bounds,
        targets=True,
        event=reticent.Gaussian(noise_multiplier=2.0),
        seed=b"one seed for all",
    )
    assert np.array_equal(curator.release(Everything()).value, released(sources["CSV"], None)[0])
