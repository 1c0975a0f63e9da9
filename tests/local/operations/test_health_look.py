"""Looking at all tables of a pipeline keeps a reading of each."""

from __future__ import annotations

from tests.support.tables.local_tables import make_table
from tests.support.tables.maintained import maintained_pipeline, small_commits

from lakebound.control.folder import ControlFolder
from lakebound.operations.maintenance.health_history import read_health_history
from lakebound.operations.maintenance.health_look import record_health_now
from lakebound.tables.places import Places


def test_each_table_that_can_be_read_gives_a_reading(at: Places) -> None:
    pipeline = maintained_pipeline({})
    delta, iceberg = pipeline.tables
    control = ControlFolder(at.home, pipeline.pipeline)
    assert record_health_now(pipeline, at) == [] and not control.health_history.exists()

    small_commits(iceberg, at, 3)
    make_table(delta, at)
    (at.delta_path(delta) / "_delta_log" / f"{0:020d}.json").write_text("torn")
    found = record_health_now(pipeline, at)
    assert [(reading.table, reading.files) for reading in found] == [(iceberg.id, 3)]
    assert read_health_history(control) == found
    record_health_now(pipeline, at)
    assert len(read_health_history(control)) == 2
