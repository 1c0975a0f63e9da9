"""The pipeline as its author writes it: frozen models without unknown keys. Reading YAML is ``lakebound.spec.load``'s."""

from __future__ import annotations

import re
from typing import Any, Literal

from pydantic import Field, field_validator, model_validator

from lakebound.formats.schemas import PartOfRecord
from lakebound.frozen import Frozen
from lakebound.spec.complete_hours import CompleteHoursSpec
from lakebound.spec.connection import ConnectionSpec, SecretRef
from lakebound.spec.headers import HeaderSpec
from lakebound.spec.input_columns import clash, whole_key
from lakebound.spec.key import KeySpec
from lakebound.spec.limits import DriverLaneSpec, LimitsSpec, ThresholdsSpec
from lakebound.spec.maintenance import MaintenanceSpec
from lakebound.spec.objectives import ObjectivesSpec
from lakebound.spec.real_time import REAL_TIME, RealTimeSpec, has_both_ends, real_time_problem
from lakebound.spec.reference import ReferenceSpec
from lakebound.spec.schedule import schedule_problem
from lakebound.spec.schema_source import SchemaSourceSpec
from lakebound.spec.spark import SparkSpec
from lakebound.spec.state import StateSpec, state_problem
from lakebound.spec.table import NAME, TableSpec
from lakebound.spec.to_stores import ToStoreSpec
from lakebound.spec.to_topics import ToTopicSpec, is_topic_name
from lakebound.spec.tombstones import DELETE, ROW, NullValues, delete_problem, row_problem
from lakebound.spec.value import ValueSpec
from lakebound.spec.warehouse import DEFAULT_WAREHOUSE

_INTERVAL = re.compile(r"([0-9]{1,9}) ?(ms|s|m)")
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0}
_TRANSFORM = re.compile(r"transforms(\.[A-Za-z_]\w*)+")

AVAILABLE_NOW = "available_now"
KAFKA_COLUMN = "_kafka"
"""Struct column of every row: where in Kafka it came from."""
KAFKA_TIMESTAMP = f"{KAFKA_COLUMN}.timestamp"
"""When the record was sent; null where its producer did not tell that in milliseconds."""

SchemaEvolution = Literal["refuse", "add_columns", "quarantine", "ignore"]


class PipelineSpec(Frozen):
    """One pipeline: its topics, its transform and its tables."""

    pipeline: str = Field(pattern=NAME, description="The pipeline's name. The file is named after it: <pipeline>.yaml.")
    description: str = Field(default="", description="What the pipeline lands, in words for a person. Airflow shows it.")
    topics: tuple[str, ...] = Field(min_length=1, description="Kafka topics that are read.")
    connection: ConnectionSpec
    value: ValueSpec = Field(description="How the values of the records are decoded.")
    key: KeySpec | None = Field(
        default=None,
        description="How the keys of the records are decoded, and the columns that they become. Default: they do not land; "
        "with value: {format: bytes} as the binary column key. See docs/how-to/keys-and-headers.md.",
    )
    headers: tuple[HeaderSpec, ...] = Field(
        default=(),
        max_length=500,
        description="Headers of the records that become columns. Default: none. See docs/how-to/keys-and-headers.md.",
    )
    null_values: NullValues = Field(
        default="quarantine",
        description="What happens to tombstones, that is, records without a value. row: such a record gives a row whose "
        "columns of the value are null. delete: the key of the record is removed from to_stores; tables and topics skip the "
        "record. See docs/how-to/keys-and-headers.md and docs/how-to/stores.md.",
    )
    start_from: Literal["earliest", "latest"] = Field(
        default="earliest",
        description="Where to start to read a topic from which a table has landed nothing yet. After that, the ledger in the "
        "table says where to continue.",
    )
    freshness: str = Field(
        description="Trigger interval such as 500ms, 5s or 1m. Or available_now: the pipeline runs on 'schedule'. Or "
        "real_time: topics get each row as soon as it is read, at least once, and tables get rows at the interval "
        "real_time.tables. See docs/how-to/real-time.md.",
    )
    real_time: RealTimeSpec = Field(
        default=RealTimeSpec(), description="Settings for freshness: real_time. Without it they are not used."
    )
    schedule: str = Field(default="*/10 * * * *", description="Cron expression. Only available_now pipelines use it.")
    schema_evolution: SchemaEvolution = Field(
        default="refuse",
        description="What happens when the pipeline has a column that an existing table does not have. refuse: the pipeline "
        "does not start. add_columns: the column is added to the table, and types are widened where the format supports it. "
        "quarantine: records that have such a field go to the quarantine table. ignore: the column is not written. "
        "Default where the schema of values or keys is that of a registry: add_columns.",
    )
    transform: str | None = Field(
        default=None,
        description="A function in spark_apps/transforms, as transforms.module.function. DataFrame in, DataFrame out.",
    )
    state: StateSpec | None = Field(
        default=None,
        description="The transform makes one windowed aggregation (tumbling or sliding). A row is landed once, when its window "
        "is closed. See docs/how-to/windows.md.",
    )
    reference: dict[str, ReferenceSpec] = Field(
        default_factory=dict,
        description="Reference data: small tables that change, each with a name. The transform gets them as its second "
        "parameter, a mapping of these names to DataFrames. See docs/how-to/reference-data.md.",
    )
    tables: tuple[TableSpec, ...] = Field(
        default=(),
        description="Target tables. Every row is written to each of them. No other pipeline may write to them. They may be "
        "left out if there are to_topics.",
    )
    to_topics: tuple[ToTopicSpec, ...] = Field(
        default=(),
        description="Kafka topics that get every row as JSON, in addition to the tables or instead of them. Each row is "
        "written once; with freshness: real_time at least once. See docs/how-to/topics.md.",
    )
    to_stores: tuple[ToStoreSpec, ...] = Field(
        default=(),
        description="Tables in PostgreSQL and keys in Redis that hold the newest row of each key, or its counters. Each "
        "row takes effect once. See docs/how-to/stores.md.",
    )
    quarantine: TableSpec | None = Field(
        default=None, description="Table of records that could not be landed. Default: a Delta table quarantine.<pipeline>."
    )
    quarantine_samples: int = Field(
        default=0,
        ge=0,
        le=10,
        description="Number of the newest bad records per reason that the application also keeps in its state, shortened and "
        "escaped. The page in Airflow shows them to users who may edit the pipeline's DAG. With 0, no value of a record "
        "leaves the tables. With freshness: real_time and without tables, no samples are kept: bad records are in the "
        "quarantine topic. See docs/how-to/quarantine.md.",
    )
    warehouse: str = Field(
        default=DEFAULT_WAREHOUSE,
        pattern=NAME,
        description="Where the tables are: a warehouse of warehouses.yaml. Default: the folder LAKEBOUND_WAREHOUSE.",
    )
    limits: LimitsSpec = LimitsSpec()
    driver_lane: DriverLaneSpec = DriverLaneSpec()
    thresholds: ThresholdsSpec = ThresholdsSpec()
    maintenance: MaintenanceSpec = MaintenanceSpec()
    objectives: ObjectivesSpec = ObjectivesSpec()
    complete_hours: CompleteHoursSpec | None = Field(
        default=None,
        description="Airflow gets an event per table and hour once everything of that hour has landed. Default: none.",
    )
    spark: SparkSpec = SparkSpec()
    approvers: tuple[str, ...] = Field(
        default=(),
        description="Names of the Airflow users who may approve a repair by the DAG recover. Default: every user who may "
        "answer in Airflow.",
    )
    owners: tuple[str, ...] | None = Field(
        default=None,
        description="Roles of Airflow's FAB auth manager that may see, edit and trigger the pipeline's DAGs. The variable "
        "LAKEBOUND_AIRFLOW_ROLES must name them, too. It has no effect with other auth managers.",
    )

    @model_validator(mode="before")
    @classmethod
    def _follows_the_registry(cls, body: Any) -> Any:
        parts = [body.get(part) for part in ("value", "key")] if isinstance(body, dict) else []
        if any(isinstance(part, dict) and "registry" in part and "schema" not in part for part in parts):
            return {"schema_evolution": "add_columns", **body}
        return body

    @field_validator("topics")
    @classmethod
    def _topics(cls, topics: tuple[str, ...]) -> tuple[str, ...]:
        for topic in topics:
            if not is_topic_name(topic):
                raise ValueError(f"{topic!r} is not a Kafka topic name")
        if len(set(topics)) != len(topics):
            raise ValueError("a topic is named twice")
        return topics

    @field_validator("approvers", "owners")
    @classmethod
    def _people(cls, names: tuple[str, ...] | None) -> tuple[str, ...] | None:
        if any(name != name.strip() or not name for name in names or ()):
            raise ValueError("a name is empty, or has blanks around it")
        if names and len(set(names)) != len(names):
            raise ValueError("a name is given twice")
        return names

    @field_validator("freshness")
    @classmethod
    def _freshness(cls, freshness: str) -> str:
        parse_freshness(freshness)
        return freshness

    @field_validator("schedule")
    @classmethod
    def _schedule(cls, schedule: str) -> str:
        if problem := schedule_problem(schedule):
            raise ValueError(problem)
        return schedule

    @field_validator("transform")
    @classmethod
    def _transform(cls, transform: str | None) -> str | None:
        if transform is not None and not _TRANSFORM.fullmatch(transform):
            raise ValueError(
                f"{transform!r} is not the dotted name of a function in spark_apps/transforms, such as transforms.orders.clean"
            )
        return transform

    @model_validator(mode="after")
    def _lands_somewhere(self) -> PipelineSpec:
        if not self.tables and not self.to_topics:
            beside = "; to_stores needs one of them beside it, such as {format: delta, name: …}" if self.to_stores else ""
            raise ValueError(f"tables: is missing; name a table here, or a topic in to_topics{beside}")
        if not self.tables and self.complete_hours is not None:
            raise ValueError("complete_hours: only tables have complete hours, and the pipeline has no tables")
        return self

    @model_validator(mode="after")
    def _distinct_tables(self) -> PipelineSpec:
        ids = [table.id for table in (*self.tables, self.quarantine_table)]
        if len(set(ids)) != len(ids):
            raise ValueError(f"tables: a table is named twice: {', '.join(ids)}")
        if self.quarantine_table.partition_by:
            raise ValueError("quarantine: the quarantine table cannot be partitioned")
        return self

    @model_validator(mode="after")
    def _distinct_topics(self) -> PipelineSpec:
        written = [one.topic for one in self.to_topics]
        if len(set(written)) != len(written):
            raise ValueError("to_topics: a topic is named twice")
        if both := sorted({*written} & {*self.topics}):
            raise ValueError(f"to_topics: {both[0]} is a topic that the pipeline reads: it would read its own rows for ever")
        return self

    @model_validator(mode="after")
    def _distinct_stores(self) -> PipelineSpec:
        # By their names alone: progress, proof and ledgers know a target by its id.
        ids = [one.id for one in self.to_stores]
        if len(set(ids)) != len(ids):
            raise ValueError("to_stores: a store is named twice")
        return self

    @model_validator(mode="after")
    def _distinct_columns(self) -> PipelineSpec:
        if (problem := clash(self)) is not None:
            raise ValueError(problem)
        return self

    @model_validator(mode="after")
    def _tombstones(self) -> PipelineSpec:
        problem = None
        if self.null_values == DELETE:
            problem = delete_problem(self.to_stores, self.value, self.whole_key[0] if self.whole_key else None)
        elif self.null_values == ROW:
            problem = row_problem(self.value)
        if problem is not None:
            raise ValueError(f"null_values: {problem}")
        return self

    @model_validator(mode="after")
    def _real_time(self) -> PipelineSpec:
        problem = real_time_problem(self) if self.freshness == REAL_TIME else None
        if problem is not None:
            raise ValueError(f"{problem[0][0]}: {problem[1]}")
        return self

    @model_validator(mode="after")
    def _state(self) -> PipelineSpec:
        problem = state_problem(self) if self.state is not None else None
        if problem is not None:
            raise ValueError(f"{problem[0][0]}: {problem[1]}")
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

    @model_validator(mode="after")
    def _usable_references(self) -> PipelineSpec:
        if self.reference and self.transform is None:
            raise ValueError("reference: only a transform can use it, and the pipeline has no transform")
        own = {(table.format, table.namespace, table.short_name) for table in (*self.tables, self.quarantine_table)}
        for name, one in self.reference.items():
            if not re.fullmatch(NAME, name):
                raise ValueError(f"reference: {name!r} is not a name: lower-case letters, digits and _, a letter first")
            namespace, _, short = (one.name or "").rpartition(".")
            if (one.format, namespace or "default", short) in own:
                raise ValueError(f"reference.{name}: {one.told} is a table of this pipeline, which changes with each batch")
        return self

    @property
    def reference_secrets(self) -> dict[tuple[str, ...], SecretRef]:
        """Where the secrets of its reference data are, by their keys in the YAML."""
        named = self.reference.items()
        return {("reference", name, *keys): ref for name, one in named for keys, ref in one.secrets.items()}

    @property
    def store_secrets(self) -> dict[tuple[str | int, ...], SecretRef]:
        """Where the secrets of its stores are, by their keys in the YAML."""
        named = enumerate(self.to_stores)
        return {("to_stores", position, *keys): ref for position, one in named for keys, ref in one.secrets.items()}

    @property
    def secrets(self) -> dict[tuple[str | int, ...], SecretRef]:
        """Where all of its secrets are, by their keys in the YAML."""
        parts = (self.connection.secrets.items(), self.reference_secrets.items())
        return {keys: ref for part in parts for keys, ref in part} | self.store_secrets

    @property
    def certificate_files(self) -> dict[tuple[str | int, ...], str]:
        """The files with certificates that it names, by their keys in the YAML."""
        sasl, references, stores = self.connection.sasl, self.reference.items(), enumerate(self.to_stores)
        named: dict[tuple[str | int, ...], str | None] = {
            ("connection", "tls_ca_file"): self.connection.tls_ca_file,
            ("connection", "tls_certificate_file"): self.connection.tls_certificate_file,
            ("connection", "sasl", "token_ca_file"): sasl.token_ca_file if sasl else None,
        }
        named |= {
            ("reference", name, "postgres", "tls_ca_file"): one.postgres.tls_ca_file for name, one in references if one.postgres
        }
        for position, store in stores:
            server = store.postgres or store.redis
            named["to_stores", position, store.format, "tls_ca_file"] = server.tls_ca_file if server else None
        return {keys: file for keys, file in named.items() if file}

    @property
    def schema_sources(self) -> dict[PartOfRecord, SchemaSourceSpec]:
        """The parts of its records that have a schema of their own."""
        return {one.part: one for one in (self.value, self.key) if isinstance(one, SchemaSourceSpec)}

    @property
    def whole_key(self) -> tuple[str, str] | None:
        """The column that holds each record's key as it is, and its format; None where none does."""
        return whole_key(self.value, self.key)

    @property
    def targets_by_key(self) -> dict[str, tuple[ToTopicSpec | ToStoreSpec, ...]]:
        """What rows go to beside the tables, by the key in the YAML: every key that begins with ``to_``."""
        return {name: getattr(self, name) for name in PipelineSpec.model_fields if name.startswith("to_")}

    @property
    def other_targets(self) -> tuple[ToTopicSpec | ToStoreSpec, ...]:
        """What rows go to beside the tables."""
        return tuple(one for found in self.targets_by_key.values() for one in found)

    @property
    def takes_batches(self) -> tuple[str, ...]:
        """The keys of all targets that get rows in batches where topics get them in real time: tables first."""
        others = (key for key, found in self.targets_by_key.items() if found and key != "to_topics")
        return (*(("tables",) if self.tables else ()), *others)

    @property
    def quarantine_table(self) -> TableSpec:
        """The table of records that could not be landed."""
        return self.quarantine or TableSpec(format="delta", name=f"quarantine.{self.pipeline}")

    @property
    def quarantine_topic(self) -> str:
        """The topic of records that could not be sent on in real time."""
        return self.real_time.quarantine_topic or f"quarantine.{self.pipeline}"

    @property
    def main_table(self) -> TableSpec:
        """The table by whose commits the others' maintenance is timed: the first, or the quarantine where it is alone."""
        return (*self.tables, self.quarantine_table)[0]

    def pace(self, freshness: str | None = None) -> str:
        """Return the interval between commits, as text; the longer one where topics and tables have one each.

        Args:
            freshness: The one that a start was asked for instead of the YAML's.
        """
        wanted = freshness or self.freshness
        if wanted != REAL_TIME:
            return wanted
        epoch, beside = self.real_time.epoch, self.real_time.tables
        if beside is None or not has_both_ends(self, wanted):
            return epoch
        return max(epoch, beside, key=lambda interval: parse_freshness(interval) or 0.0)

    def tables_freshness(self, freshness: str | None = None) -> str:
        """Return the freshness with which tables and stores get rows: in real time it is one of their own.

        Args:
            freshness: The one that a start was asked for instead of the YAML's.
        """
        wanted = freshness or self.freshness
        return self.real_time.tables or wanted if wanted == REAL_TIME else wanted

    def epoch_seconds(self, freshness: str | None = None) -> int:
        """Return for how long rows are sent before the ledger notes it: the epoch in real time, 0 in batches.

        Args:
            freshness: The one that a start was asked for instead of the YAML's.
        """
        return self.real_time.epoch_seconds if (freshness or self.freshness) == REAL_TIME else 0

    @property
    def runs_continuously(self) -> bool:
        """False for ``available_now``: such a pipeline runs on its cron schedule and ends."""
        return self.freshness != AVAILABLE_NOW


def parse_freshness(freshness: str) -> float | None:
    """Return the trigger interval in seconds, or None for ``available_now``; 0 in real time, whose epochs ``pace`` tells.

    Raises:
        ValueError: It is neither.
    """
    if freshness == AVAILABLE_NOW:
        return None
    if freshness == REAL_TIME:
        return 0.0
    match = _INTERVAL.fullmatch(freshness)
    if match is None:
        raise ValueError(f"{freshness!r} is neither available_now nor real_time nor an interval such as 500ms, 5s or 1m")
    return int(match[1]) * _SECONDS[match[2]]
