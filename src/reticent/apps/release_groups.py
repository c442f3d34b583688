"""Releases of a model in groups that are alike: twenty-two stages in one line."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from reticent.privacy.curator import Release

__all__ = ["Group", "groups"]


@dataclass(frozen=True)
class Group:
    """``times`` releases of one statistic, one after the other: their size, the law of their noise and its spread."""

    name: str
    times: int
    least_size: int
    size: int
    kind: str
    least_sd: float
    most_sd: float
    about: str

    @property
    def title(self) -> str:
        """What was released, and how often."""
        return (
            f"{self.name}{f', {self.times} times' if self.times > 1 else ''}{f': {self.about}' if self.about else ''}"
        )

    @property
    def numbers(self) -> str:
        """How many numbers that is."""
        sizes = f"{self.size:,}" if self.least_size == self.size else f"{self.least_size:,} – {self.size:,}"
        return f"{self.times} × {sizes}" if self.times > 1 else sizes


def groups(releases: Sequence[Release]) -> list[Group]:
    """Put neighbouring releases together that differ in their numbers only."""
    found = []
    for (name, kind, _), alike in groupby(releases, key=_kind):
        same = list(alike)
        sizes = [len(one.value) for one in same]
        least, most = min(float(one.sd.min()) for one in same), max(float(one.sd.max()) for one in same)
        found.append(Group(name, len(same), min(sizes), max(sizes), kind, least, most, _about(same[0].statistic)))
    return found


def _kind(release: Release) -> tuple[str, str, int]:
    own_size = "table" in release.statistic  # designed anew each time
    law = "exponential" if "candidates" in release.statistic and "of" in release.statistic else release.event.kind
    return release.statistic["name"], law, 0 if own_size else len(release.value)


def _about(statistic: dict[str, Any]) -> str:
    """What a statistic is of, where its parameters say so."""
    if "head" in statistic:
        outputs, functions = len(statistic["weights"]), len(statistic["head"]["energy"])
        residuals = "the residual" if outputs == 1 else f"{outputs} residuals"
        return f"products of {functions} features and {residuals}, each stage about what the last one left over"
    if "table" in statistic:
        design = statistic["design"].partition(", within")[0]
        return f"labels times public columns, one for each input ({design}), and the inputs themselves"
    if "of" in statistic and "candidates" in statistic:
        return f"the number of one of {statistic['candidates']} kernels, by the exponential mechanism (its scale, not an sd)"
    if "grid" in statistic:
        what = "count" if statistic["kind"] == "counts" else "count and sum of outputs"
        return f"{what} of the records in each bin, empty ones too"
    if "bins" in statistic and "inputs" in statistic:
        return f"how many records fall into each of {statistic['bins']} bins of each input"
    if statistic["name"] == "InputMoments":
        return "sums of each input and of its square, for its mean and spread"
    return ""
