"""All facts about a checkpoint that Lakebound did not make. Plain values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from lakebound.inspection.doctor.foreign.checkpoint_facts import CheckpointFacts
from lakebound.inspection.doctor.foreign.table_facts import ForeignHistory


@dataclass(frozen=True)
class TopicSeen:
    """A topic of the checkpoint as Kafka has it now.

    Attributes:
        earliest: Per partition, the first offset that is kept.
        latest: Per partition, the next offset that will be written.
        younger_from: Per partition, the first offset whose record is younger than the plan of the batch that the checkpoint
            goes on from; empty when that was not asked.
    """

    topic_id: str
    earliest: Mapping[int, int]
    latest: Mapping[int, int]
    younger_from: Mapping[int, int] = field(default_factory=dict)


@dataclass(frozen=True)
class ForeignFacts:
    """What the doctor of foreign checkpoints judges.

    Attributes:
        kafka: Per topic of the checkpoint, None for a topic that is not there; None when Kafka was not asked.
        is_moving: The query works so fast that no two readings agreed: the facts may contradict each other.
    """

    checkpoint: CheckpointFacts
    tables: tuple[ForeignHistory, ...] = ()
    kafka: Mapping[str, TopicSeen | None] | None = None
    is_moving: bool = False
