"""Texts that are a date or a time, and which: ISO 8601, and the looser forms that Spark's readers take. Pure.

A text lands as the moment that it names, or it is told what is wrong with it. Of ISO 8601 it reads the extended and the basic
form, an hour without minutes, a zone after any of these, week dates and ordinal dates. Of Spark's
(``SparkDateTimeUtils.stringToTimestamp``): a year, a month or a day of one digit, blanks around, and zones by name.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import date, datetime, tzinfo
from functools import lru_cache
from zoneinfo import ZoneInfo

FIRST_MS = -62_135_596_800_000
"""The first millisecond of the year 1."""
LAST_MS = 253_402_300_799_999
"""The last millisecond of the year 9999."""

_FIRST_US, _LAST_US = FIRST_MS * 1000, LAST_MS * 1000 + 999
_EPOCH = date(1970, 1, 1).toordinal()
_BLANKS = "".join(map(chr, (*range(33), 127)))
_DAY = (
    r"(?:(?P<year>[+-]?[0-9]{4,6})(?:-(?P<month>[0-9]{1,2})(?:-(?P<day>[0-9]{1,2}))?)?|(?P<basic>[0-9]{8})|"
    r"(?P<week>[0-9]{4}-W[0-9]{2}(?:-[0-9])?)|(?P<ordinal>[0-9]{4}-[0-9]{3}))"
)
_TEXT = re.compile(rf"{_DAY}(?:[T ](?P<rest>.*))?", re.DOTALL)
_CLOCK = re.compile(
    r"(?:(?P<hour>[0-9]{1,2})(?::(?P<minute>[0-9]{1,2})(?::(?P<second>[0-9]{1,2})(?:[.,](?P<fraction>[0-9]*))?)?)?|"
    r"(?P<basic>[0-9]{4}(?:[0-9]{2}(?:[.,](?P<basic_fraction>[0-9]*))?)?))"
    r"[\x00- ]*(?P<zone>[A-Za-z+-].*)?",
    re.DOTALL,
)
_CLOCK_ALONE = re.compile(r"T?\d{1,2}:\d{1,2}(:\d{1,2}(\.\d*)?)?\s*([A-Za-z+-].*)?", re.DOTALL)
_OFFSET = re.compile(
    r"(?:UTC|GMT|UT)?(?P<sign>[+-])(?P<hours>[0-9]{1,2})"
    r"(?:(?<=[0-9]{2})(?::(?P<minutes>[0-9]{2})(?::(?P<seconds>[0-9]{2}))?|(?P<mm>[0-9]{2})(?P<ss>[0-9]{2})?))?"
)
_HOUR_OF_ONE_DIGIT = re.compile(r"([+-])([0-9]):")
_MINUTE_OF_ONE_DIGIT = re.compile(r"([+-][0-9]{2}):([0-9])$")
_REGION = re.compile(r"(?!posix|right/|localtime)[A-Za-z][A-Za-z0-9~/._+-]+")
_MOST_OFFSET_SECONDS = 18 * 3600
_MOST_ZONE_CHARACTERS = 64
"""No zone has a longer name. Longer texts are not looked up: what was looked up is remembered."""
_SHORT_NAMES: Mapping[str, str] = {
    "ACT": "Australia/Darwin",
    "AET": "Australia/Sydney",
    "AGT": "America/Argentina/Buenos_Aires",
    "ART": "Africa/Cairo",
    "AST": "America/Anchorage",
    "BET": "America/Sao_Paulo",
    "BST": "Asia/Dhaka",
    "CAT": "Africa/Harare",
    "CNT": "America/St_Johns",
    "CST": "America/Chicago",
    "CTT": "Asia/Shanghai",
    "EAT": "Africa/Addis_Ababa",
    "ECT": "Europe/Paris",
    "EST": "-05:00",
    "HST": "-10:00",
    "IET": "America/Indiana/Indianapolis",
    "IST": "Asia/Kolkata",
    "JST": "Asia/Tokyo",
    "MIT": "Pacific/Apia",
    "MST": "-07:00",
    "NET": "Asia/Yerevan",
    "NST": "Pacific/Auckland",
    "PLT": "Asia/Karachi",
    "PNT": "America/Phoenix",
    "PRT": "America/Puerto_Rico",
    "PST": "America/Los_Angeles",
    "SST": "Pacific/Guadalcanal",
    "VST": "Asia/Ho_Chi_Minh",
}
"""Of Java (``ZoneId.SHORT_IDS``), by which Spark reads them."""


class NotATimeError(ValueError):
    """A text names no date or time; its message says what is wrong, and is empty where there is no more to say."""


def microseconds_of(text: str, *, zoned: bool) -> int:
    """Return the microseconds since 1970 of a text; without a zone it is UTC.

    Args:
        text: As it is in the record.
        zoned: Whether it may have a time zone.

    Raises:
        NotATimeError: It is none of these years.
    """
    try:
        return _microseconds(text.strip(_BLANKS), zoned=zoned)
    except NotATimeError:
        if not zoned or "GMT" not in text:
            raise
        return _microseconds(text.replace("GMT", "").strip(_BLANKS), zoned=True)  # as Spark reads what is left


def day_of(text: str) -> date:
    """Return the day of a text, which a time may follow.

    Raises:
        NotATimeError: It is none.
    """
    text = text.strip(_BLANKS)
    match = _TEXT.fullmatch(text)
    if match is None or (match["year"] is not None and len(match["year"]) != 4):
        raise NotATimeError(_wrong(text, match))
    if match["rest"] is not None and not (_is_whole(match) and match["rest"][:1].isdecimal()):
        raise NotATimeError
    return _day(match)


def wrong_time(text: str, *, zoned: bool = True) -> str | None:
    """Return what is wrong with a text as a timestamp, "" where it is just none; None where it is one."""
    try:
        microseconds_of(text, zoned=zoned)
    except NotATimeError as exc:
        return str(exc)
    return None


def wrong_date(text: str) -> str | None:
    """Return what is wrong with a text as a date, "" where it is just none; None where it is one."""
    try:
        day_of(text)
    except NotATimeError as exc:
        return str(exc)
    return None


def _microseconds(text: str, *, zoned: bool) -> int:
    match = _TEXT.fullmatch(text)
    if match is None:
        raise NotATimeError(_wrong(text, match))
    day = _day(match)
    midnight = (day.toordinal() - _EPOCH) * 86_400_000_000
    if match["rest"] is None:
        return midnight
    clock = _CLOCK.fullmatch(match["rest"]) if _is_whole(match) else None
    if clock is None:
        raise NotATimeError
    hour, minute, second, fraction = _clock(clock)
    if hour > 23 or minute > 59 or second > 59:
        raise NotATimeError("has no such time of day")
    found = midnight + ((hour * 60 + minute) * 60 + second) * 1_000_000 + int(f"{fraction:0<6.6}")
    if clock["zone"] is None:
        return found
    name = clock["zone"].strip(_BLANKS)
    zone = _zone(name) if len(name) <= _MOST_ZONE_CHARACTERS else None
    if zone is None:
        raise NotATimeError
    if not zoned:
        raise NotATimeError("has a time zone")
    if not isinstance(zone, int):
        local = datetime(day.year, day.month, day.day, hour, minute, second, tzinfo=zone)
        offset = local.utcoffset()
        zone = round(offset.total_seconds()) if offset is not None else 0
    found -= zone * 1_000_000
    if not _FIRST_US <= found <= _LAST_US:
        raise NotATimeError("is outside of the years 1 to 9999")
    return found


def _is_whole(match: re.Match[str]) -> bool:
    """Whether a text names a day, and not a month or a year alone."""
    return match["year"] is None or match["day"] is not None


def _clock(clock: re.Match[str]) -> tuple[int, int, int, str]:
    basic = clock["basic"]
    if basic is None:
        return int(clock["hour"]), int(clock["minute"] or 0), int(clock["second"] or 0), clock["fraction"] or ""
    return int(basic[:2]), int(basic[2:4]), int(basic[4:6] or 0), clock["basic_fraction"] or ""


def _day(match: re.Match[str]) -> date:
    try:
        if match["week"] is not None:
            year, _, week = match["week"].partition("-W")
            return date.fromisocalendar(int(year), int(week[:2]), int(week[3:] or 1))
        if match["ordinal"] is not None:
            year, _, number = match["ordinal"].partition("-")
            found = date.fromordinal(date(int(year), 1, 1).toordinal() + int(number) - 1)
            if found.year != int(year):
                raise ValueError(number)
            return found
        basic = match["basic"]
        parts = (basic[:4], basic[4:6], basic[6:]) if basic is not None else (match["year"], match["month"], match["day"])
        year_number, month, day = (int(part or 1) for part in parts)
        if not 1 <= year_number <= 9999:
            raise NotATimeError("is outside of the years 1 to 9999")
        return date(year_number, month, day)
    except NotATimeError:
        raise
    except (ValueError, OverflowError) as exc:
        raise NotATimeError("is not a day of the calendar") from exc


def _wrong(text: str, match: re.Match[str] | None) -> str:
    if _CLOCK_ALONE.fullmatch(text):
        return "is a time without a day"
    if match is not None and match["year"] is not None and not 1 <= int(match["year"]) <= 9999:
        return "is outside of the years 1 to 9999"
    return ""


@lru_cache(maxsize=1024)
def _zone(name: str) -> int | tzinfo | None:
    """Return seconds to the east, or a zone by its name; None where there is no such zone."""
    name = _MINUTE_OF_ONE_DIGIT.sub(r"\1:0\2", _HOUR_OF_ONE_DIGIT.sub(r"\g<1>0\2:", name, count=1))
    name = _SHORT_NAMES.get(name, name)
    if name in ("Z", "UTC", "GMT", "UT"):
        return 0
    match = _OFFSET.fullmatch(name)
    if match is not None:
        parts = (match["hours"], match["minutes"] or match["mm"], match["seconds"] or match["ss"])
        hours, minutes, seconds = (int(part or 0) for part in parts)
        total = (hours * 60 + minutes) * 60 + seconds
        if minutes > 59 or seconds > 59 or total > _MOST_OFFSET_SECONDS:
            return None
        return -total if match["sign"] == "-" else total
    if not _REGION.fullmatch(name):
        return None
    try:
        return ZoneInfo(name)
    except (ValueError, KeyError, OSError):
        return None
