"""The attack on a search as a whole: a candidate whose score is made to give away as much as any we know.

The attacker knows all records but one, A or B. Every run releases the sum of the training half, and the score is a function of
that noisy sum alone: far away on either side of a point is good, so the best run is an extreme one. Its likelihood ratio has a
part for the sum and a part for its rank, φ′(F_A)/φ′(F_B); both are known to the attacker. By quadrature this shows ε = 0.85 of a
claim of (1, 0.05) with three expected runs, so that the accounting has little to give away.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from reticent.models.mean import MeanSum
from reticent.privacy.bounds import Bounds
from reticent.privacy.curator import Candidate, Curator
from reticent.privacy.events import Gaussian, Selection
from reticent.privacy.selection import calibrate_selection, log_weight, stop_for
from reticent.privacy.sources import scan

__all__ = ["beaten", "log_ratio", "paid_event", "search_place", "search_scores"]

Values = NDArray[np.float64]

_BOUNDS = Bounds(x=[(-1.0, 1.0)])
_RUNS = 3  # expected
_RECORDS = 64  # one of them in the validation half, so that the one in question is hardly ever there
_POINT = 0.8  # in standard deviations of the noise from B's sum


def paid_event(epsilon: float, delta: float) -> Selection:
    """What a search that claims (ε, δ) pays for."""
    stop = stop_for(_RUNS)
    return Selection(noise_multiplier=calibrate_selection(epsilon, delta, stop=stop), stop=stop)


def search_scores(
    epsilon: float, delta: float, runs: int, advance: Callable[[int], None] = lambda steps: None
) -> tuple[Values, Values]:
    """Log-likelihood ratios of A against B from half of ``runs`` searches with each, for a search makes many releases."""
    event, found = paid_event(epsilon, delta), []
    for record in (1.0, -1.0):
        places = np.empty(runs // 2)
        for i in range(len(places)):
            places[i] = search_place(record, event)
            advance(2)
        found.append(np.round(log_ratio(places, event.noise_multiplier, lambda u: log_weight(event, u)), 9))
    return found[0], found[1]


def search_place(record: float, event: Selection) -> float:
    """The best run's noisy sum, in standard deviations from B's, when the record in question is ``record``."""
    records = np.zeros((_RECORDS, 1))
    records[0] = record
    noise = Gaussian(noise_multiplier=event.noise_multiplier)
    curator = Curator(
        scan(records),
        bounds=_BOUNDS,
        event=event,
        candidates=[Candidate(_BOUNDS, _BOUNDS, noise, noise)],
        validation=1 / _RECORDS,
    )
    choice = curator.choose(_attempt)
    curator.close()
    return _place(choice.training[0])


def _attempt(index: int, training: Any, validation: Any) -> float:
    place = _place(training.release(MeanSum(1, 1)))
    validation.release(MeanSum(1, 1))
    return abs(place - _POINT)


def _place(release: Any) -> float:
    return float((release.value[0] + 1.0) / release.scale[0])  # B's sum is −1, A's is 1


def beaten(place: Values, mean: float) -> Values:
    """The chance that one run beats a place, when places are N(mean, 1)."""
    far = np.abs(place - _POINT)
    return 1 - (ndtr(_POINT + far - mean) - ndtr(_POINT - far - mean))


def log_ratio(place: Values, multiplier: float, log_rank: Callable[[Values], Values]) -> Values:
    """log of the densities of the best run's place with A and with B: of the place itself, and of its rank."""
    shift = 1 / multiplier
    return place * shift - shift**2 / 2 + log_rank(beaten(place, shift)) - log_rank(beaten(place, 0.0))
