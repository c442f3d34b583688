"""The sampler draws the law it claims, on the fast path and on the slow one, and cannot be made to
repeat itself.
"""

import copy
import itertools
import math
import pickle
import random
import subprocess
import sys
import threading
from decimal import getcontext
from fractions import Fraction

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special, stats

from reticent.errors import BadInput, ReleaseRefused
from reticent.privacy import noise
from reticent.privacy.noise import FAMILIES, Scale, add_exactly, floor_noise, scale_at_least
from reticent.privacy.random_bits import Bits

SCALES = {"0.5": 0.5, "1": 1, "3.7": 3.7, "1000": 1000, "2^20+odd": 2**20 + 12345, "2^45": 2**45}
LEAST_P = 1e-4  # seeds are fixed: a test passes always or never


def cdf(law, x):
    """P(N ≤ x), P(L ≤ x)."""
    x = np.asarray(x, dtype=float)
    if law == "gaussian":
        return special.ndtr(x)
    return np.where(x < 0, np.exp(-np.abs(x)) / 2, 1 - np.exp(-np.abs(x)) / 2)


def scale_of(sigma):
    return scale_at_least(Fraction(sigma) ** 2)


def draw(law, sigma, size, seed):
    return floor_noise(law, scale_of(sigma), size, Bits(seed.encode()))


def p_value(observed, probabilities):
    """Chi-square, cells with fewer than 8 expected counts put together."""
    expected = probabilities * observed.sum()
    few = expected < 8
    if few.any():
        observed = np.append(observed[~few], observed[few].sum())
        expected = np.append(expected[~few], expected[few].sum())
        if expected[-1] < 1:  # joins its neighbour rather than being a cell of its own
            observed = np.append(observed[:-2], observed[-2:].sum())
            expected = np.append(expected[:-2], expected[-2:].sum())
    return stats.chisquare(observed, expected * observed.sum() / expected.sum()).pvalue


@pytest.mark.parametrize("law", FAMILIES)
@pytest.mark.parametrize("name", SCALES)
def test_goodness_of_fit(law, name):
    sigma = SCALES[name]
    size = 200_000
    drawn = draw(law, sigma, size, f"fit {law} {name}")
    exact = float(scale_of(sigma).exact)
    quantile = stats.norm.ppf if law == "gaussian" else stats.laplace.ppf
    edges = np.unique([math.floor(exact * q) for q in quantile(np.arange(1, 200) / 200)]).astype(
        object
    )
    edges = np.concatenate([[edges[0] - 4], edges, [edges[-1] + 4]]) if sigma < 10 else edges
    # ⌊σN⌋ < edge exactly where σN < edge
    probabilities = np.diff(np.concatenate([[0.0], cdf(law, (edges / exact).astype(float)), [1.0]]))
    observed = np.bincount(np.searchsorted(edges, drawn, side="right"), minlength=len(edges) + 1)
    assert p_value(observed, probabilities) > LEAST_P
    negative = sum(int(x) < 0 for x in drawn)
    assert abs(negative - size / 2) < 4 * math.sqrt(size) / 2  # ⌊·⌋ < 0 exactly where σN < 0
    assert (
        stats.kstest((drawn.astype(float) + 0.5) / exact, lambda x: cdf(law, x)).pvalue > LEAST_P
        or sigma < 100
    )


def test_goodness_of_fit_can_fail():
    """2 % more spread is seen."""
    drawn = draw("gaussian", 1000, 200_000, "wrong").astype(float) * 1.02
    assert stats.kstest(drawn / 1000, stats.norm.cdf).pvalue < LEAST_P


@pytest.mark.parametrize("law", FAMILIES)
@pytest.mark.parametrize("sigma", [0.5, 2.0**-10, 2.0**-18])
def test_mass_function_at_small_scales(law, sigma):
    drawn = draw(law, sigma, 40_000, f"mass {law} {sigma}").astype(int)
    cells = np.arange(-30, 30)
    probabilities = cdf(law, (cells + 1) / sigma) - cdf(law, cells / sigma)
    observed = np.array([(drawn == i).sum() for i in cells])
    assert observed.sum() == len(drawn)
    assert not observed[probabilities < 1e-12].any()
    seen = probabilities >= 1e-12
    assert p_value(observed[seen], probabilities[seen]) > LEAST_P


@pytest.mark.parametrize("law", FAMILIES)
@pytest.mark.parametrize("w", [2**40, 2**40 + 1, 2**45 + 987654321, 2**58])
def test_parts_of_the_number_are_jointly_right(law, w):
    """k, f, the low bits of j and the sign: k and f have the joint law, the rest is uniform and
    independent of it.
    """
    drawn = floor_noise(law, Scale(w, 0), 150_000, Bits(b"parts %d" % w))
    negative = np.array([x < 0 for x in drawn])
    size = np.where(negative, ~drawn, drawn)
    k = (size // w).astype(int)
    j = size % w
    part = (j * 8 // w).astype(int)
    low = (j % 16).astype(int)
    at = np.arange(0, 33) / 8
    mass = 2 * np.diff(np.append(cdf(law, at), 1.0))
    observed = np.bincount(np.minimum(8 * k + part, 32), minlength=33)
    assert p_value(observed, mass) > LEAST_P
    assert p_value(np.bincount(low, minlength=16), np.full(16, 1 / 16)) > LEAST_P
    level = np.minimum(k, 2)
    for one, other in itertools.combinations([level, low, negative.astype(int)], 2):
        assert stats.chi2_contingency(stats.contingency.crosstab(one, other).count).pvalue > LEAST_P
    assert stats.chi2_contingency(stats.contingency.crosstab(part, low).count).pvalue > LEAST_P
    assert (
        stats.chi2_contingency(stats.contingency.crosstab(low[:-1], low[1:]).count).pvalue > LEAST_P
    )


@pytest.mark.parametrize("law", FAMILIES)
@pytest.mark.parametrize(
    "scale",
    [
        Scale(2**40, 0),
        Scale(2**41 - 1, 20),
        Scale(2**58, 0),
        Scale(2**40, 58),
        Scale(2**57 + 1, -70),
    ],
)
def test_forced_slow_path_gives_the_same_numbers(law, scale, monkeypatch):
    fast = floor_noise(law, scale, 400, Bits(b"same"))
    monkeypatch.setattr(noise, "_MARGIN", 10.0)
    calls = []
    known = {}
    decide = noise._decide
    weights = noise._weights

    def once(law):  # for each number of digits: it takes longest, and never differs
        key = law, getcontext().prec
        known[key] = known[key] if key in known else weights(law)
        return known[key]

    monkeypatch.setattr(noise, "_weights", once)
    monkeypatch.setattr(noise, "_decide", lambda *a: calls.append(1) or decide(*a))
    assert list(floor_noise(law, scale, 400, Bits(b"same"))) == list(fast)
    assert len(calls) > 400


def test_slow_path_is_rare_and_taken(monkeypatch):
    """With a margin of 2⁻¹² instead of 2⁻³⁰, one attempt in about 10³ is handed over, and nothing
    changes.
    """
    fast = floor_noise("gaussian", Scale(2**50 + 1, 7), 20_000, Bits(b"some"))
    calls = []
    decide = noise._decide
    monkeypatch.setattr(noise, "_MARGIN", 2.0**-12)
    monkeypatch.setattr(noise, "_decide", lambda *a: calls.append(1) or decide(*a))
    assert list(floor_noise("gaussian", Scale(2**50 + 1, 7), 20_000, Bits(b"some"))) == list(fast)
    assert 5 < len(calls) < 200


def test_exp_is_far_better_than_the_margin_assumes():
    x = np.concatenate([np.linspace(0, 7.5, 20_001), np.linspace(0, 1, 20_001)])
    with mp.workdps(30):
        exact = np.array([float(mp.exp(-mp.mpf(float(t)))) for t in x])
    assert np.abs(np.exp(-x) - exact).max() < 2.0**-45


@pytest.mark.parametrize("fault", ["everywhere", "in the last of each five", "not a number"])
def test_an_exponential_that_is_not_precise_is_refused(monkeypatch, fault):
    real = np.exp

    def exp(x):
        found = real(x)
        if fault == "everywhere":
            return found * (1 + 2.0**-35)
        if len(x) == 5:
            found[-1] = found[-1] + 2.0**-35 if fault.startswith("in") else np.nan
        return found

    monkeypatch.setattr(noise, "_precise", [])
    monkeypatch.setattr(np, "exp", exp)
    with pytest.raises(ReleaseRefused, match=r"np\.exp"):
        floor_noise("gaussian", Scale(2**50, 0), 4, Bits())
    monkeypatch.setattr(np, "exp", real)
    floor_noise("gaussian", Scale(2**50, 0), 4, Bits())
    assert noise._precise


@pytest.mark.parametrize("length", [1, 2, 3, 5, 8, 13, 254, 255, 256, 257])
@pytest.mark.parametrize("at", [0, -1])
def test_an_exponential_is_tried_in_arrays_of_several_lengths_up_to_their_ends(
    monkeypatch, length, at
):
    """A library may be wrong where it takes eight numbers at a time, or in the rest."""
    real = np.exp

    def exp(x):
        found = real(x)
        if len(x) == length:
            found[at] += 2.0**-35
        return found

    monkeypatch.setattr(noise, "_precise", [])
    monkeypatch.setattr(np, "exp", exp)
    with pytest.raises(ReleaseRefused, match=r"np\.exp"):
        noise.check_exp()


@pytest.mark.parametrize("wrong", [-8.0, -4.0, 0.0])
def test_an_exponential_is_tried_from_the_least_exponent_to_zero(monkeypatch, wrong):
    real = np.exp

    def exp(x):
        alone = len(x) == 1 and x[0] == wrong
        return real(x) + 2.0**-35 * alone

    monkeypatch.setattr(noise, "_precise", [])
    monkeypatch.setattr(np, "exp", exp)
    with pytest.raises(ReleaseRefused, match=r"np\.exp"):
        noise.check_exp()


# --- randomness


def test_seeding_has_no_effect():
    def once():
        np.random.seed(1)  # noqa: NPY002
        random.seed(1)
        return tuple(floor_noise("gaussian", Scale(2**50, 0), 20, Bits()))

    assert once() != once()


def test_seed_repeats_and_seeds_differ():
    one, same, other = (tuple(draw("laplace", 1e6, 20, s)) for s in ("a", "a", "b"))
    assert one == same != other


def test_threads_draw_different_noise():
    drawn = []
    lock = threading.Lock()

    def work():
        for _ in range(20):
            one = tuple(floor_noise("gaussian", Scale(2**50, 0), 4, Bits()))
            with lock:
                drawn.append(one)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(drawn)) == len(drawn) == 160
    assert len(set(itertools.chain(*drawn))) == 640


def test_forked_children_draw_different_noise():
    """In a process of its own: forking this one, with its threads, would be a warning."""
    program = """if True:
        import os
        from reticent.privacy.noise import Bits, Scale, floor_noise
        scale = Scale(2**50, 0)
        floor_noise("gaussian", scale, 4, Bits())  # state, were there any, exists before the fork
        children = []
        for _ in range(4):
            child = os.fork()
            if child == 0:
                os.write(1, repr(list(floor_noise("gaussian", scale, 3, Bits()))).encode() + b"\\n")
                os._exit(0)
            children.append(child)
        os.write(1, repr(list(floor_noise("gaussian", scale, 3, Bits()))).encode() + b"\\n")
        for child in children:
            os.waitpid(child, 0)
    """
    out = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60
    ).stdout
    lines = out.splitlines()
    assert len(lines) == len(set(lines)) == 5


@pytest.mark.parametrize("attempt", [copy.copy, copy.deepcopy, pickle.dumps])
def test_bits_are_never_copied(attempt):
    with pytest.raises(TypeError, match="never copied"):
        attempt(Bits())


def test_no_key_is_kept(monkeypatch):
    key = bytes(range(32))
    monkeypatch.setattr("reticent.privacy.random_bits.os.urandom", lambda n: key[:n])
    bits = Bits()
    kept = repr(bits) + repr(vars(bits))
    assert repr(key)[2:-1] not in kept
    assert key.hex() not in kept
    assert not any(isinstance(v, bytes) for v in vars(bits).values())


def test_the_two_streams_of_one_key_do_not_meet():
    bits = Bits(b"streams")
    words = {int(w) for w in bits.words(10_000)}
    assert not words & {bits.more() for _ in range(1000)}
    assert len(words) == 10_000


@pytest.mark.parametrize("law", FAMILIES)
def test_first_bits_tell_the_level_or_nothing(law):
    thresholds = noise._thresholds(law)
    top, levels = noise._levels(law)
    assert levels.tolist() == list(range(len(thresholds)))
    cells = np.arange(len(top), dtype=np.uint64) << np.uint64(20)
    for u in (cells, cells + np.uint64(2**20 - 1)):
        k = np.searchsorted(thresholds, u)
        assert ((top == k) & (thresholds[k] != u) | (top < 0)).all()
    assert {int(t) >> 20 for t in thresholds} == set(np.flatnonzero(top < 0).tolist())


@pytest.mark.parametrize("size", [1, 2**61, 2**62 - 1, 2**62, 2**63 - 1, 2**63, 2**80])
@pytest.mark.parametrize("large", [0, 1])
@pytest.mark.parametrize("sign", [-1, 1])
def test_sums_and_noise_are_added_in_unbounded_integers_or_as_if(size, large, sign):
    parts = [np.array([sign, 5], dtype=object), np.array([sign, 5], dtype=object)]
    parts[large][0] = sign * size
    exact, drawn = parts
    expected = [int(a) + int(b) for a, b in zip(exact, drawn, strict=True)]
    if max(drawn) < 2**63 and min(drawn) >= -(2**63):
        drawn = drawn.astype(np.int64)
    found = add_exactly(exact, drawn)
    assert [int(one) for one in found] == expected
    assert (found.astype(np.float64) == np.array(expected, dtype=object).astype(float)).all()


def test_no_words_are_no_words():
    assert Bits(b"none").words(0).shape == (0,)


# --- scales


@given(st.fractions(min_value=Fraction(1, 10**40), max_value=10**60), st.integers(-200, 200))
def test_scale_is_the_least_that_is_enough(square, power):
    square *= Fraction(2) ** power
    scale = scale_at_least(square)
    assert scale.exact**2 >= square
    assert (Fraction(scale.w - 1) / Fraction(2) ** scale.e) ** 2 < square
    assert 2**40 <= scale.w <= 2**58


@given(st.integers(2**18, 2**40), st.integers(-200, 200))
def test_scale_of_an_exact_square_is_its_root(w, e):
    root = Fraction(w) / Fraction(2) ** e
    assert scale_at_least(root**2).exact == root


@pytest.mark.parametrize(
    "root", [2**39, 2**40 - 1, 2**40, 2**40 + 1, 2**57, 2**58 - 1, 2**58, 2**58 + 1, 2**59]
)
def test_scales_at_the_borders(root):
    scale = scale_at_least(Fraction(root) ** 2)
    assert root <= scale.exact <= root * (1 + Fraction(1, 2**39))


@pytest.mark.parametrize(
    "power", [-30.5, -3, 0, 0.5, 1, 20, 38.5, 39, 39.5, 40, 40.5, 41, 41.5, 45, 55.5, 56, 56.5]
)
@pytest.mark.parametrize(
    "by", [Fraction(2**10, 2**10 - 1), Fraction(1), Fraction(2**10 - 1, 2**10)]
)
def test_scales_have_as_few_bits_as_will_do(power, by):
    """From 2⁴⁰ on the scale is w itself; below, w lies between 2⁴⁰ and 2⁴¹."""
    square = Fraction(2) ** int(2 * power) * by
    scale = scale_at_least(square)
    assert (scale.e == 0) if square >= 4**40 else (scale.e > 0 and 2**40 <= scale.w <= 2**41)
    assert (Fraction(scale.w - 1) / Fraction(2) ** scale.e) ** 2 < square <= scale.exact**2


@pytest.mark.parametrize("root", [2**40 + 1, 2**45 + 7, 2**56 - 1])
def test_scales_beside_a_square_are_rounded_up(root):
    assert [scale_at_least(Fraction(root**2 + more)).w for more in (-1, 0, 1)] == [
        root,
        root,
        root + 1,
    ]


@pytest.mark.parametrize("square", [Fraction(0), Fraction(-1)])
def test_no_noise_is_refused(square):
    with pytest.raises(BadInput, match="above zero"):
        scale_at_least(square)


@pytest.mark.parametrize(("w", "e"), [(2**40 - 1, 0), (2**58 + 1, 0)])
def test_scale_limits(w, e):
    with pytest.raises(BadInput):
        Scale(w, e)


@pytest.mark.parametrize("law", FAMILIES)
@pytest.mark.parametrize("e", [-1, -3, -64, -100])
def test_very_large_scales_have_uniform_low_bits_and_the_right_law(law, e):
    """The bits behind j are part of f.

    Low bits uniform and independent of the sign, high bits as without them.
    """
    drawn = floor_noise(law, Scale(2**58 - 3, e), 40_000, Bits(b"large"))
    low = np.array([int(x) & 7 for x in drawn])
    negative = np.array([x < 0 for x in drawn])
    assert p_value(np.bincount(low, minlength=8), np.full(8, 1 / 8)) > LEAST_P
    assert stats.chi2_contingency(stats.contingency.crosstab(low, negative).count).pvalue > LEAST_P
    whole, parts = Scale(2**58 - 3, e).exact.as_integer_ratio()
    scaled = np.array(
        [(2 * int(x) + 1) * parts / (2 * whole) for x in drawn]
    )  # x + ½; rounded once
    assert stats.kstest(scaled, lambda x: cdf(law, x)).pvalue > LEAST_P


def test_very_small_scales_leave_only_the_sign():
    """σ far below one step: ⌊σN⌋ is 0 or −1 with equal chances."""
    for e in (62, 63, 64, 100):
        drawn = floor_noise("gaussian", Scale(2**40, e), 4000, Bits(b"small"))
        assert set(drawn) == {0, -1}
        assert abs(sum(drawn) + 2000) < 200


def test_unknown_law_is_refused():
    with pytest.raises(BadInput, match="gaussian, laplace"):
        floor_noise("gausian", Scale(2**40, 0), 1, Bits())


@pytest.mark.parametrize("size", [0, 1, 2**16 + 1])
def test_sizes(size):
    drawn = floor_noise("gaussian", Scale(2**40 + 1, 40), size, Bits(b"size"))
    assert drawn.shape == (size,)
    assert drawn.dtype == np.int64
    large = floor_noise("gaussian", Scale(2**58, -9), size, Bits(b"size"))
    assert large.shape == (size,)
    assert all(type(x) is int for x in large[:10])
