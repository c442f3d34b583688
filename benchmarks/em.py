"""One step of expectation–maximisation.

Ours, exact and with noise, against scikit-learn's, in one run.

    python benchmarks/em.py [--quick]

CPU seconds for each step, both on one core with one thread, by turns; the median of several rounds,
and of their ratios. Ours reads the records, scales them, computes responsibilities and moments as
exact integers and adds noise; scikit-learn's does an E- and an M-step in floating point.
"""

import os
import sys
import time
import warnings

import numpy as np
from sklearn.mixture import GaussianMixture
from threadpoolctl import threadpool_limits

import reticent
from reticent.inference.mixtures.gaussian_mixture import NormalMixture
from reticent.models.mixtures.complete_records import CompleteRecords
from reticent.models.mixtures.em_steps import em_step
from reticent.models.mixtures.record_view import RecordView
from reticent.models.unit_total import unit_total

STEPS = 8
SHARES = 2  # of the budget for one step: one for the lengths of residuals, one for their moments
ROUNDS = 9


def ours(X: np.ndarray, mixture: NormalMixture) -> float:
    """CPU seconds of one step."""
    d = X.shape[1]
    event = reticent.Gaussian(count=SHARES * (STEPS + 1), noise_multiplier=1.0)
    curator = reticent.Curator(
        reticent.scan(X), bounds=reticent.Bounds(x=[(-1, 1)] * d), event=event
    )
    view = RecordView(curator, CompleteRecords(unit_total(curator)))
    em_step(view, mixture, SHARES, covariance_type="full", least_step=0.5)
    start = time.process_time()
    for _ in range(STEPS):
        em_step(view, mixture, SHARES, covariance_type="full", least_step=0.5)
    return (time.process_time() - start) / STEPS


def theirs(X: np.ndarray, mixture: NormalMixture) -> float:
    """CPU seconds of one step: the difference between two fits with different numbers of steps."""
    times = []
    for steps in (1, 1 + STEPS):
        given = {"weights_init": mixture.weights, "means_init": mixture.means}
        precisions = np.linalg.inv(mixture.covariances)
        model = GaussianMixture(
            len(mixture.weights), max_iter=steps, tol=0.0, precisions_init=precisions, **given
        )
        start = time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(X)
        times.append(time.process_time() - start)
    return (times[1] - times[0]) / STEPS


def main() -> None:
    if "--quick" in sys.argv:
        cases = [(3000, 10, 3)]
    else:
        cases = [(26_733, 10, 3), (10_000, 100, 10)]
    if hasattr(os, "sched_getaffinity"):  # ours takes a thread for each core
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    for n, d, components in cases:
        rng = np.random.default_rng(0)
        root = np.array([np.eye(d) * 0.1] * components)
        mixture = NormalMixture(
            np.full(components, 1 / components), rng.normal(0, 0.15, (components, d)), root
        )
        X = np.clip(mixture.sample(n, rng), -1, 1)
        with threadpool_limits(1):
            a, b = np.array([(ours(X, mixture), theirs(X, mixture)) for _ in range(ROUNDS)]).T
        print(
            f"n={n:>6} d={d:>3} K={components:>2}   reticent {np.median(a):.4f} s   scikit-learn "
            f"{np.median(b):.4f} s   {np.median(b / a):.1f} times as fast ({(b / a).min():.1f} to "
            f"{(b / a).max():.1f})"
        )


if __name__ == "__main__":
    main()
