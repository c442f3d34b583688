"""CPU seconds of each test file: ``python -m pytest -n 2 -p tests.support.cpu_time``.

On a shared machine the wall clock says how busy the others are. Threads and finished child
processes are counted; fixtures count for the test that makes or ends them.
"""

import time
from collections import defaultdict

import pytest

try:
    import resource
except ImportError:  # Windows: children are not counted
    resource = None

_SHOWN = 40


def cpu_seconds():
    """CPU time of this process and of its children that have ended, in seconds."""
    children = 0.0
    if resource is not None:
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        children = usage.ru_utime + usage.ru_stime
    return time.process_time() + children


class CpuTime:
    """Seconds of setup, call and teardown, from the workers to the summary."""

    def __init__(self):
        self._last = cpu_seconds()
        self._seconds = defaultdict(float)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self):
        self._last = cpu_seconds()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self):
        report = yield
        now = cpu_seconds()
        report.cpu_seconds = now - self._last
        self._last = now
        return report

    def pytest_runtest_logreport(self, report):
        self._seconds[report.nodeid] += getattr(report, "cpu_seconds", 0.0)

    def pytest_terminal_summary(self, terminalreporter):
        files = defaultdict(float)
        for nodeid, seconds in self._seconds.items():
            files[nodeid.partition("::")[0]] += seconds
        terminalreporter.section(f"CPU time: {sum(files.values()):.0f} s in all")
        for table in (files, self._seconds):
            for name in sorted(table, key=table.get, reverse=True)[:_SHOWN]:
                terminalreporter.line(f"{table[name]:8.2f} s  {name}")
            terminalreporter.line("")


def pytest_configure(config):
    """Measure in every worker; the summary is the controller's."""
    config.pluginmanager.register(CpuTime(), "cpu_time")
