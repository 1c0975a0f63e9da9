"""Entries for tests of rewinds on facts alone."""

from __future__ import annotations

from lakebound.ledger.entry import Entry, EntryKind
from tests.support.tables.local_tables import PIPELINE

REWIND = "aaaaaaaaaaaa"


def entry(kind: EntryKind = "land", epoch: int = 1, **fields: object) -> Entry:
    """Return an entry of one kind and epoch, with further fields."""
    return Entry.model_validate({"kind": kind, "pipeline": PIPELINE, "epoch": epoch, "commit": "c", **fields})
