"""Presenter: everything that is said about one kind of fitted model, as plain values.

A presenter reads a model's releases and public parameters, never a record. The terminal, the
report, notebooks and ``--json`` lay out what it gives; none of them knows a model.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from reticent.reporting import released_checks
from reticent.reporting.columns import Column, column_names, input_columns
from reticent.reporting.formatting import join_names
from reticent.reporting.protected_unit import counted_noun, unit_noun

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from reticent.models.base import PrivateEstimator
    from reticent.privacy.accounting.guarantee import Guarantee
    from reticent.privacy.bounds import Bounds
    from reticent.privacy.release import Release

__all__ = [
    "MOST_COLUMNS",
    "NOTEBOOK",
    "PAGE",
    "SCREEN",
    "Block",
    "Json",
    "Medium",
    "Presenter",
    "Quality",
    "Section",
    "Table",
]

Model = TypeVar("Model", bound="PrivateEstimator")
Json = dict[str, Any]  # what `json.dumps` writes

MOST_COLUMNS = 40  # that are drawn


@dataclass(frozen=True)
class Medium:
    """Words that depend on where they are read."""

    effect: str  # the thing that shows how an output changes along one input
    all_numbers: str  # where to find what there was no room for; empty if it is on the same page
    options: bool = False  # whether parameters are given as options of the command line

    def parameter(self, name: str) -> str:
        """Name a parameter as the reader gives it: ``--n-clusters`` or ``n_clusters``."""
        if self.options:
            return f"--{name.replace('_', '-')}"
        return name

    @property
    def budget(self) -> str:
        """The budget, and the parameter that sets it."""
        return f"the budget ({self.parameter('epsilon')})"


SCREEN = Medium("table", "--json", options=True)
PAGE = Medium("curve", "")
NOTEBOOK = Medium("table", "model.report(…)")


@dataclass(frozen=True)
class Table:
    """Numbers with headings, formatted for people.

    ``text_columns``: the first so many columns hold text and stand to the left, the others hold
    numbers. ``bars``: the length of a bar beside each row, as a part of the longest possible one.
    ``emphasized``: the row that matters most.
    """

    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    text_columns: int = 1
    bars: Sequence[float] = ()
    emphasized: int | None = None


@dataclass(frozen=True)
class Block:
    """A part of the summary on a terminal: a heading, tables side by side, sentences below."""

    tables: Sequence[Table] = ()
    sentences: Sequence[str] = ()
    heading: str = ""


@dataclass(frozen=True)
class Section:
    """A part of the report: one figure with its caption, and the numbers behind it.

    ``description``: the figure in words, for those who do not see it. ``findings``: the results in
    words. ``remarks``: how figure and tables are to be read. ``readings``: for each panel of the
    figure, the values of ``output`` under the pointer (empty if there are none to be read).
    """

    title: str
    description: str
    caption: str
    tables: Sequence[Table]
    heading: str = ""
    findings: Sequence[str] = ()
    remarks: Sequence[str] = ()
    output: str = ""
    readings: Sequence[Json] = ()


@dataclass(frozen=True)
class Quality:
    """How far off results can be, by what the releases themselves say."""

    about: str
    tables: Sequence[Table] = ()
    sentences: Sequence[str] = ()


class Presenter(ABC, Generic[Model]):
    """What is said about a fitted model.

    Parameters
    ----------
    model : PrivateEstimator
        The fitted model whose results are presented.
    source : PrivateEstimator, optional
        What was paid for, if that is not the model itself: the search that found it. Its releases,
        guarantee and parameters are those of the page.
    """

    clipping = (
        "A record that lacks a value is left out; a number outside its range counts as the nearest "
        "edge."
    )
    uncertainty = (
        "The ± is the noise added for privacy; it covers neither that these records are a sample, "
        "nor what such values change."
    )
    about_quality = (
        "This is the privacy noise only. That the records are a sample, or "
        "wrong, comes on top of it."
    )

    predicts = False  # one column from others
    transforms = False  # gives new records their clusters or factors

    def __init__(self, model: Model, source: "PrivateEstimator | None" = None) -> None:
        self.model = model
        self.source: PrivateEstimator = model
        if source is not None:
            self.source = source

    @property
    def bounds(self) -> "Bounds":
        """The public ranges of the columns."""
        return self.model.releases_[0].bounds

    @property
    def releases(self) -> "list[Release]":
        """All that was learned from the records, a search's scores too."""
        return self.source.releases_

    @property
    def guarantee(self) -> "Guarantee":
        """The guarantee of all these releases together."""
        return self.source.guarantee_

    @property
    def counted(self) -> str:
        """What counts are of: records, people, or their weight."""
        return counted_noun(self.releases[0].unit)

    @property
    def few(self) -> str:
        """What there may be too few of: records or people."""
        return unit_noun(self.releases[0].unit)

    @property
    def columns(self) -> list[str]:
        """Names of the inputs, or their numbers."""
        return column_names(self.model)

    @property
    def titles(self) -> list[str]:
        """What the inputs are called in sentences: their labels, or else their names."""
        return [column.title for column in self.given_columns]

    @property
    def headings(self) -> list[str]:
        """What the inputs are called on axes and in tables, with their units."""
        return [column.heading for column in self.given_columns]

    @property
    def given_columns(self) -> list[Column]:
        """The inputs that are columns of the data: all but indicators of missing values."""
        columns = input_columns(self.model)
        return [columns[i] for i in self.bounds.given_inputs()]

    @property
    def statement(self) -> str:
        """The guarantee, exactly."""
        return self.guarantee.statement

    @abstractmethod
    def subject(self) -> str:
        """What was released of the columns: "Means of"."""

    def title(self) -> str:
        """What was released: "Means of age and height"."""
        return f"{self.subject()} {join_names(self.titles)}"

    @abstractmethod
    def results(self) -> Json:
        """Every result with every digit, for machines."""

    @abstractmethod
    def summary(self, medium: Medium = SCREEN) -> list[Block]:
        """The results in short, on a terminal or in a notebook."""

    @abstractmethod
    def sections(self) -> list[Section]:
        """The results in the report: a section for each output, or one."""

    @abstractmethod
    def figure(self, width: float, output: int = 0) -> "Figure":
        """Draw the results, ``width`` inches wide; of a regression, one output."""

    @abstractmethod
    def quality(self) -> Quality:
        """How far off the results can be."""

    def remarks(self, medium: Medium) -> list[str]:
        """How results are to be read."""
        return []

    def notes(self, medium: Medium = SCREEN) -> list[str]:
        """What readers must know before they use the results, by the releases alone.

        Records that were left out or misread, and results that say next to nothing.
        """
        return [*released_checks.notes(self.model), *self._model_notes(medium)]

    def _model_notes(self, medium: Medium) -> list[str]:
        """Say so if the results say next to nothing."""
        return []

    def assumptions(self) -> list[str]:
        """What the model assumes besides its bounds."""
        return []

    def class_names(self) -> list[str]:
        """The classes of a classifier; empty for other models."""
        return []

    def _drawn_columns(self) -> list[str]:
        """Say so if not all columns are drawn."""
        columns = len(self.columns)
        if columns <= MOST_COLUMNS:
            return []
        return [f"Of {columns} columns, the {MOST_COLUMNS} that come first are drawn."]
