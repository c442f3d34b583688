"""The shape of the code base, in numbers that a reader feels: `python -m tools.shape [--json FILE]`.

Counted from the source: files per folder, code lines per package, packed assignments
(`a, b = x, y`), conditional expressions, lines over 100 columns, `Any` in annotations, public
names that two modules define, private names that tests import. Measured by running it: what a
fit of `GPRegressor` from a CSV file with a ledger executes of the trusted package, the functions
that a record passes through, and the files that writing a report executes.
"""

import argparse
import ast
import io
import json
import sys
import tempfile
import threading
import tokenize
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

TOP = Path(__file__).parents[1]
SOURCE = TOP / "src" / "reticent"
LONGEST_LINE = 100


def code_lines(text: str) -> int:
    """Lines that hold code: no comments, blank lines or docstrings."""
    lines: set[int] = set()
    skipped = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT}
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in skipped and token.type != tokenize.ENDMARKER:
            lines.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(text)):
        value = node.value if isinstance(node, ast.Expr) else None
        if isinstance(value, ast.Constant) and isinstance(value.value, str):
            lines.difference_update(range(value.lineno, (value.end_lineno or value.lineno) + 1))
    return len(lines)


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
        found["Any in annotations"] += sum(
            isinstance(part, ast.Name) and part.id == "Any" for part in annotations(node)
        )
    found["lines over 100 columns"] = sum(len(line) > LONGEST_LINE for line in text.splitlines())
    found["lines"] = len(text.splitlines())
    found["code"] = code_lines(text)
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
    """Private names of reticent that tests import, and test functions that touch a private attribute."""
    imported, touching = set(), 0
    for path in files:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("reticent"):
                imported.update(one.name for one in node.names if one.name.startswith("_"))
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                inside = [part for part in ast.walk(node) if isinstance(part, ast.Attribute)]
                private = [one for one in inside if one.attr[0] == "_" and one.attr[1:2] != "_"]
                touching += bool(private)
    return len(imported), touching


def executed(action: Callable[[], object]) -> tuple[dict[str, set[int]], list[str]]:
    """Run ``action``; give the lines of reticent's files that it executed, and the functions in order."""
    lines: dict[str, set[int]] = {}
    functions: dict[str, None] = {}

    def trace(frame: FrameType, event: str, argument: object) -> Any:
        name = frame.f_code.co_filename
        if not name.startswith(str(SOURCE)):
            return None
        relative = str(Path(name).relative_to(SOURCE))
        if event == "call":
            functions[f"{relative}:{frame.f_code.co_qualname}"] = None
        lines.setdefault(relative, set()).add(frame.f_lineno)
        return trace

    threading.settrace(trace)
    sys.settrace(trace)
    try:
        action()
    finally:
        sys.settrace(None)
        threading.settrace(None)  # type: ignore[arg-type]
    return lines, list(functions)


def walked() -> dict[str, object]:
    """What a fit with a ledger, and a report, execute."""
    import numpy as np

    import reticent

    rng = np.random.default_rng(0)
    table = rng.uniform(size=(400, 3))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        np.savetxt(folder / "d.csv", table, delimiter=",", header="a,b,y", comments="")
        reticent.Ledger(folder / "l.db").open("d", epsilon=10, delta=1e-5)
        bounds = reticent.Bounds(x={"a": (0, 1), "b": (0, 1)}, y={"y": (0, 1)})
        promise = {"epsilon": 1, "delta": 1e-6, "ledger": str(folder / "l.db"), "dataset": "d"}
        model = reticent.GPRegressor(bounds=bounds, **promise)
        fit_lines, fit_functions = executed(lambda: model.fit(folder / "d.csv"))
        report_lines, _ = executed(lambda: model.report(folder / "r.html"))
    trusted = [file for file in fit_lines if file.startswith("privacy/")]
    return {
        "files executed by a fit": len(fit_lines),
        "functions executed by a fit": len(fit_functions),
        "trusted files executed by a fit": len(trusted),
        "code lines of these (an auditor reads them)": sum(code_lines((SOURCE / file).read_text()) for file in trusted),
        "files executed by a report": len(report_lines),
    }


def counted() -> dict[str, object]:
    """What the source says."""
    files = sorted(SOURCE.rglob("*.py"))
    folders = Counter(str(path.parent.relative_to(SOURCE)) for path in files)
    packages: Counter[str] = Counter()
    habits: Counter[str] = Counter()
    for path in files:
        text = path.read_text()
        one = style(text)
        habits.update(one)
        packages[path.relative_to(SOURCE).parts[0]] += one["code"]
    imported, touching = private_imports(sorted((TOP / "tests").rglob("*.py")))
    per_thousand = 1000 / habits["lines"]
    twice = names_defined_twice(files)
    return {
        "files": len(files),
        "code lines": habits["code"],
        "files in the fullest folder": max(folders.values()),
        "files per folder": dict(folders.most_common()),
        "code lines per package": dict(packages.most_common()),
        "packed assignments, % of all": round(100 * habits["packed assignments"] / habits["assignments"], 1),
        "conditional expressions per 1,000 lines": round(habits["conditional expressions"] * per_thousand, 1),
        "lines over 100 columns, %": round(0.1 * habits["lines over 100 columns"] * per_thousand, 1),
        "`Any` in annotations": habits["Any in annotations"],
        "names defined in two modules": len(twice),
        "public ones of these": sum(not name.startswith("_") for name in twice),
        "private names that tests import": imported,
        "tests that touch a private attribute": touching,
    }


def main() -> None:
    """Count, and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path, help="write the numbers to this file")
    parser.add_argument("--still", action="store_true", help="count only; run nothing")
    arguments = parser.parse_args()
    shape = counted()
    if not arguments.still:
        shape |= walked()
    for name, value in shape.items():
        if isinstance(value, dict):
            print(f"{name}:")
            for part, number in value.items():
                print(f"    {number:>6,}  {part}")
        else:
            print(f"{value:>10,}  {name}")
    if arguments.json:
        arguments.json.write_text(json.dumps(shape, indent=1))


if __name__ == "__main__":
    main()
