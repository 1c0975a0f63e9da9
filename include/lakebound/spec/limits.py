"""How far one application of a pipeline may go: limits, what the driver itself writes, and when an alert is raised."""

from __future__ import annotations

from pydantic import Field

from lakebound.frozen import Frozen


class LimitsSpec(Frozen):
    """Limits of one Spark application."""

    max_records_per_batch: int = Field(
        default=1_000_000,
        ge=1,
        description="Maximum number of records per micro-batch. It applies when there is a backlog. Batches of the default "
        "size write files of 32 MiB and more. Choose a smaller number where a batch takes longer than "
        "thresholds.stall_seconds.",
    )
    lease_ttl_seconds: float = Field(
        default=30.0, ge=2, description="Another application may take the lease after this time without a heartbeat."
    )
    stop_timeout_seconds: float = Field(
        default=60.0,
        gt=0,
        description="How long Spark waits for its query to stop. If an application that Airflow replaces has not stopped 30 s "
        "after this time, Airflow kills it.",
    )
    idle_entry_seconds: float = Field(
        default=60.0, gt=0, description="How often a ledger entry is committed while batches contain no rows."
    )
    commit_attempts: int = Field(
        default=8, ge=1, description="How often one commit to a table is tried before it counts as failed."
    )
    max_failed_starts: int = Field(
        default=3,
        ge=1,
        le=1_000_000,  # Airflow keeps it in a column of 32 bits, beside those of every other DAG of the file
        description="After this many starts in a row that land no record, the pipeline does not start again until a person "
        "acts. Starts that an outage ends do not count.",
    )
    failed_start_pause_seconds: float = Field(
        default=15.0,
        ge=0,
        description="Pause after a start that landed no record. Each further such start makes the pause four times as long.",
    )
    outage_seconds: float = Field(
        default=600.0, gt=0, description="How long an application waits for Kafka or a catalog to return."
    )


class DriverLaneSpec(Frozen):
    """The driver writes batches within these limits where that is faster. Spark's executors write larger batches."""

    max_rows: int = Field(
        default=50_000, ge=0, description="Maximum number of rows. With 0, Spark's executors write every batch."
    )
    max_bytes: int = Field(
        default=32 * 1024 * 1024,
        ge=0,
        description="Maximum size of the batch's rows. The size is estimated from recent batches; a row counts as many bytes "
        "as its record's value.",
    )
    direct: bool = Field(
        default=True,
        description="The driver also reads and decodes batches of any size, slice by slice, and Spark runs the transform on "
        "the decoded records. The driver does this only if it is faster and the result is certainly the same as "
        "Spark's. With false, Spark always reads and decodes.",
    )


class ThresholdsSpec(Frozen):
    """When an alert is raised."""

    stall_seconds: float = Field(
        default=60.0,
        gt=0,
        description="The stream stalls when the application reports nothing for this long, or when nothing is committed for "
        "this long while Kafka has new records.",
    )
    max_lag_seconds: float = Field(
        default=300.0, gt=0, description="The doctor warns when the oldest record that waits in Kafka is older than this."
    )
