"""What a policy asks for: which part of rewards counts, and which functions are loud."""

import numpy as np
import pytest

from reticent import Bounds, JointBandit
from reticent.models.policy import Policy

LINE = Bounds(x=[(0, 1)], y=(0, 1))


def windows(reward, epsilon, rounds=2000):
    """Reach of each batch, and whether residuals of a fit were added up, of a bandit with these rewards."""
    rng = np.random.default_rng(3)
    one = JointBandit(bounds=LINE, horizon=rounds, epsilon=epsilon, delta=0.1, random_state=3)
    while one.rounds_ < rounds:
        doses = rng.uniform(size=(one.until_release_, 8, 1))
        tried = doses[np.arange(len(doses)), one.ask(doses)]
        one.tell(tried, reward(rng, np.exp(-((tried[:, 0] - 0.7) ** 2) / 0.02)))
    told = [release.statistic for release in one.releases_]
    return np.array([t["reach"][0] for t in told]), np.array([any(t["weights"][0]) for t in told])


@pytest.mark.parametrize("epsilon", [1.0, 10.0])
def test_rewards_at_either_end_of_their_range_count_whole(epsilon):
    """Rare ones are what there is to learn from: within a reach of a low fit they would hardly count."""
    reach, staged = windows(lambda rng, f: rng.random(len(f)) < 0.02 + 0.9 * f, epsilon)
    late = slice(len(reach) // 2, None)
    assert (reach[late] == 1).all()
    assert not staged[late].any()


@pytest.mark.parametrize("epsilon", [1.0, 10.0])
def test_rewards_that_scatter_little_count_near_the_fit(epsilon):
    reach, staged = windows(lambda rng, f: f + 0.05 * rng.normal(size=len(f)), epsilon)
    late = slice(2 * len(reach) // 3, None)  # until then the reward's own scatter may be taken for larger
    assert (reach[late] < 0.3).all()
    assert staged[late].all()


def test_nothing_is_counted_beyond_the_range_of_rewards():
    """About the middle of the range no reward is farther than its end: a longer reach would be noise for nothing."""
    for dimension in (1, 2, 7):
        policy = Policy(Bounds(x=[(0, 1)] * dimension, y=(0, 1)), kernel=None, mu=0.5, horizon=500, arms=9, width=0.7)
        assert policy.reach <= 1
        assert not any(policy.statistic.weights[0])


def test_with_many_functions_the_level_is_a_loud_one():
    """Of a hundred small functions one release tells little; the level of all rewards must not be one of those."""
    policy = Policy(Bounds(x=[(0, 1)] * 20, y=(0, 1)), kernel=None, mu=0.5, horizon=10_000, arms=9, width=0.7)
    energy = np.sort(np.array(policy.head.energy))
    assert energy[-1] > 1.5 * energy[-2]
    constant = policy.head.features(np.zeros((1, 20)))[0] / policy.head.features(np.full((1, 20), 0.3))[0]
    assert np.argmax(policy.head.energy) in np.flatnonzero(np.abs(constant - constant.round()) < 0.5)
