"""Local bandits.

Only noisy reports leave a client, a hostile server gains nothing, and the server learns and goes
on.
"""

import contextlib
import copy
import json
import math
import os
import pickle
from dataclasses import replace
from unittest import mock

import numpy as np
import pytest

import reticent
from reticent import Bounds, LocalBanditClient, LocalBanditServer
from reticent.errors import BadInput, ReleaseRefused
from reticent.models.serialization import plain_release, restored_release
from reticent.privacy.release import derived

LINE = Bounds(x=[(0, 1)], y=(0, 1))
PROMISE = {"epsilon": 50.0, "delta": 0.1}


USUAL = {"bounds": LINE, "horizon": 150, **PROMISE}


def server(**params):
    return LocalBanditServer(**{**USUAL, **params})


@contextlib.contextmanager
def replayed(number):
    """The operating system's randomness, the same for the same number.

    A server refuses reports of a seed.
    """
    with mock.patch.object(os, "urandom", np.random.default_rng(number).bytes):
        yield


def play(one, rounds, seed=0):
    rng = np.random.default_rng(seed)
    regret = 0.0
    chance = 0.0
    for t in range(rounds):
        doses = rng.uniform(size=(6, 1))
        with replayed(1000 * seed + t):
            client = LocalBanditClient(one.message(), **PROMISE)
            k = client.ask(doses)
            assert one.receive(client.tell(doses[k], doses[k, 0] + 0.05 * rng.normal()))
        regret += doses.max() - doses[k, 0]
        chance += doses.max() - doses.mean()
    return regret, chance


def forged(report, **changes):
    """A report with some fields changed, and a checksum that is right again."""
    release = replace(restored_release(report["release"]), checksum=None, **changes)
    return json.dumps({**report, "release": plain_release(release)}).encode()


@pytest.fixture(scope="module")
def played():
    one = server()
    return one, play(one, 150)


def test_it_learns_and_is_rebuilt(played, tmp_path):
    one, (regret, chance) = played
    assert regret < 0.7 * chance
    assert sum(release.n for release in one.releases_) == 150
    one.save(tmp_path / "s.reticent")
    loaded = reticent.load(tmp_path / "s.reticent")
    assert (loaded.posterior_.posterior.mean == one.posterior_.posterior.mean).all()
    with pytest.raises(ReleaseRefused, match="horizon of 150"):
        play(one, 1)
    with pytest.raises(BadInput, match="do not fit"):
        LocalBanditServer.from_releases(one.releases_[1:], **USUAL)


def test_a_restart_changes_nothing():
    a = server()
    b = server()
    play(a, 30)
    play(b, 17)
    b = LocalBanditServer.resume(b.state())
    assert b.rounds_ == 17
    rng = np.random.default_rng(0)
    for t in range(30):  # the same people as in play
        doses = rng.uniform(size=(6, 1))
        noise = rng.normal()
        if t >= 17:
            with replayed(t):
                client = LocalBanditClient(b.message(), **PROMISE)
                k = client.ask(doses)
                b.receive(client.tell(doses[k], doses[k, 0] + 0.05 * noise))
    assert (a.posterior_.posterior.mean == b.posterior_.posterior.mean).all()


def reports(reward, runs, message):
    out = []
    for seed in range(runs):
        client = LocalBanditClient(
            message, epsilon=1.0, delta=0.1, random_state=[seed + 5, seed][0]
        )
        out.append(json.loads(client.tell([0.9], reward))["release"])
    return np.array([one["value"] for one in out]), np.array(out[0]["scale"])


def test_audit_of_the_client():
    """Two records that differ in the reward alone.

    The best test reaches what is allowed for them, and no more than μ.
    """
    message = server().message()
    runs = 150
    a, scale = reports(0.0, runs, message)
    b, _ = reports(1.0, runs, message)
    exact = [
        LocalBanditClient(message, epsilon=1e9, delta=0.1, random_state=1).tell([0.9], r)
        for r in (0.0, 1.0)
    ]
    values = [np.array(json.loads(one)["release"]["value"]) for one in exact]
    direction = (values[1] - values[0]) / scale**2
    allowed = math.sqrt(float((((values[1] - values[0]) / scale) ** 2).sum()))
    mu = 1 / reticent.calibrate(1.0, 0.1)
    scores = a @ direction, b @ direction
    # the noise of both worlds comes from the same seeds: means differ exactly,
    # spreads tell the noise
    found = (scores[1].mean() - scores[0].mean()) / scores[0].std(ddof=1)
    assert 0.3 * mu < allowed <= mu
    assert found == pytest.approx(allowed, rel=5 / math.sqrt(2 * runs))


def test_what_leaves_is_the_noisy_matrix_alone():
    client = LocalBanditClient(server().message(), **PROMISE)
    report = json.loads(client.tell([0.123456789], 0.987654321))
    assert set(report) == {"batch", "release"}
    assert set(report["release"]) >= {"value", "scale", "event", "n", "bounds"}
    assert report["release"]["statistic"] == {}
    assert "0.1234567" not in json.dumps(report)
    assert report["release"]["private"]
    with pytest.raises(ReleaseRefused, match="has told"):
        client.tell([0.1], 0.2)
    assert client.guarantee_.epsilon == pytest.approx(50, rel=1e-3)


def test_a_hostile_server_gains_nothing():
    """Weights, reach and radius of any size: the noise follows the limits that are enforced."""
    told = json.loads(server().message())
    told["statistic"]["reach"] = [1e-9]
    told["statistic"]["head"]["radius2"] = 4.0
    told["statistic"]["head"]["energy"] = [1e6] * len(told["statistic"]["head"]["energy"])
    message = json.dumps(told).encode()
    exact = [
        LocalBanditClient(message, epsilon=1e9, delta=0.1, random_state=1).tell([x], r)
        for x, r in ((0, 0), (1, 1))
    ]
    moved = np.subtract(*(json.loads(one)["release"]["value"] for one in exact))
    scale = np.array(
        json.loads(LocalBanditClient(message, **PROMISE).tell([0], 0))["release"]["scale"]
    )
    assert math.sqrt(float(((moved / scale) ** 2).sum())) <= 1 / reticent.calibrate(50.0, 0.1) * (
        1 + 1e-6
    )


@pytest.mark.parametrize("part", ["mean", "root", "exploration_weight", "exploration_share"])
def test_a_message_with_numbers_that_are_none_is_refused(part):
    """Before there is a record, and without a warning, which tests take for an error."""
    told = json.loads(server().message())
    whole = np.array(told[part], dtype=object)
    for wrong in (1e39, -1e300, math.inf, math.nan, None, "x", 2**1100, []):
        whole[(0,) * whole.ndim] = wrong
        with pytest.raises(BadInput, match="not a message"):
            LocalBanditClient(json.dumps(told | {part: whole.tolist()}).encode(), **PROMISE)


def test_a_message_for_other_features_is_refused():
    told = json.loads(server().message())
    for change in (
        {"mean": told["mean"][1:]},
        {"root": told["root"][1:]},
        {"root": 1.0},
        {"exploration_weight": [0.7]},
    ):
        with pytest.raises(BadInput, match="not a message"):
            LocalBanditClient(json.dumps(told | change).encode(), **PROMISE)


def test_no_message_makes_a_choice_warn():
    """The largest numbers that are let in.

    Their squares are not finite, and whether they come up depends on candidates.
    """
    told = json.loads(server().message())
    most = float(np.finfo(np.float32).max)
    m = len(told["mean"])
    for sign in (1, -1):
        hostile = told | {
            "mean": [sign * most] * m,
            "root": [[most] * m] * m,
            "exploration_weight": most,
            "exploration_share": sign * most,
        }
        client = LocalBanditClient(json.dumps(hostile).encode(), **PROMISE)
        assert client.ask([[0.1], [0.9], [np.nan]]) in (0, 1, 2)
        assert np.isfinite(json.loads(client.tell([0.9], 1.0))["release"]["value"]).all()


def test_refusals():
    one = server()
    message = one.message()
    late = LocalBanditClient(message, **PROMISE)
    play(one, one.until_release_)
    assert one.receive(late.tell([0.5], 0.5)) is False
    for bad in (b"{}", b"[]", b'{"statistic": 1, "bounds": 2}', b"nonsense"):
        with pytest.raises(BadInput):
            LocalBanditClient(bad, **PROMISE)
        with pytest.raises(BadInput):
            one.receive(bad)
    with pytest.raises(BadInput, match="another promise"):
        one.receive(LocalBanditClient(one.message(), epsilon=60.0, delta=0.1).tell([0.5], 0.5))
    client = LocalBanditClient(one.message(), **PROMISE)
    for wrong in ([], np.ones((1, 2)), np.ones(1), np.ones((1, 1, 1)), 0.5):
        with pytest.raises(BadInput):
            client.ask(wrong)
    with pytest.raises(BadInput):
        client.tell([0.5, 0.5], 1.0)
    with pytest.raises(BadInput):
        server(bounds=None)
    with pytest.raises(BadInput):
        server(exploration_weight="paper")
    client.ask([[np.nan], [np.inf]])
    assert np.isfinite(json.loads(client.tell([np.nan], np.inf))["release"]["value"]).all()


@pytest.mark.parametrize("scale", [float("nan"), 0.0, 1e300])
def test_a_report_with_another_noise_is_refused(scale):
    host = LocalBanditServer(
        bounds=Bounds(x=[(0, 1)], y=(0, 1)), horizon=500, epsilon=1.0, delta=0.1
    )
    client = LocalBanditClient(host.message(), epsilon=1.0, delta=0.1)
    told = json.loads(client.tell([0.5], 0.5))
    assert host.receive(json.dumps(told).encode())
    scales = np.full(len(told["release"]["scale"]), scale)
    with pytest.raises(BadInput, match="not a report"):
        host.receive(
            json.dumps(told | {"release": told["release"] | {"scale": scales.tolist()}}).encode()
        )
    if np.isfinite(scale):
        with pytest.raises(BadInput, match="another promise"):
            host.receive(forged(told, scale=scales))


def test_a_client_cannot_be_copied():
    host = LocalBanditServer(
        bounds=Bounds(x=[(0, 1)], y=(0, 1)), horizon=500, epsilon=1.0, delta=0.1
    )
    client = LocalBanditClient(host.message(), epsilon=1.0, delta=0.1)
    for attempt in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match="tells once"):
            attempt(client)


def test_a_forged_report_cannot_break_the_server():
    """Anything but a report is refused; a number no honest noise could be, too.

    And nothing but numbers is taken from it.
    """
    one = server()
    honest = json.loads(LocalBanditClient(one.message(), **PROMISE).tell([0.5], 0.5))
    size = len(honest["release"]["value"])
    wrong = [
        {"value": [1e308] * size},
        {"value": [math.nan] * size},
        {"value": [0.0]},
        {"scale": []},
        {"event": 5},
    ]
    for change in (
        *wrong,
        {"n": 2},
        {"n": -1},
        {"records_per_person": 1000},
        {"times": 9},
        {"private": "yes"},
    ):
        altered = {**honest, "release": honest["release"] | change}
        with pytest.raises(BadInput):
            one.receive(json.dumps(altered).encode())
    with pytest.raises(BadInput, match="another promise"):
        one.receive(forged(honest, value=np.full(len(honest["release"]["value"]), 1e308)))
    for text in (b"", b"[]", b"5", b"[" * 100_000, b'{"release": {"value": 1}, "batch": 0}'):
        with pytest.raises(BadInput):
            one.receive(text)
    for batch in (0.0, False, None, "0", [0]):
        with pytest.raises(BadInput):
            one.receive(json.dumps({**honest, "batch": batch}).encode())
    assert one.receive(forged(honest, bounds=Bounds(x=[(5, 6)], y=(0, 9))))
    assert one._reports.bounds == LINE


def test_a_report_cannot_say_what_everybodys_sum_protects():
    """One that protects labels alone is refused, and none names the ledger's entry that paid for
    the sum.
    """
    one = server()
    for _ in range(one.until_release_):
        told = json.loads(LocalBanditClient(one.message(), **PROMISE).tell([0.5], 0.5))
        release = restored_release(told["release"])
        weaker = plain_release(derived(release, relation="label"))
        with pytest.raises(BadInput, match="another promise"):
            one.receive(json.dumps(told | {"release": weaker}).encode())
        one.receive(
            json.dumps(told | {"release": plain_release(derived(release, entry="00"))}).encode()
        )
    assert (one.releases_[0].relation, one.releases_[0].entry) == ("record", None)
    assert LocalBanditServer.resume(one.state()).rounds_ == one.rounds_


def test_one_report_of_a_seed_does_not_take_everybodys_promise():
    one = server()
    seeded = LocalBanditClient(one.message(), **PROMISE, random_state=1)
    with pytest.raises(BadInput, match="came from a seed"):
        one.receive(seeded.tell([0.5], 0.5))
    assert one.rounds_ == 0
    play(one, one.until_release_)
    assert one.releases_[0].private
    assert one.guarantee_.private
