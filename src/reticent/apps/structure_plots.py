"""Drawings of clusters on a map or along the columns, and of factors as images or as tables of loadings."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from reticent.apps.canvas import Axes, Figure, bare, on_ranges, sheet
from reticent.apps.colours import LIGHT, STEPS, shades
from reticent.apps.figures import column_names
from reticent.apps.figures import shortened as _short
from reticent.apps.slices import MOST_COLUMNS
from reticent.apps.structure import image_side, loadings
from reticent.models.grids import LeafSums

__all__ = ["draw_cells", "draw_clusters", "draw_factors"]

Array = NDArray[np.float64]
_RASTER = 128  # cells along each side of a map, for its ground
_FINE = 160  # points along each side of a map, for borders
_IMAGES = 20  # factors that are drawn as images


def draw_clusters(model: Any, width: float) -> Figure:
    """Clusters of two columns on a map; of others along each column's range."""
    if model.n_features_in_ == 2:
        return _map(model, width)
    names, ends = [_short(name) for name in column_names(model)[:MOST_COLUMNS]], model.releases_[0].bounds.x
    figure, axes = on_ranges(names, ends, width, 0.5, model.guarantee_)
    for row, (low, high) in zip(range(len(names)), ends, strict=False):
        for k, value in enumerate((model.cluster_centers_[:, row] - low) / (high - low)):
            _number(axes, value, row, k)
    return figure


def _map(model: Any, width: float) -> Figure:
    figure, (axes,) = sheet(1, 1, width, 0.78 * width, model.guarantee_)
    (x0, x1), (y0, y1) = model.releases_[0].bounds.x
    names = column_names(model)
    found = _ground(model.releases_)
    if found is not None:
        density, least = found
        levels = [max(least, float(density.max()) / 2.0**STEPS) * 2.0**i for i in range(STEPS)]
        levels = [level for level in levels if level < density.max()] + [max(float(density.max()), levels[0]) * 1.001]
        if len(levels) > 1:
            at = (np.arange(len(density)) + 0.5) / len(density)
            filled = axes.contourf(
                x0 + (x1 - x0) * at, y0 + (y1 - y0) * at, density, levels, colors=shades(len(levels) + 1)[:-1]
            )
            filled.set(edgecolor="face", linewidth=0.3)
    x, y = np.linspace(x0, x1, _FINE), np.linspace(y0, y1, _FINE)
    where = model.predict(np.array([(a, b) for b in y for a in x])).reshape(_FINE, _FINE)
    for k in range(len(model.cluster_centers_)):
        axes.contour(x, y, (where == k).astype(float), [0.5], colors=LIGHT["muted"], linewidths=0.7)
    for k, (a, b) in enumerate(model.cluster_centers_):
        _number(axes, a, b, k)
    axes.set(xlim=(x0, x1), ylim=(y0, y1), xlabel=_short(names[0]), ylabel=_short(names[1]))
    return figure


def _ground(releases: list[Any]) -> tuple[Array, float] | None:
    """Records per cell of the released grid over the map, a row for each y, and from where on they stand out."""
    first, leaves = releases[0], [one for one in releases if one.statistic["name"] == "LeafSums"]
    if first.statistic["name"] != "GridCounts":
        return None
    bins = first.statistic["bins"]
    if not leaves:
        return np.maximum(first.value.reshape(bins, bins).T, 0.0), 3 * float(first.sd[0])
    told = leaves[0].statistic
    asked = LeafSums(2, bins, tuple(told["splits"]), tuple(told["blocks"]))
    at = (np.arange(_RASTER) + 0.5) * (2 / _RASTER) - 1
    leaf = asked.cell(np.array([(a, b) for b in at for a in at])).astype(int).reshape(_RASTER, _RASTER)
    counts, share = leaves[0].value[: asked.cells], (asked.leaves()[2] * bins / 2) ** 2
    # a block need not be a whole square
    cells = np.bincount(np.array([block for block in asked.blocks if block >= 0], dtype=np.int64))
    share[asked.cells - len(cells) :] = cells
    sure = np.where(counts > 3 * leaves[0].sd[0], counts, 0.0)
    return (sure / share)[leaf], 3 * float(leaves[0].sd[0])


def _number(axes: Axes, x: float, y: float, k: int) -> None:
    """A numbered dot."""
    axes.plot([x], [y], "o", color=LIGHT["accent"], mec=LIGHT["paper"], ms=11, clip_on=False)
    axes.text(x, y, str(k), color=LIGHT["paper"], ha="center", va="center", size=7, weight="bold")


def draw_factors(model: Any, width: float) -> Figure:
    """Factors as images, where the columns can be the pixels of one; else as a table of loadings."""
    found, side = loadings(model), image_side(model)
    if side:
        most = float(np.abs(found).max())  # the darkest
        return _images(model, found[:_IMAGES].reshape(-1, side, side) / max(most, 1e-9), width)
    names = column_names(model)[:MOST_COLUMNS]
    size = min(width, 0.6 * len(found) + 2.2)
    figure, (axes,) = sheet(1, 1, size, 0.34 * len(names) + 0.7, model.guarantee_)
    draw_cells(axes, found[:, : len(names)].T, written=len(found) <= 10)
    axes.set_xticks(range(len(found)), [str(k + 1) for k in range(len(found))])
    axes.set_yticks(range(len(names)), [_short(name) for name in names])
    return figure


def _images(model: Any, images: Any, width: float) -> Figure:
    figure, panels = sheet(len(images), 5, width, width / 5 + 0.15, model.guarantee_)
    for k, (axes, image) in enumerate(zip(panels, images, strict=True)):
        draw_cells(axes, image)
        axes.set(title=str(k + 1), xticks=[], yticks=[], aspect="equal")
    return figure


def draw_cells(axes: Axes, values: Any, *, written: bool = False) -> None:
    """A table of signed numbers from −1 to 1 as coloured cells, with the numbers in them if they are to be ``written``."""
    most = STEPS // 2
    for i, row in enumerate(values):
        steps = np.rint(np.minimum(np.abs(row), 1.0) * most).astype(int)
        colours = [LIGHT[f"{'below' if value < 0 else 'above'}-{step}"] for value, step in zip(row, steps, strict=True)]
        axes.barh([i] * len(row), 0.98, 0.98, left=np.arange(len(row)) - 0.49, color=colours)
        for j, value in enumerate(row if written else ()):
            ink = LIGHT["paper" if steps[j] > most / 2 else "ink"]
            axes.text(j, i, f"{value:z.2f}".replace("-", "−"), ha="center", va="center", color=ink)
    axes.set(xlim=(-0.5, len(values[0]) - 0.5), ylim=(len(values) - 0.5, -0.5))
    bare(axes)
