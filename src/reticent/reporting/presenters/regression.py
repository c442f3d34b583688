"""Regressions: how the function moves with each input, and how sure that is."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from reticent.reporting.columns import output_names
from reticent.reporting.formatting import (
    decimal_places,
    format_number,
    format_short,
    format_with_error,
    join_names,
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
from reticent.reporting.presenters.anchor import anchor_sentences
from reticent.reporting.presenters.effects import (
    BAND,
    MOST_LINES,
    EffectLine,
    RegressionOutput,
    average_std,
    effect_grid,
    effect_lines,
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
from reticent.reporting.presenters.prior_words import default_prior, kernel_parts, prior_sentences

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
    "doubts as much as before the fit, which can be far more."
)
_COUNT_NOISE = "numbers of records scatter around it by chance"
_POINTS = 7  # along an input, of tables on a terminal and of --json
_ROWS = 11  # of a table in the report
_MOST_NAMED = 5  # inputs that are told of
_MOST_DESCRIBED = 6
_UNKNOWN = 0.7  # of the prior's standard deviation: what is known no better is not known
_BOX = "over the whole box"
_RECORDS = "where records are"
# of the places where records are: a few beyond them, where bands open, would outweigh all others
_BEST_KNOWN = 0.95


class BaseRegressionPresenter(Presenter[FittedRegression], Generic[FittedRegression]):
    """What all regressions say: effects of the inputs, prior, noise."""

    predicts = True
    uncertainty = (
        "The ± is one standard deviation of the function: the model's own doubt and the privacy "
        "noise, but not what such values change."
    )
    caption = (
        "The line is the mean. The bands should hold 95 % each, one around the other: the model’s "
        "own doubt, that and the privacy noise, and both with the spread of single outputs."
    )
    caption_without_noise = (
        "The line is the mean. The bands should hold 95 % each, one around the other: the model’s "
        "own doubt, and that with the privacy noise. Single outputs spread around it by their own "
        "levels."
    )

    @property
    def outputs(self) -> list[RegressionOutput]:
        """The outputs of the model."""
        return regression_outputs(self.model)

    def subject(self) -> str:
        """The predicted outputs and from what: "dose, predicted from"."""
        return f"{join_names(output_names(self.model))}, predicted from"

    def results(self) -> Json:
        """The effects of the inputs on the output, or on each of several."""
        found = [self.effects(output) for output in self.outputs]
        if len(found) == 1:
            return found[0]
        return {"outputs": {one["output"]: one for one in found}}

    def effects(self, output: RegressionOutput) -> Json:
        """Give the effects of the inputs on one output, its kernel and its noise."""
        effects = {}
        for j, (name, points) in enumerate(anchored_lines(self.model, _POINTS)):
            mean, std = output.predict_with_std(points)
            parts = output.variance_parts(points)
            effects[name] = {
                "at": points[:, j].tolist(),
                "mean": mean.tolist(),
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
            "counts": self._counts_records(),
        }

    def _counts_records(self) -> bool:
        """Whether the function is a density of records."""
        return False

    def _noise_sentence(self, output: RegressionOutput, size: str) -> str:
        """Say how far single outputs are from the function; ``size`` if that is one number."""
        if self._counts_records():
            return _COUNT_NOISE
        if output.noise is None:
            return (
                f"{output.name} spreads in each record by a known level of its own around the "
                "function"
            )
        return f"{output.name} spreads by about {size} around the function"

    def summary(self, medium: Medium = SCREEN) -> list[Block]:
        """A block for each output: a table of its effect along each input."""
        outputs = self.outputs
        blocks = []
        for output in outputs:
            heading = ""
            if len(outputs) > 1:
                heading = output.name
            found = self.effects(output)
            tables = [
                _effect_table(name, output.name, effect)
                for name, effect in found["effects"].items()
            ]
            noise = ""
            if output.noise is not None:
                noise = f"{output.noise:,.{decimal_places(output.noise)}f}"
            sentences = [*prior_sentences(found, medium), self._noise_sentence(output, noise)]
            blocks.append(Block(tables, sentences, heading))
        return blocks

    def sections(self) -> list[Section]:
        """A section for each output: its effects as curves, and on a map of two inputs."""
        remarks = self.remarks(PAGE)
        columns = len(self.columns)
        if columns > MOST_LINES:
            remarks.append(
                f"Of {columns} columns, the {MOST_LINES} along which the output moves most are "
                "drawn."
            )
        return [self._section(output, remarks) for output in self.outputs]

    def _section(self, output: RegressionOutput, remarks: list[str]) -> Section:
        lines = effect_lines(output)
        panels = [readings(line) for line in lines]
        if len(self.columns) == 2:
            panels = [readings(effect_grid(output))] * 2 + panels
        caption = self.caption
        noise = ""
        if output.noise is None:
            caption = self.caption_without_noise
        else:
            noise = format_number(output.noise, 2)
        heading = ""
        if output.several:
            heading = output.name
        described = " ".join(_described_line(line) for line in lines[:_MOST_DESCRIBED])
        return Section(
            self.title(),
            f"The mean of {output.name} with its 95 % bands. {described}",
            caption,
            [_band_table(output.name, line) for line in lines],
            heading=heading,
            findings=[
                *_largest_effects(output.name, lines),
                *prior_sentences(self.effects(output), PAGE),
                self._noise_sentence(output, noise),
                *_extrapolation_sentences(lines),
            ],
            remarks=remarks,
            output=output.name,
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
        if (column := self.bounds.noise_column) is not None:
            highest = format_short(column.high)
            remarks.append(f"A missing noise level counts as the highest, {highest}.")
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
            f"{name} at {format_short(low[j])} or {format_short(high[j])}"
            for j, (name, binary) in enumerate(
                zip(self.columns, binary_inputs(self.model), strict=True)
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
        points = np.vstack([points for _, points in anchored_lines(self.model, _POINTS)])
        notes = []
        for output in self.outputs:
            _, std = output.predict_with_std(points)
            if np.median(std) < _UNKNOWN * output.prior_std:
                continue
            function = "the function"
            if output.several:
                function = f"the function of {output.name}"
            notes.append(
                f"{function} is hardly better known than before the fit: {medium.budget} "
                "is too small for so few records."
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
        return [
            "Before the fit the function followed a Gaussian process with a "
            f"kernel, {prior}; {learning}.",
            "The bands hold as far as that is so: errors around the function independent, of "
            f"{sizes} and normal.",
        ]


class RegressionPresenter(BaseRegressionPresenter["GPRegressor"]):
    """Gaussian-process regression."""

    clipping = (
        "A missing value counts as the middle of its range, an input outside as the nearest edge; "
        "an output outside counts as it is, and its residuals are clipped."
    )


class LabelPresenter(BaseRegressionPresenter["LabelGPRegressor"]):
    """Regression that protects outputs only."""

    def remarks(self, medium: Medium) -> list[str]:
        """That inputs are not protected, before the remarks on every regression."""
        unprotected = "Inputs are NOT protected: they are part of this release."
        return [unprotected, *super().remarks(medium)]


def _effect_table(name: str, output: str, effect: Json) -> Table:
    points = zip(effect["at"], effect["mean"], effect["std"], strict=True)
    rows = [[format_short(at), format_with_error(mean, sd)] for at, mean, sd in points]
    return Table([name, f"{output} ±"], rows, text_columns=0)


def _described_line(line: EffectLine) -> str:
    """Say in words what the drawing of a line shows, for those who do not see it."""
    mean = line.mean[line.known]
    at = line.at[line.known]

    def point(index: int) -> str:
        return f"{format_number(mean[index])} at {format_number(at[index])}"

    beyond = "; beyond, a guess"
    if line.known.all():
        beyond = ""
    return (
        f"Along {line.name}: from {point(0)} to {point(-1)}, lowest {point(int(mean.argmin()))}, "
        f"highest {point(int(mean.argmax()))}{beyond}."
    )


def _largest_effects(output: str, lines: Sequence[EffectLine]) -> list[str]:
    """The inputs that matter most, the first of them first.

    Where records are, since elsewhere a curve is a guess.
    """
    moved = {line.name: float(np.ptp(line.mean[line.known])) for line in lines}
    largest = sorted(lines, key=lambda line: -moved[line.name])[:_MOST_NAMED]
    return [
        f"along {line.name}{_populated_words(line)} the mean of {output} moves by "
        f"{format_number(moved[line.name], 2)}"
        for line in largest
    ]


def _populated_words(line: EffectLine) -> str:
    if len(line.at) > 2 and not line.extrapolated.any():
        return ""
    low, high = line.populated
    return f" from {format_number(low, 2)} to {format_number(high, 2)}"


def _extrapolation_sentences(lines: Sequence[EffectLine]) -> list[str]:
    """Where hardly any records are: there a curve goes on as smoothly as it came."""
    sentences = []
    for line in lines:
        if line.extrapolated.any():
            low, high = line.populated
            sentences.append(
                f"hardly any records have {line.name} outside {format_number(low, 2)} to "
                f"{format_number(high, 2)}, as counts tell"
            )
    if not sentences:
        return []
    return [
        *sentences[:_MOST_NAMED],
        "there (dashed, grey), the curve is a guess, and its band opens to what the model thought "
        "possible beforehand, maybe beyond the frame",
    ]


def _band_table(output: str, line: EffectLine) -> Table:
    """The mean along an input with its bands, at a few points."""
    chosen = np.unique(np.linspace(0, len(line.at) - 1, _ROWS).round().astype(int))
    bands = [cause for cause in ("privacy", "noise") if cause in line.std]
    digits = decimal_places(float(np.median(line.std[bands[-1]])))

    def written(value: float) -> str:
        return f"{value:z,.{digits}f}".replace("-", "−")

    rows = []
    for i in chosen:
        mean = line.mean[i]
        row = [format_number(line.at[i]), written(mean)]
        for cause in bands:
            half = BAND * line.std[cause][i]
            row.append(f"{written(mean - half)} to {written(mean + half)}")
        rows.append(row)
    head = [line.name, f"mean of {output}", "95 % band of the mean", f"95 % of {output}"]
    return Table(head[: 2 + len(bands)], rows)


def _uncertainty_table(output: RegressionOutput, points: dict[str, Values]) -> Table:
    """Standard deviations of an output by their causes, on average over each set of points."""
    name = output.name
    fractions = {_BOX: 1.0, _RECORDS: _BEST_KNOWN}
    found = [average_std(output, at, fractions[place]) for place, at in points.items()]
    causes = {
        "the model’s own doubt": "model",
        "privacy noise": "privacy",
        f"both: error of the mean of {name}": "function",
        f"spread of {name} around the mean": "noise",
        f"all: error of one {name}": "output",
    }
    # the same digits for all, so that they can be added up
    digits = decimal_places(min(min(std.values()) for std in found))
    rows = [
        [words, *(f"{std[cause]:,.{digits}f}" for std in found)]
        for words, cause in causes.items()
        if cause in found[0]
    ]
    return Table([f"{name}, standard deviation", *points], rows)
