"""The grid as one picture: coverage of 95 % bands as colours, faults as letters."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from reticent.studies.own.calibration.judging import FAULTS, Judged

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.image import AxesImage

__all__ = ["draw_grid"]

_CELL = (0.62, 0.2)  # inches
_MARGINS = (4.6, 1.3)  # inches for words: beside, and above each panel
_NONE = 0.95  # colour of a cell without bands


def draw_grid(path: Path, judged: Sequence[Judged]) -> Path:
    """Draw a panel for each family: rows are models, n and ε, columns are laws."""
    from matplotlib import rc_context, style
    from matplotlib.figure import Figure

    families = list(dict.fromkeys(one.cell.family for one in judged))
    panels = [[one for one in judged if one.cell.family == family] for family in families]
    rows = [len(_rows(panel)) for panel in panels]
    columns = max(len(_laws(panel)) for panel in panels)
    height = sum(rows) * _CELL[1] + len(panels) * _MARGINS[1] + 0.8
    width = columns * _CELL[0] + _MARGINS[0]
    with style.context("default"), rc_context({"font.size": 7.5}):
        figure = Figure(figsize=(width, height), layout="constrained")
        axes = figure.subplots(len(panels), 1, height_ratios=rows, squeeze=False)[:, 0]
        for place, panel in zip(axes, panels, strict=True):
            image = _panel(place, panel)
        bar = figure.colorbar(
            image, ax=list(axes), location="bottom", aspect=50, pad=0.01, fraction=0.02
        )
        bar.set_label("share of the truths in 95 % bands (grey: no bands are stated)")
        words = ";  ".join(f"{letter} {word}" for letter, word in FAULTS.items())
        figure.suptitle(f"{words};  · no fault", fontsize=8)
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, dpi=110)
    return path


def _laws(panel: Sequence[Judged]) -> list[str]:
    return list(dict.fromkeys(one.cell.law for one in panel))


def _rows(panel: Sequence[Judged]) -> list[tuple[str, int, float]]:
    return list(dict.fromkeys((one.cell.model, one.cell.n, one.cell.epsilon) for one in panel))


def _panel(axes: "Axes", panel: Sequence[Judged]) -> "AxesImage":
    from matplotlib.colors import LinearSegmentedColormap

    colours = LinearSegmentedColormap.from_list(
        "coverage", [(0.0, "#b2182b"), (0.7, "#f4a582"), (0.9, "#ffffff"), (1.0, "#67a9cf")]
    ).with_extremes(bad="#e8e8e8")
    laws = _laws(panel)
    rows = _rows(panel)
    shares = np.full((len(rows), len(laws)), math.nan)
    for one in panel:
        place = rows.index((one.cell.model, one.cell.n, one.cell.epsilon)), laws.index(one.cell.law)
        shares[place] = one.coverage[0.95]
        axes.text(place[1], place[0], one.faults or "·", ha="center", va="center", fontsize=7)
    image = axes.imshow(shares, colours, aspect="auto", vmin=0.5, vmax=1.0)
    axes.set_xticks(range(len(laws)), laws, rotation=40, ha="left", rotation_mode="anchor")
    axes.xaxis.tick_top()
    words = [f"{model}   n = {n:,}, ε = {epsilon:g}" for model, n, epsilon in rows]
    axes.set_yticks(range(len(rows)), words)
    axes.tick_params(length=0)
    for spine in axes.spines.values():
        spine.set_visible(False)
    return image
