"""Cells of `PrivateSearch`: how many factors a table has, in units of any size."""

import numpy as np
from numpy.typing import NDArray
from sklearn.decomposition import FactorAnalysis as ExactFactorAnalysis

from reticent.models.mixtures.factor_analysis import FactorAnalysis
from reticent.models.selection.private_search import PrivateSearch
from reticent.privacy.bounds import Bounds
from reticent.studies.own.calibration.cells import FREE, Cell, Family, Trial, grid
from reticent.studies.own.calibration.laws import FACTOR_TABLES

__all__ = ["FAMILY"]

Array = NDArray[np.float64]
_MODEL = "PrivateSearch, FactorAnalysis"
_FAILING = "a candidate that fails"
_SCALES = {"range ±6": 1.0, "range ±6,000": 1e3, "range ±.006": 1e-3, _FAILING: 1.0}
_CANDIDATES = (1, 2, 3)
_POINTS = ((5_000, 1.0), (5_000, 10.0), (5_000, FREE))
_FAILING_POINTS = ((300, 10.0), (300, FREE))  # a user's function is called record by record
_TESTS = 5_000
_RUNS = 24.0  # so many that the best candidate hardly ever has none


def _scores(model: FactorAnalysis, X: Array, y: object = None) -> Array:
    """Scores that fail for one of the candidates; a user's function."""
    if model.n_components == _CANDIDATES[0]:
        raise ValueError("This candidate cannot be scored.")
    return np.clip(0.5 + model.score_samples(X) / 40, 0.0, 1.0)


def _trial(cell: Cell, rng: np.random.Generator) -> Trial:
    """The loss is what the candidate that was chosen costs, when fitted without privacy."""
    scale = _SCALES[cell.law]
    table = FACTOR_TABLES["normal"]
    tests, records, noise = rng.spawn(3)
    unseen = scale * table.draw(_TESTS, tests)
    X = scale * table.draw(cell.n, records)
    search = PrivateSearch(
        FactorAnalysis(),
        {"n_components": list(_CANDIDATES)},
        bounds=Bounds(x=(scale * table.bounds[0], scale * table.bounds[1])),
        scoring=_scores if cell.law == _FAILING else None,
        expected_runs=_RUNS,
        epsilon=cell.epsilon,
        delta=0.1 / cell.n,
        random_state=noise,
    ).fit(X)
    costs = {
        one: -float(
            ExactFactorAnalysis(one, svd_method="lapack").fit(X / scale).score(unseen / scale)
        )
        for one in _CANDIDATES
    }
    return Trial(costs[search.best_candidate_["n_components"]], min(costs.values()))


FAMILY = Family(
    "search",
    (
        *grid("search", (_MODEL,), [law for law in _SCALES if law != _FAILING], _POINTS),
        *grid("search", (_MODEL,), (_FAILING,), _FAILING_POINTS),
    ),
    grid("search", (_MODEL,), ("range ±6",), ((500, FREE),)),
    _trial,
    "−log-density of a fresh record, chosen candidate without privacy",
    in_nats=True,
)
