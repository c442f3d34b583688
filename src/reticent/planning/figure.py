"""Figure of a plan: the expected error against ε, the records or the functions."""

from typing import TYPE_CHECKING, Any

import numpy as np

from reticent.errors import BadInput
from reticent.reporting.figures.palette import LIGHT, shades
from reticent.reporting.figures.style import (
    DASHED,
    WIDE,
    Figure,
    FixedLocator,
    LogLocator,
    NullLocator,
    Shown,
    quiet,
    styled,
)
from reticent.reporting.presenters.effects import BAND
from reticent.reporting.protected_unit import unit_noun

if TYPE_CHECKING:
    from reticent.planning.plan import Plan, Row

__all__ = ["expected_error"]


@styled
def expected_error(plan: "Plan", *, width: float = WIDE) -> Figure:
    """Draw what a plan expects.

    The function's error against ε, or against the records or functions if there is one ε.
    """
    if not (hasattr(plan, "rows") and hasattr(plan, "bases")):
        raise BadInput(
            f"plot.expected_error draws what reticent.plan gives, not a {type(plan).__name__}."
        )
    figure = Shown((width, 0.5 * width), layout="constrained")
    noun = unit_noun(plan.planner.model._privacy_unit())
    axes = figure.subplots()
    quiet(axes)
    names = {
        "epsilon": ("ε", "ε={:g}"),
        "n": (f"number of {noun}", f"{{:,}} {noun}"),
        "basis": ("functions", "{} functions"),
    }
    varied = [key for key in names if len({getattr(row, key) for row in plan.rows}) > 1]
    if plan.bases == (None,):
        varied = [key for key in varied if key != "basis"]  # it follows from the others
    across, *others = varied or ["epsilon"]
    groups: dict[tuple[float, ...], list[Row]] = {}
    for row in sorted(plan.rows, key=lambda row: [getattr(row, key) for key in (*others, across)]):
        groups.setdefault(tuple(getattr(row, key) for key in others), []).append(row)
    handles: list[Any] = []  # containers of error bars
    for colour, rows in zip(shades(len(groups) + 1)[1:], groups.values(), strict=True):
        at = [getattr(row, across) for row in rows]
        means = [row.rmse for row in rows]
        labelled = others or [key for key in ("n", "epsilon") if key != across][:1]
        label = ", ".join(names[key][1].format(getattr(rows[0], key)) for key in labelled)
        errors = [BAND * row.rmse_se for row in rows]
        handles.append(
            axes.errorbar(at, means, errors, color=colour, marker="o", ms=4, capsize=2, label=label)
        )
        floor = [row.non_private_rmse for row in rows]
        free = axes.plot(at, floor, color=colour, lw=1, ls=DASHED, label="the same without privacy")
    guess = float(np.mean([row.prior_sd for row in plan.rows]))
    axes.axhline(guess, color=LIGHT["muted"], lw=1, ls=":")
    axes.annotate(
        "a guess, without any record",
        (at[0], guess),
        (0, -11),
        textcoords="offset points",
        color=LIGHT["muted"],
    )
    axes.set(
        xscale="log", yscale="log", xlabel=names[across][0], ylabel="expected error of the mean"
    )
    axes.yaxis.set(
        major_locator=LogLocator(subs=(1, 2, 5)),
        major_formatter="{x:,g}",
        minor_locator=NullLocator(),
    )
    axes.xaxis.set(
        major_locator=FixedLocator(at), major_formatter="{x:,g}", minor_locator=NullLocator()
    )
    figure.legend(handles=[*handles, *free], loc="outside upper left", ncols=4, handlelength=1.8)
    return figure
