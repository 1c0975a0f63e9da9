"""Bad records are in quarantine once, also those at offsets that it covers because their records were good before."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial

import pyarrow as pa
import pytest
from tests.support.tables.local_tables import FIRST_DAY_US, PIPELINE, TOPIC, TOPIC_ID, genesis, landed_offsets, lander, offsets

from lakebound.control.folder import ControlFolder
from lakebound.control.quarantine_samples import read_samples
from lakebound.landing.sample_recorder import SampleRecorder
from lakebound.ledger.entry import Entry, new_commit_id
from lakebound.operations.release.reading import read_places
from lakebound.spec.table import TableSpec
from lakebound.tables.commit import ReleaseOvertakenError
from lakebound.tables.places import Places
from lakebound.tables.table import Table, open_table
from lakebound_spark.batch.quarantine_landing import BadRecords, QuarantineLander, QuarantineMismatchError
from lakebound_spark.batch.quarantine_sampling import QuarantineSampling
from lakebound_spark.batch.schema import QUARANTINE_SCHEMA
from lakebound_spark.batch.targets import Target, Writer


@pytest.fixture
def quarantine(spec: TableSpec, at: Places) -> Table:
    table = open_table(spec, at)
    table.create(QUARANTINE_SCHEMA, genesis())
    lander(spec, at).open()
    return table


def application(spec: TableSpec, at: Places, epoch: int = 1) -> tuple[QuarantineLander, Target]:
    """An application that opened the quarantine."""
    table = open_table(spec, at)
    target = Target(table, table.read_ledger())
    writer = Writer(PIPELINE, epoch, lambda: None, attempts=3)
    return QuarantineLander(target, writer, partial(read_places, spec, at)), target


def bad(*at_offsets: int, counted: int | None = None) -> BadRecords:
    kafka = {"topic": TOPIC, "topic_id": TOPIC_ID, "partition": 0, "timestamp": FIRST_DAY_US, "ordinal": 0}
    rows = [
        {"_kafka": {**kafka, "offset": offset}, "reason": "does_not_fit", "error": "e", "key": None, "value": b"v"}
        for offset in at_offsets
    ]
    count = len(rows) if counted is None else counted
    return BadRecords(pa.Table.from_pylist(rows, QUARANTINE_SCHEMA), count, new_commit_id(), "driver", 1)


def newest(table: Table, count: int) -> Sequence[Entry]:
    return [one.entry for one, _ in zip(table.entries(), range(count), strict=False)]


def test_records_that_are_bad_at_a_second_reading_are_recalled(quarantine: Table, spec: TableSpec, at: Places) -> None:
    """A table was added, or rewound, or a hole is replayed, and the schema is stricter by then."""
    first, _ = application(spec, at)
    first.land(offsets(0, 10), bad(3))
    second, target = application(spec, at)
    second.land(offsets(0, 10), bad(3, 5, 6))
    assert landed_offsets(open_table(spec, at)) == [3, 5, 6]
    recall, *_ = newest(open_table(spec, at), 1)
    assert (recall.kind, recall.quarantined, recall.range) == ("recall", 2, {})
    assert recall.releases[TOPIC].partitions == {0: ((5, 7),)}
    assert target.view.coverage == offsets(0, 10)


def test_what_is_there_is_not_written_again(quarantine: Table, spec: TableSpec, at: Places) -> None:
    """It ended between the quarantine's commit and those of the tables, and reads the same records again."""
    first, _ = application(spec, at)
    first.land(offsets(0, 10), bad(3, 5))
    before = open_table(spec, at).read_ledger().version
    for _ in range(2):
        again, _target = application(spec, at)
        again.land(offsets(0, 10), bad(3, 5))
    assert landed_offsets(open_table(spec, at)) == [3, 5]
    assert open_table(spec, at).read_ledger().version == before


def test_a_batch_that_is_partly_read_again_adds_what_is_new_and_what_is_missing(
    quarantine: Table, spec: TableSpec, at: Places
) -> None:
    first, _ = application(spec, at)
    first.land(offsets(0, 10), bad(3))
    second, target = application(spec, at)
    second.land(offsets(2, 20), bad(3, 8, 15))
    assert landed_offsets(open_table(spec, at)) == [3, 8, 15]
    assert [entry.kind for entry in newest(open_table(spec, at), 2)] == ["recall", "land"]
    assert target.view.coverage == offsets(0, 20)


def test_what_was_only_passed_over_is_recalled_too(quarantine: Table, spec: TableSpec, at: Places) -> None:
    """Its good records are remembered, not committed yet."""
    quarantine_lander, target = application(spec, at)
    quarantine_lander.pass_over(offsets(0, 10))
    quarantine_lander.land(offsets(0, 10), bad(4))
    assert landed_offsets(open_table(spec, at)) == [4]
    assert open_table(spec, at).read_ledger().coverage == offsets(0, 10)
    assert target.pending == {}


def test_what_another_one_recalls_after_the_rows_were_read_is_refused(quarantine: Table, spec: TableSpec, at: Places) -> None:
    """The offsets that were passed over before are committed first: their commit would have read the ledger anew."""
    first, _ = application(spec, at)
    first.land(offsets(10, 20), bad(12))
    slow, _target = application(spec, at)

    def read_slowly(first_offset: int, last_offset: int) -> pa.Table:
        found = read_places(spec, at, first_offset, last_offset)
        another, _ = application(spec, at)
        another.land(offsets(10, 20), bad(12, 15))
        return found

    slow._read_places = read_slowly
    slow.pass_over(offsets(0, 10))
    with pytest.raises(ReleaseOvertakenError):
        slow.land(offsets(10, 20), bad(12, 15))
    assert landed_offsets(open_table(spec, at)) == [12, 15]


def test_other_numbers_than_were_counted_are_not_committed(quarantine: Table, spec: TableSpec, at: Places) -> None:
    quarantine_lander, _ = application(spec, at)
    with pytest.raises(QuarantineMismatchError, match="2 records of the batch were counted as bad, but 1 were found"):
        quarantine_lander.land(offsets(0, 10), bad(4, counted=2))
    quarantine_lander.land(offsets(0, 10), bad(4))
    with pytest.raises(QuarantineMismatchError):
        quarantine_lander.land(offsets(0, 10), bad(4, 5, counted=1))
    assert landed_offsets(open_table(spec, at)) == [4]


def test_a_few_of_the_bad_records_are_kept_to_look_at(quarantine: Table, spec: TableSpec, at: Places) -> None:
    control = ControlFolder(at.home, PIPELINE)
    recorder = SampleRecorder(control, 2)
    target = Target(quarantine, quarantine.read_ledger())
    sampling = QuarantineSampling(recorder, 2, None)
    writer = Writer(PIPELINE, 1, lambda: None, attempts=3)
    lander_ = QuarantineLander(target, writer, partial(read_places, spec, at), None, sampling)
    lander_.land(offsets(0, 10), bad(3, 5, 7))
    recorder.tick()
    found = read_samples(control, time.time())
    assert [(one.reason, one.topic, one.offset, one.value, one.value_bytes) for one in found] == [
        ("does_not_fit", TOPIC, 7, "v", 1),
        ("does_not_fit", TOPIC, 5, "v", 1),
    ]
    assert landed_offsets(open_table(spec, at)) == [3, 5, 7]
