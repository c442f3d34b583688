"""Without what only Linux has.

A fit, its charge, a file, predictions, and the service, each in a process of its own.
"""

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


def test_the_main_job(tmp_path):
    random = np.random.default_rng(0)
    x = random.uniform(0, 1, (300, 1))
    np.savetxt(
        tmp_path / "people.csv", np.hstack([x, np.sin(x)]), delimiter=",", header="x,y", comments=""
    )
    words = ["-m", "reticent"]
    run(
        *words,
        "ledger",
        "open",
        "budget.db",
        "people",
        "--epsilon",
        "3",
        "--delta",
        "1e-5",
        cwd=tmp_path,
    )
    asked = ["--x", "x=0:1", "--y", "y=-1:1", "--epsilon", "1", "--delta", "1e-6"]
    charged = ["--ledger", "budget.db", "--dataset", "people", "--out", "m.reticent"]
    run(*words, "fit", "gp", "people.csv", *asked, *charged, cwd=tmp_path)
    run(*words, "predict", "m.reticent", "people.csv", "--out", "predictions.csv", cwd=tmp_path)
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
