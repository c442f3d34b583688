"""Figures of what was released, for notebooks: ``reticent.plot.release(model)`` draws any fitted model.

Every function gives a ``matplotlib.figure.Figure`` made from releases only; but for ``reliability``, which reads the labelled
records that it is given, and protects nobody. Pyplot and your own styles are left alone.
"""

from reticent.apps.plots import attacker, curve, effects, expected_error, map, release
from reticent.apps.reliability import reliability
from reticent.apps.search_plot import search

__all__ = ["attacker", "curve", "effects", "expected_error", "map", "release", "reliability", "search"]


def __dir__() -> list[str]:
    return __all__
