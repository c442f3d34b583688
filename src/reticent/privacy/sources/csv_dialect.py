"""CSV dialects: separator, decimal sign and encoding, said by the user or told by the header.

The header line is public, records are not: nothing here depends on a record. What the header
cannot say, the decimal sign and the encoding of cells, is settled cell by cell, so that no record
changes how another one is read. Proof: reading.md, 5.
"""

import codecs
from dataclasses import dataclass
from typing import BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from reticent.errors import BadInput
from reticent.privacy.sources.files import File, open_text, plain_ending, readable

__all__ = ["SEPARATORS", "Dialect", "find_dialect", "header_line"]

SEPARATORS = (b",", b";", b"\t", b"|")
LONGEST_HEADER = 2**24  # bytes
_BOM = b"\xef\xbb\xbf"
_ENCODINGS = frozenset(
    {
        *("ascii", "utf-8", "gbk", "gb18030", "gb2312", "big5", "big5hkscs", "cp950", "cp949"),
        *("euc_jp", "euc_kr", "shift_jis", "cp932", "koi8-r", "koi8-u", "tis-620", "kz1048"),
        *(f"iso8859-{part}" for part in range(1, 17) if part != 12),
        *(f"cp{page}" for page in range(1250, 1259)),
        *("cp437", "cp720", "cp737", "cp775", "cp850", "cp852", "cp855", "cp857", "cp858"),
        *("cp860", "cp861", "cp862", "cp863", "cp865", "cp866", "cp869", "cp874", "cp1125"),
        *("mac-roman", "mac-latin2", "mac-cyrillic", "mac-greek", "mac-turkish", "mac-iceland"),
    }
)
_OTHER_BOMS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE, codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)


@dataclass(frozen=True)
class Dialect:
    """How a CSV file is written.

    ``decimal`` is b"." or b","; None takes either, which a semicolon as the separator allows.
    ``encoding`` None: a cell that is not UTF-8 is read as Windows-1252 (Latin-1 and more).
    """

    separator: bytes = b","
    decimal: bytes | None = b"."
    encoding: str | None = None

    def __post_init__(self) -> None:
        if self.encoding is not None:
            object.__setattr__(self, "encoding", known_encoding(self.encoding))

    def plain_number(self, text: bytes) -> bytes:
        """The text of a number with a decimal point; the empty text for another decimal sign."""
        if self.decimal == b".":
            return text
        if self.decimal == b"," and b"." in text:
            return b""
        return text.replace(b",", b".")

    def plain_numbers(self, cells: pa.Array) -> pa.Array:
        """`plain_number` of each cell of an arrow column of texts."""
        if self.decimal == b".":
            return cells
        plain = pc.replace_substring(cells, ",", ".")
        if self.decimal == b",":
            plain = pc.if_else(pc.match_substring(cells, "."), "", plain)
        return plain

    def utf8(self, text: bytes) -> bytes:
        """A cell in UTF-8; the empty text if it is not of the encoding that was said."""
        if text.isascii():
            return text
        try:
            return text.decode(self.encoding or "utf-8").encode()
        except UnicodeDecodeError:
            if self.encoding is not None:
                return b""
        return text.decode("cp1252", "replace").encode()


def identifier_text(text: bytes) -> bytes:
    """A cell of identifiers, as UTF-8 where it can be read so, whatever encoding was said.

    Who is a person, and so how many there are, must not depend on what is said about a file: UTF-8,
    else Windows-1252, else the bytes as they are.
    """
    for encoding in ("utf-8", "cp1252"):
        try:
            return text.decode(encoding).encode()
        except UnicodeDecodeError:
            continue
    return text


def find_dialect(
    path: File,
    *,
    separator: str | None = None,
    decimal: str | None = None,
    encoding: str | None = None,
) -> Dialect:
    """The dialect of a file: what is said, else what its header line tells."""
    if decimal not in (None, ".", ","):
        raise BadInput(
            f"The decimal sign is a point or a comma, not {decimal!r}.", parameter="decimal"
        )
    if separator is None:
        with readable(path), open_text(path) as file:
            mark = _told_separator(file, path)
    else:
        mark = _said_separator(separator)
    sign: bytes | None = b"."
    if decimal is not None:
        sign = decimal.encode()
    elif mark == b";":
        sign = None
    dialect = Dialect(mark, sign, encoding)
    if sign == mark:
        raise BadInput(
            f"The decimal sign and the separator are both {decimal!r}: one of them is another.",
            parameter="decimal",
        )
    return dialect


def header_line(file: BinaryIO, path: object, first: bytes | None = None) -> bytes:
    """The first line that is neither blank nor a ``sep=`` line, without its byte-order mark.

    Leaves the file behind it. ``first``: the file's first line, where it has been read before.
    """
    line = file.readline(LONGEST_HEADER) if first is None else first
    if line.startswith(_OTHER_BOMS):
        raise BadInput(f"{path} is written in UTF-16 or UTF-32. Save it as UTF-8.")
    line = line.removeprefix(_BOM)
    while line and (not line.strip() or _sep_line(line) is not None):
        line = file.readline(LONGEST_HEADER)
    if b"\0" in line:  # as in most formats that are none: its "names" would be records, and shown
        raise BadInput(f"{path} is no text: its first line has zero bytes. Give CSV or Parquet.")
    return line


def _sep_line(line: bytes) -> bytes | None:
    """The separator that a line ``sep=;`` names, as spreadsheets write it."""
    text = line.strip(b"\r\n").strip(b'"')
    if len(text) == 5 and text[:4].lower() == b"sep=":
        return text[4:]
    return None


def _told_separator(file: BinaryIO, path: File) -> bytes:
    first = file.readline(LONGEST_HEADER)
    named = _sep_line(first.removeprefix(_BOM))
    if named is not None:
        return _said_separator(named.decode("latin-1"))
    line = header_line(file, path, first)
    bare = b"".join(line.split(b'"')[::2])  # outside of quotes
    counts = [bare.count(mark) for mark in SEPARATORS]
    most = max(counts)
    if most == 0:
        return b"\t" if plain_ending(path) == ".tsv" else b","
    if counts.count(most) > 1:
        raise BadInput(
            f"The first line of {path} does not say what separates its columns. Say it: "
            "separator=';'.",
            parameter="separator",
        )
    return SEPARATORS[int(np.argmax(counts))]


def _said_separator(separator: object) -> bytes:
    named = {"tab": "\t", "comma": ",", "semicolon": ";", "pipe": "|"}
    if isinstance(separator, str):
        mark = named.get(separator, separator).encode()
        if mark in SEPARATORS:
            return mark
    raise BadInput(
        f"The separator is a comma, a semicolon, a tab or a pipe, not {separator!r}.",
        parameter="separator",
    )


def known_encoding(encoding: object) -> str:
    """One of Python's own encodings of which ASCII is a part.

    So separators and line ends are themselves, and no program of the caller's, as which a codec
    can be registered, sees the cells.
    """
    try:
        if isinstance(encoding, str) and codecs.lookup(encoding).name in _ENCODINGS:
            return str(codecs.lookup(encoding).name)
    except (LookupError, UnicodeError, TypeError, AttributeError):
        pass
    raise BadInput(
        f"The encoding {encoding!r} is not known, or is not one that ASCII is part of. Usual ones: "
        "utf-8, latin-1, cp1252.",
        parameter="encoding",
    )
