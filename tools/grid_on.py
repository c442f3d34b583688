"""Run this tree's grid on another version of the library: before and after, on the same seeds.

python tools/grid_on.py OTHER/src OUT [options of python -m reticent.studies.own.calibration]
"""

import runpy
import sys
from pathlib import Path

HERE = Path(__file__).parents[1] / "src"


def main() -> None:
    """Put this grid into the other library's package of studies, and run it."""
    library = Path(sys.argv.pop(1)).resolve()
    sys.path.insert(0, str(library))
    import reticent.studies.own

    assert Path(reticent.__file__).is_relative_to(library)
    reticent.studies.own.__path__.insert(0, str(HERE / "reticent" / "studies" / "own"))
    runpy.run_module("reticent.studies.own.calibration", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
