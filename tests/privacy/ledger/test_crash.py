"""Races and crashes: what a ledger is for."""

import os
import random
import signal
import time
from collections import Counter
from pathlib import Path

import pytest

from reticent.privacy.accounting.composition import calibrate
from reticent.privacy.accounting.events import Gaussian
from reticent.privacy.ledger.ledger import Ledger
from tests.ledger_stress import stress
from tests.support.faults import kill_everywhere


def test_sixteen_processes_are_granted_exactly_what_the_cap_allows(url, spenders, tmp_path):
    allowed = 23
    processes = 16
    tries = 3
    ledger = Ledger(url)
    ledger.open("people", 1.0, 1e-6)
    event = Gaussian(noise_multiplier=calibrate(1.0, 1e-6, releases=allowed))
    log = tmp_path / "log"
    for i in range(processes):
        spenders.start(
            url=url,
            dataset="people",
            event=event.to_json(),
            log=str(log),
            name=f"process {i}",
            tries=tries,
        )
    granted = spenders.wait()
    assert len(granted) == processes
    assert sum(granted) == allowed
    history = ledger.history("people")
    read = [
        line.removeprefix("read ")
        for line in log.read_text().splitlines()
        if line.startswith("read")
    ]
    assert sorted(read) == sorted(entry.what for entry in history)
    assert len(history) == allowed
    assert [entry.number for entry in history] == list(range(2, allowed + 2))
    assert 0.999999 < ledger.spent("people") <= 1.0
    ledger.verify()


@pytest.mark.parametrize("racing", ["same cap", "different caps"])
def test_processes_that_open_at_once_agree_on_one_account(url, racing, spenders, tmp_path):
    for i in range(8):
        spenders.start(
            url=url, dataset="people", epsilon=1.0 + i * (racing == "different caps"), delta=1e-6
        )
    codes = Counter(spenders.wait())
    assert codes == ({0: 8} if racing == "same cap" else {0: 1, 1: 7})
    assert len(Ledger(url).datasets()) == 1
    Ledger(url).verify()
    assert not list(tmp_path.glob("*.new*"))


def notes(log, marker):
    """What a spender has noted so far; a line that the kill cut short does not count."""
    lines = log.read_text().splitlines(keepends=True) if log.exists() else []
    return {
        line.removeprefix(marker).strip()
        for line in lines
        if line.startswith(marker) and line.endswith("\n")
    }


def crash(url, spenders, folder, *, kills, longest):
    """Kill a spender ``kills`` times at random points, check the books each time.

    Return where it was hit.
    """
    ledger = Ledger(url)
    ledger.open("people", 1.0, 1e-6)
    event = Gaussian(noise_multiplier=1e6).to_json()
    charged = set()
    read = set()
    where = Counter()
    head = ledger.verify()
    for run in range(kills):
        log = folder / f"run {run}"
        job = {"url": url, "dataset": "people", "event": event, "log": str(log), "name": log.name}
        child = spenders.start(**job, tries=10**6)
        first = random.choice(
            [0, 0, 1, 2]
        )  # let it finish so many charges, then strike within the next
        while len(notes(log, "read ")) < first:
            time.sleep(0.001)
        time.sleep(random.uniform(0, longest))
        os.kill(child, signal.SIGKILL)
        assert spenders.wait() == [-signal.SIGKILL]
        where["inside a write"] += Path(f"{url}-journal").exists()

        charged |= notes(log, "charged ")
        read |= notes(log, "read ")
        head = ledger.verify(expected_head=head)
        on_ledger = {entry.what for entry in ledger.history("people")}
        assert read <= on_ledger, "read without a charge"
        assert charged <= on_ledger, "a lost charge"
        under_way = Counter(what.rsplit(" ", 1)[0] for what in on_ledger - charged)
        assert set(under_way.values()) <= {1}, "more than the charge under way"
    where["charged, not noted"] = len(on_ledger - charged)
    where["noted, not read"] = len(charged - read)
    where["read"] = len(read)
    return where


def test_killed_two_hundred_times_on_sqlite(spenders, tmp_path):
    where = crash(str(tmp_path / "budget.db"), spenders, tmp_path, kills=200, longest=0.03)
    assert where["inside a write"] > 0, "no kill has met the moment that matters"
    assert where["read"] > 50


def test_killed_forty_times_on_postgresql(postgres_url, spenders, tmp_path):
    where = crash(postgres_url, spenders, tmp_path, kills=40, longest=0.06)
    assert where["read"] > 5


def test_killed_at_system_calls_of_a_charge(url):
    """At some of them; `python -m tests.ledger_stress` does it at all."""
    faults = kill_everywhere(url, first=random.randint(1, 30), every=30)
    assert faults.lost == 0
    assert faults.killed > 5


def test_readers_backups_links_containers_and_kills_at_once(url, tmp_path):
    """A little of it; `python -m tests.ledger_stress` does it with 16 processes and ten thousand
    charges.
    """
    (tmp_path / "ledger").mkdir()
    place = url if "://" in url else str(tmp_path / "ledger" / "budget.db")
    found = stress(place, tmp_path, processes=4, charges=60, kills=5)
    for wrong in (
        "lost",
        "acknowledged twice",
        "through a second name",
        "recorded for no reason",
        "failed",
    ):
        assert found[wrong] == 0, found
    assert found["killed"] >= 1
    assert found["recorded"] >= 60
