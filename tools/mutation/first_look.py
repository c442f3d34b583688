"""First look at the mutants: one pytest session, and a fork of it for each mutant.

The tests are collected once. A fork exchanges the code of the mutated function (or the value of
the constant) and runs tests until one fails, short ones and those that noticed many mutants first.
That takes a tenth of a second, where a process of its own takes one or more. What was computed
before the fork (an object at the top of a test file) is not computed again, so that survivors of
the first look need a second one.
"""

import ast
import contextlib
import gc
import importlib
import math
import os
import signal
import sys
import time
import types
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tools.mutation.targets import assigned

__all__ = ["FirstLook"]

_GRACE = 60  # seconds of wall clock, besides five times a test's own: then it waits for ever


class Endless(BaseException):
    """A test waits for a lock or a process: it fails, so that what it started is ended, too."""


class FirstLook:
    """pytest plugin that runs instead of the tests and writes the numbers of noticed mutants.

    ``module`` is the mutated module's name, ``codes`` are its mutants, ``limit`` is the CPU that a
    test may take, in seconds.
    """

    def __init__(self, module: str, codes: Sequence[str], noticed: Path, limit: float) -> None:
        self.module = module
        self.codes = codes
        self.noticed = noticed
        self.limit = limit
        self.cpu: dict[str, float] = {}  # seconds of each test, without a mutation
        self.wall: dict[str, float] = {}
        self.cost: dict[str, float] = {}  # CPU, halved whenever the test notices a mutant

    def pytest_runtestloop(self, session: Any) -> bool:
        """Look at every mutant."""
        from reticent.memo import _Memo

        module = importlib.import_module(self.module)
        path = Path(str(module.__file__))
        original = path.read_text(encoding="utf-8")
        tracked = gc.get_objects()
        functions = [item for item in tracked if isinstance(item, types.FunctionType)]
        functions = [item for item in functions if item.__module__ == module.__name__]
        caches = [item for item in tracked if isinstance(item, _Memo)]
        del tracked

        def look(code: str) -> tuple[bool, list[str]]:
            read, write = os.pipe()
            child = os.fork()
            if not child:
                try:
                    if code == original or _exchange(original, code, functions, module):
                        for cache in caches:
                            cache.forget()
                        self._run_tests(session, write)
                finally:
                    os._exit(0)
            os.close(write)
            with os.fdopen(read) as pipe:
                output = pipe.read().splitlines()
            return os.waitpid(child, 0)[1] != 0, output

        crashed, output = look(original)
        if crashed or any(line.startswith("FAILED ") for line in output):
            raise RuntimeError("the tests fail in a fork, as those do that need threads")
        for line in output:
            cpu, wall, test = line.split(" ", 2)
            self.cpu[test] = self.cost[test] = float(cpu)
            self.wall[test] = float(wall)
        with self.noticed.open("a", encoding="utf-8") as file:
            for number, code in enumerate(self.codes):
                crashed, output = look(code)
                failed = [
                    line.removeprefix("FAILED ") for line in output if line.startswith("FAILED ")
                ]
                if crashed or failed:
                    file.write(f"{number}\n")
                    file.flush()
                for test in failed:
                    self.cost[test] = self.cost.get(test, 1.0) / 2
        return True

    def _run_tests(self, session: Any, write: int) -> None:
        """Run tests until one fails; write how long each took, and which one failed."""
        from _pytest.runner import runtestprotocol

        items = sorted(session.items, key=lambda item: self.cost.get(item.nodeid, 0.0))
        signal.signal(signal.SIGALRM, _give_up)
        try:
            for item, following in zip(items, [*items[1:], None], strict=True):
                cpu = time.process_time()
                wall = time.monotonic()
                usual = self.cpu.get(item.nodeid, math.inf)
                signal.setitimer(signal.ITIMER_PROF, min(self.limit, 2 + 5 * usual))
                usual = self.wall.get(item.nodeid, self.limit)
                signal.alarm(_GRACE + math.ceil(5 * usual))
                reports = runtestprotocol(item, log=False, nextitem=following)
                if any(report.failed for report in reports):
                    os.write(write, f"FAILED {item.nodeid}\n".encode())
                    return
                cpu = time.process_time() - cpu
                wall = time.monotonic() - wall
                os.write(write, f"{cpu:.6f} {wall:.6f} {item.nodeid}\n".encode())
        finally:
            signal.alarm(_GRACE)
            session._setupstate.teardown_exact(None)


def _give_up(*_: object) -> None:
    raise Endless


def _exchange(
    original: str, mutated: str, functions: Sequence[Any], module: types.ModuleType
) -> bool:
    """Put a mutant's code and constants into a loaded module; whether anything was exchanged."""
    path = str(module.__file__)
    old = _code_objects(compile(original, path, "exec"))
    new = _code_objects(compile(mutated, path, "exec"))
    exchanged = False
    for function in functions:
        key = function.__code__.co_qualname, function.__code__.co_firstlineno
        if key in old and key in new and old[key] != new[key]:
            function.__code__ = new[key]
            exchanged = True
    for before, after in zip(ast.parse(original).body, ast.parse(mutated).body, strict=True):
        is_constant = isinstance(after, ast.Assign | ast.AnnAssign)
        if is_constant and ast.dump(before) != ast.dump(after):
            _assign(after, module)
            exchanged = True
    return exchanged


def _assign(statement: ast.Assign | ast.AnnAssign, module: types.ModuleType) -> None:
    """Assign constants anew, in the module and wherever they were imported."""
    old = {name: getattr(module, name) for name in assigned(statement)}
    exec(compile(ast.Module([statement], []), str(module.__file__), "exec"), vars(module))
    for other in list(sys.modules.values()):
        for name, value in old.items():
            if vars(other).get(name) is value:
                with contextlib.suppress(AttributeError):
                    setattr(other, name, getattr(module, name))


def _code_objects(code: types.CodeType) -> dict[tuple[str, int], types.CodeType]:
    """Code of all functions in a module, by qualified name and first line."""
    found = {}
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            found[constant.co_qualname, constant.co_firstlineno] = constant
            found |= _code_objects(constant)
    return found
