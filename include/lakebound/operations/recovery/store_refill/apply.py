"""Fill a store from a table: rows are checked before the store is touched, and its ledger says when all are there."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc

from lakebound.control.folder import ControlFolder
from lakebound.control.incidents import Incident
from lakebound.control.lease import Lease, check_held
from lakebound.errors import LakeboundError
from lakebound.landing.to_stores.open_store import open_store
from lakebound.landing.to_stores.target import StoreTarget
from lakebound.landing.to_stores.value_bounds import value_problems
from lakebound.ledger.entry import INCOMPLETE, Entry, Offsets, new_commit_id
from lakebound.operations.recovery.plan import ApprovablePlan, PlanRefusedError, check_hash
from lakebound.operations.recovery.store_rebuild import ACTION, record_rebuild
from lakebound.operations.recovery.store_refill.collect import collect_refill, lacking_rows
from lakebound.operations.recovery.store_refill.facts import RefillFacts
from lakebound.operations.recovery.store_refill.plan import plan_store_refill
from lakebound.operations.recovery.store_refill.rows import read_rows
from lakebound.operations.recovery.store_refill.spool import RowSpool
from lakebound.operations.recovery.takeover import taken_over
from lakebound.redaction import TOLD_TO_ITS_CALLER, redacted
from lakebound.settings import Settings
from lakebound.spec.pipeline import KAFKA_COLUMN, PipelineSpec
from lakebound.tables.commit import commit_entry
from lakebound.tables.datafiles import write_data_files
from lakebound.tables.places import Places, places_of

_FOLDER = "store-refill"
_MOST_ROWS = 50_000
"""Of a piece. Redis answers nobody else while it takes one."""


def apply_store_refill(
    pipeline: PipelineSpec,
    settings: Settings,
    store: str,
    table: str,
    approved: str,
    *,
    by: str,
    asked_by: str | None = None,
    most_rows: int = _MOST_ROWS,
) -> Incident:
    """Fill the store as the approved plan says, and return the record of it. If it is interrupted, plan and apply it again.

    Args:
        pipeline: The pipeline.
        settings: Of this machine.
        store: The store's name or id.
        table: The table's name or id.
        approved: Hash of the plan.
        by: Who approved it.
        asked_by: Who asked for it; None where that is not known.
        most_rows: Of one commit to the store.

    Raises:
        PlanChangedError: The facts have changed since; nothing was done.
        PlanRefusedError: The table does not hold what the store needs; nothing was done.
        LakeboundError: What ``taken_over`` raises, or a store that refused; the pipeline is then held.
    """
    places = places_of(settings, pipeline.warehouse)
    collect = partial(collect_refill, pipeline, places, store, table)
    check_hash(plan_store_refill(pipeline, collect(reads="ledgers")), approved)
    control = ControlFolder(places.home, pipeline.pipeline, places.state)
    with taken_over(pipeline, places, by=by, reason=f"{ACTION} {approved}") as lease:
        spool: RowSpool | None = None
        refusal: Exception | None = None
        try:
            # Until it ended, the application may have changed the facts of the plan.
            found = _approved_still(pipeline, partial(collect, reads="history"), approved)
            if isinstance(found, _Approved):
                spool = RowSpool(control.folder / _FOLDER, found.facts.source.incarnations)
                refusal = _read(pipeline, places, found.facts, spool)
                if refusal is None:
                    record = partial(record_rebuild, control, found.plan, asked_by=asked_by, approved_by=by)
                    most = min(most_rows, pipeline.limits.max_records_per_batch)
                    return _carry_out(pipeline, found.facts, spool, control, lease, record, most)
        finally:
            if spool is not None:
                spool.remove()
    if isinstance(found, _Approved):
        assert refusal is not None
        raise refusal
    raise found


@dataclass(frozen=True)
class _Approved:
    plan: ApprovablePlan
    facts: RefillFacts


def _approved_still(pipeline: PipelineSpec, collect: Callable[[], RefillFacts], approved: str) -> _Approved | LakeboundError:
    """Return the plan, or why it is refused; the caller raises it after the hold, which an exception would leave in place."""
    try:
        facts = collect()
        plan = plan_store_refill(pipeline, facts)
        check_hash(plan, approved)
    except LakeboundError as exc:
        return exc
    return _Approved(plan, facts)


def _read(pipeline: PipelineSpec, places: Places, facts: RefillFacts, spool: RowSpool) -> Exception | None:
    """Read and check the rows; return why they are not put into the store, which is as it was."""
    try:
        problems = _spooled(spool, places, facts)
    except (LakeboundError, OSError) as exc:  # such as a full disk
        return exc
    if not problems:
        return None
    return PlanRefusedError(pipeline.pipeline, ACTION, f"nothing was changed: {'; '.join(problems)}")


def _spooled(spool: RowSpool, places: Places, facts: RefillFacts) -> list[str]:
    source = facts.source
    assert source.schema is not None
    problems: dict[str, None] = {}
    for rows in read_rows(source.spec, places, source.version, source.schema):
        problems |= dict.fromkeys(value_problems(facts.store.spec, rows))
        spool.add(rows)
    problems |= dict.fromkeys(lacking_rows(source.spec, places, source, spool.rows))
    return [*problems, *spool.problems()]


def _carry_out(
    pipeline: PipelineSpec,
    facts: RefillFacts,
    spool: RowSpool,
    control: ControlFolder,
    lease: Lease,
    record: Callable[[str], Incident],
    most_rows: int,
) -> Incident:
    target = open_store(
        facts.store.spec,
        pipeline,
        schema=facts.source.schema,
        scratch=control.folder / _FOLDER / "commit",
        check_lease=partial(check_held, control, lease),
        fills=True,
    )
    try:
        done = target.begin_anew(_draft(pipeline, lease, "genesis"))
        rows = _fill(pipeline, target, spool.pieces(most_rows), lease, facts.source.coverage)
    except BaseException as exc:
        record(f"interrupted ({redacted(exc, TOLD_TO_ITS_CALLER)}): plan and apply it again")
        raise
    finally:
        target.close()
    return record(f"applied: {done}; {rows:,} rows of {facts.source.spec.id} put into the store")


def _fill(pipeline: PipelineSpec, target: StoreTarget, pieces: Iterator[pa.Table], lease: Lease, covers: Offsets) -> int:
    """Put the rows into the store, then say that it is whole; return how many they were."""
    view, count = target.read_ledger(), 0
    commit = partial(
        commit_entry,
        target,
        own_epoch=lease.epoch,
        check_lease=target.check_lease,
        attempts=pipeline.limits.commit_attempts,
    )
    for records, piece in _numbered(pieces):
        files = write_data_files(piece, target.layout(), uuid.uuid4().hex)
        view = commit(view, files, _draft(pipeline, lease, "land", records=records, rows=piece.num_rows)).view
        count += piece.num_rows
    # Only now: whoever reads the ledger before finds no offset that the store claims to hold.
    commit(view, [], _draft(pipeline, lease, "land", covers=covers))
    return count


def _numbered(pieces: Iterator[pa.Table]) -> Iterator[tuple[int, pa.Table]]:
    """Yield the pieces with how many records begin in each: the rows of one may lie in two."""
    last: tuple[object, ...] | None = None
    for piece in pieces:
        kafka = piece[KAFKA_COLUMN].combine_chunks()
        first, end = kafka[0].as_py(), kafka[-1].as_py()
        # A piece is of one partition.
        records = pc.count_distinct(kafka.field("offset")).as_py() - (_record_of(first) == last)
        last = _record_of(end)
        yield records, piece


def _record_of(kafka: dict[str, object]) -> tuple[object, ...]:
    return tuple(kafka[name] for name in ("topic", "topic_id", "partition", "offset"))


def _draft(
    pipeline: PipelineSpec, lease: Lease, kind: str, *, records: int = 0, rows: int = 0, covers: Offsets | None = None
) -> Entry:
    """Return a draft: without ``covers`` it says that the store is incomplete."""
    return Entry.model_validate(
        {
            "kind": kind,
            "pipeline": pipeline.pipeline,
            "epoch": lease.epoch,
            "commit": new_commit_id(),
            "requires": (INCOMPLETE,) if covers is None else (),
            "range": covers or {},
            "read": records,
            "landed": records,
            "rows": rows,
        }
    )
