"""Who is protected, and how much each record counts, as the command line says it.

--person patient_id          all records of one person together, found by a column
--contribution 5             up to so many records' weight of one person
--neighbours add-remove      the number of people is protected, too
--weight w=0:20              a column of weights, and its public upper bound
--records-per-person 5       where no column tells whose a record is: believed
"""

from collections.abc import Iterable, Sequence
from shlex import quote
from typing import Any

from reticent.cli.columns import column_name, parse_column, split_name
from reticent.cli.parsing.column_hints import similar_column
from reticent.codebook import Codebook
from reticent.errors import BadInput, BoundsMissing
from reticent.privacy.columns.numbers import Number
from reticent.privacy.people.unit import NEIGHBOURS, PrivacyUnit

__all__ = ["check_unit_columns", "parse_unit", "unit_words"]


def parse_unit(
    *,
    person: str | None = None,
    contribution: int = 1,
    neighbours: str = NEIGHBOURS[0],
    weight: str | None = None,
    records_per_person: int = 1,
    relation: str = "record",
    codebook: Codebook | None = None,
) -> PrivacyUnit:
    """The unit of privacy; where an option was left out, what the codebook says."""
    column = _person_name(person)
    if column is None and codebook is not None:
        column = codebook.person
    if neighbours not in NEIGHBOURS:
        raise BadInput(f"--neighbours is one of {', '.join(NEIGHBOURS)}, not {neighbours!r}.")
    if contribution != 1 and column is None:
        raise BadInput(
            "--contribution says how many records' weight one person may have, and needs --person, "
            "the column that says whose a record is."
        )
    if records_per_person != 1 and column is not None:
        raise BadInput(
            "--records-per-person is for tables without a column of people; with --person all "
            "records of a person are found, however many. Give one of them."
        )
    weight_column, bound = _weight(weight, codebook)
    return PrivacyUnit(
        relation=relation,
        records_per_person=records_per_person,
        person=column,
        contribution=contribution,
        neighbours=neighbours,
        weight=weight_column,
        weight_bound=bound,
    )


def _person_name(text: str | None) -> str | None:
    if text is None:
        return None
    name, value = split_name(text)
    if not name or value is not None:
        raise BadInput(
            f"--person takes the name of a column, for example --person patient_id, not {text!r}."
        )
    return name


def _weight(text: str | None, codebook: Codebook | None) -> tuple[str | None, float | None]:
    """Column of weights, and its public upper bound."""
    if text is None:
        if codebook is None:
            return None, None
        return codebook.weight, codebook.weight_bound
    name, value = split_name(text)
    if codebook is not None and value is None and name == codebook.weight:
        return codebook.weight, codebook.weight_bound
    if not name or value is None:
        raise BoundsMissing(
            f"--weight {text}: weights need a public upper bound, from the survey's description "
            "and not from the data, for example --weight w=0:20. A larger weight counts as it."
        )
    if value.strip().replace(".", "", 1).isdigit():
        raise BoundsMissing(
            f"--weight {text}: give the range of the weights, from 0 to a public bound: --weight "
            f"{column_name(name)}=0:{value.strip()}. A larger weight counts as the bound."
        )
    _, kind = parse_column(text, "--weight", codebook)
    if type(kind) is not Number:
        raise BadInput(f"--weight {text}: a weight is a number: --weight {column_name(name)}=0:20.")
    low, high = kind.range
    if low != 0:
        raise BoundsMissing(
            f"--weight {text}: a weight is at least 0, so the range begins there: did you mean "
            f"--weight {column_name(name)}=0:{high:g}? A larger weight counts as {high:g}."
        )
    return name, high


def check_unit_columns(
    unit: PrivacyUnit, names: Sequence[str], taken: Iterable[str], file: str
) -> None:
    """Refuse columns that the file does not have, or that have another role already."""
    used = set(taken)
    for option, name in (("--person", unit.person), ("--weight", unit.weight)):
        if name is None:
            continue
        if names and name not in names:
            meant = similar_column(name, names)
            hint = ""
            if meant is not None:
                hint = f" Did you mean {quote(column_name(meant))}?"
            raise BadInput(
                f"{option} {name}: there is no column {name!r} in {file}. Columns: "
                f"{', '.join(names)}.{hint}"
            )
        if name in used:
            raise BadInput(
                f"Column {name!r} is given with {option}, and as another column too: it can be one "
                "of them."
            )
        used.add(name)


def unit_words(unit: PrivacyUnit) -> list[str]:
    """The options that say this, for a command that is advised."""
    words: list[Any] = []
    if unit.records_per_person != 1:
        words.append(f"--records-per-person {unit.records_per_person}")
    if unit.person is not None:
        words.append(f"--person {quote(column_name(unit.person))}")
    if unit.contribution != 1:
        words.append(f"--contribution {unit.contribution}")
    if not unit.number_is_public:
        words.append(f"--neighbours {unit.neighbours}")
    if unit.weight is not None and unit.weight_bound is not None:
        words.append(f"--weight {quote(f'{column_name(unit.weight)}=0:{unit.weight_bound:g}')}")
    return words
