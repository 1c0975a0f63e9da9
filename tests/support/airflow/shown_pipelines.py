"""The state files of many made-up pipelines, as applications and sources write them, for the page that shows them."""

from __future__ import annotations

import os
import time
from dataclasses import replace
from pathlib import Path

import yaml

from lakebound.alerts.model import Alert, Memory
from lakebound.alerts.store import AlertState, AlertStore
from lakebound.control.crash_loop import CrashLoop
from lakebound.control.desired import change_desired
from lakebound.control.findings import Finding, Severity, write_findings
from lakebound.control.folder import ControlFolder, write_json
from lakebound.control.incidents import record_incident
from lakebound.control.process_identity import identity_of
from lakebound.control.progress import Progress, RecentRecords, TableProgress, write_progress
from lakebound.control.submission import Owner, Submission, write_submission
from lakebound.settings import Settings, load_settings
from lakebound.spec.load import load_file
from lakebound.spec.source import source_hash
from tests.support.streams.stand_ins import ORDERS

MARKUP = '<img src=x onerror="document.title=1"><script>document.title=2</script>&amp;'
"""Text that must stay text."""


def shown_settings(folder: Path) -> Settings:
    """Return places of a test's own."""
    (folder / "pipelines").mkdir(exist_ok=True)
    return replace(load_settings({}), home=folder / "home", pipelines=folder / "pipelines")


def write_many(settings: Settings, count: int) -> list[str]:
    """Write YAML and state of pipelines: most run, some fail, wait, are stopped or were never started; return their names."""
    names = [f"pipeline_{number:03d}" for number in range(count)]
    for number, name in enumerate(names):
        _declare(settings, name)
        kind = number % 10
        if kind == 9:
            continue  # never started
        control = ControlFolder(settings.home, name)
        _run(settings, control, number, waits=kind == 7)
        if kind == 5:
            change_desired(control, "stopped", reason=f"no need today {MARKUP}", by="ada")
        if kind == 3:
            _complain(control)
    AlertStore(settings.home).write(AlertState(memory=Memory(alerts=tuple(_alert(name) for name in names[3::10]))))
    return names


def write_crash_loop(settings: Settings, name: str) -> None:
    """Write a pipeline whose starts landed nothing."""
    _declare(settings, name)
    control = ControlFolder(settings.home, name)
    write_submission(control, Submission(app_id=f"{name}-g0-1", submitted_at=time.time() - 600))
    loop = CrashLoop(ends=tuple("abcdefgh"), at=time.time() - 60, reason=f"the transform fails {MARKUP}")
    write_json(control.crash_loop, loop.model_dump(mode="json"))


def _declare(settings: Settings, name: str) -> None:
    spec = {**ORDERS, "pipeline": name, "tables": [{"format": "delta", "name": f"lake.{name}"}], "quarantine_samples": 3}
    (settings.pipelines / f"{name}.yaml").write_text(yaml.safe_dump(spec))


def _run(settings: Settings, control: ControlFolder, number: int, *, waits: bool) -> None:
    """Write the files of an application that this process stands for."""
    now, app_id = time.time(), f"{control.pipeline}-g0-1"
    made_from = source_hash(load_file(settings.pipelines / f"{control.pipeline}.yaml"), settings.apps)
    owner = Owner(dag_id=f"ingest__{control.pipeline}", run_id="scheduled__1", task_id="stream")
    submission = Submission(app_id=app_id, submitted_at=now - 900, source_hash=made_from, owner=owner)
    write_submission(control, submission.led_by(identity_of(os.getpid())))
    write_progress(
        control,
        Progress(
            pipeline=control.pipeline,
            app_id=app_id,
            epoch=number + 1,
            source_hash=made_from,
            state="waiting" if waits else "running",
            waiting_for=f"the broker {MARKUP}" if waits else None,
            waiting_since=now - 40 if waits else None,
            started_at=now - 890,
            updated_at=now,
            batch=4000 + number,
            lane="driver",
            records=120_000 + number,
            recent=RecentRecords(
                over_seconds=300,
                newest_at=now,
                records=10_000,
                quarantined=number,
                reasons={"not_json": number} if number else {},
            ),
            high_water_marks={"orders": {0: 40_000 + number, 1: 60_000}},
            latest_offsets={"orders": {0: 40_000 + 3 * number, 1: 60_002}},
            lag_records=2 + 2 * number,
            newest_record_ms=int((now - 2.4) * 1000),
            last_commit_at=now - 2.0,
            freshness_p99_seconds=0.3 + number / 50,
            durations_ms={"read": 12.25, "decode": 8.5, "write": 31.0, "commit": 44.125},
            tables={
                f"delta:lake.{control.pipeline}": TableProgress(version="812", committed_at=now - 2, commits=812, rows=119_000)
            },
        ),
    )


def _complain(control: ControlFolder) -> None:
    now = time.time()
    lag = Finding(
        cause="lag", severity=Severity.WARNING, what=f"the oldest record is old {MARKUP}", since=now - 300, runbook="lag"
    )
    write_findings(control, "doctor", [lag])
    for number in range(12):
        record_incident(
            control, "unclean_end", f"end {number} {MARKUP}", runbook="application-dead", outcome="it was started again"
        )


def _alert(name: str) -> Alert:
    now = time.time()
    return Alert(
        pipeline=name,
        concern="lag",
        lead="doctor:lag",
        severity=Severity.CRITICAL if name.endswith("13") else Severity.WARNING,
        what=f"the oldest waiting record is 5 minutes old; the limit is 1 minute {MARKUP}",
        since=now - 300,
        runbook="lag",
        first_seen=now - 300,
        opened_at=now - 240,
        told_at=now - 240,
        told_severity=Severity.WARNING,
    )
