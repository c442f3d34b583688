"""A lock on a file, with fcntl and without.

Held by one at a time, and gone with the process that held it.
"""

import builtins
import os
import signal
import sqlite3
import subprocess
import sys
import threading

import pytest

from reticent.privacy.ledger.locks import try_lock

_import = builtins.__import__


@pytest.fixture(params=["fcntl", "sqlite"])
def system(request, monkeypatch):
    if request.param == "sqlite":

        def without(name, *arguments, **options):
            if name == "fcntl":
                raise ImportError
            return _import(name, *arguments, **options)

        monkeypatch.setattr(builtins, "__import__", without)
    return request.param


@pytest.fixture
def opened(tmp_path):
    """Open the same file, as often as wanted."""
    path = str(tmp_path / "file")
    handles = []

    def once():
        handles.append(os.open(path, os.O_RDWR | os.O_CREAT))
        return handles[-1], path

    yield once
    for handle in handles:
        os.close(handle)


def test_one_at_a_time(system, opened):
    unlock = try_lock(*opened(), write=True)
    assert unlock is not None
    assert try_lock(*opened(), write=True) is None
    unlock()
    again = try_lock(*opened(), write=True)
    assert again is not None
    again()


def test_threads_of_one_process_too(system, opened):
    unlock = try_lock(*opened(), write=True)
    found = []
    thread = threading.Thread(target=lambda: found.append(try_lock(*opened(), write=True)))
    thread.start()
    thread.join()
    assert found == [None]
    unlock()


def test_reading_and_closing_the_file_does_not_unlock_it(system, opened, tmp_path):
    unlock = try_lock(*opened(), write=True)
    (tmp_path / "file").read_bytes()
    assert try_lock(*opened(), write=True) is None
    unlock()


def test_it_is_gone_when_its_process_is_killed(system, opened, tmp_path):
    code = f"""if True:
        import builtins, os, time
        from reticent.privacy.ledger.locks import try_lock
        real = builtins.__import__
        def without(name, *arguments, **options):
            if name == "fcntl" and {system == "sqlite"}:
                raise ImportError
            return real(name, *arguments, **options)
        builtins.__import__ = without
        path = {str(tmp_path / "file")!r}
        held = try_lock(os.open(path, os.O_RDWR | os.O_CREAT), path, write=True)
        print("held", flush=True)
        time.sleep(60)
    """
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout.readline() == "held\n"
        assert try_lock(*opened(), write=True) is None
        child.send_signal(signal.SIGKILL)
        child.wait()
    unlock = try_lock(*opened(), write=True)
    assert unlock is not None
    unlock()


def test_where_no_lock_can_be_made_only_readers_go_on(monkeypatch, opened, tmp_path):
    """Who may only read a ledger reads it; two who may write would both be let in."""
    (tmp_path / "file-lock").mkdir()
    monkeypatch.setitem(sys.modules, "fcntl", None)
    unlock = try_lock(*opened(), write=False)
    assert unlock is not None
    unlock()
    with pytest.raises(OSError, match="file-lock"):
        try_lock(*opened(), write=True)


def test_a_lock_that_is_another_file_is_none(monkeypatch, opened, tmp_path):
    (tmp_path / "file-lock").write_bytes(b"something else" * 100)
    monkeypatch.setitem(sys.modules, "fcntl", None)
    for write in (False, True):
        with pytest.raises(OSError, match="file-lock"):
            try_lock(*opened(), write=write)


def test_another_thread_may_unlock_it(system, opened):
    unlock = try_lock(*opened(), write=True)
    thread = threading.Thread(target=unlock)
    thread.start()
    thread.join()
    again = try_lock(*opened(), write=True)
    assert again is not None
    again()


def test_who_meets_a_lock_does_not_wait(monkeypatch, opened):
    found = []
    connect = sqlite3.connect

    def watched(*arguments, **options):
        found.append(connect(*arguments, **options))
        [(milliseconds,)] = found[-1].execute("PRAGMA busy_timeout")
        assert milliseconds == 0
        return found[-1]

    monkeypatch.setitem(sys.modules, "fcntl", None)
    monkeypatch.setattr(sqlite3, "connect", watched)
    unlock = try_lock(*opened(), write=True)
    assert try_lock(*opened(), write=True) is None
    assert len(found) == 2
    unlock()
