"""``lakebound health``: what it says of tables that are there, missing, unreadable and sick, and what it keeps."""

from __future__ import annotations

import json
from typing import Any

import yaml
from tests.support.streams.command_line import ORDERS, answer, lakebound, settings
from tests.support.tables.local_tables import Lander, make_table

from lakebound.control.folder import ControlFolder
from lakebound.operations.maintenance.health_history import read_health_history
from lakebound.settings import Settings
from lakebound.spec.pipeline import PipelineSpec
from lakebound.tables.places import places_of

__all__ = ["settings"]

TABLES = ["delta:lake.orders", "iceberg:lake.orders", "delta:quarantine.orders"]


def land(settings: Settings, batches: int) -> None:
    """Make the tables of ``orders``, but not its quarantine, and land so many batches of a row in each."""
    for spec in PipelineSpec.model_validate(ORDERS).tables:
        table = make_table(spec, places_of(settings, "default"))
        lander = Lander(table, table.read_ledger())
        for number in range(batches):
            lander.land(number, number + 1)


def declare(settings: Settings, **maintenance: Any) -> None:
    """Write the pipeline's YAML with a maintenance policy."""
    (settings.pipelines / "orders.yaml").write_text(yaml.safe_dump({**ORDERS, "maintenance": maintenance}))


def rows(body: Any) -> dict[str, dict[str, Any]]:
    return {row["table"]: row for row in body["tables"]}


def test_where_nothing_exists(settings: Settings) -> None:
    body = answer("health")
    assert [(row["table"], row["exists"], row["health"], row["problem"]) for row in body["tables"]] == [
        (table, False, None, None) for table in TABLES
    ]
    shown = lakebound("health", "orders").stdout
    assert shown.count("no table yet") == 3 and "delta:quarantine.orders" in shown
    lakebound("health", "--record")
    assert not settings.warehouse.exists() and not settings.home.exists(), "looking makes nothing"


def test_healthy_tables_are_a_line_each(settings: Settings) -> None:
    land(settings, 3)
    found = rows(answer("health", "orders"))
    for table in TABLES[:2]:
        health = found[table]["health"]
        assert (health["files"], health["small_files"], health["ideal_files"], health["removable_files"]) == (3, 3, 1, 2)
        assert health["score"] > 90 and health["read_amplification"] > 2 and health["metadata"]["snapshots"] == 4
    shown = lakebound("health").stdout
    assert "3 commits" not in shown and "4 commits in the tail" in shown and "3 manifests" in shown
    assert "compaction would leave" not in shown, "a healthy table is not explained unless it is asked for"


def test_a_sick_table_is_explained(settings: Settings) -> None:
    declare(settings, compaction={"min_small_files": 2, "target_file_bytes": 1024 * 1024})
    land(settings, 12)
    shown = lakebound("health").stdout
    assert shown.count("12 of 12 files are below 768 KiB: compaction would leave 1") == 2
    assert "all: 12 files of" in shown and "11 fewer after compaction" in shown and "file sizes: 12 of at most 64 KiB" in shown


def test_one_table_is_explained_however_healthy(settings: Settings) -> None:
    land(settings, 1)
    shown = lakebound("health", "orders", "--table", "iceberg:lake.orders").stdout
    assert "iceberg:lake.orders: score 100, no deductions" in shown
    assert "delta:" not in shown and "1 of at most 64 KiB" in shown
    assert list(rows(answer("health", "orders", "--table", "lake.orders"))) == TABLES[:2]


def test_nothing_is_kept_unless_it_is_asked_for(settings: Settings) -> None:
    land(settings, 1)
    control = ControlFolder(settings.home, "orders")
    lakebound("health")
    answer("health", "orders")
    assert not control.health_history.exists()
    assert rows(answer("health", "orders", "--record"))["delta:lake.orders"]["trend"] is None
    assert [(one.table, one.files) for one in read_health_history(control)] == [(table, 1) for table in TABLES[:2]]


def test_the_trend_since_the_oldest_reading(settings: Settings) -> None:
    land(settings, 1)
    lakebound("health", "--record")
    control = ControlFolder(settings.home, "orders")
    kept = [json.loads(line) for line in control.health_history.read_text().splitlines()]
    hour_ago = [{**line, "at_ms": line["at_ms"] - 3_600_000, "files": 41, "score": 60} for line in kept]
    control.health_history.write_text("".join(json.dumps(line) + "\n" for line in hour_ago))
    trend = rows(answer("health", "orders"))["iceberg:lake.orders"]["trend"]
    assert (trend["files"], trend["score"]) == (-40, 40)
    assert "-40 files, +40 in 60 min" in lakebound("health").stdout


def test_a_table_that_cannot_be_read_hides_no_other(settings: Settings) -> None:
    land(settings, 1)
    for file in (settings.warehouse / "delta" / "lake" / "orders" / "_delta_log").glob("*"):
        file.write_text("not a log")
    body = rows(answer("health", code=1))
    assert body["delta:lake.orders"]["exists"] and "cannot be read" in body["delta:lake.orders"]["problem"]
    assert body["iceberg:lake.orders"]["health"]["files"] == 1
    shown = lakebound("health", code=1).stdout
    assert "unreadable" in shown and "the metadata of delta:lake.orders cannot be read" in shown


def test_wrong_names(settings: Settings) -> None:
    assert "there is no pipeline 'nope'" in lakebound("health", "nope", code=1).stderr
    assert "has no table 'x'; its tables are: delta:lake.orders" in lakebound("health", "orders", "--table", "x", code=1).stderr
    lakebound("health", "--table", "lake.orders", code=2)


def test_problems_of_other_pipelines_are_told(settings: Settings) -> None:
    (settings.pipelines / "wrong.yaml").write_text("pipeline: [")
    assert "wrong.yaml:1: YAML cannot be read" in lakebound("health").stdout
    assert len(answer("health")["problems"]) == 1
