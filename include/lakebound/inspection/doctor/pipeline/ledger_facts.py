"""Reads the ledger of each table of a pipeline. Nothing is written, and each error is a fact."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import islice

from lakebound.errors import (
    BadEntryError,
    CatalogBehindError,
    ForeignTableError,
    LakeboundError,
    NewerEntryError,
    NoLedgerError,
    TableFeatureError,
    TableRestoredError,
)
from lakebound.first_line import first_line
from lakebound.inspection.doctor.pipeline.facts import FeatureRefusal, LedgerFacts, TableState
from lakebound.landing.target_kind import answers, target_kinds
from lakebound.ledger.entry import check_owner
from lakebound.ledger.foreign_changes import remembered
from lakebound.spec.pipeline import PipelineSpec
from lakebound.spec.table import TableSpec
from lakebound.tables.contents import contents_of
from lakebound.tables.landed import RECENT_ENTRIES
from lakebound.tables.places import Places
from lakebound.tables.stale_ledger import rows_beyond
from lakebound.tables.table import CommittedEntry, LedgerView, Table, open_table
from lakebound.tables.target import LandingTarget

_STATES: tuple[tuple[type[LakeboundError], TableState], ...] = (
    (NoLedgerError, "no_ledger"),
    (NewerEntryError, "newer_entry"),
    (BadEntryError, "bad_entry"),
    (ForeignTableError, "foreign"),
    (TableRestoredError, "restored"),
    (CatalogBehindError, "behind"),
    (TableFeatureError, "feature"),
)


def read_ledgers(spec: PipelineSpec, places: Places) -> tuple[LedgerFacts, ...]:
    """Return the facts of each table, the quarantine's last."""
    looking = places.read_only()
    targets = [_read(table, looking, spec.pipeline, "target") for table in spec.tables]
    return (
        *targets,
        *_read_others(spec),
        _read(spec.quarantine_table, looking, spec.pipeline, "quarantine"),
    )


def _read_others(spec: PipelineSpec) -> Iterator[LedgerFacts]:
    """Yield the facts of each other target that has an entry which can be read; why others have none, their kind says."""
    for kind in target_kinds():
        yield from (found for found in answers(kind, spec, _described_target) if found is not None)


def _described_target(target: LandingTarget) -> LedgerFacts | None:
    view = target.read_ledger()
    if view.entry is None:
        return None
    newest = next(filter(_has_landed, islice(target.entries(), RECENT_ENTRIES)), None)
    facts = LedgerFacts(target.spec.id, "target", "entry", entry=view.entry, version=view.version)
    if newest is None:
        return facts
    times = newest.entry.timestamps_ms
    landed, committed = newest.entry.epoch, newest.committed_at_ms
    return replace(facts, landed_epoch=landed, committed_at_ms=committed, newest_record_ms=times[1] if times else None)


def _read(spec: TableSpec, places: Places, pipeline: str, role: str) -> LedgerFacts:
    facts = LedgerFacts(spec.id, "quarantine" if role == "quarantine" else "target", "absent")
    try:
        table = open_table(spec, places)
        if not table.exists():
            return facts
        view = table.read_ledger()
        if view.entry is not None:
            check_owner(view.entry, pipeline, spec.id)
        return _described(replace(facts, refusal=_refusal(table)), table, view, places)
    except LakeboundError as exc:
        state: TableState = next((state for kind, state in _STATES if isinstance(exc, kind)), "unreadable")
        refusal = FeatureRefusal(str(exc), exc.runbook) if state == "feature" else None
        return replace(facts, state=state, problem=str(exc), refusal=refusal)
    except Exception as exc:  # the libraries raise any class: a table that cannot be read is a fact
        return replace(facts, state="unreadable", problem=f"{type(exc).__name__}: {first_line(exc)}")


def _refusal(table: Table) -> FeatureRefusal | None:
    try:
        table.check_may_append()
    except TableFeatureError as exc:
        return FeatureRefusal(str(exc), exc.runbook)
    return None


def _has_landed(committed: CommittedEntry) -> bool:
    """Whether a commit has landed rows: a redo beside a stream that has stopped does not show that it lands."""
    return committed.entry.rows > 0 and committed.entry.kind != "redo"


def _described(facts: LedgerFacts, table: Table, view: LedgerView, places: Places) -> LedgerFacts:
    if view.entry is None:
        return replace(facts, state="empty", version=view.version)
    foreign = remembered(view.entry.foreign_changes, view.foreign_changes)
    facts = replace(facts, state="entry", entry=view.entry, version=view.version, foreign_changes=foreign)
    recent = list(islice(table.entries(), RECENT_ENTRIES))
    facts = replace(facts, quarantined_range=next((c.entry.range for c in recent if c.entry.quarantined), {}))
    newest = next(filter(_has_landed, recent), None)
    if newest is not None:
        times = newest.entry.timestamps_ms
        facts = replace(
            facts,
            landed_epoch=newest.entry.epoch,
            committed_at_ms=newest.committed_at_ms,
            newest_record_ms=times[1] if times else None,
        )
    return replace(facts, beyond_ledger=rows_beyond(table, view), txn_epoch=contents_of(table.spec, places).remembered_epoch())
