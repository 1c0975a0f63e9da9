"""The pipeline as its author writes it: frozen models without unknown keys. Reading YAML is ``lakebound.spec.load``'s."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, JsonValue, field_validator, model_validator

from lakebound.spec.ddl import ddl_mistakes
from lakebound.spec.json_schema import to_ddl
from lakebound.spec.maintenance import MaintenanceSpec
from lakebound.spec.objectives import ObjectivesSpec

NAME = r"^[a-z][a-z0-9_]{0,62}$"
_TOPIC = re.compile(r"^[a-zA-Z0-9._-]{1,249}$")
_INTERVAL = re.compile(r"^(\d+) ?(ms|s|m)$")
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0}
_PARTITION = re.compile(r"^(?:(year|month|day|hour|identity)\(([A-Za-z_]\w*)\)|truncate\((\d+), ?([A-Za-z_]\w*)\))$")
_COLUMN = re.compile(r"^[A-Za-z_]\w*$")

AVAILABLE_NOW = "available_now"
KAFKA_COLUMN = "_kafka"
"""Struct column of every row: where in Kafka it came from."""

SchemaEvolution = Literal["refuse", "add_columns", "quarantine", "ignore"]


class Frozen(BaseModel):
    """Base of every model: immutable, and a key that it does not know is a mistake."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class SecretRef(Frozen):
    """Where a secret is: never the secret itself."""

    env: str | None = Field(default=None, description="Name of an environment variable of the Spark application.")
    file: str | None = Field(default=None, description="Path of a file that holds the secret, as mounted secrets do.")

    @model_validator(mode="after")
    def _one_place(self) -> SecretRef:
        if (self.env is None) == (self.file is None):
            raise ValueError("give either env or file")
        return self

    def __str__(self) -> str:
        return f"environment variable {self.env}" if self.env else f"file {self.file}"


class SaslSpec(Frozen):
    """How to log in to Kafka."""

    mechanism: Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"] = "PLAIN"
    username: str
    password: SecretRef


class ConnectionSpec(Frozen):
    """The broker. ``${LAKEBOUND_KAFKA}`` and other ``${NAME}`` are taken from the environment when the YAML is read."""

    bootstrap_servers: str = Field(min_length=1)
    tls: bool = False
    tls_ca_file: str | None = Field(default=None, description="PEM file of the authority that signed the broker's certificate.")
    sasl: SaslSpec | None = None

    @property
    def security_protocol(self) -> str:
        """Kafka's name for this combination of TLS and SASL."""
        return ("SASL_" if self.sasl else "") + ("SSL" if self.tls else "PLAINTEXT")


class JsonValueSpec(Frozen):
    """Values are JSON objects."""

    format: Literal["json"]
    value_schema: str = Field(
        alias="schema", min_length=1, description="Spark DDL; a NOT NULL column is required in every record."
    )
    json_schema: dict[str, JsonValue] | None = Field(
        default=None, description="JSON Schema of the records, in place of 'schema'; its required properties are NOT NULL."
    )
    unknown_fields: Literal["ignore", "quarantine"] = Field(
        default="ignore", description="What becomes of a record with a field that the schema does not name."
    )

    @model_validator(mode="before")
    @classmethod
    def _one_schema(cls, body: Any) -> Any:
        """Work the columns out of a JSON Schema; a spec that was read already has both, and they agree."""
        if not isinstance(body, dict) or not isinstance(body.get("json_schema"), dict):
            return body
        columns = to_ddl(body["json_schema"])
        if body.get("schema", columns) != columns:
            raise ValueError("give either schema or json_schema")
        return {**body, "schema": columns}

    @field_validator("value_schema")
    @classmethod
    def _types(cls, schema: str) -> str:
        mistakes = ddl_mistakes(schema)
        if mistakes:
            raise ValueError("; ".join(mistakes))
        return schema


class BytesValueSpec(Frozen):
    """Values are taken as they are, as one binary column ``value``."""

    format: Literal["bytes"]


ValueSpec = Annotated[JsonValueSpec | BytesValueSpec, Field(discriminator="format")]


class PartitionField(NamedTuple):
    """One field of a table's partitioning.

    Attributes:
        transform: ``identity``, ``year``, ``month``, ``day``, ``hour`` or ``truncate``.
        width: Of ``truncate`` alone.
        column: What is transformed.
    """

    transform: str
    width: int | None
    column: str

    def __str__(self) -> str:
        if self.transform == "identity":
            return self.column
        return f"{self.transform}({f'{self.width}, ' if self.width else ''}{self.column})"


class TableSpec(Frozen):
    """One target table."""

    format: Literal["delta", "iceberg"]
    name: str = Field(description="namespace.table, or a table name alone (namespace 'default').")
    partition_by: tuple[str, ...] = ()
    properties: dict[str, str] = Field(default_factory=dict)

    @field_validator("name")
    @classmethod
    def _name(cls, name: str) -> str:
        if not all(re.match(NAME, part) for part in name.split(".")) or name.count(".") > 1:
            raise ValueError(f"{name!r} is not a table name: one or two of [a-z][a-z0-9_]*, joined by a dot")
        return name

    @model_validator(mode="after")
    def _partitioning(self) -> TableSpec:
        for field in self.partition_by:
            if _COLUMN.match(field):
                continue
            if self.format == "delta":
                raise ValueError(f"partition_by: {field!r}: Delta partitions by columns only")
            if not _PARTITION.match(field):
                raise ValueError(
                    f"partition_by: {field!r} is none of: column, year(c), month(c), day(c), hour(c), truncate(n, c)"
                )
        return self

    @property
    def id(self) -> str:
        """``format:name``, the table's name in progress, reports and messages."""
        return f"{self.format}:{self.name}"

    @property
    def namespace(self) -> str:
        """Part before the dot, or ``default``."""
        return self.name.rpartition(".")[0] or "default"

    @property
    def short_name(self) -> str:
        """Part after the dot."""
        return self.name.rpartition(".")[2]

    def partition_fields(self) -> tuple[PartitionField, ...]:
        """The partitioning that a new table gets; that of an existing one is what the table itself says (``Table.layout``)."""
        fields: list[PartitionField] = []
        for text in self.partition_by:
            match = _PARTITION.match(text)
            if match is None:
                fields.append(PartitionField("identity", None, text))
            elif match[1]:
                fields.append(PartitionField(match[1], None, match[2]))
            else:
                fields.append(PartitionField("truncate", int(match[3]), match[4]))
        return tuple(fields)


class LimitsSpec(Frozen):
    """Bounds of one application."""

    max_records_per_batch: int = Field(
        default=1_000_000,
        ge=1,
        description="Of a backlog: so many make files of 32 MiB and more. Fewer where such a batch takes longer than "
        "thresholds.stall_seconds.",
    )
    lease_ttl_seconds: float = Field(default=30.0, ge=2, description="A lease without a sign of life for so long may be taken.")
    stop_timeout_seconds: float = Field(default=60.0, gt=0)
    idle_entry_seconds: float = Field(default=60.0, gt=0, description="Batches without rows commit an entry this often.")
    commit_attempts: int = Field(default=8, ge=1)
    max_failed_starts: int = Field(default=3, ge=1, description="Starts without a landed record before a person is asked.")
    failed_start_pause_seconds: float = Field(
        default=15.0,
        ge=0,
        description="Pause before the next start after one that landed nothing; four times as long after each further one.",
    )
    outage_seconds: float = Field(default=600.0, gt=0, description="How long an outage of Kafka or a catalog is waited out.")


class DriverLaneSpec(Frozen):
    """A batch within these bounds is written by the driver, where that is faster; a larger one by Spark's executors."""

    max_rows: int = Field(default=50_000, ge=0, description="0: Spark's executors write every batch.")
    max_bytes: int = Field(
        default=32 * 1024 * 1024,
        ge=0,
        description="Bytes of its rows, estimated from recent batches; a row counts as its record's value.",
    )
    direct: bool = Field(
        default=True,
        description="Without a transform the driver also reads and decodes a batch of any size, slice by slice, where that is "
        "beyond doubt, and faster; false: Spark always does.",
    )


class ThresholdsSpec(Frozen):
    """When somebody should be told."""

    stall_seconds: float = Field(default=60.0, gt=0, description="Silence, or growth of Kafka without a commit.")
    max_lag_seconds: float = Field(default=300.0, gt=0)


class PipelineSpec(Frozen):
    """One pipeline: topics, a transform, tables."""

    pipeline: str = Field(pattern=NAME)
    description: str = ""
    topics: tuple[str, ...] = Field(min_length=1)
    connection: ConnectionSpec
    value: ValueSpec
    null_values: Literal["quarantine", "skip"] = Field(default="quarantine", description="Tombstones: records without a value.")
    start_from: Literal["earliest", "latest"] = "earliest"
    freshness: str = Field(description="available_now, or an interval such as 500ms, 5s, 1m.")
    schedule: str = Field(default="*/10 * * * *", description="Cron; used by available_now pipelines only.")
    schema_evolution: SchemaEvolution = Field(
        default="refuse",
        description="When the pipeline has a column that an existing table lacks: refuse to start; add the column (and widen "
        "types where the format can); send records that have such a field to quarantine; or leave the column out.",
    )
    transform: str | None = Field(default=None, description="module.function in spark_apps/: DataFrame in, DataFrame out.")
    tables: tuple[TableSpec, ...] = Field(min_length=1)
    quarantine: TableSpec | None = Field(default=None, description="Default: a Delta table quarantine.<pipeline>.")
    limits: LimitsSpec = LimitsSpec()
    driver_lane: DriverLaneSpec = DriverLaneSpec()
    thresholds: ThresholdsSpec = ThresholdsSpec()
    maintenance: MaintenanceSpec = MaintenanceSpec()
    objectives: ObjectivesSpec = ObjectivesSpec()

    @field_validator("topics")
    @classmethod
    def _topics(cls, topics: tuple[str, ...]) -> tuple[str, ...]:
        for topic in topics:
            if not _TOPIC.match(topic):
                raise ValueError(f"{topic!r} is not a Kafka topic name")
        if len(set(topics)) != len(topics):
            raise ValueError("a topic is named twice")
        return topics

    @field_validator("freshness")
    @classmethod
    def _freshness(cls, freshness: str) -> str:
        parse_freshness(freshness)
        return freshness

    @field_validator("transform")
    @classmethod
    def _transform(cls, transform: str | None) -> str | None:
        if transform is not None and not re.match(r"^[A-Za-z_]\w*(\.[A-Za-z_]\w*)+$", transform):
            raise ValueError(f"{transform!r} is not a dotted function such as transforms.orders.clean")
        return transform

    @model_validator(mode="after")
    def _distinct_tables(self) -> PipelineSpec:
        ids = [table.id for table in (*self.tables, self.quarantine_table)]
        if len(set(ids)) != len(ids):
            raise ValueError(f"tables: one is named twice: {', '.join(ids)}")
        if self.quarantine_table.partition_by:
            raise ValueError("quarantine: its partitioning is fixed (none)")
        return self

    @model_validator(mode="after")
    def _known_readers(self) -> PipelineSpec:
        # A reader whose table is misspelt would not be protected by anything.
        tables = (*self.tables, self.quarantine_table)
        for reader in self.maintenance.readers:
            if sum(reader.table in (table.id, table.name) for table in tables) != 1:
                known = ", ".join(table.id for table in tables)
                raise ValueError(f"maintenance.readers: {reader.table!r} is not one of the tables: {known}")
        return self

    @property
    def quarantine_table(self) -> TableSpec:
        """The table of records that could not be landed."""
        return self.quarantine or TableSpec(format="delta", name=f"quarantine.{self.pipeline}")

    @property
    def runs_continuously(self) -> bool:
        """False for ``available_now``: such a pipeline runs on its cron schedule and ends."""
        return self.freshness != AVAILABLE_NOW


def parse_freshness(freshness: str) -> float | None:
    """Return the trigger interval in seconds, or None for ``available_now``.

    Raises:
        ValueError: It is neither.
    """
    if freshness == AVAILABLE_NOW:
        return None
    if freshness == "real_time":
        raise ValueError("real_time is not available yet; the nearest is 0ms, which starts a batch as soon as one ended")
    match = _INTERVAL.match(freshness)
    if match is None:
        raise ValueError(f"{freshness!r} is neither available_now nor an interval such as 500ms, 5s or 1m")
    return int(match[1]) * _SECONDS[match[2]]
