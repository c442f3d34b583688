"""Mixtures as drawings: ellipses for pairs of columns, or a density."""

from collections.abc import Sequence
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from reticent.reporting.columns import Column, input_columns
from reticent.reporting.figures.axes import label_blocks, label_input, label_map
from reticent.reporting.figures.palette import HUES, LIGHT, hue
from reticent.reporting.figures.style import Axes, Figure, PercentFormatter, sheet, styled
from reticent.reporting.formatting import truncate_name

if TYPE_CHECKING:
    from reticent.reporting.presenters.mixture import MixturePresenter

__all__ = ["draw_mixture"]

_MOST_COLUMNS = 3  # that are drawn, in pairs
_MOST_WORDS = 12  # of a column, that are drawn
_GROUP = 0.7  # of the distance of two words: what the bars of all components take together
_RADIUS = 2.0  # standard deviations of an ellipse


@styled
def draw_mixture(presenter: "MixturePresenter", width: float) -> Figure:
    """Draw each component as an ellipse that holds 86 % of it, for pairs of the first columns.

    With one column its density.
    """
    columns = input_columns(presenter.model)
    numbers = [j for j, one in enumerate(columns) if presenter.level_chances(one) is None]
    words = [one for one in columns if presenter.level_chances(one) is not None][:_MOST_COLUMNS]
    pairs = list(combinations(numbers[:_MOST_COLUMNS], 2))
    alone = [numbers[0]] if len(numbers) == 1 else []
    count = max(len(pairs) + len(alone) + len(words), 1)
    across = 1
    if width > 5:
        across = min(count, 3)
    figure, panels = sheet(count, across, width, 2.6, presenter.guarantee)
    for axes, (i, j) in zip(panels, pairs, strict=False):
        _draw_ellipses(axes, presenter, columns, (i, j))
    for axes, j in zip(panels, alone, strict=False):
        _draw_density(axes, presenter, columns[j], j)
    for axes, column in zip(panels[len(pairs) + len(alone) :], words, strict=True):
        _draw_words(axes, presenter, column)
    return figure


def _draw_density(axes: Axes, presenter: "MixturePresenter", column: Column, j: int) -> None:
    """The density of one number."""
    model = presenter.model
    low, high = column.kind.range
    at = np.linspace(low, high, 400)
    spread = np.sqrt(model.covariances_[:, j, j])
    bells = np.exp(-(((at[:, None] - model.means_[:, j]) / spread) ** 2) / 2) / (
        np.sqrt(2 * np.pi) * spread
    )
    axes.plot(at, bells @ model.weights_, color=LIGHT["accent"], lw=1.8)
    label_input(axes, column, column.heading)
    axes.set(ylabel="density", xlim=(low, high))


def _draw_ellipses(
    axes: Axes, presenter: "MixturePresenter", columns: Sequence[Column], pair: tuple[int, int]
) -> None:
    """The components in the plane of two numbers."""
    model = presenter.model
    turn = np.linspace(0, 2 * np.pi, 100)
    circle = _RADIUS * np.array([np.cos(turn), np.sin(turn)])
    chosen = list(pair)
    for weight, mean, covariance in zip(
        model.weights_, model.means_, model.covariances_, strict=True
    ):
        root = np.linalg.cholesky(covariance[np.ix_(chosen, chosen)])
        x, y = mean[chosen, None] + root @ circle
        axes.fill(x, y, color=LIGHT["privacy"], alpha=0.25, lw=0)
        axes.plot(x, y, color=LIGHT["accent"], lw=0.6 + 4 * float(weight))
        axes.plot(*mean[chosen], ".", color=LIGHT["ink"], ms=3)
    first, second = (columns[j] for j in chosen)
    axes.set(xlim=first.kind.range, ylim=second.kind.range)
    label_map(axes, (first, second))


def _draw_words(axes: Axes, presenter: "MixturePresenter", column: Column) -> None:
    """The chance of each word in each component, side by side, the largest component first."""
    chances = presenter.level_chances(column)
    assert chances is not None
    order = np.argsort(-presenter.model.weights_)[:HUES]
    names = presenter.level_names(column)
    levels = np.arange(len(names))
    if len(names) > _MOST_WORDS:
        frequent = np.argsort(-(presenter.model.weights_ @ chances), kind="stable")[:_MOST_WORDS]
        levels = np.sort(frequent)
    places = np.arange(len(levels), dtype=np.float64)
    step = _GROUP / len(order)
    for row, k in enumerate(order):
        at = places + step * (row - (len(order) - 1) / 2)
        share = f"{100 * presenter.model.weights_[k]:.0f} %"
        axes.bar(at, chances[k, levels], 0.9 * step, color=hue(row), label=share)
    axes.legend(title="part", loc="best", handlelength=1.0, alignment="left")
    axes.set_xlabel(truncate_name(column.heading))
    label_blocks(axes, places, [names[i] for i in levels])
    axes.set(ylabel="chance in the part", ylim=(0, 1))
    axes.yaxis.set_major_formatter(PercentFormatter(1, symbol=" %"))
