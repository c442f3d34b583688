"""What the report says of a regression, as plain values: computed from a model's releases and public parameters."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from reticent.apps.binned import binned_numbers, binned_remarks, binned_tables
from reticent.apps.effects import (
    COUNTED,
    OWN_LEVELS,
    effect_numbers,
    kernel_words,
    label_remarks,
    regression_notes,
    regression_numbers,
    regression_remarks,
    regression_tables,
)
from reticent.apps.figures import digits_beside, figure
from reticent.apps.outputs import output_name, outputs
from reticent.apps.shown import Model
from reticent.apps.slices import BAND, Line, average_sd, lines, spread_alike, spread_over

__all__ = ["BINNED", "LABELS", "REGRESSION"]

_NAMED, _ROWS, _TOLD = 5, 11, 6
_BOX = "over the whole box"
_MOST = 0.95  # of the places where records are: a few beyond them, where bands open, would outweigh all others

_REGRESSION = (
    "The line is the mean. The bands should hold 95 % each, one around the other: the model’s own doubt, that and the "
    "privacy noise, and both with the spread of single outputs."
)
_BINNED = (
    f"{_REGRESSION} With one input, the bins are drawn as they were released, with 95 % of their privacy noise; a count can "
    "come out below zero."
)
_LEVELS = (
    "The line is the mean. The bands should hold 95 % each, one around the other: the model’s own doubt, and that with the "
    "privacy noise. Single outputs spread around it by their own levels."
)

Table = dict[str, Any]


def _described(model: Any) -> str:
    """Say in words what the drawing of an output shows, for those who do not see it."""
    told = [_told(line) for line in lines(model)[:_TOLD]]
    return f"The mean of {output_name(model)} with its 95 % bands. {' '.join(told)}"


def _told(line: Line) -> str:
    known = ~line.guessed | line.guessed.all()
    mean, at = line.mean[known], line.at[known]
    low, high = int(mean.argmin()), int(mean.argmax())
    ends = f"from {figure(mean[0])} at {figure(at[0])} to {figure(mean[-1])} at {figure(at[-1])}"
    return (
        f"Along {line.name}: {ends}, lowest {figure(mean[low])} at {figure(at[low])}, "
        f"highest {figure(mean[high])} at {figure(at[high])}{'' if known.all() else '; beyond, a guess'}."
    )


def _page(model: Any) -> dict[str, Any]:
    found, along = effect_numbers(model), lines(model)
    by = OWN_LEVELS if model.noise_ is None else f"by about {figure(model.noise_, 2)}"
    spread = COUNTED if found["counts"] else f"{found['output']} spreads {by} around the function"
    said = [text.removesuffix(": see --json") for text in kernel_words(found)]
    return {
        "heading": "" if len(model.releases_[0].bounds.y) == 1 else output_name(model),
        "caption": _LEVELS if model.noise_ is None else _BINNED if hasattr(model, "bins_") else _REGRESSION,
        "tables": [_line_table(model, one) for one in along],
        "words": [*_moves(model, along), *said, spread, *_guessed(along)],
    }


def _moves(model: Any, along: Sequence[Line]) -> list[str]:
    """The inputs that matter most, the first of them first; where people are, since elsewhere a curve is a guess."""
    moved = {one.name: float(np.ptp(one.mean[~one.guessed | one.guessed.all()])) for one in along}
    largest = sorted(along, key=lambda one: -moved[one.name])[:_NAMED]
    return [
        f"along {one.name}{_between(one)} the mean of {output_name(model)} moves by {figure(moved[one.name], 2)}"
        for one in largest
    ]


def _between(line: Line) -> str:
    if len(line.at) > 2 and not line.guessed.any():
        return ""
    return f" from {figure(line.ends[0], 2)} to {figure(line.ends[1], 2)}"


def _guessed(along: Sequence[Line]) -> list[str]:
    """Where hardly anybody is: there a curve goes on as smoothly as it came."""
    said = [
        f"hardly any records have {one.name} outside {figure(one.ends[0], 2)} to {figure(one.ends[1], 2)}, as counts tell"
        for one in along
        if one.guessed.any()
    ]
    if not said:
        return []
    return [
        *said[:_NAMED],
        "there (dashed, grey), the curve is a guess, and its band opens to what the model thought possible beforehand, maybe "
        "beyond the frame",
    ]


def _line_table(model: Any, line: Line) -> Table:
    chosen = np.unique(np.linspace(0, len(line.at) - 1, _ROWS).round().astype(int))
    bands = [part for part in ("privacy", "noise") if part in line.sds]
    digits = digits_beside(float(np.median(line.sds[bands[-1]])))

    def between(mean: float, sd: float) -> str:
        return f"{mean - BAND * sd:z,.{digits}f} to {mean + BAND * sd:z,.{digits}f}".replace("-", "−")

    rows = [
        [figure(line.at[i]), f"{line.mean[i]:z,.{digits}f}".replace("-", "−")]
        + [between(line.mean[i], line.sds[part][i]) for part in bands]
        for i in chosen
    ]
    output = output_name(model)
    head = [line.name, f"mean of {output}", "95 % band of the mean", f"95 % of {output}"]
    return {"head": head[: 2 + len(bands)], "rows": rows}


def _quality(model: Any) -> dict[str, Any]:
    places, about = {_BOX: spread_over(model)}, "This is what the model expects of itself."
    if (alike := spread_alike(model)) is not None:
        places = {"where records are": alike, **places}
        about += (
            " Where records are, is what the released counts tell of each input by itself; the twentieth of these places where "
            "least is known, at the edge of the data, is left out."
        )
    return {"tables": [_doubt(one, places) for one in outputs(model)], "about": about}


def _doubt(model: Any, places: dict[str, Any]) -> Table:
    """The standard deviations of one output by their causes, on average over each set of points."""
    output = output_name(model)
    sds = [average_sd(model, points, 1.0 if name == _BOX else _MOST) for name, points in places.items()]
    causes = {
        "the model’s own doubt": "model",
        "privacy noise": "privacy",
        f"both: error of the mean of {output}": "function",
        f"spread of {output} around the mean": "noise",
        f"all: error of one {output}": "output",
    }
    digits = digits_beside(min(min(sd.values()) for sd in sds))  # the same for all, so that they can be added up
    rows = [[words, *(f"{sd[cause]:,.{digits}f}" for sd in sds)] for words, cause in causes.items() if cause in sds[0]]
    return {"head": [f"{output}, standard deviation", *places], "rows": rows}


def _assumed(model: Any) -> list[str]:
    kernel, level = model._params["kernel"], model.releases_[0].bounds.level
    prior = "reticent’s default for these bounds" if kernel is None else str(kernel)
    learned = "its hyperparameters were learned from the releases"
    chosen = learned if model._params["learn_kernel"] else "it was left as it is"
    return [
        f"Before the fit the function followed a Gaussian process with a kernel, {prior}; {chosen}.",
        "The bands hold as far as that is so: errors around the function independent, of "
        f"{'one size' if level is None else 'the sizes given'} and normal.",
    ]


REGRESSION = Model(
    "GPRegressor",
    regression_numbers,
    regression_tables,
    _page,
    _quality,
    regression_remarks,
    regression_notes,
    described=_described,
    assumed=_assumed,
    filled="A missing value counts as the middle of its range, an input outside as the nearest edge; an output outside counts as "
    "it is, and its residuals are clipped.",
    covers="The ± is one standard deviation of the function: the model's own doubt and the privacy noise, but not what such "
    "values change.",
    outputs=True,
)
BINNED = replace(
    REGRESSION,
    estimator="BinnedGPRegressor",
    numbers=binned_numbers,
    show=binned_tables,
    remarks=binned_remarks,
    filled=Model.filled,
)
LABELS = replace(REGRESSION, estimator="LabelGPRegressor", remarks=label_remarks, filled=Model.filled)
