"""Every word by which a decoder says why a record has no columns."""

from __future__ import annotations

REASONS = (
    "null_value",
    "empty_value",
    "not_utf8",
    "not_an_object",
    "malformed_json",
    "malformed_avro",
    "malformed_protobuf",
    "no_schema_id",
    "unknown_schema",
    "schema_does_not_fit",
    "no_message_indexes",
    "other_message",
    "does_not_fit",
    "missing_field",
    "unknown_field",
)
