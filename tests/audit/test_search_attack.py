"""The attack on private selection.

It succeeds against a best-of-many that is charged as one fit, and not against ours.
"""

import numpy as np
import pytest
from scipy.stats import kstest

from reticent.auditing.attack import Effort, audit, named_attacks
from reticent.auditing.attacker import Run
from reticent.auditing.evidence import Evidence
from reticent.auditing.search_attack import BestRun, SearchAttack, extreme
from reticent.errors import BadInput
from reticent.privacy.accounting.composition import calibrate
from reticent.privacy.accounting.events import Selection
from reticent.privacy.accounting.selection import calibrate_selection, log_weight, stop_for

PROMISE = {"epsilon": 1.0, "delta": 0.05}
RUNS = 40_000
AWAY = 0.1
SD = 0.01


def best_of(mean, numbers, rng):
    """Place and score of the best of so many runs each.

    NumPy's noise is good enough for an attack.
    """
    moved = np.where(rng.random(len(numbers)) < AWAY, 0.0, mean)
    best_place = np.zeros(len(numbers))
    best_score = np.full(len(numbers), -np.inf)
    for run in range(numbers.max()):
        place = moved + rng.normal(size=len(numbers))
        score = extreme(place) + SD * rng.normal(size=len(numbers))
        better = (score > best_score) & (run < numbers)
        best_place = np.where(better, place, best_place)
        best_score = np.where(better, score, best_score)
    return best_place, best_score


def attacked(multiplier, draw, log_rank):
    rng = np.random.default_rng(1)
    mean = 1 / (2 * multiplier)  # the record moves a sum by half of its sensitivity, to either side
    laws = [BestRun(one, AWAY, SD, log_rank) for one in (mean, -mean)]
    evidence = Evidence("search", "PrivateSearch", **PROMISE)
    for with_a in (True, False):
        place, score = best_of(mean if with_a else -mean, draw(rng), rng)
        ratio = np.log(laws[0].density(place, score)) - np.log(laws[1].density(place, score))
        for one in ratio.tolist():
            evidence.add(Run(with_a, one, (rng.normal(size=1),), 1.0, 3, 3, normal=False))
    return evidence.finding()


def test_best_of_all_candidates_charged_as_one_fit_is_violated():
    """What GridSearchCV does when only the best model is shown and one fit is counted."""
    n = 20
    found = attacked(
        calibrate(**PROMISE),
        lambda rng: np.full(RUNS, n),
        lambda u: np.log(n) + (n - 1) * np.log1p(-np.minimum(u, 1 - 1e-12)),
    )
    assert found.verdict == "violated"
    assert found.shown > 1.2


def test_the_law_of_our_search_keeps_its_promise_and_the_attack_is_strong():
    stop = stop_for(3)
    event = Selection(noise_multiplier=calibrate_selection(1.0, 0.05, stop=stop), stop=stop)
    found = attacked(
        event.noise_multiplier,
        lambda rng: rng.geometric(event.stop, size=RUNS),
        lambda u: log_weight(event, u),
    )
    assert found.verdict != "violated"
    assert found.shown > 0.55


@pytest.mark.filterwarnings("ignore:delta = ")
def test_the_program_has_that_law():
    """Through fit: the numbers that stand for place and score are standard normal,
    and independent.
    """
    attack = SearchAttack(**PROMISE)
    runs = [attack.run(with_a=bool(i % 2)) for i in range(200)]
    first, second = (np.array([run.noise[i][0] for run in runs]) for i in (0, 1))
    assert all(kstest(one, "norm").pvalue > 1e-4 for one in (first, second))
    assert abs(np.corrcoef(first, second)[0, 1]) < 0.3
    assert {(run.attacked, run.released, run.faults) for run in runs} == {(3, 3, ())}
    assert 0.6 < runs[0].shift * calibrate(**PROMISE) <= 1


@pytest.mark.parametrize("factor", [0.5, 0.7])
def test_numbers_shrink_with_the_noise(factor):
    """As much as `SearchAttack.loss` says, over both tables.

    What the power of the audit is computed from.
    """
    stop = stop_for(3)
    event = Selection(noise_multiplier=calibrate_selection(1.0, 0.05, stop=stop), stop=stop)
    rng = np.random.default_rng(0)
    mean = 1 / (2 * event.noise_multiplier)
    squares = []
    for one in (mean, -mean):
        law = BestRun(one, AWAY, SD, lambda u: log_weight(event, u))
        other = BestRun(one, AWAY, SD, lambda u: log_weight(event, u), factor)
        assert law.mass == pytest.approx(1, abs=1e-3)
        place, score = other.sample(4000, rng)
        squares.append([np.mean(z**2) for z in law.normal_numbers(place, score)])
    assert (np.sqrt(np.mean(squares, axis=0)) < factor * SearchAttack.loss + 0.01).all()


def test_the_audit_command_knows_searches():
    assert "search" in named_attacks("all", 0.05)
    assert "search" not in named_attacks("all", 0)
    with pytest.raises(BadInput, match="--delta above 0"):
        named_attacks("search", 0)
    (found,) = audit(["search"], **PROMISE, effort=Effort(0.0, 1.0, 0.5, most=20))
    assert found.estimator == "PrivateSearch"
    assert found.verdict != "violated"
