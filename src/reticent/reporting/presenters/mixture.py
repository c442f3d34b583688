"""Mixtures: their components, and what these imply for each column."""

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from reticent.privacy.row_maps.mixture_moments import CellCounts, LevelMoments, ResidualMoments
from reticent.reporting.attack_curve import percent
from reticent.reporting.columns import Column, input_columns
from reticent.reporting.formatting import (
    decimal_places,
    format_count,
    format_number,
    format_with_error,
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
from reticent.reporting.released_checks import complete_number

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from reticent.models.mixtures.gaussian_mixture import GaussianMixture  # noqa: F401 (a parameter of the base)
    from reticent.privacy.release import Release


__all__ = ["MixturePresenter"]

_SCREEN_COLUMNS = 8  # of a table on a terminal
_MOST_WORDS = 3  # of a column, in a table
_LEAST_CHANCE = 0.005  # of a word that is named; less is 0 %
_CLEAR = 2.0  # standard deviations of its noise: a part with a smaller share may not exist

Values = NDArray[np.float64]


class MixturePresenter(Presenter["GaussianMixture"]):
    """Components of a Gaussian mixture."""

    uncertainty = (
        "The ± of a share is the privacy noise of its last count; that of a column is how far "
        "records of a part spread. Means and chances of words have no ± of their own: noise also "
        "decides which parts are found, which can be far more than the noise of the last release."
    )

    def subject(self) -> str:
        """The number of components of the mixture."""
        parts = "normal law"
        if getattr(self.model, "level_probabilities_", {}):
            parts = "part"
        return f"Mixture of {format_count(self.model.n_components_, parts)} for"

    def results(self) -> Json:
        """Weight, mean and covariance of each component."""
        model = self.model
        return {
            "columns": [column.name for column in input_columns(model)],
            "components": model.n_components_,
            "weights": model.weights_.tolist(),
            "means": model.means_.tolist(),
            "covariances": model.covariances_.tolist(),
            "weights_noise_sd": self._weight_noise(),
            "weights_within_noise": self.within_noise().tolist(),
            "clear_components": int((~self.within_noise()).sum()),
            "level_probabilities": {
                column.name: dict(zip(self.level_names(column), chances.T.tolist(), strict=True))
                for column in input_columns(model)
                if (chances := self.level_chances(column)) is not None
            },
        }

    def _weight_noise(self) -> float:
        """Standard deviation of the privacy noise of each weight, or a bound; 0 for one component.

        By the release of the components' counts that is nearest to the weights: the last one, or
        one before it if the last step did not fit better.
        """
        model = self.model
        parts = model.n_components_
        if parts == 1:
            return 0.0
        counted = [
            release
            for release in model.releases_
            if release.is_of(ResidualMoments, LevelMoments) and release.statistic["parts"] == parts
        ]
        if not counted:
            return self._histogram_noise()

        def distance(release: "Release") -> float:
            counts = np.maximum(release.value[:parts], release.sd[0])
            return float(np.abs(counts / counts.sum() - model.weights_).sum())

        nearest = min(reversed(counted), key=distance)
        return float(nearest.sd[0]) / complete_number(model)

    def _histogram_noise(self) -> float:
        """The same for components of a histogram: of all cells above their noise together."""
        model = self.model
        grids = [release for release in model.releases_ if release.is_of(CellCounts)]
        if not grids:
            return 0.0
        sd = float(grids[-1].sd[0])
        cells = max(int((grids[-1].value > sd).sum()), 1)
        return sd * cells**0.5 / complete_number(model)

    def within_noise(self) -> NDArray[np.bool_]:
        """Tell which components have a share within two standard deviations of its noise."""
        return np.asarray(self.model.weights_ <= _CLEAR * self._weight_noise())

    def _share(self, k: int) -> str:
        """A component's share with its privacy noise: "1.5 ± 2.1 % (may not exist)"."""
        weight = 100 * float(self.model.weights_[k])
        noise = 100 * self._weight_noise()
        if noise == 0:
            return f"{weight:.1f} %"
        shown = f"{format_with_error(weight, max(noise, 0.01))} %"
        if self.within_noise()[k]:
            return f"{shown} (within the noise: may not exist)"
        return shown

    def _components(self, most: int | None = None, between: str = ", ") -> Table:
        """Each component's weight, and its mean ± standard deviation in the first columns.

        ``between``: what stands between the words of a cell.
        """
        model = self.model
        columns = input_columns(model)[:most]
        rows = []
        for k in np.argsort(-model.weights_):
            spread = np.sqrt(np.diag(model.covariances_[k]))
            cells = [
                self._cell(column, k, mean, sd, between)
                for column, mean, sd in zip(columns, model.means_[k], spread, strict=False)
            ]
            rows.append([self._share(k), *cells])
        return Table(["share ± privacy noise", *(column.heading for column in columns)], rows)

    def level_chances(self, column: Column) -> Values | None:
        """Chances of the levels of a column in each component, (components, levels).

        None for numbers.
        """
        found = getattr(self.model, "level_probabilities_", {})
        names = self.bounds.x_names
        key = f"x{[one.name for one in input_columns(self.model)].index(column.name)}"
        if names is not None:
            key = next(name for name in names if printable(name) == column.name)
        if key not in found:
            return None
        return np.clip(found[key], 0.0, 1.0)

    def level_names(self, column: Column) -> list[str]:
        """Names of these levels; of the cells of a cycle, where each begins."""
        chances = self.level_chances(column)
        assert chances is not None
        if column.categories is not None and len(column.categories) == chances.shape[1]:
            return [column.show(code) for code in column.categories]
        low, high = column.kind.range
        edges = np.linspace(low, high, chances.shape[1] + 1)[:-1]
        if column.kind.cells == chances.shape[1]:
            edges = np.arange(chances.shape[1], dtype=np.float64) + low + 0.5
        return [column.show(edge) for edge in edges]

    def _cell(self, column: Column, k: int, mean: float, sd: float, between: str) -> str:
        """A component in one column: mean ± standard deviation, or its most frequent words."""
        chances = self.level_chances(column)
        if chances is None and column.is_date:
            low, high = column.ends
            return f"{column.show(min(max(mean, low), high))} ± {format_number(sd, 2)} days"
        if chances is None:
            return format_with_error(mean, sd)
        names = self.level_names(column)
        order = np.argsort(-chances[k], kind="stable")[:_MOST_WORDS]
        told = [i for i in order if chances[k, i] >= _LEAST_CHANCE or i == order[0]]
        words = [f"{names[i]} {100 * chances[k, i]:.0f} %" for i in told]
        if between != "\n":  # lines end between words only
            words = [word.replace(" ", "\N{NO-BREAK SPACE}") for word in words]
        return between.join(words)

    def summary(self, medium: Medium = SCREEN) -> list[Block]:
        """A table of the components."""
        between = ", "
        if medium is SCREEN:
            between = "\n"
        return [Block([self._components(_SCREEN_COLUMNS, between)])]

    def sections(self) -> list[Section]:
        """One section: the components as ellipses, and their numbers."""
        title = self.title()
        caption = (
            "Each part as an ellipse that holds 86 % of it, drawn thicker where it "
            "has more records; its mean is a dot."
        )
        if getattr(self.model, "level_probabilities_", {}):
            caption = (
                f"{caption} Of words, the chance of each in each part, the largest part first."
            )
        return [
            Section(
                title,
                f"{title}, with 95 % bands of the privacy noise.",
                caption,
                [self._components()],
                remarks=[*self.remarks(PAGE), *self._drawn_columns()],
            )
        ]

    def figure(self, width: float, output: int = 0) -> "Figure":
        """Draw the components as ellipses, ``width`` inches wide."""
        from reticent.reporting.figures.mixture import draw_mixture

        return draw_mixture(self, width)

    def _column_rows(self) -> list[list[str]]:
        """For each column mean and standard deviation, by the mixture and by one normal law.

        The latter was fitted to all records in the first stage, and released by itself.
        """
        model = self.model
        mean = model.weights_ @ model.means_
        deviation = model.means_ - mean
        second = np.diagonal(model.covariances_, axis1=1, axis2=2) + deviation**2
        spread = np.sqrt(model.weights_ @ second)
        pooled = np.sqrt(np.diag(model.pooled_covariance_))
        names = [column.heading for column in input_columns(model)]
        numbers = zip(names, mean, model.pooled_mean_, spread, pooled, strict=True)
        return [
            [name, *_moments(column, values)]
            for column, (name, *values) in zip(input_columns(model), numbers, strict=True)
            if self.level_chances(column) is None and column.kind.levels is None
        ]

    def quality(self) -> Quality:
        """Moments of the mixture beside the released moments of each column."""
        head = [
            "column",
            "mean, mixture",
            "mean, all",
            "standard deviation, mixture",
            "standard deviation, all",
        ]
        sentences = [
            "Released twice: what the mixture implies for each column, and one normal law for all, "
            "from the first stage."
        ]
        if self.model.n_components_ > 1:
            noise = format_number(100 * self._weight_noise(), 2)
            sentences.insert(0, f"The last count of each share has a privacy noise of ± {noise} %.")
        return Quality(self.about_quality, [Table(head, self._column_rows())], sentences)

    def remarks(self, medium: Medium) -> list[str]:
        """How the components are to be read."""
        found = self.model.n_components_
        wanted = self.model._params["n_components"]
        columns = len(input_columns(self.model))
        remarks = [
            f"Each part: its share of the {self.counted}, and in each column its mean ± "
            "the standard deviation of its records."
        ]
        if getattr(self.model, "level_probabilities_", {}):
            remarks.append("Of words, those that are most frequent in the part.")
        if wanted is None:
            remarks.append(
                "How many parts there are was chosen from the releases, at no further cost in "
                f"privacy: {found}."
            )
        elif found < wanted:
            remarks.append(
                f"{wanted} components were asked for; the noise at this budget carries {found}, or "
                "one normal law fitted the records better."
            )
        if columns > _SCREEN_COLUMNS and medium.all_numbers:
            remarks.append(
                f"The first {_SCREEN_COLUMNS} of {columns} columns are shown: all are in "
                f"{medium.all_numbers}."
            )
        return remarks

    def _model_notes(self, medium: Medium) -> list[str]:
        """Say so if components may be made up by noise, or are as wide as the ranges."""
        return [*self.doubtful_parts(medium), *self._wide_parts(medium)]

    def doubtful_parts(self, medium: Medium) -> list[str]:
        """Say how many components are clear of the noise, if not all of them are."""
        doubtful = int(self.within_noise().sum())
        if not doubtful:
            return []
        parts = self.model.n_components_
        noise = percent(self._weight_noise())
        clear = f"only {parts - doubtful} of {parts} parts are"
        if doubtful == parts:
            clear = f"none of {parts} parts is"
        elif parts - doubtful == 1:
            clear = f"only 1 of {parts} parts is"
        others = f"the {doubtful} others have shares"
        if doubtful == parts:
            others = "they have shares"
        elif doubtful == 1:
            others = "the other one has a share"
        return [
            f"{clear} clear of the noise; {others} within two standard deviations of its noise "
            f"(± {noise}) and may not exist. Take fewer ({medium.parameter('n_components')}), or "
            f"a larger {medium.parameter('epsilon')}."
        ]

    def _wide_parts(self, medium: Medium) -> list[str]:
        spread = np.sqrt(np.diagonal(self.model.covariances_, axis1=1, axis2=2).max(axis=0))
        low, high = np.array(self.bounds.x).T
        if not (spread > (high - low) / 2).all():
            return []
        return [
            f"the parts are as wide as the ranges: {medium.budget} is too small for so few "
            f"{self.few}."
        ]


def _moments(column: Column, values: list[float]) -> list[str]:
    """Two means and two standard deviations of a column; of dates, as dates and in days."""
    if column.is_date:
        low, high = column.ends
        means = [column.show(min(max(mean, low), high)) for mean in values[:2]]
        return [*means, *(f"{format_number(sd, 2)} days" for sd in values[2:])]
    digits = decimal_places(values[-1] / 10)
    return [f"{value:z,.{digits}f}" for value in values]
