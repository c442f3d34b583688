"""A record that lacks a value adds nothing, and the number of the others costs nothing."""

import itertools
from dataclasses import dataclass

import numpy as np
import pytest

import reticent
from reticent.privacy.record_sum import BlockSum, public_records, try_out
from reticent.privacy.reference import reference_sum
from reticent.privacy.statistics.enforced import enforce
from reticent.privacy.statistics.exact_sum import add_up
from tests.contract.cases import STATISTICS, records

BOX = reticent.Bounds(x=[(-1, 1)] * 3)


@dataclass(frozen=True)
class Counted(reticent.Sum):
    """The record itself, and the number of complete records."""

    columns = 3
    norm2 = 2
    norm1: float | None = None
    nonnegative: bool = False
    counts_records = True

    def rows(self, records):
        if (records[:, 0] == 0.5).any():
            raise ValueError("a record's value")
        return records


ENDS = np.array(list(itertools.product([-1.0, 0.0, 0.5, 1.0, 7.0, np.nan], repeat=3)))


@pytest.mark.parametrize("nonnegative", [False, True])
@pytest.mark.parametrize("norm1", [None, 1, 2, 0.001])
def test_the_count_costs_nothing(norm1, nonnegative):
    """All pairs of corners, complete and incomplete: within what the sum alone is charged for."""
    counted = enforce(Counted(norm1, nonnegative))
    plain = enforce(type("Plain", (Counted,), {"counts_records": False})(norm1, nonnegative))
    assert (counted.sensitivity2, counted.sensitivity1) == (plain.sensitivity2, plain.sensitivity1)
    rows = np.array([counted.block_sum(one[None]) for one in ENDS]).astype(np.int64).astype(object)
    rows = np.array(list({tuple(row) for row in rows.tolist()}), dtype=object)
    apart = rows[:, None] - rows[None]
    squares = (apart**2).sum(axis=-1)
    assert squares.max() <= counted.sensitivity2
    if norm1 is None:
        assert squares.max() >= 0.999 * counted.sensitivity2
        against_none = (
            (rows**2).sum(axis=1).max()
        )  # a complete record replaced by an incomplete one
        assert 0.999 * counted.sensitivity2 <= against_none <= counted.sensitivity2
    else:
        assert abs(apart).sum(axis=-1).max() <= counted.sensitivity1
    assert counted.count_weight >= 1


@pytest.mark.parametrize("nonnegative", [False, True])
def test_counts_of_complete_records_are_the_reference_integers(nonnegative):
    enforced = enforce(Counted(None, nonnegative))
    for table in (ENDS, ENDS[::7], ENDS[-1:]):
        fast = add_up([table], enforced.block_sum, rows=enforced.block_rows).integers()
        assert fast.tolist() == reference_sum(enforced, table)
        complete = int((~np.isnan(table).any(axis=1)).sum())
        assert fast[-1] == complete * enforced.count_weight


def test_the_number_of_complete_records_can_be_read_off():
    table = np.random.default_rng(0).uniform(-1, 0.4, size=(1000, 3))
    table[:300, 1] = np.nan
    curator = reticent.Curator(
        reticent.scan(table), bounds=BOX, event=reticent.Gaussian(noise_multiplier=1e-3)
    )
    statistic = Counted()
    enforced = enforce(statistic)
    release = curator.release(statistic)
    assert release.n == 1000
    weight = enforced.count_weight * enforced.step
    assert release.value[-1] / weight == pytest.approx(700, abs=0.1)
    assert release.sd[-1] / weight == pytest.approx(1e-3 * 2 / np.sqrt(3), rel=1e-3)


def test_a_count_of_complete_records_asks_for_them():
    lax = type("Lax", (Counted,), {"complete_records": False})()
    with pytest.raises(reticent.BadInput, match="must ask for complete_records"):
        enforce(lax)


@pytest.mark.parametrize("name", STATISTICS)
def test_an_incomplete_record_adds_nothing_and_changes_no_other(name):
    """At every place of a block, with each of its values missing: the sum of the others."""
    statistic, bounds, _ = STATISTICS[name]
    enforced = enforce(statistic)
    if not enforced.complete_records:
        pytest.skip("its map sees missing values")
    block_sum = BlockSum(enforced, bounds)
    table = records(9)
    for place, column in itertools.product((0, 4, 8), range(table.shape[1])):
        lacking = table.copy()
        lacking[place, column] = np.nan
        rest = np.delete(table, place, axis=0)
        assert (block_sum(lacking) == block_sum(rest)).all()
        assert not np.any(block_sum(lacking[place : place + 1]))
        scaled = bounds.scale(lacking, enforced.output_limit)
        total = add_up([scaled], enforced.block_sum, rows=enforced.block_rows).integers()
        assert enforced.coordinates(total).tolist() == reference_sum(enforced, scaled)


def test_public_records_are_codes():
    bounds = reticent.Bounds(
        x=[["a", "b", "c"], reticent.Whole(2, 9), (0, 4), bool], y=reticent.YesNo()
    )
    assert public_records(bounds).tolist() == [[0, 2, 0, 0, 0], [1, 6, 2, 1, 0.5], [2, 9, 4, 1, 1]]


def test_a_map_that_sees_missing_values_is_tried_with_them():
    picky = type("Picky", (Counted,), {"counts_records": False, "complete_records": False})

    def rows(self, records):
        if np.isnan(records).any():
            raise ValueError
        return records

    picky.rows = rows
    with pytest.raises(reticent.BadInput, match="of NaN, where it does not ask"):
        try_out(enforce(picky()), BOX)


# ---- streams


@dataclass(frozen=True)
class Identity(reticent.Sum):
    columns = 3
    norm2 = 3
    counts_records = True

    def rows(self, records):
        return records


def test_a_stream_reads_by_kinds():
    from reticent.privacy.streams.stream import Stream

    bounds = reticent.Bounds(
        x=[["a", "b"], reticent.Number(0, 10, keep_missing=True)], missing=["?"]
    )
    rows = [["a", 5.0], ["b", "7.5"], ["c", 1.0], ["?", 2], None, ["b", None]]
    as_objects = np.empty((6, 2), dtype=object)
    as_objects[:] = [row or [None, None] for row in rows]
    found = []
    for table in (rows, as_objects, np.ma.array(as_objects)):
        stream = Stream(bounds=bounds, event=reticent.Gaussian(noise_multiplier=1e-9))
        assert len(stream.bounds.x) == 3  # with whether the number is missing
        stream.add(Identity(), table)
        found.append(stream.release(Identity()).value)
    # a, 5: (-1/2, 0, -1/2); b, 7.5: (1/2, 1/2, -1/2); b, missing: (1/2, 0, 1/2)
    assert found[0][:3] == pytest.approx([0.5, 0.5, -0.5], abs=1e-4)
    weight = enforce(Identity()).count_weight * enforce(Identity()).step
    assert found[0][3] / weight == pytest.approx(3, abs=1e-4)
    for other in found[1:]:
        assert other == pytest.approx(found[0], abs=1e-4)
