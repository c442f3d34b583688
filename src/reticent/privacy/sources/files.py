"""Files of records with the same columns: what CSV and Parquet files have in common.

Texts may be compressed (.csv.gz, .csv.zst): they are unpacked while they are read.

Proof: reading.md.
"""

import io
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import pyarrow as pa

from reticent.errors import BadInput
from reticent.privacy.sources.base import DtypeKind, Source

__all__ = ["COMPRESSED", "FileSource", "open_text", "plain_ending", "readable"]

COMPRESSED = {".gz": "gzip", ".zst": "zstd"}  # endings, and what arrow calls them


@contextmanager
def readable(path: Path) -> Iterator[None]:
    """Refuse a file that is missing or damaged.

    Without the words of a library, which may quote a record.
    """
    try:
        yield
    except FileNotFoundError:
        raise BadInput(f"There is no file {path}. Check the path.") from None
    except PermissionError:
        raise BadInput(f"{path} may not be read: permission denied. Ask its owner.") from None
    except (OSError, pa.ArrowException):
        raise BadInput(
            f"{path} cannot be read: it is truncated, damaged, or of another format."
        ) from None


def plain_ending(path: Path) -> str:
    """Return the ending of a file's name, below that of a compression: .csv of people.csv.gz."""
    if path.suffix.lower() in COMPRESSED:
        return Path(path.stem).suffix.lower()
    return path.suffix.lower()


def open_text(path: Path) -> BinaryIO:
    """Open a file of text as bytes, unpacked if its name says that it is compressed."""
    compression = COMPRESSED.get(path.suffix.lower())
    if compression is None:
        return path.open("rb")
    path.stat()  # raises what `readable` words if there is no such file
    return io.BufferedReader(pa.input_stream(str(path), compression=compression))


class FileSource(Source):
    """Abstract: files with the same columns.

    ``_kinds`` holds the name, kind and dtype of each column.
    """

    def __init__(self, paths: Sequence[Path]) -> None:
        self.paths = tuple(paths)
        columns = [self._look(path) for path in paths]
        self._kinds = columns[0]
        for path, found in zip(paths, columns, strict=True):
            if _names_and_kinds(found) != _names_and_kinds(self._kinds):
                raise BadInput(
                    f"{path} does not have the columns of {paths[0]}. All files need "
                    "the same columns, in the same order, numbers where the others have numbers."
                )
        self.names = tuple(name for name, _, _ in self._kinds)
        self.width = len(self.names)

    def kind(self, position: int) -> tuple[DtypeKind, str]:
        """Return what the schema of the first file says; the others agree."""
        return self._kinds[position][1:]

    def _check_unchanged(self, path: Path) -> None:
        """Refuse a file whose columns are others than when it was scanned.

        That is about the file, not a record.
        """
        if _names_and_kinds(self._look(path)) != _names_and_kinds(self._kinds):
            raise BadInput(
                f"The columns of {path} have changed since it was scanned. Scan it again."
            )

    @abstractmethod
    def _look(self, path: Path) -> list[tuple[str, DtypeKind, str]]:
        """Return name, kind and dtype of each column."""


def _names_and_kinds(columns: list[tuple[str, DtypeKind, str]]) -> list[tuple[str, DtypeKind]]:
    return [(name, kind) for name, kind, _ in columns]
