"""The attack on a search.

A candidate whose score gives away as much as any we know, through ``fit``. The attacker knows all
records but one, A or B. Each run of the search releases the sum of the training half; the score of
a run is a function g of that noisy sum alone, the same for every record: far away on either side of
a point is good, so the best run is an extreme one. With y the noisy sum in standard deviations, s
the noisy score, τ its noise, and w the weight that the best of all runs has over a single one
(`selection.log_weight`), what leaves has the density

    p(y, s) = Σ_j π_j · N(y; μ_j, 1) · N(s; g(y), τ²) · w(1 − F_j(s)),
    F_j(s) = P_j(score of one run ≤ s)

over j: the record is in the training half (μ_A or μ_B), or in the other one, where it moves
nothing.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import ndtr, ndtri

from reticent.auditing.attacker import Run
from reticent.memo import memo
from reticent.models.descriptive.mean import PrivateMean
from reticent.models.selection.private_search import PrivateSearch
from reticent.privacy.accounting.composition import calibrate
from reticent.privacy.accounting.events import Selection
from reticent.privacy.accounting.selection import log_weight
from reticent.privacy.bounds import Bounds

__all__ = ["BestRun", "SearchAttack", "Stated", "extreme"]

Array = NDArray[np.float64]

_RUNS = 3  # expected
_RECORDS = 1000
_VALIDATION = 0.1  # of the records, so that the one that differs is hardly ever among them
_POINT = 0.6  # in standard deviations of the noise: the least good place
_FARTHEST = 10.0  # standard deviations: places beyond never happen
_Y = np.linspace(-9.0, 9.0, 361)  # for integrals over places
_SAME = 1e-9
_W = np.linspace(-7.0, 7.0, 141)  # and over the noise of scores, in standard deviations


def extreme(place: Array) -> Array:
    """g: the score of a run, in [0, 1], by its noisy sum in standard deviations."""
    return np.minimum(np.abs(place - _POINT) / _FARTHEST, 1.0)


def _score(model: Any, X: Any, y: Any) -> Array:
    """The same, as a search asks for it: of a fitted model and one record."""
    release = model.releases_[0]
    return extreme(release.value[:1] / release.scale[:1])  # the sum, without the count


def _normal_density(z: Array) -> Array:
    return np.asarray(np.exp(-z * z / 2) / np.sqrt(2 * np.pi))


class BestRun:
    """The distribution of the best run's place y and noisy score s.

    Parameters
    ----------
    mean : float
        Where places are if the record is in the training half, in stated standard deviations; else
        0.
    away : float
        Probability that it is not.
    sd : float
        τ, the stated noise of scores.
    log_rank : function
        log w of the share of runs that beat a score.
    factor : float
        All noise is so many times as large as stated.
    """

    def __init__(
        self,
        mean: float,
        away: float,
        sd: float,
        log_rank: Callable[[Array], Array],
        factor: float = 1.0,
    ) -> None:
        self._means = np.array([[mean], [0.0]])
        self._shares = np.array([[1 - away], [away]])
        self._sd = sd * factor
        self._log_rank = log_rank
        self._factor = factor
        single = self._single(_Y)
        single /= single.sum(axis=1, keepdims=True)
        self._scores = np.linspace(-9 * sd, 1 + 9 * sd, 801)
        beats = ndtr((extreme(_Y)[:, None] - self._scores) / self._sd)
        self._beaten = np.clip(single @ beats, 0.0, 1.0)  # shape (2, scores)
        self.cells = self.density(
            _Y[:, None], extreme(_Y)[:, None] + self._sd * _W
        )  # (places, noise of scores)
        whole = self.cells.sum()
        self.cells /= whole
        self.mass = float(
            whole * (_Y[1] - _Y[0]) * (_W[1] - _W[0]) * self._sd
        )  # 1, but for the grid

    def _single(self, place: Array) -> Array:
        """Densities of the place of a single run, shape (2, places)."""
        return _normal_density((place - self._means) / self._factor) / self._factor

    def density(self, place: Array, score: Array) -> Array:
        """p(y, s); of shapes that go together."""
        place, score = np.broadcast_arrays(place, score)
        total = np.zeros(place.shape)
        for mean, share, beaten in zip(
            self._means[:, 0], self._shares[:, 0], self._beaten, strict=True
        ):
            rank = self._log_rank(np.interp(score, self._scores, beaten))
            total += (
                share * _normal_density((place - mean) / self._factor) / self._factor * np.exp(rank)
            )
        return np.asarray(total * _normal_density((score - extreme(place)) / self._sd) / self._sd)

    def normal_numbers(self, place: Array, score: Array) -> tuple[Array, Array]:
        """Two numbers for each place and score, shape (points,).

        Independent and standard normal under this distribution.
        """
        along = self.cells.sum(axis=1)
        first = np.interp(place, _Y, np.cumsum(along) - along / 2)
        grid = extreme(place)[:, None] + self._sd * _W
        rows = self.density(place[:, None], grid)
        rows /= rows.sum(axis=1, keepdims=True)
        below = np.cumsum(rows, axis=1) - rows / 2
        second = np.array(
            [np.interp(s, at, p) for s, at, p in zip(score, grid, below, strict=True)]
        )
        first, second = (ndtri(np.clip(one, 1e-12, 1 - 1e-12)) for one in (first, second))
        return first, second

    def sample(self, size: int, random: np.random.Generator) -> tuple[Array, Array]:
        """Places and scores, shape (size,) each; to the width of a cell."""
        chosen = random.choice(self.cells.size, size=size, p=self.cells.ravel())
        row, column = np.divmod(chosen, len(_W))
        place = _Y[row] + random.uniform(-0.5, 0.5, size) * (_Y[1] - _Y[0])
        noise = _W[column] + random.uniform(-0.5, 0.5, size) * (_W[1] - _W[0])
        return place, extreme(place) + self._sd * noise


@dataclass(frozen=True)
class Stated:
    """What the releases of a search state.

    The event, 1 and τ in units of the noise, share of validation.
    """

    event: Selection
    unit: float  # one, in standard deviations of the noise of a sum
    sd: float
    away: float

    def distribution(self, *, with_a: bool, factor: float = 1.0) -> BestRun:
        """The distribution of what is released, with A or B."""
        if with_a:
            mean = self.unit
        else:
            mean = -self.unit
        return BestRun(mean, self.away, self.sd, lambda u: log_weight(self.event, u), factor)


@memo(64)
def _distributions(stated: Stated) -> tuple[BestRun, BestRun]:
    return stated.distribution(with_a=True), stated.distribution(with_a=False)


@memo(64)
def _shift(stated: Stated, delta: float) -> float:
    """μ of the Gaussian mechanism that has the same ε at ``delta`` as this attack."""
    a, b = (one.cells for one in _distributions(stated))

    def excess(eps: float) -> float:
        return (
            max(float(np.maximum(p - np.exp(eps) * q, 0).sum()) for p, q in ((a, b), (b, a)))
            - delta
        )

    if excess(1e-6) <= 0:
        return 0.0
    return 1 / calibrate(brentq(excess, 1e-6, 100.0), delta)


class SearchAttack:
    """Makes one search after another and attacks what each releases.

    ``loss``: the noise of a best run shrinks a little less than that of all runs (`BestRun`).
    """

    loss: ClassVar[float] = 1.05

    def __init__(self, *, epsilon: float, delta: float) -> None:
        self._delta = delta
        self._search = PrivateSearch(
            PrivateMean(),
            [{}],
            bounds=Bounds(x=[(-1.0, 1.0)]),
            scoring=_score,
            mean="clipped",
            expected_runs=_RUNS,
            validation=_VALIDATION,
            epsilon=epsilon,
            delta=delta,
        )

    def run(self, *, with_a: bool) -> Run:
        """Search once: the first record is at the upper end (A) or at the lower one (B)."""
        records = np.zeros((_RECORDS, 1))
        if with_a:
            records[0] = 1.0
        else:
            records[0] = -1.0
        choice, training, validation = self._search.fit(records).releases_
        event = choice.event
        assert isinstance(event, Selection)
        unit = 1 / float(training.scale[0])
        sd = float(validation.scale[0]) / validation.n
        stated = Stated(event, unit, sd, validation.n / _RECORDS)
        place = training.value[:1] * unit
        score = 0.5 + validation.value[:1] / validation.n
        faults = []
        if abs(score[0] - choice.value[1]) > _SAME:
            faults.append("the score that was chosen by is not the one that was released")
        under_a, under_b = _distributions(stated)
        ratio = np.log(under_a.density(place, score)) - np.log(under_b.density(place, score))
        noise = (under_a if with_a else under_b).normal_numbers(place, score)
        return Run(
            with_a,
            log_ratio=float(ratio[0]),
            noise=noise,
            shift=_shift(stated, self._delta),
            attacked=3,
            released=3,
            faults=tuple(faults),
            normal=False,
        )
