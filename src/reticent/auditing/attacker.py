"""The attacker of an audit.

He knows both tables, sees every release of a fit, and weighs them together. Two tables differ in
one record, A or B. The attacker knows all of both, and the model: whatever a model asks for is a
function of earlier releases. So he goes through ``learn`` again with the releases that left
(`Witness`), computes what each would be without noise, for either table, and adds up

    log p(all releases | A) − log p(all releases | B) = Σ_t (‖v_t − b_t‖² − ‖v_t − a_t‖²) / 2σ_t²

stage by stage, v_t the numbers that were released, a_t and b_t the exact ones, σ_t the stated noise
scale (for Laplace noise, absolute values). That is the best test there is.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reticent.models.base import PrivateEstimator
from reticent.privacy.accounting.events import Laplace
from reticent.privacy.bounds import Bounds
from reticent.privacy.oracle import Design
from reticent.privacy.release import Release
from reticent.privacy.statistics.base import Statistic
from reticent.privacy.statistics.exact_sum import one_blas_thread

__all__ = ["Run", "Seen", "Tables", "Witness", "exact_sum"]

Array = NDArray[np.float64]
_TOLERANCE = 1e-9  # relative, for sums of squares in floating point
_COLLISION_BITS = (
    80.0  # noise that could be the same by accident with probability 2^-80 is never the same
)


@dataclass(frozen=True, eq=False)
class Tables:
    """Two neighbouring tables: the records that both have, and the one that differs.

    ``record_a``, ``record_b``: inputs, then outputs; ``others``: shape (records, inputs + outputs).
    """

    record_a: Array
    record_b: Array
    others: Array
    inputs: int

    def whole(self, *, with_a: bool) -> Array:
        """All records, the one that differs first."""
        if with_a:
            record = self.record_a
        else:
            record = self.record_b
        return np.vstack([record[None, :], self.others])


@dataclass(frozen=True, eq=False)
class Seen:
    """What an attacker has of one release.

    How far its numbers are from the exact ones of A and of B.

    ``from_a``, ``from_b``, ``scale``: shape (numbers,); ``step``: grid of the numbers; ``allowed``:
    how far any two tables may move the release by its statistic's own sensitivity, in noise scales
    (L2 distance, for Laplace noise L1), or NaN where that is not stated for a release by itself.
    """

    from_a: Array
    from_b: Array
    scale: Array
    step: float
    allowed: float = math.nan
    laplace: bool = False

    @property
    def shift(self) -> float:
        """Distance of A and B in this release, in noise scales: L2, or L1 for Laplace noise."""
        apart = (self.from_a - self.from_b) / self.scale
        return float(np.abs(apart).sum() if self.laplace else np.linalg.norm(apart))

    @property
    def log_ratio(self) -> float:
        """log of the density with A over that with B."""
        to_a = self.from_a / self.scale
        to_b = self.from_b / self.scale
        if self.laplace:
            return float(np.abs(to_b).sum() - np.abs(to_a).sum())
        return float(to_b @ to_b - to_a @ to_a) / 2

    def noise(self, *, with_a: bool) -> Array:
        """The noise in units of its stated scale, by one who knows which table it was."""
        return (self.from_a if with_a else self.from_b) / self.scale

    @property
    def bits(self) -> float:
        """Collision entropy in bits: two independent draws are equal with probability 2^-this."""
        return float(
            np.log2(np.maximum(2 * math.sqrt(math.pi) * self.scale / self.step, 1.0)).sum()
        )

    @property
    def unique(self) -> bool:
        """Whether two independent draws of this noise are never the same."""
        return self.bits > _COLLISION_BITS


@dataclass(frozen=True, eq=False)
class Run:
    """All that one call of a public method released, with table A or B.

    log_ratio
        Of all releases together.
    noise
        For each release its noise in stated scales, shape (numbers,): independent standard normal
        numbers (Laplace numbers, for Laplace noise) if the program does what it states.
    shift
        How far A and B are apart in all releases together, in noise scales (L2; Laplace: L1).
    attacked, released
        How many releases were attacked, and how many there were.
    bits
        For each release: two independent draws of its noise are the same with a probability of
        2^-bits.
    faults
        What is wrong for certain.
    """

    with_a: bool
    log_ratio: float
    noise: tuple[Array, ...]
    shift: float
    attacked: int
    released: int
    laplace: bool = False
    bits: tuple[float, ...] = ()
    faults: tuple[str, ...] = ()
    normal: bool = True  # whether log_ratio is normal, given the shift

    @classmethod
    def of(
        cls,
        seen: Sequence[Seen],
        *,
        with_a: bool,
        released: int,
        limit: float,
        faults: Sequence[str] = (),
    ) -> "Run":
        """Weigh releases together; ``limit`` is the shift that was promised for all of them."""
        laplace = seen[0].laplace
        shift = _together([one.shift for one in seen], laplace)
        allowed = _together([one.allowed for one in seen], laplace)
        found = list(faults)
        for number, one in enumerate(seen, start=1):
            if one.shift > one.allowed * (1 + _TOLERANCE):
                found.append(
                    f"release {number}: one record moves it by more than its stated sensitivity"
                )
        if max(shift, allowed if math.isfinite(allowed) else 0.0) > limit * (1 + _TOLERANCE):
            found.append("the stated noise of all releases together is less than was promised")
        noise = tuple(one.noise(with_a=with_a) for one in seen)
        found += _same_noise(noise, [one.unique for one in seen])
        ratio = math.fsum(one.log_ratio for one in seen)
        return cls(
            with_a,
            log_ratio=ratio,
            noise=noise,
            shift=shift,
            attacked=len(seen),
            released=released,
            laplace=laplace,
            bits=tuple(one.bits for one in seen),
            faults=tuple(found),
            normal=not laplace,
        )

    @property
    def along(self) -> float:
        """The noise in the direction in which A and B differ, in stated scales.

        NaN if they do not differ.
        """
        if self.shift == 0 or not self.normal:
            return math.nan
        if self.with_a:
            expected = self.shift**2 / 2
        else:
            expected = -(self.shift**2) / 2
        return (self.log_ratio - expected) / self.shift


def _together(parts: Sequence[float], laplace: bool) -> float:
    if laplace:
        return math.fsum(parts)
    return math.sqrt(math.fsum(one * one for one in parts))


def _same_noise(noise: Sequence[Array], unique: Sequence[bool]) -> list[str]:
    """Refuse releases of one fit that have the same noise: their difference has none."""
    before: set[bytes] = set()
    for number, (one, alone) in enumerate(zip(noise, unique, strict=True), start=1):
        key = np.round(one, 6).tobytes()
        if alone and key in before:
            return [f"release {number}: the same noise as in an earlier release"]
        before.add(key)
    return []


def exact_sum(statistic: Statistic, bounds: Bounds, records: Array) -> Array:
    """What a release would be without noise, shape (numbers,)."""
    unit = bounds.scale(records, output_limit=statistic.output_limit)
    total = np.zeros(statistic.size)
    for start in range(0, len(unit), statistic.block_rows):
        block = statistic.block_sum(unit[start : start + statistic.block_rows])
        total += np.asarray(statistic.coordinates(block), dtype=np.float64)
    return total * statistic.step


class AllSeen(Exception):
    """Ends a rebuild after the last release: what a model does with it is of no interest."""


class Witness:
    """Answers from recorded releases, as a `Replay` does, and looks at both tables for each.

    ``seen`` holds what the attacker has of every release; ``faults`` what cannot be.
    """

    def __init__(self, releases: Sequence[Release], tables: Tables) -> None:
        self.n = releases[0].n
        self.bounds = releases[0].bounds
        self.event = releases[0].event
        self.unit = releases[0].unit
        self.n_sd = 0.0
        self._left = list(releases)
        self._tables = tables
        self.seen: list[Seen] = []
        self.faults: list[str] = []

    @property
    def noise_multiplier(self) -> float:
        """Noise of one release by the record's sensitivity."""
        multiplier: float = self.event.noise_multiplier  # type: ignore[attr-defined]
        return multiplier * self.unit.records_per_person

    def release(self, statistic: Statistic, *, shares_spent: int = 1) -> Release:
        """Give the next recorded release."""
        release = self._left.pop(0)
        number = len(self.seen) + 1
        if release.statistic != statistic.describe() or release.shares_spent != shares_spent:
            self.faults.append(
                f"release {number} is not what the model asks for when it is rebuilt"
            )
        self.seen.append(self._look(release, statistic))
        if not self._left:
            raise AllSeen
        return release

    def release_given_inputs(self, design: Design, *, shares_spent: int = 1) -> Release:
        """The same, of a statistic that is made from public inputs."""
        inputs = self._tables.whole(with_a=True)[:, : self._tables.inputs]
        return self.release(
            design(self.bounds.inputs_alone().scale(inputs)), shares_spent=shares_spent
        )

    def select(self, *args: Any, **options: Any) -> Release:
        """Refuse: choices by score are not attacked."""
        raise NotImplementedError("Choices by score are not attacked.")

    def _look(self, release: Release, statistic: Statistic) -> Seen:
        tables = self._tables
        common = exact_sum(statistic, self.bounds, tables.others)
        a = common + exact_sum(statistic, self.bounds, tables.record_a[None, :])
        b = common + exact_sum(statistic, self.bounds, tables.record_b[None, :])
        laplace = isinstance(release.event, Laplace)
        if laplace:
            sensitivity = (statistic.sensitivity1 or math.inf) * statistic.step
            allowed = sensitivity / float(release.scale.min())
        else:
            distance = math.sqrt(statistic.sensitivity2) * statistic.step
            allowed = distance / float(
                (release.scale * np.sqrt(statistic.coordinate_multiplicity())).min()
            )
        return Seen(
            release.value - a, release.value - b, release.scale, statistic.step, allowed, laplace
        )

    def watch(self, model: PrivateEstimator) -> None:
        """Rebuild the model, as long as it asks for releases."""
        try:
            with one_blas_thread():  # as in a fit, for the same bits
                model.learn(self)
        except AllSeen:
            return
        self.faults.append(
            f"{len(self._left)} releases that the model does not ask for when it is rebuilt"
        )
