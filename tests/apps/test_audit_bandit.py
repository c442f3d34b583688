"""Attacks on bandits: they reach most of what is allowed, never more, and find noise that is too small."""

import math

import numpy as np
import pytest

import reticent
from reticent.apps import audit_bandit
from reticent.apps.audit import audit, chosen, conclude
from reticent.apps.audit_bandit import BANDITS, bandit_scores


@pytest.mark.parametrize("name", BANDITS)
def test_all_releases_together_reach_the_claim_and_no_more(name):
    """The best test's ratios are N(±μ²/2, μ²): their means and spreads tell how far the pair moves what is released."""
    here, there = bandit_scores(name, 2.0, 0.1, 300)
    mu = 1 / reticent.calibrate(2.0, 0.1)
    found = math.sqrt(here.mean() - there.mean())
    assert found == pytest.approx(mu, abs=4 * 2 / math.sqrt(300))
    assert here.std() == pytest.approx(mu, rel=0.2)
    assert conclude(name, here, there, epsilon=2.0, delta=0.1).verdict != "BROKEN"


@pytest.mark.parametrize("name", ["bandit-running", "bandit-local"])
def test_noise_that_is_too_small_is_found(name):
    """The bandit claims (1, 0.1) and is calibrated for ε = 40."""
    here, there = bandit_scores(name, 40.0, 0.1, 400)
    assert conclude(name, here, there, epsilon=1.0, delta=0.1).verdict == "BROKEN"


def test_the_pair_is_the_worst():
    """In numbers, not in draws: the exchange moves the statistic by its sensitivity."""
    bandit = reticent.JointBandit(
        bounds=audit_bandit._BOUNDS, horizon=4, basis=4, epsilon=1.0, delta=0.1, kernel=audit_bandit.RBF(1.0, "fixed")
    )
    statistic, places = bandit._statistic(), np.linspace(-1, 1, 201)[:, None]
    place = float(places[(bandit.posterior_.head.features(places) ** 2).sum(axis=1).argmax(), 0])
    a, b = (audit_bandit._row(statistic, (place, y)) / statistic.step for y in (9.0, -9.0))
    moved = float((statistic.shares() * (a - b) ** 2).sum())
    assert 0.999 * statistic.sensitivity2 < moved <= statistic.sensitivity2


def test_the_command_knows_them():
    [found] = audit(["bandit"], epsilon=2.0, delta=0.1, runs=200, advance=lambda steps: None)
    assert (found.statistic, found.verdict != "BROKEN") == ("bandit", True)
    with pytest.raises(reticent.BadInput, match="above 0"):
        chosen("bandit", 0.0)
