"""Figures of released models, for notebooks: ``reticent.plot.release(model)`` draws any.

Every function gives a ``matplotlib.figure.Figure`` made from releases only; but for
``reliability``, which reads the labelled records that it is given, and protects nobody. Pyplot and
your own styles are left alone.
"""

from reticent.planning.figure import expected_error
from reticent.reporting.figures.attack import attacker
from reticent.reporting.figures.calibration import reliability
from reticent.reporting.figures.release import curve, effects, map, release
from reticent.reporting.figures.search import search

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
