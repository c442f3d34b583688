"""Mixtures: their components, and what these imply for each column."""

from typing import TYPE_CHECKING

import numpy as np

from reticent.privacy.row_maps.mixture_moments import LevelMoments, ResidualMoments
from reticent.reporting.attack_curve import percent
from reticent.reporting.formatting import decimal_places, format_count, format_with_error, printable
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

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from reticent.models.mixtures.gaussian_mixture import GaussianMixture  # noqa: F401 (a parameter of the base)


__all__ = ["MixturePresenter"]

_SCREEN_COLUMNS = 8  # of a table on a terminal


class MixturePresenter(Presenter["GaussianMixture"]):
    """Components of a Gaussian mixture."""

    uncertainty = "The ± is how far records of a part spread; privacy noise and this are not in it."

    def subject(self) -> str:
        """The number of components of the mixture."""
        return f"Mixture of {format_count(self.model.n_components_, 'normal law')} for"

    def results(self) -> Json:
        """Weight, mean and covariance of each component."""
        model = self.model
        return {
            "columns": self.columns,
            "components": model.n_components_,
            "weights": model.weights_.tolist(),
            "means": model.means_.tolist(),
            "covariances": model.covariances_.tolist(),
            "weights_noise_sd": self._weight_noise(),
            "level_probabilities": {
                name: chances.tolist() for name, chances in model.level_probabilities_.items()
            },
        }

    def _weight_noise(self) -> float:
        """Standard deviation of the privacy noise of each weight; 0 for one component.

        By the last release of counts: the last release of moments but one.
        """
        moments = [
            release
            for release in self.model.releases_
            if release.is_of(ResidualMoments, LevelMoments)
        ]
        if self.model.n_components_ == 1 or len(moments) < 2:
            return 0.0
        return float(moments[-2].sd[0]) / moments[-2].n

    def _components(self, most: int | None = None) -> Table:
        """Each component's weight, and its mean ± standard deviation in the first columns."""
        model = self.model
        names = self.columns[:most]
        rows = []
        for k in np.argsort(-model.weights_):
            spread = np.sqrt(np.diag(model.covariances_[k]))
            cells = [
                self._likely_level(j, k) or format_with_error(mean, sd)
                for j, (mean, sd) in enumerate(zip(model.means_[k], spread, strict=True))
            ]
            rows.append([f"{100 * model.weights_[k]:.1f} %", *cells[: len(names)]])
        return Table(["share", *names], rows)

    def _likely_level(self, j: int, k: int) -> str:
        """The likeliest word of a component with its chance; nothing for a column of numbers."""
        bounds = self.model.releases_[0].bounds
        levels = bounds.x_kinds[j].levels
        name = bounds.x_names[j] if bounds.x_names else f"x{j}"
        if levels is None or name not in self.model.level_probabilities_:
            return ""
        chances = self.model.level_probabilities_[name][k]
        best = int(chances.argmax())
        return f"{printable(levels[best])} {100 * chances[best]:.0f} %"

    def summary(self, medium: Medium = SCREEN) -> list[Block]:
        """A table of the components."""
        return [Block([self._components(_SCREEN_COLUMNS)])]

    def sections(self) -> list[Section]:
        """One section: the components as ellipses, and their numbers."""
        title = self.title()
        caption = (
            "Each part as an ellipse that holds 86 % of it, drawn thicker where it "
            "has more records; its mean is a dot."
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
        numbers = zip(self.columns, mean, model.pooled_mean_, spread, pooled, strict=True)
        return [
            [name, *(f"{value:z,.{decimal_places(values[-1] / 10)}f}" for value in values)]
            for name, *values in numbers
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
            noise = percent(self._weight_noise())
            sentences.insert(0, f"Each share has a privacy noise of ± {noise}.")
        return Quality(self.about_quality, [Table(head, self._column_rows())], sentences)

    def remarks(self, medium: Medium) -> list[str]:
        """How the components are to be read."""
        found = self.model.n_components_
        wanted = self.model._params["n_components"]
        columns = len(self.columns)
        remarks = [
            "Each part: its share of the records, and in each column its mean ± "
            "the standard deviation of its records."
        ]
        if found < wanted:
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

    def notes(self, medium: Medium = SCREEN) -> list[str]:
        """Say so if the components are as wide as the ranges."""
        spread = np.sqrt(np.diagonal(self.model.covariances_, axis1=1, axis2=2).max(axis=0))
        low, high = np.array(self.bounds.x).T
        if not (spread > (high - low) / 2).all():
            return []
        return [
            f"the parts are as wide as the ranges: {medium.budget} is too small for so few records."
        ]
