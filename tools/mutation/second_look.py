"""Second look at mutants: the tests of each run in a fork, on a copy of the tree that has it.

The process that forks has loaded all modules that the tests use, but none of `reticent`: a fork
imports the mutant as anybody would.
"""

import contextlib
import importlib
import math
import os
import shutil
import signal
import sys
from pathlib import Path

from tools.mutation.targets import TOP

_FOLDERS = ("src", "tests", "benchmarks", "tools")
_FILES = ("conftest.py", "pyproject.toml")
_OURS = ("reticent", "tests", "tools", "conftest", "__main__", "_hypothesis_pytestplugin")
_SLACK = 10.0  # seconds of CPU that the tests of a mutant may take, besides three times the usual
_FACTOR = 3


class Workspace:
    """A copy of the tree in which tests run, each time in a fork of this process."""

    def __init__(self, folder: Path, tests: list[str]) -> None:
        self.folder = folder
        self.tests = tests
        for name in _FOLDERS:
            ignored = shutil.ignore_patterns("__pycache__")
            shutil.copytree(TOP / name, folder / name, ignore=ignored)
        for name in _FILES:
            shutil.copy(TOP / name, folder)
        self.limit = math.inf

    def load(self) -> None:
        """Check that the tests pass, import what they use, and limit the CPU that they may take.

        CPU, since a busy machine must not count as a test that fails.
        """
        used = self.folder / "used.txt"
        before = os.times().children_user
        if self.fails(modules=used):
            sys.exit(f"{' '.join(self.tests)}: fails without a mutation")
        for module in used.read_text().split():
            with contextlib.suppress(Exception):
                importlib.import_module(module)
        self.limit = _SLACK + _FACTOR * (os.times().children_user - before)

    def write(self, path: Path, code: str) -> None:
        """Put a mutant into the copy."""
        for compiled in (self.folder / path.parent).glob(f"__pycache__/{path.stem}.*"):
            compiled.unlink()  # told apart by their time, to the second
        (self.folder / path).write_text(code, encoding="utf-8")

    def fails(self, *, plugin: object = None, modules: Path | None = None) -> bool:
        """Whether the tests fail; ``modules`` is a file to be told what they import."""
        child = os.fork()
        if child:
            return os.waitpid(child, 0)[1] != 0
        code = 1
        try:
            code = self._run(plugin, modules, self.limit)
        finally:
            os._exit(code)

    def _run(self, plugin: object, modules: Path | None, limit: float) -> int:
        if limit < math.inf:
            signal.setitimer(signal.ITIMER_PROF, limit)  # a mutant may be an endless loop
            signal.alarm(math.ceil(20 * limit))  # or wait for ever
        os.chdir(self.folder)
        sys.path[:0] = [str(self.folder / "src"), str(self.folder)]
        sys.pycache_prefix = None
        sys.dont_write_bytecode = modules is None and plugin is None
        for stream in (1, 2):
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream)
        import pytest

        plugins = [plugin] if plugin else None
        code = pytest.main(["-q", "-x", "-p", "no:cacheprovider", *self.tests], plugins=plugins)
        if modules is not None:
            names = [name for name in sys.modules if name.partition(".")[0] not in _OURS]
            modules.write_text("\n".join(names))
        return int(code)
