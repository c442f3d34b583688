"""Expectation–maximisation by releases, for tables with columns of words.

Components are latent classes (`latent_class`): normal in the numbers, with probabilities of the
levels in each column of words. They are found in all encoded coordinates, as if these were numbers,
and then improved step by step: each step asks for residuals of the numbers and for levels, both
under responsibilities that depend on numbers and words.
"""

import math

import numpy as np
from numpy.typing import NDArray

from reticent.inference.mixtures.gaussian_mixture import NormalMixture, clamp_eigenvalues
from reticent.inference.mixtures.latent_class import (
    LatentClassMixture,
    level_chances,
    match_margins,
    nearest_probabilities,
    shrink_to_margins,
)
from reticent.models.mixtures.em_steps import em_step, likelier, refine_normal
from reticent.models.mixtures.mixed_columns import MixedColumns
from reticent.models.mixtures.record_view import RecordView
from reticent.models.mixtures.settings import MIXTURE
from reticent.privacy.row_maps.mixture_moments import (
    LevelCounts,
    LevelMoments,
    Metric,
    WordTable,
    level_moments,
)

__all__ = [
    "Margins",
    "as_latent_classes",
    "fits_better",
    "mixed_em_step",
    "refine_single",
]

Array = NDArray[np.float64]


class Margins:
    """Chances of the levels of each column of words over all records, from noisy counts."""

    def __init__(self, columns: MixedColumns) -> None:
        self.columns = columns
        sizes = [many for _, many in columns.words]
        self._ends = np.cumsum(sizes)[:-1]
        self._sum = np.zeros(sum(sizes))
        self._precision = 0.0

    def look(self, view: RecordView, shares: int) -> None:
        """Release the counts of all levels once more."""
        release = view.release(LevelCounts(self.columns.words), shares)
        sd = float(release.sd[0])
        words = len(self.columns.words)
        view.complete.add(
            float(release.value.sum()) / words, sd * math.sqrt(len(release.value)) / words
        )
        self._sum += release.value / sd**2
        self._precision += 1 / sd**2

    @property
    def level_probabilities(self) -> tuple[Array, ...]:
        """(L,) for each column."""
        counts = np.split(self._sum / self._precision, self._ends)
        return tuple(level_chances(count, self._precision**-0.5) for count in counts)


def words_share(columns: MixedColumns, shares: int) -> int:
    """How many of a step's budget shares are spent on words."""
    if not columns.numbers:
        return shares
    least, most = MIXTURE.words_part
    part = len(columns.words) / (len(columns.words) + len(columns.numbers))
    return max(round(shares * min(max(part, least), most)), 1)


def as_latent_classes(
    columns: MixedColumns, mixture: NormalMixture, margins: Margins
) -> LatentClassMixture:
    """Latent classes from a normal mixture of all encoded coordinates."""
    numbers, _ = columns.coordinates()
    normal = None
    if numbers:
        kept = np.array(numbers)
        covariances = mixture.covariances[:, kept[:, None], kept]
        roots = [
            np.linalg.cholesky(clamp_eigenvalues(one, MIXTURE.least_sd**2)) for one in covariances
        ]
        normal = NormalMixture(mixture.weights, mixture.means[:, kept], np.array(roots))
    found = columns.level_probabilities(mixture.means)
    # at first no level is impossible: a component must be able to take records of any
    level_probabilities = tuple(
        0.9 * nearest_probabilities(one) + 0.1 * margin
        for one, margin in zip(found, margins.level_probabilities, strict=True)
    )
    return LatentClassMixture(mixture.weights, normal, level_probabilities)


def mixed_em_step(
    view: RecordView,
    mixture: LatentClassMixture,
    margins: Margins,
    shares: int,
    *,
    covariance_type: str,
    least_step: float,
    moment_weights: tuple[int, int, int] | None = None,
) -> LatentClassMixture:
    """One step of expectation–maximisation for numbers and words.

    ``view`` is of the numbers alone. Both looks are taken with the same responsibilities.
    """
    columns = margins.columns
    for_words = words_share(columns, shares)
    words = _word_tables(columns, mixture)
    statistic = level_moments(
        _metric(view, mixture.normal, len(mixture.weights)),
        levels=mixture.log_heights,
        words=words,
    )
    decoded = LevelMoments.decode(view.release(statistic, for_words))
    counts_sd = decoded.counts_sd
    view.complete.add(float(decoded.counts.sum()), counts_sd * math.sqrt(len(decoded.counts)))
    counts = np.maximum(decoded.counts, counts_sd)
    weights = counts / counts.sum()
    normal = mixture.normal
    if normal is not None and shares > for_words:
        normal = em_step(
            view,
            normal,
            shares - for_words,
            covariance_type=covariance_type,
            least_step=least_step,
            moment_weights=moment_weights,
            words=words,
        )
        trust = for_words / shares
        weights = trust * weights + (1 - trust) * normal.weights
        normal = NormalMixture(weights, normal.means, normal.roots)
    level_probabilities = tuple(
        match_margins(weights, shrink_to_margins(decoded.counts, levels, sd, margin), margin)
        for levels, sd, margin in zip(
            decoded.levels, decoded.levels_sd, margins.level_probabilities, strict=True
        )
    )
    return LatentClassMixture(weights, normal, level_probabilities)


def _word_tables(columns: MixedColumns, mixture: LatentClassMixture) -> tuple[WordTable, ...]:
    return tuple(
        WordTable(j, tuple(map(tuple, np.log(probabilities).tolist())))
        for (j, _), probabilities in zip(columns.words, mixture.level_probabilities, strict=True)
    )


def _metric(view: RecordView, normal: NormalMixture | None, parts: int) -> Metric:
    """Distances of the numbers from the components; none, where there are no numbers."""
    if normal is None:
        return view.of((0,)).metric(np.zeros((1, 1)), np.zeros((parts, 1)))
    centres = np.einsum("kd,kdp->kp", normal.means, normal.whitening)
    return view.metric(normal.whitening, centres)


def fits_better(
    view: RecordView,
    columns: MixedColumns,
    mixture: LatentClassMixture,
    other: LatentClassMixture,
    shares: int,
    handicap: float = 0.0,
) -> bool:
    """Whether the first mixture has the larger log-likelihood, by a release.

    ``handicap``: so many nats a record it may be behind.
    """
    joined = mixture.joined(other)
    return likelier(
        view,
        _metric(view, joined.normal, len(joined.weights)),
        joined.log_heights,
        len(mixture.weights),
        shares,
        _word_tables(columns, joined),
        handicap,
    )


def refine_single(
    view: RecordView, mixture: LatentClassMixture, margins: Margins, shares: int
) -> LatentClassMixture:
    """One component, with all budget shares that are left."""
    for_words = words_share(margins.columns, shares)
    margins.look(view, for_words)
    normal = mixture.normal
    left = shares - for_words
    if normal is not None:
        for spent in (left // 3, left - left // 3):
            if spent:
                normal = refine_normal(view, normal, spent)
    level_probabilities = tuple(margin[None] for margin in margins.level_probabilities)
    return LatentClassMixture(np.ones(1), normal, level_probabilities)
