"""Settings for all tests, doctests and documentation snippets."""

import gc
import importlib.util
import itertools
import os
import signal
from hashlib import sha256
from pathlib import Path

if os.environ.get(
    "RETICENT_TEST_WITHOUT"
):  # names that other systems lack: gone here, and in every process we start
    _without = Path(__file__).parent / "tests" / "without"
    os.environ["PYTHONPATH"] = os.pathsep.join(
        filter(None, [str(_without), os.environ.get("PYTHONPATH")])
    )
    _found = importlib.util.spec_from_file_location("sitecustomize", _without / "sitecustomize.py")
    _found.loader.exec_module(importlib.util.module_from_spec(_found))

if (
    signal.getsignal(signal.SIGINT) is signal.SIG_IGN
):  # so do shells that start tests in the background
    signal.signal(signal.SIGINT, signal.default_int_handler)

# tests run in parallel; threads inside each would only wait
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import pytest
from hypothesis import settings

settings.register_profile("shared", deadline=None)  # the machines are shared and slow at times
settings.load_profile("shared")

gc.disable()  # until the tests are collected: hardly anything of so many objects is garbage


@pytest.fixture(autouse=True)
def _somewhere_else(request, tmp_path_factory, monkeypatch):
    """Documentation writes files where it runs: let that be a scratch folder."""
    if isinstance(request.node, pytest.DoctestItem):
        monkeypatch.chdir(tmp_path_factory.mktemp("docs"))


@pytest.fixture(autouse=True, scope="module")
def _same_noise_in_each_module(request):
    """What several tests share, too."""
    with pytest.MonkeyPatch.context() as patch:
        _repeat_noise(patch, Path(request.node.nodeid).name)
        yield


@pytest.fixture(autouse=True)
def _same_noise_each_time(request, monkeypatch):
    """Let a test that asks for true randomness fail always or never.

    RETICENT_TEST_NOISE=other makes other noise. The noise hangs on the test's name and not on its
    folder, so that files can move.
    """
    _repeat_noise(monkeypatch, request.node.name)


_true_noise = os.urandom


def _repeat_noise(patch, name):
    count = itertools.count()
    here = os.getpid()
    name = f"{os.environ.get('RETICENT_TEST_NOISE', '')} {name}"

    def key(size):
        if (
            size != 32 or os.getpid() != here
        ):  # not a key of noise; a forked process must not draw its parent's again
            return _true_noise(size)
        return sha256(f"{name} {next(count)}".encode()).digest()

    patch.setattr(os, "urandom", key)


def pytest_collection_finish():
    """From here on, garbage is collected."""
    gc.enable()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """Two halves in order, and who is done takes from the other.

    Neighbours share fixtures, and nobody waits at the end.
    """
    if config.getoption("dist") == "load":
        from xdist.scheduler import WorkStealingScheduling

        return WorkStealingScheduling(config, log)
    return None
