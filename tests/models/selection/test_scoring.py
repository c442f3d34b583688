"""Scores of fitted models, one by one by hand.

Their limits, what counts as the worst, and how their means are taken.
"""

import math
from datetime import date, datetime
from types import SimpleNamespace

import numpy as np
import pytest

from reticent import BadInput, Bounds, Number, Whole
from reticent.models.selection import scoring as rules
from reticent.models.selection.scoring import (
    MEAN_ESTIMATORS,
    SCORES,
    check_scoring,
    default_scoring,
    release_mean_score,
)
from reticent.models.selection.settings import SEARCH
from reticent.privacy.accounting.events import Gaussian
from reticent.privacy.people.unit import PrivacyUnit
from reticent.privacy.release import Release
from reticent.privacy.row_maps.score_sum import ScoreCounts, ScoreSum

AGES = Bounds(x=[(0, 10)], y=(-1, 3))
PAIR = Bounds(x=[(0, 10)], y=[(0, 2), (0, 100)])
ILL = Bounds(x=[(0, 10)], classes=["no", "yes"])
ALONE = Bounds(x=[(0, 10), (0, 10)])


class Exact:
    """An oracle without noise that remembers what it was asked for.

    Records are given in scaled units.
    """

    unit = PrivacyUnit()
    n_sd = 0.0

    def __init__(self, scaled, bounds, noise=0.0):
        self.scaled = np.asarray(scaled, dtype=float)
        self.bounds = bounds
        self.n = len(scaled)
        self.asked = []
        self.noise = noise

    def release(self, statistic):
        self.asked.append(statistic)
        total = statistic.coordinates(statistic.block_sum(self.scaled)).astype(float) * float(
            statistic.step
        )
        sd = np.full(len(total), max(self.noise, 1e-12))
        return Release(
            statistic.describe(),
            total,
            sd,
            Gaussian(noise_multiplier=1.0),
            self.n,
            self.bounds,
            1,
            True,
            "x",
            relation="record",
        )


def model(**answers):
    """A fitted model that answers by these functions of X."""
    made = {
        "releases_": [SimpleNamespace(bounds=answers.pop("bounds", AGES))],
        "noise_": 0.5,
        **answers,
    }
    return SimpleNamespace(**made)


def given(scores, low=-1.0, high=0.0):
    """A statistic's judge that reads the scores off the first column."""
    return lambda records: np.asarray(scores, dtype=float)[: len(records)]


@pytest.mark.parametrize(
    ("score", "row"),
    [
        (0.0, 0.5),
        (-1.0, -0.5),
        (-0.5, 0.0),
        (7.0, 0.5),
        (-np.inf, -0.5),
        (np.inf, 0.5),
        (np.nan, -0.5),
        (-1e308, -0.5),
    ],
)
def test_a_score_is_held_to_its_limits_and_none_is_the_worst(score, row):
    asked = ScoreSum("given", -1.0, 0.0, given([score]))
    with np.errstate(all="ignore"):
        assert asked.rows(np.zeros((1, 1)))[0, 0] == row
    assert asked.sensitivity2 == (2**asked.bits) ** 2, "two scores differ by one at most"


@pytest.mark.parametrize("mean", MEAN_ESTIMATORS)
@pytest.mark.parametrize(
    "scoring", [lambda m, X, y: 1 / 0, lambda m, X, y: np.full(len(X), np.nan)]
)
def test_with_every_mean_scores_that_fail_are_the_worst(mean, scoring):
    """No better than a score of 0 for everybody, and far worse than .9."""

    def mean_score(score):
        with np.errstate(all="ignore"):
            return release_mean_score(model(), Exact(np.zeros((500, 2)), AGES), score, mean).score

    worst = mean_score(lambda m, X, y: np.zeros(len(X)))
    assert mean_score(scoring) <= worst + 1e-6
    assert worst < 0.1 < 0.8 < mean_score(lambda m, X, y: np.full(len(X), 0.9))


@pytest.mark.parametrize(
    ("score", "cell"),
    [
        (0.0, 12),
        (-(2.0**-12), 12),
        (-1.01 * 2.0**-12, 11),
        (-0.25, 2),
        (-0.26, 1),
        (-0.5, 1),
        (-0.51, 0),
        (-1.0, 0),
        (-9.0, 0),
        (9.0, 12),
        (np.inf, 12),
        (-np.inf, 0),
        (np.nan, 0),
    ],
)
def test_scores_are_counted_by_how_far_they_fall_short(score, cell):
    """Bin j holds what falls short by more than 2⁻ʲ⁻¹ of the range; the last one the best."""
    asked = ScoreCounts("given", -1.0, 0.0, given([score]))
    assert asked.cells(np.zeros((1, 1)))[0, 0] == cell
    assert asked.groups == (13,)


def test_what_is_public_of_a_score_holds_no_model():
    asked = ScoreSum("absolute", -1.0, 0.0, given([0.0]))
    described = asked.describe()
    assert {described[name] for name in ("score", "low", "high")} == {"absolute", -1.0, 0.0}
    assert "judge" not in str(described)


def test_errors_of_numbers():
    y = np.array([[0.0], [1.0], [3.0]])
    one = model(predict=lambda X: np.array([0.5, 1.0, -1.0]))
    assert SCORES["absolute"].values(one, np.zeros((3, 1)), y, AGES).tolist() == [-0.5, 0.0, -4.0]
    assert SCORES["squared"].values(one, np.zeros((3, 1)), y, AGES).tolist() == [-0.25, 0.0, -16.0]
    assert SCORES["absolute"].limits(one, AGES) == (-4.0, 0.0), "the width of the range"
    assert SCORES["squared"].limits(one, AGES) == (-16.0, 0.0)


def test_errors_of_several_outputs_are_in_units_of_their_ranges():
    """Else the output with the widest range alone would choose."""
    y = np.array([[0.0, 0.0], [2.0, 100.0]])
    told = np.array([[1.0, 50.0], [2.0, 0.0]])
    one = model(predict=lambda X: told)
    assert SCORES["absolute"].values(one, np.zeros((2, 1)), y, PAIR).tolist() == [-0.5, -0.5]
    assert SCORES["absolute"].limits(one, PAIR) == (-1.0, 0.0)
    assert SCORES["squared"].limits(one, PAIR) == (-1.0, 0.0)


def test_likelihoods_are_those_of_a_normal_law_and_their_limits_those_of_the_paper():
    parts = {
        "model": np.array([0.1, 0.2]),
        "privacy": np.array([0.05, 0.1]),
        "noise": np.array([0.25, 0.25]),
    }
    one = model(predict=lambda X: np.array([1.0, 2.0]), variance_parts=lambda X: parts)
    y = np.array([[1.5], [2.0]])
    variance = np.array([0.4, 0.55])
    want = -np.log(2 * math.pi * variance) / 2 - np.array([0.25, 0.0]) / (2 * variance)
    assert SCORES["likelihood"].values(one, np.zeros((2, 1)), y, AGES) == pytest.approx(want)
    low, high = SCORES["likelihood"].limits(one, AGES)
    assert high == pytest.approx(-math.log(2 * math.pi * 0.25) / 2), "a perfect prediction"
    assert low == pytest.approx(high - 4.0**2 / (2 * 0.25)), (
        "one that is off by the width of the range"
    )
    levels = Bounds(x=[(0, 10), (0.2, 1)], y=(-1, 3)).with_noise_column(1)
    assert SCORES["likelihood"].limits(model(bounds=levels), AGES)[1] == pytest.approx(
        -math.log(2 * math.pi * 0.04) / 2
    )


def test_chances_of_classes_wherever_a_model_has_them():
    """A model may know its classes in another order, or not all of them."""
    one = model(
        classes_=np.array(["yes", "no"]),
        predict_proba=lambda X: np.array([[0.9, 0.1], [0.001, 0.999], [0.5, 0.5]]),
    )
    told = SCORES["log"].values(one, np.zeros((3, 1)), np.array(["yes", "yes", "perhaps"]), ILL)
    assert told == pytest.approx(np.log([0.9, 0.01, 0.01])), (
        "none counts for less than a chance of one in a hundred"
    )
    assert SCORES["log"].limits(one, ILL) == (math.log(0.01), 0.0)
    right = model(predict=lambda X: np.array(["yes", "no", "no"]))
    assert SCORES["accuracy"].values(
        right, np.zeros((3, 1)), np.array(["yes", "yes", "no"]), ILL
    ).tolist() == [1, 0, 1]
    assert SCORES["accuracy"].limits(right, ILL) == (0.0, 1.0)


def test_densities_are_held_about_that_of_even_spread_or_to_limits_of_the_models_own():
    even = -2 * math.log(2)
    assert SCORES["density"].limits(model(), ALONE) == pytest.approx((even - 10, even + 10))
    assert SCORES["density"].limits(model(score_limits=lambda: (-8, 0)), ALONE) == (-8.0, 0.0)


@pytest.mark.parametrize(
    ("targets", "bounds", "name"),
    [(True, AGES, "absolute"), (True, ILL, "accuracy"), (False, ALONE, "density")],
)
def test_the_usual_score_is_one_that_fits(targets, bounds, name):
    assert default_scoring(targets, bounds) == name
    check_scoring(name, "robust", targets=targets, bounds=bounds)


@pytest.mark.parametrize(
    ("score", "targets", "bounds", "fitting"),
    [
        ("accuracy", True, AGES, "'absolute', 'squared', 'likelihood'"),
        ("absolute", True, ILL, "'accuracy', 'log'"),
        ("likelihood", False, ALONE, "'density'"),
        (None, False, ALONE, "'density'"),
        (["density"], False, ALONE, "'density'"),
    ],
)
def test_a_score_that_does_not_fit_the_outputs_is_refused_with_those_that_do(
    score, targets, bounds, fitting
):
    with pytest.raises(BadInput, match=fitting):
        check_scoring(score, "robust", targets=targets, bounds=bounds)
    check_scoring(lambda model, X, y: X[:, 0], "clipped", targets=targets, bounds=bounds)


@pytest.mark.parametrize("mean", MEAN_ESTIMATORS)
def test_a_mean_takes_as_many_releases_as_it_says(mean):
    """What they are: counts first for the robust one; sums alone for the others.

    Never more than was paid for.
    """
    oracle = Exact(np.linspace(-1, 1, 40)[:, None] * [1, 0.5], AGES)
    release_mean_score(model(predict=lambda X: np.zeros(len(X))), oracle, "absolute", mean)
    kinds = [type(one) for one in oracle.asked]
    assert len(kinds) == SEARCH.shares(mean)
    assert kinds == ([ScoreCounts] if mean == "robust" else [ScoreSum]) + [ScoreSum] * (
        SEARCH.shares(mean) - 1
    )


@pytest.mark.parametrize("mean", MEAN_ESTIMATORS)
def test_means_without_noise_are_those_of_the_scores(mean):
    unit = np.column_stack(
        [np.zeros(400), np.linspace(0.45, 0.5, 400)]
    )  # errors that are all alike, but for a little
    oracle = Exact(unit, AGES)
    told = release_mean_score(model(predict=lambda X: np.zeros(len(X))), oracle, "absolute", mean)
    errors = np.abs(1 + 2 * unit[:, 1])
    assert told.score == pytest.approx(-errors.mean(), abs=1e-3)
    narrowed = oracle.asked[-1].high - oracle.asked[-1].low
    assert narrowed <= {"clipped": 4.0, "coinpress": 3.0, "robust": 2.0}[mean]


@pytest.mark.parametrize("mean", MEAN_ESTIMATORS)
def test_incomplete_records_add_nothing_to_a_mean(mean):
    unit = np.column_stack([np.zeros(400), np.linspace(0.45, 0.5, 400)])
    complete = np.arange(400) % 5 > 0
    lacking = unit.copy()
    lacking[~complete, np.arange(80) % 2] = np.nan
    zero = model(predict=lambda X: np.zeros(len(X)))
    told = release_mean_score(zero, Exact(lacking, AGES), "absolute", mean)
    assert told.records == pytest.approx(320, rel=1e-6)
    assert told.score == pytest.approx(-np.abs(1 + 2 * unit[complete, 1]).mean(), abs=1e-3)


def test_models_are_asked_for_words_and_moments():
    bounds = Bounds(x={"sex": ["F", "M"], "day": (date(2020, 1, 1), date(2020, 1, 2))}, y=(0, 1))
    seen = []

    def predict(X):
        seen.extend(map(tuple, X.tolist()))
        return np.zeros(len(X))

    oracle = Exact([[-0.5, -1.0, 0.0], [0.5, 0.0, 0.0]], bounds)
    release_mean_score(model(predict=predict, bounds=bounds), oracle, "absolute", "clipped")
    assert set(seen) == {("F", datetime(2020, 1, 1)), ("M", datetime(2020, 1, 2))}


@pytest.mark.parametrize("mean", MEAN_ESTIMATORS)
def test_noise_of_a_mean_is_that_of_its_last_releases_together(mean):
    oracle = Exact(np.zeros((100, 2)), AGES, noise=2.0)
    told = release_mean_score(model(predict=lambda X: np.zeros(len(X))), oracle, "absolute", mean)
    last = oracle.asked[-1]
    repeated = {"clipped": 1, "coinpress": 9, "robust": 3}[mean]
    of_sum = (last.high - last.low) / 100 * 2.0 / math.sqrt(repeated)
    assert told.sd == pytest.approx(of_sum, rel=1e-6)  # nobody lacks a value: n is no news


@pytest.mark.parametrize("share", [0.0, 0.04, 0.06, 1.0])
def test_the_lowest_scores_are_held_to_where_the_others_begin(share):
    """Up to 5 % of them; of more, the range stays as it is."""
    bad = round(share * 400)
    unit = np.column_stack(
        [np.zeros(400), np.where(np.arange(400) < bad, 1.0, -0.5)]
    )  # outputs 3 and 0
    oracle = Exact(unit, AGES)
    told = release_mean_score(
        model(predict=lambda X: np.zeros(len(X))), oracle, "absolute", "robust"
    )
    low = oracle.asked[-1].low
    assert (low == -4.0) == (share > 0.05)
    held = np.maximum(np.where(np.arange(400) < bad, -3.0, 0.0), low)
    assert told.score == pytest.approx(held.mean(), abs=1e-6)


def test_counts_that_never_reach_the_share_leave_the_lowest_score():
    nothing = SimpleNamespace(value=np.full(13, -5.0), n=100, unit=PrivacyUnit())
    assert rules._robust_lower_limit(nothing, -4.0, 0.0) == -4.0
    best = SimpleNamespace(value=np.append(np.zeros(12), 100.0), n=100, unit=PrivacyUnit())
    assert rules._robust_lower_limit(best, -4.0, 0.0) == pytest.approx(-4.0 * 2.0**-12)


def test_a_function_of_ones_own_sees_one_record_in_its_own_units_and_a_failure_is_its_worst():
    seen = []

    def own(fitted, X, y):
        seen.append((X.tolist(), y.tolist()))
        if X[0, 0] > 9:
            raise RuntimeError(f"record {X[0, 0]} is odd")
        return (
            np.array([0.75]) if X[0, 0] > 4 else np.array([0.5, 0.5])
        )  # of the wrong length: one number is asked for

    oracle = Exact([[-1.0, 0.0], [0.0, 1.0], [1.0, -1.0]], AGES)
    told = release_mean_score(model(), oracle, own, "clipped")
    assert seen == [([[0.0]], [[1.0]]), ([[5.0]], [[3.0]]), ([[10.0]], [[-1.0]])]
    assert told.score == pytest.approx(0.75 / 3)
    assert (oracle.asked[0].score, oracle.asked[0].low, oracle.asked[0].high) == ("own", 0.0, 1.0)


def test_outputs_come_back_in_their_own_units():
    assert rules._outputs(np.array([[0.0], [1.0]]), ILL).tolist() == ["no", "yes"]
    assert rules._outputs(np.zeros((2, 0)), ALONE) is None
    assert rules._outputs(np.array([[-1.0, 0.5]]), PAIR).tolist() == [[0.0, 75.0]]


@pytest.mark.parametrize("error", [ValueError, SystemExit, KeyboardInterrupt])
def test_whatever_an_own_score_raises_is_the_worst_score_of_that_record(error):
    def score(model, X, y):
        if X[0, 0] > 0.5:
            raise error(str(X))
        return np.ones(1)

    X = np.array([[0.1], [0.9], [0.3]])
    values = rules._user_score(score).values(None, X, None, None)
    assert np.array_equal(values, [1.0, np.nan, 1.0], equal_nan=True)


def test_models_are_scored_with_words_and_dates_as_their_users_give_them():
    """Codes of words are no words: with them every candidate would have had the worst score."""
    first = date(2020, 1, 1)
    last = date(2020, 12, 31)
    kept = Number(0, 10, keep_missing=True)
    bounds = Bounds(
        x={"sex": ["F", "M"], "rooms": Whole(1, 5), "day": (first, last), "age": kept},
        y=(-1, 3),
    ).with_indicators()
    rows = [("M", 4, datetime(2020, 3, 1), 2.5), ("F", 1, datetime(2020, 12, 31), None)]
    codes = np.array(
        [
            [kind.code_value(row[min(place, 3)]) for place, kind in enumerate(bounds.x_kinds)]
            for row in rows
        ]
    )
    outputs = np.zeros((2, 1))
    seen = []

    def own(model, X, y):
        seen.append(tuple(X[0]))
        return np.ones(1)

    oracle = Exact(bounds.scale(np.hstack([codes, outputs])), bounds)
    release_mean_score(model(bounds=bounds), oracle, own, "clipped")
    for found, row in zip(seen[-2:], rows, strict=True):
        assert found[:2] == row[:2]
        assert abs(found[2] - row[2]).total_seconds() < 1e-3
        assert found[3] == row[3]
