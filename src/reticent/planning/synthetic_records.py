"""Made-up records for planning.

Inputs spread evenly over the bounds, outputs of a function, and a curator of these. No record is
read here, and nothing here is a release: what a fit of made-up records says is about the method,
not about people.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri
from sklearn.base import clone

from reticent.models.gp.prior_hypotheses import PreparedPrior
from reticent.privacy.accounting.events import Event
from reticent.privacy.bounds import Bounds
from reticent.privacy.curator import Release
from reticent.privacy.people.unit import PrivacyUnit
from reticent.privacy.record_sum import RecordSum
from reticent.privacy.release import (
    NUMBER,
    noise_multiplier,
    noise_scale,
    number_scale,
    number_sd,
)
from reticent.privacy.sources.base import DtypeKind, Field, Source, scan
from reticent.privacy.statistics.base import Statistic
from reticent.privacy.statistics.enforced import enforce
from reticent.privacy.statistics.exact_sum import one_blas_thread
from reticent.privacy.statistics.feature_cache import FeatureCache

__all__ = [
    "CodedRecords",
    "MadeUp",
    "MadeUpCurator",
    "coded",
    "evenly",
    "fit_made_up",
    "inputs",
    "records",
]

Array = NDArray[np.float64]
Random = np.random.Generator

# above PLACES · SPREAD records, so many places stand for all, each with so many outputs
PLACES = 4096
SPREAD = 4
_NUMBER_SEED = 2**31  # apart from those of releases, which are counted from 0


def inputs(bounds: Bounds, count: int, random: Random) -> Array:
    """Inputs drawn evenly from the box, or from the part of it that the norm allows.

    Scaled as models see them.
    """
    if bounds.norm is None:
        return _on_levels(bounds, np.asarray(random.uniform(-1, 1, (count, len(bounds.x)))))
    half = np.array([(high - low) / 2 for low, high in bounds.x]) / bounds.norm
    d = len(half)
    ball = d / 2 * math.log(math.pi) - math.lgamma(d / 2 + 1)
    found = [np.empty((0, d))]
    missing = count
    while missing > 0:
        if np.log(2 * half).sum() < ball:  # propose from the smaller of the two
            tried = random.uniform(-half, half, (2 * count + 64, d))
        else:
            way = random.standard_normal((2 * count + 64, d))
            tried = (
                way / np.linalg.norm(way, axis=1)[:, None] * random.random((len(way), 1)) ** (1 / d)
            )
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
    return _on_levels(bounds, np.asarray((order + random.random((count, d))) / count * 2 - 1))


def _on_levels(bounds: Bounds, unit: Array) -> Array:
    """Scaled inputs moved to the nearest level or whole number, where a column has such."""
    for j, kind in enumerate(bounds.x_kinds):
        if kind.cells is not None:
            level = np.clip(np.floor((unit[:, j] + 1) / 2 * kind.cells), 0, kind.cells - 1)
            unit[:, j] = (2 * level + 1 - kind.cells) / kind.cells
    return unit


@final
class CodedRecords(Source):
    """Made-up records whose cells are codes already: of words, dates, numbers."""

    def __init__(self, fields: Sequence[Field], rows: Array, width: int, targets: int = 0) -> None:
        self._places = {field: place for place, field in enumerate(fields)}
        self._rows = rows
        self.names = None
        self.width = width
        self.targets = targets
        self.known_n = len(rows)

    def count(self) -> int:
        """Return the number of records."""
        return len(self._rows)

    def kind(self, position: int) -> tuple[DtypeKind, str]:
        """Return that a column may be of any kind."""
        return "any", "code"

    def blocks(self, fields: Sequence[Field]) -> Iterator[Array]:
        """Yield all records at once."""
        yield np.ascontiguousarray(self._rows[:, [self._places[field] for field in fields]])


def coded(
    bounds: Bounds, X: Array, y: Array | None = None
) -> tuple[Bounds, tuple[Field, ...], CodedRecords]:
    """Codes of inputs (and outputs) as a source; with the bounds and fields to read it by."""
    plain = scan(X) if y is None else scan(X, y=y)
    concrete, fields = bounds.without_names().resolve(plain, targets=y is not None)
    rows = X if y is None else np.column_stack([X, y])
    places = [plain.position(field.key) for field in fields]
    return concrete, fields, CodedRecords(fields, rows[:, places], plain.width, plain.targets)


def records(
    values: Array, noise: float | Array, n: int, random: Random
) -> tuple[NDArray[np.intp], Array]:
    """Made-up outputs of ``n`` records from the function's values at some places.

    Which place each is of, and the output.

    ``noise``: the spread of outputs, one for all places or one for each.

    With fewer places than records, a place stands for n / places of them and gets `SPREAD` outputs,
    drawn one from each quantile. Their common part has the variance that a mean of so many
    independent outputs has, so sums over all of them, which is all that a fit sees, have the mean
    and the variance of sums over n records.
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
    outputs = values[:, None] + sd * (
        math.sqrt(share) * own[:, None] + math.sqrt(1 - share) * spread
    )
    return np.repeat(np.arange(places), SPREAD), outputs.ravel()


@dataclass(frozen=True)
class MadeUp:
    """Made-up records, as many as can be held, that stand for ``n``; inputs as codes.

    ``weight``: of each on average, where records count by weights; each person has one.
    """

    X: Array
    y: Array | None
    n: int
    weight: float = 1.0


class MadeUpCurator:
    """Oracle that answers like a `Curator` of the n records for which made-up ones stand.

    With noise of the same scale.
    """

    def __init__(
        self,
        data: MadeUp,
        bounds: Bounds,
        event: Event,
        unit: PrivacyUnit,
        seed: Sequence[int],
    ) -> None:
        self.n = data.n
        self._total = data.n * data.weight
        self._held = len(data.X)
        self.bounds, self._fields, self._source = coded(bounds, data.X, data.y)
        self._cache = FeatureCache()
        self._seed = list(seed)
        self.event = event
        self.unit = unit
        self.n_sd = 0.0
        self._made = 0
        self.releases: list[Release] = []
        if not unit.number_is_public:
            self._release_number()

    @property
    def noise_multiplier(self) -> float:
        """Noise of one release by the record's sensitivity."""
        return noise_multiplier(self.event, self.unit)

    def _release_number(self) -> None:
        """Release the number of people or records with noise, and go on with that."""
        scale = np.array([math.sqrt(number_scale(self.event, self.unit))])
        noise = np.random.default_rng([*self._seed, _NUMBER_SEED]).standard_normal(1)
        value = self.n + scale * noise
        self.n = max(1, round(float(value[0])))
        made = self._give(
            {"name": NUMBER, "kind": "sum", "size": 1, "unit": self.unit.noun}, value, scale
        )
        self.n_sd = number_sd(made)

    def release(self, statistic: Statistic, *, shares_spent: int = 1) -> Release:
        """Add up over the made-up records, and add noise."""
        more = self._made + 1 < self.event.count
        enforced = enforce(statistic)
        sums = RecordSum(self._source, self._fields, self.bounds, threads=1)
        _, total = self._cache.total(sums, enforced, n=self._held, keep=more)
        exact = enforced.coordinates(total).astype(np.float64) * (
            enforced.step * self._total / self._held
        )
        scale = noise_scale(statistic, self.event, self.unit, shares_spent)
        # the same for every ε: a curve over ε is smooth
        noise = np.random.default_rng([*self._seed, self._made]).standard_normal(len(exact))
        self._made += 1
        return self._give(enforced.describe(), exact + scale * noise, scale, shares_spent)

    def _give(
        self, description: dict[str, Any], value: Array, scale: Array, shares_spent: int = 1
    ) -> Release:
        made = Release(
            statistic=description,
            value=value,
            scale=scale,
            event=self.event,
            n=self.n,
            bounds=self.bounds,
            private=False,
            fit="made up",
            shares_spent=shares_spent,
            **self.unit.to_dict(),
        )
        self.releases.append(made)
        return made


def fit_made_up(
    model: Any,
    data: MadeUp,
    bounds: Bounds,
    epsilon: float,
    priors: Any,
    seed: Sequence[int],
    **other: Any,
) -> Any:
    """Fit a copy of ``model`` to made-up records.

    The same code, on sums with the same noise, as a fit that is paid for.

    ``other``: parameters in which the copy differs.
    """
    copy = clone(model).set_params(
        epsilon=epsilon, ledger=None, dataset=None, random_state=0, **other
    )
    curator = MadeUpCurator(data, bounds, copy._event(), copy._privacy_unit(), seed)
    with one_blas_thread():
        copy._learn_prepared(curator, PreparedPrior(priors))
    return copy._fitted(curator.releases)
