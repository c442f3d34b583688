"""Names of records, as they may be printed: a password in an address is not."""

from pathlib import Path

__all__ = ["data_name"]


def data_name(data: str, *, whole: bool = False) -> str:
    """Name of a file (``whole``: with its folders), or address of a database without a password.

    >>> data_name("clinic/patients.csv"), data_name("sqlite:///clinic.db")
    ('patients.csv', 'clinic.db')
    """
    if "://" in data:
        from reticent.privacy.sources.databases.base import is_address, shown_address

        if is_address(data):
            return shown_address(data)
        return f"{data.partition('://')[0]}://…"
    if whole:
        return data
    return Path(data).name
