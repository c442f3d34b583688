"""Figures of what was released, for notebooks (``reticent.plot``) and for the report: one place that draws.

Every function gives a ``matplotlib.figure.Figure`` made from releases only. Pyplot and the user's styles are left alone.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from reticent.apps.attacker import FALSE_ALARMS, percent, recognised
from reticent.apps.binned import Bars, bars
from reticent.apps.canvas import (
    DASHED,
    WIDE,
    Axes,
    Figure,
    FixedLocator,
    LogLocator,
    MaxNLocator,
    NullLocator,
    Patch,
    PercentFormatter,
    Shown,
    check_fitted,
    crossed,
    on_ranges,
    quiet,
    shaded,
    sheet,
    styled,
)
from reticent.apps.class_plots import class_curve, class_effects, class_map
from reticent.apps.colours import LIGHT, STEPS, shades
from reticent.apps.ellipses import ellipses
from reticent.apps.figures import column_names, measured
from reticent.apps.figures import shortened as _short
from reticent.apps.outputs import one_output, output_name
from reticent.apps.results import model_of
from reticent.apps.searched import seen
from reticent.apps.slices import BAND, MOST_COLUMNS, Line, grid, grouped, lines, ranges
from reticent.apps.structure_plots import draw_cells, draw_clusters, draw_factors
from reticent.errors import BadInput
from reticent.privacy.guarantee import Guarantee

__all__ = ["attacker", "curve", "effects", "expected_error", "map", "release"]

_MOST_BARS = 60
_ROOM = 0.25  # of the axis of what is known, above and below, for guesses, and for bins that lie outside
_BLOCK = 0.15  # of the distance of two values: half the width that each is drawn with
_CAUSES = {"model": "model’s doubt", "privacy": "and privacy noise", "noise": "and observation noise"}


@styled
def curve(model: Any, *, output: int | str | None = None, width: float = WIDE) -> Figure:
    """Draw a regression with one input: the mean, and its 95 % band in three shades, one for each cause of doubt.

    ``output``: name or number, if there are several. Of a classifier: the chance of the second of two classes, or of each.
    """
    if _classifies(model, "curve", model_has=1):
        return class_curve(model, width)
    model = _checked(model, "curve", output, model_has=1)
    figure, (axes,) = sheet(1, 1, width, 0.4 * width + 1.1, model.guarantee_)
    line = lines(model)[0]
    _draw_line(axes, line)
    _draw_bars(axes, bars(model))
    _frame(axes, [line])
    axes.set_ylabel(_short(output_name(model)))
    _legend(figure, axes, width, [line])
    return figure


@styled
def map(model: Any, *, output: int | str | None = None, width: float = WIDE) -> Figure:
    """Draw a regression with two inputs: maps of the mean and of its standard deviation, and two slices.

    Slices go through the inputs' medians where released counts tell them (with the default kernel), else through the middle.
    ``output``: name or number, if there are several. Of a classifier: the likeliest class, stronger where surer, the width of
    its 95 % band, and slices of the chances; of two classes also the boundary, and the lines between which it lies with 95 %.
    """
    if _classifies(model, "map", model_has=2):
        return class_map(model, width)
    model = _checked(model, "map", output, model_has=2)
    figure, panels = sheet(4, 2, width, 2.7, model.guarantee_)
    found, name = grid(model), _short(output_name(model))
    titles = f"mean of {name}", "standard deviation of the mean"
    for axes, values, title in zip(panels, (found.mean, found.sds["privacy"]), titles, strict=False):
        levels = MaxNLocator(STEPS - 1).tick_values(float(values.min()), float(values.max()))
        shaded(figure, axes, (found.x, found.y), values, levels, shades(len(levels) - 1), ticks=levels[::2])
        axes.set(title=title, xlabel=_short(found.names[0]), ylabel=_short(found.names[1]))
    crossed(panels[0], ranges(model)[1])
    for axes, line in zip(panels[2:], lines(model), strict=True):
        _draw_line(axes, line)
        _frame(axes, [line])
        axes.set_ylabel(name)
    _legend(figure, panels[2], width, lines(model))
    return figure


@styled
def effects(model: Any, *, output: int | str | None = None, width: float = WIDE) -> Figure:
    """Draw a regression with several inputs: a panel for each, with the others at their medians or in their middle.

    ``output``: name or number, if there are several. Of a classifier: the chance of the second of two classes, or of each.
    """
    if _classifies(model, "effects"):
        return class_effects(model, width)
    model = _checked(model, "effects", output)
    drawn = lines(model)
    figure, panels = sheet(len(drawn), 3, width, 1.9, model.guarantee_, sharey=True)
    for axes, line in zip(panels, drawn, strict=True):
        _draw_line(axes, line)
        if axes.get_subplotspec().is_first_col():  # type: ignore[union-attr]
            axes.set_ylabel(_short(output_name(model)))
    _frame(panels[0], drawn)
    _legend(figure, panels[0], width, drawn)
    return figure


@styled
def attacker(guarantee: Any, *, width: float = 3.6) -> Figure:
    """Draw the most that an attacker can recognise (true-positive rate) for the false alarms they accept."""
    if not isinstance(guarantee, Guarantee):
        example = "model.guarantee_" if hasattr(guarantee, "fit") else "a Guarantee"
        raise BadInput(f"plot.attacker draws a guarantee: give it {example}, not a {type(guarantee).__name__}.")
    figure, (axes,) = sheet(1, 1, width, width, guarantee)
    rate = np.linspace(0, 1, 201) ** 2  # more points where the curve is steep
    best = recognised(guarantee, rate)
    axes.fill_between(rate, rate, best, color=LIGHT["noise"], lw=0)
    axes.plot(rate, rate, color=LIGHT["muted"], lw=1, ls=DASHED)
    axes.plot(rate, best, color=LIGHT["accent"], lw=1.8)
    found = float(recognised(guarantee, FALSE_ALARMS))
    axes.plot([FALSE_ALARMS], [found], "o", color=LIGHT["accent"], ms=5, clip_on=False)
    axes.annotate(percent(found), (FALSE_ALARMS, found), (14, -8), textcoords="offset points", color=LIGHT["accent"])
    axes.text(0.6, 0.5, "guessing", color=LIGHT["muted"])
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_ticks([0, 0.25, 0.5, 0.75, 1])
        axis.set_major_formatter(PercentFormatter(1, symbol=" %"))
    axes.set(xlim=(0, 1), ylim=(0, 1.01), xlabel="false alarms", ylabel="recognised at most", aspect="equal")
    return figure


@styled
def release(model: Any, *, output: int | str | None = None, width: float = WIDE) -> Figure:
    """Draw what a model says, whichever model of the library it is; ``output``: which of several outputs."""
    check_fitted(model)
    model = seen(model)
    shown = model_of(model)
    if shown.outputs:
        return (curve, map, effects)[min(model.n_features_in_, 3) - 1](model, output=output, width=width)
    return _DRAWINGS[shown.estimator](model, width)


@styled
def expected_error(plan: Any, *, width: float = WIDE) -> Figure:
    """Draw what a plan expects: the function's error against ε, or against the records or functions if there is one ε."""
    if not (hasattr(plan, "rows") and hasattr(plan, "bases")):
        raise BadInput(f"plot.expected_error draws what reticent.plan gives, not a {type(plan).__name__}.")
    figure = Shown((width, 0.5 * width), layout="constrained")
    axes = figure.subplots()
    quiet(axes)
    names = {
        "epsilon": ("ε", "ε={:g}"),
        "n": ("number of records", "{:,} records"),
        "basis": ("functions", "{} functions"),
    }
    varied = [key for key in names if len({getattr(row, key) for row in plan.rows}) > 1]
    if plan.bases == (None,):
        varied = [key for key in varied if key != "basis"]  # it follows from the others
    across, *others = varied or ["epsilon"]
    groups: dict[tuple[float, ...], list[Any]] = {}
    for row in sorted(plan.rows, key=lambda row: [getattr(row, key) for key in (*others, across)]):
        groups.setdefault(tuple(getattr(row, key) for key in others), []).append(row)
    shown: list[Any] = []
    for colour, rows in zip(shades(len(groups) + 1)[1:], groups.values(), strict=True):
        at, means = [getattr(row, across) for row in rows], [row.rmse for row in rows]
        told = others or [key for key in ("n", "epsilon") if key != across][:1]
        label = ", ".join(names[key][1].format(getattr(rows[0], key)) for key in told)
        errors = [BAND * row.rmse_se for row in rows]
        shown.append(axes.errorbar(at, means, errors, color=colour, marker="o", ms=4, capsize=2, label=label))
        floor = [row.non_private_rmse for row in rows]
        free = axes.plot(at, floor, color=colour, lw=1, ls=DASHED, label="the same without privacy")
    guess = float(np.mean([row.prior_sd for row in plan.rows]))
    axes.axhline(guess, color=LIGHT["muted"], lw=1, ls=":")
    axes.annotate(
        "a guess, without any record", (at[0], guess), (0, -11), textcoords="offset points", color=LIGHT["muted"]
    )
    axes.set(xscale="log", yscale="log", xlabel=names[across][0], ylabel="expected error of the mean")
    axes.yaxis.set(major_locator=LogLocator(subs=(1, 2, 5)), major_formatter="{x:,g}", minor_locator=NullLocator())
    axes.xaxis.set(major_locator=FixedLocator(at), major_formatter="{x:,g}", minor_locator=NullLocator())
    figure.legend(handles=shown + free, loc="outside upper left", ncols=4, handlelength=1.8)
    return figure


def _means(model: Any, width: float) -> Figure:
    """Each mean with its 95 % band of privacy noise, on the range of its column."""
    names, ends = [_short(name) for name in column_names(model)[:MOST_COLUMNS]], model.releases_[0].bounds.x
    figure, axes = on_ranges(names, ends, width, 0.5, model.guarantee_)
    columns = zip(ends, model.mean_, model.mean_sd_, strict=True)
    for row, ((low, high), mean, sd) in zip(range(len(names)), columns, strict=False):
        at = (mean - low) / (high - low)
        axes.errorbar(at, row, xerr=BAND * sd / (high - low), fmt="o", color=LIGHT["accent"], ms=4.5, lw=1.6, capsize=3)
        place = min(max(at, 0.12), 0.88), row
        axes.annotate(measured(mean, sd), place, (0, 6), textcoords="offset points", ha="center", color=LIGHT["ink"])
    return figure


def _histograms(model: Any, width: float) -> Figure:
    """Each column's counts as they were released, with whiskers for 95 % of the privacy noise."""
    names = column_names(model)[:MOST_COLUMNS]
    figure, panels = sheet(len(names), min(2, len(names)), width, 2.4, model.guarantee_)
    for axes, name, edges, counts in zip(panels, names, model.edges_, model.counts_, strict=False):
        at, sums, noise = grouped(edges, counts, model.counts_sd_, _MOST_BARS)
        centres = (at[1:] + at[:-1]) / 2
        axes.bar(centres, sums, 0.92 * np.diff(at), color=LIGHT["model"])
        axes.errorbar(centres, sums, BAND * noise, fmt="none", ecolor=LIGHT["accent"], elinewidth=0.9)
        axes.axhline(0, color=LIGHT["muted"], lw=0.7)
        axes.set(xlabel=_short(name), ylabel="records")
    return figure


def _correlations(model: Any, width: float) -> Figure:
    """The correlations as a map, with their numbers where there is room."""
    names = column_names(model)[:MOST_COLUMNS]
    size = min(width, 0.75 * len(names) + 1.4)
    figure, (axes,) = sheet(1, 1, size, 0.85 * size, model.guarantee_)
    draw_cells(axes, model.correlation_[: len(names), : len(names)], written=len(names) <= 10)
    labels = [_short(name, 16) for name in names]
    axes.set_xticks(range(len(names)), labels, rotation=90 if len(names) > 4 else 0)
    axes.set_yticks(range(len(names)), labels)
    axes.set(aspect="equal")
    return figure


_DRAWINGS = {
    "PrivateMean": _means,
    "PrivateHistogram": _histograms,
    "PrivateCovariance": _correlations,
    "GaussianMixture": ellipses,
    "KMeans": draw_clusters,
    "FactorAnalysis": draw_factors,
    "PCA": draw_factors,
}


def _draw_line(axes: Axes, line: Line) -> None:
    """The mean and its bands; of an input with two values a block at each, since nothing is known between them."""
    width = line.at[-1] - line.at[0]
    pieces: list[tuple[Any, Any]] = [(line.at, slice(None))]
    if line.inset:
        pieces = [(at + _BLOCK * width * np.array([-1, 1]), [i, i]) for i, at in enumerate(line.at)]
    for part in reversed(line.sds):
        reach = BAND * line.sds[part]
        low, high = line.mean - reach, line.mean + reach
        for at, of in pieces:
            label = _CAUSES[part] if at is pieces[0][0] else None
            axes.fill_between(at, low[of], high[of], ~line.guessed[of], color=LIGHT[part], lw=0, label=label)
    known, guess = np.where(line.guessed, np.nan, line.mean), np.where(line.guessed, line.mean, np.nan)
    for at, of in pieces:
        axes.plot(at, known[of], color=LIGHT["accent"], lw=1.8, label="mean" if at is pieces[0][0] else None)
    if line.guessed.any():
        reach = BAND * list(line.sds.values())[-1]
        beside = np.convolve(line.guessed, np.ones(3), "same") > 0  # from where the bands end
        axes.fill_between(line.at, line.mean - reach, line.mean + reach, beside, color=LIGHT["rule"], lw=0)
        axes.plot(line.at, guess, color=LIGHT["accent"], lw=1.8, ls=DASHED)
    beyond = line.inset / (1 - 2 * line.inset) * width
    axes.set_xlim(line.at[0] - beyond, line.at[-1] + beyond)
    axes.xaxis.set_major_locator(FixedLocator(line.at.tolist()) if line.inset else MaxNLocator(5))
    axes.set_xlabel(_short(line.name))


def _frame(axes: Axes, drawn: Sequence[Line]) -> None:
    """Hold the axis to what is known, and at most half as long again: a guess, or a bin with few records, may be anywhere."""
    ends = [
        one.mean + sign * np.where(one.guessed, 0.0, BAND * list(one.sds.values())[-1])
        for one in drawn
        for sign in (-1, 1)
    ]
    low, high = min(float(one.min()) for one in ends), max(float(one.max()) for one in ends)
    room, wanted = _ROOM * (high - low), axes.get_ylim()
    axes.set_ylim(max(wanted[0], low - room), min(wanted[1], high + room))


def _draw_bars(axes: Axes, found: Bars | None) -> None:
    """The bins that a curve was fitted to, as they were released, with 95 % of their noise."""
    if found is None:
        return
    left, right, shown = found.edges[:-1], found.edges[1:], np.isfinite(found.height)
    axes.hlines(found.height[shown], left[shown], right[shown], color=LIGHT["ink"], lw=1.0, label="released bins")
    reach = BAND * found.sd[shown]
    centres = (left + right)[shown] / 2
    axes.errorbar(centres, found.height[shown], reach, fmt="none", ecolor=LIGHT["muted"], elinewidth=0.7)


def _legend(figure: Figure, axes: Axes, width: float, drawn: Sequence[Line]) -> None:
    """Say what the shades are, from the inside out; and that grey is where hardly anybody is."""
    handles, labels = axes.get_legend_handles_labels()
    handles, labels = handles[::-1], labels[::-1]
    if any(line.guessed.any() for line in drawn):
        handles, labels = [*handles, Patch(color=LIGHT["rule"])], [*labels, "a guess, all together"]
    columns = len(labels) if width > 5 else 2
    figure.legend(handles, labels, loc="outside upper left", ncols=columns, handlelength=1.4)


def _checked(model: Any, name: str, output: int | str | None, model_has: int | None = None) -> Any:
    """Give the one output of a regression that is to be drawn."""
    check_fitted(model)
    if not hasattr(model, "variance_parts"):
        raise _wrong(name, model_has)
    _check_inputs(model, name, model_has)
    return one_output(model, output)


def _classifies(model: Any, name: str, model_has: int | None = None) -> bool:
    """Whether a classifier is to be drawn, and one that has so many inputs."""
    check_fitted(model)
    if hasattr(model, "predict_proba_band"):
        _check_inputs(model, name, model_has)
        return True
    return False


def _check_inputs(model: Any, name: str, model_has: int | None) -> None:
    if model_has not in (None, model.n_features_in_):
        raise _wrong(name, model_has)


def _wrong(name: str, model_has: int | None) -> BadInput:
    wanted = f" with {model_has} input{'s' if model_has != 1 else ''}" if model_has else ""
    return BadInput(f"plot.{name} draws regressions and classifiers{wanted}; plot.release draws any model.")
