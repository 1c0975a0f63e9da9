"""What a redo would do: the range, ledgers and Kafka's facts in, the plan out. Pure."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from functools import reduce
from typing import Any

from pydantic import Field

from lakebound.errors import LakeboundError
from lakebound.frozen import Frozen
from lakebound.ledger.entry import Offsets, add, check_topic_ids, common, count, high_water_marks, missing
from lakebound.ledger.intervals import Interval, Intervals
from lakebound.ledger.marks import NextOffsets
from lakebound.ledger.topics import TopicFacts, TopicIdPartition
from lakebound.operations.recovery.plan import HASH_CHARACTERS
from lakebound.operations.replay.plan import below_marks, deleted_by_kafka, describe, lowest_marks
from lakebound.spec.pipeline import PipelineSpec
from lakebound.spec.real_time import REAL_TIME
from lakebound.spec.times import seconds_in_words
from lakebound.tables.erased import erased_among


class NotRedoableError(LakeboundError):
    """Rows of this pipeline cannot be made again in place of what they are."""

    def __init__(self, pipeline: str, reason: str, works: str) -> None:
        super().__init__(f"pipeline {pipeline!r}: no range can be redone: {reason}. What works: {works}")


class RedoShare(Frozen):
    """What a redo does to one table.

    Attributes:
        table: Its id.
        replaces: Offsets whose rows are made again: those of the range that it covers.
        gone: Those of the range that it covers and that Kafka no longer has.
        rows_out: Rows of these offsets, which leave.
        estimate_rows_in: About how many rows come; None where the newest entries do not tell.
        files: Data files that hold them; each is rewritten with what else it holds.
        size_bytes: Size of these files.
        copied_bytes: What their copies take at most; a file is copied in each batch of which it holds rows.
        done: Offsets that this very plan has made anew already.
        changes_seen: How many commits by others ever changed rows of the table: a redo does not know which rows.
        changes: Those of which the table remembers more than their number.
    """

    table: str
    replaces: Offsets = Field(default_factory=dict)
    gone: Offsets = Field(default_factory=dict)
    rows_out: int = 0
    estimate_rows_in: int | None = None
    files: int = 0
    size_bytes: int = 0
    copied_bytes: int = 0
    done: int = 0
    changes_seen: int = 0
    changes: tuple[str, ...] = ()


class RedoPlan(Frozen):
    """What a redo would do, as of now.

    Attributes:
        pipeline: Its name.
        source: Hash of the code on disk, with which the rows are made again.
        made_by: Hashes of the code that landed them, oldest first; None is what is not known.
        redone: All offsets that are read again.
        tables: What each table loses and gets.
        gone: Offsets of the range that Kafka no longer has: their rows stay as they are.
        erased: Offsets of the range of which rows were erased by decision: what else they gave stays as it is.
        dropped: Offsets of the range that are of topics which the pipeline no longer reads.
        uncovered: Offsets of the range that no table has: a replay lands them.
        left_to_stream: Offsets of the range at or above the lowest next offset, which the stream itself lands.
        chunks: In how many pieces it is read.
        estimate_seconds: About how long it takes; None where nothing is left, or the newest entries do not tell.
        is_unfinished: Whether a table says that this very plan is done in part.
        notes: What else is to be known.
    """

    pipeline: str
    source: str = ""
    made_by: tuple[str | None, ...] = ()
    redone: Offsets = Field(default_factory=dict)
    tables: tuple[RedoShare, ...] = ()
    gone: Offsets = Field(default_factory=dict)
    erased: Offsets = Field(default_factory=dict)
    dropped: Offsets = Field(default_factory=dict)
    uncovered: Offsets = Field(default_factory=dict)
    left_to_stream: Offsets = Field(default_factory=dict)
    chunks: int = 0
    estimate_seconds: float | None = None
    is_unfinished: bool = False
    notes: tuple[str, ...] = ()

    @property
    def hash(self) -> str:
        """Twelve characters of a digest of what is made anew, where and by which code.

        What a redo itself changes is no part of it, as the rows and files of the range are, nor what the stream lands, nor
        what Kafka deletes: the same approval goes on after a kill, and lands what Kafka has still.
        """
        decided = {
            **self.model_dump(mode="json", include={"pipeline", "source"}),
            "redone": dump(self.approved),
            "tables": {
                one.table: {"replaces": dump(add(one.replaces, one.gone)), "changes_seen": one.changes_seen}
                for one in self.tables
            },
        }
        text = json.dumps(decided, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()[:HASH_CHARACTERS]

    @property
    def approved(self) -> Offsets:
        """The offsets that are read again, also those that Kafka has deleted by now."""
        return add(self.redone, self.gone)

    @property
    def holds(self) -> Offsets:
        """The offsets about which it decides: also those whose rows stay, because the records are gone or rows were erased."""
        return add(self.approved, self.erased)

    @property
    def has_work(self) -> bool:
        """Whether it has anything to do; one that was interrupted has to say at least that nothing is left."""
        return self.chunks > 0 or self.is_unfinished

    @property
    def bounds(self) -> tuple[NextOffsets, NextOffsets]:
        """First offset, and the offset after the last one, of each partition: what the stream lands later is not between."""
        return first_offsets(self.approved), high_water_marks(self.approved)

    @property
    def longest_ranges(self) -> dict[str, dict[int, Interval]]:
        """The longest interval of each partition: of it records are sampled."""
        return {
            topic: {p: max(held, key=lambda one: one[1] - one[0]) for p, held in offsets.partitions.items() if held}
            for topic, offsets in self.redone.items()
        }

    def lines(self) -> Iterator[str]:
        """Yield the plan as a person reads it."""
        yield f"redo {self.pipeline}: {count(self.redone):,} offsets are read again, in {self.chunks} pieces"
        yield f"  from Kafka: {describe(self.redone)}"
        made_by = ", ".join("not known" if one is None else one or "-" for one in self.made_by) or "-"
        yield f"  the rows were made by source {made_by}, and would be made by {self.source or 'not known'}"
        if self.estimate_seconds is not None:
            yield (
                f"  it takes about {seconds_in_words(self.estimate_seconds)} (an estimate: as fast as the stream landed of "
                f"late; copies of what else the files hold take time, too)"
            )
        for share in self.tables:
            yield (
                f"{share.table}: {share.rows_out:,} rows leave, and come again from {count(share.replaces):,} offsets; "
                f"{share.files:,} files ({share.size_bytes:,} bytes) are rewritten, in all batches up to "
                f"{share.copied_bytes:,} bytes"
            )
            if share.estimate_rows_in is not None:
                yield (
                    f"{share.table}: about {share.estimate_rows_in:,} rows come (an estimate: as many per record as landed "
                    f"outside of this range of late)"
                )
            if share.done:
                rest = "" if share.done < count(share.replaces) else "; nothing is left"
                yield f"{share.table}: done already: {share.done:,} of these offsets{rest}"
            if share.changes_seen:
                named = "; ".join(share.changes) or "all acknowledged"
                yield (
                    f"WARNING {share.table}: commits by others that changed rows: {share.changes_seen:,} ({named}). What they "
                    f"changed in this range is lost: rows that they deleted come back, and rows that they corrected become "
                    f"what the transform makes of their records"
                )
        if self.is_unfinished and not self.chunks:
            yield "it was interrupted, and of the rest Kafka has no record any more: applying it ends it, and these rows stay"
        for what, offsets in self._left_alone():
            if count(offsets):
                yield f"{what}, {count(offsets):,} offsets: {describe(offsets)}"
        yield from (f"note: {note}" for note in self.notes)

    def _left_alone(self) -> Iterator[tuple[str, Offsets]]:
        yield "cannot be redone, no longer in Kafka", self.gone
        yield "not redone, the pipeline no longer reads these topics", self.dropped
        yield "not redone, rows were erased by decision", self.erased
        yield "not redone, no table has them (`lakebound replay` lands them)", self.uncovered
        yield "left to the stream", self.left_to_stream


def dump(offsets: Offsets) -> dict[str, Any]:
    """Return offsets as JSON."""
    return {topic: one.model_dump(mode="json") for topic, one in offsets.items()}


def first_offsets(offsets: Offsets) -> NextOffsets:
    """Return the first offset of each partition that has any."""
    return {
        topic: {partition: intervals[0][0] for partition, intervals in held.partitions.items() if intervals}
        for topic, held in offsets.items()
    }


def make_plan(
    pipeline: str,
    asked: Offsets,
    coverages: Mapping[str, Offsets],
    topics: Mapping[str, TopicFacts],
    erased: Mapping[TopicIdPartition, Intervals],
) -> RedoPlan:
    """Return which offsets are redone in which table, and why the others are not.

    Args:
        pipeline: Its name.
        asked: The range.
        coverages: Of each table, by its id.
        topics: Kafka's facts of the topics that the pipeline reads.
        erased: Offsets of which rows were erased by decision, from any table.

    Raises:
        TopicRecreatedError: A ledger holds offsets of another incarnation of a topic.
        OffsetBeyondEndError: A ledger holds offsets that Kafka does not have.
    """
    ids = {topic: known.topic_id for topic, known in topics.items()}
    for coverage in coverages.values():
        check_topic_ids(coverage, ids)
    dropped = {topic: offsets for topic, offsets in asked.items() if topic not in topics}
    asked = {topic: offsets for topic, offsets in asked.items() if topic in topics}
    below = below_marks(asked, lowest_marks(list(coverages.values())))
    covered: Offsets = reduce(add, (common(below, held) for held in coverages.values()), {})
    by_decision = erased_among(covered, erased)
    rest = missing(covered, by_decision)
    gone = deleted_by_kafka(rest, topics)
    redone = missing(rest, gone)
    return RedoPlan(
        pipeline=pipeline,
        redone=redone,
        tables=tuple(
            RedoShare(table=table, replaces=common(redone, held), gone=common(gone, held)) for table, held in coverages.items()
        ),
        gone=gone,
        erased=by_decision,
        dropped=dropped,
        uncovered=missing(below, covered),
        left_to_stream=missing(asked, below),
    )


def check_redoable(spec: PipelineSpec, compacted: list[str]) -> None:
    """Check that today's transform gives the rows of a range again, from records that Kafka keeps.

    Args:
        spec: The pipeline.
        compacted: Those of its topics of which Kafka keeps only the newest record of each key.

    Raises:
        NotRedoableError: It does not, with what works.
    """
    if not spec.tables:
        reason = "it has no table, and what was sent to a topic cannot be taken back"
        works = "land with another pipeline into a new topic, and tell its readers"
        raise NotRedoableError(spec.pipeline, reason, works)
    if spec.freshness == REAL_TIME:
        reason = "with freshness: real_time its bad records go to a topic, from which they cannot be taken back"
        raise NotRedoableError(spec.pipeline, reason, "give another freshness in the YAML and start the pipeline, then redo")
    if compacted:
        reason = f"Kafka compacts {', '.join(compacted)}: rows would leave of which it no longer has the records"
        raise NotRedoableError(spec.pipeline, reason, "correct the rows in the tables by SQL, then `lakebound acknowledge`")
