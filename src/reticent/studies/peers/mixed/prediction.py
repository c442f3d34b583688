"""GPRegressor and GPClassifier against DP-EBM and DP-SGD on tables with columns of several kinds.

As one of the studies; results are kept in the folder as they come, and only what is missing is
computed. A quick run needs no further package: it takes a made-up table, and names what is missing.
"""

from pathlib import Path

from reticent.studies.common.results import Claim, Findings, Progress, Value
from reticent.studies.peers.comparison import Comparison
from reticent.studies.peers.mixed.methods import MIXED_CLASSES, MIXED_NUMBERS
from reticent.studies.peers.runner import EPSILONS, Result, RunPlan, study
from reticent.studies.peers.tables import by_cell, paired_differences, verdicts

__all__ = ["run"]

_MOST = 5  # splits of small data; of large data fewer
_PARTS = {"regression": MIXED_NUMBERS, "classification": MIXED_CLASSES}


def run(out: Path, *, repeats: int, quick: bool, seed: int, progress: Progress) -> Findings:
    """Run both comparisons, each in a folder of its own."""
    findings = Findings("Mixed tables: our models and their peers", [], [])
    for number, (folder, of) in enumerate(_PARTS.items()):

        def half(done: int, total: int, what: str, number: int = number) -> None:
            progress(number * total + done, len(_PARTS) * total, what)

        results = study(out / folder, _plan(of, repeats, quick, seed), half)
        findings.records += [row for result in results for row in _rows(result)]
        findings.tables += [paired_differences(of, results, measure) for measure in of.measures]
        if not quick:
            findings.claims += _claims(of, results)
        written = (out / folder / "table.md").read_text(encoding="utf-8")
        findings.notes += [
            line for line in written.splitlines() if line.startswith("No column for")
        ]
        findings.files += [
            out / folder / name for name in ("results.csv", "table.md", "picture.png")
        ]
    findings.notes = list(dict.fromkeys(findings.notes))
    return findings.write(out)


def _plan(of: Comparison, repeats: int, quick: bool, seed: int) -> RunPlan:
    if quick:
        methods = tuple(method for method in of.methods.values() if method.private)
        return RunPlan(of, (of.tasks[of.quick],), methods, (1.0,), splits=2, fresh=True)
    splits = None
    if repeats < _MOST:
        splits = repeats
    return RunPlan(
        of,
        tuple(task for task in of.tasks.values() if task.held_out),
        tuple(of.methods.values()),
        EPSILONS,
        splits,
        seed,
    )


def _rows(result: Result) -> list[dict[str, Value]]:
    return [
        {
            "task": result.task,
            "records": result.n,
            "seed": result.seed,
            "method": result.method,
            "epsilon": result.epsilon,
            "measure": measure,
            "value": value,
            "seconds": round(result.seconds, 3),
        }
        for measure, value in result.scores.items()
    ]


def _claims(of: Comparison, results: list[Result]) -> list[Claim]:
    """Best, or within 2 standard errors of the best, in every cell."""
    cells = {key: cell for key, cell in by_cell(of, results).items() if of.ours in cell}
    claims = []
    for measure in of.measures:
        behind = [
            f"{task} at ε = {epsilon:g}"
            for (task, epsilon), cell in cells.items()
            if of.ours not in verdicts(of, cell, measure)
        ]
        found = f"{len(cells) - len(behind)} of {len(cells)} cells"
        if behind:
            found += f"; behind: {', '.join(behind)}"
        claim = f"{measure.title}: {of.ours} best or within 2 standard errors in every cell"
        claims.append(Claim(claim, found, not behind))
    return claims
