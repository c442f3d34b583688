"""The drawing of a search: what was tried, what was chosen, how sure its score is. Only what is public or was released."""

from typing import Any

from reticent.apps.canvas import WIDE, Figure, MaxNLocator, bare, check_fitted, quiet, sheet, styled
from reticent.apps.colours import LIGHT
from reticent.apps.figures import shortened
from reticent.apps.searched import search_rows, seen
from reticent.apps.slices import BAND
from reticent.errors import BadInput

__all__ = ["MOST_DRAWN", "search"]

MOST_DRAWN = 24  # candidates; of more, the chosen one and the first


@styled
def search(model: Any, *, width: float = WIDE) -> Figure:
    """Draw a private search: its candidates, the chosen one, its noisy score and the 95 % band of the noise.

    The other candidates have no score: that was not released, and is not known.
    """
    check_fitted(model)
    found = getattr(seen(model), "search", None)
    if found is None:
        raise BadInput(f"plot.search draws a fitted PrivateSearch, not a {type(model).__name__}.")
    rows = search_rows(found)
    shown = sorted({found.best_index_, *range(min(len(rows), MOST_DRAWN))})[:MOST_DRAWN]
    if found.best_index_ not in shown:
        shown[-1] = found.best_index_
    figure, (axes,) = sheet(1, 1, width, 0.27 * len(shown) + 1.0, found.guarantee_)
    score, reach = found.best_score_, BAND * found.best_score_sd_
    for place, index in enumerate(shown):
        if index == found.best_index_:
            axes.axhspan(place - 0.42, place + 0.42, color=LIGHT["noise"], lw=0)
            axes.errorbar(score, place, xerr=reach, fmt="o", color=LIGHT["accent"], ms=5, lw=1.8, capsize=3)
            told = axes.annotate(
                rows[index][2], (score + reach, place), (7, 0), textcoords="offset points", va="center"
            )
            told.set_color(LIGHT["ink"])
        else:
            axes.text(score, place, "not released", ha="center", va="center", color=LIGHT["muted"])
    most = 44 if width > 5 else 20
    axes.set_yticks(range(len(shown)), [f"{rows[i][0]}  {shortened(rows[i][1], most)}" for i in shown])
    axes.set(ylim=(len(shown) - 0.4, -0.9), xlim=(score - 3 * max(reach, 1e-9), score + 3 * max(reach, 1e-9)))
    axes.set_xlabel("noisy score of the best run, 95 % band")
    bare(axes)
    quiet(axes)
    axes.tick_params(axis="y", labelcolor=LIGHT["ink"], length=0)
    axes.xaxis.set_major_locator(MaxNLocator(5))
    chosen = axes.get_yticklabels()[shown.index(found.best_index_)]
    chosen.set_fontweight("bold")
    return figure
