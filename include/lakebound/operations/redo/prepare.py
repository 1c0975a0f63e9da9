"""Collects what the plan of a redo follows from: ledgers, the rows of the range, and what Kafka has. Writes nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import islice

from lakebound.control.disks import disk_of
from lakebound.landing.kafka import KafkaFacts
from lakebound.landing.row_source import row_source
from lakebound.landing.schema_files import read_schema_files
from lakebound.ledger.entry import Entry, Offsets, common, count, redo_in
from lakebound.ledger.erased import ErasedRows
from lakebound.ledger.foreign_changes import remembered
from lakebound.ledger.topics import TopicFacts
from lakebound.operations.backfill.tables import owned_table
from lakebound.operations.erase.prepare import erasable
from lakebound.operations.redo.estimates import ENTRIES, with_estimates
from lakebound.operations.redo.held_rows import held_rows
from lakebound.operations.redo.made_by import made_by
from lakebound.operations.redo.plan import RedoPlan, RedoShare, check_redoable, make_plan
from lakebound.operations.redo.progress import standing
from lakebound.operations.redo.takes_place import check_takes_place
from lakebound.operations.redo.versions import find_source, landed_by_source, sources_of
from lakebound.operations.replay.bounds import ReplayBound, between, resolve
from lakebound.operations.replay.chunks import chunks
from lakebound.settings import Settings
from lakebound.spec.pipeline import PipelineSpec
from lakebound.spec.state import check_stateless
from lakebound.spec.times import seconds_in_words
from lakebound.tables.erased import read_erased
from lakebound.tables.format_rules import rules_of
from lakebound.tables.places import places_of
from lakebound.tables.table import LedgerView, Table


@dataclass(frozen=True)
class AskedRange:
    """What is to be redone: what a version of the code landed, or what lies between two bounds, or what is both.

    Attributes:
        source: The first characters of the version's hash; None: whatever landed it.
        bounds: First offset of each partition, and the offset after the last one; None: all that the version landed.
    """

    source: str | None = None
    bounds: tuple[ReplayBound, ReplayBound] | None = None


def prepare(spec: PipelineSpec, settings: Settings, wanted: AskedRange) -> RedoPlan:
    """Return what a redo of the range would do. A stream may run meanwhile.

    Args:
        spec: The pipeline.
        settings: This machine's places.
        wanted: The range.

    Raises:
        WithStateError: The pipeline's rows are of windows.
        NotRedoableError: The pipeline's rows cannot be made again so.
        UnknownSourceError: No table remembers such a version of the code.
        NothingLandedYetError: A table has no ledger yet.
        UndoUnfinishedError: A redo is undone in part, and that can be finished.
        UnfinishedLeftOutError: Another redo, or its undoing, is done in part, and has replaced rows of other offsets.
        RowsNotInFilesError: A table has files that are not rewritten here.
        TableFeatureError: A table has a feature with which that is not done.
        LakeboundError: What ``lakebound.operations.redo.plan.make_plan`` refuses, and what reading ledgers and Kafka raises.
    """
    check_stateless(spec, "redo")
    broker = KafkaFacts(spec.connection)
    check_redoable(spec, [topic for topic, known in broker.written_settings(spec.topics).items() if known.is_compacted])
    places = places_of(settings, spec.warehouse)
    tables, views, entries = dict[str, Table](), dict[str, LedgerView](), dict[str, Entry]()
    for one in spec.tables:
        table, view = owned_table(spec, one, places)
        assert view.entry is not None, "owned_table refuses a table without"
        tables[one.id], views[one.id], entries[one.id] = table, view, view.entry
    topics = broker.topics(spec.topics)
    erased = reduce(ErasedRows.plus, (read_erased(tables[name], entry) for name, entry in entries.items()), ErasedRows())
    coverages = {name: entry.coverage for name, entry in entries.items()}
    plan = make_plan(spec.pipeline, _asked(spec, entries, (broker, topics), wanted), coverages, topics, erased.records)
    code = row_source(spec, settings.apps, read_schema_files(spec, settings)).hash
    pieces = list(chunks(plan.redone, spec.limits.max_records_per_batch))
    found = plan.model_copy(
        update={
            "source": code,
            "tables": tuple(_with_rows(tables[share.table], views[share.table], share, pieces) for share in plan.tables),
            "chunks": len(pieces),
        }
    )
    found = _with_past(found, tables, entries)
    found = with_estimates(found, {name: list(islice(table.entries(), ENTRIES)) for name, table in tables.items()})
    check_takes_place(spec, places, {name: (tables[name], one) for name, one in entries.items()}, found.holds)
    notes = (
        *_notes(spec, found),
        *_undoable(spec, entries, found.hash),
        *_other_code(spec, entries, code),
        *_room(found, tables),
    )
    return found.model_copy(update={"notes": notes})


def _with_past(plan: RedoPlan, tables: Mapping[str, Table], entries: Mapping[str, Entry]) -> RedoPlan:
    """Return the plan with what it has done by now, and which code had made the rows before it began."""
    done = {name: standing(table.entries(), plan.hash).done for name, table in tables.items()}
    made = {name: made_by(one, tables[name].entries(), before=plan.hash) for name, one in entries.items()}
    found = {
        "tables": tuple(one.model_copy(update={"done": count(common(done[one.table], one.replaces))}) for one in plan.tables),
        "made_by": sources_of(made, plan.redone),
        "is_unfinished": any((now := one.redo_progress) and now.left and now.plan == plan.hash for one in entries.values()),
    }
    return plan.model_copy(update=found)


def _asked(
    spec: PipelineSpec, entries: Mapping[str, Entry], kafka: tuple[KafkaFacts, Mapping[str, TopicFacts]], wanted: AskedRange
) -> Offsets:
    landed = None
    if wanted.source is not None:
        landed = landed_by_source(entries, find_source(spec.pipeline, entries, wanted.source))
    if wanted.bounds is None:
        assert landed is not None, "one of both is given"
        return landed
    broker, topics = kafka
    first, last = (
        resolve(bound, topics, None if bound.timestamp_ms is None else broker.offsets_at(spec.topics, bound.timestamp_ms))
        for bound in wanted.bounds
    )
    found = between(first, last, topics)
    return found if landed is None else common(landed, found)


def _with_rows(table: Table, view: LedgerView, share: RedoShare, pieces: Sequence[Offsets]) -> RedoShare:
    files = erasable(table)
    files.check_may_erase()
    held = held_rows(files, share.replaces, (common(piece, share.replaces) for piece in pieces))
    known = remembered(view.entry.foreign_changes if view.entry else (), view.foreign_changes)
    found = {"rows_out": held.rows, "files": held.files, "size_bytes": held.size_bytes, "copied_bytes": held.copied_bytes}
    return share.model_copy(update=found | {"changes_seen": view.changes_seen, "changes": tuple(map(str, known))})


def _other_code(spec: PipelineSpec, entries: Mapping[str, Entry], code: str) -> Iterator[str]:
    newest = {entry.sources[-1].hash for entry in entries.values() if entry.sources} - {code, ""}
    if code and newest:
        yield (
            f"the newest application of {spec.pipeline} was started with other code ({', '.join(sorted(newest))}): while it "
            f"runs, it goes on to land such rows. Restart it"
        )


def _room(plan: RedoPlan, tables: Mapping[str, Table]) -> Iterator[str]:
    """Yield which tables lie on a disk that may be too small: the stream, too, writes to it."""
    for share in plan.tables:
        folder = tables[share.table].layout().folder
        disk = disk_of(folder.path) if folder.is_local else None
        if disk is not None and disk.free_bytes < share.copied_bytes:
            yield (
                f"WARNING {share.table}: its disk has {disk.free_bytes:,} bytes free, and the copies of its files take up to "
                f"{share.copied_bytes:,}, until maintenance removes them: a larger limits.max_records_per_batch makes fewer"
            )


def _undoable(spec: PipelineSpec, entries: Mapping[str, Entry], plan: str) -> Iterator[str]:
    """Yield how long the redo can be undone, or why it cannot be."""
    begun = {name: now for name, entry in entries.items() if (now := redo_in(entry)).left and now.plan != plan}
    for name, now in begun.items():
        what = f"the redo {now.plan}" if now.undoes is None else f"the undoing of the redo {now.undoes}"
        yield (
            f"{what} is not finished in {name}: {now.left:,} offsets are left. This plan takes its place, and cannot be "
            f"undone: the rows of before it are of two transforms"
        )
    if not begun:
        history, keeps = spec.maintenance.history, spec.maintenance.enabled
        kept = f"for {seconds_in_words(history.undo_seconds)}" if keeps else "while the tables keep the versions before"
        yield f"`lakebound redo {spec.pipeline} --undo` can undo it {kept}"


def _notes(spec: PipelineSpec, plan: RedoPlan) -> Iterator[str]:
    if plan.source and plan.source in plan.made_by:
        yield (
            f"the code on disk ({plan.source}) made rows of this range, and would make the same again: put the YAML and the "
            f"transform right first"
        )
    yield (
        f"how many rows come again is known when they are made: `lakebound try {spec.pipeline} --against-landed` shows what "
        f"changes in the newest ones"
    )
    for name in sorted({one.format for one in spec.tables}):
        yield f"Spark's streaming readers of a {name} table stop at such a commit without {rules_of(name).skips_changes}"
    for other in spec.other_targets:
        yield f"{other.id} keeps what was sent there: tell its readers; `lakebound rebuild-store` builds a store again"
    if spec.reference:
        yield f"the transform reads reference data ({', '.join(sorted(spec.reference))}): a redo uses today's version of it"
