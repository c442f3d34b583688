"""Figures of a regression: curves along each input with their bands, and maps of two inputs."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from reticent.reporting.figures.palette import LIGHT, STEPS, shades
from reticent.reporting.figures.style import (
    DASHED,
    Axes,
    Figure,
    FixedLocator,
    MaxNLocator,
    Patch,
    crossed,
    shaded,
    sheet,
    styled,
)
from reticent.reporting.formatting import truncate_name
from reticent.reporting.presenters.binned import BinnedPresenter, ReleasedBins
from reticent.reporting.presenters.effects import (
    BAND,
    EffectLine,
    RegressionOutput,
    effect_grid,
    effect_lines,
)
from reticent.reporting.presenters.input_distribution import input_ranges

if TYPE_CHECKING:
    from reticent.reporting.presenters.regression import BaseRegressionPresenter

__all__ = ["draw_effects", "draw_regression"]

# of the axis of what is known, above and below, for guesses, and for bins that lie outside
_ROOM = 0.25
_BLOCK = 0.15  # of the distance of two values: half the width that each is drawn with
_CAUSES = {
    "model": "model’s doubt",
    "privacy": "and privacy noise",
    "noise": "and observation noise",
}


@styled
def draw_regression(
    presenter: "BaseRegressionPresenter[Any]", output: RegressionOutput, width: float
) -> Figure:
    """Draw one output: a curve of one input, a map of two, or the effect of each of several."""
    inputs = len(presenter.columns)
    if inputs == 1:
        return _draw_effect(presenter, output, width)
    if inputs == 2:
        return _draw_surface(presenter, output, width)
    return draw_effects(presenter, output, width)


def _draw_effect(
    presenter: "BaseRegressionPresenter[Any]", output: RegressionOutput, width: float
) -> Figure:
    figure, (axes,) = sheet(1, 1, width, 0.4 * width + 1.1, presenter.guarantee)
    (line,) = effect_lines(output)
    draw_line(axes, line)
    if isinstance(presenter, BinnedPresenter):
        bins = presenter.released_bins()
        if bins is not None:
            draw_bins(axes, bins)
    frame_axes(axes, [line])
    axes.set_ylabel(truncate_name(output.name))
    _legend(figure, axes, width, [line])
    return figure


def _draw_surface(
    presenter: "BaseRegressionPresenter[Any]", output: RegressionOutput, width: float
) -> Figure:
    """Maps of the mean and of its standard deviation, and two slices."""
    figure, panels = sheet(4, 2, width, 2.7, presenter.guarantee)
    found = effect_grid(output)
    lines = effect_lines(output)
    name = truncate_name(output.name)
    maps = {f"mean of {name}": found.mean, "standard deviation of the mean": found.std["privacy"]}
    for axes, (title, values) in zip(panels, maps.items(), strict=False):
        levels = MaxNLocator(STEPS - 1).tick_values(float(values.min()), float(values.max()))
        shaded(
            figure,
            axes,
            (found.x, found.y),
            values,
            levels,
            shades(len(levels) - 1),
            ticks=levels[::2],
        )
        axes.set(
            title=title, xlabel=truncate_name(found.names[0]), ylabel=truncate_name(found.names[1])
        )
    crossed(panels[0], input_ranges(output.model)[1])
    for axes, line in zip(panels[2:], lines, strict=True):
        draw_line(axes, line)
        frame_axes(axes, [line])
        axes.set_ylabel(name)
    _legend(figure, panels[2], width, lines)
    return figure


@styled
def draw_effects(
    presenter: "BaseRegressionPresenter[Any]", output: RegressionOutput, width: float
) -> Figure:
    """Draw a panel for each input, with the others at their medians or in their middle."""
    lines = effect_lines(output)
    figure, panels = sheet(len(lines), 3, width, 1.9, presenter.guarantee, sharey=True)
    for axes, line in zip(panels, lines, strict=True):
        draw_line(axes, line)
        if axes.get_subplotspec().is_first_col():  # type: ignore[union-attr]
            axes.set_ylabel(truncate_name(output.name))
    frame_axes(panels[0], lines)
    _legend(figure, panels[0], width, lines)
    return figure


def draw_line(axes: Axes, line: EffectLine) -> None:
    """The mean and its bands.

    Of an input with two values a block at each, since nothing is known between them.
    """
    width = line.at[-1] - line.at[0]
    pieces: list[tuple[Any, Any]] = [(line.at, slice(None))]
    if line.inset:
        pieces = [(at + _BLOCK * width * np.array([-1, 1]), [i, i]) for i, at in enumerate(line.at)]
    for part in reversed(line.std):
        half_width = BAND * line.std[part]
        low = line.mean - half_width
        high = line.mean + half_width
        for at, of in pieces:
            if at is not pieces[0][0]:
                label = None
            else:
                label = _CAUSES[part]
            axes.fill_between(
                at, low[of], high[of], ~line.extrapolated[of], color=LIGHT[part], lw=0, label=label
            )
    known = np.where(line.extrapolated, np.nan, line.mean)
    guess = np.where(line.extrapolated, line.mean, np.nan)
    for at, of in pieces:
        axes.plot(
            at,
            known[of],
            color=LIGHT["accent"],
            lw=1.8,
            label="mean" if at is pieces[0][0] else None,
        )
    if line.extrapolated.any():
        half_width = BAND * list(line.std.values())[-1]
        beside = np.convolve(line.extrapolated, np.ones(3), "same") > 0  # from where the bands end
        axes.fill_between(
            line.at,
            line.mean - half_width,
            line.mean + half_width,
            beside,
            color=LIGHT["rule"],
            lw=0,
        )
        axes.plot(line.at, guess, color=LIGHT["accent"], lw=1.8, ls=DASHED)
    beyond = line.inset / (1 - 2 * line.inset) * width
    axes.set_xlim(line.at[0] - beyond, line.at[-1] + beyond)
    axes.xaxis.set_major_locator(FixedLocator(line.at.tolist()) if line.inset else MaxNLocator(5))
    axes.set_xlabel(truncate_name(line.name))


def frame_axes(axes: Axes, drawn: Sequence[EffectLine]) -> None:
    """Hold the axis to what is known, and at most half as long again.

    A guess, or a bin with few records, may be anywhere.
    """
    ends = [
        one.mean + sign * np.where(one.extrapolated, 0.0, BAND * list(one.std.values())[-1])
        for one in drawn
        for sign in (-1, 1)
    ]
    low = min(float(one.min()) for one in ends)
    high = max(float(one.max()) for one in ends)
    room = _ROOM * (high - low)
    wanted = axes.get_ylim()
    axes.set_ylim(max(wanted[0], low - room), min(wanted[1], high + room))


def draw_bins(axes: Axes, found: ReleasedBins) -> None:
    """Draw the bins that a curve was fitted to, as they were released, with 95 % of their noise."""
    left = found.edges[:-1]
    right = found.edges[1:]
    known = np.isfinite(found.height)
    axes.hlines(
        found.height[known],
        left[known],
        right[known],
        color=LIGHT["ink"],
        lw=1.0,
        label="released bins",
    )
    half_width = BAND * found.sd[known]
    centres = (left + right)[known] / 2
    axes.errorbar(
        centres, found.height[known], half_width, fmt="none", ecolor=LIGHT["muted"], elinewidth=0.7
    )


def _legend(figure: Figure, axes: Axes, width: float, drawn: Sequence[EffectLine]) -> None:
    """Say what the shades are, from the inside out; and that grey is where hardly anybody is."""
    handles, labels = axes.get_legend_handles_labels()
    handles = handles[::-1]
    labels = labels[::-1]
    if any(line.extrapolated.any() for line in drawn):
        handles = [*handles, Patch(color=LIGHT["rule"])]
        labels = [*labels, "a guess, all together"]
    if width > 5:
        columns = len(labels)
    else:
        columns = 2
    figure.legend(handles, labels, loc="outside upper left", ncols=columns, handlelength=1.4)
