"""Gaussian-process bandits with local differential privacy: only the person's own client sees a record. Proof: local_bandit.md.

The server sends its public state; the client chooses among its candidates, sees the reward, and sends back the Gram matrix of
(φ, e/r) of its one record, with noise. The server adds reports up, batch by batch, and learns from the sums as a joint bandit
does; but the noise of a batch of n reports is √n times as large.
"""

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn, Self

import numpy as np
from numpy.typing import NDArray

from reticent.errors import BadInput, ReleaseRefused, ReticentError
from reticent.models.bandit_setup import check
from reticent.models.base import seed_bytes
from reticent.models.policy import GROWTH, Policy, batch_sizes, best_of, coins, upper
from reticent.models.residuals import Features, ResidualGram
from reticent.models.rounds import AskedRounds, ToldRounds
from reticent.models.storage import plain_release, restored_release
from reticent.privacy.accounting import calibrate, check_epsilon_delta
from reticent.privacy.bounds import Bounds
from reticent.privacy.curator import Release
from reticent.privacy.events import Gaussian
from reticent.privacy.guarantee import Guarantee
from reticent.privacy.release import check_scale, derived, noise_scale, same_event
from reticent.privacy.stream import Stream
from reticent.privacy.sums import one_blas_thread

__all__ = ["LocalBanditClient", "LocalBanditServer"]

Array = NDArray[np.float64]
# what reading anything at all may raise: whoever sends it must not stop a server that others use
_NOT_OURS = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError, ReticentError)
_FARTHEST = 50.0  # standard deviations
_FIRST = 4.0  # √records of the first batch, by μ


class LocalBanditClient:
    """One person's side of one round: chooses, and tells the server a noisy statistic, once.

    Parameters
    ----------
    message : bytes
        What ``LocalBanditServer.message()`` gave.
    epsilon, delta : float
        The strength of the promise: the client's own, whatever the server says.
    random_state : int, optional
        For tests; what is told then is not private, and a `LocalBanditServer` refuses it.

    Privacy
    -------
    Neighbours: any two records (candidates and reward). Released: one noisy Gram matrix of (features, clipped residual).
    Must be public: what the server sent, that there was a round, and how long it took. A server that lies about features, weights
    or clip cannot weaken the promise: the limits are enforced and the noise is calibrated here.
    """

    def __init__(self, message: bytes, *, epsilon: float, delta: float, random_state: Any = None) -> None:
        eps, delta = check_epsilon_delta(epsilon, delta, pure=False)
        event = Gaussian(noise_multiplier=calibrate(eps, delta))
        seed = seed_bytes(random_state)
        try:
            told = json.loads(message)
            asked, bounds = told["statistic"], Bounds.from_dict(told["bounds"])
            weights = tuple(tuple(w) for w in asked["weights"])
            self._statistic = ResidualGram(
                Features.from_dict(asked["head"]), weights, asked["shift"], tuple(asked["reach"])
            )
            m = self._statistic.head.columns
            self._mean, self._root = _told(told["mean"], m), _told(told["root"], m, m).astype(np.float32)
            self._width, self._batch = float(_told(told["width"])), told["batch"]
        except _NOT_OURS:
            raise BadInput("This is not a message of a LocalBanditServer.") from None
        self._bounds = bounds
        self._seed = seed
        self._asks = 0
        self._stream: Stream | None = Stream(bounds=bounds, event=event, seed=seed)
        self.guarantee_ = Guarantee(delta=delta, relation="record", events=(event,), private=seed is None)

    def ask(self, candidates: Any) -> int:
        """Choose one of the candidates (rows). Nothing of it leaves."""
        [rows] = AskedRounds(candidates, len(self._bounds.x), several=False).read()
        words = coins(1, self._asks, self._seed)
        self._asks += 1
        with np.errstate(all="ignore"):
            phi = self._statistic.head.features(self._bounds._with(y=(), y_names=None).unit(rows))
            scores = upper(phi[None], self._mean, self._root, self._width)
            return int(best_of(scores, words)[0])

    def tell(self, candidate: Any, reward: Any) -> bytes:
        """The report to send to the server: noisy, and all that leaves. A client tells once.

        Whether the server counts it or finds it late, the promise is spent. A reward or a cell that
        is not a number is missing, and stands in the middle of its range: there is a report
        whatever they are.
        """
        record = ToldRounds(candidate, reward, len(self._bounds.x), several=False)
        if self._stream is None:
            raise ReleaseRefused("This client has told its record: telling again would cost as much again.")
        stream, self._stream = self._stream, None
        stream.add(self._statistic, record.read())
        release = stream.release(self._statistic)
        told = plain_release(derived(release, statistic={}))
        return json.dumps({"batch": self._batch, "release": told}).encode()

    def __reduce__(self) -> NoReturn:
        raise TypeError("A client tells once: it is never copied, pickled or sent.")


def _told(value: Any, *shape: int) -> Array:
    """Numbers of that shape, none too large for single precision: so no cast of them warns."""
    found = np.array(value, dtype=np.float64)
    if found.shape != shape or not (np.abs(found) <= np.finfo(np.float32).max).all():
        raise BadInput("A message holds finite numbers, one for each feature or pair of features.")
    return found


class LocalBanditServer:
    """Learns from clients' noisy reports, and tells them what it knows. It never sees a record.

    Parameters
    ----------
    kernel, bounds, horizon, epsilon, delta, width, arms, growth, basis
        As for `JointBandit`. ε and δ are what clients must use: the server counts on their noise.

    Attributes
    ----------
    posterior_, releases_ (sums of reports, one for each batch), rounds_, guarantee_
    """

    def __init__(
        self,
        kernel: Any = None,
        *,
        bounds: Bounds | None = None,
        horizon: int,
        epsilon: float | None = None,
        delta: float | None = None,
        width: Any = 0.7,
        arms: int = 25,
        growth: float = GROWTH,
        basis: int | None = None,
    ) -> None:
        self._params = {k: v for k, v in locals().items() if k != "self"} | {"random_state": None}
        check(self._params)
        if bounds is None or horizon is None or isinstance(width, str):
            raise BadInput("A local bandit needs bounds, a horizon, and a number of standard deviations as width.")
        horizon, width, growth = int(horizon), float(width), float(growth)
        eps, self._delta = check_epsilon_delta(epsilon, delta, pure=False)
        self.bounds = bounds
        self._event, self.horizon = Gaussian(noise_multiplier=calibrate(eps, self._delta)), horizon
        mu = 1 / self._event.noise_multiplier
        with one_blas_thread():
            self.posterior_ = Policy(
                bounds, kernel=kernel, mu=mu / math.sqrt(horizon), horizon=horizon, arms=arms, width=width, basis=basis
            )
        self._sizes = batch_sizes(mu, horizon, growth, first=(_FIRST / mu) ** 2)
        self._size, self.rounds_ = next(self._sizes), 0
        self.releases_: list[Release] = []
        self._reports: Release | None = None

    @property
    def guarantee_(self) -> Guarantee:
        """What every client that counts has kept for its one record."""
        seeded = any(not one.private for one in self.releases_)
        return Guarantee(delta=self._delta, relation="record", events=(self._event,), private=not seeded)

    def message(self) -> bytes:
        """What a client needs; public. It stays the same until the batch is full."""
        policy = self.posterior_
        return json.dumps(
            {
                "bounds": policy.bounds.to_dict(),
                "statistic": policy.statistic.describe(),
                "mean": policy.level.tolist(),
                "root": policy.spread.tolist(),
                "width": policy.width,
                "batch": len(self.releases_),
            }
        ).encode()

    def receive(self, report: bytes) -> bool:
        """Take in a report; False if it answers an older message, whose residuals do not fit the others: it is left out.

        Nothing but its numbers is taken from a report. One that is not of the public format, whose
        numbers no honest noise could have made, or whose noise came from a seed, is refused.
        """
        try:
            told = json.loads(report)
            one, batch = restored_release(told["release"]), told["batch"]
        except _NOT_OURS:
            raise BadInput("This is not a report of a LocalBanditClient.") from None
        statistic = self.posterior_.statistic
        whole = one.value.shape == one.scale.shape == (statistic.size,) and type(batch) is int
        whole = whole and (one.n, one.records_per_person, one.times, one.relation) == (1, 1, 1, "record")
        expected = noise_scale(statistic, self._event, 1)
        usual = whole and np.allclose(one.scale, expected, rtol=1e-6, atol=0)
        # no honest report is farther away, but once in e^1000; a forged one then moves a sum no more than an unlucky one
        usual = usual and bool((np.abs(one.value) <= 2 * statistic.head.radius2 + _FARTHEST * expected).all())
        if one.event != self._event or not usual:
            raise BadInput("This report was made with another promise than the server counts on, or was altered.")
        if one.private is not True:
            raise BadInput(
                "The noise of this report came from a seed (random_state): it is not private, and would make the sum of "
                "everybody's reports so. Make it without one."
            )
        if self.rounds_ >= self.horizon:
            raise ReleaseRefused(f"The horizon of {self.horizon} rounds is used up.")
        if batch != len(self.releases_):
            return False
        before = self._reports
        n, value = (1, one.value) if before is None else (before.n + 1, before.value + one.value)
        known: dict[str, Any] = {
            "statistic": statistic.describe(),
            "bounds": self.bounds,
            "scale": expected,
            "event": self._event,
            "records_per_person": 1,
            "times": 1,
            "fit": "reports",
            "entry": None,
        }
        self._reports = derived(one, n=n, value=value, **known)
        self.rounds_ += 1
        if n == self._size:
            self.rounds_ -= n
            self.learn(derived(self._reports, scale=expected * math.sqrt(n)))
            self._reports = None
        return True

    @property
    def until_release_(self) -> int:
        """How many reports are left until the batch is full; public."""
        return self._size - (0 if self._reports is None else self._reports.n)

    def learn(self, release: Release) -> None:
        """Take in the noisy sum of a whole batch."""
        self.rounds_ += release.n
        self.releases_.append(release)
        with one_blas_thread():
            self.posterior_.take(release)
        self._size = next(self._sizes, 1)

    def save(self, path: str | Path, *, overwrite: bool = False, sign_with: str | Path | None = None) -> None:
        """Write the sums of reports and the parameters to a file; ``reticent.load`` reads it."""
        from reticent.models.storage import save

        save(self, path, overwrite=overwrite, sign_with=sign_with)

    def state(self) -> bytes:
        """All that is needed to go on after a restart; it holds noisy reports only."""
        from reticent.models.storage import plain_params

        now = None if self._reports is None else plain_release(self._reports)
        told = {"params": plain_params(self._params), "releases": list(map(plain_release, self.releases_)), "now": now}
        return json.dumps(told).encode()

    @classmethod
    def from_releases(cls, releases: Sequence[Release], **params: Any) -> Self:
        """Rebuild the server from its sums of reports."""
        params.pop("random_state", None)
        server = cls(**params)
        for release in releases:
            release.check()
            statistic = server.posterior_.statistic
            fits = release.n == server._size and release.value.shape == (statistic.size,)
            unit = release.relation, release.records_per_person
            if not fits or unit != ("record", 1) or not same_event(server._event, release.event):
                raise BadInput("These releases do not fit the parameters: rebuild with those they had.")
            check_scale(release, noise_scale(statistic, server._event, 1) * math.sqrt(release.n))
            server.learn(release)
        return server

    @classmethod
    def resume(cls, state: bytes) -> Self:
        """Go on where `state` was taken."""
        from reticent.models.storage import restored_params

        told = json.loads(state)
        server = cls.from_releases(list(map(restored_release, told["releases"])), **restored_params(told["params"]))
        if told["now"] is not None:
            server._reports = restored_release(told["now"])
            server.rounds_ += server._reports.n
        return server
