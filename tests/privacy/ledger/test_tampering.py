"""History is append-only.

The database refuses changes, and `verify` finds those of somebody who forced them.
"""

import contextlib
import json
import sqlite3

import psycopg
import pytest

from reticent.errors import LedgerError
from reticent.privacy.accounting.composition import epsilon
from reticent.privacy.accounting.events import Gaussian
from reticent.privacy.ledger import connection as database
from reticent.privacy.ledger.ledger import Ledger, _append, _seal
from reticent.privacy.ledger.tables import TABLE

EVENT = Gaussian(noise_multiplier=20.0)


@pytest.fixture
def ledger(url):
    return six_rows(url)


def six_rows(url):
    """Rows 1: people, 2: a charge, 3: others, 4–6: charges."""
    ledger = Ledger(url)
    ledger.open("people", 1.0, 1e-6)
    ledger.charge("people", EVENT, what="first")
    ledger.open("others", 1.0, 1e-6)
    for dataset in ("people", "others", "people"):
        ledger.charge(dataset, EVENT)
    return ledger


def run(url, *statements):
    """Execute SQL behind the ledger's back; return the rows of the last statement."""
    if url.startswith("postgresql"):
        with psycopg.connect(url) as connection:
            for statement in statements:
                cursor = connection.execute(statement)
            return cursor.fetchall() if cursor.description else []
    with contextlib.closing(sqlite3.connect(url)) as connection, connection:
        for statement in statements:
            cursor = connection.execute(statement)
        return cursor.fetchall()


def force(url, *statements):
    """Do the same without the triggers, and with a head beside the file that fits.

    Who may write one may write both.
    """
    if url.startswith("postgresql"):
        run(url, f"ALTER TABLE {TABLE} DISABLE TRIGGER ALL", *statements)
    else:
        triggers = [
            name for (name,) in run(url, "SELECT name FROM sqlite_master WHERE type = 'trigger'")
        ]
        assert len(triggers) == 3
        run(url, *[f"DROP TRIGGER {name}" for name in triggers], *statements)
        anchor_last_row(url)


def anchor_last_row(url):
    [(number, last)] = run(url, f"SELECT number, hash FROM {TABLE} ORDER BY number DESC LIMIT 1")
    with open(f"{url}-head", "a") as file:
        file.write(f"{number} {last} 0 {'0' * 64}\n")


def test_the_database_itself_refuses_changes(ledger):
    head = ledger.verify()
    attempts = [f"UPDATE {TABLE} SET what = 'x' WHERE number = 2", f"DELETE FROM {TABLE}"]
    if ledger.url.startswith("postgresql"):
        overwrite = (
            f"INSERT INTO {TABLE} SELECT * FROM {TABLE} ON CONFLICT (number) "
            "DO UPDATE SET what = 'x'"
        )
        attempts += [f"TRUNCATE {TABLE}", overwrite]
    else:
        columns = "kind, dataset, body, who, at, 'x', hash"
        attempts += [
            f"INSERT OR REPLACE INTO {TABLE} SELECT number, {columns} FROM "
            f"{TABLE} WHERE number = 2",
            f"INSERT OR REPLACE INTO {TABLE} SELECT 7, {columns} FROM {TABLE} WHERE number = 1",
        ]
    for attempt in attempts:
        with pytest.raises((sqlite3.Error, psycopg.Error), match="append-only"):
            run(ledger.url, attempt)
    assert ledger.verify() == head


@pytest.mark.parametrize(
    ("row", "change"),
    [
        (2, "body = replace(body, '20.0', '90.0')"),
        (2, "dataset = 'others'"),
        (2, "who = 'somebody@else'"),
        (2, "at = '2001-01-01T00:00:00+00:00'"),
        (2, "what = ''"),
        (1, "body = replace(body, '1.0', '9.0')"),
        (3, "body = replace(body, 'record', 'label')"),
        (4, "kind = 'open', dataset = 'new'"),
        (5, "hash = '" + "0" * 64 + "'"),
        (6, "body = 'not JSON'"),
        (6, "number = 7"),
    ],
)
def test_an_edited_row_is_found(ledger, row, change):
    force(ledger.url, f"UPDATE {TABLE} SET {change} WHERE number = {row}")
    with pytest.raises(LedgerError, match=f"Row {row} of .* does not fit"):
        ledger.verify()


def test_a_deleted_row_is_found(ledger):
    force(ledger.url, f"DELETE FROM {TABLE} WHERE number = 2")
    with pytest.raises(LedgerError, match="Row 2 of"):
        ledger.verify()


def test_a_deleted_row_is_found_even_if_the_rest_is_renumbered(ledger):
    moves = [f"UPDATE {TABLE} SET number = {n - 1} WHERE number = {n}" for n in (3, 4, 5, 6)]
    force(ledger.url, f"DELETE FROM {TABLE} WHERE number = 2", *moves)
    with pytest.raises(LedgerError, match="Row 2 of"):
        ledger.verify()


def test_reordered_rows_are_found(ledger):
    swap = [
        f"UPDATE {TABLE} SET number = {new} WHERE number = {old}"
        for old, new in ((4, 99), (5, 4), (99, 5))
    ]
    force(ledger.url, *swap)
    with pytest.raises(LedgerError, match="Row 4 of"):
        ledger.verify()


def test_a_truncated_tail_is_found_by_the_head(ledger):
    head = ledger.verify()
    ledger.charge("people", EVENT)
    assert ledger.verify(expected_head=head) == ledger.history("people")[-1].hash
    force(ledger.url, f"DELETE FROM {TABLE} WHERE number >= 6")
    ledger.verify()  # a shorter chain is a valid chain
    with pytest.raises(LedgerError, match="5 rows that fit together, but the expected head"):
        ledger.verify(expected_head=head)


def test_a_row_with_a_hash_made_to_fit_is_found_by_the_next(ledger):
    forge(ledger.url, 2, body=Gaussian(noise_multiplier=90.0).to_json())
    with pytest.raises(LedgerError, match="Row 3 of"):
        ledger.verify()


def test_a_forged_chain_past_its_cap_is_found(ledger):
    forge(ledger.url, 6, body=Gaussian(noise_multiplier=1.0).to_json())
    with pytest.raises(LedgerError, match=r"'people' of .* is past its cap"):
        ledger.verify()


def test_a_charge_that_cannot_be_understood_stops_all_spending(ledger):
    force(
        ledger.url,
        f"UPDATE {TABLE} SET body = '{json.dumps({'kind': 'new', 'count': 1})}' WHERE number = 2",
    )
    for use in (ledger.spent, ledger.remaining, ledger.history, lambda d: ledger.charge(d, EVENT)):
        with pytest.raises(LedgerError, match=r"Row 2 of .* newer"):
            use("people")
    force_cap = f"UPDATE {TABLE} SET body = '[]' WHERE number = 3"
    run(ledger.url, force_cap)
    for use in (ledger.spent, lambda d: ledger.open(d, 1.0, 1e-6), lambda d: ledger.datasets()):
        with pytest.raises(LedgerError, match="Row 2 of"):  # whichever account it belongs to
            use("others")


def test_a_kind_of_event_from_a_newer_version_stops_all_spending(ledger):
    forge(ledger.url, 6, body=json.dumps({"kind": "new", "count": 1}))
    for use in (
        ledger.spent,
        ledger.history,
        lambda d: ledger.charge(d, EVENT),
        lambda d: ledger.verify(),
    ):
        with pytest.raises(LedgerError, match=r"Row 6 of .* newer"):
            use("people")


def forge(url, number, *, body):
    """Replace the body of a row, and its hash by the right one."""
    columns = "number, kind, dataset, body, who, at, what, hash"
    before, row = run(
        url,
        f"SELECT {columns} FROM {TABLE} WHERE number IN ({number - 1}, {number}) ORDER BY number",
    )
    fields = (*row[:3], body, *row[4:7])
    force(
        url,
        f"UPDATE {TABLE} SET body = '{body}', hash = "
        f"'{_seal(before[-1], fields)}' WHERE number = {number}",
    )


@pytest.mark.parametrize(
    "cap",
    [
        [],
        {},
        {"relation": "record", "epsilon": 1.0},
        {"relation": "nobody", "epsilon": 1.0, "delta": 1e-6},
        {"relation": "record", "epsilon": -1.0, "delta": 1e-6},
    ],
    ids=str,
)
def test_a_cap_that_makes_no_sense_stops_all_spending(ledger, cap):
    ledger.open("last", 1.0, 1e-6)
    number = ledger.account("last").number
    forge(ledger.url, number, body=json.dumps(cap))
    for use in (ledger.spent, lambda d: ledger.charge(d, EVENT), lambda d: ledger.verify()):
        with pytest.raises(LedgerError, match=f"Row {number} of"):
            use("last")


@pytest.mark.parametrize(("less", "found"), [(0.0, False), (0.9e-6, False), (1.2e-6, True)])
def test_a_total_may_pass_the_cap_by_a_millionth_and_no_more(tmp_path, less, found):
    """Versions of SciPy differ in the last digits; who spends more than that is found."""
    ledger = Ledger(tmp_path / "budget.db")
    ledger.open("other", 1.0, 1e-6)
    ledger.open("people", 1.0, 1e-6)
    cap = {"delta": 1e-6, "epsilon": epsilon(EVENT, 1e-6) * (1 - less), "relation": "record"}
    forge(ledger.url, 2, body=json.dumps(cap))
    with database.transaction(ledger.url, write=True) as execute:
        _append(execute, "charge", "people", EVENT.to_json(), "")
    if found:
        with pytest.raises(LedgerError, match=r"'people' of .* is past its cap"):
            ledger.verify()
    else:
        assert ledger.verify() == ledger.history("people")[0].hash


@pytest.mark.parametrize("row", [2, 5, 6])
def test_a_tail_cut_off_by_who_does_not_write_the_file_beside_it_is_found_at_once(tmp_path, row):
    ledger = six_rows(str(tmp_path / "budget.db"))
    run(ledger.url, f"DROP TRIGGER {TABLE}_no_delete", f"DELETE FROM {TABLE} WHERE number >= {row}")
    for use in (
        ledger.verify,
        ledger.datasets,
        lambda: ledger.spent("people"),
        lambda: ledger.charge("people", EVENT),
    ):
        with pytest.raises(
            LedgerError, match=r"row 6 of .*budget\.db-head, is not in it.*Restore both files"
        ):
            use()


def test_a_history_that_was_hashed_before_is_compared_with_in_every_field(ledger):
    """This process has hashed the rows; each field that is altered then is found all the same."""
    ledger.verify()
    for change in (
        "what = 'x'",
        "who = 'x'",
        "at = 'x'",
        "body = replace(body, '20.0', '90.0')",
        "dataset = 'others'",
    ):
        saved = run(
            ledger.url,
            "SELECT number, kind, dataset, body, who, at, what, hash FROM "
            f"{TABLE} WHERE number = 2",
        )
        names = ("number", "kind", "dataset", "body", "who", "at", "what", "hash")
        undo = ", ".join(
            f"{name} = '{value}'"
            for name, value in zip(names, saved[0], strict=True)
            if name != "number"
        )
        if not ledger.url.startswith("postgresql"):
            run(ledger.url, f"DROP TRIGGER IF EXISTS {TABLE}_no_update")
        else:
            run(ledger.url, f"ALTER TABLE {TABLE} DISABLE TRIGGER ALL")
        run(ledger.url, f"UPDATE {TABLE} SET {change} WHERE number = 2")
        with pytest.raises(LedgerError, match="Row 2 of"):
            ledger.spent("people")
        run(ledger.url, f"UPDATE {TABLE} SET {undo} WHERE number = 2")
        ledger.spent("people")


def test_the_head_of_nothing_is_a_head(tmp_path):
    ledger = Ledger(tmp_path / "budget.db").create()
    assert ledger.verify() == ledger.verify(expected_head="0" * 64) == "0" * 64
    account = ledger.open("people", 1.0, 1e-6)
    assert (
        ledger.verify(expected_head="0" * 64)
        == ledger.verify(expected_head=account.hash)
        == account.hash
    )


@pytest.mark.parametrize(("kind", "dataset"), [("open", "people"), ("charge", "nobody")])
def test_a_second_cap_and_a_charge_without_one_are_found(tmp_path, kind, dataset):
    """Even with the right hash: one cap for each data set, and before all else."""
    ledger = Ledger(tmp_path / "budget.db")
    ledger.open("people", 1.0, 1e-6)
    body = (
        json.dumps({"delta": 1e-6, "epsilon": 9.0, "relation": "record"})
        if kind == "open"
        else EVENT.to_json()
    )
    run(ledger.url, f"DROP TRIGGER {TABLE}_no_replace", f"DROP INDEX {TABLE}_one_cap")
    with database.transaction(ledger.url, write=True) as execute:
        _append(execute, kind, dataset, body, "")
    for use in (
        ledger.verify,
        ledger.datasets,
        lambda: ledger.spent(dataset),
        lambda: ledger.charge("people", EVENT),
    ):
        with pytest.raises(LedgerError, match="Row 2 of"):
            use()


@pytest.mark.parametrize("there", [[], [(1,)]])
def test_a_table_on_a_server_gets_its_trigger_once(there):
    asked = []

    def execute(sql, values):
        asked.append(sql.split()[0])
        return there

    database.append_only("postgresql:///budget", execute, "reticent_curves")
    assert asked == ["SELECT", "CREATE"][: 2 - len(there)]


def test_a_password_that_the_server_repeats_is_not_shown(monkeypatch):
    def refuse(*args, **kwargs):
        raise psycopg.OperationalError("no entry for me with hunter2, try again")

    monkeypatch.setattr(psycopg, "connect", refuse)
    with pytest.raises(LedgerError, match=r"no entry for me with \*\*\*, try again") as error:
        Ledger("postgresql://me:hunter2@db/budget").spent("people")
    assert "hunter2" not in str(error.value)
