"""Notes: what a person should know about every fit besides its numbers."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager

from reticent.apps.terminal import in_options

__all__ = ["COMPOSED", "heard"]

COMPOSED = "Spent is at the cap's δ. Releases compose to less than their sum, so spent + left may exceed the cap."


@contextmanager
def heard() -> Iterator[list[str]]:
    """Collect what Python warns of, to be said calmly; the list is filled at the end."""
    notes: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield notes
    notes += dict.fromkeys(in_options(str(one.message)) for one in caught if issubclass(one.category, UserWarning))
