"""Which offsets a batch has, and which of its targets lack which of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lakebound.ledger.entry import Offsets, TopicOffsets, add, missing
from lakebound.ledger.intervals import Intervals
from lakebound.ledger.marks import NextOffsets
from lakebound_spark.batch.targets import Target


def group_by_missing(targets: Sequence[Target], wanted: Offsets) -> list[tuple[Offsets, list[Target]]]:
    """Return the tables grouped by what of ``wanted`` they lack; those that lack nothing are left out.

    Offsets of rows that were erased by decision are lacked by nobody.
    """
    groups: list[tuple[Offsets, list[Target]]] = []
    for target in targets:
        target.leave_out_erased(wanted)
        lacking = missing(wanted, target.coverage)
        if not lacking:
            continue
        for offsets, members in groups:
            if offsets == lacking:
                members.append(target)
                break
        else:
            groups.append((lacking, [target]))
    return groups


def range_between(start: NextOffsets, end: NextOffsets, topic_ids: Mapping[str, str]) -> Offsets:
    """Return the offsets that a batch reads; a partition without a start is new and begins at 0, as Spark reads it.

    Args:
        start: Next offset to read before the batch, per topic and partition.
        end: Next offset to read after the batch, per topic and partition.
        topic_ids: Kafka's id of each topic, by the topic's name.
    """
    result: Offsets = {}
    for topic, ends in end.items():
        starts = start.get(topic, {})
        intervals: dict[int, Intervals] = {
            p: ((starts.get(p, 0), stop),) for p, stop in sorted(ends.items()) if stop > starts.get(p, 0)
        }
        if intervals:
            result = add(result, {topic: TopicOffsets(topic_id=topic_ids[topic], partitions=intervals)})
    return result
