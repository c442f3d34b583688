"""Judging the cells: bias, bands, ranks, monotony, and the model without privacy.

A verdict needs both: a fault large enough to matter, and beyond what so few repeats may show by
chance ("clearly": by Student's t, as sure as two standard errors of a normal law).
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import kstest, norm
from scipy.stats import t as student

from reticent.studies.common.results import mean_error
from reticent.studies.own.calibration.cells import FREE, Cell, Family, Trial

__all__ = ["BANDS", "FAULTS", "NEAR", "Judged", "clearly_above", "judge_cells", "sure_errors"]

Array = NDArray[np.float64]
Trials = Mapping[Cell, Sequence[Trial]]

FAULTS = {  # letter in the picture: what is wrong
    "B": "bias",
    "N": "bands too narrow",
    "W": "bands too wide",
    "U": "ranks not uniform",
    "E": "error rises with ε",
    "R": "error rises with n",
    "P": "worse than without privacy at ε = 10⁶",
    "O": "intervals of outputs wrong in some third of the inputs",
}
BANDS = {0.5: (0.38, 0.62), 0.8: (0.72, 0.88), 0.95: (0.92, 0.98)}  # level: coverage allowed
_OUTPUTS = (0.88, 0.99)  # coverage allowed of 95 % intervals of outputs, whatever their law
_MOST_BIAS = 2.5  # stated standard errors, at any place
_MOST_MEAN_BIAS = 0.5  # the same, on average over places, if many simulation errors from zero
_MANY = 4.0
_LEAST_P = 1e-3
NEAR = 1.02  # ratio of losses that counts as equal
_MOST_NATS = 10.0  # a density that is off by more is as useless, and hides the other repeats
_SURE = float(norm.cdf(2.0))


@dataclass(frozen=True)
class Judged:
    """What the trials of a cell say; NaN where they say nothing.

    Attributes
    ----------
    losses, references : arrays of shape (repeats,)
    mean_z, mean_z_error : float
        Mean error in stated standard errors, over places and repeats, and its standard error.
    worst_z : float
        Largest mean over repeats, in absolute value, at any place.
    coverage, coverage_error : dict of level to share
    rank_mean, rank_p : float
        Mean rank of the truth, and the p-value of uniform ranks (Kolmogorov–Smirnov at each place,
        times the number of places).
    ratio : float
        Loss to that without privacy (exp of the difference, for losses in nats).
    rise_epsilon, rise_n : float
        Loss to that at the ε, or the n, just below.
    faults : str
        Letters of `FAULTS`.
    in_nats : bool
        Whether losses are compared by differences.
    outputs : array of shape (thirds,)
        Share of fresh outputs in 95 % intervals, by thirds of the inputs; empty if not known.
    """

    cell: Cell
    losses: Array
    references: Array
    mean_z: float
    mean_z_error: float
    worst_z: float
    coverage: Mapping[float, float]
    coverage_error: Mapping[float, float]
    rank_mean: float
    rank_p: float
    ratio: float
    rise_epsilon: float
    rise_n: float
    faults: str
    in_nats: bool
    outputs: Array


def clearly_above(values: Array, least_error: float = 0.0) -> bool:
    """Whether the mean of independent values is above zero beyond chance.

    ``least_error`` is the least that its standard error can be, however equal the values are.
    """
    repeats = len(values)
    if repeats < 2:
        return False
    error = max(float(values.std(ddof=1)) / math.sqrt(repeats), least_error)
    return bool(values.mean() > sure_errors(repeats) * error)


def sure_errors(repeats: int) -> float:
    """Standard errors, by so few repeats, that are as sure as two of a normal law."""
    return float(student.ppf(_SURE, repeats - 1))


def judge_cells(family: Family, trials: Trials) -> list[Judged]:
    """Judge every cell of a family that was tried."""
    losses = {cell: np.array([one.loss for one in found]) for cell, found in trials.items()}
    return [_judge(family, cell, found, losses) for cell, found in trials.items()]


def _judge(
    family: Family, cell: Cell, found: Sequence[Trial], losses: Mapping[Cell, Array]
) -> Judged:
    own = losses[cell]
    references = np.array([one.reference for one in found])
    faults = ""
    z = np.array([one.z for one in found])
    bias = _bias(z)
    if bias.found:
        faults += "B"
    coverage, coverage_error, narrow, wide = _coverage(z)
    faults += "N" * narrow + "W" * wide
    ranks = np.array([one.ranks for one in found])
    rank_p = _uniform(ranks)
    if rank_p < _LEAST_P:
        faults += "U"
    smaller = _before(cell, losses, "epsilon")
    fewer = _before(cell, losses, "n")
    if smaller is not None and _worse(family, own, smaller):
        faults += "E"
    if fewer is not None and _worse(family, own, fewer):
        faults += "R"
    if cell.epsilon == FREE and _worse(family, own, references):
        faults += "P"
    outputs = np.array([one.outputs for one in found])
    if _outputs_wrong(outputs):
        faults += "O"
    return Judged(
        cell,
        own,
        references,
        bias.mean,
        bias.error,
        bias.worst,
        coverage,
        coverage_error,
        float(ranks.mean()) if ranks.size else math.nan,
        rank_p,
        _ratio(family, own, references),
        _ratio(family, own, smaller),
        _ratio(family, own, fewer),
        faults,
        family.in_nats,
        outputs.mean(axis=0),
    )


@dataclass(frozen=True)
class _Bias:
    mean: float
    error: float
    worst: float

    @property
    def found(self) -> bool:
        if self.worst > _MOST_BIAS:
            return True
        return abs(self.mean) > max(_MOST_MEAN_BIAS, _MANY * self.error)


def _bias(z: Array) -> _Bias:
    """Bias from errors of shape (repeats, places); errors of rounding count as none."""
    if np.isnan(z).all():
        return _Bias(math.nan, math.nan, math.nan)
    z = np.nan_to_num(z)
    means = z.mean(axis=1)
    error = math.inf
    if len(means) > 1:
        error = mean_error(means)[1]
    return _Bias(float(means.mean()), error, float(np.abs(z.mean(axis=0)).max()))


def _coverage(z: Array) -> tuple[dict[float, float], dict[float, float], bool, bool]:
    """Coverage at each level, its standard errors, and whether bands are narrow or wide.

    Places where any error is one of rounding are left out: the others there are the largest ones.
    """
    z = z[:, ~np.isnan(z).any(axis=0)]
    shares = {}
    errors = {}
    narrow = False
    wide = False
    for level, (least, most) in BANDS.items():
        if not z.size:
            shares[level] = errors[level] = math.nan
            continue
        covered = np.mean(np.abs(z) < norm.ppf((1 + level) / 2), axis=1)  # in each repeat
        if_independent = math.sqrt(level * (1 - level) / z.size)
        shares[level] = float(covered.mean())
        errors[level] = max(mean_error(covered)[1], if_independent)
        narrow = narrow or clearly_above(least - covered, if_independent)
        wide = wide or clearly_above(covered - most, if_independent)
    return shares, errors, narrow, wide


def _outputs_wrong(outputs: Array) -> bool:
    """Whether any third's coverage of outputs, (repeats, thirds), is clearly not allowed."""
    least, most = _OUTPUTS
    return any(
        clearly_above(least - covered) or clearly_above(covered - most) for covered in outputs.T
    )


def _uniform(ranks: Array) -> float:
    """Give the p-value of uniform ranks, (repeats, places): the least of the places, corrected."""
    if not ranks.size or len(ranks) < 2:
        return math.nan
    least = min(float(kstest(column, "uniform").pvalue) for column in ranks.T)
    return min(1.0, least * ranks.shape[1])


def _before(cell: Cell, losses: Mapping[Cell, Array], axis: str) -> Array | None:
    """Losses at the next smaller ε or n, if that was tried."""
    own = getattr(cell, axis)
    alike = [
        other
        for other in losses
        if getattr(other, axis) < own and other._replace(**{axis: own}) == cell
    ]
    if not alike:
        return None
    return losses[max(alike, key=lambda other: getattr(other, axis))]


def _worse(family: Family, own: Array, other: Array) -> bool:
    """Whether losses are clearly above others, by more than a ratio that counts as equal."""
    if family.in_nats:
        return clearly_above(np.minimum(own - other, _MOST_NATS) - math.log(NEAR))
    return clearly_above(own - NEAR * other - family.negligible)


def _ratio(family: Family, own: Array, other: Array | None) -> float:
    if other is None or math.isnan(other.mean()):
        return math.nan
    if family.in_nats:
        return float(np.exp(np.mean(np.minimum(own - other, _MOST_NATS))))
    if other.mean() <= family.negligible:
        return math.nan
    return float(own.mean() / other.mean())
