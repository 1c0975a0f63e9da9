"""What an OpenLineage event of a stream says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pyarrow as pa
import pytest
from openlineage.client.serde import Serde

from lakebound.errors import SettingError
from lakebound.landing.lineage_events import Landed, LineageRun, LineageTable, State, make_event
from lakebound.landing.lineage_names import DatasetName
from lakebound.landing.lineage_settings import (
    LineageSettings,
    lineage_environment,
    load_lineage_settings,
    shown_lineage_environment,
)
from lakebound.settings import lineage_interval_seconds

OFFSETS_SCHEMA = json.loads((Path(__file__).parents[3] / "docs" / "lineage-offsets.schema.json").read_text())
RUN = LineageRun(
    run_id="01938c5e-0000-7000-8000-000000000000",
    namespace="production",
    pipeline="orders",
    bootstrap_servers="kafka:9092",
    topics=("orders", "returns"),
    started_at=1_700_000_000.0,
    spark_version="4.1.3",
)
SCHEMA = pa.schema(
    [
        pa.field("id", pa.int64()),
        pa.field("items", pa.list_(pa.struct([pa.field("sku", pa.string())]))),
        pa.field("tags", pa.map_(pa.string(), pa.int32())),
    ]
)
TABLES = [
    LineageTable(
        "iceberg:sales.orders",
        DatasetName("s3://lake", "iceberg/sales/orders"),
        DatasetName("https://catalog", "sales.orders"),
        "iceberg",
        SCHEMA,
    ),
    LineageTable("delta:quarantine.orders", DatasetName("file", "/lake/quarantine/orders"), None, "delta", SCHEMA),
]
TOLD = {"iceberg:sales.orders": Landed(100, 5000, 2, "7", {"orders": {0: 60}})}
LANDED = {
    "iceberg:sales.orders": Landed(250, 9000, 5, "9", {"orders": {1: 150, 0: 101}}),
    "delta:quarantine.orders": Landed(1, 700, 1, "3"),
}


def told(state: State, error: str | None = None) -> dict[str, Any]:
    event = make_event(RUN, state, 1_700_000_300.0, TABLES, LANDED, TOLD, error=error)
    return json.loads(Serde.to_json(event))  # type: ignore[no-any-return]


def test_an_event_names_job_run_inputs_and_outputs() -> None:
    event = told("RUNNING")
    assert event["eventType"] == "RUNNING"
    assert event["eventTime"] == "2023-11-14T22:18:20.000+00:00"
    assert event["run"]["runId"] == RUN.run_id
    assert (event["job"]["namespace"], event["job"]["name"]) == ("production", "orders")
    assert event["job"]["facets"]["jobType"]["processingType"] == "STREAMING"
    assert event["producer"].startswith("urn:lakebound:")
    assert [(one["namespace"], one["name"]) for one in event["inputs"]] == [
        ("kafka://kafka:9092", "orders"),
        ("kafka://kafka:9092", "returns"),
    ]
    assert [(one["namespace"], one["name"]) for one in event["outputs"]] == [table.name for table in TABLES]
    engine = event["run"]["facets"]["processing_engine"]
    assert (engine["name"], engine["version"]) == ("spark", "4.1.3")
    assert "errorMessage" not in event["run"]["facets"]


def test_an_output_tells_its_columns_and_its_name_in_the_catalog() -> None:
    table, quarantine = told("START")["outputs"]
    columns = table["facets"]["schema"]["fields"]
    assert [(column["name"], column["type"]) for column in columns] == [("id", "int64"), ("items", "array"), ("tags", "map")]
    (element,) = columns[1]["fields"]
    assert (element["name"], element["type"]) == ("_element", "struct")
    assert [(part["name"], part["type"]) for part in element["fields"]] == [("sku", "string")]
    assert [(part["name"], part["type"]) for part in columns[2]["fields"]] == [("key", "string"), ("value", "int32")]
    (alias,) = table["facets"]["symlinks"]["identifiers"]
    assert alias == {"namespace": "https://catalog", "name": "sales.orders", "type": "TABLE"}
    assert table["facets"]["storage"]["storageLayer"] == "iceberg"
    assert "symlinks" not in quarantine["facets"]


def test_counts_are_those_since_the_last_event_and_offsets_are_those_landed() -> None:
    table, quarantine = told("COMPLETE")["outputs"]
    statistics = table["outputFacets"]["outputStatistics"]
    assert (statistics["rowCount"], statistics["size"], statistics["fileCount"]) == (150, 4000, 3)
    assert table["facets"]["version"]["datasetVersion"] == "9"
    offsets = table["facets"]["lakebound_offsets"]
    assert offsets["nextOffsets"] == {"orders": {"0": 101, "1": 150}}
    jsonschema.validate(offsets, OFFSETS_SCHEMA)
    assert offsets["_schemaURL"] == OFFSETS_SCHEMA["$id"]
    assert quarantine["outputFacets"]["outputStatistics"]["rowCount"] == 1
    assert "lakebound_offsets" not in quarantine["facets"]


def test_only_a_failure_tells_an_error() -> None:
    assert told("FAIL", "the lease is lost")["run"]["facets"]["errorMessage"]["message"] == "the lease is lost"


def test_nothing_is_sent_unless_the_environment_names_where_to(tmp_path: Path) -> None:
    file = tmp_path / "openlineage.yml"
    file.touch()
    assert not load_lineage_settings({}).is_on
    assert not load_lineage_settings({"OPENLINEAGE_NAMESPACE": "production", "OPENLINEAGE_API_KEY": "k"}).is_on
    assert not load_lineage_settings({"OPENLINEAGE_URL": "https://marquez", "OPENLINEAGE_DISABLED": "True"}).is_on
    assert load_lineage_settings({"OPENLINEAGE_URL": "https://marquez"}) == LineageSettings(url="https://marquez")
    assert load_lineage_settings({"OPENLINEAGE_CONFIG": str(file)}).is_on
    assert "s3cret" not in repr(load_lineage_settings({"OPENLINEAGE_URL": "https://m", "OPENLINEAGE_API_KEY": "s3cret"}))


@pytest.mark.parametrize(
    ("environ", "said"),
    [
        ({"OPENLINEAGE_URL": "https://me:s3cret@marquez"}, "OPENLINEAGE_API_KEY"),
        ({"OPENLINEAGE_URL": "marquez:5000"}, "OPENLINEAGE_URL"),
        ({"OPENLINEAGE_CONFIG": "/nowhere/openlineage.yml"}, "there is no file"),
    ],
)
def test_a_wrong_setting_is_refused_without_its_secret(environ: dict[str, str], said: str) -> None:
    with pytest.raises(SettingError, match=said) as refused:
        load_lineage_settings(environ)
    assert "s3cret" not in str(refused.value)


def test_the_key_travels_to_no_cluster() -> None:
    environ = {"OPENLINEAGE_URL": "https://marquez", "OPENLINEAGE_API_KEY": "s3cret", "OPENLINEAGE_CLIENT_LOGGING": "DEBUG"}
    assert lineage_environment(environ) == {"OPENLINEAGE_URL": "https://marquez", "OPENLINEAGE_API_KEY": "s3cret"}
    assert shown_lineage_environment(environ) == {"OPENLINEAGE_URL": "https://marquez"}
    assert shown_lineage_environment({"OPENLINEAGE_URL": "https://me:s3cret@marquez"}) == {}


def test_the_time_between_two_events_is_a_number_of_seconds() -> None:
    assert lineage_interval_seconds({}) == 300
    assert lineage_interval_seconds({"LAKEBOUND_LINEAGE_SECONDS": "60"}) == 60
    for wrong in ("0", "soon", "inf", "nan"):
        with pytest.raises(SettingError, match="LAKEBOUND_LINEAGE_SECONDS"):
            lineage_interval_seconds({"LAKEBOUND_LINEAGE_SECONDS": wrong})
