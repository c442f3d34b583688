"""Attacks on bandits: all that a joint bandit releases, taken together, and the report of a local bandit's client.

The attacker knows every round but the first, whose reward was as high as can be or as low, at a place where features have their
full length: the pair that moves the statistic by its sensitivity. He sees the releases of four steps, one round each. Where steps
share noise he first undoes that (C times the differences of running sums has white noise), so that his test is the best there is.
"""

import json
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.gaussian_process.kernels import RBF

from reticent.models.bandit import JointBandit
from reticent.models.local_bandit import LocalBanditClient, LocalBanditServer
from reticent.privacy.bounds import Bounds
from reticent.privacy.statistic import Statistic
from reticent.privacy.stream import SHIFT, Echo, Stream, Toeplitz

__all__ = ["BANDITS", "LOCAL", "bandit_scores"]

Values = NDArray[np.float64]

BANDITS: dict[str, dict[str, Any]] = {
    "bandit": {},
    "bandit-running": {"release": "every", "mechanism": "sqrt"},
    "bandit-rewards": {"contexts": "public"},
    (LOCAL := "bandit-local"): {},
}
_BOUNDS, _STEPS, _FAR = Bounds(x=[(-1.0, 1.0)], y=(-1.0, 1.0)), 4, 9.0


def bandit_scores(
    name: str, epsilon: float, delta: float, runs: int, advance: Callable[[int], None] = lambda steps: None
) -> tuple[Values, Values]:
    """Log-likelihood ratios of A against B, from half of ``runs`` bandits with each."""
    promise = {"epsilon": epsilon, "delta": delta}
    options = {"bounds": _BOUNDS, "horizon": _STEPS, "basis": 4, **promise, **BANDITS[name]}
    kernel, local = RBF(1.0, "fixed"), name == LOCAL
    bandit: Any = (LocalBanditServer if local else JointBandit)(kernel, **options)
    policy = bandit.posterior_
    statistic = policy.statistic if local else bandit._statistic()
    places = np.linspace(-1, 1, 201)[:, None]
    place = float(places[(policy.head.features(places) ** 2).sum(axis=1).argmax(), 0])
    message = bandit.message() if local else b""
    pair, found = [(place, _FAR), (place, -_FAR)], []
    exact, other = [_row(statistic, one) for one in pair], _row(statistic, (0.0, 0.0))
    for record in pair:
        scores = np.empty(runs // 2)
        for i in range(len(scores)):
            if local:
                report = LocalBanditClient(message, **promise).tell(record[:1], record[1])
                told = json.loads(report)["release"]
                seen, scale = np.array([told["value"]]), np.array(told["scale"])
            else:
                seen, scale = _seen(bandit._paid(None), statistic, record)
            scores[i] = _ratio(seen, scale, exact, other, bandit)
            advance(2)
        found.append(np.round(scores, 9))
    return found[0], found[1]


def _row(statistic: Statistic, record: tuple[float, float]) -> Values:
    value: Values = statistic.coordinates(statistic.block_sum(np.array([record]))) * statistic.step
    return value


def _seen(stream: Stream, statistic: Statistic, record: tuple[float, float]) -> tuple[Values, Values]:
    """What is released in all steps, and the scale of fresh noise."""
    releases = []
    for step in range(_STEPS):
        stream.add(statistic, np.array([record if step == 0 else (0.0, 0.0)]))
        releases.append(stream.release(statistic))
    return np.array([one.value for one in releases]), releases[0].scale  # the first step's noise is fresh


def _ratio(seen: Values, scale: Values, exact: list[Values], other: Values, bandit: Any) -> float:
    """log of the densities of all releases together, with A and with B."""
    correlation = getattr(bandit, "_correlation", None)
    c = np.eye(len(seen))[:, :1] * np.ones(len(scale))  # of each number
    if isinstance(correlation, Toeplitz):
        seen = np.diff(seen, axis=0, prepend=0 * seen[:1])
        c[:] = np.array(correlation.coefficients[: len(seen)])[:, None] / 2.0**SHIFT
    if isinstance(correlation, Echo):
        lasting = bandit._statistic().lasting()
        c[:, lasting] = (correlation.back / 2.0**SHIFT) ** np.arange(len(seen))[:, None]
    white = [sum(c[t - s] * seen[s] for s in range(t + 1)) for t in range(len(seen))]
    total = 0.0
    for t, z in enumerate(white):
        rest = sum(c[t - s] for s in range(1, t + 1)) * other
        to_a, to_b = ((z - rest - c[t] * one) / scale for one in exact)
        total += float(to_b @ to_b - to_a @ to_a) / 2
    return total
