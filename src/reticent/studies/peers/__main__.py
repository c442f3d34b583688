"""python -m reticent.studies.peers FOLDER [--classes] [--mixed].

Fill the cells of the tuning tasks, or all with --report. Mixed tables are all held out.
"""

import argparse
import sys
from pathlib import Path

from reticent.studies import REPORT_SEED
from reticent.studies.peers.classification_methods import CLASSES
from reticent.studies.peers.mixed.methods import MIXED_CLASSES, MIXED_NUMBERS
from reticent.studies.peers.regression_methods import NUMBERS
from reticent.studies.peers.runner import EPSILONS, RunPlan, run, study

_COMPARISONS = (NUMBERS, CLASSES, MIXED_NUMBERS, MIXED_CLASSES)
_METHODS = list(dict.fromkeys(name for of in _COMPARISONS for name in of.methods))
_TASKS = list(dict.fromkeys(name for of in _COMPARISONS for name in of.tasks))


def _show(done: int, total: int, what: str) -> None:
    print(f"\r\033[K{100 * done // total:3d} %  {what}", end="", file=sys.stderr, flush=True)


def main() -> None:
    """Read the options and run."""
    parser = argparse.ArgumentParser(prog="python -m reticent.studies.peers", description=__doc__)
    parser.add_argument(
        "out",
        type=Path,
        help="folder for results.jsonl (kept results), table.md, results.csv, picture.png",
    )
    parser.add_argument(
        "--classes", action="store_true", help="compare classifications instead of regressions"
    )
    parser.add_argument(
        "--mixed", action="store_true", help="tables with columns of words, dates and numbers"
    )
    parser.add_argument("--quick", action="store_true", help="the run for CI")
    parser.add_argument("--report", action="store_true", help="all tasks, with the report's seeds")
    parser.add_argument(
        "--only",
        nargs="+",
        choices=_METHODS,
        metavar="METHOD",
        help="run only these methods; show others as kept",
    )
    parser.add_argument(
        "--data",
        nargs="+",
        choices=_TASKS,
        metavar="TASK",
        help="only these tasks",
    )
    parser.add_argument("--epsilon", nargs="+", type=float, default=EPSILONS)
    parser.add_argument(
        "--splits", type=int, help="number of splits; by default fewer of larger data"
    )
    parser.add_argument("--seed", type=int, help="of the first split, in place of the report's")
    parser.add_argument("--fresh", action="store_true", help="use no kept results")
    given = parser.parse_args()
    if not sys.stderr.isatty():
        show = None
    else:
        show = _show
    of = _COMPARISONS[given.classes + 2 * given.mixed]
    if given.quick:
        run(of, given.out, True, show)
    else:
        tasks = [of.tasks[name] for name in given.data or of.tasks if name in of.tasks]
        tasks = [task for task in tasks if given.report or not task.held_out]
        methods = tuple(of.methods[name] for name in given.only or of.methods if name in of.methods)
        if not tasks or not methods:
            parser.error(
                "held-out tasks are for the report only: --report; tasks of classes need --classes"
            )
        seed = 0
        if given.report:
            seed = REPORT_SEED
        if given.seed is not None:
            seed = given.seed
        study(
            given.out,
            RunPlan(
                of, tuple(tasks), methods, tuple(given.epsilon), given.splits, seed, given.fresh
            ),
            show,
        )
    print((given.out / "table.md").read_text())


if __name__ == "__main__":
    main()
