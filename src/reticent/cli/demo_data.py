"""A made-up population registry: people who never lived, for the tour, the examples and the tests.

Height follows the growth curve of Preece and Baines (1978) with an exponential term for infancy;
the constants are a fit to everyday growth charts, within 0.7 cm of them from birth to 30. Everybody
has a stature, a tempo of growth and a build of their own. Weight is a median body-mass index by age
times height squared, with a spread that is skewed to the right; blood pressure rises with age and
build. Nothing here comes from real records.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from reticent.files.csv_tables import TableWriter

__all__ = ["RANGES", "mean_weight", "people", "write_csv"]

Column = NDArray[np.float64]

# What a codebook would say: plausible ranges, public, wider than most people need.
RANGES = {
    "age": (0.0, 110.0),  # years
    "sex": (0.0, 1.0),  # 0 male, 1 female
    "height": (40.0, 220.0),  # cm
    "weight": (2.0, 150.0),  # kg
    "systolic": (60.0, 220.0),  # mmHg
}


@dataclass(frozen=True)
class _Growth:
    """Median height (cm) of one sex at age t (years)."""

    adult: float
    at_spurt: float
    spurt: float  # age of the fastest growth
    childhood_rate: float
    spurt_rate: float
    infancy: float
    infancy_years: float

    def height(self, age: Column, tempo: Column) -> Column:
        t = age - self.spurt - tempo
        left = (
            2
            * (self.adult - self.at_spurt)
            / (np.exp(self.childhood_rate * t) + np.exp(self.spurt_rate * t))
        )
        grown: Column = self.adult - left - self.infancy * np.exp(-age / self.infancy_years)
        return grown


_SKEW = 0.08  # of body-mass indices
_BOYS = _Growth(177.54, 163.53, 14.02, 0.0974, 0.8707, 17.61, 0.4183)
_GIRLS = _Growth(163.76, 151.93, 12.11, 0.1179, 0.9281, 15.79, 0.4392)


def people(n: int, seed: int) -> dict[str, Column]:
    """Make ``n`` people.

    Columns ``age``, ``sex`` (1 is female), ``height``, ``weight`` and ``systolic`` (``RANGES`` has
    units).

    >>> table = people(3, seed=1)
    >>> list(table), len(table["age"])
    (['age', 'sex', 'height', 'weight', 'systolic'], 3)
    """
    random = np.random.default_rng(seed)
    age = _ages(random, n)
    female = random.integers(0, 2, n).astype(np.float64)
    youth = np.exp(-age / 4)  # everybody's tempo and build matter little to a newborn
    tempo = 0.9 * random.standard_normal(n) * (1 - youth)
    median = np.where(female == 1, _GIRLS.height(age, tempo), _BOYS.height(age, tempo))
    shrinking = 5.0 * (np.maximum(age - 40, 0) / 45) ** 2
    height = median * (1 + 0.038 * random.standard_normal(n)) - shrinking
    build = random.standard_normal(n)
    bmi = _median_bmi(age) * np.exp(_bmi_spread(age) * (build + _SKEW * (build**2 - 1)))
    weight = bmi * (height / 100) ** 2
    grown_up = 1 / (1 + np.exp(-(age - 14) / 3))
    systolic = (
        88
        + 25 * (1 - np.exp(-age / 9))
        + 0.33 * np.maximum(age - 25, 0)
        + grown_up * (4 * (1 - female) + 3 * build)
    )
    systolic = systolic + (7 + 7 * grown_up * np.sqrt(age / 60)) * random.standard_normal(n)
    return {
        "age": age.round(2),
        "sex": female,
        "height": height.round(1),
        "weight": weight.round(1),
        "systolic": systolic.round(0),
    }


def mean_weight(age: Column, height: Column) -> Column:
    """What people of an age and a height weigh on average.

    The truth that a model of them is to find.
    """
    spread = _bmi_spread(age)
    bend = _SKEW * spread
    mean = np.exp(spread**2 / (2 - 4 * bend) - bend) / np.sqrt(
        1 - 2 * bend
    )  # E exp(s·z + b·(z² − 1)), z normal
    return np.asarray(_median_bmi(age) * mean * (height / 100) ** 2)


def _bmi_spread(age: Column) -> Column:
    """Of body-mass indices, on a logarithmic scale."""
    return np.asarray(0.085 + 0.085 / (1 + np.exp(-(age - 12) / 4)))


def _ages(random: np.random.Generator, n: int) -> Column:
    """Ages of a population that neither grows nor shrinks.

    Proportional to survival, which Gompertz' law ends near 100.
    """
    grid = np.linspace(0, 104, 2081)
    survival = np.exp(-5e-5 * np.exp(0.095 * grid) / 0.095)
    return np.interp(random.random(n), np.cumsum(survival) / survival.sum(), grid)


def _median_bmi(age: Column) -> Column:
    """Body-mass index: 13 at birth, 17 at six months, least at five years, 27 at sixty."""
    infancy = 5.564 * (np.exp(-age / 2.301) - np.exp(-age / 0.241))
    puberty = 6.231 / (1 + np.exp(-(age - 14.474) / 2.943))
    return (
        13.104 + infancy + puberty + 10.776 * (1 - np.exp(-age / 37.34)) - 6.26 * (age / 100) ** 4
    )


def write_csv(table: dict[str, Column], path: Path) -> None:
    """Write a table as a CSV file with a header."""
    with open(path, "x", newline="", encoding="utf-8") as file:
        lines = TableWriter(file)
        lines.line(table)
        lines.lines(
            zip(*([f"{v:g}" for v in column.tolist()] for column in table.values()), strict=True)
        )
