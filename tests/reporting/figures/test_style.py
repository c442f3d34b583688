"""What all drawings share."""

from matplotlib.figure import Figure
from matplotlib.patches import Patch

from reticent.reporting.figures.style import legend_above, styled


@styled
def _with_legend(inches: float, names: list[str]) -> Figure:
    figure = Figure((inches, 2.0), layout="constrained")
    figure.subplots()
    legend_above(figure, [Patch() for _ in names], names, columns=5, handlelength=1.4)
    return figure


def test_a_legend_is_no_wider_than_its_figure() -> None:
    """Five long names in one row were cut at the right."""
    names = ["mean", "model's uncertainty", "and privacy noise", "and observation noise"]
    names.append("a guess, all together")
    figure = _with_legend(7.2, names)
    (legend,) = figure.legends
    figure.draw_without_rendering()
    assert legend.get_window_extent().x1 <= figure.bbox.width
    assert [text.get_text() for text in legend.texts] == names


def test_short_names_stay_in_one_row() -> None:
    """As many columns as there is room for."""
    (legend,) = _with_legend(7.2, ["mean", "band"]).legends
    first, second = (text.get_window_extent() for text in legend.texts)
    assert first.y0 == second.y0
