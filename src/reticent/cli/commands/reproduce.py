"""``reticent reproduce``: which studies there are, running them, and showing what they found."""

import difflib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from reticent.cli.options import Json, Quiet
from reticent.cli.terminal import advise, aside, console, print_json, table
from reticent.errors import BadInput
from reticent.studies import REPORT_SEED, STUDIES

if TYPE_CHECKING:
    from reticent.studies.common.results import Findings, Progress

__all__ = [
    "listing",
    "named_studies",
    "print_findings",
    "print_listing",
    "reproduce_command",
    "run_study",
]

_QUICK_SEED = 0  # a quick run is a check of the program, and leaves the report's seed alone


def reproduce_command(
    name: Annotated[
        str | None, typer.Argument(metavar="STUDY", help="A study, or all; none lists them.")
    ] = None,
    out: Annotated[
        Path,
        typer.Option(
            metavar="FOLDER", help="Tables and pictures go to a folder in it with the study's name."
        ),
    ] = Path("studies"),
    quick: Annotated[
        bool,
        typer.Option(
            "--quick",
            help="A few settings, once: seconds instead of minutes, and no more than a check.",
        ),
    ] = False,
    repeats: Annotated[
        int | None, typer.Option(metavar="N", help="How often each setting is repeated.")
    ] = None,
    seed: Annotated[
        int | None, typer.Option(metavar="N", help="Other data and noise than the report's.")
    ] = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Compute the papers' figures and our claims again, on made-up or public data.

    Without a name it lists the studies and what each shows. Tables (CSV and Markdown) and pictures
    are written to a folder; those of an earlier run of the same study are replaced. Noise comes
    from a seed, so that you get the numbers that we got.
    """
    if name is None:
        if json:
            return print_json(listing())
        print_listing()
        return advise(f"reticent reproduce {next(iter(STUDIES))} --quick")
    found = {}
    for one in named_studies(name):
        findings = run_study(
            one, out / one, repeats=repeats, quick=quick, seed=seed, quiet=quiet or json
        )
        found[one] = findings.for_machines()
        if not json:
            print_findings(findings)
            print()
    if json:
        return print_json(found)
    return None


def listing() -> list[dict[str, Any]]:
    """All studies, for machines."""
    return [
        {"name": name, "shows": study.shows, "repeats": study.repeats}
        for name, study in STUDIES.items()
    ]


def print_listing() -> None:
    """All studies, for people."""
    rows = [(name, study.shows) for name, study in STUDIES.items()]
    console().print(table("study", "what it shows", left=2, rows=rows))


def named_studies(word: str) -> list[str]:
    """Give the studies that a word of the command line means."""
    if word == "all":
        return list(STUDIES)
    if word not in STUDIES:
        near = difflib.get_close_matches(word, STUDIES, 1)
        if near:
            meant = f" Did you mean {near[0]}?"
        else:
            meant = ""
        raise BadInput(
            f"There is no study {word!r}.{meant} There are "
            f"{', '.join(STUDIES)}; all runs each of them."
        )
    return [word]


def run_study(
    name: str, out: Path, *, repeats: int | None, quick: bool, seed: int | None, quiet: bool
) -> "Findings":
    """Run one study and write what it finds to a folder."""
    if repeats is not None and repeats < 1:
        raise BadInput(f"--repeats must be at least 1, not {repeats}.")
    if seed is not None and seed < 0:
        raise BadInput(f"--seed must be zero or more, not {seed}.")
    study = STUDIES[name]
    out.mkdir(parents=True, exist_ok=True)
    if seed is None:
        seed = _QUICK_SEED if quick else REPORT_SEED
    with _bar(name, quiet=quiet) as progress:
        return study.run(
            out,
            repeats=repeats or (study.quick if quick else study.repeats),
            quick=quick,
            seed=seed,
            progress=progress,
        )


@contextmanager
def _bar(name: str, *, quiet: bool) -> Iterator["Progress"]:
    """Show how far a study is and what it is at; on a terminal only."""
    err = console(stderr=True)
    if quiet or not err.is_terminal:
        yield lambda done, total, what: None
        return
    from rich.progress import (
        BarColumn,
        Progress,
        TaskProgressColumn,
        TextColumn,
        TimeRemainingColumn,
    )

    parts = (
        TextColumn("  {task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*parts, console=err, transient=True) as bar:
        task = bar.add_task(name)

        def progress(done: int, total: int, what: str) -> None:
            bar.update(task, completed=done, total=total, description=what)

        yield progress


def print_findings(findings: "Findings") -> None:
    """Show tables, claims, notes and files."""
    from rich.text import Text

    screen = console()
    screen.print(Text(findings.title, "bold"))
    for one in findings.tables:
        print()
        screen.print(Text(one.title, "dim"))
        screen.print(table(*one.headings, left=one.left, rows=one.rows))
    if findings.claims:
        print()
        kept = {True: Text("yes"), False: Text("no", "bold yellow")}
        rows = [(claim.claim, claim.found, kept[claim.kept]) for claim in findings.claims]
        screen.print(table("claim", "found", "kept", left=3, rows=rows))
    print()
    for note in findings.notes:
        aside(note, 0)
    for file in findings.files:
        aside(str(file), 0)
