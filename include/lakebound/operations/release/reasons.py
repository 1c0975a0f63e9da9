"""Why a record that has not landed is in quarantine. Pure."""

from __future__ import annotations

from lakebound.formats.reasons import REASONS

DECODER_REASONS = ("unreadable_key", *REASONS, "transform")
"""All of them: those of the decoders, of keys that name no row of a store, and of the transform.

A record with any other reason was copied into quarantine after it had landed: it is never landed again."""
