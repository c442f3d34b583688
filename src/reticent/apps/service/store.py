"""What the service keeps, in the ledger's database: experiments with their trusted state, rounds, tokens.

TRUSTED, as the ledger's history is not: a state holds exact sums, and a round holds a person's candidate and reward until the
release that they are part of. Then both are blanked; that the round was told stays, so that a repeated tell counts once.
"""

import contextlib
import time
from dataclasses import dataclass
from typing import Any

from reticent.errors import LedgerError
from reticent.privacy import database
from reticent.privacy.database import Execute

__all__ = ["Experiment", "Round", "Store", "Token"]

_TABLES = (
    """CREATE TABLE IF NOT EXISTS reticent_experiments (
        name TEXT NOT NULL PRIMARY KEY, mode TEXT NOT NULL, dataset TEXT NOT NULL, state TEXT NOT NULL,
        created BIGINT NOT NULL)""",
    """CREATE TABLE IF NOT EXISTS reticent_rounds (
        experiment TEXT NOT NULL, ask TEXT NOT NULL, token TEXT NOT NULL, asked BIGINT NOT NULL, told BIGINT,
        candidate TEXT, reward TEXT, PRIMARY KEY (experiment, ask))""",
    "CREATE TABLE IF NOT EXISTS reticent_serving (id TEXT NOT NULL)",
    """CREATE INDEX IF NOT EXISTS reticent_rounds_told ON reticent_rounds (experiment, told)""",
    """CREATE TABLE IF NOT EXISTS reticent_tokens (
        id TEXT NOT NULL PRIMARY KEY, hash TEXT NOT NULL, role TEXT NOT NULL, experiment TEXT NOT NULL,
        expires BIGINT NOT NULL, revoked BIGINT NOT NULL)""",
)


@dataclass(frozen=True)
class Experiment:
    """A row of the table: ``state`` is what its bandit goes on from, empty while the budget is being charged."""

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
    """Who may do what: role ``operator`` or ``client``, the latter for one experiment. Only a hash of its secret is kept."""

    id: str
    hash: str
    role: str
    experiment: str
    expires: int
    revoked: int


_ROUND = "SELECT ask, token, asked, told, candidate, reward FROM reticent_rounds WHERE experiment = ?"


class Store:
    """The service's tables. Every method takes the ``execute`` of a transaction: what belongs together is kept together."""

    def __init__(self, url: str) -> None:
        self.url = database.check_url(url)
        database.keep_to_owner(self.url)
        with self.write() as execute:
            for statement in _TABLES:
                execute(statement, [])

    def write(self) -> contextlib.AbstractContextManager[Execute]:
        """A transaction that holds the database's write lock."""
        return database.transaction(self.url, write=True)

    def read(self) -> contextlib.AbstractContextManager[Execute]:
        """A transaction that only looks."""
        return database.transaction(self.url)

    @staticmethod
    def start_serving(execute: Execute, id_: str) -> None:
        """Take over: whichever server wrote before may write no more."""
        execute("DELETE FROM reticent_serving", [])
        execute("INSERT INTO reticent_serving (id) VALUES (?)", [id_])

    @staticmethod
    def check_serving(execute: Execute, id_: str) -> None:
        """A server that lost its lock without noticing must not draw noise for rounds that another one has."""
        if execute("SELECT id FROM reticent_serving", []) != [(id_,)]:
            raise LedgerError("Another server has taken over this database: this one does nothing more. Stop it.")

    @staticmethod
    def experiments(execute: Execute) -> list[Experiment]:
        """All of them, oldest first."""
        rows = execute(
            "SELECT name, mode, dataset, state, created FROM reticent_experiments ORDER BY created, name", []
        )
        return [Experiment(*row) for row in rows]

    @staticmethod
    def add_experiment(execute: Execute, one: Experiment) -> bool:
        """Take a name; False if it is taken."""
        if execute("SELECT 1 FROM reticent_experiments WHERE name = ?", [one.name]):
            return False
        values = [one.name, one.mode, one.dataset, one.state, one.created]
        execute("INSERT INTO reticent_experiments (name, mode, dataset, state, created) VALUES (?, ?, ?, ?, ?)", values)
        return True

    @staticmethod
    def drop_experiment(execute: Execute, name: str) -> None:
        """Give back a name that was never paid for."""
        execute("DELETE FROM reticent_experiments WHERE name = ? AND state = ''", [name])

    @staticmethod
    def keep_state(execute: Execute, name: str, state: str, told: int) -> None:
        """A state after a release: the rounds in it are blanked."""
        execute("UPDATE reticent_experiments SET state = ? WHERE name = ?", [state, name])
        blank = "UPDATE reticent_rounds SET candidate = NULL, reward = NULL WHERE experiment = ? AND told <= ?"
        execute(blank, [name, told])

    @staticmethod
    def add_ask(execute: Execute, name: str, one: Round) -> None:
        """A round that begins."""
        values = [name, one.ask, one.token, one.asked, one.candidate]
        execute("INSERT INTO reticent_rounds (experiment, ask, token, asked, candidate) VALUES (?, ?, ?, ?, ?)", values)

    @staticmethod
    def round(execute: Execute, name: str, ask: str) -> Round | None:
        """One round, if there is such an ask."""
        rows = execute(f"{_ROUND} AND ask = ?", [name, ask])
        return Round(*rows[0]) if rows else None

    @staticmethod
    def add_tell(execute: Execute, name: str, ask: str, told: int, reward: str) -> None:
        """The round's end; ``told`` is its number in the order of telling."""
        values = [told, reward, name, ask]
        execute("UPDATE reticent_rounds SET told = ?, reward = ? WHERE experiment = ? AND ask = ?", values)

    @staticmethod
    def unreleased(execute: Execute, name: str) -> list[Round]:
        """Rounds that were told after the last release, in the order of telling."""
        return [
            Round(*row)
            for row in execute(f"{_ROUND} AND candidate IS NOT NULL AND told IS NOT NULL ORDER BY told", [name])
        ]

    @staticmethod
    def counts(execute: Execute, name: str) -> tuple[int, int]:
        """How many rounds were told, and how many are open."""
        [(told, asked)] = execute("SELECT COUNT(told), COUNT(*) FROM reticent_rounds WHERE experiment = ?", [name])
        return told, asked - told

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
        rows = execute("SELECT id, hash, role, experiment, expires, revoked FROM reticent_tokens", [])
        return [Token(*row) for row in rows]

    @staticmethod
    def add_token(execute: Execute, one: Token) -> None:
        """A new one."""
        values: list[Any] = [one.id, one.hash, one.role, one.experiment, one.expires, one.revoked]
        execute(
            "INSERT INTO reticent_tokens (id, hash, role, experiment, expires, revoked) VALUES (?, ?, ?, ?, ?, ?)",
            values,
        )

    @staticmethod
    def revoke(execute: Execute, id_: str, experiment: str) -> bool:
        """End a client's token; False if the experiment has no such token."""
        if not execute("SELECT 1 FROM reticent_tokens WHERE id = ? AND experiment = ?", [id_, experiment]):
            return False
        execute("UPDATE reticent_tokens SET revoked = 1 WHERE id = ?", [id_])
        return True

    def alone(self) -> contextlib.AbstractContextManager[None]:
        """Hold the database for one server: two that go on from the same state would draw different noise for the same sums."""
        return database.held_alone(self.url)


def now() -> int:
    """Seconds since 1970."""
    return int(time.time())
