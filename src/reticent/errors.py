"""Every exception that reticent raises on purpose.

::

    Exception
    └── ReticentError
        ├── BadInput (ValueError)   wrong use: epsilon <= 0, unknown columns, a dtype that is not numeric, no records
        │   └── BoundsMissing       bounds absent, inverted or not finite; they are never taken from the data
        ├── LedgerError             a ledger that cannot be opened, trusted or written
        │   └── BudgetExceeded      the charge would pass the cap; nothing was read, nothing was charged
        ├── ReleaseRefused          a release that would not be covered by what was paid
        └── CorruptModel            a model file that is not what was saved

Two rules. A message says what to do next. A message never depends on a record: it may name columns, dtypes,
files, caps and the number of records, all of which are public, and nothing else.
"""

__all__ = [
    "BadInput",
    "BoundsMissing",
    "BudgetExceeded",
    "CorruptModel",
    "LedgerError",
    "ReleaseRefused",
    "ReticentError",
]


class ReticentError(Exception):
    """The root: catch this to catch everything that reticent raises on purpose."""

    exit_code = 2


class BadInput(ReticentError, ValueError):
    """Something given by the caller cannot be used. Found before any record is read; nothing was charged."""


class BoundsMissing(BadInput):
    """The public range of a column is absent or makes no sense. It is never inferred from the records."""

    exit_code = 4


class LedgerError(ReticentError):
    """The ledger cannot be opened, trusted or written, so nothing may be read."""

    exit_code = 5


class BudgetExceeded(LedgerError):
    """The charge would take the data set past its cap. Nothing was read and nothing was charged."""

    exit_code = 3


class ReleaseRefused(ReticentError):
    """A release was asked for that is not covered by what was paid, or that cannot be made safely."""

    exit_code = 4


class CorruptModel(ReticentError):
    """A model file is truncated, altered, or not a reticent file."""

    exit_code = 5
