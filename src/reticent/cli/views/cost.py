"""``reticent plan --rows``: how long a fit takes, and how much memory, told to a person."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reticent.cli.terminal import aside, console, indented, table
from reticent.cli.views.plan import Question, parse_numbers
from reticent.errors import BadInput
from reticent.privacy.process import available_cpus
from reticent.reporting.formatting import format_short

if TYPE_CHECKING:
    from reticent.planning.cost import FitCost

__all__ = ["CostQuestion", "duration", "parse_cost", "print_cost", "size"]

_STEPS = 4  # that a measurement tells
_KINDS = ("memory", "parquet", "csv")
_WHERE = {"memory": "in memory", "parquet": "in Parquet files", "csv": "in CSV files"}
_TIMES = ((1, "s"), (60, "min"), (3600, "h"), (86400, "days"))
_SIZES = ((1e6, "MB"), (1e9, "GB"), (1e12, "TB"))


@dataclass(frozen=True)
class CostQuestion:
    """What was asked on the command line, checked."""

    rows: int
    source: str
    workers: list[int]

    def steps(self, asked: Question) -> int:
        """How many steps the measurement takes."""
        return _STEPS * max(1, len(asked.bases or ()))

    def measure(self, asked: Question, advance: Callable[[int], None]) -> "list[FitCost]":
        """The cost for each number of functions, at the largest ε, which takes the most."""
        from sklearn.base import clone

        from reticent.planning.cost import fit_cost

        guess = asked.records_guess or [1]
        found = []
        bases: list[int | None] = [*(asked.bases or ())] or [None]
        for basis in bases:
            model: Any = clone(asked.model).set_params(epsilon=max(asked.epsilons))
            if basis is not None:
                model.set_params(basis=basis)
            found.append(
                fit_cost(
                    model,
                    self.rows,
                    self.source,
                    records_per_person=round(sum(guess) / len(guess)),
                    progress=advance,
                )
            )
        return found


def parse_cost(
    n: str | None,
    error: float | None,
    out: Path | None,
    *,
    rows: str | None,
    source: str,
    workers: str | None,
) -> CostQuestion | None:
    """Check what was asked about time and memory; None if nothing was."""
    if rows is None:
        if workers is not None:
            raise BadInput("--workers goes with --rows: how long would so many take?")
        return None
    for option, given in (("--n", n), ("--error", error), ("--out", out)):
        if given is not None:
            raise BadInput(
                f"--rows asks how long a fit takes, {option} is about how exact it is: ask one "
                "after the other."
            )
    count = parse_numbers("--rows", rows, float)
    if len(count) > 1 or count[0] != int(count[0]):
        raise BadInput(f"--rows takes one whole number of records, such as 1e9, not {rows!r}.")
    if source not in _KINDS:
        raise BadInput(f"--source is memory, parquet or csv, not {source!r}.")
    cores = []
    if workers is not None:
        cores = parse_numbers("--workers", workers, int)
    return CostQuestion(int(count[0]), source, cores)


def print_cost(question: CostQuestion, asked: Question, costs: "Sequence[FitCost]") -> None:
    """Show what a fit takes to a person."""
    from rich.text import Text

    screen = console()
    releases = sum(one.readings + one.kept for one in costs[0].releases)
    screen.print(
        Text.assemble(
            ("Cost", "bold"),
            f" of a fit of {asked.output} from {asked.inputs}: {question.rows:,} records "
            f"{_WHERE[question.source]}, {releases} releases, "
            f"ε={format_short(max(asked.epsilons))}, δ={asked.delta}\n",
        ),
        soft_wrap=True,
    )
    cores = available_cpus()
    wide = [f"{k:,} workers" for k in question.workers]
    rows = table("basis", "readings", "CPU", f"on {cores} cores", *wide, "memory", "read", left=0)
    for cost in costs:
        functions = max(one.columns for one in cost.releases if one.statistic == "ResidualGram") - 1
        on_workers = [duration(cost.seconds_on(k)) for k in question.workers]
        rows.add_row(
            f"{functions}",
            f"{cost.readings}",
            duration(cost.seconds),
            duration(cost.once + (cost.seconds - cost.once) / cores),
            *on_workers,
            size(cost.memory),
            size(cost.bytes_read),
        )
    screen.print(indented(rows))
    print()
    aside(
        "Measured on this machine just now, on made-up records, in seconds of CPU: an idle core "
        "takes so long, a busy one longer, and so does a disk that is slower than its reader. "
        "On cores: if they are idle. Memory: beside the program's own, and beside records that are "
        "held in memory."
    )
    if question.workers:
        aside(
            "Workers: of one core each, like those of this machine, without what the engine of a "
            "cluster takes for itself; all stages read there."
        )
    print()
    aside("No record was read, nothing was charged.")


def duration(seconds: float) -> str:
    """Write how long something takes.

    >>> duration(0.04), duration(75), duration(4000), duration(200000)
    ('under 1 s', '75 s', '67 min', '2.3 days')
    """
    if seconds < 1:
        return "under 1 s"
    unit, name = max(
        (one for one in _TIMES if seconds >= 2 * one[0]), default=_TIMES[0], key=lambda one: one[0]
    )
    return f"{format_short(seconds / unit, 2)} {name}"


def size(number: float) -> str:
    """Write a number of bytes.

    >>> size(4.2e7), size(1.08e9), size(4e13)
    ('42 MB', '1.1 GB', '40 TB')
    """
    unit, name = max(
        (one for one in _SIZES if number >= one[0]), default=_SIZES[0], key=lambda one: one[0]
    )
    return f"{format_short(number / unit, 2)} {name}"
