"""Thirty days of a made-up pipeline: rollups, readings of health, maintenance, an end of an application."""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Iterable

from lakebound.control.findings import Severity
from lakebound.control.folder import ControlFolder
from lakebound.control.histogram import Histogram, histogram_of
from lakebound.control.progress import Outcome, write_outcome
from lakebound.control.quarantine_samples import QuarantineSample, write_samples
from lakebound.control.recent_ledger import LandedBatch, RecentLedger, TableCommit, write_recent_ledger
from lakebound.control.rollup_files import append_buckets, rollup_file
from lakebound.control.rollups import HOUR, MINUTE, TEN_SECONDS, Bucket, Figures, Resolution, TableFigures
from lakebound.control.table_history import Grain, RewindTarget, TableHistory, write_table_history
from lakebound.inspection.validation.history import append, folder
from lakebound.inspection.validation.verdict import ExpectationResult, ValidatedRange
from lakebound.operations.maintenance.health_history import HealthReading, record_health
from tests.support.airflow import shown_pipelines

DAY = 86_400


def write_history(control: ControlFolder, now: float) -> None:
    """Write what a pipeline leaves that has run for 30 days, and was started anew two hours ago."""
    for resolution, seconds in ((TEN_SECONDS, 3600), (MINUTE, 2 * DAY), (HOUR, 30 * DAY)):
        append_buckets(control, resolution, list(_buckets(resolution, now - seconds, now)), now)
    write_recent_ledger(control, _ledger(now))
    write_samples(control, _samples(now))
    table = f"delta:lake.{control.pipeline}"
    write_table_history(control, {table: _table_history(now)})
    folder(control).mkdir()
    append(control, _validated(table, now - 900))
    readings = [_reading(table, now - 30 * DAY + 1800 * number) for number in range(48 * 30)]
    record_health(control, readings)
    runs = [_run(control.pipeline, now - 30 * DAY + 1800 * number) for number in range(48 * 30)]
    control.maintenance_history.write_text("".join(f"{json.dumps(run)}\n" for run in runs))
    ended = Outcome(
        app_id=f"{control.pipeline}-g0-0", verdict="stopped", reason="a deploy", started_at=now - 40 * DAY, ended_at=now - 7200
    )
    write_outcome(control, ended)


def copy_rollups(of: ControlFolder, to: Iterable[ControlFolder]) -> None:
    """Give other pipelines the same rollups."""
    for control in to:
        for resolution in (TEN_SECONDS, MINUTE, HOUR):
            target = rollup_file(control, resolution)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(rollup_file(of, resolution), target)


def _buckets(resolution: Resolution, since: float, now: float) -> Iterable[Bucket]:
    for at in range(resolution.start_of(since), resolution.start_of(now), resolution.seconds):
        wave = 1 + 0.6 * math.sin(at / 5000) + 0.3 * math.sin(at / 170)
        batches, records = max(1, resolution.seconds // 5), int(resolution.seconds * 400 * wave) + 1
        slow = 6.0 if at % 40_000 < 3000 else 1.0
        yield Bucket(at, _figures(batches, records, slow * wave, at))


def _figures(batches: int, records: int, slowness: float, at: int) -> Figures:
    quick, slow = histogram_of(0.25 * slowness, records - records // 20), histogram_of(0.9 * slowness, records // 20)
    bad = records // (200 if slowness > 5 else 5000)
    durations: Histogram = histogram_of(0.12 * slowness, batches)
    return Figures(
        tables={
            "delta:lake.orders": TableFigures(batches, records, float(at)),
            "iceberg:lake.lines": TableFigures(batches, 2 * records),
        },
        read=records,
        quarantined=bad,
        reasons=_reasons(bad),
        lag_records=int(50 * slowness**2),
        cpu_seconds=records / 250_000 + 0.02 * batches,
        freshness=quick.plus(slow),
        batches={"direct": durations, "driver": histogram_of(0.4 * slowness, 1)},
        steps={
            "direct": {
                "read": 0.02 * batches,
                "decode": 0.015 * batches,
                "write": 0.03 * batches * slowness,
                "commit": 0.04 * batches,
            },
            "driver": {"read": 0.1, "write": 0.12, "commit": 0.05},
        },
    )


def _reasons(bad: int) -> dict[str, int]:
    found = {f"does_not_fit: amount{shown_pipelines.MARKUP}": bad - bad // 3, "not_json": bad // 3}
    return {reason: times for reason, times in found.items() if times}


def _ledger(now: float) -> RecentLedger:
    """Two partitions, one with a hole, in line with the progress that ``shown_pipelines`` writes."""
    batches = tuple(_batch(now, number) for number in range(200))
    return RecentLedger(now - 4, {"orders": {0: ((0, 40_000),), 1: ((0, 31_000), (33_500, 60_000))}}, batches)


def _batch(now: float, number: int) -> LandedBatch:
    bad, back = 7 if number % 40 == 5 else 0, 200 - number
    ranges = {"orders": {0: ((40_000 - 60 * back, 40_060 - 60 * back),), 1: ((60_000 - 40 * back, 60_040 - 40 * back),)}}
    return LandedBatch(
        at=now - 4 - 0.4 * back,
        epoch=1,
        batch=4000 - back,
        ranges=ranges,
        partitions=2,
        read=100,
        quarantined=bad,
        reasons=_reasons(bad),
        lane="driver" if number % 9 else "direct",
        seconds=0.12 + number % 7 / 100,
        tables={"delta:lake.orders": TableCommit(str(812 - back), 100 - bad)},
    )


def _samples(now: float) -> list[QuarantineSample]:
    """Newest first, with markup where a record may have some."""
    texts = ('{"amount": "12,50"', '{"amount": -1e999, "note": "')
    return [
        QuarantineSample(
            reason=reason,
            at=now - 60 * number,
            topic="orders",
            partition=number % 2,
            offset=59_000 - number,
            error=f"amount: '12,50' is not a DECIMAL(12,2) {shown_pipelines.MARKUP}",
            key=f"order-{number}",
            value=f"{texts[number % 2]}{shown_pipelines.MARKUP}",
            value_bytes=40 + number,
        )
        for number, reason in enumerate(["does_not_fit: amount", "malformed_json"] * 3)
    ]


def _table_history(now: float) -> TableHistory:
    """An Iceberg table's shape of the past: fine near the end, coarse before it; a rewind two days ago."""
    ages = [*range(0, 900, 45), *range(900, 21_600, 1800), *range(21_600, 7 * DAY, 10_800)]
    kinds = {172_800: "reset", 10_800: "replay", 5400: "carry"}
    targets = tuple(
        RewindTarget(
            now - age - 5,
            str(812 - number),
            kinds.get(age, "land"),
            None if number == 0 else now + (900 if age < 900 else 6 * 3600 if age < 21_600 else 7 * DAY) - age,
        )
        for number, age in enumerate(ages)
    )
    grains = (Grain(900.0, 1.0), Grain(6 * 3600.0, 60.0), Grain(7.0 * DAY, 3600.0))
    return TableHistory(now - 600, targets[::-1], 812, grains)


def _reading(table: str, at: float) -> HealthReading:
    files = 40 + int(at / 600) % 90
    return HealthReading(
        at_ms=int(at * 1000), table=table, score=90.0, files=files, small_files=9, size_bytes=files * 9_000_000
    )


def _validated(table: str, at: float) -> ValidatedRange:
    """A range of which one expectation holds, and the other fails."""
    results = (
        ExpectationResult(label="id is unique within an hour", severity=Severity.WARNING, passed=True, checked=3600),
        ExpectationResult(
            label=f"amount is positive{shown_pipelines.MARKUP}",
            severity=Severity.WARNING,
            passed=False,
            checked=3600,
            unexpected=2,
            samples=("orders/1:59871", "orders/0:39904"),
            observed="SECRET-VALUE",
        ),
    )
    return ValidatedRange(
        claim="c", run_id="r", table=table, positions=((780, 812),), first="780", last="811", rows=3600, at=at, results=results
    )


def _run(pipeline: str, at: float) -> dict[str, object]:
    ms = int(at * 1000)
    return {
        "pipeline": pipeline,
        "run_id": f"r{ms}",
        "started_at_ms": ms,
        "ended_at_ms": ms + 40_000,
        "steps": [
            {
                "outcome": "done",
                "step": {"kind": "compact", "table": f"delta:lake.{pipeline}"},
                "seconds": 12.4,
                "files_before": 120,
                "files_after": 3,
                "bytes_rewritten": 40 << 20,
            }
        ],
    }
