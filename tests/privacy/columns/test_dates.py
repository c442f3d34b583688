"""Columns of dates: days and moments, from texts, numbers and objects."""

import datetime
import math
import time

import numpy as np
import pytest

from reticent import BadInput, Date

NAN = math.nan
SPAN = ("2019-01-01", "2024-12-31")


def day(text):
    """Days since 1970-01-01."""
    return int(np.datetime64(text, "D").astype(int))


def same(found, expected):
    return np.array_equal(found, expected, equal_nan=True)


# ---- bounds


def test_a_last_day_counts_to_its_end_and_a_last_moment_does_not():
    assert Date("2019-01-01", "2019-01-02").range == (day("2019-01-01"), day("2019-01-02") + 1)
    moments = Date("2019-01-01T06:00", "2019-01-02T12:00")
    assert moments.range == (day("2019-01-01") + 0.25, day("2019-01-02") + 0.5)
    assert (moments.low, moments.high) == ("2019-01-01T06:00:00", "2019-01-02T12:00:00")


@pytest.mark.parametrize(
    "end",
    [
        "2019-01-02",
        " 2019-01-02\t",
        b"2019-01-02",
        datetime.date(2019, 1, 2),
        datetime.datetime(2019, 1, 2),
        np.datetime64("2019-01-02"),
        np.datetime64("2019-01-02T00:00:00.000000000"),
    ],
)
def test_bounds_are_dates_moments_or_iso_texts(end):
    assert Date(end, "2024-12-31").low == "2019-01-02"


@pytest.mark.parametrize("end", ["2019-02-30", "", 20190101, None, np.datetime64("NaT")])
def test_other_bounds_are_refused(end):
    with pytest.raises(BadInput, match="must be a date such as 2019-01-31"):
        Date(end, "2024-12-31")


def test_bounds_that_are_no_early_and_late_date_are_named():
    late_first = "The dates 2024-12-31 and 2019-01-01 must be an early and a late one. They are rev"
    with pytest.raises(BadInput, match=late_first):
        Date(*SPAN[::-1])
    with pytest.raises(
        BadInput, match=r"The dates 2019-01-01 and 2019-01-01 must be .* late one.$"
    ):
        Date(SPAN[0], SPAN[0])


# ---- codes


def test_moments_with_a_zone_are_moved_to_utc_and_others_stay(monkeypatch):
    """Whatever the zone of the machine that reads them."""
    kind = Date(*SPAN)
    zone = datetime.timezone(datetime.timedelta(hours=6))
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    try:
        codes = [
            kind.code_text(b"2020-02-29T12:00+06:00"),
            kind.code_value(datetime.datetime(2020, 2, 29, 12, tzinfo=zone)),
            kind.code_text(b"2020-02-29T06:00"),
            kind.code_value(datetime.datetime(2020, 2, 29, 6)),
            kind.code_value(np.datetime64("2020-02-29T06:00")),
        ]
    finally:
        monkeypatch.undo()
        time.tzset()
    assert codes == [day("2020-02-29") + 0.25] * 5


def test_dates_of_the_years_1_to_9999_are_read_and_no_others():
    kind = Date(*SPAN)
    ends = ["0001-01-01", "9999-12-31"]
    codes = [day(end) for end in ends]
    array = np.array([*ends, "0000-12-31", "10000-01-01", "NaT"], dtype="M8[D]")
    assert same(kind.code_moments(array), [*codes, NAN, NAN, NAN])
    assert same([kind.code_value(one) for one in array], [*codes, NAN, NAN, NAN])
    assert [kind.code_text(end.encode()) for end in ends] == codes


def test_dates_by_their_digits():
    given = np.array([20200229, 20190101, 20200229, 20200230, 20200229.5, -20200229, NAN, math.inf])
    codes = [day("2020-02-29"), day("2019-01-01"), day("2020-02-29"), NAN, NAN, NAN, NAN, NAN]
    for kind in (Date(*SPAN), Date(*SPAN, format="%Y%m%d")):
        assert same(kind.code_numbers(given), codes)
        assert same(kind.code_values(given.tolist()), codes)


def test_numbers_that_float64_does_not_tell_apart_are_no_dates():
    kind = Date("2019-01-01", "9999-12-31", format="%Y%d%m%H%M%S%f")
    below = float(2**53 - 1)
    assert kind.code_numbers(np.array([below])) == kind.code_text(b"9007199254740991")
    assert not math.isnan(kind.code_text(b"9007199254740992"))
    assert np.isnan(kind.code_numbers(np.array([2.0**53, -(2.0**53)]))).all()


def test_missing_codes_of_dates_are_texts_or_digits():
    kind = Date(*SPAN, missing=["2020-01-01", "?", 20210101, 999])
    texts = [b"2020-01-01", b"2021-01-01", b"2022-01-01", b"?", b"999"]
    assert same(kind.code_texts(texts), [NAN, NAN, day("2022-01-01"), NAN, NAN])
    assert same(kind.code_numbers(np.array([20200101.0, 20220101.0])), [NAN, day("2022-01-01")])
    moments = np.array(["2021-01-01", "2022-01-01"], dtype="M8[s]")
    assert same(kind.code_moments(moments), [NAN, day("2022-01-01")])
    kept = Date("2019-01-01", "2019-01-02", missing=["2019-01-01"], keep_missing=True)
    assert kept.code_text(b"2019-01-01") == day("2019-01-02")  # the middle of two days


def test_a_text_of_64_bytes_may_be_a_date_and_a_longer_one_is_none():
    kind = Date(*SPAN, format="x" * 54 + "%d.%m.%Y")
    assert kind.code_text(b"x" * 54 + b"29.02.2020") == day("2020-02-29")
    longer = Date(*SPAN, format="x" * 55 + "%d.%m.%Y")
    assert math.isnan(longer.code_text(b"x" * 55 + b"29.02.2020"))


# ---- the way back


def test_dates_for_people():
    kind = Date(*SPAN)
    assert kind.show(day("2020-02-29") + 0.7) == "2020-02-29"
    assert kind.values(np.array([*kind.range, NAN])) == ["2019-01-01", "2024-12-31", None]
    moments = Date("2019-01-01T06:00", "2019-01-02T12:00")
    assert moments.show(day("2019-01-01") + 0.75) == "2019-01-01 18:00:00"
    assert [moments.show(code) for code in (0, 1e9)] == [
        "2019-01-01 06:00:00",
        "2019-01-02 12:00:00",
    ]
    assert kind.describe() == "2019-01-01:2024-12-31"
