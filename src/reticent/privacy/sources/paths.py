"""Paths of records: a file, or a folder of files of one kind.

Proof: reading.md.
"""

import os
from pathlib import Path

from reticent.errors import BadInput
from reticent.privacy.sources.base import Source
from reticent.privacy.sources.csv import CsvSource
from reticent.privacy.sources.csv_dialect import find_dialect
from reticent.privacy.sources.files import readable
from reticent.privacy.sources.parquet import ParquetSource

__all__ = ["scan_path"]

_CSV = (".csv", ".tsv")
_PARQUET = (".parquet", ".pq")
_KNOWN = (*_CSV, *_PARQUET)


def scan_path(path: str | os.PathLike[str], **dialect: str | None) -> Source:
    """Return the source for a file, or for a folder of files of one kind.

    ``dialect``: separator, decimal and encoding of CSV files, as far as they are said.
    """
    path = Path(path)
    with readable(path):
        paths = _files_at(path)
    suffixes = {file.suffix.lower() for file in paths}
    if suffixes <= set(_PARQUET):
        for parameter, said in dialect.items():
            if said is not None:
                raise BadInput(f"{parameter} is for CSV files only.", parameter=parameter)
        return ParquetSource(paths)
    if len(suffixes) == 1 and suffixes <= set(_CSV):
        return CsvSource(paths, dialect=find_dialect(paths[0], **dialect))
    if path.is_dir():
        raise BadInput(
            f"The folder {path} mixes files of several kinds. Keep {', '.join(_KNOWN)} files "
            "in folders of their own."
        )
    raise BadInput(
        f"{path} is not named like a file that can be read. Known endings: {', '.join(_KNOWN)}."
    )


def _files_at(path: Path) -> list[Path]:
    if not path.is_dir():
        path.stat()  # raises what `readable` words if there is no such file
        return [path]
    visible = (file for file in path.iterdir() if not file.name.startswith("."))
    paths = sorted(file for file in visible if file.suffix.lower() in _KNOWN and file.is_file())
    if not paths:
        raise BadInput(f"There is no CSV or Parquet file in the folder {path}.")
    return paths
