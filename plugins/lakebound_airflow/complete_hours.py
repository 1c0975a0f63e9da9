"""For DAGs of your own that run once per complete hour of a table: their schedule, and their first tasks."""

from __future__ import annotations

from airflow.sdk import PartitionedAssetTimetable, StartOfDayMapper, StartOfHourMapper

from lakebound.control.complete_hours import DAY_FORMAT, HOUR_FORMAT
from lakebound.spec.complete_hours import HourUnit
from lakebound_airflow.assets import complete_hours_asset
from lakebound_airflow.operators.take_hour import AskForMissedHoursOperator, TakeHourOperator


def complete_hours(pipeline: str, table: str, unit: HourUnit = "hour") -> PartitionedAssetTimetable:
    """Return the schedule of a DAG that runs for each complete hour; its run has the hour as partition key and date.

    Args:
        pipeline: Name of the pipeline, whose YAML has a block ``complete_hours``.
        table: Id of the table, ``delta:name`` or ``iceberg:name``.
        unit: As in that block.
    """
    asset = complete_hours_asset(pipeline, table)
    mapper = (
        StartOfHourMapper(input_format=HOUR_FORMAT, output_format=HOUR_FORMAT)
        if unit == "hour"
        else StartOfDayMapper(input_format=DAY_FORMAT, output_format=DAY_FORMAT)
    )
    return PartitionedAssetTimetable(assets=asset, default_partition_mapper=mapper)


def take_hour(pipeline: str, table: str) -> TakeHourOperator:
    """Return the first task of such a DAG: it takes the hour once, and its XCom says what to read.

    Beside what follows it, hours are asked for that the DAG missed while it was paused.

    Args:
        pipeline: Name of the pipeline.
        table: Id of the table.
    """
    taken = TakeHourOperator(task_id="take_hour", pipeline=pipeline, table=table)
    asks = AskForMissedHoursOperator(
        task_id="ask_for_missed_hours", pipeline=pipeline, table=table, take_task_id=taken.task_id, retries=2
    )
    taken >> asks
    return taken
