"""Values decoded by the driver's own Python, for small batches, into what Spark's ``from_json`` makes of them.

It takes only what is beyond doubt: one JSON object whose fields all have the type that the schema gives them. Whatever else
there is, a bad record or merely an unusual one, is refused with the whole batch, and Spark decodes it: ``decode`` stays the one
place that says what is bad. ``tests/spark/test_direct_decode.py`` holds the two side by side.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter
from typing import Any, cast

import msgspec
import numpy as np
import pyarrow as pa
from pyspark.sql.types import StructType

from lakebound.landing.direct_read import DirectReadRefusedError, RecordColumns
from lakebound.spec.pipeline import KAFKA_COLUMN, PipelineSpec
from lakebound.spec.value import JsonValueSpec
from lakebound.tables.table import KAFKA_TYPE
from lakebound_spark.batch.json_columns import column_of
from lakebound_spark.batch.json_types import is_taken, object_decoder
from lakebound_spark.batch.landable import FIRST_MS, LAST_MS
from lakebound_spark.batch.repeated_names import RepeatedNames

Columns = dict[str, pa.Array]
ValueDecoder = Callable[[RecordColumns], Columns]
"""Makes the value's columns; raises DirectReadRefusedError where Spark is to decode them."""

_LONG = 1000
"""Jackson, with which Spark reads JSON, bounds the length of numbers and the depth of nesting so (StreamReadConstraints)."""
_ESCAPES = re.compile(
    rb"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\(u[dD][89a-fA-F][0-9a-fA-F]{2})|\\.", re.DOTALL
)
"""Of JSON; a half of a character alone is a group."""
_PIECE = 500
"""Records: of 1,200 bytes they take 2 ms. The thread that transforms the slice before waits no longer for its turn."""
_LONG_NUMBER = 900
"""Characters of a number that is left to Spark."""
_OF_NUMBERS = re.compile(rb"[0-9.eE+-]*")


def make_value_decoder(spec: PipelineSpec, schema: StructType | None) -> ValueDecoder | None:
    """Return the decoder of a pipeline's values, or None where only Spark decodes them.

    Args:
        spec: The pipeline.
        schema: Of its JSON values; None for bytes.
    """
    if schema is None:
        return _bytes_columns
    if not is_taken(schema):
        return None
    unknown_refused = isinstance(spec.value, JsonValueSpec) and spec.value.unknown_fields == "quarantine"
    return _json_decoder(schema, unknown_refused=unknown_refused)


def rows_of_records(records: RecordColumns, columns: Columns, topic_ids: Mapping[str, str]) -> pa.Table:
    """Return the value's columns and ``_kafka``, as a pipeline without a transform lands them.

    Args:
        records: The records; as many as each column has values.
        columns: Decoded values, by column.
        topic_ids: Kafka's id of each topic, by name.
    """
    stamps = np.array(records.timestamps_ms, dtype=np.int64)
    milliseconds = pa.array(stamps, pa.timestamp("ms"), mask=(stamps < FIRST_MS) | (stamps > LAST_MS))
    kafka = {
        "topic": pa.array(records.topics, pa.string()),
        "topic_id": pa.array(list(map(topic_ids.__getitem__, records.topics)), pa.string()),
        "partition": pa.array(records.partitions, pa.int32()),
        "offset": pa.array(records.offsets, pa.int64()),
        "timestamp": milliseconds.cast(pa.timestamp("us")).cast(KAFKA_TYPE.field("timestamp").type),
        "ordinal": pa.array(np.zeros(len(records), dtype=np.int32)),
    }
    located = pa.StructArray.from_arrays([kafka[field.name] for field in KAFKA_TYPE], fields=list(KAFKA_TYPE))
    return pa.table({**columns, KAFKA_COLUMN: located})


def _bytes_columns(records: RecordColumns) -> Columns:
    _whole(records)
    return {"key": pa.array(records.keys, pa.binary()), "value": pa.array(records.values, pa.binary())}


def _json_decoder(schema: StructType, *, unknown_refused: bool) -> ValueDecoder:
    decode = object_decoder(schema, unknown_refused=unknown_refused).decode
    fields = [(field, attrgetter(f"f{index}")) for index, field in enumerate(schema.fields)]
    repeated = RepeatedNames(schema)

    def columns(records: RecordColumns) -> Columns:
        values = _whole(records)
        _check_text(values)
        try:
            rows = _decoded(decode, values)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as exc:
            raise DirectReadRefusedError(f"a record is not plainly what the schema says: {exc}") from exc
        found = {field.name: column_of(list(map(get, rows)), field.dataType) for field, get in fields}
        if any(found[field.name].null_count for field in schema.fields if not field.nullable):
            raise DirectReadRefusedError("a record lacks a required value")
        repeated.check(values, found)
        return found

    return columns


def _decoded(decode: Callable[[bytes], Any], values: list[bytes]) -> list[Any]:
    """Return each value decoded. Between pieces other threads get their turn, which Python gives to nobody within one."""
    rows: list[Any] = []
    for first in range(0, len(values), _PIECE):
        rows.extend(map(decode, values[first : first + _PIECE]))
    return rows


def _whole(records: RecordColumns) -> list[bytes]:
    if None in records.values:
        raise DirectReadRefusedError("a record has no value")
    return cast("list[bytes]", records.values)


def _check_text(values: Sequence[bytes]) -> None:
    """Refuse what the decoder would ignore in fields that the schema does not name."""
    # All at once: a loop of Python takes half of the time of decoding. Nothing that is looked for holds a line's end.
    text = b"\n".join(values)
    try:
        if not text.isascii():
            for value in values:
                value.decode()
    except UnicodeDecodeError as exc:
        raise DirectReadRefusedError(f"a record is not UTF-8: {exc}") from exc
    if max(map(len, values), default=0) > _LONG and any(len(value) > _LONG and _strains_jackson(value) for value in values):
        raise DirectReadRefusedError("a record has a very long number, or is deeply nested")
    if b"\\" not in text:
        return
    if b"\\u" in text and any(found[1] for value in values for found in _ESCAPES.finditer(value)):
        raise DirectReadRefusedError("an escape in a record is half a character")
    if b'Infinity\\"' in text:
        raise DirectReadRefusedError("a record holds the text that Spark makes of a number beyond DOUBLE")


def _strains_jackson(value: bytes) -> bool:
    return value.count(b"[") + value.count(b"{") > _LONG // 2 or _has_long_number(value)


def _has_long_number(value: bytes) -> bool:
    """Whether so many characters of numbers follow each other: one of them is then at one of these places.

    To search for them from each place on took half of the time of decoding records of 1,200 bytes.
    """
    for at in range(_LONG_NUMBER - 1, len(value), _LONG_NUMBER):
        after = _length(_OF_NUMBERS.match(value, at))
        if after and after + _length(_OF_NUMBERS.match(value[at - _LONG_NUMBER + 1 : at][::-1])) >= _LONG_NUMBER:
            return True
    return False


def _length(found: re.Match[bytes] | None) -> int:
    return found.end() - found.start() if found is not None else 0
