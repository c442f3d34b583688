"""The bandit service: what its files tell, and what one client can do to all others."""

import http.client
import socket
import threading
import time
from pathlib import Path
from unittest import mock

import uvicorn
from typer.testing import CliRunner

import reticent
from reticent.cli.main import app
from reticent.service.experiment_host import ExperimentHost
from reticent.service.store import Store
from tests.attacks.harness import Outcome, attack

_BOUNDS = reticent.Bounds(x=[(0, 1)], y=(0, 1))
_HORIZON = 60


def _ledger():
    reticent.Ledger("budget.db").open("people", epsilon=10, delta=1e-4)
    return "budget.db"


def _host(url):
    host = ExperimentHost(Store(url))
    promise = {"epsilon": 1.0, "delta": 1e-5, "ledger": url, "dataset": "people"}
    host.create(
        "doses",
        "joint",
        "people",
        lambda: reticent.JointBandit(bounds=_BOUNDS, horizon=_HORIZON, **promise),
    )
    return host


def _ask(host, token, candidates):
    return host.submit(lambda execute: host.ask(execute, "doses", token, candidates)).result()


@attack("7", "Read people's rounds, exact sums and noise in the ledger, which is public")
def rounds_in_the_ledger() -> Outcome:
    url = _ledger()
    host = _host(url)
    ask, _ = _ask(host, "A", [[0.1234567], [0.1234567]])
    host.submit(lambda execute: host.tell(execute, "doses", "A", ask, 0.7654321)).result()
    host.close()
    content = Path(url).read_bytes()
    found = {
        "a candidate": b"0.1234567",
        "a reward": b"0.7654321",
        "a state with exact sums": b'"stream"',
    }
    seen = [name for name, text in found.items() if text in content]
    return Outcome(bool(seen), f"the ledger's file holds {', '.join(seen) or 'none of them'}")


@attack("7", "One client's asks that are never told use up the horizon for everybody")
def asks_never_told() -> Outcome:
    host = _host(_ledger())
    mine = 0
    theirs = 0
    for token in ["A"] * _HORIZON + [f"other {number}" for number in range(10)]:
        try:
            _ask(host, token, [[0.5]])
        except reticent.ReticentError:
            continue
        mine += token == "A"
        theirs += token != "A"
    host.close()
    figure = f"one client begins {mine} of {_HORIZON} rounds; of ten others {theirs} are answered"
    return Outcome(theirs < 10, figure)


@attack("7", "A made-up X-Forwarded-For evades the limit on wrong tokens")
def forwarded_for() -> Outcome:
    served = {}
    with mock.patch("uvicorn.run", lambda app, **how: served.update(how, app=app)):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        CliRunner().invoke(app, ["bandit", "serve", _ledger(), "--port", str(port)])
    server = uvicorn.Server(uvicorn.Config(**served))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.02)
    refused = 0
    tries = 60
    for number in range(tries):
        line = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        line.request(
            "GET",
            "/experiments",
            headers={"Authorization": "Bearer x", "X-Forwarded-For": f"10.0.{number}.1"},
        )
        refused += line.getresponse().status == 429
        line.close()
    server.should_exit = True
    thread.join()
    return Outcome(
        refused == 0, f"of {tries} wrong tokens at once, {refused} are stopped by the limit of 20"
    )


@attack("7", "One local report of a seed marks everybody's release as not private")
def seeded_report() -> Outcome:
    promise = {"epsilon": 50.0, "delta": 0.1}
    server = reticent.LocalBanditServer(bounds=_BOUNDS, horizon=150, **promise)
    for number in range(30):
        seed = {"random_state": 1} if number == 0 else {}
        client = reticent.LocalBanditClient(server.message(), **promise, **seed)
        try:
            server.receive(client.tell([0.5], 0.5))
        except reticent.BadInput:
            continue
    washed = not server.guarantee_.private
    figure = (
        f"{server.rounds_} of 30 reports count, and their release is marked as "
        f"{'not ' * washed}private"
    )
    return Outcome(washed, figure)
