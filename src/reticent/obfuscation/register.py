"""Register of obfuscated curves, in a ledger: one answer for each data set.

It is given again whenever it is asked for again. Five releases of one curve
with fresh noise say as much as one with a fifth of the noise, so there is one, or as many as were
planned, all drawn at once. A table beside the ledger's own holds, for each data set: its name, a
SHA-256 of the public question (inputs, kernel, sensitive points, promise), the *released* answer,
who and when, chained by hashes. It holds nothing of the raw curve, no noise and no key: whoever may
see all planned releases may read it. The same question finds the same answer, and reads no data;
another question about the same data set is refused.
"""

import hashlib
import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from reticent.errors import BadInput, BudgetExceeded, LedgerError
from reticent.privacy.ledger import connection as database
from reticent.privacy.ledger import tables
from reticent.privacy.ledger.ledger import Ledger, describe_user
from reticent.privacy.ledger.tables import CURVES, Execute

__all__ = ["recall", "recall_or", "remembered"]

_CREATE = (
    f"CREATE TABLE IF NOT EXISTS {CURVES} (\n"
    "    number BIGINT NOT NULL PRIMARY KEY, dataset TEXT NOT NULL UNIQUE, "
    "question TEXT NOT NULL, answer TEXT NOT NULL,\n"
    "    who TEXT NOT NULL, at TEXT NOT NULL, hash TEXT NOT NULL)"
)


def recall(url: str, dataset: str, question: str) -> Any:
    """Give the remembered answer to ``question``, none if the data set is new.

    Refuse what ``recall_or`` would refuse.
    """
    if not isinstance(dataset, str) or not 1 <= len(dataset) <= 200 or not dataset.isprintable():
        raise BadInput(
            "A data set's name is printable text of 1 to 200 characters on one "
            f"line, not {dataset!r}."
        )
    ledger = Ledger(url)
    with database.transaction(ledger.url) as execute:
        rows = []
        if database.has_table(ledger.url, execute, CURVES):
            rows = _verified_rows(execute, url)
        return _found(execute, rows, dataset, question)


def recall_or(url: str, dataset: str, question: str, draw: Callable[[], Any]) -> Any:
    """Give the remembered answer to ``question``; or draw one, remember it durably, and give it.

    ``question``: a text that says all that is public. ``draw``: draws the release; called at most
    once for a data set, ever. Two processes that ask at the same time get the same answer.
    """
    ledger = Ledger(url)
    with database.transaction(ledger.url, write=True) as execute:
        execute(_CREATE, [])
        database.append_only(ledger.url, execute, CURVES)
        rows = _verified_rows(execute, url)
        answer = _found(execute, rows, dataset, question)
        if answer is not None:
            return answer
        answer = draw()
        fields = [
            len(rows) + 1,
            dataset,
            _question_digest(question),
            json.dumps(answer),
            describe_user(),
            _now(),
        ]
        execute(
            f"INSERT INTO {CURVES} VALUES (?, ?, ?, ?, ?, ?, ?)",
            [*fields, _row_hash(rows[-1][-1] if rows else "", fields)],
        )
        return json.loads(json.dumps(answer))


def remembered(url: str) -> list[dict[str, Any]]:
    """Every curve that was released, oldest first.

    Data set, how many releases and values, who and when.
    """
    ledger = Ledger(url)
    with database.transaction(ledger.url) as execute:
        rows = []
        if database.has_table(ledger.url, execute, CURVES):
            rows = _verified_rows(execute, url)
    curves = []
    for _, dataset, question, answer, who, at, _ in rows:
        looks = json.loads(answer)["w"]
        size = {"releases": len(looks), "values": len(looks[0])}
        curves.append({"dataset": dataset, **size, "who": who, "when": at, "question": question})
    return curves


def _verified_rows(execute: Execute, url: str) -> list[tuple[Any, ...]]:
    rows = execute(
        f"SELECT number, dataset, question, answer, who, at, hash FROM {CURVES} ORDER BY number", []
    )
    before = ""
    for row in rows:
        if row[-1] != _row_hash(before, row[:-1]):
            raise LedgerError(
                f"Row {row[0]} of the curves in {Ledger(url)!r} does not fit: it or a row before "
                "it was altered or removed. Restore the ledger from a backup; until then no curve "
                "may be released from it."
            )
        before = row[-1]
    return rows


def _found(execute: Execute, rows: list[tuple[Any, ...]], dataset: str, question: str) -> Any:
    for _, name, asked, answer, _, when, _ in rows:
        if name == dataset and asked == _question_digest(question):
            return json.loads(answer)
        if name == dataset:
            raise BudgetExceeded(
                f"Data set {dataset!r} has been released on {when} with another question (other "
                "inputs, kernel, sensitive points, promise or number of releases; or by version "
                "0.1.0, whose noise was a variance). A second release would break the promise of "
                "the first: noise that differs can be averaged away. Ask as you did then to get "
                "the same release again. Nothing was read."
            )
    if execute(f"SELECT 1 FROM {tables.TABLE} WHERE dataset = ?", [dataset]):
        raise BudgetExceeded(
            f"Data set {dataset!r} has an account for differentially private releases in this "
            "ledger. An obfuscated curve promises something else, and the two do not add up: use "
            "another name if it is another data set, and release one of the two if it is not."
        )
    return None


def _question_digest(question: str) -> str:
    return hashlib.sha256(question.encode()).hexdigest()


def _row_hash(before: str, fields: Any) -> str:
    return hashlib.sha256(json.dumps([before, *fields]).encode()).hexdigest()


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
