"""Store of the service: experiments with their trusted state, rounds, tokens.

SECRET, as the ledger is not. A state holds exact sums and noise, and a round holds a person's
candidate and reward until the release that they are part of. Then both are blanked; that the round
was told stays, so that a repeated tell counts once. All of it is in a file of its own beside the
ledger, which its owner alone may read; with a ledger on PostgreSQL, in a schema of its own that
PUBLIC may not use. The ledger holds charges, and nothing of this.

An experiment is charged in the ledger first, and is written here afterwards. Whoever is killed in
between has paid for nothing; no experiment is here that was not paid for.
"""

import contextlib
import os
import time
from collections.abc import Iterator
from dataclasses import astuple, dataclass

from reticent.errors import LedgerError
from reticent.privacy.ledger import connection as database
from reticent.privacy.ledger.tables import Execute
from reticent.service import secret_file

__all__ = ["Experiment", "Round", "Store", "Token"]

_TABLES = (
    """CREATE TABLE IF NOT EXISTS reticent_experiments (
        name TEXT NOT NULL PRIMARY KEY, mode TEXT NOT NULL, dataset TEXT NOT NULL,
        state TEXT NOT NULL, created BIGINT NOT NULL)""",
    """CREATE TABLE IF NOT EXISTS reticent_rounds (
        experiment TEXT NOT NULL, ask TEXT NOT NULL, token TEXT NOT NULL, asked BIGINT NOT NULL,
        told BIGINT, candidate TEXT, reward TEXT, PRIMARY KEY (experiment, ask))""",
    "CREATE TABLE IF NOT EXISTS reticent_serving (id TEXT NOT NULL)",
    "CREATE INDEX IF NOT EXISTS reticent_rounds_told ON reticent_rounds (experiment, told, asked)",
    "CREATE INDEX IF NOT EXISTS reticent_rounds_token ON reticent_rounds (experiment, token, told)",
    """CREATE TABLE IF NOT EXISTS reticent_tokens (
        id TEXT NOT NULL PRIMARY KEY, hash TEXT NOT NULL, role TEXT NOT NULL,
        experiment TEXT NOT NULL, expires BIGINT NOT NULL, revoked BIGINT NOT NULL,
        relay BIGINT NOT NULL)""",
)
_SCHEMA = "reticent_service"  # on PostgreSQL
_OLD = (
    "The ledger {} holds rounds, exact sums and noise of the bandit service: version 0.1.0 kept "
    "them there, where whoever may read the ledger can read them. Let nobody read it. Let its "
    "experiments end with version 0.1.0, remove its tables (reticent_rounds, reticent_experiments, "
    "reticent_tokens, reticent_serving), and then serve new ones."
)


@dataclass(frozen=True)
class Experiment:
    """An experiment: ``state`` is what its bandit goes on from.

    It is empty while the budget is being charged.
    """

    name: str
    mode: str
    dataset: str
    state: str
    created: int


@dataclass(frozen=True)
class Round:
    """An ask and, once ``told`` has a number, its tell; numbers are in the order of telling."""

    ask: str
    token: str
    asked: int
    told: int | None
    candidate: str | None
    reward: str | None


@dataclass(frozen=True)
class Token:
    """Who may do what: role ``operator`` or ``client``, the latter for one experiment.

    Only a hash of its secret is kept. A client's token is one person's, or, if ``relay`` is 1, that
    of an app which many people use.
    """

    id: str
    hash: str
    role: str
    experiment: str
    expires: int
    revoked: int
    relay: int = 0


_ROUND = (
    "SELECT ask, token, asked, told, candidate, reward FROM reticent_rounds WHERE experiment = ?"
)


class Store:
    """The service's tables.

    Every method takes the ``execute`` of a transaction: what belongs together is kept together.
    """

    def __init__(self, url: str, path: str | None = None) -> None:
        self.url = database.check_url(url)
        with database.transaction(self.url) as execute:
            if database.has_table(self.url, execute, "reticent_rounds"):
                raise LedgerError(_OLD.format(database.printable_url(self.url)))
        self.path = _place(self.url, path)
        if self.path is not None:
            secret_file.create(self.path)
        else:
            with database.transaction(self.url, write=True) as execute:
                if execute(f"SELECT to_regnamespace('{_SCHEMA}') IS NULL", [])[0][0]:
                    execute(f"CREATE SCHEMA {_SCHEMA}", [])
                    execute(f"REVOKE ALL ON SCHEMA {_SCHEMA} FROM PUBLIC", [])
        with self.write() as execute:
            for statement in _TABLES:
                execute(statement, [])

    def write(self) -> contextlib.AbstractContextManager[Execute]:
        """A transaction that holds the write lock."""
        return self._transaction(write=True)

    def read(self) -> contextlib.AbstractContextManager[Execute]:
        """A transaction that only looks."""
        return self._transaction(write=False)

    def _transaction(self, *, write: bool) -> contextlib.AbstractContextManager[Execute]:
        if self.path is not None:
            return secret_file.transaction(self.path, write=write)
        return self._server_transaction(write=write)

    @contextlib.contextmanager
    def _server_transaction(self, *, write: bool) -> Iterator[Execute]:
        with database.transaction(self.url, write=write) as execute:
            if execute(f"SELECT has_schema_privilege('public', '{_SCHEMA}', 'USAGE')", [])[0][0]:
                raise LedgerError(
                    f"Everybody may use the schema {_SCHEMA} in "
                    f"{database.printable_url(self.url)}, which holds people's rounds: REVOKE ALL "
                    f"ON SCHEMA {_SCHEMA} FROM PUBLIC."
                )
            there = f"concat_ws(', ', '{_SCHEMA}', nullif(current_setting('search_path'), ''))"
            execute(f"SELECT set_config('search_path', {there}, true)", [])
            yield execute

    @staticmethod
    def start_serving(execute: Execute, id_: str) -> None:
        """Take over: whichever server wrote before may write no more."""
        execute("DELETE FROM reticent_serving", [])
        execute("INSERT INTO reticent_serving (id) VALUES (?)", [id_])

    @staticmethod
    def check_serving(execute: Execute, id_: str) -> None:
        """Refuse a server that lost its lock without noticing.

        It must not draw noise for rounds that another one has.
        """
        if execute("SELECT id FROM reticent_serving", []) != [(id_,)]:
            raise LedgerError(
                "Another server has taken over this database: this one does nothing more. Stop it."
            )

    @staticmethod
    def experiments(execute: Execute) -> list[Experiment]:
        """All of them, oldest first."""
        rows = execute(
            "SELECT name, mode, dataset, state, created FROM "
            "reticent_experiments ORDER BY created, name",
            [],
        )
        return [Experiment(*row) for row in rows]

    @staticmethod
    def add_experiment(execute: Execute, experiment: Experiment) -> bool:
        """Take a name; False if it is taken."""
        if execute("SELECT 1 FROM reticent_experiments WHERE name = ?", [experiment.name]):
            return False
        values = list(astuple(experiment))
        execute(
            "INSERT INTO reticent_experiments (name, mode, dataset, state, "
            "created) VALUES (?, ?, ?, ?, ?)",
            values,
        )
        return True

    @staticmethod
    def drop_experiment(execute: Execute, name: str) -> None:
        """Give back a name that was never paid for."""
        execute("DELETE FROM reticent_experiments WHERE name = ? AND state = ''", [name])

    @staticmethod
    def keep_state(execute: Execute, name: str, state: str, told: int) -> None:
        """A state after a release: the rounds in it are blanked."""
        execute("UPDATE reticent_experiments SET state = ? WHERE name = ?", [state, name])
        blank = (
            "UPDATE reticent_rounds SET candidate = NULL, reward = NULL WHERE "
            "experiment = ? AND told <= ?"
        )
        execute(blank, [name, told])

    @staticmethod
    def add_ask(execute: Execute, name: str, begun: Round) -> None:
        """A round that begins."""
        values = [name, begun.ask, begun.token, begun.asked, begun.candidate]
        execute(
            "INSERT INTO reticent_rounds (experiment, ask, token, asked, "
            "candidate) VALUES (?, ?, ?, ?, ?)",
            values,
        )

    @staticmethod
    def round(execute: Execute, name: str, ask: str) -> Round | None:
        """One round, if there is such an ask."""
        rows = execute(f"{_ROUND} AND ask = ?", [name, ask])
        if rows:
            return Round(*rows[0])
        return None

    @staticmethod
    def add_tell(execute: Execute, name: str, ask: str, told: int, reward: str) -> None:
        """The round's end; ``told`` is its number in the order of telling."""
        values = [told, reward, name, ask]
        execute(
            "UPDATE reticent_rounds SET told = ?, reward = ? WHERE experiment = ? AND ask = ?",
            values,
        )

    @staticmethod
    def unreleased(execute: Execute, name: str) -> list[Round]:
        """Rounds that were told after the last release, in the order of telling."""
        return [
            Round(*row)
            for row in execute(
                f"{_ROUND} AND candidate IS NOT NULL AND told IS NOT NULL ORDER BY told", [name]
            )
        ]

    @staticmethod
    def counts(execute: Execute, name: str) -> tuple[int, int]:
        """How many rounds were told, and how many are open."""
        [(told, asked)] = execute(
            "SELECT COUNT(told), COUNT(*) FROM reticent_rounds WHERE experiment = ?", [name]
        )
        return told, asked - told

    @staticmethod
    def begun(execute: Execute, name: str, token: str, *, open_only: bool = False) -> int:
        """How many rounds a token has begun; or how many of them are open."""
        query = "SELECT COUNT(*) FROM reticent_rounds WHERE experiment = ? AND token = ?"
        if open_only:
            query += " AND told IS NULL"
        [(count,)] = execute(query, [name, token])
        return int(count)

    @staticmethod
    def expire(execute: Execute, name: str, before: int) -> int:
        """Forget open asks older than that; how many there were."""
        old = "FROM reticent_rounds WHERE experiment = ? AND told IS NULL AND asked < ?"
        [(count,)] = execute(f"SELECT COUNT(*) {old}", [name, before])
        if count:
            execute(f"DELETE {old}", [name, before])
        return int(count)

    @staticmethod
    def tokens(execute: Execute) -> list[Token]:
        """All of them."""
        rows = execute(
            "SELECT id, hash, role, experiment, expires, revoked, relay FROM reticent_tokens", []
        )
        return [Token(*row) for row in rows]

    @staticmethod
    def add_token(execute: Execute, token: Token) -> None:
        """A new one."""
        values = list(astuple(token))
        columns = "id, hash, role, experiment, expires, revoked, relay"
        execute(f"INSERT INTO reticent_tokens ({columns}) VALUES (?, ?, ?, ?, ?, ?, ?)", values)

    @staticmethod
    def revoke(execute: Execute, id_: str, experiment: str) -> bool:
        """End a client's token; False if the experiment has no such token."""
        if not execute(
            "SELECT 1 FROM reticent_tokens WHERE id = ? AND experiment = ?", [id_, experiment]
        ):
            return False
        execute("UPDATE reticent_tokens SET revoked = 1 WHERE id = ?", [id_])
        return True

    def alone(self) -> contextlib.AbstractContextManager[None]:
        """Hold the store for one server.

        Two that go on from the same state would draw different noise for the same sums.
        """
        return database.held_alone(self.path or self.url)


def _place(url: str, path: str | None) -> str | None:
    """The store's file; None: on the ledger's own server."""
    if path is not None:
        return os.path.abspath(path)
    if url.startswith(("postgresql://", "postgres://")):
        return None
    return f"{os.path.realpath(database.printable_url(url))}.service"


def now() -> int:
    """Seconds since 1970."""
    return int(time.time())
