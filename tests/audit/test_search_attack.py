"""The attack on private selection: it succeeds against a best-of-many that is charged as one fit, and not against ours."""

import numpy as np
import pytest
from scipy.stats import kstest

from reticent.apps.audit import QUICK_RUNS, audit, chosen, conclude
from reticent.apps.audit_search import beaten, log_ratio, paid_event, search_place
from reticent.errors import BadInput
from reticent.privacy.accounting import calibrate
from reticent.privacy.selection import log_weight

EPSILON, DELTA, RUNS = 1.0, 0.05, 40_000


def best_places(shift, numbers, rng):
    """Places of the best of so many runs each, as the attack scores them; NumPy's noise is good enough for an attack."""
    best = np.full(len(numbers), 0.8)  # the worst place
    for run in range(numbers.max()):
        place = shift + rng.normal(size=len(numbers))
        better = (np.abs(place - 0.8) > np.abs(best - 0.8)) & (run < numbers)
        best = np.where(better, place, best)
    return best


def attacked(multiplier, draw, log_rank):
    rng = np.random.default_rng(1)
    places = [best_places(shift, draw(rng), rng) for shift in (1 / multiplier, 0.0)]
    found = [log_ratio(one, multiplier, log_rank) for one in places]
    return conclude("search", *found, epsilon=EPSILON, delta=DELTA)


def test_best_of_all_candidates_charged_as_one_fit_is_broken():
    """What GridSearchCV does when only the best model is shown and one fit is counted."""
    n = 20
    found = attacked(
        calibrate(EPSILON, DELTA),
        lambda rng: np.full(RUNS, n),
        lambda u: np.log(n) + (n - 1) * np.log1p(-u),
    )
    assert found.verdict == "BROKEN"
    assert found.bound > 1.3


def test_the_law_of_our_search_keeps_its_claim_and_the_attack_is_strong():
    event = paid_event(EPSILON, DELTA)
    found = attacked(
        event.noise_multiplier, lambda rng: rng.geometric(event.stop, size=RUNS), lambda u: log_weight(event, u)
    )
    assert found.sure <= EPSILON
    assert found.bound > 0.7


@pytest.mark.parametrize("record", [1.0, -1.0])
def test_the_program_has_that_law(record):
    """P(the best is at most as good as y) = φ(F(y)): uniform for the best of each search. One time in 64 the record is apart."""
    event = paid_event(EPSILON, DELTA)
    shift = 1 / event.noise_multiplier if record > 0 else 0.0
    places = np.array([search_place(record, event) for _ in range(300)])
    worse = 1 - beaten(places, shift)
    rank = event.stop * worse / (1 - (1 - event.stop) * worse)
    assert kstest(rank, "uniform").pvalue > 1e-4
    assert kstest(worse, "uniform").pvalue < 1e-8, "the best of several is better than one"


def test_the_audit_command_knows_searches():
    assert "search" in chosen("all", 0.05)
    assert "search" not in chosen("all", 0)
    with pytest.raises(BadInput, match="--delta above 0"):
        chosen("search", 0)
    steps = []
    (found,) = audit(["search"], epsilon=EPSILON, delta=DELTA, runs=QUICK_RUNS // 4, advance=steps.append)
    assert sum(steps) == 2 * (QUICK_RUNS // 8) * 2
    assert found.sure <= EPSILON
