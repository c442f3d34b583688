"""A real server process, clients that play against it, and the count of what they were promised."""

import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path

import numpy as np

from reticent import Ledger
from reticent.errors import ReticentError
from reticent.service.client import BanditClient
from reticent.service.store import Store
from reticent.service.tokens import issue

EXPERIMENT = {
    "name": "doses",
    "x": [[0, 1]],
    "y": [0, 1],
    "horizon": 400,
    "epsilon": 1,
    "delta": 1e-6,
    "dataset": "patients",
}


class Started:
    """A process that runs a command, forked from one that has imported everything (starter.py), or
    one of its own.
    """

    def __init__(self, words, out, err, starter=None, **env):
        self._starter = starter
        self._code = None
        job = {"words": [str(word) for word in words], "out": str(out), "err": str(err), "env": env}
        if starter is not None:
            self.id = self._ask(job)
            return
        with open(out, "ab") as stdout, open(err, "ab") as stderr:
            command = [sys.executable, "-m", "reticent", *job["words"]]
            self._process = subprocess.Popen(
                command, stdout=stdout, stderr=stderr, env={**os.environ, **env}
            )
        self.id = self._process.pid

    def _ask(self, what):
        self._starter.stdin.write(json.dumps(what) + "\n")
        self._starter.stdin.flush()
        return json.loads(self._starter.stdout.readline())

    def poll(self):
        """The exit code (negative: ended by that signal), or None while it runs."""
        if self._code is None:
            self._code = self._ask(self.id) if self._starter is not None else self._process.poll()
        return self._code

    def wait(self, seconds=60):
        """The exit code, when it has ended."""
        end = time.monotonic() + seconds
        while self.poll() is None:
            assert time.monotonic() < end, "it does not end"
            time.sleep(0.005)
        return self._code


class Server:
    """A server process on a ledger; it can be killed and started again."""

    def __init__(self, ledger, starter=None, rate=10_000):
        self.ledger = str(ledger)
        self.rate = rate
        self.process = None
        self._starter = starter
        self.url = None
        self._log = f"{ledger}-{secrets.token_hex(4)}.log"

    def start(self):
        first = self.url is None
        for _ in range(5 if first else 1):  # another process may take the port that was just free
            if first:
                with socket.socket() as free:
                    free.bind(("127.0.0.1", 0))
                    port = free.getsockname()[1]
                self.url = f"http://127.0.0.1:{port}"
            words = [
                "bandit",
                "serve",
                self.ledger,
                "--port",
                self.url.rpartition(":")[2],
                "--rate",
                self.rate,
            ]
            with open(self._log, "wb"):
                self.process = Started(words, os.devnull, self._log, self._starter)
            if self._answers():
                return self
            said = Path(self._log).read_text()
            if "address already in use" not in said:
                break
        raise AssertionError(said)

    def _answers(self):
        end = time.monotonic() + 120
        while self.process.poll() is None:
            try:
                assert self.call("GET", "/health")[0] == 200
                return self.process.poll() is None
            except OSError:
                assert time.monotonic() < end, "the server did not start"
                time.sleep(0.02)
        return False

    def stop(self, sign=signal.SIGTERM):
        os.kill(self.process.id, sign)
        self.process.wait()

    def call(self, method, path, body=None, token=None, data=None):
        headers = {"Content-Type": "application/json"} | (
            {"Authorization": f"Bearer {token}"} if token else {}
        )
        data = data if data is not None else None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                said = answer.read()
                return answer.status, json.loads(said) if said[
                    :1
                ] in b"{[" and said else said.decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, json.loads(error.read() or b"{}")


def play(server, token, tells, done, lock, seed):
    """A client that asks and tells until it has told so often, whatever happens to the server."""
    client = BanditClient(server.url, experiment="doses", token=token)
    rng = np.random.default_rng(seed)
    while True:
        with lock:
            if len(done) >= tells:
                return
            done.append(None)
            place = len(done) - 1
        while done[place] is None:
            try:
                candidates = rng.uniform(size=(5, 1)).tolist()
                choice = client.ask(candidates)
                client.tell(choice, float(candidates[choice.index][0]))
                done[place] = choice.ask
            except ReticentError:
                time.sleep(0.05)


def kill_in_the_middle(ledger, *, tells, clients, kills, starter=None):
    """Play, kill the server so often in the middle, start it again.

    Give what should be true afterwards, and how it went.
    """
    Ledger(ledger).open("patients", epsilon=1, delta=1e-6)
    server = Server(ledger, starter).start()
    operator = issue(Store(str(ledger)), "operator", days=1)
    server.call("POST", "/experiments", EXPERIMENT | {"horizon": 10 * tells}, operator)
    token = server.call("POST", "/experiments/doses/tokens", {"relay": True}, operator)[1]["token"]
    done = []
    lock = threading.Lock()
    start = time.monotonic()
    threads = [
        threading.Thread(target=play, args=(server, token, tells, done, lock, k))
        for k in range(clients)
    ]
    for thread in threads:
        thread.start()
    for kill in range(1, kills + 1):
        while sum(one is not None for one in done) < kill * tells // (kills + 1):
            time.sleep(0.01)
        server.stop(signal.SIGKILL)
        server.start()
    for thread in threads:
        thread.join()
    seconds = time.monotonic() - start
    _, [overview] = server.call("GET", "/experiments", token=operator)
    before = server.call("GET", "/experiments/doses/estimate", token=operator)[1]
    server.stop()
    with Store(str(ledger)).read() as execute:
        rows = execute(
            "SELECT ask, told FROM reticent_rounds WHERE told IS NOT NULL ORDER BY told", []
        )
        [(kept,)] = execute("SELECT COUNT(*) FROM reticent_rounds WHERE reward IS NOT NULL", [])
    server.start()
    after = server.call("GET", "/experiments/doses/estimate", token=operator)[1]
    server.stop()
    found = {
        "no acknowledged tell is lost": set(done) <= {ask for ask, _ in rows},
        "none is counted twice": [told for _, told in rows] == list(range(1, len(rows) + 1))
        and overview["rounds"] == len(rows),
        "no noise is drawn again": before == after,
        "paid once": len(Ledger(ledger).history("patients")) == 1,
        "released records are blanked": kept < len(rows),
    }
    return found, {"rounds": len(rows), "releases": overview["releases"], "seconds": seconds}
