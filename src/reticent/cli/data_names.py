"""Names of records, as they may be printed: a password in an address is not."""

from pathlib import Path

__all__ = ["data_name"]


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
        scheme, _, rest = data.partition("://")
        return f"{scheme}://{rest.partition('?')[0].rpartition('@')[2]}"
    if data == "-":
        return "standard input"
    if whole:
        return data
    return Path(data).name
