"""JointBandit: it learns, between releases it is frozen, it is rebuilt and goes on bit for bit, and
it refuses what it must.
"""

import dataclasses
import json
import threading
from itertools import pairwise

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF, ConstantKernel

import reticent
from reticent import Bounds, JointBandit
from reticent.errors import BadInput, BoundsMissing, BudgetExceeded, CorruptModel, ReleaseRefused
from reticent.models.bandits import joint
from reticent.models.bandits.ucb_policy import batch_sizes

LINE = Bounds(x=[(0, 1)], y=(0, 1))


USUAL = {"bounds": LINE, "horizon": 300, "epsilon": 5.0, "delta": 0.01, "random_state": 1}


def bandit(**params):
    return JointBandit(**USUAL | params)


def f(x):
    return np.exp(-((x[..., 0] - 0.7) ** 2) / 0.05)


def play(one, rounds, seed=0, arms=6, after=None, order=None):
    """Play; the mean regret, and that of a random choice."""
    rng = np.random.default_rng(seed)
    regret = 0.0
    chance = 0.0
    for _ in range(rounds):
        doses = rng.uniform(size=(arms, 1))
        doses = doses if order is None else doses[order]
        k = one.ask(doses)
        one.tell(doses[k], f(doses[k]) + 0.1 * rng.normal())
        regret += f(doses).max() - f(doses[k])
        chance += f(doses).max() - f(doses).mean()
        if after is not None:
            after(one)
    return regret / rounds, chance / rounds


@pytest.fixture(scope="module")
def played():
    one = bandit()
    regret = play(one, 300)
    return one, regret


def test_it_learns(played):
    one, (regret, chance) = played
    assert regret < 0.35 * chance
    mean, sd = one.posterior_.moments(np.array([[0.7], [0.1]]))
    assert mean[0] > mean[1]
    assert (sd > 0).all()
    assert one.rounds_ == 300
    assert sum(release.n for release in one.releases_) == 300


def test_nothing_changes_between_releases():
    one = bandit(horizon=40)
    seen = []

    def look(one):
        seen.append(
            (len(one.releases_), one.posterior_.posterior.mean.tobytes(), one.posterior_.statistic)
        )

    play(one, 40, after=look)
    changes = [i for i in range(1, 40) if seen[i][1] != seen[i - 1][1]]
    assert changes == [i for i in range(1, 40) if seen[i][0] > seen[i - 1][0]]
    assert 2 <= len(changes) <= 8


def test_whoever_sees_releases_sees_nothing_of_one_person_besides():
    """Two rounds' worth of different records, the same noisy releases.

    Every later choice and number is the same.
    """
    one = bandit(horizon=60)
    play(one, 60)
    again = JointBandit.from_releases(one.releases_, **USUAL | {"horizon": 60})
    sets = np.random.default_rng(5).uniform(size=(50, 6, 1))
    scores = [b.posterior_.scores(b.posterior_.features(sets)) for b in (one, again)]
    assert (scores[0] == scores[1]).all()
    with pytest.raises(ReleaseRefused, match="learns no more"):
        again.tell([0.5], 1.0)


def test_a_file_holds_the_releases_and_no_more(played, tmp_path):
    one, _ = played
    one.save(tmp_path / "b.reticent")
    loaded = reticent.load(tmp_path / "b.reticent")
    at = np.linspace(0, 1, 9)[:, None]
    assert all(
        (a == b).all()
        for a, b in zip(one.posterior_.moments(at), loaded.posterior_.moments(at), strict=True)
    )
    assert loaded.guarantee_ == one.guarantee_
    assert loaded.ask(at) in range(9)
    assert "rounds" in repr(loaded)
    broken = one.releases_[:1] + one.releases_[2:]
    with pytest.raises(BadInput, match="do not fit"):
        JointBandit.from_releases(broken, **USUAL)
    (tmp_path / "b.reticent").write_bytes(b"nonsense")
    with pytest.raises(CorruptModel):
        reticent.load(tmp_path / "b.reticent")


@pytest.mark.parametrize(
    "params", [{}, {"release": "every", "basis": 4}, {"contexts": "public"}], ids=str
)
def test_it_goes_on_after_a_restart(params):
    """Killed after any tell and started again from the state.

    The same releases, each noise drawn once.
    """

    def run(restart):
        one = bandit(horizon=24, **params)
        rng = np.random.default_rng(3)
        for t in range(24):
            doses = rng.uniform(size=(4, 1))
            one.ask(doses)
            one.tell(doses[t % 4], rng.uniform())
            if restart and t % 5 == 2:
                one = JointBandit.resume(one.trusted_state())
        return one

    a = run(False)
    b = run(True)
    assert len(a.releases_) == len(b.releases_) >= 2
    assert all((p.value == q.value).all() for p, q in zip(a.releases_, b.releases_, strict=True))
    assert (a.posterior_.posterior.mean == b.posterior_.posterior.mean).all()


def test_the_journal_is_written_before_a_release_is_used():
    one = bandit(horizon=30)
    seen = []

    def journal(state):
        seen.append((len(json.loads(state)["releases"]), one.posterior_.posterior.mean.copy()))

    one.journal = journal
    play(one, 30)
    assert [count for count, _ in seen] == list(range(1, len(one.releases_) + 1))
    assert (seen[0][1] == 0).all()  # the model had not learned from it
    again = JointBandit.resume(one.trusted_state())
    assert again.rounds_ == 30
    with pytest.raises(ReleaseRefused, match="horizon"):
        again.ask([[0.5]])


def test_the_budget_is_charged_before_the_first_round(tmp_path):
    url = str(tmp_path / "budget.db")
    ledger = reticent.Ledger(url)
    ledger.open("doses", 5.0, 0.01)
    one = bandit(ledger=url, dataset="doses")
    assert ledger.history("doses") == []
    with pytest.raises(BadInput):
        one.ask(np.array([[0.1, 0.2]]))  # a wrong shape is found before the charge
    assert ledger.history("doses") == []
    one.ask([[0.1]])
    assert len(ledger.history("doses")) == 1
    play(one, 20)
    assert len(ledger.history("doses")) == 1
    assert one.guarantee_.epsilon == pytest.approx(5, rel=1e-3)
    with pytest.raises(BudgetExceeded):
        bandit(ledger=url, dataset="doses").ask([[0.1]])
    with pytest.raises(reticent.LedgerError, match="relation"):
        bandit(ledger=url, dataset="doses", contexts="public").ask([[0.1]])


def test_public_contexts_carry_no_noise():
    noisy = bandit()
    less = bandit(contexts="public")
    for one in (noisy, less):
        play(one, 12)
    m = less.posterior_.feature_map.columns
    accumulates = noisy._statistic().accumulates()
    # A's noise is the same, but for what is added for rounding on each grid; the rest has none
    assert less.releases_[0].scale[:m] == pytest.approx(
        noisy.releases_[0].scale[accumulates], rel=1e-5
    )
    assert less.releases_[0].scale[m] > 0  # of the number of missing rewards
    assert (less.releases_[0].scale[m + 1 :] == 0).all()
    assert np.linalg.eigvalsh(less._public_gram).min() > -1e-9
    assert less.guarantee_.relation == "label"


def test_an_unknown_horizon_doubles(monkeypatch):
    settings = dataclasses.replace(joint.POLICY, planned_rounds=32)
    monkeypatch.setattr(joint, "POLICY", settings)
    one = bandit(horizon=None, bounds=Bounds(x=[(0, 1), (0, 1)], y=(0, 1)))
    rng = np.random.default_rng(0)
    sizes = []
    for _ in range(120):
        doses = rng.uniform(size=(4, 2))
        one.tell(doses[one.ask(doses)], rng.uniform())
        sizes.append(one.posterior_.feature_map.columns)
    assert sizes == sorted(sizes)
    assert sizes[-1] > sizes[0]
    assert np.linalg.eigvalsh(one.posterior_.posterior.covariance).min() > -1e-9
    again = JointBandit.resume(one.trusted_state())
    assert (again.posterior_.posterior.mean == one.posterior_.posterior.mean).all()


def test_several_at_once_are_as_one_by_one():
    rng = np.random.default_rng(7)
    sets = rng.uniform(size=(30, 5, 1))
    single = bandit(horizon=30)
    several = bandit(horizon=30)
    chosen = several.ask(sets)
    assert chosen.shape == (30,)
    rewards = rng.uniform(size=30)
    several.tell(sets[:, 0], rewards)
    for one, reward in zip(sets, rewards, strict=True):
        single.ask(one)
        single.tell(one[0], reward)
    assert all(
        (a.value == b.value).all() for a, b in zip(single.releases_, several.releases_, strict=True)
    )


def test_the_order_of_candidates_does_not_matter():
    """Equal candidates are chosen equally often.

    And a permutation of the arms leaves the regret what it was.
    """
    one = bandit(random_state=None)
    chosen = one.ask(np.full((200, 4, 1), 0.3))
    assert np.bincount(chosen, minlength=4).min() > 25
    play(one := bandit(horizon=400), 80)
    sets = np.random.default_rng(0).uniform(size=(50, 6, 1))
    order = np.array([5, 3, 1, 0, 2, 4])
    assert (order[one.ask(sets[:, order])] == one.ask(sets)).all()  # no ties here: the same choices


def test_wild_numbers_are_moved_and_nothing_fails():
    one = bandit(horizon=20)
    for reward in (np.nan, np.inf, -np.inf, 1e300, -5.0, 1.0, True):
        one.ask([[np.nan], [np.inf], [-1e300]])
        one.tell([np.nan], reward)
    play(one, 13)
    assert np.isfinite(one.releases_[-1].value).all()
    assert np.isfinite(one.posterior_.posterior.mean).all()


@pytest.mark.parametrize(
    "call", ["[]", "np.ones((1, 2))", "np.ones((1, 1, 2))", "np.ones((1, 0))", "'x'", "0.5"]
)
def test_bad_candidates(call):
    with pytest.raises(BadInput):
        bandit().ask(eval(call))


def test_asks_and_tells_are_counted():
    one = bandit(horizon=3)
    with pytest.raises(ReleaseRefused, match="asked"):
        one.tell([0.5], 1.0)
    one.ask([[0.5]])
    with pytest.raises(BadInput):
        one.tell([0.5, 0.5], 1.0)
    with pytest.raises(BadInput):
        one.tell([0.5], [1.0, 2.0])
    one.tell([0.5], 1.0)
    with pytest.raises(ReleaseRefused, match="counts once"):
        one.tell([0.5], 1.0)
    one.ask([[0.5]])
    one.cancel()
    with pytest.raises(BadInput, match="cannot be cancelled"):
        one.cancel()
    one.ask([[[0.5]], [[0.6]]])
    with pytest.raises(ReleaseRefused, match="horizon of 3"):
        one.ask([[0.5]])
    for wrong in (1.5, -1, True, "1", None, np.float64(1), np.timedelta64(1)):
        with pytest.raises(BadInput, match="whole number"):
            one.cancel(wrong)
        with pytest.raises(BadInput, match="whole number"):
            JointBandit.resume(b"", open_asks=wrong if wrong is not None else -1)
    assert one._open_asks == 2


def test_integers_of_numpy_do_not_wrap_around():
    small = {"horizon": np.int8(100), "records_per_person": np.int8(100), "arms": np.int8(100)}
    one = bandit(**small)
    same = bandit(horizon=100, records_per_person=100, arms=100)
    for each in (one, same):
        each.ask(np.full((100, 2, 1), 0.5))
        each.tell(np.full((100, 1), 0.5), np.full(100, 0.25))
    assert one.guarantee_ == same.guarantee_
    assert all(
        (a.scale == b.scale).all() for a, b in zip(one.releases_, same.releases_, strict=True)
    )
    again = JointBandit.resume(bandit().trusted_state(), open_asks=np.int8(100))
    again.ask(np.full((100, 1, 1), 0.5))
    again.cancel(np.int8(100))
    assert (again._open_asks, type(again._open_asks)) == (100, int)


@pytest.mark.parametrize(
    "params",
    [
        {"bounds": Bounds(x=[(0, 1)])},
        {"bounds": Bounds(x=(0, 1), y=(0, 1))},
        {"bounds": [(0, 1)]},
        {"horizon": 0},
        {"horizon": 2.5},
        {"release": "never"},
        {"mechanism": "magic"},
        {"contexts": "secret"},
        {"exploration_weight": -1},
        {"exploration_weight": "wide"},
        {"arms": 0},
        {"growth": 0.5},
        {"basis": 0},
        {"records_per_person": 0},
        {"epsilon": 0},
        {"delta": 0},
        {"kernel": "RBF"},
        {"release": "every", "horizon": None},
        {"release": "every", "contexts": "public"},
        {"random_state": "x"},
    ],
    ids=str,
)
def test_bad_parameters(params):
    with pytest.raises(BadInput):
        bandit(**params)


def test_bounds_are_needed():
    with pytest.raises(BoundsMissing):
        JointBandit(horizon=10, epsilon=1, delta=1e-6)


def test_batches_grow_and_fill_the_horizon():
    sizes = list(batch_sizes(1.0, 1000))
    assert sum(sizes) == 1000
    assert all(a <= b + 1 for a, b in pairwise(sizes[:-1]))
    endless = batch_sizes(1.0, None)
    assert [next(endless) for _ in range(45)][-1] > 10_000


@pytest.mark.parametrize("mechanism", ["sqrt", "blt", "tree"])
def test_every_round_can_be_released(mechanism):
    one = bandit(release="every", mechanism=mechanism, horizon=40, basis=4, epsilon=100.0)
    regret, chance = play(one, 40)
    assert len(one.releases_) == 40
    assert regret < chance


@pytest.mark.parametrize(
    "params", [{"release": "every"}, {"basis": 1}], ids=["every round", "one function"]
)
def test_many_inputs_and_few_functions_go_on_after_the_first_round(params):
    rng = np.random.default_rng(0)
    bandit = JointBandit(
        bounds=Bounds(x=[(0, 1)] * 8, y=(0, 1)), horizon=5, epsilon=1, delta=1e-6, **params
    )
    for _ in range(5):
        x = rng.random((3, 8))
        bandit.tell(x[bandit.ask(x)], 0.5)
    assert bandit.releases_


def test_a_state_that_was_written_down_at_a_release_goes_on_as_if_nothing_had_happened():
    """The journal is called in the middle of a tell, when the batch is released but not yet taken
    in.
    """
    states = []
    rng = np.random.default_rng(0)
    one = JointBandit(
        bounds=Bounds(x=[(0, 1)], y=(0, 1)),
        horizon=60,
        contexts="public",
        epsilon=5,
        delta=1e-6,
        random_state=0,
    )
    one.journal = states.append
    records = rng.uniform(size=(60, 2))
    for x, y in records:
        one.ask([[x]])
        one.tell([x], y)
    first = JointBandit.resume(states[0], open_asks=0)
    for x, y in records[first.rounds_ :]:
        first.ask([[x]])
        first.tell([x], y)
    for ours, theirs in zip(first.releases_, one.releases_, strict=True):
        np.testing.assert_array_equal(ours.value, theirs.value)


def test_whoever_tells_at_the_same_time_every_round_counts_once():
    one = bandit(horizon=400)
    one.ask(np.full((400, 2, 1), 0.5))
    threads = [
        threading.Thread(target=lambda: [one.tell([0.5], 0.5) for _ in range(100)])
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert one.rounds_ == 400
    assert sum(release.n for release in one.releases_) == 400


@pytest.mark.parametrize("reward", [10**400, "high", None, np.nan, -np.inf, [[1]]])
def test_no_reward_fails(reward):
    one = bandit()
    one.ask([[0.5]])
    one.tell([0.5], reward)
    assert one.rounds_ == 1


def test_a_tell_that_is_interrupted_is_used_up(monkeypatch):
    one = bandit(horizon=40)
    one.ask(np.zeros((2, 1, 1)))
    monkeypatch.setattr(
        type(one._paid_stream()), "add", lambda *_, **__: (_ for _ in ()).throw(KeyboardInterrupt)
    )
    with pytest.raises(KeyboardInterrupt):
        one.tell([[0.0], [0.1]], [0.1, 0.2])
    monkeypatch.undo()
    with pytest.raises(ReleaseRefused, match="asked"):
        one.tell([[0.0], [0.1]], [0.1, 0.2])


@pytest.mark.parametrize("contexts", ["private", "public"])
def test_missing_rewards_add_nothing(contexts):
    """Rewards of 0.9 in a range from 0 to 1: half of them missing, they stay 0.9."""
    one = reticent.JointBandit(
        bounds=reticent.Bounds(x=[(0, 1)], y=(0, 1)),
        horizon=3000,
        contexts=contexts,
        epsilon=8,
        delta=1e-6,
        random_state=0,
    )
    rng = np.random.default_rng(0)
    x = rng.uniform(size=(3000, 1))
    rewards = 0.9 + 0.02 * rng.normal(size=3000)
    rewards[rng.uniform(size=3000) < 0.5] = np.nan
    x[::10] = np.nan
    one.ask(x[:, None, :], several=True)
    one.tell(x, rewards)
    mean, std = one.posterior_.moments(np.array([[0.2], [0.5], [0.8]]))
    assert mean == pytest.approx(np.full(3, 0.9), abs=0.05)
    assert (np.abs(mean - 0.9) < 4 * std + 0.01).all()


def test_a_candidate_that_lacks_a_value_is_chosen_where_all_do():
    one = bandit(random_state=0)
    play(one, 40)
    assert one.ask([[np.nan], [0.3], [np.nan]]) == 1
    assert one.ask([[np.nan], [np.nan]]) in (0, 1)


def exact_posterior(bandit, tried, rewards, places):
    """Mean and standard deviation of a Gaussian process without privacy, over all kernels.

    With the noise variance that the bandit has learned; and the kernels' weights. In half-ranges.
    """
    policy = bandit.posterior_
    scale = bandit.bounds.inputs_alone().scale
    y = 2 * rewards - 1
    evidence = []
    means = []
    variances = []
    for kernel in policy._prior.kernels:
        K = kernel(policy._prior._natural(scale(tried))) / policy._prior._y_half**2
        root = np.linalg.cholesky(K + policy.posterior.s2 * np.eye(len(y)))
        cross = (
            kernel(policy._prior._natural(scale(tried)), policy._prior._natural(scale(places)))
            / policy._prior._y_half**2
        )
        z = np.linalg.solve(root, y)
        V = np.linalg.solve(root, cross)
        evidence.append(-z @ z / 2 - np.log(np.diag(root)).sum())
        means.append(V.T @ z)
        prior = kernel.diag(policy._prior._natural(scale(places))) / policy._prior._y_half**2
        variances.append(prior - (V**2).sum(axis=0))
    weights = np.exp(np.array(evidence) - max(evidence))
    weights /= weights.sum()
    mean = weights @ np.array(means)
    variance = weights @ (np.array(variances) + np.array(means) ** 2) - mean**2
    return mean, np.sqrt(variance), weights


@pytest.mark.parametrize("kernel", [None, ConstantKernel(0.1, "fixed") * RBF(0.3, "fixed")])
def test_without_noise_it_is_gp_ucb(kernel):
    """Yes-or-no rewards, two inputs, batches of fewer rounds than functions."""
    rounds = 400
    rng = np.random.default_rng(5)
    one = reticent.JointBandit(
        kernel,
        bounds=reticent.Bounds(x=[(0, 1)] * 2, y=(0, 1)),
        horizon=rounds,
        epsilon=1e6,
        delta=0.1,
        random_state=5,
    )
    tried = []
    rewards = []
    while one.rounds_ < rounds:
        sets = rng.uniform(size=(one.until_release_, 9, 2))
        tried.append(sets[np.arange(len(sets)), one.ask(sets)])
        chance = 0.1 + 0.8 * np.exp(-((tried[-1] - 0.6) ** 2).sum(axis=1) / 0.1)
        rewards.append((rng.random(len(sets)) < chance).astype(float))
        one.tell(tried[-1], rewards[-1])
    places = rng.uniform(size=(100, 2))
    mean, sd, weights = exact_posterior(one, np.concatenate(tried), np.concatenate(rewards), places)
    found, found_sd = (2 * v for v in one.posterior_.moments(places))
    assert one.posterior_.feature_map.columns > 30 > one.releases_[0].n
    assert one.posterior_.posterior.hypothesis_weights == pytest.approx(weights, abs=0.1)
    assert np.sqrt(np.mean((found - 1 - mean) ** 2)) < 0.15 * sd.mean()
    assert found_sd == pytest.approx(sd, rel=0.15)
