"""One table, judged by its rows: every readable offset of its coverage landed, filtered or quarantined, once. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from lakebound.inspection.proof.entries import named
from lakebound.inspection.proof.erased import Erased, together
from lakebound.inspection.proof.facts import Readable, TableAsFound
from lakebound.inspection.proof.history import History, Spans, below, difference, held_spans, ranges_of, spans_of, union
from lakebound.inspection.proof.offset_arrays import (
    Arrays,
    RowOffsets,
    beyond,
    both,
    either,
    found_offsets,
    size,
    spans_from,
    within,
    without,
)
from lakebound.inspection.proof.ranges_counted import EntryCounts, Evidence, count_entries
from lakebound.inspection.proof.redone import Share, redone_by, shares_of
from lakebound.inspection.proof.releases import doubted, lost_rows, releases_of
from lakebound.inspection.proof.result import Found, TableProof, describe, found
from lakebound.ledger.entry import DECIDE_ANEW, Offsets
from lakebound.ledger.intervals import Intervals
from lakebound.ledger.topics import TopicFacts

_EVERYTHING = 2**62


@dataclass(frozen=True)
class KafkaRows:
    """What Kafka still has.

    Attributes:
        readable: Offsets that a read_committed consumer gets, as far as they were asked for.
        topics: Asked for after reading; None for a topic that is not there.
    """

    readable: Readable
    topics: Mapping[str, TopicFacts | None]

    def of(self, spans: Spans) -> Arrays:
        """Return the readable offsets in the spans, of topics that are the same still."""
        known = {
            key: self.readable[key[0], key[2]]
            for key in spans
            if (key[0], key[2]) in self.readable and self._is_same(key[0], key[1])
        }
        return within(known, spans)

    def earliest(self, topic: str, topic_id: str, partition: int) -> int:
        """Return the offset below which Kafka cannot tell anything any more."""
        facts = self.topics.get(topic)
        if facts is None or not self._is_same(topic, topic_id):
            return _EVERYTHING
        return facts.earliest.get(partition, _EVERYTHING)

    def _is_same(self, topic: str, topic_id: str) -> bool:
        facts = self.topics.get(topic)
        return facts is not None and facts.topic_id == topic_id


@dataclass(frozen=True)
class TargetRows:
    """A target as its proof by rows finds it.

    Attributes:
        facts: Of the table.
        history: Of the table.
        rows: Of the table.
        quarantine: Rows of the pipeline's quarantine.
        erased: Rows that were erased by decision.
        involved: Versions of commits that overlap: what their counts say of their ranges is ambiguous.
        recalled: Offsets whose bad records came into quarantine after they had been landed.
    """

    facts: TableAsFound
    history: History
    rows: RowOffsets
    quarantine: RowOffsets
    erased: Erased
    involved: frozenset[str]
    recalled: Spans = field(default_factory=dict)


def judge_target_rows(proof: TableProof, target: TargetRows, kafka: KafkaRows, *, may_filter: bool) -> TableProof:
    """Return the proof of a target with its rows judged.

    Args:
        proof: By its entries.
        target: As it was found.
        kafka: What can still be read.
        may_filter: Whether the pipeline can drop records; then offsets without a row and without an entry prove nothing.
    """
    facts, history, rows, quarantine = target.facts, target.history, target.rows, target.quarantine
    covered = held_spans(facts.coverage, facts.former)
    landed, bad, each = within(rows.records, covered), within(quarantine.records, covered), within(rows.rows, covered)
    gone, gone_rows = target.erased.records, target.erased.rows
    decided = either(either(landed, bad), within(gone, covered))
    unaccounted = without(kafka.of(covered), decided)
    evidence = Evidence(decided, unaccounted, kafka.earliest)
    shares = shares_of(history)
    releases = releases_of(shares, facts.released, facts.later_releases)
    first, first_rows = beyond(landed, releases.named), beyond(each, releases.named)
    counted = count_entries(
        [share for share in shares if share.entry.kind not in DECIDE_ANEW],
        evidence,
        landed=first,
        rows=first_rows,
        quarantined=bad,
        erased=beyond(gone, releases.named),
        erased_rows=beyond(gone_rows, releases.named),
    )
    missing, texts = _shortfalls(counted, evidence, landed_is_not_bad=not releases.unnamed)
    for version, lost in lost_rows(releases, either(landed, gone), together(each, gone_rows)):
        missing = missing.plus(lost)
        texts.append(f"commit {version}, a release from quarantine, lacks {lost}")
    # An overlap is named already, and makes a sum of counts say nothing.
    apart = Found() if missing or target.involved else _rows_apart(history, shares, together(each, gone_rows), facts)
    if apart.count > 0:
        missing = missing.plus(apart)
        texts.append(f"the entries count {apart.count} more rows than there are, without those that redos took out")
    missing, undecided = _without_entry(missing, facts, shares, history, unaccounted, may_filter=may_filter)
    holes = _in_gaps(proof, facts.coverage, either(rows.records, gone), quarantine, kafka)
    missing = missing.plus(holes).plus(_deleted_unlanded(proof))
    counted = [counts for counts in counted if counts.version not in target.involved]
    again = union(counts.spans for counts in counted if counts.has_read_again)
    explained = union([again, target.recalled])
    shared = doubted(beyond(both(landed, bad), explained), releases)
    more = apart.model_copy(update={"count": max(0, -apart.count)})
    proof = _judge_copies(proof, facts, rows, extra=shared, counted=counted, more=more)
    problems = _missing_problem(missing, texts)
    if target.erased.again:
        problems.append(f"rows that were erased by decision are there again: {target.erased.again}; erase them again")
    if shared:
        problems.append(f"offsets both landed and quarantined: {shared}")
    return proof.adding(
        problems=problems,
        notes=[*_limits(covered, kafka, undecided), *_read_again(within(both(first, bad), explained))],
        missing=missing,
        undecided=undecided,
        records=size(landed),
        rows=size(each),
        quarantined=size(bad),
        released=size(both(landed, bad)) + sum(one.entry.filtered for one in releases.shares),
    )


def judge_quarantine_rows(
    proof: TableProof, facts: TableAsFound, history: History, rows: RowOffsets, involved: frozenset[str]
) -> TableProof:
    """Return the proof of the quarantine with its rows judged: they are what its entries count, and where.

    Args:
        proof: By its entries.
        facts: Of the quarantine table.
        history: Of the quarantine table.
        rows: Of the quarantine table.
        involved: Versions of commits that overlap: what their counts say of their ranges is ambiguous.
    """
    covered = held_spans(facts.coverage, facts.former)
    held, each = within(rows.records, covered), within(rows.rows, covered)
    # Its ranges hold what the targets landed, too: only its counts say how many of these offsets are its own.
    evidence = Evidence(held, {}, lambda *_: 0)
    shares = shares_of(history)
    recalls = releases_of(shares, facts.released, facts.later_releases)
    first, first_rows = beyond(held, recalls.named), beyond(each, recalls.named)
    own = [share for share in shares if share.entry.kind not in DECIDE_ANEW]
    counted = count_entries(own, evidence, landed={}, rows=first_rows, quarantined=first)
    missing, texts = _shortfalls(counted, evidence)
    for version, lost in lost_rows(recalls, held, each):
        missing = missing.plus(lost)
        texts.append(f"commit {version}, a recall into quarantine, lacks {lost}")
    proof = _judge_copies(proof, facts, rows, extra=Found(), counted=[c for c in counted if c.version not in involved])
    return proof.adding(
        problems=_missing_problem(missing, texts),
        missing=missing,
        rows=size(each),
        quarantined=size(held),
    )


def _shortfalls(counted: list[EntryCounts], evidence: Evidence, *, landed_is_not_bad: bool = False) -> tuple[Found, list[str]]:
    """Return what is missing by the entries' counts.

    Args:
        counted: What was found in the range of each entry.
        evidence: What is known of the offsets.
        landed_is_not_bad: A record that the table landed is none of those that its entry counts as quarantined, though it
            stands in quarantine for another table's sake: all releases are known that could have landed it later.
    """
    missing = Found()
    texts = []
    for counts in counted:
        lacking = counts.shortfall(evidence, landed_is_not_bad=landed_is_not_bad)
        if lacking:
            missing = missing.plus(lacking)
            texts.append(f"commit {counts.version} lacks {lacking}")
    return missing, texts


def _rows_apart(history: History, shares: Sequence[Share], rows: Arrays, facts: TableAsFound) -> Found:
    """Return how many rows the entries count beyond those that are there; less than 0 where there are more.

    Of an entry that a redo has cut nobody knows how many of its rows are left; but each redo says how many it took out, so the
    sum over all entries is exact. It is asked for only where there is such an entry, where all entries are kept, and where
    nobody else has changed rows: a redo heals that, and takes out other rows than the entries before it count.
    """
    if any(share.entry.changes_seen or share.entry.foreign_changes for share in shares):
        return Found()
    cut = union(share.spans for share in shares if share.redone)
    earlier = union(spans_of(committed.entry.range) for committed in history.earlier)
    if not cut or not history.is_complete or difference(spans_of(history.base), earlier):
        return Found()
    counted = sum(share.entry.rows - (share.entry.erases if share.entry.kind == "redo" else 0) for share in shares)
    since = union(spans_of(offsets) for offsets in facts.later_releases)
    apart = counted - size(beyond(rows, since))
    return Found(count=apart, within=ranges_of(cut)) if apart else Found()


def _missing_problem(missing: Found, texts: list[str]) -> list[str]:
    return [f"missing {missing}" + (f" ({'; '.join(named(texts))})" if texts else "")] if missing else []


def _judge_copies(
    proof: TableProof,
    facts: TableAsFound,
    rows: RowOffsets,
    *,
    extra: Found,
    counted: list[EntryCounts],
    more: Found | None = None,
) -> TableProof:
    """Judge what is there too much: copies, rows outside of the coverage, rows that no entry counts.

    Args:
        proof: Of the table.
        facts: Of the table.
        rows: Of the table.
        extra: Copies that are known already.
        counted: What was found in the range of each entry.
        more: Rows beyond all that the entries count together.
    """
    # What a running stream landed after the ledger was read is not this proof's.
    known = union([held_spans(facts.coverage, facts.former), spans_of(facts.later_coverage)])
    doubled = found_offsets(rows.doubled)
    outside = found_offsets(beyond(rows.rows, known))
    surplus = Found()
    for counts in counted:
        surplus = surplus.plus(counts.surplus) if counts.surplus else surplus
    surplus = surplus or more or surplus
    problems = [
        *([f"doubled rows: {doubled}"] if doubled else []),
        *([f"rows outside the coverage: {outside}{_foreign_ids(rows, known)}"] if outside else []),
        *([f"more rows than the ledger entries count, at these offsets: {surplus}"] if surplus else []),
        *([f"{rows.without_origin} rows do not say where in Kafka they are from"] if rows.without_origin else []),
    ]
    return proof.adding(
        problems=problems,
        deep=True,
        duplicated=doubled.plus(extra),
        outside=outside.model_copy(update={"count": outside.count + rows.without_origin}),
        surplus=surplus,
    )


def _foreign_ids(rows: RowOffsets, known: Spans) -> str:
    ids = {(topic, topic_id) for topic, topic_id, _ in known}
    topics = {topic for topic, _ in ids}
    foreign = sorted({key[:2] for key in rows.rows if key[0] in topics and key[:2] not in ids})
    return "".join(f"; rows of {topic} name another topic id, {topic_id}" for topic, topic_id in foreign)


def _without_entry(
    missing: Found,
    facts: TableAsFound,
    shares: Sequence[Share],
    history: History,
    unaccounted: Arrays,
    *,
    may_filter: bool,
) -> tuple[Found, Found]:
    """Return what is missing with offsets of no entry that is kept, and those of which nobody can tell."""
    said = union(spans_of(committed.entry.range) for committed in history.standing)
    base = spans_of(history.base)
    unbacked = difference(difference(spans_of(facts.coverage), said), base)
    missing = missing.plus(found_offsets(within(unaccounted, unbacked)))
    old = found_offsets(within(unaccounted, difference(difference(base, said), redone_by(shares))))
    return (missing, old) if may_filter else (missing.plus(old), Found())


def _in_gaps(proof: TableProof, coverage: Offsets, records: Arrays, quarantine: RowOffsets, kafka: KafkaRows) -> Found:
    """Return the offsets of the coverage's gaps that Kafka has, or may have had, and that are nowhere."""
    gaps: Spans = {
        (topic, coverage[topic].topic_id, partition): intervals
        for topic, partitions in proof.gaps.ranges.items()
        for partition, intervals in partitions.items()
    }
    held = either(within(records, gaps), within(quarantine.records, gaps))
    untold = difference(below(gaps, kafka.earliest), spans_from(held))
    return found(ranges_of(union([untold, spans_from(without(kafka.of(gaps), held))])))


def _deleted_unlanded(proof: TableProof) -> Found:
    """Return what is missing above the coverage: offsets that Kafka deleted before they were landed."""
    above = {
        topic: {
            partition: kept
            for partition, intervals in partitions.items()
            if (kept := _from(intervals, proof.high_water_marks.get(topic, {}).get(partition, _EVERYTHING)))
        }
        for topic, partitions in proof.missing.ranges.items()
    }
    return found(above)


def _from(intervals: Intervals, mark: int) -> Intervals:
    return tuple((max(start, mark), end) for start, end in intervals if end > mark)


def _read_again(shared: Arrays) -> Iterator[str]:
    if size(shared):
        yield (
            f"offsets that were landed and were quarantined when they were read again (recorded in the ledger): "
            f"{found_offsets(shared)}"
        )


def _limits(covered: Spans, kafka: KafkaRows, undecided: Found) -> Iterator[str]:
    gone = below(covered, kafka.earliest)
    if gone:
        yield (
            f"Kafka no longer has {describe(ranges_of(gone))}; for these offsets only the entries' counts were compared with "
            f"the rows"
        )
    if undecided:
        yield f"offsets without an entry and without rows; unknown whether filtered or lost: {undecided}"
