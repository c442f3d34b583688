"""A first look at changes of the trusted core, for `tests/mutation.py`: one session of pytest, and a fork of it for each change.

The tests are collected once. A fork exchanges the code of the function that a change is in (or the value of a constant), and asks
tests until one fails, short ones and those that noticed much first: hundredths of a second, where a process of its own takes one.
What was made before (an event at the top of a test file) is not made again: what goes unnoticed here is looked at once more.
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

from reticent.memo import _Memo

__all__ = ["FirstLook"]

Code = dict[tuple[str, int], types.CodeType]
_WAIT = 60  # seconds, and five times what a test takes by the clock: one that takes longer waits for ever


class Endless(BaseException):
    """A test waits, for a lock or a process: it ends as one that fails, so that what it started is ended too."""


class FirstLook:
    """Runs instead of the tests of a session; writes the numbers of the changes that were noticed to ``told``."""

    def __init__(self, path: Path, changes: Sequence[str], told: Path, patience: float) -> None:
        self.path, self.changes, self.told, self.patience = path, changes, told, patience
        self.seconds: dict[str, float] = {}  # of CPU for each test, without a change
        self.waits: dict[str, float] = {}  # and by the clock
        self.cost: dict[str, float] = {}  # in CPU, halved whenever it was the one that noticed

    def pytest_runtestloop(self, session: Any) -> bool:
        module = importlib.import_module(f"reticent.privacy.{self.path.stem}")
        everything = gc.get_objects()
        functions = [f for f in everything if isinstance(f, types.FunctionType) and f.__module__ == module.__name__]
        caches = [f for f in everything if isinstance(f, _Memo)]
        del everything
        before = self.path.read_text(encoding="utf-8")

        def look(after: str) -> tuple[bool, list[str]]:
            read, write = os.pipe()
            child = os.fork()
            if not child:
                try:
                    if _change(before, after, functions, module) or before == after:
                        for cache in caches:
                            cache.forget()
                        self._ask(session, write)
                finally:
                    os._exit(0)
            os.close(write)
            with os.fdopen(read) as pipe:
                said = pipe.read().splitlines()
            return os.waitpid(child, 0)[1] != 0, said

        for line in look(before)[1]:
            seconds, wait, test = line.split(" ", 2)
            self.seconds[test] = self.cost[test] = float(seconds)
            self.waits[test] = float(wait)
        with self.told.open("a", encoding="utf-8") as told:
            for number, after in enumerate(self.changes):
                ended, said = look(after)
                by = [line.removeprefix("FAILED ") for line in said if line.startswith("FAILED ")]
                if ended or by:
                    told.write(f"{number}\n")
                    told.flush()
                for test in by:
                    self.cost[test] = self.cost.get(test, 1.0) / 2
        return True

    def _ask(self, session: Any, write: int) -> None:
        """Run tests until one fails; say how long each took, and which it was."""
        from _pytest.runner import runtestprotocol

        items = sorted(session.items, key=lambda item: self.cost.get(item.nodeid, 0.0))
        signal.signal(signal.SIGALRM, _endless)
        try:
            for item, following in zip(items, [*items[1:], None], strict=True):
                start, began = time.process_time(), time.monotonic()
                signal.setitimer(
                    signal.ITIMER_PROF, min(self.patience, 2 + 5 * self.seconds.get(item.nodeid, math.inf))
                )
                signal.alarm(_WAIT + math.ceil(5 * self.waits.get(item.nodeid, self.patience)))
                failed = any(one.failed for one in runtestprotocol(item, log=False, nextitem=following))
                took = f"{time.process_time() - start:.6f} {time.monotonic() - began:.6f}"
                os.write(write, f"{'FAILED' if failed else took} {item.nodeid}\n".encode())
                if failed:
                    return
        finally:
            signal.alarm(_WAIT)
            session._setupstate.teardown_exact(None)


def _endless(*_: object) -> None:
    raise Endless


def _change(before: str, after: str, functions: Sequence[Any], module: types.ModuleType) -> bool:
    """Exchange code and constants of a module in place; whether there was anything to exchange."""
    old, new = (_code(compile(text, str(module.__file__), "exec"), {}) for text in (before, after))
    done = False
    for function in functions:
        key = function.__code__.co_qualname, function.__code__.co_firstlineno
        if key in old and key in new and old[key] != new[key]:
            function.__code__ = new[key]
            done = True
    for was, now in zip(ast.parse(before).body, ast.parse(after).body, strict=True):
        if isinstance(was, ast.Assign) and ast.dump(was) != ast.dump(now):
            names = [part.id for target in was.targets for part in ast.walk(target) if isinstance(part, ast.Name)]
            values = {name: getattr(module, name) for name in names}
            exec(compile(ast.Module([now], []), str(module.__file__), "exec"), vars(module))
            for other in list(sys.modules.values()):  # whoever has imported it
                for name, value in values.items():
                    if vars(other).get(name) is value:
                        with contextlib.suppress(AttributeError):
                            setattr(other, name, getattr(module, name))
            done = True
    return done


def _code(code: types.CodeType, found: Code) -> Code:
    for one in code.co_consts:
        if isinstance(one, types.CodeType):
            found[one.co_qualname, one.co_firstlineno] = one
            _code(one, found)
    return found
