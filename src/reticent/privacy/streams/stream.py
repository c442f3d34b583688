"""Streams: noisy sums of records that arrive one after another, released as they come.

Proof: stream.md.

A `Stream` is to such records what a curator is to a data set: it is paid for once, before the first
record; it keeps exact integer sums and no record; only noisy sums leave. In step t it has the sum
x_t of the records since the last release, and gives

    independent   x_t + noise, drawn anew; a record is in one step: one Gaussian release in all
    geometric     x_t + noise less ρ times that of the last step; sums over steps have less noise
    running       x_1 + … + x_t + correlated noise (binary tree, or a factorisation A = B·C of the
                  running sums)

See correlated_noise.py.
"""

import json
import math
import os
import secrets
import threading
from collections.abc import Mapping, Sequence
from fractions import Fraction
from hashlib import sha256
from math import sqrt
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from reticent.errors import BadInput, ReleaseRefused
from reticent.privacy.accounting.events import Gaussian, checked_event
from reticent.privacy.bounds import Bounds, checked_bounds
from reticent.privacy.guard import read_safely
from reticent.privacy.ledger.ledger import Ledger, check_account
from reticent.privacy.noise import Scale, check_exp, draw_noise, in_units, scale_at_least
from reticent.privacy.people.unit import PrivacyUnit
from reticent.privacy.process import check_process, identity
from reticent.privacy.random_bits import seeded_bits
from reticent.privacy.record_sum import BlockSum, try_out
from reticent.privacy.release import Release
from reticent.privacy.schema import by_position
from reticent.privacy.sources.cell_values import list_cells, numbers, plain_array
from reticent.privacy.sources.codes import code_rows
from reticent.privacy.statistics.base import Statistic
from reticent.privacy.statistics.enforced import Enforced, enforce
from reticent.privacy.statistics.exact_products import check_blas
from reticent.privacy.statistics.exact_sum import Total, one_blas_thread, pieces
from reticent.privacy.statistics.gram import EnforcedGram
from reticent.privacy.statistics.sum import EnforcedSum
from reticent.privacy.streams.correlated_noise import (
    Correlation,
    IndependentNoise,
    Integers,
    copied,
)
from reticent.privacy.streams.records_of_people import RecordsOfPeople
from reticent.validation import check_integer, is_integer

__all__ = ["Stream"]

_INDEPENDENT = IndependentNoise()
_FORMAT = 2  # of a state
_STATE = {
    "terms",
    "entry",
    "fit",
    "made",
    "rows",
    "total",
    "sum",
    "memory",
    "like",
    "asked",
    "people",
}


class Stream:
    """Adds up records as they arrive, and gives noisy sums away; keeps no record.

    Parameters
    ----------
    bounds, event, records_per_person, ledger, dataset, relation, what, seed
        As for a `Curator`. The event is that of the whole stream: one Gaussian release, in however
        many steps.
    person, contribution
        With ``person``, a word for whom `add` is told each record is of: the first ``contribution``
        records of a person count, and later ones add nothing. All records of one person are
        protected together, with ``contribution`` times the noise, and √2 times that for a Gram
        matrix, since neighbours' records may stand in other steps. (Records of somebody who may
        come again cannot be weighed by how many there will be.)
    correlation : Correlation
        What is released in a step, and how the steps' noise hangs together.
    steps : int
        How many releases there will be at most; `IndependentNoise` needs none.
    state : bytes, optional
        Go on from ``Stream.state``; nothing is charged, since that stream was. All other parameters
        must be those which that stream was paid and seeded with; with a ledger, the entry that paid
        for it must be in the account.

    Privacy
    -------
    The constructor charges before it returns. Whoever keeps a stream's state must write it down
    after a release *before* showing that release to anyone: a stream that goes on from an older
    state draws new noise for sums that were shown already.
    """

    def __init__(
        self,
        *,
        bounds: Bounds,
        event: Gaussian,
        correlation: Correlation = _INDEPENDENT,
        steps: int = 1,
        records_per_person: int = 1,
        person: str | None = None,
        contribution: int = 1,
        ledger: str | os.PathLike[str] | None = None,
        dataset: str | None = None,
        relation: str = "record",
        what: str = "",
        seed: bytes | None = None,
        state: bytes | None = None,
    ) -> None:
        if type(event) is not Gaussian or event.count != 1:
            raise BadInput(f"A stream is one Gaussian release, in however many steps, not {event}.")
        event = checked_event(event, Gaussian)
        correlation = copied(correlation)
        bounds = checked_bounds(bounds)
        if not (seed is None or isinstance(seed, bytes)):
            raise BadInput(
                "seed must be bytes, for tests, or None for a private release.", parameter="seed"
            )
        check_integer("steps", steps, 1, 2**62)
        unit = PrivacyUnit(relation, records_per_person, person, contribution)
        check_account(ledger, dataset)
        # int: the noise is made from products, and those of NumPy's integers would wrap around
        self.bounds, self._fields = by_position(bounds)
        self._event = event
        self._correlation = correlation
        self._steps = int(steps)
        self._unit = unit
        self._seed = seed
        self._process = identity()
        self._people = RecordsOfPeople(secrets.token_bytes(16), {})
        self._fit = secrets.token_hex(8)
        self.made = 0
        self.rows = 0
        self._lock = threading.Lock()
        self._total: Integers | int = 0  # of this step
        self._sum: Integers | int = 0  # of all steps before, if running sums are released
        self._memory: list[Integers] = []  # noise that later steps share
        self._memory_key = ""  # coordinates and correlation that the memory belongs to
        self._entry_hash: str | None = None  # of the ledger's entry that pays for this stream
        self._key: str | None = None  # of the statistic that is being added up
        self._enforced: Enforced | None = None  # its limits
        self._description: dict[str, Any] = {}
        check_blas()
        check_exp()
        if state is not None:
            self._restore(_parsed(state))
            if ledger is not None and dataset is not None:
                self._check_paid_from(Ledger(ledger), dataset)
        elif ledger is not None and dataset is not None:
            entry = Ledger(ledger).charge(
                dataset,
                event,
                **unit.for_account(),
                what=what,
            )
            self._entry_hash = entry.hash

    def _check_paid_from(self, ledger: Ledger, dataset: str) -> None:
        """Refuse a state whose charge is not in this account."""
        if self._entry_hash not in {entry.hash for entry in ledger.history(dataset)}:
            raise BadInput(
                "This state is of a stream that was not paid for from data set "
                f"{dataset!r} of that ledger. Give the account that paid, or begin another stream, "
                "which is charged."
            )

    def add(
        self,
        statistic: Statistic,
        records: NDArray[Any] | Sequence[object],
        *,
        coded: bool = False,
        person: Sequence[object] | NDArray[Any] | None = None,
    ) -> None:
        """Add raw records (inputs, then the output, one row each) to this step's sum.

        Nothing can fail for what is in them. Cells are read by the kinds of the bounds; with
        ``coded`` they are codes already (`codes.code_rows`). ``person``: whose each record is,
        where people are the unit; a record of nobody adds nothing.
        """
        if (person is None) != (self._unit.person is None):
            advice = "This stream protects records, and was paid for as such: leave person out."
            if person is None:
                advice = "This stream protects people: say whose each record is (person=...)."
            raise BadInput(advice, parameter="person")
        if person is not None and len(person) != len(records):
            raise BadInput(
                f"There are {len(records)} records, and {len(person)} people: give one each.",
                parameter="person",
            )
        with self._lock:
            enforced = self._enforced_once(statistic)
            if coded:
                width = len(self._fields)
            else:
                width = 1 + max(int(field.key) for field in self._fields)
            if isinstance(records, np.ndarray):
                table = plain_array(records)
            else:
                table = list_cells(records, width)
            if table.ndim != 2 or table.shape[1] != width:
                raise BadInput(
                    f"Records of this stream are rows of {width} numbers: inputs, then the output."
                )
            counted = table
            if person is not None:
                # First: interrupted here, a person's record is used up, and never counts twice.
                most = self._unit.contribution
                mask = read_safely(lambda: self._people.count(person, most), "Nothing was added.")
                counted = table[mask]
            added = read_safely(lambda: self._added(enforced, counted, coded), "Nothing was added.")
            rows = self.rows + len(records)
            total = self._total + added
            self.rows = rows  # with no call between the two: if interrupted, both or none
            self._total = total

    def _added(self, enforced: Enforced, records: NDArray[Any], coded: bool) -> Integers | int:
        """Return the exact sum over raw records, in grid steps; 0 without records."""
        if coded:
            cells = numbers(records)
        else:
            cells = code_rows(records, self._fields)
        block_sum = BlockSum(enforced, self.bounds)
        total = Total()
        with one_blas_thread():
            for piece in pieces(0, len(cells), enforced.block_rows):
                total.add(block_sum(cells[piece]), piece.stop - piece.start)
        if total.rows:
            return enforced.coordinates(total.integers())
        return 0

    def release(self, statistic: Statistic) -> Release:
        """Give away the sum of this step, or all sums up to it, with noise.

        The next step begins.
        """
        # A record that is added meanwhile is in this step or in the next, never in both.
        with self._lock:
            return self._released(statistic)

    def _released(self, statistic: Statistic) -> Release:
        check_process(self._process)
        if self._correlation.limited and self.made >= self._steps:
            raise ReleaseRefused(
                f"All {self._steps} steps that the noise was made for have been released."
            )
        enforced = self._enforced_once(statistic)
        step = self.made + 1
        mask = self._correlation.correlated_mask(enforced)
        noise, scale = draw_noise(
            "gaussian",
            self._scales(enforced, mask),
            enforced.size,
            enforced.step,
            seeded_bits(self._seed, b"step %d" % step),
        )
        noise = noise.astype(object)
        self._empty_memory_of_others(enforced, mask)
        description = {
            **self._description,
            "step": step,
            **self._correlation.description(self._memory),
        }
        scale[mask] *= self._correlation.relative_std(self._memory)
        # Only now: drawing may be interrupted, and what steps share follows their number.
        self.made = step
        noise[mask] = self._correlation.next(step, noise[mask], self._memory)
        exact = self._total + np.zeros(enforced.size, dtype=object)
        if self._correlation.running:
            exact = exact + self._sum
        check_process(self._process)  # again: a statistic may have forked meanwhile
        rows = self.rows
        # First: interrupted here, a step's records are lost, and never counted twice.
        self._total = 0
        self.rows = 0
        if self._correlation.running:
            self._sum = exact
        else:
            self._sum = 0
            self._key = None
            self._enforced = None
        return Release(
            statistic={**description, "records": rows},
            value=in_units(exact + noise, enforced.step),
            scale=scale,
            event=self._event,
            n=rows,
            bounds=self.bounds,
            private=self._seed is None,
            fit=self._fit,
            entry=self._entry_hash,
            **self._unit.to_dict(),
        )

    def _empty_memory_of_others(self, enforced: Enforced, mask: NDArray[np.bool_]) -> None:
        """Forget noise of other coordinates, or of another size: this step cannot share it."""
        multiplicity = enforced.coordinate_multiplicity()
        layout = sha256(mask.tobytes() + multiplicity.tobytes()).hexdigest()
        key = f"{self._correlation.name} {self._sensitivity2(enforced)} {layout}"
        if self._memory_key != key:
            self._memory = []
            self._memory_key = key

    def _enforced_once(self, statistic: Statistic) -> Enforced:
        """Return the limits that this step's records are held to.

        Within a step, and in all steps of running sums, one statistic is added up. It is asked for
        its numbers once, at the beginning. Another object may go on if it says the same of
        everything that limits, noise and releases depend on.
        """
        if self._enforced is not None and self._enforced.statistic is statistic:
            return self._enforced
        enforced = enforce(statistic)
        if not isinstance(enforced, (EnforcedSum, EnforcedGram)):
            raise ReleaseRefused("Only a Sum or a Gram statistic can be released step by step.")
        if self._unit.person is not None and getattr(enforced, "counts_records", False):
            raise ReleaseRefused(
                "A Sum that counts records cannot be released step by step where people are the "
                "unit: its count is free only for records that stay in their step."
            )
        description = enforced.describe()
        key = enforced.key(description)
        if self._key is not None and key != self._key:
            raise ReleaseRefused(
                "Another statistic was added up in this step: release that one first."
            )
        try_out(enforced, self.bounds)
        self._key = key
        self._enforced = enforced
        self._description = description
        return enforced

    def _scales(
        self, enforced: Enforced, mask: NDArray[np.bool_]
    ) -> list[tuple[NDArray[np.bool_], Scale]]:
        """Which coordinates have fresh noise of which scale, in grid steps."""
        sensitivity2 = self._sensitivity2(enforced) * self._records_that_count**2
        variance = Fraction(self._event.noise_multiplier) ** 2 * sensitivity2
        multiplicity = enforced.coordinate_multiplicity()
        scales = []
        for part, inflation in (
            (mask, self._correlation.sensitivity_inflation),
            (~mask, self._correlation.uncorrelated_sensitivity_inflation),
        ):
            for count in np.unique(multiplicity[part]):
                inflated = variance * inflation(self._steps, enforced.size, sensitivity2)
                scale = scale_at_least(inflated / int(count))
                scales.append((part & (multiplicity == count), scale))
        return scales

    def _sensitivity2(self, enforced: Enforced) -> int:
        """Squared distance of sums over all steps, for one record that counts.

        A record is replaced in its own step. Where people are the unit, the records that count may
        stand in other steps: one is taken away in one step, (‖p‖ ≤ length), and one is added in
        another, (2·length)².
        """
        if self._unit.person is None:
            return enforced.sensitivity2
        return 4 * enforced.contribution().l2_squared

    @property
    def _records_that_count(self) -> int:
        """How many records of one person may add something."""
        if self._unit.person is None:
            return self._unit.records_per_person
        return self._unit.contribution

    @property
    def unit(self) -> PrivacyUnit:
        """Who is protected."""
        return self._unit

    def scale(self, statistic: Statistic, echo: float = 0.0) -> NDArray[np.float64]:
        """Return the noise scales that a release of this statistic names, shape ``(size,)``.

        ``echo`` is how much of the last noise the release takes back.
        """
        enforced = enforce(statistic)
        mask = self._correlation.correlated_mask(enforced)
        scale = np.empty(enforced.size)
        for part, fresh in self._scales(enforced, mask):
            scale[part] = float(fresh.exact) * enforced.step
        scale[mask] *= sqrt(1 + echo**2)
        return scale

    def state(self) -> bytes:
        """All that is needed to go on elsewhere. TRUSTED: it holds exact sums and noise.

        Never to be shown.
        """
        with self._lock:
            return self._state()

    def _terms(self) -> dict[str, Any]:
        """Everything that the payment and the noise depend on.

        A state is good for a stream with the same terms alone.
        """
        coefficients = json.dumps(self._correlation.describe(), sort_keys=True)
        seed = None
        if self._seed is not None:
            seed = sha256(self._seed).hexdigest()
        return {
            "format": _FORMAT,
            "event": self._event.to_dict(),
            "correlation": sha256(coefficients.encode()).hexdigest(),
            "steps": self._steps,
            "bounds": self.bounds.to_dict(),
            "seed": seed,
            **self._unit.to_dict(),
        }

    def _state(self) -> bytes:
        fields = {
            "terms": self._terms(),
            "entry": self._entry_hash,
            "fit": self._fit,
            "made": self.made,
            "rows": self.rows,
            "total": _plain(self._total),
            "sum": _plain(self._sum),
            "memory": [_plain(noise) for noise in self._memory],
            "like": self._memory_key,
            "asked": self._key,
            "people": self._people.to_dict(),
        }
        return json.dumps(fields).encode()

    def _restore(self, fields: Mapping[str, Any]) -> None:
        self._check_terms(fields["terms"])
        self._entry_hash = fields["entry"]
        self._fit = fields["fit"]
        self.made = fields["made"]
        self.rows = fields["rows"]
        self._total = _integers(fields["total"])
        self._sum = _integers(fields["sum"])
        self._memory = [np.array(noise, dtype=object) for noise in fields["memory"]]
        self._memory_key = fields["like"]
        self._key = fields["asked"]
        self._people = RecordsOfPeople.from_dict(fields["people"])
        self._enforced = None

    def _check_terms(self, paid: Mapping[str, Any]) -> None:
        """Refuse to go on with other terms than those that were paid for."""
        own = json.loads(json.dumps(self._terms()))
        other = [name for name in own if name not in paid or own[name] != paid[name]]
        if not other and paid.keys() == own.keys():
            return
        if "format" in other:
            raise BadInput(
                "This state was written by another version of reticent, in a format that this one "
                "does not know: go on with that version, or begin another stream, which is charged."
            )
        raise BadInput(
            "This state was paid for with another "
            f"{' and another '.join(other) or 'set of terms'}: noise that was paid for holds for "
            "those terms only. Go on with the same, or begin another stream, which is charged."
        )

    def __repr__(self) -> str:
        return f"<Stream: {self.made} steps released>"

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "A stream holds exact sums and noise: it is never copied, pickled or sent. See "
            "Stream.state."
        )


def _parsed(state: bytes) -> dict[str, Any]:
    """A state as it was written, with the shapes and types that it must have."""
    try:
        fields = json.loads(state)
    except (RecursionError, TypeError, ValueError):
        fields = None
    # Version 0.1 wrote neither terms nor entry, and no version before this one counted people.
    added = {
        "terms": {},
        "entry": None,
        "people": RecordsOfPeople(b"", {}).to_dict(),
    }
    known = isinstance(fields, dict) and _STATE - added.keys() <= fields.keys() <= _STATE
    if known and ("terms" in fields) == ("entry" in fields):
        fields = added | fields
    if (
        not isinstance(fields, dict)
        or fields.keys() != _STATE
        or not isinstance(fields["terms"], dict)
    ):
        raise BadInput("This is not the state of a stream, as Stream.state gives it.")
    texts = isinstance(fields["fit"], str) and isinstance(fields["like"], str)
    optional = all(
        fields[name] is None or isinstance(fields[name], str) for name in ("entry", "asked")
    )
    counts = is_integer(fields["made"], 0) and is_integer(fields["rows"], 0)
    memory = fields["memory"]
    sums = isinstance(memory, list) and all(map(_is_sum, [fields["total"], fields["sum"], *memory]))
    people = RecordsOfPeople.is_stored(fields["people"])
    if not (texts and optional and counts and sums and people):
        raise BadInput(
            "The state of this stream was altered: go on from a copy of what Stream.state gave."
        )
    return fields


def _is_sum(numbers: object) -> bool:
    """Whether these are exact sums, in whole numbers: 0 before the first record, then a list."""
    if isinstance(numbers, list):
        return all(is_integer(number, -math.inf) for number in numbers)
    return type(numbers) is int and numbers == 0


def _plain(numbers: Integers | int) -> list[int] | int:
    """Exact sums as JSON values."""
    if isinstance(numbers, int):
        return numbers
    return [int(number) for number in numbers]


def _integers(numbers: list[int] | int) -> Integers | int:
    """Exact sums from JSON values."""
    if isinstance(numbers, int):
        return numbers
    return np.array(numbers, dtype=object)
