"""Missing values: which records are left out, and what the study claims of them."""

import math

import numpy as np
import pytest

from reticent.studies.own import missing_values

SAME = missing_values._Trial(0.0, 0.1, 0.95, 0.2, 0.5)


def claims(cell, found, alone):
    trials = missing_values._Cell(found, alone)
    return {
        claim.claim.split(": ")[1]: claim.kept for claim in missing_values._claims(cell, trials)
    }


def test_without_missing_values_there_is_nothing_to_compare_with():
    kept = claims(("GPRegressor", "nothing", 0.0), [SAME] * 3, [SAME] * 3)
    assert kept == {
        "no bias, within two standard errors": True,
        "95 % bands cover 0.93 to 0.97": True,
    }


@pytest.mark.parametrize(
    ("name", "at_limit", "beyond", "claim"),
    [
        ("rmse", 0.1 * math.exp(0.0499), 0.1 * math.exp(0.0501), "RMSE within"),
        ("width", 0.2 * math.exp(-0.0499), 0.2 * math.exp(-0.0501), "bands within"),
        ("coverage", 0.9301, 0.9299, "bands cover as"),
        ("coverage", 0.9301, 0.9299, "95 % bands cover"),
        ("bias", 0.00499, 0.00501, "bias within"),
        ("bias", 0.0, 1e-6, "no bias"),
    ],
)
def test_claims_are_kept_just_at_their_limits(name, at_limit, beyond, claim):
    for value, expected in ((at_limit, True), (beyond, False)):
        found = [SAME._replace(**{name: value})] * 3
        kept = claims(("GPRegressor", "outputs", 0.3), found, [SAME] * 3)
        (answer,) = [kept[one] for one in kept if one.startswith(claim)]
        assert answer is expected


@pytest.mark.parametrize(("more", "expected"), [(0.0699, True), (0.0701, False)])
def test_differences_may_be_two_standard_errors_larger(more, expected):
    error = 0.01 * math.sqrt(2)
    assert missing_values._within((more, 0.01), 0.05) is expected
    found = [SAME._replace(rmse=0.1 * math.exp(more + side)) for side in (-error, error)] * 2
    value, standard_error = missing_values._Cell(found, [SAME] * 4).log_ratio("rmse")
    assert value == pytest.approx(more)
    assert standard_error == pytest.approx(error / math.sqrt(3))


@pytest.mark.parametrize("where", ["outputs", "inputs"])
def test_the_yardstick_is_a_table_of_the_complete_records(where, monkeypatch):
    """The same noise, and the records that the other fit can use, no others."""
    fits = []

    class StandIn:
        n_complete_sd_ = 10.0

        def __init__(self, **options):
            self.noise = options["random_state"].random()

        def fit(self, x, y):
            fits.append((self.noise, x, y))
            self.n_complete_ = len(y)
            return self

        def predict(self, at, return_std):
            return np.zeros(len(at)), np.ones(len(at))

    monkeypatch.setitem(missing_values._ESTIMATORS, "GPRegressor", StandIn)
    both = [
        missing_values._trial("GPRegressor", where, 0.3, 500, np.random.default_rng([1, 2]), alone)
        for alone in (False, True)
    ]
    (noise, x, y), (other_noise, complete_x, complete_y) = fits
    assert noise == other_noise
    known = np.array([row[0] == row[0] and row[1] in ("F", "M") for row in x]) & ~np.isnan(y)
    assert 300 < known.sum() < 400
    assert (complete_x == x[known]).all()
    assert (complete_y == y[known]).all()
    assert both[0][:4] == both[1][:4]
    assert both[1].counted == 0
    assert both[0].counted == pytest.approx((500 - known.sum()) / 10)
