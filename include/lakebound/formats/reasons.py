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
"""Those of the decoders, of keys that name no row of a store, and of the transform: a release may land such a record."""

LATE, LATE_IN_PART, FAR_AHEAD = "late", "late_in_part", "far_ahead"
NO_EVENT_TIME, BEFORE_1970 = "no_event_time", "before_1970"
WINDOW_REASONS = (LATE, LATE_IN_PART, FAR_AHEAD, NO_EVENT_TIME, BEFORE_1970)
"""Why a record is in no window, or only in some of its windows (``state`` in the YAML)."""

NOT_LANDED = (*DECODER_REASONS, *WINDOW_REASONS)
"""All of them.

A record with any other reason was copied into quarantine after it had landed: it is never landed again."""
