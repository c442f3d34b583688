"""Files that lie elsewhere: on object stores and servers, by pyarrow's or fsspec's file systems.

They are found by their address, and read like files of this machine. Proof: reading.md.
"""

import pyarrow as pa
from pyarrow import fs

from reticent.errors import BadInput
from reticent.privacy.sources.files import RemoteFile

__all__ = ["remote_files"]

_UNKNOWN = (
    "Databases have the addresses postgresql://, sqlite:// and duckdb://; files those that pyarrow "
    "knows, such as s3://, gs:// and hdfs://, and with `pip install fsspec` and the package of a "
    "store many more."
)


def remote_files(address: str) -> tuple[list[RemoteFile], bool]:
    """Return the file at an address, or the files of a folder, and whether it is a folder."""
    scheme, _, rest = address.partition("://")
    rest = rest.partition("?")[0].partition("#")[0]  # what follows may be a key
    who, _, place = rest.rpartition("@")
    shown = f"{scheme}://{place}"
    if ":" in who:
        raise BadInput(
            "There is a password in the address, where others can see it. Give it as the store's "
            "own library wants it, in the environment or a file."
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


def _shown(scheme: str, path: str) -> str:
    """The address of a file in messages; some systems have addresses for paths."""
    name = path.partition("?")[0].rpartition("://")[2]
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
