"""BoostedAdaSSP: least squares where noise is nothing, and as much noise as one record asks for."""

import numpy as np
import pytest

from reticent import Bounds
from reticent.privacy.accounting.composition import calibrate
from reticent.studies.peers.baselines import boosted_adassp
from reticent.studies.peers.comparison import Cell

BOUNDS = Bounds(x=[(0, 10), (-1, 1)], y=(0, 100))


def cell(n=3000, seed=0):
    rng = np.random.default_rng(seed)
    low, high = np.array(BOUNDS.x).T
    X = rng.uniform(low, high, size=(n + 500, 2))
    y = 20 + 4 * X[:, 0] - 15 * X[:, 1] + 3 * rng.normal(size=len(X))
    return Cell(X[:n], y[:n], X[n:], BOUNDS, 1e-6, seed)


def test_with_hardly_any_noise_it_is_least_squares():
    given = cell()
    design = np.column_stack([np.ones(len(given.X)), given.X])
    weights = np.linalg.lstsq(design, given.y, rcond=None)[0]
    expected = np.column_stack([np.ones(500), given.X_new]) @ weights
    assert boosted_adassp.predict(given, 1e7, True) == pytest.approx(expected, abs=0.5)


def test_one_record_added_or_removed_is_the_easier_task():
    given = [cell(seed=seed) for seed in range(8)]
    truth = [20 + 4 * c.X_new[:, 0] - 15 * c.X_new[:, 1] for c in given]
    errors = {
        replaced: np.mean(
            [
                np.square(boosted_adassp.predict(c, 1.0, replaced) - f).mean()
                for c, f in zip(given, truth, strict=True)
            ]
        )
        for replaced in (True, False)
    }
    assert errors[False] < errors[True]


@pytest.mark.parametrize("replaced", [True, False])
def test_it_spends_its_budget_and_no_more(replaced):
    """What one record moves, measured at the farthest records, over the noise of each release."""
    sd = boosted_adassp.noise(0.7, 1e-5, replaced)
    corners = np.array([[10.0, 1.0], [0.0, -1.0], [10.0, -1.0], [5.0, 0.0], [0.0, 1.0]])
    rows = boosted_adassp.rows(BOUNDS, corners)
    assert np.linalg.norm(rows, axis=1).max() <= 1 + 1e-12
    products = rows[:, :, None] * rows[:, None]
    others = [*products, np.zeros((3, 3))] if not replaced else [*products]
    moved = max(np.linalg.norm(a - b) for a in products for b in others)
    sensitivity = {True: (np.sqrt(2), 1.0, 2.0), False: (1.0, 1.0, 1.0)}[replaced]
    assert replaced or moved <= 2**0.5
    assert moved <= np.sqrt(2)
    mu2 = (
        (sensitivity[0] / sd.gram) ** 2
        + (sensitivity[1] / sd.eigenvalue) ** 2
        + 100 * (sensitivity[2] / sd.gradient) ** 2
    )
    assert mu2 == pytest.approx(1 / float(calibrate(0.7, 1e-5)) ** 2)


def test_a_ridge_is_there_where_the_least_eigenvalue_drowns():
    sd = boosted_adassp.Noise(5.0, 5.0, 5.0)
    rng = np.random.default_rng(0)
    drowned = [np.linalg.eigvalsh(boosted_adassp.ridged(np.eye(3), sd, rng))[0] for _ in range(50)]
    clear = [
        np.linalg.eigvalsh(boosted_adassp.ridged(1000 * np.eye(3), sd, rng)).mean()
        for _ in range(50)
    ]
    assert np.mean(np.array(drowned) > 0) > 0.8
    assert np.mean(clear) == pytest.approx(1000, rel=0.01), "and none where it does not"
