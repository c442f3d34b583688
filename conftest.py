"""Settings for all tests, doctests and documentation snippets."""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # tests run in parallel; threads inside each would only wait

import pytest
from hypothesis import settings

settings.register_profile("shared", deadline=None)  # the machines are shared and slow at times
settings.load_profile("shared")


@pytest.fixture(autouse=True)
def _somewhere_else(request, tmp_path_factory, monkeypatch):
    """Documentation writes files where it runs: let that be a scratch folder."""
    if isinstance(request.node, pytest.DoctestItem):
        monkeypatch.chdir(tmp_path_factory.mktemp("docs"))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """Two halves in order, and who is done takes from the other: neighbours share fixtures, and nobody waits at the end."""
    if config.getoption("dist") == "load":
        from xdist.scheduler import WorkStealingScheduling

        return WorkStealingScheduling(config, log)
    return None
