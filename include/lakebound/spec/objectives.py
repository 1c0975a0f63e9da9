"""The ``objectives`` block of a pipeline: what is promised of it. An objective that is missed becomes an alert."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field


class ObjectivesSpec(BaseModel):
    """Service level objectives of the pipeline. An objective that is left out is not checked."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    freshness_p99_seconds: float | None = Field(
        default=None,
        gt=0,
        description="99 % of the records of the last five minutes reach the tables within this time after they were produced.",
    )
    lag_seconds: float | None = Field(default=None, gt=0, description="No record waits in Kafka for longer than this.")
    completeness: bool = Field(
        default=True, description="The last proof (lakebound prove) found no missing and no duplicate records."
    )
    quality_pass_rate: float | None = Field(
        default=None,
        gt=0,
        le=1,
        description="At least this fraction of the rows of the last validation meets the expectations.",
    )
