"""The file beside a SQLite ledger: what it refuses, what it heals, and what its lock withstands."""

import contextlib
import errno
import os
import shutil
import sqlite3
import sys
import threading

import pytest

from reticent.errors import LedgerError
from reticent.obfuscation.register import recall_or, remembered
from reticent.privacy.accounting.events import Gaussian
from reticent.privacy.ledger import anchor, sqlite, tables
from reticent.privacy.ledger import connection as database
from reticent.privacy.ledger.ledger import Ledger

EVENT = Gaussian(noise_multiplier=20.0)
NO_ROW = (
    r"row \d+ of .*, which was acknowledged according to .*-head, is not in it.*Restore both files"
)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "budget.db"


@pytest.fixture
def head(tmp_path):
    return tmp_path / "budget.db-head"


@pytest.fixture
def ledger(path):
    ledger = Ledger(path)
    ledger.open("people", 1.0, 1e-6)
    ledger.charge("people", EVENT)
    return ledger


def refused(ledger, match):
    """Every operation is refused."""
    for use in (
        lambda: ledger.charge("people", EVENT),
        lambda: ledger.spent("people"),
        lambda: ledger.open("people", 1.0, 1e-6),
        ledger.verify,
        lambda: remembered(ledger.url),
    ):
        with pytest.raises(LedgerError, match=match):
            use()


def lines(head):
    return head.read_text().splitlines()


def as_format_1(path, head):
    """What version 0.1.0 left behind."""
    head.unlink()
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA user_version = 1")


# --- the anchor ---


def test_each_commit_has_its_line_and_what_changes_nothing_has_none(ledger, head):
    before = lines(head)
    assert [line.split()[0] for line in before] == ["0", "1", "2"]
    entry = ledger.charge("people", EVENT)
    assert lines(head) == [*before, f"3 {entry.hash} 0 {'0' * 64}"]
    ledger.open("people", 1.0, 1e-6)
    ledger.spent("people")
    assert len(lines(head)) == 4


def test_an_older_copy_of_the_database_is_refused(ledger, path, tmp_path):
    shutil.copy(path, tmp_path / "backup")
    ledger.charge("people", EVENT)
    os.replace(tmp_path / "backup", path)
    refused(ledger, NO_ROW)


def test_a_copy_of_both_files_is_the_ledger_of_that_time(ledger, path, head, tmp_path):
    for name in (path, head):
        shutil.copy(name, tmp_path / f"{name.name} backup")
    last = ledger.charge("people", EVENT)
    for name in (path, head):
        os.replace(tmp_path / f"{name.name} backup", name)
    assert len(ledger.history("people")) == 1
    with pytest.raises(LedgerError, match="expected head"):
        ledger.verify(expected_head=last.hash)


def test_a_backup_whose_head_was_copied_first_is_whole(ledger, path, head, tmp_path):
    shutil.copy(head, tmp_path / "copy.db-head")
    ledger.charge("people", EVENT)
    shutil.copy(path, tmp_path / "copy.db")
    copy = Ledger(tmp_path / "copy.db")
    assert len(copy.history("people")) == 2
    copy.charge("people", EVENT)


def test_a_ledger_without_its_head_is_refused(ledger, head):
    saved = head.read_bytes()
    head.unlink()
    refused(ledger, r"-head is missing.*belong together")
    head.write_bytes(b"")
    refused(ledger, "-head is empty or damaged")
    head.write_bytes(b"\0" * 5000)
    refused(ledger, "-head is empty or damaged")
    head.write_bytes(saved)
    ledger.charge("people", EVENT)


def test_the_head_of_another_ledger_is_refused(ledger, head, tmp_path):
    other = Ledger(tmp_path / "other.db")
    other.open("strangers", 1.0, 1e-6)
    shutil.copy(tmp_path / "other.db-head", head)
    refused(ledger, NO_ROW)


def test_a_commit_that_was_not_anchored_is_anchored_by_the_next_write(ledger, head):
    whole = lines(head)
    head.write_text("\n".join(whole[:-1]) + "\n")  # as if killed between COMMIT and the line
    assert len(ledger.history("people")) == 1
    assert lines(head) == whole[:-1]  # reading writes nothing
    ledger.open("people", 1.0, 1e-6)
    assert lines(head) == whole


@pytest.mark.parametrize(
    "torn", [b"3 abc", b"3 " + b"a" * 64 + b" 0 " + b"0" * 64, b"\0" * 100, b"\n\n"]
)
def test_a_torn_line_is_passed_over(ledger, head, torn):
    with head.open("ab") as file:
        file.write(torn)
    assert len(ledger.history("people")) == 1
    entry = ledger.charge("people", EVENT)
    assert head.read_bytes().endswith(f"\n3 {entry.hash} 0 {'0' * 64}\n".encode())
    ledger.verify()


def test_a_long_file_of_heads_is_read_from_its_end(ledger, head):
    with head.open("a") as file:
        file.write(lines(head)[-1] + "\n")
        file.write((lines(head)[-1] + "\n") * 2000)
    ledger.charge("people", EVENT)
    assert lines(head)[-1].startswith("3 ")


def test_curves_are_anchored_too(ledger, path, tmp_path):
    """A curve that was forgotten would be drawn again, with other noise."""
    shutil.copy(path, tmp_path / "backup")
    recall_or(ledger.url, "orbit", "asked", lambda: {"w": [[0.5]]})
    os.replace(tmp_path / "backup", path)
    refused(ledger, NO_ROW)


def test_a_line_that_cannot_be_written_refuses_the_charge(ledger, monkeypatch):
    def full(*args):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(anchor, "append_heads", full)
        with pytest.raises(LedgerError, match=r"No space left on device.*nothing may be read"):
            ledger.charge("people", EVENT)
    assert (
        len(ledger.history("people")) == 2
    )  # charged, and not acknowledged: never the other way round
    ledger.charge("people", EVENT)
    ledger.verify()


def test_a_charge_that_cannot_be_read_back_is_refused(ledger, path, tmp_path, monkeypatch):
    shutil.copy(path, tmp_path / "older.db")
    connect = sqlite._connect
    made = []

    def connected(url):
        made.append(url)
        return connect(url if len(made) == 1 else str(tmp_path / "older.db"))

    with monkeypatch.context() as patched:
        patched.setattr(sqlite, "_connect", connected)
        with pytest.raises(LedgerError, match=r"does not have row 3 .*committed a moment ago"):
            ledger.charge("people", EVENT)
    assert len(made) == 2


def test_a_file_replaced_during_a_charge_is_refused(ledger, path, tmp_path):
    shutil.copy(path, tmp_path / "backup")

    def charge_and_replace():
        with database.transaction(ledger.url, write=True):
            os.replace(tmp_path / "backup", path)

    with pytest.raises(LedgerError, match="moved or replaced"):
        charge_and_replace()


# --- names ---


@pytest.mark.parametrize("both", [False, True])
def test_a_file_with_two_names_is_refused_through_both(ledger, path, head, tmp_path, both):
    other = Ledger(tmp_path / "other.db")
    os.link(path, tmp_path / "other.db")
    if both:
        os.link(head, tmp_path / "other.db-head")
    refused(ledger, r"2 names \(hard links\).*find / -samefile")
    refused(other, r"2 names \(hard links\)")
    os.unlink(tmp_path / "other.db")
    ledger.charge("people", EVENT)


def test_a_file_that_gets_a_second_name_during_a_charge_is_not_acknowledged(ledger, path, tmp_path):
    def charge_and_link():
        with database.transaction(ledger.url, write=True):
            os.link(path, tmp_path / "other.db")

    with pytest.raises(LedgerError, match=r"2 names .*stays on the ledger"):
        charge_and_link()


def test_a_symbolic_link_is_the_same_ledger(ledger, path, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    os.symlink(path, tmp_path / "elsewhere" / "link.db")
    Ledger(tmp_path / "elsewhere" / "link.db").charge("people", EVENT)
    assert len(ledger.history("people")) == 2
    assert os.listdir(tmp_path / "elsewhere") == ["link.db"]


def test_a_file_that_is_a_mount_point_is_refused(ledger, path, monkeypatch):
    monkeypatch.setattr(anchor, "mounted", lambda real: real == str(path))
    refused(ledger, "the file itself is mounted here.*Mount the folder")


def test_mount_points_are_known_by_their_names(path, tmp_path, monkeypatch):
    path.touch()
    assert not anchor.mounted(str(path))
    table = tmp_path / "mountinfo"
    table.write_text(
        "22 1 8:1 / / rw - ext4 /dev/sda rw\n"
        r"23 22 8:1 /b.db /data/my\040budget\134.db rw - ext4 /dev/sda rw" + "\n"
    )
    monkeypatch.setattr("builtins.open", lambda name, mode: table.open(mode))
    assert anchor.mounted("/data/my budget\\.db")
    assert not anchor.mounted("/data/my")
    monkeypatch.undo()

    def absent(name, mode):
        raise FileNotFoundError(name)

    monkeypatch.setattr("builtins.open", absent)  # not Linux
    assert not anchor.mounted(str(path))
    assert anchor.mounted("/proc")


# --- making and upgrading ---


def test_a_ledger_that_was_removed_is_not_made_anew(ledger, path):
    path.unlink()
    with pytest.raises(LedgerError, match=r"A ledger was at .*stays spent"):
        ledger.open("people", 1.0, 1e-6)
    assert not path.exists()


def test_a_maker_that_was_killed_leaves_nothing_in_the_way(path, head):
    head.write_text(f"0 {'0' * 64} 0 {'0' * 64}\n")  # killed before the database was made
    Ledger(path).open("people", 1.0, 1e-6)
    os.link(path, f"{path}.abcd0123.new")  # killed before the second name was removed
    Ledger(path).open("people", 1.0, 1e-6)
    assert not list(path.parent.glob("*.new"))


def test_a_ledger_of_the_first_format_is_read_as_it_is_and_upgraded_by_a_charge(ledger, path, head):
    as_format_1(path, head)
    assert len(ledger.history("people")) == 1
    ledger.verify()
    assert not head.exists()
    ledger.charge("people", EVENT)
    assert [line.split()[0] for line in lines(head)] == ["2", "3"]
    head.unlink()
    refused(ledger, "-head is missing")


def test_an_upgrade_that_was_killed_goes_on(ledger, path, head):
    for left in (b"", b"2 ", head.read_bytes()):
        as_format_1(path, head)
        head.write_bytes(left)
        assert len(ledger.history("people")) == 1
        ledger.open("people", 1.0, 1e-6)
        assert lines(head)[-1].startswith("2 ")
    ledger.charge("people", EVENT)


def test_the_file_beside_a_shared_ledger_is_shared(ledger, path, head):
    as_format_1(path, head)
    path.chmod(0o664)
    before = os.umask(0o002)
    try:
        ledger.charge("people", EVENT)
    finally:
        os.umask(before)
    assert head.stat().st_mode & 0o777 == 0o664


# --- the lock ---


def waits(ledger):
    """Whether a charge meets the lock."""
    try:
        ledger.charge("people", EVENT)
    except LedgerError as error:
        return "held its lock" in str(error)
    return False


def test_reading_and_closing_the_files_drops_no_lock(ledger, path, head, monkeypatch):
    monkeypatch.setattr(tables, "LOCK_SECONDS", 0.05)
    with database.transaction(ledger.url, write=True):
        for name in (path, head):
            name.read_bytes()
        assert waits(ledger)
    assert not waits(ledger)


def test_a_fork_neither_drops_nor_keeps_the_lock(ledger, monkeypatch):
    monkeypatch.setattr(tables, "LOCK_SECONDS", 0.05)
    told, tell = os.pipe()
    with contextlib.ExitStack() as stack:
        stack.enter_context(database.transaction(ledger.url, write=True))
        child = os.fork()
        if child == 0:
            os.close(tell)
            os.read(told, 1)  # until the parent lets go
            os._exit(0)
        assert waits(ledger)
    assert not waits(ledger)  # although the child has the file open still
    os.close(tell)
    os.waitpid(child, 0)
    os.close(told)


def test_a_fork_that_leaves_the_block_leaves_its_parent_the_lock(ledger, head, monkeypatch):
    monkeypatch.setattr(tables, "LOCK_SECONDS", 0.05)
    with contextlib.ExitStack() as stack:
        stack.enter_context(anchor.locked(str(head), 1.0, write=True))
        child = os.fork()
        if child == 0:
            stack.close()
            os._exit(0)
        os.waitpid(child, 0)
        assert waits(ledger)


def test_a_lock_on_a_file_that_was_replaced_is_taken_again(ledger, head, tmp_path):
    shutil.copy(head, tmp_path / "copy")
    done = []
    with contextlib.ExitStack() as stack:
        stack.enter_context(anchor.locked(str(head), 1.0, write=True))
        thread = threading.Thread(target=lambda: done.append(ledger.charge("people", EVENT)))
        thread.start()
        thread.join(0.1)
        assert not done
        os.replace(tmp_path / "copy", head)
    thread.join()
    assert lines(head)[-1].split()[:2] == ["3", done[0].hash]


def test_without_fcntl_a_ledger_works(path, monkeypatch):
    monkeypatch.setitem(sys.modules, "fcntl", None)
    ledger = Ledger(path)
    ledger.open("people", 1.0, 1e-6)
    ledger.charge("people", EVENT)
    ledger.verify()


def test_a_link_that_is_switched_under_the_lock_is_no_acknowledgement(tmp_path, monkeypatch):
    """Lock and heads of one folder, rows of another: nothing would miss the rows."""
    (tmp_path / "one").mkdir()
    current = tmp_path / "current"
    current.symlink_to("one")
    ledger = Ledger(current / "budget.db")
    ledger.open("people", epsilon=1, delta=1e-6)
    shutil.copytree(tmp_path / "one", tmp_path / "two")
    locked = anchor.locked

    @contextlib.contextmanager
    def switched(*args, **options):
        with locked(*args, **options) as handle:
            current.unlink()
            current.symlink_to("two")
            yield handle

    with monkeypatch.context() as patch:
        patch.setattr(anchor, "locked", switched)
        with pytest.raises(LedgerError, match="moved or replaced"):
            ledger.charge("people", EVENT)
    for name, charges in (("one", 1), ("two", 0)):
        assert len(Ledger(tmp_path / name / "budget.db").history("people")) == charges


# --- the file of heads itself ---


def test_a_lock_is_held_and_given_back_where_its_file_is_descriptor_zero(head):
    """As in a service that closed its standard input: 0 is a file like any other."""
    head.touch()
    saved = os.dup(0)
    os.close(0)
    try:
        with anchor.locked(str(head), 0.0, write=True) as handle:
            assert handle == 0
            with (
                pytest.raises(TimeoutError),
                anchor.locked(str(head), 0.0, write=True),
            ):
                pass
        with pytest.raises(OSError, match="Bad file descriptor"):
            os.fstat(0)
    finally:
        os.dup2(saved, 0)
        os.close(saved)


def test_waiting_for_a_lock_leaves_no_file_open_where_descriptor_zero_is_free(head):
    head.touch()
    saved = os.dup(0)
    try:
        with anchor.locked(str(head), 0.0, write=True):
            os.close(0)
            with pytest.raises(TimeoutError), anchor.locked(str(head), 0.02, write=True):
                pass
            with pytest.raises(OSError, match="Bad file descriptor"):
                os.fstat(0)
    finally:
        os.dup2(saved, 0)
        os.close(saved)


def test_a_lock_that_is_held_is_waited_for_as_long_as_was_said_and_no_longer(head, monkeypatch):
    clock = [100.0]
    pauses = []

    def sleep(seconds):
        pauses.append(seconds)
        clock[0] += seconds

    head.touch()
    with anchor.locked(str(head), 0.0, write=True):
        monkeypatch.setattr(anchor.time, "monotonic", lambda: clock[0])
        monkeypatch.setattr(anchor.time, "sleep", sleep)
        with pytest.raises(TimeoutError), anchor.locked(str(head), 2.0, write=True):
            pass
    assert 2.0 < sum(pauses) < 2.0 + 2 * max(pauses)
    assert pauses == sorted(pauses)  # at first often, then more and more rarely
    assert len(set(pauses)) > 3
    assert pauses[0] < 0.001
    assert 0.004 < pauses[-1] < 0.006


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="which files are open is not told")
def test_a_lock_whose_file_was_replaced_leaves_no_file_open(head, tmp_path, monkeypatch):
    head.touch()
    (tmp_path / "copy").touch()
    try_lock = anchor.try_lock
    seen = []

    def replaced_once(handle, path, *, write):
        unlock = try_lock(handle, path, write=write)
        if not seen:
            os.replace(tmp_path / "copy", head)
        seen.append(os.fstat(handle).st_ino)
        return unlock

    monkeypatch.setattr(anchor, "try_lock", replaced_once)
    before = os.listdir("/proc/self/fd")
    with anchor.locked(str(head), 0.0, write=True) as handle:
        assert os.fstat(handle).st_ino == head.stat().st_ino
        assert len(os.listdir("/proc/self/fd")) == len(before) + 1
    assert len(seen) == 2
    assert os.listdir("/proc/self/fd") == before


def test_a_lock_whose_file_was_removed_is_taken_on_a_new_file(head, monkeypatch):
    head.touch()
    try_lock = anchor.try_lock
    seen = []

    def removed_once(handle, path, *, write):
        unlock = try_lock(handle, path, write=write)
        if not seen:
            head.unlink()
        seen.append(handle)
        return unlock

    monkeypatch.setattr(anchor, "try_lock", removed_once)
    with anchor.locked(str(head), 0.0, write=True, mode=0o600) as handle:
        assert os.path.samestat(os.fstat(handle), head.stat())
    assert len(seen) == 2


@pytest.mark.parametrize(("mode", "wanted"), [(0o777, 0o666), (0o640, 0o640), (0o701, 0o600)])
def test_a_file_of_heads_is_never_executable(head, mode, wanted):
    before = os.umask(0)
    try:
        with anchor.locked(str(head), 0.0, write=True, mode=mode):
            pass
    finally:
        os.umask(before)
    assert head.stat().st_mode & 0o777 == wanted


def test_without_permissions_no_file_is_made(head):
    with (
        pytest.raises(FileNotFoundError),
        anchor.locked(str(head), 0.0, write=False),
    ):
        pass
    assert not head.exists()


@pytest.mark.parametrize("code", [errno.EACCES, errno.EPERM, errno.EROFS, errno.EIO])
@pytest.mark.parametrize("write", [False, True])
def test_who_may_only_read_reads(head, monkeypatch, code, write):
    """Whoever may not write reads without writing; other failures are no permission to do so."""
    head.write_text(f"7 {'a' * 64} 0 {'0' * 64}\n")
    real = os.open

    def read_only(name, flags, *mode):
        if flags & os.O_RDWR:
            raise OSError(code, os.strerror(code))
        return real(name, flags, *mode)

    monkeypatch.setattr(os, "open", read_only)
    if write or code == errno.EIO:
        with (
            pytest.raises(OSError, match=os.strerror(code)),
            anchor.locked(str(head), 0.0, write=write),
        ):
            pass
        return
    with anchor.locked(str(head), 0.0, write=write) as handle:
        assert anchor.read_heads(handle) == (anchor.Head(7, "a" * 64), anchor.EMPTY)


@pytest.mark.parametrize("lines_before", [0, 1, 2, 40])
def test_the_last_whole_line_is_read_from_files_of_any_length(head, lines_before):
    """Short of what is read at once, exactly as long, and longer."""
    old = f"{'1' * 18} {'b' * 64} {'2' * 18} {'c' * 64}\n"
    last = (anchor.Head(31, "d" * 64), anchor.Head(42, "e" * 64))
    head.write_text(old * lines_before)
    with anchor.locked(str(head), 0.0, write=True) as handle:
        anchor.append_heads(handle, *last)
        assert anchor.read_heads(handle) == last
    assert head.read_text() == old * lines_before + f"31 {'d' * 64} 42 {'e' * 64}\n"


def test_a_line_that_is_written_in_part_is_no_line(head, monkeypatch):
    """A full disk takes the first bytes and says so: that is not an acknowledgement."""
    head.touch()
    write = os.write
    synced = []
    monkeypatch.setattr(os, "write", lambda handle, line: write(handle, line[:9]))
    monkeypatch.setattr(os, "fsync", synced.append)
    with anchor.locked(str(head), 0.0, write=True) as handle:
        with pytest.raises(OSError, match="No space left on device"):
            anchor.append_heads(handle, anchor.Head(1, "a" * 64), anchor.EMPTY)
        assert synced == [handle]
        monkeypatch.undo()
        assert anchor.read_heads(handle) is None
        anchor.append_heads(handle, anchor.Head(1, "a" * 64), anchor.EMPTY)
        assert anchor.read_heads(handle) == (anchor.Head(1, "a" * 64), anchor.EMPTY)
    assert len(lines(head)) == 2  # what was torn stays


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="which files are open is not told")
def test_the_names_in_a_folder_are_written_to_the_disk(tmp_path, monkeypatch):
    synced = []
    monkeypatch.setattr(os, "fsync", lambda handle: synced.append(os.fstat(handle).st_ino))
    before = os.listdir("/proc/self/fd")
    anchor.sync_folder(str(tmp_path))
    assert synced == [tmp_path.stat().st_ino]
    assert os.listdir("/proc/self/fd") == before
    monkeypatch.setattr(os, "name", "nt")
    anchor.sync_folder(str(tmp_path / "missing"))
    assert len(synced) == 1
