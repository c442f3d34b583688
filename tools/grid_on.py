"""Run this tree's grid on another version of the library: before and after, on the same seeds.

python tools/grid_on.py OTHER/src OUT [options of python -m reticent.studies.own.calibration]

Cells whose model the other version cannot make, as a parameter is new, are left out, and named.
"""

import re
import runpy
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

HERE = Path(__file__).parents[1] / "src"
_UNKNOWN = re.compile(r".*unexpected keyword argument|Invalid parameter '\w+' for estimator")


def main() -> None:
    """Put this grid into the other library's package of studies, and run it."""
    library = Path(sys.argv.pop(1)).resolve()
    sys.path.insert(0, str(library))
    import reticent.studies.own

    assert Path(reticent.__file__).is_relative_to(library)
    reticent.studies.own.__path__.insert(0, str(HERE / "reticent" / "studies" / "own"))
    from reticent.studies.own.calibration import study

    study.run_trials = _without_new_models(study.run_trials)
    runpy.run_module("reticent.studies.own.calibration", run_name="__main__", alter_sys=True)


def _without_new_models(run_trials: Callable[..., dict]) -> Callable[..., dict]:
    """Run cells one after another, but for those of models that are not there."""

    def run(cells: Sequence, repeats: Sequence[int], **options: object) -> dict:
        trials = {}
        for cell in cells:
            try:
                trials |= run_trials([cell], repeats, **options)
            except (TypeError, ValueError) as error:
                if not _UNKNOWN.match(str(error)):
                    raise
                print(f"left out: {cell}: {error}", file=sys.stderr)
        return trials

    return run


if __name__ == "__main__":
    main()
