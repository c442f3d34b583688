"""Tables and a picture of the results: mean error ± its standard error, the best marked, and those as good as the best."""

import csv
import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from reticent.experiments.peers.data import TASKS
from reticent.experiments.peers.methods import EASIER, METHODS, OURS, PEER
from reticent.experiments.pictures import Line, Panel, draw

if TYPE_CHECKING:
    from reticent.experiments.peers.study import Result

__all__ = ["verdicts", "write"]

_LEGEND = (
    "Root mean square error on a third of the records, mean over random splits ± standard error. **Bold**: the best private "
    "method, and those whose paired difference to it is within 2 standard errors. Band: share of test outputs inside "
    "GPRegressor's 95 % bands; s: its seconds of CPU for one fit.",
    "All protect against one record being replaced, with two exceptions. DP-SGD is shown a second time with one record added or "
    "removed, which takes half of the noise: it is not a like-for-like peer, so the verdict leaves it out. diffprivlib protects "
    "against one added or removed too, but without a δ; it has no other column, and the verdict counts it.",
)
_HEADINGS = ["task", "epsilon", "method", "splits", "rmse", "standard_error", "as_good_as_best", "coverage", "seconds"]
_STYLES = {
    OURS: ("reticent", "-", "o"),
    PEER: ("paper", "-", "s"),
    EASIER: ("paper", ":", ""),
    "diffprivlib": ("dots", "-", "^"),
    "mean": ("naive", "-", ""),
    "linear, not private": ("truth", ":", ""),
    "boosting, not private": ("truth", "--", ""),
}

Cell = dict[str, "list[Result]"]  # the splits' results of each method, for one task and one ε


def write(out: Path, results: "Sequence[Result]", notes: Sequence[str] = ()) -> None:
    """Write results.csv, table.md and picture.png."""
    cells: dict[tuple[str, float], Cell] = {}
    for result in sorted(results, key=lambda r: (list(TASKS).index(r.task), r.epsilon, list(METHODS).index(r.method))):
        cells.setdefault((result.task, result.epsilon), {}).setdefault(result.method, []).append(result)
    tasks = list(dict.fromkeys(task for task, _ in cells))
    mine = [cell for cell in cells.values() if OURS in cell]
    alike, all_of_them = (sum(OURS in verdicts(cell, easier) for cell in mine) for easier in (False, True))
    verdict = (
        f"GPRegressor is best or within 2 standard errors of the best in {alike} of {len(mine)} cells; in {all_of_them} if "
        f"compared with {EASIER}, as well."
    )
    text = [
        "# GPRegressor and its peers on real data",
        *_LEGEND,
        *(_table(task, cells) for task in tasks),
        verdict,
        *notes,
    ]
    (out / "table.md").write_text("\n\n".join(text) + "\n", encoding="utf-8")
    with (out / "results.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(_HEADINGS)
        for cell in cells.values():
            writer.writerows(_row(found, method in verdicts(cell)) for method, found in cell.items())
    panels = [_panel(task, cells) for task in tasks]
    draw(out / "picture.png", [panels[i : i + 4] for i in range(0, len(panels), 4)])


def verdicts(cell: Cell, easier: bool = False) -> set[str]:
    """Private methods that are best or within 2 standard errors of the best, by paired differences over the splits.

    Only splits that all of them were run on count. ``easier``: compare with peers that have an easier relation as well.
    """
    compared = {
        name: found for name, found in cell.items() if METHODS[name].private and (easier or METHODS[name].counts)
    }
    errors = {name: {r.seed: r.rmse for r in found} for name, found in compared.items()}
    if not errors:
        return set()
    shared = sorted(set.intersection(*(set(by_seed) for by_seed in errors.values())))
    if not shared:
        return set()
    values = {name: np.array([by_seed[seed] for seed in shared]) for name, by_seed in errors.items()}
    best = min(values, key=lambda name: float(values[name].mean()))
    differences = {name: found - values[best] for name, found in values.items()}
    return {name for name, found in differences.items() if name == best or found.mean() <= 2 * _error(found)}


def _error(values: Sequence[float] | np.ndarray) -> float:
    """Standard error of the mean; none to speak of from a single split."""
    return float(np.std(values, ddof=1)) / math.sqrt(len(values)) if len(values) > 1 else 0.0


def _rmse(found: "list[Result]") -> tuple[float, float]:
    values = [result.rmse for result in found]
    return float(np.mean(values)), _error(values)


def _number(found: "list[Result]", mark: str = "") -> str:
    mean, error = _rmse(found)
    return f"{mark}{mean:.4g} ± {error:.2g}{mark}"


def _table(task: str, cells: dict[tuple[str, float], Cell]) -> str:
    spec = TASKS[task]
    mine = {epsilon: cell for (name, epsilon), cell in cells.items() if name == task}
    plain = mine.pop(math.inf, {})
    methods = [name for name in METHODS if any(name in cell for cell in mine.values())]
    size = next(found[0].n for cell in (*mine.values(), plain) for found in cell.values())
    lines = [
        f"## {task} ({'held out' if spec.held_out else 'tuning'}): {spec.output} in {spec.unit}, n = {size:,}, d = {spec.d}",
        "",
        "| ε | " + " | ".join([*methods, "band", "s"]) + " |",
        "| --- |" + " --: |" * (len(methods) + 2),
    ]
    for epsilon, cell in mine.items():
        good = verdicts(cell)
        shown = [_number(cell[m], "**" if m in good else "") if m in cell else "–" for m in methods]
        ours = cell.get(OURS, [])
        shown.append(f"{np.mean([r.coverage or 0.0 for r in ours]):.3f}" if ours else "–")
        shown.append(f"{np.mean([r.seconds for r in ours]):.1f}" if ours else "–")
        lines.append(f"| {epsilon:g} | " + " | ".join(shown) + " |")
    references = "; ".join(f"{name}: {_number(found)}" for name, found in plain.items())
    return "\n".join([*lines, "", references]) if references else "\n".join(lines)


def _row(found: "list[Result]", good: bool) -> list[object]:
    first, (mean, error) = found[0], _rmse(found)
    covered = [result.coverage for result in found if result.coverage is not None]
    coverage = f"{np.mean(covered):.4f}" if covered else ""
    seconds = f"{np.mean([result.seconds for result in found]):.3g}"
    numbers = [len(found), f"{mean:.6g}", f"{error:.3g}", good, coverage, seconds]
    return [first.task, first.epsilon, first.method, *numbers]


def _panel(task: str, cells: dict[tuple[str, float], Cell]) -> Panel:
    """Error against ε, one line per method. What is much worse than the mean leaves the picture."""
    lines = []
    for method, (colour, style, marker) in _STYLES.items():
        points = [(e, *_rmse(cell[method])) for (name, e), cell in cells.items() if name == task and method in cell]
        if points:
            x, y, error = zip(*points, strict=True)
            private = METHODS[method].private
            lines.append(Line(method, y, x if private else None, error if private else None, colour, style, marker))
    options: dict[str, object] = {"xscale": "log", "yscale": "log", "xlabel": "ε", "ylabel": "RMSE"}
    level = [max(line.y) for line in lines if line.label == "mean"]
    if level:
        options["ylim"] = (0.95 * min(min(line.y) for line in lines), 1.15 * level[0])
    return Panel(f"{task} ({TASKS[task].unit})", lines, options)
