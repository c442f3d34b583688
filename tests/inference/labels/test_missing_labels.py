"""How many labels are missing, and where."""

import numpy as np
import pytest

from reticent.inference.labels.missing_labels import MissingLabels

X = np.linspace(-1, 1, 50)
PSI = np.linalg.cholesky(np.exp(-((X[:, None] - X) ** 2) / 0.5) + 1e-9 * np.eye(50)).T
RECORDS = np.full(50, 40.0)
COLUMNS = np.column_stack([np.cos(k * np.pi * (X + 1) / 2) / 3 for k in range(6)] + [np.ones(50)])


def told(missing, sd, seed=0):
    value = COLUMNS.T @ missing + sd * np.random.default_rng(seed).normal(size=7)
    posterior = MissingLabels(PSI, RECORDS)
    posterior.add(COLUMNS, value, sd, (float(value[-1]), sd))
    return posterior


def test_none_is_found_to_be_none():
    means = [told(np.zeros(50), 20.0, seed).mean.sum() for seed in range(20)]
    assert np.mean(means) < 5  # of 2000, with noise of 20


@pytest.mark.parametrize("share", [0.1, 0.6])
def test_numbers_and_their_errors(share):
    rng = np.random.default_rng(1)
    off = []
    for seed in range(60):
        slope = rng.uniform(-0.6, 0.6)
        p = np.clip(share * (1 + slope * np.sin(2 * X)), 0, 1)
        missing = rng.binomial(40, p).astype(float)
        found = told(missing, 20.0, seed)
        w = np.column_stack([np.ones(50), X])
        off.append((w.T @ (found.mean - missing)) / np.sqrt(np.diag(found.covariance(w))))
    assert np.abs(np.mean(off, axis=0)).max() < 0.5
    assert np.sqrt(np.mean(np.square(off), axis=0)) == pytest.approx([1, 1], abs=0.35)
