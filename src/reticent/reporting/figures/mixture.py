"""Mixtures as drawings: ellipses for pairs of columns, or a density."""

from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from reticent.reporting.figures.palette import LIGHT
from reticent.reporting.figures.style import Figure, sheet, styled
from reticent.reporting.formatting import truncate_name

if TYPE_CHECKING:
    from reticent.reporting.presenters.mixture import MixturePresenter

__all__ = ["draw_mixture"]

_MOST_COLUMNS = 3  # that are drawn, in pairs
_RADIUS = 2.0  # standard deviations of an ellipse


@styled
def draw_mixture(presenter: "MixturePresenter", width: float) -> Figure:
    """Draw each component as an ellipse that holds 86 % of it, for pairs of the first columns.

    With one column its density.
    """
    model = presenter.model
    names = [truncate_name(name) for name in presenter.headings]
    ranges = presenter.bounds.x
    pairs = list(combinations(range(min(len(names), _MOST_COLUMNS)), 2))
    count = max(len(pairs), 1)
    across = 1
    if width > 5:
        across = min(count, 3)
    figure, panels = sheet(count, across, width, 2.6, presenter.guarantee)
    if not pairs:
        low, high = ranges[0]
        at = np.linspace(low, high, 400)
        spread = np.sqrt(model.covariances_[:, 0, 0])
        bells = np.exp(-(((at[:, None] - model.means_[:, 0]) / spread) ** 2) / 2) / (
            np.sqrt(2 * np.pi) * spread
        )
        panels[0].plot(at, bells @ model.weights_, color=LIGHT["accent"], lw=1.8)
        panels[0].set(xlabel=names[0], ylabel="density", xlim=ranges[0])
        return figure
    turn = np.linspace(0, 2 * np.pi, 100)
    circle = _RADIUS * np.array([np.cos(turn), np.sin(turn)])
    for axes, (i, j) in zip(panels, pairs, strict=False):
        for weight, mean, covariance in zip(
            model.weights_, model.means_, model.covariances_, strict=True
        ):
            root = np.linalg.cholesky(covariance[np.ix_([i, j], [i, j])])
            x, y = mean[[i, j], None] + root @ circle
            axes.fill(x, y, color=LIGHT["privacy"], alpha=0.25, lw=0)
            axes.plot(x, y, color=LIGHT["accent"], lw=0.6 + 4 * float(weight))
            axes.plot(*mean[[i, j]], ".", color=LIGHT["ink"], ms=3)
        axes.set(xlabel=names[i], ylabel=names[j], xlim=ranges[i], ylim=ranges[j])
    return figure
