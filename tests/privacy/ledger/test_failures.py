"""Everything that can be wrong with a ledger's place.

An error that says what to do, and nothing is created.
"""

import contextlib
import os
import shutil
import socket
import sqlite3
import stat
import sys
import tempfile
import traceback
from pathlib import Path

import psycopg
import pytest

from reticent.errors import BadInput, LedgerError
from reticent.privacy.accounting.events import Gaussian
from reticent.privacy.ledger import anchor, sqlite, tables
from reticent.privacy.ledger import connection as database
from reticent.privacy.ledger.ledger import Ledger, describe_user

EVENT = Gaussian(noise_multiplier=20.0)


def all_uses(ledger):
    """Every operation but `open`."""
    return [
        lambda: ledger.charge("people", EVENT),
        lambda: ledger.spent("people"),
        lambda: ledger.remaining("people"),
        lambda: ledger.history("people"),
        lambda: ledger.account("people"),
        ledger.datasets,
        ledger.verify,
    ]


def fails(ledger, match, *, opening):
    """All operations fail with this message; ``opening`` says whether `open` fails as well."""
    uses = all_uses(ledger) + ([lambda: ledger.open("people", 1.0, 1e-6)] if opening else [])
    for use in uses:
        with pytest.raises(LedgerError, match=match):
            use()


def opened(url):
    ledger = Ledger(url)
    ledger.open("people", 1.0, 1e-6)
    return ledger


def files(folder):
    """Names in a folder, but for the lock that a system without fcntl needs."""
    return sorted(name for name in os.listdir(folder) if not name.endswith("-lock"))


@contextlib.contextmanager
def as_ordinary_user(*paths):
    """Root may write everything: become nobody for a while."""
    if os.getuid() != 0:
        yield
        return
    for path in paths:
        os.chown(path, 65534, 65534)
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.fixture
def open_folder():
    """A folder that other users can reach, which pytest's own is not."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    yield folder
    folder.chmod(0o755)
    shutil.rmtree(folder)


# --- what a URL may be ---


@pytest.mark.parametrize(
    "url", ["", None, 3, b"budget.db", "nul\0.db", ":memory:", "sqlite:///", "sqlite:///:memory:"]
)
def test_what_is_no_place_for_a_ledger(url):
    with pytest.raises(BadInput, match="path of a file"):
        Ledger(url)


def test_other_kinds_of_database_are_named():
    with pytest.raises(BadInput, match=r"'mysql' address.*postgresql://") as error:
        Ledger("mysql://me:secret@host/db")
    assert "secret" not in str(error.value)


def test_paths_and_urls_of_the_same_file_are_the_same_ledger(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    name = "odd name? #1 100%.db"
    opened(name).charge("people", EVENT)
    for same in (
        tmp_path / name,
        str(tmp_path / name),
        f"sqlite:///{name}",
        f"sqlite:///{tmp_path / name}",
    ):
        assert len(Ledger(same).history("people")) == 1
    assert files(tmp_path) == [name, f"{name}-head"]


def test_making_the_object_touches_nothing(tmp_path):
    assert repr(Ledger(tmp_path / "budget.db")) == f"Ledger('{tmp_path / 'budget.db'}')"
    Ledger("postgresql://nobody@127.0.0.1:1/none")
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        (
            "postgresql://me:hunter2@db.example:5432/budget",
            "postgresql://me@db.example:5432/budget",
        ),
        (
            "postgres://me:hunter2@[::1]:5432/budget?sslmode=require",
            "postgres://me@[::1]:5432/budget",
        ),
        ("postgresql://me@h1:1,h2:2/budget?password=hunter2", "postgresql://me@h1:1,h2:2/budget"),
        ("postgresql:///budget?user=me&password=hunter2", "postgresql:///budget"),
        ("postgresql://me:hun/ter2@db/budget", "postgresql://…"),
        ("postgresql://me:hun@ter2@db/budget", "postgresql://…"),
        ("postgresql://me:hun?ter2@db/budget", "postgresql://…"),
        ("postgresql://me:hun#ter2@db/budget", "postgresql://…"),
        ("postgresql://me:hun:ter2@db/budget", "postgresql://…"),
        ("postgresql://me@db/budget?password=hun@ter2", "postgresql://…"),
        ("postgresql://me:hunter2", "postgresql://…"),
    ],
)
def test_a_password_is_never_shown(url, shown):
    assert repr(Ledger(url)) == f"Ledger('{shown}')"


# --- SQLite ---


def test_a_missing_file_is_not_created_by_a_charge(tmp_path):
    fails(
        Ledger(tmp_path / "typo.db"),
        r"There is no ledger at .*typo\.db.*`reticent ledger open`",
        opening=False,
    )
    assert os.listdir(tmp_path) == []


def test_a_missing_folder(tmp_path):
    fails(
        Ledger(tmp_path / "none" / "budget.db"), "no ledger at|folder does not exist", opening=True
    )
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ("text", "not a SQLite file"),
        ("empty", "an empty file"),
        ("folder", "not a file"),
        ("other database", "a SQLite database of another program"),
    ],
)
def test_what_is_not_a_ledger_is_left_alone(tmp_path, content, why):
    path = tmp_path / "place"
    if content == "text":
        path.write_text("age,height\n31,178\n" * 100)
    elif content == "empty":
        path.touch()
    elif content == "folder":
        path.mkdir()
    else:
        with contextlib.closing(sqlite3.connect(path)) as connection:
            connection.execute("CREATE TABLE other (x)")
    before = path.read_bytes() if path.is_file() else None
    fails(Ledger(path), rf"is not a reticent ledger \({why}\)\. Check the path", opening=True)
    assert (path.read_bytes() if path.is_file() else None) == before
    assert os.listdir(tmp_path) == ["place"]


def test_a_damaged_file(tmp_path):
    path = tmp_path / "budget.db"
    ledger = opened(path)
    for _ in range(50):
        ledger.charge("people", Gaussian(noise_multiplier=1e4), what="x" * 500)
    with path.open("r+b") as file:
        file.seek(4096)
        file.write(b"\xff" * (path.stat().st_size - 4096))
    with pytest.raises(LedgerError, match="restore it from a backup"):
        ledger.spent("people")
    with pytest.raises(LedgerError, match="restore it from a backup"):
        ledger.charge("people", EVENT)


def test_a_locked_file(tmp_path, monkeypatch):
    monkeypatch.setattr(tables, "LOCK_SECONDS", 0.1)
    ledger = opened(tmp_path / "budget.db")
    with contextlib.closing(sqlite3.connect(tmp_path / "budget.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(LedgerError, match=r"held its lock for 0\.1 seconds.*try again"):
            ledger.charge("people", EVENT)
        assert ledger.spent("people") == 0  # readers do not wait for a charge under way
    ledger.charge("people", EVENT)
    assert len(ledger.history("people")) == 1


@pytest.mark.parametrize("beside", [True, False], ids=["head writable", "head read-only"])
@pytest.mark.parametrize("what", ["file", "folder"])
def test_a_read_only_ledger_can_be_read_and_not_charged(open_folder, what, beside):
    path = open_folder / "budget.db"
    ledger = opened(path)
    ledger.charge("people", EVENT)
    head = ledger.verify()
    with as_ordinary_user(
        path, open_folder, *([path.with_name("budget.db-head")] if beside else [])
    ):
        path.chmod(0o444 if what == "file" else 0o644)
        open_folder.chmod(0o755 if what == "file" else 0o555)
        with pytest.raises(
            LedgerError, match=r"Make (the|both) files? and (its|their) folder writable"
        ):
            ledger.charge("people", EVENT)
        assert ledger.verify() == head


def test_a_folder_where_no_ledger_can_be_made(open_folder):
    with as_ordinary_user(open_folder):
        open_folder.chmod(0o555)
        with pytest.raises(LedgerError, match="folder writable"):
            Ledger(open_folder / "budget.db").open("people", 1.0, 1e-6)
    assert os.listdir(open_folder) == []


def test_a_disk_without_hard_links(tmp_path, monkeypatch):
    def refuse(source, target):
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuse)
    with pytest.raises(
        LedgerError, match=r"Operation not permitted\. Choose a folder on a local disk"
    ):
        Ledger(tmp_path / "budget.db").open("people", 1.0, 1e-6)
    assert files(tmp_path) == []


def test_a_full_disk_charges_nothing(tmp_path):
    ledger = opened(tmp_path / "budget.db")

    def charge_on_a_full_disk():
        with database.transaction(ledger.url, write=True) as execute:
            execute("PRAGMA max_page_count = 1", [])
            row = (2, "charge", "people", "x" * 10**5, "", "", "", "")
            execute(f"INSERT INTO {tables.TABLE} VALUES (?, ?, ?, ?, ?, ?, ?, ?)", row)

    with pytest.raises(LedgerError, match="disk is full"):
        charge_on_a_full_disk()
    assert ledger.history("people") == []


def test_charges_on_sqlite_are_durable(tmp_path):
    ledger = opened(tmp_path / "budget.db")
    with database.transaction(ledger.url, write=True) as execute:
        assert execute("PRAGMA synchronous", []) == [(3,)]  # EXTRA
        assert execute("PRAGMA journal_mode", []) == [("delete",)]


def test_a_file_of_a_newer_version(tmp_path):
    ledger = opened(tmp_path / "budget.db")
    with contextlib.closing(sqlite3.connect(tmp_path / "budget.db")) as connection:
        connection.execute("PRAGMA user_version = 3")
    fails(ledger, "format 3.*Upgrade reticent", opening=True)


# --- PostgreSQL ---


def test_a_charge_creates_no_tables(postgres_url):
    fails(Ledger(postgres_url), r"There is no ledger in .*`reticent ledger open`", opening=False)
    with psycopg.connect(postgres_url) as connection:
        assert connection.execute("SELECT to_regclass('reticent_ledger')").fetchone() == (None,)


def test_another_programs_table_and_a_newer_version(postgres_url):
    with psycopg.connect(postgres_url) as connection:
        connection.execute("CREATE TABLE reticent_ledger (x integer)")
    fails(Ledger(postgres_url), "is not a reticent ledger", opening=True)
    with psycopg.connect(postgres_url) as connection:
        connection.execute("COMMENT ON TABLE reticent_ledger IS 'reticent ledger, format 3'")
    fails(Ledger(postgres_url), "format 3.*Upgrade reticent", opening=True)


def test_a_locked_server(postgres_url, monkeypatch):
    monkeypatch.setattr(tables, "LOCK_SECONDS", 0.1)
    ledger = opened(postgres_url)
    with database.transaction(postgres_url, write=True):
        with pytest.raises(LedgerError, match=r"held its lock for 0\.1 seconds.*try again"):
            ledger.charge("people", EVENT)
        assert ledger.spent("people") == 0
    ledger.charge("people", EVENT)


def administer(postgres_url, *statements):
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        for statement in statements:
            connection.execute(statement.format(name=connection.info.dbname))
        return connection.info.dbname


def test_a_read_only_server_and_a_user_without_rights(postgres_url):
    ledger = opened(postgres_url)
    name = administer(
        postgres_url,
        "CREATE ROLE {name}_reader LOGIN PASSWORD 'r'",
        "CREATE ROLE {name}_spender LOGIN PASSWORD 's'",
        "GRANT SELECT ON reticent_ledger TO {name}_reader, {name}_spender",
        "GRANT INSERT ON reticent_ledger TO {name}_spender",
    )
    address = postgres_url.partition("@")[2]
    reader = Ledger(f"postgresql://{name}_reader:r@{address}")
    assert reader.spent("people") == 0
    with pytest.raises(LedgerError, match="Grant SELECT and INSERT"):
        reader.charge("people", EVENT)
    Ledger(f"postgresql://{name}_spender:s@{address}").charge("people", EVENT)
    administer(postgres_url, "ALTER DATABASE {name} SET default_transaction_read_only = on")
    with pytest.raises(LedgerError, match="on the primary server"):
        ledger.charge("people", EVENT)
    assert len(ledger.history("people")) == 1


def test_a_connection_that_breaks_charges_nothing(postgres_url):
    ledger = opened(postgres_url)

    def charge_and_lose_the_server():
        with database.transaction(postgres_url, write=True) as execute:
            execute(
                "INSERT INTO reticent_ledger VALUES (2, 'charge', 'people', '', '', '', '', '')", []
            )
            execute("SELECT pg_terminate_backend(pg_backend_pid())", [])

    with pytest.raises(LedgerError, match="`reticent ledger history` shows what was charged"):
        charge_and_lose_the_server()
    assert ledger.history("people") == []


def test_charges_are_durable_and_serial_whatever_the_server_is_set_to(postgres_url):
    ledger = opened(postgres_url)
    administer(
        postgres_url,
        "ALTER DATABASE {name} SET synchronous_commit = off",
        "ALTER DATABASE {name} SET default_transaction_isolation = 'serializable'",
    )
    with database.transaction(ledger.url, write=True) as execute:
        assert execute("SHOW synchronous_commit", []) == [("on",)]
        assert execute("SHOW transaction_isolation", []) == [("read committed",)]


def test_a_wrong_password_is_not_repeated(postgres_url):
    wrong = "hunter2-is-wrong"
    ledger = Ledger(postgres_url.replace("corr3ct-horse", wrong))
    with pytest.raises(LedgerError, match=r"password authentication failed.*Check") as error:
        ledger.charge("people", EVENT)
    assert wrong not in "".join(traceback.format_exception(error.value))


@pytest.mark.parametrize(
    "url", ["postgresql://me:hun/ter2@127.0.0.1/db", "postgresql://me:hun@ter2@127.0.0.1/db"]
)
def test_a_password_that_breaks_the_url_is_not_repeated(url, monkeypatch):
    monkeypatch.setattr(tables, "LOCK_SECONDS", 0.1)
    with pytest.raises(LedgerError, match="percent-encoded") as error:
        Ledger(url).charge("people", EVENT)
    text = "".join(traceback.format_exception(error.value))
    assert "ter2" not in text.replace(url, "")
    assert "hun" not in str(error.value)


def test_a_server_that_is_not_there():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"postgresql://me@127.0.0.1:{free.getsockname()[1]}/budget"
        fails(
            Ledger(url),
            "Cannot connect to the ledger postgresql://me@.*Check that the server runs",
            opening=True,
        )


def test_psycopg_not_installed(monkeypatch):
    monkeypatch.setitem(sys.modules, "psycopg", None)
    fails(
        Ledger("postgresql://me@host/budget"), r'pip install "reticent\[postgres\]"', opening=True
    )


def test_one_server_at_a_time(url):
    Ledger(url).create()
    with (
        database.held_alone(url),
        pytest.raises(LedgerError, match="Another server"),
        database.held_alone(url),
    ):
        pass
    with database.held_alone(url):  # and again, when it has ended
        pass


def test_a_user_without_a_name(monkeypatch):
    def nameless():
        raise KeyError("uid not found")

    monkeypatch.setattr("getpass.getuser", nameless)
    assert describe_user().startswith(f"uid {os.getuid()}@")
    monkeypatch.delattr(os, "getuid")  # Windows
    assert describe_user().startswith("unknown@")


def test_what_only_looks_like_an_event_is_not_charged(tmp_path):
    class Lookalike:
        def to_json(self):
            return Gaussian(noise_multiplier=1.0).to_json()

    ledger = Ledger(tmp_path / "budget.db")
    ledger.open("people", 1.0, 1e-6)
    with pytest.raises(BadInput, match="Only an Event"):
        ledger.charge("people", Lookalike())
    assert ledger.history("people") == []


@pytest.mark.parametrize("mask", [0o000, 0o022, 0o077])
def test_files_beside_a_ledger_may_be_used_by_whom_the_mask_allows(tmp_path, mask):
    """The heads by all that may use the ledger, the lock of a server by its own user alone."""
    path = str(tmp_path / "budget.db")
    before = os.umask(mask)
    try:
        Ledger(path).open("people", 1.0, 1e-6)
        with sqlite.held_alone(path, "taken"):
            pass
    finally:
        os.umask(before)
    modes = {
        name: stat.S_IMODE(os.stat(name).st_mode)
        for name in (anchor.anchor_of(path), f"{path}.serving")
    }
    assert list(modes.values()) == [0o666 & ~mask, 0o600]


def test_without_a_lock_no_ledger_is_made_and_no_server_runs(tmp_path, monkeypatch):
    """On systems without `fcntl`, where the file of the lock cannot be made: none goes on."""
    path = str(tmp_path / "budget.db")
    Ledger(path).create()
    monkeypatch.setitem(sys.modules, "fcntl", None)
    for name in ("budget.db.serving-lock", "other.db-head-lock"):
        (tmp_path / name).mkdir()
    with pytest.raises(OSError, match="serving-lock"), sqlite.held_alone(path, "taken"):
        pass
    with pytest.raises(LedgerError, match="cannot be created"):
        Ledger(tmp_path / "other.db").create()
    assert not (tmp_path / "other.db").exists()
