"""Covariance of standardised columns, learned in stages: where factors and clusters begin."""

import math

import numpy as np
from numpy.typing import NDArray

from reticent.inference.mixtures.factor_model import ColumnEstimates, CorrelationEstimate
from reticent.inference.mixtures.spread import (
    Middle,
    SpreadEstimate,
    first_radius,
    looks_pay,
    wide_enough,
)
from reticent.models.mixtures.complete_records import CompleteRecords
from reticent.models.mixtures.record_view import count_sd
from reticent.models.mixtures.settings import COVARIANCE
from reticent.models.unit_total import unit_total
from reticent.privacy.curator import Oracle
from reticent.privacy.row_maps.column_moments import ColumnMoments, ScaledGram
from reticent.privacy.row_maps.features.column_encoding import encoded_widths
from reticent.privacy.row_maps.mixture_moments import metric, residual_moments
from reticent.privacy.statistics.enforced import enforce
from reticent.privacy.statistics.sum import EnforcedSum

__all__ = [
    "CovarianceEstimate",
    "fit_around",
    "fit_covariance",
    "look_for_middle",
    "mean_noise",
]

Array = NDArray[np.float64]
CovarianceEstimate = CorrelationEstimate | SpreadEstimate


def fit_covariance(
    curator: Oracle,
    noise: float,
    shares: int = COVARIANCE.shares,
    *,
    complete: CompleteRecords | None = None,
    encoding: tuple[int, ...] = (),
    hidden_variances: float = math.inf,
) -> CovarianceEstimate:
    """Means, scales and correlations of the scaled records, encoded where columns are mixed.

    Where public numbers say that the noise of a column's variance is more than
    ``hidden_variances`` of it, all columns are measured by one length; else they are standardised.

    ``complete`` learns how many records lack no value.

    ``noise``: multiplier of one budget share; ``shares``: of the whole, of which half are spent on
    the columns. How many stages there are follows from these public numbers.
    """
    complete = complete or CompleteRecords(unit_total(curator))
    d = len(curator.bounds.x)
    if encoding:
        d = sum(encoded_widths(encoding))
    if _relative_noise(noise, shares // 2, d) > hidden_variances * curator.n:
        return _fit_spread(curator, noise, shares, d, complete, encoding)
    column_norm2, record_norm2 = (
        d * (large + small / d**0.5)
        for large, small in (COVARIANCE.column_norm, COVARIANCE.record_norm)
    )
    relative_noise = noise * record_norm2 * d**0.5
    room = min(max(COVARIANCE.low_noise * curator.n / relative_noise, 1.0), COVARIANCE.most_room)
    room = max(room, COVARIANCE.idle_noise * curator.n**0.5 / relative_noise)
    first = _first_moments(d, ball=curator.bounds.norm is not None, encoding=encoding)
    columns = _fit_columns(
        curator, noise, shares // 2, first, min(room * column_norm2, 2.0 * d), complete
    )
    scale = columns.scale()
    clip_threshold = COVARIANCE.column_clip * max(room / COVARIANCE.most_room, 1.0) ** 0.5
    longest = np.minimum((1 + np.abs(columns.mean)) / scale, clip_threshold)  # of any record
    norm2 = min(room * record_norm2, float((longest**2).sum()))
    release = curator.release(
        ScaledGram(_as_tuple(columns.mean), _as_tuple(1 / scale), norm2, encoding, clip_threshold),
        shares_spent=shares - shares // 2,
    )
    n = complete.number
    return CorrelationEstimate(
        columns, scale, release.matrix() / n, float(release.matrix_sd()[0, 0]) / n
    )


def _relative_noise(noise: float, shares: int, d: int) -> float:
    """Noise of a column's variance, relative to it, times n: of records of one length."""
    return 2 * noise * d / math.sqrt(shares)


def _fit_spread(
    curator: Oracle,
    noise: float,
    shares: int,
    d: int,
    complete: CompleteRecords,
    encoding: tuple[int, ...],
) -> SpreadEstimate:
    """Mean and covariance on one scale: looks for the mean, each from the one before, and a Gram.

    With too much noise for that, the Gram matrix is about the middle of the box, and one look says
    how many records there are.
    """
    looks = max(round(COVARIANCE.looks_part * shares), 1)
    centred = looks_pay(mean_noise(curator, noise, shares, d), looks / shares)
    if not centred:
        looks = 1
    middle = look_for_middle(curator, noise, d, complete, encoding, looks=looks, each=1)
    return fit_around(curator, middle, shares - looks, complete, encoding, centred=centred)


def mean_noise(curator: Oracle, noise: float, shares: int, d: int) -> float:
    """Expected length of the noise in a mean by so many shares, relative to that of records."""
    return 2 * noise * math.sqrt(d / shares) / curator.n


def look_for_middle(
    curator: Oracle,
    noise: float,
    d: int,
    complete: CompleteRecords,
    encoding: tuple[int, ...],
    *,
    looks: int,
    each: int,
) -> Middle:
    """Where records are, and how far from there, by looks with ``each`` so many budget shares."""
    longest = float(d if encoding else curator.bounds.radius2) ** 0.5
    noise_length = mean_noise(curator, noise, each, d)
    middle = Middle(d, longest, longest * first_radius(noise_length))
    excess = wide_enough(noise_length)
    for _ in range(looks):
        statistic = residual_moments(
            metric(np.eye(d), middle.mean[None], encoding),
            radius=np.full(1, middle.radius),
            second="trace",
            together=True,
            weights=COVARIANCE.look_weights,
            hard=True,
        )
        release = curator.release(statistic, shares_spent=each)
        complete.add(float(release.value[0]), count_sd(release))
        n = complete.number
        sums, square = release.value[1:-1] / n, float(release.value[-1]) / n
        middle.add(sums, float(release.sd[1]) / n, square, float(release.sd[-1]) / n)
        middle.radius = middle.wide(excess)
    return middle


def fit_around(
    curator: Oracle,
    middle: Middle,
    shares: int,
    complete: CompleteRecords,
    encoding: tuple[int, ...],
    *,
    centred: bool = True,
) -> SpreadEstimate:
    """The covariance, by a Gram matrix about a mean, or else about the middle of the box."""
    d = len(middle.mean)
    centre = np.zeros(d)
    radius = middle.looked
    if centred:
        centre = middle.mean
        radius = middle.narrow()
    release = curator.release(
        ScaledGram(_as_tuple(centre), (1 / radius,) * d, 1.0, encoding), shares_spent=shares
    )
    n = complete.number
    sd = float(release.matrix_sd()[0, 0]) / n
    return SpreadEstimate(middle, release.matrix() / n, sd, radius, centred=centred)


def _fit_columns(
    curator: Oracle,
    noise: float,
    shares: int,
    statistic: ColumnMoments,
    norm2: float,
    complete: CompleteRecords,
) -> ColumnEstimates:
    """Mean and variance of each column, in stages that look ever closer.

    With much noise one stage spends all shares. ``statistic``: of the first stage; ``norm2``:
    squared length that the rows of later stages are clipped to.
    """
    d = len(statistic.centre)
    stages = shares
    sd = noise * float(np.sqrt(statistic.sensitivity2)) * statistic.step
    if sd > COVARIANCE.high_noise * curator.n:
        stages = 1
    columns = ColumnEstimates(d)
    for stage in range(stages):
        spent = 1
        if stage == 0:
            spent = shares - stages + 1
        else:
            sd = math.hypot(2 * noise * norm2**0.5 / complete.number, statistic.step)
            centre, clip_threshold, offset = columns.next_window(
                complete.number, sd, whole=norm2 >= 2 * d
            )
            statistic = ColumnMoments(
                _as_tuple(centre),
                _as_tuple(clip_threshold),
                _as_tuple(offset),
                min(norm2, _longest2(offset)),
                statistic.encoding,
            )
        release = curator.release(statistic, shares_spent=spent)
        weight = _count_weight(statistic)
        complete.add(float(release.value[-1]) / weight, float(release.sd[-1]) / weight)
        n = complete.number
        columns.add(
            np.array(statistic.centre),
            np.array(statistic.clip_thresholds),
            np.array(statistic.offset),
            moments=release.value[:-1] / n,
            # values are truncated to the grid
            sd=math.hypot(float(release.sd[0]) / n, statistic.step / 2),
            n=n,
        )
    return columns


def _first_moments(d: int, *, ball: bool, encoding: tuple[int, ...] = ()) -> ColumnMoments:
    """Moments of whole columns.

    In the box u² + (1 − u²)² ≤ 1 in each column; in the ball ‖u‖² and Σu⁴ are at most one.
    """
    if ball:
        return ColumnMoments((0.0,) * d, (1.0,) * d, (0.0,) * d, 2.0)
    return ColumnMoments((0.0,) * d, (1.0,) * d, (1.0,) * d, float(d), encoding)


def _longest2(offset: Array) -> float:
    """Squared length of the longest row that moments with these offsets can have.

    t² + (t² − q)² for t within ±1 is largest at 0 or at 1.
    """
    return float(np.maximum(1 + (1 - offset) ** 2, offset**2).sum())


def _as_tuple(values: Array) -> tuple[float, ...]:
    return tuple(values.tolist())


def _count_weight(statistic: ColumnMoments) -> float:
    """What a complete record adds to the last number of the release."""
    enforced = enforce(statistic)
    assert isinstance(enforced, EnforcedSum)
    return enforced.count_weight * enforced.step
