"""From which Delta version a reader's checkpoint says that it reads when it is started again."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lakebound.operations.maintenance.reader_positions import ReaderUnreadableError, delta_position
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


def test_it_is_where_the_newest_finished_batch_began(reader: ReaderSpec) -> None:
    for batch, version in enumerate((7, 28, 31)):
        add(reader, batch, (TABLE, version))
    assert delta_position(reader, TABLE) == 28

    add(reader, 3, (TABLE, 40), is_finished=False)
    assert delta_position(reader, TABLE) == 28, "until the batch is finished, the start may begin with the one before"


def test_of_a_query_that_reads_the_table_twice_it_is_the_earlier_place(reader: ReaderSpec) -> None:
    add(reader, 4, (TABLE, 9), (OTHER, 3), (TABLE, 12))
    add(reader, 5, (TABLE, 20), (OTHER, 5), (TABLE, 14))
    assert (delta_position(reader, TABLE), delta_position(reader, OTHER)) == (9, 3)


def test_of_one_that_has_finished_its_first_batch_only_nobody_knows_what_it_needs(reader: ReaderSpec) -> None:
    add(reader, 0, (TABLE, 12))
    with pytest.raises(ReaderUnreadableError, match="finished only its first batch"):
        delta_position(reader, TABLE)


def test_nor_of_one_whose_query_reads_the_table_for_the_first_time(reader: ReaderSpec) -> None:
    add(reader, 3, (OTHER, 5), None)
    add(reader, 4, (OTHER, 6), (TABLE, 2))
    assert delta_position(reader, OTHER) == 5
    with pytest.raises(ReaderUnreadableError, match="finished only its first batch"):
        delta_position(reader, TABLE)


def test_a_table_that_was_created_again_is_named(reader: ReaderSpec) -> None:
    add(reader, 1, (OTHER, 5))
    add(reader, 2, (OTHER, 6))
    with pytest.raises(ReaderUnreadableError, match=rf"no Delta table with the id {TABLE} \(but {OTHER}\)"):
        delta_position(reader, TABLE)


@pytest.mark.parametrize("lost", [2, 3])
def test_a_batch_whose_file_is_lost_or_torn_is_named(reader: ReaderSpec, lost: int) -> None:
    for batch in (2, 3):
        add(reader, batch, (TABLE, batch))
    assert reader.checkpoint is not None
    file = reader.checkpoint / "offsets" / str(lost)
    file.write_text("v1\n{")
    with pytest.raises(ReaderUnreadableError, match=f"the files of its batch {lost} cannot be read"):
        delta_position(reader, TABLE)
    file.unlink()
    with pytest.raises(ReaderUnreadableError, match=f"offsets/{lost}: No such file"):
        delta_position(reader, TABLE)


def test_a_version_that_a_person_names_is_the_position() -> None:
    assert delta_position(ReaderSpec(name="report", table="delta:shop.orders", version=17), TABLE) == 17
