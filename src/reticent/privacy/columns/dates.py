"""Columns of dates: days, or moments."""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import cached_property
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from reticent.errors import BadInput, BoundsMissing
from reticent.privacy.columns.base import Codes, Kind, exact_text, plain_text
from reticent.privacy.sources.cell_values import number

__all__ = ["Date"]

_DAY = 86_400.0  # seconds
_MICROSECONDS_A_DAY = 86_400e6
_MICROSECOND = timedelta(microseconds=1)
_LARGEST = 2.0**53
_FIRST = np.datetime64("0001-01-01", "D")
_LAST = np.datetime64("9999-12-31", "D")
_EPOCH = datetime(1970, 1, 1)
_LONGEST = 64  # bytes of a date
_ISO_DAY = re.compile(rb"\d{4}-\d{2}-\d{2}(?!\d)")


def _as_moment(value: object) -> datetime | None:
    """A date, a moment or an ISO text as a moment without a time zone (UTC if it has one)."""
    try:
        if isinstance(value, np.datetime64):
            if not _FIRST <= value.astype("datetime64[D]") <= _LAST:
                return None
            value = value.astype("datetime64[us]").item()
        if isinstance(value, (str, bytes)):
            text = value.decode() if isinstance(value, bytes) else value
            value = datetime.fromisoformat(text.strip(" \t"))
        if isinstance(value, datetime):
            if value.tzinfo is not None:
                value = value.astimezone(UTC)
            return datetime(*value.timetuple()[:6], value.microsecond)
        if isinstance(value, date):
            return datetime(value.year, value.month, value.day)
    except Exception:
        return None
    return None


def _days(moment: datetime | None) -> float:
    """Days since 1970-01-01: whole microseconds as a float64, over those of a day."""
    if moment is None:
        return math.nan
    return float((moment - _EPOCH) // _MICROSECOND) / _MICROSECONDS_A_DAY


@final
@dataclass(frozen=True, repr=False)
class Date(Kind):
    """A day or a moment from ``low`` to ``high``; one outside is moved to the edge.

    ``low`` and ``high`` are dates, moments or ISO texts; ``format`` says how texts are written
    where they are not ISO (``"%d.%m.%Y"``); ISO texts are read as well, unless
    the format begins like them (``"%Y-%d-%m"``). Moments with a time zone are moved to UTC.

    >>> Date("2019-01-01", "2024-12-31").code_text(b"2019-01-02") - Date(
    ...     "2019-01-01", "2024-12-31").range[0]
    1.0
    """

    low: str
    high: str
    format: str | None = None

    name = "date"

    def __post_init__(self) -> None:
        super().__post_init__()
        ends = []
        for end in (self.low, self.high):
            moment = _as_moment(end)
            if moment is None:
                raise BoundsMissing(
                    f"A bound of a date must be a date such as 2019-01-31, not {end!r}."
                )
            ends.append(moment)
        if not ends[0] < ends[1]:
            hint = ""
            if ends[1] < ends[0]:
                hint = " They are reversed."
            raise BoundsMissing(
                f"The dates {_iso(ends[0])} and {_iso(ends[1])} must be an early and a late "
                f"one.{hint}"
            )
        object.__setattr__(self, "low", _iso(ends[0]))
        object.__setattr__(self, "high", _iso(ends[1]))
        if self.format is not None:
            object.__setattr__(self, "format", _checked_format(self.format, ends))

    @cached_property
    def range(self) -> tuple[float, float]:
        """The bounds in days since 1970-01-01; a last day counts to its end."""
        low = _days(_as_moment(self.low))
        high = _days(_as_moment(self.high))
        if len(self.high) <= 10:
            high += 1.0
        return low, high

    def code_numbers(self, values: Codes) -> Codes:
        """Days since 1970-01-01, of whole numbers such as 20190131: dates by their digits."""
        found, where = np.unique(values, return_inverse=True)
        return self.code_days(np.array([self._number_days(one) for one in found.tolist()]))[where]

    def code_text(self, text: bytes) -> float:
        """Days since 1970-01-01."""
        return float(self.code_texts([text])[0])

    def code_texts(self, texts: Sequence[bytes]) -> Codes:
        """Days since 1970-01-01 of each of some texts."""
        days = [_days(self._moment(plain_text(text))) for text in texts]
        return self.code_days(np.array(days, dtype=np.float64))

    def code_value(self, value: object) -> float:
        """Days since 1970-01-01, of a text, a date or a moment."""
        return float(self.code_values([value])[0])

    def code_moments(self, values: NDArray[np.datetime64]) -> Codes:
        """Days since 1970-01-01 of NumPy's moments, elementwise; years 1 to 9999, as elsewhere."""
        day = values.astype("datetime64[D]")
        inside = (day >= _FIRST) & (day <= _LAST)  # not so for NaT
        moments = np.where(inside, values, np.datetime64("NaT")).astype("datetime64[us]")
        days = moments.astype(np.int64) / _MICROSECONDS_A_DAY
        days[~inside] = np.nan
        return self.code_days(days)

    def _code_objects(self, values: Sequence[object]) -> Codes:
        """Dates, moments, and whole numbers."""
        days = []
        for value in values:
            moment = _as_moment(value)
            if moment is None:
                days.append(self._number_days(number(value)))
            else:
                days.append(_days(moment))
        return self.code_days(np.array(days, dtype=np.float64))

    def _number_days(self, value: float) -> float:
        if not abs(value) < _LARGEST or value != math.floor(value):
            return math.nan
        return _days(self._moment(b"%d" % int(value)))

    def code_days(self, days: Codes) -> Codes:
        """Codes of days since 1970-01-01, elementwise: without those that mean "missing"."""
        known = np.array(days, dtype=np.float64)
        for code in self._missing_days:
            known[known == code] = np.nan
        return self._filled(known)

    def _moment(self, text: bytes) -> datetime | None:
        if len(text) > _LONGEST:
            return None
        if self.format is None:
            return _as_moment(text)
        try:
            return _as_moment(datetime.strptime(text.decode(), self.format))
        except Exception:
            if _ISO_DAY.match(text) and not self.format.startswith("%Y-"):
                return _as_moment(text)
            return None

    @cached_property
    def _missing_days(self) -> tuple[float, ...]:
        texts = [_days(self._moment(text)) for text in self._missing_texts]
        numbers = [self._number_days(code) for code in self.missing if isinstance(code, float)]
        return tuple(day for day in texts + numbers if not math.isnan(day))

    def values(self, codes: Codes) -> list[Any]:
        """ISO texts: days, or moments to the second where the bounds are moments."""
        return [None if math.isnan(code) else self.show(code) for code in codes]

    def show(self, code: float) -> str:
        """The day; with its time where the bounds have one."""
        first = _as_moment(self.low)
        last = _as_moment(self.high)
        assert first is not None
        assert last is not None
        within = min(max(float(code), _days(first)), _days(last))
        moment = min(_EPOCH + timedelta(seconds=round(within * _DAY)), last)
        if len(self.high) <= 10:
            return moment.date().isoformat()
        return moment.isoformat(sep=" ")

    def describe(self) -> str:
        """EARLY:LATE."""
        return f"{self.low}:{self.high}"


def _checked_format(given: object, ends: Sequence[datetime]) -> str:
    """A format by which the bounds can be written and read again, their years at least."""
    if not isinstance(given, str):
        raise BadInput(f"The format of dates is a text such as '%d.%m.%Y', not {given!r}.")
    text = exact_text(given)
    for end in ends:
        try:
            again = datetime.strptime(end.strftime(text), text)
        except Exception:
            again = None
        if again is None or again.year != end.year:
            raise BoundsMissing(
                f"Dates written as {text!r} do not say which year they are of, or cannot be read "
                f"back ({_iso(end)}). A format is made of signs such as '%d.%m.%Y'."
            )
    return text


def _iso(moment: datetime) -> str:
    if (moment.hour, moment.minute, moment.second, moment.microsecond) == (0, 0, 0, 0):
        return moment.date().isoformat()
    return moment.isoformat()
