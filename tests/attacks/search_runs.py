"""The number of runs of a search is not released: nothing public in the process may count them."""

import gc
from functools import _lru_cache_wrapper

import numpy as np

import reticent
from reticent.privacy.selection import private_selection as choosing
from tests.attacks.harness import Outcome, attack

_SEARCHES = 7


def _counted() -> dict[str, int]:
    """How often each cache of the library was asked, by what it says of itself."""
    caches = [one for one in gc.get_objects() if type(one) is _lru_cache_wrapper]
    ours = [one for one in caches if str(one.__module__).startswith("reticent.")]
    counts = {f"{one.__module__}.{one.__name__}": one.cache_info() for one in ours}
    return {name: info.hits + info.misses for name, info in counts.items()}


@attack("7", "Counters of caches tell how many runs a search made")
def cache_counters() -> Outcome:
    real = choosing.number_of_runs
    runs = []
    changes = []

    def number_of_runs(*arguments):
        """The truth, to compare with."""
        runs.append(real(*arguments))
        return runs[-1]

    data = np.random.default_rng(0).uniform(0, 1, (100, 1))
    model = reticent.PrivateHistogram()
    candidates = {"bins": [3, 5]}
    choosing.number_of_runs = number_of_runs
    try:
        for _ in range(_SEARCHES):
            before = _counted()
            search = reticent.PrivateSearch(
                model,
                candidates,
                bounds=reticent.Bounds(x=(0, 1)),
                epsilon=1,
                delta=1e-6,
                expected_runs=6,
            )
            search.fit(data)
            after = _counted()
            changes.append({name: after[name] - before.get(name, 0) for name in after})
    finally:
        choosing.number_of_runs = real
    counters = []
    for name in sorted(set().union(*changes)):
        seen = np.array([one.get(name, 0) for one in changes[1:]], dtype=float)
        if np.ptp(seen) > 0 and np.ptp(runs[1:]) > 0 and np.corrcoef(seen, runs[1:])[0, 1] > 0.999:
            counters.append(name)
    figure = f"{len(counters)} counters give the number of runs exactly"
    if counters:
        figure += f" ({counters[-1].removeprefix('reticent.')} and others)"
    return Outcome(bool(counters), figure)
