"""Why the decoder puts a record into quarantine. Pure."""

from __future__ import annotations

DECODER_REASONS = (
    "null_value",
    "empty_value",
    "not_utf8",
    "not_an_object",
    "malformed_json",
    "does_not_fit",
    "missing_field",
    "unknown_field",
)
"""All of them. A record with any other reason was copied into quarantine after it had landed: it is never landed again."""
