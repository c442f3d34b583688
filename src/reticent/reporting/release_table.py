"""Table of a model's releases, alike ones together: twenty-two stages in one line."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from reticent.privacy.curator import Release
from reticent.privacy.release import NUMBER

__all__ = ["ReleaseGroup", "release_groups"]


@dataclass(frozen=True)
class ReleaseGroup:
    """``count`` releases of one statistic, one after the other.

    ``least_size`` to ``most_size`` numbers each, with noise of one ``kind`` whose standard
    deviation goes from ``least_sd`` to ``most_sd``. ``about``: what the statistic is of.
    """

    name: str
    count: int
    least_size: int
    most_size: int
    kind: str
    least_sd: float
    most_sd: float
    about: str

    @property
    def short(self) -> str:
        """The name of the statistic; in words where it is none of a model's."""
        if self.name == NUMBER:
            return self.about
        return self.name

    @property
    def title(self) -> str:
        """What was released, and how often."""
        title = self.short
        if self.count > 1:
            title = f"{title}, {self.count} times"
        if self.about and self.about != title:
            title = f"{title}: {self.about}"
        return title

    @property
    def numbers(self) -> str:
        """How many numbers that is."""
        sizes = f"{self.most_size:,}"
        if self.least_size < self.most_size:
            sizes = f"{self.least_size:,} – {sizes}"
        if self.count > 1:
            return f"{self.count} × {sizes}"
        return sizes


def release_groups(releases: Sequence[Release]) -> list[ReleaseGroup]:
    """Put neighbouring releases together that differ in their numbers only."""
    found = []
    for (name, kind, _), neighbours in groupby(releases, key=_kind):
        alike = list(neighbours)
        sizes = [len(release.value) for release in alike]
        found.append(
            ReleaseGroup(
                name,
                len(alike),
                min(sizes),
                max(sizes),
                kind,
                min(float(release.sd.min()) for release in alike),
                max(float(release.sd.max()) for release in alike),
                _about(alike[0].statistic),
            )
        )
    return found


def _kind(release: Release) -> tuple[str, str, int]:
    """Name of the statistic, kind of noise, and size where that says what a release is."""
    statistic = release.statistic
    noise = release.event.kind
    if "candidates" in statistic and "of" in statistic:
        noise = "exponential"
    size = len(release.value)
    if "table" in statistic:  # designed anew each time
        size = 0
    return statistic["name"], noise, size


def _about(statistic: dict[str, Any]) -> str:
    """What a statistic is of, where its parameters say so."""
    if statistic["name"] == NUMBER:
        return {"person": "number of people"}.get(statistic["unit"], "number of records")
    if "head" in statistic:
        outputs = len(statistic["weights"])
        functions = len(statistic["head"]["energy"])
        residuals = f"{outputs} residuals"
        sizes = "their sizes"
        if outputs == 1:
            residuals = "the residual"
            sizes = "its size"
        if "size_reach" in statistic:
            residuals += f" with {sizes}"
        return (
            f"products of {functions} features and {residuals}, each stage "
            "about what the last one left over"
        )
    if "table" in statistic:
        design = statistic["design"].partition(", within")[0]
        return (
            f"labels times public columns, one for each input ({design}), and the inputs themselves"
        )
    if "of" in statistic and "candidates" in statistic:
        return (
            f"the number of one of {statistic['candidates']} kernels, by the exponential mechanism "
            "(its scale, not an sd)"
        )
    if "grid" in statistic:
        summed = "count and sum of outputs"
        if statistic["kind"] == "counts":
            summed = "count"
        return f"{summed} of the records in each bin, empty ones too"
    if "bins" in statistic and "inputs" in statistic:
        return f"how many records fall into each of {statistic['bins']} bins of each input"
    if statistic["name"] == "InputMoments":
        return "sums of each input and of its square, for its mean and spread"
    return ""
