"""The forms of ISO 8601 and those that Spark takes are read as a date or time, and nothing is read as another moment."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakebound.formats import times
from lakebound.formats.times import NotATimeError, day_of, microseconds_of

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def at(text: str) -> int:
    found = datetime.fromisoformat(text)
    return (found.replace(tzinfo=found.tzinfo or UTC) - EPOCH) // timedelta(microseconds=1)


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("2026-11-28T10:00Z", "2026-11-28T10:00:00+00:00"),
        ("2026-11-28T10:00+01:00", "2026-11-28T09:00:00+00:00"),
        ("2026-11-28T10Z", "2026-11-28T10:00:00+00:00"),
        ("2026-11-28T10-05", "2026-11-28T15:00:00+00:00"),
        ("2026-11-28T10:00:00+0130", "2026-11-28T08:30:00+00:00"),
        ("2026-11-28T10:00:00,5Z", "2026-11-28T10:00:00.500000+00:00"),
        ("2026-11-28T10:00:00.123456789Z", "2026-11-28T10:00:00.123456+00:00"),
        ("20261128T100000Z", "2026-11-28T10:00:00+00:00"),
        ("20261128T1000+0100", "2026-11-28T09:00:00+00:00"),
        ("20261128T10Z", "2026-11-28T10:00:00+00:00"),
        ("20261128", "2026-11-28T00:00:00+00:00"),
        ("2026-W48-6", "2026-11-28T00:00:00+00:00"),
        ("2026-332T10:00Z", "2026-11-28T10:00:00+00:00"),
        ("2026-11", "2026-11-01T00:00:00+00:00"),
        ("2026", "2026-01-01T00:00:00+00:00"),
        (" 2026-2-3 4:5:6 \t", "2026-02-03T04:05:06+00:00"),
        ("2026-11-28 10:00", "2026-11-28T10:00:00+00:00"),
        ("2026-11-28 10", "2026-11-28T10:00:00+00:00"),
        ("2026-11-28 10:00:00 +1:00", "2026-11-28T09:00:00+00:00"),
        ("2026-07-28T10:00:00 Europe/Berlin", "2026-07-28T08:00:00+00:00"),
        ("2026-03-29T02:30:00Europe/Berlin", "2026-03-29T01:30:00+00:00"),
        ("2026-11-28T10:00:00UTC+2", "2026-11-28T08:00:00+00:00"),
        ("2026-11-28T10:00:00PST", "2026-11-28T18:00:00+00:00"),
        ("2026-11-28T10:00 GMT", "2026-11-28T10:00:00+00:00"),
    ],
)
def test_each_form_names_one_moment(text: str, same: str) -> None:
    assert microseconds_of(text, zoned=True) == at(same)


@pytest.mark.parametrize(
    "text",
    [
        *(
            "",
            "now",
            "12:30",
            "T12:30",
            "T12",
            "1:2:3",
            "2026-02-30",
            "2026-13-01",
            "2026-1-2-3",
            "2026-02-28T",
            "2026-02T10:00",
        ),
        *("2026-02-28T24:00:00Z", "2026-02-28T23:59:60Z", "2026-02-28T10:60Z", "2026-02-28T10:00:00+18:01", "2026-02-28t10:00"),
        *(
            "2026-02-28T10:00:00+01:60",
            "2026-02-28T10:00:00Z+01:00",
            "2026-02-28T10:00:00 Nowhere/Land",
            "2026-366",
            "2026-W54-1",
        ),
        *("2026-02-28T10:00:00right/UTC", "20260230", "2026228", "1700000000", "1700000000000", "10000-01-01", "0000-12-31"),
        *("-0001-01-01", "28.02.2026", "2026/02/28", "2026-02-28x10:00", "2026-02-28T10:00:00.5.5", "2026-02-28T100"),
        *("9999-12-31T23:59:59-05:00", "0001-01-01T00:00:00+01:00", "2026-02-28T10:00:00../../etc/passwd"),
    ],
)
def test_what_names_no_moment_is_not_read(text: str) -> None:
    with pytest.raises(NotATimeError):
        microseconds_of(text, zoned=True)


def test_texts_that_are_too_long_for_a_zone_are_not_remembered() -> None:
    before = times._zone.cache_info()
    for number in range(3):
        with pytest.raises(NotATimeError):
            microseconds_of(f"2026-02-28T10:00:00 A{number}{'b' * 100}", zoned=True)
    assert times._zone.cache_info() == before


ZONES = st.integers(-17 * 60, 17 * 60).map(lambda minutes: timezone(timedelta(minutes=minutes)))


@given(st.datetimes(datetime(1000, 1, 2), datetime(9999, 12, 30), timezones=ZONES))
def test_what_python_writes_is_read_as_written(moment: datetime) -> None:
    expected = (moment - EPOCH) // timedelta(microseconds=1)
    for text in (moment.isoformat(), moment.isoformat(" "), moment.strftime("%Y%m%dT%H%M%S.%f%z")):
        assert microseconds_of(text, zoned=True) == expected, text
    wall = moment.replace(tzinfo=None)
    assert microseconds_of(wall.isoformat(), zoned=False) == (wall - datetime(1970, 1, 1)) // timedelta(microseconds=1)


@pytest.mark.parametrize("text", ["2026-02-28T10:00:00Z", "2026-02-28T10:00+01:00", "12:30"])
def test_a_column_without_a_zone_takes_none(text: str) -> None:
    with pytest.raises(NotATimeError):
        microseconds_of(text, zoned=False)


@pytest.mark.parametrize(
    "text", ["2026-02-03", "2026-2-3", " 2026-02-03 ", "2026-02-03T10:00:00+01:00", "20260203", "2026-034"]
)
def test_a_day_is_read_and_its_time_is_left(text: str) -> None:
    assert day_of(text) == date(2026, 2, 3)


@pytest.mark.parametrize(
    "text", ["", "200", "19723", "12:30", "2026-02-30", "2026-02-28Tx", "2026-02-28T", "+2026-02-03", "2026-02-28x"]
)
def test_what_is_no_day_is_not_read(text: str) -> None:
    with pytest.raises(NotATimeError):
        day_of(text)
