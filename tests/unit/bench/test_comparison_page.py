"""The page shows work before none, compares only arms with the same work, and says which lanes there were."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from comparison_page import write_pages
from fsyncs import counts
from lane_shares import lanes_told, syncs_told
from lanes import count_lanes

from lakebound.control.histogram import histogram_of
from lakebound.control.rollups import Bucket, Figures


def run(arm: str, mean_ms: float, **more: Any) -> dict[str, Any]:
    figures = dict.fromkeys(("p50_ms", "p95_ms", "p99_ms", "max_ms"), mean_ms)
    table = {"mean_ms": mean_ms, **figures, "rows": 180, "commits": 10, "files": 10, "bytes": 1000}
    costs = dict.fromkeys(("cpu_seconds", "peak_rss_megabytes", "broker_cpu_seconds", "generator_cpu_seconds"), 1.0)
    load = {"rate": 2000, "partitions": 2, "record_bytes": 180}
    base = {"arm": arm, "load": load, "repeat": 0, "warm_up_seconds": 1, "seconds": 0.1, "at": "2026-01-01 00:00"}
    return {**base, "tables": {"iceberg": table}, **costs, **more}


def test_arms_with_a_transform_come_first_and_are_compared_with_their_like(tmp_path: Path) -> None:
    runs = [
        run("lakebound:iceberg:0ms", 50.0),
        run("flink:250ms", 200.0),
        run("lakebound:iceberg:0ms:spark", 80.0),
        run("lakebound:iceberg:0ms:encode", 60.0, lanes={"direct": 3, "driver": 1}, syncs_per_second=40.0),
        run("flink:250ms:encode", 240.0, checks={"iceberg": {"rows": 5, "missing": 2, "surplus": 1, "content": ""}}),
        run("flink:250ms:enrich", 10.0),
    ]
    (tmp_path / "benchmarks").mkdir()
    (tmp_path / "benchmarks" / "comparison.jsonl").write_text("".join(f"{json.dumps(one)}\n" for one in runs))
    write_pages(tmp_path)
    page = (tmp_path / "benchmarks.md").read_text()
    ratios = [line for line in page.splitlines() if line.startswith(("| `encode`", "| one Iceberg"))]
    assert [line.split(" | ")[1] for line in ratios] == [
        "mean 0.25, p99 0.25 (flink:250ms:encode); CPU s per million 1.00",
        "mean 0.25, p99 0.25 (flink:250ms)",
    ]
    titles = [line for line in page.splitlines() if line.startswith("## ") and "records/s" in line]
    assert [title.partition(":")[0] for title in titles[:2]] == [
        "## A transform that encodes",
        "## A transform that joins a reference table",
    ]
    assert "| 100.0% | direct 75%, driver 25% | 40.0 |" in page
    assert "| 100.0%; **3 rows are missing or too many** | – | – |" in page


def test_lanes_are_summed_over_the_runs_and_only_whole_buckets_count() -> None:
    batches = {"direct": histogram_of(0.1, 4), "cluster": histogram_of(1.0)}
    buckets = [Bucket(at, Figures(batches=batches)) for at in (90, 100, 110, 120)]
    assert count_lanes(buckets, 95_000, 125_000) == {"direct": 8, "cluster": 2}
    assert lanes_told([{"direct": 5}, {}, {"cluster": 3, "direct": 4}]) == "direct 75%, cluster 25%"
    assert lanes_told([{}]) == "–"


def test_syncs_are_told_only_where_they_were_counted() -> None:
    assert syncs_told([None, 1.0, 3.0]) == "2.0" and syncs_told([None]) == "–"
    assert counts("7,,syscalls:sys_enter_fsync,1,100.00,,\n5,,syscalls:sys_enter_fdatasync,1,100.00,,\n") == 12
    assert counts("<not supported>,,syscalls:sys_enter_fsync,0,100.00,,\n5,,syscalls:sys_enter_fdatasync,1,100.00,,\n") is None
    assert counts("") is None
