"""Results on a terminal: the plain blocks and tables of a presenter, laid out by Rich."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from reticent.cli.terminal import table

if TYPE_CHECKING:
    from rich.console import RenderableType

    from reticent.reporting.presenter import Block, Table

__all__ = ["render_blocks", "render_table"]

_LONGEST_BAR = 36  # letters


def render_table(content: "Table") -> "RenderableType":
    """Lay out one table, with a bar at the end of each row if it has them."""
    from rich.text import Text

    headings = [*content.head]
    if content.bars:
        headings.append("")
    rows = table(*headings, left=content.text_columns)
    if content.bars:
        rows.columns[-1].justify = "left"
    for i, cells in enumerate(content.rows):
        bar = []
        if content.bars:
            bar = [Text("█" * round(content.bars[i] * _LONGEST_BAR), style="cyan")]
        if i == content.emphasized:
            rows.add_row(*(Text(cell, "bold") for cell in cells), *bar)
        else:
            rows.add_row(*cells, *bar)
    return rows


def render_blocks(blocks: "Sequence[Block]") -> "RenderableType":
    """Lay out blocks below each other, with an empty line between."""
    from rich.console import Group
    from rich.text import Text

    parts: list[RenderableType] = []
    for block in blocks:
        if parts:
            parts.append(Text(""))
        if block.heading:
            parts.append(Text(block.heading, "bold"))
        parts += _render_tables(block.tables)
        if block.tables and block.sentences:
            parts.append(Text(""))
        parts += [Text(sentence) for sentence in block.sentences]
    return Group(*parts)


def _render_tables(tables: "Sequence[Table]") -> "list[RenderableType]":
    """Lay out tables side by side, as far as there is room."""
    from rich.columns import Columns

    rendered = [render_table(one) for one in tables]
    if len(rendered) < 2:
        return rendered
    return [Columns(rendered, padding=(0, 4))]
