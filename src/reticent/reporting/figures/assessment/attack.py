"""Attack figure: what an attacker can recognise against the false alarms they accept."""

import numpy as np

from reticent.errors import BadInput
from reticent.privacy.accounting.guarantee import Guarantee
from reticent.reporting.attack_curve import FALSE_ALARMS, percent, recognised
from reticent.reporting.figures.palette import LIGHT
from reticent.reporting.figures.style import DASHED, Figure, PercentFormatter, sheet, styled

__all__ = ["attacker"]


@styled
def attacker(guarantee: object, *, width: float = 3.6) -> Figure:
    """Draw the most that an attacker can recognise (true-positive rate) for their false alarms."""
    if not isinstance(guarantee, Guarantee):
        example = "a Guarantee"
        if hasattr(guarantee, "fit"):
            example = "model.guarantee_"
        raise BadInput(
            f"plot.attacker draws a guarantee: give it {example}, not a {type(guarantee).__name__}."
        )
    figure, (axes,) = sheet(1, 1, width, width, guarantee)
    rate = np.linspace(0, 1, 201) ** 2  # more points where the curve is steep
    best = recognised(guarantee, rate)
    axes.fill_between(rate, rate, best, color=LIGHT["noise"], lw=0)
    axes.plot(rate, rate, color=LIGHT["muted"], lw=1, ls=DASHED)
    axes.plot(rate, best, color=LIGHT["accent"], lw=1.8)
    found = float(recognised(guarantee, FALSE_ALARMS))
    axes.plot([FALSE_ALARMS], [found], "o", color=LIGHT["accent"], ms=5, clip_on=False)
    axes.annotate(
        percent(found),
        (FALSE_ALARMS, found),
        (14, -8),
        textcoords="offset points",
        color=LIGHT["accent"],
    )
    axes.text(0.6, 0.5, "guessing", color=LIGHT["muted"])
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_ticks([0, 0.25, 0.5, 0.75, 1])
        axis.set_major_formatter(PercentFormatter(1, symbol=" %"))
    axes.set(
        xlim=(0, 1),
        ylim=(0, 1.01),
        xlabel="false alarms",
        ylabel="recognised at most",
        aspect="equal",
    )
    return figure
