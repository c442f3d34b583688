"""Scores of a search that fail: a candidate that cannot be judged must not win."""

import numpy as np
from sklearn.gaussian_process.kernels import RBF

import reticent
from tests.attacks.harness import Outcome, attack

_SEARCHES = 3


def _fails(model, X, y=None):
    if model.bins == 3:
        raise RuntimeError("fails for every record")
    return np.full(len(X), 0.9)


def _no_number(model, X, y=None):
    return np.full(len(X), np.nan if model.bins == 3 else 0.9)


def _outcome(scoring, mean: str) -> Outcome:
    """Search between a candidate whose scores all fail and one that has .9 of 1 for
    every record.
    """
    data = np.random.default_rng(0).uniform(size=(1000, 1))
    found = []
    for _ in range(_SEARCHES):
        search = reticent.PrivateSearch(
            reticent.PrivateHistogram(),
            {"bins": [3, 50]},
            bounds=reticent.Bounds(x=(0, 1)),
            epsilon=20,
            delta=1e-6,
            scoring=scoring,
            mean=mean,
            expected_runs=8,
        ).fit(data)
        if search.best_candidate_["bins"] == 3:
            found.append(search.best_score_)
    wins = [score for score in found if score > 0.5]
    figure = (
        f"the candidate that always fails wins {len(wins)} of {_SEARCHES} "
        "searches against one that scores .9"
    )
    if wins:
        figure += f", with a score of {max(wins):.2f}"
    return Outcome(bool(wins), figure)


@attack(
    "7", "A scoring function that fails makes its candidate the best (mean robust, the default)"
)
def failing() -> Outcome:
    return _outcome(_fails, "robust")


@attack("7", "A score that is not a number makes its candidate the best (mean robust, the default)")
def not_a_number() -> Outcome:
    return _outcome(_no_number, "robust")


@attack("22", "One validation record decides how a search computes the scores of all others")
def scores_of_others() -> Outcome:
    """A score must be a function of its own record, of its place and of releases.

    Predictions at several points were made together: whether a part of the kernel counted as
    constant was decided by the point that is farthest away.
    """
    random = np.random.default_rng(0)
    X = random.uniform(size=(1000, 1))
    model = reticent.BinnedGPRegressor(
        RBF(7e6),
        bins=7,
        bounds=reticent.Bounds(x=[(0, 1)], y=(-1, 1)),
        epsilon=5,
        delta=1e-6,
        learn_kernel=False,
        noise=0.1,
    ).fit(X, np.sin(3 * X[:, 0]))
    others = np.full((500, 1), 0.5)
    one, two = (model.predict(np.vstack([others, [[last]]]))[:500] for last in (0.5, 1.0))
    moved = int((one != two).sum())
    return Outcome(
        broke=moved > 0,
        figure=f"one record replaced moves {moved} of 500 other scores, "
        f"by up to {np.abs(one - two).max():.0e}",
    )
