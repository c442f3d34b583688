"""Gram matrices of what a bandit chose.

A good guess is used, a bad one is found out, and errors have the size that is told.
"""

import numpy as np
import pytest
from scipy.stats import norm

from reticent.inference.online.batch_gram import MISMATCH_GRID, SimulatedGramPrior

M = 12
SD = 3.0
SCALES = np.geomspace(1, 0.05, M)


def rows(rng, n, scales=SCALES, turned=None):
    phi = rng.normal(size=(n, M)) * scales
    phi = phi if turned is None else phi @ turned
    return phi / np.maximum(np.linalg.norm(phi, axis=1, keepdims=True), 1)


def noise(rng):
    E = rng.normal(size=(M, M)) * SD
    return (E + E.T) / np.sqrt(2)


def belief(rng, n, true, guess, misfit=None):
    even = np.eye(M) / M
    B = true.T @ true
    return B, SimulatedGramPrior(
        guess,
        even,
        n,
        B + noise(rng),
        SD,
        np.zeros(len(MISMATCH_GRID)) if misfit is None else misfit,
    )


def test_errors_have_the_size_that_is_told():
    squares = []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        misfit = np.zeros(len(MISMATCH_GRID))
        for _ in range(4):  # batches that tell how good the guess is
            B, one = belief(rng, 400, rows(rng, 400), rows(rng, 512), misfit)
            misfit = one.misfit
        error = one.axes.T @ (B - one.estimate) @ one.axes
        squares.append(np.mean(np.triu(error**2 / one.entry_variance)) * 2 * M / (M + 1))
        assert one.mismatch <= 0.03
    assert 0.4 < np.mean(squares) < 1.6


def test_of_few_records_no_direction_is_seen_in_which_there_are_none():
    """Three records, the first two features alone, and noise that is small beside them.

    All other directions hold noise, and the simulated records: neither is believed.
    """
    rng = np.random.default_rng(3)
    true = np.zeros((3, M))
    true[:, :2] = rng.normal(size=(3, 2)) * 0.5
    sd = 1e-3
    noisy = true.T @ true + noise(rng) * sd / SD
    guess = rows(rng, 512)
    one = SimulatedGramPrior(guess, np.eye(M) / M, 3, noisy, sd, np.zeros(len(MISMATCH_GRID)))
    values = np.linalg.eigvalsh(one.estimate)
    assert values[:-2] == pytest.approx(np.zeros(M - 2), abs=1e-9)
    assert values[-2:] == pytest.approx(np.linalg.eigvalsh(true.T @ true)[-2:], rel=0.05)
    assert 0 <= one.hidden < 2 * sd


def test_a_wrong_guess_is_found_out():
    rng = np.random.default_rng(1)
    turned = np.linalg.qr(rng.normal(size=(M, M)))[0]
    B, one = belief(rng, 1000, rows(rng, 1000, turned=turned), rows(rng, 512))
    assert one.mismatch >= 0.3
    guess = rows(rng, 5000).T @ rows(rng, 5000) / 5
    assert np.linalg.norm(one.estimate - B) < 0.3 * np.linalg.norm(guess - B)


def test_as_long_as_nothing_is_known_little_is_believed():
    rng = np.random.default_rng(2)
    _, one = belief(rng, 5, rows(rng, 5), rows(rng, 512))
    assert one.mismatch == pytest.approx(MISMATCH_GRID[-1])


def turned_belief(rng, turn):
    guess = rows(rng, 300)
    true = rows(rng, 300)
    B = true.T @ true + noise(rng)
    even = np.diag(SCALES) / SCALES.sum()
    return SimulatedGramPrior(
        guess @ turn, turn.T @ even @ turn, 300, turn.T @ B @ turn, SD, np.zeros(len(MISMATCH_GRID))
    )


def test_axes_of_the_features_do_not_matter():
    turn = np.linalg.qr(np.random.default_rng(9).normal(size=(M, M)))[0]
    plain, turned = (turned_belief(np.random.default_rng(3), by) for by in (np.eye(M), turn))
    assert turn @ turned.estimate @ turn.T == pytest.approx(plain.estimate, abs=1e-6)
    assert turned.misfit == pytest.approx(plain.misfit, abs=1e-4)
    assert turned.mismatch == plain.mismatch


@pytest.mark.parametrize(("sd", "kept"), [(1e-6, 1.0), (1e6, 0.0)])
def test_without_noise_the_release_is_believed_and_with_nothing_else_the_guess(sd, kept):
    rng = np.random.default_rng(4)
    guess = rows(rng, 400)
    true = rows(rng, 400)
    B = true.T @ true
    even = np.eye(M) / M
    one = SimulatedGramPrior(guess, even, 400, B, sd, np.zeros(len(MISMATCH_GRID)))
    share = 0.02 + np.sqrt(one.mismatch) / 2
    thought = 400 * ((1 - share) * guess.T @ guess / 400 + share * even)
    assert one.estimate == pytest.approx(kept * B + (1 - kept) * thought, abs=1e-3)
    assert one.entry_variance.max() < 1e-9 if kept else one.entry_variance.max() > 1
    assert one.axes.T @ one.axes == pytest.approx(np.eye(M))


def test_misfit_is_twice_the_logarithm_of_the_likelihood_and_adds_up():
    """Entries of the upper triangle, each normal about the guess.

    All differences between κ, but for the constant.
    """
    rng = np.random.default_rng(5)
    n = 200
    guess = rows(rng, 150)
    B = rows(rng, n).T @ rows(rng, n)
    even = np.eye(M) / M
    before = np.linspace(0, 3, len(MISMATCH_GRID))
    one = SimulatedGramPrior(guess, even, n, B, SD, before)
    found = []
    for wrong in MISMATCH_GRID:
        share = 0.02 + np.sqrt(wrong) / 2
        values, axes = np.linalg.eigh((1 - share) * guess.T @ guess / 150 + share * even)
        twice = np.where(np.eye(M, dtype=bool), 2.0, 1.0)
        chance = np.outer(values, values) * (n * (1 + n / 150) + wrong * n**2)
        law = norm(np.diag(n * values), np.sqrt(twice * (chance + SD**2)))
        found.append(-2 * law.logpdf(axes.T @ B @ axes)[np.triu_indices(M)].sum())
    assert one.misfit - before == pytest.approx(np.array(found) - min(found), abs=1e-6)
    likely = np.flatnonzero(one.misfit <= one.misfit.min() + 2)
    assert one.mismatch == MISMATCH_GRID[likely[-1]], "of all that are likely, the largest"


def test_what_is_left_unknown_is_less_than_the_noise_and_than_chance():
    _, one = belief(
        np.random.default_rng(6),
        300,
        rows(np.random.default_rng(7), 300),
        rows(np.random.default_rng(8), 300),
    )
    assert (one.entry_variance > 0).all()
    assert (one.entry_variance <= SD**2 * (1 + np.eye(M))).all()
    assert one.entry_variance == pytest.approx(one.entry_variance.T)
