"""Targets of the mutation tests: files of the core, their tests, and their equivalent mutants."""

import ast
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

TOP = Path(__file__).parents[2]
SOURCE = Path("src") / "reticent"
TESTS = Path("tests")
TABLE = Path(__file__).with_name("targets.toml")


@dataclass(frozen=True)
class Equivalent:
    """Mutants of one function that no test can notice, and why that is so."""

    function: str  # qualified name, or the name of a constant
    excused: Mapping[str, int]  # kind of mutant: how many of them
    reason: str


@dataclass(frozen=True)
class Target:
    """A file of the core, by its path below `src/reticent/`."""

    file: str
    tests: list[str] = field(default_factory=list)  # besides the mirrored one, below tests/
    keyword: str = ""  # pytest's -k
    skip: list[str] = field(default_factory=list)  # functions that only word messages
    constants: list[str] = field(default_factory=list)
    equivalent: list[Equivalent] = field(default_factory=list)

    @property
    def path(self) -> Path:
        """The source file, from the top of the repository."""
        return SOURCE / self.file

    @property
    def module(self) -> str:
        """The name by which the source file is imported."""
        return ".".join(self.path.relative_to("src").with_suffix("").parts)

    @property
    def mirror(self) -> Path:
        """The test file that stands where the source file stands."""
        file = Path(self.file)
        return TESTS / file.parent / f"test_{file.name}"

    @property
    def test_files(self) -> list[Path]:
        """The mirrored test file, if there is one, and the others."""
        found = [self.mirror] if (TOP / self.mirror).exists() else []
        found += [TESTS / name for name in self.tests]
        if not found:
            raise SystemExit(f"{self.file}: write {self.mirror}, or name its tests in {TABLE.name}")
        return found

    def places(self, functions: Iterable[str] = ()) -> list["Place"]:
        """Where mutants are made: in the given functions, else in all that are not skipped."""
        found = {place.name: place for place in places((TOP / self.path).read_text("utf-8"))}
        named = [*self.skip, *self.constants, *(row.function for row in self.equivalent)]
        wanted = set(functions)
        if unknown := sorted({*named, *wanted} - set(found)):
            raise SystemExit(f"{self.file} does not define {', '.join(unknown)}: mend {TABLE.name}")
        if wanted:
            return [found[name] for name in found if name in wanted]
        default = {name for name, place in found.items() if place.is_function}
        return [
            found[name] for name in found if name in (default | {*self.constants}) - {*self.skip}
        ]


@dataclass(frozen=True)
class Place:
    """A function or a constant: its name and where its text is."""

    name: str
    is_function: bool
    lines: tuple[int, int]  # first and last, counted from 1
    body: tuple[int, int]  # line and column where mutants begin: signatures are left alone


def places(code: str) -> list[Place]:
    """Functions, methods and module constants of a file; inner functions belong to outer ones."""
    return list(_places(ast.parse(code), ""))


def _places(parent: ast.Module | ast.ClassDef, prefix: str) -> Iterator[Place]:
    for node in parent.body:
        if isinstance(node, ast.ClassDef):
            yield from _places(node, f"{prefix}{node.name}.")
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield _place(prefix + node.name, node, node.body[0])
        elif isinstance(node, ast.Assign | ast.AnnAssign) and isinstance(parent, ast.Module):
            for name in assigned(node):
                yield _place(name, node, node)


def _place(name: str, node: ast.stmt, first: ast.stmt) -> Place:
    is_function = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    last = node.end_lineno or node.lineno
    return Place(name, is_function, (node.lineno, last), (first.lineno, first.col_offset))


def assigned(node: ast.Assign | ast.AnnAssign) -> list[str]:
    """Names that an assignment binds."""
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    parts = [part for target in targets for part in ast.walk(target)]
    return [part.id for part in parts if isinstance(part, ast.Name)]


def targets() -> dict[str, Target]:
    """The table, by file."""
    found = {}
    for file, entries in tomllib.loads(TABLE.read_text("utf-8")).items():
        rows = [Equivalent(**row) for row in entries.pop("equivalent", [])]
        found[file] = Target(file, equivalent=rows, **entries)
    return found


def unlisted() -> list[str]:
    """Files of the core that the table does not have."""
    files = (TOP / SOURCE / "privacy").rglob("*.py")
    names = {path.relative_to(TOP / SOURCE).as_posix() for path in files if path.stem != "__init__"}
    return sorted(names - {*targets()})


def named(word: str) -> Target:
    """The target of a path, or of the end of one: `gaussian.py`, `accounting/gaussian.py`."""
    table = targets()
    ends = [file for file in [*table, *unlisted()] if f"/{file}".endswith(f"/{word}")]
    if len(ends) != 1:
        several = f"one of {', '.join(ends)}" if ends else "a file that --list has"
        raise SystemExit(f"{word}: give {several}")
    return table.get(ends[0], Target(ends[0]))


class Excuses:
    """The equivalent mutants of a file, each to be excused once."""

    def __init__(self, rows: Iterable[Equivalent]) -> None:
        self._left: Counter[tuple[str, str]] = Counter()
        self._reasons: dict[tuple[str, str], str] = {}
        for row in rows:
            for kind, number in row.excused.items():
                self._left[row.function, kind] += number
                self._reasons[row.function, kind] = row.reason

    def take(self, function: str, kinds: Iterable[str]) -> str | None:
        """The reason for one more survivor, of the first of its kinds that has a number left."""
        for kind in kinds:
            if self._left[function, kind] > 0:
                self._left[function, kind] -= 1
                return self._reasons[function, kind]
        return None

    def unused(self, functions: Iterable[str]) -> list[str]:
        """Kinds of mutants in these functions that are excused more often than they survive."""
        names = set(functions)
        left = [(place, number) for place, number in self._left.items() if number > 0]
        return [f"{name}, {kind}: {number}" for (name, kind), number in left if name in names]
