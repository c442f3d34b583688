"""Tables in databases of every kind, and fits of them that cost little."""

import sqlite3

import duckdb
import psycopg
import pytest

import reticent
from tests.support import postgres

BOUNDS = reticent.Bounds(x={"a": (0, 10)}, y={"b": (0, 10)})
EVENT = reticent.Gaussian(noise_multiplier=1.0, count=3)


class Inputs(reticent.Sum):
    columns = 1
    norm2 = 1

    def rows(self, records):
        return records[:, :1]


class Database:
    """An address, and a way to run statements that change what is there, from outside."""

    def __init__(self, address, run):
        self.address = address
        self.run = run


@pytest.fixture(scope="session")
def server():
    with postgres.server() as url:
        yield url


@pytest.fixture
def postgres_database(server):
    with psycopg.connect(f"{server}/postgres", autocommit=True) as connection:
        connection.execute("DROP SCHEMA public CASCADE")
        connection.execute("CREATE SCHEMA public")

        def run(statement):
            connection.execute(statement)

        yield Database(f"{server}/postgres", run)


@pytest.fixture
def sqlite_database(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def run(statement):
        connection = sqlite3.connect("clinic.db")
        with connection:
            connection.execute("PRAGMA journal_mode = WAL")  # so that somebody can write meanwhile
            connection.execute(statement)
        connection.close()

    return Database("sqlite:///clinic.db", run)


@pytest.fixture
def duckdb_database(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def run(statement):
        with duckdb.connect("clinic.duckdb") as connection:
            connection.execute(statement)

    return Database("duckdb:///clinic.duckdb", run)


@pytest.fixture(params=["sqlite", "duckdb", "postgres"])
def database(request):
    return request.getfixturevalue(f"{request.param}_database")


@pytest.fixture
def people(database):
    """A hundred people, with a at 1.0 and b at 2.0."""
    database.run("CREATE TABLE people (a double precision, b double precision)")
    values = ", ".join(["(1.0, 2.0)"] * 100)
    database.run(f"INSERT INTO people VALUES {values}")
    return database


@pytest.fixture
def ledger(tmp_path):
    made = reticent.Ledger(tmp_path / "budget.db")
    made.open("people", 1000.0, 1e-3)
    return made


@pytest.fixture
def curator(ledger):
    made = []

    def make(source, **options):
        options = {"bounds": BOUNDS, "event": EVENT, "targets": True} | options
        account = {"ledger": ledger.url, "dataset": "people"}
        made.append(reticent.Curator(source, **options, **account))
        return made[-1]

    yield make
    for one in made:
        one.close()
