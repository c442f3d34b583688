"""Made-up records for planning: inputs spread evenly over the bounds, outputs of a function, and a curator of these.

No record is read here, and nothing here is a release: what a fit of made-up records says is about the method, not about people.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri
from sklearn.base import clone

from reticent.privacy.bounds import Bounds
from reticent.privacy.curator import Release
from reticent.privacy.events import Event
from reticent.privacy.kept import Keeper
from reticent.privacy.plan import planned
from reticent.privacy.sources import scan
from reticent.privacy.statistic import Statistic
from reticent.privacy.sums import one_blas_thread

__all__ = ["MadeUp", "evenly", "fit_made_up", "inputs", "records"]

Array = NDArray[np.float64]
Random = np.random.Generator

PLACES, SPREAD = 4096, 4  # above PLACES · SPREAD records, so many places stand for all, each with so many outputs


def inputs(bounds: Bounds, count: int, random: Random) -> Array:
    """Inputs drawn evenly from the box, or from the part of it that the norm allows; scaled as models see them."""
    if bounds.norm is None:
        return np.asarray(random.uniform(-1, 1, (count, len(bounds.x))))
    half = np.array([(high - low) / 2 for low, high in bounds.x]) / bounds.norm
    d = len(half)
    ball = d / 2 * math.log(math.pi) - math.lgamma(d / 2 + 1)
    found, missing = [np.empty((0, d))], count
    while missing > 0:
        if np.log(2 * half).sum() < ball:  # propose from the smaller of the two
            tried = random.uniform(-half, half, (2 * count + 64, d))
        else:
            way = random.standard_normal((2 * count + 64, d))
            tried = way / np.linalg.norm(way, axis=1)[:, None] * random.random((len(way), 1)) ** (1 / d)
        kept = tried[(np.abs(tried) <= half).all(axis=1) & ((tried**2).sum(axis=1) <= 1)]
        found.append(kept)
        missing -= len(kept)
    return np.concatenate(found)[:count]


def evenly(bounds: Bounds, count: int, random: Random) -> Array:
    """The same, more even than by chance (a Latin hypercube): few places stand for many."""
    if bounds.norm is not None:
        return inputs(bounds, count, random)
    d = len(bounds.x)
    order = random.permuted(np.tile(np.arange(count), (d, 1)), axis=1).T
    return np.asarray((order + random.random((count, d))) / count * 2 - 1)


def records(values: Array, noise: float | Array, n: int, random: Random) -> tuple[NDArray[np.intp], Array]:
    """Made-up outputs of ``n`` records from the function's values at some places: which place each is of, and the output.

    ``noise``: the spread of outputs, one for all places or one for each.

    With fewer places than records, a place stands for n / places of them and gets `SPREAD` outputs, drawn one from each
    quantile. Their common part has the variance that a mean of so many independent outputs has, so sums over all of them, which
    is all that a fit sees, have the mean and the variance of sums over n records.
    """
    places = len(values)
    own = random.standard_normal(places)
    if places >= n:
        return np.arange(places), values + noise * own
    quantile = (np.arange(SPREAD) + random.random((places, SPREAD))) / SPREAD
    spread = ndtri(quantile)
    spread -= spread.mean(axis=1, keepdims=True)
    spread /= spread.std()
    share = places / n
    sd = np.broadcast_to(noise, places)[:, None]
    outputs = values[:, None] + sd * (math.sqrt(share) * own[:, None] + math.sqrt(1 - share) * spread)
    return np.repeat(np.arange(places), SPREAD), outputs.ravel()


@dataclass(frozen=True)
class MadeUp:
    """Made-up records, as many as can be held, that stand for ``n``; inputs in their own units."""

    X: Array
    y: Array
    n: int


class _Curator:
    """Answers like a `Curator` of the n records for which the made-up ones stand, with noise of the same scale."""

    def __init__(
        self,
        data: MadeUp,
        bounds: Bounds,
        event: Event,
        records_per_person: int,
        relation: str,
        seed: Sequence[int],
    ) -> None:
        self.n, self._held = data.n, len(data.X)
        self._source = scan(data.X, y=data.y)
        self.bounds, self._fields = bounds.unnamed().resolve(self._source, targets=True)
        self._keeper, self._seed = Keeper(self.bounds), list(seed)
        self._event = event
        self._per_person = records_per_person
        self._relation = relation
        self.releases: list[Release] = []

    def release(self, statistic: Statistic, *, times: int = 1) -> Release:
        """Add up over the made-up records, and add noise."""
        more = len(self.releases) + 1 < self._event.count
        plan = planned(statistic)
        _, total = self._keeper.total(self._source, self._fields, plan, n=self._held, threads=1, keep=more)
        exact = plan.coordinates(total).astype(np.float64) * (plan.step * self.n / self._held)
        multiplier: float = self._event.noise_multiplier / times**0.5  # type: ignore[attr-defined]
        scale = multiplier * self._per_person * plan.step * np.sqrt(plan.sensitivity2 / plan.shares())
        # the same for every ε: a curve over ε is smooth
        noise = np.random.default_rng([*self._seed, len(self.releases)]).standard_normal(len(exact))
        made = Release(
            statistic=plan.describe(),
            value=exact + scale * noise,
            scale=scale,
            event=self._event,
            n=self.n,
            bounds=self.bounds,
            records_per_person=self._per_person,
            private=False,
            fit="made up",
            times=times,
            relation=self._relation,
        )
        self.releases.append(made)
        return made


def fit_made_up(
    model: Any, data: MadeUp, bounds: Bounds, epsilon: float, priors: Any, seed: Sequence[int], **other: Any
) -> Any:
    """Fit a copy of ``model`` to made-up records: the same code, on sums with the same noise, as a fit that is paid for.

    ``other``: parameters in which the copy differs.
    """
    copy = clone(model).set_params(epsilon=epsilon, ledger=None, dataset=None, random_state=0, **other)
    copy._rehearsed = priors  # public, and the same for every fit: made once
    curator = _Curator(data, bounds, copy._event(), int(model.records_per_person), copy._relation, seed)
    with one_blas_thread():
        copy.learn(curator)
    return copy._fitted(curator.releases)
