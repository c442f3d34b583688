"""Figures of clusters: on a map, or along the columns."""

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from reticent.privacy.row_maps.grid_counts import GridCounts, LeafSums
from reticent.reporting.columns import encoded_columns
from reticent.reporting.figures.palette import LIGHT, STEPS, shades
from reticent.reporting.figures.style import Axes, Figure, on_ranges, sheet, styled
from reticent.reporting.formatting import truncate_name
from reticent.reporting.presenter import MOST_COLUMNS

if TYPE_CHECKING:
    from reticent.privacy.release import Release
    from reticent.reporting.presenters.clusters import ClusterPresenter

__all__ = ["draw_clusters"]

Array = NDArray[np.float64]
_RASTER = 128  # cells along each side of a map, for its ground
_FINE = 160  # points along each side of a map, for borders


@styled
def draw_clusters(presenter: "ClusterPresenter", width: float) -> Figure:
    """Draw clusters of two columns on a map; of others along each column's range."""
    if presenter.on_map:
        return _draw_cluster_map(presenter, width)
    centres = presenter.model.cluster_centers_
    columns = encoded_columns(presenter.model)[:MOST_COLUMNS]
    figure, axes = on_ranges(columns, width, 0.5, presenter.guarantee)
    for row, column in enumerate(columns):
        low, high = column.ends
        for k, value in enumerate((centres[:, row] - low) / (high - low)):
            _draw_number(axes, value, row, k)
    return figure


def _draw_cluster_map(presenter: "ClusterPresenter", width: float) -> Figure:
    """The centres, the borders between clusters, and the released counts as the ground."""
    model = presenter.model
    figure, (axes,) = sheet(1, 1, width, 0.78 * width, presenter.guarantee)
    (x0, x1), (y0, y1) = presenter.bounds.x
    names = presenter.headings
    found = _ground(model.releases_)
    if found is not None:
        density, least = found
        levels = [max(least, float(density.max()) / 2.0**STEPS) * 2.0**i for i in range(STEPS)]
        levels = [level for level in levels if level < density.max()] + [
            max(float(density.max()), levels[0]) * 1.001
        ]
        if len(levels) > 1:
            at = (np.arange(len(density)) + 0.5) / len(density)
            filled = axes.contourf(
                x0 + (x1 - x0) * at,
                y0 + (y1 - y0) * at,
                density,
                levels,
                colors=shades(len(levels) + 1)[:-1],
            )
            filled.set(edgecolor="face", linewidth=0.3)
    x = np.linspace(x0, x1, _FINE)
    y = np.linspace(y0, y1, _FINE)
    where = model.predict(np.array([(a, b) for b in y for a in x])).reshape(_FINE, _FINE)
    for k in range(len(model.cluster_centers_)):
        axes.contour(x, y, (where == k).astype(float), [0.5], colors=LIGHT["muted"], linewidths=0.7)
    for k, (a, b) in enumerate(model.cluster_centers_):
        _draw_number(axes, a, b, k)
    axes.set(
        xlim=(x0, x1), ylim=(y0, y1), xlabel=truncate_name(names[0]), ylabel=truncate_name(names[1])
    )
    return figure


def _ground(releases: "list[Release]") -> tuple[Array, float] | None:
    """Records per cell of the released grid, a row for each y; and what stands out from noise."""
    first = releases[0]
    if not first.is_of(GridCounts):
        return None
    grid = GridCounts.decode(first)
    leaves = [release for release in releases if release.is_of(LeafSums)]
    if not leaves:
        return np.maximum(grid.counts.T, 0.0), 3 * grid.sd
    decoded = LeafSums.decode(leaves[0])
    leaf_map = decoded.leaf_map
    at = (np.arange(_RASTER) + 0.5) * (2 / _RASTER) - 1
    points = np.array([(a, b) for b in at for a in at])
    leaf = leaf_map.cell(points).astype(int).reshape(_RASTER, _RASTER)
    area = (leaf_map.leaves()[2] * grid.bins / 2) ** 2
    # a block need not be a whole square
    blocks = np.array([block for block in leaf_map.blocks if block >= 0], dtype=np.int64)
    cells = np.bincount(blocks)
    area[leaf_map.cells - len(cells) :] = cells
    significant = np.where(decoded.counts > 3 * decoded.counts_sd, decoded.counts, 0.0)
    return (significant / area)[leaf], 3 * decoded.counts_sd


def _draw_number(axes: Axes, x: float, y: float, k: int) -> None:
    """A numbered dot."""
    axes.plot([x], [y], "o", color=LIGHT["accent"], mec=LIGHT["paper"], ms=11, clip_on=False)
    axes.text(x, y, str(k), color=LIGHT["paper"], ha="center", va="center", size=7, weight="bold")
