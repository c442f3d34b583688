"""Figures of fitted models for notebooks: ``reticent.plot.release`` and its kin.

Each gives a ``matplotlib.figure.Figure`` made from releases only.
"""

from typing import Any

from reticent.errors import BadInput
from reticent.models.base import PrivateEstimator
from reticent.reporting.figures.style import WIDE, Figure, check_fitted
from reticent.reporting.presenters.effects import select_output
from reticent.reporting.registry import presenter_of, unwrap_search

__all__ = ["curve", "effects", "map", "release"]


def curve(
    model: PrivateEstimator, *, output: int | str | None = None, width: float = WIDE
) -> Figure:
    """Draw a regression with one input.

    The mean, and its 95 % band in three shades, one for each cause of uncertainty.

    ``output``: name or number, if there are several. Of a classifier: the probability of the second
    of two classes, or of each.
    """
    _check_drawing(model, "curve", inputs=1)
    return _draw(model, output, width)


def map(model: PrivateEstimator, *, output: int | str | None = None, width: float = WIDE) -> Figure:
    """Draw a regression with two inputs.

    Maps of the mean and of its standard deviation, and two slices. Slices go through the inputs'
    medians where released counts tell them (with the default kernel), else through the middle.
    ``output``: name or number, if there are several. Of a classifier: the likeliest class, stronger
    where surer, the width of its 95 % band, and slices of the probabilities; of two classes also
    the boundary, and the lines between which it lies with 95 %.
    """
    _check_drawing(model, "map", inputs=2)
    return _draw(model, output, width)


def effects(
    model: PrivateEstimator, *, output: int | str | None = None, width: float = WIDE
) -> Figure:
    """Draw a regression with several inputs.

    A panel for each, with the others at their medians or in their middle.

    ``output``: name or number, if there are several. Of a classifier: the probability of the second
    of two classes, or of each.
    """
    _check_drawing(model, "effects")
    presenter: Any = presenter_of(model)
    if presenter.class_names():
        from reticent.reporting.figures.classification import draw_class_effects

        return draw_class_effects(presenter, width)
    from reticent.reporting.figures.regression import draw_effects

    chosen = select_output(presenter.model, output)
    return draw_effects(presenter, presenter.outputs[chosen], width)


def release(
    model: PrivateEstimator, *, output: int | str | None = None, width: float = WIDE
) -> Figure:
    """Draw what a model says, whichever model of the library it is.

    ``output``: name or number, if there are several.
    """
    check_fitted(model)
    return _draw(model, output, width)


def _draw(fitted: PrivateEstimator, output: int | str | None, width: float) -> Figure:
    presenter = presenter_of(fitted)
    index = 0
    if presenter.predicts and not presenter.class_names():
        index = select_output(presenter.model, output)
    return presenter.figure(width, index)


def _check_drawing(model: PrivateEstimator, name: str, inputs: int | None = None) -> None:
    """Refuse models that are no regressions or classifiers with so many inputs."""
    check_fitted(model)
    found = unwrap_search(model)
    able = hasattr(found, "predict_proba_band") or hasattr(found, "variance_parts")
    if able and inputs in (None, found.n_features_in_):
        return
    wanted = ""
    if inputs is not None:
        wanted = f" with {inputs} input{'s' * (inputs != 1)}"
    raise BadInput(
        f"plot.{name} draws regressions and classifiers{wanted}; plot.release draws any model."
    )
