"""Records that arrive one after another: sums with exact noise, released as they come. Proof: stream.md.

A `Stream` is to such records what a curator is to a data set: it is paid for once, before the first record; it keeps exact
integer sums and no record; only noisy sums leave. In step t it has the sum x_t of the records since the last release, and gives

    batches   x_t + noise, drawn anew                          each record is in one batch: one Gaussian release in all
    echo      x_t + noise less ρ times that of the last step   the same, and sums over steps have less noise
    running   x_1 + … + x_t + noise that steps share           (binary tree, or a factorisation A = B·C of the running sums)

For a factorisation with coefficients c_0 = 1, c_1, c_2, … (C is lower triangular, C_ts = c_{t−s}) the noise of a step is
u_t = ⌊N_t⌋ − Σ_{s<t} c_{t−s}·u_s, so that C·u is white, and the running sum carries u_1 + … + u_t. An echo is c_i = ρⁱ, and
each step's own sum. A record moves C·x by at most its own sensitivity times the length of C's first column, which is computed
here, in integers, from the coefficients in use.
"""

import json
import math
import os
import secrets
import threading
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from fractions import Fraction
from hashlib import sha256
from math import isqrt, sqrt
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from reticent.errors import BadInput, ReleaseRefused
from reticent.privacy.bounds import Bounds, checked_bounds
from reticent.privacy.cells import list_cells, numbers, plain_array
from reticent.privacy.events import Gaussian, checked_event
from reticent.privacy.given import check_choice, check_whole, whole
from reticent.privacy.guard import safely
from reticent.privacy.kept import BlockSum, public_records, try_out
from reticent.privacy.ledger import RELATIONS, Ledger
from reticent.privacy.noise import Bits, Scale, check_exp, floor_noise, scale_at_least
from reticent.privacy.plan import Plan, check_noise, planned
from reticent.privacy.process import identity
from reticent.privacy.products import check_blas
from reticent.privacy.release import Release
from reticent.privacy.statistic import GramPlan, Statistic, SumPlan
from reticent.privacy.sums import Total, one_blas_thread, pieces

__all__ = ["BATCHES", "TREE", "Buffers", "Correlation", "Echo", "Stream", "Toeplitz"]

SHIFT = 30  # coefficients are whole multiples of 2^-30
_ONE = 1 << SHIFT


class Correlation(ABC):
    """Abstract: how the noise of steps hangs together. ``next`` turns fresh noise into the noise of a step's release."""

    running = True  # whether running sums are released, or each step's own
    limited = True  # whether the noise is made for a number of steps

    @property
    def name(self) -> str:
        """What noise that is remembered can be used for; another correlation has no use for it."""
        return type(self).__name__

    def describe(self) -> dict[str, Any]:
        """Its kind and all its coefficients, in plain JSON values: what the noise is made from."""
        return {"name": type(self).__name__, **vars(self)}

    def tied(self, plan: Plan) -> NDArray[np.bool_]:
        """Which of the released numbers have noise that steps share; the others' is drawn anew in every step."""
        return np.ones(plan.size, dtype=bool)

    def told(self, memory: list[NDArray[Any]]) -> dict[str, Any]:
        """What is public about the noise of the step that comes next, for those who learn from its release."""
        return {}

    def spread(self, memory: list[NDArray[Any]]) -> float:
        """Standard deviation of the noise of a step's own sum, by that of the fresh noise. Running sums are told the latter."""
        return 1.0

    @abstractmethod
    def stretch(self, steps: int, size: int, sensitivity2: int) -> Fraction:
        """By how much the squared sensitivity grows, at least; ``size`` numbers of squared sensitivity ``sensitivity2``."""

    def stretch_of_others(self, steps: int, size: int, sensitivity2: int) -> Fraction:
        """The same for numbers that are not tied, where some are and others are not."""
        return Fraction(1)

    @abstractmethod
    def next(self, step: int, fresh: NDArray[Any], memory: list[NDArray[Any]]) -> NDArray[Any]:
        """The noise of step 1, 2, …; ``memory`` is what it left to itself, and may be changed."""


class _Batches(Correlation):
    """Each step's own sum, each with noise of its own."""

    running = limited = False

    def stretch(self, steps: int, size: int, sensitivity2: int) -> Fraction:
        return Fraction(1)

    def next(self, step: int, fresh: NDArray[Any], memory: list[NDArray[Any]]) -> NDArray[Any]:
        return fresh


class _Tree(Correlation):
    """Running sums by a binary tree: the sum up to t is made of at most one node a level, and each node has its own noise."""

    def stretch(self, steps: int, size: int, sensitivity2: int) -> Fraction:
        return Fraction(steps.bit_length())  # a record is in one node of each level that is used

    def next(self, step: int, fresh: NDArray[Any], memory: list[NDArray[Any]]) -> NDArray[Any]:
        level = (step & -step).bit_length() - 1
        memory[:level] = [fresh * 0] * level  # nodes that the new one stands for
        memory[level : level + 1] = [fresh]
        total = memory[0]
        for one in memory[1:]:
            total = total + one
        return total


class Toeplitz(Correlation):
    """Any coefficients c_0 = 1, c_1, …, one for each step, in units of 2⁻³⁰; remembers the noise of every step."""

    def __init__(self, coefficients: Sequence[int]) -> None:
        self.coefficients = tuple(int(c) for c in coefficients)
        if not self.coefficients or self.coefficients[0] != _ONE:
            raise BadInput("The coefficients of a factorisation begin with 1.")

    def stretch(self, steps: int, size: int, sensitivity2: int) -> Fraction:
        """The squared length of the first column."""
        if steps > len(self.coefficients):
            raise BadInput(f"There are {len(self.coefficients)} coefficients for {steps} steps: give one for each.")
        return _stretch(sum(c * c for c in self.coefficients[:steps]), steps, size, 1, sensitivity2)

    def next(self, step: int, fresh: NDArray[Any], memory: list[NDArray[Any]]) -> NDArray[Any]:
        """u_1 + … + u_t; remembers that sum and every u."""
        past = memory[1:]  # memory[0] is their sum
        back = self.coefficients[len(past) : 0 : -1]
        shared = sum((c * u for c, u in zip(back, past, strict=True)), start=fresh * 0)
        own = fresh - (shared >> SHIFT)
        total = own + memory[0] if memory else own
        memory[:] = [total, *past, own]
        return total


class Echo(Correlation):
    """Each step's own sum; what two steps told together has less noise, since a step takes back ρ times the noise of the last.

    u_t = ⌊N_t⌋ − ⌊ρ·⌊N_{t−1}⌋⌋, which is the factorisation c_i = ρⁱ; 0 ≤ ρ < 1 in units of 2⁻³⁰. Only numbers that are
    worth adding up over steps take part (`Plan.lasting`).
    """

    running = False

    def __init__(self, back: int) -> None:
        self.back = int(back)
        if not 0 <= self.back < _ONE:
            raise BadInput("An echo takes back a part of the last noise: from 0 to less than 1.")

    @property
    def name(self) -> str:
        """With ρ: noise of one echo is none of another's."""
        return f"Echo {self.back}"

    def tied(self, plan: Plan) -> NDArray[np.bool_]:
        """Those that last."""
        return plan.lasting()

    def told(self, memory: list[NDArray[Any]]) -> dict[str, Any]:
        """How much of the last noise is taken back."""
        return {"echo": self.back / _ONE if memory else 0.0}

    def spread(self, memory: list[NDArray[Any]]) -> float:
        """√(1 + ρ²) in all steps but the first."""
        return sqrt(1 + (self.back / _ONE) ** 2) if memory else 1.0

    def stretch(self, steps: int, size: int, sensitivity2: int) -> Fraction:
        """1/(1 − ρ²), the squared length of a column that never ends, rounded up."""
        square = -(-(_ONE**4) // (_ONE**2 - self.back**2))
        return _stretch(square, steps, size, self._lost, sensitivity2)

    def stretch_of_others(self, steps: int, size: int, sensitivity2: int) -> Fraction:
        """1, and what rounding moves tied numbers by: it comes on top of what a record moves all numbers by."""
        return _stretch(_ONE**2, steps, size, self._lost, sensitivity2)

    @property
    def _lost(self) -> int:
        return _ONE // (_ONE - self.back) + 1

    def next(self, step: int, fresh: NDArray[Any], memory: list[NDArray[Any]]) -> NDArray[Any]:
        """u_t; remembers the fresh noise."""
        own = fresh - (self.back * memory[0] >> SHIFT) if memory else fresh
        memory[:] = [fresh]
        return own


class Buffers(Correlation):
    """c_i = Σ_j ω_j θ_j^(i−1): a few buffers remember all noise. In units of 2⁻³⁰; 0 ≤ θ < 1, ω ≥ 0."""

    def __init__(self, decays: Sequence[int], weights: Sequence[int]) -> None:
        self.decays, self.weights = tuple(map(int, decays)), tuple(map(int, weights))
        if (
            len(self.decays) != len(self.weights)
            or not all(0 <= d < _ONE for d in self.decays)
            or min(self.weights) < 0
        ):
            raise BadInput(
                "A factorisation by buffers has a decay in [0, 1) and a weight of at least 0 for each buffer."
            )

    def stretch(self, steps: int, size: int, sensitivity2: int) -> Fraction:
        """The squared length of the first column, rounded up."""
        powers, square = [_ONE] * len(self.decays), _ONE * _ONE
        for _ in range(steps - 1):
            c = -(-sum(w * p for w, p in zip(self.weights, powers, strict=True)) >> SHIFT)  # rounded up
            square += c * c
            powers = [-(-d * p >> SHIFT) for d, p in zip(self.decays, powers, strict=True)]
        # every step, ⌊·⌋ loses at most one in each buffer, and what was lost decays with it
        lost = sum(w * min(steps, _ONE // (_ONE - d) + 1) for w, d in zip(self.weights, self.decays, strict=True))
        return _stretch(square, steps, size, (lost >> SHIFT) + 2, sensitivity2)

    def next(self, step: int, fresh: NDArray[Any], memory: list[NDArray[Any]]) -> NDArray[Any]:
        """u_1 + … + u_t; remembers that sum and Σ_s θ^(t−s)·u_s."""
        if not memory:
            memory[:] = [fresh * 0] * (1 + len(self.decays))
        total, *buffers = memory
        shared = sum((w * b for w, b in zip(self.weights, buffers, strict=True)), start=fresh * 0)
        own = fresh - (shared >> SHIFT)
        memory[:] = [total + own, *((d * b >> SHIFT) + own for d, b in zip(self.decays, buffers, strict=True))]
        return memory[0]


def _stretch(column2: int, steps: int, size: int, error: int, sensitivity2: int) -> Fraction:
    """(‖column‖·Δ + 2·error·√(steps·size))² / Δ², rounded up; all in grid steps, ``column2`` in units of 2⁻⁶⁰."""
    length = isqrt(column2 * sensitivity2) + 1  # ‖column‖·Δ·2^30
    away = 2 * error * (isqrt(steps * size) + 1) << SHIFT
    return Fraction((length + away) ** 2, sensitivity2 << 2 * SHIFT)


BATCHES, TREE = _Batches(), _Tree()
# those that are proved, and what each is made of
_KNOWN: dict[type[Correlation], tuple[str, ...]] = {
    _Batches: (),
    _Tree: (),
    Toeplitz: ("coefficients",),
    Echo: ("back",),
    Buffers: ("decays", "weights"),
}
_FORMAT = 2  # of a state
_STATE = {"terms", "entry", "fit", "made", "rows", "total", "sum", "memory", "like", "asked"}


class Stream:
    """Adds up records as they arrive, and gives noisy sums away; keeps no record.

    Parameters
    ----------
    bounds, event, records_per_person, ledger, dataset, relation, what, seed
        As for a `Curator`. The event is that of the whole stream: one Gaussian release, in however many steps.
    correlation : Correlation
        What is released in a step, and how the steps' noise hangs together.
    steps : int
        How many releases there will be at most; ``BATCHES`` needs none.
    state : bytes, optional
        Go on from ``Stream.state``; nothing is charged, since that stream was. All other parameters must be those which that
        stream was paid and seeded with; with a ledger, the entry that paid for it must be in the account.

    Privacy
    -------
    The constructor charges before it returns. Whoever keeps a stream's state must write it down after a release *before*
    showing that release to anyone: a stream that goes on from an older state draws new noise for sums that were shown already.
    """

    def __init__(
        self,
        *,
        bounds: Bounds,
        event: Gaussian,
        correlation: Correlation = BATCHES,
        steps: int = 1,
        records_per_person: int = 1,
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
        correlation = _copied(correlation)
        bounds = checked_bounds(bounds)
        if not (seed is None or isinstance(seed, bytes)):
            raise BadInput("seed must be bytes, for tests, or None for a private release.")
        check_whole("steps", steps, 1, 2**62)
        check_whole("records_per_person", records_per_person, 1, 10**6)
        check_choice("relation", relation, RELATIONS)
        if (ledger is None) != (dataset is None):
            raise BadInput("Give both ledger and dataset, or neither: a charge needs an account to go to.")
        # int: the noise is made from products, and those of NumPy's integers would wrap around
        self.bounds, self._event, self._correlation, self._steps = bounds, event, correlation, int(steps)
        self._records_per_person = int(records_per_person)
        self._seed = seed
        self._process = identity()
        self._relation = relation
        self._fit, self.made, self.rows = secrets.token_hex(8), 0, 0
        self._lock = threading.Lock()
        self._total: Any = 0
        self._sum: Any = 0
        self._memory: list[NDArray[Any]] = []
        self._like = ""  # what the memory belongs to
        self._entry_hash: str | None = None  # of the ledger's entry that pays for this stream
        self._asked: str | None = None
        self._plan: Plan | None = None  # of the statistic that is being added up
        self._described: dict[str, Any] = {}
        check_blas()
        check_exp()
        if state is not None:
            self._restore(_parsed(state))
        if ledger is not None and dataset is not None:
            if state is None:
                paid = Ledger(ledger).charge(
                    dataset, event, relation=relation, records_per_person=self._records_per_person, what=what
                )
                self._entry_hash = paid.hash
            elif self._entry_hash not in {entry.hash for entry in Ledger(ledger).history(dataset)}:
                raise BadInput(
                    f"This state is of a stream that was not paid for from data set {dataset!r} of that ledger. Give "
                    "the account that paid, or begin another stream, which is charged."
                )

    def add(self, statistic: Statistic, records: NDArray[Any] | Sequence[object]) -> None:
        """Add raw records (inputs, then the output, one row each) to this step's sum. Nothing can fail for what is in them."""
        with self._lock:
            plan = self._same(statistic)
            width = public_records(self.bounds).shape[1]
            table = plain_array(records) if isinstance(records, np.ndarray) else list_cells(records, width)
            if table.ndim != 2 or table.shape[1] != width:
                raise BadInput(f"Records of this stream are rows of {width} numbers: inputs, then the output.")
            added = safely(lambda: self._added(plan, table), "Nothing was added.")
            rows = self.rows + len(records)
            total = self._total + added
            self.rows = rows  # with no call between the two: if interrupted, both or none
            self._total = total

    def _added(self, plan: Plan, records: NDArray[Any]) -> Any:
        """The exact sum over raw records, in whole numbers."""
        cells = numbers(records)
        block_sum = BlockSum(plan, self.bounds)
        total = Total()
        with one_blas_thread():
            for piece in pieces(0, len(cells), plan.block_rows):
                total.add(block_sum(cells[piece]), piece.stop - piece.start)
        return plan.coordinates(total.integers()) if total.rows else 0

    def release(self, statistic: Statistic) -> Release:
        """Give away the sum of this step, or all sums up to it, with noise; the next step begins."""
        with self._lock:  # a record that is added meanwhile is in this step or in the next, never in both
            return self._released(statistic)

    def _check_process(self) -> None:
        if identity() != self._process:
            raise ReleaseRefused(
                "This stream was paid for in another process: a fork would draw noise for the same sums again."
            )

    def _released(self, statistic: Statistic) -> Release:
        self._check_process()
        if self._correlation.limited and self.made >= self._steps:
            raise ReleaseRefused(f"All {self._steps} steps that the noise was made for have been released.")
        plan = self._same(statistic)
        step = self.made + 1
        tied = self._correlation.tied(plan)
        bits = Bits(None if self._seed is None else self._seed + b" step %d" % step)
        noise = np.full(plan.size, None, dtype=object)
        scale = np.zeros(plan.size)
        for at, one in self._scales(plan, tied):
            noise[at] = floor_noise("gaussian", one, int(at.sum()), bits)
            scale[at] = float(one.exact) * plan.step
        check_noise(noise, scale)
        whose = sha256(tied.tobytes() + plan.shares().tobytes()).hexdigest()
        like = f"{self._correlation.name} {plan.sensitivity2} {whose}"
        if self._like != like:  # other numbers, or of another size: no noise to share
            self._memory, self._like = [], like
        description = {**self._described, "step": step, **self._correlation.told(self._memory)}
        scale[tied] *= self._correlation.spread(self._memory)
        self.made = step  # only now: drawing may be interrupted, and what steps share follows their number
        noise[tied] = self._correlation.next(step, noise[tied], self._memory)
        exact = self._total + np.zeros(plan.size, dtype=object)
        if self._correlation.running:
            exact = exact + self._sum
        self._check_process()  # again: a statistic or a correlation may have forked meanwhile
        rows = self.rows
        self._total, self.rows = 0, 0  # first: interrupted here, a step's records are lost, and never counted twice
        self._sum = exact if self._correlation.running else 0
        if not self._correlation.running:
            self._asked = self._plan = None
        return Release(
            statistic={**description, "records": rows},
            value=((exact + noise).astype(np.float64) + 0.5) * plan.step,
            scale=scale,
            event=self._event,
            n=rows,
            bounds=self.bounds,
            records_per_person=self._records_per_person,
            private=self._seed is None,
            fit=self._fit,
            relation=self._relation,
            entry=self._entry_hash,
        )

    def _same(self, statistic: Statistic) -> Plan:
        """What this step is held to. Within a step, and in all steps of running sums, one statistic is added up.

        It is asked for its numbers once, at the beginning. Another object may go on if it says the same of everything that
        limits, noise and releases depend on.
        """
        if self._plan is not None and self._plan.statistic is statistic:
            return self._plan
        plan = planned(statistic)
        if not isinstance(plan, (SumPlan, GramPlan)):
            raise ReleaseRefused("Only a Sum or a Gram statistic can be released step by step.")
        described = plan.describe()
        asked = plan.key(described)
        if self._asked is not None and asked != self._asked:
            raise ReleaseRefused("Another statistic was added up in this step: release that one first.")
        try_out(plan, self.bounds)
        self._asked = asked
        self._plan = plan
        self._described = described
        return plan

    def _scales(self, plan: Plan, tied: NDArray[np.bool_]) -> list[tuple[NDArray[np.bool_], Scale]]:
        """Which numbers have fresh noise of which scale."""
        own = plan.sensitivity2 * self._records_per_person**2
        square = Fraction(self._event.noise_multiplier) ** 2 * own
        shares = plan.shares()
        scales = []
        for at, stretch in ((tied, self._correlation.stretch), (~tied, self._correlation.stretch_of_others)):
            for share in np.unique(shares[at]):
                whole = square * stretch(self._steps, plan.size, own)
                scales.append((at & (shares == share), scale_at_least(whole / int(share))))
        return scales

    def scale(self, statistic: Statistic, echo: float = 0.0) -> NDArray[np.float64]:
        """The noise scales that a release of this statistic names; ``echo``: how much of the last noise it took back."""
        plan = planned(statistic)
        tied = self._correlation.tied(plan)
        scale = np.empty(plan.size)
        for at, one in self._scales(plan, tied):
            scale[at] = float(one.exact) * plan.step
        scale[tied] *= sqrt(1 + echo**2)
        return scale

    def state(self) -> bytes:
        """All that is needed to go on elsewhere. TRUSTED: it holds exact sums and noise. Never to be shown."""
        with self._lock:
            return self._state()

    def _terms(self) -> dict[str, Any]:
        """Everything that the payment and the noise depend on: a state is good for a stream with the same terms alone."""
        coefficients = json.dumps(self._correlation.describe(), sort_keys=True)
        return {
            "format": _FORMAT,
            "event": self._event.to_dict(),
            "correlation": sha256(coefficients.encode()).hexdigest(),
            "steps": self._steps,
            "bounds": self.bounds.to_dict(),
            "records_per_person": self._records_per_person,
            "relation": self._relation,
            "seed": None if self._seed is None else sha256(self._seed).hexdigest(),
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
            "memory": [_plain(one) for one in self._memory],
            "like": self._like,
            "asked": self._asked,
        }
        return json.dumps(fields).encode()

    def _restore(self, fields: Mapping[str, Any]) -> None:
        self._check_terms(fields["terms"])
        self._entry_hash = fields["entry"]
        self._fit, self.made, self.rows = fields["fit"], fields["made"], fields["rows"]
        self._total, self._sum = _integers(fields["total"]), _integers(fields["sum"])
        self._memory, self._like = [_integers(one) for one in fields["memory"]], fields["like"]
        self._asked = fields["asked"]
        self._plan = None

    def _check_terms(self, paid: Mapping[str, Any]) -> None:
        """Refuse to go on with other terms than those that were paid for."""
        own = json.loads(json.dumps(self._terms()))
        other = [name for name in own if name not in paid or own[name] != paid[name]]
        if not other and paid.keys() == own.keys():
            return
        if "format" in other:
            raise BadInput(
                "This state was written by another version of reticent, in a format that this one does not know: go "
                "on with that version, or begin another stream, which is charged."
            )
        raise BadInput(
            f"This state was paid for with another {' and another '.join(other) or 'set of terms'}: noise that was "
            "paid for holds for those terms only. Go on with the same, or begin another stream, which is charged."
        )

    def __repr__(self) -> str:
        return f"<Stream: {self.made} steps released>"

    def __reduce__(self) -> NoReturn:
        raise TypeError("A stream holds exact sums and noise: it is never copied, pickled or sent. See Stream.state.")


def _copied(correlation: Correlation) -> Correlation:
    """A correlation of the same coefficients, made anew: nobody else holds it, and its methods are those that are proved."""
    for kind, parts in _KNOWN.items():
        if type(correlation) is kind:
            return kind(*(getattr(correlation, name) for name in parts))
    raise BadInput("correlation must be BATCHES, TREE, a Toeplitz, an Echo or Buffers: only these are proved.")


def _parsed(state: bytes) -> dict[str, Any]:
    """A state as it was written, with the shapes and types that it must have."""
    try:
        fields = json.loads(state)
    except (RecursionError, TypeError, ValueError):
        fields = None
    if isinstance(fields, dict) and fields.keys() == _STATE - {"terms", "entry"}:  # as version 0.1 wrote it
        fields |= {"terms": {}, "entry": None}
    if not isinstance(fields, dict) or fields.keys() != _STATE or not isinstance(fields["terms"], dict):
        raise BadInput("This is not the state of a stream, as Stream.state gives it.")
    texts = isinstance(fields["fit"], str) and isinstance(fields["like"], str)
    optional = all(fields[name] is None or isinstance(fields[name], str) for name in ("entry", "asked"))
    counts = whole(fields["made"], 0) and whole(fields["rows"], 0)
    memory = fields["memory"]
    sums = isinstance(memory, list) and all(map(_is_sum, [fields["total"], fields["sum"], *memory]))
    if not (texts and optional and counts and sums):
        raise BadInput("The state of this stream was altered: go on from a copy of what Stream.state gave.")
    return fields


def _is_sum(numbers: object) -> bool:
    """Whether these are exact sums, in whole numbers: 0 before the first record, then a list."""
    if isinstance(numbers, list):
        return all(whole(one, -math.inf) for one in numbers)
    return type(numbers) is int and numbers == 0


def _plain(numbers: Any) -> Any:
    return numbers if isinstance(numbers, int) else [int(v) for v in numbers]


def _integers(numbers: Any) -> Any:
    return numbers if isinstance(numbers, int) else np.array(numbers, dtype=object)
