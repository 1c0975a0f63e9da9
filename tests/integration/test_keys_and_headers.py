"""A pipeline that gets a key and headers later, in each lane: from a real broker, through quarantine and its replay.

The short form leaves out the lanes in which Spark reads: tests/spark/test_keys_and_headers.py has them, too.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from tests.support.kafka.makers import TopicMaker
from tests.support.streams.applications import applications
from tests.support.streams.command_line import answer, known_to_commands
from tests.support.streams.long_form import only_in_long_form
from tests.support.streams.pipelines import Lane, Pipeline, make_pipeline

from lakebound.local.broker import Broker
from lakebound.spec.pipeline import PipelineSpec

pytestmark = pytest.mark.integration

Pairs = list[tuple[str, bytes | None]]
Sent = tuple[bytes | None, bytes | None, Pairs]
HEADERS = [{"name": "trace-id", "as": "trace_id"}, {"name": "n", "type": "INT"}, {"all": True}]
BEFORE: list[Sent] = [
    (b"a", b'{"v": 1}', [("n", b"1")]),
    (b"b", b"{}", [("trace-id", b"x"), ("trace-id", b"y"), ("n", b"2")]),
    (None, b"{", [("trace-id", "ä".encode()), ("", None)]),
    (b"gone", None, []),
    (b"\xff", b"{}", [("n", b"3")]),
]
AFTER: list[Sent] = [
    (b"c", b'{"v": 2}', [("trace-id", b"z"), ("n", None)]),
    (b"d", None, [("n", b"4")]),
    (b"\xff", b'{"v": 3}', []),
    (b"e", b'{"v": 4}', [("n", b"four"), ("trace-id", b"\x00")]),
    (None, b'{"v": 5}', []),
]
Row = tuple[Any, ...]


def send(broker: Broker, topic: str, records: list[Sent]) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
    for key, value, headers in records:
        producer.produce(topic, value, key=key, headers=headers, partition=0)
    assert producer.flush(30) == 0


def changed(pipeline: Pipeline, **changes: Any) -> Pipeline:
    body = pipeline.spec.model_dump(mode="json", by_alias=True, exclude_defaults=True)
    return replace(pipeline, spec=PipelineSpec.model_validate(body | changes))


def rows(pipeline: Pipeline) -> Iterator[dict[int, Row]]:
    """Yield the rows of each table by offset, as a reader of its format's own gives them."""
    for table in pipeline.spec.tables:
        found = {}
        for row in pipeline.read(table).to_pylist():
            every = row.get("headers")
            listed = None if every is None else [(one["name"], one["value"]) for one in every]
            offset = row["_kafka"]["offset"]
            assert offset not in found
            found[offset] = (row.get("key"), row["v"], row.get("trace_id"), row.get("n"), listed)
        yield found


def quarantined(pipeline: Pipeline) -> dict[int, tuple[str, Sent]]:
    return {
        row["_kafka"]["offset"]: (
            f"{row['reason']}: {row['error']}",
            (row["key"], row["value"], [(one["name"], one["value"]) for one in row["headers"] or ()]),
        )
        for row in pipeline.read(pipeline.spec.quarantine_table).to_pylist()
    }


@pytest.mark.parametrize("lane", ["direct", *(pytest.param(lane, marks=only_in_long_form) for lane in ("driver", "cluster"))])
def test_a_key_and_headers_that_come_later_land_and_quarantine_keeps_those_of_before(
    broker: Broker, topic: TopicMaker, tmp_path: Path, lane: Lane, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = topic("keys")
    value = {"format": "json", "schema": "v INT NOT NULL"}
    before = make_pipeline(tmp_path, broker.bootstrap_servers, name, lane=lane, value=value).with_lane(lane)
    send(broker, name, BEFORE)
    with applications() as starter:
        first = starter.start(before)
        first.wait_landed({name: {0: len(BEFORE)}})
        assert first.stop().verdict == "stopped"
        bad = quarantined(before)
        assert {offset: sent for offset, (_, sent) in bad.items()} == {offset: BEFORE[offset] for offset in (1, 2, 3, 4)}
        assert [*rows(before)] == [{0: (None, 1, None, None, None)}] * 2

        optional = {"format": "json", "schema": "v INT"}
        key, new = {"format": "string"}, {"schema_evolution": "add_columns", "null_values": "row"}
        after = changed(before, value=optional, key=key, headers=HEADERS, **new)
        second = starter.start(after)
        second.wait_running()
        landed_until = len(BEFORE)
        for records in (AFTER[:2], AFTER[2:]):  # where Spark reads, the first batch of an application is the cluster's
            send(broker, name, records)
            landed_until += len(records)
            second.wait_landed({name: {0: landed_until}})
        assert second.stop().verdict == "stopped"
    assert after.lanes() == {"direct": {"driver"}, "driver": {"cluster", "driver"}, "cluster": {"cluster"}}[lane]
    landed: dict[int, Row] = {
        0: (None, 1, None, None, None),
        5: ("c", 2, "z", None, AFTER[0][2]),
        6: ("d", None, None, 4, AFTER[1][2]),
        9: (None, 5, None, None, []),
    }
    assert [*rows(after)] == [landed] * 2
    bad = quarantined(after)
    assert bad[7] == ("not_utf8: key: the value is not UTF-8: byte 1 of 1 is ff", AFTER[2])
    assert bad[8] == ("does_not_fit: header n: 'four' is no INT in decimal text", AFTER[3])
    assert {*bad} == {1, 2, 3, 4, 7, 8}

    known_to_commands(after, monkeypatch, tmp_path / "pipelines")
    said = answer("quarantine", "events", "--replay")
    assert said["result"]["state"] == "completed" and said["result"]["landed"] == 2
    landed |= {1: ("b", None, "y", 2, BEFORE[1][2]), 3: ("gone", None, None, None, [])}
    assert [*rows(after)] == [landed] * 2, "a released record has its key and its headers"
    (shown,) = [
        sample["headers"]
        for reason in answer("quarantine", "events")["reasons"]
        for sample in reason["samples"]
        if sample["offset"] == 2
    ]
    assert shown == "trace-id=ä, "
