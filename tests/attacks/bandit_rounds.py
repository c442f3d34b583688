"""Bandits that are asked and told several rounds at once, in lists.

One round must not change how the others are read.
"""

import numpy as np

import reticent
from reticent.reporting.attack_curve import recognised
from tests.attacks.harness import Outcome, attack

_BOUNDS = reticent.Bounds(x=[(0, 1)], y=(0, 1))
_FALSE_ALARMS = 0.05


def _bandit(**params):
    return reticent.JointBandit(
        bounds=_BOUNDS, **{"horizon": 400, "epsilon": 1, "delta": 1e-5, **params}
    )


def _moved(candidates, rewards):
    """How far the exact sums of two lists of rounds are apart, in units of the
    claimed sensitivity.
    """
    sums = []
    for X, y in zip(candidates, rewards, strict=True):
        bandit = _bandit()
        bandit._batch_size = 10**6  # so that the exact sum can be looked at before its release
        bandit.ask(np.full((len(y), 2, 1), 0.5))
        bandit.tell(X, y)
        assert not bandit.releases_
        statistic = bandit._statistic()
        sums.append(np.array([float(v) for v in bandit._stream._total]))
    square = (statistic.coordinate_multiplicity() * (sums[0] - sums[1]) ** 2).sum()
    return float(np.sqrt(square / statistic.sensitivity2))


@attack("1b", "One reward that is text makes everybody's rewards missing")
def text_reward() -> Outcome:
    rewards = [1.0] * 200
    moved = max(
        _moved([[[0.5]] * 200] * 2, [rewards, [*rewards[1:], odd]]) for odd in ("x", b"x", 1j)
    )
    return Outcome(moved > 1.001, f"the exact sum moves by {moved:.2f} times the sensitivity")


@attack("1b", "One candidate that is text makes everybody's candidates missing")
def text_candidate() -> Outcome:
    rows = [[0.9]] * 200
    rewards = [1.0] * 200
    moved = max(_moved([rows, [*rows[1:], [odd]]], [rewards] * 2) for odd in ("x", b"x", 1j))
    return Outcome(moved > 1.001, f"the exact sum moves by {moved:.2f} times the sensitivity")


@attack("1b", "Tell from the first release alone whether one reward was text")
def text_reward_from_release() -> Outcome:
    """An attacker who knows all other rounds: how often is he right, at 5 % false alarms?

    One test, fixed in advance: rewards that are missing lie in the middle of their range, so that
    the sum of squared residuals is smaller.
    """

    def released(last):
        bandit = _bandit()
        many = bandit.until_release_
        bandit.ask(np.full((many, 2, 1), 0.5))
        bandit.tell([[0.5]] * many, [1.0] * (many - 1) + [last])
        return bandit.releases_[0].matrix()[-1, -1]

    runs = 40
    number, text = (np.array([released(last) for _ in range(runs)]) for last in (1.0, "x"))
    power = float((number > np.quantile(text, 1 - _FALSE_ALARMS)).mean())
    allowed = float(recognised(_bandit().guarantee_, _FALSE_ALARMS))
    margin = 4 * float(
        np.sqrt(allowed * (1 - allowed) * 2 / runs)
    )  # of the share, and of the quantile
    figure = (
        f"right in {power:.0%} of {runs} cases at 5 % false alarms; the "
        f"promise allows {allowed:.1%}"
    )
    return Outcome(power > allowed + margin, f"{figure} (and chance up to {allowed + margin:.0%})")


@attack("1b", "One reward that is a list makes the call fail for everybody")
def list_reward() -> Outcome:
    bandit = _bandit()
    bandit.ask(np.full((3, 2, 1), 0.5))
    try:
        bandit.tell([[0.5]] * 3, [1.0, 0.5, [0.2, 0.3]])
    except reticent.BadInput:
        return Outcome(True, "the whole call is refused, because of one reward")
    return Outcome(False, f"all {bandit.rounds_} rounds are told")


@attack("1b", "My candidates decide what another person is advised")
def other_answers() -> Outcome:
    rng = np.random.default_rng(0)
    bandit = _bandit(horizon=4000, epsilon=1e4)
    while not bandit.releases_:
        sets = rng.uniform(size=(1, 5, 1))
        chosen = bandit.ask(sets)[0]
        bandit.tell(sets[0, chosen], float(sets[0, chosen, 0]))
    theirs = [[0.1], [0.9]]
    changed = 0
    for _ in range(40):
        plain, odd = (int(bandit.ask([theirs, [[mine], [0.2]]])[0]) for mine in (0.5, "x"))
        changed += plain != odd
    # a few change by chance: a share of rounds is chosen at random
    return Outcome(changed > 10, f"in {changed} of 40 rounds another person's answer changes")


@attack("1b", "A set of another size makes the call fail for everybody")
def ragged_sets() -> Outcome:
    bandit = _bandit()
    try:
        bandit.ask([[[0.1], [0.9]], [[0.5]]])
    except reticent.BadInput:
        return Outcome(True, "the whole call is refused, because of one set")
    return Outcome(False, "each set is answered by itself")
