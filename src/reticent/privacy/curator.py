"""The curator: the only object that sees records, and only after they have been paid for.

    validate everything public → charge the ledger (durable) → read, add up, add noise → Release

A search (`choose`) makes many fits on two halves of the records and gives away the best one's
releases only (selection/private_selection.py).

A `Release` is the only thing that leaves. `Replay` answers like the curator from releases alone; a
model that cannot tell the two apart is post-processing, and a test holds every model to that, bit
for bit.
"""

import math
import os
import secrets
import threading
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from reticent.errors import BadInput, ReleaseRefused
from reticent.privacy.accounting.events import Event, Gaussian, Laplace, Selection, checked_event
from reticent.privacy.bounds import Bounds, checked_bounds
from reticent.privacy.guard import guarded_read, read_safely
from reticent.privacy.ledger.ledger import Ledger, check_account
from reticent.privacy.noise import (
    Scale,
    add_exactly,
    check_exp,
    draw_noise,
    in_units,
    scale_at_least,
)
from reticent.privacy.oracle import Choice, Design, Oracle, Run
from reticent.privacy.people.person_counts import PersonCounts
from reticent.privacy.people.unit import REPLACE, PrivacyUnit
from reticent.privacy.people.weight_columns import WeightColumns, weight_columns
from reticent.privacy.people.weights import ONE, RecordWeights
from reticent.privacy.process import available_cpus, check_process, identity
from reticent.privacy.random_bits import seeded_bits
from reticent.privacy.record_sum import RecordSum, try_out
from reticent.privacy.release import (
    COUNT_SHARE,
    NUMBER,
    Release,
    noise_multiplier,
    number_scale,
    number_sd,
)
from reticent.privacy.selection.exponential_mechanism import (
    Scores,
    check_scores,
    described,
    epsilon_of,
    exponents,
    pick,
)
from reticent.privacy.selection.private_selection import (
    Candidate,
    Paid,
    best_run,
    check_candidates,
    check_divisible,
    draw_runs,
    exceeds_memory,
    released_choice,
)
from reticent.privacy.selection.random_split import RecordSplit, SubsetReadAgain, split_records
from reticent.privacy.sources.base import Field, Source
from reticent.privacy.statistics.base import Statistic
from reticent.privacy.statistics.cell_sum import CellSum
from reticent.privacy.statistics.counts import Counts
from reticent.privacy.statistics.enforced import Enforced, enforce
from reticent.privacy.statistics.exact_products import check_blas
from reticent.privacy.statistics.feature_cache import FeatureCache
from reticent.validation import check_integer

__all__ = ["Candidate", "Choice", "Curator", "Oracle", "Release", "Scores"]


class Curator:
    """Holds records and a paid event.

    Answers ``release`` as often as was paid for, and nothing else.

    Parameters
    ----------
    source : Source
    bounds : Bounds
    event : Gaussian, Laplace or Selection
        What is paid for: ``event.count`` releases may be asked for, or with a Selection one choice.
    targets : bool
        Whether records have outputs (y or classes) besides inputs.
    records_per_person, person, contribution, neighbours, weight, weight_bound
        Who is protected, and how much each record counts: see `PrivacyUnit`. ``person`` and
        ``weight`` name columns of the source.
    ledger, dataset : str, optional
        Where to charge. Without a ledger nothing remembers the spending but the guarantee of this
        one fit.
    what : str
        What the ledger's history will say.
    relation : str
        What is protected: a key of ``unit.RELATIONS``. With "label" the inputs of the records are
        public.
    seed : bytes, optional
        Makes the noise repeatable and the release not private.
    candidates, validation
        For a Selection: what is chosen from, and the share of the records that candidates are
        judged by.
    look : function of the scaled inputs, optional
        With the relation "label", where inputs are public: sees them before anything is charged,
        and may refuse them.
    columns_of_weights : WeightColumns, optional
        Of the curator that this one is a side of, in a search: identifiers must be read alike.

    Privacy
    -------
    The constructor looks at names, dtypes and shapes only (and with ``look`` at public inputs), and
    charges before it returns. A failed release stays charged.
    """

    def __init__(
        self,
        source: Source,
        *,
        bounds: Bounds,
        event: Event,
        targets: bool = False,
        records_per_person: int = 1,
        person: str | None = None,
        contribution: int = 1,
        neighbours: str = REPLACE,
        weight: str | None = None,
        weight_bound: float | None = None,
        ledger: str | os.PathLike[str] | None = None,
        dataset: str | None = None,
        relation: str = "record",
        what: str = "",
        seed: bytes | None = None,
        candidates: Sequence[Candidate] = (),
        validation: float = 0.5,
        look: Callable[[NDArray[np.float64]], object] | None = None,
        columns_of_weights: WeightColumns | None = None,
    ) -> None:
        if not isinstance(event, (Gaussian, Laplace, Selection)) or (
            isinstance(event, Selection) and event.count > 1
        ):
            raise BadInput(
                "A curator releases with Gaussian or Laplace noise, or makes "
                f"one search, not {event}."
            )
        event = checked_event(event, Gaussian, Laplace, Selection)
        unit = PrivacyUnit(
            relation=relation,
            records_per_person=records_per_person,
            person=person,
            contribution=contribution,
            neighbours=neighbours,
            weight=weight,
            weight_bound=weight_bound,
        )
        self._unit = unit
        check_account(ledger, dataset)
        bounds = checked_bounds(bounds)
        source = bounds.shaped(source, targets=targets)
        self._weight_columns = columns_of_weights or weight_columns(source, unit)
        if self._weight_columns.unit != unit:
            raise BadInput("columns_of_weights are those of another unit of privacy.")
        source = source.with_apart(*(field.key for field in self._weight_columns.fields))
        self.bounds, self._fields = bounds.resolve(source, targets=targets)
        source.check(self._fields)
        if unit.relation == "label":
            _check_public(source, self._weight_columns, self._fields[len(self.bounds.x) :])
        if not source.ordered:
            _check_needs_no_order(unit, search=isinstance(event, Selection))
        if source.known_n == 0 and unit.number_is_public:
            raise BadInput(
                "There are no records: Found array with 0 sample(s) while a "
                "minimum of 1 is required."
            )
        self._candidates = tuple(candidates)
        self._validation = validation
        if isinstance(event, Selection):
            self._columns = check_candidates(
                self._candidates, event, source, targets=targets, unit=unit
            )
        check_blas()
        check_exp()
        self._threads = available_cpus()
        self._process = identity()
        self._inputs: NDArray[np.float64] | None = None
        self._public_weights: NDArray[np.float64] | None = None
        source = source.snapshot()
        # Of the ledger's entry that pays for everything released here.
        self._entry_hash: str | None = None
        try:
            if look is not None and unit.relation == "label":
                self._inputs = read_safely(
                    lambda: self._read_inputs(source), "Nothing was charged."
                )
                look(self._inputs)
            if ledger is not None and dataset is not None:
                entry = Ledger(ledger).charge(
                    dataset,
                    event,
                    **unit.for_account(),
                    what=what,
                )
                self._entry_hash = entry.hash
        except BaseException:
            source.close()
            raise
        # Paid. Only from here on may anything read a record.
        self._source: Source | None = source
        self._cache: FeatureCache | None = FeatureCache()
        self._event = event
        self._left = event.count
        self._made = 0
        self._targets = targets
        self._lock = threading.Lock()
        self._fit = secrets.token_hex(8)
        self._seed = seed
        self._weights: RecordWeights | None = None
        self._records: int | None = None  # how many were read; of no concern to anyone else
        self._n: int | None = None
        self._number_lock = threading.Lock()
        self._number_drawn = False
        self.releases: list[Release] = []

    @property
    def n(self) -> int:
        """Number of records, or of people where they are the unit.

        It is public, or released with noise before anything else (``neighbours="add-remove"``).
        """
        with self._number_lock:
            if self._n is None:
                self._n = self._number_of_units()
            return self._n

    def _number_of_units(self) -> int:
        """Count them, once: a number that is protected is released once, whoever asks."""
        if isinstance(self._event, Selection) and not self._unit.number_is_public:
            raise ReleaseRefused(
                "The number of units is protected, and a search releases that of either half "
                "alone, with the best run."
            )
        units = self._count_units()
        if not self._unit.number_is_public:
            return self._release_number(units)
        if units == 0:
            raise BadInput(
                f"There are no {self._unit.nouns} in the data. (This could not be "
                "known before: the charge stays.)"
            )
        return units

    def _count_units(self) -> int:
        """Number of records or people, exact; reads identifiers where people are the unit."""
        source = self._open_source()
        columns = self._weight_columns
        if columns.person:
            people = self._count_people()
            self._records = people.records
            self._weights = columns.weights(len(self._fields), people)
            return people.people
        self._records = source.known_n
        if self._records is None:
            self._records = self._count_records()
        self._weights = columns.weights(len(self._fields), None)
        return self._records

    def _release_number(self, units: int) -> int:
        """Release the number of records or people, where it is protected; at least 1."""
        check_process(self._process)
        if self._number_drawn:  # and was lost: an interrupt came before it was kept
            raise ReleaseRefused("The number of units was drawn before. The charge stays.")
        self._number_drawn = True
        unit = self._unit
        scale = scale_at_least(number_scale(self._event, unit))
        noise, sd = draw_noise(
            self._event.kind,
            [(np.ones(1, dtype=bool), scale)],
            1,
            1.0,
            seeded_bits(self._seed, b"number of units"),
        )
        value = in_units(add_exactly(np.array([units], dtype=object), noise), 1.0)
        number = max(1, round(float(value[0])))
        description = {"name": NUMBER, "kind": "sum", "size": 1, "unit": unit.noun}
        self._give(description, value, sd, 1, n=number)
        return number

    @property
    def n_sd(self) -> float:
        """Standard deviation of the noise in ``n``; 0 where the number is public."""
        if self._unit.number_is_public:
            return 0.0
        _ = self.n  # releases it
        return number_sd(self.releases[0])

    @property
    def unit(self) -> PrivacyUnit:
        """Who is protected, and how much each record counts."""
        return self._unit

    @property
    def event(self) -> Event:
        """What was paid for."""
        return self._event

    @property
    def noise_multiplier(self) -> float:
        """Noise of one release by the record's sensitivity (`Oracle.noise_multiplier`)."""
        return noise_multiplier(self._event, self._unit)

    def release(self, statistic: Statistic, *, shares_spent: int = 1) -> Release:
        """Add up ``statistic`` over the records, add noise once, and give it away.

        ``shares_spent``: how many of the releases that were paid for it uses up; Gaussian noise is
        then √shares_spent smaller.
        """
        if isinstance(self._event, Selection):
            raise ReleaseRefused(
                "This curator was paid for a search, which makes its own releases."
            )
        shares_spent = self._checked_shares(shares_spent)
        enforced = enforce(statistic)
        # What a release will tell is settled, and a map that fails refused, before a record is read
        # or a release is counted.
        description = enforced.describe()
        try_out(enforced, self.bounds)
        scales = self._scales(enforced, shares_spent)
        number = self._take(shares_spent)
        noisy, scale = self._add_noise(self._exact(enforced, number), enforced, scales, number)
        return self._give(description, noisy, scale, shares_spent)

    def select(
        self,
        statistic: CellSum | Counts,
        scores: Scores,
        *,
        shares_spent: int = 1,
        counts: NDArray[Any] | None = None,
    ) -> Release:
        """Choose one of some candidates by the exponential mechanism, and give its number away.

        Proof: selection/exponential_mechanism.md.

        ``scores``: of each candidate, as a public quadratic form of the sums by cell. ``counts``:
        where labels alone are protected, the public number of records in each cell.
        ``shares_spent``: how many of the releases that were paid for it uses up.
        """
        if not isinstance(self._event, Gaussian):
            raise ReleaseRefused(
                "A choice by score is paid for as Gaussian releases are: give delta > 0."
            )
        if counts is not None and self._unit.relation != "label":
            raise ReleaseRefused("How many records are in each cell is protected here.")
        if self._unit.weighted or not self._unit.number_is_public:
            raise ReleaseRefused(
                "A choice by score is proved for records of equal weight whose number is public: "
                "leave person, weight and neighbours out, or choose without scores."
            )
        shares_spent = self._checked_shares(shares_spent)
        enforced = enforce(statistic)
        check_scores(enforced, scores, counts)
        description = enforced.describe()
        try_out(enforced, self.bounds)
        number = self._take(shares_spent)
        bits = seeded_bits(self._seed, b"choice %d" % number)
        mu = math.sqrt(shares_spent) / self._event.noise_multiplier
        how: dict[str, Any] = {"n": self.n, "people": self._unit.records_per_person}
        how["counts"] = counts
        exact = self._exact(enforced, number)
        values, scale = exponents(enforced, scores, exact, **how, epsilon=epsilon_of(mu))
        return self._give(
            described(description, scores),
            np.array([float(pick(values, bits))]),
            np.array([scale]),
            shares_spent,
        )

    def _exact(self, enforced: Enforced, number: int) -> NDArray[Any]:
        """The sum of a counted release: each released number once, in Python's integers."""
        _ = self.n  # counts the records, and releases how many units there are if that is due
        records = self._records or 0
        rows, total = self._read_total(enforced, records, first=number == 1, more=self._left > 0)
        if rows != records:
            raise ReleaseRefused(
                "The number of records changed while they were read. Nothing "
                "is released; the charge stays."
            )
        return enforced.coordinates(total)

    @guarded_read("Nothing is released; the charge stays.")
    def _read_total(
        self, enforced: Enforced, n: int, *, first: bool, more: bool
    ) -> tuple[int, NDArray[Any]]:
        """Number of records, and the exact sum over them."""
        sums = RecordSum(
            self._open_source(),
            self._fields,
            self.bounds,
            self._threads,
            self._weights,
            self._weight_columns.fields,
        )
        if self._cache is None:
            return sums.total(enforced)
        return self._cache.total(sums, enforced, n=n, first=first, keep=more)

    @guarded_read("Nothing is released; the charge stays.")
    def _count_records(self) -> int:
        return self._open_source().count_read(self._columns_read(), threads=self._threads)

    @guarded_read("Nothing is released; the charge stays.")
    def _count_people(self) -> PersonCounts:
        columns = self._weight_columns
        source = self._open_source()
        fields = columns.person
        if source.prunes:  # so that people are counted in the records that are added up
            fields += tuple(one for one in self._columns_read() if one not in fields)
        return source.count_people(fields, columns.key)

    def _columns_read(self) -> tuple[Field, ...]:
        """Columns of a record that are added up, and those that decide its weight."""
        fields = self._fields
        if isinstance(self._event, Selection):
            fields = self._columns
        return tuple(dict.fromkeys(fields + self._weight_columns.fields))

    @guarded_read("Nothing is released; the charge stays.")
    def _read_public_inputs(self) -> NDArray[np.float64]:
        return self._read_inputs(self._open_source())

    @guarded_read("Nothing is released; the charge stays.")
    def _read_weighted_inputs(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Scaled inputs (n, d) and weights (n,), public where labels alone are protected; sorted.

        Both are read at once, so that they belong together in whatever order records come.
        """
        _ = self.n  # counts the records of each person
        people = None
        if self._weights is not None:
            people = self._weights.people
        columns = self._weight_columns
        bounds = self.bounds.inputs_alone()
        d = len(bounds.x)
        weights = columns.weights(d, people)
        assert weights is not None
        inputs = [np.zeros((0, d))]
        integers = [np.zeros(0, np.int64)]
        for raw in self._open_source().blocks((*self._fields[:d], *columns.fields)):
            inputs.append(bounds.scale(raw[:, :d]))
            integers.append(weights.integers(raw))
        table = np.vstack(inputs)
        whole = np.concatenate(integers)
        order = np.lexsort((whole, *table.view(np.uint64).T))
        return table[order], whole[order] / ONE

    @guarded_read("Nothing is released; the charge stays.")
    def _read_halves(
        self, columns: tuple[Field, ...], validation: NDArray[np.bool_], *, held: bool
    ) -> tuple[Source, Source]:
        people = None
        if self._weights is not None:
            people = self._weights.people
        source = self._open_source()
        split = RecordSplit(validation, people, self._weight_columns.person)
        if held:
            return split_records(source, columns, split)
        return SubsetReadAgain(source, split, False), SubsetReadAgain(source, split, True)

    def _open_source(self) -> Source:
        if self._source is None:
            raise ReleaseRefused("This curator has been closed.")
        return self._source

    def _give(
        self,
        description: dict[str, Any],
        value: NDArray[np.float64],
        scale: NDArray[np.float64],
        shares_spent: int,
        n: int | None = None,
    ) -> Release:
        check_process(self._process)  # again: a statistic may have forked while it was added up
        release = Release(
            statistic=description,
            value=value,
            scale=scale,
            event=self._event,
            n=self.n if n is None else n,
            bounds=self.bounds,
            private=self._seed is None,
            fit=self._fit,
            shares_spent=shares_spent,
            entry=self._entry_hash,
            **self._unit.to_dict(),
        )
        self.releases.append(release)
        return release

    def release_given_inputs(self, design: Design, *, shares_spent: int = 1) -> Release:
        """Release the statistic that ``design`` makes from all records' scaled inputs.

        Only where labels alone are protected, and all inputs are public: ``design`` sees them as
        they are, sorted. Whose a record is and what weight it states are public then, too: where
        records have weights, ``design`` is given them, from 0 to 1, as a second argument.
        """
        if self._unit.relation != "label":
            raise ReleaseRefused(
                "The inputs of the records are protected: nothing can be made "
                "from them but a release."
            )
        if self._unit.weighted:
            if self._public_weights is None:
                self._inputs, self._public_weights = self._read_weighted_inputs()
            statistic = design(self._inputs, self._public_weights)
        else:
            if self._inputs is None:
                self._inputs = self._read_public_inputs()
            statistic = design(self._inputs)
        return self.release(statistic, shares_spent=shares_spent)

    def _read_inputs(self, source: Source) -> NDArray[np.float64]:
        """Scaled inputs of all records, (n, d), sorted: labels may have a say in their order."""
        bounds = self.bounds.inputs_alone()
        blocks = [bounds.scale(block) for block in source.blocks(self._fields[: len(bounds.x)])]
        inputs = np.vstack([np.zeros((0, len(bounds.x))), *blocks])
        return inputs[np.lexsort(inputs.view(np.uint64).T)]

    def choose(self, run: Run) -> Choice:
        """Run ``run`` on candidates drawn at random, and give away the best of all runs alone.

        Which ones and how many is drawn before a record is read, and does not leave. A run that
        fails counts as the worst.
        """
        event = self._event
        if not isinstance(event, Selection):
            raise ReleaseRefused("This curator was not paid for a search.")
        self._take()
        drawn = draw_runs(event, len(self._candidates), seeded_bits(self._seed, b"choice"))
        units = self._count_units()
        columns = self._columns_read()
        held = not exceeds_memory(self._records or 0, len(columns))
        check_divisible(units, self._unit, held=held)
        validation = drawn.validation_mask(
            units, self._validation, number_is_public=self._unit.number_is_public
        )
        halves = self._read_halves(columns, validation, held=held)
        best = best_run(run, self._candidates, drawn.order, halves, self._side)
        paid: Paid = {"event": event, "fit": self._fit, "entry": self._entry_hash}
        first, choice = released_choice(best, len(self._candidates), paid)
        self.releases += [first, *choice.training, *choice.validation]
        return choice

    def _side(self, half: Source, bounds: Bounds, event: Event, name: bytes) -> "Curator":
        """A curator for one side of one run, within what this one has paid."""
        if self._seed is None:
            seed = None
        else:
            seed = self._seed + b" " + name
        return Curator(
            half,
            bounds=bounds,
            event=event,
            targets=self._targets,
            seed=seed,
            columns_of_weights=self._weight_columns,
            **self._unit.to_dict(),
        )

    def use_cache(self, cache: FeatureCache | None) -> None:
        """Use the cache of another fit of the same candidate on the same records; None for none."""
        self._cache = cache

    def _checked_shares(self, shares_spent: int) -> int:
        """How often a release counts: a whole number.

        Only Gaussian releases add up to one that is as good.
        """
        check_integer("shares_spent", shares_spent)
        if shares_spent > 1 and not isinstance(self._event, Gaussian):
            raise ReleaseRefused(
                "Only releases with Gaussian noise (delta > 0) can be taken together."
            )
        return int(shares_spent)

    def _take(self, shares_spent: int = 1) -> int:
        """Count a release off what was paid.

        Once, whichever threads, forks or statistics ask at the same time.
        """
        check_process(self._process)
        with self._lock:
            if self._left < shares_spent:
                raise ReleaseRefused(
                    f"All {self._event.count} releases that were paid for have been made."
                )
            self._left -= shares_spent
            self._made += 1
            return self._made

    def close(self) -> None:
        """Let go of the records."""
        if self._source is not None:
            self._source.close()
        self._source = None
        self._left = 0
        self._inputs = None
        self._public_weights = None
        if self._cache is not None:
            self._cache.close()

    def _scales(self, enforced: Enforced, shares_spent: int = 1) -> dict[int, Scale]:
        """Noise scale, in grid steps, for each kind of coordinate.

        At least multiplier × sensitivity, in exact arithmetic.
        """
        multiplier = Fraction(self._event.noise_multiplier)
        unit = self._unit
        sensitivity = enforced.sensitivity(unit.neighbours)
        steps = unit.records_per_person * self._grid
        rest = Fraction(1)  # of the budget
        if not unit.number_is_public:
            rest -= COUNT_SHARE
        if isinstance(self._event, Laplace):
            if sensitivity.l1 is None:
                raise ReleaseRefused(
                    f"{enforced.name} cannot be released with delta = 0: give delta > 0."
                )
            # one scale for all, whatever their multiplicities
            scale = scale_at_least((multiplier / rest * sensitivity.l1 * steps) ** 2)
            return {int(share): scale for share in np.unique(sensitivity.multiplicity)}
        square = multiplier**2 * sensitivity.l2_squared * steps**2 / shares_spent / rest
        return {
            int(share): scale_at_least(square / int(share))
            for share in np.unique(sensitivity.multiplicity)
        }

    @property
    def _grid(self) -> int:
        """How much finer the grid of weighted sums is."""
        if self._unit.weighted:
            return ONE
        return 1

    def _add_noise(
        self, exact: NDArray[Any], enforced: Enforced, scales: dict[int, Scale], number: int
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Noise on every number; what has no scale does not leave."""
        bits = seeded_bits(self._seed, b"release %d" % number)
        multiplicity = enforced.sensitivity(self._unit.neighbours).multiplicity
        by_mask = [(multiplicity == count, scale) for count, scale in scales.items()]
        step = enforced.step / self._grid
        noise, scale = draw_noise(self._event.kind, by_mask, len(exact), step, bits)
        return in_units(add_exactly(exact, noise), step), scale

    def __repr__(self) -> str:
        return f"<Curator: {self._left} releases left>"

    def __reduce__(self) -> NoReturn:
        raise TypeError("A curator holds records: it is never copied, pickled or sent.")


def _check_needs_no_order(unit: PrivacyUnit, *, search: bool) -> None:
    """Refuse what reads records twice, and needs them in one order; decided by public facts."""
    if search and not unit.number_is_public and unit.person is None:
        raise BadInput(
            "This reads the records several times in one order, and this source may give them in "
            "another order each time. Write them to a Parquet file and scan that."
        )


def _check_public(source: Source, columns: WeightColumns, labels: Sequence[Field]) -> None:
    """Refuse a protected label as a weight or an identifier, which are public beside labels."""
    protected = {source.position(label.key) for label in labels}
    if protected & {source.position(field.key) for field in columns.fields}:
        raise BadInput(
            "The labels are protected, and whose a record is and how much it counts is public: "
            "neither can be the column of the labels."
        )
