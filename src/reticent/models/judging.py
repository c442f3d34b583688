"""How a search judges a fitted candidate: a bounded score of each record, and private means of the scores. Proof: search.md.

A score is a number for one record and a fitted model, higher where the model did better, between public limits. Its mean over
the validation half is released with Gaussian noise, all at once or in steps:

    clipped     one release of the mean of scores, held to their limits
    coinpress   three releases narrow the interval that scores are held to; the mean in the last one has 3/4 of the budget
                (Biswas et al. 2020)
    robust      noisy counts find a limit that 95 % of the scores stay above; the mean of scores held to it has 3/4 of the budget
"""

import math
from collections.abc import Callable
from dataclasses import InitVar, dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reticent.errors import BadInput
from reticent.privacy.bounds import Bounds
from reticent.privacy.curator import Oracle
from reticent.privacy.given import check_choice
from reticent.privacy.statistic import Counts, Sum

__all__ = ["MEANS", "SCORES", "Judgement", "ScoreCounts", "ScoreSum", "default_score", "judge"]

Array = NDArray[np.float64]
Judge = Callable[[Array], Array]  # from scaled records to their scores

MEANS = {
    "clipped": 1,
    "coinpress": 12,
    "robust": 4,
}  # releases of equal noise, among which the budget of a score is divided
_NARROWING = 3  # of the releases of CoinPress; the other nine are its last step
_BETA = 0.01  # CoinPress: the chance that a step cuts something off
_HALVINGS, _SHARE = 12, 0.95
_LEAST_CHANCE = 0.01  # of the class that was observed: a log score below counts as this
_NATS = 5.0  # log-densities are held to so much about that of even spread, per column


@dataclass(frozen=True, eq=False)
class _Scored:
    """What is public about scores: their name and range; and what gives them."""

    score: str
    low: float
    high: float
    judge: InitVar[Judge | None] = None

    def __post_init__(self, judge: Judge | None) -> None:
        object.__setattr__(self, "_judge", judge)  # not a field: a fitted model is not written into the release


@dataclass(frozen=True, eq=False)
class ScoreSum(_Scored, Sum):
    """Σ of scores, held to [low, high] and scaled to [−½, ½]."""

    @property
    def columns(self) -> int:
        """One number."""
        return 1

    @property
    def norm2(self) -> Fraction:
        """(½)²: two scores differ by at most one."""
        return Fraction(1, 4)

    def rows(self, records: Array) -> Array:
        """The scaled scores."""
        scores = self._judge(records)  # type: ignore[attr-defined]
        scaled = (np.clip(scores, self.low, self.high) - (self.low / 2 + self.high / 2)) / (self.high - self.low)
        return np.clip(np.nan_to_num(scaled, nan=-0.5), -0.5, 0.5)[:, None]


@dataclass(frozen=True, eq=False)
class ScoreCounts(_Scored, Counts):
    """How many scores lie how far below the best one: bins that double in width."""

    @property
    def groups(self) -> tuple[int, ...]:
        """One group of bins."""
        return (_HALVINGS + 1,)

    def cells(self, records: Array) -> Array:
        """Bin j holds scores that fall short of the best by more than 2⁻ʲ⁻¹ of the range; the last one the best ones.

        A score that is not a number is in bin 0, with the worst.
        """
        scores = self._judge(records)  # type: ignore[attr-defined]
        short = (self.high - scores) / (self.high - self.low)
        edges = 2.0 ** -np.arange(1, _HALVINGS + 1)
        return np.sum(short[:, None] <= edges, axis=1)[:, None].astype(np.float64)


@dataclass(frozen=True)
class Judgement:
    """A private mean score, and the standard deviation of its noise."""

    score: float
    sd: float


@dataclass(frozen=True)
class _Score:
    """A kind of score: the limits that scores are held to, and the scores."""

    limits: Callable[[Any, Bounds], tuple[float, float]]
    values: Callable[[Any, Array, Any, Bounds], Array]
    # usual difference between scores, for CoinPress; in units of the limits, or of one if negative
    spread: float = 0.05
    classes: bool | None = None  # for labels (True), for numbers (False), or for records without outputs (None)


def _widths(bounds: Bounds) -> Array:
    """Widths of the outputs' ranges; several outputs are scored in units of these."""
    low, high = np.array(bounds.y).T
    return high - low


def _errors(model: Any, X: Array, y: Array, bounds: Bounds) -> Array:
    errors = np.abs(y - np.asarray(model.predict(X)).reshape(len(X), -1))
    return errors[:, 0] if errors.shape[1] == 1 else (errors / _widths(bounds)).mean(axis=1)


def _worst(bounds: Bounds) -> float:
    widths = _widths(bounds)
    return float(widths[0]) if len(widths) == 1 else 1.0


def _likelihood(model: Any, X: Array, y: Array, bounds: Bounds) -> Array:
    mean, variance = model.predict(X), sum(model.variance_parts(X).values())
    return -(np.log(2 * math.pi * variance) + (y[:, 0] - mean) ** 2 / variance) / 2


def _likelihood_limits(model: Any, bounds: Bounds) -> tuple[float, float]:
    """Eqs (30) and (31) of Honkela et al.: a perfect prediction, and one that is off by the width of the range."""
    level = model.releases_[0].bounds.level
    noise = float(np.max(model.noise_)) if level is None else level.low
    top = -math.log(2 * math.pi) / 2 - math.log(noise)
    return top - _worst(bounds) ** 2 / (2 * noise**2), top


def _chances(model: Any, X: Array, y: Any, bounds: Bounds) -> Array:
    places = {label: place for place, label in enumerate(np.asarray(model.classes_).tolist())}
    told = np.asarray(model.predict_proba(X))
    column = np.array([places.get(label, -1) for label in y.tolist()])
    chance = np.where(column >= 0, told[np.arange(len(told)), column], 0.0)
    return np.log(np.maximum(chance, _LEAST_CHANCE))


def _density_limits(model: Any, bounds: Bounds) -> tuple[float, float]:
    if hasattr(model, "score_limits"):
        low, high = model.score_limits()
        return float(low), float(high)
    even = -len(bounds.x) * math.log(2)
    return even - _NATS * len(bounds.x), even + _NATS * len(bounds.x)


SCORES = {
    "absolute": _Score(lambda m, b: (-_worst(b), 0.0), lambda m, X, y, b: -_errors(m, X, y, b), classes=False),
    "squared": _Score(
        lambda m, b: (-(_worst(b) ** 2), 0.0), lambda m, X, y, b: -(_errors(m, X, y, b) ** 2), classes=False
    ),
    "likelihood": _Score(_likelihood_limits, _likelihood, -1.0, classes=False),
    "accuracy": _Score(lambda m, b: (0.0, 1.0), lambda m, X, y, b: (np.asarray(m.predict(X)) == y) * 1.0, classes=True),
    "log": _Score(lambda m, b: (math.log(_LEAST_CHANCE), 0.0), _chances, -1.0, classes=True),
    "density": _Score(_density_limits, lambda m, X, y, b: np.asarray(m.score_samples(X)), -1.0),
}


def default_score(targets: bool, bounds: Bounds) -> str:
    """Absolute errors of numbers, accuracy of labels, log-densities of records without outputs."""
    return ("absolute" if bounds.classes is None else "accuracy") if targets else "density"


def _own(score: Any) -> _Score:
    """A score that the user wrote: from (model, X, y) to numbers in [0, 1].

    It is asked for one record at a time, and a failure counts as the worst score of that record alone: else what it raises, or
    what it computes from several records together, would tell of them without noise.
    """

    def one(model: Any, X: Array, y: Any) -> float:
        try:
            found = np.asarray(score(model, X, y), dtype=np.float64)
            return float(found[0]) if found.shape == (1,) else math.nan
        except BaseException:  # what a signal raises is raised again by the guard around row maps
            return math.nan

    def values(model: Any, X: Array, y: Any, bounds: Bounds) -> Array:
        places = [slice(i, i + 1) for i in range(len(X))]
        return np.array([one(model, X[at], None if y is None else y[at]) for at in places], dtype=np.float64)

    return _Score(lambda m, b: (0.0, 1.0), values)


def judge(model: Any, oracle: Oracle, score: Any, mean: str) -> Judgement:
    """Release the mean score of a fitted model over the records of ``oracle``."""
    bounds, kind = oracle.bounds, SCORES[score] if isinstance(score, str) else _own(score)
    low, high = kind.limits(model, bounds)
    name = score if isinstance(score, str) else "own"

    def scores(records: Array) -> Array:
        X = bounds.natural(records[:, : len(bounds.x)])
        return kind.values(model, X, _outputs(records[:, len(bounds.x) :], bounds), bounds)

    def average(low: float, high: float, releases: int) -> Judgement:
        told = [oracle.release(ScoreSum(name, low, high, scores)) for _ in range(releases)]
        scale = (high - low) / oracle.n
        value = float(np.mean([one.value[0] for one in told]))
        return Judgement(low / 2 + high / 2 + scale * value, scale * float(told[0].sd[0]) / math.sqrt(releases))

    if mean == "robust":
        low = _reached(oracle.release(ScoreCounts(name, low, high, scores)), low, high)
    elif mean == "coinpress":
        spread = kind.spread * (high - low) if kind.spread > 0 else -kind.spread
        for _ in range(_NARROWING):
            found = average(low, high, 1)
            doubt = math.sqrt(2 * math.log(2 / _BETA)) * math.hypot(spread / math.sqrt(oracle.n), found.sd)
            reach = min(doubt + spread * math.sqrt(2 * math.log(2 * oracle.n / _BETA)), (high - low) / 2)
            low, high = found.score - reach, found.score + reach
    last = {"clipped": 1, "coinpress": MEANS["coinpress"] - _NARROWING, "robust": MEANS["robust"] - 1}[mean]
    return average(low, high, last)


def _reached(counts: Any, low: float, high: float) -> float:
    """The limit that a share of the scores stays above, by noisy counts; at worst the lowest score."""
    share = np.cumsum(counts.value[::-1]) / counts.n  # from the best bin on
    for bins, reached in enumerate(share.tolist()):
        if reached >= _SHARE:
            return high - (high - low) * 2.0 ** -(_HALVINGS - bins)
    return low


def _outputs(records: Array, bounds: Bounds) -> Any:
    """Outputs in their own units: a column each, or labels."""
    if bounds.classes is not None:
        return np.array(bounds.classes)[records[:, 0].astype(np.intp)]
    if not bounds.y:
        return None
    low, high = np.array(bounds.y).T
    return low / 2 + high / 2 + records * (high / 2 - low / 2)


def check(score: Any, mean: str, *, targets: bool, bounds: Bounds) -> None:
    """Refuse scores and means that do not exist, or do not fit the outputs."""
    check_choice("mean", mean, MEANS)
    labels = (bounds.classes is not None) if targets else None
    fitting = [name for name, kind in SCORES.items() if kind.classes is labels]
    if not callable(score) and not (isinstance(score, str) and score in fitting):
        raise BadInput(f"score must be one of {', '.join(map(repr, fitting))} here, or a function, not {score!r}.")
