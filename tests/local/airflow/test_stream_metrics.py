"""A stream's figures leave by Airflow's own OpenTelemetry: a real OTLP endpoint gets them as a triggerer sends them."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from tests.support.waiting import HANGS_SECONDS

from lakebound.control.folder import ControlFolder
from lakebound.control.progress import Progress, TableProgress
from lakebound_airflow.stream_metrics import counts_of, gauges_of

pytestmark = [pytest.mark.local, pytest.mark.timeout(180)]

TELL = """
import sys, time
from pathlib import Path
from airflow.configuration import conf
from airflow.observability import stats
from airflow.observability.metrics import stats_utils
from lakebound.control.folder import ControlFolder
from lakebound.control.progress import Progress, TableProgress, write_progress
from lakebound_airflow.stream_metrics import StreamMetrics

# As airflow.jobs.triggerer_job_runner does.
stats.initialize(factory=stats_utils.get_stats_factory(), export_legacy_names=conf.getboolean("metrics", "legacy_names_on"))
control, now = ControlFolder(Path(sys.argv[1]), "orders"), time.time()
metrics, foreign = StreamMetrics(control, "a"), StreamMetrics(control, "b")
metrics.tell(now - 60)  # nothing is there yet
for number in range(3):
    table = TableProgress(version="1", committed_at=now, commits=number, rows=70 * number)
    write_progress(control, Progress(pipeline="orders", app_id="a", started_at=1.0, updated_at=now, records=100 * number,
        quarantined=5 * number, last_commit_at=now - 3, freshness_p99_seconds=0.5, high_water_marks={"t": {0: 90}},
        latest_offsets={"t": {0: 97}}, lag_records=7, tables={"delta:lake.orders": table}))
    metrics.tell(now + 20 * number)
    metrics.tell(now + 20 * number + 1)
    foreign.tell(now + 20 * number)
"""
"""What a triggerer does with one stream. Airflow sends what is left when the process ends."""


@pytest.fixture
def endpoint() -> Iterator[tuple[int, list[bytes]]]:
    """The port of an OTLP endpoint by HTTP, and what it got."""
    got: list[bytes] = []

    class Endpoint(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            got.append(self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Endpoint)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server.server_address[1], got
    server.shutdown()
    thread.join(10)


def test_an_otlp_endpoint_gets_gauges_and_counters_with_the_pipeline(tmp_path: Path, endpoint: tuple[int, list[bytes]]) -> None:
    port, got = endpoint
    environment = {
        **os.environ,
        "AIRFLOW_HOME": str(tmp_path / "airflow"),
        "AIRFLOW__METRICS__OTEL_ON": "True",
        "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT": f"http://127.0.0.1:{port}/v1/metrics",
        "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf",
    }
    command = [sys.executable, "-c", TELL, str(tmp_path)]
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=HANGS_SECONDS, check=False)
    assert ran.returncode == 0, ran.stderr[-2000:]
    assert "could not be told" not in ran.stderr
    found: dict[str, tuple[str, float]] = {}
    for body in got:
        request = ExportMetricsServiceRequest.FromString(body)
        for metric in (
            one for resource in request.resource_metrics for scope in resource.scope_metrics for one in scope.metrics
        ):
            points = getattr(metric, metric.WhichOneof("data")).data_points
            for point in (one for one in points if "lakebound" in metric.name):
                [tag] = [one.value.string_value for one in point.attributes if one.key == "pipeline"]
                found[metric.name] = (tag, point.as_double or point.as_int)
    assert found.pop("airflow.lakebound.last_commit_age_seconds")[1] > 3
    assert found == {
        "airflow.lakebound.lag_records": ("orders", 7),
        "airflow.lakebound.freshness_p99_seconds": ("orders", 0.5),
        "airflow.lakebound.records_read": ("orders", 200),
        "airflow.lakebound.records_quarantined": ("orders", 10),
        "airflow.lakebound.rows_landed": ("orders", 140),
    }


def test_what_is_not_known_is_left_out_and_no_counter_goes_back(tmp_path: Path) -> None:
    begun = Progress(pipeline=ControlFolder(tmp_path, "orders").pipeline, app_id="a", started_at=1.0, updated_at=2.0)
    assert list(gauges_of(begun, 5.0)) == []
    table = TableProgress(version="1", committed_at=1.0, commits=1, rows=9)
    later = begun.model_copy(update={"records": 9, "tables": {"delta:t": table}})
    assert list(counts_of(begun, later)) == [("records_read", 9), ("rows_landed", 9)]
    assert list(counts_of(later, begun)) == []
