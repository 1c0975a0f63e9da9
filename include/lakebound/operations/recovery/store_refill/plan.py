"""The plan by which a store is filled from a table: what it gets, what Kafka has to add, and what is refused. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from lakebound.ledger.entry import Offsets, count, has_gaps, missing
from lakebound.ledger.topics import TopicFacts
from lakebound.operations.recovery.plan import ApprovablePlan, PlanRefusedError, RepairStep
from lakebound.operations.recovery.store_rebuild import ACTION, lost_ranges
from lakebound.operations.recovery.store_refill.facts import RefillFacts, SourceFacts
from lakebound.spec.pipeline import KAFKA_COLUMN, PipelineSpec
from lakebound.spec.to_stores import ToStoreSpec
from lakebound.spec.tombstones import DELETE


def plan_store_refill(pipeline: PipelineSpec, facts: RefillFacts) -> ApprovablePlan:
    """Return the plan.

    Args:
        pipeline: Whose store and table these are.
        facts: As of now.

    Raises:
        PlanRefusedError: The store would not be right, or the next start would not go on behind it.
    """
    store, source = facts.store.spec, facts.source
    refusal = next(_refusals(pipeline, facts), None)
    if refusal is not None:
        raise PlanRefusedError(pipeline.pipeline, ACTION, f"{store.id} cannot be filled from {source.spec.id}: {refusal}")
    assert source.schema is not None
    topics = _topics(facts)
    loses = lost_ranges(_not_in(source, facts.store.coverage or {}), topics)
    marks = source.marks
    behind = sum(
        end - marks.get(topic, {}).get(p, known.earliest[p])
        for topic, known in topics.items()
        for p, end in known.latest.items()
    )
    columns = [name for name in source.schema.names if name != KAFKA_COLUMN]
    return ApprovablePlan(
        pipeline=pipeline.pipeline,
        action=ACTION,
        summary=f"{store.id} at {store.place} is filled from the table {source.spec.id}, and then from Kafka",
        steps=_steps(store, source),
        facts={"store": store.id, "place": store.place, "from_table": source.spec.id, "columns": columns},
        loses=tuple(loses),
        replays_records=behind,
        removes_rows={store.id: facts.store.held},
        notes=tuple(_notes(facts, columns)),
    )


def _refusals(pipeline: PipelineSpec, facts: RefillFacts) -> Iterator[str]:
    source = facts.source
    kafka = f"fill it from Kafka: lakebound rebuild-store {pipeline.pipeline} {facts.store.spec.name}, without --from-table"
    if pipeline.null_values == DELETE:
        yield (
            f"with null_values: delete, the keys of records without a value are removed, and a table keeps the rows of these "
            f"keys, because it does not hold such records; {kafka}"
        )
    if source.refusal is not None:
        yield source.refusal
    yield from _lacking_rows(pipeline, source, kafka)
    if has_gaps(source.coverage):
        yield (
            f"its ledger has gaps, whose rows it lacks, and a start goes on above them; land them first: lakebound replay "
            f"{pipeline.pipeline}"
        )
    yield from _kafka_refusals(facts)
    if facts.rows is not None and facts.rows.problems:
        yield f"{'; '.join(facts.rows.problems)}; {kafka}"


def _lacking_rows(pipeline: PipelineSpec, source: SourceFacts, kafka: str) -> Iterator[str]:
    """Yield why the table does not hold the rows of all records that it covers, or holds others."""
    if source.erased:
        yield f"{source.erased:,} rows were erased from it: the newest row of a key, or a count, may be missing; {kafka}"
    if source.changes:
        yield (
            f"others have changed its rows: {'; '.join(source.changes)}; undo this by lakebound rewind {pipeline.pipeline}, "
            f"or {kafka}"
        )
    if source.acknowledged:
        versions = ", ".join(source.acknowledged)
        yield f"others have changed its rows, and a person has acknowledged it (version {versions}); {kafka}"


def _kafka_refusals(facts: RefillFacts) -> Iterator[str]:
    """Yield why the next start would not go on exactly behind the table."""
    kafka, source = facts.store.kafka, facts.source
    if kafka.silence is not None:
        yield f"it needs the offsets that Kafka has: {kafka.silence}"
    if gone := sorted(topic for topic, known in kafka.topics.items() if known is None):
        yield f"not on the broker: {', '.join(gone)}"
    marks = source.marks
    for topic, known in _topics(facts).items():
        if topic in source.coverage and source.coverage[topic].topic_id != known.topic_id:
            yield f"the topic {topic} was created again since the table was landed; repair the table first (lakebound recover)"
        for partition, mark in marks.get(topic, {}).items():
            earliest, latest = known.earliest.get(partition, 0), known.latest.get(partition, 0)
            where = f"{topic}, partition {partition}"
            if mark < earliest:
                yield (
                    f"Kafka no longer has the offsets [{mark}, {earliest}) of {where} behind the table, so that the next start "
                    f"would be refused; choose another table, or repair this one first (lakebound recover)"
                )
            if mark > latest:
                yield f"the table covers offsets up to {mark} of {where}, and Kafka ends at {latest}; see lakebound doctor"


def _topics(facts: RefillFacts) -> dict[str, TopicFacts]:
    return {topic: known for topic, known in facts.store.kafka.topics.items() if known is not None}


def _not_in(source: SourceFacts, held: Offsets) -> Offsets:
    """Return what a store covers, and the table does not."""
    found: Offsets = {}
    for topic, offsets in held.items():
        same = source.incarnations.get((topic, offsets.topic_id))
        covered = {} if same is None else {topic: offsets.model_copy(update={"partitions": dict(same.partitions)})}
        found |= missing({topic: offsets}, covered)
    return found


def _steps(store: ToStoreSpec, source: SourceFacts) -> tuple[RepairStep, ...]:
    if store.postgres is not None:
        what = f"rename the table {store.name} to {store.name}_before_…, and begin a new one whose ledger says incomplete"
    else:
        what = f"let the ledger lakebound:ledger:{store.name} say incomplete, then remove all keys {store.name}:*"
    return (
        RepairStep(what=f"read and check all rows of {source.spec.id} into files of this machine; the store stays as it is"),
        RepairStep(what=what, table=store.id, detail={"fill": store.id, "from": source.spec.id}),
        RepairStep(what="put the rows into the store in the order of their source positions, in pieces"),
        RepairStep(what="let its ledger say what the table covers; the next start goes on exactly behind it from Kafka"),
    )


def _notes(facts: RefillFacts, columns: list[str]) -> Iterator[str]:
    store, source, rows = facts.store.spec, facts.source, facts.rows
    if rows is not None:
        keys = "" if rows.keys is None else f", about {rows.keys:,} keys"
        yield f"the table has {rows.rows:,} rows{keys} at version {source.version}, as of now"
    yield f"they cover {count(source.coverage):,} offsets; Kafka adds what is behind them (offsets read again)"
    yield f"columns: {', '.join(columns)}"
    yield from source.notes
    yield "rows are as the transform made them when they landed, not as it would make them today"
    yield "readers find a partly filled store until this ends; if it is interrupted, each start is refused until it is done"
    if store.postgres is not None:
        yield "grants, indexes and columns of your own are not on the new table; drop the renamed one when you want"
    if store.counters is not None:
        yield "rows that lie before their windows now are not counted"
    if earlier := sum(len(one) for one in source.former.values()):
        yield f"rows of {earlier} earlier incarnations of topics are put into the store, too, before those of the present ones"
    if not source.is_whole_history:
        yield (
            "the table's history does not go back to its beginning: whether others have deleted rows before, and a person has "
            "acknowledged it, is not known. If so, do not apply this plan"
        )
    if facts.store.refusal is not None:
        yield f"which offsets the store holds now is not known: {facts.store.refusal}"
    elif facts.store.coverage is None and facts.store.held:
        yield "the store has no ledger: make sure that what it holds belongs to nobody else"
