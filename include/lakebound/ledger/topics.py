"""What is known of a topic on the broker. Values only."""

from __future__ import annotations

from dataclasses import dataclass

PartitionId = tuple[str, int]
"""Topic and partition."""

TopicIdPartition = tuple[str, str, int]
"""Topic, topic id and partition: another one after the topic was recreated."""


@dataclass(frozen=True)
class TopicFacts:
    """One topic as the broker has it.

    Attributes:
        topic_id: Changes when the topic is deleted and created again.
        earliest: Per partition, the first offset that is kept.
        latest: Per partition, the next offset a read_committed reader cannot read yet (the last stable offset).
    """

    topic_id: str
    earliest: dict[int, int]
    latest: dict[int, int]
