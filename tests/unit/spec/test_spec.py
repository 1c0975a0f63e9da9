"""The models of a pipeline, past what its YAML tests say, and the schema for editors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from lakebound.spec.connection import SecretRef
from lakebound.spec.pipeline import PipelineSpec, parse_freshness
from lakebound.spec.schema import pipeline_schema
from lakebound.spec.table import TableSpec

REPOSITORY = Path(__file__).parents[3]
BODY: dict[str, Any] = {
    "pipeline": "orders",
    "topics": ["orders"],
    "connection": {"bootstrap_servers": "kafka:9092"},
    "value": {"format": "bytes"},
    "freshness": "500ms",
    "tables": [{"format": "delta", "name": "sales.orders"}],
}


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("0ms", 0.0), ("250ms", 0.25), ("5s", 5.0), ("5 s", 5.0), ("2m", 120.0), ("available_now", None)],
)
def test_freshness_in_seconds(text: str, seconds: float | None) -> None:
    assert parse_freshness(text) == seconds


def test_real_time_starts_no_batches() -> None:
    assert parse_freshness("real_time") == 0.0


@pytest.mark.parametrize("text", ["", "500", "0.5s", "-1s", "1h", "500ms ", "continuous"])
def test_other_freshness_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        parse_freshness(text)


def test_only_available_now_does_not_run_continuously() -> None:
    assert PipelineSpec.model_validate(BODY).runs_continuously
    assert not PipelineSpec.model_validate({**BODY, "freshness": "available_now"}).runs_continuously


def test_partitioning_is_read() -> None:
    partition_by = ("city", "day(at)", "identity(kind)", "truncate(4, sku)")
    table = TableSpec(format="iceberg", name="lake.events", partition_by=partition_by)
    assert table.partition_fields() == (
        ("identity", None, "city"),
        ("day", None, "at"),
        ("identity", None, "kind"),
        ("truncate", 4, "sku"),
    )
    assert [str(field) for field in table.partition_fields()] == ["city", "day(at)", "kind", "truncate(4, sku)"]


@pytest.mark.parametrize("field", ["bucket(4, id)", "day(at", "truncate(sku)", "a b", ""])
def test_other_partitioning_is_refused(field: str) -> None:
    with pytest.raises(ValidationError, match="partition_by"):
        TableSpec(format="iceberg", name="lake.events", partition_by=(field,))


def test_a_table_without_a_namespace_is_in_the_default_one() -> None:
    table = TableSpec(format="delta", name="events")
    assert (table.id, table.namespace, table.short_name) == ("delta:events", "default", "events")


def test_the_quarantine_has_a_default() -> None:
    assert PipelineSpec.model_validate(BODY).quarantine_table.id == "delta:quarantine.orders"


def test_the_quarantine_is_not_one_of_the_tables() -> None:
    with pytest.raises(ValidationError, match="named twice"):
        PipelineSpec.model_validate({**BODY, "quarantine": BODY["tables"][0]})


@pytest.mark.parametrize(
    ("to_topics", "problem"),
    [
        ([{"topic": "orders"}], "would read its own rows"),
        ([{"topic": "clean"}, {"topic": "clean", "key": "id"}], "named twice"),
        ([{"topic": "_lakebound_ledger.orders"}], "ledger topic"),
    ],
)
def test_a_target_topic_is_another_one(to_topics: list[dict[str, str]], problem: str) -> None:
    assert PipelineSpec.model_validate({**BODY, "to_topics": [{"topic": "clean"}]}).to_topics[0].id == "topic:clean"
    with pytest.raises(ValidationError, match=problem):
        PipelineSpec.model_validate({**BODY, "to_topics": to_topics})


def test_a_spec_survives_the_way_to_the_application() -> None:
    body = {**BODY, "value": {"format": "json", "schema": "id BIGINT"}}
    spec = PipelineSpec.model_validate(body)
    assert PipelineSpec.model_validate_json(spec.model_dump_json(by_alias=True)) == spec


def test_a_spec_does_not_change() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        PipelineSpec.model_validate(BODY).freshness = "1s"  # type: ignore[misc]


@pytest.mark.parametrize(
    ("sasl", "tls", "protocol"),
    [(False, False, "PLAINTEXT"), (False, True, "SSL"), (True, False, "SASL_PLAINTEXT"), (True, True, "SASL_SSL")],
)
def test_the_security_protocol(sasl: bool, tls: bool, protocol: str) -> None:
    login = {"username": "me", "password": {"env": "KAFKA_PASSWORD"}} if sasl else None
    body = {**BODY, "connection": {"bootstrap_servers": "kafka:9092", "tls": tls, "sasl": login}}
    assert PipelineSpec.model_validate(body).connection.security_protocol == protocol


def test_a_secret_says_where_it_is() -> None:
    assert str(SecretRef(env="KAFKA_PASSWORD")) == "environment variable KAFKA_PASSWORD"
    assert str(SecretRef(file="/run/secrets/kafka")) == "file /run/secrets/kafka"


@pytest.mark.parametrize("names", [["ada", ""], [" ada"], ["ada", "ada"]])
@pytest.mark.parametrize("key", ["approvers", "owners"])
def test_names_of_people_are_plain_and_given_once(key: str, names: list[str]) -> None:
    assert getattr(PipelineSpec.model_validate({**BODY, key: ["ada", "Sales Team"]}), key) == ("ada", "Sales Team")
    with pytest.raises(ValidationError, match="a name is"):
        PipelineSpec.model_validate({**BODY, key: names})


def test_the_schema_in_the_repository_is_current() -> None:
    """Write it anew with ``lakebound schema --write include/pipeline.schema.json``."""
    assert (REPOSITORY / "include" / "pipeline.schema.json").read_text() == pipeline_schema()


def test_the_examples_name_the_schema_in_their_first_line() -> None:
    for file in (REPOSITORY / "include" / "pipelines").glob("*.yaml"):
        assert file.read_text().splitlines()[0] == "# yaml-language-server: $schema=../pipeline.schema.json"
