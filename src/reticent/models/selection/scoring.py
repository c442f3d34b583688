"""Scoring of a search's candidates: a bounded score of each record, and private means of scores.

Proof: private_search.md.

A score is a number for one record and a fitted model, higher where the model did better, between
public limits. Its mean over the validation half is released with Gaussian noise, all at once or in
steps:

    clipped     one release of the mean of scores, clipped to their limits
    coinpress   three releases narrow the interval that scores are clipped to; the mean in the last
                one has 3/4 of the budget (Biswas et al. 2020)
    robust      noisy counts find a limit that 95 % of the scores stay above; the mean of scores
                clipped to it has 3/4 of the budget

Records that lack a value have no score: means are over complete records, whose number is released
along.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from reticent.errors import BadInput
from reticent.inference.inputs.complete_records import UnitTotal
from reticent.models.selection.settings import SEARCH
from reticent.models.unit_total import unit_total
from reticent.privacy.bounds import Bounds
from reticent.privacy.columns.dates import Date
from reticent.privacy.columns.kinds import is_plain_number
from reticent.privacy.columns.words import MissingIndicator
from reticent.privacy.curator import Oracle
from reticent.privacy.release import Release
from reticent.privacy.row_maps.score_sum import (
    HALVINGS,
    Judge,
    ScoreCounts,
    ScoreSum,
    in_own_places,
)
from reticent.privacy.statistics.enforced import enforce
from reticent.privacy.statistics.sum import EnforcedSum
from reticent.validation import check_choice

__all__ = [
    "MEAN_ESTIMATORS",
    "SCORES",
    "MeanScore",
    "Scoring",
    "check_scoring",
    "default_scoring",
    "release_mean_score",
]

Array = NDArray[np.float64]
Table = NDArray[Any]
Labels = NDArray[Any]
FittedModel: TypeAlias = Any  # any private estimator, by the methods that a score asks for
Scoring: TypeAlias = str | Callable[[FittedModel, Table, Any], Any]
"""The name of a score, or a function from (model, X, y) to numbers in [0, 1].

X holds floats, or objects (words, moments, numbers) where not all inputs are plain numbers.
"""

MEAN_ESTIMATORS = ("clipped", "coinpress", "robust")


@dataclass(frozen=True)
class MeanScore:
    """A private mean score, the standard deviation of its noise, and of how many records it is."""

    score: float
    sd: float
    records: float


@dataclass(frozen=True)
class _Score:
    """A kind of score.

    ``limits``: least and largest score of a model within some bounds. ``values``: scores (n,) of
    records in their own units. ``spread``: usual difference between scores, for CoinPress; in units
    of the limits' distance, or of one if negative. ``classes``: for labels (True), for numbers
    (False), or for records without outputs (None).
    """

    limits: Callable[[FittedModel, Bounds], tuple[float, float]]
    values: Callable[[FittedModel, Table, Any, Bounds], Array]
    spread: float = 0.05
    classes: bool | None = None

    def spread_within(self, low: float, high: float) -> float:
        """The usual difference between scores with these limits."""
        if self.spread > 0:
            return self.spread * (high - low)
        return -self.spread


def _output_widths(bounds: Bounds) -> Array:
    """Widths of the outputs' ranges; several outputs are scored in units of these."""
    low, high = np.array(bounds.y).T
    return np.asarray(high - low)


def _absolute_errors(model: FittedModel, X: Table, y: Array, bounds: Bounds) -> Array:
    """Of one output in its own units; of several the mean, in units of their ranges."""
    errors = np.abs(y - np.asarray(model.predict(X)).reshape(len(X), -1))
    if errors.shape[1] == 1:
        return np.asarray(errors[:, 0])
    return np.asarray((errors / _output_widths(bounds)).mean(axis=1))


def _largest_error(bounds: Bounds) -> float:
    widths = _output_widths(bounds)
    if len(widths) == 1:
        return float(widths[0])
    return 1.0


def _log_likelihood(model: FittedModel, X: Table, y: Array, bounds: Bounds) -> Array:
    mean = model.predict(X)
    variance = sum(model.variance_parts(X).values())
    return np.asarray(-(np.log(2 * math.pi * variance) + (y[:, 0] - mean) ** 2 / variance) / 2)


def _log_likelihood_limits(model: FittedModel, bounds: Bounds) -> tuple[float, float]:
    """Eqs (30) and (31) of Honkela et al.

    A perfect prediction, and one that is off by the width of the range.
    """
    noise_column = model.releases_[0].bounds.noise_column
    if noise_column is None:
        noise = float(np.max(model.noise_))
    else:
        noise = noise_column.low
    top = -math.log(2 * math.pi) / 2 - math.log(noise)
    return top - _largest_error(bounds) ** 2 / (2 * noise**2), top


def _log_probability(model: FittedModel, X: Table, y: Labels, bounds: Bounds) -> Array:
    columns = {label: j for j, label in enumerate(np.asarray(model.classes_).tolist())}
    probabilities = np.asarray(model.predict_proba(X))
    observed = np.array([columns.get(label, -1) for label in y.tolist()])
    of_observed = probabilities[np.arange(len(probabilities)), observed]
    probability = np.where(observed >= 0, of_observed, 0.0)
    return np.asarray(np.log(np.maximum(probability, SEARCH.least_probability)))


def _density_limits(model: FittedModel, bounds: Bounds) -> tuple[float, float]:
    if hasattr(model, "score_limits"):
        low, high = model.score_limits()
        return float(low), float(high)
    d = len(bounds.x)
    uniform = -d * math.log(2)
    return uniform - SEARCH.density_nats * d, uniform + SEARCH.density_nats * d


SCORES = {
    "absolute": _Score(
        lambda model, bounds: (-_largest_error(bounds), 0.0),
        lambda model, X, y, bounds: -_absolute_errors(model, X, y, bounds),
        classes=False,
    ),
    "squared": _Score(
        lambda model, bounds: (-(_largest_error(bounds) ** 2), 0.0),
        lambda model, X, y, bounds: -(_absolute_errors(model, X, y, bounds) ** 2),
        classes=False,
    ),
    "likelihood": _Score(_log_likelihood_limits, _log_likelihood, -1.0, classes=False),
    "accuracy": _Score(
        lambda model, bounds: (0.0, 1.0),
        lambda model, X, y, bounds: (np.asarray(model.predict(X)) == y) * 1.0,
        classes=True,
    ),
    "log": _Score(
        lambda model, bounds: (math.log(SEARCH.least_probability), 0.0),
        _log_probability,
        -1.0,
        classes=True,
    ),
    "density": _Score(
        _density_limits, lambda model, X, y, bounds: np.asarray(model.score_samples(X)), -1.0
    ),
}


def default_scoring(targets: bool, bounds: Bounds) -> str:
    """Absolute errors of numbers, accuracy of labels, log-densities of records without outputs."""
    if not targets:
        return "density"
    if bounds.classes is None:
        return "absolute"
    return "accuracy"


def _user_score(score: Callable[[FittedModel, Table, Any], Any]) -> _Score:
    """A score that the user wrote: from (model, X, y) to numbers in [0, 1].

    It is called for one record at a time, and a failure counts as the worst score of that record
    alone: else what it raises, or what it computes from several records together, would reveal them
    without noise.
    """

    def score_record(model: FittedModel, X: Table, y: Any) -> float:
        try:
            value = np.asarray(score(model, X, y), dtype=np.float64)
            if value.shape == (1,):
                return float(value[0])
            return math.nan
        except BaseException:  # what a signal raises is raised again by the guard around row maps
            return math.nan

    def values(model: FittedModel, X: Table, y: Any, bounds: Bounds) -> Array:
        scores = []
        for i in range(len(X)):
            output = None
            if y is not None:
                output = y[i : i + 1]
            scores.append(score_record(model, X[i : i + 1], output))
        return np.array(scores, dtype=np.float64)

    return _Score(lambda model, bounds: (0.0, 1.0), values)


def release_mean_score(
    model: FittedModel, oracle: Oracle, scoring: Scoring, mean: str
) -> MeanScore:
    """Release the mean score of a fitted model over the records of ``oracle``."""
    bounds = oracle.bounds
    if isinstance(scoring, str):
        name = scoring
        score = SCORES[scoring]
    else:
        name = "own"
        score = _user_score(scoring)

    def score_records(records: Array) -> Array:
        X = _inputs(bounds.unscale(records[:, : len(bounds.x)]), bounds)
        return score.values(model, X, _outputs(records[:, len(bounds.x) :], bounds), bounds)

    scores: Judge = score_records
    if isinstance(scoring, str):  # a user's is asked for one record at a time
        scores = in_own_places(score_records)

    def clipped_mean(low: float, high: float, shares: int) -> MeanScore:
        """Mean of scores clipped to an interval, by so many releases."""
        statistic = ScoreSum(name, low, high, scores)
        releases = [oracle.release(statistic) for _ in range(shares)]
        values = np.mean([release.value for release in releases], axis=0)
        noise = releases[0].sd / math.sqrt(shares)
        return _mean_of_complete(
            values, noise, _count_weight(statistic), unit_total(oracle), low, high
        )

    low, high = score.limits(model, bounds)
    shares = SEARCH.shares(mean)
    if mean == "robust":
        counts = oracle.release(ScoreCounts(name, low, high, scores))
        low = _robust_lower_limit(counts, low, high)
        shares -= 1
    if mean == "coinpress":
        spread = score.spread_within(low, high)
        for _ in range(SEARCH.coinpress_narrowing):
            estimate = clipped_mean(low, high, 1)
            half_width = min(_coinpress_half_width(estimate, spread), (high - low) / 2)
            low = estimate.score - half_width
            high = estimate.score + half_width
        shares -= SEARCH.coinpress_narrowing
    return clipped_mean(low, high, shares)


def _count_weight(statistic: ScoreSum) -> float:
    """What a complete record adds to the last number of the release."""
    enforced = enforce(statistic)
    assert isinstance(enforced, EnforcedSum)
    return enforced.count_weight * enforced.step


def _mean_of_complete(
    values: Array, noise: Array, weight: float, total: UnitTotal, low: float, high: float
) -> MeanScore:
    """Mean score: noisy sum of scores in [−½, ½] by the number of complete records.

    ``values``, ``noise``: sum and weighted number as released, and their standard deviations. A
    number that noise alone explains is taken for all n: then scores have the noise of sums only.
    """
    counted = float(values[1]) / weight
    counted_sd = float(noise[1]) / weight
    records, records_sd = total.combined(counted, counted_sd)
    shortfall_sd = math.hypot(counted_sd, total.n_sd)
    if not total.one_each or counted < total.n - SEARCH.clear_shortfall * shortfall_sd:
        records = min(counted, total.most)
        records_sd = counted_sd
    records = max(records, 1.0)
    mean = float(values[0]) / records
    error = math.hypot(float(noise[0]), mean * records_sd)
    middle = low / 2 + high / 2
    return MeanScore(middle + (high - low) * mean, (high - low) * error / records, records)


def _coinpress_half_width(estimate: MeanScore, spread: float) -> float:
    """Half-width of the interval about a mean that holds all scores, but with a small probability.

    ``spread``: standard deviation of the scores.
    """
    failure = SEARCH.coinpress_failure
    n = estimate.records
    uncertainty = math.sqrt(2 * math.log(2 / failure)) * math.hypot(
        spread / math.sqrt(n), estimate.sd
    )
    return uncertainty + spread * math.sqrt(2 * math.log(2 * n / failure))


def _robust_lower_limit(counts: Release, low: float, high: float) -> float:
    """The limit that most scores stay above, by noisy counts; at worst the lowest score."""
    complete = max(float(counts.value.sum()), 1.0)
    if counts.unit.number_is_public:
        complete = min(complete, float(counts.n))
    fractions = np.cumsum(counts.value[::-1]) / complete  # from the best bin on
    for bins, fraction in enumerate(fractions.tolist()):
        if fraction >= SEARCH.robust_fraction:
            return high - (high - low) * 2.0 ** -(HALVINGS - bins)
    return low


def _inputs(codes: Array, bounds: Bounds) -> Table:
    """Inputs as their columns hold them, (n, columns of X): words, moments, numbers.

    An array of floats where all are plain numbers; None where a value is missing.
    """
    if all(is_plain_number(kind) for kind in bounds.x_kinds):
        return codes
    places = bounds.given_inputs()
    table = np.empty((len(codes), len(places)), dtype=object)
    for column, place in enumerate(places):
        kind = bounds.x_kinds[place]
        if isinstance(kind, Date):
            table[:, column] = [_moment(code) for code in codes[:, place].tolist()]
        else:
            table[:, column] = kind.values(codes[:, place])
        after = place + 1
        if after < len(bounds.x_kinds) and isinstance(bounds.x_kinds[after], MissingIndicator):
            table[codes[:, after] > 0.5, column] = None
    return table


def _moment(days: float) -> datetime | None:
    """The moment so many days after 1970-01-01."""
    if math.isnan(days):
        return None
    return datetime(1970, 1, 1) + timedelta(days=days)


def _outputs(records: Array, bounds: Bounds) -> Array | Labels | None:
    """Outputs in their own units: a column each, or labels."""
    if bounds.classes is not None:
        return np.array(bounds.classes)[records[:, 0].astype(np.intp)]
    if not bounds.y:
        return None
    low, high = np.array(bounds.y).T
    return np.asarray(low / 2 + high / 2 + records * (high / 2 - low / 2))


def check_scoring(scoring: object, mean: str, *, targets: bool, bounds: Bounds) -> None:
    """Refuse scores and means that do not exist, or do not fit the outputs."""
    check_choice("mean", mean, MEAN_ESTIMATORS)
    classes: bool | None = None
    if targets:
        classes = bounds.classes is not None
    fitting = [name for name, score in SCORES.items() if score.classes is classes]
    if not callable(scoring) and not (isinstance(scoring, str) and scoring in fitting):
        raise BadInput(
            f"scoring must be one of {', '.join(map(repr, fitting))} here, or a function, "
            f"not {scoring!r}."
        )
