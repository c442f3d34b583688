"""How commands speak.

Results on standard output, progress and refusals on standard error, and an exit code for each end.

    0 done   1 a fault in reticent 2 wrong use 3 refused for budget 4 refused for privacy 5 bad data
             or file 130 Ctrl-C

Rich is imported on first use: ``--help`` and ``--version`` of a script in a loop should not wait
for it.
"""

import functools
import inspect
import json
import os
import re
import sys
import textwrap
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from shlex import quote
from typing import TYPE_CHECKING, Any, NoReturn, TextIO, TypeVar

import typer
from typer.models import OptionInfo

from reticent.cli.encoding import spelled
from reticent.errors import BadFile, ReticentError
from reticent.reporting.formatting import printable

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.table import Table

__all__ = [
    "advise",
    "aside",
    "console",
    "fail",
    "guarded",
    "in_options",
    "indented",
    "ledger_word",
    "line",
    "print_json",
    "progress",
    "table",
    "wrapped",
]

Command = TypeVar("Command", bound=Callable[..., None])

_REFUSALS = (3, 4)
_INTERRUPTED = 130
_QUOTES = "\"'"
_MOST_COLUMNS = 100  # longer lines are hard to read
_OPTIONS = {"expected_runs": "--runs"}  # that are not called after their parameter
# a parameter that a message gives a value, or shows the place of one: epsilon = 0.5, noise=…; but
# not what stands behind an option: in --x noise=0:3 it is a column
_ASSIGNMENT = re.compile(
    r"""--[\w-]+ '?[^\s=]+=|(?<![\w.-])([a-z_]+)(?: = |=)(…|"[\w-]+"|'[\w-]+'|[-+.\w]*\w)"""
)


def console(*, stderr: bool = False) -> "Console":
    """Give a console for standard output or error as it is now.

    Plain text where that is not a terminal.
    """
    from rich.console import Console

    return Console(stderr=stderr, highlight=False, markup=False, emoji=False)


def table(*headings: str, left: int = 1, rows: Iterable[Sequence[Any]] = ()) -> "Table":
    """Give a table of these rows.

    The first ``left`` columns to the left, the rest, which are numbers, to the right.
    """
    from rich.table import Table

    class Spelled(Table):
        def add_row(self, *cells: Any, **options: Any) -> None:
            super().add_row(
                *(spelled(cell) if isinstance(cell, str) else cell for cell in cells), **options
            )

    shown = Spelled(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for i, heading in enumerate(headings):
        shown.add_column(spelled(heading), justify="left" if i < left else "right", overflow="fold")
    for row in rows:
        shown.add_row(*row)
    return shown


def print_json(value: Any) -> None:
    """Print a result for machines. Numbers keep every digit."""
    print(_json(value, sys.stdout))


def _json(value: Any, stream: TextIO) -> str:
    unicode = (stream.encoding or "").lower().replace("-", "") == "utf8"
    return json.dumps(value, indent=2, ensure_ascii=not unicode, allow_nan=False)


def indented(content: "RenderableType", margin: int = 2) -> "RenderableType":
    """Move something to the right."""
    from rich.padding import Padding

    return Padding(content, (0, 0, 0, margin), expand=False)


def line(title: str, text: str) -> None:
    """Print one aligned line of facts."""
    from rich.text import Text

    console().print(Text.assemble((f"  {title:<9} ", "bold"), text), soft_wrap=True)


def aside(text: str, margin: int = 2) -> None:
    """Print something to know, quietly."""
    from rich.text import Text

    console().print(indented(Text(spelled(text), "dim"), margin))


def advise(*commands: str) -> None:
    """Print what to do next."""
    from rich.text import Text

    print()
    for i, command in enumerate(commands):
        console().print(
            Text.assemble(("  Next:  " if i == 0 else "         ", "dim"), command), soft_wrap=True
        )


def ledger_word(ledger: str) -> str:
    """Give a ledger as it is written in a command.

    A URL, which may hold a password, is not repeated.

    >>> ledger_word("my budget.db"), ledger_word("postgresql://me:secret@host/db")
    ("'my budget.db'", 'LEDGER')
    """
    if "://" in ledger:
        return "LEDGER"
    return quote(ledger)


def wrapped(text: str, *, width: int, indent: str = "  ") -> str:
    """Wrap a message with a hanging indent.

    Lines that begin with a space are laid out already and stay as they are.
    """
    lines: list[str] = []
    for paragraph in text.split("\n"):
        if paragraph.startswith(" "):
            lines.append(paragraph)
            continue
        lines += textwrap.wrap(
            paragraph,
            width,
            initial_indent=indent if lines else "",
            subsequent_indent=indent,
            break_long_words=False,  # a path must stay in one piece, to be copied
            break_on_hyphens=False,
        )
    return "\n".join(lines)


@contextmanager
def progress(
    what: str, total: int | None = None, *, quiet: bool = False, timed: bool = True
) -> Iterator[Callable[[int], None]]:
    """Show that work goes on, with time left where ``total`` is known; on a terminal only.

    Gives the function to advance it.

    ``timed=False`` leaves out the time that went by, which for a search would tell how many runs
    there were.
    """
    err = console(stderr=True)
    if quiet or not err.is_terminal:
        yield lambda steps: None
        return
    from rich.progress import BarColumn, Progress, ProgressColumn, SpinnerColumn, Task, TextColumn
    from rich.progress import TimeElapsedColumn as Elapsed
    from rich.progress import TimeRemainingColumn as Left
    from rich.text import Text

    class Rate(ProgressColumn):
        def render(self, task: Task) -> Text:
            return Text(
                f"{task.speed:,.0f}/s" if (task.speed or 0) >= 1 else ""
            )  # unknown until the second step

    if total:
        parts = [BarColumn(), Rate(), Left()]
    else:
        parts = [SpinnerColumn("line"), *([Elapsed()] if timed else [])]
    with Progress(TextColumn("  {task.description}"), *parts, console=err, transient=True) as bar:
        task = bar.add_task(what, total=total)
        yield lambda steps: bar.advance(task, steps)


def guarded(command: Command) -> Command:
    """Turn every way a command can fail into a message and an exit code.

    Never a traceback, which may show records.
    """
    options = _option_names(command)

    @functools.wraps(command)
    def run(*args: Any, **kwargs: Any) -> None:
        json = bool(kwargs.get("json"))
        try:
            command(*args, **kwargs)
        except ReticentError as error:
            fail(type(error).__name__, in_options(error, options), error.exit_code, json=json)
        except KeyboardInterrupt as stop:
            fail("Interrupted", str(stop) or "Nothing was charged.", _INTERRUPTED, json=json)
        except (typer.Exit, typer.Abort, BrokenPipeError):
            raise
        except OSError as error:
            if error.filename is None:
                _unexpected(error, json=json)
            fail(
                "BadFile",
                f"{error.filename} cannot be used: {error.strerror}.",
                BadFile.exit_code,
                json=json,
            )
        except Exception as error:
            _unexpected(error, json=json)

    return run  # type: ignore[return-value]


def _option_names(command: Callable[..., None]) -> dict[str, str]:
    """Give the option of each parameter that a command has: ``{"n_init": "--n-init"}``."""
    names = dict(_OPTIONS)
    for name, parameter in inspect.signature(command).parameters.items():
        for about in getattr(parameter.annotation, "__metadata__", ()):
            if isinstance(about, OptionInfo):
                # inside Annotated, typer takes the first declaration for the default
                words = [str(word) for word in (about.default, *(about.param_decls or ()))]
                declared = [word for word in words if word.startswith("--")]
                names[name] = [*declared, f"--{name.replace('_', '-')}"][0]
    return names


def in_options(error: ReticentError, options: Mapping[str, str] = _OPTIONS) -> str:
    """Give the message of an error as it reads on the command line.

    The parameter that the message begins with, and those that it gives a value, are written as
    ``options`` of the command.

    >>> from reticent.errors import BadInput
    >>> in_options(BadInput("n_init must be at least 1.", parameter="n_init"))
    '--n-init must be at least 1.'
    >>> in_options(BadInput("Ask for epsilon = 0.5, or noise=…."), {"epsilon": "--epsilon"})
    'Ask for --epsilon 0.5, or noise=….'
    >>> in_options(BadInput("--x noise=0:3: there is no such column."), {"noise": "--noise"})
    '--x noise=0:3: there is no such column.'
    """

    def assigned(found: re.Match[str]) -> str:
        if found[1] not in options:
            return found[0]
        if found[2] == "…":
            return options[found[1]]
        return f"{options[found[1]]} {found[2].strip(_QUOTES)}"

    message = str(error)
    begin = error.parameter
    if begin is not None and re.match(rf"{re.escape(begin)}(?! = |\w|=)", message):
        option = options.get(begin, f"--{begin.replace('_', '-')}")
        message = option + message[len(begin) :]
    return _ASSIGNMENT.sub(assigned, message)


def _unexpected(error: Exception, *, json: bool) -> NoReturn:
    if os.environ.get("RETICENT_DEBUG") == "1":
        traceback.print_exception(error)
    fail(
        type(error).__name__,
        f"Something went wrong inside reticent ({type(error).__name__}). Nothing is released; "
        "what was charged stays charged. This is a fault in reticent: please report it. For the "
        "traceback, which may show records, set RETICENT_DEBUG=1.",
        1,
        json=json,
    )


def fail(kind: str, message: str, code: int, *, json: bool) -> NoReturn:
    """Say on standard error what went wrong, to a person or to a machine, and stop."""
    from rich.text import Text

    if code in _REFUSALS:
        label = "Refused"
    elif code == _INTERRUPTED:
        label = "Interrupted"
    else:
        label = "Error"
    message = message.removeprefix(f"{label}: ")
    if json:
        about = {"error": {"kind": kind, "message": message, "exit_code": code}}
        print(_json(about, sys.stderr), file=sys.stderr, flush=True)
        raise typer.Exit(code)
    err = console(stderr=True)
    message = "\n".join(
        printable(part) for part in message.split("\n")
    )  # it may name a file's columns
    text = Text(wrapped(spelled(f"{label}: {message}"), width=min(err.width, _MOST_COLUMNS)))
    text.stylize("bold red" if label == "Error" else "bold yellow", 0, len(label) + 1)
    err.print(text, soft_wrap=True)
    sys.stderr.flush()
    raise typer.Exit(code)
