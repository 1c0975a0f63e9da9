"""Collects what a replay's plan follows from: range, ledgers, what a proof misses, and what Kafka has. Writes nothing."""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce

from lakebound.control.folder import ControlFolder
from lakebound.control.progress import readable_progress
from lakebound.inspection.proof.collect import prove
from lakebound.inspection.proof.result import Ranges, TableProof
from lakebound.landing.kafka import KafkaFacts
from lakebound.ledger.entry import Offsets, TopicOffsets, add, check_topic_ids, common, count
from lakebound.ledger.marks import NextOffsets
from lakebound.ledger.topics import TopicFacts
from lakebound.operations.backfill.tables import owned_table
from lakebound.operations.replay.bounds import ReplayBound, between, resolve
from lakebound.operations.replay.chunks import chunks
from lakebound.operations.replay.plan import ReplayPlan, make_plan
from lakebound.operations.replay.take_back import nothing_stands_for
from lakebound.settings import Settings
from lakebound.spec.pipeline import PipelineSpec
from lakebound.spec.source import source_hash
from lakebound.spec.state import check_stateless
from lakebound.tables.erased import read_erased
from lakebound.tables.places import places_of
from lakebound.tables.table import open_table


def prepare(
    spec: PipelineSpec, settings: Settings, start: ReplayBound, end: ReplayBound, *, missing: bool = False
) -> ReplayPlan:
    """Return what a replay of the range would do.

    Args:
        spec: The pipeline.
        settings: This machine's places.
        start: First offset of each partition.
        end: The offset after the last one of each partition.
        missing: Only what a deep proof finds missing; then also what a coverage claims without any row.

    Raises:
        WithStateError: The pipeline's rows are of windows.
        NothingLandedYetError: A table has no ledger yet.
        LakeboundError: What ``lakebound.operations.replay.plan.make_plan`` refuses, and what reading ledgers and Kafka raises.
    """
    check_stateless(spec, "replay")
    broker = KafkaFacts(spec.connection)
    topics = broker.topics(spec.topics)
    first, last = (resolve(bound, topics, _at_time(bound, broker, spec)) for bound in (start, end))
    asked = between(first, last, topics)
    proofs = _proofs(spec, settings, broker) if missing else {}
    places = places_of(settings, spec.warehouse)
    coverages = {table.id: owned_table(spec, table, places)[1].coverage for table in spec.tables}
    takes_back: dict[str, Offsets] = {}
    if missing:
        for coverage in coverages.values():
            check_topic_ids(coverage, {topic: known.topic_id for topic, known in topics.items()})
        lacking = {table: common(_missing(proof, topics), asked) for table, proof in proofs.items()}
        takes_back = {table: _unfounded(spec, settings, table, lacking[table], coverages[table]) for table in lacking}
        asked = reduce(add, lacking.values(), {})
    plan = make_plan(spec.pipeline, asked, coverages, topics, takes_back=takes_back)
    notes = (*_outdated(spec, settings), *_of_today(spec), *_beyond_replay(plan, proofs))
    pieces = sum(1 for _ in chunks(plan.wanted, spec.limits.max_records_per_batch))
    return plan.model_copy(update={"chunks": pieces, "notes": notes})


def _at_time(bound: ReplayBound, broker: KafkaFacts, spec: PipelineSpec) -> NextOffsets | None:
    return None if bound.timestamp_ms is None else broker.offsets_at(spec.topics, bound.timestamp_ms)


def _proofs(spec: PipelineSpec, settings: Settings, broker: KafkaFacts) -> dict[str, TableProof]:
    proof = prove(spec, places_of(settings, spec.warehouse), deep=True, facts=broker)
    tables = {table.id for table in spec.tables}  # what is missing in a topic cannot be replayed
    return {found.table: found for found in proof.tables if found.table in tables}


def _missing(proof: TableProof, topics: Mapping[str, TopicFacts]) -> Offsets:
    """Return what a table lacks: gaps whole, else the offsets that are missing, else the range in which a number of them is."""
    found = (proof.gaps.ranges, proof.missing.ranges, proof.missing.within)
    return reduce(add, (_offsets(ranges, topics) for ranges in found), {})


def _offsets(ranges: Ranges, topics: Mapping[str, TopicFacts]) -> Offsets:
    return {
        topic: TopicOffsets(topic_id=topics[topic].topic_id, partitions=partitions)
        for topic, partitions in ranges.items()
        if topic in topics
    }


def _unfounded(spec: PipelineSpec, settings: Settings, table_id: str, lacking: Offsets, coverage: Offsets) -> Offsets:
    claimed = common(lacking, coverage)
    if not count(claimed):
        return {}
    places = places_of(settings, spec.warehouse)
    table = open_table(next(table for table in spec.tables if table.id == table_id), places)
    erased = read_erased(table, table.read_ledger().entry)
    return nothing_stands_for(claimed, table, open_table(spec.quarantine_table, places), erased=erased)


def _outdated(spec: PipelineSpec, settings: Settings) -> list[str]:
    progress = readable_progress(ControlFolder(settings.home, spec.pipeline))
    if progress is None or not progress.source_hash or progress.source_hash == source_hash(spec, settings.apps):
        return []
    return [f"{progress.app_id} landed with another version of the pipeline or its transform; the replay uses the present one"]


def _of_today(spec: PipelineSpec) -> list[str]:
    """Say that reference data may have been others when the stream would have landed these records."""
    if not spec.reference:
        return []
    names = ", ".join(sorted(spec.reference))
    return [f"the transform reads reference data ({names}): the replay uses today's version of it"]


def _beyond_replay(plan: ReplayPlan, proofs: Mapping[str, TableProof]) -> list[str]:
    """Name the tables of which rows are missing that no replay of whole records can bring back."""
    lands = {share.table: count(share.lands) for share in plan.tables}
    return [
        f"{table} has only some rows of some records; a replay would duplicate those rows; rewind the pipeline instead"
        for table, proof in proofs.items()
        if proof.missing and not proof.gaps and not lands[table] and not count(plan.left_to_stream)
    ]
