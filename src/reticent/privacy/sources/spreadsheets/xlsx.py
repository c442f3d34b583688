"""One sheet of an Excel workbook (.xlsx), read row by row.

The first row that is not blank names the columns; each row below it that is not blank is a record.
A cell has a type of its own, as in a list. Of a formula, the value that was saved with it is read.
Proof: reading.md, 5.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from reticent.errors import BadInput, ReticentError
from reticent.privacy.guard import suppress_warnings
from reticent.privacy.sources.base import DtypeKind, Field, check_features
from reticent.privacy.sources.codes import code_array
from reticent.privacy.sources.files import File, FileSource, open_file, readable

__all__ = ["SpreadsheetSource"]

_BLOCK_ROWS = 2**12


@final
class SpreadsheetSource(FileSource):
    """Sheets of workbooks; ``sheet`` names the one of each that is read."""

    def __init__(self, paths: Sequence[File], *, sheet: str | None = None) -> None:
        self._sheet = sheet
        super().__init__(paths)
        check_features(self.width, "?")

    def count(self) -> int:
        """Count the rows below the header that are not blank."""
        return sum(len(block) for block in self.blocks(()))

    def blocks(self, fields: Sequence[Field]) -> Iterator[NDArray[np.float64]]:
        """Yield the records in the order of their rows."""
        columns = [self.position(field.key) for field in fields]
        for path in self.paths:
            self._check_unchanged(path)
            with self._rows(path) as rows:
                next(rows)  # the header
                while some := list(islice(rows, _BLOCK_ROWS)):
                    block = np.empty((len(some), len(fields)))
                    for place, (column, field) in enumerate(zip(columns, fields, strict=True)):
                        cells = [row[column] if column < len(row) else None for row in some]
                        values = np.fromiter(cells, dtype=object, count=len(some))
                        block[:, place] = code_array(values, field.kind)
                    yield block

    def _look(self, path: File) -> list[tuple[str, DtypeKind, str]]:
        with self._rows(path) as rows:
            header = next(rows, ())
        while header and header[-1] is None:
            header = header[:-1]
        if not header or not all(isinstance(name, str) and name.strip() for name in header):
            raise BadInput(
                f"The first row of {path} that is not blank must name the columns, each with a "
                "text. Put such a row above the records."
            )
        names = [name.strip() for name in header]
        if len(set(names)) < len(names):
            raise BadInput(
                f"The column names of {path} are not unique. Give each column a name of its own."
            )
        return [(name, "any", "cell") for name in names]

    @contextmanager
    def _rows(self, path: File) -> Iterator[Iterator[tuple[Any, ...]]]:
        """The rows of the sheet that are not blank; no words of the library leave."""
        try:
            import openpyxl
        except ImportError:
            raise BadInput(
                'A workbook needs openpyxl, which is not installed: pip install "reticent[excel]".'
            ) from None
        with readable(path):
            file = open_file(path)
        failed = False
        try:
            with file, suppress_warnings():  # of features that it does not know
                book = openpyxl.load_workbook(file, read_only=True, data_only=True)
                try:
                    sheet = book[self._chosen(path, book.sheetnames)]
                    sheet.reset_dimensions()  # as the file says them, they may be wrong
                    yield (row for row in sheet.iter_rows(values_only=True) if not _is_blank(row))
                finally:
                    book.close()
        except ReticentError:
            raise
        except Exception:
            failed = True
        if failed:
            raise BadInput(f"{path} cannot be read: it is damaged, or no workbook.")

    def _chosen(self, path: File, names: Sequence[str]) -> str:
        if self._sheet is None and len(names) == 1:
            return names[0]
        if self._sheet is None or self._sheet not in names:
            raise BadInput(
                f"Say which sheet of {path} to read, with sheet=… (--sheet): {', '.join(names)}.",
                parameter="sheet",
            )
        return self._sheet


def _is_blank(row: tuple[Any, ...]) -> bool:
    return all(cell is None or (isinstance(cell, str) and not cell.strip()) for cell in row)
