"""What happens before the stream: the lease, the tables, an ``open`` entry in each, and only then the ledger."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce

import pyarrow as pa

from lakebound.control.erased_record import read_record
from lakebound.control.handover import TakeOffers
from lakebound.control.lease import Lease, acquire
from lakebound.control.turns import GiveTurns
from lakebound.errors import WindowsMismatchError
from lakebound.landing.other_target import OtherTarget
from lakebound.landing.run_spec import RunSpec
from lakebound.ledger.entry import Entry, Offsets, check_owner, check_topic_ids, common, count, missing, new_commit_id
from lakebound.ledger.erased import ErasedFile
from lakebound.ledger.marks import NextOffsets
from lakebound.ledger.start import marks_for_unseen, plan_start
from lakebound.ledger.topics import TopicFacts
from lakebound.spec.pipeline import PipelineSpec
from lakebound.spec.table import TableSpec
from lakebound.tables.erased import read_erased, write_erased
from lakebound.tables.erasing import ErasesRows
from lakebound.tables.stale_ledger import check_not_behind
from lakebound.tables.table import LedgerView, open_table
from lakebound.tables.take_over import Committer, take_over
from lakebound.tables.target import LandingTarget
from lakebound_spark.batch.targets import Counts, Target, Writer
from lakebound_spark.stream.other_epochs import newest_epoch
from lakebound_spark.stream.signs import lease_guard


def take_lease(run: RunSpec) -> Lease:
    """Take the lease, with an epoch above every epoch in the tables' ledgers.

    Raises:
        LeaseHeldError: A live application holds it.
        NoLedgerError: A table has rows whose origin is not known.
        ForeignTableError: A table belongs to another pipeline.
        LedgerBehindError: A table holds more than its ledger says.
        WindowsMismatchError: A table has rows of windows and the pipeline no state, or the reverse.
    """
    spec = run.spec
    highest = 0
    for table_spec in (*spec.tables, spec.quarantine_table):
        table = open_table(table_spec, run.places)
        if table.exists():
            view = table.read_ledger()
            if view.entry is not None:
                check_owner(view.entry, spec.pipeline, table_spec.id)
                _check_state(spec, view.entry, table_spec)
                check_not_behind(table, view, run.places)
            highest = max(highest, view.epoch)
    highest = max(highest, newest_epoch(run.spec))
    return acquire(run.control, run.app_id, spec.limits.lease_ttl_seconds, above_epoch=highest)


def newest_entries(run: RunSpec) -> list[Entry]:
    """Return the newest entry of each of a pipeline's tables that has one."""
    tables = [table for table in (open_table(one, run.places) for one in run.spec.tables) if table.exists()]
    return [entry for table in tables if (entry := table.read_ledger().entry) is not None]


def _check_state(spec: PipelineSpec, entry: Entry, table: TableSpec) -> None:
    """Refuse a table of windows where the pipeline has no state any more, and one of records where it has got one."""
    if spec.state is None and entry.windows is not None:
        reason = f"table {table.id} has rows of windows, and the YAML has no 'state' any more"
        raise WindowsMismatchError(spec.pipeline, reason)
    if spec.state is not None and table.id != spec.quarantine_table.id and entry.windows is None and count(entry.coverage):
        raise WindowsMismatchError(spec.pipeline, f"table {table.id} was landed without 'state'")


def make_writer(run: RunSpec, lease: Lease) -> Writer:
    """Return what this application's commits have in common."""
    check_lease, offers = lease_guard(run.control, lease), TakeOffers(run.control)
    committer = Committer(lease.epoch, check_lease)
    return Writer(
        run.spec.pipeline,
        lease.epoch,
        check_lease,
        run.spec.limits.commit_attempts,
        quarantine=run.spec.quarantine_table.id,
        source=run.source,
        give_turn=GiveTurns(run.control),
        take_over=lambda table, view: take_over(offers(table.spec.id), table, view, committer),
    )


def open_targets(
    run: RunSpec,
    schemas: Mapping[str, pa.Schema],
    writer: Writer,
    facts: Mapping[str, TopicFacts],
    others: Sequence[LandingTarget] = (),
) -> tuple[list[Target], Target]:
    """Make missing targets, commit an ``open`` entry to each, and return (targets, quarantine) as they then stand.

    The entry carries the new epoch, so from here on a commit of an older application is refused by the table itself.

    Args:
        run: The orders.
        schemas: Arrow schema per table id; those of tables that exist are settled (``lakebound.landing.table_settling``).
        writer: This application.
        facts: Kafka's, for marks in partitions that a table has never seen.
        others: The target topics and stores.

    Raises:
        TopicRecreatedError: Before anything is written.
    """
    spec = run.spec
    quarantine = open_table(spec.quarantine_table, run.places)
    # The tables come first: their epochs are read while Kafka may be away (``take_lease``).
    targets: list[LandingTarget] = [*(open_table(one, run.places) for one in spec.tables), *others]
    for one in (*targets[: len(spec.tables)], quarantine, *others):
        _create(run, one, schemas[one.spec.id], writer)
    opened = [_open(run, one, writer, facts) for one in targets]
    return opened, _open(run, quarantine, writer, {})


def open_others(
    run: RunSpec,
    schemas: Mapping[str, pa.Schema],
    writer: Writer,
    facts: Mapping[str, TopicFacts],
    others: Sequence[LandingTarget],
) -> list[Target]:
    """Make and open further targets of an application that has opened its tables already.

    Args:
        run: The orders.
        schemas: Arrow schema per target id.
        writer: This application.
        facts: Kafka's, for marks in partitions that a target has never seen.
        others: The targets.
    """
    for one in others:
        _create(run, one, schemas[one.spec.id], writer)
    return [_open(run, one, writer, facts) for one in others]


def reopen(targets: list[Target], quarantine: Target) -> None:
    """Read every ledger again, before the same application starts another query; rows that wait for a commit are removed."""
    for target in (*targets, quarantine):
        if isinstance(target.table, OtherTarget):
            target.table.remove_staged()
        target.refresh()


def start_offsets(targets: list[Target], quarantine: Target, facts: Mapping[str, TopicFacts]) -> NextOffsets:
    """Return where the stream starts, and tell the quarantine what all tables have decided already.

    Args:
        targets: The opened targets.
        quarantine: The opened quarantine table.
        facts: What Kafka says of each topic, by name.

    Raises:
        LakeboundError: What ``lakebound.ledger.start.plan_start`` refuses.
    """
    start = plan_start([target.view.coverage for target in targets], facts)
    decided: Offsets = reduce(common, (target.view.coverage for target in targets))
    quarantine.remember(missing(decided, quarantine.view.coverage), Counts())
    return start


def _create(run: RunSpec, one: LandingTarget, schema: pa.Schema, writer: Writer) -> None:
    if not one.exists():
        genesis = Entry(kind="genesis", pipeline=run.spec.pipeline, epoch=writer.epoch, commit=new_commit_id())
        one.create(schema, genesis)


def _open(run: RunSpec, one: LandingTarget, writer: Writer, facts: Mapping[str, TopicFacts]) -> Target:
    view = one.read_ledger()
    target = Target(one, view, was_real_time=view.entry is not None and view.entry.delivery is not None)
    check_topic_ids(target.view.coverage, {topic: known.topic_id for topic, known in facts.items()})
    marks = marks_for_unseen(target.view.coverage, facts, run.spec.start_from)
    target.commit(writer, marks, Counts(), [], kind="open", erased=_told_erased(run, one, view))
    target.know_erased()
    return target


def _told_erased(run: RunSpec, one: LandingTarget, view: LedgerView) -> ErasedFile | None:
    """Write the list of erased rows for a table that does not know them all, such as one that was made anew; None: it does."""
    if not isinstance(one, ErasesRows) or one.spec.id == run.spec.quarantine_table.id:
        return None
    recorded = read_record(run.control)
    known = read_erased(one, view.entry) if recorded else recorded
    every = known.plus(recorded)
    return write_erased(one, every) if every != known else None
