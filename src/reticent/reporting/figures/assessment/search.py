"""Search figure: the candidates, the chosen one, and how sure its score is.

Only what is public or was released.
"""

from typing import TYPE_CHECKING

from reticent.errors import BadInput
from reticent.reporting.figures.palette import LIGHT
from reticent.reporting.figures.style import (
    WIDE,
    Figure,
    MaxNLocator,
    bare,
    check_fitted,
    quiet,
    sheet,
    styled,
)
from reticent.reporting.formatting import truncate_name
from reticent.reporting.presenters.effects import BAND
from reticent.reporting.search_result import search_table

if TYPE_CHECKING:
    from reticent.models.selection.private_search import PrivateSearch

__all__ = ["MOST_DRAWN", "search"]

MOST_DRAWN = 24  # candidates; of more, the chosen one and the first


@styled
def search(model: "PrivateSearch", *, width: float = WIDE) -> Figure:
    """Draw a private search.

    Its candidates, the chosen one, its noisy score and the 95 % band of the noise. The other
    candidates have no score: that was not released, and is not known.
    """
    check_fitted(model)
    if not hasattr(model, "best_index_"):
        raise BadInput(f"plot.search draws a fitted PrivateSearch, not a {type(model).__name__}.")
    rows = search_table(model).rows
    best = model.best_index_
    drawn = sorted({best, *range(min(len(rows), MOST_DRAWN))})[:MOST_DRAWN]
    if best not in drawn:
        drawn[-1] = best
    figure, (axes,) = sheet(1, 1, width, 0.27 * len(drawn) + 1.0, model.guarantee_)
    score = model.best_score_
    half_width = BAND * model.best_score_sd_
    for place, index in enumerate(drawn):
        if index != best:
            axes.text(score, place, "not released", ha="center", va="center", color=LIGHT["muted"])
            continue
        axes.axhspan(place - 0.42, place + 0.42, color=LIGHT["noise"], lw=0)
        axes.errorbar(
            score, place, xerr=half_width, fmt="o", color=LIGHT["accent"], ms=5, lw=1.8, capsize=3
        )
        axes.annotate(
            rows[index][2],
            (score + half_width, place),
            (7, 0),
            textcoords="offset points",
            va="center",
            color=LIGHT["ink"],
        )
    most = 20
    if width > 5:
        most = 44
    axes.set_yticks(
        range(len(drawn)), [f"{rows[i][0]}  {truncate_name(rows[i][1], most)}" for i in drawn]
    )
    room = 3 * max(half_width, 1e-9)
    axes.set(ylim=(len(drawn) - 0.4, -0.9), xlim=(score - room, score + room))
    axes.set_xlabel("noisy score of the best run, 95 % band")
    bare(axes)
    quiet(axes)
    axes.tick_params(axis="y", labelcolor=LIGHT["ink"], length=0)
    axes.xaxis.set_major_locator(MaxNLocator(5))
    axes.get_yticklabels()[drawn.index(best)].set_fontweight("bold")
    return figure
