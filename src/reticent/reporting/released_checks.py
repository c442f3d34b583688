"""Free checks: what a model's releases tell about how its records were read.

They cost nothing, since they are computed from what was released anyway.
"""

from math import hypot
from typing import TYPE_CHECKING, Any

import numpy as np

from reticent.privacy.row_maps.input_marginals import InputCounts
from reticent.reporting.columns import input_columns
from reticent.reporting.formatting import printable
from reticent.reporting.protected_unit import counted_noun, unit_noun, units_sd
from reticent.reporting.registry import unwrap_search
from reticent.reporting.released_counts import ReleasedCounts, released_counts

if TYPE_CHECKING:
    from reticent.models.base import PrivateEstimator

__all__ = ["complete_number", "complete_share", "notes"]

_CLEAR = 3.0  # standard deviations of the noise: what is said must be clear
_FEW_COMPLETE = 0.2  # share of the records: below it nothing else matters
_NEARLY_ALL_COMPLETE = 0.98  # share of the records: above it nothing is said
_NEARLY_ALL_IN_ONE = 0.97  # of the records in one bin
_NEARLY_ALL_ONE_WORD = 0.995
_FEW_PEOPLE = 20  # of which a release says next to nothing, whatever the budget
_LEAST_BINS = 4  # of numbers, for one bin to say something
_MOST_NAMED = 5  # columns
_CHECK_LABELS = "Compare the spelling and capitals of the classes with the file, too."
_WORTHLESS = (
    ": the others lack a value, or it was not understood. The answer is worthless until ranges, "
    "units, levels, decimal signs and missing codes agree with the file."
)
_CHECK = "Compare ranges, units, levels, decimal signs and missing codes with the file."


def notes(model: "PrivateEstimator") -> list[str]:
    """Give what looks wrong about how records were read, by the releases alone.

    A column of people in which there are hardly any; how many records are complete, where that is
    clearly not all of them; and columns of which nearly all records lie in one bin.
    """
    found = unwrap_search(model)
    if not hasattr(found, "releases_"):
        return []
    return [*_few_people(found), *_incomplete(found), *_one_bin(found)]


def _few_people(model: "PrivateEstimator") -> list[str]:
    """Say so if a column of people has one value, or a few; their number is public."""
    first = model.releases_[0]
    if first.unit.person is None or not first.unit.number_is_public or first.n > _FEW_PEOPLE:
        return []
    if first.n > 1:
        return [
            f"there are only {first.n} people in {printable(first.unit.person)!r}. Is it the "
            "column that says whose a record is? A column of groups, such as wards, protects "
            "groups, and leaves nothing but noise."
        ]
    return [
        f"all records are of one person in {printable(first.unit.person)!r}, so that the results "
        "are noise alone. Is it the column that says whose a record is?"
    ]


def complete_share(model: "PrivateEstimator") -> tuple[float, float] | None:
    """Give the share of the records that lack no value, and the sd of its noise.

    None where releases do not tell. The model's own estimate (``n_complete_``), or from counts.
    With people as the unit, shares are of people, each of whose records counts a part; where
    records count by weights, nobody knows what all of them would add up to.
    """
    if not _adds_up_to_n(model):
        return None
    found = _complete(model)
    if found is None:
        return None
    share, sd = found
    return share, _with_noise_of_n(model, share, sd)


def _adds_up_to_n(model: "PrivateEstimator") -> bool:
    """Whether the weights of all records add up to n if none lacks a value."""
    return counted_noun(model.releases_[0].unit) != "weight"


def _with_noise_of_n(model: "PrivateEstimator", share: float, sd: float) -> float:
    """Standard deviation of a share of n, where n itself may be noisy."""
    n = model.releases_[0].n
    return hypot(sd, share * units_sd(model.releases_) / n)


def _complete(model: "PrivateEstimator") -> tuple[float, float] | None:
    """Share of complete records, and the sd of its noise as if n were exact."""
    n = model.releases_[0].n
    estimate = getattr(model, "n_complete_", getattr(model, "count_", None))
    if estimate is not None:
        number = float(getattr(estimate, "mean", estimate))
        sd_by_name = getattr(model, "n_complete_sd_", getattr(model, "count_sd_", 0.0))
        sd = float(getattr(estimate, "sd", sd_by_name))
        return min(number / n, 1.0), sd / n
    counted = [release for release in model.releases_ if release.is_of(InputCounts)]
    if not counted:
        return None
    columns = len(input_columns(model))  # every column counts all complete records
    sizes = len(counted[0].value)
    number = float(np.mean([one.value.sum() for one in counted])) / columns
    sd = float(counted[0].sd[0]) * (sizes / len(counted)) ** 0.5 / columns
    return min(max(number / n, 0.0), 1.0), sd / n


def complete_number(model: "PrivateEstimator") -> float:
    """Give the number of complete records; all of them where no clear difference is told.

    In people where they are the unit, in weights where records have such.
    """
    n = model.releases_[0].n
    found = _complete(model)
    if found is None:
        return float(n)
    share, sd = found
    if _adds_up_to_n(model) and share + _CLEAR * sd >= 1:
        return float(n)
    return max(share * n, 1.0)


def _incomplete(model: "PrivateEstimator") -> list[str]:
    found = complete_share(model)
    if found is None:
        return _incomplete_columns(model)
    share, sd = found
    if not _clearly_less(share, sd):
        return []
    if share < _FEW_COMPLETE:
        hint = ""
        if hasattr(model, "classes_"):
            hint = f" {_CHECK_LABELS}"
        return [f"Only about {_about(share, sd)} of {_all(model)} were read{_WORTHLESS}{hint}"]
    check = _CHECK
    if hasattr(model, "classes_"):
        check = f"{_CHECK} {_CHECK_LABELS}"
    return [
        f"about {_about(share, sd)} of {_all(model)} have all the values that the model needs; the "
        f"others were left out. Was everything read? {check}"
    ]


def _all(model: "PrivateEstimator") -> str:
    """What shares are of."""
    if unit_noun(model.releases_[0].unit) == "people":
        return "the records, each person counting once,"
    return "the records"


def _about(share: float, sd: float) -> str:
    """A share with its privacy noise: "62 % (± 3 %)"; without it where it would be ± 0 %."""
    shown = f"{100 * max(share, 0.0):.0f} %"
    if sd < 0.005:
        return shown
    return f"{shown} (± {100 * sd:.0f} %)"


def _clearly_less(share: float, sd: float) -> bool:
    return share < _NEARLY_ALL_COMPLETE and share + _CLEAR * sd < 1


def _incomplete_columns(model: "PrivateEstimator") -> list[str]:
    """The same by column, for means, histograms and tables, where each is on its own."""
    if not _adds_up_to_n(model):
        return []
    n = model.releases_[0].n
    shares = []
    for counted in released_counts(model):
        sd = counted.sd * len(counted.counts) ** 0.5
        shares.append((counted.column.title, counted.total / n, sd / n))
    if not shares and hasattr(model, "mean_") and hasattr(model, "counts_"):
        for column, count in zip(input_columns(model), model.counts_, strict=True):
            shares.append((column.title, float(count) / n, float(model.counts_sd_) / n))
    shares += _table_shares(model)
    shares = [(name, share, _with_noise_of_n(model, share, sd)) for name, share, sd in shares]
    few = [one for one in shares if one[1] < _FEW_COMPLETE and _clearly_less(*one[1:])]
    if few:
        name, share, sd = min(few, key=lambda one: one[1])
        return [f"Only about {_about(share, sd)} of the values of {name} were read{_WORTHLESS}"]
    lacking = [
        f"about {_about(share, sd)} of {_all(model)} have a value of {name}"
        for name, share, sd in shares
        if _clearly_less(share, sd)
    ]
    if not lacking:
        return []
    more = len(lacking) - _MOST_NAMED
    if more > 0:
        lacking = [*lacking[:_MOST_NAMED], f"and {more} more columns lack values"]
    return [f"{'; '.join(lacking)}; the others were left out. Was everything read? {_CHECK}"]


def _table_shares(model: "PrivateEstimator") -> list[tuple[str, float, float]]:
    """Of a table by group: the shares of the records that have all keys, and each value."""
    cells: Any = getattr(model, "cells_", None)
    if not isinstance(getattr(cells, "present", None), dict):
        return []
    n = model.releases_[0].n
    titles = {column.name: column.title for column in input_columns(model)}
    root = cells.counts.size**0.5
    shares = []
    if model.keys_:
        keys = " and ".join(titles.get(printable(key), printable(key)) for key in model.keys_)
        shares.append((keys, float(cells.counts.sum()) / n, cells.counts_sd * root / n))
    for name, present in cells.present.items():
        title = titles.get(printable(name), printable(name))
        if model.keys_:
            title = f"{title} and all keys"
        shares.append((title, float(present.sum()) / n, cells.present_sd * root / n))
    return shares


def _one_bin(model: "PrivateEstimator") -> list[str]:
    found = []
    for counted in released_counts(model):
        place = _crowded_bin(counted)
        if place is not None:
            found.append(_one_bin_sentence(counted, place))
    return found[:_MOST_NAMED]


def _crowded_bin(counted: ReleasedCounts) -> int | None:
    """The bin that clearly holds nearly all records, if there is one."""
    enough = _NEARLY_ALL_IN_ONE
    if counted.by_value:
        enough = _NEARLY_ALL_ONE_WORD
    elif len(counted.counts) < _LEAST_BINS:
        return None
    place = int(counted.counts.argmax())
    noise = counted.sd * len(counted.counts) ** 0.5
    if counted.total < 2 * _CLEAR * noise:  # hardly anything was counted
        return None
    others = counted.total - float(counted.counts[place])
    if others + _CLEAR * noise > 2 * (1 - enough) * counted.total:
        return None
    if others > (1 - enough) * counted.total:
        return None
    return place


def _one_bin_sentence(counted: ReleasedCounts, place: int) -> str:
    column = counted.column
    where = counted.names()[place].replace(" – ", " to ")
    if counted.by_value:
        said = f"nearly all records have {column.title} = {where}"
    else:
        said = f"nearly all of {column.title} lies in one bin, {where}"
    return f"{said}: was the column read as it should be? {_CHECK}"
