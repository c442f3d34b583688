"""Paths of records: files of one kind, one by one, as a folder, or by a pattern; addresses.

Proof: reading.md.
"""

import glob
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from reticent.errors import BadInput
from reticent.privacy.sources.base import Source, refuse_reading
from reticent.privacy.sources.csv import CsvSource
from reticent.privacy.sources.csv_dialect import find_dialect
from reticent.privacy.sources.files import COMPRESSED, File, plain_ending, readable
from reticent.privacy.sources.parquet import ParquetSource

__all__ = ["scan_path", "scan_paths"]

_CSV = (".csv", ".tsv")
_PARQUET = (".parquet", ".pq")
_KNOWN = (*_CSV, *_PARQUET)
_WORDS = f"{', '.join(_KNOWN)}, and of texts also {', '.join(f'.csv{end}' for end in COMPRESSED)}"


_DIALECT = ("separator", "decimal", "encoding")
_OF_DATABASES = ("table", "query")
_WORKBOOK = ".xlsx"
_STANDARD_INPUT = "-"


def scan_path(path: str | os.PathLike[str], **reading: str | None) -> Source:
    """Return the source for a file, a folder, files that fit a pattern, a database, or "-".

    ``reading``: separator, decimal and encoding of CSV files, table or query of databases, sheet
    of workbooks, as far as they are said.
    """
    if isinstance(path, str) and "://" in path:
        return _at_address(path, reading)
    if path == _STANDARD_INPUT:
        from reticent.privacy.sources.remote import standard_input

        return _source([standard_input()], "Standard input", reading)
    path = Path(path)
    with readable(path):
        paths = _files_at(path)
    return _source(paths, str(path), reading)


def _at_address(address: str, reading: Mapping[str, str | None]) -> Source:
    from reticent.privacy.sources.databases.base import SCHEMES, is_address, scan_database

    if is_address(address):
        refuse_reading(reading, of=_OF_DATABASES)
        return scan_database(address, **{name: reading.get(name) for name in _OF_DATABASES})
    if any(reading.get(name) is not None for name in _OF_DATABASES):
        raise BadInput(
            f"There is no way to read a table from an address {address.partition('://')[0]}://…. "
            f"Known databases are {', '.join(f'{scheme}://' for scheme in SCHEMES)}."
        )
    from reticent.privacy.sources.remote import remote_files, shown_remote

    files, is_folder = remote_files(address)
    address = shown_remote(address)
    if is_folder:
        visible = (file for file in files if not file.name.startswith("."))
        files = sorted(file for file in visible if _ending(file) in _KNOWN)
        if not files:
            raise BadInput(f"There is no CSV or Parquet file in the folder {address}.")
    return _source(files, address, reading)


def scan_paths(paths: Sequence[str | os.PathLike[str]], **reading: str | None) -> Source:
    """Return the source for a list of files; it is one table, in the order of the list."""
    files = [Path(path) for path in paths]
    for place, file in enumerate(files):
        if not file.is_file():  # by its place: what stands there may be no path
            raise BadInput(
                f"Entry {place} of the list, counted from 0, is no file. A list of texts is read "
                "as a list of paths; give records as lists, one for each record, or as an array."
            )
    return _source(files, "The list", reading)


def _source(paths: Sequence[File], where: str, reading: Mapping[str, str | None]) -> Source:
    endings = {_ending(file) for file in paths}
    if endings <= set(_PARQUET):
        refuse_reading(reading)
        return ParquetSource(paths)
    if len(endings) == 1 and endings <= set(_CSV):
        refuse_reading(reading, of=_DIALECT)
        dialect = {name: reading.get(name) for name in _DIALECT}
        return CsvSource(paths, dialect=find_dialect(paths[0], **dialect))
    if endings == {_WORKBOOK}:
        from reticent.privacy.sources.spreadsheets.xlsx import SpreadsheetSource

        refuse_reading(reading, of=("sheet",))
        return SpreadsheetSource(paths, sheet=reading.get("sheet"))
    if len(paths) > 1:
        raise BadInput(
            f"{where} has files of several kinds. Give files of one kind at a time "
            f"({_WORDS}); a folder needs to have them alone."
        )
    raise BadInput(
        f"{paths[0]} is not named like a file that can be read. Known endings: {_WORDS}, "
        f"and {_WORKBOOK}. A table of a database has an address: sqlite:///clinic.db, "
        "duckdb:///clinic.db or postgresql://…, with the name of the table."
    )


def _ending(path: File) -> str:
    """What kind of file it is, by its name; Parquet files are never compressed as a whole."""
    ending = plain_ending(path)
    if ending in _PARQUET:
        return path.suffix.lower()
    return ending


def _files_at(path: Path) -> list[Path]:
    if path.is_dir():
        return _known(path.iterdir(), f"in the folder {path}")
    if glob.has_magic(str(path)) and not path.exists():
        found = map(Path, glob.iglob(str(path), recursive=True))
        return _known(found, f"that fits {path}")
    path.stat()  # raises what `readable` words if there is no such file
    return [path]


def _known(paths: Iterable[Path], where: str) -> list[Path]:
    """Return the files of known kinds among some, in the order of their names."""
    visible = (file for file in paths if not file.name.startswith("."))
    known = sorted(file for file in visible if _ending(file) in _KNOWN and file.is_file())
    if not known:
        raise BadInput(f"There is no CSV or Parquet file {where}.")
    return known
