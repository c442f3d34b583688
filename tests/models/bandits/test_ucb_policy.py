"""UCB policy: clip thresholds, feature scales, batch sizes, choices."""

import itertools

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF

from reticent import Bounds, JointBandit
from reticent.models.bandits.settings import POLICY
from reticent.models.bandits.ucb_policy import (
    Policy,
    _lengths,
    batch_sizes,
    best_candidates,
    random_words,
    upper_confidence_bound,
)
from reticent.privacy.row_maps.reward_sum import reward_sum

LINE = Bounds(x=[(0, 1)], y=(0, 1))


def windows(reward, epsilon, rounds=2000):
    """Reach of each batch, and whether residuals of a fit were added up, of a bandit with these
    rewards.
    """
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
    """Rare ones are what there is to learn from.

    Within a reach of a low fit they would hardly count: no threshold cuts a part of them off.
    """
    reach, _ = windows(lambda rng, f: rng.random(len(f)) < 0.02 + 0.9 * f, epsilon)
    late = slice(len(reach) // 2, None)
    assert (reach[late] >= 1).all()


@pytest.mark.parametrize(("epsilon", "most"), [(1.0, 0.4), (10.0, 1.2)])
def test_rewards_that_scatter_little_count_near_the_fit(epsilon, most):
    reach, staged = windows(lambda rng, f: f + 0.05 * rng.normal(size=len(f)), epsilon)
    late = slice(
        2 * len(reach) // 3, None
    )  # until then the reward's own scatter may be taken for larger
    assert (reach[late] < most).all()
    assert staged[late].all()


def test_rare_rewards_are_not_taken_for_noise_that_is_small():
    """A first batch is explained by any function: its noise may be small, and may be large.

    Where the clip followed the best guess, ones among zeros were cut to a fifth, for good.
    """
    for seed in range(4):
        rng = np.random.default_rng(seed)
        one = JointBandit(bounds=LINE, horizon=600, epsilon=10, delta=1e-4, random_state=seed)
        while one.rounds_ < 600:
            doses = rng.uniform(size=(one.until_release_, 8, 1))
            tried = doses[np.arange(len(doses)), one.ask(doses)]
            one.tell(tried, rng.random(len(tried)) < 0.2)
        mean, sd = one.posterior_.moments(np.linspace(0.1, 0.9, 9)[:, None])
        assert (np.abs(mean - 0.2) < 3.5 * sd).all()
        assert all(release.statistic["reach"][0] >= 1 for release in one.releases_)


def test_shorter_lengths_are_tried_where_early_rounds_tell_them():
    """By privacy noise and by that of rewards; each half of the one before."""

    def shortest(dimension, mu, horizon):
        return min(_lengths(dimension, mu, horizon, POLICY))

    assert shortest(1, 0.3, 1000) == 0.3
    assert shortest(1, 3.5, 1000) == 0.15
    assert shortest(1, 30, 1000) == shortest(1, 1e3, 1000) == 0.0375
    assert shortest(1, 1e3, 100) == 0.3, "of few rewards no budget tells more"
    assert shortest(2, 1e3, 1000) == 0.3
    assert shortest(2, 1e3, 10_000) == 0.15


def test_a_length_that_was_ruled_out_is_still_explored():
    """Flat rewards beside a gap: a peak in it is unlikely, and would be worth much."""
    rng = np.random.default_rng(5)
    one = JointBandit(bounds=LINE, horizon=600, epsilon=1e6, delta=1e-4, random_state=5)
    while one.rounds_ < 300:
        doses = rng.uniform(0.2, 1, size=(one.until_release_, 8, 1)) % 0.8  # none above .8
        one.ask(doses)
        one.tell(doses[:, 0], 0.2 + 0.05 * rng.normal(size=len(doses)))
    model = one.posterior_
    places = model.features(np.array([[0.4], [0.9]]))
    explored = np.linalg.norm(places @ model.covariance_root, axis=1)
    told = 2 * model.moments(np.array([[0.4], [0.9]]))[1]
    assert told.max() < 0.1, "in half-ranges of the reward: the evidence is sure"
    assert explored[1] > 2 * told[1]
    assert explored[0] < 0.1, "where much was seen, no hypothesis is open"


def test_a_short_kernel_has_functions_enough():
    """A twentieth of the half-box: polynomials of degree 31 leave out an eighth of its variance."""
    short = policy(kernel=RBF(0.025, "fixed"), mu=1e3, horizon=1000)
    variance = 4  # of the function, in squared half-ranges of the reward
    assert (short.posterior.truncation_variance < 0.01 * variance).all()
    usual = policy(kernel=RBF(0.2, "fixed"), mu=1e3, horizon=1000)
    assert max(len(row) for row in usual.feature_map.basis.mix[0]) == 32
    assert max(len(row) for row in short.feature_map.basis.mix[0]) > 32


def test_clips_widen_until_nothing_is_clipped():
    """With the budget: of rewards that scatter by a tenth of their half-range."""
    last = []
    for epsilon in (1.0, 10.0, 100.0, 1e6):
        reach, _ = windows(lambda rng, f: f + 0.05 * rng.normal(size=len(f)), epsilon, 600)
        last.append(min(reach[-1], 2.0))  # from 2 on nothing is clipped, whatever the fit
    assert last == sorted(last)
    assert last[0] < 0.5 < last[-1] == 2


def test_a_share_of_rounds_is_chosen_at_random():
    """Of candidates that lack nothing; the others by their scores, and equals as before."""
    scores = np.tile([0.0, 7.0, 7.0, -np.inf], (40_000, 1))
    chosen = best_candidates(scores, random_words(40_000, 0, b"share"), 0.3)
    share = np.bincount(chosen, minlength=4) / len(chosen)
    assert share == pytest.approx([0.1, 0.45, 0.45, 0.0], abs=0.01)
    always = best_candidates(scores[:6000], random_words(6000, 0, b"share"), 1.0)
    assert np.bincount(always, minlength=4) / 6000 == pytest.approx([1 / 3] * 3 + [0], abs=0.03)


def test_forced_exploration_goes_on_and_becomes_rare():
    one = JointBandit(bounds=LINE, horizon=None, epsilon=1.0, delta=0.1, random_state=3)
    shares = [one.posterior_.exploration_share]
    while one.rounds_ < 400:
        doses = np.random.default_rng(one.rounds_).uniform(size=(one.until_release_, 8, 1))
        one.tell(doses[np.arange(len(doses)), one.ask(doses)], np.zeros(len(doses)))
        shares.append(one.posterior_.exploration_share)
        assert shares[-1] == pytest.approx(0.03 / np.sqrt(one.rounds_))
    assert shares[0] == 0, "in the first batch all candidates are equal"
    never = JointBandit(
        bounds=LINE, horizon=9, epsilon=1.0, delta=0.1, exploration_weight=0, random_state=3
    )
    while never.rounds_ < 9:
        never.ask([[0.1], [0.9]])
        never.tell([0.1], 0)
        assert never.posterior_.exploration_share == 0


def test_nothing_is_counted_beyond_the_range_of_rewards():
    """About the middle of the range no reward is farther than its end.

    A longer reach would be noise for nothing.
    """
    for dimension in (1, 2, 7):
        policy = Policy(
            Bounds(x=[(0, 1)] * dimension, y=(0, 1)),
            kernel=None,
            mu=0.5,
            horizon=500,
            arms=9,
            exploration_weight=0.7,
        )
        assert policy.clip_threshold <= 1
        assert not any(policy.statistic.weights[0])


def test_with_many_functions_the_constant_has_the_largest_scale():
    """Of a hundred small functions one release tells little.

    The level of all rewards must not be one of those.
    """
    policy = Policy(
        Bounds(x=[(0, 1)] * 20, y=(0, 1)),
        kernel=None,
        mu=0.5,
        horizon=10_000,
        arms=9,
        exploration_weight=0.7,
    )
    energy = np.sort(np.array(policy.feature_map.feature_scale))
    assert energy[-1] > 1.5 * energy[-2]
    constant = (
        policy.feature_map.features(np.zeros((1, 20)))[0]
        / policy.feature_map.features(np.full((1, 20), 0.3))[0]
    )
    assert np.argmax(policy.feature_map.feature_scale) in np.flatnonzero(
        np.abs(constant - constant.round()) < 0.5
    )


@pytest.mark.parametrize("mu", [0.01, 0.5, 3.0])
@pytest.mark.parametrize("horizon", [1, 5, 40, 1000, 12_345])
@pytest.mark.parametrize("growth", [1.0, 1.2, 3.0])
def test_batches_fill_the_horizon_and_none_is_short(mu, horizon, growth):
    """From public numbers alone; a last batch that would be short is joined to the one before."""
    sizes = list(batch_sizes(mu, horizon, growth))
    assert sum(sizes) == horizon
    assert min(sizes) == sizes[0] or sizes[-1] >= 0.25 * sizes[-2]
    for before, after in itertools.pairwise(sizes[:-1]):
        assert growth * before - growth - 1 <= after <= growth * before + growth + 1


def test_first_batches_are_longer_where_noise_or_the_horizon_is_larger():
    """A batch must stand above its noise, and be some part of what there will be."""

    def first(mu, horizon):
        return next(batch_sizes(mu, horizon))

    assert first(0.01, 10**4) == pytest.approx(10 * first(0.1, 10**3), rel=0.05)
    assert first(0.1, 10**3) > first(3.0, 10**3)
    assert first(3.0, 10**6) > first(3.0, 10**4) > first(3.0, 10**2) > 1


def test_an_endless_bandit_has_the_same_first_batches_as_a_long_one():
    endless = batch_sizes(0.5, None, 1.5)
    assert [next(endless) for _ in range(6)] == list(batch_sizes(0.5, 1000, 1.5))[:6]
    assert next(batch_sizes(0.5, None, 1.5, first=100.0)) == 100


def test_the_upper_confidence_bound_is_the_mean_and_so_many_standard_deviations():
    rng = np.random.default_rng(0)
    phi = rng.normal(size=(3, 4, 5))
    mean = rng.normal(size=5)
    root = rng.normal(size=(5, 5)).astype(np.float32)
    sd = np.sqrt(np.einsum("abi,ij,abj->ab", phi, root @ root.T, phi))
    assert upper_confidence_bound(phi, mean, root, 0.7) == pytest.approx(
        phi @ mean + 0.7 * sd, rel=1e-5
    )
    np.testing.assert_array_equal(upper_confidence_bound(phi, mean, root, 0.0), phi @ mean)


def test_the_best_is_chosen_and_among_equals_each_as_often():
    assert best_candidates(
        np.array([[1.0, 3.0, 2.0], [-5.0, -1.0, -2.0]]), random_words(2)
    ).tolist() == [1, 1]
    chosen = best_candidates(np.tile([0.0, 7.0, 7.0, 7.0], (3000, 1)), random_words(3000))
    assert np.bincount(chosen, minlength=4) == pytest.approx([0, 1000, 1000, 1000], abs=150)
    assert best_candidates(np.full((1, 3), -np.inf), random_words(1))[0] in range(3)
    ends = np.array([0, 2**64 - 1, 2**63], dtype=np.uint64)
    assert best_candidates(np.zeros((3, 999)), ends).tolist() == [0, 998, 499]


def test_words_of_a_seed_follow_the_number_of_the_round():
    some = random_words(5, 3, b"seed")
    assert (some[2:] == random_words(3, 5, b"seed")).all()
    assert (some != random_words(5, 3, b"other")).all()
    assert (random_words(5) != random_words(5)).all()
    assert len(np.unique(some)) == 5


def policy(**params):
    return Policy(
        LINE,
        **{
            "kernel": None,
            "mu": 0.5,
            "horizon": 200,
            "arms": 5,
            "exploration_weight": 0.7,
            **params,
        },
    )


def test_a_basis_is_as_large_as_was_asked_for_or_as_the_rounds_can_carry():
    assert policy(basis=3).feature_map.columns == 3
    few, many = (policy(horizon=horizon).feature_map.columns for horizon in (50, 50_000))
    assert 6 <= few < many <= 200


def test_more_functions_forget_nothing_of_the_old_ones():
    """What is known of the level and of the first functions is known after the basis has grown."""
    one = policy(horizon=40)
    m = one.feature_map.columns
    at = np.linspace(0.2, 0.8, 7)[:, None]
    phi = one.features(np.linspace(0, 1, 400)[:, None])
    one.ingest_public_contexts(phi.T @ np.full(400, 0.8), 1e-3, phi.T @ phi, 400, 1.0, np.zeros(m))
    before, sd_before = one.moments(at)
    assert before == pytest.approx(np.full(7, 0.9), abs=0.03), (
        "rewards of .9 everywhere, and so told"
    )
    one.grow(4000)
    assert one.feature_map.columns > m
    after, sd_after = one.moments(at)
    assert after == pytest.approx(before, abs=0.02)
    assert (sd_after > 0.4 * sd_before).all(), "and nothing is known that was not told"


def test_a_batch_without_records_teaches_nothing_but_ends_the_first_one():
    one = policy()
    before = one.posterior.mean.copy()
    assert not one.mean.any(), "as long as nothing is known, all candidates are equal"
    one.ingest_public_contexts(
        np.zeros(one.feature_map.columns),
        1.0,
        np.zeros((one.feature_map.columns,) * 2),
        0,
        1.0,
        np.zeros(one.feature_map.columns),
    )
    np.testing.assert_array_equal(one.posterior.mean, before)
    assert one.covariance_root.any()


def test_what_is_simulated_is_the_same_for_everyone():
    """Coins of plays in thought are public.

    Two servers with the same releases ask for the same statistic.
    """
    one = policy()
    two = policy()
    assert one.statistic == two.statistic
    one.set_context_sampler(lambda count: np.full((count, 1), 0.9))
    assert one.feature_map == two.feature_map
    assert (one._simulated_features == one._simulated_features[0]).all()


def test_a_reward_alone_is_protected_by_twice_the_length_of_its_features():
    """‖φt − φt′‖ ≤ 2‖φ‖ ≤ 2R, attained by rewards at both ends where features are longest."""
    statistic = reward_sum(policy().statistic)
    grid = np.linspace(-1, 1, 201)
    ends = [np.column_stack([grid, np.full(201, 64.0 * sign)]) for sign in (-1, 1)]
    low, high = (statistic.integers(records).astype(float) for records in ends)
    moved = ((high - low) ** 2).sum(axis=1) / float(statistic.sensitivity2)
    assert moved.max() <= 1
    assert moved.max() > 0.99
    residual = statistic.rows(np.column_stack([grid, np.zeros(201)]))
    assert residual == pytest.approx(0 * residual, abs=1e-9), (
        "a reward in the middle, of which nothing is expected, adds none"
    )
