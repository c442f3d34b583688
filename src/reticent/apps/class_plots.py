"""Drawings of a classifier: chances along its inputs with their bands, and the map of its decisions."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import distance_transform_edt

from reticent.apps.canvas import DASHED, Axes, Figure, MaxNLocator, PercentFormatter, crossed, shaded, sheet
from reticent.apps.chances import Chances, chance_grid, chance_lines, class_names, told_class
from reticent.apps.colours import DEPTHS, HUES, LIGHT, hue, shades
from reticent.apps.figures import shortened
from reticent.apps.outputs import output_name
from reticent.apps.slices import ranges

__all__ = ["class_curve", "class_effects", "class_map"]

_SURE = (0.5, 0.7, 0.9, 1.0)  # where a class is drawn darker
_WIDTHS = (0.0, 0.05, 0.1, 0.2, 0.3, 0.5, 0.75, 1.0)  # of bands
_DASHES: Any = ("solid", DASHED, (0, (1, 1.5)), (0, (6, 2, 1, 2)))
_WORTH_A_NAME = 0.03  # of a map
_PERCENT = PercentFormatter(1, symbol=" %")


def class_curve(model: Any, width: float) -> Figure:
    """One input: the chances along it."""
    figure, (axes,) = sheet(1, 1, width, 0.4 * width + 1.1, model.guarantee_)
    drawn = chance_lines(model)
    _draw_lines(figure, [axes], drawn, model, width, _ranked(model, drawn))
    return figure


def class_effects(model: Any, width: float) -> Figure:
    """Several inputs: a panel for each."""
    drawn = chance_lines(model)
    figure, panels = sheet(len(drawn), 3, width, 1.9, model.guarantee_, sharey=True)
    _draw_lines(figure, panels, drawn, model, width, _ranked(model, drawn))
    return figure


def class_map(model: Any, width: float) -> Figure:
    """Two inputs: which class is likeliest where and how sure that is, the width of its band, and two slices."""
    figure, panels = sheet(4, 2, width, 2.7, model.guarantee_)
    found, drawn = chance_grid(model), chance_lines(model)
    rank = _ranked(model, [found])
    _draw_regions(panels[0], found, class_names(model), rank)
    if (told := told_class(model)) is not None:
        _draw_boundary(panels[0], found, told)
    scale = {"ticks": _WIDTHS, "format": _PERCENT, "spacing": "uniform"}
    shaded(figure, panels[1], found.at, found.width, _WIDTHS, shades(len(_WIDTHS) - 1), **scale)
    for axes, title in zip(panels, ("likeliest class, stronger where surer", "width of its 95 % band"), strict=False):
        axes.set(title=title, xlabel=shortened(found.names[0]), ylabel=shortened(found.names[1]))
    crossed(panels[0], ranges(model)[1], 0.7, (0, (1, 2)))
    _draw_lines(figure, panels[2:], drawn, model, width, rank)
    return figure


def _ranked(model: Any, drawn: list[Chances]) -> dict[int, int]:
    """The classes that have a colour, and which: all of few; of many, those that matter most here."""
    classes = range(len(model.classes_))
    matters = np.mean([one.chances.reshape(-1, len(classes)).mean(axis=0) for one in drawn], axis=0)
    chosen = sorted(sorted(classes, key=lambda c: -matters[c])[:HUES])
    return {c: place for place, c in enumerate(chosen)}


def _draw_regions(axes: Axes, found: Chances, names: list[str], rank: dict[int, int]) -> None:
    """Paint each class where it is likeliest: a lead over the next best above zero, then darker from one half on."""
    best_two = np.sort(found.chances, axis=-1)[..., -2:]
    for c, name in enumerate(names):
        mine = found.likeliest == c
        if not mine.any():
            continue
        chance = found.chances[..., c]
        lead = chance - np.where(mine, best_two[..., 0], best_two[..., 1])
        place = rank.get(c)
        filled = [axes.contourf(*found.at, lead, (0, 1.01), colors=[hue(place, 0)])]
        if place is not None and (chance >= _SURE[0]).any():
            tones = [hue(place, depth) for depth in range(1, DEPTHS)]
            filled.append(axes.contourf(*found.at, chance, _SURE, colors=tones))
        for one in filled:
            one.set(edgecolor="face", linewidth=0.4)
        if mine.mean() >= _WORTH_A_NAME:
            _write_name(axes, found, mine, name)


def _write_name(axes: Axes, found: Chances, mine: NDArray[np.bool_], name: str) -> None:
    """Write the name where the region is widest, so that it can be read without colours."""
    depth = distance_transform_edt(np.pad(mine, 1))[1:-1, 1:-1]
    row, column = np.unravel_index(int(depth.argmax()), depth.shape)
    box = {"boxstyle": "round,pad=0.25", "facecolor": LIGHT["paper"], "edgecolor": "none"}
    x, y = found.at
    axes.text(x[column], y[row], shortened(name, 14), ha="center", va="center", color=LIGHT["ink"], bbox=box)


def _draw_boundary(axes: Axes, found: Chances, told: int) -> None:
    """Of two classes: the boundary, and between which lines it lies with 95 %."""
    low, high = found.bands["privacy"]
    for values, thick, dashes in ((found.chances, 1.4, "solid"), (low, 0.9, DASHED), (high, 0.9, DASHED)):
        if values[..., told].min() < _SURE[0] < values[..., told].max():
            axes.contour(
                *found.at, values[..., told], (_SURE[0],), colors=LIGHT["ink"], linewidths=thick, linestyles=[dashes]
            )


def _draw_lines(
    figure: Figure, panels: list[Axes], drawn: list[Chances], model: Any, width: float, rank: dict[int, int]
) -> None:
    names, told = class_names(model), told_class(model)
    for axes, line in zip(panels, drawn, strict=True):
        if told is None:
            _draw_classes(axes, line, names, rank)
        else:
            _draw_one(axes, line, told, names[told])
        axes.set(xlim=(line.at[0][0], line.at[0][-1]), ylim=(0, 1), xlabel=shortened(line.names[0]))
        axes.xaxis.set_major_locator(MaxNLocator(5))
        axes.yaxis.set_major_formatter(_PERCENT)
        if axes.get_subplotspec().is_first_col() or len(panels) == 2:  # type: ignore[union-attr]
            what = f"{output_name(model)} is {names[told]}" if told is not None else output_name(model)
            axes.set_ylabel(f"chance: {shortened(what)}" if told is not None else f"chance of each {shortened(what)}")
    handles, labels = panels[0].get_legend_handles_labels()
    if told is not None:
        handles, labels = handles[::-1], labels[::-1]
    columns = min(len(labels), 4 if width > 5 else 2)
    figure.legend(handles, labels, loc="outside upper left", ncols=columns, handlelength=1.8)


def _draw_one(axes: Axes, line: Chances, told: int, name: str) -> None:
    """The chance of one class of two, with its band by causes."""
    (at,) = line.at
    for part, words in (("privacy", "and privacy noise"), ("model", "model’s doubt")):
        low, high = line.bands[part]
        axes.fill_between(at, low[:, told], high[:, told], color=LIGHT[part], lw=0, label=words)
    axes.plot(at, line.chances[:, told], color=LIGHT["accent"], lw=1.8, label=f"chance of {shortened(name)}")
    axes.axhline(0.5, color=LIGHT["rule"], lw=0.8, zorder=0)


def _draw_classes(axes: Axes, line: Chances, names: list[str], rank: dict[int, int]) -> None:
    """The chance of each class, with its band; classes beyond those that have a colour are added up."""
    (at,), (low, high) = line.at, line.bands["privacy"]
    for c, place in rank.items():
        axes.fill_between(at, low[:, c], high[:, c], color=hue(place), alpha=0.16, lw=0)
        dashes = _DASHES[place % len(_DASHES)]
        axes.plot(at, line.chances[:, c], color=hue(place), lw=1.7, ls=dashes, label=shortened(names[c], 16))
    if len(rank) < len(names):
        others = line.chances[:, [c for c in range(len(names)) if c not in rank]].sum(axis=1)
        axes.plot(at, others, color=LIGHT["muted"], lw=1, ls=DASHED, label=f"{len(names) - len(rank)} others")
