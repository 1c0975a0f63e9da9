"""Texts that Spark's JSON reader takes for a date or a time, told without Spark. Pure.

It follows Spark's ``SparkDateTimeUtils.stringToTimestamp`` and ``stringToDate``, and is lenient where these are: a text that is
called wrong here is refused by Spark; ``tests/spark/test_explained.py`` compares the two.
"""

from __future__ import annotations

import re
from datetime import date

_DATE = re.compile(r"^([+-]?\d{4,7})(?:-(\d{1,2})(?:-(\d{1,2}))?)?(?:[T ](.*))?$", re.DOTALL)
_CLOCK = re.compile(r"^(\d{1,2}):(\d{1,2})(?::(\d{1,2})(?:\.\d*)?)?\s*(\D.*)?$", re.DOTALL)
_CLOCK_ALONE = re.compile(r"^T?\d{1,2}:\d{1,2}(:\d{1,2}(\.\d*)?)?\s*([A-Za-z+-].*)?$")
_OFFSET = r"[+-]\d{1,2}(:?\d{1,2}){0,2}"
_ZONE = re.compile(rf"^(Z|{_OFFSET}|(UTC|GMT|UT)({_OFFSET})?|[A-Za-z][A-Za-z0-9_+-]*(/[A-Za-z0-9_+-]+)*)$")


def wrong_time(text: str, *, zoned: bool = True) -> str | None:
    """Return what is wrong with a text as a timestamp, "" where it is just none; None where Spark may take it.

    Args:
        text: As it is in the record.
        zoned: Whether the type has a time zone.
    """
    text = text.strip()
    if _CLOCK_ALONE.match(text):
        return "is a time without a day"
    match = _DATE.match(text)
    if match is None:
        return ""
    wrong = _wrong_day(match)
    rest = match[4]
    if wrong is not None or rest is None:
        return wrong
    clock = _CLOCK.match(rest)
    if clock is None:
        return ""
    hour, minute, second = int(clock[1]), int(clock[2]), int(clock[3] or 0)
    if hour > 23 or minute > 59 or second > 59:
        return "has no such time of day"
    if clock[4] is None:
        return None
    return ("" if zoned else "has a time zone") if not zoned or not _ZONE.match(clock[4].strip()) else None


def wrong_date(text: str) -> str | None:
    """Return what is wrong with a text as a date, "" where it is just none; None where it may land.

    Spark ignores what follows the day, and takes other numbers for days since 1970. Here a time may follow, and a number is
    a year.
    """
    match = _DATE.match(text.strip())
    if match is not None:
        wrong = _wrong_day(match)
        return wrong if wrong is not None or match[4] is None or match[4][:1].isdigit() else ""
    return "is a time without a day" if _CLOCK_ALONE.match(text.strip()) else ""


def _wrong_day(match: re.Match[str]) -> str | None:
    year, month, day = int(match[1]), int(match[2] or 1), int(match[3] or 1)
    if not 1 <= year <= 9999:
        return "is outside of the years 1 to 9999"
    try:
        date(year, month, day)
    except ValueError:
        return "is not a day of the calendar"
    return None
