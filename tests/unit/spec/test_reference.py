"""Reference data in a pipeline's YAML."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import ValidationError

from lakebound.errors import InvalidSpecError
from lakebound.spec.connection import SecretRef
from lakebound.spec.load import load_file
from lakebound.spec.pipeline import PipelineSpec
from lakebound.spec.reference import parse_refresh

BODY: dict[str, Any] = {
    "pipeline": "orders",
    "topics": ["orders"],
    "connection": {"bootstrap_servers": "kafka:9092"},
    "value": {"format": "bytes"},
    "freshness": "500ms",
    "transform": "transforms.orders.enrich",
    "tables": [{"format": "delta", "name": "orders"}],
}
CUSTOMERS = {"format": "delta", "name": "crm.customers", "key": ["customer_id"]}


def spec(customers: dict[str, Any], **more: Any) -> PipelineSpec:
    return PipelineSpec.model_validate({**BODY, **more, "reference": {"customers": {**CUSTOMERS, **customers}}})


@pytest.mark.parametrize(
    ("text", "seconds"), [("on_change", 10.0), ("30s", 30.0), ("5 m", 300.0), ("2h", 7200.0), ("1d", 86400.0)]
)
def test_how_often_a_reference_is_looked_at(text: str, seconds: float) -> None:
    assert parse_refresh(text) == spec({"refresh": text}).reference["customers"].refresh_seconds == seconds


@pytest.mark.parametrize(
    ("customers", "problem"),
    [
        ({"refresh": "0s"}, "neither on_change nor an interval"),
        ({"refresh": "500ms"}, "neither on_change nor an interval"),
        ({"key": []}, "at least 1 item"),
        ({"key": ["a", "a"]}, "named twice"),
        ({"path": "customers"}, "either 'name' or 'path'"),
        ({"name": None}, "either 'name' or 'path'"),
        ({"format": "iceberg", "name": None}, "'name' is missing"),
        ({"format": "iceberg", "path": "customers"}, "an Iceberg table is named by 'name'"),
        ({"format": "csv"}, "'name' is for Delta and Iceberg tables"),
        ({"format": "parquet", "name": None, "path": "c", "schema": "a INT"}, "'schema' is for CSV"),
        ({"format": "csv", "name": None, "path": "c.csv", "schema": "a NUMBR"}, "NUMBR is not a type"),
        ({"name": "../etc"}, "is not a table name"),
        ({"name": "default.orders"}, "is a table of this pipeline"),
        ({"name": "quarantine.orders"}, "is a table of this pipeline"),
    ],
)
def test_what_a_reference_must_not_be(customers: dict[str, Any], problem: str) -> None:
    with pytest.raises(ValidationError, match=problem):
        spec(customers)


def test_only_a_transform_uses_reference_data() -> None:
    with pytest.raises(ValidationError, match="only a transform can use it"):
        spec({}, transform=None)


def test_a_reference_survives_the_way_to_the_application() -> None:
    one = spec({"format": "csv", "name": None, "path": "customers.csv", "schema": "customer_id BIGINT, name STRING"})
    assert PipelineSpec.model_validate_json(one.model_dump_json(by_alias=True)) == one


def test_a_mistake_is_named_with_its_line(tmp_path: Path) -> None:
    file = tmp_path / "orders.yaml"
    lines = [*(f"{key}: {value!r}" for key, value in BODY.items()), "reference:", "  customers:", "    format: delta"]
    file.write_text("\n".join([*lines, "    name: crm.customers", "    keys: [customer_id]"]))
    with pytest.raises(InvalidSpecError) as error:
        load_file(file)
    at = len(lines) + 2
    assert f"{file}:{at}: reference.customers.keys: unknown key; did you mean 'key'?" in error.value.problems


def test_a_reference_has_a_plain_name() -> None:
    with pytest.raises(ValidationError, match="'Customers' is not a name"):
        PipelineSpec.model_validate({**BODY, "reference": {"Customers": CUSTOMERS}})


DATABASE = {"host": "db.example.com", "database": "shop", "username": "reader", "password": {"env": "LAKEBOUND_SECRET_SHOP"}}
IN_POSTGRES = {"format": "postgres", "postgres": DATABASE}


def test_the_password_of_a_database_is_one_of_the_pipelines_secrets() -> None:
    one = spec(IN_POSTGRES)
    assert one.secrets == {("reference", "customers", "postgres", "password"): SecretRef(env="LAKEBOUND_SECRET_SHOP")}
    assert one.reference["customers"].told == "postgres crm.customers"
    assert spec({**IN_POSTGRES, "name": None, "query": "SELECT 1"}).reference["customers"].told == "postgres query"


@pytest.mark.parametrize(
    ("customers", "problem"),
    [
        ({"format": "postgres"}, "'postgres' is missing"),
        ({"postgres": DATABASE}, "postgres: only for format postgres"),
        ({**IN_POSTGRES, "name": None}, "either 'name' or 'query'"),
        ({**IN_POSTGRES, "query": "SELECT 1"}, "either 'name' or 'query'"),
        ({**IN_POSTGRES, "name": None, "query": "SELECT 1; "}, "without a semicolon"),
        ({**IN_POSTGRES, "name": None, "query": "SELECT 1", "columns": ["customer_id"]}, "'columns' is for a table"),
        ({**IN_POSTGRES, "columns": ["name"]}, "'columns' must contain all columns of the key; missing: customer_id"),
        ({**IN_POSTGRES, "schema": "a INT"}, "'schema' is for CSV"),
        ({**IN_POSTGRES, "postgres": {**DATABASE, "host": "/var/run/postgresql"}}, "must be a host's name"),
        ({**IN_POSTGRES, "postgres": {**DATABASE, "database": "host=/tmp"}}, "must be only a name"),
        ({**IN_POSTGRES, "postgres": {**DATABASE, "sslmode": "verify-full"}}, "tls_ca_file is missing"),
    ],
)
def test_what_a_reference_in_postgresql_must_not_be(customers: dict[str, Any], problem: str) -> None:
    with pytest.raises(ValidationError, match=problem):
        spec(customers)


@pytest.mark.parametrize(
    ("database", "told"),
    [
        ({**DATABASE, "password": "hunter2"}, "postgres.password: must say where the secret is stored"),
        ({**DATABASE, "password": {"hunter2": "hunter2"}}, "postgres.password: must say where the secret is stored"),
        ("postgresql://reader:hunter2@db/shop", "postgres: must be keys and values"),
        ({**DATABASE, "host": "postgresql://reader:hunter2@db/shop"}, "postgres.host: must be a host's name"),
        ({**DATABASE, "port": "hunter2"}, "postgres.port: "),
        ({**DATABASE, "password": {"env": "PATH"}}, "this environment variable may not be read as a secret"),
        ({**DATABASE, "host": "${LAKEBOUND_SECRET_SHOP}"}, "name it under password"),
    ],
)
def test_a_password_of_a_database_is_refused_in_the_file_and_not_repeated(tmp_path: Path, database: Any, told: str) -> None:
    file = tmp_path / "orders.yaml"
    one = {**CUSTOMERS, "format": "postgres", "postgres": database}
    file.write_text(yaml.safe_dump({**BODY, "reference": {"customers": one}}))
    with pytest.raises(InvalidSpecError) as error:
        load_file(file)
    assert any(told in problem for problem in error.value.problems) and "hunter2" not in str(error.value)


def test_the_host_of_a_database_may_be_a_variable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAKEBOUND_SHOP", "127.0.0.1")
    file = tmp_path / "orders.yaml"
    one = {**CUSTOMERS, "format": "postgres", "postgres": {**DATABASE, "host": "${LAKEBOUND_SHOP}"}}
    file.write_text(yaml.safe_dump({**BODY, "reference": {"customers": one}}))
    [loaded] = load_file(file).reference.values()
    assert loaded.postgres is not None and loaded.postgres.host == "127.0.0.1"
