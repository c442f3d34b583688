"""Staged statistics.

Head and tail have limits of their own, and what a curator keeps of a head changes nothing released.
"""

import copy
import gc
import itertools
import pickle
import threading
from dataclasses import dataclass
from fractions import Fraction

import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest

from reticent import BadInput, Bounds, Curator, Gaussian, ReleaseRefused, scan
from reticent.privacy.row_maps.column_moments import MeanSum
from reticent.privacy.statistics import feature_cache as kept
from reticent.privacy.statistics.partitioned_gram import (
    EnforcedPartitionedGram,
    FixedFeatures,
    PartitionedGram,
)

N = 3000
BOUNDS = Bounds(x={"a": (-1, 1), "b": (-2, 2)}, y={"c": (0, 5)})
DATA = np.random.default_rng(0).uniform([-1.1, -2.2, -0.3], [1.1, 2.2, 5.3], size=(N, 3))
DATA[::17] = np.nan
FRAME = pd.DataFrame(DATA, columns=["a", "b", "c"])


@dataclass(frozen=True)
class Powers(FixedFeatures):
    """1, a, b, a², …: longer than claimed, so that some heads are shortened."""

    degree: int = 3
    claim: float = 2.0
    tilt: float = 1.0

    columns = property(lambda self: 1 + 2 * self.degree)
    norm2 = property(lambda self: Fraction(self.claim))

    def rows(self, records):
        rows = [np.ones(len(records))]
        for k in range(1, self.degree + 1):
            rows += [
                self.tilt * rows[-1] * records[:, 0],
                records[:, 1] ** 2 if k % 2 else records[:, 1],
            ]
        return np.stack(rows, axis=1)


@dataclass(frozen=True)
class Rest(PartitionedGram):
    """Two tails: the output, less a whole multiple of the head, and something that is too long."""

    weight: int = 0
    claim: float = 1.0

    residual_columns = property(lambda self: 2)
    residual_norm2 = property(lambda self: Fraction(self.claim))

    def residuals(self, features, records):
        left = records[:, -1] - self.weight * features[:, 1] * 2.0**-self.bits
        return np.stack([left / 4, 10 * left], axis=1)


STAGES = [Rest(Powers(), weight) for weight in (0, 1, -2, 1)]


def test_limits_and_sensitivity_number_by_number():
    one = Rest(Powers(claim=2.3), claim=1.6)
    # 20 bits: both together are at most 4
    head = int(2.3 * 2**40)
    tail = int(1.6 * 2**40)
    assert one.bits == 20
    assert (one.feature_limit2, one.residual_limit2, one.limit2) == (head, tail, head + tail)
    assert one.sensitivity2 == 2 * (head + tail) * (head + tail)


def curator(data=FRAME, count=4, seed=b"1", **kwargs):
    event = Gaussian(noise_multiplier=1e-4, count=count)
    return Curator(scan(data), bounds=BOUNDS, event=event, targets=True, seed=seed, **kwargs)


def values(data=FRAME, stages=STAGES, **kwargs):
    one = curator(data, count=len(stages), **kwargs)
    found = [one.release(stage).value for stage in stages]
    one.close()
    return found


@pytest.fixture
def expected(monkeypatch):
    """The releases of a curator that keeps nothing."""
    with monkeypatch.context() as patched:
        patched.setattr(kept, "CACHE_BYTES", 0)
        return values()


def same(a, b):
    return len(a) == len(b) and all(np.array_equal(x, y) for x, y in zip(a, b, strict=True))


def test_the_integers_are_those_of_the_plain_gram_matrix(expected):
    """By hand, in Python integers: whole rows first, then their outer products.

    Noise is small enough to see each unit.
    """
    for stage, value in zip(STAGES, expected, strict=True):
        with np.errstate(all="ignore"):
            q = stage.integers(BOUNDS.scale(DATA)).astype(np.int64).astype(object)
        gram = (q.T @ q)[np.triu_indices(stage.columns)]
        assert value == pytest.approx(gram.astype(float) * stage.step, abs=1e-2)


@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize("rows", [7, 100, 4096])
def test_keeping_changes_no_bit_whatever_the_threads_and_blocks(
    expected, monkeypatch, threads, rows
):
    monkeypatch.setattr("reticent.privacy.curator.available_cpus", lambda: threads)
    monkeypatch.setattr(EnforcedPartitionedGram, "block_rows", property(lambda self: rows))
    assert same(values(), expected)


def test_keeping_changes_no_bit_for_files_arrays_and_clusters(expected, tmp_path):
    FRAME.to_csv(tmp_path / "t.csv", index=False)
    FRAME.to_parquet(tmp_path / "t.parquet")
    shuffled = FRAME.sample(frac=1, random_state=0)
    for data in (
        tmp_path / "t.csv",
        tmp_path / "t.parquet",
        shuffled,
        dd.from_pandas(FRAME, npartitions=3),
    ):
        assert same(values(data), expected), data


def test_other_heads_grids_and_statistics_in_between(monkeypatch):
    """A head of other parameters, or on another grid, is another head.

    The first one comes back as it was.
    """
    others = [Rest(Powers(2)), Rest(Powers(tilt=0.5)), Rest(Powers(), claim=2.0**30), MeanSum(3, 3)]
    mixed = [one for pair in zip(STAGES, others, strict=True) for one in pair]
    assert Rest(Powers(), claim=2.0**30).bits != STAGES[0].bits
    found = values(stages=mixed)
    monkeypatch.setattr(kept, "CACHE_BYTES", 0)
    assert same(found, values(stages=mixed))


def reads(data=FRAME, **kwargs):
    """A curator and the list of times its source was read."""
    one = curator(data, **kwargs)
    seen = []
    blocks = one._source.blocks
    one._source.blocks = lambda fields: seen.append(1) or blocks(fields)
    return one, seen


@pytest.mark.parametrize(
    ("memory", "times"), [(N * (4 * 7 + 8 * 3), 1), (N * (4 * 7 + 8 * 3) - 1, 4)]
)
def test_rows_are_kept_up_to_the_limit_and_not_beyond(monkeypatch, expected, memory, times):
    monkeypatch.setattr(kept, "CACHE_BYTES", memory)
    one, seen = reads()
    assert same([one.release(stage).value for stage in STAGES], expected)
    assert len(seen) == times


def test_the_cache_can_be_left_out(expected):
    one, seen = reads()
    one.use_cache(None)
    assert same([one.release(stage).value for stage in STAGES], expected)
    assert len(seen) == len(STAGES)
    one.close()


def test_what_is_kept_is_of_one_reading(expected):
    """Records that change between two stages would otherwise enter one Gram matrix
    with two faces.
    """
    table = DATA.copy()
    bounds = Bounds(x=[(-1, 1), (-2, 2)], y=(0, 5))
    event = Gaussian(noise_multiplier=1e-4, count=4)
    one = Curator(
        scan(table[:, :2], y=table[:, 2]), bounds=bounds, event=event, targets=True, seed=b"1"
    )
    found = [one.release(STAGES[0]).value]
    table[:] = 0.0
    assert same([*found, *(one.release(stage).value for stage in STAGES[1:])], expected)


def reachable(thing):
    stack = [thing]
    known = {}
    while stack:
        thing = stack.pop()
        if id(thing) not in known and not isinstance(thing, type):
            known[id(thing)] = thing
            stack.extend(gc.get_referents(thing))
    return known.values()


def rows_kept(one):
    return [
        a
        for a in reachable(one._cache)
        if isinstance(a, np.ndarray) and a.ndim == 2 and len(a) > 100
    ]


def test_nothing_is_kept_that_no_later_stage_can_use():
    one = curator(count=2)
    one.release(STAGES[0])
    assert sum(map(len, rows_kept(one))) == 2 * N  # each head and each record, once
    one.release(MeanSum(3, 3))
    one = curator(count=1)
    one.release(STAGES[0])
    assert rows_kept(one) == []


def test_nothing_is_kept_of_a_cluster():
    one = curator(dd.from_pandas(FRAME, npartitions=2))
    one.release(STAGES[0])
    assert rows_kept(one) == []


def test_closing_lets_go_and_releases_hold_nothing():
    one = curator()
    releases = [one.release(stage) for stage in STAGES[:2]]
    assert rows_kept(one)
    assert not [a for a in reachable(releases) if isinstance(a, np.ndarray) and a.shape[:1] == (N,)]
    one.close()
    assert rows_kept(one) == []
    with pytest.raises(ReleaseRefused):
        one.release(STAGES[2])


def test_a_release_that_ends_after_closing_keeps_nothing(monkeypatch):
    started = threading.Event()
    closed = threading.Event()
    one = curator()
    scale = Bounds.scale

    def slow(bounds, records, *limit):
        if len(records) > 3:  # not the public ones that a map is tried on
            started.set()
            closed.wait(10)
        return scale(bounds, records, *limit)

    monkeypatch.setattr(Bounds, "scale", slow)
    thread = threading.Thread(target=one.release, args=(STAGES[0],))
    thread.start()
    started.wait(10)
    one.close()
    closed.set()
    thread.join()
    assert len(one.releases) == 1
    assert rows_kept(one) == []


def test_a_cache_is_never_copied():
    one = curator()
    one.release(STAGES[0])
    for copier in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match="never copied"):
            copier(one._cache)


def test_a_broken_stage_is_refused_before_it_is_counted():
    class Chatty(Rest):
        def residuals(self, features, records):
            raise ValueError(str(records))

    one, seen = reads(count=3)
    with pytest.raises(BadInput, match=r"Chatty\.residuals failed \(ValueError\)") as refusal:
        one.release(Chatty(Powers()))
    assert refusal.value.__context__ is None
    assert refusal.value.__cause__ is None
    assert seen == []
    assert rows_kept(one) == []
    one.release(STAGES[0])
    with pytest.raises(BadInput, match="ValueError"):
        one.release(Chatty(Powers()))  # the head is kept, the tail fails
    assert repr(one) == "<Curator: 2 releases left>"


@pytest.mark.parametrize("kept_before", [False, True])
def test_a_head_or_tail_that_fails_for_a_record_is_zero_whether_heads_are_kept_or_not(kept_before):
    @dataclass(frozen=True)
    class Some(Powers):
        def rows(self, records):
            if (records[:, 0] == -0.5).any():
                raise KeyError(records[0, 0])
            return super().rows(records)

    @dataclass(frozen=True)
    class Tails(Rest):
        def residuals(self, features, records):
            if (records[:, -1] == 0.25).any():
                raise KeyboardInterrupt(records[0, 0])
            return super().residuals(features, records)

    unit = BOUNDS.scale(DATA[:200])
    unit[[5, 70], 0] = -0.5
    unit[[6, 70], -1] = 0.25
    enforced = Tails(Some()).enforced()
    with np.errstate(all="ignore"):
        q = enforced.integers(unit)
        sound = Rest(Powers()).enforced().integers(unit)
        if kept_before:
            heads = enforced.feature_integers(unit)
            total = enforced.joined(
                heads.T @ heads, enforced.residual_products(heads.astype(np.int32), unit)
            )
        else:
            total = enforced.block_sum(unit)
    assert (total == q.T @ q).all()
    fine = np.setdiff1d(np.arange(200), [5, 6, 70])
    assert (q[fine] == sound[fine]).all()
    assert not q[[5, 70], :7].any()
    assert not q[[6, 70], 7:].any()
    assert (q[6, :7] == sound[6, :7]).all()


def test_a_number_of_records_that_is_not_n_is_refused_and_not_kept():
    source = scan(FRAME)
    source.known_n = N - 1
    event = Gaussian(noise_multiplier=1.0, count=3)
    one = Curator(source, bounds=BOUNDS, event=event, targets=True)
    for _ in range(2):
        with pytest.raises(ReleaseRefused, match="number of records changed"):
            one.release(STAGES[0])
    assert rows_kept(one) == []


def test_a_head_that_claims_to_equal_another_cannot_reach_further():
    """Equality is the head's own word.

    The limits are part of the key, so a lie costs accuracy and nothing else.
    """

    @dataclass(frozen=True, eq=False)
    class Liar(Powers):
        def __eq__(self, other):
            return True

        def __hash__(self):
            return 0

    one, seen = reads(count=3)
    one.release(Rest(Liar(3, 2.0)))
    one.release(Rest(Liar(3, 1.0)))
    one.release(Rest(Liar(2, 1.0)))
    assert len(seen) == 3


@pytest.mark.parametrize("scale", [1e-9, 1.0, 1e9, np.inf, np.nan])
def test_head_and_tail_are_held_to_their_own_limits(scale):
    @dataclass(frozen=True)
    class Long(Powers):
        def rows(self, records):
            return super().rows(records) * scale

    @dataclass(frozen=True)
    class LongRest(Rest):
        def residuals(self, features, records):
            return super().residuals(features, records) * scale

    for statistic in (LongRest(Long()), LongRest(Powers()), Rest(Long())):
        with np.errstate(all="ignore"):
            q = statistic.integers(BOUNDS.scale(DATA)).astype(np.int64).astype(object)
            rows = statistic.rows(BOUNDS.scale(DATA))
        head, tail = (q[:, :7] ** 2).sum(axis=1), (q[:, 7:] ** 2).sum(axis=1)
        assert (head <= statistic.feature_limit2).all()
        assert (tail <= statistic.residual_limit2).all()
        assert (
            statistic.limit2
            == statistic.feature_limit2 + statistic.residual_limit2
            <= 3 * 4**statistic.bits
        )
        assert (rows == q.astype(float) * 2.0**-statistic.bits).all()


def test_the_heads_integers_do_not_depend_on_the_tail():
    unit = BOUNDS.scale(DATA)
    for a, b in itertools.pairwise(STAGES):
        assert (a.integers(unit)[:, :7] == b.integers(unit)[:, :7]).all()


def test_a_tail_cannot_change_the_head_or_the_records():
    @dataclass(frozen=True)
    class Rude(Rest):
        which: int = 0

        def residuals(self, features, records):
            (features, records)[self.which][:] = 1e9
            return np.zeros((len(features), 2))

    for which in (0, 1):
        with pytest.raises(BadInput, match=r"Rude\.residuals failed \(ValueError\)"):
            curator().release(Rude(Powers(), which=which))


def test_wrong_shapes_and_norms():
    @dataclass(frozen=True)
    class Narrow(Rest):
        def residuals(self, features, records):
            return records[:, :1]

    with pytest.raises(BadInput, match=r"Narrow\.residuals must give one row of 2"):
        curator().release(Narrow(Powers()))
    with pytest.raises(BadInput, match="of the residuals"):
        _ = Rest(Powers(), claim=1e-30).limit2
    with pytest.raises(BadInput, match="of the features"):
        _ = Rest(Powers(3, 1e-30)).limit2
