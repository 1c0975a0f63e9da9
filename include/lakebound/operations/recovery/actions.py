"""The actions of recovery: each makes a plan from facts, or refuses. Pure.

| action | what it is for | what it commits |
| --- | --- | --- |
| resume | the tables are correct: a hold, a crash loop, a stalled application | nothing |
| rebase | a table whose entries no longer say which offsets it has | a ``reset`` entry with the offsets of its rows |
| accept_loss | Kafka has deleted offsets that were not landed | a ``skip`` entry for exactly these |
| new_incarnation | a topic that was deleted and created again | a ``reset`` entry: its new id, from its beginning |
| drop_zombie | an application that must not write any more | an ``open`` entry of a higher epoch |
| repoint | an Iceberg catalog that was restored from an older copy | nothing: the catalog names the newest metadata again |
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime

from lakebound.errors import LakeboundError
from lakebound.ledger.start import plan_start
from lakebound.operations.recovery.conditions import afterwards, check_readable, refused, topics_of, want_running
from lakebound.operations.recovery.facts import RecoveryFacts
from lakebound.operations.recovery.landing_rate import catch_up_seconds
from lakebound.operations.recovery.mending import plan_accept_loss, plan_new_incarnation, plan_rebase
from lakebound.operations.recovery.plan import PlanRefusedError, RepairAction, RepairPlan, RepairStep
from lakebound.operations.recovery.repointing import plan_repoint

Planner = Callable[[RecoveryFacts], RepairPlan]


def make_plan(action: RepairAction, facts: RecoveryFacts) -> RepairPlan:
    """Return the plan of an action.

    Raises:
        PlanRefusedError: There is nothing to do, or it would do harm.
    """
    planner = PLANNERS.get(action)
    if planner is None:
        raise PlanRefusedError(facts.pipeline, action, f"the actions are {', '.join(PLANNERS)}; a rewind has its own command")
    plan = planner(facts)
    seconds = catch_up_seconds(facts.records_behind, facts.records_per_second)
    return plan.model_copy(update={"estimate_seconds": seconds})


def plan_resume(facts: RecoveryFacts) -> RepairPlan:
    """Release a hold, end a stalled application, reset the count of failed starts.

    Raises:
        PlanRefusedError: Nothing keeps the pipeline from running, a ledger cannot be read, or a start would be refused.
    """
    control, desired = facts.control, facts.control.desired
    steps = []
    if control.app is not None and control.stall:
        what = f"end the application {control.app.app_id}, which is stalled"
        steps.append(RepairStep(what=what, detail={"end": control.app.app_id}))
    if desired.state != "running":
        because = f" ({desired.reason})" if desired.reason else ""
        steps.append(want_running(f"set the desired state to running; now it is {desired.state}{because}"))
    elif control.barren_ends:
        steps.append(want_running("reset the count of failed starts, so that the pipeline can be started again"))
    if not steps:
        raise refused(facts, "resume", "its desired state is running, and nothing prevents a start; there is nothing to do")
    check_readable(facts, "resume")
    notes = [] if facts.kafka.silence is None else [f"Kafka was not asked: {facts.kafka.silence}"]
    if facts.kafka.silence is None and facts.targets:
        try:
            plan_start([table.coverage for table in facts.targets], topics_of(facts, "resume"))
        except LakeboundError as exc:
            raise refused(facts, "resume", f"an application would refuse to start: {exc}") from exc
    if control.barren_ends:
        notes.append(
            f"remove the cause of the failed starts first; then: lakebound start {facts.pipeline}, which also unpauses the DAG "
            f"ingest__{facts.pipeline}"
        )
    return RepairPlan(
        pipeline=facts.pipeline,
        action="resume",
        summary="continue from the ledger; the tables are correct",
        steps=tuple(steps),
        facts={
            **desired.model_dump(include={"generation", "reason", "by"}),
            "desired": desired.state,
            "stalled": bool(control.stall),
        },
        notes=tuple(notes),
    )


def plan_drop_zombie(facts: RecoveryFacts) -> RepairPlan:
    """Take the lease from its holder, and make the tables refuse the commits of that application.

    Raises:
        PlanRefusedError: Nobody holds the lease, or a ledger cannot be read.
    """
    lease, now = facts.control.lease, facts.control.now
    if lease is None or lease.released:
        raise refused(facts, "drop_zombie", "nobody holds the lease; there is nothing to do")
    check_readable(facts, "drop_zombie")
    existing = [table for table in facts.tables if table.exists]
    what = f"ask {lease.app_id} to end, and take its lease (epoch {lease.epoch}) even if it does not end"
    steps = [RepairStep(what=what, detail={"end": lease.app_id})]
    steps += [
        RepairStep(
            what=f"{table.table}: commit an open entry of the higher epoch; from then on the table refuses {lease.app_id}",
            table=table.table,
            detail={"commit": "open"},
        )
        for table in existing
    ]
    alive = "the lease is still valid" if facts.control.lease_is_live else "the lease has expired"
    heartbeat = f"its last heartbeat was {lease.age_seconds(now):.0f} s ago, {alive}"
    said = f"has held the lease since {_moment(lease.acquired_at)}; {heartbeat}"
    return RepairPlan(
        pipeline=facts.pipeline,
        action="drop_zombie",
        summary=f"{lease.app_id} on {lease.host} (process {lease.pid}) {said}",
        steps=(*steps, *afterwards(facts)),
        facts={"holder": lease.app_id, "epoch": lease.epoch},
        notes=("the next application reads what was not committed again; no record is lost or landed twice",),
    )


PLANNERS: Mapping[RepairAction, Planner] = {
    "resume": plan_resume,
    "rebase": plan_rebase,
    "accept_loss": plan_accept_loss,
    "new_incarnation": plan_new_incarnation,
    "drop_zombie": plan_drop_zombie,
    "repoint": plan_repoint,
}


def _moment(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat(sep=" ", timespec="seconds").removesuffix("+00:00") + " UTC"
