"""Without what only Linux has.

A fit, its charge, a file and predictions in one process of their own, the service in another.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import reticent
from reticent.service.store import Store
from reticent.service.tokens import issue
from tests.support.serving import EXPERIMENT, Server

WITHOUT = Path(__file__).parent / "without"


@pytest.fixture(autouse=True)
def _elsewhere(monkeypatch):
    """For the processes that are started here."""
    monkeypatch.setenv("RETICENT_TEST_WITHOUT", "sched_getaffinity,fcntl")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(WITHOUT), *sys.path]))


def run(*words: str, **options) -> str:
    done = subprocess.run([sys.executable, *words], capture_output=True, text=True, **options)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_names_are_gone():
    code = """if True:
        import asyncio, os
        import reticent.privacy.ledger.locks
        print(hasattr(os, "sched_getaffinity"))
        try:
            exec("import fcntl", vars(reticent.privacy.ledger.locks))
        except ImportError:
            print("no fcntl")
    """
    assert run("-c", code).split("\n")[:2] == ["False", "no fcntl"]


IN_TURN = """
import json, sys
from reticent.cli.main import main
for words in json.loads(sys.argv[1]):
    sys.argv = ["reticent", *words]
    try:
        main()
    except SystemExit as end:
        assert not end.code, words
"""


def test_the_main_job(tmp_path):
    random = np.random.default_rng(0)
    x = random.uniform(0, 1, (300, 1))
    np.savetxt(
        tmp_path / "people.csv", np.hstack([x, np.sin(x)]), delimiter=",", header="x,y", comments=""
    )
    promise = ["--epsilon", "3", "--delta", "1e-5"]
    asked = ["--x", "x=0:1", "--y", "y=-1:1", "--epsilon", "1", "--delta", "1e-6"]
    charged = ["--ledger", "budget.db", "--dataset", "people", "--out", "m.reticent"]
    commands = [
        ["ledger", "open", "budget.db", "people", *promise],
        ["fit", "gp", "people.csv", *asked, *charged],
        ["predict", "m.reticent", "people.csv", "--out", "predictions.csv"],
    ]
    run("-c", IN_TURN, json.dumps(commands), cwd=tmp_path)
    assert len((tmp_path / "predictions.csv").read_text().splitlines()) == 301
    assert len(reticent.Ledger(tmp_path / "budget.db").history("people")) == 1


def test_the_service_and_its_lock(tmp_path):
    ledger = tmp_path / "budget.db"
    reticent.Ledger(ledger).open("patients", epsilon=1, delta=1e-6)
    server = Server(ledger).start()
    try:
        operator = issue(Store(str(ledger)), "operator", days=1)
        assert server.call("POST", "/experiments", EXPERIMENT, operator)[0] in (200, 201)
        again = [sys.executable, "-m", "reticent", "bandit", "serve", str(ledger), "--port", "0"]
        done = subprocess.run(again, capture_output=True, text=True, timeout=120)
        assert done.returncode != 0
        assert "Another server works on" in " ".join(done.stderr.split())
    finally:
        server.stop()
