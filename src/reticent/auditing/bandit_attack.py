"""Attacks on bandits.

All that ``ask`` and ``tell`` of a joint bandit release, and the report of a local client. The
attacker knows every round but the first, whose reward was as high as can be or as low, at a place
where features have their full length. He sees the releases of all steps. What was added up in a
step stands in its release. Where steps share noise he first undoes that: C times the differences of
running sums, or a release plus ρ times the noise of the last one, has white noise.
"""

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.gaussian_process.kernels import RBF

from reticent.auditing.attacker import Run, Seen, exact_sum
from reticent.models.bandits.joint import JointBandit
from reticent.models.bandits.local import LocalBanditClient, LocalBanditServer
from reticent.models.bandits.settings import running_sum_correlation
from reticent.privacy.bounds import Bounds
from reticent.privacy.release import Release
from reticent.privacy.row_maps.features.basis_features import FeatureMap
from reticent.privacy.row_maps.residual_gram import ResidualGram
from reticent.privacy.row_maps.reward_sum import RewardSum
from reticent.privacy.streams.correlated_noise import COEFFICIENT_BITS, Toeplitz

__all__ = ["BANDITS", "LOCAL", "BanditAttack"]

Array = NDArray[np.float64]

LOCAL = "bandit-local"
BANDITS: dict[str, dict[str, Any]] = {
    "bandit": {"horizon": 24},
    "bandit-running": {"horizon": 4, "release": "every", "mechanism": "sqrt"},
    "bandit-rewards": {"horizon": 24, "contexts": "public"},
    LOCAL: {"horizon": 24},
}
_BOUNDS = Bounds(x=[(-1.0, 1.0)], y=(-1.0, 1.0))
_FAR = 9.0  # a reward outside its bounds, so that residuals are clipped on either side


class BanditAttack:
    """Runs bandits through their public methods, and attacks what each releases."""

    def __init__(self, name: str, *, epsilon: float, delta: float, limit: float) -> None:
        self._promise = {"epsilon": epsilon, "delta": delta}
        self._limit = limit
        self._local = name == LOCAL
        self._options = {"bounds": _BOUNDS, "basis": 4, **self._promise, **BANDITS[name]}
        kernel = RBF(1.0, "fixed")
        self._kernel = kernel
        places = np.linspace(-1, 1, 201)[:, None]
        if self._local:
            server = LocalBanditServer(kernel, **self._options)
            self._message = server.message()
            head = server.posterior_.feature_map
        else:
            head = JointBandit(kernel, **self._options).posterior_.feature_map
        longest = (head.features(places) ** 2).sum(axis=1).argmax()
        self._place = float(places[longest, 0])

    def run(self, *, with_a: bool) -> Run:
        """Play all rounds; the reward of the first is high (A) or low (B)."""
        if self._local:
            seen = self._report(with_a)
        else:
            seen = self._rounds(with_a)
        return Run.of(seen, with_a=with_a, released=len(seen), limit=self._limit)

    def _records(self, *, with_a: bool) -> Array:
        """All rounds, shape (rounds, 2): place and reward."""
        records = np.zeros((self._options["horizon"], 2))
        records[0] = self._place, _FAR if with_a else -_FAR
        return records

    def _report(self, with_a: bool) -> list[Seen]:
        record = self._records(with_a=with_a)[0]
        client = LocalBanditClient(self._message, **self._promise)
        report = json.loads(client.tell(record[:1], record[1]))["release"]
        statistic = _restated(json.loads(self._message)["statistic"])
        value = np.array(report["value"])
        scale = np.array(report["scale"])
        a, b = self._exact(statistic, slice(0, 1))
        return [Seen(value - a, value - b, scale, statistic.step)]

    def _rounds(self, with_a: bool) -> list[Seen]:
        bandit = JointBandit(self._kernel, **self._options)
        records = self._records(with_a=with_a)
        bandit.ask(records[:, None, :1])
        bandit.tell(records[:, :1], records[:, 1])
        if self._options.get("release") == "every":
            return self._running(bandit.releases_)
        return self._batches(bandit.releases_)

    def _exact(self, statistic: Any, rounds: slice) -> tuple[Array, Array]:
        """The exact sums over some rounds, if A and if B."""
        a = exact_sum(statistic, _BOUNDS, self._records(with_a=True)[rounds])
        b = exact_sum(statistic, _BOUNDS, self._records(with_a=False)[rounds])
        return a, b

    def _batches(self, releases: list[Release]) -> list[Seen]:
        """Releases of batches.

        Each takes back a part of the last one's noise, in numbers that steps share.
        """
        seen = []
        first = 0
        before = [np.zeros(1), np.zeros(1)]  # noise of the last step, in grid steps, if A and if B
        for release in releases:
            statistic = _restated(release.statistic)
            size = statistic.size
            echo = release.statistic["echo"]
            last = first + release.n
            shared = statistic.accumulates() * echo
            fresh = []
            for exact, noise in zip(
                self._exact(statistic, slice(first, last)), before, strict=True
            ):
                residual = (release.value[:size] - exact) / statistic.step
                fresh.append(residual + shared * noise)
            scale = release.scale[:size] / np.sqrt(1 + shared**2)
            a, b = (one * statistic.step for one in fresh)
            seen.append(Seen(a, b, scale, statistic.step))
            first = last
            before = fresh
        return seen

    def _running(self, releases: list[Release]) -> list[Seen]:
        """Running sums: C times their differences has white noise."""
        horizon = self._options["horizon"]
        how = running_sum_correlation(self._options["mechanism"], horizon)[0]
        assert isinstance(how, Toeplitz)
        c = np.array(how.coefficients) / 2.0**COEFFICIENT_BITS
        statistic = _restated(releases[0].statistic)
        exact = [self._exact(statistic, slice(0, t + 1)) for t in range(horizon)]
        white = []
        for table in (0, 1):
            noise = np.array(
                [one.value - sums[table] for one, sums in zip(releases, exact, strict=True)]
            )
            own = np.diff(noise, axis=0, prepend=0 * noise[:1])
            white.append([sum(c[t - s] * own[s] for s in range(t + 1)) for t in range(horizon)])
        return [
            Seen(a, b, one.scale, statistic.step)
            for a, b, one in zip(*white, releases, strict=True)
        ]


def _restated(stated: Mapping[str, Any]) -> ResidualGram | RewardSum:
    """The statistic of a step, from what its release states of it."""
    head = FeatureMap.from_dict(stated["head"])
    if stated["name"] == "RewardSum":
        return RewardSum(head, tuple(stated["weights"]), stated["shift"], stated["reach"])
    weights = tuple(tuple(one) for one in stated["weights"])
    return ResidualGram(head, weights, stated["shift"], tuple(stated["reach"]))
