"""Build a store again from Kafka: a plan that says what Kafka no longer has, and its application.

The store is made as if it had never been filled; the next start fills it, as it fills any new store, exactly once. If it is
interrupted, a store without a ledger that still holds something is refused by a start, until this has been done to its end.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

from lakebound.control.folder import ControlFolder
from lakebound.control.incidents import Decision, Incident, record_incident
from lakebound.control.lease import check_held
from lakebound.errors import ForeignTableError, LakeboundError, StoreUnavailableError
from lakebound.landing.to_stores.open_store import open_store
from lakebound.landing.to_stores.shape import StoreShape
from lakebound.landing.to_stores.target import StoreTarget
from lakebound.ledger.entry import Offsets, check_owner, intervals_of
from lakebound.ledger.lost import LostRange
from lakebound.ledger.topics import TopicFacts
from lakebound.operations.recovery.facts import BrokerFacts, collect_kafka
from lakebound.operations.recovery.plan import ApprovablePlan, PlanRefusedError, RepairStep, check_hash
from lakebound.operations.recovery.takeover import taken_over
from lakebound.redaction import TOLD_TO_ITS_CALLER, redacted
from lakebound.settings import Settings
from lakebound.spec.pipeline import PipelineSpec
from lakebound.spec.to_stores import ToStoreSpec
from lakebound.tables.places import places_of

ACTION = "rebuild_store"
_RUNBOOK = "target-store"


@dataclass(frozen=True)
class StoreFacts:
    """A store as it is now, and what Kafka has.

    Attributes:
        spec: The store.
        held: How many rows or keys it holds.
        coverage: What its ledger says that it holds; None where the ledger is not there, or cannot be used.
        refusal: Why the ledger cannot be used; None where it can, or is not there.
        kafka: What the broker says.
        shape: How what it holds is made, as its ledger says it; None where it does not.
    """

    spec: ToStoreSpec
    held: int
    coverage: Offsets | None
    refusal: str | None
    kafka: BrokerFacts
    shape: StoreShape | None = None


class NoSuchStoreError(LakeboundError):
    """The pipeline has no such store."""

    def __init__(self, pipeline: str, store: str, known: list[str]) -> None:
        super().__init__(f"pipeline {pipeline!r} has no store {store!r}; its stores are: {', '.join(known) or 'none'}")


def plan_store_rebuild(pipeline: PipelineSpec, facts: StoreFacts) -> ApprovablePlan:
    """Return the plan; pure.

    Args:
        pipeline: Whose store it is.
        facts: As of now.

    Raises:
        PlanRefusedError: There is nothing to do, or the new store would lack what Kafka still has.
    """
    store = facts.spec
    if not facts.held and facts.coverage is None and facts.refusal is None:
        raise PlanRefusedError(pipeline.pipeline, ACTION, f"{store.id} is empty and has no ledger: the next start fills it")
    if pipeline.start_from == "latest":
        raise PlanRefusedError(
            pipeline.pipeline,
            ACTION,
            "start_from is latest, so a new store would get only the records that arrive from then on; set start_from: "
            "earliest in the YAML (tables go on from their ledgers), and plan again",
        )
    if facts.kafka.silence is not None:
        raise PlanRefusedError(pipeline.pipeline, ACTION, f"it needs the offsets that Kafka has: {facts.kafka.silence}")
    topics = {topic: known for topic, known in facts.kafka.topics.items() if known is not None}
    if gone := sorted({*facts.kafka.topics} - {*topics}):
        raise PlanRefusedError(pipeline.pipeline, ACTION, f"not on the broker: {', '.join(gone)}")
    loses = tuple(lost_ranges(facts.coverage or {}, topics))
    return ApprovablePlan(
        pipeline=pipeline.pipeline,
        action=ACTION,
        summary=f"{store.id} at {store.place} is filled again from Kafka",
        steps=_steps(store),
        facts={"store": store.id, "place": store.place},
        loses=loses,
        replays_records=sum(known.latest[p] - first for known in topics.values() for p, first in known.earliest.items()),
        removes_rows={store.id: facts.held},
        notes=_notes(facts),
    )


def lost_ranges(coverage: Offsets, topics: Mapping[str, TopicFacts]) -> list[LostRange]:
    """Return what a store holds the effect of, and Kafka no longer has; pure.

    Args:
        coverage: By the store's ledger.
        topics: What Kafka has of each topic.
    """
    found = []
    for topic, partition, intervals in intervals_of(coverage):
        known = topics.get(topic)
        is_same = known is not None and known.topic_id == coverage[topic].topic_id
        earliest = known.earliest.get(partition, 0) if known is not None and is_same else None
        for start, end in intervals:
            last = end if earliest is None else min(end, earliest)
            if start < last:
                found.append(LostRange(topic=topic, partition=partition, start=start, end=last))
    return found


def collect_store(pipeline: PipelineSpec, name: str) -> StoreFacts:
    """Return the facts of a plan.

    Args:
        pipeline: The pipeline.
        name: The store's name or id.

    Raises:
        NoSuchStoreError: The pipeline has no such store.
        ForeignTableError: It is another pipeline's.
        StoreUnavailableError: It does not answer.
    """
    spec = _chosen(pipeline, name)
    target = open_store(spec, pipeline)
    try:
        coverage, refusal = _ledger(target, pipeline)
        shape = None if refusal is not None else target.held_shape
        return StoreFacts(spec, target.held(), coverage, refusal, collect_kafka(pipeline), shape)
    finally:
        target.close()


def apply_store_rebuild(
    pipeline: PipelineSpec, settings: Settings, name: str, approved: str, *, by: str, asked_by: str | None = None
) -> Incident:
    """Empty the store as the approved plan says, and return the record of it. If it is interrupted, plan and apply it again.

    Args:
        pipeline: The pipeline.
        settings: Of this machine.
        name: The store's name or id.
        approved: Hash of the plan.
        by: Who approved it.
        asked_by: Who asked for it; None where that is not known.

    Raises:
        PlanChangedError: The facts have changed since; nothing was done.
        LakeboundError: What ``taken_over`` raises, or a store that refused; the pipeline is then held.
    """
    places = places_of(settings, pipeline.warehouse)
    check_hash(plan_store_rebuild(pipeline, collect_store(pipeline, name)), approved)
    control = ControlFolder(places.home, pipeline.pipeline, places.state)
    with taken_over(pipeline, places, by=by, reason=f"{ACTION} {approved}") as lease:
        # Until it ended, the application may have changed the facts of the plan.
        found = _approved_still(pipeline, name, approved)
        if isinstance(found, ApprovablePlan):
            record = partial(record_rebuild, control, found, asked_by=asked_by, approved_by=by)
            return _carry_out(pipeline, name, partial(check_held, control, lease), record)
    raise found


def _approved_still(pipeline: PipelineSpec, name: str, approved: str) -> ApprovablePlan | LakeboundError:
    """Return the plan, or why it is refused; the caller raises it after the hold, which an exception would leave in place."""
    try:
        found = plan_store_rebuild(pipeline, collect_store(pipeline, name))
        check_hash(found, approved)
    except LakeboundError as exc:
        return exc
    return found


def _carry_out(
    pipeline: PipelineSpec, name: str, check_lease: Callable[[], None], record: Callable[[str], Incident]
) -> Incident:
    target = open_store(_chosen(pipeline, name), pipeline, check_lease=check_lease)
    try:
        done = target.empty()
    except BaseException as exc:
        record(f"interrupted ({redacted(exc, TOLD_TO_ITS_CALLER)}): plan and apply it again")
        raise
    finally:
        target.close()
    return record(f"applied: {done}")


def record_rebuild(
    control: ControlFolder, plan: ApprovablePlan, outcome: str, *, asked_by: str | None, approved_by: str
) -> Incident:
    """Write down what was done by a plan.

    Args:
        control: The pipeline's state.
        plan: The plan.
        outcome: What came of it, in words.
        asked_by: Who asked for it; None where that is not known.
        approved_by: Who approved it.
    """
    return record_incident(
        control,
        "repair",
        f"{plan.action}: {plan.summary}",
        runbook=_RUNBOOK,
        facts=plan.facts,
        outcome=outcome,
        decision=Decision(asked_by, approved_by, {**plan.model_dump(mode="json"), "hash": plan.hash}, plan.loses),
    )


def _chosen(pipeline: PipelineSpec, name: str) -> ToStoreSpec:
    for one in pipeline.to_stores:
        if name in (one.id, one.name):
            return one
    raise NoSuchStoreError(pipeline.pipeline, name, [one.id for one in pipeline.to_stores])


def _ledger(target: StoreTarget, pipeline: PipelineSpec) -> tuple[Offsets | None, str | None]:
    try:
        entry = target.read_ledger().entry
        if entry is None:
            return None, None
        check_owner(entry, pipeline.pipeline, target.spec.id)
        return entry.coverage, None
    except (ForeignTableError, StoreUnavailableError):
        raise
    except LakeboundError as exc:
        return None, str(exc)


def _steps(store: ToStoreSpec) -> tuple[RepairStep, ...]:
    if store.postgres is not None:
        what = f"rename the table {store.name} to {store.name}_before_…, and remove its ledger, in one transaction"
    else:
        what = f"remove the ledger lakebound:ledger:{store.name}, then all keys {store.name}:*"
    return (
        RepairStep(what=what, table=store.id, detail={"empty": store.id}),
        RepairStep(what="the next start makes the store anew, and fills it from the earliest offsets that Kafka has"),
    )


def _notes(facts: StoreFacts) -> tuple[str, ...]:
    notes = ["readers find an empty store until the next start has filled it; tables and topics get nothing twice"]
    if facts.spec.postgres is not None:
        notes.append("grants, indexes and columns of your own are not on the new table; drop the renamed one when you want")
    if facts.spec.counters is not None:
        notes.append("records that lie before their windows now are not counted again")
    if facts.refusal is not None:
        notes.append(f"which offsets it holds is not known: {facts.refusal}")
    elif facts.coverage is None:
        notes.append("it has no ledger: make sure that what it holds belongs to nobody else")
    return tuple(notes)
