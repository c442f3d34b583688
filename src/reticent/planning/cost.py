"""What a fit takes: seconds of CPU, memory and bytes read, told before any record is read.

A fit of n records takes

    t(n) = t₀ + Σᵢ (aᵢ + n·bᵢ),

t₀ for the prior and all that is learnt between releases, aᵢ for the noise of release i, and bᵢ for
a record in it: read, mapped to its row and added up. No machine's constants are built in. A fit to
made-up moments of n records says which statistics will be asked for, and takes t₀; each kind of
them is then released from a few and from some ten thousand made-up records, of the kinds of columns
and the kind of source that the fit will have, by the code of a fit: the difference is bᵢ.

What is measured is CPU time, of all threads, which is wall time on one idle core. Where the records
are kept after the first reading (`feature_cache`), later stages take less for a record.
"""

import statistics
import time
import tracemalloc
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from reticent.errors import BadInput
from reticent.models.base import PrivateEstimator
from reticent.planning.sample_tables import SOURCES, made_up_source, most_of_arrow
from reticent.planning.synthetic_records import MadeUp, MadeUpCurator, inputs
from reticent.privacy.accounting.events import Gaussian, Laplace
from reticent.privacy.bounds import Bounds
from reticent.privacy.curator import Curator, Release
from reticent.privacy.people.person_counts import MOST_REMEMBERED
from reticent.privacy.sources.base import Source
from reticent.privacy.statistics.base import Statistic
from reticent.privacy.statistics.exact_sum import one_blas_thread
from reticent.privacy.statistics.feature_cache import CACHE_BYTES
from reticent.privacy.statistics.partitioned_gram import PartitionedGram
from reticent.validation import as_float, check_integer

__all__ = ["SOURCES", "FitCost", "ReleaseCost", "fit_cost"]

Array = NDArray[np.float64]

_PERSON = "person"
_FEW = 512  # made-up records that moments are of
_TINY = 64  # records of a release that is all noise
_PILOT = 2**13
# Records that a release is timed on: whole batches of a file, and about so many seconds.
_LEAST = 2**16
_MOST = 2**20
_SECONDS = 0.25
_REPEATS = 3
_GROWTH = 1.5  # of the table of people, while it grows
_MOST_ROWS = 10**13
_SEED = 20261143


@dataclass(frozen=True)
class ReleaseCost:
    """What releases of one kind take, in seconds of CPU.

    Attributes
    ----------
    statistic : str
        What is released, and of how many ``columns``.
    readings, kept : int
        How many of them read the source, and how many find their rows in memory.
    once : float
        For the noise and all that does not grow with the records, of one release.
    per_row, per_kept_row : float
        For a record in a release that reads, and in one that does not.
    keeping_per_row : float
        For a record, once, where rows are kept.
    """

    statistic: str
    columns: int
    readings: int
    kept: int
    once: float
    per_row: float
    per_kept_row: float = 0.0
    keeping_per_row: float = 0.0


@dataclass(frozen=True)
class FitCost:
    """What a fit takes.

    Attributes
    ----------
    rows : int
        Records.
    source : str
        Where they are: a key of ``SOURCES``.
    once : float
        Seconds of CPU for the prior and for what is learnt between releases.
    counted : bool
        Whether records or people are counted by a reading of their own.
    counting_per_row : float
        Seconds of CPU of that reading for a record.
    releases : tuple of ReleaseCost
        One for each kind.
    row_bytes : float
        Of a record in the source.
    kept_bytes : float
        Memory of the rows that are kept.
    block_bytes : float
        Memory that a reading takes at a time.
    person_bytes : float
        Memory of what is known of people.
    """

    rows: int
    source: str
    once: float
    counted: bool
    counting_per_row: float
    releases: tuple[ReleaseCost, ...]
    row_bytes: float
    kept_bytes: float
    block_bytes: float
    person_bytes: float

    @property
    def seconds(self) -> float:
        """Seconds of CPU of the whole fit on one machine."""
        found = self.once + self.rows * self.counting_per_row
        for one in self.releases:
            found += (one.readings + one.kept) * one.once
            found += self.rows * (one.readings * one.per_row + one.kept * one.per_kept_row)
            found += self.rows * one.keeping_per_row
        return found

    def seconds_on(self, workers: int) -> float:
        """Seconds of a fit whose sums ``workers`` cores of a cluster share.

        Each stage reads there, for nothing is kept. Without what the cluster's own engine takes.
        """
        check_integer("workers", workers)
        shared = self.rows * self.counting_per_row
        alone = self.once
        for one in self.releases:
            releases = one.readings + one.kept
            shared += self.rows * releases * one.per_row
            alone += releases * one.once
        return alone + shared / workers

    @property
    def readings(self) -> int:
        """How often the source is read from end to end."""
        return sum(one.readings for one in self.releases) + self.counted

    @property
    def bytes_read(self) -> float:
        """Bytes that the source gives in all readings."""
        return self.rows * self.row_bytes * self.readings

    @property
    def memory(self) -> float:
        """Bytes of memory beside the program itself, and beside records that are held anyway."""
        return self.kept_bytes + self.block_bytes + self.person_bytes

    def for_machines(self) -> dict[str, Any]:
        """Everything as plain values."""
        told = {"seconds": self.seconds, "memory": self.memory, "bytes_read": self.bytes_read}
        return told | asdict(self)


def fit_cost(
    model: PrivateEstimator,
    rows: int,
    source: str = "parquet",
    *,
    records_per_person: int = 1,
    progress: Callable[[int], None] | None = None,
) -> FitCost:
    """Measure on this machine what a fit of so many records will take.

    No record is read, nothing is charged: all is made up. It takes some seconds, which do not
    depend on ``rows``.

    Parameters
    ----------
    model : PrivateEstimator
        With bounds, ε and δ; `GPRegressor`, `PrivateMean`, `PrivateCovariance` or
        `PrivateHistogram`, whose releases do not depend on what records are like.
    rows : int
        Number of records.
    source : "memory", "parquet" or "csv"
        Where they will be. Columns of words and dates are timed as such.
    records_per_person : int
        How many records a person has on average, where the model has a ``person``.
    progress : callable, optional
        Called with the number of steps, of four, that were made since the last call.

    Examples
    --------
    >>> import reticent
    >>> from reticent.planning.cost import fit_cost
    >>> bounds = reticent.Bounds(x={"age": (0, 110)})
    >>> model = reticent.PrivateMean(bounds=bounds, epsilon=1, delta=1e-6)
    >>> cost = fit_cost(model, 10**9)
    >>> cost.readings, cost.seconds > 1, cost.memory < 2**30
    (1, True, True)
    """
    size = as_float(rows)
    if not 1 <= size <= _MOST_ROWS or size != int(size):
        raise BadInput(f"rows must be a whole number of records, not {rows!r}.", parameter="rows")
    if source not in SOURCES:
        raise BadInput(
            f"source must be one of {', '.join(map(repr, SOURCES))}, not {source!r}.",
            parameter="source",
        )
    check_integer("records_per_person", records_per_person)
    tell = progress or (lambda steps: None)
    model = clone(model).set_params(ledger=None, dataset=None)
    bounds = model._bounds()
    if bounds.broadcast or bounds.classes is not None or model._relation != "record":
        raise BadInput(
            "What a fit takes can be told of models of numbers, with a range for each input."
        )
    if model.person is not None:
        model.set_params(person=_PERSON)
    sample = _Sample(model, source, records_per_person)
    once, asked = _without_records(model, bounds, int(size), records_per_person)
    tell(1)
    with TemporaryDirectory() as scratch, one_blas_thread():
        return _composed(sample, Path(scratch), int(size), once, asked, tell)


# ---- what will be asked for


class _Listener(MadeUpCurator):
    """Notes which statistics are asked for, and the time that is spent on them here."""

    asked: list[Statistic]
    spent: float

    def release(self, statistic: Statistic, *, shares_spent: int = 1) -> Release:
        """Answer as a curator of made-up records does."""
        start = time.process_time()
        answer = super().release(statistic, shares_spent=shares_spent)
        self.asked.append(statistic)
        self.spent += time.process_time() - start
        return answer


def _without_records(
    model: Any, bounds: Bounds, rows: int, records_per_person: int
) -> tuple[float, list[Statistic]]:
    """Seconds of CPU of a fit beside its releases, and the statistics that it asks for."""
    random = np.random.default_rng(_SEED)
    plain = bounds.without_names()
    unit = inputs(plain, _FEW, random)
    X = plain.unscale(unit)
    level = plain.noise_column
    if level is not None:
        X = np.insert(X, level.at, random.uniform(level.low, level.high, _FEW), axis=1)
    y: Array | None = None
    if plain.y:
        shape = np.sin(2.0 * unit.sum(axis=1)) / 2 + 0.1 * random.standard_normal(_FEW)
        low, high = np.array(plain.y).T
        y = (low + high) / 2 + (high - low) / 2 * shape[:, None]
    whole = clone(model).set_params(random_state=0, person=None, weight=None, weight_bound=None)
    whole.set_params(contribution=1, records_per_person=1)
    n = max(1, rows // records_per_person) if model.person is not None else rows
    event = model._event()
    curator = _Listener(MadeUp(X, y, n), plain, event, whole._privacy_unit(), [_SEED])
    curator.asked = []
    curator.spent = 0.0
    start = time.process_time()
    with one_blas_thread():
        whole._learn_prepared(curator, whole._validate_before_charge(plain))
    return time.process_time() - start - curator.spent, curator.asked


# ---- what a release takes


class _Sample:
    """Made-up records as the fit will find them."""

    def __init__(self, model: Any, kind: str, records_per_person: int) -> None:
        self.model = model
        self.kind = kind
        self.records_per_person = records_per_person
        self.row_bytes = 0.0

    def source(self, rows: int, folder: Path) -> Source:
        """So many records: in memory, or in a file of their own."""
        people = None
        if self.model.person is not None:
            people = (_PERSON, max(1, rows // self.records_per_person))
        made, self.row_bytes = made_up_source(
            self.model.bounds, self.kind, rows, folder, targets=self.model._targets, people=people
        )
        return made

    def curator(self, source: Source, releases: int) -> Curator:
        """A curator of them, with so many releases."""
        unit = self.model._privacy_unit()
        kind = type(self.model._event())
        event: Gaussian | Laplace = kind(count=releases, noise_multiplier=1.0)
        return Curator(
            source,
            bounds=self.model._bounds(),
            event=event,
            targets=self.model._targets,
            **unit.to_dict(),
        )


def _composed(
    sample: _Sample,
    folder: Path,
    rows: int,
    once: float,
    asked: Sequence[Statistic],
    tell: Callable[[int], None],
) -> FitCost:
    """Time a release of each kind, and add up."""
    kinds: dict[tuple[str, int], list[Statistic]] = {}
    for statistic in asked:
        kinds.setdefault((type(statistic).__name__, statistic.size), []).append(statistic)
    few = sample.source(_TINY, folder)
    pilot = sample.source(_PILOT, folder)
    slowest = max(_release(sample, pilot, alike[0]) for alike in kinds.values()) / _PILOT
    batches = round(_SECONDS / slowest / _LEAST)
    some = _LEAST * min(max(batches, 1), _MOST // _LEAST)
    many = sample.source(some, folder)
    counting = 0.0
    person_bytes = 0.0
    tell(1)
    person = sample.model.person is not None
    if person and rows > MOST_REMEMBERED:  # people are found again in each reading
        few.known_n = None
        many.known_n = None
    counted = person or many.known_n is None
    if counted:
        at_few, at_many = (_median(partial(_counting, sample, one)) for one in (few, many))
        counting = max(0.0, at_many - at_few) / some
    if person:
        person_bytes = rows * _GROWTH * _people_bytes(sample, many) / some
    tell(1)
    _release(sample, many, asked[-1])  # what is done once in a process
    found = [_release_cost(sample, (few, many, some), rows, alike) for alike in kinds.values()]
    held = max(_held(partial(_release, sample, many, alike[0])) for alike in kinds.values())
    kept = max(_kept_bytes(sample, alike, rows) for alike in kinds.values())
    tell(1)
    return FitCost(
        rows,
        sample.kind,
        once,
        counted,
        counting,
        tuple(found),
        sample.row_bytes,
        kept,
        held,
        person_bytes,
    )


def _release_cost(
    sample: _Sample, sources: tuple[Source, Source, int], rows: int, alike: Sequence[Any]
) -> ReleaseCost:
    """What releases of one kind take in a fit to so many rows.

    ``sources``: of few records and of many, and how many these are.
    """
    few, many, some = sources
    first = alike[0]
    at_few, at_many = (_median(partial(_release, sample, one, first)) for one in (few, many))
    columns = int(getattr(first, "columns", first.size))
    name = type(first).__name__
    per_row = max(0.0, at_many - at_few) / some
    if not _kept_bytes(sample, alike, rows):
        return ReleaseCost(name, columns, len(alike), 0, at_few, per_row)
    maps = len({one.feature_map for one in alike})
    keeping, finding = _kept(sample, many, first)
    return ReleaseCost(
        name,
        columns,
        maps,
        len(alike) - maps,
        at_few,
        per_row,
        max(0.0, finding - at_few) / some,
        max(0.0, keeping - at_many) / some * maps,
    )


def _kept_bytes(sample: _Sample, alike: Sequence[Any], rows: int) -> float:
    """Bytes of the rows that a fit keeps for later stages; 0 where it keeps none."""
    if not isinstance(alike[0], PartitionedGram) or len(alike) == 1:
        return 0.0
    bounds = sample.model.bounds
    width = len(bounds.x) + len(bounds.y)
    needed = float(rows * (4 * alike[0].feature_map.columns + 8 * width))
    if needed > CACHE_BYTES:
        return 0.0
    return needed


def _median(work: Callable[[], float]) -> float:
    return statistics.median(work() for _ in range(_REPEATS))


def _release(sample: _Sample, source: Source, statistic: Statistic) -> float:
    """Seconds of CPU of one release; people are counted before."""
    curator = sample.curator(source, 1)
    _ = curator.n
    return _timed(partial(curator.release, statistic))


def _kept(sample: _Sample, source: Source, statistic: Statistic) -> tuple[float, float]:
    """Seconds of a release that keeps its rows, and of one that finds them.

    The rows stay until all is timed, so that each time new memory is taken, as in a fit.
    """
    keeping = []
    finding = []
    curators = []
    for _ in range(_REPEATS):
        curator = sample.curator(source, 3)
        _ = curator.n
        curators.append(curator)
        release = partial(curator.release, statistic)
        keeping.append(_timed(release))
        finding.append(_timed(release))
    for curator in curators:
        curator.close()
    return statistics.median(keeping), statistics.median(finding)


def _counting(sample: _Sample, source: Source) -> float:
    """Seconds that it takes to count records or people, by reading them."""
    curator = sample.curator(source, 1)
    return _timed(lambda: curator.n)


def _people_bytes(sample: _Sample, source: Source) -> float:
    """Bytes of what is known of people once they are counted."""
    with _tracing():
        before, _ = tracemalloc.get_traced_memory()
        curator = sample.curator(source, 1)
        _ = curator.n
        after, _ = tracemalloc.get_traced_memory()
    return float(after - before)


def _timed(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def _held(work: Callable[[], object]) -> float:
    """Bytes at the most that some work takes beside what is there: Python's, NumPy's and arrow's.

    Arrow tells the most since the process began, which is what it may take again.
    """
    with _tracing():
        before, _ = tracemalloc.get_traced_memory()
        tracemalloc.reset_peak()
        work()
        _, most = tracemalloc.get_traced_memory()
    return float(most - before + most_of_arrow())


@contextmanager
def _tracing() -> Iterator[None]:
    """Trace memory, if nobody does already."""
    ours = not tracemalloc.is_tracing()
    if ours:
        tracemalloc.start()
    try:
        yield
    finally:
        if ours:
            tracemalloc.stop()
