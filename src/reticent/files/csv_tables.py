"""CSV files that the command line writes: text in them is never run by a spreadsheet program."""

import csv
from collections.abc import Iterable
from typing import TextIO

from reticent.privacy.sources.formulas import neutral

__all__ = ["TableWriter"]


class TableWriter:
    """Writes the lines of a CSV file.

    Cells that a spreadsheet would run as formulas get an apostrophe in front.
    """

    def __init__(self, file: TextIO) -> None:
        self._lines = csv.writer(file, lineterminator="\n")

    def line(self, cells: Iterable[str]) -> None:
        """Write one line."""
        self._lines.writerow([neutral(cell) for cell in cells])

    def lines(self, rows: Iterable[Iterable[str]]) -> None:
        """Write several lines."""
        self._lines.writerows([neutral(cell) for cell in row] for row in rows)
