"""The exponential mechanism.

Exact chances, an exact sensitivity, and no more given away than by a Gaussian release.
"""

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product

import mpmath
import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.special import ndtr, ndtri

from reticent.errors import BadInput, ReleaseRefused
from reticent.models.replay import Replay
from reticent.privacy.accounting.events import Gaussian, Laplace
from reticent.privacy.accounting.gaussian import log_delta
from reticent.privacy.bounds import Bounds
from reticent.privacy.curator import Curator
from reticent.privacy.random_bits import Bits
from reticent.privacy.selection.exponential_mechanism import (
    Scores,
    _coin,
    epsilon_of,
    exponents,
    pick,
    sensitivity,
)
from reticent.privacy.sources.base import scan
from reticent.privacy.statistics.cell_sum import CellSum
from reticent.privacy.statistics.counts import Counts
from reticent.privacy.statistics.enforced import enforce

LINE = Bounds(x=[(-1, 1)], y=(-1, 1))
CELLS = 3


def third(records):
    return np.minimum(np.floor((records[:, 0] + 1) * 1.5), CELLS - 1)


@dataclass(frozen=True)
class Sums(CellSum):
    """Σ of outputs in three thirds of [−1, 1]."""

    own = 1
    shared = 0
    norm2 = 1

    @property
    def cells(self):
        return CELLS

    def cell(self, records):
        return third(records)

    def short_rows(self, records):
        return records[:, 1:]


@dataclass(frozen=True)
class Numbers(Counts):
    """How many records are in each third."""

    groups = (CELLS,)

    def cells(self, records):
        return third(records)[:, None]


SIGNED = enforce(Sums())
COUNTED = enforce(Numbers())


def how(n, eps, counts=None, people=1):
    return {"n": n, "people": people, "counts": counts, "epsilon": eps}


def forms(k=5, seed=0):
    rng = np.random.default_rng(seed)
    roots = rng.normal(size=(k, CELLS, CELLS)) * rng.uniform(0.1, 2, size=(k, 1, 1))
    return Scores(roots @ np.swapaxes(roots, 1, 2), rng.normal(size=(k, CELLS)), rng.normal(size=k))


SCORES = forms()


def totals(statistic, cells, values):
    """Sums in grid steps, as a curator makes them."""
    x = (np.asarray(cells) + 0.5) / 1.5 - 1
    block = statistic.block_sum(np.column_stack([x, np.clip(values, -1, 1)]))
    return np.array([int(v) for v in block], dtype=object)


def worst(form, statistic, others, values, places):
    """The furthest pair of records beside these others.

    A search over either label, at every place of ``places``.
    """

    def at(place, u):
        return form(totals(statistic, [place, *others], [float(u), *values]))

    tried = [(place, u) for place in places for u in (-1, 1)]
    if statistic is SIGNED:
        for place, sign in product(places, (-1, 1)):
            search = minimize_scalar(
                lambda u, p=place, s=sign: float(s * at(p, u)), bounds=(-1, 1), method="bounded"
            )
            tried.append((place, search.x))
    else:
        tried.append((places[0], np.nan))  # a record that lacks a value is in no cell
    found = [at(*one) for one in tried]
    return max(found) - min(found)


@pytest.mark.parametrize("relation", ["counts", "records", "labels"])
def test_no_neighbour_moves_a_score_further_than_claimed_and_one_moves_it_so_far(relation):
    """Search over the others, the place of the replaced record and both its labels.

    Attained, never passed.
    """
    n = 4
    statistic = COUNTED if relation == "counts" else SIGNED
    anywhere = [((a, a, b), range(CELLS)) for a, b in ((0, 0), (1, 1), (2, 2), (0, 2))]
    cases = (
        [((1, 1, 2), [0]), ((0, 1, 2), [1]), ((0, 1, 1), [2])] if relation == "labels" else anywhere
    )
    counts = np.array([1, 2, 1]) if relation == "labels" else None
    for form in SCORES.whole(statistic.step)[0][:2]:
        claimed = sensitivity(statistic, form.matrix, form.linear, n, counts)
        labels = list(product((-1.0, 1.0), repeat=n - 1))
        if relation == "counts":
            labels = [(1.0,) * (n - 1), (np.nan,) * (n - 1)]
        moved = [
            worst(form, statistic, others, values, at) for others, at in cases for values in labels
        ]
        assert 0.999 <= max(moved) / claimed <= 1


def test_labels_that_are_best_left_in_the_middle():
    """Where a cell's own curvature outweighs all others, the worst pair is an end and the turning
    point, not both ends.
    """
    matrix = np.diag([4.0, 0.0, 0.0])
    linear = np.array([1.0, 0.0, 0.0])
    form = Scores(matrix[None], linear[None], np.zeros(1)).whole(SIGNED.step)[0][0]
    claimed = sensitivity(SIGNED, form.matrix, form.linear, 1, np.array([1, 0, 0]))
    u = np.linspace(-1, 1, 2001)
    values = [form(totals(SIGNED, [0], [v])) for v in u]
    assert 0.999 * claimed <= max(values) - min(values) <= claimed
    assert abs(values[0] - values[-1]) < 0.5 * claimed


class Shorter(Sums):
    norm1 = Fraction(1, 4)


def test_a_record_reaches_as_far_as_the_narrower_of_its_limits():
    """A score that is one cell's sum moves from one end to the other, and the ends are those that
    are enforced.
    """
    form = Scores(np.zeros((1, 3, 3)), np.array([[1.0, 0, 0]]), np.zeros(1)).whole(SIGNED.step)[0][
        0
    ]
    far, near = (
        sensitivity(one, form.matrix, form.linear, 2) for one in (SIGNED, enforce(Shorter()))
    )
    assert far == pytest.approx(2 * math.isqrt(SIGNED.limit2) * form.linear[0], rel=1e-8)
    assert near == pytest.approx(far / 4, rel=1e-8)


@pytest.mark.parametrize(("counts", "share"), [([3, 0, 0], 1), ([0, 3, 0], 0), ([1, 1, 1], 1)])
def test_only_cells_that_hold_a_record_can_move_a_score(counts, share):
    form = Scores(np.zeros((1, 3, 3)), np.array([[1.0, 0, 0]]), np.zeros(1)).whole(SIGNED.step)[0][
        0
    ]
    most = sensitivity(SIGNED, form.matrix, form.linear, 3)
    assert sensitivity(SIGNED, form.matrix, form.linear, 3, np.array(counts)) == pytest.approx(
        share * most, abs=1e-6 * most
    )


def test_public_counts_bound_how_far_the_others_reach():
    """Score −T²: beside c − 1 others at one end, a record's change is |end² difference|, so 4(c −
    1) reaches squared.
    """
    reach = math.isqrt(SIGNED.limit2)
    form = Scores(np.eye(3)[None], np.zeros((1, 3)), np.zeros(1)).whole(SIGNED.step)[0][0]
    unit = form.matrix[0, 0] * reach**2
    for count in (2, 3, 7):
        claimed = sensitivity(SIGNED, form.matrix, form.linear, 9, np.array([count, 0, 0]))
        others = count - 1
        assert claimed == pytest.approx(unit * ((others + 1) ** 2 - (others - 1) ** 2), rel=1e-6)
    assert sensitivity(SIGNED, form.matrix, form.linear, 9) == pytest.approx(
        unit * (9**2 - 7**2), rel=1e-6
    )


def whole_sensitivity(form, n):
    """The furthest that one count moves a score: all others in one cell, the record in each of two.

    Or in none. In whole numbers.
    """
    unit = np.vstack([np.eye(CELLS, dtype=int), np.zeros((1, CELLS), dtype=int)]).astype(object)
    found = [[form((n - 1) * a + b) for b in unit] for a in unit]
    return max(max(row) - min(row) for row in found)


@pytest.mark.parametrize("n", [1, 2, 9])
def test_the_sensitivity_of_counts_is_that_of_all_pairs(n):
    """Of forty forms that are definite or not.

    The greatest change over all places, to 10⁻⁸ of it.
    """
    rng = np.random.default_rng(n)
    scores = Scores(
        rng.normal(size=(40, 3, 3)),
        rng.normal(size=(40, 3)) * rng.choice([1, 9], (40, 1)),
        np.zeros(40),
    )
    for form in scores.whole(COUNTED.step)[0]:
        exact = whole_sensitivity(form, n)
        assert exact <= sensitivity(COUNTED, form.matrix, form.linear, n) <= exact * (1 + 1e-8)


def test_a_sensitivity_that_floats_cannot_tell_from_zero_is_still_a_bound():
    """All cells but one alike, to the last of forty bits.

    Two scores of 2⁷¹ differ by less than what floats lose.
    """
    n = 10**9 + 8
    short = 0
    for odd in range(1, 40, 2):
        matrix = np.full((3, 3), 2.0**40 - odd)
        matrix[0, 1:] = matrix[1:, 0] = 2.0**40 - odd - 1
        form = Scores(matrix[None], np.zeros((1, 3)), np.zeros(1)).whole(COUNTED.step)[0][0]
        exact = whole_sensitivity(form, n)
        assert exact <= sensitivity(COUNTED, form.matrix, form.linear, n) <= 4 * exact
        scores = -2 * matrix[0] * (n - 1) - np.diag(matrix)
        short += (scores.max() - scores.min()) * (1 + 1e-9) < exact
    assert short, "the case that this is about"


def test_a_score_that_nothing_moves_can_be_chosen_by():
    """A sensitivity is at least one step, for chances divide by it."""
    form = Scores(np.zeros((1, 3, 3)), np.zeros((1, 3)), np.zeros(1)).whole(SIGNED.step)[0][0]
    assert sensitivity(SIGNED, form.matrix, form.linear, 5) == 1
    assert sensitivity(SIGNED, form.matrix, form.linear, 5, np.zeros(3)) == 1


@pytest.mark.parametrize("size", [2.0**-70, 1.0, 2.0**50])
@pytest.mark.parametrize("statistic", [SIGNED, COUNTED], ids=["sums", "counts"])
def test_whole_numbers_say_the_same_score(statistic, size):
    """With entries of thirty bits nothing is lost, whatever their size, and of a matrix that is not
    symmetric neither.
    """
    rng = np.random.default_rng(3)
    matrix, linear = (rng.integers(-(2**30), 2**30, size=shape) * 2.0**-30 for shape in ((3, 3), 3))
    matrix[0, 0] = 0.75  # how large the largest is says how many bits there are
    scores = Scores((matrix * size)[None], (linear * size)[None], np.array([0.625 * size]))
    (form,), unit = scores.whole(statistic.step)
    total = np.array([int(v) for v in rng.integers(-1000, 1000, size=3)], dtype=object)
    T = [Fraction(statistic.step) * v for v in total]
    G = [[Fraction(float(v)) for v in row] for row in matrix]
    slopes = [Fraction(float(v)) for v in linear]
    quadratic = sum(T[i] * G[i][j] * T[j] for i, j in product(range(3), repeat=2))
    exact = sum(a * b for a, b in zip(slopes, T, strict=True)) - quadratic + Fraction(5, 8)
    assert form(total) * unit == exact * Fraction(size)


def test_the_scale_of_a_choice_is_in_the_units_of_the_scores():
    """A score that is one cell's sum moves by 2, so 2Δ/ε = 4/ε.

    And it may be given in thousands.
    """
    for size, eps in product((1.0, 1000.0), (0.5, 3.0)):
        scores = Scores(np.zeros((1, 3, 3)), np.array([[size, 0, 0]]), np.zeros(1))
        told = exponents(SIGNED, scores, totals(SIGNED, [0], [1]), **how(5, eps))[1]
        assert told == pytest.approx(4 * size / eps, rel=1e-6)


def chances(values):
    weights = np.exp([float(v - max(values)) / 2**20 for v in values])
    return weights / weights.sum()


def test_choices_have_the_stated_chances():
    values = [0, 2**19, -(2**20) - 12345, 3 * 2**18, -(10**12)]
    bits = Bits(b"chances")
    drawn = np.bincount([pick(values, bits) for _ in range(6000)], minlength=5)
    expected = 6000 * chances(values)
    assert drawn[4] == 0
    assert np.square(drawn - expected)[:4] @ (1 / expected[:4]) < 20  # χ² with 3 degrees of freedom


@pytest.mark.parametrize("mu", [1e-6, 0.01, 0.3, 0.999, 1.001, 3.0, 9.0])
def test_a_gaussian_release_dominates_every_mechanism_of_that_range(mu):
    """Two outcomes whose log likelihood ratios are ε apart, wherever they lie.

    No test beats the Gaussian's.
    """
    eps = epsilon_of(mu)
    t = np.linspace(0, 1, 501)[1:-1] * eps
    q = -np.expm1(t - eps) / (np.exp(t) * -np.expm1(-eps))  # false alarms
    other = (
        np.expm1(t) / (np.exp(t) * -np.expm1(-eps)) * np.exp(t - eps)
    )  # 1 − power, without a difference
    needed = -ndtri(other) - ndtri(q)
    assert needed.max() <= mu * (1 + 1e-6)
    assert needed.max() == pytest.approx(mu, rel=1e-3)


@pytest.mark.parametrize("mu", [1e-9, 1e-3, 0.5, 0.999, 1.0, 1.001, 4.0, 12.0])
def test_the_price_of_a_choice_is_rounded_to_the_safe_side(mu):
    """Never above 2·logit Φ(μ/2), by fifty digits, and hardly below."""
    with mpmath.workdps(50):
        exact = 2 * mpmath.log(mpmath.ncdf(mpmath.mpf(mu) / 2) / mpmath.ncdf(-mpmath.mpf(mu) / 2))
        assert exact * (1 - mpmath.mpf("2e-9")) < epsilon_of(mu) < exact


def test_floors_are_paid_for():
    """Between neighbours no exponent moves by more than ε/2 in steps of 2⁻²⁰, where a floor is half
    of that; one moves by two.
    """
    line = np.zeros((60, 3))
    line[:, 0] = 1
    scores = Scores(np.zeros((60, 3, 3)), line, np.linspace(0, 2, 60))
    one, two = (
        exponents(SIGNED, scores, totals(SIGNED, [0], [end]), **how(1, 2.5 / 2**19))[0]
        for end in (-1.0, 1.0)
    )
    moved = {abs(a - b) for a, b in zip(one, two, strict=True)}
    assert moved == {1, 2}
    assert set(exponents(SIGNED, scores, totals(SIGNED, [0], [1]), **how(1, 2.0**-20))[0]) == {0}


def test_a_coin_is_thrown_below_its_part_and_not_at_it():
    class Words:
        def __init__(self, *given):
            self.given = list(given)

        def words(self, count):
            return np.array([self.given.pop(0)], dtype=np.uint64)

    assert _coin(5, Words(5))
    assert not _coin(5, Words(4, 5))
    assert _coin(5, Words(4, 4, 5))
    assert _coin(0, Words(0))


@pytest.mark.parametrize("mu", [0.2, 2.0])
def test_the_attack_that_knows_all_other_records_gains_no_more_than_from_a_gaussian(mu):
    """The exact laws of the choice for neighbouring tables, and the hockey-stick divergence at
    every ε.
    """
    worst = 0.0
    n = 3
    for others in product(range(CELLS), repeat=2):
        sums = [
            totals(SIGNED, [*others, at], [1, 1, end]) for at in range(CELLS) for end in (-1, 1)
        ]
        pairs = [exponents(SIGNED, SCORES, total, **how(n, epsilon_of(mu)))[0] for total in sums]
        for one, two in product(pairs, repeat=2):
            ratio = np.log(chances(one)) - np.log(chances(two))
            worst = max(worst, np.ptp(ratio) / epsilon_of(mu))
            for eps in (0.0, 0.1, 1.0):
                hockey = np.maximum(chances(one) - np.exp(eps) * chances(two), 0).sum()
                assert hockey <= np.exp(log_delta(eps, mu)) * (1 + 1e-9)
    assert 0.3 < worst <= 1  # several candidates share one sensitivity, the largest


def test_a_wrong_count_costs_accuracy_and_no_privacy():
    """Claimed to be empty, a cell's sum is held to zero: the choice does not depend on it."""
    counts = np.array([0, 1, 5])
    one, two = (
        exponents(SIGNED, SCORES, totals(SIGNED, [0, 0, 1], [1, v, 1]), **how(3, 1.0, counts))[0]
        for v in (-1, 1)
    )
    assert one == two


@pytest.mark.parametrize("end", [-1.0, 1.0])
def test_a_sum_is_held_to_what_the_count_allows(end):
    """Three records where one was claimed count as one; a count below zero is none.

    A true one changes nothing.
    """

    def told(cells, values, counts):
        return exponents(
            SIGNED, SCORES, totals(SIGNED, cells, values), **how(9, 1.0, np.array(counts))
        )[0]

    assert told([0, 0, 0, 1], [end, end, end, 1], [1, 2, 3]) == told([0, 1], [end, 1], [1, 2, 3])
    assert told([0, 1], [end, 1], [-3, 2, 3]) == told([1], [1], [0, 2, 3])
    assert told([0, 1], [end, 1], [1, 2, 3]) != told([0, 1], [end / 2, 1], [1, 2, 3])


def test_several_records_of_a_person_count_as_often():
    few, many = (
        exponents(SIGNED, SCORES, totals(SIGNED, [0], [1]), **how(9, 1.0, people=k))[1]
        for k in (1, 4)
    )
    assert many == pytest.approx(4 * few)


def curator(event=None, relation="record", seed=b"0", **more):
    event = event or Gaussian(count=2, noise_multiplier=0.1)
    x = np.linspace(-0.9, 0.9, 20)[:, None]
    return Curator(
        scan(x, y=x[:, 0]),
        bounds=LINE,
        event=event,
        targets=True,
        relation=relation,
        seed=seed,
        **more,
    )


def test_a_choice_is_paid_for_told_and_replayed():
    one = curator()
    release = one.select(Sums(), SCORES, shares_spent=2)
    assert release.value[0] in range(5)
    assert release.shares_spent == 2
    assert release.scale[0] > 0
    with pytest.raises(ReleaseRefused, match="paid for"):
        one.select(Sums(), SCORES)
    assert Replay([release]).select(Sums(), SCORES, shares_spent=2) is release
    with pytest.raises(ReleaseRefused):
        Replay([release]).select(Sums(), forms(4), shares_spent=2)
    with pytest.raises(BadInput, match="altered"):
        Replay([replace(release, value=np.array([5.0]))]).select(Sums(), SCORES, shares_spent=2)
    assert (
        len({float(curator(seed=None).select(Sums(), forms(40, 1)).value[0]) for _ in range(9)}) > 1
    )


def test_the_best_candidate_is_chosen_where_the_budget_allows():
    """Scores that say which of five sums is the true one."""
    at = (
        totals(SIGNED, np.repeat(range(3), [7, 6, 7]), np.linspace(-0.9, 0.9, 20)).astype(float)
        * SIGNED.step
    )
    wrong = at + np.array([[3, 0, 0], [0, 0, 0], [0, 3, 0], [0, 0, -3], [2, 2, 2]])
    scores = Scores(np.array([np.eye(3)] * 5), 2 * wrong, -np.square(wrong).sum(axis=1))
    x = np.linspace(-0.9, 0.9, 20)[:, None]
    one = Curator(scan(x, y=x[:, 0]), bounds=LINE, event=Gaussian(1, 0.001), targets=True)
    assert one.select(Sums(), scores).value[0] == 1


class Both(Sums):
    own = 2


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"event": Laplace(2, 1.0)}, "delta > 0"),
        ({"counts": np.ones(3)}, "protected here"),
        ({"relation": "label", "counts": np.ones(2)}, "one count for each cell"),
        (
            {"scores": Scores(np.zeros((1, 2, 2)), np.zeros((1, 2)), np.zeros(1))},
            "a matrix, a row and a number",
        ),
        ({"scores": Scores(np.full((1, 3, 3), np.nan), np.zeros((1, 3)), np.zeros(1))}, "finite"),
        ({"statistic": Both()}, "counts, or about sums by cell"),
    ],
    ids=str,
)
def test_what_the_proof_does_not_cover_is_refused(wrong, says):
    asked = {"statistic": Sums(), "scores": SCORES, **wrong}
    one = curator(asked.pop("event", None), asked.pop("relation", "record"))
    with pytest.raises((BadInput, ReleaseRefused), match=says):
        one.select(asked.pop("statistic"), asked.pop("scores"), **asked)


def test_the_middle_of_the_logistic_law_is_the_worst():
    """Φ⁻¹ of the logistic distribution function is concave above zero, on which the closed form of
    μ rests.
    """
    z = np.linspace(0.01, 8, 800)
    mills = ndtr(-z) / np.exp(-(z**2) / 2) * np.sqrt(2 * np.pi)
    assert (z * mills * ndtr(z) < 2 * ndtr(z) - 1).all()
