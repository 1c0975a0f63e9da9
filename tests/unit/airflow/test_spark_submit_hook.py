"""What a batch application says goes to its own log; Airflow's log gets what is meant for a person."""

from __future__ import annotations

from pathlib import Path

from lakebound_airflow.hooks.spark_submit import NiceSparkSubmitHook

LINES = [
    "2026-11-20 10:00:00 INFO lakebound: validate: delta:shop.orders: 3 rows are read\n",
    "org.apache.spark.SparkException: [CAST_INVALID_INPUT] The value '4111-1111' cannot be cast to INT\n",
    "Submitted driver-20261120100000-0001\n",
    '{"card": "driver-4111"} and more of a record that only looks like one\n',
]


def test_airflow_sees_progress_and_the_drivers_id_alone(tmp_path: Path) -> None:
    hook = NiceSparkSubmitHook.__new__(NiceSparkSubmitHook)
    hook.log_file, hook._progress = tmp_path / "logs" / "validate-1.log", "validate: "
    assert list(hook._for_airflow(iter(LINES))) == [LINES[0], LINES[2]]
    assert hook.log_file.read_text() == "".join(LINES)
    assert hook.log_file.stat().st_mode & 0o077 == 0
