"""Classifiers: probabilities of the classes along each input, and how sure they are."""

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from reticent.reporting.columns import input_columns, output_names
from reticent.reporting.formatting import format_short, join_names
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
from reticent.reporting.presenters.class_probabilities import (
    ClassProbabilities,
    average_probabilities,
    class_names,
    format_band,
    format_probability,
    probability_curve_readings,
    probability_curves,
    probability_grid,
    probability_lines,
    probability_readings,
    reference_class,
)
from reticent.reporting.presenters.count_tables import count_tables, undrawn_levels
from reticent.reporting.presenters.effects import MOST_LINES, draws_map, level_points
from reticent.reporting.presenters.wording.anchor import anchor_sentences

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from reticent.models.gp.classifier import GPClassifier  # noqa: F401 (a parameter of the base)


__all__ = ["ClassificationPresenter"]

Values = NDArray[np.float64]

_SCREEN_CLASSES = 5  # that have a column in a table on a terminal
_PAGE_CLASSES = 8
_POINTS = 7  # along an input, of tables on a terminal and of --json
_ROWS = 11  # of a table in the report
_MOST_NAMED = 5  # inputs that are told of
_MOST_DESCRIBED = 6
_UNKNOWN = 0.8  # width of a band that says nothing
_SUSPICIOUS = 0.98  # probability of the first class everywhere: are the classes misspelt?


class ClassificationPresenter(Presenter["GPClassifier"]):
    """Gaussian-process classification."""

    predicts = True
    uncertainty = (
        "The bands hold the model's own uncertainty and the privacy noise, but not what such "
        "values change."
    )
    about_quality = (
        "This is what the model expects of itself, where there are records "
        "and where there are none."
    )

    @property
    def output(self) -> str:
        """The name of the column of labels."""
        return output_names(self.model)[0]

    @property
    def reference(self) -> int | None:
        """The class whose probability says it all, if there are two."""
        return reference_class(self.model)

    def class_names(self) -> list[str]:
        """The classes, as text."""
        return class_names(self.model)

    def subject(self) -> str:
        """The predicted label and from what: "smoker, predicted from"."""
        return f"{join_names(output_names(self.model))}, predicted from"

    def results(self) -> Json:
        """Class probabilities along each input, with their bands."""
        labels = self.class_names()
        effects = {}
        for line in probability_lines(self.model, _POINTS):
            low, high = line.bands["privacy"]
            columns = {"chances": line.probabilities, "low": low, "high": high}
            effects[line.names[0]] = {
                "at": _plain(line),
                "likeliest": [labels[c] for c in line.likeliest],
                **{
                    name: dict(zip(labels, values.T.tolist(), strict=True))
                    for name, values in columns.items()
                },
            }
        return {
            "output": self.output,
            "classes": self.model.classes_.tolist(),
            "method": self.model.method,
            "effects": effects,
        }

    def summary(self, medium: Medium = SCREEN) -> list[Block]:
        """A table of class probabilities along each input."""
        lines = probability_lines(self.model, _POINTS)
        return [Block([self._short_table(line) for line in lines])]

    def _short_table(self, line: ClassProbabilities) -> Table:
        """Probabilities along an input: of the second of two classes, or of each."""
        labels = self.class_names()
        reference = self.reference
        low, high = line.bands["privacy"]
        text_columns = 0
        if line.columns and line.columns[0].kind.levels is not None:
            text_columns = 1
        rows = []
        for i, at in enumerate(line.at[0]):
            shown = _value(line, at)
            if reference is not None:
                chance = format_probability(line.probabilities[i, reference])
                rows.append([shown, chance, format_band(low[i, reference], high[i, reference])])
            else:
                rows.append([shown, *self._chances(line, i, _SCREEN_CLASSES)])
        if reference is None:
            head = [line.heading, *self._class_heads(_SCREEN_CLASSES)]
        else:
            head = [line.heading, f"chance of {labels[reference]}", "95 % band"]
        return Table(head, rows, text_columns=text_columns)

    def _told_classes(self, most: int) -> list[int]:
        """The classes that have a column in a table: all, or the likeliest on average."""
        labels = self.class_names()
        if len(labels) <= most:
            return list(range(len(labels)))
        mean = average_probabilities(self.model).means
        return sorted(sorted(range(len(labels)), key=lambda c: -mean[c])[: most - 1])

    def _class_heads(self, most: int) -> list[str]:
        labels = self.class_names()
        told = self._told_classes(most)
        heads = [labels[c] for c in told]
        if len(told) < len(labels):
            heads.append(f"{len(labels) - len(told)} others")
        return heads

    def _chances(
        self, line: ClassProbabilities, i: int, most: int, band: bool = False
    ) -> list[str]:
        """The chance of every class at a point, with its band if wanted; others added up."""
        told = self._told_classes(most)
        low, high = line.bands["privacy"]
        cells = []
        for c in told:
            cell = format_probability(line.probabilities[i, c])
            if band:
                cell = f"{cell} ({format_band(low[i, c], high[i, c])})"
            cells.append(cell)
        if len(told) < line.probabilities.shape[-1]:
            rest = 1 - float(line.probabilities[i, told].sum())
            cells.append(format_probability(max(rest, 0.0)))
        return cells

    def sections(self) -> list[Section]:
        """One section: class probabilities along each input, and on a map of two."""
        lines = probability_lines(self.model)
        panels = [probability_readings(line) for line in lines]
        remarks = [*self.remarks(PAGE), *undrawn_levels(input_columns(self.model))]
        curves = probability_curves(self.model)
        if curves:
            panels = [probability_curve_readings(curves, self.reference or 0), *panels]
        elif draws_map(self.model):
            panels = [probability_readings(probability_grid(self.model))] * 2 + panels
        if len(self.columns) > MOST_LINES:
            remarks.append(
                f"Of {len(self.columns)} columns, the {MOST_LINES} along which the output moves "
                "most are drawn."
            )
        return [
            Section(
                self.title(),
                self._description(lines),
                self._caption(),
                [
                    *(self._long_table(line) for line in [*curves, *lines]),
                    *count_tables(self.model),
                ],
                findings=self._largest_effects(lines),
                remarks=remarks,
                output=self.output,
                readings=panels,
            )
        ]

    def _description(self, lines: list[ClassProbabilities]) -> str:
        """Say in words what the drawing shows, for those who do not see it."""
        shows = "Chances of the classes, with their 95 % bands"
        if draws_map(self.model):
            shows = (
                "A map of the likeliest class, one of the width of its 95 % band, "
                "and chances along each input"
            )
        described = " ".join(self._described_line(line) for line in lines[:_MOST_DESCRIBED])
        return f"{shows}. {described}"

    def _described_line(self, line: ClassProbabilities) -> str:
        labels = self.class_names()
        (at,) = line.at
        ends = [
            f"{labels[line.likeliest[i]]} is likeliest with "
            f"{format_probability(line.probabilities[i].max())} at {line.show(at[i])}"
            for i in self._described_points(line)
        ]
        return f"Along {line.titles[0]}: {', '.join(ends)}."

    @staticmethod
    def _described_points(line: ClassProbabilities) -> list[int]:
        """The ends of a line; all blocks."""
        if line.separate:
            return list(range(len(line.at[0])))
        return [0, -1]

    def _caption(self) -> str:
        two = self.reference is not None
        caption = (
            "Lines are the chances of the classes; the bands hold about 95 %, the model’s own "
            "uncertainty and the privacy noise."
        )
        if two:
            caption = (
                "The line is the chance. The bands hold about 95 % each: the model’s own "
                "uncertainty, and that with the privacy noise."
            )
        if self.reference is not None and level_points(self.model) is not None:
            word = next(c for c in input_columns(self.model) if c.categories is not None)
            return f"{caption} The first drawing has one curve for each {word.title}."
        if not draws_map(self.model):
            return caption
        boundary = ""
        if two:
            boundary = "; its boundary lies between the dashed lines with about 95 %"
        return (
            "The map shows the likeliest class, in stronger steps from a chance of 50, 70 and "
            f"90 %{boundary}. {caption}"
        )

    def _largest_effects(self, lines: list[ClassProbabilities]) -> list[str]:
        """The inputs that move the probabilities most, the first of them first."""
        labels = self.class_names()
        found = []
        for line in lines:
            c = self.reference
            if c is None:
                c = int(np.ptp(line.probabilities, axis=0).argmax())
            values = line.probabilities[:, c]
            at = line.at[0]
            low = int(values.argmin())
            high = int(values.argmax())
            least = format_probability(values[low])
            most = format_probability(values[high])
            first = line.show(at[low])
            last = line.show(at[high])
            sentence = (
                f"along {line.titles[0]} the chance of {labels[c]} lies between {least} "
                f"(at {first}) and {most} (at {last})"
            )
            if line.separate:
                sentence = (
                    f"the chance of {labels[c]} is lowest for {line.titles[0]} = {first}, {least}, "
                    f"and highest for {last}, {most}"
                )
            if least == most:
                sentence = (
                    f"by {line.titles[0]} the chance of {labels[c]} hardly differs: about {most}"
                )
            found.append((float(np.ptp(values)), sentence))
        found.sort(key=lambda pair: -pair[0])
        return [sentence for _, sentence in found[:_MOST_NAMED]]

    def _long_table(self, line: ClassProbabilities) -> Table:
        labels = self.class_names()
        reference = self.reference
        (at,) = line.at
        low, high = line.bands["privacy"]
        rows = []
        chosen = np.arange(len(at))
        if not line.separate:
            chosen = np.unique(np.linspace(0, len(at) - 1, _ROWS).round().astype(int))
        for i in chosen:
            shown = _value(line, at[i])
            if reference is not None:
                probability = format_probability(line.probabilities[i, reference])
                band = format_band(low[i, reference], high[i, reference])
                rows.append([shown, probability, band])
            else:
                rows.append([shown, *self._chances(line, int(i), _PAGE_CLASSES, band=True)])
        first = line.heading
        if line.level:
            first = f"{line.heading}, {line.level}"
        if reference is not None:
            return Table([first, f"chance of {labels[reference]}", "95 % band"], rows)
        return Table([first, *self._class_heads(_PAGE_CLASSES)], rows)

    def figure(self, width: float, output: int = 0) -> "Figure":
        """Draw the class probabilities, ``width`` inches wide."""
        from reticent.reporting.figures.classification import draw_classification

        return draw_classification(self, width)

    def quality(self) -> Quality:
        """How sure the model is on average, and how wide its bands are."""
        found = average_probabilities(self.model)
        rows = [
            ["chance of the likeliest class", format_probability(found.likeliest)],
            ["width of its 95 % band", format_probability(found.widths["privacy"])],
            [
                "what that width would be without privacy noise",
                format_probability(found.widths["model"]),
            ],
        ]
        rows += [
            [f"part of the box where {name} is likeliest", format_probability(fraction)]
            for name, fraction in zip(self.class_names(), found.fractions, strict=True)
            if fraction
        ]
        head = [f"{self.output}, on average over the box", ""]
        return Quality(self.about_quality, [Table(head, rows)])

    def remarks(self, medium: Medium) -> list[str]:
        """What becomes of unknown labels, and where the other inputs are fixed."""
        return [
            "A record whose label is missing, or not among the classes, is left out.",
            *anchor_sentences(self.model, medium),
        ]

    def _model_notes(self, medium: Medium) -> list[str]:
        """Say so if the probabilities are hardly known."""
        lines = probability_lines(self.model, _POINTS)
        if np.median(np.concatenate([line.width for line in lines])) >= _UNKNOWN:
            return [
                f"the chances are hardly known: {medium.budget} is too small for so few {self.few}."
            ]
        if min(float(line.probabilities[..., 0].min()) for line in lines) > _SUSPICIOUS:
            return [
                f"nearly every record seems to be {self.class_names()[0]}. Records with labels "
                "that are not among the classes are left out: compare the spelling and capitals of "
                "the classes with the file."
            ]
        return []

    def assumptions(self) -> list[str]:
        """The prior of the latent functions, and how it was learned."""
        params = self.model._params
        prior = "reticent’s default for these bounds"
        if params["kernel"] is not None:
            prior = str(params["kernel"])
        learning = "it was left as it is"
        if params["learn_kernel"]:
            learning = "hypotheses about it were weighed by the releases"
        return [
            "Before the fit the log-odds of each class followed a Gaussian "
            f"process with a kernel, {prior}; {learning}.",
            "The bands hold, approximately, as far as that is so and labels are drawn "
            "independently.",
        ]


def _plain(line: ClassProbabilities) -> list[object]:
    """Values of the input for machines."""
    if not line.columns:
        return line.at[0].tolist()
    return line.columns[0].plain(line.at[0])


def _value(line: ClassProbabilities, code: float) -> str:
    """A value of the input in a table, whose head has the unit."""
    if not line.columns:
        return format_short(code)
    return line.columns[0].show(code)
