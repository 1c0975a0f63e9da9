"""Rows of the quarantine table: where a record is, why it could not be landed, its bytes and its headers."""

from __future__ import annotations

import base64
import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from lakebound.spec.pipeline import KAFKA_COLUMN
from lakebound_spark.batch.decode import HEADERS, KEY, PROBLEM, VALUE, is_bad
from lakebound_spark.batch.schema import QUARANTINE_SCHEMA

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def quarantine_columns(decoded: DataFrame) -> DataFrame:
    """Return the bad ones of decoded records as rows of the quarantine table."""
    return decoded.where(is_bad()).select(
        F.col(KAFKA_COLUMN),
        F.substring_index(PROBLEM, "\t", 1).alias("reason"),
        F.regexp_replace(PROBLEM, r"^[^\t]*\t", "").alias("error"),
        F.col(KEY).alias("key"),
        F.col(VALUE).alias("value"),
        F.col(HEADERS).alias("headers"),
    )


def collected_rows() -> Column:
    """Return an aggregate of all bad records as JSON text, so that a small batch's are had without a second job.

    An observation hands simple values to Python only; hence text, in which ``to_json`` writes bytes as base64.
    """
    kafka = [F.col(f"{KAFKA_COLUMN}.{name}") for name in ("topic", "topic_id", "partition", "offset", "ordinal")]
    micros = F.unix_micros(F.col(f"{KAFKA_COLUMN}.timestamp")).alias("timestamp_us")
    raw = (F.col(KEY).alias("key"), F.col(VALUE).alias("value"), F.col(HEADERS).alias("headers"))
    row = F.struct(*kafka, micros, F.col(PROBLEM).alias("problem"), *raw)
    return F.to_json(F.collect_list(F.when(is_bad(), row)))


def rows_of(collected: str) -> pa.Table:
    """Return what ``collected_rows`` gave as rows of the quarantine table."""
    return pa.Table.from_pylist([_row(body) for body in json.loads(collected)], schema=QUARANTINE_SCHEMA)


def _row(body: dict[str, Any]) -> dict[str, Any]:
    names = ("topic", "topic_id", "partition", "offset", "ordinal")
    reason, _, error = body["problem"].partition("\t")
    return {
        KAFKA_COLUMN: {
            **{name: body.get(name) for name in names},
            "timestamp": _EPOCH + timedelta(microseconds=body["timestamp_us"]) if "timestamp_us" in body else None,
        },
        "reason": reason,
        "error": error,
        "key": _bytes(body.get("key")),
        "value": _bytes(body.get("value")),
        "headers": _headers(body.get("headers")),
    }


def _headers(listed: list[dict[str, str]] | None) -> list[dict[str, Any]] | None:
    if listed is None:
        return None
    return [{"name": one.get("name"), "value": _bytes(one.get("value"))} for one in listed]


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else base64.b64decode(text)
