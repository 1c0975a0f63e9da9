"""Applies the approved plan of a rewind, if its facts are still true."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

from lakebound.control.folder import ControlFolder
from lakebound.control.incidents import Decision, Incident, record_incident
from lakebound.control.lease import Lease
from lakebound.errors import LakeboundError
from lakebound.landing.kafka import KafkaFacts
from lakebound.ledger.entry import Entry, new_commit_id
from lakebound.operations.recovery.plan import RepairPlan, RepairStep, check_hash
from lakebound.operations.recovery.rewind.facts import Rewinding, RewindRequest, make_plan
from lakebound.operations.recovery.rewind.plan import RewindFacts, moved_forward
from lakebound.operations.recovery.takeover import taken_over
from lakebound.redaction import TOLD_TO_ITS_CALLER, redacted
from lakebound.spec.pipeline import PipelineSpec
from lakebound.tables.places import Places
from lakebound.tables.table import Table, open_table

_LAST_COMMITS = 5
_OF_THE_RESET = (
    *("coverage", "former", "released", "foreign_changes", "changes_seen", "sources", "erased"),
    *("newest_redo", "redo_progress"),
)


def apply_rewind(
    spec: PipelineSpec,
    places: Places,
    request: RewindRequest,
    approved: str,
    *,
    by: str,
    asked_by: str | None = None,
    kafka: KafkaFacts | None = None,
) -> Incident:
    """Restore the tables as the approved plan says, and return the record of it.

    If it is interrupted between two tables, plan and apply it again. A stream that starts in between does no harm: each table's
    own ledger decides what is landed in it.

    Args:
        spec: The pipeline.
        places: Where its tables and its state are.
        request: The request; a time must be the same as for the plan.
        approved: Hash of the plan that was approved.
        by: Who approved it.
        asked_by: Who asked for it; None where that is not known.
        kafka: How to ask Kafka; by default, by the pipeline's connection.

    Raises:
        PlanChangedError: The plan is no longer the one that was approved; nothing was done.
        LakeboundError: What ``make_plan`` and ``taken_over`` raise, or a table that refused; the pipeline is then held.
    """
    check_hash(make_plan(spec, places, request, kafka=kafka).plan, approved)
    control = ControlFolder(places.home, spec.pipeline, places.state)
    with taken_over(spec, places, by=by, reason=f"{request.action} {approved}") as lease:
        # Nothing changes from here on; but until it ended, the application may have changed the facts of the plan.
        found = _approved_still(spec, places, request, approved, kafka)
        if isinstance(found, Rewinding):
            record = partial(_record, control, found.plan, asked_by=asked_by, approved_by=by)
            return _carry_out(spec, places, found, lease, record)
    raise found


def _approved_still(
    spec: PipelineSpec, places: Places, request: RewindRequest, approved: str, kafka: KafkaFacts | None
) -> Rewinding | LakeboundError:
    """Return the plan, or why it is refused; the caller raises it after the hold, which an exception would leave in place."""
    try:
        found = make_plan(spec, places, request, kafka=kafka)
        check_hash(found.plan, approved)
    except LakeboundError as exc:
        return exc
    return found


def _carry_out(
    spec: PipelineSpec, places: Places, found: Rewinding, lease: Lease, record: Callable[[list[dict[str, Any]], str], Incident]
) -> Incident:
    plan, done = found.plan, list[dict[str, Any]]()
    try:
        for step in _in_safe_order(plan.steps, found.facts):
            done.append(_put_back(spec, places, plan, step, lease))
    except BaseException as exc:
        record(done, f"interrupted ({redacted(exc, TOLD_TO_ITS_CALLER)}): plan and apply it again")
        raise
    return record(done, "done")


def _in_safe_order(steps: Sequence[RepairStep], facts: RewindFacts) -> list[RepairStep]:
    """Return the steps with a table, ordered so that the quarantine never lacks bad records of offsets that the tables cover.

    A start in between would not read such records again. So the quarantine goes back after the tables, and forward before them.
    """
    tables = [step for step in steps if step.table is not None]
    quarantine = facts.quarantine
    if quarantine is None or not moved_forward(quarantine):
        return tables
    return sorted(tables, key=lambda step: step.table != quarantine.table)


def _put_back(spec: PipelineSpec, places: Places, plan: RepairPlan, step: RepairStep, lease: Lease) -> dict[str, Any]:
    """Restore one table, and return what was done; after a failed commit, the table says whether it took place."""
    table = open_table(next(one for one in (*spec.tables, spec.quarantine_table) if one.id == step.table), places)
    undoes = plan.facts.get("undoes")
    entry = Entry.model_validate(
        {"kind": "reset", "pipeline": spec.pipeline, "epoch": lease.epoch, "commit": new_commit_id()}
        | {name: step.detail[name] for name in _OF_THE_RESET if name in step.detail}
        | ({"undoes": undoes} if undoes else {"rewind": plan.hash})
    )
    try:
        version = table.restore(step.detail["version"], entry)
    except Exception:
        found = None
        # What keeps the table from being read now is told by the first error.
        with suppress(Exception):
            found = _committed(open_table(table.spec, places), entry)
        if found is None:
            raise
        version = found
    return {"table": step.table, "restored": step.detail["version"], "as": version}


def _committed(table: Table, entry: Entry) -> str | None:
    """Return the version of the commit that carries the entry, None where there is none."""
    for number, version in enumerate(table.history().versions()):
        if version.entry is not None and version.entry.commit == entry.commit:
            return version.version
        if number >= _LAST_COMMITS:
            break
    return None


def _record(
    control: ControlFolder,
    plan: RepairPlan,
    done: Sequence[dict[str, Any]],
    outcome: str,
    *,
    asked_by: str | None,
    approved_by: str,
) -> Incident:
    return record_incident(
        control,
        "rewind",
        f"{plan.action}: {plan.summary}",
        facts={"tables": list(done)},
        outcome=outcome,
        decision=Decision(asked_by, approved_by, {**plan.model_dump(mode="json"), "hash": plan.hash}),
    )
