"""Gram matrices of what a bandit chose: a good guess is used, a bad one is found out, and errors have the size that is told."""

import numpy as np
import pytest

from reticent.maths.played import WRONG, PlayedGram

M, SD = 12, 3.0
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
    return B, PlayedGram(guess, even, n, B + noise(rng), SD, np.zeros(len(WRONG)) if misfit is None else misfit)


def test_errors_have_the_size_that_is_told():
    squares = []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        misfit = np.zeros(len(WRONG))
        for _ in range(4):  # batches that tell how good the guess is
            B, one = belief(rng, 400, rows(rng, 400), rows(rng, 512), misfit)
            misfit = one.misfit
        error = one.axes.T @ (B - one.mean) @ one.axes
        squares.append(np.mean(np.triu(error**2 / one.variance)) * 2 * M / (M + 1))
        assert one.wrong <= 0.03
    assert 0.4 < np.mean(squares) < 1.6


def test_a_wrong_guess_is_found_out():
    rng = np.random.default_rng(1)
    turned = np.linalg.qr(rng.normal(size=(M, M)))[0]
    B, one = belief(rng, 1000, rows(rng, 1000, turned=turned), rows(rng, 512))
    assert one.wrong >= 0.3
    guess = rows(rng, 5000).T @ rows(rng, 5000) / 5
    assert np.linalg.norm(one.mean - B) < 0.3 * np.linalg.norm(guess - B)


def test_as_long_as_nothing_is_known_little_is_believed():
    rng = np.random.default_rng(2)
    _, one = belief(rng, 5, rows(rng, 5), rows(rng, 512))
    assert one.wrong == pytest.approx(WRONG[-1])
