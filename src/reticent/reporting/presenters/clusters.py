"""Clusters: their centres and sizes."""

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from reticent.privacy.row_maps.grid_counts import GridCounts
from reticent.reporting.columns import Column, encoded_columns, input_columns
from reticent.reporting.formatting import format_short, format_with_error
from reticent.reporting.presenter import (
    PAGE,
    SCREEN,
    Block,
    Json,
    Medium,
    Presenter,
    Quality,
    Section,
    Table,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from reticent.models.mixtures.kmeans import KMeans  # noqa: F401 (a parameter of the base)


__all__ = ["ClusterPresenter"]

_SCREEN_COLUMNS = 12  # of a table on a terminal
_DOUBTFUL = 3.0  # standard deviations of the noise: smaller clusters may be made up by it


class ClusterPresenter(Presenter["KMeans"]):
    """Clusters of k-means."""

    transforms = True
    transform_statement = (
        "cluster: the number of the nearest centre; cluster_distance: how far it is, in "
        "half-ranges of the columns."
    )

    def subject(self) -> str:
        """The number of clusters: "3 clusters of"."""
        count = len(self.model.cluster_centers_)
        if count > 1:
            return f"{count} clusters of"
        return "One cluster of"

    @property
    def on_map(self) -> bool:
        """Whether clusters are drawn on a map: of two numbers."""
        columns = input_columns(self.model)
        return len(columns) == 2 and all(column.categories is None for column in columns)

    def results(self) -> Json:
        """Centre and size of each cluster, with the noise of the size."""
        model = self.model
        names = [column.name for column in encoded_columns(model)]
        clusters = zip(
            model.cluster_centers_.tolist(),
            model.cluster_sizes_,
            model.cluster_sizes_sd_,
            strict=True,
        )
        return {
            "clusters": [
                {
                    "center": dict(zip(names, centre, strict=True)),
                    "records": float(size),
                    "noise_sd": float(sd),
                }
                for centre, size, sd in clusters
            ]
        }

    def _table(self, most: int | None = None) -> Table:
        model = self.model
        columns = encoded_columns(model)[:most]
        rows = []
        for k, centre in enumerate(model.cluster_centers_):
            noise = max(float(model.cluster_sizes_sd_[k]), 1.0)
            size = format_with_error(float(model.cluster_sizes_[k]), noise)
            cells = [
                _format_centre(column, value)
                for column, value in zip(columns, centre, strict=False)
            ]
            rows.append([str(k), size, *cells])
        heads = [column.heading for column in columns]
        return Table(["cluster", f"{self.counted} ± privacy noise", *heads], rows)

    def summary(self, medium: Medium = SCREEN) -> list[Block]:
        """A table of centres and sizes."""
        return [Block([self._table(_SCREEN_COLUMNS)])]

    def sections(self) -> list[Section]:
        """One section: the clusters on a map of two columns, or in each column's range."""
        caption = "Where the centre of each cluster lies in each column’s range."
        if self.on_map:
            caption = (
                "The clusters on a map: numbers are the centres, lines the borders between them."
            )
            if self.model.releases_[0].is_of(GridCounts):
                caption = (
                    "The clusters on a map: numbers are the centres, lines the borders between "
                    "them; the ground shows the noisy counts that were released."
                )
        count = len(self.model.cluster_centers_)
        scale = (
            f"distances count on the scale of the ranges: {count} centres, the "
            f"one with most {self.counted} is 0"
        )
        title = self.title()
        return [
            Section(
                title,
                f"{title}.",
                caption,
                [self._table()],
                findings=[scale],
                remarks=[*self.remarks(PAGE), *self._drawn_columns()],
            )
        ]

    def figure(self, width: float, output: int = 0) -> "Figure":
        """Draw the clusters, ``width`` inches wide."""
        from reticent.reporting.figures.clusters import draw_clusters

        return draw_clusters(self, width)

    def quality(self) -> Quality:
        """The privacy noise in the sizes."""
        largest = float(np.max(self.model.cluster_sizes_sd_))
        part = format_short(largest / self.model.releases_[0].n, 2)
        noise = (
            f"The privacy noise in the size of a cluster ({self.counted}) is ± {part} of all, or "
            "less."
        )
        return Quality(self.about_quality, sentences=[noise])

    def _model_notes(self, medium: Medium) -> list[str]:
        """Say so if clusters are smaller than the noise lets one see."""
        model = self.model
        small = [
            str(k)
            for k, size in enumerate(model.cluster_sizes_)
            if size < _DOUBTFUL * model.cluster_sizes_sd_[k]
        ]
        if not small:
            return []
        named = f"clusters {', '.join(small)} have"
        if len(small) == 1:
            named = f"cluster {small[0]} has"
        return [
            f"{named} no more {self.counted} than the noise could make up: take fewer clusters "
            f"({medium.parameter('n_clusters')}), or a larger budget."
        ]

    def transform_names(self) -> list[str]:
        """Names of the columns that `transform_rows` gives."""
        return ["cluster", "cluster_distance"]

    def transform_rows(self, records: NDArray[np.float64]) -> list[list[str]]:
        """Give each record its nearest cluster and the distance, as they are written."""
        distances = self.model.transform(records)
        return [
            ["", ""] if np.isnan(row[0]) else [str(int(row.argmin())), f"{row.min():.4g}"]
            for row in distances
        ]


def _format_centre(column: Column, value: float) -> str:
    """Write where a centre lies: a share, the nearest word, a date, or a number."""
    if column.is_rate:
        return f"{100 * min(max(value, 0.0), 1.0):.0f} %"
    if column.kind.levels is not None or column.is_date:
        return column.show(column.nearest(value))
    return f"{value:.4g}"
