"""Whether a cron expression is one that Airflow takes, and that ever comes due. Pure."""

from __future__ import annotations

import re
from datetime import UTC, datetime

_PRESETS = frozenset({"@hourly", "@daily", "@weekly", "@monthly", "@yearly"})
_WORDS = frozenset("JAN FEB MAR APR MAY JUN JUL AUG SEP OCT NOV DEC SUN MON TUE WED THU FRI SAT L".split())
_FIELDS = 5
_EXAMPLE = "write five fields, such as */10 * * * * (every ten minutes), or @hourly or @daily"


def schedule_problem(schedule: str) -> str | None:
    """Return what is wrong with a cron expression; None where nothing is.

    Airflow reads it with croniter, too: https://airflow.apache.org/docs/apache-airflow/stable/authoring-and-scheduling/cron.html.
    """
    from croniter import CroniterError, croniter  # a third of a second, and most pipelines have no schedule

    if schedule in _PRESETS:
        return None
    # Of croniter's own letters R and H stand for something random, which would be another time whenever the file is read.
    words = {word.upper() for word in re.findall(r"[A-Za-z]+", schedule)}
    if len(schedule.split()) != _FIELDS or not words <= _WORDS or not croniter.is_valid(schedule):
        return f"{schedule!r} is not a cron expression; {_EXAMPLE}"
    try:
        croniter(schedule, datetime.now(UTC)).get_next()
    except CroniterError:
        return f"{schedule!r} never comes due: there is no such day; {_EXAMPLE}"
    return None
