"""What a ledger remembers of obfuscated curves: one release for each data set, given again whenever it is asked for again.

Five releases of one curve with fresh noise say as much as one with a fifth of the noise, so there is one. A table beside
the ledger's
own holds, for each data set: its name, a SHA-256 of the public question (inputs, kernel, sensitive points, promise), the
*released* answer,
who and when, chained by hashes. It holds nothing of the raw curve, no noise and no key: whoever may see the release may
read it.
The same question finds the same answer, and reads no data; another question about the same data set is refused.
"""

import hashlib
import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from reticent.errors import BadInput, BudgetExceeded, LedgerError
from reticent.privacy import database
from reticent.privacy.database import Execute
from reticent.privacy.ledger import Ledger, describe_user

__all__ = ["recall_or", "recalled"]

_TABLE = "reticent_curves"
_CREATE = f"""CREATE TABLE IF NOT EXISTS {_TABLE} (
    number BIGINT NOT NULL PRIMARY KEY, dataset TEXT NOT NULL UNIQUE, question TEXT NOT NULL, answer TEXT NOT NULL,
    who TEXT NOT NULL, at TEXT NOT NULL, hash TEXT NOT NULL)"""


def recall_or(url: str, dataset: str, question: str, make: Callable[[], Any]) -> Any:
    """Give the remembered answer to ``question``; or make one, remember it durably, and give it.

    ``question``: a text that says all that is public. ``make``: draws the release; called at most once for a data set, ever.
    Two processes that ask at the same time get the same answer.
    """
    if not isinstance(dataset, str) or not 1 <= len(dataset) <= 200 or not dataset.isprintable():
        raise BadInput(f"A data set's name is printable text of 1 to 200 characters on one line, not {dataset!r}.")
    digest = hashlib.sha256(question.encode()).hexdigest()
    with database.transaction(Ledger(url).url, write=True) as execute:
        execute(_CREATE, [])
        rows = _rows(execute, url)
        for row in rows:
            if row[1] == dataset:
                return _answer(row, digest)
        if execute(f"SELECT 1 FROM {database.TABLE} WHERE dataset = ?", [dataset]):
            raise BudgetExceeded(
                f"Data set {dataset!r} has an account for differentially private releases in this ledger. An obfuscated "
                f"curve promises "
                "something else, and the two do not add up: use another name if it is another data set, and release one "
                "of the two if it is not."
            )
        answer = make()
        fields = [len(rows) + 1, dataset, digest, json.dumps(answer), describe_user(), _now()]
        execute(
            f"INSERT INTO {_TABLE} VALUES (?, ?, ?, ?, ?, ?, ?)", [*fields, _seal(rows[-1][-1] if rows else "", fields)]
        )
        return json.loads(json.dumps(answer))


def recalled(url: str, dataset: str) -> dict[str, str] | None:
    """When and by whom a curve was released, if one was."""
    with database.transaction(Ledger(url).url, write=True) as execute:
        execute(_CREATE, [])
        found = [row for row in _rows(execute, url) if row[1] == dataset]
    return {"question": found[0][2], "who": found[0][4], "at": found[0][5]} if found else None


def _rows(execute: Execute, url: str) -> list[tuple[Any, ...]]:
    rows = execute(f"SELECT number, dataset, question, answer, who, at, hash FROM {_TABLE} ORDER BY number", [])
    before = ""
    for row in rows:
        if row[-1] != _seal(before, row[:-1]):
            raise LedgerError(
                f"Row {row[0]} of the curves in {Ledger(url)!r} does not fit: it or a row before it was altered or "
                f"removed. Restore the "
                "ledger from a backup; until then no curve may be released from it."
            )
        before = row[-1]
    return rows


def _answer(row: tuple[Any, ...], digest: str) -> Any:
    if row[2] != digest:
        raise BudgetExceeded(
            f"Data set {row[1]!r} has been released on {row[5]} with another question (other inputs, kernel, sensitive "
            f"points or promise). "
            "A second release would break the promise of the first: noise that differs can be averaged away. Ask as you "
            "did then to get the "
            "same release again. Nothing was read."
        )
    return json.loads(row[3])


def _seal(before: str, fields: Any) -> str:
    return hashlib.sha256(json.dumps([before, *fields]).encode()).hexdigest()


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
