"""Attacks on floating-point noise and sums.

They succeed against naive code, and gain nothing against reticent.

Precision: Mironov, "On significance of the least significant bits for differential privacy", 2012.
Summation: Casacuberta, Shoemate, Vadhan, Wagaman, "Widespread underestimation of sensitivity…",
2022.
"""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from reticent.privacy.noise import FAMILIES, floor_noise, scale_at_least
from reticent.privacy.random_bits import Bits
from reticent.privacy.statistics.exact_sum import add_up
from reticent.privacy.statistics.sum import Sum

SIZE = 40_000
GRID = 24  # released sums are multiples of 2^-24, plus a half
ONE = 2**GRID
NEIGHBOURS = (0, 1)  # two sums that differ by the sensitivity, 1


# --- the low-order bits of one output


def naive_gaussian(value, rng):
    return value + rng.normal(0.0, 1.0, SIZE)


def naive_laplace(value, rng):
    """Inverse CDF in floats, as it stands in textbooks."""
    u = rng.random(SIZE) - 0.5
    return value - np.sign(u) * np.log1p(-2 * np.abs(u))


def reticent_release(law, value, seed):
    """What the curator does: an integer sum plus integer noise, and then its decoding."""
    noisy = value * ONE + floor_noise(law, scale_at_least(Fraction(ONE) ** 2), SIZE, Bits(seed))
    return noisy, (noisy.astype(np.float64) + 0.5) * 2.0**-GRID


def is_fine(output):
    """The attack: numbers below 1/2 that are no multiple of 2⁻⁵³ cannot have come from 1 + noise,
    rounded.
    """
    scaled = np.abs(output) * 2.0**53
    return (np.abs(output) < 0.5) & (scaled != np.floor(scaled))


@pytest.mark.parametrize("naive", [naive_gaussian, naive_laplace])
def test_precision_attack_breaks_naive_noise(naive):
    zero, one = (is_fine(naive(float(v), np.random.default_rng(v))) for v in NEIGHBOURS)
    # an event that one neighbour produces in an eighth of all cases and the other never: no finite
    # ε, whatever δ was claimed
    assert zero.mean() > 0.125
    assert not one.any()


@pytest.mark.parametrize("law", FAMILIES)
def test_precision_attack_gains_nothing(law):
    zero, one = (is_fine(reticent_release(law, v, b"bits %d" % v)[1]) for v in NEIGHBOURS)
    assert not zero.any()
    assert not one.any()


def features(noisy, decoded):
    """What an attacker could look at besides the size of the number."""
    pattern = decoded.view(np.uint64)
    for bits in range(1, 13):
        yield f"residue mod 2^{bits}", (noisy % 2**bits).astype(np.int64)
    for bits in (4, 8, 16):
        yield (
            f"lowest {bits} bits of the mantissa",
            (pattern & np.uint64(2**bits - 1)).astype(np.int64),
        )


def wins(zero, one):
    """Right guesses on the second half of the outputs, by the rule that was best on
    the first half.
    """
    half = SIZE // 2
    cells = int(max(zero.max(), one.max())) + 1
    seen = [np.bincount(x[:half], minlength=cells) for x in (zero, one)]
    guess_one = seen[1] > seen[0]
    return int((~guess_one[zero[half:]]).sum() + guess_one[one[half:]].sum())


def no_better_than_chance(count):
    low, high = stats.binom.interval(0.999, SIZE, 0.5)
    return low <= count <= high


@pytest.mark.parametrize("law", FAMILIES)
def test_no_low_order_bits_tell_neighbours_apart(law):
    zero, one = (dict(features(*reticent_release(law, v, b"learn %d" % v))) for v in NEIGHBOURS)
    for name in zero:
        assert no_better_than_chance(wins(zero[name], one[name])), name


@pytest.mark.parametrize("naive", [naive_gaussian, naive_laplace])
def test_the_same_learner_wins_against_naive_noise(naive):
    """The number of bits behind the point that an output needs (in ulps of 1) is enough."""

    def needed(value):
        mantissa, exponent = np.frexp(naive(value, np.random.default_rng(7 + int(value))))
        whole = (mantissa * 2.0**53).astype(np.int64)
        zeros = np.log2((whole & -whole).astype(float)).astype(np.int64)
        return np.clip(53 - exponent - zeros - 40, 0, 40)

    won = wins(needed(0.0), needed(1.0))
    assert not no_better_than_chance(won)
    assert won > 0.55 * SIZE


# --- the order of additions


@dataclass(frozen=True)
class PlainSum(Sum):
    """Σ x for records in [−1, 1] × {0}.

    With two columns NumPy adds row by row, as every loop over records does.
    """

    columns = 2
    norm2 = 1

    def rows(self, records):
        return np.clip(np.nan_to_num(records), -1.0, 1.0) * [1.0, 0.0]


def exact_sum(records, rows=None):
    statistic = PlainSum()
    records = records.astype(np.float64)
    total = add_up([records], statistic.block_sum, rows=rows or statistic.block_rows)
    return int(total.integers()[0])


def naive_sum(records):
    return float(records.sum(axis=0)[0])


def crafted(first):
    """One free record, then ones up to 2¹⁴, then small ones that float32 drops above 2¹⁴ and
    doubles below.
    """
    ones = np.ones(2**14)
    small = np.full(2**16, -0.99 * 2.0**-10)
    return in_two_columns(np.concatenate([[first], ones, small]))


def in_two_columns(values):
    return np.stack([values, np.zeros(len(values))], axis=1).astype(np.float32)


def test_one_record_moves_a_naive_sum_by_many_sensitivities():
    sensitivity = 2.0  # of a sum over [−1, 1]
    assert abs(naive_sum(crafted(0.0)) - naive_sum(crafted(1.0))) > 10 * sensitivity


def test_one_record_moves_an_exact_sum_by_what_it_says():
    statistic = PlainSum()
    for before, after in ((0.0, 1.0), (-1.0, 1.0), (np.nan, -1.0), (np.inf, -np.inf)):
        moved = exact_sum(crafted(before)) - exact_sum(crafted(after))
        assert moved**2 <= statistic.sensitivity2
    assert (exact_sum(crafted(1.0)) - exact_sum(crafted(0.0))) == 2**statistic.bits


def test_order_moves_a_naive_sum_and_not_an_exact_one():
    records = in_two_columns(np.concatenate([np.ones(2**14), np.full(2**16, 0.99 * 2.0**-10)]))
    assert abs(naive_sum(records) - naive_sum(records[::-1])) > 10 * 2.0
    shuffled = np.random.default_rng(0).permutation(records)
    sums = {
        exact_sum(r, rows)
        for r in (records, records[::-1], shuffled)
        for rows in (None, 1000, 7777)
    }
    assert len(sums) == 1
