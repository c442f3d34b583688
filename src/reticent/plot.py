"""Figures of released models, for notebooks: ``reticent.plot.release(model)`` draws any.

Every function gives a ``matplotlib.figure.Figure`` made from releases only; but for
``reliability``, which reads the labelled records that it is given, and protects nobody. Pyplot and
your own styles are left alone.
"""

from reticent.planning.figure import expected_error
from reticent.reporting.figures.assessment.attack import attacker
from reticent.reporting.figures.assessment.calibration import reliability
from reticent.reporting.figures.assessment.search import search
from reticent.reporting.figures.release import curve, effects, map, release

__all__ = [
    "attacker",
    "curve",
    "effects",
    "expected_error",
    "map",
    "release",
    "reliability",
    "search",
]


def __dir__() -> list[str]:
    return __all__
