"""``freshness: real_time``: what a pipeline must be for it, and what follows from its epoch."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from lakebound.control.requests import InvalidRequestError, RequestForm
from lakebound.landing.real_time_check import few_slots, local_slots
from lakebound.spec.pipeline import PipelineSpec
from lakebound.spec.real_time import batches_end, real_time_end, real_time_problem, real_time_warnings

BODY: dict[str, Any] = {
    "pipeline": "orders",
    "topics": ["orders"],
    "connection": {"bootstrap_servers": "kafka:9092"},
    "value": {"format": "bytes"},
    "freshness": "real_time",
    "to_topics": [{"topic": "clean"}],
}
TABLES = [{"format": "delta", "name": "sales.orders"}]


STORES = [{"name": "newest", "key": "id", "redis": {"host": "localhost"}}]


def test_topics_may_be_the_only_targets() -> None:
    spec = PipelineSpec.model_validate({**BODY, "freshness": "5s"})
    assert (spec.tables, spec.main_table.id) == ((), "delta:quarantine.orders")
    assert (spec.pace(), spec.epoch_seconds()) == ("5s", 0)


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"to_topics": []}, "tables: is missing"),
        ({"freshness": "5s", "complete_hours": {}}, "complete_hours: only tables have complete hours"),
        ({"to_topics": [], "tables": TABLES}, "to_topics is missing; for tables, use 0ms"),
        ({"tables": TABLES}, r"there are also tables: say how often .* real_time: {tables: 1s}; or use 0ms"),
        ({"to_stores": STORES}, "there are also to_stores: say how often"),
        ({"real_time": {"tables": "real_time"}}, "not an interval such as 0ms"),
        ({"real_time": {"tables": "available_now"}}, "not an interval such as 0ms"),
        ({"real_time": {"quarantine_topic": "clean"}}, "sends rows to"),
        ({"real_time": {"quarantine_topic": "_lakebound_ledger.orders"}}, "not a Kafka topic name"),
        ({"real_time": {"epoch": "4s"}}, "from 5s to 60m"),
        ({"real_time": {"epoch": "61m"}}, "from 5s to 60m"),
        ({"real_time": {"epoch": "500ms"}}, "not a time such as"),
    ],
)
def test_what_cannot_run_in_real_time_is_refused(changes: dict[str, Any], problem: str) -> None:
    with pytest.raises(ValidationError, match=problem):
        PipelineSpec.model_validate({**BODY, **changes})


def test_between_two_entries_lies_an_epoch() -> None:
    spec = PipelineSpec.model_validate({**BODY, "real_time": {"epoch": "5m"}})
    assert (spec.pace(), spec.epoch_seconds(), spec.quarantine_topic) == ("5m", 300, "quarantine.orders")
    assert (spec.pace("250ms"), spec.epoch_seconds("250ms")) == ("250ms", 0)


@pytest.mark.parametrize(
    ("form", "spec", "problem"),
    [
        ({"action": "start", "freshness": "real_time"}, {**BODY, "freshness": "5s", "tables": TABLES}, "there are also tables"),
        ({"action": "bounded_run", "offsets": {"orders": {0: 5}}}, BODY, "made of batches"),
    ],
)
def test_a_request_for_real_time_is_refused_where_it_cannot_be(form: Any, spec: Any, problem: str) -> None:
    with pytest.raises(InvalidRequestError, match=problem):
        RequestForm.model_validate(form).request(PipelineSpec.model_validate(spec))
    assert RequestForm(action="start", freshness="0ms").request(PipelineSpec.model_validate(BODY)).freshness == "0ms"


def test_tables_beside_topics_in_real_time_have_a_freshness_of_their_own() -> None:
    spec = PipelineSpec.model_validate({**BODY, "tables": TABLES, "real_time": {"epoch": "30s", "tables": "1s"}})
    assert (spec.tables_freshness(), spec.tables_freshness("0ms"), spec.pace()) == ("1s", "0ms", "30s")
    assert real_time_warnings(spec) == []
    sent, landed = real_time_end(spec), batches_end(spec)
    assert (sent.tables, len(sent.to_topics)) == ((), 1)
    assert (len(landed.tables), landed.to_topics, landed.freshness) == (1, (), "1s")
    assert real_time_problem(sent) is None


@pytest.mark.parametrize(("epoch", "tables", "pace"), [("5s", "1m", "1m"), ("30s", "0ms", "30s"), ("30s", None, "30s")])
def test_who_watches_waits_for_the_longer_of_both_intervals(epoch: str, tables: str | None, pace: str) -> None:
    body = {**BODY, "real_time": {"epoch": epoch, "tables": tables}, "tables": TABLES if tables else []}
    spec = PipelineSpec.model_validate(body)
    assert (spec.pace(), spec.pace("250ms")) == (pace, "250ms")
    assert PipelineSpec.model_validate({**body, "tables": []}).pace() == epoch


def test_a_freshness_of_tables_that_are_not_there_is_told() -> None:
    spec = PipelineSpec.model_validate({**BODY, "real_time": {"tables": "1s"}})
    assert ["real_time.tables: 1s has no effect" in line for line in real_time_warnings(spec)] == [True]


@pytest.mark.parametrize(("master", "slots"), [("local[3]", 3), ("local", 1), ("local[2,4]", 2), ("spark://a:7077", None)])
def test_each_partition_needs_a_slot(master: str, slots: int | None) -> None:
    assert local_slots(master) == slots
    assert (few_slots(4, slots) is None) == (slots is None)
    assert few_slots(1, slots) is None
    more = few_slots(slots or 1, slots, beside_batches=True)
    assert (more is None) == (slots is None)
    assert slots is None or f"local[{slots + 1}]" in str(more)


def test_samples_of_a_quarantine_that_is_a_topic_are_said_to_be_none() -> None:
    spec = PipelineSpec.model_validate({**BODY, "quarantine_samples": 3})
    assert ["no effect" in line and "quarantine.orders" in line for line in real_time_warnings(spec)] == [True]
    assert real_time_warnings(PipelineSpec.model_validate(BODY)) == []
    assert real_time_warnings(PipelineSpec.model_validate({**BODY, "quarantine_samples": 3, "freshness": "5s"})) == []
