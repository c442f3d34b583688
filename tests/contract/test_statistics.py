"""What every statistic must keep.

Purity of the row map, enforced bounds, exact sums, and its sensitivity.
"""

import itertools
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.spatial.distance import cdist

from reticent.errors import BadInput, ReleaseRefused
from reticent.privacy.record_sum import BlockSum, try_out
from reticent.privacy.sources.base import scan
from reticent.privacy.statistics.assignment_moments import AssignmentMoments
from reticent.privacy.statistics.base import RowStatistic, Statistic
from reticent.privacy.statistics.cell_sum import CellSum
from reticent.privacy.statistics.counts import Counts
from reticent.privacy.statistics.enforced import enforce
from reticent.privacy.statistics.exact_sum import add_up
from reticent.privacy.statistics.gram import Gram
from reticent.privacy.statistics.partitioned_gram import PartitionedGram
from reticent.privacy.statistics.sum import ColumnSum, Sum
from tests.contract.cases import BOX, NASTY, STATISTICS, all_of, records

each = pytest.mark.parametrize(
    ("statistic", "bounds", "tight"), STATISTICS.values(), ids=STATISTICS
)


def exact(statistic, bounds, data) -> np.ndarray:
    """The sum by the slowest and plainest way: one record at a time, in Python integers."""
    enforced = enforce(statistic)
    block_sum = BlockSum(enforced, bounds)
    with np.errstate(all="ignore"):
        return enforced.coordinates(
            sum(
                block_sum(data[i : i + 1]).astype(np.int64).astype(object) for i in range(len(data))
            )
        )


def test_every_statistic_is_listed():
    assert {type(case[0]) for case in STATISTICS.values()} == all_of(Statistic) - {Statistic}


@each
def test_same_integers_for_every_chunking_order_and_thread_count(statistic, bounds, tight):
    data = records(120)
    expected = exact(statistic, bounds, data)
    shuffled = data[np.random.default_rng(1).permutation(len(data))]
    columnwise = np.asfortranarray(data)
    # each number of rows, with one thread and two, and each order of the records with both
    for rows, threads, table in [
        (1, 2, shuffled),
        (7, 1, columnwise),
        (7, 2, data),
        (60, 2, columnwise),
        (60, 1, data),
        (8192, 1, shuffled),
        (8192, 2, data),
    ]:
        rows = min(rows, statistic.block_rows)
        total = add_up(
            scan(table).blocks(_fields()),
            BlockSum(enforce(statistic), bounds),
            rows=rows,
            threads=threads,
        )
        assert total.rows == len(data)
        assert (statistic.coordinates(total.integers()) == expected).all()


def _fields():
    from reticent.privacy.sources.base import Field

    return [Field(i) for i in range(3)]


@each
def test_a_row_does_not_depend_on_its_place(statistic, bounds, tight):
    """Each record alone, and at every offset of blocks of several sizes, gives the same integers,
    bit for bit.
    """
    block_sum = BlockSum(enforce(statistic), bounds)
    with np.errstate(all="ignore"):
        each = np.vstack([NASTY, records(20)])
        alone = [block_sum(record[None, :]).astype(np.int64) for record in each]
        for size, place in [(2, 0), (2, 1), (9, 4), (9, 8), (64, 33), (1001, 1000)]:
            block = records(size, seed=size)[:size]
            rest = block_sum(np.delete(block, place, axis=0)).astype(np.int64)
            for record, one in zip(each, alone, strict=True):
                block[place] = record
                assert (block_sum(block).astype(np.int64) - rest == one).all()


@pytest.mark.parametrize(
    "name", [name for name, case in STATISTICS.items() if isinstance(case[0], RowStatistic)]
)
@given(
    st.lists(
        st.tuples(*[st.floats(allow_nan=True, allow_infinity=True)] * 3), min_size=1, max_size=20
    )
)
@settings(max_examples=60, deadline=None)
def test_bounds_are_enforced_on_the_integers(name, data):
    statistic, bounds, _ = STATISTICS[name]
    with np.errstate(all="ignore"):
        q = statistic.integers(bounds.scale(np.array(data, dtype=float)))
    whole = q.astype(np.int64).astype(object)
    assert (q == whole).all()
    assert ((whole**2).sum(axis=1) <= statistic.limit2).all()
    if statistic.limit1 is not None:
        assert (abs(whole).sum(axis=1) <= statistic.limit1).all()


def summand(enforced, bounds, record) -> np.ndarray:
    """What one record adds to the released numbers: whole, and small enough for floats."""
    with np.errstate(all="ignore"):
        return enforced.coordinates(BlockSum(enforced, bounds)(record[None, :]))


def distance2(enforced, a, b) -> int:
    """Squared distance, as the accounting counts it, between the sums of two one-record tables.

    Exact, in Python integers.
    """
    return int(
        (
            enforced.coordinate_multiplicity()
            * (a.astype(np.int64).astype(object) - b.astype(np.int64).astype(object)) ** 2
        ).sum()
    )


@each
def test_no_neighbour_moves_the_sum_further_than_claimed(statistic, bounds, tight):
    """Search for a violating pair.

    All pairs of corners and nasty records, all pairs of 300 random ones, and optimisation from the
    two that lie furthest apart.
    """
    statistic = enforce(statistic)
    level = bounds.noise_column and (bounds.noise_column.low, bounds.noise_column.high)
    numbers = [(0, len(bounds.classes) - 1)] if bounds.classes else []
    low, high = np.array([*bounds.x, *([level] if level else []), *bounds.y, *numbers]).T
    corners = np.array(list(itertools.product(*zip(low, (low + high) / 2, high, strict=True))))
    extreme = [
        summand(statistic, bounds, record) for record in np.vstack([corners, corners * 1e6, NASTY])
    ]
    pairs = list(
        itertools.combinations({tuple(one): one for one in extreme}.values(), 2)
    )  # many are alike

    def placed(v):
        record = low + (high - low) * v
        if bounds.classes:  # numbers of classes, as sources give them
            record[-1] = np.clip(np.round(record[-1]), 0, high[-1])
        return summand(statistic, bounds, record)

    shares = statistic.coordinate_multiplicity()
    most = float(statistic.sensitivity2)

    def loss(v):  # in floats: what is found is judged exactly
        return -float(shares @ (placed(v[:3]) - placed(v[3:])) ** 2.0) / most

    starts = np.random.default_rng(0).uniform(-0.2, 1.2, (300, 3))
    found = np.array([placed(v) for v in starts])
    scaled = (found * np.sqrt(shares / most)).astype(float)
    apart = cdist(scaled, scaled, "sqeuclidean")
    for _ in range(2):
        two = list(np.unravel_index(apart.argmax(), apart.shape))
        pairs.append(tuple(found[two]))
        apart[two] = apart[:, two] = 0.0
        further = minimize(loss, starts[two].ravel(), method="Nelder-Mead", options={"maxfev": 100})
        pairs.append((placed(further.x[:3]), placed(further.x[3:])))
    best = max(distance2(statistic, a, b) for a, b in pairs)
    best1 = max(int(abs(a - b).astype(np.int64).astype(object).sum()) for a, b in pairs)
    assert best <= statistic.sensitivity2
    if statistic.sensitivity1 is not None:
        assert best1 <= statistic.sensitivity1
    if tight:
        assert best >= 0.999 * statistic.sensitivity2


@each
def test_descriptions_are_public_json(statistic, bounds, tight):
    import json

    assert json.loads(json.dumps(statistic.describe())) == statistic.describe()


KINDS = [Sum, Gram, Counts, PartitionedGram, AssignmentMoments, CellSum, ColumnSum]


@pytest.mark.parametrize(
    "pair",
    list(itertools.permutations(KINDS, 2)),
    ids=lambda pair: "+".join(k.__name__ for k in pair),
)
def test_a_statistic_is_of_one_kind(pair):
    """Two at once would be held to one's limits and noised by the other's.

    A kind and what refines it are one.
    """
    try:
        both = type("Both", pair, {})
    except TypeError:  # Python has no order for these two
        return
    refined = {frozenset({Sum, CellSum}), frozenset({Gram, PartitionedGram})}
    if frozenset(pair) not in refined:
        with pytest.raises(ReleaseRefused, match="of one kind"):
            enforce(object.__new__(type("Own", (both,), dict.fromkeys(both.__abstractmethods__))))


def test_the_kind_is_the_real_one():
    """Neither registration, nor what an object or its class's class says of itself,
    makes a kind.
    """

    class Duck:
        columns = norm2 = size = sensitivity2 = 1

    Sum.register(Duck)
    assert isinstance(Duck(), Sum)
    said = {
        "__class__": property(lambda self: Sum),
        "__module__": "reticent.privacy.statistics.base",
    }

    class Meta(type):
        def __getattribute__(cls, name):
            return Sum.__mro__ if name == "__mro__" else type.__getattribute__(cls, name)

    for one in (Duck(), type("Posing", (), said)(), Meta("Posing", (), {})()):
        with pytest.raises(ReleaseRefused, match="Only a Sum"):
            enforce(one)


@dataclass(frozen=True)
class Odd(Sum):
    """Rows of whatever type, from the first column."""

    how: str
    square: object = 1

    columns = property(lambda self: 1)
    norm2 = property(lambda self: self.square)

    def rows(self, records):
        first = records[:, :1]
        if self.how == "masked":
            return np.ma.masked_array(first, mask=first > 0.5)
        return first.astype(self.how, copy=False)


@pytest.mark.parametrize("how", ["float16", "float32", "longdouble", "int64", "bool", "masked"])
def test_rows_of_other_types_are_summed_exactly_too(how):
    """float32 rows, added up in float32, let one record move a long sum by 33 times its
    sensitivity.
    """
    data = np.full((65_536, 1), 1 - 2.0**-10)
    data[::3] = 2.0**-11
    other = data.copy()
    other[0] = -1.0
    statistic = Odd(how)
    with np.errstate(all="ignore"):
        sums = [
            int(add_up([one], enforce(statistic).block_sum, rows=2**16).integers()[0])
            for one in (data, other)
        ]
        rows = [int(statistic.integers(one[:1])[0, 0]) for one in (data, other)]
    assert sums[0] - sums[1] == rows[0] - rows[1]
    assert (sums[0] - sums[1]) ** 2 <= statistic.sensitivity2


@pytest.mark.parametrize("how", ["object", "complex128", "str"])
def test_rows_that_are_no_numbers_are_refused_beforehand_and_are_zero_for_every_record(how):
    enforced = enforce(Odd(how))
    with pytest.raises(BadInput, match="real numbers"):
        try_out(enforced, BOX)
    for value in (0.0, 1.0, 1e300, np.nan):
        assert enforced.block_sum(np.full((3, 1), value)).tolist() == [0]


@dataclass(frozen=True)
class Touchy:
    """A row map, or part of one, that fails in one way for records whose first number lies in a
    range.
    """

    inner: object
    how: int

    def __call__(self, *given):
        hit = np.abs(given[-1][:, 0] - 0.5) < 0.25
        if hit.any() and self.how < len(_WAYS):
            raise _WAYS[self.how](f"{given[-1][hit]}")
        rows = self.inner(*given)
        if hit.any():
            rows = (
                np.asarray(rows)[:, :-1]
                if self.how == len(_WAYS)
                else np.asarray(rows).astype(object)
            )
        return rows


_WAYS = [ValueError, KeyboardInterrupt, SystemExit, GeneratorExit, UserWarning, MemoryError]


@pytest.mark.parametrize("how", range(len(_WAYS) + 2))
@pytest.mark.parametrize(
    "name", ["mean in a box", "counts", "moments in a box", "later stage", "sums in regions"]
)
def test_a_record_whose_row_fails_changes_no_other_record(name, how):
    """All records together give the sum of each by itself, whichever of them fail, and however.

    The same for their limits.
    """
    statistic, bounds, _ = STATISTICS[name]
    enforced = enforce(statistic)
    data = np.vstack([NASTY, records(60)])
    unit = bounds.scale(data, enforced.output_limit)
    hit = np.abs(unit[:, 0] - 0.5) < 0.25
    assert hit.any()
    assert not hit.all()
    maps = {"rows", "cells", "residuals", "short_rows"} & set(dir(statistic))
    own = {
        one: staticmethod(Touchy(getattr(statistic, one), how))
        for one in maps
        if callable(getattr(statistic, one))
    }
    touchy = object.__new__(type("Touched", (type(statistic),), own))
    touchy.__dict__.update(statistic.__dict__)
    failing = enforce(touchy)
    with np.errstate(all="ignore"):
        each = [failing.block_sum(one[None]).astype(np.int64) for one in unit]
        sound = [enforced.block_sum(one[None]).astype(np.int64) for one in unit]
        assert (failing.block_sum(unit).astype(np.int64) == sum(each)).all()
    assert all((a == b).all() for a, b, failed in zip(each, sound, hit, strict=True) if not failed)
    pairs = itertools.product([each[i] for i in np.flatnonzero(hit)[:5]], sound)
    moved = [failing.coordinates(a) - failing.coordinates(b) for a, b in pairs]
    assert (
        max(
            int((enforced.coordinate_multiplicity() * one.astype(object) ** 2).sum())
            for one in moved
        )
        <= enforced.sensitivity2
    )


def test_bounds_given_as_numpy_integers_do_not_wrap():
    @dataclass(frozen=True)
    class Wide(Gram):
        columns = property(lambda self: 1037)
        norm2 = property(lambda self: np.int64(1037))

        def rows(self, records):
            return np.zeros((len(records), 1037))

    assert type(Wide().sensitivity2) is int
    assert Wide().sensitivity2 == 2 * (1037 * 4 ** Wide().bits) ** 2
    assert Odd("float64", np.int32(2**30)).sensitivity2 == Odd("float64", 2**30).sensitivity2


@pytest.mark.parametrize("groups", [(), (0, 3), (3, 0), (2, -1), (2.5,)])
def test_every_group_has_a_cell(groups):
    sizes = groups

    @dataclass(frozen=True)
    class Some(Counts):
        groups = sizes

        def cells(self, records):
            return np.zeros((len(records), len(groups)))

    with pytest.raises((BadInput, TypeError)):
        _ = Some().sensitivity2
