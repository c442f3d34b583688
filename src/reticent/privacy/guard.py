"""The guard around code that sees records.

Nothing that it raises or warns of leaves, or changes another record's row. A statistic's row map is
written by its user. On a block of records it may raise, for one record out of many, or give
something that is no table of numbers. Then the block is mapped record by record, and a record whose
row fails has none: it counts as a row of zeros (`map_rows_safely`). So that an honest mistake is
not silent, the same map is tried beforehand on public records (`record_failures`), where a failure
can be reported.

A map must be a function of one record, bit for bit, so a record has the same row in a block that
failed as in one that did not. Proof: statistics.md, 1 and 7.

* Warnings: Python's filters belong to the process, and any thread may change them. Here a thread
  that reads is silent by itself (`suppress_warnings`): a filter that matches in such threads only,
  and a look at the same flag where warnings are shown.
* Signals: what a handler raises (Ctrl-C) is told apart from what a map raises (`remember_signals`).
"""

import builtins
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import wraps
from types import FrameType
from typing import Any, ParamSpec, TypeVar

import numpy as np
from numpy.typing import NDArray

from reticent.errors import ReleaseRefused, ReticentError

__all__ = [
    "InvalidRows",
    "builtin_name",
    "call_safely",
    "check_rows",
    "guarded_read",
    "map_rows_safely",
    "raise_pending_signal",
    "read_only",
    "read_safely",
    "record_failures",
    "remember_signals",
    "suppress_warnings",
]

Rows = NDArray[np.float64]
T = TypeVar("T")
P = ParamSpec("P")
# Modules whose messages name public things only. Row maps see records: their messages stay inside.
_CORE = ("reticent.privacy.", "reticent.validation", "concurrent.futures.", "contextlib")
_ROW_MAPS = "reticent.privacy.row_maps."
Numbers = TypeVar("Numbers", bound=np.generic)
_TRIES = 3  # of a map that another thread's filters turned a warning of into an error


class _Thread(threading.local):
    """What one thread is doing."""

    suppress_warnings = 0  # how many guards are around it
    notes: list[str] | None = (
        None  # where failures are noted, while a map is tried on public records
    )


_thread = _Thread()


# ---- warnings


class _InQuietThreads(type):
    """A category that every warning belongs to, in threads that read records.

    Elsewhere none does.
    """

    def __subclasscheck__(cls, category: type) -> bool:
        return _thread.suppress_warnings > 0


class _Quiet(Warning, metaclass=_InQuietThreads):
    """What the filter below is about."""


_FILTER = ("ignore", None, _Quiet, None, 0)


def _show_unless_quiet(show: Callable[[Any], None]) -> Callable[[Any], None]:
    def show_warning(message: Any) -> None:
        if not _thread.suppress_warnings:
            show(message)

    return show_warning


# Every warning that passes the filters goes through this function, C's own included, and
# `catch_warnings` leaves it alone.
warnings._showwarnmsg = _show_unless_quiet(warnings._showwarnmsg)  # type: ignore[attr-defined]


def _filters() -> list[Any]:
    """The filters in force: Python 3.14 can have some for each context."""
    current: Callable[[], list[Any]] | None = getattr(warnings, "_get_filters", None)
    return warnings.filters if current is None else current()  # type: ignore[return-value]


def _put_filter_first() -> None:
    filters = _filters()
    if not filters or filters[0] is not _FILTER:
        filters.insert(0, _FILTER)
        warnings._filters_mutated()  # type: ignore[attr-defined]


def _take_filter_out() -> None:
    filters = _filters()
    if _FILTER in filters:
        filters[:] = [one for one in filters if one is not _FILTER]
        warnings._filters_mutated()  # type: ignore[attr-defined]


_readers = 0
_readers_lock = threading.Lock()


@contextmanager
def suppress_warnings() -> Iterator[None]:
    """Swallow the warnings of this thread, Python's and NumPy's; other threads keep theirs."""
    global _readers
    with _readers_lock:
        _readers += 1
        _put_filter_first()
    _thread.suppress_warnings += 1
    try:
        with np.errstate(all="ignore"):
            yield
    finally:
        _thread.suppress_warnings -= 1
        with _readers_lock:
            _readers -= 1
            if not _readers:
                _take_filter_out()


# ---- signals


class _Main:
    """What signal handlers do in the main thread."""

    depth = 0  # how many guards heed them
    raised: BaseException | None = None


@contextmanager
def remember_signals() -> Iterator[None]:
    """Remember what signal handlers raise, for `raise_pending_signal`, whatever a map makes of it.

    Handlers run in the main thread; in other threads this does nothing.
    """
    if threading.current_thread() is not threading.main_thread() or _Main.depth:
        yield
        return
    found = {one: signal.getsignal(one) for one in signal.valid_signals()}
    handlers = {one: handler for one, handler in found.items() if callable(handler)}
    _Main.depth = 1
    _Main.raised = None
    try:
        with suppress(ValueError):  # in a subinterpreter, where no handler runs
            for one, handler in handlers.items():
                signal.signal(one, _remembering(handler))
        yield
    finally:
        with suppress(ValueError):
            for one, handler in handlers.items():
                signal.signal(one, handler)
        _Main.depth = 0


def _remembering(
    handler: Callable[[int, FrameType | None], Any],
) -> Callable[[int, FrameType | None], None]:
    def handle(number: int, frame: FrameType | None) -> None:
        try:
            handler(number, frame)
        except BaseException as error:
            _Main.raised = error
            raise

    return handle


def raise_pending_signal() -> None:
    """Raise what a signal handler raised.

    To be called where no exception is being handled: Python would report that one besides.
    """
    error = _Main.raised
    if (
        error is None
        or not _Main.depth
        or threading.current_thread() is not threading.main_thread()
    ):
        return
    error.__cause__ = None
    error.__context__ = None
    raise error.with_traceback(None)


# ---- exceptions


class InvalidRows(Exception):
    """What a map gives is no table of numbers for its records; says what it must be."""


def check_rows(rows: Any, shape: tuple[int, ...]) -> NDArray[Any]:
    """The rows as an array of real numbers of this shape."""
    rows = np.asarray(rows)
    if rows.dtype.kind not in "biuf":
        raise InvalidRows("must give a NumPy array of real numbers")
    if rows.shape != shape:
        if len(shape) > 1:
            each = f"one row of {shape[1]} numbers"
        else:
            each = "one number"
        raise InvalidRows(f"must give {each} for each record")
    return rows


def map_rows_safely(
    name: str, ask: Callable[..., Any], shape: tuple[int, ...], *arguments: Rows
) -> NDArray[Any]:
    """``ask(*arguments)``.

    An array of real numbers of this shape, the first axis of which are the records. If it fails,
    the records are mapped one by one. What fails alone becomes NaN, which is no number to anybody:
    a row is then clipped to zeros (`quantize_and_clip`), a count goes to the first cell, and a
    record is in no cell.
    """

    def rows_of(shape: tuple[int, ...], parts: tuple[Rows, ...]) -> NDArray[Any] | None:
        return call_safely(name, lambda: check_rows(ask(*map(read_only, parts)), shape))

    rows = rows_of(shape, arguments)
    if rows is not None:
        return rows
    whole = np.full(shape, np.nan)
    for i in range(shape[0]):
        one = rows_of((1, *shape[1:]), tuple(part[i : i + 1] for part in arguments))
        if one is not None:
            whole[i] = one[0]
    return whole


def read_only(rows: NDArray[Numbers]) -> NDArray[Numbers]:
    """A view that nobody changes by mistake."""
    view = rows.view()
    view.flags.writeable = False
    return view


def call_safely(name: str, ask: Callable[[], T]) -> T | None:
    """What ``ask`` gives, or None if it raises anything at all; only signals are heeded."""
    failure = ""
    for _ in range(_TRIES):
        again = False
        found = None
        with suppress_warnings():
            try:
                found = ask()
            except InvalidRows as unfit:
                failure = str(unfit)
            except BaseException as error:
                failure = f"failed ({builtin_name(error)})"
                again = isinstance(
                    error, Warning
                )  # another thread has just made errors of warnings
        raise_pending_signal()
        if not again:
            break
    if found is None and _thread.notes is not None:
        _thread.notes.append(f"{name} {failure}")
    return found


@contextmanager
def record_failures() -> Iterator[list[str]]:
    """Note what fails in this thread: for public records, where it may be reported."""
    before = _thread.notes
    _thread.notes = []
    try:
        yield _thread.notes
    finally:
        _thread.notes = before


def builtin_name(error: BaseException) -> str:
    """The name of an exception of Python's own.

    A class that somebody wrote may be named after a record.
    """
    name = type.__dict__["__name__"].__get__(type(error))
    known = vars(builtins).get(name) is type(error)
    if known:
        return name
    return "an error of its own"


def read_safely(read: Callable[[], T], after: str) -> T:
    """Read records so that nothing about them can leave by an exception, its context, or a warning.

    The core's own messages stay: they name public things. ``after`` says what became of the charge.
    """
    failure = ""
    with remember_signals(), suppress_warnings():
        try:
            return read()
        except BaseException as error:
            ours = isinstance(error, ReticentError) and _from_the_core(error)
            if ours:
                failure = str(error)
            else:
                failure = f"Reading the records failed ({builtin_name(error)})."
        raise_pending_signal()
    raise ReleaseRefused(f"{failure} {after}")


def guarded_read(after: str) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Decorator of a function that reads records: it runs under `read_safely`."""

    def guard(read: Callable[P, T]) -> Callable[P, T]:
        @wraps(read)
        def guarded(*arguments: P.args, **options: P.kwargs) -> T:
            return read_safely(lambda: read(*arguments, **options), after)

        return guarded

    return guard


def _from_the_core(error: BaseException) -> bool:
    """Whether no code but the core's, and Python's threads, had a part in it."""
    trace = error.__traceback__
    while trace is not None:
        names = trace.tb_frame.f_globals
        module = str(names.get("__name__"))
        known = module.startswith(_CORE) and not module.startswith(_ROW_MAPS)
        if not known or vars(sys.modules.get(module, builtins)) is not names:
            return False
        trace = trace.tb_next
    return True
