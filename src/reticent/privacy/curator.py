"""The curator: the only object that sees records, and only after they have been paid for.

    validate everything public → charge the ledger (durable) → read, add up, add noise → Release

A search (`choose`) makes many fits on two halves of the records and gives away the best one's releases only (choosing.py).

A `Release` is the only thing that leaves. `Replay` answers like the curator from releases alone; a model that cannot tell
the two apart is post-processing, and a test holds every model to that, bit for bit.
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
from reticent.privacy.bounds import Bounds, checked_bounds
from reticent.privacy.celled import CellSum
from reticent.privacy.choosing import Candidate, best_run, check_candidates, draw, too_much
from reticent.privacy.events import Event, Gaussian, Laplace, Selection, checked_event
from reticent.privacy.exponential import Scores, check_scores, described, epsilon_of, exponents, pick
from reticent.privacy.given import check_choice, check_whole, whole
from reticent.privacy.guard import heeding_signals, quiet, safely
from reticent.privacy.halves import parts
from reticent.privacy.kept import Keeper, try_out
from reticent.privacy.ledger import RELATIONS, Ledger
from reticent.privacy.noise import Bits, Scale, check_exp, floor_noise, scale_at_least
from reticent.privacy.plan import Plan, check_noise, planned
from reticent.privacy.process import available_cpus, identity
from reticent.privacy.products import check_blas
from reticent.privacy.release import CHOICE, Attempt, Choice, Design, Oracle, Release, Replay, derived
from reticent.privacy.sources import Source
from reticent.privacy.statistic import Counts, Statistic

__all__ = ["Candidate", "Choice", "Curator", "Oracle", "Release", "Replay", "Scores"]


class Curator:
    """Holds records and a paid event; answers ``release`` as often as was paid for, and nothing else.

    Parameters
    ----------
    source : Source
    bounds : Bounds
    event : Gaussian, Laplace or Selection
        What is paid for: ``event.count`` releases may be asked for, or with a Selection one choice.
    targets : bool
        Whether records have outputs (y or classes) besides inputs.
    records_per_person : int
        How many records may belong to one person; multiplies the sensitivity.
    ledger, dataset : str, optional
        Where to charge. Without a ledger nothing remembers the spending but the guarantee of this one fit.
    what : str
        What the ledger's history will say.
    relation : str
        What is protected: a key of ``ledger.RELATIONS``. With "label" the inputs of the records are public.
    seed : bytes, optional
        Makes the noise repeatable and the release not private.
    candidates, validation
        For a Selection: what is chosen from, and the share of the records that candidates are judged by.
    look : function of the scaled inputs, optional
        With the relation "label", where inputs are public: sees them before anything is charged, and may refuse them.

    Privacy
    -------
    The constructor looks at names, dtypes and shapes only (and with ``look`` at public inputs), and charges before it returns. A
    failed release stays charged.
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
        candidates: Sequence[Candidate] = (),
        validation: float = 0.5,
        look: Callable[[NDArray[np.float64]], object] | None = None,
    ) -> None:
        if not isinstance(event, (Gaussian, Laplace, Selection)) or (isinstance(event, Selection) and event.count > 1):
            raise BadInput(f"A curator releases with Gaussian or Laplace noise, or makes one search, not {event}.")
        event = checked_event(event, Gaussian, Laplace, Selection)
        if not whole(records_per_person, 1, 10**6):
            raise BadInput(f"records_per_person must be at least 1 (and at most 10^6), not {records_per_person!r}.")
        check_choice("relation", relation, RELATIONS)
        if (ledger is None) != (dataset is None):
            raise BadInput("Give both ledger and dataset, or neither: a charge needs an account to go to.")
        bounds = checked_bounds(bounds)
        source = bounds.shaped(source, targets=targets)
        self.bounds, self._fields = bounds.resolve(source, targets=targets)
        source.check(self._fields)
        if source.known_n == 0:
            raise BadInput("There are no records: Found array with 0 sample(s) while a minimum of 1 is required.")
        self._candidates, self._validation = tuple(candidates), validation
        if isinstance(event, Selection):
            self._columns = check_candidates(self._candidates, event, source, targets=targets)
        check_blas()
        check_exp()
        self._threads = available_cpus()
        self._process = identity()
        self._inputs: NDArray[np.float64] | None = None
        if look is not None and relation == "label":
            self._inputs = safely(lambda: self._read_inputs(source), "Nothing was charged.")
            look(self._inputs)
        self._entry_hash: str | None = None  # of the ledger's entry that pays for everything released here
        if ledger is not None and dataset is not None:
            paid = Ledger(ledger).charge(
                dataset, event, relation=relation, records_per_person=int(records_per_person), what=what
            )
            self._entry_hash = paid.hash
        # Paid. Only from here on may anything read a record.
        self._source: Source | None = source
        self._keeper = Keeper(self.bounds)
        self._event, self._left, self._made = event, event.count, 0
        self._targets, self._relation = targets, relation
        self._lock = threading.Lock()
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

    def release(self, statistic: Statistic, *, times: int = 1) -> Release:
        """Add up ``statistic`` over the records, add noise once, and give it away.

        ``times``: how many of the releases that were paid for it takes; Gaussian noise is then √times smaller.
        """
        if isinstance(self._event, Selection):
            raise ReleaseRefused("This curator was paid for a search, which makes its own releases.")
        times = self._checked_times(times)
        plan = planned(statistic)
        description = self._tried_out(plan)
        scales = self._scales(plan, times)
        number = self._take(times)
        noisy, scale = self._add_noise(self._exact(plan, number), plan, scales, number)
        return self._give(description, noisy, scale, times)

    def _tried_out(self, plan: Plan) -> dict[str, Any]:
        """What a release will tell, settled before a record is read or a release is counted; and a map that fails is refused."""
        description = plan.describe()
        try_out(plan, self.bounds)
        return description

    def select(
        self, statistic: CellSum | Counts, scores: Scores, *, times: int = 1, counts: NDArray[Any] | None = None
    ) -> Release:
        """Choose one of some candidates by the exponential mechanism, and give its number away. Proof: exponential.md.

        ``scores``: of each candidate, as a public quadratic form of the sums by cell. ``counts``: where labels alone are
        protected, the public number of records in each cell. ``times``: how many of the releases that were paid for it takes.
        """
        if not isinstance(self._event, Gaussian):
            raise ReleaseRefused("A choice by score is paid for as Gaussian releases are: give delta > 0.")
        if counts is not None and self._relation != "label":
            raise ReleaseRefused("How many records are in each cell is protected here.")
        times = self._checked_times(times)
        plan = planned(statistic)
        check_scores(plan, scores, counts)
        description = self._tried_out(plan)
        number = self._take(times)
        bits = Bits(None if self._seed is None else self._seed + b" choice %d" % number)
        mu = math.sqrt(times) / self._event.noise_multiplier
        how: dict[str, Any] = {"n": self.n, "people": self._records_per_person, "counts": counts}
        exact = self._exact(plan, number)
        values, scale = exponents(plan, scores, exact, **how, epsilon=epsilon_of(mu))
        return self._give(
            described(description, scores), np.array([float(pick(values, bits))]), np.array([scale]), times
        )

    def _exact(self, plan: Plan, number: int) -> NDArray[Any]:
        """The sums of a release that was counted, in whole numbers."""
        n = self.n
        threads = self._threads
        first = number == 1
        more = self._left > 0
        rows, total = self._guarded(
            lambda source, fields: self._keeper.total(
                source, fields, plan, n=n, threads=threads, first=first, keep=more
            )
        )
        if rows != n:
            raise ReleaseRefused(
                "The number of records changed while they were read. Nothing is released; the charge stays."
            )
        return plan.coordinates(total)

    def _give(
        self, description: dict[str, Any], value: NDArray[np.float64], scale: NDArray[np.float64], times: int
    ) -> Release:
        self._check_process()  # again: a statistic may have forked while it was added up
        release = Release(
            statistic=description,
            value=value,
            scale=scale,
            event=self._event,
            n=self.n,
            bounds=self.bounds,
            records_per_person=self._records_per_person,
            private=self._seed is None,
            fit=self._fit,
            times=times,
            relation=self._relation,
            entry=self._entry_hash,
        )
        self.releases.append(release)
        return release

    def release_given_inputs(self, design: Design, *, times: int = 1) -> Release:
        """Release the statistic that ``design`` makes from the (scaled) inputs of all records, in order of reading.

        Only where labels alone are protected, and all inputs are public: ``design`` sees them as they are.
        """
        if self._relation != "label":
            raise ReleaseRefused(
                "The inputs of the records are protected: nothing can be made from them but a release."
            )
        if self._inputs is None:
            self._inputs = self._guarded(lambda source, _: self._read_inputs(source))
        return self.release(design(self._inputs), times=times)

    def _read_inputs(self, source: Source) -> NDArray[np.float64]:
        bounds = self.bounds.inputs_alone()
        blocks = [bounds.unit(block) for block in source.blocks(self._fields[: len(bounds.x)])]
        return np.vstack([np.zeros((0, len(bounds.x))), *blocks])

    def choose(self, attempt: Attempt) -> Choice:
        """Run ``attempt`` on candidates drawn at random, a random number of times, and give away the best run alone.

        Which ones and how many is drawn before a record is read, and does not leave. A run that fails counts as the worst.
        """
        event = self._event
        if not isinstance(event, Selection):
            raise ReleaseRefused("This curator was not paid for a search.")
        self._take()
        drawn = draw(event, len(self._candidates), Bits(None if self._seed is None else self._seed + b" choice"))
        n = self.n
        if n < 2 or too_much(n, len(self._columns)):
            raise ReleaseRefused("A search needs 2 records, and columns that fit in 1 GiB of memory. The charge stays.")
        apart = drawn.split(n, self._validation)
        halves = self._guarded(lambda source, _: parts(source, self._columns, apart))
        with heeding_signals(), quiet():
            best = best_run(attempt, self._candidates, drawn.order, halves, self._side)
        if not best.training:
            raise ReleaseRefused(
                "No run of the search could be fitted and judged. Nothing is released; the charge stays."
            )
        training, validation = ([self._ours(one) for one in some] for some in (best.training, best.validation))
        told = {"candidates": len(self._candidates), "releases": len(training)}
        told |= {"training": training[0].n, "validation": validation[0].n}
        first = derived(
            training[0],
            statistic={"name": "Choice", "kind": CHOICE, "size": 2, **told},
            value=np.array([best.index, best.score], dtype=np.float64),
            scale=np.zeros(2),  # of their own: the noise is in the releases that follow
            n=n,
            times=1,
        )
        self.releases += [first, *training, *validation]
        return Choice(best.index, best.score, training, validation)

    def _side(self, half: Source, bounds: Bounds, event: Event, name: bytes) -> "Curator":
        """A curator for one side of one run, within what this one has paid."""
        seed = None if self._seed is None else self._seed + b" " + name
        return Curator(
            half,
            bounds=bounds,
            event=event,
            targets=self._targets,
            records_per_person=self._records_per_person,
            relation=self._relation,
            seed=seed,
        )

    def share(self, keeper: Keeper) -> None:
        """Use what another fit of the same candidate on the same records has kept."""
        self._keeper = keeper

    def _ours(self, release: Release) -> Release:
        """A release of a run carries what the search as a whole has paid."""
        return derived(release, event=self._event, fit=self._fit, entry=self._entry_hash)

    def _checked_times(self, times: int) -> int:
        """How often a release counts: a whole number; only Gaussian releases add up to one that is as good."""
        check_whole("times", times)
        if times > 1 and not isinstance(self._event, Gaussian):
            raise ReleaseRefused("Only releases with Gaussian noise (delta > 0) can be taken together.")
        return int(times)

    def _take(self, times: int = 1) -> int:
        """Count a release off what was paid: once, whichever threads, forks or statistics ask at the same time."""
        self._check_process()
        with self._lock:
            if self._left < times:
                raise ReleaseRefused(f"All {self._event.count} releases that were paid for have been made.")
            self._left -= times
            self._made += 1
            return self._made

    def _check_process(self) -> None:
        if identity() != self._process:
            raise ReleaseRefused(
                "This curator was paid for in another process: a fork cannot use what its parent paid."
            )

    def close(self) -> None:
        """Let go of the records."""
        self._source, self._left, self._inputs = None, 0, None
        self._keeper.close()

    def _scales(self, plan: Plan, times: int = 1) -> dict[int, Scale]:
        """Noise scale, in grid steps, for each kind of coordinate: at least multiplier × sensitivity, in exact arithmetic."""
        multiplier, k = Fraction(self._event.noise_multiplier), self._records_per_person
        if isinstance(self._event, Laplace):
            if plan.sensitivity1 is None:
                raise ReleaseRefused(f"{plan.name} cannot be released with delta = 0: give delta > 0.")
            return {1: scale_at_least((multiplier * plan.sensitivity1 * k) ** 2)}
        square = multiplier**2 * plan.sensitivity2 * k**2 / times
        return {int(share): scale_at_least(square / int(share)) for share in np.unique(plan.shares())}

    def _add_noise(
        self, exact: NDArray[Any], plan: Plan, scales: dict[int, Scale], number: int
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Noise on every number; what has no scale does not leave."""
        seed = None if self._seed is None else self._seed + b" release %d" % number
        bits = Bits(seed)
        shares = plan.shares()
        noisy = np.full(exact.shape, None, dtype=object)
        scale = np.zeros(exact.shape)
        for share, one in scales.items():
            chosen = shares == share
            noisy[chosen] = exact[chosen] + floor_noise(self._event.kind, one, int(chosen.sum()), bits)
            scale[chosen] = float(one.exact) * plan.step
        check_noise(noisy, scale)
        # ⌊·⌋ has mean −1/2. From here on everything is post-processing, this line included.
        return (noisy.astype(np.float64) + 0.5) * plan.step, scale

    def _guarded(self, read: Any) -> Any:
        """Read records so that nothing about them can leave by an exception, its context, or a warning."""
        if self._source is None:
            raise ReleaseRefused("This curator has been closed.")
        return safely(lambda: read(self._source, self._fields), "Nothing is released; the charge stays.")

    def __repr__(self) -> str:
        return f"<Curator: {self._left} releases left>"

    def __reduce__(self) -> NoReturn:
        raise TypeError("A curator holds records: it is never copied, pickled or sent.")
