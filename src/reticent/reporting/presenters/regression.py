"""Regressions: how the function moves with each input, and how sure that is."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from reticent.privacy.columns.numbers import Number
from reticent.reporting.columns import Column, input_columns
from reticent.reporting.formatting import (
    decimal_places,
    format_in_range,
    format_number,
    format_with_error,
    join_names,
    printable,
)
from reticent.reporting.presenter import (
    PAGE,
    SCREEN,
    Block,
    Json,
    Medium,
    Presenter,
    Quality,
    Section,
    Table,
)
from reticent.reporting.presenters.count_tables import count_tables, undrawn_levels
from reticent.reporting.presenters.effects import (
    MOST_LINES,
    EffectLine,
    RegressionOutput,
    average_std,
    curve_readings,
    draws_map,
    effect_grid,
    effect_lines,
    level_curves,
    readings,
    regression_outputs,
)
from reticent.reporting.presenters.input_distribution import (
    anchored_lines,
    binary_inputs,
    box_points,
    input_ranges,
    record_like_points,
)
from reticent.reporting.presenters.wording.anchor import anchor_sentences
from reticent.reporting.presenters.wording.prior_words import (
    default_prior,
    kernel_parts,
    prior_sentences,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from reticent.models.gp.binned_regressor import BinnedGPRegressor
    from reticent.models.gp.label_regressor import LabelGPRegressor
    from reticent.models.gp.regressor import GPRegressor

    FittedRegression = TypeVar(
        "FittedRegression", bound=GPRegressor | BinnedGPRegressor | LabelGPRegressor
    )
else:
    FittedRegression = TypeVar("FittedRegression")

__all__ = ["BaseRegressionPresenter", "LabelPresenter", "RegressionPresenter"]

Values = NDArray[np.float64]

PRIOR = "The prior is what the model takes for usual where it knows nothing, not what it found."
LEARNED_PRIOR = (
    "The prior, as learned from the releases, is what the model takes for "
    "usual among the records, not what it found; where hardly any are, it "
    "is as uncertain as before the fit, which can be far more."
)
_COUNT_NOISE = "numbers of records scatter around it by chance"
_POINTS = 7  # along an input, of tables on a terminal and of --json
_ROWS = 11  # of a table in the report
_MOST_NAMED = 5  # inputs that are told of
_MOST_DESCRIBED = 6
_DIFFERENT = 1.5  # factor from which on it is told that noise differs from place to place
_UNKNOWN = 0.7  # of the prior's standard deviation: what is known no better is not known
_BOX = "over the whole box"
_RECORDS = "where records are"
# of the places where records are: a few beyond them, where bands open, would outweigh all others
_BEST_KNOWN = 0.95


class BaseRegressionPresenter(Presenter[FittedRegression], Generic[FittedRegression]):
    """What all regressions say: effects of the inputs, prior, noise."""

    predicts = True
    uncertainty = (
        "The ± is one standard deviation of the function: the model's own uncertainty and the "
        "privacy noise, but not what such values change."
    )
    caption = (
        "The line is the mean. The bands should hold 95 % each, one around the other: the model’s "
        "own uncertainty, that and the privacy noise, and both with the spread of single outputs."
    )
    caption_without_noise = (
        "The line is the mean. The bands should hold 95 % each, one around the other: the model’s "
        "own uncertainty, and that with the privacy noise. Single outputs spread around it by "
        "their own levels."
    )

    caption_of_rates = (
        "The line is the rate. The bands should hold 95 % each, one around the other: the model’s "
        "own uncertainty, and that with the privacy noise."
    )

    @property
    def outputs(self) -> list[RegressionOutput]:
        """The outputs of the model."""
        return regression_outputs(self.model)

    def subject(self) -> str:
        """The predicted outputs and from what: "dose, predicted from"."""
        return f"{join_names([output.title for output in self.outputs])}, predicted from"

    def results(self) -> Json:
        """The effects of the inputs on the output, or on each of several."""
        found = [self.effects(output) for output in self.outputs]
        if len(found) == 1:
            return found[0]
        return {"outputs": {one["output"]: one for one in found}}

    def effects(self, output: RegressionOutput) -> Json:
        """Give the effects of the inputs on one output, its kernel and its noise."""
        effects = {}
        for line in anchored_lines(self.model, _POINTS):
            records = output.given(line.points)
            mean, std = output.predict_with_std(records)
            parts = output.variance_parts(records)
            effects[line.column.name] = {
                "at": line.column.plain(line.at),
                "mean": np.clip(mean, *output.limits).tolist(),
                "std": std.tolist(),
                "model_std": np.sqrt(parts["model"]).tolist(),
                "privacy_std": np.sqrt(parts["privacy"]).tolist(),
            }
        return {
            "output": output.name,
            "effects": effects,
            "kernel": str(output.kernel),
            "kernel_parts": kernel_parts(output),
            "default_prior": default_prior(output),
            "noise": output.noise,
            "noise_range": output.noise_range,
            "counts": self._counts_records(),
        }

    def _counts_records(self) -> bool:
        """Whether the function is a density of records."""
        return False

    def _noise_sentences(self, output: RegressionOutput, size: str) -> list[str]:
        """Say how far single outputs are from the function; ``size`` if that is one number.

        Nothing of yes and no, which are never near it.
        """
        if self._counts_records():
            return [_COUNT_NOISE]
        if output.column.is_rate:
            return []
        if output.noise is None:
            return [
                f"{output.title} spreads in each record by a known level of its own around the "
                "function"
            ]
        two_values = output.recognised_values
        if two_values is not None:
            lower, upper = two_values
            return [f"{output.title} is {lower:g} or {upper:g}, as far as the releases tell"]
        told = f"{output.title} spreads by about {size} around the function"
        if self._noise_grows():
            told += " on average; it grows with the mean"
        differing = _differing_noise(output)
        if differing is not None:
            low, high = (format_number(end * _factor(output), 2) for end in differing)
            told += (
                f", by about {low} to {high}{_unit(output)} from place to place (what the budget "
                "can tell; the true range may be wider)"
            )
        return [told]

    def _noise_grows(self) -> bool:
        """Whether outputs were said to be such that their spread grows with their mean."""
        return self.model._params.get("outcome") in ("count", "positive")

    def summary(self, medium: Medium = SCREEN) -> list[Block]:
        """A block for each output: a table of its effect along each input."""
        outputs = self.outputs
        blocks = []
        for output in outputs:
            heading = ""
            if len(outputs) > 1:
                heading = output.title
            found = self.effects(output)
            columns = {column.name: column for column in input_columns(self.model)}
            tables = [
                _effect_table(columns[name], output, effect)
                for name, effect in found["effects"].items()
            ]
            noise = ""
            if output.noise is not None:
                size = output.noise * _factor(output)
                noise = f"{size:,.{decimal_places(size)}f}{_unit(output)}"
            sentences = [
                *prior_sentences(found, medium, output.column),
                *self._noise_sentences(output, noise),
            ]
            blocks.append(Block(tables, sentences, heading))
        return blocks

    def sections(self) -> list[Section]:
        """A section for each output: its effects as curves, and on a map of two inputs."""
        remarks = self.remarks(PAGE)
        columns = input_columns(self.model)
        if len(columns) > MOST_LINES:
            remarks.append(
                f"Of {len(columns)} columns, the {MOST_LINES} along which the output moves most "
                "are drawn."
            )
        remarks += undrawn_levels(columns)
        return [self._section(output, remarks) for output in self.outputs]

    def _section(self, output: RegressionOutput, remarks: list[str]) -> Section:
        lines = effect_lines(output)
        panels = [readings(line, output) for line in lines]
        curves = level_curves(output)
        if curves:
            panels = [curve_readings(curves, output), *panels]
        elif draws_map(self.model):
            panels = [readings(effect_grid(output), output)] * 2 + panels
        caption = self.caption
        noise = ""
        if output.column.is_rate:
            caption = self.caption_of_rates
        elif output.noise is None:
            caption = self.caption_without_noise
        else:
            size = format_number(output.noise * _factor(output), 2)
            noise = f"{size}{_unit(output)}"
        heading = ""
        if output.several:
            heading = output.title
        if curves:
            word = next(
                column for column in input_columns(self.model) if column.categories is not None
            )
            caption = f"{caption} The first drawing has one curve for each {word.title}."
        described = " ".join(_described_line(line, output) for line in lines[:_MOST_DESCRIBED])
        return Section(
            self.title(),
            f"The {_mean_word(output)} with its 95 % bands. {described}",
            caption,
            [
                *(_band_table(output, line) for line in [*curves, *lines]),
                *count_tables(self.model),
            ],
            heading=heading,
            findings=[
                *_largest_effects(output, lines),
                *prior_sentences(self.effects(output), PAGE, output.column),
                *self._noise_sentences(output, noise),
                *_extrapolation_sentences(lines),
            ],
            remarks=remarks,
            output=output.title,
            readings=panels,
        )

    def figure(self, width: float, output: int = 0) -> "Figure":
        """Draw the effects on one output, ``width`` inches wide."""
        from reticent.reporting.figures.regression import draw_regression

        return draw_regression(self, RegressionOutput(self.model, output), width)

    def quality(self) -> Quality:
        """The error that the model expects, for records and over the ranges."""
        points = {_BOX: box_points(self.model)}
        about = "This is what the model expects of itself."
        if (records := record_like_points(self.model)) is not None:
            points = {_RECORDS: records, **points}
            about += (
                " Where records are, is what the released counts tell of each input by itself; the "
                "twentieth of these places where least is known, at the edge of the data, is left "
                "out."
            )
        return Quality(about, [_uncertainty_table(output, points) for output in self.outputs])

    def remarks(self, medium: Medium) -> list[str]:
        """How effects and bands are to be read."""
        remarks = []
        if self.bounds.noise_column is not None:
            remarks.append("A record whose noise level is missing was left out.")
        remarks += anchor_sentences(self.model, medium)
        remarks += self._binary_sentences()
        if getattr(
            self.model, "_record_densities", []
        ):  # it knows where records are, and learned there
            remarks.append(LEARNED_PRIOR)
        else:
            remarks.append(PRIOR)
        return remarks

    def _binary_sentences(self) -> list[str]:
        """Say of which inputs two values alone are shown."""
        low, _, high = input_ranges(self.model)
        found = [
            f"{column.title} at {column.show(low[j])} or {column.show(high[j])}"
            for j, (column, binary) in enumerate(
                zip(input_columns(self.model), binary_inputs(self.model), strict=True)
            )
            if binary
        ]
        if not found:
            return []
        return [
            f"Nearly all records have {', '.join(found)}, as counts tell: "
            "nothing is said of values between."
        ]

    def _model_notes(self, medium: Medium) -> list[str]:
        """Say so if an output is hardly known better than before the fit."""
        points = np.vstack([line.points for line in anchored_lines(self.model, _POINTS)])
        notes = []
        for output in self.outputs:
            _, std = output.predict_with_std(output.given(points))
            if np.median(std) < _UNKNOWN * output.prior_std:
                continue
            function = "the function"
            if output.several:
                function = f"the function of {output.title}"
            notes.append(
                f"{function} is hardly better known than before the fit: {medium.budget} "
                f"is too small for so few {self.few}."
            )
        return notes

    def assumptions(self) -> list[str]:
        """The prior, how it was learned, and the noise of outputs."""
        params = self.model._params
        prior = "reticent’s default for these bounds"
        if params["kernel"] is not None:
            prior = str(params["kernel"])
        learning = "it was left as it is"
        if params["learn_kernel"]:
            learning = "its hyperparameters were learned from the releases"
        sizes = "one size"
        if self.bounds.noise_column is not None:
            sizes = "the sizes given"
        elif self._noise_grows():
            sizes = "sizes that grow with the mean"
        elif any(_differing_noise(output) is not None for output in self.outputs):
            sizes = "the size told for each place"
        return [
            "Before the fit the function followed a Gaussian process with a "
            f"kernel, {prior}; {learning}.",
            "The bands hold as far as that is so: errors around the function independent, of "
            f"{sizes} and normal.",
        ]


class RegressionPresenter(BaseRegressionPresenter["GPRegressor"]):
    """Gaussian-process regression."""

    clipping = (
        "A record that lacks a value is left out; an input outside its range counts as the nearest "
        "edge; an output outside counts as it is, and its residuals are clipped."
    )


class LabelPresenter(BaseRegressionPresenter["LabelGPRegressor"]):
    """Regression that protects outputs only."""

    def remarks(self, medium: Medium) -> list[str]:
        """That inputs are not protected, before the remarks on every regression."""
        unprotected = "Inputs are NOT protected: they are part of this release."
        return [unprotected, *super().remarks(medium)]


def _factor(output: RegressionOutput) -> float:
    """What values are multiplied by when they are written: 100 for rates."""
    if output.column.is_rate:
        return 100.0
    return 1.0


def _differing_noise(output: RegressionOutput) -> tuple[float, float] | None:
    """Least and largest standard deviation of single outputs, if they differ enough to say so."""
    if output.noise_range is None:
        return None
    low, high = output.noise_range
    if high < _DIFFERENT * low:
        return None
    return low, high


def _unit(output: RegressionOutput) -> str:
    """What stands behind a value of an output: " %", " kg" or nothing."""
    if output.column.is_rate:
        return " %"
    if output.column.unit:
        return f" {output.column.unit}"
    return ""


def _difference_unit(output: RegressionOutput) -> str:
    """What stands behind a difference of two values; two rates differ by percentage points."""
    if output.column.is_rate:
        return " percentage points"
    return _unit(output)


def _mean_word(output: RegressionOutput) -> str:
    """What the function is: "mean of weight", "rate of died = yes"."""
    column = output.column
    if column.is_rate:
        return f"rate of {column.title} = {column.show(1.0)}"
    return f"mean of {column.title}"


def _effect_table(column: Column, output: RegressionOutput, effect: Json) -> Table:
    factor = _factor(output)
    points = zip(effect["at"], effect["mean"], effect["std"], strict=True)
    rows = [
        [_written(column, at), format_with_error(factor * mean, factor * sd)]
        for at, mean, sd in points
    ]
    head = f"{output.title} ±"
    if output.column.is_rate:
        head = f"{output.title} = {output.column.show(1.0)} ± (%)"
    elif output.column.unit:
        head = f"{output.title} ± ({output.column.unit})"
    text_columns = 0
    if column.kind.levels is not None:
        text_columns = 1
    return Table([column.heading, head], rows, text_columns=text_columns)


def _written(column: Column, value: object) -> str:
    """A value that `Column.plain` gave."""
    if isinstance(value, (int, float)):
        return column.show(float(value))
    return printable(str(value))


def _written_mean(output: RegressionOutput, value: float) -> str:
    """A mean as print has it, with as many digits as its range deserves: "12.3", "45.2 %"."""
    factor = _factor(output)
    low, high = output.column.kind.output_range
    shown = format_in_range(float(f"{factor * value:.4g}"), factor * low, factor * high)
    if high - low < abs(value) / 100:  # four digits do not tell
        shown = format_in_range(factor * value, factor * low, factor * high)
    if "e" in shown:
        shown = format_number(factor * value)
    return f"{shown.replace('-', '−')}{_unit(output)}"


def _described_line(line: EffectLine, output: RegressionOutput) -> str:
    """Say in words what the drawing of a line shows, for those who do not see it."""
    mean = line.mean[line.known]
    at = line.at[line.known]

    def point(index: int) -> str:
        return f"{_written_mean(output, mean[index])} at {line.show_with_unit(at[index])}"

    if line.separate:
        return f"By {line.title}: {', '.join(point(i) for i in range(len(at)))}."
    beyond = "; beyond, a guess"
    if line.known.all():
        beyond = ""
    return (
        f"Along {line.title}: from {point(0)} to {point(-1)}, lowest {point(int(mean.argmin()))}, "
        f"highest {point(int(mean.argmax()))}{beyond}."
    )


def _largest_effects(output: RegressionOutput, lines: Sequence[EffectLine]) -> list[str]:
    """The inputs that matter most, the first of them first.

    Where records are, since elsewhere a curve is a guess.
    """
    moved = {line.name: float(np.ptp(line.mean[line.known])) for line in lines}
    largest = sorted(lines, key=lambda line: -moved[line.name])[:_MOST_NAMED]
    found = []
    for line in largest:
        size = f"{format_number(_factor(output) * moved[line.name], 2)}{_difference_unit(output)}"
        if line.separate and line.column is not None and line.column.categories is not None:
            least = int(line.mean.argmin())
            most = int(line.mean.argmax())
            low = line.show(line.at[least])
            high = line.show(line.at[most])
            error = float(np.hypot(line.std["privacy"][least], line.std["privacy"][most]))
            if moved[line.name] < error:
                found.append(
                    f"by {line.title} the {_mean_word(output)} differs by {size}, less than its "
                    "error"
                )
                continue
            found.append(
                f"the {_mean_word(output)} is lowest for {line.title} = {low} and {size} higher "
                f"for {high}"
            )
            continue
        found.append(
            f"along {line.title}{_populated_words(line)} the {_mean_word(output)} moves by {size}"
        )
    return found


def _end(line: EffectLine, code: float) -> str:
    """An end of where records are, in round numbers."""
    column = line.column
    if column is None or type(column.kind) is Number:
        low, high = line.at[0], line.at[-1]
        if high - low < max(abs(low), abs(high)) / 10:  # two digits do not tell
            return line.show(code)
        return format_number(code, 2)
    return line.show(code)


def _populated_words(line: EffectLine) -> str:
    if not line.blocks and not line.extrapolated.any():
        return ""
    low, high = line.populated
    return f" from {_end(line, low)} to {_end(line, high)}"


def _extrapolation_sentences(lines: Sequence[EffectLine]) -> list[str]:
    """Where hardly any records are: there a curve goes on as smoothly as it came."""
    sentences = []
    for line in lines:
        if line.extrapolated.any():
            low, high = line.populated
            sentences.append(
                f"hardly any records have {line.title} outside {_end(line, low)} to "
                f"{_end(line, high)}, as counts tell"
            )
    if not sentences:
        return []
    return [
        *sentences[:_MOST_NAMED],
        "there (dashed, grey), the curve is a guess, and its band opens to what the model thought "
        "possible beforehand, maybe beyond the frame",
    ]


def _band_table(output: RegressionOutput, line: EffectLine) -> Table:
    """The mean along an input with its bands, at a few points; of words at each."""
    chosen = np.arange(len(line.at))
    if not line.separate:
        chosen = np.unique(np.linspace(0, len(line.at) - 1, _ROWS).round().astype(int))
    bands = [cause for cause in ("privacy", "noise") if cause in line.std]
    factor = _factor(output)
    digits = decimal_places(factor * float(np.median(line.std[bands[-1]])))

    def written(value: float) -> str:
        return f"{factor * value:z,.{digits}f}".replace("-", "−")

    rows = []
    for i in chosen:
        row = [line.show(line.at[i]), written(line.mean[i])]
        for cause in bands:
            low, high = line.band(cause)
            row.append(f"{written(low[i])} to {written(high[i])}")
        rows.append(row)
    unit = _unit(output).strip()
    if unit:
        unit = f" ({unit})"
    first = line.heading
    if line.level:
        first = f"{line.heading}, {line.level}"
    head = [
        first,
        f"{_mean_word(output)}{unit}",
        "95 % band of the mean",
        f"95 % of {output.title}",
    ]
    if output.column.is_rate:
        head[2] = "95 % band"
    return Table(head[: 2 + len(bands)], rows)


def _uncertainty_table(output: RegressionOutput, points: dict[str, Values]) -> Table:
    """Standard deviations of an output by their causes, on average over each set of points."""
    name = output.title
    fractions = {_BOX: 1.0, _RECORDS: _BEST_KNOWN}
    factor = _factor(output)
    found = [
        {cause: factor * std for cause, std in average_std(output, at, fractions[place]).items()}
        for place, at in points.items()
    ]
    causes = {
        "the model’s own uncertainty": "model",
        "privacy noise": "privacy",
        f"both: error of the mean of {name}": "function",
        f"spread of {name} around the mean": "noise",
        f"all: error of one {name}": "output",
    }
    if output.column.is_rate:
        causes = {
            "the model’s own uncertainty": "model",
            "privacy noise": "privacy",
            f"both: error of the {_mean_word(output)}": "function",
        }
    # the same digits for all, so that they can be added up
    digits = decimal_places(min(min(std.values()) for std in found))
    rows = [
        [words, *(f"{std[cause]:,.{digits}f}" for std in found)]
        for words, cause in causes.items()
        if cause in found[0]
    ]
    unit = _unit(output).strip()
    if unit:
        unit = f" ({unit})"
    return Table([f"{name}, standard deviation{unit}", *points], rows)
