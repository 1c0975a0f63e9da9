"""Why a record that has not landed is in quarantine. Pure."""

from __future__ import annotations

DECODER_REASONS = (
    "null_value",
    "unreadable_key",
    "empty_value",
    "not_utf8",
    "not_an_object",
    "malformed_json",
    "does_not_fit",
    "missing_field",
    "unknown_field",
    "transform",
)
"""All of them: those of the decoder, and that of the transform.

A record with any other reason was copied into quarantine after it had landed: it is never landed again."""
