"""Files of records with the same columns: what CSV and Parquet files have in common.

Texts may be compressed (.csv.gz, .csv.zst): they are unpacked while they are read. A file may lie
elsewhere, on an object store (remote.py).

Proof: reading.md.
"""

import io
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO, TypeAlias

import pyarrow as pa

from reticent.errors import BadInput, ReticentError
from reticent.privacy.sources.base import DtypeKind, Source

__all__ = [
    "COMPRESSED",
    "File",
    "FileSource",
    "RemoteFile",
    "open_file",
    "open_text",
    "plain_ending",
    "readable",
]

COMPRESSED = {".gz": "gzip", ".zst": "zstd"}  # endings, and what arrow calls them


@dataclass(frozen=True, order=True)
class RemoteFile:
    """A file of one of pyarrow's file systems.

    ``address`` is shown in messages, and has no password. ``path`` is its name in its ``system``.
    """

    address: str
    path: str = field(repr=False)
    system: Any = field(repr=False, compare=False)

    def __str__(self) -> str:
        return self.address

    @property
    def name(self) -> str:
        """The last part of its name."""
        return self._place.name

    @property
    def stem(self) -> str:
        """The last part of its name, without an ending."""
        return self._place.stem

    @property
    def suffix(self) -> str:
        """The ending of its name."""
        return self._place.suffix

    @property
    def _place(self) -> PurePosixPath:
        """Its name with folders; in systems whose names are addresses, without what follows them.

        A signed address goes on behind a question mark.
        """
        name = self.path
        if "://" in name:
            name = name.partition("?")[0].partition("#")[0]
        return PurePosixPath(name)


File: TypeAlias = Path | RemoteFile


@contextmanager
def readable(path: File) -> Iterator[None]:
    """Refuse a file that is missing or damaged.

    Without the words of a library, which may quote a record.
    """
    refusal = f"{path} cannot be read: it is truncated, damaged, or of another format."
    try:
        yield
        return
    except FileNotFoundError:
        refusal = f"There is no file {path}. Check the path."
    except PermissionError:
        refusal = f"{path} may not be read: permission denied. Ask its owner."
    except (OSError, pa.ArrowException):
        pass
    except ReticentError:
        raise
    except Exception:  # what a store's own library raises may have a key in it
        if not isinstance(path, RemoteFile):
            raise
        refusal = f"{path} could not be read. Check the address, the rights and the connection."
    raise BadInput(refusal) from None


def open_file(path: File) -> Any:
    """Open a file as bytes, at any place of which one can read."""
    if isinstance(path, RemoteFile):
        return path.system.open_input_file(path.path)
    return path.open("rb")


def plain_ending(path: File) -> str:
    """Return the ending of a file's name, below that of a compression: .csv of people.csv.gz."""
    if path.suffix.lower() in COMPRESSED:
        return Path(path.stem).suffix.lower()
    return path.suffix.lower()


def open_text(path: File) -> BinaryIO:
    """Open a file of text as bytes, unpacked if its name says that it is compressed."""
    compression = COMPRESSED.get(path.suffix.lower())
    if isinstance(path, RemoteFile):
        stored = open_file(path)
        if compression is not None:
            stored = pa.CompressedInputStream(stored, compression)
        return io.BufferedReader(stored)
    if compression is None:
        return path.open("rb")
    path.stat()  # raises what `readable` words if there is no such file
    return io.BufferedReader(pa.input_stream(str(path), compression=compression))


class FileSource(Source):
    """Abstract: files with the same columns.

    ``_kinds`` holds the name, kind and dtype of each column.
    """

    def __init__(self, paths: Sequence[File]) -> None:
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

    def _check_unchanged(self, path: File) -> None:
        """Refuse a file whose columns are others than when it was scanned.

        That is about the file, not a record.
        """
        if _names_and_kinds(self._look(path)) != _names_and_kinds(self._kinds):
            raise BadInput(
                f"The columns of {path} have changed since it was scanned. Scan it again."
            )

    @abstractmethod
    def _look(self, path: File) -> list[tuple[str, DtypeKind, str]]:
        """Return name, kind and dtype of each column."""


def _names_and_kinds(columns: list[tuple[str, DtypeKind, str]]) -> list[tuple[str, DtypeKind]]:
    return [(name, kind) for name, kind, _ in columns]
