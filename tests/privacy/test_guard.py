"""The guard around row maps.

What fails is nobody's business, signals get through, and a thread that reads is silent.
"""

import os
import signal
import threading
import time
import warnings
from dataclasses import dataclass

import numpy as np
import pytest

from reticent import BadInput, Bounds, Curator, Gaussian, ReleaseRefused, Sum, scan
from reticent.errors import ReticentError
from reticent.privacy import guard
from reticent.privacy.guard import (
    builtin_name,
    call_safely,
    map_rows_safely,
    raise_pending_signal,
    read_safely,
    record_failures,
    remember_signals,
    suppress_warnings,
)
from reticent.privacy.statistics.counts import Counts
from reticent.privacy.streams.stream import Stream

RECORDS = np.linspace(-1, 1, 9)[:, None]


def test_a_block_that_fails_is_mapped_record_by_record():
    asked = []

    def fails_for_two(records):
        asked.append(len(records))
        if (records == 0.5).any() or (records == -1).any():
            raise ValueError(str(records))
        return 3 * records

    rows = map_rows_safely("rows", fails_for_two, (9, 1), RECORDS)
    wanted = 3 * RECORDS
    wanted[[0, 6]] = np.nan
    assert np.array_equal(rows, wanted, equal_nan=True)
    assert asked == [9] + [1] * 9
    asked.clear()
    assert (
        map_rows_safely("rows", fails_for_two, (3, 1), RECORDS[1:4]).tolist()
        == (3 * RECORDS[1:4]).tolist()
    )
    assert asked == [3]


@pytest.mark.parametrize(
    "give",
    [
        lambda records: records[:-1],
        lambda records: records[:, 0],
        lambda records: records.astype(object),
        lambda records: records + 1j,
        lambda records: records.astype(str),
        lambda records: None,
        lambda records: [[1.0], "a", {}],
        lambda records: np.datetime64("now"),
    ],
)
def test_what_is_no_table_of_numbers_is_nothing(give):
    assert np.isnan(map_rows_safely("rows", give, (3, 1), RECORDS[:3])).all()


def test_what_a_map_must_give_is_said_by_its_shape():
    for shape, wanted in (((3, 2), "one row of 2 numbers"), ((3,), "one number")):
        with record_failures() as failures:
            map_rows_safely("the map", lambda records: records[:0], shape, RECORDS[:3])
        assert failures[0] == f"the map must give {wanted} for each record"


def test_records_cannot_be_changed():
    records = RECORDS.copy()

    def scribbles(some):
        some[0] = 9.0
        return some

    assert np.isnan(map_rows_safely("rows", scribbles, records.shape, records)).all()
    assert (records == RECORDS).all()


@pytest.mark.parametrize(
    "error", [ValueError, KeyboardInterrupt, SystemExit, GeneratorExit, Warning, RecursionError]
)
def test_whatever_is_raised_is_told_to_nobody(error):
    def fails():
        raise error("a record")

    assert call_safely("it", fails) is None
    with record_failures() as failures:
        call_safely("it", fails)
    assert failures == [f"it failed ({error.__name__})"]


def test_a_class_that_somebody_wrote_is_not_named():
    class Meta(type):
        __name__ = "ValueError"

    for name, made in (
        ("record_7", {}),
        ("ValueError", {}),
        ("ValueError", {"__module__": "builtins"}),
    ):
        assert builtin_name(type(name, (Exception,), made)()) == "an error of its own"
    assert builtin_name(Meta("Own", (), {})()) == "an error of its own"
    assert builtin_name(ValueError()) == "ValueError"


def test_words_of_the_core_are_kept_and_others_are_not():
    def core():
        scan(3)

    with pytest.raises(
        ReleaseRefused, match=r"Reading the records failed \(an error of its own\)\. It stays\.$"
    ) as refused:
        read_safely(core, "It stays.")  # this module, which is not the core, had a part in it
    assert refused.value.__context__ is None
    assert refused.value.__cause__ is None
    with pytest.raises(ReleaseRefused, match=r"cannot be read.*It stays\."):
        read_safely(_core_only, "It stays.")


def _in_the_core(code):
    """A function whose frames look like the core's.

    Its globals are those of a module of the core.
    """
    names = vars(guard)
    exec(code, names)
    return names.pop("function")


_core_only = _in_the_core("def function():\n    raise ReleaseRefused('This cannot be read.')")


def test_a_module_that_calls_itself_the_core_is_not():
    names = {"__name__": "reticent.privacy.guard", "ReticentError": ReticentError}
    exec("def function():\n    raise ReticentError('record 7')", names)
    with pytest.raises(ReleaseRefused) as refused:
        read_safely(names["function"], "It stays.")
    assert "record 7" not in str(refused.value)


# ---- signals


def test_an_interrupt_gets_through_a_map_that_swallows_it():
    def swallows(records):
        try:
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(1)
        except KeyboardInterrupt:
            raise ValueError(str(records)) from None
        return records

    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt) as stopped, remember_signals():
        map_rows_safely("rows", swallows, (9, 1), RECORDS)
    assert stopped.value.__context__ is None
    assert stopped.value.__cause__ is None
    assert signal.getsignal(signal.SIGINT) is before
    assert (
        map_rows_safely("rows", lambda records: records, (9, 1), RECORDS).tolist()
        == RECORDS.tolist()
    )
    raise_pending_signal()  # nothing is left


def test_an_inner_guard_leaves_signals_to_the_outer_one():
    def swallows():
        try:
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(1)
        except KeyboardInterrupt:
            raise ValueError from None

    def guarded():
        with remember_signals():
            with remember_signals():
                pass
            call_safely("it", swallows)

    with pytest.raises(KeyboardInterrupt):
        guarded()


def test_handlers_of_other_signals_may_raise_too():
    class Late(Exception):
        pass

    def late(number, frame):
        raise Late

    before = signal.signal(signal.SIGALRM, late)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        with pytest.raises(Late):
            read_safely(lambda: call_safely("it", lambda: time.sleep(5)), "It stays.")
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_an_interrupted_release_stops_and_stays_counted(elsewhere):
    """Two threads read; the one that was interrupted does not let the other read to the end."""
    code = """
import os, signal, threading, time, numpy as np, reticent
from dataclasses import dataclass
@dataclass(frozen=True)
class Slow(reticent.Sum):
    columns = 1
    norm2 = 1
    def rows(self, records):
        if len(records) > 3:
            time.sleep(0.05)
        return records
one = reticent.Curator(reticent.scan(np.zeros((10**7, 1))), bounds=reticent.Bounds(x=(-1, 1)),
                       event=reticent.Gaussian(noise_multiplier=1.0))
one._threads = 2
threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
started = time.monotonic()
try:
    one.release(Slow())
except KeyboardInterrupt:
    assert time.monotonic() - started < 3
    print("stopped", one)
"""
    assert elsewhere(code) == (0, "stopped <Curator: 0 releases left>\n")


# ---- warnings


def warn():
    warnings.warn("a record", stacklevel=1)
    np.float64(1) / np.float64(0)
    return True


@pytest.mark.parametrize("action", ["error", "always", "default"])
def test_a_thread_that_reads_is_silent_and_others_are_not(action):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter(action)
        with suppress_warnings():
            assert warn()
            warnings.simplefilter(action)  # somebody else puts a filter before ours
            if action != "error":
                assert warn()
            found = []
            other = threading.Thread(target=lambda: found.append(_raises(warn)))
            other.start()
            other.join()
    assert found == [action == "error"]
    assert bool(caught) == (action != "error"), "those of the other thread"
    assert len(caught) <= 2


def _raises(function):
    try:
        function()
    except Warning:
        return True
    return False


def test_a_filter_of_another_thread_does_not_make_a_row_fail():
    """Whoever makes errors of warnings at the worst moment.

    The map is asked again, under our own filter.
    """
    asked = []

    def warns(records):
        asked.append(len(records))
        if len(asked) == 1:
            other = threading.Thread(target=warnings.simplefilter, args=("error",))
            other.start()
            other.join()
        warnings.warn("a record", stacklevel=1)
        return records

    with warnings.catch_warnings():
        assert (map_rows_safely("rows", warns, (9, 1), RECORDS) == RECORDS).all()
    assert asked == [9, 9]


def test_a_thread_is_heard_again_when_it_has_read():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with suppress_warnings(), suppress_warnings():
            warnings.warn("a record", stacklevel=1)
        assert caught == []
        warnings.warn("not a record", stacklevel=1)
    assert [str(one.message) for one in caught] == ["not a record"]


def test_other_threads_are_heard_under_our_own_filter():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with suppress_warnings():
            other = threading.Thread(target=lambda: warnings.warn("not a record", stacklevel=1))
            other.start()
            other.join()
    assert [str(one.message) for one in caught] == ["not a record"]


def test_a_thread_that_reads_is_silent_whatever_filters_there_are():
    """Without any filter, and where somebody put one before ours, which is the last."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.resetwarnings()
        with suppress_warnings():
            warnings.warn("a record", stacklevel=1)
            warnings.simplefilter("error")
            with suppress_warnings():
                assert warn()
    assert caught == []


def test_filters_are_as_they_were_when_the_last_reader_has_left():
    before = list(warnings.filters)
    with suppress_warnings():
        with suppress_warnings():
            assert warnings.filters != before
        assert warnings.filters != before
    assert warnings.filters == before


# ---- through a curator and a stream


@dataclass(frozen=True)
class Steps(Counts):
    """Which of four cells; fails for records near a half, and not for public ones."""

    groups = (4, 2)

    def cells(self, records):
        if (np.abs(records - 0.5) < 0.01).any():
            raise BaseException(str(records))
        return np.column_stack([2 + np.floor(2 * records), records > 0])


def test_a_record_whose_cells_fail_counts_nowhere():
    table = np.array([[0.75]] * 7 + [[0.5]] * 2)
    one = Curator(scan(table), bounds=Bounds(x=(-1, 1)), event=Gaussian(noise_multiplier=1e-9))
    assert one.release(Steps()).value == pytest.approx([0, 0, 0, 7, 0, 7], abs=0.5)


@dataclass(frozen=True)
class Identity(Sum):
    """The record itself."""

    columns = 1
    norm2 = 1

    def rows(self, records):
        return records


def stream():
    return Stream(bounds=Bounds(x=[(-1, 1)]), event=Gaussian(noise_multiplier=1e-9))


@pytest.mark.parametrize(
    "records",
    [
        np.array([[0.5], ["secret"], [None], [1j], [0.25]], dtype=object),
        [[0.5], ["secret"], [None], None, [0.25]],
        [[0.5], [[1]], [0.1, 0.2], b"x", (0.25,)],
        np.array([[0.5], [np.nan], [0.25]], dtype=np.float32),
        [["0.5"], ["seven"], [b".25"]],
        np.array([["0.5"], ["seven"], ["0.25"]]),
    ],
)
def test_a_stream_takes_records_cell_by_cell(records):
    one = stream()
    one.add(Identity(), records)
    assert one.rows == len(records)
    assert one.release(Identity()).value[0] == pytest.approx(0.75, abs=1e-4)


@pytest.mark.parametrize("records", [np.zeros(3), np.zeros((3, 2)), np.zeros((1, 1, 1))])
def test_records_of_another_width_are_refused_for_their_shape(records):
    with pytest.raises(BadInput, match="rows of 1 numbers"):
        stream().add(Identity(), records)


def test_a_stream_asks_a_statistic_once():
    """Numbers that change after the first record was added change nothing.

    Another object must say the same of them.
    """
    said = [1]

    @dataclass(frozen=True)
    class Changing(Identity):
        norm2 = property(lambda self: said[0])
        bits = 10

    one = stream()
    statistic = Changing()
    one.add(statistic, np.array([[1.0]]))
    said[0] = 100
    one.add(statistic, np.array([[1.0]]))
    with pytest.raises(ReleaseRefused, match="Another statistic"):
        one.release(Changing())
    assert one.release(statistic).sd[0] == pytest.approx(2e-9, rel=0.01)
    one.add(statistic, np.array([[1.0]]))  # a new step: asked again
    assert one.release(Changing()).sd[0] == pytest.approx(2e-8, rel=0.01)
