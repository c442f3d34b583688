"""Figures of what was released, for notebooks: ``reticent.plot.release(model)`` draws any fitted model.

Every function gives a ``matplotlib.figure.Figure`` made from releases only. Pyplot and your own styles are left alone.
"""

from reticent.apps.plots import attacker, curve, effects, expected_error, map, release

__all__ = ["attacker", "curve", "effects", "expected_error", "map", "release"]


def __dir__() -> list[str]:
    return __all__
