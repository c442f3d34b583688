"""Gaussian-process bandits with local differential privacy.

Only the person's own client sees a record. Proof: local.md.

The server sends its public state; the client chooses among its candidates, sees the reward, and
sends back the Gram matrix of (φ, e/r) of its one record, with noise. The server adds reports up,
batch by batch, and learns from the sums as a joint bandit does; but the noise of a batch of n
reports is √n times as large.
"""

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.gaussian_process.kernels import Kernel

from reticent.errors import BadInput, ReleaseRefused, ReticentError
from reticent.models.bandits.rounds import AskedRounds, ToldRounds
from reticent.models.bandits.settings import EXPLORATION_WEIGHT, GROWTH, POLICY, check_parameters
from reticent.models.bandits.ucb_policy import (
    Policy,
    batch_sizes,
    best_candidates,
    random_words,
    upper_confidence_bound,
)
from reticent.models.base import seed_bytes
from reticent.models.serialization import plain_release, restored_release
from reticent.privacy.accounting.composition import calibrate
from reticent.privacy.accounting.events import Gaussian
from reticent.privacy.accounting.guarantee import Guarantee
from reticent.privacy.bounds import Bounds
from reticent.privacy.curator import Release
from reticent.privacy.people.unit import PrivacyUnit
from reticent.privacy.release import check_scale, derived, noise_scale, same_event
from reticent.privacy.row_maps.features.basis_features import FeatureMap
from reticent.privacy.row_maps.residual_gram import ResidualGram
from reticent.privacy.statistics.exact_sum import one_blas_thread
from reticent.privacy.streams.stream import Stream
from reticent.validation import check_epsilon_delta

__all__ = ["LocalBanditClient", "LocalBanditServer"]

Array = NDArray[np.float64]
# What reading anything at all may raise: whoever sends it must not stop a server that others use
_UNREADABLE = (
    ArithmeticError,
    AttributeError,
    LookupError,
    RecursionError,
    TypeError,
    ValueError,
    ReticentError,
)


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
    Neighbours: any two records (candidates and reward). Released: one noisy Gram matrix of
    (features, clipped residual). Must be public: what the server sent, that there was a round, and
    how long it took. A server that lies about features, weights or clip cannot weaken the promise:
    the limits are enforced and the noise is calibrated here.
    """

    def __init__(
        self, message: bytes, *, epsilon: float, delta: float, random_state: object = None
    ) -> None:
        epsilon, delta = check_epsilon_delta(epsilon, delta, pure=False)
        event = Gaussian(noise_multiplier=calibrate(epsilon, delta))
        seed = seed_bytes(random_state)
        try:
            fields = json.loads(message)
            bounds = Bounds.from_dict(fields["bounds"])
            described = fields["statistic"]
            self._statistic = ResidualGram(
                FeatureMap.from_dict(described["head"]),
                tuple(tuple(weights) for weights in described["weights"]),
                described["shift"],
                tuple(described["reach"]),
            )
            m = self._statistic.feature_map.columns
            self._mean = _message_array(fields["mean"], m)
            self._covariance_root = _message_array(fields["root"], m, m).astype(np.float32)
            self._exploration_weight = float(_message_array(fields["exploration_weight"]))
            self._exploration_share = float(_message_array(fields["exploration_share"]))
            self._batch = fields["batch"]
        except _UNREADABLE:
            raise BadInput(
                "This is not a message of a LocalBanditServer: give the bytes of its message()."
            ) from None
        self._bounds = bounds
        self._seed = seed
        self._asks = 0
        self._stream: Stream | None = Stream(bounds=bounds, event=event, seed=seed)
        self.guarantee_ = Guarantee(
            delta=delta, relation="record", events=(event,), private=seed is None
        )

    def ask(self, candidates: object) -> int:
        """Choose one of the candidates (rows). Nothing of it leaves."""
        [rows] = AskedRounds(candidates, self._bounds, several=False).read()
        words = random_words(1, self._asks, self._seed)
        self._asks += 1
        missing = np.isnan(rows)
        with np.errstate(all="ignore"):
            unit = self._bounds.inputs_alone().scale(rows)
            phi = self._statistic.feature_map.features(np.where(missing, 0.0, unit))
            scores = upper_confidence_bound(
                phi[None], self._mean, self._covariance_root, self._exploration_weight
            )
            scores[:, missing.any(axis=1)] = -math.inf
            return int(best_candidates(scores, words, self._exploration_share)[0])

    def tell(self, candidate: object, reward: object) -> bytes:
        """The report to send to the server: noisy, and all that leaves. A client tells once.

        Whether the server counts it or finds it late, the promise is spent. A reward or a cell that
        is not a number is missing: then the report is of noise alone, as long and as noisy as any
        other.
        """
        record = ToldRounds(candidate, reward, self._bounds, several=False)
        if self._stream is None:
            raise ReleaseRefused(
                "This client has told its record: telling again would cost as much again. Make a "
                "new client for another round."
            )
        stream = self._stream
        self._stream = None
        stream.add(self._statistic, record.read(), coded=True)
        release = stream.release(self._statistic)
        report = {"batch": self._batch, "release": plain_release(derived(release, statistic={}))}
        return json.dumps(report).encode()

    def __reduce__(self) -> NoReturn:
        raise TypeError("A client tells once: it is never copied, pickled or sent.")


def _message_array(value: object, *shape: int) -> Array:
    """Numbers of that shape, none too large for single precision: so no cast of them warns."""
    array = np.array(value, dtype=np.float64)
    if array.shape != shape or not (np.abs(array) <= np.finfo(np.float32).max).all():
        raise BadInput("A message holds finite numbers, one for each feature or pair of features.")
    return array


class LocalBanditServer:
    """Learns from clients' noisy reports, and tells them what it knows. It never sees a record.

    Parameters
    ----------
    kernel, bounds, horizon, epsilon, delta, exploration_weight, arms, growth, basis
        As for `JointBandit`. ε and δ are what clients must use: the server counts on their noise.

    Attributes
    ----------
    posterior_, releases_ (sums of reports, one for each batch), rounds_, guarantee_
    """

    def __init__(
        self,
        kernel: Kernel | None = None,
        *,
        bounds: Bounds | None = None,
        horizon: int,
        epsilon: float | None = None,
        delta: float | None = None,
        exploration_weight: float = EXPLORATION_WEIGHT,
        arms: int = 25,
        growth: float = GROWTH,
        basis: int | None = None,
    ) -> None:
        self._params = {k: v for k, v in locals().items() if k != "self"} | {"random_state": None}
        check_parameters(self._params)
        if bounds is None or horizon is None:
            raise BadInput("A local bandit needs bounds and a horizon: give both.")
        horizon = int(horizon)
        self.bounds = bounds
        self.horizon = horizon
        epsilon, self._delta = check_epsilon_delta(epsilon, delta, pure=False)
        self._event = Gaussian(noise_multiplier=calibrate(epsilon, self._delta))
        mu = 1 / self._event.noise_multiplier
        with one_blas_thread():
            self.posterior_ = Policy(
                bounds,
                kernel=kernel,
                mu=mu / math.sqrt(horizon),
                horizon=horizon,
                arms=arms,
                exploration_weight=float(exploration_weight),
                basis=basis,
            )
        self._batch_sizes = batch_sizes(
            mu, horizon, float(growth), first=(POLICY.local_first_batch_root / mu) ** 2
        )
        self._batch_size = next(self._batch_sizes)
        self.rounds_ = 0
        self.releases_: list[Release] = []
        self._reports: Release | None = None  # the sum of the open batch

    @property
    def guarantee_(self) -> Guarantee:
        """What every client that counts has kept for its one record."""
        seeded = any(not release.private for release in self.releases_)
        return Guarantee(
            delta=self._delta, relation="record", events=(self._event,), private=not seeded
        )

    def message(self) -> bytes:
        """What a client needs; public. It stays the same until the batch is full."""
        policy = self.posterior_
        return json.dumps(
            {
                "bounds": policy.bounds.to_dict(),
                "statistic": policy.statistic.describe(),
                "mean": policy.mean.tolist(),
                "root": policy.covariance_root.tolist(),
                "exploration_weight": policy.exploration_weight,
                "exploration_share": policy.exploration_share,
                "batch": len(self.releases_),
            }
        ).encode()

    def receive(self, report: bytes) -> bool:
        """Take in a report.

        False if it answers an older message, whose residuals do not fit the others: it is left out.
        Nothing but its numbers is taken from a report. One that is not of the public format, whose
        numbers no honest noise could have made, or whose noise came from a seed, is refused.
        """
        try:
            fields = json.loads(report)
            release = restored_release(fields["release"])
            batch = fields["batch"]
        except _UNREADABLE:
            raise BadInput(
                "This is not a report of a LocalBanditClient: send the bytes that its tell() gave."
            ) from None
        self._check_report(release, batch)
        if self.rounds_ >= self.horizon:
            raise ReleaseRefused(
                f"The horizon of {self.horizon} rounds is used up: start another server for more."
            )
        if batch != len(self.releases_):
            return False
        self._add_report(release)
        return True

    def _check_report(self, release: Release, batch: object) -> None:
        """Refuse a report that no client with the promised noise sends."""
        statistic = self.posterior_.statistic
        noise = noise_scale(statistic, self._event, PrivacyUnit())
        right_format = (
            release.value.shape == release.scale.shape == (statistic.size,) and type(batch) is int
        )
        one_record = release.n == release.shares_spent == 1 and release.unit == PrivacyUnit()
        honest = (
            right_format
            and one_record
            and release.event == self._event
            and np.allclose(release.scale, noise, rtol=1e-6, atol=0)
            and (
                np.abs(release.value)
                <= 2 * statistic.feature_map.radius2 + POLICY.farthest_report * noise
            ).all()
        )
        if not honest:
            raise BadInput(
                "This report was made with another promise than the server counts on, or was "
                "altered. Make it with the server's message, epsilon and delta."
            )
        if release.private is not True:
            raise BadInput(
                "The noise of this report came from a seed (random_state): it is not private, and "
                "would make the sum of everybody's reports so. Make it without one."
            )

    def _add_report(self, report: Release) -> None:
        """Add a report to the open batch, and learn from the batch when it is full."""
        statistic = self.posterior_.statistic
        noise = noise_scale(statistic, self._event, PrivacyUnit())
        n = 1
        value = report.value
        if self._reports is not None:
            n = self._reports.n + 1
            value = self._reports.value + report.value
        # nothing but its numbers is taken from a report
        self._reports = derived(
            report,
            n=n,
            value=value,
            statistic=statistic.describe(),
            bounds=self.bounds,
            scale=noise,
            event=self._event,
            records_per_person=1,
            shares_spent=1,
            fit="reports",
            entry=None,
        )
        self.rounds_ += 1
        if n == self._batch_size:
            self.rounds_ -= n
            self.learn(derived(self._reports, scale=noise * math.sqrt(n)))
            self._reports = None

    @property
    def until_release_(self) -> int:
        """How many reports are left until the batch is full; public."""
        if self._reports is None:
            return self._batch_size
        return self._batch_size - self._reports.n

    def learn(self, release: Release) -> None:
        """Take in the noisy sum of a whole batch."""
        self.rounds_ += release.n
        self.releases_.append(release)
        with one_blas_thread():
            self.posterior_.ingest_release(release)
        self._batch_size = next(self._batch_sizes, 1)

    def save(
        self, path: str | Path, *, overwrite: bool = False, sign_with: str | Path | None = None
    ) -> None:
        """Write the sums of reports and the parameters to a file; ``reticent.load`` reads it."""
        from reticent.models.serialization import save

        save(self, path, overwrite=overwrite, sign_with=sign_with)

    def state(self) -> bytes:
        """All that is needed to go on after a restart; it holds noisy reports only."""
        from reticent.models.serialization import plain_params

        open_batch = None
        if self._reports is not None:
            open_batch = plain_release(self._reports)
        state = {
            "params": plain_params(self._params),
            "releases": list(map(plain_release, self.releases_)),
            "now": open_batch,
        }
        return json.dumps(state).encode()

    @classmethod
    def from_releases(cls, releases: Sequence[Release], **params: Any) -> Self:
        """Rebuild the server from its sums of reports."""
        params.pop("random_state", None)
        server = cls(**params)
        for release in releases:
            release.check()
            statistic = server.posterior_.statistic
            right_format = release.n == server._batch_size and release.value.shape == (
                statistic.size,
            )
            same_price = (
                release.relation == "record"
                and release.records_per_person == 1
                and same_event(server._event, release.event)
            )
            if not (right_format and same_price):
                raise BadInput(
                    "These releases do not fit the parameters: rebuild with those they had."
                )
            check_scale(
                release, noise_scale(statistic, server._event, PrivacyUnit()) * math.sqrt(release.n)
            )
            server.learn(release)
        return server

    @classmethod
    def resume(cls, state: bytes) -> Self:
        """Go on where `state` was taken."""
        from reticent.models.serialization import restored_params

        fields = json.loads(state)
        server = cls.from_releases(
            list(map(restored_release, fields["releases"])), **restored_params(fields["params"])
        )
        if fields["now"] is not None:
            server._reports = restored_release(fields["now"])
            server.rounds_ += server._reports.n
        return server
