"""All benchmarks in one run, as a page: `python -m benchmarks [--quick] [--out FILE.md] [NAME …]`

Each runs in a process of its own, one after the other; the page has what it printed and the CPU
time it took.
"""

import argparse
import ast
import os
import subprocess
import sys
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from platform import machine, python_version

HERE = Path(__file__).parent


@dataclass(frozen=True)
class Run:
    """What one benchmark was asked, what it printed, and what it took."""

    name: str
    command: str
    printed: str
    seconds: float  # of CPU
    code: int


def scripts() -> dict[str, Path]:
    """All benchmarks by name."""
    return {path.stem: path for path in sorted(HERE.glob("*.py")) if not path.stem.startswith("_")}


def title(path: Path) -> str:
    """What a benchmark asks: the first line of its docstring, without the command."""
    return (
        (ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or "")
        .split("\n")[0]
        .partition("`")[0]
        .strip(" :")
    )


def run(path: Path, *, quick: bool) -> Run:
    """Run one benchmark, and show what it prints as well as keep it."""
    if quick:
        options = ["--quick"]
    else:
        options = []
    before = _children()
    printed = ""
    asked = [sys.executable, str(path), *options]
    with subprocess.Popen(
        asked, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8"
    ) as child:
        for line in child.stdout or ():
            print(line, end="", flush=True)
            printed += line
    command = " ".join(["python", f"benchmarks/{path.name}", *options])
    return Run(path.stem, command, printed, _children() - before, child.returncode)


def _children() -> float:
    times = os.times()
    return times.children_user + times.children_system


def page(runs: list[Run], now: datetime) -> str:
    """The page in Markdown: a table of all, then each with its output."""
    lines = [
        "# Benchmarks",
        "",
        f"Made by `python -m benchmarks` on {now:%Y-%m-%d}, Python {python_version()}, "
        f"{os.cpu_count()} cores, {machine()}.",
        "",
        "| benchmark | CPU | ended |",
        "| :-- | --: | :-- |",
        *(
            f"| [{one.name}](#{one.name}) | {one.seconds:.0f} s | "
            f"{'well' if not one.code else 'badly'} |"
            for one in runs
        ),
    ]
    for one in runs:
        question = title(scripts()[one.name])
        lines += [
            "",
            f"## {one.name}",
            "",
            question,
            "",
            f"`{one.command}`",
            "",
            "```text",
            one.printed.rstrip(),
            "```",
        ]
    return "\n".join(lines) + "\n"


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help=f"one of {', '.join(scripts())}; all if left out"
    )
    parser.add_argument(
        "--quick", action="store_true", help="small sizes: shows that they run, not how fast"
    )
    parser.add_argument("--out", type=Path, metavar="FILE.md", help="write the page here")
    given = parser.parse_args(arguments)
    for name in given.names:
        if name not in scripts():
            parser.error(f"there is no benchmark {name!r}: {', '.join(scripts())}")
    runs = []
    for name, path in scripts().items():
        if name in (given.names or scripts()):
            print(f"--- {name}: {title(path)}", flush=True)
            runs.append(run(path, quick=given.quick))
    if given.out is not None:
        given.out.write_text(page(runs, datetime.now(UTC)), encoding="utf-8")
    return int(any(one.code for one in runs))


if __name__ == "__main__":
    sys.exit(main())
