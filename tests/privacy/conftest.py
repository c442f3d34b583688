"""A PostgreSQL server, a place for a ledger on each database, and forked spenders."""

import contextlib
import json
import os
import secrets
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest

from tests.support.postgres import server


@pytest.fixture(scope="session")
def postgres_server():
    """URL of a server without a database: one that `tools.mutation` started, or one of its own."""
    if given := os.environ.get("TEST_POSTGRES"):
        yield given
        return
    with server() as url:
        yield url


@pytest.fixture
def postgres_url(postgres_server):
    """URL of a fresh, empty database."""
    return _fresh(postgres_server)


def _fresh(postgres_server):
    name = f"test_{secrets.token_hex(6)}"
    with psycopg.connect(f"{postgres_server}/postgres", autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    return f"{postgres_server}/{name}"


@pytest.fixture(scope="session")
def one_database(postgres_server):
    """A database for all tests that want nothing but an empty one.

    To make one takes twenty times as long as to empty it.
    """
    return _fresh(postgres_server)


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request, tmp_path):
    """Where a ledger may be opened: nothing is there yet."""
    if request.param == "sqlite":
        return str(tmp_path / "budget.db")
    found = request.getfixturevalue("one_database")
    with psycopg.connect(found, autocommit=True) as connection:
        others = (
            "FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
        connection.execute(f"SELECT pg_terminate_backend(pid, 10000) {others}")
        connection.execute("DROP SCHEMA public CASCADE")
        connection.execute("CREATE SCHEMA public")
    return found


class Spenders:
    """Child processes that charge in a loop, forked from one that has imported everything.

    See spender.py.
    """

    def __init__(self, zygote):
        self._zygote = zygote

    def start(self, **job):
        """Fork a spender; return its process id."""
        return self._ask(job)

    def wait(self):
        """Wait until all spenders have ended; return exit codes (negative: ended by a signal)."""
        return self._ask(None)

    def _ask(self, what):
        self._zygote.stdin.write(json.dumps(what) + "\n")
        self._zygote.stdin.flush()
        return json.loads(self._zygote.stdout.readline())


@pytest.fixture(scope="session")
def spenders():
    command = [sys.executable, str(Path(__file__).with_name("spender.py"))]
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, env=environment, **pipes) as zygote:
        yield Spenders(zygote)
        with contextlib.suppress(BrokenPipeError):
            zygote.stdin.close()
