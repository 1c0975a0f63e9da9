"""How far readers of committed records may read a topic, and when that is as far as it has records."""

from __future__ import annotations

import time
from collections.abc import Mapping

from lakebound.errors import OpenTransactionError
from lakebound.landing.kafka import KafkaFacts

_PATIENCE_SECONDS = 30.0
_POLL_SECONDS = 0.05


def settled_ends(facts: KafkaFacts, topic: str) -> Mapping[int, int]:
    """Return the end of each partition as it is now, once no open transaction is before it any more.

    Also after a commit has succeeded its markers are written partition by partition.

    Args:
        facts: Asks the broker.
        topic: The topic.

    Raises:
        MissingTopicError: There is no such topic.
        OpenTransactionError: A transaction does not end.
    """
    ends = facts.topics([topic], isolation="read_uncommitted")[topic].latest
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while True:
        stable = facts.topics([topic])[topic].latest
        held = [(stable[partition], end) for partition, end in ends.items() if stable[partition] < end]
        if not held:
            return ends
        if time.monotonic() > deadline:
            raise OpenTransactionError(topic, *held[0])
        time.sleep(_POLL_SECONDS)
