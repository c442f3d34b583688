"""The same study as `gpucb_regret`, for the environments of many inputs, which take most of the time."""

from pathlib import Path

from reticent.experiments.findings import Findings, Progress
from reticent.experiments.gpucb_regret import run_for

__all__ = ["run"]


def run(out: Path, *, repeats: int, quick: bool, seed: int, progress: Progress) -> Findings:
    """Compute, tabulate and draw."""
    names = ("michalewicz", "styblinski")
    return run_for(names, out, repeats=repeats, quick=quick, seed=seed, progress=progress)
