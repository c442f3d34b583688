"""CSV files that the command line writes: text in them is never run by a spreadsheet program."""

import csv
import re
from collections.abc import Iterable
from typing import TextIO

from reticent.errors import BadInput
from reticent.privacy.sources.formulas import neutral

__all__ = ["TableWriter"]

_SEPARATORS = {"tab": "\t", "comma": ",", "semicolon": ";", "pipe": "|"}
_DECIMAL_NUMBER = re.compile(r"[+-]?(\d+\.\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)


class TableWriter:
    """Writes the lines of a CSV file.

    Cells that a spreadsheet would run as formulas get an apostrophe in front. ``separator``: a
    comma, a semicolon, a tab or a pipe, by itself or by name. ``decimal``: of numbers, a point or a
    comma.
    """

    def __init__(self, file: TextIO, *, separator: str = ",", decimal: str = ".") -> None:
        mark = self.check_signs(separator, decimal)
        self._decimal = decimal
        self._lines = csv.writer(file, lineterminator="\n", delimiter=mark)

    @staticmethod
    def check_signs(separator: str, decimal: str) -> str:
        """Refuse signs that no reader would expect; gives the separator itself."""
        mark = _SEPARATORS.get(separator, separator)
        if mark not in _SEPARATORS.values():
            raise BadInput(
                "What is written is separated by a comma, a semicolon, a tab or a pipe, not "
                f"{separator!r}.",
                parameter="out_separator",
            )
        if decimal not in (".", ",") or decimal == mark:
            raise BadInput(
                "The decimal sign of what is written is a point, or a comma where columns are "
                f"separated by another sign (a semicolon), not {decimal!r}.",
                parameter="out_decimal",
            )
        return mark

    def line(self, cells: Iterable[str]) -> None:
        """Write one line."""
        self._lines.writerow([self._cell(cell) for cell in cells])

    def lines(self, rows: Iterable[Iterable[str]]) -> None:
        """Write several lines."""
        self._lines.writerows([self._cell(cell) for cell in row] for row in rows)

    def _cell(self, cell: str) -> str:
        if self._decimal != "." and _DECIMAL_NUMBER.fullmatch(cell):
            return cell.replace(".", self._decimal)
        return neutral(cell)
