"""Reads the facts for the plan of a rewind: the history of the tables, and Kafka. Writes nothing."""

from __future__ import annotations

import time
from dataclasses import dataclass

from lakebound.inspection.proof.collect import table_id
from lakebound.landing.kafka import KafkaFacts
from lakebound.ledger.entry import check_owner
from lakebound.ledger.sources import UNKNOWN, Source
from lakebound.operations.maintenance.keep import undo_until_ms
from lakebound.operations.recovery.landing_rate import slowest_rate
from lakebound.operations.recovery.plan import PlanRefusedError, RepairPlan
from lakebound.operations.recovery.rewind.choice import (
    LastRewind,
    ahead_of_thinning,
    last_rewind,
    left_by_earlier_epochs,
    split_at,
)
from lakebound.operations.recovery.rewind.plan import RewindAction, RewindFacts, RewoundTable, plan_rewind
from lakebound.spec.pipeline import PipelineSpec
from lakebound.spec.state import check_stateless
from lakebound.spec.table import TableSpec
from lakebound.spec.times import in_utc
from lakebound.tables.contents import contents_of
from lakebound.tables.entries import counting
from lakebound.tables.places import Places
from lakebound.tables.table import Table, TableVersion, open_table


@dataclass(frozen=True)
class RewindRequest:
    """The request for a rewind, or for the undoing of one.

    Attributes:
        to_ms: The time to which the tables go back, in milliseconds since the epoch; None undoes the last rewind.
        table: Name or id of the only table that goes back; None for all.
        source: The code that would land the rows again.
    """

    to_ms: int | None
    table: str | None = None
    source: Source = UNKNOWN

    @property
    def action(self) -> RewindAction:
        """The action of its plan."""
        return "undo_rewind" if self.to_ms is None else "rewind"


@dataclass(frozen=True)
class Rewinding:
    """A plan, and the facts from which it was made."""

    plan: RepairPlan
    facts: RewindFacts


@dataclass(frozen=True)
class _Subject:
    """The pipeline's tables: those that go back, and the others."""

    spec: PipelineSpec
    places: Places
    action: RewindAction
    targets: list[Table]
    quarantine: Table | None
    kept: list[Table]

    def refuse(self, reason: str) -> PlanRefusedError:
        return PlanRefusedError(self.spec.pipeline, self.action, reason)


def make_plan(spec: PipelineSpec, places: Places, request: RewindRequest, *, kafka: KafkaFacts | None = None) -> Rewinding:
    """Return the plan of a rewind as of now. A stream may run meanwhile.

    Args:
        spec: The pipeline.
        places: Where its tables are.
        request: The request.
        kafka: How to ask Kafka; by default, by the pipeline's connection.

    Raises:
        WithStateError: The pipeline's rows are of windows.
        PlanRefusedError: Every plan would lose records.
        VersionGoneError: Maintenance has removed the version.
        TableRestoredError: The table had been restored by hand before that time.
        UnknownTableError: The pipeline has no such table.
        BrokerUnavailableError: Kafka does not answer.
    """
    check_stateless(spec, "rewind")
    subject = _subject(spec, places, request)
    undoes = None
    if request.to_ms is None:
        undoes, targets, quarantine = _before_last_rewind(subject)
    else:
        targets, quarantine = _at(subject, request.to_ms)
    facts = RewindFacts(
        targets=tuple(targets),
        quarantine=quarantine,
        kept={
            table.spec.id: found.entry.coverage
            for table in subject.kept
            if table.spec.id not in {target.table for target in targets} and (found := counting(table.entries()))
        },
        topics=(kafka or KafkaFacts(spec.connection)).topics(spec.topics),
        records_per_second=slowest_rate(subject.targets),
        source=request.source,
    )
    return Rewinding(plan_rewind(spec.pipeline, request.action, facts, undoes=undoes), facts)


def _subject(spec: PipelineSpec, places: Places, request: RewindRequest) -> _Subject:
    wanted = None if request.table is None else table_id(spec, request.table)
    if wanted == spec.quarantine_table.id:
        reason = "the quarantine goes back only together with the tables: alone, it would lose records that are not read again"
        raise PlanRefusedError(spec.pipeline, request.action, reason)
    existing = {table.id: open_table(table, places) for table in spec.tables if _exists(table, places)}
    chosen = [table for name, table in existing.items() if wanted in (None, name)]
    if not chosen:
        raise PlanRefusedError(
            spec.pipeline, request.action, f"{wanted} does not exist yet" if wanted else "none of its tables exists yet"
        )
    with_quarantine = wanted is None or len(spec.tables) == 1
    quarantine = spec.quarantine_table if with_quarantine and _exists(spec.quarantine_table, places) else None
    return _Subject(
        spec=spec,
        places=places,
        action=request.action,
        targets=chosen,
        quarantine=open_table(quarantine, places) if quarantine else None,
        kept=list(existing.values()),
    )


def _exists(spec: TableSpec, places: Places) -> bool:
    return open_table(spec, places).exists()


def _at(subject: _Subject, moment_ms: int) -> tuple[list[RewoundTable], RewoundTable | None]:
    targets = []
    for table in subject.targets:
        _, version = _split(subject, table, moment_ms)
        targets.append(_rewound(subject, table, version))
    if subject.quarantine is None:
        return targets, None
    newer, version = _split(subject, subject.quarantine, moment_ms)
    entries = [target.past.entry for target in targets if target.past.entry]
    later = left_by_earlier_epochs(newer, max((entry.epoch for entry in entries), default=0))
    if later is None:
        held = subject.quarantine.look_back(version.version).entry
        later = ahead_of_thinning(version, held.coverage if held else {}, newer, [entry.coverage for entry in entries])
    return targets, _rewound(subject, subject.quarantine, later)


def _split(subject: _Subject, table: Table, moment_ms: int) -> tuple[list[TableVersion], TableVersion]:
    newer, version = split_at(table.history().versions(), moment_ms)
    if version is None:
        oldest = f"the oldest kept version is of {in_utc(newer[-1].committed_at_ms)}" if newer else "no version is kept"
        raise subject.refuse(
            f"{table.spec.id} has no version at or before {in_utc(moment_ms)}: {oldest}; other tables may have older versions: "
            "rewind each of them alone (--table)"
        )
    return newer, version


def _before_last_rewind(subject: _Subject) -> tuple[str, list[RewoundTable], RewoundTable | None]:
    tables = [*subject.targets, *([subject.quarantine] if subject.quarantine else [])]
    found = {table.spec.id: last for table in tables if (last := last_rewind(table.history().versions())) is not None}
    if not found:
        raise subject.refuse("the history of its tables has no rewind that could be undone")
    plan = max(found.values(), key=lambda last: last.reset_at_ms).plan
    group = {name: last for name, last in found.items() if last.plan == plan}
    if all(last.is_undone for last in group.values()):
        raise subject.refuse(f"the last rewind (plan {plan}) is already undone; to go back again, rewind to a time")
    targets = [_undone(subject, table, group[table.spec.id]) for table in subject.targets if table.spec.id in group]
    quarantine = subject.quarantine
    if quarantine is None or quarantine.spec.id not in group:
        return plan, targets, None
    return plan, targets, _undone(subject, quarantine, group[quarantine.spec.id])


def _undone(subject: _Subject, table: Table, last: LastRewind) -> RewoundTable:
    if last.before is None:
        raise subject.refuse(
            f"the version of {table.spec.id} before the rewind of {in_utc(last.reset_at_ms)} is no longer kept"
        )
    return _rewound(subject, table, last.before)


def _rewound(subject: _Subject, table: Table, version: TableVersion) -> RewoundTable:
    now = counting(table.entries())
    past = table.look_back(version.version)
    for entry in (now.entry if now else None, past.entry):
        if entry is not None:
            check_owner(entry, subject.spec.pipeline, table.spec.id)
    return RewoundTable(
        table=table.spec.id,
        role="quarantine" if table.spec == subject.spec.quarantine_table else "target",
        coverage=now.entry.coverage if now else {},
        rows=contents_of(table.spec, subject.places).size().rows,
        schema=table.schema(),
        target=version,
        past=past,
        kept_until_ms=_kept_until_ms(subject, table, round(time.time() * 1000)),
        released=now.entry.released if now else 0,
        erased=now.entry.erased if now else None,
        sources=now.entry.sources if now else (),
        newest_redo=(now.entry.newest_redo if now else None) or "",
        changes_seen=(now.entry.changes_seen if now else None) or 0,
    )


def _kept_until_ms(subject: _Subject, table: Table, left_at_ms: int) -> int:
    """Return until when the present version is kept: by the pipeline's maintenance, else by the table's settings."""
    policy = subject.spec.maintenance
    if policy.enabled:
        return undo_until_ms(policy.history, left_at_ms)
    return table.kept_until_ms(next(table.history().versions()), left_at_ms)
