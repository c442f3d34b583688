"""How a file is read, cell by cell: for the eyes of whoever holds the records.

What is counted here is exact and NOT private. It is for looking, before a fit, whether the columns
are what was said of them: nothing of it is released, stored or used by a fit, and no fit imports
this module (tests/test_layout.py).
"""

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from reticent.errors import BadInput
from reticent.privacy.columns.base import Kind, plain_text
from reticent.privacy.columns.dates import Date
from reticent.privacy.columns.identifiers import Identifier
from reticent.privacy.columns.numbers import Cyclic, Number, Whole
from reticent.privacy.columns.words import YesNo
from reticent.privacy.sources.base import Source
from reticent.privacy.sources.cell_values import text_number
from reticent.privacy.sources.codes import code_text
from reticent.privacy.sources.csv import CsvSource
from reticent.privacy.sources.csv_dialect import Dialect
from reticent.privacy.sources.csv_lines import cut, read_header, split
from reticent.privacy.sources.files import open_file, open_text, readable
from reticent.privacy.sources.parquet import ParquetSource

__all__ = ["ColumnCheck", "FileCheck", "PersonCheck", "WeightCheck", "check_file"]

_KEPT = 100_000  # different cells of a column that are remembered
_SHOWN = 6  # unknown words of a column
_BLOCK_BYTES = 2**20
_BATCH_ROWS = 4096
_TENTHS = 10
_TAIL = 0.9  # of the values in one tenth of the range: a long tail
_OFTEN = 5  # times that a code occurs
_FEW_PEOPLE = 20  # with many records each: rather groups, such as wards, than people
_MANY_RECORDS = 50  # of a person on average, where there are few people
_NOT_THERE = frozenset(
    b"na nan n/a n.a. #n/a null none nil missing unknown . - -- ? <na> nd".split()
)
_CODES = frozenset(
    sign * value for sign in (1, -1) for value in (99, 999, 9999, 99999, 98, 998, 9998, 888, 777)
) | {-1, -2, -7, -8, -9}
_YES_WORDS = frozenset(("yes", "y", "ja", "j", "oui", "si", "sí", "sim", "da", "tak", "true", "1"))
_ISO = re.compile(rb"\d{4}-\d{2}-\d{2}([T ].*)?")
_POINTED = re.compile(rb"(\d{1,2})\.(\d{1,2})\.(\d{4})")
_SLASHED = re.compile(rb"(\d{1,2})/(\d{1,2})/(\d{4})")
_DECIMAL_COMMA = re.compile(rb"[-+]?\d+,\d+")
_THOUSANDS = re.compile(rb"[-+]?\d{1,3}([,' ]\d{3})+(\.\d+)?")
_WITH_UNIT = re.compile(rb"[<>~]?\s*[-+]?\d+([.,]\d+)?\s*[^\d\s.,:/-][^\d]*")
_SOME = 0.5  # of the unreadable cells look like something: worth a hint


@dataclass
class ColumnCheck:
    """What stands in one column. Counts of cells, exact: NOT FOR RELEASE.

    ``tenth``: the largest share of the values that lies in one tenth of the range, None where
    there is no range. ``unknown``: what could not be read, most frequent first.
    """

    name: str
    kind: Kind
    role: str
    cells: int = 0
    empty: int = 0
    coded: int = 0
    unreadable: int = 0
    outside: int = 0
    tenth: float | None = None
    unknown: list[tuple[str, int]] = field(default_factory=list)
    levels: dict[str, int] = field(default_factory=dict)
    hints: list[str] = field(default_factory=list)

    @property
    def missing(self) -> int:
        """Cells that a fit takes for missing."""
        return self.empty + self.coded + self.unreadable


@dataclass(frozen=True)
class PersonCheck:
    """How many records people have. NOT FOR RELEASE."""

    column: str
    people: int
    median: float  # records of a person
    most: int
    several: int  # people with more than one record
    without: int  # records that name nobody
    alike: list[tuple[str, str]] = field(default_factory=list)  # identifiers spelled in two ways
    alike_count: int = 0  # of people whose identifier differs from another's in its spelling alone
    hints: list[str] = field(default_factory=list)


@dataclass
class WeightCheck:
    """What stands in a column of weights. NOT FOR RELEASE."""

    column: str
    bound: float
    above: int = 0  # the bound: count as the bound
    negative: int = 0  # count as 0
    missing: int = 0  # or not a number: count as 0
    zero: int = 0
    largest: float = 0.0
    total: float = 0.0  # of weights within 0 and the bound

    def add(self, value: float) -> None:
        """Count one weight; NaN for one that is missing or no number."""
        if math.isnan(value):
            self.missing += 1
            return
        self.negative += value < 0
        self.zero += value == 0
        self.above += value > self.bound
        self.largest = max(self.largest, value)
        self.total += min(max(value, 0.0), self.bound)


@dataclass
class FileCheck:
    """How a file is read. NOT FOR RELEASE."""

    records: int = 0
    complete: int = 0  # records that lack none of the values
    wrong_width: int = 0  # lines with too many or too few fields
    open_quotes: int = 0  # lines where a quote does not close
    not_utf8: int = 0  # cells
    utf8: int = 0  # cells with letters beyond ASCII
    columns: list[ColumnCheck] = field(default_factory=list)
    person: PersonCheck | None = None
    weight: WeightCheck | None = None
    not_used: list[str] = field(default_factory=list)
    hints: list[str] = field(default_factory=list)


def check_file(
    source: Source,
    columns: Mapping[str, tuple[str, Kind]],
    *,
    person: str | None = None,
    weight: tuple[str, float] | None = None,
) -> FileCheck:
    """Count how the cells of each column are read.

    ``columns``: role and kind of each, by name; ``person``: a column that says whose a record is;
    ``weight``: a column that says how much it counts, and its bound.
    """
    names = source.names or ()
    found = FileCheck()
    tallies = [_Tally(name, role, kind) for name, (role, kind) in columns.items()]
    places = [source.position(name) for name in columns]
    people = None
    if person is not None:
        people = _People(person, source.position(person), source.nobody)
    weighed = None
    no_weights = [text_number(code.encode()) for code in source.weightless]
    if weight is not None:
        weighed = source.position(weight[0])
        found.weight = WeightCheck(*weight)
    dialect = source.dialect if isinstance(source, CsvSource) else Dialect()
    for tally in tallies:
        tally.dialect = dialect
    for cells in _records(source, found):
        found.records += 1
        if cells is None:
            for tally in tallies:
                tally.add_broken()
            if people is not None:
                people.add(None)
            if found.weight is not None:
                found.weight.add(math.nan)
            continue
        known = [tally.add(cells[place]) for tally, place in zip(tallies, places, strict=True)]
        found.complete += all(known)
        for place in places:
            _note_encoding(cells[place], found)
        if people is not None:
            people.add(cells[people.position])
        if found.weight is not None and weighed is not None:
            stated = _plain_number(cells[weighed], dialect)
            found.weight.add(math.nan if stated in no_weights else stated)
    found.columns = [tally.done(dialect) for tally in tallies]
    apart = {person, None if weight is None else weight[0]}
    found.not_used = [name for name in names if name not in columns and name not in apart]
    if people is not None:
        found.person = people.done(dialect)
    _file_hints(found, dialect)
    return found


class _People:
    """Counts the records of each person, as a fit tells people apart."""

    def __init__(self, column: str, position: int, nobody: Sequence[str]) -> None:
        self.column = column
        self.position = position
        self._halves = [Identifier(half, b"check", missing=tuple(nobody)) for half in (0, 1)]
        self._pairs: dict[Any, tuple[float, float]] = {}
        self._counts: Counter[tuple[float, float]] = Counter()
        self._cells: dict[tuple[float, float], Any] = {}  # how each was written first
        self._without = 0

    def add(self, cell: Any) -> None:
        """Count a record with this cell; None where the line could not be split."""
        pair = self._pair(cell)
        if math.isnan(pair[0]):
            self._without += 1
            return
        self._counts[pair] += 1
        self._cells.setdefault(pair, cell)

    def _pair(self, cell: Any) -> tuple[float, float]:
        try:
            known = self._pairs.get(cell)
        except TypeError:  # a list
            return math.nan, math.nan
        if known is None:
            first, second = (half.code_value(cell) for half in self._halves)
            known = first, second
            if len(self._pairs) < _KEPT:
                self._pairs[cell] = known
        return known

    def done(self, dialect: Dialect) -> PersonCheck:
        """All that was counted, with hints."""
        counts = sorted(self._counts.values())
        spellings: dict[str, list[str]] = {}
        codes = []
        for pair, cell in self._cells.items():
            text = _text(cell, dialect)
            plain = "".join(text.split()).lower().lstrip("0")
            spellings.setdefault(plain, []).append(text)
            if self._counts[pair] >= _OFTEN and _means_nobody(text):
                codes.append((text, self._counts[pair]))
        several = [texts for texts in spellings.values() if len(texts) > 1]
        return PersonCheck(
            self.column,
            people=len(counts),
            median=_median(counts),
            most=max(counts, default=0),
            several=sum(count > 1 for count in counts),
            without=self._without,
            alike=[(texts[0], texts[1]) for texts in several[:_SHOWN]],
            alike_count=sum(len(texts) for texts in several),
            hints=_people_hints(counts, codes),
        )


def _people_hints(counts: Sequence[int], codes: Sequence[tuple[str, int]]) -> list[str]:
    hints = [
        f"{text!r} has {count:,} records, as if it were one person: if it stands for nobody, "
        "make these cells empty, or give the code with --missing"
        for text, count in codes[:_SHOWN]
    ]
    if len(counts) == 1:
        hints.append("all records are of one person: is it the right column?")
    elif counts and len(counts) <= _FEW_PEOPLE and sum(counts) >= _MANY_RECORDS * len(counts):
        hints.append(
            f"only {len(counts)} people, with {sum(counts) // len(counts):,} records each on "
            "average: is it the right column?"
        )
    elif counts and max(counts) == 1:
        hints.append(
            "nobody has more than one record: people and records are the same here, if this is the "
            "right column"
        )
    return hints


def _means_nobody(text: str) -> bool:
    """Whether an identifier looks like a code for a missing one."""
    if text.lower().encode() in _NOT_THERE:
        return True
    try:
        return float(text) in _CODES or float(text) == 0
    except ValueError:
        return False


def _median(ordered: Sequence[int]) -> float:
    if not ordered:
        return 0.0
    half = len(ordered) // 2
    if len(ordered) % 2:
        return float(ordered[half])
    return (ordered[half - 1] + ordered[half]) / 2


def _plain_number(cell: Any, dialect: Dialect) -> float:
    """A cell as a number; NaN if it is none."""
    if isinstance(cell, bytes):
        return code_text(cell, None, dialect)
    return Number(-1e150, 1e150).code_value(cell)


def _note_encoding(cell: object, found: FileCheck) -> None:
    if isinstance(cell, bytes) and not cell.isascii():
        try:
            cell.decode()
            found.utf8 += 1
        except UnicodeDecodeError:
            found.not_utf8 += 1


def _file_hints(found: FileCheck, dialect: Dialect) -> None:
    if found.open_quotes:
        found.hints.append(
            f"{found.open_quotes:,} lines have a quote that does not close: line breaks inside "
            "quotes? One line is one record here: save the file as Parquet, or take the line "
            "breaks out."
        )
    elif found.wrong_width:
        found.hints.append(
            f"{found.wrong_width:,} lines have another number of fields than the header: all their "
            "values are missing."
        )
    if found.not_utf8 and dialect.encoding is None:
        mixed = ""
        if found.utf8:
            mixed = f", and {found.utf8:,} are: the file mixes encodings"
        found.hints.append(
            f"{found.not_utf8:,} cells are not UTF-8, and are read as Windows-1252{mixed}."
        )
    if found.not_utf8 and dialect.encoding == "utf-8":
        found.hints.append(
            f"{found.not_utf8:,} cells are not UTF-8, which the encoding says, and are missing: "
            "leave out --encoding, and each cell is read by itself."
        )
    elif found.not_utf8 and dialect.encoding is not None and found.utf8:
        found.hints.append(
            f"{found.utf8:,} cells with letters beyond ASCII are UTF-8, {found.not_utf8:,} are "
            "not: the file mixes encodings; without an encoding said, each cell is read by itself."
        )


# ---- cells of records


def _records(source: Source, found: FileCheck) -> Iterator[Sequence[Any] | None]:
    """The cells of each record: bytes of a CSV file, values of a Parquet file; None if broken."""
    if isinstance(source, CsvSource):
        yield from _csv_records(source, found)
    elif isinstance(source, ParquetSource):
        yield from _parquet_records(source)
    else:
        raise BadInput(
            "A check is for CSV and Parquet files: write some of the records to one, and check it."
        )


def _csv_records(source: CsvSource, found: FileCheck) -> Iterator[Sequence[Any] | None]:
    mark = source.dialect.separator
    blank = b" \t\r".replace(mark, b"")
    for path in source.paths:
        with readable(path), open_text(path) as file:
            read_header(file, path, source.dialect)
            for block in cut(file, _BLOCK_BYTES):
                for line in block.removesuffix(b"\n").split(b"\n"):
                    if not line.strip(blank):
                        continue
                    cells = split(line.removesuffix(b"\r"), mark)
                    if line.count(b'"') % 2:
                        found.open_quotes += 1
                    if cells is None or len(cells) != source.width:
                        found.wrong_width += 1
                        yield None
                    else:
                        yield [plain_text(cell) for cell in cells]


def _parquet_records(source: ParquetSource) -> Iterator[Sequence[Any]]:
    import pyarrow.parquet as pq

    for path in source.paths:
        with readable(path), open_file(path) as opened, pq.ParquetFile(opened) as file:
            for batch in file.iter_batches(batch_size=_BATCH_ROWS):
                yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)


class _Tally:
    """Counts what the cells of one column are."""

    def __init__(self, name: str, role: str, kind: Kind) -> None:
        self.found = ColumnCheck(name, kind, role)
        self.dialect = Dialect()
        self._kind = replace(kind, keep_missing=False)
        self._bare = replace(self._kind, missing=())
        self._keeps = kind.keep_missing
        self._numeric = isinstance(kind, (Number, Whole, Cyclic))
        self._known: dict[Any, tuple[str, float]] = {}
        self._counts: Counter[Any] = Counter()  # of cells that were not understood
        self._codes: Counter[float] = Counter()  # of numbers that look like missing codes
        self._tenths = [0] * _TENTHS
        self._levels: Counter[int] = Counter()

    def add_broken(self) -> None:
        """A record whose line cannot be split: the cell is missing."""
        self.found.cells += 1
        self.found.empty += 1

    def add(self, cell: Any) -> bool:
        """Count a cell; whether a fit would know its value (or keeps missing ones)."""
        found = self.found
        found.cells += 1
        what, value = self._read(cell)
        if what == "known" or what == "outside":
            found.outside += what == "outside"
            self._note_value(value)
            return True
        if what == "empty":
            found.empty += 1
        elif what == "coded":
            found.coded += 1
        else:
            found.unreadable += 1
            if cell in self._counts or len(self._counts) < _KEPT:
                self._counts[cell] += 1
        return self._keeps

    def _read(self, cell: Any) -> tuple[str, float]:
        try:
            if cell in self._known:
                return self._known[cell]
        except TypeError:  # a list
            return "unreadable", math.nan
        answer = self._look(cell)
        if len(self._known) < _KEPT:
            self._known[cell] = answer
        return answer

    def _look(self, cell: Any) -> tuple[str, float]:
        if cell is None or cell == b"" or cell == "" or cell != cell:
            return "empty", math.nan
        code = self._code(cell, self._kind)
        if math.isnan(code):
            if not math.isnan(self._code(cell, self._bare)) or self._is_code(cell):
                return "coded", math.nan
            text = cell.encode() if isinstance(cell, str) else cell
            if isinstance(text, bytes) and text.lower() in _NOT_THERE:
                return "empty", math.nan
            return "unreadable", math.nan
        raw = code
        if self._numeric:
            raw = self._number(cell)
        low, high = self._kind.output_range if self._numeric else self._kind.range
        if self._kind.levels is None and not low <= raw <= high:
            return "outside", raw
        return "known", raw

    def _code(self, cell: Any, kind: Kind) -> float:
        if isinstance(cell, bytes):
            return code_text(cell, kind, self.dialect)
        return kind.code_value(cell)

    def _number(self, cell: Any) -> float:
        return _plain_number(cell, self.dialect)

    def _is_code(self, cell: Any) -> bool:
        text = cell if isinstance(cell, bytes) else str(cell).encode()
        texts = [plain_text(str(code).encode()) for code in self._kind.missing]
        return self.dialect.utf8(text) in texts

    def _note_value(self, value: float) -> None:
        if self._kind.levels is not None:
            self._levels[int(value)] += 1
            return
        low, high = self._kind.range
        place = int(_TENTHS * (value - low) / (high - low)) if math.isfinite(value) else 0
        self._tenths[min(max(place, 0), _TENTHS - 1)] += 1
        if self._numeric and value in _CODES:
            self._codes[value] += 1

    def done(self, dialect: Dialect) -> ColumnCheck:
        """All that was counted, with hints."""
        found = self.found
        ordered = sorted(self._counts.items(), key=lambda one: -one[1])
        found.unknown = [(_text(cell, dialect), count) for cell, count in ordered[:_SHOWN]]
        if self._kind.levels is not None:
            found.levels = {
                level: self._levels[place] for place, level in enumerate(self._kind.levels)
            }
        elif sum(self._tenths):
            found.tenth = max(self._tenths) / sum(self._tenths)
        found.hints = self._hints(ordered, dialect)
        return found

    def _hints(self, ordered: Sequence[tuple[Any, int]], dialect: Dialect) -> list[str]:
        found = self.found
        hints = []
        if found.cells and found.missing == found.cells:
            hints.append("all of it is missing: is it the right column, and read as what it is?")
        looks = self._looks(ordered, dialect)
        if looks:
            hints.append(looks)
        for level, meant in self._respelt(ordered, dialect):
            hints.append(f"{level!r} is not listed, {meant!r} is: spelled otherwise?")
        hints += self._torn(ordered, dialect)
        others = self._other_words(ordered, dialect)
        if others:
            hints.append(others)
        if self._kind.levels is not None and found.cells > found.missing:
            never = [level for level, count in found.levels.items() if not count]
            if never:
                shown = ", ".join(f"{level!r}" for level in never[:_SHOWN]) + (
                    "…" if len(never) > _SHOWN else ""
                )
                hints.append(f"never occurs: {shown}")
        for value, count in self._codes.most_common():
            low, high = self._kind.range
            if count >= _OFTEN and (value < low or value > high or value in (low, high)):
                hints.append(
                    f"{value:g} occurs {count:,} times: a missing code? --missing "
                    f"{found.name}={value:g}"
                )
        if found.tenth is not None and found.tenth >= _TAIL and sum(self._tenths) >= 2 * _TENTHS:
            hints.append(
                f"{found.tenth:.0%} of the values lie in one tenth of the range: a narrower range, "
                "or the logarithm, is learnt better; the mean of logarithms is not that of the "
                "values"
            )
        if found.outside and found.outside > 0.05 * max(found.cells - found.missing, 1):
            hints.append("many values lie outside the range, and count as its edge")
        return hints

    def _looks(self, ordered: Sequence[tuple[Any, int]], dialect: Dialect) -> str | None:
        """What most cells that could not be read look like."""
        if self._kind.levels is not None:
            return None
        found = self.found
        texts = [(cell, count) for cell, count in ordered if isinstance(cell, bytes)]
        texts += [(cell.encode(), count) for cell, count in ordered if isinstance(cell, str)]
        whole = sum(count for _, count in texts)

        def most(pattern: re.Pattern[bytes]) -> bool:
            like = sum(count for cell, count in texts if pattern.fullmatch(cell))
            return like > _SOME * whole

        if not whole:
            return None
        if most(_ISO):
            return "looks like dates: give it as one, for example visit=2019-01-01:2024-12-31"
        if isinstance(self._kind, Date) and self._mostly_read():
            return (
                f"{found.unreadable:,} cells are written in another way than the others, which are "
                "read: a format is for a whole column. Write all in one way before a fit"
            )
        if most(_POINTED):
            return f"looks like dates, day.month.year: {_format_advice('%d.%m.%Y')}"
        if most(_SLASHED):
            return _slashed(texts)
        if self._numeric and most(_THOUSANDS) and dialect.decimal != b",":
            return "looks like thousands with a sign between them: write 1000, not 1,000"
        if self._numeric and most(_DECIMAL_COMMA):
            if self._mostly_read() or dialect.separator == b",":
                return "looks like decimal commas: write these numbers with a point before a fit"
            return "looks like decimal commas: --decimal ,"
        if self._numeric and most(_WITH_UNIT):
            return "looks like numbers with a unit or a sign: leave these out, 72 in place of 72 kg"
        if self._numeric and _found_words(texts):
            return "looks like words: list them, for example sex=F,M"
        if isinstance(self._kind, Date):
            return f"does not look like 2019-01-31: {_format_advice('%d.%m.%Y')}, or as it is"
        if isinstance(self._kind, Whole):
            return "not whole: give it as a plain range, LOW:HIGH"
        return None

    def _mostly_read(self) -> bool:
        """Whether more cells are read than not, so that advice on the rest must not undo that."""
        found = self.found
        return found.cells - found.missing > found.unreadable

    def _other_words(self, ordered: Sequence[tuple[Any, int]], dialect: Dialect) -> str | None:
        """What to do where most words are others than those that were listed."""
        found = self.found
        if self._kind.levels is None or found.unreadable <= _SOME * (found.cells - found.empty):
            return None
        words = [_text(cell, dialect) for cell, _ in ordered[:_SHOWN]]
        if isinstance(self._kind, YesNo):
            pair = sorted(words[:2], key=lambda word: word.lower() in _YES_WORDS)
            if len(words) != 2 or len(ordered) != 2:
                pair = ["nein", "ja"]
            no, yes = pair
            return (
                f"other words than {self._kind.no} and {self._kind.yes}: say which they are, no "
                f"first: {found.name}={no}/{yes}, or no = {no!r} and yes = {yes!r} in the codebook"
            )
        return (
            "most cells are words that are not listed: another spelling, another code list, or "
            "another column? List all that can occur, from the study's codebook"
        )

    def _torn(self, ordered: Sequence[tuple[Any, int]], dialect: Dialect) -> list[str]:
        """Hints at words with a comma in them that were listed without quotes."""
        hints = []
        levels = frozenset(self._kind.levels or ())
        for cell, _ in ordered[:_SHOWN]:
            text = _text(cell, dialect)
            parts = [part.strip() for part in text.split(",")]
            if len(parts) > 1 and levels.issuperset(parts):
                hints.append(
                    f"{text!r} is one word here, and was listed as {len(parts)}: write it in "
                    f"double quotes, '{self.found.name}=…,\"{text}\",…', or list it in a codebook"
                )
        return hints

    def _respelt(
        self, ordered: Sequence[tuple[Any, int]], dialect: Dialect
    ) -> Iterator[tuple[str, str]]:
        """Frequent words that are levels but for capitals and blanks."""
        if self._kind.levels is None:
            return
        plain = {"".join(level.lower().split()): level for level in self._kind.levels}
        for cell, _ in ordered[:_SHOWN]:
            text = _text(cell, dialect)
            meant = plain.get("".join(text.lower().split()))
            if meant is not None:
                yield text, meant


def _found_words(texts: Sequence[tuple[bytes, int]]) -> bool:
    """Whether cells are a few words: letters, the same ones again and again."""
    lettered = [count for cell, count in texts if re.search(rb"[A-Za-z\x80-\xff]", cell)]
    return bool(lettered) and sum(lettered) >= 2 * len(lettered)


def _slashed(texts: Sequence[tuple[bytes, int]]) -> str:
    pairs = [(int(m[1]), int(m[2])) for cell, _ in texts if (m := _SLASHED.fullmatch(cell))]
    if any(first > 12 for first, _ in pairs):
        return f"looks like dates, day/month/year: {_format_advice('%d/%m/%Y')}"
    if any(second > 12 for _, second in pairs):
        return f"looks like dates, month/day/year: {_format_advice('%m/%d/%Y')}"
    day_first = _format_advice("%d/%m/%Y")
    return f"looks like dates: {day_first}; or %m/%d/%Y, if the month is first"


def _format_advice(written: str) -> str:
    """How the format of dates is said on the command line, and in a codebook."""
    return f'give the format, …:…:{written}, or format = "{written}" in the codebook'


def _text(cell: Any, dialect: Dialect) -> str:
    if isinstance(cell, bytes):
        return dialect.utf8(cell).decode("utf-8", "replace") or cell.decode("latin-1")
    return str(cell)
