"""What people ask for that is not there, and the nearest thing that works today: a line for each mistake. Pure."""

from __future__ import annotations

import json
import re

from lakebound.spec.yaml_source import Keys

_REGISTRY = (
    "values with a schema of their own are format: avro, protobuf or json_schema; name there registry: (a name in "
    "registries.yaml) or schema_file: (docs/how-to/formats.md)"
)
_FORMATS = {
    "text": "write string",
    "csv": "CSV is not decoded: format: string gives a text column value, and a transform can split it",
    "debezium": "change data is not applied yet: format: json with the fields of the envelope (op, before, after) lands each "
    "change as a row (docs/how-to/new-pipeline.md)",
}
_CURRENT_STATE = (
    "tables get every record as a row of its own. For the newest row of each key use to_stores, which keeps it in PostgreSQL "
    "or Redis (docs/how-to/stores.md), or select the newest row of each key in a view on the table"
)
_KEY = (
    "the key of a record lands with key: {format: string, as: NAME}, and headers with headers: [{name: HEADER, as: NAME}] or "
    "[{all: true}] (docs/how-to/keys-and-headers.md)"
)
_PATTERNS = (
    "topics are named one by one, and a new topic is added to the list. Topics with different schemas need a file each: "
    "lakebound new PIPELINE --from-topic TOPIC writes it (docs/how-to/new-pipeline.md)"
)
_STATE = (
    "the pipeline keeps no state between records. Counters of each key in time windows are in to_stores: counters "
    "(docs/how-to/stores.md); for other aggregates, run a query on the table when an hour is complete "
    "(docs/how-to/complete-hours.md)"
)
_KEYS = {
    **dict.fromkeys(("mode", "upsert", "merge", "merge_keys", "primary_key", "delete_when", "order_by"), _CURRENT_STATE),
    **dict.fromkeys(("key", "keys", "headers", "include_headers", "key_format", "key_schema"), _KEY),
    **dict.fromkeys(("topics_matching", "topic_pattern", "topics_pattern", "topics_regex", "subscribe_pattern"), _PATTERNS),
    **dict.fromkeys(("registry", "schema_registry", "schema_registry_url", "schema_file", "subject"), _REGISTRY),
    **dict.fromkeys(
        ("window", "windows", "watermark", "aggregate", "group_by", "deduplicate", "dedup", "join", "session", "stateful"),
        _STATE,
    ),
}
"""By the name of a key that is not there."""


_FILES = {"registry": "registries.yaml", "warehouse": "warehouses.yaml"}
"""Where the names are that a field takes."""
_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")


def of_name(keys: Keys) -> str | None:
    """Return where the names are that a field takes; None for a field that takes any name."""
    file = _FILES.get(str(keys[-1])) if keys else None
    return f"it is a name in {file}" if file else None


def of_shape(keys: Keys, found: object) -> str | None:
    """Return how what is written is said with keys and values; None where nothing is known of it."""
    if len(keys) != 2 or keys[0] != "headers" or not isinstance(found, str):
        return None
    return f"such as {{name: {found if _PLAIN_NAME.fullmatch(found) else json.dumps(found, ensure_ascii=False)}}}"


def of_format(name: object) -> str | None:
    """Return what to use instead of a value format that is not there; None for a name that nothing is known of."""
    return _FORMATS.get(str(name).lower())


def of_key(keys: Keys) -> str | None:
    """Return what to use instead of a key that is not there; None for a key that nothing is known of."""
    is_of_pipeline = len(keys) == 1 or keys[:1] in (("value",), ("tables",))
    return _KEYS.get(str(keys[-1])) if keys and is_of_pipeline else None
