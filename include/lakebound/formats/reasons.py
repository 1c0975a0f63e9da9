"""Every word that says why a record has not landed."""

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


DECODER_REASONS = ("unreadable_key", *REASONS, "transform")
"""All of them: those of the decoders, of keys that name no row of a store, and of the transform.

A record with any other reason was copied into quarantine after it had landed: it is never landed again."""
