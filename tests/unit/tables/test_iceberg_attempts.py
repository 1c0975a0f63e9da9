"""Which attempts to commit were refused for certain, as the table's metadata tells it afterwards."""

from __future__ import annotations

import uuid
from typing import Any

import pytest
from pyiceberg.partitioning import UNPARTITIONED_PARTITION_SPEC
from pyiceberg.schema import Schema
from pyiceberg.table.metadata import TableMetadata, new_table_metadata
from pyiceberg.table.snapshots import Snapshot
from pyiceberg.table.sorting import UNSORTED_SORT_ORDER
from pyiceberg.types import LongType, NestedField

from lakebound.tables.iceberg.attempts import Attempt, Attempts, is_refused

TABLE = uuid.uuid4()


def snapshot(number: int, parent: int | None, sequence_number: int) -> Snapshot:
    body: dict[str, Any] = {"snapshot-id": number, "parent-snapshot-id": parent, "sequence-number": sequence_number}
    return Snapshot.model_validate({**body, "timestamp-ms": number, "manifest-list": f"/{number}.avro"})


def table(*snapshots: Snapshot, current: int | None = None) -> TableMetadata:
    schema = Schema(NestedField(1, "id", LongType(), required=False))
    made = new_table_metadata(
        schema, UNPARTITIONED_PARTITION_SPEC, UNSORTED_SORT_ORDER, "file:///t", {"format-version": "2"}, TABLE
    )
    newest = snapshots[-1].snapshot_id if current is None else current
    return made.model_copy(update={"snapshots": list(snapshots), "current_snapshot_id": newest})


FIRST, BASE = snapshot(1, None, 1), snapshot(2, 1, 2)
OWN = snapshot(99, 2, 3)
STREAM, NEXT = snapshot(3, 2, 3), snapshot(4, 3, 4)
ON_OWN, LATER = snapshot(5, 99, 4), snapshot(6, 5, 5)


@pytest.mark.parametrize(
    ("metadata", "refused", "why"),
    [
        (table(FIRST, BASE), False, "its request may be under way still"),
        (table(FIRST), False, "the same, and a cache has answered with what was before that which it was to follow"),
        (table(FIRST, BASE, current=1), False, "the same, and somebody went back beyond what it was to follow"),
        (table(FIRST, BASE, STREAM), True, "another one took its place"),
        (table(FIRST, BASE, STREAM, current=1), True, "another one took its place, and somebody went back beyond both"),
        (table(FIRST, BASE, STREAM, NEXT), True, "and others came after that one"),
        (table(BASE, STREAM, NEXT), True, "what came before it may have expired"),
        (table(STREAM, NEXT), True, "even the one that it was to follow"),
        (table(NEXT), False, "what took its place has expired, or it itself has"),
        (table(FIRST, BASE, OWN), False, "it is the current one"),
        (table(FIRST, BASE, OWN, ON_OWN), False, "it is there"),
        (table(FIRST, BASE, OWN, snapshot(7, 1, 4)), False, "a rewind has left it, and readers of the past have not"),
        (table(FIRST, BASE, ON_OWN), False, "it has expired, and the next one stands on its files"),
        (table(FIRST, BASE, snapshot(5, None, 4)), False, "the same, and its id is forgotten"),
        (table(FIRST, BASE, LATER), False, "the next one has expired, too"),
        (table(FIRST, BASE, ON_OWN, snapshot(7, 1, 6)), False, "it has expired, and a rewind has left the next one"),
        (table(FIRST, BASE, STREAM, current=2), False, "somebody went back to what it was to follow"),
        (table(FIRST, BASE, STREAM).model_copy(update={"table_uuid": uuid.uuid4()}), False, "it is another table"),
    ],
)
def test_an_attempt_is_refused_only_where_nothing_of_it_can_be_in_the_table(
    metadata: TableMetadata, refused: bool, why: str
) -> None:
    assert is_refused(Attempt(TABLE, OWN, ()), metadata) is refused, why


def test_what_refused_attempts_wrote_is_told_once() -> None:
    attempts = Attempts()
    assert attempts.are_refused, "nothing was tried"
    attempts.begin(TABLE, OWN, ["/own-m0.avro", "/own.avro"])
    attempts.begin(TABLE, snapshot(98, 3, 4), ["/other.avro"])
    assert attempts.take_refused(table(FIRST, BASE, STREAM)) == ["/own-m0.avro", "/own.avro"]
    assert not attempts.are_refused, "the second may still come"
    assert attempts.take_refused(table(FIRST, BASE, STREAM)) == []
    assert attempts.take_refused(table(FIRST, BASE, STREAM, NEXT)) == ["/other.avro"] and attempts.are_refused
    attempts.begin(TABLE, OWN, [])
    attempts.end_refused()
    assert attempts.are_refused
