"""Figures of an obfuscated curve: its band and sensitive part, and the noise covariance."""

from typing import Any

import numpy as np

from reticent.reporting.figures.palette import LIGHT
from reticent.reporting.figures.style import Axes, Figure, quiet, shaded, styled
from reticent.reporting.formatting import truncate_name

__all__ = ["MOST_SHOWN", "covariance", "draw_released_curve"]

MOST_SHOWN = 400  # records whose covariance matrix is drawn
_POINTS = 600
_BAND = 2.0


@styled
def draw_released_curve(
    model: Any, names: tuple[str, str] = ("input", "output"), width: float = 7.2
) -> Figure:
    """Draw the released values, what follows from them, and the sensitive part; for one input."""
    figure = Figure(figsize=(width, 0.42 * width + 0.9), layout="constrained")
    axes = figure.add_subplot()
    x = model.X_[:, 0]
    checked = model.checked_[:, 0]
    at = np.linspace(min(x.min(), checked.min()), max(x.max(), checked.max()), _POINTS)
    mean, sd = model.predict(at, return_std=True)
    _shade(axes, model)
    axes.fill_between(
        at, mean - _BAND * sd, mean + _BAND * sd, color=LIGHT["privacy"], lw=0, label="± 2 sd"
    )
    axes.plot(at, mean, color=LIGHT["accent"], lw=1.3, label="what can be concluded")
    size = 3
    if len(x) <= 200:
        size = 12
    axes.scatter(x, model.released_, s=size, color=LIGHT["ink"], lw=0, zorder=3, label="released")
    axes.set(xlabel=truncate_name(names[0]), ylabel=truncate_name(names[1]))
    quiet(axes)
    figure.legend(loc="outside lower center", ncols=4 if width > 5 else 2)
    if not model.private_:
        axes.set_title("NOT PRIVATE: seeded", color=LIGHT["broken"])
    return figure


def _shade(axes: Axes, model: Any) -> None:
    sensitive = np.asarray(model.sensitive if model.solution != "uniform" else [], dtype=float)
    label = "sensitive"
    if sensitive.ndim == 1 or sensitive.shape[-1] == 1:  # points, as a list or as a column
        for point in sensitive.ravel():
            axes.axvline(point, color=LIGHT["below-3"], lw=1, label=label)
            label = "_"
        return
    for low, high in sensitive.reshape(-1, 2):
        axes.axvspan(low, high, color=LIGHT["below-1"], lw=0, zorder=0, label=label)
        label = "_"


@styled
def covariance(
    model: Any, names: tuple[str, str] = ("input", "output"), width: float = 7.2
) -> Figure:
    """Draw Σ as a heat map."""
    figure = Figure(figsize=(width, min(0.55 * width + 0.5, 0.9 * width)), layout="constrained")
    axes = figure.add_subplot()
    sigma = model.covariance_
    most = float(np.abs(sigma).max())
    colours = [LIGHT[f"below-{i}"] for i in (4, 3, 2, 1)] + [
        LIGHT[f"above-{i}"] for i in (0, 1, 2, 3, 4)
    ]
    at = np.arange(len(sigma), dtype=np.float64)
    label = "record"
    if model.n_features_in_ == 1 and len(sigma) > 1 and (np.diff(model.X_[:, 0]) > 0).all():
        at = model.X_[:, 0]
        label = truncate_name(names[0])
    if len(sigma) == 1:
        at = np.array([0.0, 1.0])
        sigma = np.broadcast_to(sigma, (2, 2))
    shaded(
        figure,
        axes,
        (at, at),
        sigma,
        np.linspace(-most, most, len(colours) + 1),
        colours,
        shrink=0.8,
    )
    axes.set(xlabel=label, ylabel=label)
    axes.set_aspect("equal")
    axes.invert_yaxis()
    quiet(axes)
    return figure
