"""A real server process, clients that play against it, and the count of what they were promised."""

import json
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request

import numpy as np

from reticent import Ledger
from reticent.apps.service.client import BanditClient
from reticent.apps.service.store import Store
from reticent.apps.service.tokens import issue
from reticent.errors import ReticentError

EXPERIMENT = {
    "name": "doses",
    "x": [[0, 1]],
    "y": [0, 1],
    "horizon": 400,
    "epsilon": 1,
    "delta": 1e-6,
    "dataset": "patients",
}


class Server:
    """A server process on a ledger; it can be killed and started again."""

    def __init__(self, ledger, rate=10_000):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.ledger, self.rate, self.process = str(ledger), rate, None
        self.url = f"http://127.0.0.1:{self.port}"

    def start(self):
        command = [sys.executable, "-m", "reticent", "bandit", "serve", self.ledger, "--port", str(self.port)]
        self.process = subprocess.Popen([*command, "--rate", str(self.rate)], stderr=subprocess.PIPE, text=True)
        for _ in range(600):
            if self.process.poll() is not None:
                with self.process.stderr:
                    raise AssertionError(self.process.stderr.read())
            try:
                assert self.call("GET", "/health")[0] == 200
                return self
            except OSError:
                time.sleep(0.05)
        raise AssertionError("the server did not start")

    def stop(self, sign=signal.SIGTERM):
        self.process.send_signal(sign)
        self.process.wait(timeout=60)
        self.process.stderr.close()

    def call(self, method, path, body=None, token=None, data=None):
        headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {token}"} if token else {})
        data = data if data is not None else None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                said = answer.read()
                return answer.status, json.loads(said) if said[:1] in b"{[" and said else said.decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, json.loads(error.read() or b"{}")


def play(server, token, tells, done, lock, seed):
    """A client that asks and tells until it has told so often, whatever happens to the server."""
    client, rng = BanditClient(server.url, experiment="doses", token=token), np.random.default_rng(seed)
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


def kill_in_the_middle(ledger, *, tells, clients, kills):
    """Play, kill the server so often in the middle, start it again; give what should be true afterwards, and how it went."""
    Ledger(ledger).open("patients", epsilon=1, delta=1e-6)
    server = Server(ledger).start()
    operator = issue(Store(str(ledger)), "operator", days=1)
    server.call("POST", "/experiments", EXPERIMENT | {"horizon": 10 * tells}, operator)
    token = server.call("POST", "/experiments/doses/tokens", {}, operator)[1]["token"]
    done, lock, start = [], threading.Lock(), time.monotonic()
    threads = [threading.Thread(target=play, args=(server, token, tells, done, lock, k)) for k in range(clients)]
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
        rows = execute("SELECT ask, told FROM reticent_rounds WHERE told IS NOT NULL ORDER BY told", [])
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
