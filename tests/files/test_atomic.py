"""New files: whole or not at all, in nobody's place, and through nobody's links."""

import errno
import os
import stat
import threading

import pytest

from reticent.files import atomic as new_files
from reticent.files.atomic import new_file


def write(path, content=b"mine", **how):
    with new_file(path, **how) as file:
        file.write(content)


def no_links(*args, **kwargs):
    raise OSError(errno.EPERM, "no hard links here")


@pytest.fixture(params=["links", "no links"], autouse=True)
def file_system(request, monkeypatch):
    if request.param == "no links":
        monkeypatch.setattr(os, "link", no_links)


def test_a_file_appears_when_it_is_whole(tmp_path):
    path = tmp_path / "m"
    with new_file(path) as file:
        file.write(b"half")
        assert not path.exists()
    assert path.read_bytes() == b"half"
    assert path.stat().st_nlink == 1
    assert [one.name for one in tmp_path.iterdir()] == ["m"]


@pytest.mark.parametrize("umask", [0o022, 0o077])
def test_who_may_read_it_is_for_the_umask_to_say(tmp_path, umask):
    before = os.umask(umask)
    try:
        write(tmp_path / "m")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "m").stat().st_mode) == 0o666 & ~umask


@pytest.mark.parametrize("taken", ["file", "link", "dangling", "folder"])
def test_what_appears_meanwhile_is_not_replaced(tmp_path, taken):
    path = tmp_path / "m"
    other = tmp_path / "other"
    other.write_bytes(b"theirs")
    with pytest.raises(FileExistsError), new_file(path) as file:  # noqa: PT012
        file.write(b"mine")
        if taken == "file":
            path.write_bytes(b"theirs")
        elif taken == "folder":
            path.mkdir()
        else:
            path.symlink_to(other if taken == "link" else tmp_path / "nowhere")
    assert other.read_bytes() == b"theirs"
    assert path.is_symlink() == (taken in ("link", "dangling"))
    assert sorted(one.name for one in tmp_path.iterdir()) == ["m", "other"]
    assert taken != "file" or path.read_bytes() == b"theirs"


def test_a_file_is_replaced_if_that_was_asked_for_and_a_link_is_not_followed(tmp_path):
    path = tmp_path / "m"
    other = tmp_path / "other"
    other.write_bytes(b"theirs")
    path.symlink_to(other)
    write(path, overwrite=True)
    assert path.read_bytes() == b"mine"
    assert not path.is_symlink()
    assert other.read_bytes() == b"theirs"


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, OSError])
def test_nothing_is_left_of_what_failed(tmp_path, error):
    with pytest.raises(error), new_file(tmp_path / "m") as file:  # noqa: PT012
        file.write(b"half")
        raise error
    assert list(tmp_path.iterdir()) == []


def test_nothing_is_left_if_it_cannot_be_named(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "link", no_links)
    monkeypatch.setattr(os, "replace", no_links)
    with pytest.raises(OSError, match="no hard links"):
        write(tmp_path / "m")
    assert list(tmp_path.iterdir()) == []


def test_a_scratch_file_that_somebody_prepared_is_not_used(tmp_path, monkeypatch):
    victim = tmp_path / "victim"
    victim.write_bytes(b"theirs")
    monkeypatch.setattr(new_files.secrets, "token_hex", lambda size: "guessed")
    (tmp_path / ".guessed.part").symlink_to(victim)
    with pytest.raises(FileExistsError):
        write(tmp_path / "m")
    assert victim.read_bytes() == b"theirs"
    assert (tmp_path / ".guessed.part").is_symlink()


def test_of_many_writers_one_wins_and_its_file_is_whole(tmp_path):
    path = tmp_path / "m"
    start = threading.Barrier(8)
    won = []

    def writer(number):
        start.wait()
        try:
            write(path, bytes([number]) * 100_000)
        except FileExistsError:
            return
        won.append(number)

    threads = [threading.Thread(target=writer, args=(number,)) for number in range(8)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert len(won) == 1
    assert path.read_bytes() == bytes(won) * 100_000
    assert [one.name for one in tmp_path.iterdir()] == ["m"]


def test_on_windows_a_name_is_given_by_renaming(tmp_path, monkeypatch):
    """There `rename` refuses a name that is taken."""
    renamed = []

    class Windows:
        name = "nt"

        def __getattr__(self, name):
            return getattr(os, name)

        def rename(self, old, new):
            renamed.append(new)
            os.rename(old, new)

    monkeypatch.setattr(new_files, "os", Windows())
    write(tmp_path / "m")
    assert renamed == [tmp_path / "m"]
    assert (tmp_path / "m").read_bytes() == b"mine"


def test_an_error_names_the_file_and_not_the_scratch_file(tmp_path):
    with pytest.raises(FileNotFoundError) as caught:
        write(tmp_path / "absent" / "m")
    assert caught.value.filename == str(tmp_path / "absent" / "m")
