"""GPClassifier against its peers on real data, as one of the studies.

All of the work is in `peers`.
"""

from pathlib import Path

from reticent.studies.common.results import Findings, Progress
from reticent.studies.peers.classification_methods import CLASSES
from reticent.studies.peers.regression import compare

__all__ = ["run"]


def run(out: Path, *, repeats: int, quick: bool, seed: int, progress: Progress) -> Findings:
    """GPClassifier against its peers."""
    return compare(CLASSES, out, repeats=repeats, quick=quick, seed=seed, progress=progress)
