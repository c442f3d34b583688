"""Mixtures as drawings: ellipses for pairs of columns, or a density."""

from itertools import combinations
from typing import Any

import numpy as np

from reticent.apps.canvas import Figure, sheet
from reticent.apps.colours import LIGHT
from reticent.apps.figures import column_names, shortened

__all__ = ["ellipses"]

_DRAWN = 3  # columns
_REACH = 2.0  # standard deviations of an ellipse


def ellipses(model: Any, width: float) -> Figure:
    """Each part as an ellipse that holds 86 % of it, for pairs of the first columns; with one column its density."""
    names = [shortened(name) for name in column_names(model)]
    ranges = model.releases_[0].bounds.x
    pairs = list(combinations(range(min(len(names), _DRAWN)), 2))
    figure, panels = sheet(
        max(len(pairs), 1), min(max(len(pairs), 1), 3 if width > 5 else 1), width, 2.6, model.guarantee_
    )
    if not pairs:
        low, high = ranges[0]
        at = np.linspace(low, high, 400)
        spread = np.sqrt(model.covariances_[:, 0, 0])
        bells = np.exp(-(((at[:, None] - model.means_[:, 0]) / spread) ** 2) / 2) / (np.sqrt(2 * np.pi) * spread)
        panels[0].plot(at, bells @ model.weights_, color=LIGHT["accent"], lw=1.8)
        panels[0].set(xlabel=names[0], ylabel="density", xlim=ranges[0])
        return figure
    turn = np.linspace(0, 2 * np.pi, 100)
    circle = _REACH * np.array([np.cos(turn), np.sin(turn)])
    for axes, (i, j) in zip(panels, pairs, strict=False):
        for weight, mean, covariance in zip(model.weights_, model.means_, model.covariances_, strict=True):
            root = np.linalg.cholesky(covariance[np.ix_([i, j], [i, j])])
            x, y = mean[[i, j], None] + root @ circle
            axes.fill(x, y, color=LIGHT["privacy"], alpha=0.25, lw=0)
            axes.plot(x, y, color=LIGHT["accent"], lw=0.6 + 4 * float(weight))
            axes.plot(*mean[[i, j]], ".", color=LIGHT["ink"], ms=3)
        axes.set(xlabel=names[i], ylabel=names[j], xlim=ranges[i], ylim=ranges[j])
    return figure
