"""People as the unit: exact weighted sums, and no person that moves them further than a record."""

import itertools

import numpy as np
import pytest
from scipy.optimize import minimize

from reticent.privacy.record_sum import BlockSum, RecordSum
from reticent.privacy.reference import reference_sum, reference_weights
from reticent.privacy.sources.base import Field, scan
from reticent.privacy.statistics.enforced import enforce
from reticent.privacy.statistics.feature_cache import FeatureCache
from reticent.privacy.statistics.partitioned_gram import EnforcedPartitionedGram
from reticent.privacy.unit import ADD_REMOVE, REPLACE, PrivacyUnit
from reticent.privacy.weight_columns import weight_columns
from reticent.privacy.weights import ONE
from tests.contract.cases import NASTY, STATISTICS, records

each = pytest.mark.parametrize(
    ("statistic", "bounds", "tight"), STATISTICS.values(), ids=STATISTICS
)
FIELDS = tuple(Field(i) for i in range(3))
BOUND = 3.0


def sums_of(bounds, data, people, *, stated=None, contribution=1, threads=1):
    """The sums over a table whose records belong to these people."""
    unit = PrivacyUnit(
        person="person",
        contribution=contribution,
        weight=None if stated is None else "weight",
        weight_bound=None if stated is None else BOUND,
    )
    source = scan(data, person=list(people), weight=stated)
    columns = weight_columns(source, unit)
    counts = source.count_people(columns.person, columns.key)
    weights = columns.weights(len(FIELDS), counts)
    return RecordSum(source, FIELDS, bounds, threads, weights, columns.fields)


def released(enforced, sums, rows=None):
    """The integers that noise is added to, in blocks of so many rows."""
    rows = min(rows or enforced.block_rows, enforced.block_rows)
    with np.errstate(all="ignore"):
        count, total = sums.add_up(
            BlockSum(enforced, sums.bounds), rows=rows, shape=enforced.sum_shape
        )
    assert count == sums.source.known_n
    return enforced.coordinates(total)


def table(n=70):
    """Ordinary and nasty records of people with 1, 2, 3, … records, and of nobody."""
    data = np.vstack([NASTY, records(n)])
    rng = np.random.default_rng(len(data))
    people = [[None, "", 7, -7, "7", "ann", "Ann", 2.5][j] for j in rng.integers(0, 8, len(data))]
    people[: len(data) // 2] = rng.integers(100, 130, len(data) // 2).tolist()
    stated = rng.choice([0.0, -1.0, np.nan, np.inf, 1e-9, 0.7, 3.0, 8.0], len(data))
    stated[::2] = rng.uniform(0, 3.1, len(stated[::2]))
    names = [None if one == "" else "7" if one == 7 else str(one) for one in people]
    who = [name if one is not None else None for name, one in zip(names, people, strict=True)]
    return data, people, who, stated


@each
def test_weighted_sums_are_the_reference_integers(statistic, bounds, tight):
    """Few weights and many (taken apart into digits); one chunk and several; threads."""
    data, people, who, stated = table()
    enforced = enforce(statistic)
    with np.errstate(all="ignore"):
        unit = bounds.scale(data, enforced.output_limit)
    for given, contribution in ((None, 1), (None, 4), (stated, 3)):
        weights = reference_weights(who, contribution=contribution, stated=given, bound=BOUND)
        expected = reference_sum(enforced, unit, weights)
        for rows, threads in ((1, 2), (None, 1)):
            sums = sums_of(
                bounds, data, people, stated=given, contribution=contribution, threads=threads
            )
            assert released(enforced, sums, rows).tolist() == expected


@pytest.mark.parametrize(
    "name",
    [name for name, case in STATISTICS.items() if hasattr(case[0], "residuals")],
)
def test_cached_features_give_the_same_weighted_sums(name):
    statistic, bounds, _ = STATISTICS[name]
    enforced = enforce(statistic)
    assert isinstance(enforced, EnforcedPartitionedGram)
    data, people, _, stated = table()
    for given in (None, stated):
        sums = sums_of(bounds, data, people, stated=given, threads=2)
        expected = released(enforced, sums)
        cache = FeatureCache()
        with np.errstate(all="ignore"):
            for _ in range(2):  # makes the features, and uses them
                rows, total = cache.total(sums, enforced, n=len(data), first=False, keep=True)
                assert rows == len(data)
                assert enforced.coordinates(total).tolist() == expected.tolist()


def distance2(sensitivity, moved):
    return int((sensitivity.multiplicity.astype(object) * moved**2).sum())


def extreme_records(bounds):
    level = bounds.noise_column and (bounds.noise_column.low, bounds.noise_column.high)
    classes = [(0, len(bounds.classes) - 1)] if bounds.classes else []
    ends = np.array([*bounds.x, *([level] if level else []), *bounds.y, *classes])
    low, high = ends.T
    corners = list(itertools.product(*zip(low, (low + high) / 2, high, strict=True)))
    return low, high, np.vstack([corners, NASTY, np.full((1, 3), np.nan)])


class Moved:
    """How far people move the sums of one statistic."""

    def __init__(self, statistic, bounds):
        self.enforced = enforce(statistic)
        self.bounds = bounds
        self.low, self.high, self.extreme = extreme_records(bounds)
        self.replace = self.enforced.sensitivity(REPLACE)
        self.add = self.enforced.sensitivity(ADD_REMOVE)
        self.summands = [self.summand(one) for one in self.extreme]

    def summand(self, record):
        """What a record of weight one adds, in floats: only to look where to search."""
        with np.errstate(all="ignore"):
            block = BlockSum(self.enforced, self.bounds)(record[None, :])
        return self.enforced.coordinates(block).astype(np.float64)

    def best_records(self):
        """The pair of extreme records that are farthest apart, and the one farthest from zero."""
        adds = np.array(self.summands)
        scale = np.sqrt(self.replace.multiplicity)
        rows = adds * scale
        squares = (rows**2).sum(axis=1)
        apart = squares[:, None] + squares - 2 * rows @ rows.T
        a, b = np.unravel_index(np.argmax(apart), apart.shape)
        longest = np.argmax((adds**2) @ self.add.multiplicity)
        return self.extreme[a], self.extreme[b], self.extreme[longest]

    def optimised(self, start, rng, each=3, tries=40):
        """Two people with so many records each, as far apart as a short search finds."""
        scale = np.sqrt(self.replace.multiplicity / float(self.replace.l2_squared))

        def persons(v):
            both = self.low + (self.high - self.low) * v.reshape(2, each, 3)
            if self.bounds.classes:
                both[:, :, -1] = np.clip(np.round(both[:, :, -1]), 0, self.high[-1])
            return both

        def loss(v):
            sums = [sum(self.summand(one) for one in person) / each for person in persons(v)]
            return -float((((sums[0] - sums[1]) * scale) ** 2).sum())

        middle = (start - self.low) / (self.high - self.low)
        first = np.repeat(np.clip(np.nan_to_num(middle, nan=0.5), -0.2, 1.2), each, axis=0)
        jitter = rng.normal(0, 0.05, first.shape)
        found = minimize(
            loss, (first + jitter).ravel(), method="Nelder-Mead", options={"maxfev": tries}
        )
        return persons(found.x)


@each
def test_no_person_moves_the_sum_further_than_one_record_may(statistic, bounds, tight):
    """Search for a violating person: any number of records, of any values, under any identifier."""
    moved = Moved(statistic, bounds)
    enforced = moved.enforced
    rng = np.random.default_rng(5)
    a, b, longest = moved.best_records()
    mixed = moved.extreme[rng.integers(0, len(moved.extreme), 23)]
    persons = [np.array([one]) for one in (a, b, longest)]
    persons += [np.repeat([one], k, axis=0) for one, k in ((a, 7), (b, 50), (longest, 3))]
    persons += [mixed, np.vstack([mixed[:3], [a] * 40]), *moved.optimised(np.array([a, b]), rng)]
    if tight:
        for _ in range(6):  # as long as single records that attain the bound are not found
            ends = [moved.summand(one) for one in (a, b)]
            apart = float(moved.replace.multiplicity @ (ends[0] - ends[1]) ** 2)
            if apart >= 0.9995 * moved.replace.l2_squared:
                break
            start = moved.low + (moved.high - moved.low) * rng.uniform(-0.2, 1.2, (2, 3))
            (a,), (b,) = moved.optimised(start, rng, each=1, tries=300)
        persons += [np.array([a]), np.repeat([b], 5, axis=0)]
    others, names, _, _ = table(30)
    sums = [released(enforced, sums_of(bounds, others, names))]  # without the person
    for number, person in enumerate(persons):
        name = ["a new one", 10**18, " 8", -1.5][number % 4]
        ids = np.array([*names, *[name] * len(person)], dtype=object)
        order = rng.permutation(len(ids))
        data = np.vstack([others, person])[order]
        sums.append(released(enforced, sums_of(bounds, data, ids[order], threads=2)))
    replaced = [x - y for x, y in itertools.combinations(sums[1:], 2)]
    added = [x - sums[0] for x in sums[1:]]
    for found, sensitivity in ((replaced, moved.replace), (added, moved.add)):
        best = max(distance2(sensitivity, one) for one in found)
        assert best <= ONE**2 * sensitivity.l2_squared
        if sensitivity.l1 is not None:
            assert max(abs(one).sum() for one in found) <= ONE * sensitivity.l1
    if tight:
        best = max(distance2(moved.replace, one) for one in replaced)
        assert best >= 0.999 * ONE**2 * moved.replace.l2_squared
        best = max(distance2(moved.add, one) for one in added)
        assert best >= 0.999 * ONE**2 * moved.add.l2_squared
