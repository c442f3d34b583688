"""Panels: tables in which a person has several rows, from a package that brings its data along.

    patients    survival/pbcseq (LGPL): 312 patients with a disease of the liver, a row a visit
    students    lme4/InstEval (GPL): 73,421 ratings of lecturers by 2,972 students of ETH Zürich
    viewers     dslabs/movielens (Artistic-2.0): 100,004 ratings of films by 671 people

Rows that lack a value in use are left out. `simulated` needs no package: people with many rows
differ from others.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from reticent.studies.peers.regression_tasks import frame

__all__ = ["PANELS", "Panel", "simulated"]

Array = NDArray[np.float64]
Range = tuple[float, float]


@dataclass(frozen=True, eq=False)
class Panel:
    """One table.

    Attributes
    ----------
    person : array of integers, shape (rows,)
        Whose each row is, from 0.
    inputs : array, shape (rows, d)
    ranges : tuple of d pairs
        Bounds of the inputs, as a user would state them.
    output : array, shape (rows,)
    output_range : pair
    group : array of integers, shape (rows,)
        Cell of each row in a table of means by group, from 0.
    groups : int
        How many cells there are.
    """

    name: str
    about: str
    person: NDArray[np.int64]
    inputs: Array
    ranges: tuple[Range, ...]
    output: Array
    output_range: Range
    group: NDArray[np.int64]
    groups: int

    @property
    def people(self) -> int:
        """How many people there are."""
        return int(self.person.max()) + 1

    @property
    def records_of_each(self) -> NDArray[np.int64]:
        """Number of rows of each person, shape (people,)."""
        return np.bincount(self.person, minlength=self.people)

    def weights(self, contribution: int) -> Array:
        """Weight 1/max(k_i, contribution) of each row, shape (rows,)."""
        return 1.0 / np.maximum(self.records_of_each[self.person], contribution)

    def of_people(self, chosen: NDArray[np.int64]) -> "Panel":
        """The rows of some people, each of whom is somebody else if chosen twice."""
        order = np.argsort(self.person, kind="stable")
        ends = np.cumsum(self.records_of_each)
        starts = ends - self.records_of_each
        rows = [order[starts[one] : ends[one]] for one in chosen.tolist()]
        lengths = np.array([len(some) for some in rows])
        picked = np.concatenate(rows)
        return Panel(
            self.name,
            self.about,
            np.repeat(np.arange(len(chosen)), lengths),
            self.inputs[picked],
            self.ranges,
            self.output[picked],
            self.output_range,
            self.group[picked],
            self.groups,
        )


def simulated(rng: np.random.Generator, people: int = 300) -> Panel:
    """Made-up people of 1 to some 30 rows; the more rows, the larger their outputs."""
    records = 1 + rng.geometric(0.2, people)
    person = np.repeat(np.arange(people), records)
    own = rng.normal(0, 0.3, people) + 0.3 * np.log(records)
    x = rng.uniform(0, 1, len(person))
    output = own[person] + np.sin(3 * x) + rng.normal(0, 0.3, len(person))
    group = np.minimum(3 * x, 2).astype(np.int64)
    return Panel(
        "simulated",
        "simulated rows",
        person,
        x[:, None],
        ((0.0, 1.0),),
        output,
        (-2.0, 4.0),
        group,
        3,
    )


def _patients() -> Panel:
    table = frame("survival", "pbcseq", ["id", "day", "albumin", "stage"]).dropna()
    years = table[["day"]].to_numpy(dtype=np.float64) / 365.25
    return Panel(
        "patients",
        "albumin in g/dl by years since entry; by stage",
        _numbered(table["id"]),
        years,
        ((0.0, 15.0),),
        table["albumin"].to_numpy(dtype=np.float64),
        (1.0, 6.0),
        table["stage"].to_numpy(dtype=np.int64) - 1,
        4,
    )


def _students() -> Panel:
    table = frame("lme4", "InstEval", ["s", "studage", "lectage", "y"])
    ages = table[["studage", "lectage"]].astype(str).to_numpy().astype(np.float64)
    return Panel(
        "students",
        "rating 1 to 5 by semesters of student and lecture; by semester of the student",
        _numbered(table["s"]),
        ages,
        ((1.0, 9.0), (0.0, 7.0)),
        table["y"].to_numpy(dtype=np.float64),
        (1.0, 5.0),
        (ages[:, 0] / 2 - 1).astype(np.int64),
        4,
    )


def _viewers() -> Panel:
    table = frame("dslabs", "movielens", ["userId", "year", "rating"]).dropna()
    year = table["year"].to_numpy(dtype=np.float64)
    return Panel(
        "viewers",
        "rating 0.5 to 5 by year of the film; by its decade",
        _numbered(table["userId"]),
        year[:, None],
        ((1900.0, 2020.0),),
        table["rating"].to_numpy(dtype=np.float64),
        (0.0, 5.0),
        np.clip((year - 1950) // 10, 0, 6).astype(np.int64),
        7,
    )


def _numbered(column: object) -> NDArray[np.int64]:
    """People numbered from 0, by the values of a column."""
    texts = np.asarray(column).astype(str)
    numbers: NDArray[np.int64] = np.unique(texts, return_inverse=True)[1].astype(np.int64)
    return numbers


PANELS: dict[str, Callable[[], Panel]] = {
    "patients": _patients,
    "students": _students,
    "viewers": _viewers,
}
