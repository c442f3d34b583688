"""Files that do not lie on this machine's disks: on object stores and servers, or piped in.

Those elsewhere are found by their address, by pyarrow's or fsspec's file systems. Standard input
can be read once, and a fit reads records several times: its bytes are copied to memory, all of them
and without a look at any but the first few. Both are read like files of this machine.
Proof: reading.md, 7.
"""

import re
import sys
from dataclasses import dataclass, field

import pyarrow as pa
from pyarrow import fs

from reticent.errors import BadInput
from reticent.privacy.sources.files import RemoteFile

__all__ = ["remote_files", "shown_remote", "standard_input"]

_KEYS = re.compile("[?#]")  # what follows may be a key
_FIRST_BYTES = {b"PAR1": ".parquet", b"\x1f\x8b": ".csv.gz", b"\x28\xb5\x2f\xfd": ".csv.zst"}

_UNKNOWN = (
    "Databases have the addresses postgresql://, sqlite:// and duckdb://; files those that pyarrow "
    "knows, such as s3://, gs:// and hdfs://, and with `pip install fsspec` and the package of a "
    "store many more."
)


def remote_files(address: str) -> tuple[list[RemoteFile], bool]:
    """Return the file at an address, or the files of a folder, and whether it is a folder."""
    scheme, _, rest = address.partition("://")
    shown = shown_remote(address)
    if ":" in rest.rpartition("@")[0]:  # of the last @: a password may have any sign in it
        raise BadInput(
            "There is a password in the address, where others can see it. Give it as the store's "
            "own library wants it, in the environment or a file. (An @ that is no part of who asks "
            "is written %40.)"
        )
    system, path = _file_system(address)
    try:
        info = system.get_file_info(path)
        found = [info]
        if info.type == fs.FileType.Directory:
            found = system.get_file_info(fs.FileSelector(path))
    except Exception:
        found = None  # refused outside of the handler: its words may have a key in them
    if found is None:
        raise BadInput(
            f"{shown} could not be looked up. Check the address, the rights and the connection."
        )
    if info.type == fs.FileType.NotFound:
        raise BadInput(f"There is no file {shown}. Check the address.")
    files = [
        RemoteFile(_shown(scheme, one.path), one.path, system)
        for one in found
        if one.type == fs.FileType.File
    ]
    return files, info.type == fs.FileType.Directory


def shown_remote(address: str) -> str:
    """Return the address as it may be printed: without who asks, and without what may be a key.

    >>> shown_remote("s3://anna:secret@clinic/patients.parquet?key=secret")
    's3://clinic/patients.parquet'
    >>> shown_remote("s3://anna:sec?ret@clinic/patients.parquet")
    's3://…'
    """
    scheme, _, rest = address.partition("://")
    place = _KEYS.split(rest)[0]
    if "@" in rest[len(place) :]:  # it may be all of who asks, with such a sign in a password
        return f"{scheme}://…"
    return f"{scheme}://{place.rpartition('@')[2]}"


def _shown(scheme: str, path: str) -> str:
    """The address of a file in messages; some systems have addresses for paths."""
    name = _KEYS.split(path)[0].rpartition("://")[2]
    return f"{scheme}://{name.removeprefix('/')}"


def _file_system(address: str) -> tuple[fs.FileSystem, str]:
    """The file system of an address, and the path in it."""
    scheme = address.partition("://")[0]
    try:
        return fs.FileSystem.from_uri(address)
    except (pa.ArrowException, OSError):
        pass
    try:
        from fsspec.core import url_to_fs

        system, path = url_to_fs(address)
    except Exception:
        system = None
    if system is None:
        raise BadInput(f"There is no way to read from an address {scheme}://…. {_UNKNOWN}")
    return fs.PyFileSystem(fs.FSSpecHandler(system)), path


@dataclass(frozen=True, eq=False)
class _Memory:
    """Bytes that can be opened like a file of one of pyarrow's file systems."""

    held: bytes = field(repr=False)

    def open_input_file(self, _path: str) -> pa.BufferReader:
        return pa.BufferReader(self.held)


def standard_input() -> RemoteFile:
    """What stands on standard input, as a file whose kind its first bytes tell.

    Parquet, compressed texts, and else CSV: a format says so in its first bytes, which no record
    can change.
    """
    stream = sys.stdin
    if stream is None or stream.isatty():
        raise BadInput(
            "Nothing is piped in. Write `other-program | reticent …`, or give the name of a file."
        )
    held = stream.buffer.read()
    if not held:
        raise BadInput("Standard input is empty. Give at least a header line.")
    endings = (end for first, end in _FIRST_BYTES.items() if held.startswith(first))
    name = "input" + next(endings, ".csv")
    return RemoteFile("standard input", name, _Memory(held))
