"""``python -m reticent.studies.own.calibration``: parts of the grid, and comparing two versions."""

import argparse
from pathlib import Path

from reticent.studies.own.calibration.comparison import compare, compare_parts
from reticent.studies.own.calibration.page import write_page
from reticent.studies.own.calibration.study import (
    FAMILIES,
    choose_cells,
    judge_families,
    report,
    run_trials,
)
from reticent.studies.own.calibration.trial_files import read_trials


def main() -> None:
    """Run some cells, or read earlier runs; with ``--against``, tell what changed."""
    options = _options()
    if options.records:
        trials, seed = read_trials(options.records)
    else:
        seed = options.seed
        parts = options.part or list(FAMILIES)
        cells = choose_cells(parts, quick=options.quick, containing=options.only)
        repeats = range(options.first, options.first + options.repeats)
        trials = run_trials(cells, repeats, seed=seed, progress=lambda done, total, what: None)
    findings = report(options.out, trials, seed=seed)
    print(findings.tables[0].markdown())
    for claim in findings.claims:
        print("kept    " if claim.kept else "NOT KEPT", claim.claim, "·", claim.found)
    for note in findings.notes:
        print(note)
    judged = judge_families(trials)
    judged_before = []
    if options.against:
        before, seed_before = read_trials(options.against)
        if seed_before != seed:
            raise SystemExit(f"Seeds differ, {seed_before} and {seed}: nothing to pair.")
        judged_before = judge_families(before)
        table = compare(judged_before, judged)
        (options.out / "against.md").write_text(table.markdown(), encoding="utf-8")
        print(table.markdown())
        print(compare_parts(judged_before, judged).markdown())
    if options.page:
        write_page(options.page, judged, findings.claims, findings.notes, judged_before)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m reticent.studies.own.calibration")
    parser.add_argument("out", type=Path, help="folder of tables, picture and records.json")
    parser.add_argument("--part", action="append", choices=list(FAMILIES), help="all if not given")
    parser.add_argument("--only", default="", help="cells whose name contains these words")
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--first", type=int, default=0, help="number of the first repeat")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--records", type=Path, nargs="+", help="judge these files, run nothing")
    parser.add_argument("--page", type=Path, help="page of documentation that gets the results")
    parser.add_argument(
        "--against", type=Path, nargs="+", help="records.json of another version, same seed"
    )
    return parser.parse_args()


if __name__ == "__main__":
    main()
