"""The exponential mechanism of the paper's supplement.

Sensitivities against a search, probabilities against its promise.
"""

import numpy as np
import pytest

from reticent.studies.smith2018.exponential_mechanism import (
    candidate_covariances,
    chosen,
    likelihoods,
    run,
    sensitivities,
)

N = 9
BINS = 4
COVARIANCES = candidate_covariances(BINS, np.array([0.5, 20.0, 60.0]))


def neighbours():
    """Histograms of nine people in four bins, and all that one replaced person can make of them."""
    rng = np.random.default_rng(0)
    corners = [(N - 1) * a + b for a in np.eye(BINS) for b in np.eye(BINS)]
    starts = [*corners, *rng.multinomial(N, np.full(BINS, 1 / BINS), 20)]
    for y in starts:
        for b in np.flatnonzero(y > 0):
            for c in range(BINS):
                other = np.array(y, dtype=float)
                other[b] -= 1
                other[c] += 1
                yield np.array(y, dtype=float), other


def test_the_exact_sensitivity_is_a_bound_and_attained():
    moves = sensitivities(COVARIANCES, N)
    largest = np.max(
        [
            np.abs(likelihoods(y, COVARIANCES) - likelihoods(z, COVARIANCES))
            for y, z in neighbours()
        ],
        axis=0,
    )
    assert (largest <= moves["exact"] * (1 + 1e-9)).all()
    assert largest == pytest.approx(moves["exact"], rel=1e-9)
    assert (moves["exact"] <= moves["corrected"] * (1 + 1e-9)).all()
    assert (moves["printed"] < largest).any()  # which is why it is not used


def test_probabilities_keep_their_promise():
    worst = 0.0
    step = float(sensitivities(COVARIANCES, N)["exact"].max())
    for y, z in neighbours():
        p, q = (chosen(likelihoods(one, COVARIANCES), step, 1.0) for one in (y, z))
        worst = max(worst, float(np.abs(np.log(p / q)).max()))
    assert 0.05 < worst <= 1.0


def test_the_study(tmp_path):
    found = run(tmp_path, repeats=1, quick=True, seed=5, progress=lambda *step: None)
    assert {one["method"] for one in found.records} == {"corrected", "exact", "free"}
    assert found.claims[1].kept
