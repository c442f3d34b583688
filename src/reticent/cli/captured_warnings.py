"""Notes: what a person should know about every fit besides its numbers."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["captured_warnings"]


@contextmanager
def captured_warnings(*told: type[Warning]) -> Iterator[list[str]]:
    """Collect what Python warns of, to be said calmly; the list is filled at the end.

    Without warnings of the categories ``told``: what they say is told elsewhere.
    """
    notes: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield notes
    messages = [
        str(warning.message)
        for warning in caught
        if issubclass(warning.category, UserWarning) and not issubclass(warning.category, told)
    ]
    notes += dict.fromkeys(_in_options(message) for message in messages)


def _in_options(message: str) -> str:
    """Name the option in place of the parameter that a warning begins with."""
    if message.startswith("delta = "):
        return f"--{message}"
    return message
