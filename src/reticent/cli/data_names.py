"""Names of records, as they may be printed: a password in an address is not."""

from pathlib import Path
from shlex import quote

__all__ = ["data_name", "shown_argument"]

_STANDARD_INPUT = "-"


def data_name(data: str, *, whole: bool = False) -> str:
    """Name of a file (``whole``: with its folders), or an address without passwords and keys.

    >>> data_name("clinic/patients.csv"), data_name("sqlite:///clinic.db")
    ('patients.csv', 'clinic.db')
    >>> data_name("s3://anna:secret@clinic/patients.parquet?key=secret")
    's3://clinic/patients.parquet'
    >>> data_name("-")
    'standard input'
    """
    if "://" in data:
        from reticent.privacy.sources.databases.base import is_address, shown_address

        if is_address(data):
            return shown_address(data)
        from reticent.privacy.sources.remote import shown_remote

        return shown_remote(data)
    if data == _STANDARD_INPUT:
        return "standard input"
    if whole:
        return data
    return Path(data).name


def shown_argument(data: str) -> str:
    """Records as an argument of another command, without passwords and keys.

    >>> shown_argument("my patients.csv"), shown_argument("-")
    ("'my patients.csv'", '-')
    """
    if data == _STANDARD_INPUT:
        return data
    return quote(data_name(data, whole=True))
