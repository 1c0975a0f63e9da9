"""Whether a cron expression is one that Airflow takes, and that ever comes due. Pure.

Airflow reads it with croniter, whose import starts a process; so it is read here without it. Source:
https://airflow.apache.org/docs/apache-airflow/stable/authoring-and-scheduling/cron.html, https://github.com/pallets-eco/croniter.
"""

from __future__ import annotations

import re

_PRESETS = frozenset({"@hourly", "@daily", "@weekly", "@monthly", "@yearly"})
_MONTHS = {name: number for number, name in enumerate("JAN FEB MAR APR MAY JUN JUL AUG SEP OCT NOV DEC".split(), 1)}
_WEEKDAYS = {name: number for number, name in enumerate("SUN MON TUE WED THU FRI SAT".split())}
_FIELDS: tuple[tuple[int, int, dict[str, int]], ...] = (
    (0, 59, {}),
    (0, 23, {}),
    (1, 31, {}),
    (1, 12, _MONTHS),
    (0, 7, _WEEKDAYS),
)
_DAYS = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
_PART = re.compile(r"(\*|(?P<first>\w{1,3})(?:-(?P<last>\w{1,3}))?)(?:/(?P<step>[0-9]{1,4}))?")
_EXAMPLE = "write five fields, such as */10 * * * * (every ten minutes), or @hourly or @daily"


def schedule_problem(schedule: str) -> str | None:
    """Return what is wrong with a cron expression; None where nothing is."""
    if schedule in _PRESETS:
        return None
    texts = schedule.split()
    found = [_values(text, *field) for text, field in zip(texts, _FIELDS, strict=False)]
    if len(texts) != len(_FIELDS) or not all(found):
        return f"{schedule!r} is not a cron expression; {_EXAMPLE}"
    days, months = found[2], found[3]
    # Where a weekday is named, too, either of them suffices.
    if texts[4] == "*" and min(days) > max(_DAYS[month - 1] for month in months):
        return f"{schedule!r} never comes due: there is no such day; {_EXAMPLE}"
    return None


def _values(text: str, least: int, most: int, names: dict[str, int]) -> frozenset[int]:
    """Return the numbers that a field stands for; none where it is wrong."""
    if text.upper() == "L" and (least, most) == (1, 31):
        return frozenset({28})  # the last day, which each month has
    found: set[int] = set()
    for part in text.split(","):
        numbers = _part(part, least, most, names)
        if not numbers:
            return frozenset()
        found.update(numbers)
    return frozenset(found)


def _part(text: str, least: int, most: int, names: dict[str, int]) -> range:
    """Return what a part between commas stands for; an empty range where it is wrong."""
    if names is _WEEKDAYS:
        text = re.sub(r"#[1-5]$", "", text)  # such as MON#1, the first Monday
    match = _PART.fullmatch(text)
    if match is None:
        return range(0)
    step = int(match["step"] or 1)
    first, last = (_number(match[name], names) for name in ("first", "last"))
    if match["first"] is None:
        first, last = least, most
    elif match["last"] is None:
        last = most if match["step"] else first
    if first is None or last is None or not least <= first <= last <= most or step < 1:
        return range(0)
    return range(first, last + 1, step)


def _number(text: str | None, names: dict[str, int]) -> int | None:
    if text is None:
        return None
    return int(text) if re.fullmatch("[0-9]+", text) else names.get(text.upper())
