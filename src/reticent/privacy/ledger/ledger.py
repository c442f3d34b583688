"""Ledger: a cap for each data set that never changes, and an append-only history of charges.

A charge is one transaction: take the write lock, read every event of the data set, compose them all
with the new one exactly, refuse if that passes the cap, else append and make it durable. Only then
may a record be read. A run that fails after its charge stays charged; no crash can read without
paying.

All rows, of all data sets, form one chain: each holds the SHA-256 of its fields and of the hash
before it. Triggers keep honest programs from changing rows; every operation checks the chain first,
so that nothing is spent from a history that somebody changed who removed the triggers. Who cuts off
the end of the chain leaves a shorter, valid one, which the file beside a SQLite ledger tells
(anchor.py). Against somebody who replaces both by older ones, or cuts a PostgreSQL table: keep a
copy of the head elsewhere and give it to `Ledger.verify`. Proof: ledger.md.
"""

import getpass
import hashlib
import json
import math
import os
import socket
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from decimal import ROUND_FLOOR, Context
from fractions import Fraction
from typing import Any

from reticent.errors import BadInput, BudgetExceeded, LedgerError
from reticent.memo import memo
from reticent.privacy.accounting import composition
from reticent.privacy.accounting.events import (
    Event,
    Gaussian,
    Selection,
    event_from_dict,
    event_from_json,
    is_event,
)
from reticent.privacy.accounting.rounding import rounded_up
from reticent.privacy.ledger import connection as database
from reticent.privacy.ledger.tables import CURVES, TABLE, Execute
from reticent.privacy.people.unit import RELATIONS, REPLACE, PrivacyUnit
from reticent.validation import check_epsilon_delta

__all__ = ["RELATIONS", "Account", "Entry", "Ledger", "check_account", "describe_user"]

_FIRST = "0" * 64  # stands before the first row
_NEGLIGIBLE = 0.01  # of a cap: left over because noise is rounded to the safe side
_SELECT = f"SELECT number, kind, dataset, body, who, at, what, hash FROM {TABLE}"
# Versions of SciPy and dp_accounting differ in the last digits, which must not make a ledger look
# overspent.
_VERIFY_TOLERANCE = 1e-6

# Rows of a ledger that this process has found to fit together, and their data sets; see
# `Ledger._chain`.
_HASHED: dict[str, tuple[tuple[tuple[Any, ...], ...], frozenset[str]]] = {}
_HASHED_LEDGERS = 4
_MOST_USES = 10**9  # of one event


@dataclass(frozen=True)
class Account:
    """Account of a data set: its cap (ε, δ) and its unit, which never change.

    The unit: what is protected (a key of ``RELATIONS``), how many of it one person may have
    (``records_per_person``), the column that tells people apart (``person``), and whether
    neighbours replace a unit or add and remove one. ``within`` names the account that this one's
    cap is a part of, where both are about the same people.
    """

    number: int
    dataset: str
    relation: str
    records_per_person: int
    epsilon: float
    delta: float
    who: str
    opened: str
    hash: str
    person: str | None = None
    neighbours: str = REPLACE
    within: str | None = None

    @property
    def unit(self) -> PrivacyUnit:
        """Who is protected."""
        return PrivacyUnit(
            relation=self.relation,
            records_per_person=self.records_per_person,
            person=self.person,
            neighbours=self.neighbours,
        )


@dataclass(frozen=True)
class Entry:
    """Charge: the event and its unit (as in `Account`), who made it, when and what for.

    ``when`` is in UTC, ISO 8601.
    """

    number: int
    dataset: str
    event: Event
    relation: str
    records_per_person: int
    who: str
    when: str
    what: str
    hash: str
    person: str | None = None
    neighbours: str = REPLACE


class Ledger:
    """An account of privacy spending per data set, on a SQLite file or a PostgreSQL server.

    ``url`` is a path (``"budget.db"``), ``"sqlite:///budget.db"`` or
    ``"postgresql://user@host/database"``. The object holds nothing but the URL: copies, clones,
    pickles and forked processes spend from the same accounts.

    Privacy: what is stored is public (names, caps, events, who, when, what for); nothing depends on
    a record. `charge` returns only after the charge is durable. ``who`` is what the operating
    system says, not a proof of identity.

    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> ledger = Ledger(folder.name + "/budget.db")
    >>> account = ledger.open("people", epsilon=1, delta=1e-6)
    >>> entry = ledger.charge("people", Gaussian(noise_multiplier=10.0), what="mean age")
    >>> round(ledger.spent("people"), 3), round(ledger.remaining("people"), 3)
    (0.397, 0.9)
    >>> folder.cleanup()
    """

    def __init__(self, url: "str | os.PathLike[str] | Ledger") -> None:
        if isinstance(url, Ledger):
            self.url: str = url.url
        else:
            self.url = database.check_url(url)

    def __repr__(self) -> str:
        return f"Ledger({database.printable_url(self.url)!r})"

    def create(self) -> "Ledger":
        """Make an empty ledger if there is none.

        A place to remember obfuscated curves, which have no cap to open.
        """
        database.create(self.url)
        return self

    def open(
        self,
        dataset: str,
        epsilon: float,
        delta: float,
        *,
        relation: str = "record",
        records_per_person: int = 1,
        person: str | None = None,
        neighbours: str = REPLACE,
        within: str | None = None,
    ) -> Account:
        """Open an account with its cap and unit, and the ledger if there is none.

        Doing it again changes nothing. ``within`` names an account of the same people (a register
        that this is an extract of, for example): the whole cap is set aside from what is left
        there, so that all that is ever spent on these people stays below that account's cap. Parts
        are opened before anything is charged to that account itself, unless its δ is 0.
        """
        _check_text("dataset", dataset, least=1, most=200)
        asked = PrivacyUnit(relation, records_per_person, person, neighbours=neighbours)
        unit = asked.for_account()
        epsilon, delta = check_epsilon_delta(epsilon, delta, pure=True)
        database.create(self.url)
        with database.transaction(self.url, write=True) as execute:
            existing = [row for row in self._chain(execute) if row[2] == dataset]
            if existing:
                account = self._account(existing[0])
            else:
                self._refuse_curve(execute, dataset)
                cap = {"unit": unit, "epsilon": epsilon, "delta": delta}
                if within is not None:
                    self._check_room(execute, within, asked, epsilon, delta)
                    cap["within"] = within
                account = self._account(_append(execute, "open", dataset, _canonical(cap), ""))
        same_unit = account.unit.for_account() == unit and account.within == within
        if not same_unit or (account.epsilon, account.delta) != (epsilon, delta):
            raise LedgerError(
                f"Data set {dataset!r} of {self!r} is already open with ε = {account.epsilon:g}, δ "
                f"= {account.delta:g}, relation {account.relation!r}, for "
                f"{_whom(account.unit)}{_part_of(account.within)}; asked was ε = {epsilon:g}, δ = "
                f"{delta:g}, relation {relation!r}, for {_whom(asked)}{_part_of(within)}. Cap and "
                "unit never change, because they were promised to the people in the data. Spend "
                "under those that are there; records that are not in this data set get a data set "
                "of their own."
            )
        return account

    def charge(
        self,
        dataset: str,
        event: Event,
        *,
        relation: str = "record",
        records_per_person: int = 1,
        person: str | None = None,
        neighbours: str = REPLACE,
        what: str = "",
    ) -> Entry:
        """Spend ``event`` from the account, durably, or raise `BudgetExceeded` and spend nothing.

        ``relation``, ``records_per_person``, ``person`` and ``neighbours``: the unit that the noise
        of the event is made for. It must be the account's.
        """
        asked = PrivacyUnit(relation, records_per_person, person, neighbours=neighbours)
        unit = asked.for_account()
        _check_text("what", what, least=0, most=1000)
        body = _canonical({"event": _event_fields(event), "unit": unit})
        with database.transaction(self.url, write=True) as execute:
            account, rows = self._load(execute, dataset)
            if account.unit.for_account() != unit:
                raise LedgerError(self._another_unit(account, asked))
            events = self._composed(account, rows)
            own = self._without_parts(execute, account)
            total = composition.account_epsilon([*events, event], own.delta)
            if total <= own.epsilon:  # written so that a NaN is refused
                return self._entry(_append(execute, "charge", dataset, body, what), account)
        raise BudgetExceeded(_refusal(own, events, event, total))

    def spent(self, dataset: str) -> float:
        """Return ε at the cap's δ of everything charged so far, by exact composition.

        With the whole caps of accounts within this one.
        """
        account, own, events = self._events(dataset)
        parts = account.epsilon - own.epsilon
        return composition.account_epsilon(events, own.delta) + parts

    def remaining(self, dataset: str) -> float:
        """Return the largest ε that one more release, calibrated at the cap's δ, may spend.

        Rounded down.
        """
        _, own, events = self._events(dataset)
        return _left(own, events)

    def account(self, dataset: str) -> Account:
        """Return the account of a data set."""
        with database.transaction(self.url) as execute:
            return self._load(execute, dataset)[0]

    def history(self, dataset: str) -> list[Entry]:
        """Return every charge of a data set, oldest first."""
        with database.transaction(self.url) as execute:
            account, rows = self._load(execute, dataset)
        return [self._entry(row, account) for row in rows]

    def datasets(self) -> list[Account]:
        """Return all accounts, oldest first."""
        with database.transaction(self.url) as execute:
            return [self._account(row) for row in self._chain(execute) if row[1] == "open"]

    def verify(self, expected_head: str | None = None) -> str:
        """Recompute the whole chain and every total.

        Return the head hash, or name the first wrong row.

        ``expected_head``: a head returned earlier and kept elsewhere. It must still be in the
        chain, which shows that no row up to it was cut off.
        """
        with database.transaction(self.url) as execute:
            rows = self._chain(execute)
        heads = [_FIRST, *(row[-1] for row in rows)]
        accounts = [self._account(row) for row in rows if row[1] == "open"]
        charges: dict[str, list[tuple[Any, ...]]] = {account.dataset: [] for account in accounts}
        for row in rows:
            if row[1] == "charge":
                charges[row[2]].append(row)
        events = {
            account.dataset: self._composed(account, charges[account.dataset])
            for account in accounts
        }
        if expected_head is not None and expected_head not in heads:
            raise LedgerError(
                f"{self!r} has {len(rows)} rows that fit together, but the expected head "
                f"{expected_head!r} is not among their hashes: rows were cut off, or it is another "
                "ledger. Restore it from a backup that has this head."
            )
        for account in accounts:
            dataset = account.dataset
            own = _own_share(account, accounts)
            total = composition.account_epsilon(events[dataset], own.delta)
            if not total <= own.epsilon * (1 + _VERIFY_TOLERANCE):
                raise LedgerError(
                    f"Data set {dataset!r} of {self!r} is past its cap ({_cap(own)}): its "
                    f"events add up to ε = {rounded_up(total, 6):.6g}. Release nothing "
                    "more from it, and find out which program wrote its history."
                )
        return heads[-1]

    def _chain(self, execute: Execute) -> list[tuple[Any, ...]]:
        """Read all rows and check that they fit together.

        Nothing is told or spent from a history that was altered. Every row is read every time. Only
        hashing is spared, for rows that are, in every field and from the first row on, those that
        this process has hashed before.
        """
        rows = execute(f"{_SELECT} ORDER BY number", [])
        hashed, opened = _HASHED.get(self.url, ((), frozenset()))
        if rows[: len(hashed)] != list(hashed):
            hashed = ()
            opened = frozenset()
        position = len(hashed)
        names = set(opened)
        if hashed:
            head = hashed[-1][-1]
        else:
            head = _FIRST
        for row in rows[position:]:
            position += 1
            number, kind, dataset, *_, stored = row
            known = dataset in names
            if number != position or stored != _seal(head, row[:-1]) or (kind == "open") == known:
                raise self._altered(position)
            names.add(dataset)
            head = stored
        _HASHED[self.url] = tuple(rows), frozenset(names)
        while len(_HASHED) > _HASHED_LEDGERS:
            _HASHED.pop(next(iter(_HASHED)), None)
        return rows

    def _refuse_curve(self, execute: Execute, dataset: str) -> None:
        if database.has_table(self.url, execute, CURVES) and execute(
            f"SELECT 1 FROM {CURVES} WHERE dataset = ?", [dataset]
        ):
            raise BudgetExceeded(
                f"Data set {dataset!r} of {self!r} has been released as an obfuscated curve. That "
                "promises something else than differential privacy, and the two do not add up: "
                "open an account under another name if it is another data set, and release nothing "
                "more if it is not. No account was opened."
            )

    def _events(self, dataset: str) -> tuple[Account, Account, list[Event]]:
        """The account, the same without what is set aside for accounts within it, its events."""
        with database.transaction(self.url) as execute:
            account, rows = self._load(execute, dataset)
            own = self._without_parts(execute, account)
        return account, own, self._composed(account, rows)

    def _without_parts(self, execute: Execute, account: Account) -> Account:
        """The account with the cap that is left beside the caps of accounts within it."""
        accounts = [self._account(row) for row in self._chain(execute) if row[1] == "open"]
        return _own_share(account, accounts)

    def _check_room(
        self, execute: Execute, within: str, asked: PrivacyUnit, epsilon: float, delta: float
    ) -> None:
        """Refuse a part that the account it is to be within has no room for."""
        whole, rows = self._load(execute, within)
        if whole.unit.for_account() != asked.for_account():
            raise LedgerError(self._another_unit(whole, asked))
        if rows and whole.delta > 0:  # the division would be made in view of what it has paid for
            raise BudgetExceeded(
                f"Something was charged to data set {within!r} of {self!r} itself already, and "
                "what was learned by it could decide how the rest is divided: no cap holds for "
                "that. Open all parts before the first charge to the whole. No account was opened."
            )
        own = self._without_parts(execute, whole)
        left = _minus(own, epsilon, delta)
        total = math.inf
        if left.delta >= 0:
            total = composition.account_epsilon(self._composed(whole, rows), left.delta)
        if not total <= left.epsilon:
            raise BudgetExceeded(
                f"Data set {within!r} of {self!r} has a cap of {_cap(whole)}, of which ε = "
                f"{max(own.epsilon, 0):.6g}, δ = {max(own.delta, 0):.2g} is not set aside for "
                f"other accounts within it; with a part of ε = {epsilon:g}, δ = {delta:g}, what "
                "was charged to it before would not fit. Open the part with less. No account was "
                "opened."
            )

    def _load(self, execute: Execute, dataset: str) -> tuple[Account, list[tuple[Any, ...]]]:
        """The account of a data set, and the rows of its charges, oldest first."""
        _check_text("dataset", dataset, least=1, most=200)
        chain = self._chain(execute)
        rows = [row for row in chain if row[2] == dataset]
        if not rows:
            raise self._no_account(dataset, [row[2] for row in chain if row[1] == "open"])
        return self._account(rows[0]), rows[1:]

    def _composed(self, account: Account, rows: Sequence[Sequence[Any]]) -> list[Event]:
        """Return the events of these charges, in the order in which each was first charged.

        Equal ones as one event.
        """
        events: list[Event] = []
        first = {row[3]: row for row in reversed(rows)}
        for body, uses in Counter(row[3] for row in rows).items():
            event = self._entry(first[body], account).event
            if event.count * uses <= _MOST_USES:
                events.append(replace(event, count=event.count * uses))
            else:
                events += [event] * uses
        return events

    def _account(self, row: Sequence[Any]) -> Account:
        number, kind, dataset, body, who, at, _, sha = row
        try:
            cap = json.loads(body)
            epsilon, delta = check_epsilon_delta(cap["epsilon"], cap["delta"], pure=True)
            # format 1 had no number of records per person: its accounts were for single records
            if "unit" in cap:
                unit = cap["unit"]
            else:
                unit = {"relation": cap["relation"], "records_per_person": 1}
            if kind == "open" and unit == PrivacyUnit(**unit).for_account():
                return Account(
                    number=number,
                    dataset=dataset,
                    within=_within(cap),
                    **unit,
                    epsilon=epsilon,
                    delta=delta,
                    who=who,
                    opened=at,
                    hash=sha,
                )
        except (TypeError, ValueError, KeyError):
            pass
        raise self._altered(number)

    def _entry(self, row: Sequence[Any], account: Account) -> Entry:
        number, kind, dataset, body, who, at, what, sha = row
        try:
            event, unit = _charged(body)
            if kind == "charge" and unit in (None, account.unit.for_account()):
                return Entry(
                    number=number,
                    dataset=dataset,
                    event=event,
                    **account.unit.for_account(),
                    who=who,
                    when=at,
                    what=what,
                    hash=sha,
                )
        except (TypeError, ValueError, KeyError):
            pass
        raise self._altered(number)

    def _no_account(self, dataset: str, known: Sequence[str]) -> LedgerError:
        names = "It has none yet."
        if known:
            names = f"It has: {', '.join(map(repr, known[:10]))}."
        url = database.printable_url(self.url)
        return LedgerError(
            f"{self!r} has no account for data set {dataset!r}. {names} Check the name, or "
            f"give the data set its cap, once: reticent ledger open {url} {dataset} --epsilon "
            "3 --delta 1e-5"
        )

    def _another_unit(self, account: Account, asked: PrivacyUnit) -> str:
        opened = f"Data set {account.dataset!r} of {self!r} is open for"
        relation = asked.relation
        if account.relation != relation:
            return (
                f"{opened} relation {account.relation!r} ({RELATIONS[account.relation]}), and this "
                f"charge is for {relation!r} ({RELATIONS[relation]}). The two do not add up. A fit "
                "that protects labels gives the inputs away, and with them what was promised to "
                "whole records: for the same people, stay with one of the two; for other people, "
                "open an account under another name. Nothing was read and nothing was charged."
            )
        return (
            f"{opened} {_whom(account.unit)}, and this charge is for {_whom(asked)}. The two do "
            "not add up: what is promised to single records is not promised to people who have "
            "several, people in one column may be others than those in another, and a number of "
            "people that is public under one promise is protected under the other. Fit with "
            f"{_as_opened(account.unit)}, as the account was opened; for other people, open an "
            "account under another name. Nothing was read and nothing was charged."
        )

    def _altered(self, number: int) -> LedgerError:
        return LedgerError(
            f"Row {number} of {self!r} does not fit: it or a row before it was altered, removed or "
            "moved, or written by a newer reticent. Upgrade reticent, or restore the ledger from a "
            "backup. Until then nothing may be spent from it."
        )


def _within(cap: dict[str, Any]) -> str | None:
    """The account that a stored cap is a part of."""
    name = cap.get("within")
    if name is None or isinstance(name, str):
        return name
    raise ValueError("not the name of an account")


def _part_of(within: str | None) -> str:
    if within is None:
        return ""
    return f", within {within!r}"


def _own_share(account: Account, accounts: Sequence[Account]) -> Account:
    """The account without what is set aside for accounts within it, of all that there are."""
    for part in accounts:
        if part.within == account.dataset:
            account = _minus(account, part.epsilon, part.delta)
    return account


def _minus(account: Account, epsilon: float, delta: float) -> Account:
    """The account with a smaller cap, each number rounded down."""
    return replace(
        account,
        epsilon=_difference(account.epsilon, epsilon),
        delta=_difference(account.delta, delta),
    )


def _difference(whole: float, part: float) -> float:
    """whole − part, exact or rounded down."""
    exact = Fraction(whole) - Fraction(part)
    rounded = float(exact)
    if Fraction(rounded) > exact:
        return math.nextafter(rounded, -math.inf)
    return rounded


def _whom(unit: PrivacyUnit) -> str:
    """Whom an account or a charge is for, in words."""
    number = ""
    if not unit.number_is_public:
        number = ", their number protected too (neighbours = 'add-remove')"
    k = unit.records_per_person
    if unit.person is not None:
        return f"people with all of their records (person = {unit.person!r}){number}"
    if k == 1:
        return f"people with one record each (records_per_person = 1){number}"
    return f"people with up to {k} records each (records_per_person = {k}){number}"


def _as_opened(unit: PrivacyUnit) -> str:
    """The parameters of a fit that an account is for; the command line writes them as options."""
    parameters = [f"records_per_person={unit.records_per_person}"]
    if unit.person is not None:
        parameters = [f"person={unit.person!r}"]
    parameters.append(f"neighbours={unit.neighbours!r}")
    return " and ".join(parameters)


def _check_text(name: str, text: object, *, least: int, most: int) -> None:
    if not isinstance(text, str) or not least <= len(text) <= most or not text.isprintable():
        raise BadInput(
            f"{name} must be printable text of {least} to {most} characters on one line, not "
            f"{text!r}.",
            parameter=name,
        )


def _event_fields(event: object) -> dict[str, Any]:
    try:
        fields: dict[str, Any] = event.to_dict()  # type: ignore[attr-defined]
        if is_event(event) and event_from_json(_canonical(fields)) == event:
            return fields
    except (AttributeError, TypeError, ValueError):
        pass
    raise BadInput(
        f"Only an Event can be charged, such as Gaussian(noise_multiplier=4.0), not {event!r}."
    )


@memo(1024)
def _charged(body: str) -> tuple[Event, dict[str, Any] | None]:
    """The event in the text of a charge, and its unit.

    None in format 1, where it is the account's.
    """
    charge = json.loads(body)
    if "event" in charge:
        return event_from_dict(charge["event"]), dict(charge["unit"])
    return event_from_dict(charge), None


def _canonical(fields: object) -> str:
    return json.dumps(fields, sort_keys=True, separators=(",", ":"))


def _seal(previous: str, fields: Sequence[object]) -> str:
    return hashlib.sha256(json.dumps([previous, *fields], default=repr).encode()).hexdigest()


def _append(execute: Execute, kind: str, dataset: str, body: str, what: str) -> tuple[Any, ...]:
    last = execute(f"SELECT number, hash FROM {TABLE} ORDER BY number DESC LIMIT 1", [])
    number, previous = 0, _FIRST
    if last:
        number, previous = last[0]
    fields = (
        number + 1,
        kind,
        dataset,
        body,
        describe_user(),
        datetime.now(UTC).isoformat(timespec="seconds"),
        what,
    )
    row = (*fields, _seal(previous, fields))
    execute(f"INSERT INTO {TABLE} VALUES (?, ?, ?, ?, ?, ?, ?, ?)", row)
    return row


def check_account(ledger: str | os.PathLike[str] | None, dataset: str | None) -> None:
    """Refuse a ledger without a data set, and the other way round."""
    if (ledger is None) != (dataset is None):
        raise BadInput(
            "Give both ledger and dataset, or neither: a charge needs an account to go to."
        )


def describe_user() -> str:
    """Return user and machine, as the operating system says: no proof of identity."""
    try:
        user = getpass.getuser()
    except (ImportError, KeyError, OSError):  # a container may run under a number that has no name
        if hasattr(os, "getuid"):
            user = f"uid {os.getuid()}"
        else:
            user = "unknown"
    return "".join(c if c.isprintable() else "?" for c in f"{user}@{socket.gethostname()}")[:200]


def _cap(account: Account) -> str:
    cap = f"ε = {account.epsilon:g}, δ = {account.delta:g}, relation {account.relation!r}"
    if account.records_per_person > 1:
        cap = f"{cap}, records_per_person = {account.records_per_person}"
    if account.person is not None:
        cap = f"{cap}, person = {account.person!r}"
    if account.neighbours != REPLACE:
        cap = f"{cap}, neighbours = {account.neighbours!r}"
    return cap


def _left(account: Account, events: Sequence[Event]) -> float:
    """The largest ε that one more release may spend; nothing where all is set aside."""
    if account.epsilon <= 0:
        return 0.0
    return composition.remaining_epsilon(events, account.epsilon, account.delta)


def _refusal(account: Account, events: Sequence[Event], event: Event, total: float) -> str:
    left = _left(account, events)
    rounded_down = Context(prec=6, rounding=ROUND_FLOOR).create_decimal(left).normalize()
    advice = "Its budget is used up"
    if left:
        advice += f": the ε = {rounded_down:.2g} that is left is next to nothing"
    if left >= _NEGLIGIBLE * account.epsilon:
        advice = f"Ask for at most epsilon = {rounded_down:f}"
        if account.delta:
            advice += f" with delta = {account.delta:g}"
        advice += " in one release"
    kinds = {type(charged) for charged in [*events, event]}
    if account.delta and Gaussian in kinds and len(kinds) > 1 and Selection not in kinds:
        advice += (
            ". Gaussian and pure events in one account are counted conservatively: give one kind a "
            "data set name of its own, with a cap that adds to this one's"
        )
    if isinstance(event, Selection) and events and not isinstance(events[0], Selection):
        advice = (
            "A search must be charged before anything else in its account: give it a data set name "
            "of its own, with a cap that adds to this one's"
        )
    if account.delta == 0 and isinstance(event, (Gaussian, Selection)):
        advice = "A cap with δ = 0 admits no Gaussian noise: use a mechanism with pure ε"
    at_delta = ""
    if account.delta:
        at_delta = " at the cap's δ"
    after = "no ε would hold"
    if total < math.inf:
        after = f"it would be ε = {rounded_up(total, 6):.6g}{at_delta}"
    spent = rounded_up(composition.account_epsilon(events, account.delta), 6)
    return (
        f"Refused: data set {account.dataset!r} has a cap of {_cap(account)}. Spent so far: ε = "
        f"{spent:.6g}{at_delta}; with {event} {after}. "
        f"{advice}. Nothing was read and nothing was charged; a cap never changes."
    )
