"""Hosts the running experiments: one thread does all their work, and many requests share one durable transaction.

A request is answered only after the transaction that holds its ask or tell is on disk; so is the state with a release's noise,
before anything computed from that release is shown. If a transaction fails, nobody was told anything, and the bandits in
memory, which may be ahead of the disk, are thrown away and read again.

Nobody can use up the horizon for others: a person's token begins as many rounds as a person may
take part in, that of an app has a bounded number of asks open, and an ask that is not told in time
gives its round back.
"""

import json
import queue
import secrets
import threading
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from reticent.apps.service.store import Experiment, Round, Store, now
from reticent.errors import BadInput, LedgerError, ReleaseRefused, ReticentError
from reticent.models.bandit import JointBandit
from reticent.models.local_bandit import LocalBanditServer
from reticent.privacy.database import Execute

__all__ = ["Host", "Unknown", "open_quota"]

T = TypeVar("T")
_AT_ONCE = 256
_LOCAL = "The service may not see its records: use reticent.LocalClient."
_OPEN_SECONDS = 3600  # an ask that is not told by then never will be
_OPEN_SHARE = 10  # of one app's asks, at most a tenth of the horizon may wait for their tells,
_MOST_OPEN = 1000  # and at most so many


def open_quota(horizon: int | None) -> int:
    """How many asks of one app's token may be open at a time; public."""
    return _MOST_OPEN if horizon is None else min(_MOST_OPEN, max(1, horizon // _OPEN_SHARE))


class Unknown(ReticentError):
    """There is no such experiment, ask or token."""


@dataclass
class _Running:
    """An experiment in memory, and the state it went on to when its last batch was released."""

    experiment: Experiment
    bandit: Any  # JointBandit or LocalBanditServer, by the experiment's mode
    told: int
    released: tuple[str, int] | None = None  # and how many rounds were told by then


class Host:
    """Experiments in memory, backed by a store."""

    def __init__(self, store: Store, *, open_seconds: int = _OPEN_SECONDS) -> None:
        self._store, self._open_seconds = store, open_seconds
        self._running: dict[str, _Running] = {}
        self._jobs: queue.SimpleQueue[tuple[Callable[[Execute], Any], Future[Any]] | None] = queue.SimpleQueue()
        self._id = secrets.token_hex(16)
        with store.write() as execute:  # names that were taken by a server that died before it had paid for them
            for one in store.experiments(execute):
                if not one.state:
                    store.drop_experiment(execute, one.name)
            store.start_serving(execute, self._id)
        self._thread = threading.Thread(target=self._work, name="experiments", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Finish what was asked for, then stop."""
        self._jobs.put(None)
        self._thread.join()

    def submit(self, job: Callable[[Execute], T]) -> "Future[T]":
        """Do a job in the next transaction; its result comes when that is on disk. A job that raises has changed nothing."""
        future: Future[T] = Future()
        self._jobs.put((job, future))
        return future

    def _work(self) -> None:
        stopping = False
        while not stopping:
            jobs = [self._jobs.get()]
            while len(jobs) < _AT_ONCE and not self._jobs.empty():
                jobs.append(self._jobs.get())
            stopping = None in jobs
            asked = [job for job in jobs if job is not None]
            if asked:
                self._together(asked)

    def _together(self, jobs: list[tuple[Callable[[Execute], Any], "Future[Any]"]]) -> None:
        answers: list[Any] = []
        try:
            with self._store.write() as execute:
                self._store.check_serving(execute, self._id)
                for job, _ in jobs:
                    try:
                        answers.append((job(execute), None))
                    except ReticentError as error:
                        answers.append((None, error))
                for name, running in self._running.items():
                    if running.released is not None:
                        self._store.keep_state(execute, name, *running.released)
        except BaseException as error:
            self._running.clear()
            answers = [
                (None, error if isinstance(error, LedgerError) else LedgerError("The service failed inside."))
            ] * len(jobs)
        for running in self._running.values():
            running.released = None
        for (_, future), (answer, problem) in zip(jobs, answers, strict=True):
            if not future.set_running_or_notify_cancel():
                continue
            future.set_exception(problem) if problem is not None else future.set_result(answer)

    def running(self, execute: Execute, name: str) -> _Running:
        """The experiment as it is now, read from the store if it is not in memory."""
        if name not in self._running:
            found = [one for one in self._store.experiments(execute) if one.name == name and one.state]
            if not found:
                raise Unknown(f"There is no experiment {name!r}.")
            told, waiting = self._store.counts(execute, name)
            rounds, state = self._store.unreleased(execute, name), found[0].state.encode()
            if found[0].mode == "local":
                server = LocalBanditServer.resume(state)
                for one in rounds:
                    server.receive((one.reward or "").encode())
                self._running[name] = _Running(found[0], server, told)
                return self._running[name]
            bandit = JointBandit.resume(state, open_asks=waiting + len(rounds))
            for one in rounds:
                bandit.tell(json.loads(one.candidate or ""), json.loads(one.reward or ""), several=False)
            self._follow(name, bandit)
            self._running[name] = _Running(found[0], bandit, told)
        return self._running[name]

    def local(self, execute: Execute, name: str) -> _Running:
        """A local experiment as it is now."""
        return self._of_mode(execute, name, "local", "Ask and tell it.")

    def _of_mode(self, execute: Execute, name: str, mode: str, advice: str) -> _Running:
        running = self.running(execute, name)
        if running.experiment.mode != mode:
            raise BadInput(f"The experiment {name!r} is a {running.experiment.mode} one. {advice}")
        return running

    def _follow(self, name: str, bandit: JointBandit) -> None:
        """See to it that a state is written down in the transaction in which its noise was drawn."""

        def journal(state: bytes) -> None:
            running = self._running[name]
            running.released = state.decode(), running.told

        bandit.journal = journal

    def create(self, name: str, mode: str, dataset: str, make: Callable[[], JointBandit | LocalBanditServer]) -> None:
        """Take the name, pay, and begin. Whoever fails after paying has paid."""
        if not self.submit(
            lambda execute: self._store.add_experiment(execute, Experiment(name, mode, dataset, "", now()))
        ).result():
            raise BadInput(f"There is an experiment {name!r} already: choose another name.")
        try:
            made = make()
            # a trusted state charges, in a transaction of its own; that of a local experiment holds nothing but reports
            state = (made.trusted_state() if isinstance(made, JointBandit) else made.state()).decode()
        except ReticentError:
            self.submit(lambda execute: self._store.drop_experiment(execute, name)).result()
            raise
        self.submit(lambda execute: self._store.keep_state(execute, name, state, 0)).result()

    def _check_person(self, execute: Execute, name: str, token: str, bandit: JointBandit | LocalBanditServer) -> None:
        """Refuse a person more rounds than the promise counts on."""
        most = bandit.guarantee_.records_per_person
        if self._store.begun(execute, name, token) >= most:
            raise ReleaseRefused(
                f"This token is one person's, and a person takes part in at most {most} rounds here. An app that many "
                'people use needs a token of its own kind: the operator makes it with {"relay": true}.'
            )

    def ask(
        self, execute: Execute, name: str, token: str, candidates: list[list[float]], *, relay: bool = False
    ) -> tuple[str, int]:
        """Begin a round: its number, to be told with, and the candidate to try."""
        running = self._of_mode(execute, name, "joint", _LOCAL)
        bandit = running.bandit
        width = len(bandit.bounds.x)
        if any(len(one) != width for one in candidates):
            raise BadInput(f"Every candidate must be a list of {width} numbers, one for each input.")
        gone = self._store.expire(execute, name, now() - self._open_seconds)
        if gone:
            bandit.cancel(gone)
        if not relay:
            self._check_person(execute, name, token, bandit)
        elif self._store.begun(execute, name, token, open_only=True) >= (most := open_quota(bandit.horizon)):
            raise ReleaseRefused(
                f"This token has {most} asks that were not told yet, and no more may be open at a time. Tell them, or "
                f"wait: after {self._open_seconds} seconds an ask gives its round back."
            )
        choice = bandit.ask(np.array(candidates, dtype=np.float64))
        ask = secrets.token_hex(16)
        self._store.add_ask(execute, name, Round(ask, token, now(), None, json.dumps(candidates[choice]), None))
        return ask, choice

    def tell(self, execute: Execute, name: str, token: str, ask: str, reward: float) -> int:
        """End a round; telling it again changes nothing. Gives how many rounds were told."""
        running = self._of_mode(execute, name, "joint", _LOCAL)
        one = self._store.round(execute, name, ask)
        if one is None or one.token != token:
            raise Unknown("There is no such ask: it was never made, not by this token, or is too long ago.")
        if one.told is None:
            running.told += 1
            self._store.add_tell(execute, name, ask, running.told, json.dumps(reward))
            running.bandit.tell(json.loads(one.candidate or ""), reward, several=False)
        return running.told

    def report(self, execute: Execute, name: str, token: str, id_: str, text: str, *, relay: bool = False) -> bool:
        """Take in a noisy report of a local experiment, once; False if it came too late to count."""
        running = self.local(execute, name)
        one = self._store.round(execute, name, id_)
        if one is not None:
            if one.token != token:
                raise BadInput("This id is taken: choose 32 random hexadecimal digits.")
            return True
        if not relay:
            self._check_person(execute, name, token, running.bandit)
        releases = len(running.bandit.releases_)
        if not running.bandit.receive(text.encode()):
            return False
        running.told += 1
        self._store.add_ask(execute, name, Round(id_, token, now(), None, "", None))
        self._store.add_tell(execute, name, id_, running.told, text)
        if len(running.bandit.releases_) > releases:
            running.released = running.bandit.state().decode(), running.told
        return True
