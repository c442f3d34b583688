"""Tables and a picture of the results.

Each measure's mean ± its standard error, the best marked, and those as good as it.
"""

import csv
import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from reticent.studies.common.figures import Line, Panel, draw
from reticent.studies.common.results import ResultTable
from reticent.studies.peers.comparison import Comparison, Measure

if TYPE_CHECKING:
    from reticent.studies.peers.runner import Result

__all__ = ["by_cell", "paired_differences", "verdicts", "write_tables"]

_HEADINGS = [
    "task",
    "epsilon",
    "method",
    "splits",
    "measure",
    "mean",
    "standard_error",
    "as_good_as_best",
    "seconds",
]

Cell = dict[str, "list[Result]"]  # the splits' results of each method, for one task and one ε
Cells = dict[tuple[str, float], Cell]


def write_tables(
    out: Path, of: Comparison, results: "Sequence[Result]", notes: Sequence[str] = ()
) -> None:
    """Write results.csv, table.md and picture.png."""
    cells = by_cell(of, results)
    shown = list(dict.fromkeys(task for task, _ in cells))
    text = [
        f"# {of.ours} and its peers on real data",
        *of.legend,
        *(_table(of, task, cells) for task in shown),
        *(_verdict(of, measure, cells) for measure in of.measures),
        *notes,
    ]
    (out / "table.md").write_text("\n\n".join(text) + "\n", encoding="utf-8")
    with (out / "results.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(_HEADINGS)
        for cell in cells.values():
            for measure in of.measures:
                good = verdicts(of, cell, measure)
                writer.writerows(
                    _score_row(found, measure, name in good) for name, found in cell.items()
                )
            if of.ours in cell:
                writer.writerow(_score_row(cell[of.ours], of.aside, ""))
    panels = [_score_panel(of, task, cells) for task in shown]
    draw(out / "picture.png", [panels[i : i + 4] for i in range(0, len(panels), 4)])


def by_cell(of: Comparison, results: "Sequence[Result]") -> Cells:
    """The results of each task and ε, by method, in the order of the comparison."""
    tasks = list(of.tasks)
    methods = list(of.methods)
    cells: Cells = {}
    for result in sorted(
        results, key=lambda r: (tasks.index(r.task), r.epsilon, methods.index(r.method))
    ):
        cells.setdefault((result.task, result.epsilon), {}).setdefault(result.method, []).append(
            result
        )
    return cells


def paired_differences(
    of: Comparison, results: "Sequence[Result]", measure: Measure
) -> ResultTable:
    """Ours, each private peer, and the mean of ours minus theirs over the splits they share."""
    cells = {key: cell for key, cell in by_cell(of, results).items() if of.ours in cell}
    peers = [
        name
        for name, method in of.methods.items()
        if method.private and name != of.ours and any(name in cell for cell in cells.values())
    ]
    rows = []
    for (task, epsilon), cell in cells.items():
        row = [task, f"{epsilon:g}", _format_score(cell[of.ours], measure)]
        for peer in peers:
            found = cell.get(peer, [])
            theirs = {r.seed: r.scores[measure.name] for r in found}
            apart = [
                r.scores[measure.name] - theirs[r.seed] for r in cell[of.ours] if r.seed in theirs
            ]
            if apart:
                row += [
                    _format_score(found, measure),
                    f"{np.mean(apart):+.3g} ± {_error(apart):.2g}",
                ]
            else:
                row += ["–", "–"]
        rows.append(tuple(row))
    headings = ["task", "ε", of.ours]
    for peer in peers:
        headings += [peer, "ours − it"]
    return ResultTable(
        f"{measure.title}: mean ± standard error, and paired differences over the splits",
        tuple(headings),
        rows,
    )


def verdicts(of: Comparison, cell: Cell, measure: Measure, easier: bool = False) -> set[str]:
    """Private methods that are best or within 2 standard errors of the best.

    By paired differences over the splits; only splits that all of them were run on count.
    ``easier``: compare with peers that have an easier relation as well.
    """
    compared = {
        name: found
        for name, found in cell.items()
        if of.methods[name].private and (easier or of.methods[name].counts)
    }
    if measure.higher:
        sign = -1
    else:
        sign = 1
    errors = {
        name: {r.seed: sign * r.scores[measure.name] for r in found}
        for name, found in compared.items()
    }
    if not errors:
        return set()
    shared = sorted(set.intersection(*(set(by_seed) for by_seed in errors.values())))
    if not shared:
        return set()
    values = {
        name: np.array([by_seed[seed] for seed in shared]) for name, by_seed in errors.items()
    }
    best = min(values, key=lambda name: float(values[name].mean()))
    differences = {name: found - values[best] for name, found in values.items()}
    return {
        name
        for name, found in differences.items()
        if name == best or found.mean() <= 2 * _error(found)
    }


def _verdict(of: Comparison, measure: Measure, cells: Cells) -> str:
    """In how many cells we are as good as the best, and which the others are."""
    mine = {key: cell for key, cell in cells.items() if of.ours in cell}
    good = {key: verdicts(of, cell, measure) for key, cell in mine.items()}
    alike = sum(of.ours in names for names in good.values())
    with_easier = ""
    if of.easier is not None:
        many = sum(of.ours in verdicts(of, cell, measure, easier=True) for cell in mine.values())
        with_easier = f"; in {many} if compared with {of.easier}, as well"
    behind = [
        f"{task} at ε = {e:g} ({', '.join(sorted(names))})"
        for (task, e), names in good.items()
        if of.ours not in names
    ]
    return (
        f"{measure.title}: {of.ours} is best or within 2 standard errors of the best in {alike} of "
        f"{len(mine)} cells{with_easier}."
    ) + (f" Behind, and whom: {'; '.join(behind)}." if behind else "")


def _error(values: Sequence[float] | np.ndarray) -> float:
    """Standard error of the mean; none to speak of from a single split."""
    if len(values) > 1:
        return float(np.std(values, ddof=1)) / math.sqrt(len(values))
    return 0.0


def _mean_score(found: "list[Result]", measure: Measure) -> tuple[float, float]:
    values = [result.scores[measure.name] for result in found]
    return float(np.mean(values)), _error(values)


def _format_score(found: "list[Result]", measure: Measure, mark: str = "") -> str:
    mean, error = _mean_score(found, measure)
    return f"{mark}{mean:.4g} ± {error:.2g}{mark}"


def _table(of: Comparison, task: str, cells: Cells) -> str:
    spec = of.tasks[task]
    mine = {epsilon: cell for (name, epsilon), cell in cells.items() if name == task}
    plain = mine.pop(math.inf, {})
    methods = [name for name in of.methods if any(name in cell for cell in mine.values())]
    first = next(found[0] for cell in (*mine.values(), plain) for found in cell.values())
    if spec.held_out:
        kind = "held out"
    else:
        kind = "tuning"
    parts = [f"## {task} ({kind}): {spec.about}, n = {first.n:,}, d = {first.d}"]
    for measure in of.measures:
        lines = [
            f"| {measure.title} at ε = | " + " | ".join([*methods, of.aside.title, "s"]) + " |",
            "| --- |" + " --: |" * (len(methods) + 2),
        ]
        for epsilon, cell in mine.items():
            good = verdicts(of, cell, measure)
            shown = ["–"] * len(methods)
            for column, method in enumerate(methods):
                if method in cell:
                    emphasis = "**" if method in good else ""
                    shown[column] = _format_score(cell[method], measure, emphasis)
            ours = cell.get(of.ours, [])
            shown.append(f"{_mean_score(ours, of.aside)[0]:.3f}" if ours else "–")
            shown.append(f"{np.mean([r.seconds for r in ours]):.1f}" if ours else "–")
            lines.append(f"| {epsilon:g} | " + " | ".join(shown) + " |")
        parts.append("\n".join(lines))
        if plain:
            parts.append(
                "; ".join(
                    f"{name}: {_format_score(found, measure)}" for name, found in plain.items()
                )
            )
    return "\n\n".join(parts)


def _score_row(found: "list[Result]", measure: Measure, good: bool | str) -> list[object]:
    first = found[0]
    mean, error = _mean_score(found, measure)
    seconds = f"{np.mean([result.seconds for result in found]):.3g}"
    numbers = [len(found), measure.name, f"{mean:.6g}", f"{error:.3g}", good, seconds]
    return [first.task, first.epsilon, first.method, *numbers]


def _score_panel(of: Comparison, task: str, cells: Cells) -> Panel:
    """The first measure against ε, one line per method.

    Of errors, what is much worse than without inputs leaves the picture.
    """
    measure = of.measures[0]
    lines = []
    for name, method in of.methods.items():
        points = [
            (e, *_mean_score(cell[name], measure))
            for (one, e), cell in cells.items()
            if one == task and name in cell
        ]
        if points:
            x, y, error = zip(*points, strict=True)
            private = method.private
            lines.append(
                Line(name, y, x if private else None, error if private else None, *method.style)
            )
    options: dict[str, object] = {"xscale": "log", "xlabel": "ε", "ylabel": measure.title}
    if not measure.higher:
        options["yscale"] = "log"
        level = [max(line.y) for line in lines if line.label == of.plain]
        if level:
            options["ylim"] = (0.95 * min(min(line.y) for line in lines), 1.15 * level[0])
    return Panel(task, lines, options)
