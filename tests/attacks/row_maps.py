"""Row maps that users write.

What one record makes them raise, warn of or stop must not be told to anybody. Noise multipliers are
10⁶ here: whatever can be seen of a record, is seen past the noise.
"""

import threading
import warnings
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

import reticent
from reticent.privacy.streams.stream import Stream
from tests.attacks.harness import Outcome, attack

_SECRET = 0.123456789
_BOUNDS = reticent.Bounds(x=(-1, 1))
_EVENT = reticent.Gaussian(noise_multiplier=1e6)


def _statistic(rows: Callable[[np.ndarray], np.ndarray]) -> reticent.Sum:
    @dataclass(frozen=True)
    class Own(reticent.Sum):
        columns = 1
        norm2 = 1

        def rows(self, records):
            return rows(records)

    return Own()


def _release(first: float, statistic: reticent.Sum) -> str:
    """What a caller sees of a release: that there is one, or what was raised."""
    table = np.array([[first]] + [[0.9]] * 99)
    curator = reticent.Curator(reticent.scan(table), bounds=_BOUNDS, event=_EVENT)
    try:
        curator.release(statistic)
    except BaseException as error:
        return f"{type(error).__name__}: {error} {error.__context__} {error.__cause__}"
    return "released"


def _outcome(records: dict[str, str], secret: bool) -> Outcome:
    seen = " / ".join(text[:70] for text in records.values())
    return Outcome(secret, f"seen: {seen}")


@attack("6", "A map that fails for some values: an oracle without noise")
def oracle() -> Outcome:
    def rows(records):
        inverse = [
            [1 / int(v * 4)] if v else [0.0] for v in records[:, 0]
        ]  # fails for 0 < |v| < 1/4
        return np.array(inverse)

    seen = {str(first): _release(first, _statistic(rows)) for first in (0.5, 0.1)}
    return _outcome(seen, len(set(seen.values())) > 1)


def _says(rows: Callable[[np.ndarray], np.ndarray]) -> Outcome:
    def only_for_records(records):  # and not for the public records that a map is tried on
        return rows(records) if (np.abs(records - _SECRET) < 1e-9).any() else records

    seen = _release(_SECRET, _statistic(only_for_records))
    other = _release(0.5, _statistic(only_for_records))
    return _outcome({"secret": seen, "other": other}, seen != other)


@attack("6", "An exception whose class is named after a record")
def named_class() -> Outcome:
    def rows(records):
        raise type(f"record_is_{records[0, 0]!r}", (Exception,), {})()

    return _says(rows)


@attack("6", "The core's own function, called with a record in its words")
def core_words() -> Outcome:
    def rows(records):
        from reticent.privacy.statistics.integer_grid import limit

        limit(0, 1, f"the first record is {records[0, 0]!r}, which")

    return _says(rows)


@attack("6", "SystemExit with a record in it")
def system_exit() -> Outcome:
    def rows(records):
        raise SystemExit(str(records[0, 0]))

    return _says(rows)


@attack("6", "Rows of another shape, for some records")
def another_shape() -> Outcome:
    return _says(lambda records: records[:, :0])


def _stream() -> Stream:
    bounds = _BOUNDS.resolve(reticent.scan(np.zeros((1, 1))), targets=False)[0]
    return Stream(bounds=bounds, event=_EVENT)


@attack("6", "Stream.add: a map that fails for some values")
def stream_add() -> Outcome:
    def rows(records):
        return np.array([[1.0 / int(v * 4)] if 0 < abs(v) < 0.25 else [0.0] for v in records[:, 0]])

    seen = {}
    for first in (0.5, 0.123):
        try:
            _stream().add(_statistic(rows), np.array([[first]]))
            seen[str(first)] = "added"
        except Exception as error:
            seen[str(first)] = f"{type(error).__name__}: {error}"
    return _outcome(seen, len(set(seen.values())) > 1)


@attack("6", "Stream.add: a warning with a record in it")
def stream_warning() -> Outcome:
    def rows(records):
        warnings.warn(f"record {records[0, 0]}", stacklevel=1)
        return records

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        _stream().add(_statistic(rows), np.array([[_SECRET]]))
    return Outcome(bool(caught), f"{len(caught)} warnings are shown")


def _other_thread_meanwhile(change: Callable[[], None]) -> tuple[str, int]:
    """A release whose map warns, after another thread has changed the filters in the
    middle of it.
    """

    def rows(records):
        if (np.abs(records - _SECRET) < 1e-9).any():
            other = threading.Thread(target=change)
            other.start()
            other.join()
            warnings.warn(f"record {records[0, 0]}", stacklevel=1)
        return records

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        seen = _release(_SECRET, _statistic(rows))
    return seen, len(caught)


@attack("6", "Another thread leaves catch_warnings while records are read")
def other_thread_shows() -> Outcome:
    def change():
        warnings.resetwarnings()  # as leaving catch_warnings does: other filters are in force
        warnings.simplefilter("always")

    seen, shown = _other_thread_meanwhile(change)
    return Outcome(shown > 0, f"{seen}; {shown} warnings are shown, with a record in them")


@attack("6", "Another thread makes errors of warnings while records are read")
def other_thread_raises() -> Outcome:
    seen, shown = _other_thread_meanwhile(lambda: warnings.simplefilter("error"))
    return Outcome(seen != "released" or shown > 0, f"{seen[:80]}; {shown} warnings are shown")
