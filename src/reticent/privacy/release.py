"""Releases: noisy statistics, the only thing that leaves a curator.

A release carries a checksum over all its fields, which is computed when it is made and compared
whenever it is copied or used. So no field can be changed by accident (`dataclasses.replace`, an
array that is written to, a line of JSON that is edited), and the core itself changes one by
`derived` alone. It proves nothing against a program that computes a checksum of its own: who
wrote a file is proved by a signature (`models.signature`), and by nothing else.
"""

import json
from dataclasses import dataclass, field, replace
from fractions import Fraction
from hashlib import sha256
from math import hypot, inf, isclose, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reticent.errors import BadInput
from reticent.privacy.accounting.events import Event, Laplace
from reticent.privacy.bounds import Bounds
from reticent.privacy.statistics.base import Statistic
from reticent.privacy.statistics.enforced import enforce
from reticent.privacy.statistics.gram import upper_triangle
from reticent.privacy.unit import PrivacyUnit

__all__ = [
    "CALIBRATION_TOLERANCE",
    "COUNT_SHARE",
    "NUMBER",
    "Release",
    "check_scale",
    "derived",
    "noise_multiplier",
    "noise_scale",
    "number_scale",
    "number_sd",
    "same_event",
    "symmetric",
]

_ALTERED = (
    "This release was altered: a field was changed after a curator made it. "
    "Take the release as it was given, or fit again."
)
# Share of the budget (of μ², or of a pure ε) that the number of people or records is released with,
# where it is protected. Its standard deviation is then five times that of a count with all of the
# budget, and all other noise is 2 % larger.
COUNT_SHARE = Fraction(1, 25)
NUMBER = "NumberOfUnits"  # the name of that release
# Noise is whole and rounded down, and ½ is added: a whole number is off by up to one beside noise.
_NUMBER_ROUNDING = 1.0
CALIBRATION_TOLERANCE = 1e-6  # relative: versions of SciPy calibrate to other last digits
_SCALE_TOLERANCE = 1e-5  # relative, as descriptions of statistics are compared


@dataclass(frozen=True, eq=False)
class Release:
    """One noisy statistic and the distribution of its noise.

    Attributes
    ----------
    statistic : dict
        What was added up (public).
    value, scale : arrays
        The noisy sums, and the exact scale of each one's noise; of running sums (`Stream`), that of
        a step's fresh noise.
    event : Event
        What was paid, for this release and the others of the same fit (``event.count`` in all); its
        kind is the family of the noise.
    n, bounds, records_per_person
        Number of records, the bounds they were held to, records per person (public).
    private : bool
        False if the noise came from a seed.
    fit : str
        A random name of the fit: releases with the same name were paid for together.
    shares_spent : int
        How many of the ``event.count`` releases this one took, for Gaussian noise that is
        √shares_spent smaller.
    relation : str
        What is protected: a key of ``unit.RELATIONS``.
    person, contribution, neighbours, weight, weight_bound
        Who is protected, and how much each record counts (`PrivacyUnit`). With ``person``, n is the
        number of people.
    entry : str, optional
        Hash of the ledger's entry that paid for it; None if no ledger was charged.
    checksum : str, optional
        SHA-256 of all other fields; computed if it is not given, compared if it is.
    """

    statistic: dict[str, Any]
    value: NDArray[np.float64]
    scale: NDArray[np.float64]
    event: Event
    n: int
    bounds: Bounds
    records_per_person: int
    private: bool
    fit: str
    shares_spent: int = 1
    relation: str = field(kw_only=True)
    person: str | None = field(default=None, kw_only=True)
    contribution: int = field(default=1, kw_only=True)
    neighbours: str = field(default="replace", kw_only=True)
    weight: str | None = field(default=None, kw_only=True)
    weight_bound: float | None = field(default=None, kw_only=True)
    entry: str | None = field(default=None, kw_only=True)
    checksum: str | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        problem = _problem(self)
        if problem:
            raise BadInput(f"{problem} No curator makes such a release: it was altered.")
        for name in ("value", "scale"):
            array = getattr(self, name).view()
            array.flags.writeable = False
            object.__setattr__(self, name, array)
        own = self._checksum()
        if self.checksum is None:
            object.__setattr__(self, "checksum", own)
        elif self.checksum != own:
            raise BadInput(_ALTERED)

    def check(self) -> None:
        """Refuse a release that was changed in place since it was made."""
        if self.checksum != self._checksum():
            raise BadInput(_ALTERED)

    def header(self) -> dict[str, Any]:
        """All that is not an array, in plain JSON values."""
        return {
            "statistic": self.statistic,
            "event": self.event.to_dict(),
            "n": self.n,
            "bounds": self.bounds.to_dict(),
            "private": self.private,
            "fit": self.fit,
            "times": self.shares_spent,
            "entry": self.entry,
            **self.unit.to_dict(),
        }

    @property
    def unit(self) -> PrivacyUnit:
        """Who is protected."""
        return PrivacyUnit(
            relation=self.relation,
            records_per_person=self.records_per_person,
            person=self.person,
            contribution=self.contribution,
            neighbours=self.neighbours,
            weight=self.weight,
            weight_bound=self.weight_bound,
        )

    def _checksum(self) -> str:
        try:
            text = json.dumps(self.header(), sort_keys=True)
        except (RecursionError, TypeError, ValueError):
            raise BadInput("The statistic of a release must be plain JSON values.") from None
        seal = sha256(text.encode())
        for array in (self.value, self.scale):
            seal.update(np.ascontiguousarray(array, dtype="<f8").tobytes())
        return seal.hexdigest()

    def is_of(self, *statistics: type[Statistic]) -> bool:
        """Whether one of these statistics was released."""
        return self.statistic.get("name") in [one.__name__ for one in statistics]

    @property
    def sd(self) -> NDArray[np.float64]:
        """Standard deviation of the noise on each number."""
        return self.scale * (sqrt(2) if isinstance(self.event, Laplace) else 1.0)

    def matrix(self) -> NDArray[np.float64]:
        """Give the released symmetric matrix of a Gram statistic."""
        return symmetric(self.value)

    def matrix_sd(self) -> NDArray[np.float64]:
        """Standard deviations of ``matrix()``'s entries."""
        return symmetric(self.sd)


_TYPES = {
    "statistic": dict,
    "event": Event,
    "bounds": Bounds,
    "private": bool,
    "fit": str,
    "relation": str,
    "entry": str | None,
}


def _problem(release: Release) -> str:
    """What is wrong with a field, in a sentence; nothing if they can be those of a release."""
    wholes = (("n", 0), ("records_per_person", 1), ("shares_spent", 1), ("contribution", 1))
    for name, least in wholes:
        value = getattr(release, name)
        if type(value) is not int or value < least:
            return f"{name} must be a whole number of at least {least}, not {value!r}."
    for name, kind in _TYPES.items():
        if not isinstance(getattr(release, name), kind):
            return f"{name} must be of type {kind}, not {type(getattr(release, name)).__name__}."
    try:
        _ = release.unit
    except BadInput as wrong:
        return str(wrong)
    arrays: tuple[object, object] = (release.value, release.scale)
    if not all(
        isinstance(one, np.ndarray) and one.dtype == np.float64 and one.ndim == 1 for one in arrays
    ):
        return "value and scale must be arrays of float64."
    if release.value.shape != release.scale.shape:
        return "value and scale must have as many numbers."
    if not (np.isfinite(release.value).all() and np.isfinite(release.scale).all()):
        return "value and scale must be finite."
    if (release.scale < 0).any():
        return "A noise scale cannot be below 0."
    return ""


def derived(release: Release, **changes: Any) -> Release:
    """A release that the core makes from another, with some fields changed.

    Noise of a seed stays noise of a seed.
    """
    if changes.get("private", False) and not release.private:
        raise BadInput(
            "The noise of this release came from a seed: nothing made from it is private."
        )
    release.check()
    return replace(release, checksum=None, **changes)


def same_event(paid: Event, event: Event) -> bool:
    """Whether two events are the same, but for last digits of the calibration."""
    a = paid.to_dict()
    b = event.to_dict()
    if a.keys() != b.keys():
        return False
    for name, value in a.items():
        near = isinstance(value, float) and isclose(value, b[name], rel_tol=CALIBRATION_TOLERANCE)
        if value != b[name] and not near:
            return False
    return True


def noise_scale(
    statistic: Statistic, event: Event, unit: PrivacyUnit, shares_spent: int = 1
) -> NDArray[np.float64]:
    """Noise scale of each number of a statistic, but for the last digits."""
    enforced = enforce(statistic)
    sensitivity = enforced.sensitivity(unit.neighbours)
    if isinstance(event, Laplace):
        length = np.full(enforced.size, float(sensitivity.l1 or inf))
    else:
        length = np.sqrt(float(sensitivity.l2_squared) / shares_spent / sensitivity.multiplicity)
    return np.asarray(noise_multiplier(event, unit) * enforced.step * length)


def noise_multiplier(event: Event, unit: PrivacyUnit) -> float:
    """Noise of one release of a statistic, by the sensitivity to one record.

    Larger than the event's own where one person has several records, and where a share of the
    budget goes to the number of units (`COUNT_SHARE`).
    """
    multiplier: float = event.noise_multiplier  # type: ignore[attr-defined]
    multiplier *= unit.records_per_person
    if unit.number_is_public:
        return multiplier
    if isinstance(event, Laplace):
        return multiplier / float(1 - COUNT_SHARE)
    return multiplier / sqrt(1 - COUNT_SHARE)


def number_scale(event: Event, unit: PrivacyUnit) -> Fraction:
    """Square of the noise scale of the number of units, where that is protected."""
    square = Fraction(event.noise_multiplier) ** 2 * unit.records_per_person**2  # type: ignore[attr-defined]
    if isinstance(event, Laplace):
        return square / (COUNT_SHARE * event.count) ** 2
    return square / (COUNT_SHARE * event.count)


def number_sd(release: Release) -> float:
    """Standard deviation of the number of units that a release gives, rounding included."""
    return hypot(float(release.sd[0]), _NUMBER_ROUNDING)


def check_scale(release: Release, expected: NDArray[np.float64]) -> None:
    """Refuse a release that names another noise scale than the one its event and statistic have."""
    if release.scale.shape != expected.shape or not np.allclose(
        release.scale, expected, rtol=_SCALE_TOLERANCE, atol=0
    ):
        raise BadInput(
            "A release names another noise scale than its statistic has by what was paid: it was "
            "altered, or made with other parameters. Rebuild it with those it had."
        )


def symmetric(triangle: NDArray[np.float64]) -> NDArray[np.float64]:
    """The symmetric matrix with this upper triangle, given row by row."""
    m = round((sqrt(8 * len(triangle) + 1) - 1) / 2)
    row, column = upper_triangle(m)
    matrix = np.zeros((m, m))
    matrix[row, column] = matrix[column, row] = triangle
    return matrix
