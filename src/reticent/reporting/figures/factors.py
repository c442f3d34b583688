"""Figures of factors and principal components: images, or tables of loadings."""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from reticent.reporting.columns import encoded_columns
from reticent.reporting.figures.style import Figure, draw_cells, sheet, styled
from reticent.reporting.formatting import truncate_name
from reticent.reporting.presenter import MOST_COLUMNS

if TYPE_CHECKING:
    from reticent.privacy.accounting.guarantee import Guarantee
    from reticent.reporting.presenters.factors import LoadingPresenter

__all__ = ["draw_factors"]

_MOST_IMAGES = 20
_MOST_WRITTEN = 10  # factors whose loadings are written as numbers


@styled
def draw_factors(presenter: "LoadingPresenter[Any]", width: float) -> Figure:
    """Draw factors as images where columns can be the pixels of one, else as a table."""
    loadings = presenter.loadings()
    if side := presenter.image_side():
        darkest = max(float(np.abs(loadings).max()), 1e-9)
        images = loadings[:_MOST_IMAGES].reshape(-1, side, side) / darkest
        return _draw_images(images, width, presenter.guarantee)
    names = [column.heading for column in encoded_columns(presenter.model)[:MOST_COLUMNS]]
    count = len(loadings)
    size = min(width, 0.6 * count + 2.2)
    figure, (axes,) = sheet(1, 1, size, 0.34 * len(names) + 0.7, presenter.guarantee)
    draw_cells(axes, loadings[:, : len(names)].T, written=count <= _MOST_WRITTEN)
    axes.set_xticks(range(count), [str(k + 1) for k in range(count)])
    axes.set_yticks(range(len(names)), [truncate_name(name) for name in names])
    return figure


def _draw_images(images: NDArray[np.float64], width: float, guarantee: "Guarantee") -> Figure:
    figure, panels = sheet(len(images), 5, width, width / 5 + 0.15, guarantee)
    for k, (axes, image) in enumerate(zip(panels, images, strict=True)):
        draw_cells(axes, image)
        axes.set(title=str(k + 1), xticks=[], yticks=[], aspect="equal")
    return figure
