"""Streams: exact sums, exact sensitivity under shared noise, the claimed law, an audit, and
restarts.
"""

import copy
import json
import math
import pickle
import signal
import threading
from hashlib import sha256

import numpy as np
import pytest
from scipy.optimize import minimize

from reticent.errors import BadInput, BudgetExceeded, ReleaseRefused
from reticent.inference.online.matrix_factorization import (
    root_coefficients,
    row_variances,
    tree_variances,
)
from reticent.models.bandits.ucb_policy import Policy
from reticent.privacy.accounting.events import Gaussian
from reticent.privacy.bounds import Bounds
from reticent.privacy.columns.numbers import Number
from reticent.privacy.ledger.ledger import Ledger
from reticent.privacy.row_maps.input_marginals import InputCounts
from reticent.privacy.statistics.gram import EnforcedGram
from reticent.privacy.statistics.sum import EnforcedSum
from reticent.privacy.streams.correlated_noise import (
    COEFFICIENT_BITS,
    BufferedToeplitz,
    GeometricCorrelation,
    Toeplitz,
)
from reticent.privacy.streams.stream import Stream
from tests.privacy.streams.streamed import (
    BACK,
    BOUNDS,
    ECHO,
    INDEPENDENT,
    ROOT,
    SOME,
    STEPS,
    TREE,
    Both,
    Pair,
)


def stream(correlation=INDEPENDENT, steps=STEPS, multiplier=2.0, seed=b"1", **kwargs):
    event = Gaussian(noise_multiplier=multiplier)
    return Stream(
        **{
            "bounds": BOUNDS,
            "event": event,
            "correlation": correlation,
            "steps": steps,
            "seed": seed,
            **kwargs,
        }
    )


def test_sums_are_exact_and_only_of_their_step():
    rng = np.random.default_rng(0)
    records = rng.uniform(-2, 2, size=(40, 2))
    one = stream(multiplier=1e-9)
    records[3] = np.nan, np.inf
    held = np.clip(records, -1, 1)
    held[3] = 0  # a record that lacks a value adds nothing
    for start in (0, 20):
        for piece in np.array_split(records[start : start + 20], 3):
            one.add(Pair(), piece)
        release = one.release(Pair())
        assert release.matrix() == pytest.approx(
            held[start : start + 20].T @ held[start : start + 20], abs=1e-4
        )
        assert (release.n, release.statistic["step"]) == (20, 1 + start // 20)


def test_running_sums_hold_all_steps():
    one = stream(ROOT, multiplier=1e-9)
    for t in range(1, 5):
        one.add(Both(), np.ones((1, 2)))
        assert one.release(Both()).value == pytest.approx([t, t], abs=1e-4)


def rounding(correlation, step, memory, zero):
    """R_t, from what `next` does with no fresh noise."""
    before = memory[0] if memory and correlation.running else zero
    return before - correlation.next(step, zero, list(memory))


def shift_of(correlation, x, y, steps):
    """Squared distance between the fresh noises that give the same releases for two streams x and
    y.
    """
    fresh = []
    for one in (x, y):
        memory = []
        drawn = []
        zero = one[0] * 0
        for t in range(1, steps + 1):
            N = -one[t - 1] + rounding(correlation, t, memory, zero)
            correlation.next(t, N, memory)
            drawn.append(N)
        fresh.append(drawn)
    return sum(int(((a - b) ** 2).sum()) for a, b in zip(*fresh, strict=True))


@pytest.mark.parametrize("correlation", [ROOT, SOME, ECHO], ids=["root", "buffers", "echo"])
def test_no_record_moves_all_releases_together_further_than_claimed(correlation):
    """Optimised over the pair of records and the step: never above the claim, and nearly at it."""
    statistic = Both()
    rng = np.random.default_rng(1)
    own = statistic.sensitivity2
    claim = own * correlation.sensitivity_inflation(STEPS, statistic.size, own)
    noise = [
        np.array([int(v) for v in rng.normal(size=2) * 2**30], dtype=object) for _ in range(STEPS)
    ]

    def ratio(pair, at):
        rows = [
            statistic.integers(BOUNDS.scale(np.array([one]))).astype(np.int64).astype(object)[0]
            for one in pair
        ]
        streams = []
        for row in rows:
            x = [one.copy() for one in noise]
            x[at] = x[at] + row
            streams.append(x)
        return shift_of(correlation, *streams, STEPS) / float(claim)

    found = []
    for at in (0, 1, STEPS - 1):
        best = minimize(
            lambda v, at=at: -ratio(np.clip(v.reshape(2, 2), -1, 1), at),
            rng.uniform(-1, 1, 4),
            method="Powell",
        )
        found.append(-best.fun)
    assert max(found) <= 1
    assert found[0] >= 0.999
    assert found[0] > found[1] > found[2]


def test_the_tree_counts_every_level():
    """Replace one step's record: how many nodes see it."""
    for steps in (1, 2, 7, 8, 16):
        nodes = set()
        for t in range(1, steps + 1):
            level = (t & -t).bit_length() - 1
            if t - 2**level < 1 <= t:
                nodes.add(level)
        assert len(nodes) <= TREE.sensitivity_inflation(steps, 2, 8)
        assert TREE.sensitivity_inflation(steps, 2, 8) == steps.bit_length()


@pytest.mark.parametrize(
    ("correlation", "expected"),
    [
        (TREE, tree_variances(STEPS)),
        (ROOT, row_variances(root_coefficients(STEPS))),
        (INDEPENDENT, np.ones(STEPS)),
        (ECHO, np.ones(STEPS)),  # what is taken back is in the scale
    ],
    ids=["tree", "root", "batches", "echo"],
)
def test_the_noise_has_the_covariance_that_is_claimed(correlation, expected):
    drawn = []
    runs = 150
    for seed in range(runs):
        one = stream(correlation, seed=b"%d" % seed)
        releases = [one.release(Both()) for _ in range(STEPS)]
        drawn.append([release.value / release.scale for release in releases])
    found = np.array(drawn)
    variance = found.var(axis=(0, 2))
    assert np.abs(variance / expected - 1).max() < 5 * math.sqrt(2 / (2 * runs))
    assert np.abs(found.mean(axis=(0, 2)) / np.sqrt(expected)).max() < 5 / math.sqrt(2 * runs)
    together = np.mean(found[:, 3] * found[:, 7])
    shared = {TREE: 0.0, INDEPENDENT: 0.0, ECHO: 0.0}.get(correlation)
    if correlation is ROOT:
        b = root_coefficients(STEPS)
        shared = b[:4] @ b[4:8]  # B = C: rows 3 and 7
    assert together == pytest.approx(shared, abs=5 * math.sqrt(expected[3] * expected[7] / runs))
    if correlation is ECHO:  # each step takes back a part of the last
        assert np.mean(found[:, 3] * found[:, 4]) == pytest.approx(
            -BACK / (1 + BACK**2), abs=5 / math.sqrt(2 * runs)
        )
        assert releases[1].scale == pytest.approx(releases[0].scale * math.sqrt(1 + BACK**2))


@pytest.mark.parametrize("correlation", [INDEPENDENT, ROOT, ECHO], ids=["batches", "root", "echo"])
def test_audit_of_all_releases_together(correlation):
    """The best attack on the whole stream reaches what μ allows, and no more."""
    steps = 4
    runs = 200
    multiplier = 1.0
    c = (
        [v / 2**COEFFICIENT_BITS for v in ROOT.coefficients[:steps]]
        if correlation is ROOT
        else [1.0] + [0.0] * (steps - 1)
    )
    c = [BACK**t for t in range(steps)] if correlation is ECHO else c
    scores = {}
    for world, record in ((0, (-1.0, -1.0)), (1, (1.0, 1.0))):
        for run in range(runs):
            one = stream(
                correlation, steps=steps, multiplier=multiplier, seed=b"%d %d" % (world, run)
            )
            values = []
            for t in range(steps):
                one.add(Both(), np.array([record if t == 1 else (0.3, -0.2)]))
                values.append(one.release(Both()).value)
            v = (
                np.diff(values, axis=0, prepend=0 * np.array(values[:1]))
                if correlation is ROOT
                else np.array(values)
            )
            white = np.array([sum(c[t - s] * v[s] for s in range(t + 1)) for t in range(steps)])
            direction = np.array([c[t - 1] if t >= 1 else 0.0 for t in range(steps)])
            scores.setdefault(world, []).append(float((white.sum(axis=1) * direction).sum()))
    a, b = (np.array(scores[world]) for world in (0, 1))
    mu = (b.mean() - a.mean()) / math.sqrt((a.var(ddof=1) + b.var(ddof=1)) / 2)
    error = math.sqrt(2 / runs * (1 + mu**2 / 8))
    assert mu <= 1 / multiplier + 4 * error
    assert (
        mu >= 0.75 / multiplier - 4 * error
    )  # the second of four steps, in a column that is a little shorter


@pytest.mark.parametrize(
    "correlation",
    [INDEPENDENT, TREE, ROOT, SOME, ECHO],
    ids=["batches", "tree", "root", "buffers", "echo"],
)
def test_a_restart_neither_redraws_nor_reuses(correlation):
    """With a state written down after every release, the rest is what it would have been.

    Noise is never drawn twice.
    """
    rng = np.random.default_rng(2)
    records = rng.uniform(-1, 1, size=(STEPS, 2))

    def play(restart):
        one = stream(correlation)
        values = []
        for t, record in enumerate(records):
            one.add(Both(), record[None])
            if restart and t % 3 == 1:
                one = stream(correlation, state=one.state())
            values.append(one.release(Both()).value)
            if restart and t % 3 == 0:
                one = stream(correlation, state=one.state())
        return np.array(values)

    plain = play(False)
    assert (plain == play(True)).all()
    noise = plain - (np.cumsum(records, axis=0) if correlation.running else records)
    assert len(np.unique(np.round(noise, 6), axis=0)) == STEPS


def test_only_what_lasts_shares_noise_and_only_with_numbers_of_its_kind():
    """Of a staged Gram matrix, Σ head·tail alone echoes.

    The next statistic begins anew, whatever its shape.
    """

    def statistic(m):
        return Policy(
            BOUNDS, kernel=None, mu=1.0, horizon=9, arms=2, exploration_weight=0.0, basis=m
        ).statistic

    one = stream(ECHO, steps=9)
    told = [one.release(statistic(m)) for m in (3, 3, 4, 4)]
    assert [round(release.statistic["echo"], 6) for release in told] == [0.0, BACK, 0.0, BACK]
    wide = told[0].scale * np.sqrt(statistic(3).coordinate_multiplicity()) / told[0].scale[0]
    row, column = np.triu_indices(4)
    assert wide == pytest.approx(
        np.where((row < 3) & (column == 3), 1 / math.sqrt(1 - BACK**2), 1.0), rel=1e-6
    )


def test_no_record_moves_numbers_that_share_noise_and_others_together_further_than_claimed():
    """Optimised over the pair, in units of the noise.

    Rounding moves even what the record hardly does.
    """
    statistic = Policy(
        BOUNDS, kernel=None, mu=1.0, horizon=STEPS, arms=2, exploration_weight=0.0, basis=3
    ).statistic
    own = statistic.sensitivity2
    tied = statistic.accumulates()
    shares = statistic.coordinate_multiplicity()
    rng = np.random.default_rng(5)
    noise = [
        np.array([int(v) for v in rng.normal(size=tied.sum()) * 2**30], dtype=object)
        for _ in range(STEPS)
    ]
    near, far = (
        float(f(STEPS, statistic.size, own))
        for f in (ECHO.uncorrelated_sensitivity_inflation, ECHO.sensitivity_inflation)
    )

    def ratio(pair):
        blocks = [
            statistic.block_sum(BOUNDS.scale(one[None], output_limit=statistic.output_limit))
            for one in pair
        ]
        rows = [statistic.coordinates(block).astype(np.int64).astype(object) for block in blocks]
        streams = [[noise[0] + row[tied], *noise[1:]] for row in rows]
        together = 2 * shift_of(ECHO, *streams, STEPS)
        alone = int((shares * (rows[0] - rows[1]) ** 2)[~tied].sum())
        return together / (own * far) + alone / (own * near)

    best = [
        -minimize(
            lambda v: -ratio(np.clip(v.reshape(2, 2), -9, 9)),
            rng.uniform(-1, 1, 4),
            method="Powell",
            options={"maxfev": 400},
        ).fun
        for _ in range(4)
    ]
    assert 0.99 < max(best) <= 1


def test_production_noise_is_fresh():
    values = [stream(seed=None).release(Both()).value.tolist() for _ in range(3)]
    assert len({tuple(v) for v in values}) == 3
    assert stream(seed=None).release(Both()).private
    assert not stream().release(Both()).private


def test_paid_once_before_anything_is_read(tmp_path):
    url = str(tmp_path / "budget.db")
    Ledger(url).open("people", 1.0, 1e-6)
    event = Gaussian(noise_multiplier=5.0)
    one = Stream(bounds=BOUNDS, event=event, ledger=url, dataset="people")
    assert len(Ledger(url).history("people")) == 1
    for _ in range(5):
        one.release(Both())
    assert len(Ledger(url).history("people")) == 1
    again = Stream(bounds=BOUNDS, event=event, state=one.state())
    also = Stream(bounds=BOUNDS, event=event, state=one.state(), ledger=url, dataset="people")
    [entry] = Ledger(url).history("people")
    assert {each.release(Both()).entry for each in (one, again, also)} == {entry.hash}
    Ledger(url).open("others", 1.0, 1e-6)
    for account in ({"ledger": url, "dataset": "others"}, {"ledger": url, "dataset": "people"}):
        unpaid = Stream(bounds=BOUNDS, event=event)
        state = one.state() if account["dataset"] == "others" else unpaid.state()
        with pytest.raises(BadInput, match="not paid for from data set"):
            Stream(bounds=BOUNDS, event=event, state=state, **account)
    assert unpaid.release(Both()).entry is None
    assert len(Ledger(url).history("people")) == 1
    with pytest.raises(BudgetExceeded):
        Stream(bounds=BOUNDS, event=Gaussian(noise_multiplier=1.0), ledger=url, dataset="people")


def test_refusals():
    with pytest.raises(BadInput, match="one Gaussian release"):
        Stream(bounds=BOUNDS, event=Gaussian(2, 1.0))
    with pytest.raises(BadInput, match="Give both ledger and dataset"):
        stream(dataset="people")
    with pytest.raises(BadInput, match="coefficients"):
        Toeplitz([5])
    with pytest.raises(BadInput, match="decay"):
        BufferedToeplitz([2**COEFFICIENT_BITS], [1])
    with pytest.raises(BadInput, match="give one for each"):
        stream(ROOT, steps=STEPS + 1).release(Both())
    one = stream(TREE, steps=1)
    one.release(Both())
    with pytest.raises(ReleaseRefused, match="All 1 steps"):
        one.release(Both())
    one = stream()
    one.add(Pair(), np.zeros((1, 2)))
    with pytest.raises(ReleaseRefused, match="release that one first"):
        one.add(Both(), np.zeros((1, 2)))
    with pytest.raises(ReleaseRefused, match="Only a Sum"):
        one.add(object(), np.zeros((1, 2)))
    with pytest.raises(ReleaseRefused, match="Sum or a Gram"):
        stream().add(InputCounts(1, 3), np.zeros((1, 2)))
    with pytest.raises(TypeError):
        pickle.dumps(one)
    with pytest.raises(TypeError):
        copy.deepcopy(one)
    one._process = -1
    with pytest.raises(ReleaseRefused, match="another process"):
        one.release(Pair())


@pytest.mark.parametrize("correlation", [ROOT, SOME, ECHO], ids=["root", "buffers", "echo"])
def test_noise_is_made_from_pythons_integers(correlation):
    """The square of 20 records, in NumPy's bytes, wrapped around.

    Too little noise, or a root of less than nothing.
    """
    given = {"steps": STEPS, "records_per_person": 20}
    scales = []
    for kind in (int, np.int8):
        one = stream(correlation, **{name: kind(value) for name, value in given.items()})
        one.add(Pair(), np.zeros((3, 2)))
        scales.append(one.release(Pair()).scale)
    np.testing.assert_array_equal(*scales)


OTHER_TERMS = {
    "event": {"multiplier": 2.0000001},
    "correlation": {"correlation": Toeplitz([1 << COEFFICIENT_BITS] + [0] * (STEPS - 1))},
    "steps": {"steps": STEPS - 1},
    "bounds": {"bounds": Bounds(x=[(-1, 1), (-1, 2)])},
    "records_per_person": {"records_per_person": 2},
    "relation": {"relation": "label"},
    "seed": {"seed": b"2"},
}


@pytest.mark.parametrize(("name", "other"), [*OTHER_TERMS.items(), ("seed", {"seed": None})])
@pytest.mark.parametrize("correlation", [INDEPENDENT, TREE, ROOT, ECHO], ids=lambda one: one.name)
def test_a_state_goes_on_with_the_terms_that_were_paid_for_and_with_no_others(
    name, other, correlation
):
    how = {"bounds": Bounds(x=[(-1, 1), (-1, 1)]), "correlation": correlation}
    one = stream(**how)
    one.add(Both(), np.ones((1, 2)))
    one.release(Both())
    with pytest.raises(BadInput, match=f"paid for with another {name}: "):
        stream(**{**how, **other}, state=one.state())
    again = stream(**how, state=one.state())
    assert again.release(Both()).private is False
    assert again._terms().keys() == {"format", *OTHER_TERMS}, (
        "all that a payment depends on is tried above"
    )


def test_coefficients_are_part_of_the_terms():
    """Of each kind: one in 2⁻³⁰ more is another correlation."""
    root = list(ROOT.coefficients)
    pairs = [
        (ROOT, Toeplitz([*root[:-1], root[-1] + 1])),
        (GeometricCorrelation(100), GeometricCorrelation(101)),
        (BufferedToeplitz([5, 6], [7, 8]), BufferedToeplitz([5, 6], [7, 9])),
        (BufferedToeplitz([5, 6], [7, 8]), BufferedToeplitz([5, 7], [7, 8])),
        (INDEPENDENT, TREE),
    ]
    for one, other in pairs:
        state = stream(one).state()
        stream(one, state=state)
        with pytest.raises(BadInput, match="another correlation"):
            stream(other, state=state)


class Cheaper(GeometricCorrelation):
    """Somebody's own, which asks for less noise."""

    def sensitivity_inflation(self, steps, size, sensitivity2):
        return super().sensitivity_inflation(steps, size, sensitivity2) / 100


def test_a_correlation_of_ones_own_is_refused():
    for wrong in (Cheaper(100), "TREE", None, GeometricCorrelation):
        with pytest.raises(BadInput, match="only these are proved"):
            stream(wrong)


@pytest.mark.parametrize(
    "change",
    [
        {"made": -1},
        {"made": 0.5},
        {"made": True},
        {"rows": "1"},
        {"rows": -1},
        {"total": [0.5]},
        {"total": 7},
        {"total": [True]},
        {"sum": None},
        {"memory": {}},
        {"memory": [[1, "2"]]},
        {"fit": 5},
        {"like": None},
        {"asked": 1},
        {"entry": 1},
        {"terms": []},
        {"terms": {}},
        {"more": 1},
    ],
    ids=str,
)
def test_what_is_not_a_state_is_refused_with_words(change):
    told = json.loads(stream().state()) | change
    with pytest.raises(BadInput, match=r"state of (a|this) stream|written by another version"):
        stream(state=json.dumps(told).encode())


@pytest.mark.parametrize("text", [b"", b"5", b"[]", b"{}", b"[" * 100_000, b"\xff", 5])
def test_what_is_no_state_at_all_is_refused_with_words(text):
    with pytest.raises(BadInput, match="not the state of a stream"):
        stream(state=text)


def test_a_state_of_another_version_is_refused_with_words():
    told = json.loads(stream().state())
    older = {name: value for name, value in told.items() if name not in ("terms", "entry")}
    newer = {**told, "terms": {**told["terms"], "format": 3, "seed": None}}
    for one in (older, newer):
        with pytest.raises(BadInput, match="written by another version of reticent"):
            stream(state=json.dumps(one).encode())


@pytest.mark.parametrize("wrong", [1.999, 1.0, 0, -1, True, "1", None, 10**6 + 1, np.float64(2)])
def test_people_and_steps_are_whole_numbers_and_that_is_said_before_the_charge(wrong, tmp_path):
    account = {"ledger": str(tmp_path / "budget.db"), "dataset": "people"}
    Ledger(account["ledger"]).open("people", 1.0, 1e-6)
    for name in ("records_per_person", "steps")[: 1 if wrong == 10**6 + 1 else 2]:
        with pytest.raises(BadInput, match=f"{name} must be a whole number"):
            stream(**{"multiplier": 5.0, name: wrong, **account})
    for how in ({"relation": "people"}, {"seed": 1}, {"bounds": [(0, 1)]}):
        with pytest.raises(BadInput):
            stream(**{"multiplier": 5.0, **how, **account})
    assert Ledger(account["ledger"]).history("people") == []
    assert (
        stream(steps=np.int64(3), records_per_person=np.int32(2)).release(Both()).records_per_person
        == 2
    )


def test_the_state_is_plain_and_exact():
    one = stream(ROOT)
    one.add(Both(), np.array([[0.1, 0.2]]))
    told = json.loads(one.state())
    assert told["rows"] == 1
    assert all(isinstance(v, int) for v in told["total"])
    assert repr(one) == "<Stream: 0 steps released>"


def test_a_record_is_in_one_release_whoever_adds_meanwhile(monkeypatch):
    """``add`` once read the old total before ``release`` emptied it, and wrote it
    back afterwards.
    """
    one = stream(multiplier=1e-9)
    noiseless = Both()
    inside = threading.Event()
    go_on = threading.Event()
    sums = EnforcedSum.block_sum

    def slow(self, records):
        inside.set()
        go_on.wait(0.2)
        return sums(self, records)

    one.add(noiseless, np.ones((1, 2)))
    monkeypatch.setattr(EnforcedSum, "block_sum", slow)
    adding = threading.Thread(target=one.add, args=(noiseless, np.ones((1, 2))))
    adding.start()
    inside.wait()
    releases = [one.release(noiseless)]
    go_on.set()
    adding.join()
    releases.append(one.release(noiseless))
    np.testing.assert_allclose(sum(release.value for release in releases), 2.0, atol=1e-3)


def test_an_interrupted_addition_can_be_repeated_and_counts_once(monkeypatch):
    one = stream()
    blocks = []
    exact = EnforcedGram.raw_block_sum
    one.add(Pair(), np.zeros((0, 2)))
    records = np.random.default_rng(0).uniform(-1, 1, size=(2 * Pair().block_rows + 5, 2))

    def interrupted(self, rows, scale):
        blocks.append(len(rows))
        if len(blocks) == 2:
            signal.raise_signal(signal.SIGINT)
        return exact(self, rows, scale)

    monkeypatch.setattr(EnforcedGram, "raw_block_sum", interrupted)
    with pytest.raises(KeyboardInterrupt):
        one.add(Pair(), records)
    assert one.rows == 0
    one.add(Pair(), records)
    whole = stream()
    whole.add(Pair(), records)
    assert one.release(Pair()).value.tolist() == whole.release(Pair()).value.tolist()


def test_interrupted_draws_leave_the_tree_in_step(monkeypatch):
    """What a node of the tree holds follows the number of the step.

    A step that was not released has none.
    """
    import reticent.privacy.noise as module

    one = stream(TREE, steps=7)
    record = np.array([[0.5, 0.5]])
    draw = module.floor_noise
    calls = []

    def interrupted(*given):
        calls.append(1)
        if len(calls) in (2, 5):
            raise KeyboardInterrupt
        return draw(*given)

    monkeypatch.setattr(module, "floor_noise", interrupted)
    made = []
    while len(made) < 4:
        one.add(Pair(), record)
        try:
            made.append(one.release(Pair()).statistic["step"])
        except KeyboardInterrupt:
            assert one.made == len(made)
    assert made == [1, 2, 3, 4]


def test_a_correlation_belongs_to_the_stream_that_was_paid_for():
    """What is changed about the caller's own, its coefficients or a method, changes no noise."""
    own = Toeplitz(ROOT.coefficients)
    one = stream(own)
    own.coefficients = (own.coefficients[0], *[0] * (STEPS - 1))
    own.sensitivity_inflation = lambda steps, size, sensitivity2: 0
    other = stream(ROOT)
    for _ in range(3):
        for each in (one, other):
            each.add(Both(), np.zeros((1, 2)))
        assert one.release(Both()).value.tolist() == other.release(Both()).value.tolist()


def test_bounds_of_ones_own_are_refused():
    class Own(Bounds):
        pass

    with pytest.raises(BadInput, match="subclasses are not taken"):
        Stream(bounds=Own(x=[(-1, 1)]), event=Gaussian(noise_multiplier=1.0))


def test_what_is_masked_is_missing():
    one = stream()
    other = stream()
    records = np.array([[0.5, 0.25], [-0.5, 0.25]])
    one.add(Both(), np.ma.masked_array(records, mask=[[False, True], [True, False]]))
    records[0, 1] = records[1, 0] = np.nan
    other.add(Both(), records)
    assert one.release(Both()).value.tolist() == other.release(Both()).value.tolist()


def test_records_may_be_a_list_whose_cells_are_read_alike():
    one = stream()
    other = stream()
    one.add(Both(), [[0.5, 0.25], [None, 1], ("0.5", 7), "no record"])
    other.add(Both(), np.array([[0.5, 0.25], [np.nan, 1], [0.5, 7], [np.nan, np.nan]]))
    assert one.rows == other.rows == 4
    assert one.release(Both()).value.tolist() == other.release(Both()).value.tolist()


def test_codes_are_added_as_the_cells_that_they_stand_for():
    """Beside a number whose missing values are kept stands the code of whether it is missing."""
    bounds = Bounds(x=[Number(-1, 1, missing=[9], keep_missing=True)])
    one = stream(bounds=bounds)
    other = stream(bounds=bounds)
    one.add(Both(), np.array([[0.5], [9.0], [np.nan]]))
    other.add(Both(), np.array([[0.5, 0], [0, 1], [0, 1]]), coded=True)
    released = one.release(Both()).value.tolist()
    assert released == other.release(Both()).value.tolist()
    for records, coded in (
        (np.zeros((3, 2)), False),
        (np.zeros((3, 1)), True),
        (np.zeros(2), True),
    ):
        with pytest.raises(BadInput, match=f"rows of {1 + coded} numbers"):
            one.add(Both(), records, coded=coded)
    third = stream(bounds=bounds)
    third.add(Both(), np.array([[9.0, 0], [0, 1], [0, 1]]), coded=True)  # 9 is no code for missing
    assert third.release(Both()).value.tolist() != released


@pytest.mark.parametrize("statistic", [Both(), Pair()])
@pytest.mark.parametrize("correlation", [INDEPENDENT, TREE, ROOT, ECHO])
def test_the_scales_that_a_stream_foretells_are_those_of_its_releases(correlation, statistic):
    one = stream(correlation)
    for step in range(3):
        one.add(statistic, np.zeros((1, 2)))
        released = one.release(statistic)
        echo = released.statistic.get("echo", 0.0)
        assert (echo > 0) == (correlation is ECHO and step > 0)
        assert np.allclose(one.scale(statistic, echo), released.scale, rtol=1e-12)
    plain = one.scale(statistic)
    assert np.allclose(one.scale(statistic, 2.0)[0], math.sqrt(5) * plain[0], rtol=1e-12)


def test_the_most_steps_and_records_of_a_person():
    assert stream(steps=2**62, records_per_person=10**6).scale(Both())[0] > 0
    for wrong in ({"steps": 2**62 + 1}, {"steps": 0}):
        with pytest.raises(BadInput, match="steps"):
            stream(**wrong)
    for people in (10**6 + 1, 0):
        with pytest.raises(BadInput, match="records_per_person"):
            stream(records_per_person=people)


def test_the_text_of_the_coefficients_is_canonical():
    """States hold its hash: it never changes, in whichever order a correlation has its fields."""
    decays, weights = (json.dumps(list(part)) for part in (SOME.decays, SOME.weights))
    text = f'{{"decays": {decays}, "name": "Buffers", "weights": {weights}}}'
    terms = json.loads(stream(SOME).state())["terms"]
    assert terms["correlation"] == sha256(text.encode()).hexdigest()
