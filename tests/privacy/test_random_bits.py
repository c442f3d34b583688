"""The sampler on crafted bits.

Where a first look does not decide, it looks as far as needed, and decides rightly.
"""

import decimal
import itertools
from functools import cache
from hashlib import sha256

import mpmath as mp
import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from reticent.privacy import noise
from reticent.privacy.noise import FAMILIES, Scale


class Script:
    """Stands in for Bits: gives what it is told, and counts."""

    def __init__(self, words=(), more=()):
        self._words = [np.array(w, dtype=np.uint64) for w in words]
        self._more = list(more)
        self.rounds = 0

    def words(self, count):
        word = self._words.pop(0)
        assert len(word) <= count
        return word

    def more(self):
        self.rounds += 1 / 3
        return self._more.pop(0)


class Once(Script):
    """One word, and zeros from then on, as many as are asked for."""

    def __init__(self, word):
        super().__init__(words=[[word]])

    def words(self, count):
        return super().words(count) if self._words else np.zeros(count, dtype=np.uint64)


ONES = 2**64 - 1


def bits_of(number, start, count):
    """Bits ``start`` … ``start+count`` of a number in [0, 1)."""
    with mp.workdps(200):
        return int(mp.floor(number * mp.mpf(2) ** (start + count))) % 2**count


@cache
def level_ends(law):
    """c_k = P(≤ k) for all k, by mpmath."""
    with mp.workdps(200):
        weight = (
            (lambda i: mp.exp(-(mp.mpf(i) ** 2) / 2))
            if law == "gaussian"
            else (lambda i: mp.exp(-mp.mpf(i)))
        )
        sums = list(itertools.accumulate(weight(i) for i in range(500)))
        return [one / sums[-1] for one in sums]


def level_end(law, k):
    return level_ends(law)[k]


def chance(law, k, j, w):
    """exp(−E(k, j/w)), by mpmath."""
    with mp.workdps(200):
        f = mp.mpf(j) / w
        return mp.exp(-f * (2 * k + f) / 2) if law == "gaussian" else mp.exp(-f)


@pytest.mark.parametrize("law", FAMILIES)
def test_thresholds_are_the_exact_ones(law):
    found = noise._thresholds(law)
    assert [int(t) for t in found] == [bits_of(level_end(law, k), 0, 32) for k in range(len(found))]
    assert found[-1] == 2**32 - 1 > found[-2]
    assert len(found) * 2**58 < 2**63


@pytest.mark.parametrize("law", FAMILIES)
@pytest.mark.parametrize("k", [0, 1, 3, 5])
@pytest.mark.parametrize("rounds", [1, 2, 4])
def test_u_on_a_threshold_is_followed_as_far_as_needed(law, k, rounds):
    """u agrees with c_k for 32 + 64·(rounds−1) bits and then leaves it downward or upward."""
    end = level_end(law, k)
    w = 2**41 + 5
    j = 77
    u = int(noise._thresholds(law)[k])
    follow = [bits_of(end, 32 + 64 * r, 64) for r in range(rounds - 1)]
    last = bits_of(end, 32 + 64 * (rounds - 1), 64)
    for step, level in ((-1, k), (1, k + 1)):
        more = list(itertools.chain(*([b, 0, 0] for b in [*follow, last + step])))
        script = Script(more=more)
        assert noise._decide(law, w, u, j, 0, script) == level * w + j
        assert round(script.rounds) == rounds


@pytest.mark.parametrize("law", FAMILIES)
@pytest.mark.parametrize("k", [0, 2, 4])
@pytest.mark.parametrize("rounds", [1, 2, 4])
def test_v_on_the_edge_is_followed_as_far_as_needed(law, k, rounds):
    w = 2**40 + 3
    j = 2**39 + 1
    edge = chance(law, k, j, w)
    u = 0 if k == 0 else int(noise._thresholds(law)[k - 1]) + 1
    follow = [bits_of(edge, 32 + 64 * r, 64) for r in range(rounds - 1)]
    last = bits_of(edge, 32 + 64 * (rounds - 1), 64)
    # the cell of f, in cells of v, is 2^-8 long at most: a step of 2^30 cells passes it
    for step, expected in ((-(2**30), k * w + j), (2**30, None)):
        more = list(itertools.chain(*([0, b, 0] for b in [*follow, last + step])))
        script = Script(more=more)
        assert noise._decide(law, w, u, j, bits_of(edge, 0, 32), script) == expected
        assert round(script.rounds) == rounds


@pytest.mark.parametrize(
    ("law", "rounds"), [("gaussian", 1), ("gaussian", 8), ("laplace", 1), ("laplace", 3)]
)
@pytest.mark.parametrize("negative", [False, True])
def test_deep_tails_leave_int64(law, rounds, negative):
    """u = 1 − 2^−(32+64·rounds+1).

    The level is found by mpmath, the value may need more than 64 bits.
    """
    w = 2**58
    j = 12345
    more = list(itertools.chain(*([ONES, 0, 0] for _ in range(rounds)), [2**63, 0, 0]))
    script = Script(words=[[j | (int(negative) << 63)], [(2**32 - 1) << 32]], more=more)
    with mp.workdps(300):
        u = 1 - mp.mpf(2) ** -(33 + 64 * rounds)
        level = next(k for k in range(500) if level_end(law, k) > u)
    value = noise._attempts(law, Scale(w, 0), 1, script)
    assert list(value) == [~(level * w + j) if negative else level * w + j]
    assert (abs(value[0]) > 2**63) == (level > 31)
    if law == "laplace":
        assert level > 60


@pytest.mark.parametrize("law", FAMILIES)
def test_float_context_of_the_user_does_not_matter(law, monkeypatch):
    expected = noise._decide(
        law, 2**40, int(noise._thresholds(law)[0]), 3, 5, Script(more=[7, 0, 0])
    )
    monkeypatch.setattr(decimal.DefaultContext, "prec", 3)
    monkeypatch.setitem(decimal.DefaultContext.traps, decimal.Inexact, True)
    with decimal.localcontext(decimal.Context(prec=2, rounding=decimal.ROUND_UP)):
        assert (
            noise._decide(law, 2**40, int(noise._thresholds(law)[0]), 3, 5, Script(more=[7, 0, 0]))
            == expected
        )


@pytest.mark.parametrize("law", FAMILIES)
@pytest.mark.parametrize("k", [0, 1, 3])
def test_attempts_within_the_margin_are_handed_over_and_no_others(law, k, monkeypatch):
    """4(k + 1) cells of v on either side of the chance, and the cell of u that a threshold lies in
    (noise.md, 3).
    """
    calls = []
    scale = Scale(2**41, 0)
    j = 2**39 + 12345
    monkeypatch.setattr(noise, "_decide", lambda *told: calls.append(told))
    cells = chance(law, k, j + 0.5, scale.w) * 2**32 - 0.5
    below = int(mp.floor(cells))
    margin = 4 * (k + 1)
    end = int(noise._thresholds(law)[k])

    def attempt(u, v):
        calls.clear()
        taken = noise._attempts(law, scale, 1, Script(words=[[j], [(u << 32) + v]]))
        return len(calls), taken.tolist()

    value = [k * scale.w + j]
    assert attempt(end - 9, below - margin + 1) == attempt(end - 9, below + margin) == (1, [])
    assert attempt(end - 9, below - margin) == (0, value)
    assert attempt(end - 9, below + margin + 1) == (0, [])
    assert attempt(end, 0) == (1, [])
    assert calls == [(law, scale.w, end, j, 0, calls[0][-1])]
    assert attempt(end - 1, 0) == (0, value)
    assert attempt(end + 1, 0) == (0, [value[0] + scale.w])


def test_bits_are_aes_in_counter_mode():
    """Both streams of a seed against the cipher itself: 64 bits at a time, the second one 2¹²⁷
    blocks further on.
    """
    key = sha256(b"reticent, not private: " + b"seed").digest()
    words, more = (
        Cipher(algorithms.AES(key), modes.CTR(start)).encryptor().update(bytes(80))
        for start in (bytes(16), (2**127).to_bytes(16, "big"))
    )
    bits = noise.Bits(b"seed")
    assert bits.words(4).tobytes() + bits.words(6).tobytes() == words
    assert [bits.more() for _ in range(10)] == [
        int.from_bytes(more[i : i + 8], "little") for i in range(0, 80, 8)
    ]


@pytest.mark.parametrize("w", [2**40, 2**40 + 1, 2**41 - 1, 2**41, 2**58 - 1, 2**58])
@pytest.mark.parametrize("negative", [0, 1])
def test_every_place_below_w_can_be_drawn_and_none_beyond(w, negative):
    """k = 0, v = 0: accepted. Bits between the place and the sign are not looked at."""
    beyond = (
        [] if w in (2**40, 2**41, 2**58) else [w]
    )  # a power of two: every masked word is below it
    for j in (0, 1, w // 2, w - 1, *beyond):
        word = j | negative << 63 | 15 << 59
        found = noise._attempts("gaussian", Scale(w, 0), 1, Once(word))
        assert found.tolist() == ([] if j == w else [~j if negative else j])


@pytest.mark.parametrize("e", [0, 1, 20, 62, 63, 64, 100, -1, -5])
@pytest.mark.parametrize("negative", [0, 1])
@pytest.mark.parametrize("slow", [False, True])
def test_numbers_are_shifted_to_the_grid(e, negative, slow, monkeypatch):
    """Down by e bits, rounded down.

    Or up, with as many bits more. k = 20, the furthest on the fast path of these.
    """
    if slow:
        monkeypatch.setattr(noise, "_MARGIN", 10.0)
    w = 2**58 - 1
    k = 20
    j = 2**57 + 12345
    tail = 0b10110
    u = int(noise._thresholds("laplace")[k]) - 1
    assert int(noise._thresholds("laplace")[k - 1]) < u
    script = Script(words=[[j | negative << 63], [u << 32], [tail << 59]])
    y = k * w + j
    y = ~y if negative else y
    expected = (y << -e) + (tail >> 5 + e) if e < 0 else y >> e
    assert noise._attempts("laplace", Scale(w, e), 1, script).tolist() == [expected]


@pytest.mark.parametrize("size", [0, 1, 63, 64, 65, 130])
def test_integers_of_any_number_of_bits(size):
    words = [0x9E3779B97F4A7C15, 0xF39CC0605CEDC834, 0x1082276BF3A27251]
    left = size
    expected = 0
    for word in words[: -(-size // 64)]:
        take = min(64, left)
        expected = (expected << take) + (word >> 64 - take)
        left = left - take
    script = Script(words=[[word] for word in words])
    assert noise._integers(script, 1, size).tolist() == [expected]
    assert len(script._words) == 3 - -(-size // 64)


@pytest.mark.parametrize("law", FAMILIES)
def test_weights_go_on_until_what_is_left_is_below_the_last_digit(law):
    with decimal.localcontext(noise._digits(40)):
        weights = noise._weights(law)
    assert weights[-1] <= decimal.Decimal("1e-45") < weights[-2]
    for i, weight in enumerate(weights):
        with mp.workdps(60):
            exact = mp.exp(-mp.mpf(i * i if law == "gaussian" else 2 * i) / 2)
            assert abs(mp.mpf(str(weight)) / exact - 1) < mp.mpf("1e-39")


def test_thresholds_are_shared_and_cannot_be_changed():
    with pytest.raises(ValueError, match="read-only"):
        noise._thresholds("gaussian")[0] = 1


def test_contexts_do_not_depend_on_anybodys_settings():
    one = noise._digits(33)
    assert (one.prec, one.rounding) == (33, decimal.ROUND_HALF_EVEN)
    assert (one.Emin, one.Emax, one.capitals, one.clamp) == (-999999, 999999, 1, 0)
    traps = {decimal.InvalidOperation, decimal.DivisionByZero, decimal.Overflow}
    assert {trap for trap, on in one.traps.items() if on} == traps


@pytest.mark.parametrize("law", FAMILIES)
@pytest.mark.parametrize("k", [0, 2])
def test_a_level_is_certain_only_beyond_the_error_of_its_ends(law, k):
    with decimal.localcontext(noise._digits(50)):
        weights = noise._weights(law)
        whole = sum(weights)
        error = decimal.Decimal("1e-20")
        end = sum(weights[: k + 1]) / whole
        cell = decimal.Decimal("1e-12")
        for by in map(decimal.Decimal, ("2", "0.5", "-0.5", "-2")):
            at = end + error * by
            assert noise._level(law, at, at + cell, error) == (
                k + 1 if by == 2 else None
            )  # begins there
            assert noise._level(law, at - cell, at, error) == (
                k if by == -2 else None
            )  # ends there
        assert noise._level(law, decimal.Decimal(1) - cell, decimal.Decimal(1), error) is None


@pytest.mark.parametrize("law", FAMILIES)
@pytest.mark.parametrize("k", [0, 2])
def test_where_the_cells_of_v_and_f_meet_both_are_followed(law, k):
    """The chance passes the end of v's cell within f's cell.

    Whether v is below it lies in the next bits of f.
    """
    w = 2**40
    v = 2**31 + 12345
    with mp.workdps(60):
        e = -mp.log(mp.mpf(v + 1) / 2**32)
        f = mp.sqrt(mp.mpf(k) ** 2 + 2 * e) - k if law == "gaussian" else e
        j = int(mp.floor(f * w))
    u = 0 if k == 0 else int(noise._thresholds(law)[k - 1]) + 1
    for bits, expected in ((0, k * w + j), (ONES, None)):
        script = Script(more=[0, ONES, bits])
        assert noise._decide(law, w, u, j, v, script) == expected
        assert round(script.rounds) == 1


@pytest.mark.parametrize(("by", "decided"), [("2e-30", True), ("5e-31", False), ("-5e-31", False)])
def test_chances_are_certain_only_beyond_their_error(by, decided, monkeypatch):
    """10⁻³⁰ while 32 bits are known; closer to the edge, more bits are drawn."""
    v = 2**31 + 12345
    honest = noise._exponent
    for cell, sign, expected in ((v + 1, 1, 77), (v, -1, None)):
        with decimal.localcontext(noise._digits(60)):
            exponent = -(decimal.Decimal(cell) / 2**32 + sign * decimal.Decimal(by)).ln()
        monkeypatch.setattr(
            noise, "_exponent", lambda law, k, f, e=exponent: e if f < 1 else honest(law, k, f)
        )
        if decided:
            assert noise._decide("gaussian", 2**40, 0, 77, v, Script()) == expected
        else:
            with pytest.raises(IndexError):  # it asks for more bits
                noise._decide("gaussian", 2**40, 0, 77, v, Script())


def test_digits_and_error_grow_with_the_bits_that_are_known(monkeypatch):
    """⌊n/3⌋ + 30 digits, and an error of ten of them.

    Above all roundings, below 2⁻ⁿ (noise.md, 3).
    """
    seen = []

    def level(law, low, high, error):
        seen.append((decimal.getcontext().prec, error, high - low))
        return 0 if len(seen) == 3 else None

    monkeypatch.setattr(noise, "_level", level)
    assert noise._decide("gaussian", 2**40, 5, 77, 0, Script(more=range(9))) == 77
    assert [(digits, error) for digits, error, _ in seen] == [
        (n // 3 + 30, decimal.Decimal(10) ** -(n // 3 + 20)) for n in (32, 96, 160)
    ]
    for (_, error, cell), n in zip(seen, (32, 96, 160), strict=True):
        assert error < cell
        assert float(cell) == 2.0**-n
