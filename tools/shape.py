"""The shape of the code base, in numbers that a reader feels.

    python -m tools.shape                  this tree
    python -m tools.shape --against REV    this tree beside that of a revision

Counted from the source: files per folder, code lines and statements per package, packed
assignments (`a, b = x, y`), conditional expressions, lines over 100 columns, `Any` in annotations,
names that two modules define, private names that tests import, and numbers with a name, by kind
(`tools.named_numbers`; older trees had no kinds). Lines depend on how code is formatted; statements
do not.

Measured by running a fit of `GPRegressor` from a CSV file with a ledger, and its report:

* what an auditor reads: the functions of the trusted package that the fit executes, with and
  without the bodies of row maps;
* hops of a record: named functions in which some variable holds the text of a record, or an array
  with one row for each record;
* files that writing the report executes.
"""

import argparse
import ast
import io
import json
import os
import subprocess
import sys
import tempfile
import threading
import tokenize
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import numpy as np

from tools.named_numbers import counts_by_kind, named_numbers

HERE = Path(__file__).parents[1]
LONGEST_LINE = 100
RECORDS = 397  # a prime: no other array has this many rows
MARKER = "0.7182818"  # the text of one value of one record
# Files that run on records before noise is added. Version 0.1.0 and what followed it until the
# trusted package held all of them had some elsewhere.
TRUSTED = ("privacy/",)
ROW_MAPS = ("privacy/row_maps/",)
OLD_ROW_MAPS = ("models/residuals.py", "models/inputs.py", "maths/basis.py")
NUMBERS_ONLY = "count only; run nothing"


def code_lines(text: str) -> int:
    """Lines that hold code: no comments, blank lines or docstrings."""
    lines: set[int] = set()
    skipped = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT}
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in skipped and token.type != tokenize.ENDMARKER:
            lines.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(text)):
        if not isinstance(node, ast.Expr):
            value = None
        else:
            value = node.value
        if isinstance(value, ast.Constant) and isinstance(value.value, str):
            lines.difference_update(range(value.lineno, (value.end_lineno or value.lineno) + 1))
    return len(lines)


def statements(tree: ast.AST) -> int:
    """Statements, docstrings aside: a count that no formatter changes."""
    return sum(isinstance(node, ast.stmt) and not is_docstring(node) for node in ast.walk(tree))


def is_docstring(node: ast.AST) -> bool:
    """Whether a statement is a string and nothing else."""
    value = node.value if isinstance(node, ast.Expr) else None
    return isinstance(value, ast.Constant) and isinstance(value.value, str)


def style(text: str) -> Counter[str]:
    """Habits that readers complained of, counted in one file."""
    tree = ast.parse(text)
    found: Counter[str] = Counter()
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign):
            found["assignments"] += 1
            packed = isinstance(node.targets[0], ast.Tuple) and isinstance(node.value, ast.Tuple)
            found["packed assignments"] += packed
        elif isinstance(node, ast.AnnAssign | ast.AugAssign):
            found["assignments"] += 1
        elif isinstance(node, ast.IfExp):
            found["conditional expressions"] += 1
            inner = [part for part in ast.walk(node) if isinstance(part, ast.IfExp)]
            found["nested conditional expressions"] += len(inner) > 1
        found["Any in annotations"] += sum(
            isinstance(part, ast.Name) and part.id == "Any" for part in annotations(node)
        )
    found["lines over 100 columns"] = sum(len(line) > LONGEST_LINE for line in text.splitlines())
    found["lines"] = len(text.splitlines())
    found["code"] = code_lines(text)
    found["statements"] = statements(tree)
    return found


def annotations(node: ast.AST) -> list[ast.AST]:
    """All nodes inside the annotations of a function or of an annotated assignment."""
    roots: list[ast.AST | None] = []
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        given = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
        given += [one for one in (node.args.vararg, node.args.kwarg) if one is not None]
        roots = [one.annotation for one in given]
        roots.append(node.returns)
    elif isinstance(node, ast.AnnAssign):
        roots = [node.annotation]
    return [part for root in roots if root is not None for part in ast.walk(root)]


def names_defined_twice(files: list[Path]) -> list[str]:
    """Top-level functions and classes whose name stands in more than one module."""
    homes: Counter[str] = Counter()
    for path in files:
        names = set()
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                names.add(node.name)
        homes.update(names)
    return sorted(name for name, count in homes.items() if count > 1)


def private_imports(files: list[Path]) -> tuple[int, int]:
    """Private names of reticent that tests import, and tests that touch a private attribute."""
    imported = set()
    touching = 0
    for path in files:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("reticent"):
                imported.update(one.name for one in node.names if one.name.startswith("_"))
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                inside = [part for part in ast.walk(node) if isinstance(part, ast.Attribute)]
                private = [one for one in inside if one.attr[0] == "_" and one.attr[1:2] != "_"]
                touching += bool(private)
    return len(imported), touching


class Walk:
    """Files and functions of a source tree that an action executes, and those that hold records."""

    def __init__(self, source: Path) -> None:
        self.source = str(source) + os.sep
        self.files: set[str] = set()
        self.functions: dict[CodeType, str] = {}
        self.holders: dict[str, None] = {}

    def run(self, action: Callable[[], object]) -> None:
        """Run ``action`` in all threads under trace."""
        threading.settrace(self._trace)
        sys.settrace(self._trace)
        try:
            action()
        finally:
            sys.settrace(None)
            threading.settrace(None)  # type: ignore[arg-type]

    def _trace(self, frame: FrameType, event: str, argument: object) -> Any:
        code = frame.f_code
        if not code.co_filename.startswith(self.source):
            return None
        file = code.co_filename.removeprefix(self.source)
        self.files.add(file)
        self.functions[code] = file
        frame.f_trace_lines = False
        named = not code.co_name.startswith("<")
        if event == "return" and named and any(map(holds_records, list(frame.f_locals.values()))):
            self.holders[f"{file}:{code.co_qualname}"] = None
        return self._trace

    def function_lines(self, chosen: Callable[[str], bool]) -> tuple[int, int]:
        """Code lines and statements of the executed functions in the chosen files."""
        first_lines: dict[str, set[int]] = {}
        for code, file in self.functions.items():
            if chosen(file):
                first_lines.setdefault(file, set()).add(code.co_firstlineno)
        lines = 0
        stated = 0
        for file, firsts in first_lines.items():
            text = Path(self.source, file).read_text(encoding="utf-8")
            for part, node in outermost_functions(text, firsts):
                lines += code_lines(part)
                stated += statements(node)
        return lines, stated


def holds_records(value: object) -> bool:
    """Whether a variable holds the text of a record, or an array with one row for each record."""
    if isinstance(value, bytes):
        return MARKER.encode() in value
    if isinstance(value, str):
        return MARKER in value
    shape = getattr(value, "shape", None)
    return isinstance(shape, tuple) and RECORDS in shape


def outermost_functions(text: str, first_lines: set[int]) -> list[tuple[str, ast.AST]]:
    """Text and tree of the functions that begin at these lines; inner ones are not repeated."""
    found: list[tuple[str, ast.AST]] = []
    lines = text.splitlines()

    def visit(node: ast.AST) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
                start = min([child.lineno, *(one.lineno for one in child.decorator_list)])
                if start in first_lines or child.lineno in first_lines:
                    part = lines[start - 1 : child.end_lineno]
                    indent = len(part[0]) - len(part[0].lstrip())
                    found.append(("\n".join(line[indent:] for line in part) + "\n", child))
                    continue
            visit(child)

    visit(ast.parse(text))
    return found


def walked(source: Path) -> dict[str, object]:
    """What a fit with a ledger, and a report, execute."""
    import reticent

    rng = np.random.default_rng(0)
    table = np.round(rng.uniform(size=(RECORDS, 3)), 7).astype(str)
    table[5, 0] = MARKER
    lines = ["a,b,y", *(",".join(row) for row in table)]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "d.csv").write_text("\n".join(lines) + "\n")
        reticent.Ledger(folder / "l.db").open("d", epsilon=10, delta=1e-5)
        bounds = reticent.Bounds(x={"a": (0, 1), "b": (0, 1)}, y={"y": (0, 1)})
        promise = {"epsilon": 1, "delta": 1e-6, "ledger": str(folder / "l.db"), "dataset": "d"}
        model = reticent.GPRegressor(bounds=bounds, **promise)
        fit = Walk(source)
        fit.run(lambda: model.fit(folder / "d.csv"))
        report = Walk(source)
        report.run(lambda: model.report(folder / "r.html"))
    row_maps = ROW_MAPS + OLD_ROW_MAPS
    trusted = TRUSTED + OLD_ROW_MAPS
    read, stated = fit.function_lines(lambda file: file.startswith(trusted))
    core, core_stated = fit.function_lines(
        lambda file: file.startswith(trusted) and not file.startswith(row_maps)
    )
    hops = [hop for hop in fit.holders if hop.startswith(trusted)]
    return {
        "files executed by a fit": len(fit.files),
        "functions executed by a fit": len(fit.functions),
        "an auditor reads, for this fit: code lines": read,
        "    without bodies of row maps": core,
        "an auditor reads, for this fit: statements": stated,
        "    without bodies of row maps (statements)": core_stated,
        "hops of a record: functions": len(hops),
        "hops of a record: files": len({hop.partition(":")[0] for hop in hops}),
        "files executed by a report": len(report.files),
        "the hops": hops,
    }


def counted(top: Path) -> dict[str, object]:
    """What the source says."""
    source = top / "src" / "reticent"
    files = sorted(source.rglob("*.py"))
    folders = Counter(str(path.parent.relative_to(source)) for path in files)
    packages: Counter[str] = Counter()
    habits: Counter[str] = Counter()
    for path in files:
        text = path.read_text()
        one = style(text)
        habits.update(one)
        packages[path.relative_to(source).parts[0]] += one["code"]
    imported, touching = private_imports(sorted((top / "tests").rglob("*.py")))
    per_thousand = 1000 / habits["lines"]
    twice = names_defined_twice(files)
    numbers = named_numbers(source)
    return {
        "files": len(files),
        "code lines": habits["code"],
        "statements": habits["statements"],
        "files in the fullest folder": max(folders.values()),
        "files per folder": dict(folders.most_common()),
        "code lines per package": dict(packages.most_common()),
        "packed assignments, % of all": round(
            100 * habits["packed assignments"] / habits["assignments"], 1
        ),
        "conditional expressions per 1,000 lines": round(
            habits["conditional expressions"] * per_thousand, 1
        ),
        "nested conditional expressions": habits["nested conditional expressions"],
        "lines over 100 columns, %": round(
            0.1 * habits["lines over 100 columns"] * per_thousand, 1
        ),
        "`Any` in annotations": habits["Any in annotations"],
        "numbers with a name": len(numbers),
        **{f"    {kind}": count for kind, count in counts_by_kind(numbers).items()},
        "names defined in two modules": len(twice),
        "public ones of these": sum(not name.startswith("_") for name in twice),
        "private names that tests import": imported,
        "tests that touch a private attribute": touching,
    }


def shape_of(top: Path, still: bool) -> dict[str, object]:
    """All numbers of the tree in ``top``, by a process that imports reticent from there."""
    command = [sys.executable, "-W", "ignore", "-m", "tools.shape", "--tree", str(top)]
    environment = {**os.environ, "PYTHONPATH": f"{top / 'src'}{os.pathsep}{HERE}"}
    with tempfile.TemporaryDirectory() as scratch:
        file = Path(scratch) / "shape.json"
        command += ["--json", str(file), *(["--still"] if still else [])]
        subprocess.run(command, env=environment, cwd=scratch, check=True)
        return json.loads(file.read_text())


def show(shape: dict[str, Any], before: dict[str, Any] | None) -> None:
    """Print one column, or two; folders and packages of this tree only."""
    for name, value in shape.items():
        if isinstance(value, dict):
            print(f"{name}:")
            for part, number in value.items():
                print(f"    {number:>6,}  {part}")
        elif isinstance(value, list):
            print(f"{name}:")
            print("\n".join(f"    {part}" for part in value))
        elif before is None:
            print(f"{value:>10,}  {name}")
        else:
            print(f"{before.get(name, ''):>10,} → {value:>8,}  {name}")


def main() -> None:
    """Count, and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--against", metavar="REV", help="beside the tree of this revision")
    parser.add_argument(
        "--json", type=Path, help="write the numbers to this file, and print nothing"
    )
    parser.add_argument("--still", action="store_true", help=NUMBERS_ONLY)
    parser.add_argument("--tree", type=Path, default=HERE, help="another checkout")
    arguments = parser.parse_args()
    if arguments.json:
        shape = counted(arguments.tree)
        if not arguments.still:
            shape |= walked(arguments.tree / "src" / "reticent")
        arguments.json.write_text(json.dumps(shape, indent=1))
        return
    before = None
    if arguments.against:
        with tempfile.TemporaryDirectory() as scratch:
            old = Path(scratch) / "tree"
            git = ["git", "-C", str(HERE), "worktree"]
            subprocess.run([*git, "add", "-q", "--detach", str(old), arguments.against], check=True)
            try:
                before = shape_of(old, arguments.still)
            finally:
                subprocess.run([*git, "remove", "--force", str(old)], check=True)
    show(shape_of(arguments.tree, arguments.still), before)


if __name__ == "__main__":
    main()
