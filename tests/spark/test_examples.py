"""The transforms of the examples give the rows that their pages promise."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import transforms
from lakebound_spark.testing import Landed, land, load_file

pytestmark = pytest.mark.spark

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture
def landed_by(session: SparkSession, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return what lands records by the pipeline of an example."""

    def landed(example: str, pipeline: str, records: list[dict[str, Any]]) -> Landed:
        monkeypatch.setattr(transforms, "__path__", [*transforms.__path__, str(EXAMPLES / example / "transforms")])
        return land(load_file(EXAMPLES / example / "pipelines" / f"{pipeline}.yaml"), [json.dumps(one) for one in records])

    return landed


def test_a_total_is_compared_with_the_sum_of_the_items_exactly(landed_by: Any) -> None:
    ten_cents = {"sku": "a", "quantity": 3, "unit_price": 0.10}
    order = {"order_id": "o", "customer_id": 1, "currency": "eur", "placed_at": "2026-01-02T23:30:00Z"}
    landed = landed_by(
        "order_ingestion",
        "shop_orders",
        [
            {**order, "total": 0.30, "items": [ten_cents]},
            {**order, "total": 0.31, "items": [ten_cents]},
            {**order, "total": 0.0, "items": []},
            {**order, "total": 0.30, "items": [ten_cents, {"sku": "b", "quantity": 1}]},
            {**order, "items": None},
            {"order_id": "o", "customer_id": 1},
        ],
    )
    found = [(row["total_is_right"], row["item_count"], row["currency"], str(row["placed_on"])) for row in landed.rows]
    eur = ("EUR", "2026-01-02")
    assert found == [(True, 1, *eur), (False, 1, *eur), (True, 0, *eur), (False, 2, *eur), (False, 0, *eur)]
    (bad,) = landed.bad
    assert "placed_at" in bad


def test_each_reading_lands_with_all_that_is_unusual_about_it(landed_by: Any) -> None:
    # Kafka's time of each record is 2026-01-01T00:00:00Z.
    usual = {
        "device_id": "d",
        "sensor": "temperature",
        "event_time": "2025-12-31T23:59:59Z",
        "value": 21.0,
        "battery_percent": 80,
    }
    changes: list[tuple[dict[str, Any], list[str]]] = [
        ({}, []),
        ({"value": 35.0}, []),
        ({"value": 35.001}, ["out_of_range"]),
        ({"value": None}, ["no_value"]),
        ({"sensor": "radiation"}, ["unknown_sensor"]),
        ({"battery_percent": None}, []),
        ({"event_time": "2025-12-31T23:00:00Z"}, []),
        ({"event_time": "2025-12-31T22:59:59Z", "battery_percent": 9}, ["low_battery", "late"]),
    ]
    landed = landed_by("iot_anomalies", "device_readings", [{**usual, **change} for change, _ in changes])
    assert landed.bad == []
    assert [row["anomalies"] for row in landed.rows] == [expected for _, expected in changes]
    assert [row["is_anomaly"] for row in landed.rows] == [bool(expected) for _, expected in changes]
