"""Honkela et al., Sec 6.3: nine pairs of length scale and noise level, one of them true; methods that choose, tried and timed."""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from reticent.experiments.findings import Progress
from reticent.experiments.honkela_data import noisy_sinc, sinc

__all__ = ["DELTA", "LENGTHS", "REACH", "SIGMAS", "TRUE", "Choice", "Method", "N", "Trial", "Trials", "tried"]

Array = NDArray[np.float64]
Choice = tuple[float, float, Array]  # length, noise, and the mean of the fit
Method = Callable[[Array, Array, float, np.random.Generator], Choice]

N, DELTA, REACH = 2048, 1e-5, 1.3
LENGTHS, SIGMAS, TRUE = (1 / 3, 1.0, 3.0), (0.1 / 3, 0.1, 0.3), (1.0, 0.1)


class Trial(NamedTuple):
    """What a method chose, how good its fit was, and the CPU time it took."""

    length: float
    sigma: float
    rmse: float
    seconds: float

    @property
    def chosen(self) -> tuple[float, float]:
        """The pair."""
        return self.length, self.sigma


Trials = dict[tuple[str, float], list[Trial]]  # by method and ε


def tried(
    methods: Mapping[str, Method],
    cells: Iterable[tuple[str, float, int]],
    at: Array,
    stream: Sequence[int],
    progress: Progress,
) -> Trials:
    """Run each cell: a method, ε and the number of the repeat. ``stream``: the seed, and what tells studies apart."""
    trials: Trials = {}
    cells, (seed, study) = list(cells), stream
    for done, (method, epsilon, repeat) in enumerate(cells):
        progress(done, len(cells), f"{method}, ε={epsilon:g}")
        rng = np.random.default_rng([seed, repeat, study])
        x, y = noisy_sinc(N, TRUE[1], rng)
        start = time.process_time()
        length, sigma, mean = methods[method](x, y, epsilon, rng)
        seconds, rmse = time.process_time() - start, float(np.sqrt(np.mean((mean - sinc(at)) ** 2)))
        trials.setdefault((method, epsilon), []).append(Trial(length, sigma, rmse, seconds))
    return trials
