"""GPClassifier against its peers on real data, as one of the studies; all of the work is in `peers`."""

from pathlib import Path

from reticent.experiments.findings import Findings, Progress
from reticent.experiments.gp_peers import compare
from reticent.experiments.peers.class_methods import CLASSES

__all__ = ["run"]


def run(out: Path, *, repeats: int, quick: bool, seed: int, progress: Progress) -> Findings:
    """GPClassifier against its peers."""
    return compare(CLASSES, out, repeats=repeats, quick=quick, seed=seed, progress=progress)
