"""The sampler on crafted bits: where a first look does not decide, it looks as far as needed, and decides rightly."""

import decimal
import itertools
from functools import cache

import mpmath as mp
import numpy as np
import pytest

from reticent.privacy import noise
from reticent.privacy.noise import LAWS, Scale


class Script:
    """Stands in for Bits: gives what it is told, and counts."""

    def __init__(self, words=(), more=()):
        self._words, self._more, self.rounds = [np.array(w, dtype=np.uint64) for w in words], list(more), 0

    def words(self, count):
        word = self._words.pop(0)
        assert len(word) <= count
        return word

    def more(self):
        self.rounds += 1 / 3
        return self._more.pop(0)


ONES = 2**64 - 1


def bits_of(number, start, count):
    """Bits ``start`` … ``start+count`` of a number in [0, 1)."""
    with mp.workdps(200):
        return int(mp.floor(number * mp.mpf(2) ** (start + count))) % 2**count


@cache
def level_ends(law):
    """c_k = P(≤ k) for all k, by mpmath."""
    with mp.workdps(200):
        weight = (lambda i: mp.exp(-(mp.mpf(i) ** 2) / 2)) if law == "gaussian" else (lambda i: mp.exp(-mp.mpf(i)))
        sums = list(itertools.accumulate(weight(i) for i in range(500)))
        return [one / sums[-1] for one in sums]


def level_end(law, k):
    return level_ends(law)[k]


def chance(law, k, j, w):
    """exp(−E(k, j/w)), by mpmath."""
    with mp.workdps(200):
        f = mp.mpf(j) / w
        return mp.exp(-f * (2 * k + f) / 2) if law == "gaussian" else mp.exp(-f)


@pytest.mark.parametrize("law", LAWS)
def test_thresholds_are_the_exact_ones(law):
    found = noise._thresholds(law)
    assert [int(t) for t in found] == [bits_of(level_end(law, k), 0, 32) for k in range(len(found))]
    assert found[-1] == 2**32 - 1 > found[-2]
    assert len(found) * 2**58 < 2**63


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("k", [0, 1, 3, 5])
@pytest.mark.parametrize("rounds", [1, 2, 4])
def test_u_on_a_threshold_is_followed_as_far_as_needed(law, k, rounds):
    """u agrees with c_k for 32 + 64·(rounds−1) bits and then leaves it downward or upward."""
    end, w, j = level_end(law, k), 2**41 + 5, 77
    u = int(noise._thresholds(law)[k])
    follow = [bits_of(end, 32 + 64 * r, 64) for r in range(rounds - 1)]
    last = bits_of(end, 32 + 64 * (rounds - 1), 64)
    for step, level in ((-1, k), (1, k + 1)):
        more = list(itertools.chain(*([b, 0, 0] for b in [*follow, last + step])))
        script = Script(more=more)
        assert noise._decide(law, w, u, j, 0, script) == level * w + j
        assert round(script.rounds) == rounds


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("k", [0, 2, 4])
@pytest.mark.parametrize("rounds", [1, 2, 4])
def test_v_on_the_edge_is_followed_as_far_as_needed(law, k, rounds):
    w, j = 2**40 + 3, 2**39 + 1
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


@pytest.mark.parametrize(("law", "rounds"), [("gaussian", 1), ("gaussian", 8), ("laplace", 1), ("laplace", 3)])
@pytest.mark.parametrize("negative", [False, True])
def test_deep_tails_leave_int64(law, rounds, negative):
    """u = 1 − 2^−(32+64·rounds+1): the level is found by mpmath, the value may need more than 64 bits."""
    w, j = 2**58, 12345
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


@pytest.mark.parametrize("law", LAWS)
def test_float_context_of_the_user_does_not_matter(law, monkeypatch):
    expected = noise._decide(law, 2**40, int(noise._thresholds(law)[0]), 3, 5, Script(more=[7, 0, 0]))
    monkeypatch.setattr(decimal.DefaultContext, "prec", 3)
    monkeypatch.setitem(decimal.DefaultContext.traps, decimal.Inexact, True)
    with decimal.localcontext(decimal.Context(prec=2, rounding=decimal.ROUND_UP)):
        assert noise._decide(law, 2**40, int(noise._thresholds(law)[0]), 3, 5, Script(more=[7, 0, 0])) == expected


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("k", [0, 1, 3])
def test_attempts_within_the_margin_are_handed_over_and_no_others(law, k, monkeypatch):
    """4(k + 1) cells of v on either side of the chance, and the cell of u that a threshold lies in (noise.md, 3)."""
    calls, scale, j = [], Scale(2**41, 0), 2**39 + 12345
    monkeypatch.setattr(noise, "_decide", lambda *told: calls.append(told))
    cells = chance(law, k, j + 0.5, scale.w) * 2**32 - 0.5
    below, margin, end = int(mp.floor(cells)), 4 * (k + 1), int(noise._thresholds(law)[k])

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
