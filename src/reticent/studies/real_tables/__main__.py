"""python -m reticent.studies.real_tables FOLDER [TABLE …]: ten real tables, ε = 1."""

import argparse
from pathlib import Path

from reticent.studies.real_tables.comparison import main
from reticent.studies.real_tables.exports import EXPORTS

if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m reticent.studies.real_tables")
    parser.add_argument("folder", type=Path, help="where files, models and answers are written")
    parser.add_argument("tables", nargs="*", help=f"some of {', '.join(EXPORTS)}; all if left out")
    given = parser.parse_args()
    main(given.folder, given.tables or list(EXPORTS))
