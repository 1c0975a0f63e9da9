"""A record of the ledger topic: the entry, and what a topic cannot be asked for later. Pure.

Kafka's compaction keeps the newest record of each target only. So the record also sums up what all entries before it counted.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from pydantic import Field, ValidationError

from lakebound.errors import BadEntryError
from lakebound.frozen import FrozenRecord
from lakebound.ledger.entry import Entry, encode
from lakebound.tables.entries import read_entry

_TARGET = "target"
_SHAPE = "shape"


class TargetTotals(FrozenRecord):
    """What all commits to a topic have counted so far, this one included, and which topic it was.

    Attributes:
        topic_id: Kafka's id of the target topic.
        read: Records of all ranges.
        filtered: Those that gave no row.
        landed: Those that gave rows.
        quarantined: Those that are in quarantine instead.
        rows: Messages in the topic; of those of real-time epochs each counts once.
        real_time_rows: Those that real-time epochs have sent, each at least once.
    """

    topic_id: str
    read: int = Field(default=0, ge=0)
    filtered: int = Field(default=0, ge=0)
    landed: int = Field(default=0, ge=0)
    quarantined: int = Field(default=0, ge=0)
    rows: int = Field(default=0, ge=0)
    real_time_rows: int = Field(default=0, ge=0)

    def plus(self, entry: Entry) -> TargetTotals:
        """Return the sums after one more commit."""
        return TargetTotals(
            topic_id=self.topic_id,
            read=self.read + entry.read,
            filtered=self.filtered + entry.filtered,
            landed=self.landed + entry.landed,
            quarantined=self.quarantined + entry.quarantined,
            rows=self.rows + entry.rows,
            real_time_rows=self.real_time_rows + (entry.rows if entry.delivery == "at_least_once" else 0),
        )


@dataclass(frozen=True)
class LedgerRecord:
    """An entry in the ledger topic.

    Attributes:
        offset: Of the record; the target's version.
        timestamp_ms: When it was written, by the clock of the application that wrote it.
        entry: The entry.
        totals: Of all commits up to this one.
        shape: Of a store: how what it holds is made, as JSON; None where an earlier version has written the record.
    """

    offset: int
    timestamp_ms: int
    entry: Entry
    totals: TargetTotals
    shape: Any = None


def encode_record(entry: Entry, totals: TargetTotals, shape: Any = None) -> bytes:
    """Return the value of a ledger record: the JSON of an entry as in tables, with the totals beside it.

    Args:
        entry: The entry.
        totals: Of all commits up to this one.
        shape: Of a store: how what it holds is made, as JSON.
    """
    body = json.loads(encode(entry))
    body[_TARGET] = totals.model_dump(mode="json")
    if shape is not None:
        body[_SHAPE] = shape
    return json.dumps(body, separators=(",", ":")).encode()


def decode_record(value: bytes | None, offset: int, timestamp_ms: int, where: str) -> LedgerRecord:
    """Return what stands in a ledger record.

    Args:
        value: Of the message.
        offset: Of the message.
        timestamp_ms: Of the message.
        where: The topic and the target, for the error message.

    Raises:
        BadEntryError: It is not a ledger record, or cannot be read.
        NewerEntryError: It needs a later version.
    """
    place = f"{where}, offset {offset}"
    try:
        text = (value or b"").decode()
    except UnicodeDecodeError as exc:
        raise BadEntryError(place, "it is not text") from exc
    entry = read_entry(text, place)
    if entry is None:
        raise BadEntryError(place, "it contains no entry")
    body: Any = json.loads(text)
    try:
        totals = TargetTotals.model_validate(body.get(_TARGET))
    except ValidationError as exc:
        raise BadEntryError(place, f"its totals: {exc.errors()[0]['msg']}") from exc
    return LedgerRecord(offset, timestamp_ms, entry, totals, body.get(_SHAPE))
