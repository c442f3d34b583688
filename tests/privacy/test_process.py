"""An identity that no fork shares, and the number of processors wherever Python runs."""

import os
import subprocess
import sys

import pytest

from reticent.errors import ReleaseRefused
from reticent.privacy import process
from reticent.privacy.process import available_cpus, identity
from reticent.privacy.random_bits import Bits


def test_a_process_stays_itself():
    assert identity() == identity()
    assert any(identity()[1])


def run(code: str) -> str:
    """In a process of its own: forking this one, with its threads, would be a warning."""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    return done.stdout


@pytest.mark.parametrize("page", ["process._page()", "bytearray(16)"])
@pytest.mark.parametrize("number", ["os.getpid()", "1"])
def test_no_fork_has_its_parents_identity(page, number):
    """With the token in a page that forks get empty or in plain memory, and whatever the process
    number says.
    """
    code = f"""if True:
        import os
        from reticent.privacy import process
        process._token = {page}
        os.getpid = lambda number={number}: number
        print(process.identity()[1].hex(), flush=True)
        for _ in range(3):
            if os.fork() == 0:
                os.write(1, (process.identity()[1].hex() + "\\n").encode())
                os._exit(0)
            os.wait()
        print(process.identity()[1].hex())
    """
    first, *children, last = run(code).split()
    assert first == last
    assert len({first, *children}) == 4


def test_a_token_that_was_wiped_is_made_anew(monkeypatch):
    """As in a child that was made without Python's knowledge."""
    monkeypatch.setattr(process, "_token", bytearray(16))
    first = identity()
    assert identity() == first
    process._token[:16] = bytes(16)
    assert identity() != first


@pytest.mark.parametrize("missing", [AttributeError, OSError, ValueError])
def test_without_such_pages_plain_memory_does(monkeypatch, missing):
    def fails(*arguments, **options):
        raise missing

    monkeypatch.setattr(process.mmap, "mmap", fails)
    assert process._page() == bytearray(16)


def test_the_page_belongs_to_no_file(monkeypatch):
    """A descriptor of the process might be any file, or none: then plain memory would be used."""
    if not hasattr(process.mmap, "MAP_ANONYMOUS"):
        pytest.skip("no anonymous maps here")
    made = process.mmap.mmap
    descriptors = []

    def spy(descriptor, *arguments, **options):
        descriptors.append(descriptor)
        return made(descriptor, *arguments, **options)

    monkeypatch.setattr(process.mmap, "mmap", spy)
    process._page()
    assert descriptors == [-1]


@pytest.mark.parametrize("draw", [lambda bits: bits.words(3), Bits.more])
def test_random_bits_are_not_drawn_in_another_process(monkeypatch, draw):
    bits = Bits(b"fork")
    draw(bits)
    monkeypatch.setattr("reticent.privacy.random_bits.identity", lambda: (1, b"another"))
    with pytest.raises(ReleaseRefused, match="another process"):
        draw(bits)


def test_processors_are_counted_wherever_python_runs(monkeypatch):
    assert available_cpus() >= 1
    masks = {0: {0, 3, 5}, os.getpid() + 1: {0}}  # 0 is the process that asks
    monkeypatch.setattr(os, "sched_getaffinity", masks.__getitem__, raising=False)
    assert available_cpus() == 3
    monkeypatch.delattr(os, "sched_getaffinity")
    monkeypatch.setattr(os, "cpu_count", lambda: 7)
    assert available_cpus() == 7
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    assert available_cpus() == 1
