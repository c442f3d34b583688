"""First look at the mutants: one pytest session, and a fork of it for each mutant.

The tests are collected once, and run once to learn which functions each of them calls and how long
it takes. A fork exchanges the code of the mutated function (or the value of the constant) and runs
the tests that call it until one fails, short ones and those that noticed many mutants first.
That takes a tenth of a second, where a process of its own takes one or more. What was computed
before the fork (an object at the top of a test file) is not computed again, and a process that a
test starts imports no mutant, so that survivors of the first look need a second one.
"""

import ast
import contextlib
import gc
import importlib
import json
import math
import os
import signal
import sys
import time
import types
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from tools.mutation.mutants import Mutant
from tools.mutation.targets import assigned

__all__ = ["FirstLook"]

_CALLED = "_called_by_the_test"  # global name in the mutated module
_GRACE = 60  # seconds of wall clock, besides five times a test's own: then it waits for ever


class Endless(BaseException):
    """A test waits for a lock or a process: it fails, so that what it started is ended, too."""


class FirstLook:
    """pytest plugin that runs instead of the tests and writes which mutants were noticed.

    ``module`` is the mutated module's name. A line of ``results`` is a mutant's number and 1 if it
    was noticed, else 0. After ``seconds``, no other mutant is tried.
    """

    def __init__(
        self, module: str, mutants: Sequence[Mutant], results: Path, seconds: float = math.inf
    ) -> None:
        self.module = module
        self.mutants = mutants
        self.results = results
        self.seconds = seconds
        self.cpu: dict[str, float] = {}  # seconds of each test, without a mutation
        self.wall: dict[str, float] = {}
        self.cost: dict[str, float] = {}  # CPU, halved whenever the test notices a mutant
        self.called: dict[str, set[str]] = {}  # functions of the module that each test calls

    def pytest_runtestloop(self, session: Any) -> bool:
        """Look at every mutant."""
        from reticent.memo import _Memo

        module = importlib.import_module(self.module)
        path = Path(str(module.__file__))
        original = path.read_text(encoding="utf-8")
        tracked = gc.get_objects()
        # by `type`: among the objects are hostile cells, whose `__class__` raises an error
        functions = [item for item in tracked if type(item) is types.FunctionType]
        functions = [item for item in functions if item.__module__ == module.__name__]
        caches = [item for item in tracked if issubclass(type(item), _Memo)]
        del tracked
        compiled = compile(original, str(path), "exec")
        gc.collect()
        gc.freeze()  # else every fork's collector copies all pages

        def forget() -> None:
            for cache in caches:
                cache.forget()

        def look(code: str, run: Callable[[int], None]) -> tuple[bool, list[dict[str, Any]]]:
            read, write = os.pipe()
            child = os.fork()
            if not child:
                try:
                    if code == original:
                        _note_calls(original, functions, module)
                        run(write)
                    elif _exchange(original, compiled, code, functions, module):
                        forget()
                        run(write)
                finally:
                    os._exit(0)
            os.close(write)
            with os.fdopen(read) as pipe:
                output = [json.loads(line) for line in pipe]
            return os.waitpid(child, 0)[1] != 0, output

        crashed, output = look(original, lambda pipe: self._learn(session, module, forget, pipe))
        if crashed or any(result["failed"] for result in output):
            raise RuntimeError("the tests fail in a fork, as those do that need threads")
        for result in output:
            test = result["test"]
            self.cpu[test] = self.cost[test] = result["cpu"]
            self.wall[test] = result["wall"]
            self.called[test] = set(result["called"])
        deadline = time.monotonic() + self.seconds
        with self.results.open("a", encoding="utf-8") as file:
            for number, mutant in enumerate(self.mutants):
                if time.monotonic() > deadline:
                    break
                items = self._callers(session.items, mutant.function)
                crashed, output = look(
                    mutant.code, lambda pipe, items=items: self._run(session, items, pipe)
                )
                failed = [result["test"] for result in output if result["failed"]]
                file.write(f"{number} {int(crashed or bool(failed))}\n")
                file.flush()
                for test in failed:
                    self.cost[test] /= 2
        return True

    def _callers(self, items: Sequence[Any], function: str) -> list[Any]:
        """The tests that call a function (all, for a constant), the cheapest first."""
        known = set().union(*self.called.values())
        if function in known:
            items = [item for item in items if function in self.called[item.nodeid]]
        return sorted(items, key=lambda item: self.cost[item.nodeid])

    def _learn(
        self, session: Any, module: types.ModuleType, forget: Callable[[], None], write: int
    ) -> None:
        """Run all tests; write how long each took, and the functions of the file that it called."""
        called: set[str] = getattr(module, _CALLED)
        for item, following in _pairs(session.items):
            forget()  # what is cached is called by every test that needs it
            called.clear()
            result = _run_test(session, item, following)
            _tell(write, result | {"called": sorted(called)})

    def _run(self, session: Any, items: Sequence[Any], write: int) -> None:
        """Run tests until one fails; write how long each took, and which one failed."""
        signal.signal(signal.SIGALRM, _give_up)
        try:
            for item, following in _pairs(items):
                usual = self.cpu[item.nodeid]
                signal.setitimer(signal.ITIMER_PROF, 2 + 5 * usual)
                usual = self.wall[item.nodeid]
                signal.alarm(_GRACE + math.ceil(5 * usual))
                result = _run_test(session, item, following)
                _tell(write, result)
                if result["failed"]:
                    return
        finally:
            signal.alarm(_GRACE)
            session._setupstate.teardown_exact(None)


def _pairs(items: Sequence[Any]) -> Iterator[tuple[Any, Any]]:
    """Each test and the one after it, which pytest needs to know."""
    return zip(items, [*items[1:], None], strict=True)


def _run_test(session: Any, item: Any, following: Any) -> dict[str, Any]:
    """Run one test: whether it failed, and seconds of CPU (its processes included) and of clock."""
    from _pytest.runner import runtestprotocol

    cpu = sum(os.times()[:4])
    wall = time.monotonic()
    reports = runtestprotocol(item, log=False, nextitem=following)
    return {
        "test": item.nodeid,
        "failed": any(report.failed for report in reports),
        "cpu": sum(os.times()[:4]) - cpu,
        "wall": time.monotonic() - wall,
    }


def _tell(write: int, result: dict[str, Any]) -> None:
    os.write(write, f"{json.dumps(result)}\n".encode())


def _note_calls(original: str, functions: Sequence[Any], module: types.ModuleType) -> None:
    """Make every function of a loaded module add its name to a set when it is called."""
    path = str(module.__file__)
    setattr(module, _CALLED, set())
    noting = compile(_noting_calls(original), path, "exec")
    _exchange_code(compile(original, path, "exec"), noting, functions)


def _noting_calls(original: str) -> ast.Module:
    """A module whose functions begin with noting their names; inner ones count as the outer one."""
    tree = ast.parse(original)
    parents: list[tuple[str, ast.Module | ast.ClassDef]] = [("", tree)]
    for prefix, parent in parents:
        for node in parent.body:
            if isinstance(node, ast.ClassDef):
                parents.append((f"{prefix}{node.name}.", node))
            elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                inner = [part for part in ast.walk(node) if isinstance(part, type(node))]
                for function in inner:
                    note = ast.parse(f"{_CALLED}.add({prefix + node.name!r})").body[0]
                    for part in ast.walk(note):
                        ast.copy_location(part, function.body[0])
                    function.body.insert(0, note)
    return tree


def _give_up(*_: object) -> None:
    raise Endless


def _exchange(
    original: str,
    compiled: types.CodeType,
    mutated: str,
    functions: Sequence[Any],
    module: types.ModuleType,
) -> bool:
    """Put a mutant's code and constants into a loaded module; whether anything was exchanged."""
    path = str(module.__file__)
    if _exchange_code(compiled, compile(mutated, path, "exec"), functions):
        return True
    exchanged = False
    for before, after in zip(ast.parse(original).body, ast.parse(mutated).body, strict=True):
        is_constant = isinstance(after, ast.Assign | ast.AnnAssign)
        if is_constant and ast.dump(before) != ast.dump(after):
            _assign(after, module)
            exchanged = True
    return exchanged


def _exchange_code(before: types.CodeType, after: types.CodeType, functions: Sequence[Any]) -> bool:
    """Put the functions' code in one compiled module in the place of that in another."""
    old = _code_objects(before)
    new = _code_objects(after)
    exchanged = False
    for function in functions:
        key = function.__code__.co_qualname, function.__code__.co_firstlineno
        if key in old and key in new and old[key] != new[key]:
            function.__code__ = new[key]
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
