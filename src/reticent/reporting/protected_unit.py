"""Who is protected, and what is counted, in words: records, people, or their weights."""

from collections.abc import Sequence
from math import floor, hypot, log10
from typing import TYPE_CHECKING, Any

from reticent.about import checked_about
from reticent.privacy.release import NUMBER
from reticent.reporting.formatting import format_short, printable

if TYPE_CHECKING:
    from reticent.models.base import PrivateEstimator
    from reticent.privacy.accounting.guarantee import Guarantee
    from reticent.privacy.people.unit import PrivacyUnit
    from reticent.privacy.release import Release

__all__ = [
    "assumed_unit",
    "counted_noun",
    "mechanisms",
    "number_and_noun",
    "protected_words",
    "short_protected",
    "strength_warning",
    "unit_noun",
    "units_sd",
    "weighting_words",
]

_WEAK_EPSILON = 10.0  # above it a promise says next to nothing (NIST SP 800-226; choosing.md)


def unit_noun(unit: "PrivacyUnit") -> str:
    """What the public or released number n is a number of: "records" or "people"."""
    if unit.person is not None:
        return "people"
    return "records"


def counted_noun(unit: "PrivacyUnit") -> str:
    """What counts are of: "records", "people", or "weight" where records count by parts."""
    if unit.weight is not None or unit.contribution > 1:
        return "weight"
    return unit_noun(unit)


def units_sd(releases: "Sequence[Release]") -> float:
    """Standard deviation of the noise in n: 0 where it is public.

    Of a search, n is the sum of the numbers of both halves.
    """
    found = [release for release in releases if release.statistic.get("name") == NUMBER]
    return hypot(*(float(release.sd[0]) for release in found))


def number_and_noun(releases: "Sequence[Release]") -> str:
    """How many there are: "12,344 people", or "about 12,300 people" where that is protected."""
    first = releases[0]
    noun = unit_noun(first.unit)
    if first.unit.number_is_public:
        if first.n == 1:
            noun = {"people": "person", "records": "record"}[noun]
        return f"{first.n:,} {noun}"
    return f"about {_rounded(releases)} {noun}"


def _rounded(releases: "Sequence[Release]") -> str:
    """The released number, to the digit where its noise begins."""
    step = 10 ** floor(log10(max(units_sd(releases), 1.0)))
    return f"{round(releases[0].n / step) * step:,}"


def protected_words(guarantee: "Guarantee", releases: "Sequence[Release]") -> str:
    """Who is protected in this table: "any one of the 12,344 people in patient_id, …"."""
    if guarantee.unit.number_is_public:
        return printable(guarantee.who)
    whose = f"any one of the {unit_noun(guarantee.unit)}"
    if guarantee.person is not None:
        whose = f"{whose} in {printable(guarantee.person)!r}, with all of their records"
    elif guarantee.records_per_person > 1:
        whose = f"any one person with up to {guarantee.records_per_person} records"
    return f"{whose}; their number is protected too: about {_rounded(releases)}"


def short_protected(guarantee: "Guarantee") -> str:
    """Who is protected, without numbers of people: "one person with all of their records"."""
    if guarantee.person is not None:
        if guarantee.relation == "label":
            return "the labels of all records of one person"
        return "one person with all of their records"
    k = guarantee.records_per_person
    if guarantee.relation == "label":
        if k > 1:
            return f"up to {k} labels of one person"
        return "the label of one record"
    if k > 1:
        return f"one person with up to {k} records"
    return "one record"


def weighting_words(unit: "PrivacyUnit") -> list[str]:
    """How much each record counts, where that is not one."""
    words = []
    if unit.person is not None:
        column = printable(unit.person)
        c = unit.contribution
        if c == 1:
            words.append(
                f"Each person in {column!r} counts once: a record of somebody who has k of them "
                "counts 1/k. Means and rates are of people, each with the mean of their own "
                "records: one yes in five records is a fifth of a yes."
            )
        else:
            words.append(
                f"A person in {column!r} counts as up to {c} records: with k records, each counts "
                f"1/{c}, or 1/k if k is above {c}."
            )
        words.append(_counts_of_people(unit))
        words.append("A record without an identifier does not count.")
    if unit.weight is not None and unit.weight_bound is not None:
        bound = format_short(unit.weight_bound)
        words.append(
            f"Records count by the weights in {printable(unit.weight)!r}, divided by their public "
            f"bound: a weight of {bound} or more counts as one, and one that is missing or "
            "negative does not count."
        )
        words.append(_counts_of_weights(unit, unit.weight_bound))
    return words


def _counts_of_weights(unit: "PrivacyUnit", bound: float) -> str:
    """What a count is in the unit of the weights."""
    if unit.person is None:
        return f"A count times {format_short(bound)} is a sum of weights."
    c = unit.contribution
    if c == 1:
        return f"A count times {format_short(bound)} is a sum of people's mean weights."
    return (
        f"A count times {format_short(c * bound)} is a sum of weights, in which people with more "
        f"than {c} records have {c} times their mean weight."
    )


def _counts_of_people(unit: "PrivacyUnit") -> str:
    """What a count is a number of, where all records of a person are protected together."""
    c = unit.contribution
    if c > 1 and unit.weight is None:
        return f"A weight of one in a count stands for {c} records of one person."
    if unit.weight is not None:
        return "A person with records in several groups counts in parts."
    return "Counts are numbers of people; one with records in several groups counts in parts."


def assumed_unit(guarantee: "Guarantee", model: "PrivateEstimator") -> list[str]:
    """What is assumed about people and their records, and who confirmed it."""
    if guarantee.person is not None:
        column = printable(guarantee.person)
        assumed = [
            f"Equal values in {column!r} are one person, and one person has one value: to "
            "somebody who has two, only twice the ε is promised.",
        ]
    else:
        most = "one record"
        if guarantee.records_per_person > 1:
            most = f"{guarantee.records_per_person} records"
        assumed = [
            f"No person has more than {most} in the data. This is believed: no column of people "
            "was named, and nothing checked it.",
        ]
    confirmed = checked_about(model._params.get("about")).get("confirmed_by")
    if confirmed is None:
        return [*assumed, "Nobody has put a name to these assumptions (confirmed_by)."]
    return [*assumed, f"Confirmed by {printable(confirmed)}."]


def mechanisms(guarantee: "Guarantee") -> list[str]:
    """The noise parameters of what was done to the records, as they were set.

    NIST SP 800-226 asks for these beside (ε, δ), which are computed from them.
    """
    return [_mechanism(event.to_dict()) for event in guarantee.events]


def _mechanism(event: "dict[str, Any]") -> str:
    names = {"gaussian": "Gaussian mechanism", "laplace": "Laplace mechanism"}
    kind = str(event["kind"])
    name = names.get(kind, f"{kind} mechanism")
    values = [
        f"{key.replace('_', ' ')} {format_short(value, 6)}"
        for key, value in event.items()
        if key not in ("kind", "count") and type(value) in (int, float)
    ]
    count = int(event.get("count", 1))
    if count > 1:
        name = f"{count} × {name}"
    return f"{name}, {', '.join(values)}"


def strength_warning(guarantee: "Guarantee") -> str:
    """A plain warning where ε is so large that it promises next to nothing; else nothing."""
    if not guarantee.private or guarantee.epsilon <= _WEAK_EPSILON * (1 + 1e-9):
        return ""
    return (
        f"ε is above {_WEAK_EPSILON:g}: on paper this is differential privacy, in practice it "
        "promises next to nothing. Do not call it anonymous; take a smaller ε, or more records."
    )
