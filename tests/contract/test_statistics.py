"""What every statistic must keep: purity of the row map, enforced bounds, exact sums, and its sensitivity."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from reticent.privacy.curator import _BlockSum
from reticent.privacy.sources import scan
from reticent.privacy.statistic import Statistic, Sum, _Rows
from reticent.privacy.sums import add_up
from tests.contract.cases import NASTY, STATISTICS, all_of, records

each = pytest.mark.parametrize(("statistic", "bounds", "tight"), STATISTICS.values(), ids=STATISTICS)


def exact(statistic, bounds, data) -> np.ndarray:
    """The sum by the slowest and plainest way: one record at a time, in Python integers."""
    block_sum = _BlockSum(statistic, bounds)
    with np.errstate(all="ignore"):
        return statistic.coordinates(
            sum(block_sum(data[i : i + 1]).astype(np.int64).astype(object) for i in range(len(data)))
        )


def test_every_statistic_is_listed():
    assert {type(case[0]) for case in STATISTICS.values()} == all_of(Statistic)


@each
def test_same_integers_for_every_chunking_order_and_thread_count(statistic, bounds, tight):
    data = records(2000)
    expected = exact(statistic, bounds, data)
    shuffled = data[np.random.default_rng(1).permutation(len(data))]
    for rows, threads, table in itertools.product(
        (1, 7, 1000, 8192), (1, 2), (data, shuffled, np.asfortranarray(data))
    ):
        rows = min(rows, statistic.block_rows)
        total = add_up(scan(table).blocks(_fields()), _BlockSum(statistic, bounds), rows=rows, threads=threads)
        assert total.rows == len(data)
        assert (statistic.coordinates(total.integers()) == expected).all()


def _fields():
    from reticent.privacy.sources import Field

    return [Field(i) for i in range(3)]


@each
def test_a_row_does_not_depend_on_its_place(statistic, bounds, tight):
    """Each record alone, and at every offset of blocks of several sizes, gives the same integers, bit for bit."""
    block_sum = _BlockSum(statistic, bounds)
    with np.errstate(all="ignore"):
        for record in np.vstack([NASTY, records(20)]):
            alone = block_sum(record[None, :]).astype(np.int64)
            for size, place in [(2, 0), (2, 1), (9, 4), (9, 8), (64, 33), (1001, 1000)]:
                block = records(size, seed=size)[:size]
                rest = np.delete(block, place, axis=0)
                block[place] = record
                assert (block_sum(block).astype(np.int64) - block_sum(rest).astype(np.int64) == alone).all()


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


def distance2(statistic, bounds, pair) -> int:
    """Squared distance, as the accounting counts it, between the sums of two one-record tables."""
    block_sum = _BlockSum(statistic, bounds)
    a, b = (statistic.coordinates(block_sum(record[None, :])).astype(object) for record in pair)
    return int((statistic.shares() * (a - b) ** 2).sum())


def distance1(statistic, bounds, pair) -> int:
    block_sum = _BlockSum(statistic, bounds)
    a, b = (statistic.coordinates(block_sum(record[None, :])).astype(object) for record in pair)
    return int(abs(a - b).sum())


@each
def test_no_neighbour_moves_the_sum_further_than_claimed(statistic, bounds, tight):
    """Search for a violating pair: all pairs of corners and nasty records, then optimisation from random starts."""
    low, high = np.array(bounds.x).T
    corners = np.array(list(itertools.product(*zip(low, (low + high) / 2, high, strict=True))))
    extreme = np.vstack([corners, corners * 1e6, NASTY])
    with np.errstate(all="ignore"):
        best = max(distance2(statistic, bounds, pair) for pair in itertools.combinations(extreme, 2))
        best1 = max(distance1(statistic, bounds, pair) for pair in itertools.combinations(extreme, 2))

        rng = np.random.default_rng(0)

        def loss(v):
            return -float(distance2(statistic, bounds, (low + (high - low) * v.reshape(2, 3)))) / statistic.sensitivity2

        for _ in range(12):
            found = minimize(loss, rng.uniform(-0.2, 1.2, 6), method="Nelder-Mead", options={"maxfev": 400})
            pair = low + (high - low) * found.x.reshape(2, 3)
            best, best1 = max(best, distance2(statistic, bounds, pair)), max(best1, distance1(statistic, bounds, pair))
    assert best <= statistic.sensitivity2
    if statistic.sensitivity1 is not None:
        assert best1 <= statistic.sensitivity1
    if tight:
        assert best >= 0.999 * statistic.sensitivity2


@each
def test_descriptions_are_public_json(statistic, bounds, tight):
    import json

    assert json.loads(json.dumps(statistic.describe())) == statistic.describe()


def test_a_subclass_cannot_redefine_what_the_proof_rests_on():
    for name in ("sensitivity2", "sensitivity1", "integers", "limit2", "block_sum", "shares", "_shortened"):
        with pytest.raises(TypeError, match="may not redefine"):
            type("Cheat", (Sum,), {name: property(lambda self: 0)})
