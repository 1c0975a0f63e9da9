"""Judges a target topic by the journal of what was sent. It imports nothing of lakebound."""

from __future__ import annotations

import json
from collections import Counter

from tests.support.kafka.journal import Journal, row_hash
from tests.support.topics.reading import ReadMessage, read_committed


def assert_topic_exactly_once(servers: str, topic: str, journal: Journal) -> list[ReadMessage]:
    """Check that the topic holds each row of the journal once, with its values; return its messages."""
    messages = read_committed(servers, topic)
    found = Counter((message.source, row_hash({"amount": None, **json.loads(message.value)})) for message in messages)
    expected = Counter(
        ("/".join(map(str, (*record.place, ordinal))), hashed)
        for record in journal.records
        for ordinal, hashed in enumerate(record.rows)
    )
    assert expected, "the journal has no rows: nothing was tested"
    assert found == expected, f"{(expected - found).total()} lacking or altered, {(found - expected).total()} too many"
    return messages
