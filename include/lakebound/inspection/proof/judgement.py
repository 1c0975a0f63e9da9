"""The facts of a pipeline in, its proof out. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from lakebound.inspection.proof.between import CoverageAndHistory, contradictions, mark_differences, quarantine_contradiction
from lakebound.inspection.proof.columns import judge_columns
from lakebound.inspection.proof.entries import judge_entries, named, unread, without_ledger
from lakebound.inspection.proof.erased import Erased, find_erased
from lakebound.inspection.proof.facts import Readable, TableAsFound
from lakebound.inspection.proof.history import History, Overlaps, overlaps, trace, union
from lakebound.inspection.proof.marks import judge_marks
from lakebound.inspection.proof.offset_arrays import RowOffsets, index_rows
from lakebound.inspection.proof.releases import recalled_in
from lakebound.inspection.proof.result import Found, Proof, TableProof
from lakebound.inspection.proof.rows import KafkaRows, TargetRows, judge_quarantine_rows, judge_target_rows
from lakebound.ledger.entry import Offsets, TopicOffsets, high_water_marks
from lakebound.ledger.topics import TopicFacts


@dataclass(frozen=True)
class _Case:
    """One table: its facts, and what follows from its entries."""

    facts: TableAsFound
    history: History
    overlaps: Overlaps
    rows: RowOffsets | None
    erased: Erased = field(default_factory=Erased)

    @property
    def has_ledger(self) -> bool:
        return self.facts.source == "entry"

    @property
    def told(self) -> CoverageAndHistory:
        return CoverageAndHistory(self.facts.table, self.facts.coverage, self.history)


def judge(
    pipeline: str,
    tables: Sequence[TableAsFound],
    topics: Mapping[str, TopicFacts | None],
    *,
    readable: Readable | None = None,
    may_filter: bool = True,
    table: str | None = None,
) -> Proof:
    """Return the proof of a pipeline.

    Args:
        pipeline: Its name.
        tables: Every target and the quarantine.
        topics: What Kafka says of the pipeline's topics, asked after the tables were read; None for one that is not there.
        readable: Offsets that a read_committed consumer gets, of all that was landed; None judges the entries alone.
        may_filter: Whether records can be dropped without a trace other than an entry's count.
        table: Id of the one table whose proof is wanted.
    """
    cases = [_case(facts) for facts in tables]
    kafka = None if readable is None else KafkaRows(readable, topics)
    proofs = []
    for case in cases:
        if table not in (None, case.facts.table):
            continue
        others = [other for other in cases if other is not case]
        proof = _between(_of_entries(case, pipeline, topics), case, others)
        # Of a topic without its first messages the rows were not read.
        if kafka is not None and case.facts.source != "none" and (case.rows is not None or case.facts.totals is None):
            proof = _of_rows(proof, case, others, kafka, may_filter=may_filter)
        if case.facts.columns is not None:
            proof = judge_columns(proof, case.facts.columns)
        proofs.append(proof)
    return Proof(pipeline=pipeline, level="entries" if readable is None else "rows", tables=tuple(proofs))


def hull(coverage: Offsets) -> Offsets:
    """Return, per partition, everything from the first to the last offset of the coverage."""
    return {
        topic: TopicOffsets(
            topic_id=held.topic_id,
            partitions={p: ((intervals[0][0], intervals[-1][1]),) for p, intervals in held.partitions.items() if intervals},
        )
        for topic, held in coverage.items()
    }


def _case(facts: TableAsFound) -> _Case:
    if facts.source != "entry":
        # A coverage that was worked out from rows has a hole wherever a record gave none.
        facts = replace(facts, coverage=hull(facts.coverage), later_coverage=hull(facts.later_coverage))
    history = trace(facts.entries, facts.coverage)
    doubled = overlaps(history) if facts.source == "entry" else Overlaps(Found(), ())
    if facts.rows is None:
        return _Case(facts, history, doubled, None)
    return _Case(facts, history, doubled, index_rows(facts.rows), find_erased(facts.erased, facts.rows))


def _of_entries(case: _Case, pipeline: str, topics: Mapping[str, TopicFacts | None]) -> TableProof:
    facts = case.facts
    if facts.source == "none":
        return judge_marks(unread(facts), {}, topics)
    proof = judge_entries(facts, case.history, case.overlaps, pipeline) if case.has_ledger else without_ledger(facts)
    return judge_marks(proof, facts.coverage, topics)


def _between(proof: TableProof, case: _Case, others: Sequence[_Case]) -> TableProof:
    if not case.has_ledger or case.facts.role == "quarantine":
        return proof
    marks = high_water_marks(case.facts.coverage)
    for other in others:
        if other.facts.role == "quarantine":
            # One that could not be read has its own problem, and contradicts nobody.
            text = None if other.facts.error else quarantine_contradiction(case.told, other.told)
            proof = proof.adding(problems=[text] if text else [])
        elif other.has_ledger:
            apart = mark_differences(marks, high_water_marks(other.facts.coverage))
            notes = [f"its marks and those of {other.facts.table} are {apart} offsets apart"] if apart else []
            proof = proof.adding(problems=named(contradictions(case.told, other.told)), notes=notes)
    return proof


def _of_rows(proof: TableProof, case: _Case, others: Sequence[_Case], kafka: KafkaRows, *, may_filter: bool) -> TableProof:
    empty = RowOffsets({}, {}, {}, 0)
    rows, involved = case.rows or empty, case.overlaps.involved
    if case.facts.role == "quarantine":
        return judge_quarantine_rows(proof, case.facts, case.history, rows, involved)
    quarantine = next((other.rows for other in others if other.facts.role == "quarantine" and other.rows), empty)
    if case.facts.bad_rows is not None:
        found = (other.facts.rows for other in others if other.facts.role == "quarantine")
        quarantine = index_rows(case.facts.bad_rows, *(rows for rows in found if rows is not None))
        proof = proof.adding(notes=[case.facts.note] if case.facts.note else [])
    recalled = union(recalled_in(other.history, other.facts) for other in others if other.facts.role == "quarantine")
    target = TargetRows(case.facts, case.history, rows, quarantine, case.erased, involved, recalled)
    return judge_target_rows(proof, target, kafka, may_filter=may_filter)
