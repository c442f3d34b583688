"""Effects of a regression: its mean along each input, with bands by cause of uncertainty.

Computed from a fitted model, so from releases only.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from reticent.errors import BadInput
from reticent.reporting.columns import column_names, output_names
from reticent.reporting.presenter import Json
from reticent.reporting.presenters.input_distribution import (
    anchored_lines,
    grid_points,
    populated_ranges,
)

if TYPE_CHECKING:
    from reticent.models.gp.binned_regressor import BinnedGPRegressor
    from reticent.models.gp.label_regressor import LabelGPRegressor
    from reticent.models.gp.regressor import GPRegressor

    Regression: TypeAlias = GPRegressor | BinnedGPRegressor | LabelGPRegressor

__all__ = [
    "BAND",
    "GRID",
    "MOST_LINES",
    "POINTS",
    "EffectGrid",
    "EffectLine",
    "RegressionOutput",
    "average_std",
    "effect_grid",
    "effect_lines",
    "readings",
    "regression_outputs",
    "select_output",
]

Values = NDArray[np.float64]

BAND = 1.959963984540054  # standard deviations, for a band that holds 95 %
CAUSES = ("model", "privacy", "noise")
POINTS = 101  # of a line
GRID = 41  # points along each side of a map
MOST_LINES = 24  # inputs that are drawn
_INSET = 0.2


class RegressionOutput:
    """One output of a fitted regression, by its index.

    A regression with one output gives arrays without a column for it; here all outputs look alike.
    """

    def __init__(self, model: "Regression", index: int = 0) -> None:
        self.model = model
        self.index = index
        self.several = len(model.releases_[0].bounds.y) > 1
        self.name = output_names(model)[index]

    def _of_output(self, values: Any) -> Any:
        """Take what belongs to this output from what the model has for each."""
        if self.several:
            return values[..., self.index]
        return values

    @property
    def kernel(self) -> Any:
        """The kernel of scikit-learn that the prior has, or reticent's own."""
        if self.several:
            return self.model.kernel_[self.index]
        return self.model.kernel_

    @property
    def noise(self) -> float | None:
        """Standard deviation of single outputs; None if each record has a level of its own."""
        if self.several:
            return float(self._of_output(self.model.noise_))
        noise: float | None = self.model.noise_
        return noise

    @property
    def prior_std(self) -> float:
        """Standard deviation of the function before the fit."""
        return float(self._of_output(self.model.prior_std_))

    @property
    def range(self) -> tuple[float, float]:
        """The public range of this output."""
        return self.model.releases_[0].bounds.y[self.index]

    def predict(self, X: Values) -> Values:
        """Posterior mean at ``X``, (n,)."""
        return np.asarray(self._of_output(self.model.predict(X)))

    def predict_with_std(self, X: Values) -> tuple[Values, Values]:
        """Posterior mean at ``X`` and standard deviation of the function, (n,) each."""
        mean, std = self.model.predict(X, return_std=True)
        return self._of_output(mean), self._of_output(std)

    def variance_parts(self, X: Values) -> dict[str, Values]:
        """Variance at ``X`` by its causes, (n,) each."""
        parts = self.model.variance_parts(X)
        return {name: self._of_output(values) for name, values in parts.items()}


def regression_outputs(model: "Regression") -> list[RegressionOutput]:
    """Give the outputs of a fitted regression."""
    return [RegressionOutput(model, j) for j in range(max(len(model.releases_[0].bounds.y), 1))]


def select_output(model: "Regression", wanted: int | str | None) -> int:
    """Give the index of an output by its index or name, which is needed if there are several."""
    names = output_names(model)
    if wanted is None and len(names) == 1:
        return 0
    choices = dict(zip([*names, *range(len(names))], [*range(len(names))] * 2, strict=True))
    if isinstance(wanted, bool) or wanted not in choices:
        problem = f"There is no output {wanted!r}"
        if wanted is None:
            problem = "This model has several outputs"
        raise BadInput(
            f"{problem}: say which, for example output={names[-1]!r}. There are {', '.join(names)}."
        )
    return choices[wanted]


@dataclass(frozen=True)
class EffectLine:
    """The mean along one input, through the anchor.

    ``std``: with each cause of uncertainty added to those before; without "noise" where it is not
    known, since each record has a level of its own. ``populated``: hardly any records are beyond.
    """

    name: str
    at: Values
    mean: Values
    std: dict[str, Values]
    populated: tuple[float, float]

    @property
    def extrapolated(self) -> NDArray[np.bool_]:
        """Which points are where hardly any records are."""
        return (self.at < self.populated[0]) | (self.at > self.populated[1])

    @property
    def known(self) -> NDArray[np.bool_]:
        """Which points are not extrapolated, or all if all are."""
        return ~self.extrapolated | self.extrapolated.all()

    @property
    def inset(self) -> float:
        """Room beyond its ends, as a fraction of the axis.

        Two values stand away from the frame, a curve goes up to it.
        """
        if len(self.at) == 2:
            return _INSET
        return 0.0


@dataclass(frozen=True)
class EffectGrid:
    """The mean on a grid over the box of two inputs, (y, x). ``populated``: of each input."""

    names: tuple[str, str]
    x: Values
    y: Values
    mean: Values
    std: dict[str, Values]
    populated: tuple[tuple[float, float], ...] = ()


def effect_lines(output: RegressionOutput) -> list[EffectLine]:
    """Give the line along each input; with very many inputs, those that move the output most."""
    populated = populated_ranges(output.model)
    found = []
    for j, (name, points) in enumerate(anchored_lines(output.model, POINTS)):
        at = points[:, j]
        ends = populated[j]
        if len(at) == 2:
            ends = (at[0], at[-1])
        found.append(EffectLine(name, at, *_mean_and_stds(output, points), ends))
    largest = sorted(range(len(found)), key=lambda j: -np.ptp(found[j].mean))[:MOST_LINES]
    return [found[j] for j in sorted(largest)]


def effect_grid(output: RegressionOutput) -> EffectGrid:
    """Give an output of two inputs on a grid."""
    x, y, points = grid_points(output.model, GRID)
    mean, std = _mean_and_stds(output, points)
    first, second = column_names(output.model)
    square = {cause: values.reshape(GRID, GRID) for cause, values in std.items()}
    populated = tuple(populated_ranges(output.model))
    return EffectGrid((first, second), x, y, mean.reshape(GRID, GRID), square, populated)


def _mean_and_stds(output: RegressionOutput, points: Values) -> tuple[Values, dict[str, Values]]:
    """Mean, and standard deviation with each known cause added to those before."""
    parts = output.variance_parts(points)
    known = [cause for cause in CAUSES if not np.isnan(parts[cause]).any()]
    together = np.cumsum([parts[cause] for cause in known], axis=0)
    return output.predict(points), dict(zip(known, np.sqrt(together), strict=True))


def average_std(
    output: RegressionOutput, points: Values, fraction: float = 1.0
) -> dict[str, float]:
    """Give standard deviations as root mean squares over points: each cause, function, output.

    ``fraction``: of the points, those where the function is known best.
    """
    parts = output.variance_parts(points)
    uncertainty = parts["model"] + parts["privacy"]
    known = uncertainty <= np.quantile(uncertainty, fraction)
    variance = {cause: float(np.mean(values[known])) for cause, values in parts.items()}
    function = variance["model"] + variance["privacy"]
    whole = {"function": function, "output": function + variance["noise"]}
    return {
        name: value**0.5 for name, value in {**variance, **whole}.items() if not np.isnan(value)
    }


def readings(panel: EffectLine | EffectGrid) -> Json:
    """Give what a reader is told at each point under the pointer.

    The mean, and the half-widths of the 95 % bands of mean and output.
    """
    found: Json
    if isinstance(panel, EffectLine):
        found = {"names": [panel.name], "ends": [panel.populated], "inset": panel.inset}
        at = [panel.at]
    else:
        found = {"names": panel.names, "ends": panel.populated}
        at = [panel.x, panel.y]
    found |= {
        "at": [_four_digits(values) for values in at],
        "mean": _four_digits(panel.mean.ravel()),
        "known": _four_digits((BAND * panel.std["privacy"]).ravel()),
    }
    if "noise" in panel.std:
        found["spread"] = _four_digits((BAND * panel.std["noise"]).ravel())
    return found


def _four_digits(values: Values) -> list[float]:
    return [float(f"{value:.4g}") for value in values]
