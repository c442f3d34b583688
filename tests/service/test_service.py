"""The bandit service as its users meet it.

A real server process, real HTTP, killed in the middle.
"""

import json
import os
import re
import signal
import socket
import time
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings

from reticent import Bounds, JointBandit, Ledger, LocalBanditClient
from reticent.errors import BadInput, LedgerError, ReleaseRefused, ReticentError
from reticent.privacy.ledger import connection as database
from reticent.privacy.ledger.tables import TABLE
from reticent.service.client import BanditClient, Choice, LocalClient
from reticent.service.experiment_host import ExperimentHost
from reticent.service.rate_limits import RateLimiter
from reticent.service.store import Store
from reticent.service.tokens import Tokens, issue
from tests.support.serving import EXPERIMENT, Server, kill_in_the_middle


@pytest.fixture(scope="module")
def served(tmp_path_factory, starter):
    """A server with an experiment, an operator's token and a client's."""
    ledger = tmp_path_factory.mktemp("service") / "budget.db"
    Ledger(ledger).open("patients", epsilon=1, delta=1e-6)
    server = Server(ledger, starter)
    server.expired = issue(Store(str(ledger)), "client", "doses", days=1e-9)
    server.foreign = issue(Store(str(ledger)), "client", "another", days=1)
    server.start()
    operator = issue(Store(str(ledger)), "operator", days=1)
    assert server.call("POST", "/experiments", EXPERIMENT, operator) == (201, {"name": "doses"})
    _, given = server.call("POST", "/experiments/doses/tokens", {"relay": True}, operator)
    yield server, operator, given["token"]
    server.stop()
    assert server.process.poll() in (
        0,
        -signal.SIGTERM,
    )  # uvicorn ends in order, then by the signal it was sent


def test_a_round(served):
    server, operator, token = served
    client = BanditClient(server.url, experiment="doses", token=token)
    choice = client.ask([[0.2], [0.8], [0.5]])
    assert choice.index in (0, 1, 2)
    client.tell(choice, 0.4)
    overview = server.call("GET", "/experiments", token=operator)[1][0]
    assert (overview["rounds"], overview["horizon"], overview["dataset"]) == (1, 400, "patients")
    assert overview["epsilon"] == pytest.approx(1, abs=1e-6)
    assert overview["left"] < 1e-3
    client.tell(choice, 0.4)  # the answer was lost: told again, counted once
    assert server.call("GET", "/experiments", token=operator)[1][0]["rounds"] == 1
    _, estimate = server.call("GET", "/experiments/doses/estimate", token=operator)
    assert len(estimate["inputs"]) == 1
    assert min(estimate["inputs"][0]["sd"]) > 0


def test_who_may_do_what(served, tmp_path):
    server, operator, token = served
    round_ = {"candidates": [[0.5]]}
    wrong = token[:-1] + ("0" if token[-1] != "0" else "1")
    for bad in (None, wrong, "rt_", "nonsense", server.expired, operator.upper()):
        assert server.call("POST", "/experiments/doses/ask", round_, bad)[0] == 401
    for bad in (server.foreign, operator):
        assert server.call("POST", "/experiments/doses/ask", round_, bad)[0] == 403
    for path in ("/experiments", "/experiments/doses/estimate"):
        assert server.call("GET", path, token=token)[0] == 403
    assert server.call("POST", "/experiments", EXPERIMENT, token)[0] == 403
    # what the wrong ones get does not tell whether the experiment exists
    assert server.call("POST", "/experiments/doses/ask", round_, server.foreign) == server.call(
        "POST", "/experiments/none/ask", round_, token
    )


def test_a_local_experiment_sees_noisy_reports_only(served):
    """Over HTTP, through a restart.

    Reports count once, records never come, and asks and tells of it are refused.
    """
    server, operator, _ = served
    local = {key: EXPERIMENT[key] for key in ("x", "y", "epsilon", "delta")} | {
        "name": "local",
        "mode": "local",
    }
    assert server.call("POST", "/experiments", local, operator)[0] == 422  # a horizon is missing
    assert (
        server.call(
            "POST", "/experiments", local | {"horizon": 9, "dataset": "patients"}, operator
        )[0]
        == 422
    )
    assert server.call("POST", "/experiments", local | {"horizon": 40}, operator)[0] == 201
    token = server.call("POST", "/experiments/local/tokens", {"relay": True}, operator)[1]["token"]
    client = LocalClient(server.url, experiment="local", token=token, epsilon=1, delta=1e-6)
    for _ in range(3):
        round_ = client.begin()
        chosen = round_.ask([[0.123456789], [0.9]])
        assert round_.tell([[0.123456789], [0.9]][chosen], 0.987654321)
    with pytest.raises(ReleaseRefused, match="has told"):
        round_.tell([0.9], 1.0)
    assert round_.send()  # the same report, which counts once
    with pytest.raises(BadInput, match="tell first"):
        client.begin().send()
    deep = b'{"id": "%s", "report": {"release": %s1%s}}' % (b"b" * 32, b"[" * 900, b"]" * 900)
    odd = [
        {},
        {"release": 5, "batch": 0},
        {"release": {"event": 5}, "batch": {}},
        {"release": [], "batch": None},
    ]
    for body in (deep, *(json.dumps({"id": "b" * 32, "report": one}).encode() for one in odd)):
        assert server.call("POST", "/experiments/local/report", token=token, data=body)[0] in (
            400,
            422,
        )
    weaker = LocalClient(server.url, experiment="local", token=token, epsilon=2, delta=1e-6)
    with pytest.raises(ReticentError, match="another promise"):
        weaker.begin().tell([0.9], 1.0)
    body = {"id": "a" * 32, "report": _report(server, token)}
    for _ in range(2):  # the answer was lost
        assert server.call("POST", "/experiments/local/report", body, token) == (
            200,
            {"counted": True},
        )
    mine = server.call("POST", "/experiments/local/tokens", {}, operator)[1]["token"]
    person = LocalClient(server.url, experiment="local", token=mine, epsilon=1, delta=1e-6)
    assert person.begin().tell([0.9], 1.0)
    with pytest.raises(ReticentError, match="takes part in at most 1 rounds"):
        person.begin().tell([0.9], 1.0)
    for path, wrong in (("ask", {"candidates": [[0.5]]}), ("tell", {"ask": "0" * 32, "reward": 1})):
        status, said = server.call("POST", f"/experiments/local/{path}", wrong, token)
        assert (status, "may not see its records" in said["detail"]) == (422, True)
    server.stop(signal.SIGKILL)
    server.start()
    assert server.call("POST", "/experiments/local/report", body, token) == (200, {"counted": True})
    overview = {one["name"]: one for one in server.call("GET", "/experiments", token=operator)[1]}[
        "local"
    ]
    assert (overview["mode"], overview["rounds"], overview["open"], overview["dataset"]) == (
        "local",
        5,
        0,
        None,
    )
    assert server.call("GET", "/experiments/local/estimate", token=operator)[0] == 200
    kept = b"".join(one.read_bytes() for one in Path(server.ledger).parent.iterdir())
    assert b"0.123456" not in kept
    assert b"0.98765" not in kept


def _report(server, token):
    message = json.dumps(server.call("GET", "/experiments/local/message", token=token)[1]).encode()
    return json.loads(LocalBanditClient(message, epsilon=1, delta=1e-6).tell([0.9], 1.0))


def test_nothing_is_understood_before_the_token(served):
    """What is no JSON at all, for an experiment that may not exist: the token alone decides."""
    server, operator, token = served
    for path in ("/experiments/doses/ask", "/experiments/none/tell", "/experiments/doses/report"):
        assert server.call("POST", path, token=None, data=b"{")[0] == 401
        assert server.call("POST", path, token=server.foreign, data=b"{")[0] == 403
    assert server.call("POST", "/experiments", token=token, data=b"{")[0] == 403
    assert server.call("POST", "/experiments", token=operator, data=b"{")[0] == 422


def test_no_way_of_writing_a_path_goes_round_the_gate(served):
    """The router takes a line end after a path for its end.

    And what the gate does not know, it refuses.
    """
    server, operator, token = served
    for path in ("/experiments%0A", "//experiments", "/Experiments", "/none", "/health%0A"):
        assert server.call("GET", path)[0] == 401, path
        assert server.call("GET", path, token=token)[0] == 403, path
    assert server.call("POST", "/experiments%0A", EXPERIMENT | {"name": "more"})[0] == 401
    ask = {"candidates": [[0.5]]}
    assert server.call("POST", "/experiments/doses/ask%0A", ask)[0] == 401
    # by the handler: it is for clients
    assert server.call("POST", "/experiments/doses/ask%0A", ask, operator)[0] == 403


def test_a_token_can_be_ended(served):
    server, operator, _ = served
    _, given = server.call("POST", "/experiments/doses/tokens", {"days": 1}, operator)
    token = given["token"]
    assert server.call("POST", "/experiments/doses/ask", {"candidates": [[0.5]]}, token)[0] == 200
    assert (
        server.call("DELETE", f"/experiments/doses/tokens/{token.split('_')[1]}", token=operator)[0]
        == 204
    )
    assert server.call("POST", "/experiments/doses/ask", {"candidates": [[0.5]]}, token)[0] == 401
    assert server.call("DELETE", "/experiments/doses/tokens/0", token=operator)[0] == 404


def test_bad_requests_say_what_is_wrong(served):
    server, operator, token = served
    ask = "/experiments/doses/ask"
    tell = "/experiments/doses/tell"
    cases = [
        (ask, {"candidates": []}),
        (ask, {"candidates": [[]]}),
        (ask, {"candidates": [[0.1, 0.2]]}),
        (ask, {"candidates": [[0.1], [0.1, 0.2]]}),
        (ask, {"candidates": [["a"]]}),
        (ask, {}),
        (tell, {"ask": "0" * 31, "reward": 1}),
        (tell, {"ask": "0" * 32}),
        (tell, {"ask": "0" * 32, "reward": 1, "more": 1}),
    ]
    for path, body in cases:
        status, said = server.call("POST", path, body, token)
        assert status == 422, (path, body, said)
        assert said["detail"]
    assert server.call("POST", tell, {"ask": "0" * 32, "reward": 1}, token)[0] == 404
    assert server.call("POST", ask, token=token, data=b" " * 1_000_001)[0] == 413
    assert server.call("POST", ask, token=token, data=b"{")[0] == 422
    for change in (
        {"y": [1, 0]},
        {"x": []},
        {"epsilon": -1},
        {"delta": 1},
        {"horizon": 0},
        {"name": "a/b"},
        {"y": [0, 0]},
    ):
        assert (
            server.call("POST", "/experiments", EXPERIMENT | {"name": "bad"} | change, operator)[0]
            == 422
        ), change
    assert server.call("POST", "/experiments", EXPERIMENT, operator)[0] == 422  # the name is taken
    status, said = server.call("POST", "/experiments", EXPERIMENT | {"name": "more"}, operator)
    assert status == 402
    assert "budget" in said["detail"].lower() or "cap" in said["detail"].lower()
    assert {one["name"] for one in server.call("GET", "/experiments", token=operator)[1]} <= {
        "doses",
        "local",
    }


def test_what_lies_outside_the_bounds_is_moved_not_refused(served):
    server, _, token = served
    status, given = server.call(
        "POST", "/experiments/doses/ask", {"candidates": [[7.0], [-3.0]]}, token
    )
    assert status == 200
    body = json.dumps({"ask": given["ask"], "reward": 1e300}).encode()
    assert server.call("POST", "/experiments/doses/tell", token=token, data=body) == (
        200,
        {"counted": True},
    )
    _, given = server.call("POST", "/experiments/doses/ask", {"candidates": [[0.5]]}, token)
    body = b'{"ask": "%s", "reward": NaN}' % given["ask"].encode()
    assert server.call("POST", "/experiments/doses/tell", token=token, data=body) == (
        200,
        {"counted": True},
    )


def test_open_pages_tell_nothing_of_experiments(served):
    server, _, _ = served
    assert server.call("GET", "/health") == (200, {"status": "well"})
    _, metrics = server.call("GET", "/metrics")
    assert set(re.findall(r"^(\w+) ", metrics, re.M)) == {
        "reticent_uptime_seconds",
        "reticent_requests_total",
    }
    _, described = server.call("GET", "/openapi.json")
    assert "/experiments/{name}/tell" in described["paths"]
    with urllib.request.urlopen(server.url + "/") as page:
        assert "default-src 'none'" in page.headers["Content-Security-Policy"]
        assert b"Operator token" in page.read()


def test_a_second_server_is_refused(served, starter):
    server, *_ = served
    with pytest.raises(AssertionError, match="Another server works on"):
        Server(server.ledger, starter).start()


def test_nothing_is_lost_or_counted_twice_when_the_server_is_killed(tmp_path, starter):
    found, _ = kill_in_the_middle(
        tmp_path / "budget.db", tells=150, clients=8, kills=2, starter=starter
    )
    assert found == dict.fromkeys(found, True)


def test_requests_are_limited(tmp_path, starter):
    ledger = tmp_path / "budget.db"
    Ledger(ledger).open("patients", epsilon=1, delta=1e-6)
    server = Server(
        ledger, starter, rate=1
    ).start()  # two at once, then one a second, however slow the machine is
    operator = issue(Store(str(ledger)), "operator", days=1)
    found = [server.call("GET", "/experiments", token=operator)[0] for _ in range(15)]
    assert found[0] == 200
    assert 429 in found
    found = [server.call("GET", "/experiments", token="wrong")[0] for _ in range(40)]
    assert set(found) == {401, 429}
    server.stop()


def test_buckets_refill(monkeypatch):
    at = [0.0]
    monkeypatch.setattr("reticent.service.rate_limits.time.monotonic", lambda: at[0])
    buckets = RateLimiter(rate=2.0, burst=2.0)
    assert [buckets.take("a") for _ in range(2)] == [0, 0]
    assert buckets.take("a") == 0.5
    assert buckets.take("b") == 0
    at[0] = 0.5
    assert buckets.take("a") == 0


def test_only_a_hash_of_a_token_is_kept(tmp_path):
    ledger = tmp_path / "budget.db"
    Ledger(ledger).open("patients", epsilon=1, delta=1e-6)
    store = Store(str(ledger))
    token = issue(store, "operator", days=1)
    assert token.split("_")[2].encode() not in ledger.read_bytes() + Path(store.path).read_bytes()
    assert Tokens(store).find(token).role == "operator"
    assert Tokens(store).find(token + "0") is None


def test_tokens_of_another_process_are_seen_after_two_seconds(tmp_path, monkeypatch):
    at = [100.0]
    monkeypatch.setattr("reticent.service.tokens.time.monotonic", lambda: at[0])
    Ledger(tmp_path / "budget.db").open("patients", epsilon=1, delta=1e-6)
    store = Store(str(tmp_path / "budget.db"))
    tokens = Tokens(store)
    assert tokens.find("rt_") is None
    token = issue(store, "operator", days=1)
    assert tokens.find(token) is None
    at[0] += 2.1
    assert tokens.find(token).role == "operator"


def test_a_client_says_why_it_fails(monkeypatch):
    with pytest.raises(BadInput, match="url must be"):
        BanditClient("file:///etc/passwd", experiment="a", token="b")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        client = BanditClient(
            f"http://127.0.0.1:{free.getsockname()[1]}", experiment="a", token="b", timeout=0.1
        )
        monkeypatch.setattr("reticent.service.client.time.sleep", lambda seconds: None)
        with pytest.raises(ReticentError, match="does not answer"):
            client.tell(Choice(0, "0" * 32), 1.0)


def test_a_service_needs_a_ledger(tmp_path):
    with pytest.raises(LedgerError, match="There is no ledger"):
        Store(str(tmp_path / "none.db"))
    assert not os.listdir(tmp_path)


def test_no_request_makes_the_service_fail_inside(served):
    """Schemathesis makes up requests from the service's own description."""
    server, operator, token = served
    for result in schemathesis.openapi.from_dict(
        server.call("GET", "/openapi.json")[1]
    ).get_all_operations():

        @settings(
            max_examples=10,
            deadline=None,
            database=None,
            suppress_health_check=list(HealthCheck),
            derandomize=True,
        )
        @given(case=result.ok().as_strategy())
        def check(case):
            id_ = urllib.parse.quote(str((case.path_parameters or {}).get("id", "0")), safe="")
            path = case.path.replace("{name}", "doses").replace("{id}", id_)
            data = (
                json.dumps(case.body).encode()
                if isinstance(case.body, (dict, list, str, int, float))
                else b""
            )
            for one in (operator, token):
                status, said = server.call(case.method, path, token=one, data=data or None)
                assert status < 500, (case.method, path, data, said)

        check()


def test_tells_after_a_release_in_the_same_transaction_are_kept(tmp_path):
    """The state is that of the release.

    What was told after it must not be blanked with what is in it.
    """
    ledger = tmp_path / "budget.db"
    Ledger(ledger).open("patients", epsilon=1, delta=1e-6)
    store = Store(str(ledger))
    host = ExperimentHost(store)
    params = {
        "bounds": Bounds(x=[(0, 1)], y=(0, 1)),
        "horizon": 1000,
        "epsilon": 1.0,
        "delta": 1e-6,
    }
    host.create("doses", "joint", "", lambda: JointBandit(**params))
    begin = lambda execute: host.ask(execute, "doses", "t", [[0.5]], relay=True)  # noqa: E731
    asks = [host.submit(begin).result()[0] for _ in range(60)]
    size = host.submit(
        lambda execute: host.running(execute, "doses").bandit.until_release_
    ).result()

    def tells(execute):
        return [host.tell(execute, "doses", "t", ask, 0.5) for ask in asks[: size + 5]]

    assert host.submit(tells).result()[-1] == size + 5
    host.close()
    again = ExperimentHost(store)
    bandit = again.submit(lambda execute: again.running(execute, "doses").bandit).result()
    assert (bandit.rounds_, len(bandit.releases_)) == (size + 5, 1)
    taken = pytest.raises(LedgerError, match="Another server has taken over")
    with taken, store.write() as execute:  # the first host, had it gone on
        store.check_serving(execute, host._id)
    again.close()


def test_a_cancelled_request_stops_nothing(tmp_path):
    ledger = tmp_path / "budget.db"
    Ledger(ledger).open("patients", epsilon=1, delta=1e-6)
    host = ExperimentHost(Store(str(ledger)))
    host.submit(lambda execute: time.sleep(0.2))
    host.submit(lambda execute: None).cancel()
    assert host.submit(lambda execute: 7).result(timeout=10) == 7
    host.close()


def test_what_was_given_is_neither_answered_nor_logged(served):
    server, _, token = served
    body = b'{"ask": "0", "reward": 0.123456, "patient": [61.7, NaN]}'
    status, said = server.call("POST", "/experiments/doses/tell", token=token, data=body)
    assert status == 422
    assert "61.7" not in json.dumps(said)
    assert "0.123456" not in json.dumps(said)


def test_what_is_secret_is_in_a_file_that_only_its_owner_reads(served):
    """Of a round that was told: nothing in the ledger, which is public.

    Nothing in any file that others may read.
    """
    server, _, token = served
    body = {"candidates": [[0.1357913579], [0.1357913579]]}
    _, given = server.call("POST", "/experiments/doses/ask", body, token)
    body = {"ask": given["ask"], "reward": 0.2468024680}
    assert server.call("POST", "/experiments/doses/tell", body, token)[0] == 200
    assert b"0.13579" in Path(f"{server.ledger}.service").read_bytes()
    for one in Path(server.ledger).parent.iterdir():
        private = os.stat(one).st_mode & 0o077 == 0
        kept = one.read_bytes()
        assert private or not (
            b"0.13579" in kept or b"0.24680" in kept or given["ask"].encode() in kept
        ), one
    assert os.stat(f"{server.ledger}.service").st_mode & 0o777 == 0o600
    with database.transaction(server.ledger) as execute:
        names = {
            name for (name,) in execute("SELECT name FROM sqlite_master WHERE type = 'table'", [])
        }
    assert names == {TABLE}


def test_one_person_cannot_use_up_the_horizon(served):
    server, operator, relay = served
    mine = server.call("POST", "/experiments/doses/tokens", {"days": 1}, operator)[1]["token"]
    found = [
        server.call("POST", "/experiments/doses/ask", {"candidates": [[0.5]]}, mine)
        for _ in range(3)
    ]
    assert [status for status, _ in found] == [200, 409, 409]
    assert "relay" in found[1][1]["detail"]
    body = {"ask": found[0][1]["ask"], "reward": 1}
    assert server.call("POST", "/experiments/doses/tell", body, mine)[0] == 200
    assert server.call("POST", "/experiments/doses/ask", {"candidates": [[0.5]]}, mine)[0] == 409
    greedy = server.call("POST", "/experiments/doses/tokens", {"relay": True}, operator)[1]["token"]
    found = [
        server.call("POST", "/experiments/doses/ask", {"candidates": [[0.5]]}, greedy)[0]
        for _ in range(42)
    ]
    assert found == [200] * 40 + [409] * 2
    assert server.call("POST", "/experiments/doses/ask", {"candidates": [[0.5]]}, relay)[0] == 200
    overview = next(
        one
        for one in server.call("GET", "/experiments", token=operator)[1]
        if one["name"] == "doses"
    )
    assert (overview["rounds_per_person"], overview["open_per_relay"]) == (1, 40)


def test_whoever_makes_up_addresses_has_no_more_wrong_tokens(served):
    """Last of the tests that need this server's patience.

    It has answered enough wrong tokens by then.
    """
    server, *_ = served
    found = []
    for number in range(40):
        forwarded = {"Authorization": "Bearer rt_x", "X-Forwarded-For": f"10.0.{number}.1"}
        request = urllib.request.Request(f"{server.url}/experiments", headers=forwarded)
        try:
            urllib.request.urlopen(request, timeout=30)
        except urllib.error.HTTPError as error:
            with error:
                found.append(error.code)
    assert found.count(429) >= 10
    assert set(found) == {401, 429}


def test_another_name_of_the_same_file_is_the_same_database(served, tmp_path):
    server, *_ = served
    (tmp_path / "link.db").symlink_to(server.ledger)
    with (
        pytest.raises(LedgerError, match="Another server works on"),
        Store(str(tmp_path / "link.db")).alone(),
    ):
        pass
