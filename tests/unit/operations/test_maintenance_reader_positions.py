"""What a Delta reader's checkpoint says of what it has still to read, and of what Spark asks for when it is started again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lakebound.operations.maintenance.delta.past import DeltaPosition, delta_position
from lakebound.operations.maintenance.reader_positions import ReaderUnreadableError
from lakebound.spec.maintenance import ReaderSpec

TABLE, OTHER = "11111111-aaaa", "22222222-bbbb"


@pytest.fixture
def reader(tmp_path: Path) -> ReaderSpec:
    """One whose checkpoint has no batch yet."""
    for folder in ("commits", "offsets"):
        (tmp_path / folder).mkdir()
    return ReaderSpec(name="dashboard", table="delta:shop.orders", checkpoint=tmp_path)


def add(reader: ReaderSpec, batch: int, *ends: tuple[str, int] | None, is_finished: bool = True) -> None:
    """Write what Spark writes of a batch: where each source ends, and that it is finished."""
    assert reader.checkpoint is not None
    sources = [
        json.dumps({"sourceVersion": 1, "reservoirId": end[0], "reservoirVersion": end[1], "index": -1}) if end else "-"
        for end in ends
    ]
    (reader.checkpoint / "offsets" / str(batch)).write_text("\n".join(["v1", '{"batchTimestampMs":1}', *sources]))
    if is_finished:
        (reader.checkpoint / "commits" / str(batch)).write_text('v1\n{"nextBatchWatermarkMs":0}')


def test_the_log_must_stay_from_where_the_newest_finished_batch_began(reader: ReaderSpec) -> None:
    for batch, version in enumerate((7, 28, 31)):
        add(reader, batch, (TABLE, version))
    assert delta_position(reader, TABLE) == DeltaPosition(31, 28)

    add(reader, 3, (TABLE, 40), is_finished=False)
    assert delta_position(reader, TABLE) == DeltaPosition(31, 28), "Spark may still finish it, or start again"


def test_of_a_query_that_reads_the_table_twice_it_is_the_earlier_place(reader: ReaderSpec) -> None:
    add(reader, 4, (TABLE, 9), (OTHER, 3), (TABLE, 12))
    add(reader, 5, (TABLE, 20), (OTHER, 5), (TABLE, 14))
    assert delta_position(reader, TABLE) == DeltaPosition(14, 9)
    assert delta_position(reader, OTHER) == DeltaPosition(5, 3)


@pytest.mark.parametrize(
    "before",
    [
        pytest.param(None, id="it is the first batch"),
        pytest.param((None, (OTHER, 5), None), id="the first that reads this table"),
        pytest.param(((TABLE, 9), (OTHER, 5), None), id="the first that reads it at one of two places"),
    ],
)
def test_where_a_source_began_with_this_batch_nobody_knows_what_it_asks_for(reader: ReaderSpec, before: Any) -> None:
    if before is not None:
        add(reader, 3, *before)
    add(reader, 4 if before else 0, (TABLE, 20), (OTHER, 6), (TABLE, 14))
    assert delta_position(reader, TABLE) == DeltaPosition(14, None)
    assert delta_position(reader, OTHER).restart_version == (5 if before else None)


def test_a_table_that_was_created_again_is_named(reader: ReaderSpec) -> None:
    add(reader, 1, (OTHER, 5))
    add(reader, 2, (OTHER, 6))
    with pytest.raises(ReaderUnreadableError, match=rf"no Delta table with the id {TABLE} \(but {OTHER}\)"):
        delta_position(reader, TABLE)


def test_offsets_may_be_left_out_between_two_batches(reader: ReaderSpec) -> None:
    """Of a query that tracks its progress asynchronously."""
    add(reader, 2, (TABLE, 10))
    add(reader, 7, (TABLE, 31))
    assert delta_position(reader, TABLE) == DeltaPosition(31, 10)


def test_where_the_batch_before_is_deleted_the_next_one_may_have_begun(reader: ReaderSpec) -> None:
    """``spark.sql.streaming.minBatchesToRetain=1``: Spark goes on with the batch that has begun."""
    add(reader, 4, (TABLE, 31))
    assert delta_position(reader, TABLE) == DeltaPosition(31, None)
    add(reader, 5, (TABLE, 40), is_finished=False)
    assert delta_position(reader, TABLE) == DeltaPosition(31, 31)


def test_a_torn_file_of_the_newest_batch_is_named_and_one_of_the_batch_before_keeps_everything(reader: ReaderSpec) -> None:
    for batch in (2, 3):
        add(reader, batch, (TABLE, batch))
    assert reader.checkpoint is not None
    (reader.checkpoint / "offsets" / "2").write_text("v1\n{")
    assert delta_position(reader, TABLE) == DeltaPosition(3, None)
    (reader.checkpoint / "offsets" / "3").write_text("v1\n{")
    with pytest.raises(ReaderUnreadableError, match="the files of its batch 3 cannot be read"):
        delta_position(reader, TABLE)
    (reader.checkpoint / "offsets" / "3").unlink()
    with pytest.raises(ReaderUnreadableError, match="offsets/3: No such file"):
        delta_position(reader, TABLE)


def test_a_version_that_a_person_names_is_the_position() -> None:
    assert delta_position(ReaderSpec(name="report", table="delta:shop.orders", version=17), TABLE) == DeltaPosition(17, 17)
