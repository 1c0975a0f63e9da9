"""The ``complete_hours`` block of a pipeline: when an hour or a day of its tables counts as complete."""

from __future__ import annotations

import re
from typing import Literal

from pydantic import Field, field_validator

from lakebound.frozen import Frozen

HourUnit = Literal["hour", "day"]

_GRACE = re.compile(r"(\d+) ?(s|m|h)")
_SECONDS = {"s": 1, "m": 60, "h": 3600}
_COLUMN = re.compile(r"[A-Za-z_]\w*")


class CompleteHoursSpec(Frozen):
    """Airflow gets an event per table and hour once everything of that hour has landed."""

    unit: Literal["hour", "day"] = Field(default="hour", description="Whether hours or days are announced. Both are in UTC.")
    column: str | None = Field(
        default=None,
        description="Column of the tables that says to which hour a row belongs: a timestamp, or with unit: day also a date. "
        "Rows where it is null belong to no hour. Default: Kafka's timestamp of the record.",
    )
    grace: str = Field(
        default="5m",
        description="Waiting time after the end of an hour, such as 30s, 5m or 1h. The hour is announced when everything that "
        "Kafka has at the end of this time has landed. Rows that come later cause a further event.",
    )

    @field_validator("column")
    @classmethod
    def _column(cls, column: str | None) -> str | None:
        if column is not None and not _COLUMN.fullmatch(column):
            raise ValueError(f"{column!r} is not the name of a top-level column")
        return column

    @field_validator("grace")
    @classmethod
    def _grace(cls, grace: str) -> str:
        if not _GRACE.fullmatch(grace):
            raise ValueError(f"{grace!r} is not a time such as 30s, 5m or 1h")
        return grace

    @property
    def grace_ms(self) -> int:
        """The grace in milliseconds."""
        match = _GRACE.fullmatch(self.grace)
        assert match is not None
        return int(match[1]) * _SECONDS[match[2]] * 1000
