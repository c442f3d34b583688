"""``reticent check``: how a file is read, shown on the screen to whoever holds the records."""

import sys
from collections.abc import Sequence
from typing import Any

from reticent.cli.columns import DataOptions
from reticent.cli.data_names import data_name
from reticent.cli.encoding import spelled
from reticent.cli.parsing.column_hints import check_codebook, check_columns
from reticent.cli.parsing.unit_options import check_unit_columns, parse_unit
from reticent.cli.terminal import aside, console, indented, line, table
from reticent.data_check import ColumnCheck, FileCheck, PersonCheck, WeightCheck, check_file
from reticent.errors import BadFile, BadInput
from reticent.privacy.columns.base import Kind
from reticent.privacy.sources.base import Field
from reticent.reporting.formatting import format_short, printable, quoted_word

__all__ = ["look", "print_check"]

_LONGEST = 40  # signs of a word that is shown
_LOW_WEIGHT = 0.2  # of the bound on average: most of the noise is for weights that hardly occur
_LONGEST_KIND = 72  # signs of what a column is read as


def look(
    data: str, *, person: str | None = None, weight: str | None = None, **asked: Any
) -> FileCheck:
    """Read the file as the options say, and count. Writes nothing."""
    said = DataOptions.read(**asked)
    unit = parse_unit(person=person, weight=weight, codebook=said.codebook)
    columns = said.described(unit)
    if not columns and not unit.weighted:
        raise BadInput(
            "Say what the columns are, with --codebook FILE (reticent codebook writes one to fill "
            "in), or with --x age=0:110 --x sex=F,M --y weight=2:150."
        )
    source = said.scan(data, unit)
    names = source.names or ()
    for option, texts in (("--x", said.x), ("--y", said.y), ("--classes", said.classes)):
        check_columns(option, texts, names, data_name(data))
    check_codebook(said.codebook, columns, names, data_name(data))
    check_unit_columns(unit, names, (), data_name(data))
    weights = None
    if unit.weight is not None and unit.weight_bound is not None:
        weights = unit.weight, unit.weight_bound
    try:
        source.check([Field(name, kind) for name, (_, kind) in columns.items()])
        return check_file(source, columns, person=unit.person, weight=weights)
    except BadInput as error:
        raise BadFile(f"{data_name(data, whole=True)}: {error}") from None


def print_check(found: FileCheck, data: str) -> None:
    """Show it to a person."""
    from rich.text import Text

    screen = console()
    seal = Text(" NOT FOR RELEASE ", "bold white on red3")
    about = "exact counts of the records, for the eyes of whoever holds them"
    screen.print(Text.assemble(seal, f" {about}\n"))
    line("File", f"{data_name(data, whole=True)}, {found.records:,} records")
    if found.columns:
        share = f" ({found.complete / found.records:.0%})" if found.records else ""
        line("Complete", f"{found.complete:,}{share} lack none of these columns")
        screen.print()
        rows = [_row(column) for column in found.columns]
        headings = ("column", "read as", "empty", "coded", "unreadable", "outside", "in a tenth")
        screen.print(indented(table(*headings, left=2, rows=rows)))
    for column in found.columns:
        _print_column(screen, column)
    _print_file(screen, found)
    screen.print(Text.assemble("\n", seal, " Nothing was charged, nothing was written."))
    if not sys.stdout.isatty():
        print(
            "Standard output is not a screen here: whoever reads it reads private counts.",
            file=sys.stderr,
        )


def _row(column: ColumnCheck) -> tuple[str, ...]:
    tenth = "" if column.tenth is None else f"{column.tenth:.0%}"
    return (
        _short(column.name),
        _short(f"{column.kind.name} {_described(column.kind)}", _LONGEST_KIND),
        f"{column.empty:,}",
        f"{column.coded:,}",
        f"{column.unreadable:,}",
        "" if column.kind.levels is not None else f"{column.outside:,}",
        tenth,
    )


def _described(kind: Kind) -> str:
    """What can stand in a column, with blanks between words, where lines may break."""
    if kind.levels is None:
        return kind.describe()
    between = ", "
    if kind.ordered:
        between = " < "
    levels = list(kind.levels)
    if kind.keep_missing:
        levels.pop()
    return between.join(quoted_word(level, between.strip()) for level in levels)


def _print_column(screen: Any, column: ColumnCheck) -> None:
    if not (column.unknown or column.hints):
        return
    screen.print()
    screen.print(indented(spelled(printable(column.name))))
    if column.unknown:
        what = "not read"
        if column.kind.levels is not None:
            what = "not listed"
        screen.print(indented(spelled(f"{what}: {_counted(column.unknown)}"), 4))
    for hint in column.hints:
        screen.print(indented(spelled(printable(hint)), 4))


def _counted(words: Sequence[tuple[str, int]]) -> str:
    return ", ".join(f"{_short(word)!r} {count:,} times" for word, count in words)


def _print_file(screen: Any, found: FileCheck) -> None:
    screen.print()
    for hint in found.hints:
        line("Lines", hint)
    if found.person is not None:
        _print_people(found.person)
    if found.weight is not None:
        _print_weights(found.weight, found.records)
    if found.not_used:
        some = ", ".join(map(_short, found.not_used[:10]))
        more = f" and {len(found.not_used) - 10} more" if len(found.not_used) > 10 else ""
        line("Not used", f"{some}{more}")


def _print_people(person: PersonCheck) -> None:
    line(
        "People",
        f"{person.people:,} in {_short(person.column)}; records of a person: median "
        f"{person.median:g}, largest {person.most:,}; {person.several:,} have more than one",
    )
    if person.most > 1:
        aside(
            "To protect a person with all of their records, fit with --person "
            f'{_short(person.column)}, or with a codebook that says use = "person" of it.'
        )
    if person.without:
        aside(f"{person.without:,} records name nobody, and would not count.")
    if person.alike:
        some = ", ".join(f"{_short(one)!r} and {_short(other)!r}" for one, other in person.alike)
        aside(
            f"{person.alike_count:,} identifiers differ from another in blanks, capitals or "
            f"leading zeros alone, and count as different people: {some}. If they are the same "
            "people, write them in one way before a fit."
        )
    for hint in person.hints:
        stop = "" if hint.endswith("?") else "."
        aside(printable(f"{hint[0].upper()}{hint[1:]}{stop}"))


def _print_weights(weight: WeightCheck, records: int) -> None:
    counted = records - weight.missing - weight.negative - weight.zero
    line(
        "Weights",
        f"{_short(weight.column)}: {counted:,} of {records:,} records count; largest "
        f"{format_short(weight.largest)}, {weight.above:,} above the bound {weight.bound:g}",
    )
    if weight.missing or weight.negative:
        aside(
            f"{weight.missing:,} are missing or no number, {weight.negative:,} are negative: these "
            "records would not count."
        )
    if weight.above:
        aside(f"A weight above {weight.bound:g} counts as {weight.bound:g}.")
    if counted and weight.total < _LOW_WEIGHT * weight.bound * counted:
        aside(
            f"On average a record has {weight.total / counted / weight.bound:.0%} of the bound: "
            "noise is that of a full weight. A bound nearer to usual weights would cost less, if "
            "the survey's description, and not this file, says what is usual."
        )


def _short(text: str, most: int = _LONGEST) -> str:
    plain = printable(text)
    if len(plain) <= most:
        return plain
    return plain[: most - 1] + "…"
