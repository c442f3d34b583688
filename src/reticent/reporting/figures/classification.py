"""Figures of a classifier: probabilities along its inputs with their bands, and its decisions."""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import distance_transform_edt

from reticent.reporting.columns import input_columns
from reticent.reporting.figures.axes import (
    LINES,
    block_width,
    label_blocks,
    label_input,
    label_map,
)
from reticent.reporting.figures.palette import DEPTHS, HUES, LIGHT, hue, shades
from reticent.reporting.figures.style import (
    DASHED,
    Axes,
    Figure,
    PercentFormatter,
    crossed,
    legend_above,
    shaded,
    sheet,
    styled,
)
from reticent.reporting.formatting import truncate_name
from reticent.reporting.presenters.class_probabilities import (
    ClassProbabilities,
    probability_curves,
    probability_grid,
    probability_lines,
)
from reticent.reporting.presenters.effects import draws_map
from reticent.reporting.presenters.input_distribution import input_ranges

if TYPE_CHECKING:
    from reticent.reporting.presenters.classification import ClassificationPresenter

__all__ = ["draw_class_effects", "draw_classification", "rank_classes"]

_SURE = (0.5, 0.7, 0.9, 1.0)  # where a class is drawn darker
_WIDTHS = (0.0, 0.05, 0.1, 0.2, 0.3, 0.5, 0.75, 1.0)  # of bands
_WORTH_A_NAME = 0.03  # of a map
_GROUP = 0.62  # of the distance of two words: what the marks of all classes take together
_LONGEST_LABEL = 22  # letters along the axis of a low panel
_PERCENT = PercentFormatter(1, symbol=" %")


@styled
def draw_classification(presenter: "ClassificationPresenter", width: float) -> Figure:
    """Draw the probabilities along one input, maps of two, or a panel for each of several."""
    if len(input_columns(presenter.model)) == 1:
        return _draw_probability_curve(presenter, width)
    if draws_map(presenter.model):
        return _draw_class_map(presenter, width)
    curves = probability_curves(presenter.model)
    if curves:
        return _draw_level_curves(presenter, curves, width)
    return draw_class_effects(presenter, width)


def _draw_probability_curve(presenter: "ClassificationPresenter", width: float) -> Figure:
    figure, (axes,) = sheet(1, 1, width, 0.4 * width + 1.1, presenter.guarantee)
    lines = probability_lines(presenter.model)
    _draw_lines(figure, [axes], lines, presenter, width, rank_classes(lines))
    return figure


def _draw_level_curves(
    presenter: "ClassificationPresenter", curves: list[ClassProbabilities], width: float
) -> Figure:
    """Of a number and a word: a curve of the chance for each level, and the usual two slices."""
    lines = probability_lines(presenter.model)
    figure, panels = sheet(1 + len(lines), 3, width, 2.4, presenter.guarantee, sharey=True)
    reference = presenter.reference
    assert reference is not None
    (word,) = (c for c in input_columns(presenter.model) if c.categories is not None)
    axes = panels[0]
    for place, curve in enumerate(curves):
        low, high = curve.bands["privacy"]
        (at,) = curve.at
        colour = hue(place)
        axes.fill_between(at, low[:, reference], high[:, reference], color=colour, alpha=0.16, lw=0)
        axes.plot(
            at,
            curve.probabilities[:, reference],
            color=colour,
            lw=1.7,
            ls=LINES[place % len(LINES)],
            label=truncate_name(f"{word.title} = {curve.level}", 22),
        )
    axes.set(xlim=(at[0], at[-1]), ylim=(0, 1))
    label_input(axes, curves[0].columns[0], curves[0].heading)
    levels = axes.get_legend_handles_labels()
    _draw_lines(figure, panels[1:], lines, presenter, width, rank_classes(lines), levels)
    axes.yaxis.set_major_formatter(_PERCENT)
    for panel in panels:
        name = ""
        if panel.get_subplotspec().is_first_col():  # type: ignore[union-attr]
            name = _chance_label(presenter, reference)
        panel.set_ylabel(name)
    return figure


def _chance_label(presenter: "ClassificationPresenter", reference: int) -> str:
    """Label of an axis of chances, in per cent: short enough for a low panel."""
    event = f"{presenter.output} is {presenter.class_names()[reference]}"
    if len(event) + len("chance: ") > _LONGEST_LABEL:
        return truncate_name(event, _LONGEST_LABEL)
    return f"chance: {event}"


@styled
def draw_class_effects(presenter: "ClassificationPresenter", width: float) -> Figure:
    """Draw a panel for each input."""
    lines = probability_lines(presenter.model)
    figure, panels = sheet(len(lines), 3, width, 1.9, presenter.guarantee, sharey=True)
    _draw_lines(figure, panels, lines, presenter, width, rank_classes(lines))
    return figure


def _draw_class_map(presenter: "ClassificationPresenter", width: float) -> Figure:
    """Which class is likeliest where and how sure that is, the width of its band, two slices."""
    figure, panels = sheet(4, 2, width, 2.7, presenter.guarantee)
    found = probability_grid(presenter.model)
    lines = probability_lines(presenter.model)
    rank = rank_classes([found])
    _draw_regions(panels[0], found, presenter.class_names(), rank)
    if presenter.reference is not None:
        _draw_boundary(panels[0], found, presenter.reference)
    scale = {"ticks": _WIDTHS, "format": _PERCENT, "spacing": "uniform"}
    shaded(figure, panels[1], found.at, found.width, _WIDTHS, shades(len(_WIDTHS) - 1), **scale)
    titles = ("likeliest class, stronger where surer", "width of its 95 % band")
    for axes, title in zip(panels, titles, strict=False):
        axes.set_title(title)
        label_map(axes, found.columns)
    crossed(panels[0], input_ranges(presenter.model)[1], 0.7, (0, (1, 2)))
    _draw_lines(figure, panels[2:], lines, presenter, width, rank)
    return figure


def rank_classes(drawn: list[ClassProbabilities]) -> dict[int, int]:
    """Give the classes that have a colour, and its index: all of few.

    Of many, those that matter most here.
    """
    classes = range(drawn[0].probabilities.shape[-1])
    weight = np.mean(
        [one.probabilities.reshape(-1, len(classes)).mean(axis=0) for one in drawn], axis=0
    )
    chosen = sorted(sorted(classes, key=lambda c: -weight[c])[:HUES])
    return {c: place for place, c in enumerate(chosen)}


def _draw_regions(
    axes: Axes, found: ClassProbabilities, names: list[str], rank: dict[int, int]
) -> None:
    """Paint each class where it is likeliest.

    A lead over the next best above zero, then darker from one half on.
    """
    best_two = np.sort(found.probabilities, axis=-1)[..., -2:]
    for c, name in enumerate(names):
        mine = found.likeliest == c
        if not mine.any():
            continue
        chance = found.probabilities[..., c]
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


def _write_name(axes: Axes, found: ClassProbabilities, mine: NDArray[np.bool_], name: str) -> None:
    """Write the name where the region is widest, so that it can be read without colours."""
    depth = distance_transform_edt(np.pad(mine, 1))[1:-1, 1:-1]
    row, column = np.unravel_index(int(depth.argmax()), depth.shape)
    box = {"boxstyle": "round,pad=0.25", "facecolor": LIGHT["paper"], "edgecolor": "none"}
    x, y = found.at
    axes.text(
        x[column],
        y[row],
        truncate_name(name, 14),
        ha="center",
        va="center",
        color=LIGHT["ink"],
        bbox=box,
    )


def _draw_boundary(axes: Axes, found: ClassProbabilities, reference: int) -> None:
    """Of two classes: the boundary, and between which lines it lies with 95 %."""
    low, high = found.bands["privacy"]
    for values, thick, dashes in (
        (found.probabilities, 1.4, "solid"),
        (low, 0.9, DASHED),
        (high, 0.9, DASHED),
    ):
        if values[..., reference].min() < _SURE[0] < values[..., reference].max():
            axes.contour(
                *found.at,
                values[..., reference],
                (_SURE[0],),
                colors=LIGHT["ink"],
                linewidths=thick,
                linestyles=[dashes],
            )


def _draw_lines(
    figure: Figure,
    panels: list[Axes],
    drawn: list[ClassProbabilities],
    presenter: "ClassificationPresenter",
    width: float,
    rank: dict[int, int],
    levels: tuple[list[Any], list[Any]] = ([], []),
) -> None:
    names = presenter.class_names()
    reference = presenter.reference
    for axes, line in zip(panels, drawn, strict=True):
        if reference is None:
            _draw_classes(axes, line, names, rank)
        else:
            _draw_one(axes, line, reference, names[reference])
        places = line.places
        beyond = line.inset / (1 - 2 * line.inset) * (places[-1] - places[0])
        axes.set(xlim=(places[0] - beyond, places[-1] + beyond), ylim=(0, 1))
        label_input(axes, line.columns[0] if line.columns else None, line.heading)
        if line.separate:
            label_blocks(axes, places, [line.show(code) for code in line.at[0]])
        axes.yaxis.set_major_formatter(_PERCENT)
        if axes.get_subplotspec().is_first_col() or len(panels) == 2:  # type: ignore[union-attr]
            label = f"chance of each {truncate_name(presenter.output)}"
            if reference is not None:
                label = _chance_label(presenter, reference)
            axes.set_ylabel(label)
    handles, labels = panels[0].get_legend_handles_labels()
    if reference is not None:
        handles = handles[::-1]
        labels = labels[::-1]
    handles = [*handles, *levels[0]]
    labels = [*labels, *levels[1]]
    columns = 2
    if width > 5:
        columns = 4
    legend_above(figure, handles, labels, columns, handlelength=1.8)


def _draw_one(axes: Axes, line: ClassProbabilities, reference: int, name: str) -> None:
    """The chance of one class of two, with its band by causes."""
    first = True
    for at, of in _pieces(line):
        for part, words in (("privacy", "and privacy noise"), ("model", "model’s uncertainty")):
            low, high = line.bands[part]
            axes.fill_between(
                at,
                low[of, reference],
                high[of, reference],
                color=LIGHT[part],
                lw=0,
                label=words if first else None,
            )
        axes.plot(
            at,
            line.probabilities[of, reference],
            color=LIGHT["accent"],
            lw=1.8,
            label=f"chance of {truncate_name(name)}" if first else None,
        )
        first = False
    axes.axhline(0.5, color=LIGHT["rule"], lw=0.8, zorder=0)


def _pieces(line: ClassProbabilities) -> list[tuple[Any, Any]]:
    """Where a line is drawn, and which of its points: all at once, or a block at each value."""
    places = line.places
    if not line.separate:
        return [(places, slice(None))]
    reach = block_width(places) * np.array([-1, 1])
    return [(at + reach, [i, i]) for i, at in enumerate(places)]


def _draw_class_bars(
    axes: Axes, line: ClassProbabilities, names: list[str], rank: dict[int, int]
) -> None:
    """At each value a mark for the chance of each class, side by side, with its band."""
    low, high = line.bands["privacy"]
    places = line.places
    shown = len(rank) + (len(rank) < len(names))
    step = _GROUP * float(places[1] - places[0]) / max(shown, 1)
    for order, (c, place) in enumerate(rank.items()):
        at = places + step * (order - (shown - 1) / 2)
        axes.bar(at, (high - low)[:, c], 0.8 * step, low[:, c], color=hue(place), alpha=0.25, lw=0)
        chance = line.probabilities[:, c]
        axes.hlines(
            chance,
            at - 0.4 * step,
            at + 0.4 * step,
            color=hue(place),
            lw=1.8,
            label=truncate_name(names[c], 16),
        )
    if len(rank) < len(names):
        others = line.probabilities[:, [c for c in range(len(names)) if c not in rank]].sum(axis=1)
        at = places + step * (shown - 1) / 2
        axes.hlines(
            others,
            at - 0.4 * step,
            at + 0.4 * step,
            color=LIGHT["muted"],
            lw=1.2,
            label=f"{len(names) - len(rank)} others",
        )


def _draw_classes(
    axes: Axes, line: ClassProbabilities, names: list[str], rank: dict[int, int]
) -> None:
    """The chance of each class, with its band.

    Classes beyond those that have a colour are added up.
    """
    if line.separate:
        _draw_class_bars(axes, line, names, rank)
        return
    (at,) = line.at
    low, high = line.bands["privacy"]
    for c, place in rank.items():
        axes.fill_between(at, low[:, c], high[:, c], color=hue(place), alpha=0.16, lw=0)
        dashes = LINES[place % len(LINES)]
        axes.plot(
            at,
            line.probabilities[:, c],
            color=hue(place),
            lw=1.7,
            ls=dashes,
            label=truncate_name(names[c], 16),
        )
    if len(rank) < len(names):
        others = line.probabilities[:, [c for c in range(len(names)) if c not in rank]].sum(axis=1)
        axes.plot(
            at,
            others,
            color=LIGHT["muted"],
            lw=1,
            ls=DASHED,
            label=f"{len(names) - len(rank)} others",
        )
