"""What the report says of a classifier, as plain values: computed from a model's releases and public parameters."""

from typing import Any

import numpy as np

from reticent.apps.chances import (
    Chances,
    average_chances,
    band,
    chance,
    chance_grid,
    chance_lines,
    class_names,
    class_notes,
    class_numbers,
    class_remarks,
    class_tables,
    told_class,
)
from reticent.apps.outputs import output_name
from reticent.apps.shown import Model
from reticent.apps.terminal import compact

__all__ = ["CLASSIFIER", "class_panels", "class_readings"]

_ROWS, _TOLD, _NAMED, _READ = 11, 6, 5, 3

Table = dict[str, Any]


def class_panels(model: Any) -> list[Chances]:
    """What is drawn, panel by panel."""
    return ([chance_grid(model)] * 2 if model.n_features_in_ == 2 else []) + chance_lines(model)


def class_readings(panel: Chances) -> dict[str, Any]:
    """Give what a reader is told at each point: the likeliest classes, their chances, and the band of the first."""
    flat = panel.chances.reshape(-1, panel.chances.shape[-1])
    top = np.argsort(-flat, axis=1, kind="stable")[:, :_READ]
    low, high = (panel.of_likeliest(end).ravel() for end in panel.bands["privacy"])
    shares = {"chances": np.take_along_axis(flat, top, axis=1).T, "low": low, "high": high}
    return {
        "names": panel.names,
        "at": [[float(f"{value:.4g}") for value in one] for one in panel.at],
        "likeliest": top.T.tolist(),
        **{name: np.round(values, 3).tolist() for name, values in shares.items()},
    }


def _described(model: Any) -> str:
    """Say in words what the drawing shows, for those who do not see it."""
    told = [_told(model, line) for line in chance_lines(model)[:_TOLD]]
    what = "Chances of the classes, with their 95 % bands"
    if model.n_features_in_ == 2:
        what = "A map of the likeliest class, one of the width of its 95 % band, and chances along each input"
    return f"{what}. {' '.join(told)}"


def _told(model: Any, line: Chances) -> str:
    names, (name,), (at,) = class_names(model), line.names, line.at
    ends = [
        f"{names[line.likeliest[i]]} is likeliest with {chance(line.chances[i].max())} at {compact(at[i])}"
        for i in (0, -1)
    ]
    return f"Along {name}: {', '.join(ends)}."


def _page(model: Any) -> dict[str, Any]:
    drawn, told = chance_lines(model), told_class(model)
    caption = (
        "The line is the chance. The bands hold about 95 % each: the model’s own doubt, and that with the privacy noise."
        if told is not None
        else "Lines are the chances of the classes; the bands hold about 95 %, the model’s own doubt and the privacy noise."
    )
    if model.n_features_in_ == 2:
        mapped = "The map shows the likeliest class, in stronger steps from a chance of 50, 70 and 90 %"
        mapped += "; its boundary lies between the dashed lines with about 95 %." if told is not None else "."
        caption = f"{mapped} {caption}"
    return {
        "caption": caption,
        "tables": [_line_table(model, line) for line in drawn],
        "words": _moves(model, drawn),
    }


def _moves(model: Any, drawn: list[Chances]) -> list[str]:
    """The inputs that move the chances most, the first of them first."""
    names, told, said = class_names(model), told_class(model), []
    for line in drawn:
        c = int(np.ptp(line.chances, axis=0).argmax()) if told is None else told
        values, at = line.chances[:, c], line.at[0]
        low, high = int(values.argmin()), int(values.argmax())
        words = (
            f"along {line.names[0]} the chance of {names[c]} lies between {chance(values[low])} (at {compact(at[low])}) "
            f"and {chance(values[high])} (at {compact(at[high])})"
        )
        said.append((float(np.ptp(values)), words))
    return [words for _, words in sorted(said, key=lambda one: -one[0])[:_NAMED]]


def _line_table(model: Any, line: Chances) -> Table:
    names, told, (at,) = class_names(model), told_class(model), line.at
    chosen = np.unique(np.linspace(0, len(at) - 1, _ROWS).round().astype(int))
    low, high = line.bands["privacy"]
    if told is not None:
        head = [line.names[0], f"chance of {names[told]}", "95 % band"]
        cells = [[chance(line.chances[i, told]), band(low[i, told], high[i, told])] for i in chosen]
    else:
        head = [line.names[0], "likeliest", "chance", "95 % band", "next"]
        cells = []
        for i in chosen:
            first, second = np.argsort(-line.chances[i], kind="stable")[:2]
            next_ = f"{names[second]} {chance(line.chances[i, second])}"
            cells.append([names[first], chance(line.chances[i, first]), band(low[i, first], high[i, first]), next_])
    return {"head": head, "rows": [[compact(at[i]), *row] for i, row in zip(chosen, cells, strict=True)]}


def _quality(model: Any) -> dict[str, Any]:
    found, output = average_chances(model), output_name(model)
    rows = [
        ["chance of the likeliest class", chance(found["sure"])],
        ["width of its 95 % band", chance(found["widths"]["privacy"])],
        ["what that width would be without privacy noise", chance(found["widths"]["model"])],
    ]
    shares = zip(class_names(model), found["likeliest"], strict=True)
    rows += [[f"part of the box where {name} is likeliest", chance(share)] for name, share in shares if share]
    return {"tables": [{"head": [f"{output}, on average over the box", ""], "rows": rows}]}


def _assumed(model: Any) -> list[str]:
    kernel = model._params["kernel"]
    prior = "reticent’s default for these bounds" if kernel is None else str(kernel)
    chosen = (
        "hypotheses about it were weighed by the releases" if model._params["learn_kernel"] else "it was left as it is"
    )
    return [
        f"Before the fit the log-odds of each class followed a Gaussian process with a kernel, {prior}; {chosen}.",
        "The bands hold, approximately, as far as that is so and labels are drawn independently.",
    ]


CLASSIFIER = Model(
    "GPClassifier",
    class_numbers,
    class_tables,
    _page,
    _quality,
    class_remarks,
    class_notes,
    described=_described,
    assumed=_assumed,
    covers="The bands hold the model's own doubt and the privacy noise, but not what such values change.",
    outputs=True,
    labels=True,
)
