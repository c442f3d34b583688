"""Columns of dates: days, or moments."""

import math
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import cached_property
from typing import Any, final

import numpy as np

from reticent.errors import BadInput, BoundsMissing
from reticent.privacy.columns.base import Codes, Kind, plain_text

__all__ = ["Date"]

_DAY = 86_400.0  # seconds
_EPOCH = datetime(1970, 1, 1)
_LONGEST = 64  # bytes of a date


def _as_moment(value: object) -> datetime | None:
    """A date, a moment or an ISO text as a moment without a time zone (UTC if it has one)."""
    try:
        if isinstance(value, np.datetime64):
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
    if moment is None:
        return math.nan
    return (moment - _EPOCH).total_seconds() / _DAY


@final
@dataclass(frozen=True, repr=False)
class Date(Kind):
    """A day or a moment from ``low`` to ``high``; one outside is moved to the edge.

    ``low`` and ``high`` are dates, moments or ISO texts; ``format`` says how texts are written
    where they are not ISO (``"%d.%m.%Y"``). Moments with a time zone are moved to UTC.

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
        if self.format is not None and not isinstance(self.format, str):
            raise BadInput(f"The format of dates is a text such as '%d.%m.%Y', not {self.format!r}")

    @cached_property
    def range(self) -> tuple[float, float]:
        """The bounds in days since 1970-01-01; a last day counts to its end."""
        low = _days(_as_moment(self.low))
        high = _days(_as_moment(self.high))
        if len(self.high) <= 10:
            high += 1.0
        return low, high

    def code_numbers(self, values: Codes) -> Codes:
        """A number is no date."""
        return self._filled(np.full(len(values), np.nan))

    def code_text(self, text: bytes) -> float:
        """Days since 1970-01-01."""
        return self._code(self._moment(plain_text(text)))

    def code_value(self, value: object) -> float:
        """Days since 1970-01-01, of a text, a date or a moment."""
        try:
            if isinstance(value, str):
                return self.code_text(value.encode("utf-8", "surrogatepass"))
            if isinstance(value, bytes):
                return self.code_text(value)
            return self._code(_as_moment(value))
        except Exception:  # an object that pretends
            return self._code(None)

    def code_days(self, days: Codes) -> Codes:
        """Codes of days since 1970-01-01, elementwise: without those that mean "missing"."""
        known = np.array(days, dtype=np.float64)
        for code in self._missing_days:
            known[known == code] = np.nan
        return self._filled(known)

    def _code(self, moment: datetime | None) -> float:
        return float(self.code_days(np.array([_days(moment)]))[0])

    def _moment(self, text: bytes) -> datetime | None:
        if len(text) > _LONGEST:
            return None
        if self.format is None:
            return _as_moment(text)
        try:
            return _as_moment(datetime.strptime(text.decode(), self.format))
        except Exception:
            return None

    @cached_property
    def _missing_days(self) -> tuple[float, ...]:
        return tuple(_days(self._moment(text)) for text in self._missing_texts)

    def values(self, codes: Codes) -> list[Any]:
        """ISO texts: days, or moments to the second where the bounds are moments."""
        return [None if math.isnan(code) else self.show(code) for code in codes]

    def show(self, code: float) -> str:
        """The day; with its time where the bounds have one."""
        moment = _EPOCH + timedelta(seconds=round(float(code) * _DAY))
        last = _as_moment(self.high)
        assert last is not None
        if len(self.high) <= 10:
            return min(moment, last).date().isoformat()
        return min(moment, last).isoformat(sep=" ")

    def describe(self) -> str:
        """EARLY:LATE."""
        return f"{self.low}:{self.high}"


def _iso(moment: datetime) -> str:
    if (moment.hour, moment.minute, moment.second, moment.microsecond) == (0, 0, 0, 0):
        return moment.date().isoformat()
    return moment.isoformat()
