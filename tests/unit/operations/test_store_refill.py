"""The plan by which a store is filled from a table, when it is refused, and the order in which rows go into the store."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lakebound.ledger.entry import Offsets, TopicOffsets
from lakebound.ledger.lost import LostRange
from lakebound.ledger.topics import TopicFacts
from lakebound.operations.recovery.facts import BrokerFacts
from lakebound.operations.recovery.plan import PlanRefusedError
from lakebound.operations.recovery.store_rebuild import StoreFacts
from lakebound.operations.recovery.store_refill.facts import Incarnation, RefillFacts, RowFacts, SourceFacts
from lakebound.operations.recovery.store_refill.plan import plan_store_refill
from lakebound.operations.recovery.store_refill.spool import RowSpool
from lakebound.spec.pipeline import PipelineSpec
from lakebound.tables.table import KAFKA_TYPE

STORE = {"name": "cards", "key": "card", "redis": {"host": "cache"}}
SCHEMA = pa.schema([pa.field("card", pa.string()), pa.field("_kafka", KAFKA_TYPE)])


def described(**changes: Any) -> PipelineSpec:
    body = {
        "pipeline": "payments",
        "topics": ["payments"],
        "connection": {"bootstrap_servers": "127.0.0.1:1"},
        "value": {"format": "json", "schema": "card STRING"},
        "freshness": "1s",
        "tables": [{"format": "delta", "name": "shop.payments"}],
        "to_stores": [STORE],
    }
    return PipelineSpec.model_validate({**body, **changes})


SPEC = described()


def covers(*intervals: tuple[int, int], topic_id: str = "first") -> Offsets:
    return {"payments": TopicOffsets(topic_id=topic_id, partitions={0: intervals})}


def kafka(earliest: int = 60, latest: int = 100, topic_id: str = "first") -> BrokerFacts:
    return BrokerFacts({"payments": TopicFacts(topic_id, {0: earliest}, {0: latest})})


STORE_FACTS = StoreFacts(SPEC.to_stores[0], 7, covers((0, 95)), None, kafka())
SOURCE = SourceFacts(SPEC.tables[0], version="12", coverage=covers((10, 90)), schema=SCHEMA)
FACTS = RefillFacts(STORE_FACTS, SOURCE, RowFacts(80, keys=5))


def test_the_plan_says_what_the_store_gets_and_what_kafka_adds_and_what_is_lost() -> None:
    plan = plan_store_refill(SPEC, FACTS)

    assert plan.loses == (LostRange(topic="payments", partition=0, start=0, end=10),)
    assert (plan.removes_rows, plan.replays_records) == ({"redis:cards": 7}, 10)
    shown = plan.markdown()
    assert "80 rows, about 5 keys at version 12" in shown and "80 offsets" in shown and "columns: card" in shown


def test_a_plan_holds_while_the_stream_goes_on() -> None:
    later = replace(FACTS, source=replace(SOURCE, version="13", coverage=covers((10, 95))), rows=None)
    assert plan_store_refill(SPEC, later).hash == plan_store_refill(SPEC, FACTS).hash
    wider = pa.schema([*SCHEMA, pa.field("more", pa.string())])
    assert (
        plan_store_refill(SPEC, replace(FACTS, source=replace(SOURCE, schema=wider))).hash
        != plan_store_refill(SPEC, FACTS).hash
    )


@pytest.mark.parametrize(
    ("source", "store", "rows", "told"),
    [
        ({"refusal": "no such table"}, {}, {}, "no such table"),
        ({"erased": 3}, {}, {}, "3 rows were erased"),
        ({"changes": ("version 4 (DELETE)",)}, {}, {}, "others have changed its rows: version 4"),
        ({"acknowledged": ("4",)}, {}, {}, "acknowledged"),
        ({"coverage": covers((10, 20), (30, 90))}, {}, {}, "lakebound replay payments"),
        ({}, {"kafka": BrokerFacts(silence="no answer")}, {}, "no answer"),
        ({}, {"kafka": BrokerFacts({"payments": None})}, {}, "not on the broker: payments"),
        ({}, {"kafka": kafka(earliest=91)}, {}, r"no longer has the offsets \[90, 91\)"),
        ({}, {"kafka": kafka(latest=89)}, {}, "Kafka ends at 89"),
        ({}, {"kafka": kafka(topic_id="second")}, {}, "created again"),
        ({}, {}, {"problems": ("card is null",)}, "card is null"),
    ],
)
def test_what_would_not_be_right_is_refused_with_the_reason(source: Any, store: Any, rows: Any, told: str) -> None:
    facts = RefillFacts(replace(STORE_FACTS, **store), replace(SOURCE, **source), replace(RowFacts(80), **rows))
    with pytest.raises(PlanRefusedError, match=told):
        plan_store_refill(SPEC, facts)


def test_a_table_holds_no_tombstones() -> None:
    with pytest.raises(PlanRefusedError, match=r"null_values: delete.*rebuild-store payments cards, without --from-table"):
        plan_store_refill(described(null_values="delete"), FACTS)


def test_a_history_that_is_not_whole_is_told() -> None:
    assert "a person has" in plan_store_refill(SPEC, replace(FACTS, source=replace(SOURCE, is_whole_history=False))).markdown()


INCARNATIONS = {
    ("payments", "first"): Incarnation(0, {0: ((0, 40),)}),
    ("payments", "second"): Incarnation(1, {0: ((0, 30),), 1: ((5, 25),)}),
}


def row(topic_id: str, partition: int, offset: int, ordinal: int = 0) -> dict[str, Any]:
    place = {"topic": "payments", "topic_id": topic_id, "partition": partition, "offset": offset, "ordinal": ordinal}
    return {"card": f"{topic_id} {partition} {offset} {ordinal}", "_kafka": {**place, "timestamp": None}}


def spooled(folder: Path, rows: list[dict[str, Any]], at_once: int) -> RowSpool:
    spool = RowSpool(folder / "spool", INCARNATIONS, offsets_of_a_bucket=7)
    for start in range(0, len(rows), at_once):
        spool.add(pa.Table.from_pylist(rows[start : start + at_once], schema=SCHEMA))
    return spool


@pytest.mark.parametrize("seed", range(4))
def test_rows_come_out_in_the_order_of_their_source_positions(tmp_path: Path, seed: int) -> None:
    dice = random.Random(seed)
    rows = [row("first", 0, offset) for offset in range(40)]
    rows += [row("second", 1, offset, ordinal) for offset in range(5, 25) for ordinal in range(3)]
    rows += [row("second", 0, offset) for offset in range(0, 30, 2)]
    mixed = dice.sample(rows, len(rows))

    spool = spooled(tmp_path, mixed, at_once=dice.randrange(1, 30))

    assert spool.problems() == [] and spool.rows == len(rows)
    most = dice.randrange(1, 9)
    pieces = list(spool.pieces(most))
    wanted = sorted(
        (one["_kafka"] for one in rows), key=lambda at: (at["topic_id"], at["partition"], at["offset"], at["ordinal"])
    )
    assert [at for piece in pieces for at in piece["_kafka"].to_pylist()] == wanted
    assert max(piece.num_rows for piece in pieces) <= most
    spool.remove()
    assert not (tmp_path / "spool").exists()


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        (row("first", 0, 3), "1 rows have the same source position"),
        (row("first", 0, 40), "1 rows are of offsets that its ledger does not cover"),
        (row("first", 1, 3), "1 rows are of offsets that its ledger does not cover"),
        (row("third", 0, 3), "1 rows do not say from which record"),
        ({"card": "x", "_kafka": None}, "1 rows do not say from which record"),
        (row("first", 0, 5, None), "1 rows do not say from which record"),  # type: ignore[arg-type]
    ],
)
def test_rows_that_the_pipeline_has_not_landed_are_found(tmp_path: Path, wrong: dict[str, Any], told: str) -> None:
    spool = spooled(tmp_path, [*(row("first", 0, offset) for offset in range(4)), wrong], at_once=2)
    assert [told in problem for problem in spool.problems()] == [True]
