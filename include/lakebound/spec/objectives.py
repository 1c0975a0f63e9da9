"""The ``objectives`` block of a pipeline: what is promised of it. An objective that is missed becomes an alert."""

from __future__ import annotations

from pydantic import Field

from lakebound.frozen import Frozen


class QuarantineRateSpec(Frozen):
    """The maximum share of records that may go to quarantine before somebody is told."""

    max_share: float = Field(
        default=0.05, ge=0, le=1, description="Maximum share of the records of the last over_seconds that is quarantined."
    )
    over_seconds: float = Field(
        default=300.0, ge=10, le=3600, description="Length of the period for which the share is calculated."
    )
    min_quarantined: int = Field(
        default=10,
        ge=1,
        description="If fewer records are quarantined in this period, there is no alert and no stop, even if the share is "
        "high.",
    )
    stop_at: float | None = Field(
        default=None,
        gt=0,
        le=1,
        description="When at least this share is quarantined, the application ends after its batch, and the pipeline is held "
        "until a person starts it. Default: the application continues.",
    )


class ObjectivesSpec(Frozen):
    """Service level objectives of the pipeline. An objective that is left out is not checked."""

    freshness_p99_seconds: float | None = Field(
        default=None,
        gt=0,
        description="99 % of the records of the last five minutes reach the tables within this time after they were produced.",
    )
    lag_seconds: float | None = Field(
        default=None, gt=0, description="While records wait in Kafka, the newest landed record is not older than this."
    )
    completeness: bool = Field(
        default=True, description="The last proof (lakebound prove) found no missing and no duplicate records."
    )
    quality_pass_rate: float | None = Field(
        default=None,
        gt=0,
        le=1,
        description="At least this fraction of the rows of the last validation meets the expectations.",
    )
    quarantine_rate: QuarantineRateSpec | None = Field(
        default=QuarantineRateSpec(),
        description="Maximum share of records that may go to quarantine. It is checked by default; null switches it off.",
    )
