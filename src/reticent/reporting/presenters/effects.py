"""Effects of a regression: its mean along each input, with bands by cause of uncertainty.

Computed from a fitted model, so from releases only.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from reticent.errors import BadInput
from reticent.reporting.columns import (
    Column,
    as_given,
    input_columns,
    output_columns,
    output_names,
)
from reticent.reporting.formatting import decimal_places, format_number
from reticent.reporting.presenter import Json
from reticent.reporting.presenters.input_distribution import (
    AnchoredLine,
    anchored_lines,
    frequent_levels,
    grid_points,
    populated_ranges,
)

if TYPE_CHECKING:
    from reticent.models.gp.binned_regressor import BinnedGPRegressor
    from reticent.models.gp.classifier import GPClassifier
    from reticent.models.gp.label_regressor import LabelGPRegressor
    from reticent.models.gp.regressor import GPRegressor

    Regression: TypeAlias = GPRegressor | BinnedGPRegressor | LabelGPRegressor

__all__ = [
    "BAND",
    "GRID",
    "MOST_LEVELS",
    "MOST_LINES",
    "POINTS",
    "EffectGrid",
    "EffectLine",
    "RegressionOutput",
    "average_std",
    "block_inset",
    "curve_readings",
    "draws_map",
    "effect_grid",
    "effect_lines",
    "level_curves",
    "level_points",
    "output_scale",
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
MOST_LEVELS = 12  # words that are drawn, of one input
MOST_CURVES = 5  # of levels, in one drawing
_BESIDE = 1 / 3  # of the distance of two blocks: room beside the first and the last


def block_inset(blocks: int) -> float:
    """Room beside the first and the last of so many blocks, as a fraction of the axis."""
    return _BESIDE / (blocks - 1 + 2 * _BESIDE)


class RegressionOutput:
    """One output of a fitted regression, by its index.

    A regression with one output gives arrays without a column for it; here all outputs look alike.
    """

    def __init__(self, model: "Regression", index: int = 0) -> None:
        self.model = model
        self.index = index
        self.several = len(model.releases_[0].bounds.y) > 1
        self.column = output_columns(model)[index]
        self.name = self.column.name

    @property
    def title(self) -> str:
        """What it is called in a sentence: its label, or else its name."""
        return self.column.title

    @property
    def recognised_values(self) -> tuple[float, float] | None:
        """Its two values, where the releases told that it has no others and nobody had said so."""
        found = getattr(self.model, "outcome_", None)
        if found is None or self.model._params.get("outcome") is not None:
            return None
        if np.atleast_1d(found)[self.index] != "binary":
            return None
        low, high = self.model.releases_[0].bounds.y[self.index]
        return float(low), float(high)

    @property
    def limits(self) -> tuple[float, float]:
        """Where its mean can lie at all: a rate within 0 and 1, a density not below 0."""
        if getattr(self.model, "kind", "") == "count":
            return 0.0, np.inf
        return self.column.limits

    def given(self, codes: Values) -> Any:
        """Codes of the inputs as the records that `predict` takes."""
        return as_given(self.model.releases_[0].bounds, codes)

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
    def noise_range(self) -> tuple[float, float] | None:
        """Least and largest standard deviation of single outputs; None if it is one everywhere."""
        found = getattr(self.model, "noise_range_", None)
        if found is None:
            return None
        low, high = found[self.index] if self.several else found
        if low == high:
            return None
        return float(low), float(high)

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

    ``at``: codes of the input. ``std``: with each cause of uncertainty added to those before;
    without "noise" where it is not known, since each record has a level of its own. ``populated``:
    hardly any records are beyond. ``limits``: of what the output can be. ``separate``: each value
    is shown by itself, as words are. ``level``: of another input, where there is a line for each.
    """

    name: str
    at: Values
    mean: Values
    std: dict[str, Values]
    populated: tuple[float, float]
    column: Column | None = None
    limits: tuple[float, float] = (-np.inf, np.inf)
    separate: bool = False
    level: str = ""

    @property
    def title(self) -> str:
        """What the input is called in a sentence."""
        if self.column is None:
            return self.name
        return self.column.title

    @property
    def heading(self) -> str:
        """What the input is called on an axis, with its unit."""
        if self.column is None:
            return self.name
        return self.column.heading

    def show(self, code: float) -> str:
        """A value of the input, as print has it."""
        if self.column is None:
            return format_number(code)
        return self.column.show_in_print(code)

    def show_with_unit(self, code: float) -> str:
        """A value of the input with its unit."""
        if self.column is None:
            return format_number(code)
        return self.column.show_with_unit(code)

    @property
    def extrapolated(self) -> NDArray[np.bool_]:
        """Which points are where hardly any records are."""
        if self.blocks:
            return np.zeros(len(self.at), dtype=bool)
        return (self.at < self.populated[0]) | (self.at > self.populated[1])

    @property
    def known(self) -> NDArray[np.bool_]:
        """Which points are not extrapolated, or all if all are."""
        return ~self.extrapolated | self.extrapolated.all()

    @property
    def blocks(self) -> bool:
        """Whether it is drawn as a block at each value, since there is nothing between them."""
        return self.separate or len(self.at) == 2

    @property
    def places(self) -> Values:
        """Where its points stand on the axis: blocks of categories are one apart."""
        if self.separate and self.column is not None and self.column.categories is not None:
            return np.arange(len(self.at), dtype=np.float64)
        return self.at

    @property
    def inset(self) -> float:
        """Room beyond its ends, as a fraction of the axis.

        Blocks stand away from the frame, a curve goes up to it.
        """
        if self.blocks:
            return block_inset(len(self.at))
        return 0.0

    def band(self, cause: str) -> tuple[Values, Values]:
        """Ends of the 95 % band with a cause and all before it, within what the output can be."""
        half = BAND * self.std[cause]
        low, high = np.clip([self.mean - half, self.mean + half], *self.limits)
        return low, high


@dataclass(frozen=True)
class EffectGrid:
    """The mean on a grid over the box of two inputs, (y, x). ``populated``: of each input."""

    columns: tuple[Column, Column]
    x: Values
    y: Values
    mean: Values
    std: dict[str, Values]
    populated: tuple[tuple[float, float], ...] = ()
    limits: tuple[float, float] = (-np.inf, np.inf)


def effect_lines(output: RegressionOutput) -> list[EffectLine]:
    """Give the line along each input; with very many inputs, those that move the output most.

    Of an input with very many words, the most frequent ones.
    """
    populated = populated_ranges(output.model)
    found = []
    for line in anchored_lines(output.model, POINTS):
        points = line.points
        if line.separate and line.column.categories is not None:
            drawn = frequent_levels(output.model, line.index, MOST_LEVELS)
            points = points[np.isin(line.at, drawn)]
        found.append(_effect_line(output, replace(line, points=points), populated[line.index]))
    largest = sorted(range(len(found)), key=lambda j: -np.ptp(found[j].mean))[:MOST_LINES]
    return [found[j] for j in sorted(largest)]


def _effect_line(
    output: RegressionOutput, line: AnchoredLine, populated: tuple[float, float], level: str = ""
) -> EffectLine:
    at = line.at
    if line.separate:
        populated = (float(at[0]), float(at[-1]))
    mean, std = _mean_and_stds(output, line.points)
    return EffectLine(
        line.column.name,
        at,
        mean,
        std,
        populated,
        line.column,
        output.limits,
        line.separate,
        level,
    )


def draws_map(model: "Regression | GPClassifier") -> bool:
    """Whether a model is drawn as a map: it has two inputs, and both are numbers or dates."""
    columns = input_columns(model)
    return len(columns) == 2 and all(column.categories is None for column in columns)


def level_points(model: "Regression | GPClassifier") -> list[tuple[str, AnchoredLine]] | None:
    """Give of a number and a word the line along the number for each level; None for others.

    Of very many words the most frequent ones.
    """
    columns = input_columns(model)
    if len(columns) != 2:
        return None
    words = [j for j, column in enumerate(columns) if column.categories is not None]
    if len(words) != 1:
        return None
    (word,) = words
    line = anchored_lines(model, POINTS)[1 - word]
    if line.separate:
        return None
    found = []
    for code in frequent_levels(model, word, MOST_CURVES):
        points = line.points.copy()
        points[:, word] = code
        found.append((columns[word].show(code), replace(line, points=points)))
    return found


def level_curves(output: RegressionOutput) -> list[EffectLine]:
    """Give of a number and a word the curve along the number for each level; [] for others."""
    lines = level_points(output.model)
    if lines is None:
        return []
    populated = populated_ranges(output.model)
    return [_effect_line(output, line, populated[line.index], level) for level, line in lines]


def effect_grid(output: RegressionOutput) -> EffectGrid:
    """Give an output of two inputs on a grid."""
    x, y, points = grid_points(output.model, GRID)
    mean, std = _mean_and_stds(output, points)
    first, second = input_columns(output.model)
    shape = (len(y), len(x))
    square = {cause: values.reshape(shape) for cause, values in std.items()}
    populated = tuple(populated_ranges(output.model))
    limits = output.limits
    return EffectGrid((first, second), x, y, mean.reshape(shape), square, populated, limits)


def _mean_and_stds(output: RegressionOutput, points: Values) -> tuple[Values, dict[str, Values]]:
    """Mean, within what the output can be; and standard deviations.

    Each of these with a known cause added to those before.
    """
    records = output.given(points)
    parts = output.variance_parts(records)
    known = [cause for cause in CAUSES if not np.isnan(parts[cause]).any()]
    if output.column.is_rate:  # single outputs are yes or no
        known.remove("noise")
    together = np.cumsum([parts[cause] for cause in known], axis=0)
    mean = np.clip(output.predict(records), *output.limits)
    return mean, dict(zip(known, np.sqrt(together), strict=True))


def average_std(
    output: RegressionOutput, points: Values, fraction: float = 1.0
) -> dict[str, float]:
    """Give standard deviations as root mean squares over points: each cause, function, output.

    ``fraction``: of the points, those where the function is known best.
    """
    parts = output.variance_parts(output.given(points))
    uncertainty = parts["model"] + parts["privacy"]
    known = uncertainty <= np.quantile(uncertainty, fraction)
    variance = {cause: float(np.mean(values[known])) for cause, values in parts.items()}
    function = variance["model"] + variance["privacy"]
    whole = {"function": function, "output": function + variance["noise"]}
    return {
        name: value**0.5 for name, value in {**variance, **whole}.items() if not np.isnan(value)
    }


def output_scale(output: RegressionOutput, std: Values) -> Json:
    """Say how values of an output are written: factor, digits and unit; ``std`` of its mean."""
    column = output.column
    factor = 1.0
    unit = ""
    if column.is_rate:
        factor = 100.0
        unit = " %"
    elif column.unit:
        unit = f" {column.unit}"
    digits = decimal_places(factor * float(np.median(std)))
    low, high = (None if np.isinf(end) else end for end in output.limits)
    return {"factor": factor, "digits": digits, "unit": unit, "low": low, "high": high}


def readings(panel: EffectLine | EffectGrid, output: RegressionOutput) -> Json:
    """Give what a reader is told at each point under the pointer.

    The mean, and the half-widths of the 95 % bands of mean and output.
    """
    found: Json
    if isinstance(panel, EffectLine):
        found = {"names": [panel.title], "ends": [panel.populated], "inset": panel.inset}
        axes = [(panel.at, panel.show_with_unit)]
    else:
        found = {"names": [column.title for column in panel.columns], "ends": panel.populated}
        axes = [
            (at, column.show_with_unit)
            for at, column in zip((panel.x, panel.y), panel.columns, strict=True)
        ]
    scale = output_scale(output, panel.std["privacy"])
    found |= {
        "at": [_four_digits(values) for values, _ in axes],
        "said": [[show(value) for value in values] for values, show in axes],
        "scale": scale,
        **_read_values(panel, scale),
    }
    return found


def _read_values(panel: EffectLine | EffectGrid, scale: Json) -> Json:
    digits = scale["digits"] + round(np.log10(scale["factor"])) + 1

    def rounded(values: Values) -> list[float]:
        return [round(float(value), digits) for value in values.ravel()]

    found = {"mean": rounded(panel.mean), "known": rounded(BAND * panel.std["privacy"])}
    if "noise" in panel.std:
        found["spread"] = rounded(BAND * panel.std["noise"])
    return found


def curve_readings(curves: Sequence[EffectLine], output: RegressionOutput) -> Json:
    """Give what a reader is told of several curves along one input: each level's mean and band."""
    first = readings(curves[0], output)
    found = {key: first[key] for key in ("names", "ends", "inset", "at", "said", "scale")}
    found["curves"] = [
        {"level": curve.level, **_read_values(curve, first["scale"])} for curve in curves
    ]
    return found


def _four_digits(values: Values) -> list[float]:
    """Values with enough digits to tell them apart: four of their range."""
    step = max(float(np.ptp(values)), 1e-300)
    places = 4 - int(np.floor(np.log10(step)))
    return [round(float(value), max(places, 0)) for value in values]
