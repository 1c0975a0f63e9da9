"""The disk of the state is really full, or read-only: alerts arrive at a real endpoint, once, and so does the end."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml
from tests.support.airflow.alerting import GONE, ROUTES, hook_fixture, mailbox_fixture, run  # noqa: F401
from tests.support.airflow.receivers import Mailbox, WebhookEndpoint
from tests.support.airflow.watching import RunningWatch, watch_fixture  # noqa: F401
from tests.support.full_disk import SmallDisk, small_disk
from tests.support.streams.long_form import only_in_long_form
from tests.support.streams.stand_ins import orders, settings_fixture  # noqa: F401

from lakebound.alerts.store import AlertStore
from lakebound.control import fallback_files
from lakebound.control.findings import write_findings
from lakebound.control.folder import ControlFolder
from lakebound.settings import Settings

WEBHOOK_ALONE = {"channels": {"hook": ROUTES["channels"]["hook"]}, "routes": [{"to": ["hook"]}]}
StartWatch = Callable[..., RunningWatch]
POLICY = {"open_after_seconds": 60, "resolve_after_seconds": 60}


@pytest.fixture
def disk(settings: Settings) -> Iterator[SmallDisk]:
    """The disk of the state alone; copies of files on the machine's RAM disk go with it."""
    with small_disk(settings.home) as made:
        yield made
        for folder in (settings.home / "alerts", *(path for path in settings.home.rglob("*") if path.is_dir())):
            for ram in fallback_files.ram_disks():
                if own := fallback_files._own_folder(ram, folder):
                    shutil.rmtree(own)


@pytest.fixture
def control(settings: Settings, disk: SmallDisk) -> ControlFolder:
    """The folder of the pipeline ``orders``, whose alerts go to the endpoint."""
    (settings.pipelines.parent / "alerts.yaml").write_text(yaml.safe_dump({**ROUTES, "policy": POLICY}))
    found = orders(settings).control
    write_findings(found, "doctor", [])
    return found


def told(hook: WebhookEndpoint) -> list[tuple[str, str, str]]:
    return [
        (body["kind"], body["pipeline"], alert["cause"])
        for body in hook.bodies
        for alert in sorted(body["alerts"], key=lambda one: str(one["cause"]))
    ]


def test_a_full_disk_is_told_once_with_what_goes_wrong_meanwhile_and_so_is_its_end(
    settings: Settings, control: ControlFolder, disk: SmallDisk, hook: WebhookEndpoint, mailbox: Mailbox
) -> None:
    run(settings)
    assert told(hook) == []
    disk.fill()
    mount = str(disk.folder)
    run(settings, 60)
    write_findings(control, "doctor", [GONE])
    for later in range(120, 480, 60):
        run(settings, later)
    opened = [("opened", "*", mount), ("opened", "*", "unwritable"), ("opened", "orders", GONE.cause)]
    assert sorted(told(hook)) == sorted(opened)
    by_cause = {alert["cause"]: alert for body in hook.bodies for alert in body["alerts"]}
    assert by_cause["unwritable"]["what"].startswith(f"{mount} cannot be written (No space left on device)")
    assert by_cause[mount]["what"].startswith(f"the disk {mount} (state, ")
    assert {by_cause[cause]["runbook"] for cause in (mount, "unwritable")} == {"disk-full"}
    assert by_cause[mount]["severity"] == by_cause["unwritable"]["severity"] == "critical"

    disk.make_room()
    write_findings(control, "doctor", [])
    for later in range(480, 840, 60):
        run(settings, later)
    resolved = [("resolved", *what) for _, *what in opened]
    assert sorted(told(hook)[3:]) == sorted(resolved)
    store = AlertStore(settings.home)
    assert fallback_files.newest_copy(store.file) == store.file, "the disk of the state has it again"
    assert store.read().outbox == ()


def test_a_message_that_no_channel_took_while_the_disk_was_full_is_not_lost(
    settings: Settings, control: ControlFolder, disk: SmallDisk, hook: WebhookEndpoint, mailbox: Mailbox
) -> None:
    hook.status = 503
    disk.fill()
    write_findings(control, "doctor", [GONE])
    for later in (0, 60):
        run(settings, later)
    assert told(hook) == []
    disk.make_room()
    hook.status = 200
    run(settings, 600)
    assert ("opened", "orders", GONE.cause) in told(hook)


def test_a_disk_that_is_read_only_is_told_too(
    settings: Settings, control: ControlFolder, disk: SmallDisk, hook: WebhookEndpoint, mailbox: Mailbox, tmp_path: Path
) -> None:
    run(settings)
    disk.make_read_only()
    for later in range(60, 300, 60):
        run(settings, later)
    disk.make_read_only(False)
    assert told(hook) == [("opened", "*", "unwritable")]
    assert "(Read-only file system)" in hook.bodies[0]["reason"]
    for later in range(300, 500, 60):
        run(settings, later)
    assert told(hook)[1:] == [("resolved", "*", "unwritable")]


@only_in_long_form  # shortly, a round on a full disk, above
def test_watches_that_start_on_a_full_disk_tell_it_once(
    settings: Settings,
    control: ControlFolder,
    disk: SmallDisk,
    hook: WebhookEndpoint,
    watch: StartWatch,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Two processes, one after the other, that find no file of Airflow's and can make none. No Airflow runs."""
    monkeypatch.setenv("AIRFLOW_HOME", str(disk.folder / "airflow"))
    policy = {"open_after_seconds": 0}
    (settings.pipelines.parent / "alerts.yaml").write_text(yaml.safe_dump({**WEBHOOK_ALONE, "policy": policy}))
    disk.fill()
    began = time.time()
    first = watch("--once")
    first.ended()
    causes = {alert["cause"] for body in hook.bodies for alert in body["alerts"]}
    assert {str(disk.folder), "unwritable"} <= causes, first.said
    print(f"full disk: the message was there {hook.received[0][0] - began:.1f} s after a watch was started on it")
    told_before = len(hook.bodies)
    second = watch("--once")
    second.ended()
    assert len(hook.bodies) == told_before, second.said
