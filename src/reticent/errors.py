"""Every exception that reticent raises on purpose.

::

    Exception
    └── ReticentError
        ├── BadInput (ValueError)   wrong use: epsilon <= 0, unknown columns, no records
        │   └── BoundsMissing       bounds absent, inverted or not finite
        ├── LedgerError             a ledger that cannot be opened, trusted or written
        │   └── BudgetExceeded      the charge would pass the cap; nothing was read or charged
        ├── ReleaseRefused          a release that would not be covered by what was paid
        ├── BadFile                 a file that cannot be read or written
        └── CorruptModel            a model file that is not what was saved

Three rules. A message says what to do next. A message never depends on a record: it may name
columns, dtypes, files, caps and the number of records, all of which are public, and nothing else.
An error about one parameter carries the parameter's name, and its message begins with that name, so
that a caller with other names (the command line: ``--epsilon``) puts its own there.
"""

__all__ = [
    "BadFile",
    "BadInput",
    "BoundsMissing",
    "BudgetExceeded",
    "CorruptModel",
    "LedgerError",
    "ReleaseRefused",
    "ReticentError",
]


class ReticentError(Exception):
    """The root: catch this to catch everything that reticent raises on purpose.

    Parameters
    ----------
    *args
        The message.
    parameter
        The Python name of the parameter at fault, with which the message then begins; None if the
        error is not about one parameter. It survives pickling.

    Attributes
    ----------
    exit_code
        What the command line exits with.

    """

    exit_code = 2

    def __init__(self, *args: object, parameter: str | None = None) -> None:
        super().__init__(*args)
        self.parameter = parameter


class BadInput(ReticentError, ValueError):
    """Something given by the caller cannot be used.

    Found before any record is read; nothing was charged.
    """


class BoundsMissing(BadInput):
    """The public range of a column is absent or makes no sense.

    It is never inferred from the records.
    """

    exit_code = 4


class LedgerError(ReticentError):
    """The ledger cannot be opened, trusted or written, so nothing may be read."""

    exit_code = 5


class BudgetExceeded(LedgerError):
    """The charge would take the data set past its cap. Nothing was read and nothing was charged."""

    exit_code = 3


class ReleaseRefused(ReticentError):
    """A release is not covered by what was paid, or cannot be made safely."""

    exit_code = 4


class CorruptModel(ReticentError):
    """A model file is truncated, altered, or not a reticent file."""

    exit_code = 5


class BadFile(ReticentError):
    """A file cannot be read, or cannot be written under its name."""

    exit_code = 5
