"""What the documentation takes from the code: a line ``<!-- generated.

NAME -->`` in a page becomes what ``NAME`` writes here.
"""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

__all__ = [
    "benchmarks",
    "commands",
    "derived_numbers",
    "examples",
    "filled",
    "number_counts",
    "priors",
    "studies",
    "tree",
    "tuned_numbers",
]

_MARK = re.compile(r"<!-- generated: (\w+) -->")
_PROJECT = Path(__file__).parents[1]


def filled(page: str) -> str:
    """Give the page with its marks replaced."""
    return _MARK.sub(lambda mark: _WRITERS[mark[1]](), page)


def commands() -> str:
    """Every command of the command line, as its --help tells it.

    >>> text = commands()
    >>> "## reticent fit" in text, "### reticent ledger open" in text, "`--epsilon NUMBER`" in text
    (True, True, True)
    """
    from typer.main import get_command

    from reticent.cli.main import app

    return "\n".join(
        line
        for name, one in get_command(app).commands.items()
        for line in _command(one, ["reticent", name])
    )  # type: ignore[attr-defined]


def _command(command: Any, path: list[str]) -> Iterator[str]:
    name = " ".join(path)
    yield from ("", f"{'#' * len(path)} {name}", "", command.help or "", "")
    inner = getattr(command, "commands", {})
    if not inner:
        arguments = [one for one in command.params if one.param_type_name == "argument"]
        shown = " ".join(one.metavar if one.required else f"[{one.metavar}]" for one in arguments)
        yield from ("```console", f"$ {name} {shown}".rstrip() + " [OPTIONS]", "```", "")
        for one in command.params:
            yield from _parameter(one)
    if command.epilog:
        lines = command.epilog.replace("\b", "").strip().splitlines()
        shown = [line[2:] for line in lines[1:]]
        yield from ("", lines[0], "", "```sh", *shown, "```")
    for key, one in inner.items():
        yield from _command(one, [*path, key])


def _parameter(one: Any) -> Iterator[str]:
    argument = one.param_type_name == "argument"
    if argument or one.is_flag:
        value = ""
    else:
        value = f" {one.metavar or one.type.name.upper()}"
    if argument:
        names = [one.metavar]
    else:
        names = [*one.opts, *one.secondary_opts]
    if one.required and not argument:
        notes = ["required"]
    else:
        notes = []
    if one.default not in (None, False, True, ()) and not callable(one.default):
        notes.append(f"default: {one.default}")
    yield from (
        ", ".join(f"`{each}{value}`" for each in names),
        f": {one.help}" + (f" ({'; '.join(notes)})" if notes else ""),
        "",
    )


def studies() -> str:
    """A table of all studies: the command, and what it shows."""
    from reticent.studies import STUDIES

    rows = [
        f"| `reticent reproduce {name}` | {study.shows} | {study.repeats} |"
        for name, study in STUDIES.items()
    ]
    return "\n".join(["| command | what it shows | repeats |", "|---|---|--:|", *rows])


def benchmarks() -> str:
    """A table of all scripts in ``benchmarks/``: the command, and what it measures."""
    rows = [
        f"| `python benchmarks/{file.name}` | {about} |" for file, about in _scripts("benchmarks")
    ]
    return "\n".join(["| command | what it measures |", "|---|---|", *rows])


def examples() -> str:
    """A table of all scripts in ``examples/``: the file, and what it shows."""
    rows = [
        f"| [{file.name}](../examples/{file.name}) | {about} |"
        for file, about in _scripts("examples")
    ]
    return "\n".join(["| script | what it shows |", "|---|---|", *rows])


def _scripts(folder: str) -> Iterator[tuple[Path, str]]:
    """The scripts of a folder, each with the first sentence that it says about itself."""
    for file in sorted((_PROJECT / folder).glob("[!_]*.py")):
        about = ast.get_docstring(ast.parse(file.read_text())) or ""
        first = re.split(r"(?<=[.?])\s|:? `python|\n\n", about, maxsplit=1)[0].rstrip(".:")
        yield file, " ".join(first.split())


def tree() -> str:
    """The table of all files, as ``python -m tests.tree`` prints it."""
    return _printed("tests.tree")


def number_counts() -> str:
    """How many named numbers of each kind each room has."""
    return _printed("tools.named_numbers")


def tuned_numbers() -> str:
    """All tuned numbers, with what each is for."""
    return _printed("tools.named_numbers", "tuned")


def priors() -> str:
    """All numbers of priors."""
    return _printed("tools.named_numbers", "prior")


def derived_numbers() -> str:
    """All derived numbers."""
    return _printed("tools.named_numbers", "derived")


def _printed(module: str, *arguments: str) -> str:
    """What a command of this project prints."""
    printed = subprocess.run(
        [sys.executable, "-m", module, *arguments],
        cwd=_PROJECT,
        capture_output=True,
        encoding="utf-8",
        check=True,
    )
    return printed.stdout


_WRITERS = {
    "benchmarks": benchmarks,
    "commands": commands,
    "derived_numbers": derived_numbers,
    "examples": examples,
    "number_counts": number_counts,
    "priors": priors,
    "studies": studies,
    "tree": tree,
    "tuned_numbers": tuned_numbers,
}
