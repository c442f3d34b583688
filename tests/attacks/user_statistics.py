"""Statistics that users write: a class that says one thing to the noise and another to the limits.

Each attack releases the sum of one record, −1 or 1, at a noise multiplier of 10: the two sums may
lie a tenth of the noise apart, and the noise itself moves them by 1.4 standard deviations.
"""

import itertools
import sys
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

import reticent
from reticent.privacy.selection.exponential_mechanism import Scores
from reticent.privacy.statistics.cell_sum import CellSum
from reticent.privacy.statistics.partitioned_gram import PartitionedGram
from reticent.privacy.streams.stream import Stream
from tests.attacks.harness import Outcome, attack
from tests.attacks.old_names import OLD_MEMBERS, defines_old_names

_BOUNDS = reticent.Bounds(x=(-1, 1))
_MULTIPLIER = 10.0
_FAR = 20.0  # standard deviations: noise alone does not go there


def _curator(records: list[float], multiplier: float = _MULTIPLIER) -> reticent.Curator:
    table = np.array(records)[:, None]
    return reticent.Curator(
        reticent.scan(table), bounds=_BOUNDS, event=reticent.Gaussian(noise_multiplier=multiplier)
    )


def _apart(make: Callable[[], object]) -> Outcome:
    values = []
    sd = 1.0
    for record in (-1.0, 1.0):
        release = _curator([record]).release(make())
        values.append(float(release.value[0]))
        sd = float(release.sd[0])
    apart = abs(values[1] - values[0]) / sd
    return Outcome(
        apart > _FAR,
        f"sums of −1 and of 1 lie {apart:.2g} standard deviations apart; 0.1 was paid for",
    )


class _Rows:
    columns = 1
    norm2 = 1

    def rows(self, records):
        return records


@attack("5", "A mixin whose __init_subclass__ does not call super, and a sensitivity of one's own")
def mixin() -> Outcome:
    class Mixin:
        def __init_subclass__(cls, **given):
            cls.tag = "mine"

    @dataclass(frozen=True)
    class Own(_Rows, Mixin, reticent.Sum):
        sensitivity2 = property(lambda self: 4)

    return _apart(Own)


@attack("5", "A class that says it was defined in the core")
def module() -> Outcome:
    @dataclass(frozen=True)
    class Own(_Rows, reticent.Sum):
        __module__ = reticent.AssignmentMoments.__module__
        sensitivity2 = property(lambda self: 4)

    return _apart(Own)


@attack("5", "Sum.register: a virtual subclass")
def registered() -> Outcome:
    @defines_old_names
    class Own:
        kind = "sum"
        size = 1
        columns = 1
        sensitivity2 = 4
        sensitivity1 = None
        step = 2.0**-24
        block_rows = 64
        output_limit = 1.0

        def block_sum(self, records):
            return np.trunc(records * 2**24).sum(axis=0)

        def coordinates(self, total):
            return total

        def coordinate_multiplicity(self):
            return np.ones(1, dtype=np.int64)

        def describe(self):
            return {"name": "Own", "kind": "sum", "size": 1}

    reticent.Sum.register(Own)
    return _apart(Own)


@attack("5", "__getattribute__ answers for the sensitivity")
def getattribute() -> Outcome:
    @dataclass(frozen=True)
    class Own(_Rows, reticent.Sum):
        def __getattribute__(self, name):
            return 4 if name == "sensitivity2" else object.__getattribute__(self, name)

    return _apart(Own)


@attack("5", "A property that fails, so that __getattr__ answers for the sensitivity")
def getattr_after_failure() -> Outcome:
    @dataclass(frozen=True)
    class Own(reticent.Sum):
        columns = 1

        @property
        def norm2(self):
            caller = sys._getframe(1)
            before = sys._getframe(3)
            if (caller.f_code.co_name, before.f_code.co_name) == ("limit2", "sensitivity2"):
                raise AttributeError("norm2")
            return 1

        def __getattr__(self, name):
            if name in ("limit2", "sensitivity2"):
                return 4
            raise AttributeError(name)

        def rows(self, records):
            return records

    return _apart(Own)


@attack("5", "nonnegative: true when the noise asks, false when the rows are held")
def nonnegative() -> Outcome:
    """The noise is then √2 too small.

    Shown by the scale, since 300 releases of each would be needed otherwise.
    """

    @dataclass(frozen=True)
    class Own(_Rows, reticent.Sum):
        @property
        def nonnegative(self):
            return sys._getframe(1).f_code.co_name == "sensitivity2"

    scales = [float(_curator([1.0]).release(make()).sd[0]) for make in (Own, _honest())]
    ratio = scales[1] / scales[0]
    negative = float(_curator([-1.0], 1e-6).release(Own()).value[0])
    broke = ratio > 1.1 and negative < -0.5
    return Outcome(
        broke,
        f"the noise is {ratio:.2f} times too small, and a row of −1 is added as {round(negative)}",
    )


def _honest() -> type:
    @dataclass(frozen=True)
    class Honest(_Rows, reticent.Sum):
        pass

    return Honest


@attack("5", "nonnegative is a field whose truth changes")
def changing_truth() -> Outcome:
    class Flag:
        asked = 0

        def __bool__(self):
            self.asked += 1
            return self.asked == 1

    @dataclass(frozen=True)
    class Own(_Rows, reticent.Sum):
        flag: object = None
        nonnegative = property(lambda self: self.flag)

    scales = []
    negative = 0.0
    for record in (1.0, -1.0):
        one = Own(Flag())
        one.__dict__["describe"] = dict
        release = _curator([record], 1e-6).release(one)
        scales.append(float(release.sd[0]))
        negative = float(release.value[0])
    ratio = 2e-6 / scales[0]
    return Outcome(ratio > 1.1 and negative < -0.5, f"the noise is {ratio:.2f} times too small")


@attack("5", "The cached limit of a row's length, rewritten by the row map")
def rewritten_limit() -> Outcome:
    @dataclass(frozen=True)
    class Own(reticent.Sum):
        columns = 1
        norm2 = 1

        def __post_init__(self):
            self.__dict__["limit2"] = 1

        def rows(self, records):
            self.__dict__["limit2"] = 2**48
            return records

    return _apart(Own)


@attack("5", "Two kinds at once: held as sums, chosen by as counts")
def two_kinds() -> Outcome:
    class Cells:
        cells = 2
        own = 1
        shared = 0
        norm2 = 1
        groups = (2,)

        def cell(self, records):
            return np.zeros(len(records))

        def short_rows(self, records):
            return records

    @dataclass(frozen=True)
    class Both(Cells, CellSum, reticent.Counts):
        pass

    scores = Scores(np.zeros((2, 2, 2)), np.array([[1.0, 0.0], [-1.0, 0.0]]), np.zeros(2))
    shares = []
    for record in (-1.0, 1.0):
        chosen = [
            _curator([record] + [0.0] * 9, 100.0).select(Both(), scores).value[0]
            for _ in range(100)
        ]
        shares.append(float(np.mean(chosen)))
    apart = abs(shares[1] - shares[0])
    return Outcome(
        apart > 0.5, f"a record decides the choice in {apart:.0%} of runs; 0.4 % was paid for"
    )


_NUMBERS = {
    "columns": 1,
    "norm2": 1,
    "groups": (2,),
    "cells": 2,
    "own": 1,
    "shared": 0,
    "parts": 1,
    "weights": (1, 1, 0),
}
_NUMBERS |= {
    "second_moment": "none",
    "pooled_covariance": False,
    "feature_map": None,
    "residual_columns": 1,
    "residual_norm2": 1,
}
_NUMBERS |= {OLD_MEMBERS[name]: _NUMBERS[name] for name in OLD_MEMBERS.keys() & _NUMBERS}


@attack("5", "Pairs of kinds that a class may be at once")
def pairs_of_kinds() -> Outcome:
    kinds = [
        reticent.Sum,
        reticent.Gram,
        reticent.Counts,
        reticent.AssignmentMoments,
        CellSum,
        PartitionedGram,
    ]
    one = {CellSum: reticent.Sum, PartitionedGram: reticent.Gram}
    accepted = []
    for pair in itertools.permutations(kinds, 2):
        if one.get(pair[0]) is pair[1]:
            continue
        try:
            cls = type("Own", pair, {})
        except TypeError:  # Python has no order for these two
            continue
        own = {name: _NUMBERS.get(name) for name in cls.__abstractmethods__}
        try:
            _curator([0.0]).release(object.__new__(type("Own", (cls,), own)))
        except reticent.ReleaseRefused:
            continue
        except Exception:  # past the question which kind it is
            accepted.append(pair)
        else:
            accepted.append(pair)
    return Outcome(bool(accepted), f"{len(accepted)} pairs of kinds are accepted")


@attack("5", "Columns that are 1 for the noise and 2 for the sum: a number without noise")
def without_noise() -> Outcome:
    @dataclass(frozen=True)
    class Own(reticent.Gram):
        norm2 = 1

        def __post_init__(self):
            self.__dict__["asked"] = []

        @property
        def columns(self):
            self.asked.append(0)
            return 1 if len(self.asked) <= 1 else 2

        def rows(self, records):
            return np.hstack([records, 0.5 + 0 * records]) * 0.7

    values = []
    for _ in range(2):
        release = _curator([0.3] + [0.0] * 9, 1e6).release(Own())
        values.append(float(release.value[1]))
    exact = 0.49 * 0.5 * 0.3
    error = max(abs(value - exact) for value in values)
    return Outcome(
        error < 1e-3,
        f"an entry of a Gram matrix is released to {error:.1g}, at a noise multiplier of 10⁶",
    )


@attack("5", "A stream: records added under one bound, noise for another")
def stream_of_another_bound() -> Outcome:
    def make(norm):
        @dataclass(frozen=True)
        class Own(reticent.Sum):
            columns = 1
            norm2 = norm
            bits = 14

            def rows(self, records):
                return records * 1000.0

        return Own

    long = make(10**6)
    short = make(1)
    bounds = _BOUNDS.resolve(reticent.scan(np.zeros((1, 1))), targets=False)[0]
    values = []
    sd = 1.0
    for record in (-1.0, 1.0):
        stream = Stream(bounds=bounds, event=reticent.Gaussian(noise_multiplier=_MULTIPLIER))
        stream.add(long(), np.array([[record]]))
        release = stream.release(short())
        values.append(float(release.value[0]))
        sd = float(release.sd[0])
    apart = abs(values[1] - values[0]) / sd
    return Outcome(
        apart > _FAR, f"sums lie {apart:.0f} standard deviations apart; 0.1 was paid for"
    )
