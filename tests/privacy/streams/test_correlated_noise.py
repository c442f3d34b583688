"""How the noise of steps hangs together, number by number.

What `next` makes of fresh noise, and what `sensitivity_inflation` claims.
"""

from fractions import Fraction
from math import isqrt

import mpmath
import numpy as np
import pytest

import reticent.privacy.noise as module
from reticent.errors import BadInput
from reticent.privacy.accounting.events import Gaussian
from reticent.privacy.streams.correlated_noise import (
    COEFFICIENT_BITS,
    BufferedToeplitz,
    GeometricCorrelation,
    Toeplitz,
    _inflation,
)
from reticent.privacy.streams.stream import Stream
from tests.privacy.streams.streamed import (
    BOUNDS,
    ECHO,
    INDEPENDENT,
    ROOT,
    SOME,
    STEPS,
    TREE,
    Both,
    Pair,
)

ONE = 1 << COEFFICIENT_BITS
HEAVY = BufferedToeplitz([ONE // 2], [100 * ONE])
IDLE = BufferedToeplitz([0], [0])
FAR = GeometricCorrelation(ONE - ONE // 50)


def column(correlation, steps=STEPS):
    """c_0 = 1, c_1, …, exactly."""
    if isinstance(correlation, Toeplitz):
        return [Fraction(c, ONE) for c in correlation.coefficients[:steps]]
    if isinstance(correlation, GeometricCorrelation):
        return [Fraction(correlation.back, ONE) ** i for i in range(steps)]
    pairs = [
        (Fraction(d, ONE), Fraction(w, ONE))
        for d, w in zip(correlation.decays, correlation.weights, strict=True)
    ]
    return [Fraction(1)] + [sum(w * d**i for d, w in pairs) for i in range(steps - 1)]


def loss(correlation, steps=STEPS):
    """η of the proof: how far below the exact sum what is taken back may be."""
    if isinstance(correlation, Toeplitz):
        return Fraction(1)
    if isinstance(correlation, GeometricCorrelation):
        return Fraction(ONE, ONE - correlation.back)
    pairs = zip(correlation.decays, correlation.weights, strict=True)
    return 2 + sum(
        Fraction(w, ONE) * min(Fraction(steps), Fraction(ONE, ONE - d) + 1) for d, w in pairs
    )


EACH = pytest.mark.parametrize(
    "correlation",
    [ROOT, SOME, HEAVY, IDLE, ECHO, FAR, GeometricCorrelation(0)],
    ids=["root", "buffers", "heavy", "idle", "echo", "long echo", "no echo"],
)


def fresh_noise(steps=STEPS):
    rng = np.random.default_rng(7)
    return [
        np.array([int(v) for v in rng.normal(size=2) * 2.0**40], dtype=object) for _ in range(steps)
    ]


@EACH
def test_the_factorisation_makes_the_noise_of_all_steps_white_again(correlation):
    """C·u is the fresh noise, and a loss in [0, η) besides.

    What the proof asks for, for each number of each step.
    """
    fresh = fresh_noise()
    memory = []
    told = []
    for step, one in enumerate(fresh, 1):
        told.append(correlation.next(step, one, memory))
    if correlation.running:
        told = [b - a for a, b in zip([told[0] * 0, *told], told, strict=False)]
    c = column(correlation)
    for t, noise in enumerate(fresh):
        lost = sum(c[t - s] * told[s] for s in range(t + 1)) - noise
        assert all(0 <= one < loss(correlation) for one in lost)


def test_batches_have_the_fresh_noise():
    fresh = fresh_noise(1)[0]
    assert INDEPENDENT.next(1, fresh, []) is fresh
    assert (
        INDEPENDENT.sensitivity_inflation(9, 2, 8)
        == INDEPENDENT.uncorrelated_sensitivity_inflation(9, 2, 8)
        == 1
    )


def test_a_tree_adds_the_noise_of_the_nodes_that_make_up_a_sum():
    """Step 11 = 8 + 2 + 1 has the noise that was drawn in steps 8, 10 and 11.

    No step has any twice, or with a sign.
    """
    memory = []
    for step in range(1, 17):
        drawn = np.array([int(t == step) for t in range(1, 17)], dtype=object)
        nodes = []
        rest = step
        while rest:
            nodes.append(rest)
            rest &= rest - 1
        assert TREE.next(step, drawn, memory).tolist() == [int(t in nodes) for t in range(1, 17)]


def test_where_the_coefficients_end():
    """ρ and θ from 0 to just below 1, ω from 0, one for each; c_0 = 1."""
    assert GeometricCorrelation(0).sensitivity_inflation(3, 2, 8) >= 1
    assert GeometricCorrelation(ONE - 1).sensitivity_inflation(3, 2, 8) > ONE // 2 - 1  # 1/(1 − ρ²)
    assert BufferedToeplitz([0, ONE - 1], [0, 1]).sensitivity_inflation(3, 2, 8) > 1
    assert Toeplitz([ONE]).sensitivity_inflation(1, 2, 8) > 1
    for wrong in (-1, ONE):
        with pytest.raises(BadInput, match="geometric"):
            GeometricCorrelation(wrong)
        with pytest.raises(BadInput, match="decay"):
            BufferedToeplitz([0, wrong], [0, 0])
    for decays, weights in (([0], [-1]), ([0, 0], [1]), ([0], [1, 1])):
        with pytest.raises(BadInput, match="weight"):
            BufferedToeplitz(decays, weights)
    for wrong in ([], [ONE - 1], [ONE + 1]):
        with pytest.raises(BadInput, match="coefficients"):
            Toeplitz(wrong)
    with pytest.raises(BadInput, match="steps"):
        Toeplitz([ONE]).sensitivity_inflation(2, 2, 8)


def root(value):
    return mpmath.sqrt(mpmath.mpf(Fraction(value).numerator) / Fraction(value).denominator)


@EACH
@pytest.mark.parametrize("own", [1, 3, 10**6])
@pytest.mark.parametrize(("steps", "size"), [(1, 1), (1, 3), (2, 1), (STEPS, 2), (4, 10**6)])
def test_the_inflation_is_what_the_proof_asks_for(correlation, own, steps, size):
    """(‖column‖·Δ + η√(2·steps·size))²/Δ², for sensitivities so small that rounding counts.

    And no more than stated beyond.
    """
    with mpmath.workdps(60):
        eta = root(loss(correlation, steps) ** 2)
        delta = root(own)
        length2 = sum(c * c for c in column(correlation, steps))
        if isinstance(correlation, GeometricCorrelation):  # of a column that never ends
            length2 = 1 / (1 - Fraction(correlation.back, ONE) ** 2)
        exact = isinstance(correlation, Toeplitz)
        for claim, long2 in (
            (correlation.sensitivity_inflation, length2),
            *(
                [(correlation.uncorrelated_sensitivity_inflation, Fraction(1))]
                if isinstance(correlation, GeometricCorrelation)
                else []
            ),
        ):
            least = root(long2) * delta + eta * mpmath.sqrt(2 * steps * size)
            most = root(long2) * delta * (1 + mpmath.mpf(2) ** -25) + mpmath.mpf(2) ** -29
            most += 2 * (eta if exact else eta + 1) * (mpmath.sqrt(steps * size) + 1)
            assert least <= root(claim(steps, size, own)) * delta <= most


@pytest.mark.parametrize(
    "correlation",
    [SOME, HEAVY, BufferedToeplitz([ONE // 3], [ONE // 7])],
    ids=["some", "heavy", "thirds"],
)
@pytest.mark.parametrize("steps", [2, 3, STEPS])
def test_the_column_of_buffers_is_rounded_up(correlation, steps):
    """What is left of the stretch without the part for rounding is no shorter than the column, by
    sixty digits.
    """
    own = 10**14
    pairs = zip(correlation.decays, correlation.weights, strict=True)
    lost = sum(w * min(steps, ONE // (ONE - d) + 1) for d, w in pairs) // ONE + 2
    with mpmath.workdps(60):
        length = root(correlation.sensitivity_inflation(steps, 2, own) * own) - 2 * lost * (
            isqrt(2 * steps) + 1
        )
        exact = root(own * sum(c * c for c in column(correlation, steps)))
        assert exact < length < exact * (1 + mpmath.mpf(2) ** -25)


@pytest.mark.parametrize("square", [2 * ONE**2, 3 * ONE**2 + 1, 5 * ONE**2 - 7])
def test_a_inflation_is_rounded_up_and_by_one_unit_only(square):
    claimed = _inflation(square, 5, 3, 0, 1)
    assert Fraction(square, ONE**2) <= claimed <= Fraction((isqrt(square) + 1) ** 2, ONE**2)


@pytest.mark.parametrize("correlation", [INDEPENDENT, TREE, ECHO], ids=["batches", "tree", "echo"])
def test_a_release_is_the_sum_and_the_noise_and_half_a_step(correlation, monkeypatch):
    """⌊N⌋ lies half a step below N, on average: the release makes up for it, whatever was drawn."""
    drawn = iter([[5, -3], [7, 11], [-13, 17]])
    monkeypatch.setattr(module, "floor_noise", lambda *_: np.array(next(drawn), dtype=object))
    event = Gaussian(noise_multiplier=2.0)
    statistic = Both()
    one = Stream(bounds=BOUNDS, event=event, correlation=correlation, steps=3, seed=b"0")
    sums = []
    memory = []
    running = np.zeros(2, dtype=object)
    for step, noise in enumerate([[5, -3], [7, 11], [-13, 17]], 1):
        records = np.array([[0.25 * step, -0.5], [0.125, 1.0]])
        one.add(statistic, records)
        own = np.array([int(v / statistic.step) for v in records.sum(axis=0)], dtype=object)
        running = running + own if correlation.running else own
        with_noise = running + correlation.next(step, np.array(noise, dtype=object), memory)
        release = one.release(statistic)
        assert release.value.tolist() == [(int(v) + 0.5) * statistic.step for v in with_noise]
        sums.append(release.n)
    assert sums == [2, 2, 2]


@pytest.mark.parametrize(
    "correlation",
    [INDEPENDENT, TREE, ROOT, SOME, ECHO],
    ids=["batches", "tree", "root", "buffers", "echo"],
)
@pytest.mark.parametrize("people", [1, 3])
@pytest.mark.parametrize("statistic", [Both(), Pair()], ids=["sum", "gram"])
def test_noise_is_that_of_the_event_times_the_sensitivity_of_all_records_of_a_person(
    correlation, people, statistic
):
    """σ = multiplier · k · Δ · √stretch, less where a square counts twice.

    The first release says so, and is drawn so.
    """
    own = people**2 * statistic.sensitivity2
    one = Stream(
        bounds=BOUNDS,
        event=Gaussian(noise_multiplier=2.0),
        correlation=correlation,
        steps=STEPS,
        records_per_person=people,
        seed=b"0",
    )
    release = one.release(statistic)
    sensitivity_inflation = float(correlation.sensitivity_inflation(STEPS, statistic.size, own))
    expected = (
        2.0
        * np.sqrt(own * sensitivity_inflation / statistic.coordinate_multiplicity())
        * statistic.step
    )
    np.testing.assert_allclose(release.scale, expected, rtol=1e-9)
    assert (release.scale >= expected * (1 - 1e-15)).all()
    assert np.abs(release.value / expected).max() < 6
    assert release.records_per_person == people
