"""Records that were good, and are bad when they are read again for another table, go to quarantine: they are nowhere else."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.support.tables.value_lanes import LaneWorld, Sent

from lakebound.landing.rollup_recorder import Lane
from lakebound.spec.pipeline import PipelineSpec

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("as_applications_write")]

VALUES = [b'{"n":1}', b"{}", b'{"n":null}', b'{"n":"x"}', b'{"n":2}', b"{}"]
DELTA, ICEBERG, ADDED = "delta:shop.values", "iceberg:shop.values", "delta:shop.more"
FITS_NEVER, FITS_LATER_NOT = {3}, {1, 2, 5}


def world(session: SparkSession, folder: Path, way: Lane, schema: str, *tables: str) -> LaneWorld:
    body = {
        "pipeline": "orders",
        "topics": ["orders"],
        "connection": {"bootstrap_servers": "127.0.0.1:1"},
        "value": {"format": "json", "schema": schema},
        "freshness": "1s",
        "tables": [dict(zip(("format", "name"), one.split(":"), strict=True)) for one in tables],
        "quarantine": {"format": "delta", "name": "quarantine.values"},
    }
    return LaneWorld(session, folder, PipelineSpec.model_validate(body), way)


@pytest.mark.parametrize("way", ["driver", "cluster"])
def test_a_table_is_added_and_the_schema_is_stricter_by_then(session: SparkSession, tmp_path: Path, way: Lane) -> None:
    sent = Sent(0, VALUES, [1_700_000_000_000] * len(VALUES))
    first = world(session, tmp_path, way, "n INT", DELTA)
    first.land(sent)
    assert first.read().bad.keys() == FITS_NEVER
    first.close()

    second = world(session, tmp_path, way, "n INT NOT NULL", DELTA, ICEBERG)
    second.land(sent)
    landed = second.read()
    second.close()
    everything = set(range(len(VALUES)))
    assert landed.tables[DELTA].keys() == everything - FITS_NEVER, "it was landed before, and stays"
    assert landed.tables[ICEBERG].keys() == everything - FITS_NEVER - FITS_LATER_NOT
    assert landed.bad.keys() == FITS_NEVER | FITS_LATER_NOT
    assert all(len(rows) == 1 for rows in landed.bad.values())
    assert second.counts.quarantined == len(FITS_NEVER | FITS_LATER_NOT)

    # Once more, for another table: what is in quarantine is not put there twice.
    third = world(session, tmp_path, way, "n INT NOT NULL", DELTA, ICEBERG, ADDED)
    third.land(sent)
    again = third.read()
    third.close()
    assert again.bad == landed.bad
    assert again.tables[ADDED].keys() == landed.tables[ICEBERG].keys()
    assert third.counts.quarantined == len(landed.bad)
