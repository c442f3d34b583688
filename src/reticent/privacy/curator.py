"""The curator: the only object that sees records, and only after they have been paid for.

    validate everything public → charge the ledger (durable) → read, add up, add noise → Release

A `Release` is the only thing that leaves. `Replay` answers like the curator from releases alone; a model that cannot tell
the two apart is post-processing, and a test holds every model to that, bit for bit.
"""

import os
import secrets
import threading
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import sqrt
from typing import Any, NoReturn, Protocol

import numpy as np
from numpy.typing import NDArray

from reticent.errors import BadInput, ReleaseRefused, ReticentError
from reticent.privacy.bounds import Bounds
from reticent.privacy.events import Event, Gaussian, Laplace
from reticent.privacy.kept import Keeper
from reticent.privacy.ledger import Ledger
from reticent.privacy.noise import Bits, Scale, floor_noise, scale_at_least
from reticent.privacy.sources import Source
from reticent.privacy.statistic import Counts, Gram, Statistic, Sum
from reticent.privacy.sums import check_blas

__all__ = ["Curator", "Oracle", "Release", "Replay"]


@dataclass(frozen=True, eq=False)
class Release:
    """One noisy statistic and the law of its noise.

    Attributes
    ----------
    statistic : dict
        What was added up (public).
    value, scale : arrays
        The noisy sums, and the exact scale of each one's noise.
    event : Event
        What was paid, for this release and the others of the same fit (``event.count`` in all); its kind is the law of
        the noise.
    n, bounds, records_per_person
        Number of records, the bounds they were held to, records per person (public).
    private : bool
        False if the noise came from a seed.
    fit : str
        A random name of the fit: releases with the same name were paid for together.
    """

    statistic: dict[str, Any]
    value: NDArray[np.float64]
    scale: NDArray[np.float64]
    event: Event
    n: int
    bounds: Bounds
    records_per_person: int
    private: bool
    fit: str

    @property
    def sd(self) -> NDArray[np.float64]:
        """Standard deviation of the noise on each number."""
        return self.scale * (sqrt(2) if isinstance(self.event, Laplace) else 1.0)

    def matrix(self) -> NDArray[np.float64]:
        """Give the released symmetric matrix of a Gram statistic."""
        return _symmetric(self.value)

    def matrix_sd(self) -> NDArray[np.float64]:
        """Standard deviations of ``matrix()``'s entries."""
        return _symmetric(self.sd)


def _symmetric(upper: NDArray[np.float64]) -> NDArray[np.float64]:
    m = round((sqrt(8 * len(upper) + 1) - 1) / 2)
    full = np.zeros((m, m))
    full[np.triu_indices(m)] = upper
    return full + np.triu(full, 1).T


class Oracle(Protocol):
    """What a model learns from: a `Curator`, or a `Replay` of its releases."""

    @property
    def n(self) -> int: ...  # noqa: D102
    @property
    def bounds(self) -> Bounds: ...  # noqa: D102
    def release(self, statistic: Statistic) -> Release: ...  # noqa: D102


class Curator:
    """Holds records and a paid event; answers ``release`` as often as was paid for, and nothing else.

    Parameters
    ----------
    source : Source
    bounds : Bounds
    event : Gaussian or Laplace
        What is paid for; ``event.count`` releases may be asked for.
    targets : bool
        Whether records have outputs (y or classes) besides inputs.
    records_per_person : int
        How many records may belong to one person; multiplies the sensitivity.
    ledger, dataset : str, optional
        Where to charge. Without a ledger nothing remembers the spending but the guarantee of this one fit.
    what : str
        What the ledger's history will say.
    seed : bytes, optional
        Makes the noise repeatable and the release not private.

    Privacy
    -------
    The constructor looks at names, dtypes and shapes only, and charges before it returns. A failed release stays charged.
    """

    def __init__(
        self,
        source: Source,
        *,
        bounds: Bounds,
        event: Event,
        targets: bool = False,
        records_per_person: int = 1,
        ledger: str | os.PathLike[str] | None = None,
        dataset: str | None = None,
        relation: str = "record",
        what: str = "",
        seed: bytes | None = None,
    ) -> None:
        if not isinstance(event, (Gaussian, Laplace)):
            raise BadInput(f"A curator releases with Gaussian or Laplace noise, not {type(event).__name__}.")
        if isinstance(records_per_person, bool) or not isinstance(records_per_person, (int, np.integer)):
            raise BadInput(f"records_per_person must be a whole number, not {records_per_person!r}.")
        if not 1 <= records_per_person <= 10**6:
            raise BadInput(f"records_per_person must be at least 1 (and at most 10^6), not {records_per_person}.")
        if (ledger is None) != (dataset is None):
            raise BadInput("Give both ledger and dataset, or neither: a charge needs an account to go to.")
        self.bounds, self._fields = bounds.resolve(source, targets=targets)
        source.check(self._fields)
        if source.known_n == 0:
            raise BadInput("There are no records: Found array with 0 sample(s) while a minimum of 1 is required.")
        check_blas()
        if ledger is not None and dataset is not None:
            Ledger(ledger).charge(dataset, event, relation=relation, what=what)
        # Paid. Only from here on may anything read a record.
        self._source: Source | None = source
        self._keeper = Keeper(self.bounds)
        self._event, self._left, self._made = event, event.count, 0
        self._lock, self._process = threading.Lock(), os.getpid()
        self._fit = secrets.token_hex(8)
        self._records_per_person = int(records_per_person)
        self._seed = seed
        self._n: int | None = source.known_n
        self.releases: list[Release] = []

    @property
    def n(self) -> int:
        """Number of records (public)."""
        if self._n is None:
            self._n = self._guarded(lambda source, fields: source.count())
            if self._n == 0:
                raise BadInput("There are no records in the data. (This could not be known before: the charge stays.)")
        return self._n

    def release(self, statistic: Statistic) -> Release:
        """Add up ``statistic`` over the records, add noise once, and give it away."""
        if not isinstance(statistic, (Sum, Gram, Counts)):
            raise ReleaseRefused("Only a Sum, a Gram or a Counts statistic can be released: their bounds are enforced.")
        number = self._take()  # first: nothing of the statistic runs before the release is counted
        scales = self._scales(statistic)
        n, threads = self.n, len(os.sched_getaffinity(0))
        more = number < self._event.count
        rows, total = self._guarded(
            lambda source, fields: self._keeper.total(source, fields, statistic, n=n, threads=threads, keep=more)
        )
        if rows != n:
            raise ReleaseRefused(
                "The number of records changed while they were read. Nothing is released; the charge stays."
            )
        exact = statistic.coordinates(total)
        noisy, scale = self._add_noise(exact, statistic, scales, number)
        release = Release(
            statistic=statistic.describe(),
            value=noisy,
            scale=scale,
            event=self._event,
            n=n,
            bounds=self.bounds,
            records_per_person=self._records_per_person,
            private=self._seed is None,
            fit=self._fit,
        )
        self.releases.append(release)
        return release

    def _take(self) -> int:
        """Count a release off what was paid: once, whichever threads, forks or statistics ask at the same time."""
        if os.getpid() != self._process:
            raise ReleaseRefused(
                "This curator was paid for in another process: a fork cannot use what its parent paid."
            )
        with self._lock:
            if self._left < 1:
                raise ReleaseRefused(f"All {self._event.count} releases that were paid for have been made.")
            self._left -= 1
            self._made += 1
            return self._made

    def close(self) -> None:
        """Let go of the records."""
        self._source, self._left = None, 0
        self._keeper.close()

    def _scales(self, statistic: Statistic) -> dict[int, Scale]:
        """Noise scale, in grid steps, for each kind of coordinate: at least multiplier × sensitivity, in exact arithmetic."""
        multiplier, k = Fraction(self._event.noise_multiplier), self._records_per_person
        if isinstance(self._event, Laplace):
            if statistic.sensitivity1 is None:
                raise ReleaseRefused(f"{type(statistic).__name__} cannot be released with delta = 0: give delta > 0.")
            return {1: scale_at_least((multiplier * statistic.sensitivity1 * k) ** 2)}
        square = multiplier**2 * statistic.sensitivity2 * k**2
        return {int(share): scale_at_least(square / int(share)) for share in np.unique(statistic.shares())}

    def _add_noise(
        self, exact: NDArray[Any], statistic: Statistic, scales: dict[int, Scale], number: int
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        seed = None if self._seed is None else self._seed + b" release %d" % number
        bits, shares = Bits(seed), statistic.shares()
        noisy, scale = exact.astype(object), np.empty(len(exact))
        for share, one in scales.items():
            chosen = shares == share
            noisy[chosen] += floor_noise(self._event.kind, one, int(chosen.sum()), bits)
            scale[chosen] = float(one.exact) * statistic.step
        # ⌊·⌋ has mean −1/2. From here on everything is post-processing, this line included.
        return (noisy.astype(np.float64) + 0.5) * statistic.step, scale

    def _guarded(self, read: Any) -> Any:
        """Read records so that nothing about them can leave by an exception, its context, or a warning."""
        if self._source is None:
            raise ReleaseRefused("This curator has been closed.")
        failure = ""
        with _no_warnings:
            try:
                return read(self._source, self._fields)
            except ReticentError as error:
                failure = str(error) if _is_ours(error) else ""
            except Exception as error:
                failure = f"Reading the records failed ({type(error).__name__})."
        failure = failure or "Reading the records failed in the statistic."
        raise ReleaseRefused(f"{failure} Nothing is released; the charge stays.")

    def __repr__(self) -> str:
        return f"<Curator: {self._left} releases left>"

    def __reduce__(self) -> NoReturn:
        raise TypeError("A curator holds records: it is never copied, pickled or sent.")


class _NoWarnings:
    """Swallows warnings while records are read. Python's filters belong to the process, so all readers share one change."""

    def __init__(self) -> None:
        self._lock, self._readers = threading.Lock(), 0
        self._filters = warnings.catch_warnings()

    def __enter__(self) -> None:
        with self._lock:
            if not self._readers:
                self._filters = warnings.catch_warnings()
                self._filters.__enter__()
                warnings.simplefilter("ignore")
            self._readers += 1

    def __exit__(self, *exception: object) -> None:
        with self._lock:
            self._readers -= 1
            if not self._readers:
                self._filters.__exit__(None, None, None)


_no_warnings = _NoWarnings()


def _is_ours(error: BaseException) -> bool:
    """Whether the core itself raised it, whose messages never depend on records; a statistic's own words may."""
    last = error.__traceback__
    while last is not None and last.tb_next is not None:
        last = last.tb_next
    return last is not None and str(last.tb_frame.f_globals.get("__name__", "")).startswith("reticent.privacy.")


def _alike(a: Any, b: Any) -> bool:
    """Whether two descriptions say the same, but for the last digits, in which machines differ."""
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(_alike(a[key], b[key]) for key in a)
    if isinstance(a, list) and isinstance(b, list):
        if a and all(isinstance(v, (int, float)) for v in [*a, *b]):
            largest = max(map(abs, a))
            return len(a) == len(b) and all(abs(v - w) <= 1e-5 * largest for v, w in zip(a, b, strict=True))
        return len(a) == len(b) and all(map(_alike, a, b))
    if isinstance(a, float) and isinstance(b, float):
        return abs(a - b) <= 1e-5 * abs(a)
    return bool(a == b)


class Replay:
    """Answers ``release`` from recorded releases, in order: a model rebuilt from it saw no data."""

    def __init__(self, releases: Sequence[Release]) -> None:
        if not releases:
            raise BadInput("There are no releases to rebuild from.")
        first = releases[0]
        same = (first.fit, first.event, first.n, first.bounds, first.records_per_person, first.private)
        for one in releases:
            if (one.fit, one.event, one.n, one.bounds, one.records_per_person, one.private) != same:
                raise BadInput(
                    "These releases are not of one fit, so no one guarantee covers them: rebuild each fit by itself."
                )
            if one.value.shape != (one.statistic.get("size"),) or one.scale.shape != one.value.shape:
                raise BadInput("A release does not have as many numbers as its statistic: it was altered.")
            if not (np.isfinite(one.value).all() and np.isfinite(one.scale).all() and (one.scale > 0).all()):
                raise BadInput("A release holds a number that no curator gives: it was altered.")
        if len(releases) > first.event.count:
            raise BadInput("There are more releases than were paid for.")
        self.releases = list(releases)
        self._next = 0

    @property
    def n(self) -> int:
        """Number of records (public)."""
        return self.releases[0].n

    @property
    def bounds(self) -> Bounds:
        """The bounds the records were held to."""
        return self.releases[0].bounds

    def release(self, statistic: Statistic) -> Release:
        """Give the next recorded release, which must be of the same statistic."""
        if self._next >= len(self.releases):
            raise ReleaseRefused(
                "The model asks for more releases than were recorded: its parameters must be those it had."
            )
        release = self.releases[self._next]
        if not _alike(release.statistic, asked := statistic.describe()):
            raise ReleaseRefused(
                f"The model asks for {asked['name']} with {asked['size']} numbers, but the record holds "
                f"{release.statistic['name']} with {release.statistic['size']}, or one with other parameters: rebuild it "
                "with the parameters it had."
            )
        self._next += 1
        return release

    def check_used(self) -> None:
        """Refuse releases that the model did not ask for: its guarantee would not speak of them."""
        if self._next < len(self.releases):
            raise BadInput(
                f"The model uses {self._next} of {len(self.releases)} releases: its parameters must be those it had."
            )
