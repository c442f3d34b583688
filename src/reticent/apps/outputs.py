"""A regression with several outputs, seen one output at a time: all that shows a model shows one."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from reticent.apps.figures import column_names, level_name, printable
from reticent.errors import BadInput

__all__ = ["OneOutput", "one_output", "output_name", "output_names", "outputs", "public_ranges"]

Values = NDArray[np.float64]


class OneOutput:
    """One output of a fitted regression; everything else is the model's own."""

    def __init__(self, model: Any, output: int) -> None:
        self.model, self.output = model, output
        self.kernel_, self.noise_ = model.kernel_[output], float(model.noise_[output])
        self.prior_std_ = float(model.prior_std_[output])

    def __getattr__(self, name: str) -> Any:
        return getattr(self.model, name)

    def predict(self, X: Any, return_std: bool = False) -> Any:
        """Mean of this output at ``X``, and its standard deviation."""
        found = self.model.predict(X, return_std=return_std)
        return tuple(one[:, self.output] for one in found) if return_std else found[:, self.output]

    def variance_parts(self, X: Any) -> dict[str, Values]:
        """Variance of this output at ``X`` by its causes."""
        return {name: values[:, self.output] for name, values in self.model.variance_parts(X).items()}


def outputs(model: Any) -> list[Any]:
    """Give the outputs of a fitted model, each as a model of its own; the model itself if there is but one, or none."""
    if isinstance(model, OneOutput):
        return [model]
    count = len(model.releases_[0].bounds.y)
    return [OneOutput(model, j) for j in range(count)] if count > 1 and hasattr(model, "variance_parts") else [model]


def output_names(model: Any) -> list[str]:
    """Give the names of a model's outputs, or their numbers where they have none."""
    bounds = model.releases_[0].bounds
    if bounds.y_names:
        return [printable(name) for name in bounds.y_names]
    if getattr(model, "kind", "") == "count":
        return ["density"]
    if bounds.classes is not None:
        return ["class"]
    return ["output"] if len(bounds.y) == 1 else [f"output {j}" for j in range(len(bounds.y))]


def public_ranges(model: Any) -> list[tuple[str, float, float]]:
    """Give the columns that a model was given ranges of, inputs first, with these ranges."""
    bounds = model.releases_[0].bounds
    names = column_names(model)
    names += [f"{name} (output)" for name, _ in zip(output_names(model), bounds.y, strict=False)]
    found = [(name, *ends) for name, ends in zip(names, (*bounds.x, *bounds.y), strict=True)]
    return found if bounds.level is None else [*found, (level_name(bounds.level), bounds.level.low, bounds.level.high)]


def output_name(model: Any) -> str:
    """Give the name of the output of a model that has one, or of one of its outputs."""
    return output_names(model)[getattr(model, "output", 0)]


def one_output(model: Any, wanted: int | str | None) -> Any:
    """Give one output of a model by its number or name; it must be said which if there are several."""
    found, names = outputs(model), output_names(model)
    if wanted is None and len(found) == 1:  # the only one, or chosen before
        return found[0]
    choices = dict(zip([*names, *range(len(names))], [*found, *found], strict=True))
    if isinstance(wanted, bool) or wanted not in choices:
        said = "This model has several outputs" if wanted is None else f"There is no output {wanted!r}"
        raise BadInput(f"{said}: say which, for example output={names[-1]!r}. There are {', '.join(names)}.")
    return choices[wanted]
