"""What a second review of the core found.

Objects of a user that change between being looked at and being used.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

import reticent
from reticent.privacy.streams.correlated_noise import Toeplitz
from reticent.privacy.streams.stream import Stream
from tests.attacks.harness import Outcome, attack, first_sentence
from tests.attacks.old_names import defines_old_names, member_name

_EXACT = 1e-6  # a noise multiplier at which sums are seen as they are
_BOUNDS = reticent.Bounds(x=[(-1, 1)])
_SECRET = 0.123456789


@dataclass(frozen=True)
class _Identity(reticent.Sum):
    columns = 1
    norm2 = 1

    def rows(self, records):
        return records


def _seen(statistic: reticent.AssignmentMoments, table: np.ndarray) -> np.ndarray | None:
    """Released numbers by their noise: neighbours may lie 1/multiplier apart.

    None if the release is refused.
    """
    event = reticent.Gaussian(noise_multiplier=_EXACT)
    try:
        release = reticent.Curator(reticent.scan(table), bounds=_BOUNDS, event=event).release(
            statistic
        )
    except reticent.ReleaseRefused:
        return None
    return release.value / release.sd


def _neighbours(statistic: reticent.AssignmentMoments, table: np.ndarray, record: float) -> Outcome:
    """How far apart the sums of two tables are that differ in the first record, by
    the sensitivity.
    """
    other = table.copy()
    other[0] = record
    first = _seen(statistic, table)
    second = _seen(statistic, other)
    if first is None or second is None:
        return Outcome(
            (first is None) != (second is None), "one table is released, its neighbour is refused"
        )
    apart = float(np.linalg.norm(first - second)) * _EXACT
    return Outcome(apart > 1.01, f"neighbours lie {apart:.3g} times the sensitivity apart")


@attack("5", "AssignmentMoments: rows that cannot be asked for all pairs at once")
def pairs_of_all() -> Outcome:
    @dataclass(frozen=True)
    @defines_old_names
    class Own(reticent.AssignmentMoments):
        def responsibilities(self, records):
            many = np.select(
                [records[:, 0] > 0.9, records[:, 0] > 0.5, records[:, 0] > 0.1], [1, 3, 2], 1
            )
            gamma = np.where(np.arange(self.parts) < many[:, None], 0.25, 0.0)

            def rows(pairs):
                return np.ones((len(pairs), 1))  # fails for None, which some blocks are asked with

            return gamma, rows

    table = np.repeat([0.0, 0.7], 100)[
        :, None
    ]  # 100 records with one share, 100 with three: half of all pairs
    return _neighbours(Own(4, 1, "none", False, (1, 1, 0)), table, 0.3)


@defines_old_names
class _Narrow(reticent.Bounds):
    def scale(self, records, *limit, **limits):  # whose name differs between versions
        if (np.abs(records - _SECRET) < 1e-9).any():
            raise ValueError("a record that these bounds were not made for")
        return super().scale(records, *limit, **limits)


@attack("6", "Bounds of one's own, whose scaling fails for some values: an oracle without noise")
def own_bounds() -> Outcome:
    seen = []
    for record in (0.5, _SECRET):
        stream = Stream(bounds=_Narrow(x=[(-1, 1)]), event=reticent.Gaussian(noise_multiplier=1e6))
        try:
            stream.add(_Identity(), np.array([[record]]))
            seen.append("added")
        except (reticent.ReleaseRefused, ValueError) as error:
            if isinstance(error, reticent.BadInput):
                raise
            seen.append(first_sentence(error, 60))
    return Outcome(len(set(seen)) > 1, f"seen: {' / '.join(seen)}")


def _after(correlation: Toeplitz, change: Callable[[Toeplitz], None]) -> Outcome:
    """The standard deviation of a sum's noise, if the correlation is changed after the stream was
    paid for.
    """
    multiplier = 100.0
    event = reticent.Gaussian(noise_multiplier=multiplier)
    stream = Stream(
        bounds=_BOUNDS, event=event, correlation=correlation, steps=len(correlation.coefficients)
    )
    change(correlation)
    stream.add(_Identity(), np.array([[0.5]]))
    sd = float(stream.release(_Identity()).sd[0])
    needed = 2 * multiplier * math.hypot(*correlation.coefficients) / 2.0**30
    return Outcome(sd < 0.99 * needed, f"noise of {sd:.3g} where {needed:.3g} is needed")


@attack("5", "A correlation with a sensitivity of its own")
def own_stretch() -> Outcome:
    def change(correlation):
        none = Fraction(1, 10**20)
        setattr(correlation, member_name("sensitivity_inflation"), lambda *arguments: none)

    return _after(Toeplitz([2**30, 2**29]), change)
