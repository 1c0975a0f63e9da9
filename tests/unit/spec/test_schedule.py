from __future__ import annotations

import pytest

from lakebound.spec.schedule import schedule_problem

RIGHT = (
    *("*/10 * * * *", "0 0 * * *", "5,35 8-18 * * MON-FRI", "0 0 1-7/2 JAN,jul *", "0 0 L * *", "0 0 * * MON#1", "0 0 29 2 *"),
    *("0 0 31 2 MON", "0 0 31 2,3 *", "0 0 * * 7", "10/15 * * * *", "@hourly", "@daily"),
)
WRONG = (
    *(
        "",
        "garbage",
        "99 99 * * *",
        "* * * *",
        "* * * * * *",
        "R * * * *",
        "H * * * *",
        "*/0 * * * *",
        "5-1 * * * *",
        "60 * * * *",
    ),
    *("* * 0 * *", "* * * 13 *", "* * * FOO *", "@once", "@continuous", "1,,2 * * * *", "1- * * * *", "² * * * *", "* * * * 8"),
)


@pytest.mark.parametrize("schedule", RIGHT)
def test_right_ones(schedule: str) -> None:
    assert schedule_problem(schedule) is None


@pytest.mark.parametrize("schedule", WRONG)
def test_wrong_ones(schedule: str) -> None:
    assert "is not a cron expression" in (schedule_problem(schedule) or "")


@pytest.mark.parametrize("schedule", ["0 0 31 2 *", "0 0 30 2 *", "0 0 31 4,6,9,11 *"])
def test_days_that_no_month_has(schedule: str) -> None:
    assert "never comes due" in (schedule_problem(schedule) or "")
