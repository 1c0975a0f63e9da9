"""The YAML and the transform of a new pipeline, with comments that explain them. Pure.

Its other files: ``lakebound.spec.draft.judged``.
"""

from __future__ import annotations

import json
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from string import Template

from lakebound.spec.draft.inference import Column, Inferred, ddl_name, notes_of
from lakebound.spec.draft.registered import Registered
from lakebound.spec.draft.unknown_fields import in_yaml

PLACEHOLDER = Inferred((Column("id", "STRING", is_required=True), Column("at", "TIMESTAMP")), 0, 0)
"""Where there is no sample."""

_PIPELINE = Template("""\
${editor}${origin}
# `lakebound check` checks this file; `lakebound try` shows the rows that it makes from the topic's records.
pipeline: $name

${compacted}topics: [$topic]

# Do not write a password here. With SASL:
#   sasl: {mechanism: SCRAM-SHA-512, username: lakebound, password: {env: LAKEBOUND_SECRET_KAFKA}}   # or {file: kafka}
connection:
$connection

$value$beside
# Where to start in a topic that was never landed. Afterwards the tables say where to continue.
start_from: earliest       # or latest

# How often new records become visible: 250ms, 5s, 1m; or available_now: runs on `schedule`, lands what is there, and ends.
freshness: 5s

# The function clean in transforms/$name.py, in the folder of the applications, takes a DataFrame and returns one. Delete this
# line if records need no transform: without one, small batches land faster.
transform: transforms.$name.clean

# Each table gets every record once. Nothing else may append to it.
tables:
  - format: delta          # or iceberg
    name: lake.$name
$partitioning
# If you add a column that a table lacks: refuse to start, add_columns, quarantine such records, or ignore it.
schema_evolution: $evolution
""")

_JSON = Template("""\
# The columns that the transform gets, as Spark DDL. A record that does not fit, or has no value for a NOT NULL column, goes to
# the quarantine table with its raw bytes and the reason.$required
${notes}value:
  format: json
${envelope}  schema: >-
$columns
  unknown_fields: ignore   # or quarantine: then a record with a field that is not above is a bad record
null_values: quarantine    # for records without a value; skip ignores them, delete removes their key from to_stores
""")

_BYTES = Template("""\
# No sampled record is a JSON object. Values are not decoded: they land as two binary columns, key and value.
${notes}value:
  format: bytes
""")

_REGISTERED = Template("""\
$columns
${notes}value:
$fields
null_values: quarantine    # for records without a value; skip ignores them, delete removes their key from to_stores
""")

_FOLLOWS = (
    "The schema is that of a registry. The tables get the columns of all its versions, and those of newer ones without a "
    "restart."
)

_UNREGISTERED = """\
# To decode them, remove this value and the # below, and name the registry as registries.yaml does:
# value:
#   format: avro           # or protobuf, json_schema: as the registry says of the schema
#   registry:              # docs/how-to/schema-registries.md
"""

COMPACTED = (
    "the topic is compacted (cleanup.policy): Kafka keeps only the newest record of each key. So a new table, a rewind or a "
    "replay does not get the older ones again. A record without a value is a tombstone: its key was deleted. By default it "
    "goes to quarantine; null_values: skip ignores it. A table keeps the rows that were landed of the key before"
)
"""What a reader should know of a topic that Kafka compacts."""

_TRANSFORM = Template('''\
"""The transform of the pipeline ``$name``."""

from __future__ import annotations

from pyspark.sql import DataFrame
$imports

def clean(records: DataFrame) -> DataFrame:
    """Return the rows that the tables get.

    It can select, rename and compute columns, filter rows, explode arrays (``lakebound_spark.columns.explode``) and join static
    data. Operations whose result depends on the other records of a batch are refused: groupBy, distinct, sort, window, rand.
    Keep the column ``_kafka`` in every select: it says from which record a row was made.
    """
$body
''')


@dataclass(frozen=True)
class Beginning:
    """A pipeline that is about to be written.

    Attributes:
        name: Its name.
        topic: What it reads.
        connection: YAML of its connection, below the key.
        inferred: The schema of the sample; without columns, values are taken as bytes.
        samples: Some records that fit.
        editor: First line of the YAML, by which editors complete it, with its line end; may be empty.
        is_compacted: Whether Kafka keeps only the newest record of each key.
        beside_values: Lines of YAML that would land keys and headers of the sample.
        registered: How values are read whose schema a registry has; None: no registry has one.
        is_connects: Whether the values are Kafka Connect's, with schema and payload.
        remarks: What else whoever makes it should know, a line each.
    """

    name: str
    topic: str
    connection: str
    inferred: Inferred
    samples: Sequence[bytes] = ()
    editor: str = ""
    is_compacted: bool = False
    beside_values: Sequence[str] = ()
    registered: Registered | None = None
    is_connects: bool = False
    remarks: Sequence[str] = ()

    @property
    def is_json(self) -> bool:
        """Whether the records are JSON objects."""
        return self.registered is None and bool(self.inferred.columns)


def pipeline_yaml(new: Beginning) -> str:
    """Return the pipeline's YAML."""
    return _PIPELINE.substitute(
        editor=new.editor,
        origin=comment(_origin(new)),
        name=new.name,
        topic=json.dumps(new.topic),
        connection=textwrap.indent(new.connection.rstrip(), "  "),
        value=_value(new),
        beside=_beside(new),
        evolution="refuse" if new.registered is None else "add_columns",
        compacted=comment(f"{COMPACTED[0].upper()}{COMPACTED[1:]}.") + "\n" if new.is_compacted else "",
        partitioning=_partitioning(new),
    )


def transform_source(new: Beginning) -> str:
    """Return the transform's module."""
    epochs = [one for one in new.inferred.columns if one.unit is not None]
    if not epochs:
        example = next((one.name for one in new.inferred.columns), "value")
        body = f'    # For instance: records.where("{ddl_name(example)} is not null")\n    return records'
        return _TRANSFORM.substitute(name=new.name, imports="", body=body)
    times = [f'        {json.dumps(one.name)}: from_epoch({json.dumps(ddl_name(one.name))}, "{one.unit}"),' for one in epochs]
    body = "\n".join(["    times = {", *times, "    }", "    return records.withColumns(times)"])
    return _TRANSFORM.substitute(name=new.name, imports="\nfrom lakebound_spark.columns import from_epoch\n", body=body)


def notes_of_beginning(new: Beginning) -> list[str]:
    """Return what whoever made a pipeline should know of its topic and of the schema, a line each."""
    return [*([COMPACTED] if new.is_compacted else []), *_value_notes(new)]


def comment(text: str, indent: str = "") -> str:
    """Return a text as lines of a comment."""
    return "\n".join(textwrap.wrap(text, 118, initial_indent=f"# {indent}", subsequent_indent=f"# {indent}"))


def _origin(new: Beginning) -> str:
    inferred = new.inferred
    if not inferred.records:
        return "A new pipeline. The schema below is only an example: replace it with the fields of the topic's records."
    told = f"Written from {inferred.records:,} records of the topic {new.topic}."
    if new.is_json and inferred.objects < inferred.records:
        told += f" Not all are JSON objects: {inferred.records - inferred.objects:,} of them will go to quarantine."
    return f"{told} Other records may differ: compare the schema with the documentation of the producers."


def _value_notes(new: Beginning) -> list[str]:
    """Return what is to be known of the values, a line each."""
    found = [] if new.registered is None else [new.registered.told, *new.registered.others]
    return [*found, *new.remarks, *notes_of(new.inferred)]


def _value(new: Beginning) -> str:
    notes = "".join(comment(note, "  ") + "\n" for note in _value_notes(new))
    if new.registered is not None:
        columns = ", ".join(f"{ddl_name(one.name)} {one.type}" for one in new.inferred.columns)
        told = f"{_FOLLOWS} Columns of the sampled records: {columns}." if columns else _FOLLOWS
        fields = "\n".join(f"  {name}: {in_yaml(value)}" for name, value in new.registered.fields.items())
        return _REGISTERED.substitute(columns=comment(told), notes=notes, fields=fields)
    if new.is_json:
        return _json_value(new.inferred, notes, is_connects=new.is_connects)
    return _BYTES.substitute(notes=notes) + (_UNREGISTERED if new.inferred.wire_format is not None else "")


def _json_value(inferred: Inferred, notes: str, *, is_connects: bool) -> str:
    columns = [f"    {ddl_name(one.name)} {one.type}{' NOT NULL' if one.is_required else ''}" for one in inferred.columns]
    every = any(one.is_required for one in inferred.columns) and inferred.records
    return _JSON.substitute(
        required=" Every sampled record has the columns that are NOT NULL." if every else "",
        notes=notes,
        columns=",\n".join(columns),
        envelope="  envelope: connect        # each record has schema and payload; the columns are those of payload\n"
        * is_connects,
    )


def _beside(new: Beginning) -> str:
    """Return comments that propose how keys and headers land."""
    if not new.beside_values:
        return ""
    text = "The sampled records have keys or headers. To land them as columns, remove the # (docs/how-to/keys-and-headers.md):"
    return "\n".join(["", comment(text), *(f"# {line}" for line in new.beside_values), ""])


def _partitioning(new: Beginning) -> str:
    """Return comments on how to partition, by the first time that every record has."""
    times = [one for one in new.inferred.columns if one.type == "TIMESTAMP" or one.unit is not None]
    time = next((one.name for one in times if one.is_required and ddl_name(one.name) == one.name), None)
    if time is None:
        return "    # partition_by: [COLUMN]   # a column with few values, such as a date; small tables need no partitions\n"
    return (
        f"    # Small tables need no partitions. Delta is partitioned by columns; add one in the transform:\n"
        f"    #   .withColumn('{time}_date', F.to_date('{time}'))\n"
        f"    # partition_by: [{time}_date]\n"
        f"  # - format: iceberg\n"
        f"  #   name: lake.{new.name}\n"
        f"  #   partition_by: [day({time})]\n"
    )
