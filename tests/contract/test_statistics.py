"""What every statistic must keep: purity of the row map, enforced bounds, exact sums, and its sensitivity."""

import itertools
import warnings
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from reticent.errors import BadInput
from reticent.privacy.celled import CellSum
from reticent.privacy.kept import BlockSum
from reticent.privacy.shared import Shared
from reticent.privacy.sources import scan
from reticent.privacy.staged import StagedGram
from reticent.privacy.statistic import Counts, Gram, Statistic, Sum, _Rows
from reticent.privacy.sums import add_up
from tests.contract.cases import NASTY, STATISTICS, all_of, records

each = pytest.mark.parametrize(("statistic", "bounds", "tight"), STATISTICS.values(), ids=STATISTICS)


def exact(statistic, bounds, data) -> np.ndarray:
    """The sum by the slowest and plainest way: one record at a time, in Python integers."""
    block_sum = BlockSum(statistic, bounds)
    with np.errstate(all="ignore"):
        return statistic.coordinates(
            sum(block_sum(data[i : i + 1]).astype(np.int64).astype(object) for i in range(len(data)))
        )


def test_every_statistic_is_listed():
    assert {type(case[0]) for case in STATISTICS.values()} == all_of(Statistic)


@each
def test_same_integers_for_every_chunking_order_and_thread_count(statistic, bounds, tight):
    data = records(120)
    expected = exact(statistic, bounds, data)
    shuffled = data[np.random.default_rng(1).permutation(len(data))]
    for rows, threads, table in itertools.product((1, 7, 60, 8192), (1, 2), (data, shuffled, np.asfortranarray(data))):
        rows = min(rows, statistic.block_rows)
        total = add_up(scan(table).blocks(_fields()), BlockSum(statistic, bounds), rows=rows, threads=threads)
        assert total.rows == len(data)
        assert (statistic.coordinates(total.integers()) == expected).all()


def _fields():
    from reticent.privacy.sources import Field

    return [Field(i) for i in range(3)]


@each
def test_a_row_does_not_depend_on_its_place(statistic, bounds, tight):
    """Each record alone, and at every offset of blocks of several sizes, gives the same integers, bit for bit."""
    block_sum = BlockSum(statistic, bounds)
    with np.errstate(all="ignore"):
        each = np.vstack([NASTY, records(20)])
        alone = [block_sum(record[None, :]).astype(np.int64) for record in each]
        for size, place in [(2, 0), (2, 1), (9, 4), (9, 8), (64, 33), (1001, 1000)]:
            block = records(size, seed=size)[:size]
            rest = block_sum(np.delete(block, place, axis=0)).astype(np.int64)
            for record, one in zip(each, alone, strict=True):
                block[place] = record
                assert (block_sum(block).astype(np.int64) - rest == one).all()


@pytest.mark.parametrize("name", [name for name, case in STATISTICS.items() if isinstance(case[0], _Rows)])
@given(st.lists(st.tuples(*[st.floats(allow_nan=True, allow_infinity=True)] * 3), min_size=1, max_size=20))
@settings(max_examples=60, deadline=None)
def test_bounds_are_enforced_on_the_integers(name, data):
    statistic, bounds, _ = STATISTICS[name]
    with np.errstate(all="ignore"):
        q = statistic.integers(bounds.unit(np.array(data, dtype=float)))
    whole = q.astype(np.int64).astype(object)
    assert (q == whole).all()
    assert ((whole**2).sum(axis=1) <= statistic.limit2).all()
    if statistic.limit1 is not None:
        assert (abs(whole).sum(axis=1) <= statistic.limit1).all()


def summand(statistic, bounds, record) -> np.ndarray:
    """What one record adds to the released numbers: whole, and small enough for floats."""
    with np.errstate(all="ignore"):
        return statistic.coordinates(BlockSum(statistic, bounds)(record[None, :]))


def distance2(statistic, a, b) -> int:
    """Squared distance, as the accounting counts it, between the sums of two one-record tables: exact, in Python integers."""
    return int(
        (statistic.shares() * (a.astype(np.int64).astype(object) - b.astype(np.int64).astype(object)) ** 2).sum()
    )


@each
def test_no_neighbour_moves_the_sum_further_than_claimed(statistic, bounds, tight):
    """Search for a violating pair: all pairs of corners and nasty records, then optimisation from random starts."""
    level = bounds.level and (bounds.level.low, bounds.level.high)
    numbers = [(0, len(bounds.classes) - 1)] if bounds.classes else []
    low, high = np.array([*bounds.x, *([level] if level else []), *bounds.y, *numbers]).T
    corners = np.array(list(itertools.product(*zip(low, (low + high) / 2, high, strict=True))))
    extreme = [summand(statistic, bounds, record) for record in np.vstack([corners, corners * 1e6, NASTY])]
    pairs = list(itertools.combinations({tuple(one): one for one in extreme}.values(), 2))  # many are alike

    def pair(v):
        both = low + (high - low) * v.reshape(2, 3)
        if bounds.classes:  # numbers of classes, as sources give them
            both[:, -1] = np.clip(np.round(both[:, -1]), 0, high[-1])
        return [summand(statistic, bounds, one) for one in both]

    shares, most = statistic.shares(), float(statistic.sensitivity2)

    def loss(v):  # in floats: what is found is judged exactly
        a, b = pair(v)
        return -float(shares @ (a - b) ** 2.0) / most

    rng = np.random.default_rng(0)
    for _ in range(6):
        found = minimize(loss, rng.uniform(-0.2, 1.2, 6), method="Nelder-Mead", options={"maxfev": 300})
        pairs.append(pair(found.x))
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


@pytest.mark.parametrize("kind", [Sum, Gram, Counts, StagedGram, Shared, CellSum])
def test_a_subclass_cannot_redefine_what_the_proof_rests_on(kind):
    for name in sorted(kind._settled):
        with pytest.raises(TypeError, match=f"may not define {name}"):
            type("Cheat", (kind,), {name: property(lambda self: 0)})
        mixin = type("Mixin", (), {name: property(lambda self: 0)})
        with pytest.raises(TypeError, match=f"may not define {name}"):
            type("Cheat", (mixin, kind), {})
        with pytest.raises(TypeError, match=f"may not define {name}"):
            type("Cheat", (kind, mixin), {})  # a property stands before what an instance holds
        with pytest.raises(TypeError, match=f"may not define {name}"):
            type("Cheat", (kind,), {"__annotations__": {name: int}})  # a dataclass field


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
    """float32 rows, added up in float32, let one record move a long sum by 33 times its sensitivity."""
    data = np.full((65_536, 1), 1 - 2.0**-10)
    data[::3] = 2.0**-11
    other = data.copy()
    other[0] = -1.0
    statistic = Odd(how)
    with np.errstate(all="ignore"):
        sums = [int(add_up([one], statistic.block_sum, rows=2**16).integers()[0]) for one in (data, other)]
        rows = [int(statistic.integers(one[:1])[0, 0]) for one in (data, other)]
    assert sums[0] - sums[1] == rows[0] - rows[1]
    assert (sums[0] - sums[1]) ** 2 <= statistic.sensitivity2


@pytest.mark.parametrize("how", ["object", "complex128", "str"])
def test_rows_that_are_no_numbers_are_refused_for_every_record(how):
    for value in (0.0, 1.0, 1e300, np.nan):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with pytest.raises(BadInput, match="real numbers"):
                Odd(how).block_sum(np.full((3, 1), value))


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
