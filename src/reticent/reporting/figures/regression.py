"""Figures of a regression: curves along each input with their bands, and maps of two inputs."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from reticent.reporting.columns import Column, input_columns
from reticent.reporting.figures.axes import (
    LINES,
    block_width,
    label_blocks,
    label_input,
    label_map,
)
from reticent.reporting.figures.palette import LIGHT, STEPS, hue, shades
from reticent.reporting.figures.style import (
    DASHED,
    Axes,
    Figure,
    MaxNLocator,
    Patch,
    PercentFormatter,
    crossed,
    legend_above,
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
    draws_map,
    effect_grid,
    effect_lines,
    level_curves,
)
from reticent.reporting.presenters.input_distribution import input_ranges

if TYPE_CHECKING:
    from reticent.reporting.presenters.regression import BaseRegressionPresenter

__all__ = ["draw_bins", "draw_effects", "draw_line", "draw_regression", "frame_axes"]

# of the axis of what is known, above and below, for guesses, and for bins that lie outside
_ROOM = 0.25
_CAUSES = {
    "model": "model’s uncertainty",
    "privacy": "and privacy noise",
    "noise": "and observation noise",
}


@styled
def draw_regression(
    presenter: "BaseRegressionPresenter[Any]", output: RegressionOutput, width: float
) -> Figure:
    """Draw one output: a curve of one input, a map of two, or the effect of each of several."""
    if len(input_columns(presenter.model)) == 1:
        return _draw_effect(presenter, output, width)
    if draws_map(presenter.model):
        return _draw_surface(presenter, output, width)
    curves = level_curves(output)
    if curves:
        return _draw_level_curves(presenter, output, curves, width)
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
    _label_output(axes, output)
    _legend(figure, axes, width, [line])
    return figure


def _draw_level_curves(
    presenter: "BaseRegressionPresenter[Any]",
    output: RegressionOutput,
    curves: Sequence[EffectLine],
    width: float,
) -> Figure:
    """Of a number and a word: a curve along the number for each level, and the usual two slices."""
    lines = effect_lines(output)
    figure, panels = sheet(1 + len(lines), 3, width, 2.4, presenter.guarantee, sharey=True)
    (word,) = (column for column in input_columns(presenter.model) if column.categories is not None)
    axes = panels[0]
    for place, curve in enumerate(curves):
        low, high = curve.band("privacy")
        colour = hue(place)
        axes.fill_between(curve.at, low, high, color=colour, alpha=0.16, lw=0)
        known = np.where(curve.extrapolated, np.nan, curve.mean)
        guess = np.where(curve.extrapolated, curve.mean, np.nan)
        dashes = LINES[place % len(LINES)]
        axes.plot(curve.at, known, color=colour, lw=1.7, ls=dashes, label=_level_name(word, curve))
        axes.plot(curve.at, guess, color=colour, lw=1.0, ls=DASHED)
    axes.set_xlim(curves[0].at[0], curves[0].at[-1])
    label_input(axes, curves[0].column, curves[0].heading)
    for axes, line in zip(panels[1:], lines, strict=True):
        draw_line(axes, line)
    frame_axes(panels[0], [*curves, *lines])
    for axes in panels:
        if axes.get_subplotspec().is_first_col():  # type: ignore[union-attr]
            _label_output(axes, output)
    _legend(figure, panels[1], width, lines, panels[0].get_legend_handles_labels())
    return figure


def _level_name(word: Column, curve: EffectLine) -> str:
    return truncate_name(f"{word.title} = {curve.level}", 22)


def _label_output(axes: Axes, output: RegressionOutput) -> None:
    """Name the output on the axis, with its unit; rates in percent."""
    column = output.column
    name = column.heading
    if column.is_rate:
        name = f"rate of {column.title} = {column.show(1.0)}"
        axes.yaxis.set_major_formatter(PercentFormatter(1, symbol=" %"))
    axes.set_ylabel(truncate_name(name))


def _draw_surface(
    presenter: "BaseRegressionPresenter[Any]", output: RegressionOutput, width: float
) -> Figure:
    """Maps of the mean and of its standard deviation, and two slices."""
    figure, panels = sheet(4, 2, width, 2.7, presenter.guarantee)
    found = effect_grid(output)
    lines = effect_lines(output)
    name = truncate_name(output.column.heading)
    maps = {f"mean of {name}": found.mean, "standard deviation of the mean": found.std["privacy"]}
    scale = {}
    if output.column.is_rate:
        scale["format"] = PercentFormatter(1, symbol=" %")
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
            **scale,
        )
        axes.set_title(title)
        label_map(axes, found.columns)
    crossed(panels[0], input_ranges(output.model)[1])
    for axes, line in zip(panels[2:], lines, strict=True):
        draw_line(axes, line)
        frame_axes(axes, [line])
        _label_output(axes, output)
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
            _label_output(axes, output)
    frame_axes(panels[0], lines)
    _legend(figure, panels[0], width, lines)
    return figure


def draw_line(axes: Axes, line: EffectLine) -> None:
    """The mean and its bands.

    Of words, and of numbers with two values, a block at each: nothing is between them.
    """
    places = line.places
    pieces: list[tuple[Any, Any]] = [(places, slice(None))]
    if line.blocks:
        reach = block_width(places) * np.array([-1, 1])
        pieces = [(at + reach, [i, i]) for i, at in enumerate(places)]
    for part in reversed(line.std):
        low, high = line.band(part)
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
        low, high = line.band(list(line.std)[-1])
        beside = np.convolve(line.extrapolated, np.ones(3), "same") > 0  # from where the bands end
        axes.fill_between(
            line.at,
            low,
            high,
            beside,
            color=LIGHT["rule"],
            lw=0,
        )
        axes.plot(line.at, guess, color=LIGHT["accent"], lw=1.8, ls=DASHED)
    beyond = line.inset / (1 - 2 * line.inset) * (places[-1] - places[0])
    axes.set_xlim(places[0] - beyond, places[-1] + beyond)
    label_input(axes, line.column, line.heading)
    if line.blocks:
        label_blocks(axes, places, [line.show(code) for code in line.at])


def frame_axes(axes: Axes, drawn: Sequence[EffectLine]) -> None:
    """Hold the axis to what is known, and at most half as long again.

    A guess, or a bin with few records, may be anywhere.
    """
    ends = [
        np.where(one.extrapolated, one.mean, end) for one in drawn for end in one.band(_widest(one))
    ]
    low = min(float(one.min()) for one in ends)
    high = max(float(one.max()) for one in ends)
    room = _ROOM * (high - low)
    wanted = axes.get_ylim()
    least, most = drawn[0].limits
    axes.set_ylim(max(wanted[0], low - room, least), min(wanted[1], high + room, most))


def _widest(line: EffectLine) -> str:
    """The cause whose band is the widest that is drawn: of one of several curves, of the mean."""
    if line.level:
        return "privacy"
    return list(line.std)[-1]


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


def _legend(
    figure: Figure,
    axes: Axes,
    width: float,
    drawn: Sequence[EffectLine],
    levels: tuple[list[Any], list[Any]] = ([], []),
) -> None:
    """Say what the shades are, from the inside out; and that grey is where hardly anybody is.

    ``levels``: curves of levels with their names, told after these.
    """
    handles, labels = axes.get_legend_handles_labels()
    handles = handles[::-1]
    labels = labels[::-1]
    if any(line.extrapolated.any() for line in drawn):
        handles = [*handles, Patch(color=LIGHT["rule"])]
        labels = [*labels, "a guess, all together"]
    handles = [*handles, *levels[0]]
    labels = [*labels, *levels[1]]
    columns = 2
    if width > 5:
        columns = 5
    legend_above(figure, handles, labels, columns, handlelength=1.4)
