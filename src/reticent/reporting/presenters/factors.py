"""Factors and principal components: how they go along with the columns."""

from abc import abstractmethod
from math import isqrt
from typing import TYPE_CHECKING, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from reticent.reporting.columns import encoded_columns
from reticent.reporting.formatting import format_count, format_short
from reticent.reporting.presenter import (
    SCREEN,
    Block,
    Json,
    Medium,
    Presenter,
    Quality,
    Section,
    Table,
)
from reticent.reporting.presenters.descriptive import column_means, format_mean, noisy_means_note

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from reticent.models.mixtures.factor_analysis import PCA, FactorAnalysis

__all__ = ["ComponentPresenter", "FactorPresenter"]

Values = NDArray[np.float64]
_LEAST_PIXELS = 25  # of an image
_MOST_PIXELS = 400
_SCREEN_COLUMNS = 12  # of a table on a terminal
_SCREEN_ROWS = 24
_MOST_NAMED = 4  # columns that are named when a factor is told
_STRONG = 0.3  # correlation of a factor with a column, to be named

if TYPE_CHECKING:
    Decomposition = TypeVar("Decomposition", bound=FactorAnalysis | PCA)
else:
    Decomposition = TypeVar("Decomposition")


class LoadingPresenter(Presenter[Decomposition], Generic[Decomposition]):
    """What factors and principal components share."""

    transforms = True
    kind: str  # of what a loading belongs to, in one word
    full_kind: str

    @abstractmethod
    def loadings(self) -> Values:
        """Correlation of each factor with each column, (n_components, n_features)."""

    @abstractmethod
    def _variance_note(self, k: int) -> str:
        """How much of the variance a component explains, if that is known."""

    def subject(self) -> str:
        return f"{format_count(len(self.model.components_), self.full_kind)} of"

    def _names(self) -> list[str]:
        return [f"{self.kind} {k + 1}" for k in range(len(self.model.components_))]

    def image_side(self) -> int:
        """How many pixels wide a factor is if the columns can be the pixels of an image, else 0."""
        if any(kind.cells is not None for kind in self.bounds.x_kinds):  # answers, not pixels
            return 0
        ranges = self.bounds.x
        side = isqrt(len(ranges))
        square = side * side == len(ranges)
        if square and _LEAST_PIXELS <= len(ranges) <= _MOST_PIXELS and len(set(ranges)) == 1:
            return side
        return 0

    def results(self) -> Json:
        model = self.model
        names = [column.name for column in encoded_columns(model)]
        return {
            **column_means(names, model.mean_, model.mean_sd_),
            "columns": names,
            "components": model.components_.tolist(),
            "loadings": self.loadings().tolist(),
        }

    def _table(self) -> Table:
        model = self.model
        loadings = self.loadings()
        rows = []
        for j, column in enumerate(encoded_columns(self.model)):
            name = column.heading
            mean = format_mean(column, float(model.mean_[j]), float(model.mean_sd_[j]))
            correlations = [f"{value:z.2f}".replace("-", "−") for value in loadings[:, j]]
            rows.append([name, mean, *correlations])
        return Table(["column", "mean ± privacy noise", *self._names()], rows)

    def summary(self, medium: Medium = SCREEN) -> list[Block]:
        table = self._table()
        width = 2 + _SCREEN_COLUMNS
        rows = [row[:width] for row in table.rows[:_SCREEN_ROWS]]
        if len(table.rows) > _SCREEN_ROWS:
            rows.append([f"and {len(table.rows) - _SCREEN_ROWS} more"])
        return [Block([Table(table.head[:width], rows)])]

    def sections(self) -> list[Section]:
        caption = (
            "How each factor goes along with each column: blue for more, orange "
            "for less, the darker the closer."
        )
        remarks = self._drawn_columns()
        if self.image_side():  # all of them are drawn
            caption = f"{caption} Columns are drawn as the pixels of an image, row by row."
            remarks = []
        title = self.title()
        return [
            Section(
                title,
                f"{title}.",
                caption,
                [self._table()],
                findings=self._findings(),
                remarks=remarks,
            )
        ]

    def _findings(self) -> list[str]:
        """The columns that go along with each factor most."""
        names = [column.title for column in encoded_columns(self.model)]
        findings = []
        for k, (title, row) in enumerate(zip(self._names(), self.loadings(), strict=True)):
            strongest = [
                j for j in np.argsort(-np.abs(row))[:_MOST_NAMED] if abs(row[j]) >= _STRONG
            ]
            if strongest:
                signs = {True: "more", False: "less"}
                along = ", ".join(f"{signs[bool(row[j] > 0)]} {names[j]}" for j in strongest)
                findings.append(f"{title}{self._variance_note(k)}: {along}")
        return findings[:_SCREEN_COLUMNS]

    def figure(self, width: float, output: int = 0) -> "Figure":
        from reticent.reporting.figures.factors import draw_factors

        return draw_factors(self, width)

    def quality(self) -> Quality:
        gram = self.model.releases_[-1]
        size = format_short(float(gram.matrix_sd()[0, 0]) / gram.n / 2**0.5, 2)
        noise = (
            "The privacy noise in a correlation of two columns is about ± "
            f"{size}, before small ones are shrunk."
        )
        return Quality(self.about_quality, sentences=[noise])

    def _model_notes(self, medium: Medium) -> list[str]:
        ranges = tuple(column.ends for column in encoded_columns(self.model))
        return noisy_means_note(ranges, self.model.mean_sd_, medium, self.few)

    def transform_names(self) -> list[str]:
        """Names of the columns that `transform_rows` gives."""
        return [f"{self.kind}_{k + 1}" for k in range(len(self.model.components_))]

    def transform_rows(self, records: Values) -> list[list[str]]:
        """Give each record its factors, as they are written."""
        return [
            ["" if np.isnan(value) else f"{value:.4g}" for value in row]
            for row in self.model.transform(records)
        ]


class FactorPresenter(LoadingPresenter["FactorAnalysis"]):
    """Factors of factor analysis."""

    kind = "factor"
    full_kind = "factor"
    transform_statement = (
        "factor_1 and so on: what the model expects of the record, in standard deviations."
    )

    def loadings(self) -> Values:
        """Correlations of factors and columns, (factors, d)."""
        spread = np.sqrt(np.diag(self.model.get_covariance()))
        return np.asarray(self.model.components_ / spread)

    def _variance_note(self, k: int) -> str:
        return ""

    def results(self) -> Json:
        """The loadings, and the variance that no factor explains."""
        return {**super().results(), "noise_variance": self.model.noise_variance_.tolist()}


class ComponentPresenter(LoadingPresenter["PCA"]):
    """Principal components."""

    kind = "component"
    full_kind = "principal component"
    transform_statement = (
        "component_1 and so on: what the model expects of the record, in the columns' own units."
    )

    def loadings(self) -> Values:
        """Correlations of components and columns, (components, d)."""
        model = self.model
        scaled = model.components_ * np.sqrt(model.explained_variance_)[:, None]
        return np.asarray(np.clip(scaled / model.column_std_, -1.0, 1.0))

    def _variance_note(self, k: int) -> str:
        return f" ({self.model.explained_variance_ratio_[k]:.0%} of the variance)"

    def results(self) -> Json:
        """The loadings, and the variance that each component explains."""
        return {
            **super().results(),
            "explained_variance": self.model.explained_variance_.tolist(),
            "explained_variance_ratio": self.model.explained_variance_ratio_.tolist(),
        }
