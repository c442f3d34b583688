"""Rounds by a public shape.

Whatever one person brings, nobody else's numbers and answers change, and nothing fails.
"""

import copy
import os

import numpy as np
import pandas as pd
import pytest

from reticent import Bounds, JointBandit, LocalBanditClient, LocalBanditServer
from reticent.errors import BadInput
from reticent.models.bandits.rounds import AskedRounds, ToldRounds
from tests.contract.odd_cells import ODD_CELLS

MANY = 6
CONTAINERS = {
    "list": lambda values: values,
    "tuple": tuple,
    "objects": lambda values: _objects(values),
    "series": lambda values: pd.Series(_objects(values), dtype=object),
}


def _objects(values):
    held = np.empty(len(values), dtype=object)
    for i, value in enumerate(values):
        held[i] = value
    return held


def of_inputs(d):
    """Bounds of ``d`` inputs and a reward, numbers from 0 to 10."""
    return Bounds(x=[(0, 10)] * d, y=(0, 10))


def bandit(d=1, **params):
    usual = {"horizon": 400, "epsilon": 1.0, "delta": 1e-5}
    return JointBandit(bounds=Bounds(x=[(0, 1)] * d, y=(0, 1)), **usual | params)


@pytest.fixture(scope="module", params=[1, 2])
def started(request):
    """A bandit before its first release, whose exact sums can be looked at."""
    one = bandit(request.param)
    one._batch_size = 10**9
    one.ask(np.full((300, 2, request.param), 0.5))
    return one


def total(one, candidates, rewards, several=None):
    """The exact sum of some rounds alone, in units of the statistic."""
    stream = one._stream
    before = copy.copy(stream._total), stream.rows, one.rounds_, one._open_asks
    stream._total = 0
    stream.rows = 0
    one.tell(candidates, rewards, several=several)
    found = np.array([float(v) for v in stream._total]) * one._statistic().step
    assert stream.rows == (len(rewards) if several is not False else 1)
    stream._total, stream.rows, one.rounds_, one._open_asks = before
    return found


@pytest.mark.parametrize("container", CONTAINERS)
def test_one_round_moves_the_exact_sum_by_its_own_row_alone(started, container):
    """For every odd cell, as reward, as row and inside a row, first and last."""
    d = started.posterior_.dimension
    rows = [[0.9] * d] * MANY
    rewards = [1.0] * MANY
    others = total(started, rows[1:], rewards[1:])
    base = total(started, rows[:1], rewards[:1])
    statistic = started._statistic()
    claimed = float(statistic.sensitivity2) ** 0.5 * statistic.step
    for odd, cell in ODD_CELLS.items():
        for X, y in with_one_odd_round(cell, rows, rewards, CONTAINERS[container]):
            own = total(started, X, y) - others
            square = (statistic.coordinate_multiplicity() * (own - base) ** 2).sum()
            assert float(np.sqrt(square)) <= claimed * (1 + 1e-12), odd


def with_one_odd_round(cell, rows, rewards, put):
    """Rounds of which the first or the last has ``cell`` somewhere."""
    d = len(rows[0])
    table = _objects([0.9] * (MANY * d)).reshape(MANY, d)
    table[0, 0] = cell
    frame = pd.DataFrame(table, dtype=object)
    for place in (0, MANY - 1):
        changed = [*rewards]
        changed[place] = cell
        ragged = [*rows]
        odd_cell = [*rows]
        ragged[place] = cell
        odd_cell[place] = [cell] * d
        listed = [(rows, changed), (ragged, rewards), (odd_cell, rewards), (ragged, changed)]
        yield from ((put(X), put(y)) for X, y in listed)
    yield table, rewards
    yield frame, put(rewards)


@pytest.mark.parametrize("odd", ODD_CELLS)
def test_what_one_brings_changes_no_other_answer(odd):
    one = bandit(horizon=None)
    one.posterior_.mean = np.linspace(1, 2, len(one.posterior_.mean))  # as if it had learned
    one.posterior_.covariance_root += np.eye(len(one.posterior_.mean), dtype=np.float32)
    mine = ODD_CELLS[odd]
    others = [[[0.1], [0.9], [0.4]], [[0.2], [0.3]]]
    alone = one.ask(others).tolist()
    for sets in ([mine, *others], [[mine, [0.5]], *others], [[[mine], [0.5]], *others]):
        assert one.ask(sets).tolist()[1:] == alone
        assert one.ask(tuple(sets)).tolist()[1:] == alone
        assert one.ask(_objects(sets)).tolist()[1:] == alone
        assert one.ask(sets, several=True).tolist()[1:] == alone
    assert 0 <= one.ask([mine, [0.5]], several=False) <= 1
    assert 0 <= one.ask([[mine], [0.5]], several=False) <= 1


def test_one_round_never_fails_for_its_reward(started):
    d = started.posterior_.dimension
    missing = total(started, [0.9] * d, None, several=False)
    no_numbers = ("text", "dict", "list of two", "array of two", "trap", "endless", "none")
    for odd, cell in ODD_CELLS.items():
        found = total(started, [0.9] * d, cell, several=False)
        if odd in ("text of a number", "bytes"):
            assert (found != missing).any(), odd
        elif odd.startswith(no_numbers):
            assert (found == missing).all(), odd


@pytest.mark.parametrize("odd", ODD_CELLS)
def test_a_local_client_reports_whatever_the_reward_is(odd):
    server = _server()
    client = LocalBanditClient(server.message(), epsilon=1.0, delta=1e-5)
    assert client.ask([[0.2], [ODD_CELLS[odd]]]) in (0, 1)
    assert server.receive(client.tell([0.9], ODD_CELLS[odd]))


def _server():
    return LocalBanditServer(
        bounds=Bounds(x=[(0, 1)], y=(0, 1)), horizon=100, epsilon=1.0, delta=1e-5
    )


@pytest.mark.parametrize(
    ("candidate", "reward", "records"),
    [
        ([0.1, 0.2], 0.5, [[0.1, 0.2, 0.5]]),
        ([[0.1, 0.2]], 0.5, [[0.1, 0.2, 0.5]]),
        ((0.1, 0.2), [0.5], [[0.1, 0.2, 0.5]]),
        (np.array([0.1, 0.2]), np.array(0.5), [[0.1, 0.2, 0.5]]),
        (np.array([[0.1, 0.2]]), np.array([0.5]), [[0.1, 0.2, 0.5]]),
        ([[0.1, 0.2], [0.3, 0.4]], [0.5, 0.6], [[0.1, 0.2, 0.5], [0.3, 0.4, 0.6]]),
        ([[0.1, 0.2], None], [0.5, [0.6]], [[0.1, 0.2, 0.5], [np.nan, np.nan, 0.6]]),
        ([[0.1, 0.2], [0.3]], [[0.5, 0.5], 0.6], [[0.1, 0.2, np.nan], [np.nan, np.nan, 0.6]]),
        (np.array([[1, 2], [3, 4]]), pd.Series([0.5, 0.6]), [[1, 2, 0.5], [3, 4, 0.6]]),
        (
            pd.DataFrame({"a": [1, 2], "b": ["x", 4]}),
            [[0.5], [0.6]],
            [[1, np.nan, 0.5], [2, 4, 0.6]],
        ),
        (np.ma.array([[1.0, 2.0]], mask=[[True, False]]), 0.5, [[np.nan, 2, 0.5]]),
        (None, 0.5, [[np.nan, np.nan, 0.5]]),
        ([["a", 0.2]], "x", [[np.nan, 0.2, np.nan]]),
    ],
)
def test_rounds_that_are_told(candidate, reward, records):
    told = ToldRounds(candidate, reward, of_inputs(2))
    assert told.count == len(records)
    np.testing.assert_array_equal(told.read(), records)


def test_candidates_of_one_input_need_no_rows():
    bounds = of_inputs(1)
    for candidates in ([0.1, 0.2], np.array([0.1, 0.2])):
        told = ToldRounds(candidates, [1, 2], bounds)
        np.testing.assert_array_equal(told.read(), [[0.1, 1], [0.2, 2]])
    np.testing.assert_array_equal(ToldRounds(0.1, 1, bounds).read(), [[0.1, 1]])


@pytest.mark.parametrize(
    ("candidate", "reward", "several"),
    [
        ([0.1, 0.2, 0.3], 0.5, None),
        (np.ones(3), 0.5, None),
        (np.ones((2, 2)), 0.5, None),
        (np.ones((1, 3)), 0.5, None),
        (np.ones((2, 2)), [0.5], None),
        (np.ones((2, 2)), np.ones((2, 2)), None),
        (np.ones((2, 2)), np.ones((2, 1, 1)), None),
        ([[0.1, 0.2]] * 3, [0.5] * 2, None),
        (None, [0.5] * 2, None),
        ([[0.1, 0.2]], 0.5, True),
        (np.ones((2, 2)), np.ones(2), False),
        ([[0.1, 0.2]], 0.5, 1),
    ],
)
def test_shapes_are_public_and_refused(candidate, reward, several):
    with pytest.raises(BadInput):
        ToldRounds(candidate, reward, of_inputs(2), several)


@pytest.mark.parametrize(
    ("candidates", "several", "sizes"),
    [
        ([[0.1, 0.2], [0.3, 0.4]], False, [2]),
        ([[0.1, 0.2], "x", [0.3]], False, [3]),
        ([np.ones(2), np.ones(2)], False, [2]),
        (np.ones((3, 2)), False, [3]),
        (pd.DataFrame(np.ones((3, 2))), False, [3]),
        (np.ones((3, 4, 2)), True, [4, 4, 4]),
        ([[[0.1, 0.2]], [[0.3, 0.4]] * 3, [], None, "x"], True, [1, 3, 0, 0, 0]),
        ([np.ones((2, 2)), pd.DataFrame(np.ones((3, 2))), np.ones((2, 5))], True, [2, 3, 2]),
        (_objects([[[0.1, 0.2]], np.ones((2, 2))]), True, [1, 2]),
    ],
)
def test_sets_that_are_asked_about(candidates, several, sizes):
    asked = AskedRounds(candidates, of_inputs(2))
    assert asked.several is several
    assert asked.count == len(sizes)
    found = asked.read()
    assert [one.shape for one in found] == [(size, 2) for size in sizes]


@pytest.mark.parametrize(
    ("candidates", "several"),
    [
        ([], None),
        (np.ones((0, 2)), None),
        (np.ones((2, 0, 2)), None),
        (np.ones((2, 3)), None),
        (np.ones(2), None),
        (np.ones((2, 2)), True),
        (np.ones((2, 2, 2)), False),
        (np.ones((1, 1, 2, 2)), None),
        (None, None),
        ("x", None),
        (0.5, None),
        ([[0.1, 0.2]], "yes"),
    ],
)
def test_sets_without_a_shape_are_refused(candidates, several):
    with pytest.raises(BadInput):
        AskedRounds(candidates, of_inputs(2), several)


def test_a_person_who_nests_lists_begins_one_round_where_the_caller_says_so():
    one = bandit(horizon=3)
    one.ask([[0.1], [[0.2]], [[0.3]]], several=False)
    one.ask([[0.1], [[0.2]]], several=True)
    assert one._open_asks == 3


def test_ragged_sets_are_answered_set_by_set():
    one = bandit()
    chosen = one.ask([[[0.1]], [[0.1], [0.2], [0.3]], [], [[0.5], ["x"]]])
    assert all(0 <= k < most for k, most in zip(chosen, (1, 3, 1, 2), strict=True))


def test_coins_are_one_word_a_round_however_many_candidates(monkeypatch):
    asked = []

    def urandom(count):
        asked.append(count)
        return b"\x80" * count

    one = bandit()
    one.ask([[0.5]])  # pays, and draws what the stream needs
    monkeypatch.setattr(os, "urandom", urandom)
    for size in (1, 7, 50):
        one.ask(np.full((size, 1), 0.5))
        one.ask(np.full((3, size, 1), 0.5))
    assert asked == [8, 24] * 3


def test_seeded_coins_follow_the_round_and_nobody_elses_candidates():
    def answers(sizes):
        one = bandit(random_state=5)
        return [one.ask(np.full((size, 1), 0.5)) for size in sizes]

    assert answers([50, 3, 50, 50])[2:] == answers([50, 17, 50, 50])[2:]
    assert len(set(answers([50] * 20))) > 5
    one = bandit(random_state=5)
    assert one.ask(np.full((20, 50, 1), 0.5)).tolist() == answers([50] * 20)
    assert one.ask([[[0.5]] * 50] * 3).tolist() == answers([50] * 23)[20:]


def test_a_restart_does_not_throw_the_same_coins_again():
    one = bandit(random_state=5)
    first = [one.ask(np.full((900, 1), 0.5)) for _ in range(3)]
    again = JointBandit.resume(one.trusted_state())
    assert again.ask(np.full((900, 1), 0.5)) not in first
