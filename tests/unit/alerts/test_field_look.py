"""The look at records for fields that the schema does not name: when it looks, where it ends, what it says."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml
from confluent_kafka import KafkaError, KafkaException
from tests.support.streams.stand_ins import ORDERS

from lakebound.alerts import field_look
from lakebound.alerts.field_look import LOOK_EVERY_SECONDS, SOURCE, Bounds, look_at_fields, read_values
from lakebound.control.desired import change_desired
from lakebound.control.findings import Finding, read_source
from lakebound.control.folder import ControlFolder
from lakebound.control.unknown_fields import KEPT_SECONDS, dropped_fields, read_record, record_after, schema_sign, sentence
from lakebound.errors import BrokerUnavailableError
from lakebound.inspection.doctor.diagnosis import Diagnosis
from lakebound.inspection.doctor.wording import needs_person, warning
from lakebound.spec.draft.unknown_fields import UnknownField
from lakebound.spec.pipeline import PipelineSpec

WELL = Diagnosis(subject="orders")
NEW = json.dumps({"id": 1, "discount": 0.5, "note": "SECRET"}).encode()


def spec_of(schema: str = "id BIGINT", **value: Any) -> PipelineSpec:
    return PipelineSpec.model_validate({**ORDERS, "value": {"format": "json", "schema": schema, **value}})


@pytest.fixture
def control(tmp_path: Path) -> ControlFolder:
    return ControlFolder(tmp_path, "orders")


class Reading:
    """Stands in for what reads records, and counts how often it was asked."""

    def __init__(self, *values: bytes) -> None:
        self.values, self.asked, self.is_away = values, 0, False

    def __call__(self, spec: PipelineSpec) -> Sequence[bytes | None]:
        self.asked += 1
        if self.is_away:
            raise BrokerUnavailableError(spec.connection.bootstrap_servers, "no answer")
        return self.values


def findings(control: ControlFolder) -> tuple[Finding, ...]:
    looked = read_source(control, SOURCE)
    return looked.findings if looked is not None else ()


def test_a_dropped_field_is_a_finding_without_a_value_of_a_record(control: ControlFolder) -> None:
    look_at_fields(spec_of(), control, WELL, Reading(NEW))
    [found] = findings(control)
    assert found.runbook == "unknown-fields"
    assert "discount, note" in found.what and "`discount DECIMAL(18,2)`, `note STRING`" in found.what
    assert "ignored_fields: [discount, note]" in found.what
    written = "".join(path.read_text() for path in control.folder.rglob("*.json"))
    assert "SECRET" not in written and "0.5" not in written


def test_it_looks_once_an_hour_and_at_once_when_the_schema_was_changed(
    control: ControlFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    now, reading = 1_000_000.0, Reading(NEW)
    monkeypatch.setattr(field_look.time, "time", lambda: now)
    for _ in range(3):
        look_at_fields(spec_of(), control, WELL, reading)
        now += 300
    assert reading.asked == 1
    now += LOOK_EVERY_SECONDS
    look_at_fields(spec_of(), control, WELL, reading)
    assert reading.asked == 2
    look_at_fields(spec_of("id BIGINT, discount DOUBLE"), control, WELL, reading)
    assert reading.asked == 3
    [found] = findings(control)
    assert "note" in found.what and "discount" not in found.what


def test_what_is_ignored_is_over_without_another_look(control: ControlFolder) -> None:
    reading = Reading(NEW)
    look_at_fields(spec_of(), control, WELL, reading)
    look_at_fields(spec_of(ignored_fields=["discount", "note"]), control, WELL, reading)
    assert findings(control) == () and reading.asked == 1


def test_a_broker_that_is_away_says_nothing_and_takes_nothing_back(
    control: ControlFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    now, reading = 1_000_000.0, Reading(NEW)
    monkeypatch.setattr(field_look.time, "time", lambda: now)
    look_at_fields(spec_of(), control, WELL, reading)
    reading.is_away, now = True, now + LOOK_EVERY_SECONDS
    look_at_fields(spec_of(), control, WELL, reading)
    assert len(findings(control)) == 1 and reading.asked == 2
    away = Diagnosis(subject="orders", findings=(needs_person("broker-unavailable", "away", "broker-unavailable"),))
    look_at_fields(spec_of(), control, away, reading)
    assert len(findings(control)) == 1 and reading.asked == 2, "who is known to be away is not asked"


def test_a_pipeline_that_nobody_wants_or_started_or_without_json_is_not_looked_at(control: ControlFolder) -> None:
    reading = Reading(NEW)
    never = Diagnosis(subject="orders", findings=(warning("never-started", "never", "refused"),))
    look_at_fields(spec_of(), control, never, reading)
    look_at_fields(PipelineSpec.model_validate(ORDERS), control, WELL, reading)
    assert reading.asked == 0 and not control.exists()
    look_at_fields(spec_of(), control, WELL, reading)
    change_desired(control, "stopped", by="a test", reason="maintenance")
    look_at_fields(spec_of(), control, WELL, reading)
    assert findings(control) == () and reading.asked == 1


def test_a_field_that_was_in_no_sample_for_a_week_is_forgotten() -> None:
    sign = schema_sign(spec_of())
    first = record_after(None, [UnknownField("rare", "STRING", records=1)], read=9, sign=sign, now=0.0)
    second = record_after(first, [UnknownField("often", "STRING", records=9)], read=9, sign=sign, now=KEPT_SECONDS)
    assert [one.path for one in dropped_fields(second, spec_of())] == ["often", "rare"]
    third = record_after(second, [], read=9, sign=sign, now=KEPT_SECONDS + 1)
    assert [one.path for one in dropped_fields(third, spec_of())] == ["often"]
    assert record_after(second, [], read=9, sign="another schema", now=KEPT_SECONDS).fields == ()


def test_a_record_that_cannot_be_read_is_written_anew(control: ControlFolder) -> None:
    control.folder.mkdir(parents=True)
    (control.folder / "unknown-fields.json").write_text('{"looked_at": "x"}')
    look_at_fields(spec_of(), control, WELL, Reading(NEW))
    record = read_record(control)
    assert record is not None and record.read == 1


def test_what_the_sentence_proposes_to_ignore_is_yaml() -> None:
    paths = ["discount", "customer.tier", "it's", "no", "a, b", "x: y"]
    told = sentence([UnknownField(path, problem="no column") for path in paths[:5]], spec_of().value)
    assert yaml.safe_load(told.rpartition("add to value: ")[2]) == {"ignored_fields": paths[:5]}
    many = sentence([UnknownField(f"f{number}", "STRING") for number in range(8)], spec_of().value)
    assert "f4 and 3 more" in many and "f5" not in many


class Message:
    """Stands in for a message of the client."""

    def __init__(self, offset: int, value: bytes | None = b"{}", error: KafkaError | None = None, partition: int = 0) -> None:
        self._parts = {"topic": "orders", "partition": partition, "offset": offset, "value": value, "error": error}

    def __getattr__(self, name: str) -> Any:
        return lambda: self._parts[name]


class StandIn:
    """Stands in for a consumer that gives these messages, then None."""

    def __init__(self, *messages: Message | None) -> None:
        self._messages: Iterator[Message | None] = iter(messages)
        self.assigned: list[Any] = []
        self.polls = 0

    def assign(self, places: list[Any]) -> None:
        self.assigned = places

    def poll(self, _: float) -> Message | None:
        self.polls += 1
        return next(self._messages, None)


def clock() -> Any:
    """Return a clock that goes on by a tenth of a second with each look."""
    ticks = iter(range(10_000))
    return lambda: next(ticks) / 10


def read(consumer: StandIn, ranges: dict[tuple[str, int], tuple[int, int]], bounds: Bounds | None = None) -> Any:
    return read_values(consumer, ranges, bounds or Bounds(), clock())  # type: ignore[arg-type]


def test_each_partition_is_read_up_to_the_end_of_its_range() -> None:
    consumer = StandIn(Message(5), Message(7, partition=1), Message(6), Message(7), Message(8, partition=1))
    assert len(read(consumer, {("orders", 0): (5, 7), ("orders", 1): (7, 9)})) == 4, "offset 7 is behind the first range"
    assert [(one.partition, one.offset) for one in consumer.assigned] == [(0, 5), (1, 7)]
    assert consumer.polls == 5


def test_the_end_of_a_partition_ends_it_where_offsets_have_no_record() -> None:
    end = Message(9, None, KafkaError(KafkaError._PARTITION_EOF))
    consumer = StandIn(Message(5), end)
    assert read(consumer, {("orders", 0): (5, 9)}) == [b"{}"] and consumer.polls == 2


def test_it_ends_by_bytes_by_records_and_by_time() -> None:
    large = [Message(offset, b"x" * 100) for offset in range(50)]
    assert len(read(StandIn(*large), {("orders", 0): (0, 50)}, Bounds(bytes=250))) == 3
    assert len(read(StandIn(*large), {("orders", 0): (0, 50)}, Bounds(records=7))) == 7
    silent = StandIn()
    assert read(silent, {("orders", 0): (0, 50)}, Bounds(seconds=2.0)) == [] and silent.polls <= 20


def test_another_error_is_told() -> None:
    refused = Message(0, None, KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED))
    with pytest.raises(KafkaException):
        read(StandIn(refused), {("orders", 0): (0, 5)})
