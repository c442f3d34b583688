"""Host of the running experiments.

One thread does all their work, and many requests share one durable transaction. A request is
answered only after the transaction that holds its ask or tell is on disk; so is the state with a
release's noise, before anything computed from that release is shown. If a transaction fails, nobody
was told anything, and the bandits in memory, which may be ahead of the disk, are thrown away and
read again.

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

from reticent.errors import BadInput, LedgerError, ReleaseRefused, ReticentError
from reticent.models.bandits.joint import JointBandit
from reticent.models.bandits.local import LocalBanditServer
from reticent.privacy.ledger.tables import Execute
from reticent.service.store import Experiment, Round, Store, now

__all__ = ["ExperimentHost", "NotFound", "open_quota"]

T = TypeVar("T")
_JOBS_PER_TRANSACTION = 256
_LOCAL_ADVICE = "The service may not see its records: use reticent.LocalClient."
_OPEN_SECONDS = 3600  # an ask that is not told by then never will be
# Of one app's asks, at most a tenth of the horizon may wait for their tells, and at most so many
_OPEN_FRACTION = 10
_MOST_OPEN = 1000


def open_quota(horizon: int | None) -> int:
    """How many asks of one app's token may be open at a time; public."""
    if horizon is None:
        return _MOST_OPEN
    return min(_MOST_OPEN, max(1, horizon // _OPEN_FRACTION))


class NotFound(ReticentError):
    """There is no such experiment, ask or token."""


@dataclass
class RunningExperiment:
    """An experiment in memory.

    ``bandit`` is a JointBandit or a LocalBanditServer, by the experiment's mode; ``told`` counts
    the rounds that were told. ``released``: the state to be written since a batch was released, and
    how many rounds were told by then.
    """

    experiment: Experiment
    bandit: Any
    told: int
    released: tuple[str, int] | None = None


@dataclass(frozen=True)
class _Job:
    """Work for the next transaction, and where its result goes."""

    run: Callable[[Execute], Any]
    future: "Future[Any]"


class ExperimentHost:
    """Experiments in memory, backed by a store."""

    def __init__(self, store: Store, *, open_seconds: int = _OPEN_SECONDS) -> None:
        self._store = store
        self._open_seconds = open_seconds
        self._running: dict[str, RunningExperiment] = {}
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._id = secrets.token_hex(16)
        with store.write() as execute:
            # names that were taken by a server that died before it had paid for them
            for experiment in store.experiments(execute):
                if not experiment.state:
                    store.drop_experiment(execute, experiment.name)
            store.start_serving(execute, self._id)
        self._thread = threading.Thread(target=self._work, name="experiments", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Finish what was asked for, then stop."""
        self._jobs.put(None)
        self._thread.join()

    def submit(self, job: Callable[[Execute], T]) -> "Future[T]":
        """Do a job in the next transaction; its result comes when that is on disk.

        A job that raises has changed nothing.
        """
        future: Future[T] = Future()
        self._jobs.put(_Job(job, future))
        return future

    def _work(self) -> None:
        """Do jobs until None is among them."""
        stopping = False
        while not stopping:
            queued = [self._jobs.get()]
            while len(queued) < _JOBS_PER_TRANSACTION and not self._jobs.empty():
                queued.append(self._jobs.get())
            stopping = None in queued
            jobs = [job for job in queued if job is not None]
            if jobs:
                self._transact(jobs)

    def _transact(self, jobs: list[_Job]) -> None:
        """Do jobs in one transaction, and answer them when it is on disk."""
        answers: list[tuple[Any, ReticentError | None]] = []
        try:
            with self._store.write() as execute:
                self._store.check_serving(execute, self._id)
                for job in jobs:
                    try:
                        answers.append((job.run(execute), None))
                    except ReticentError as error:
                        answers.append((None, error))
                for name, running in self._running.items():
                    if running.released is not None:
                        self._store.keep_state(execute, name, *running.released)
        except BaseException as error:
            self._running.clear()
            failure = LedgerError("The service failed inside: try again.")
            if isinstance(error, LedgerError):
                failure = error
            answers = [(None, failure)] * len(jobs)
        for running in self._running.values():
            running.released = None
        for job, (answer, problem) in zip(jobs, answers, strict=True):
            if not job.future.set_running_or_notify_cancel():
                continue
            if problem is not None:
                job.future.set_exception(problem)
            else:
                job.future.set_result(answer)

    def running(self, execute: Execute, name: str) -> RunningExperiment:
        """The experiment as it is now, read from the store if it is not in memory."""
        if name not in self._running:
            self._running[name] = self._restore(execute, name)
        return self._running[name]

    def _restore(self, execute: Execute, name: str) -> RunningExperiment:
        """The experiment from its last state, and the rounds that were told after it."""
        stored = [
            experiment
            for experiment in self._store.experiments(execute)
            if experiment.name == name and experiment.state
        ]
        if not stored:
            raise NotFound(f"There is no experiment {name!r}: create it first.")
        experiment = stored[0]
        told, waiting = self._store.counts(execute, name)
        rounds = self._store.unreleased(execute, name)
        state = experiment.state.encode()
        if experiment.mode == "local":
            server = LocalBanditServer.resume(state)
            for told_round in rounds:
                server.receive((told_round.reward or "").encode())
            return RunningExperiment(experiment, server, told)
        bandit = JointBandit.resume(state, open_asks=waiting + len(rounds))
        for told_round in rounds:
            bandit.tell(
                json.loads(told_round.candidate or ""),
                json.loads(told_round.reward or ""),
                several=False,
            )
        self._follow(name, bandit)
        return RunningExperiment(experiment, bandit, told)

    def local(self, execute: Execute, name: str) -> RunningExperiment:
        """A local experiment as it is now."""
        return self._of_mode(execute, name, "local", "Ask and tell it.")

    def _of_mode(self, execute: Execute, name: str, mode: str, advice: str) -> RunningExperiment:
        running = self.running(execute, name)
        if running.experiment.mode != mode:
            raise BadInput(f"The experiment {name!r} is a {running.experiment.mode} one. {advice}")
        return running

    def _follow(self, name: str, bandit: JointBandit) -> None:
        """Have every state written down in the transaction in which its noise was drawn."""

        def journal(state: bytes) -> None:
            running = self._running[name]
            running.released = state.decode(), running.told

        bandit.journal = journal

    def create(
        self,
        name: str,
        mode: str,
        dataset: str,
        make: Callable[[], JointBandit | LocalBanditServer],
    ) -> None:
        """Take the name, pay, and begin. Whoever fails after paying has paid."""
        experiment = Experiment(name, mode, dataset, "", now())
        if not self.submit(
            lambda execute: self._store.add_experiment(execute, experiment)
        ).result():
            raise BadInput(f"There is an experiment {name!r} already: choose another name.")
        try:
            made = make()
            if isinstance(made, JointBandit):
                state = made.trusted_state().decode()  # charges, in a transaction of its own
            else:
                state = made.state().decode()  # holds nothing but reports
        except ReticentError:
            self.submit(lambda execute: self._store.drop_experiment(execute, name)).result()
            raise
        self.submit(lambda execute: self._store.keep_state(execute, name, state, 0)).result()

    def _check_person(
        self, execute: Execute, name: str, token: str, bandit: JointBandit | LocalBanditServer
    ) -> None:
        """Refuse a person more rounds than the promise counts on."""
        most = bandit.guarantee_.records_per_person
        if self._store.begun(execute, name, token) >= most:
            raise ReleaseRefused(
                f"This token is one person's, and a person takes part in at most {most} rounds "
                "here. An app that many people use needs a token of its own kind: the operator "
                'makes it with {"relay": true}.'
            )

    def _check_open_asks(self, execute: Execute, name: str, token: str, most: int) -> None:
        """Refuse an app more open asks than its quota."""
        if self._store.begun(execute, name, token, open_only=True) >= most:
            raise ReleaseRefused(
                f"This token has {most} asks that were not told yet, and no more may be open at a "
                f"time. Tell them, or wait: after {self._open_seconds} seconds an ask gives its "
                "round back."
            )

    def ask(
        self,
        execute: Execute,
        name: str,
        token: str,
        candidates: list[list[float]],
        *,
        relay: bool = False,
    ) -> tuple[str, int]:
        """Begin a round: its number, to be told with, and the candidate to try."""
        running = self._of_mode(execute, name, "joint", _LOCAL_ADVICE)
        bandit = running.bandit
        inputs = len(bandit.bounds.x)
        if any(len(candidate) != inputs for candidate in candidates):
            raise BadInput(
                f"Every candidate must be a list of {inputs} numbers, one for each input."
            )
        expired = self._store.expire(execute, name, now() - self._open_seconds)
        if expired:
            bandit.cancel(expired)
        if relay:
            self._check_open_asks(execute, name, token, open_quota(bandit.horizon))
        else:
            self._check_person(execute, name, token, bandit)
        choice = bandit.ask(np.array(candidates, dtype=np.float64))
        ask = secrets.token_hex(16)
        self._store.add_ask(
            execute, name, Round(ask, token, now(), None, json.dumps(candidates[choice]), None)
        )
        return ask, choice

    def tell(self, execute: Execute, name: str, token: str, ask: str, reward: float) -> int:
        """End a round; telling it again changes nothing. Gives how many rounds were told."""
        running = self._of_mode(execute, name, "joint", _LOCAL_ADVICE)
        begun = self._store.round(execute, name, ask)
        if begun is None or begun.token != token:
            raise NotFound(
                "There is no such ask: it was never made, not by this token, or is too long ago. "
                "Ask again."
            )
        if begun.told is None:
            running.told += 1
            self._store.add_tell(execute, name, ask, running.told, json.dumps(reward))
            running.bandit.tell(json.loads(begun.candidate or ""), reward, several=False)
        return running.told

    def report(
        self, execute: Execute, name: str, token: str, id_: str, text: str, *, relay: bool = False
    ) -> bool:
        """Take in a noisy report of a local experiment, once.

        False if it came too late to count.
        """
        running = self.local(execute, name)
        earlier = self._store.round(execute, name, id_)
        if earlier is not None:
            if earlier.token != token:
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
