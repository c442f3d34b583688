"""Databases that change, fail, drop or are not to be read: said early, or the charge is told.

Nothing is half released, and nothing that a database says while it reads leaves.
"""

import subprocess
import sys
import time

import duckdb
import numpy as np
import psycopg
import pytest

import reticent
from reticent.errors import BadInput, ReleaseRefused
from reticent.privacy.sources.base import Field, scan
from reticent.privacy.sources.databases import postgres as reading
from tests.privacy.sources.databases.conftest import BOUNDS, EVENT, Inputs
from tests.support.postgres import PASSWORD


def rows(source, *names):
    fields = [Field(name) for name in names]
    return np.concatenate([np.empty((0, len(fields))), *source.blocks(fields)])


def test_a_table_and_a_query_are_sources(people):
    source = scan(people.address, table="people")
    assert source.names == ("a", "b")
    assert (source.known_n, source.ordered, source.count()) == (None, False, 100)
    assert rows(source, "b", "a").tolist() == [[2.0, 1.0]] * 100
    query = scan(people.address, query="SELECT b AS outcome, a + 1 AS a FROM people -- all")
    assert query.names == ("outcome", "a")
    assert rows(query, "a").tolist() == [[2.0]] * 100
    assert scan(people.address, query="SELECT * FROM people WHERE a > 5; ").count() == 0


def test_all_stages_see_the_rows_of_one_moment(people, curator):
    """Somebody deletes half of the rows and changes the others between two stages."""
    if people.address.startswith("duckdb"):
        pytest.skip("nobody can write to a DuckDB file that is being read")
    source = scan(people.address, table="people")
    fit = curator(source, seed=b"same")
    first = fit.release(Inputs())
    people.run("UPDATE people SET a = 9.0")
    if people.address.startswith("postgres"):
        people.run("DELETE FROM people WHERE ctid IN (SELECT ctid FROM people LIMIT 50)")
    else:
        people.run("DELETE FROM people WHERE rowid % 2 = 0")
    second = fit.release(Inputs())
    assert first.n == second.n == 100
    fit.close()
    alike = curator(scan(np.array([[1.0, 2.0]] * 100)[:, :1], y=np.full(100, 2.0)), **ARRAY)
    assert np.array_equal(alike.release(Inputs()).value, first.value)
    assert np.array_equal(alike.release(Inputs()).value, second.value)
    later = curator(source)  # a new fit sees what is there now
    assert later.release(Inputs()).n == 50


ARRAY = {"bounds": reticent.Bounds(x=[(0, 10)], y=(0, 10)), "seed": b"same"}


def test_a_writer_waits_or_is_refused_while_a_duckdb_file_is_read(duckdb_database, curator):
    duckdb_database.run("CREATE TABLE people AS SELECT 1.0 AS a, 2.0 AS b FROM range(100)")
    fit = curator(scan(duckdb_database.address, table="people"))
    fit.release(Inputs())
    code = "import duckdb; duckdb.connect('clinic.duckdb')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "lock" in done.stderr
    assert fit.release(Inputs()).n == 100


def test_a_duckdb_file_that_is_written_to_is_refused(duckdb_database):
    duckdb_database.run("CREATE TABLE people AS SELECT 1 AS a")
    with (
        duckdb.connect("clinic.duckdb"),
        pytest.raises(BadInput, match=r"has it open to write.*scan\(connection\.table"),
    ):
        scan(duckdb_database.address, table="people")


def test_an_sqlite_file_that_is_written_to_is_refused_soon(tmp_path, monkeypatch):
    import sqlite3

    monkeypatch.chdir(tmp_path)
    writer = sqlite3.connect("clinic.db", isolation_level=None)
    writer.execute("CREATE TABLE people (a)")
    writer.execute("BEGIN EXCLUSIVE")
    begun = time.monotonic()
    with pytest.raises(BadInput, match="a program is writing to it"):
        scan("sqlite:///clinic.db", table="people")
    assert time.monotonic() - begun < 5
    writer.close()


def test_random_rows_are_refused_at_the_second_reading(people, curator):
    """The first one of DuckDB counts the rows, and reads what is added up."""
    order = "SELECT random() AS a, b FROM people"
    fit = curator(scan(people.address, query=order))
    releases = int(not people.address.startswith("duckdb"))
    for _ in range(releases):
        fit.release(Inputs())
    with pytest.raises(ReleaseRefused, match=r"records changed while they were read.*charge stays"):
        fit.release(Inputs())
    assert len(fit.releases) == releases


HALF_WAY = {
    "sqlite": "SELECT abs(-9223372036854775807 - (a = 7)) + 0 * a AS a, b FROM people",
    "duckdb": "SELECT (CASE WHEN a = 7 THEN 'Smith' ELSE '1' END)::DOUBLE AS a, b FROM people",
    "postgresql": "SELECT (CASE WHEN a = 7 THEN 'Smith' ELSE '1' END)::float8 AS a, b FROM people",
}


def test_a_query_that_fails_half_way_releases_nothing(people, curator, ledger):
    """For one record, and nothing of it is told."""
    query = HALF_WAY[people.address.partition(":")[0]]
    source = scan(people.address, query=query)
    before = curator(source)
    assert before.release(Inputs()).n == 100
    before.close()
    people.run("INSERT INTO people VALUES (7.0, 2.0)")
    fit = curator(source)
    with pytest.raises(
        ReleaseRefused, match=r"could not be read to the end.* Nothing is released; the charge"
    ) as told:
        fit.release(Inputs())
    assert "Smith" not in str(told.value)
    assert told.value.__cause__ is None
    assert told.value.__context__ is None
    assert not fit.releases
    assert len(ledger.history("people")) == 2


def test_columns_that_changed_are_refused_before_the_charge(people, curator, ledger):
    source = scan(people.address, table="people")
    people.run("ALTER TABLE people ADD COLUMN c int")
    with pytest.raises(BadInput, match="have changed since it was scanned"):
        curator(source)
    people.run("DROP TABLE people")
    with pytest.raises(BadInput, match="people"):
        curator(source)
    assert not ledger.history("people")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"table": "patients"}, r"patients.*Check the table"),
        ({"table": "nowhere.people"}, r"nowhere.*Check the table"),
        ({"query": "SELECT nobody FROM people"}, r"nobody.*Check the table"),
        ({"query": "SELEC 1"}, r"syntax error.*Check the table"),
        ({"query": "SELECT 1; DROP TABLE people"}, "syntax error"),
        ({"query": "DROP TABLE people"}, "syntax error"),
        ({"query": " "}, "is empty, or no text"),
        ({}, "table='patients'"),
        ({"table": "people", "query": "SELECT 1"}, "one of the two"),
        ({"table": "people", "separator": ";"}, "separator is for CSV files"),
    ],
)
def test_what_cannot_be_read_is_refused_at_once(options, words, people):
    begun = time.monotonic()
    with pytest.raises(BadInput, match=words) as told:
        scan(people.address, **options)
    assert PASSWORD not in str(told.value)
    assert time.monotonic() - begun < 5  # far less, on a machine that is not busy
    assert scan(people.address, table="people").count() == 100


def test_tables_and_queries_are_of_databases(tmp_path):
    path = tmp_path / "p.csv"
    path.write_text("a\n1\n")
    for data in (path, [path], np.zeros((2, 1)), [[1.0]]):
        with pytest.raises(BadInput, match="table is for databases"):
            scan(data, table="people")
    with pytest.raises(BadInput, match=r"an address mysql://….*postgresql://"):
        scan("mysql://user:secret@host/db", table="people")


@pytest.mark.parametrize("scheme", ["sqlite", "duckdb"])
def test_files_that_are_no_database(scheme, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(BadInput, match=r"There is no file no\.db"):
        scan(f"{scheme}:///no.db", table="t")
    (tmp_path / "text.db").write_text("a,b\n12.75,Smith\n" * 1000)
    with pytest.raises(BadInput, match=r"text\.db") as told:
        scan(f"{scheme}:///text.db", table="t")
    assert "Smith" not in str(told.value)
    for wrong in (f"{scheme}://no.db", f"{scheme}:///"):
        with pytest.raises(BadInput, match="three strokes"):
            scan(wrong, table="t")


# ---- a server


def test_a_table_without_rights(postgres_database, server):
    run = postgres_database.run
    run("CREATE TABLE people (a float8, b float8)")
    run("DROP ROLE IF EXISTS reader")
    run(f"CREATE ROLE reader LOGIN PASSWORD '{PASSWORD}'")
    run("GRANT USAGE ON SCHEMA public TO reader")
    address = postgres_database.address.replace("//postgres:", "//reader:")
    for options in ({"table": "people"}, {"query": "SELECT a FROM people"}):
        with pytest.raises(BadInput, match=r"permission denied for table people\. Ask .*GRANT"):
            scan(address, **options)
    run("GRANT SELECT ON people TO reader")
    source = scan(address, table="people")
    assert source.count() == 0
    run("REVOKE SELECT ON people FROM reader")
    with pytest.raises(BadInput, match="permission denied"):
        source.snapshot()


def test_a_connection_that_drops(postgres_database, curator, ledger):
    run = postgres_database.run
    run("CREATE TABLE people AS SELECT 1.0::float8 AS a, 2.0 AS b FROM generate_series(1, 9)")
    source = scan(postgres_database.address, table="people")
    fit = curator(source)
    fit.release(Inputs())
    run(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
        "WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'"
    )
    with pytest.raises(ReleaseRefused, match=r"was lost while records were read.* charge stays"):
        fit.release(Inputs())
    assert len(fit.releases) == 1
    assert len(ledger.history("people")) == 1
    assert curator(source).release(Inputs()).n == 9  # a new fit, a new connection


def test_the_transaction_cannot_write(postgres_database, curator):
    run = postgres_database.run
    run("CREATE TABLE people (a float8, b float8)")
    run("INSERT INTO people VALUES (1, 2)")
    run("CREATE SEQUENCE s")
    fit = curator(scan(postgres_database.address, query="SELECT nextval('s') AS a, b FROM people"))
    with pytest.raises(ReleaseRefused, match="could not be read to the end"):
        fit.release(Inputs())


def test_passwords_are_nowhere(postgres_database, tmp_path):
    postgres_database.run("CREATE TABLE people AS SELECT 1.0 AS a FROM generate_series(1, 50)")
    source = scan(postgres_database.address, table="people")
    assert repr(source).startswith("<DatabaseSource: postgresql://postgres@127.0.0.1:")
    model = reticent.PrivateMean(
        bounds=reticent.Bounds(x={"a": (0, 10)}), epsilon=1, delta=1e-6
    ).fit(source)
    model.save(tmp_path / "m.reticent")
    assert PASSWORD.encode() not in (tmp_path / "m.reticent").read_bytes()
    assert PASSWORD not in repr(source) + repr(model)
    for wrong in (
        postgres_database.address.replace(PASSWORD, "s3cret"),
        "postgresql://u:s3cret@127.0.0.1:1/x",
        "postgresql://u:s3cret@s3cret@host/x",
    ):
        with pytest.raises(BadInput, match="Cannot connect to postgresql://") as told:
            scan(wrong, table="people")
        assert "s3cret" not in str(told.value)
        with pytest.raises(BadInput, match="table='patients'") as told:
            scan(wrong)
        assert "s3cret" not in str(told.value)


def test_connections_end_with_their_fit(postgres_database):
    postgres_database.run("CREATE TABLE people AS SELECT 1.0::float8 AS a, 2.0::float8 AS b")

    def open_now():
        with psycopg.connect(postgres_database.address) as connection:
            asked = "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'"
            return connection.execute(asked).fetchone()[0]

    def settled(number):
        for _ in range(100):
            if open_now() == number:
                return True
            time.sleep(0.02)
        return False

    before = open_now()
    source = scan(postgres_database.address, table="people")
    assert settled(before)
    fit = reticent.Curator(source, bounds=BOUNDS, event=EVENT, targets=True)
    assert open_now() == before + 1
    fit.release(Inputs())
    fit.close()
    assert settled(before)
    left = reticent.Curator(source, bounds=BOUNDS, event=EVENT, targets=True)
    del left  # never closed
    assert settled(before)
    next(source.blocks([Field("a")]))  # broken off
    assert settled(before)


def test_lines_are_read_in_blocks(postgres_database, monkeypatch):
    monkeypatch.setattr(reading, "_BLOCK_BYTES", 20)
    postgres_database.run("CREATE TABLE t AS SELECT i AS a FROM generate_series(1, 100) AS s(i)")
    blocks = list(scan(postgres_database.address, table="t").blocks([Field("a")]))
    assert len(blocks) > 10
    assert np.concatenate(blocks)[:, 0].tolist() == list(range(1, 101))


# ---- order


def test_what_needs_one_order_is_refused_before_the_charge(sqlite_database, ledger):
    """A query of other columns may come in another order, by an index that covers them."""
    sqlite_database.run("CREATE TABLE people (a REAL, b REAL, w REAL)")
    sqlite_database.run("INSERT INTO people VALUES (3, 1, 1), (1, 2, 1), (2, 3, 1)")
    sqlite_database.run("CREATE INDEX covering ON people (a)")
    source = scan(sqlite_database.address, table="people")
    assert rows(source, "a")[:, 0].tolist() == [1, 2, 3]
    assert rows(source, "a", "b")[:, 0].tolist() == [3, 1, 2]
    account = {"ledger": ledger.url, "dataset": "people"}
    search = reticent.PrivateSearch(
        reticent.GPRegressor(bounds=BOUNDS),
        [{"basis": 5}, {"basis": 8}],
        epsilon=1,
        delta=1e-6,
        neighbours="add-remove",
        **account,
    )
    with pytest.raises(BadInput, match="in one order"):
        search.fit(source)
    assert not ledger.history("people")
