"""Offsets that a coverage claims though nothing stands for them are taken out of it, so that they can land again.

Only with the pipeline to itself: a ``reset`` is the one entry whose coverage does not follow from the one before. Each is a
compare-and-swap on the very version whose rows were looked at, so no offset that has a row is ever taken back.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce

from lakebound.errors import CommitUnknownError
from lakebound.inspection.proof.history import difference, spans_of
from lakebound.inspection.proof.offset_arrays import index_rows, spans_from, within
from lakebound.inspection.validation.quarantine_copies import without_copies
from lakebound.ledger.entry import Entry, Offsets, TopicOffsets, add, common, count, new_commit_id
from lakebound.ledger.erased import ErasedRows
from lakebound.operations.replay.plan import without
from lakebound.spec.pipeline import PipelineSpec
from lakebound.tables.commit import commit_entry
from lakebound.tables.erased import read_erased
from lakebound.tables.places import Places
from lakebound.tables.table import Table, open_table


def nothing_stands_for(claimed: Offsets, *tables: Table, erased: ErasedRows) -> Offsets:
    """Return those of the offsets of which none of the tables has a row, and that are not among the erased ones."""
    spans = difference(spans_of(claimed), erased.records)
    for table in tables:
        if spans and table.exists():
            spans = difference(spans, spans_from(within(index_rows(without_copies(table.scan_kafka())).records, spans)))
    result: Offsets = {}
    for (topic, topic_id, partition), intervals in sorted(spans.items()):
        known = result[topic].partitions if topic in result else {}
        result[topic] = TopicOffsets(topic_id=topic_id, partitions={**known, partition: intervals})
    return result


def take_back(spec: PipelineSpec, places: Places, lacking: Mapping[str, Offsets], *, epoch: int) -> dict[str, Offsets]:
    """Take offsets out of the coverage of tables, and return what was taken per table id.

    The quarantine comes first: a bad record among them has to be put there again.

    Args:
        spec: The pipeline, which is held.
        places: Where its tables are.
        lacking: Per target's id, offsets of which a proof found that rows are missing.
        epoch: Of the lease that is held.

    Raises:
        LeaseLostError: A later application writes for this pipeline.
        CommitUnknownError: A table could not be written.
    """
    quarantine = open_table(spec.quarantine_table, places)
    targets = [open_table(table, places) for table in spec.tables if count(lacking.get(table.id, {}))]
    unfounded = [
        nothing_stands_for(lacking[table.spec.id], table, quarantine, erased=read_erased(table, table.read_ledger().entry))
        for table in targets
    ]
    every: Offsets = reduce(add, unfounded, {})
    if count(every) and quarantine.exists():
        _reset(spec, quarantine, every, (quarantine,), epoch)
    return {table.spec.id: _reset(spec, table, lacking[table.spec.id], (table, quarantine), epoch) for table in targets}


def _reset(spec: PipelineSpec, table: Table, lacking: Offsets, judges: tuple[Table, ...], epoch: int) -> Offsets:
    """Commit the entry; a commit that got in between has the rows looked at again."""
    taken_before: Offsets = {}
    attempts = spec.limits.commit_attempts
    for attempt in range(1, attempts + 1):
        view = table.read_ledger()
        taken = nothing_stands_for(common(lacking, view.coverage), *judges, erased=read_erased(table, view.entry))
        if view.entry is None or not count(taken):
            return taken_before
        draft = Entry(
            kind="reset",
            pipeline=spec.pipeline,
            epoch=epoch,
            commit=new_commit_id(),
            coverage=without(view.coverage, taken),
            former=view.entry.former,
            released=view.entry.released,
        )
        try:
            commit_entry(table, view, [], draft, own_epoch=epoch, check_lease=lambda: None, attempts=1)
            return taken
        except CommitUnknownError:
            # Whatever became of it: the coverage that is read next says it.
            taken_before = taken
            if attempt == attempts:
                raise
    return taken_before
