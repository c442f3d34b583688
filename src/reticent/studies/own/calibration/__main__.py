"""``python -m reticent.studies.own.calibration``: parts of the grid, and comparing two versions."""

import argparse
from pathlib import Path

from reticent.studies.own.calibration.comparison import compare, read_cells
from reticent.studies.own.calibration.study import FAMILIES, run_families


def main() -> None:
    """Run some families; with ``--against``, tell what changed since another run."""
    parser = argparse.ArgumentParser(prog="python -m reticent.studies.own.calibration")
    parser.add_argument("out", type=Path, help="folder of tables, picture and records.json")
    parser.add_argument("--part", action="append", choices=list(FAMILIES), help="all if not given")
    parser.add_argument("--only", default="", help="cells whose name contains these words")
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--against", type=Path, help="records.json of another version, same seed")
    options = parser.parse_args()
    findings = run_families(
        options.out,
        options.part or list(FAMILIES),
        repeats=options.repeats,
        quick=options.quick,
        seed=options.seed,
        progress=lambda done, total, what: None,
        containing=options.only,
    )
    print(findings.tables[0].markdown())
    for claim in findings.claims:
        print("kept    " if claim.kept else "NOT KEPT", claim.claim, "·", claim.found)
    for note in findings.notes:
        print(note)
    if options.against:
        before = read_cells(options.against)
        after = read_cells(options.out / "records.json")
        table = compare(before, after)
        (options.out / "against.md").write_text(table.markdown(), encoding="utf-8")
        print(table.markdown())


if __name__ == "__main__":
    main()
