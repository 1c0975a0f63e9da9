"""The ``objectives`` block of a pipeline: what is promised of it. An objective that is missed becomes an alert."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field


class ObjectivesSpec(BaseModel):
    """What is promised; what is left out is not judged."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    freshness_p99_seconds: float | None = Field(
        default=None,
        gt=0,
        description="Of 100 records 99 are in the tables so soon after they were produced, over the last five minutes.",
    )
    lag_seconds: float | None = Field(default=None, gt=0, description="No record waits in Kafka for longer.")
    completeness: bool = Field(default=True, description="The last proof (lakebound prove) found nothing missing or doubled.")
    quality_pass_rate: float | None = Field(
        default=None, gt=0, le=1, description="At least this part of the rows that the last validation looked at is right."
    )
