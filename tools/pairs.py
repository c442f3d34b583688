"""Run a study on this version and on another one, and compare them cell by cell, in pairs.

python tools/pairs.py OTHER/src STUDY MEASURE [--seed N] [--repeats N] [--quick] [--higher]

Each repeat is one run of this tree's study with a seed of its own, on each version. A cell is a row
of what the study finds, and MEASURE one of its columns (rmse, loss, score, …), of which less is
better unless ``--higher``.
"""

import argparse
import importlib.util
import json
import math
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).parents[1] / "src"
_CLEAR = 2.0  # standard errors
Row = dict[str, Any]


@dataclass(frozen=True)
class Pair:
    """One cell: its name, and its measure in each repeat, before (the other version) and now."""

    cell: str
    before: Sequence[float]
    now: Sequence[float]

    @property
    def errors(self) -> float:
        """Mean difference, now − before, in standard errors; 0 if there are none to tell."""
        differences = np.subtract(self.now, self.before)
        mean = float(differences.mean())
        if len(differences) == 1 or mean == 0.0:
            return 0.0
        error = float(differences.std(ddof=1)) / math.sqrt(len(differences))
        if error == 0.0:
            return math.copysign(math.inf, mean)
        return mean / error

    @property
    def ratio(self) -> float:
        """Mean now by mean before."""
        return float(np.mean(self.now) / np.mean(self.before))


def paired(before: list[list[Row]], now: list[list[Row]], measure: str) -> list[Pair]:
    """Pairs of the rows of several runs of both versions (repeats, rows).

    A cell is named by the columns that are the same in both versions and in all repeats.
    """
    runs = [*before, *now]
    if len({len(rows) for rows in runs}) != 1:
        raise SystemExit("The two versions have different cells.")
    pairs = []
    for i, row in enumerate(runs[0]):
        names = [key for key in row if all(rows[i][key] == row[key] for rows in runs)]
        found = [[float(rows[i][measure]) for rows in some] for some in (before, now)]
        pairs.append(Pair(", ".join(f"{key}={row[key]}" for key in names), *found))
    return pairs


def summary(pairs: list[Pair], higher: bool = False) -> str:
    """What is clearly better and worse, and the geometric mean of the ratios."""
    sign = -1 if higher else 1
    different = [pair for pair in pairs if list(pair.now) != list(pair.before)]
    lines = []
    for pair in sorted(different, key=lambda one: -sign * one.errors):
        means = f"{np.mean(pair.before):.4g} → {np.mean(pair.now):.4g}"
        lines.append(f"{pair.cell}: {means}, {pair.errors:+.1f} standard errors")
    better = sum(sign * pair.errors < -_CLEAR for pair in different)
    worse = sum(sign * pair.errors > _CLEAR for pair in different)
    lines.append(f"{len(pairs)} cells, {len(different)} of them different")
    lines.append(f"by more than {_CLEAR:g} standard errors: {better} better, {worse} worse")
    if different and min(min(*pair.now, *pair.before) for pair in different) > 0:
        mean = math.exp(float(np.mean([math.log(pair.ratio) for pair in different])))
        lines.append(f"ratio of means, now by before, geometric mean of these: {mean:.3f}")
    return "\n".join(lines)


def run_here(library: Path, study: str, seed: int, quick: bool) -> list[Row]:
    """Run the study of this tree on a library, from which nothing may be imported yet."""
    sys.path.insert(0, str(library))
    import reticent

    assert Path(reticent.__file__).is_relative_to(library)
    folder = HERE / "reticent" / "studies"
    spec = importlib.util.spec_from_file_location(
        "reticent.studies", folder / "__init__.py", submodule_search_locations=[str(folder)]
    )
    assert spec
    assert spec.loader
    studies = importlib.util.module_from_spec(spec)
    sys.modules["reticent.studies"] = studies
    spec.loader.exec_module(studies)
    with tempfile.TemporaryDirectory() as out:
        options = {"repeats": 1, "quick": quick, "seed": seed, "progress": lambda *_: None}
        return list(studies.STUDIES[study].run(Path(out), **options).records)


def _run(library: Path, study: str, seed: int, quick: bool) -> list[Row]:
    """The same in a process of its own."""
    command = [sys.executable, __file__, "--alone", str(library), study, str(seed), str(int(quick))]
    found = subprocess.run(command, stdout=subprocess.PIPE, check=True)
    return list(json.loads(found.stdout.splitlines()[-1]))


def main() -> None:
    """Read the options, run both, print what differs."""
    if sys.argv[1:2] == ["--alone"]:
        library, study, seed, quick = sys.argv[2:]
        print(json.dumps(run_here(Path(library), study, int(seed), bool(int(quick)))))
        return
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("other", type=Path)
    parser.add_argument("study")
    parser.add_argument("measure")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--higher", action="store_true", help="more of the measure is better")
    given = parser.parse_args()
    before: list[list[Row]] = []
    now: list[list[Row]] = []
    for seed in range(given.seed, given.seed + given.repeats):
        before.append(_run(given.other.resolve(), given.study, seed, given.quick))
        now.append(_run(HERE, given.study, seed, given.quick))
    print(summary(paired(before, now, given.measure), given.higher))


if __name__ == "__main__":
    main()
