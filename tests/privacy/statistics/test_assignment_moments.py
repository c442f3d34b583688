"""Sums shared out among parts: what is enforced, that sums are exact, and the joint sensitivity."""

import itertools
from dataclasses import dataclass

import numpy as np
import pytest
from scipy.optimize import minimize

from reticent.errors import BadInput
from reticent.privacy.bounds import Bounds
from reticent.privacy.record_sum import try_out
from reticent.privacy.statistics.assignment_moments import (
    RESPONSIBILITY_BITS,
    ROW_BITS,
    AssignmentMoments,
)
from reticent.privacy.statistics.enforced import enforce

N = 2**RESPONSIBILITY_BITS
L = 4**ROW_BITS


@dataclass(frozen=True)
class Given(AssignmentMoments):
    """Responsibilities and rows as the record gives them: the first columns, then K rows."""

    def responsibilities(self, records):
        rows = (
            records[:, self.parts :].reshape(len(records), self.parts, self.columns).swapaxes(0, 1)
        )
        rows = rows.reshape(
            -1, self.columns
        )  # a row for each pair of a part and a record, part by part
        return records[:, : self.parts], lambda pairs: rows if pairs is None else rows[pairs]


def exact_moments(statistic, gamma, u):
    """Real-valued moments of one record, scaled so that their distance is what the noise is
    measured against.
    """
    a, b, c = np.sqrt(statistic.weights)
    second = np.einsum("k,kp,kq->kpq", gamma, u, u)
    return np.concatenate([a * gamma, (b * gamma[:, None] * u).ravel(), c * second.ravel()])


@pytest.mark.parametrize(
    "weights", [(1, 4, 4), (1, 1, 4), (1, 2, 1), (3, 1, 1), (1, 9, 1)], ids=str
)
def test_search_over_records_and_responsibilities_finds_the_joint_sensitivity(weights):
    """Free (γ, u, γ′, u′) in the simplex and the ball.

    The largest distance agrees with the claim to 1e-5.
    """
    parts = 2
    d = 2
    statistic = Given(parts, d, "full", False, weights)
    rng = np.random.default_rng(0)

    def point(v):
        e = np.exp(v[:parts] - v[:parts].max())
        u = v[parts:].reshape(parts, d)
        return e / e.sum(), u / np.maximum(np.linalg.norm(u, axis=1, keepdims=True), 1.0)

    def loss(v):
        one, two = np.split(v, 2)
        return -float(
            (
                (exact_moments(statistic, *point(one)) - exact_moments(statistic, *point(two))) ** 2
            ).sum()
        )

    found = []
    for sign in (1, -1):  # starts near the same part and near different ones
        for _ in range(3):
            start = rng.normal(size=2 * (parts + parts * d))
            start[0], start[len(start) // 2] = 12, 12 * sign
            found.append(-minimize(loss, start, method="BFGS").fun)
    claim = statistic.sensitivity2 / (N * L) ** 2
    assert max(found) <= claim + 1e-9
    assert max(found) >= claim * (1 - 1e-5)


def test_noise_shares_and_sensitivity_number_by_number():
    full = Given(2, 3, "full", False, (3, 5, 7))
    matrix = [7, 14, 14, 7, 14, 7]  # what is off the diagonal stands twice in the matrix
    assert full.sizes == (2, 6, 12)
    assert full.coordinate_multiplicity().tolist() == [3] * 2 + [5] * 6 + matrix * 2
    assert (
        Given(2, 3, "full", True, (3, 5, 7)).coordinate_multiplicity().tolist()
        == [3] * 2 + [5] * 6 + matrix
    )
    assert (
        Given(2, 3, "diagonal", False, (3, 5, 7)).coordinate_multiplicity().tolist()
        == [3] * 2 + [5] * 6 + [7] * 6
    )
    assert (
        Given(2, 3, "trace", False, (3, 5, 7)).coordinate_multiplicity().tolist()
        == [3] * 2 + [5] * 6 + [7] * 2
    )
    assert (
        Given(2, 3, "none", False, (3, 5, 0)).coordinate_multiplicity().tolist()
        == [3] * 2 + [5] * 6
    )
    unit = 4**12 * 16**15
    assert full.step == 2.0**-42
    assert full.sensitivity2 == 2 * (3 + 5 + 7) * unit
    assert (
        Given(1, 3, "full", False, (3, 5, 7)).sensitivity2 == (10 + 14 + 2) * unit
    )  # b²/2c = 25/14, rounded up
    assert Given(1, 3, "full", False, (3, 14, 7)).sensitivity2 == 4 * 14 * unit
    assert Given(1, 3, "full", False, (1, 10, 4)).sensitivity2 == 4 * 10 * unit
    assert Given(1, 3, "full", False, (1, 10, 7)).sensitivity2 == (20 + 14 + 8) * unit
    assert Given(1, 3, "full", False, (30, 5, 7)).sensitivity2 == (30 + 5 + 7) * unit


@pytest.mark.parametrize(
    ("parts", "d", "weights", "fine"),
    [
        (10**6, 1, (1, 1, 1), True),
        (10**6 + 1, 1, (1, 1, 1), False),
        (0, 1, (1, 1, 1), False),
        (1, 0, (1, 1, 1), False),
        (10, 10**4, (1, 1, 1), True),
        (11, 10**4, (1, 1, 1), False),
        (1, 10**6, (1, 1, 1), False),
        (1, 1, (2**20, 2**20, 2**20), True),
        (1, 1, (2**20 + 1, 1, 1), False),
        (1, 1, (1, 2**20 + 1, 1), False),
        (1, 1, (1, 1, 2**20 + 1), False),
        (1, 1, (0, 1, 1), False),
        (1, 1, (1, 0, 1), False),
        (1, 1, (1, 1, 0), False),
    ],
)
def test_where_the_limits_are(parts, d, weights, fine):
    one = Given(parts, d, "trace", False, weights)
    if fine:
        assert one.sizes[0] == parts
    else:
        with pytest.raises(BadInput):
            _ = one.sizes


def summand(statistic, record):
    return statistic.coordinates(statistic.block_sum(np.array([record], dtype=float)))


@pytest.mark.parametrize("second", ["none", "trace", "diagonal", "full"])
@pytest.mark.parametrize("together", [False, True])
def test_no_pair_of_records_moves_the_integers_further_than_claimed(second, together):
    weights = (1, 4, 0) if second == "none" else (1, 4, 4)
    statistic = Given(2, 2, second, together, weights)
    values = [0.0, 1.0, -1.0, 0.6, -0.8, np.nan, 1e300, 1 + 2.0**-52]
    rng = np.random.default_rng(1)
    rows = rng.choice(values, size=(60, 6))
    rows[:20, :2] = [1, 0]
    rows[20:40, :2] = [0.3, 0.7]
    sums = [summand(statistic, row) for row in rows]
    shares = statistic.coordinate_multiplicity()
    furthest = max(int((shares * (a - b) ** 2).sum()) for a, b in itertools.combinations(sums, 2))
    assert furthest <= statistic.sensitivity2
    assert furthest >= 0.5 * statistic.sensitivity2


def test_a_record_counts_as_one_or_not_at_all():
    """What truncation leaves goes to the first of the largest shares.

    Too many shares, no share and no numbers are nothing.
    """
    given = [
        [0.5, 0.5],
        [1 / 3, 2 / 3],
        [0.1, 0.1],
        [-3, 0.2],
        [1e300, 0],
        [0, 0],
        [1, 1],
        [np.nan, 0.2],
        [np.inf, 1],
    ]
    given += [[1 / N, 0], [0, 1.9 / N]]
    statistic = Given(2, 1, "none", False, (1, 1, 0))
    with np.errstate(all="ignore"):
        g = (
            enforce(statistic)
            .pairs(np.array([[*gamma, 0.0, 0.0] for gamma in given]))
            .responsibilities
        )
    third = N // 3
    tenth = N // 10
    held = [
        [N // 2, N // 2],
        [third, N - third],
        [N - tenth, tenth],
        [0, N],
        [N, 0],
        [0, 0],
        [0, 0],
        [0, 0],
        [0, 0],
    ]
    assert g.T.tolist() == [*held, [N, 0], [0, N]]


def test_the_smallest_share_counts_wherever_a_record_stands():
    """A share of one grid step is in the sum, whether rows are picked out (a record with a share in
    few of nine parts) or not.
    """
    statistic = Given(9, 1, "full", False, (1, 1, 1))
    few = np.zeros(9)
    many = np.full(9, 1 / N)
    few[[2, 7]] = 1 - 1 / N, 1 / N
    many[0] = 1 - 8 / N
    records = [np.concatenate([gamma, np.full(9, 0.5)]) for gamma in (few, many)]
    alone = [statistic.block_sum(one[None]) for one in records]
    assert alone[0][[2, 7]].tolist() == [N - 1, 1]
    assert alone[0][9 + 7] == 2 ** (ROW_BITS - 1)
    for order in ([0, 0, 0, 1], [1, 1, 1, 0]):
        together = statistic.block_sum(np.array([records[k] for k in order]))
        assert together.tolist() == sum(alone[k] for k in order).tolist()


def test_records_and_shares_cannot_be_changed_by_who_sees_them():
    class Scribbler(Given):
        def responsibilities(self, records):
            records[0] = 0
            return super().responsibilities(records)

    with pytest.raises(BadInput, match=r"Scribbler\.responsibilities failed \(ValueError\)"):
        try_out(enforce(Scribbler(1, 1, "none", False, (1, 1, 0))), Bounds(x=[(-1, 1)] * 2))
    records = np.ones((2, 2))
    assert Scribbler(1, 1, "none", False, (1, 1, 0)).block_sum(records).tolist() == [0, 0]
    assert (records == 1).all()
    with pytest.raises(ValueError, match="read-only"):
        Given(1, 1, "none", False, (1, 1, 0)).coordinate_multiplicity()[0] = 9


def test_numbers_of_pairs_cannot_be_changed_by_who_sees_them():
    """In place, they would give a record the share of its first part many times over: 15 times the
    sensitivity.
    """

    class Remainder(Given):
        def responsibilities(self, records):
            gamma, rows = super().responsibilities(records)

            def of_records(pairs):
                if pairs is not None:
                    pairs %= len(records)
                return rows(pairs)

            return gamma, of_records

    records = np.tile([1.0, 0, 0, 1, 1, 1], (5, 1))
    with pytest.raises(BadInput, match=r"Remainder\.responsibilities failed \(ValueError\)"):
        try_out(enforce(Remainder(3, 1, "none", False, (1, 1, 0))), Bounds(x=[(-1, 1)] * 6))
    found = Remainder(3, 1, "none", False, (1, 1, 0)).block_sum(
        records
    )  # asked without numbers instead
    assert found.tolist() == Given(3, 1, "none", False, (1, 1, 0)).block_sum(records).tolist()


@pytest.mark.parametrize(
    "fails", [lambda pairs: pairs is None, lambda pairs: pairs is not None], ids=["all", "some"]
)
def test_how_pairs_are_asked_for_decides_about_no_record(fails):
    """Shares of all records of a block decide how pairs are asked for.

    A map that knows one way only is asked that way.
    """

    class OneWay(Given):
        def responsibilities(self, records):
            gamma, rows = super().responsibilities(records)

            def some(pairs):
                if fails(pairs):
                    raise TypeError
                return rows(pairs)

            return gamma, some

    statistic, other = (kind(4, 1, "diagonal", True, (1, 1, 1)) for kind in (OneWay, Given))
    few = np.array([1.0, 0, 0, 0, 1, 1, 1, 1])
    many = np.array([0.25, 0.25, 0.5, 0, 1, 1, 1, 1])
    for order in ([few] * 3 + [many] * 2, [few] * 2 + [many] * 3, [few], [many]):
        records = np.array(order)
        assert statistic.block_sum(records).tolist() == other.block_sum(records).tolist()


def test_one_part_needs_less_noise():
    assert Given(1, 2, "full", False, (1, 4, 4)).sensitivity2 == 18 * (N * L) ** 2  # G
    assert (
        Given(1, 2, "full", False, (9, 1, 1)).sensitivity2 == 11 * (N * L) ** 2
    )  # A + B + C: no part to go to
    assert Given(7, 2, "full", False, (9, 1, 1)).sensitivity2 == 22 * (N * L) ** 2


@pytest.mark.parametrize(
    "gamma",
    [
        [0.5, 0.5],
        [1.0, 1.0],
        [np.nan, 0.2],
        [-3, 0.2],
        [1e300, 0],
        [0, 0],
        [1 / 3, 2 / 3],
        [np.inf, 1],
    ],
)
@pytest.mark.parametrize(
    "row", [[0.3, 0.1], [3.0, -4.0], [np.nan, 1.0], [np.inf, 1.0], [1 + 2.0**-52, 0.0]]
)
def test_whatever_a_map_gives_is_held(gamma, row):
    statistic = Given(2, 2, "full", False, (1, 4, 4))
    with np.errstate(all="ignore"):
        pairs = enforce(statistic).pairs(np.array([[*gamma, *row, *row]], dtype=float))
        g = pairs.responsibilities
        found = list(pairs.each())
    assert ((g >= 0) & (g == np.trunc(g))).all()
    assert g.sum() in (0, N)
    for k, weighted, u in found:
        assert (weighted == u.T * g[k]).all()
        assert (u == np.trunc(u)).all()
        assert ((u.astype(int) ** 2).sum(axis=1) <= L).all()


def test_what_truncation_leaves_goes_to_the_largest_share():
    pairs = enforce(Given(3, 1, "none", False, (1, 1, 0))).pairs(
        np.array([[0.2, 0.5, 0.3, 0, 0, 0]])
    )
    assert pairs.responsibilities.tolist() == [[819], [4096 - 819 - 1228], [1228]]


@pytest.mark.parametrize("share", [0.3, 0.7])
def test_shares_of_few_and_of_most_records_are_added_up_alike(share):
    """Rows without a share are left out if they are many.

    Either way it is the sum over single records.
    """
    rng = np.random.default_rng(4)
    statistic = Given(2, 2, "full", False, (1, 4, 4))
    gamma = np.where(rng.random((300, 1)) < share, [1.0, 0.0], [0.0, 1.0])
    records = np.hstack([gamma, rng.uniform(-0.7, 0.7, size=(300, 4))])
    one = sum(summand(statistic, record) for record in records)
    assert (statistic.coordinates(statistic.block_sum(records)) == one).all()


def test_block_sums_are_the_exact_sums():
    rng = np.random.default_rng(2)
    statistic = Given(3, 4, "full", False, (1, 4, 4))
    rows = statistic.block_rows
    gamma = rng.dirichlet(np.ones(3), size=rows)
    u = rng.normal(size=(rows, 12))
    u[:, :4] = 1 / 2  # of full length
    records = np.hstack([gamma, u])
    one = sum(summand(statistic, record) for record in records)
    assert (statistic.coordinates(statistic.block_sum(records)) == one).all()


def test_a_whole_block_is_exact_where_floats_would_round():
    """Nearly all of every record in one part, at nearly full length: 2^13 rows add up to an odd
    number near 2^55.
    """
    statistic = Given(2, 3, "full", False, (1, 4, 4))
    rows = statistic.block_rows
    share = N - 1
    q = 2**15 - 1
    assert rows == 2**13
    assert rows * N * L == 2**55
    records = np.tile([share / N, 1 / N, q / 2**15, 0, 0, 0, 0, 0], (rows, 1))
    records[0, 2] = 1.0
    found = statistic.block_sum(records)
    wanted = share * (4**15 + (rows - 1) * q * q)
    assert int(found[2 + 6]) == wanted != int(float(wanted))
    assert int(found[2]) == share * (2**15 + (rows - 1) * q)


def test_blocks_are_long_where_rows_are_short():
    sizes = [(1, 1), (3, 10), (10, 10), (10, 100), (100, 100), (1000, 100)]
    assert [Given(k, d, "full", False, (1, 4, 4)).block_rows for k, d in sizes] == [
        2**13,
        5461,
        1638,
        2**10,
        104,
        64,
    ]


def test_moments_come_back():
    rng = np.random.default_rng(3)
    records = np.hstack(
        [rng.dirichlet(np.ones(2), size=500), rng.uniform(-0.4, 0.4, size=(500, 6))]
    )
    for second, together in itertools.product(("none", "trace", "diagonal", "full"), (False, True)):
        statistic = Given(2, 3, second, together, (1, 1, 0 if second == "none" else 1))
        found = statistic.coordinates(statistic.block_sum(records)).astype(float) * statistic.step
        gamma = records[:, :2]
        u = records[:, 2:].reshape(-1, 2, 3)
        matrices = np.einsum("ik,ikp,ikq->kpq", gamma, u, u)
        matrices = matrices.sum(axis=0, keepdims=True) if together else matrices
        wanted = {
            "none": [],
            "trace": [np.trace(m) for m in matrices],
            "diagonal": [np.diag(m) for m in matrices],
            "full": [m[np.triu_indices(3)] for m in matrices],
        }[second]
        expected = np.concatenate(
            [gamma.sum(axis=0), np.einsum("ik,ikp->kp", gamma, u).ravel(), np.ravel(wanted)]
        )
        assert found == pytest.approx(expected, abs=0.05)
        assert len(found) == statistic.size == len(statistic.coordinate_multiplicity())


@pytest.mark.parametrize(
    "fields",
    [
        (2, 2, "half", False, (1, 1, 1)),
        (0, 2, "full", False, (1, 1, 1)),
        (2, 2, "full", False, (0, 1, 1)),
        (2, 2, "full", False, (1, 1, 0)),
        (2, 2, "none", False, (1, 1, 1)),
        (2, 2, "full", False, (1, 2**21, 1)),
    ],
    ids=str,
)
def test_what_the_proof_does_not_cover_is_refused(fields):
    with pytest.raises(BadInput):
        _ = Given(*fields).sensitivity2


def test_a_map_of_the_wrong_shape_is_refused_beforehand():
    @dataclass(frozen=True)
    class Wrong(Given):
        which: int = 0

        def responsibilities(self, records):
            gamma, rows = super().responsibilities(records)
            return (
                (gamma[:, :1], rows)
                if self.which == 0
                else (gamma, lambda pairs: rows(pairs)[:, :1])
            )

    box = Bounds(x=[(-1, 1)] * 6)
    for which, numbers in ((0, 2), (1, 2)):
        enforced = enforce(Wrong(2, 2, "none", False, (1, 1, 0), which))
        with pytest.raises(
            BadInput, match=rf"Wrong\.responsibilities must give one row of {numbers} numbers"
        ):
            try_out(enforced, box)
        assert not enforced.block_sum(np.ones((3, 6)) / 2).any()


def test_a_record_whose_split_fails_has_no_share_and_the_others_keep_theirs():
    @dataclass(frozen=True)
    class Fails(Given):
        which: int = 0

        def fail(self, records):
            if (records[:, -1] == 0.25).any():
                raise SystemExit("0.25")

        def responsibilities(self, records):
            gamma, rows = super().responsibilities(records)
            if self.which == 0:
                self.fail(records)
            return gamma, lambda pairs: (self.fail(records), rows(pairs))[1]

    rng = np.random.default_rng(5)
    records = np.hstack([rng.dirichlet(np.ones(2), size=50), rng.uniform(-0.4, 0.4, size=(50, 4))])
    records[[3, 40], -1] = 0.25
    sound = enforce(Given(2, 2, "full", False, (1, 4, 4))).block_sum(
        np.delete(records, [3, 40], axis=0)
    )
    for which in (0, 1):
        assert (
            enforce(Fails(2, 2, "full", False, (1, 4, 4), which)).block_sum(records) == sound
        ).all()
