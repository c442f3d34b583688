"""Lines of a CSV file: a record is a line, and no line can change how another one is read.

Common CSV parsers do not keep this: an open quote swallows the lines after it, up to a place that
depends on the size of the parser's buffer. Here the file is cut at every line feed, whatever stands
before it. Each line is then either plain (no quotes, no stray carriage returns; safe for a fast
parser) or odd (read by itself). Proof: reading.md.
"""

import csv
import re
from collections.abc import Iterator
from typing import BinaryIO

import numpy as np

from reticent.errors import BadInput
from reticent.privacy.sources.cell_values import text_number
from reticent.privacy.sources.csv_dialect import (
    LONGEST_HEADER,
    SEPARATORS,
    Dialect,
    header_line,
)
from reticent.privacy.sources.formulas import original

__all__ = ["LONGEST", "count_lines", "cut", "lines_in_order", "read_header", "sort_out", "split"]

# Bytes; a longer line is not kept in memory, it is a record whose values are all missing.
LONGEST = 2**24
_TOO_LONG = b"?\r?"  # stands for such a line; a stray carriage return makes `split` refuse it
_ORDERED_BYTES = 2**20  # read at a time where the order of lines is kept

# a field that is quoted as a whole and would mean the same without its quotes
_NEEDLESS = {
    d: re.compile(rb'"(?<![^%b\n]")([^"%b\r\n]*)"(?=[%b\r\n]|\Z)' % (d, d, d)) for d in SEPARATORS
}


def cut(file: BinaryIO, size: int) -> Iterator[bytes]:
    """Yield the rest of a file in blocks that end at a line end.

    Of about ``size`` ≤ `LONGEST` bytes.
    """
    rest = bytearray()  # the start of a line whose end has not been seen
    while chunk := file.read(size):
        end = chunk.rfind(b"\n") + 1
        if end:
            first = chunk.find(b"\n")
            if len(rest) + first > LONGEST:
                rest[:] = _TOO_LONG
                yield bytes(rest) + chunk[first:end]
            else:
                yield bytes(rest) + chunk[:end]
            rest.clear()
        rest += chunk[end:]
        del rest[LONGEST + 1 :]  # one byte too many is kept, as a mark
    if rest:
        if len(rest) > LONGEST:
            rest[:] = _TOO_LONG
        yield bytes(rest) + b"\n"


def _blank(delimiter: bytes) -> bytes:
    return b" \t\r".replace(delimiter, b"")


def _tidy(block: bytes, delimiter: bytes) -> bool:
    """Whether no line starts like a blank one, and no carriage return is astray."""
    codes = np.frombuffer(block, dtype=np.uint8)
    starts = np.flatnonzero(codes[:-1] == ord("\n")) + 1
    suspect = b"\n" + _blank(delimiter)
    if (
        block.startswith(tuple(bytes([code]) for code in suspect))
        or np.isin(codes[starts], list(suspect)).any()
    ):
        return False
    return b"\r" not in block or block.count(b"\r") == block.count(b"\r\n")


def count_lines(block: bytes, delimiter: bytes) -> int:
    """Return the number of records in a block: its lines that are not blank."""
    if _tidy(block, delimiter):
        return block.count(b"\n")
    blank = _blank(delimiter)
    return sum(1 for line in block.split(b"\n") if line.strip(blank))


def sort_out(block: bytes, delimiter: bytes) -> tuple[bytes, dict[int, bytes]]:
    """Return the plain lines of a block as one text, and its odd lines by their place among all.

    Plain lines are freed of needless quotes.
    """
    quoted = b'"' in block
    if not quoted and _tidy(block, delimiter):
        return block, {}
    if quoted:
        bare_block = _NEEDLESS[delimiter].sub(lambda match: match[1], block)
    else:
        bare_block = block
    blank = _blank(delimiter)
    plain: list[bytes] = []
    odd: dict[int, bytes] = {}
    for line, bare in zip(block.split(b"\n"), bare_block.split(b"\n"), strict=True):
        if not line.strip(blank):
            continue
        bare = bare.removesuffix(b"\r")
        if b'"' in bare or b"\r" in bare or not bare.strip(blank):
            odd[len(plain) + len(odd)] = line.removesuffix(b"\r")
        else:
            plain.append(bare)
    return b"".join(line + b"\n" for line in plain), odd


def split(line: bytes, delimiter: bytes) -> list[bytes] | None:
    """Return the fields of one line by the usual quoting rules, or None if it cannot be split."""
    try:  # latin-1 maps every byte to one character and back
        fields = next(csv.reader([line.decode("latin-1")], delimiter=delimiter.decode()))
    except csv.Error:
        return None
    return [field.encode("latin-1") for field in fields]


def lines_in_order(file: BinaryIO, delimiter: bytes) -> Iterator[tuple[int, list[bytes] | None]]:
    """Return the number and the fields of each line that is not blank, in the order of the file.

    Fields are None where a line cannot be split. Numbers count from the first line that is read.
    """
    blank = _blank(delimiter)
    number = 0
    for block in cut(file, _ORDERED_BYTES):
        for line in block.removesuffix(b"\n").split(b"\n"):
            number += 1
            if line.strip(blank):
                yield number, split(line.removesuffix(b"\r"), delimiter)


def read_header(file: BinaryIO, path: object, dialect: Dialect) -> tuple[str, ...]:
    """Return the column names, which are public, and leave the file at the first record."""
    line = header_line(file, path)
    if not line:
        raise BadInput(f"{path} is empty: its first line must name the columns.")
    if len(line) >= LONGEST_HEADER - 3 and not line.endswith(b"\n"):  # a mark may be gone
        raise BadInput(
            f"The first line of {path} has more than {LONGEST_HEADER} bytes. Choose fewer columns, "
            "or use Parquet."
        )
    wrong = f"The first line of {path} must name the columns"
    try:
        text = dialect.utf8(line).decode("utf-8").removesuffix("\n").removesuffix("\r")
        cells = next(csv.reader([text], delimiter=dialect.separator.decode(), strict=True))
        names = tuple(original(cell.strip()) for cell in cells)
    except (csv.Error, UnicodeDecodeError, StopIteration):
        raise BadInput(
            f"{wrong}, on one line that ends with LF or CRLF. It could not be read."
        ) from None
    if any(
        text_number(name.encode()) == text_number(name.encode()) and not name.isdigit()
        for name in names
    ):
        raise BadInput(
            f"{wrong}, but numbers stand there. Put a line with the names above the records."
        )
    if len(set(names)) < len(names):
        raise BadInput(
            f"The column names of {path} are not unique. Give each column a name of its own."
        )
    return names
