"""``lakebound status``."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lakebound.cli.output import Json, duration, number, print_json, print_rows, show
from lakebound.control.disks import in_words
from lakebound.spec.times import in_utc

if TYPE_CHECKING:
    from lakebound.control.airflow_health import AirflowHealth
    from lakebound.control.status import PipelineStatus
    from lakebound.inspection.disk_space import DiskState
    from lakebound.landing.brokers import BrokerView
    from lakebound.ledger.marks import NextOffsets
    from lakebound.local.stack import ServiceStatus
    from lakebound.settings import Settings

MAX_PARTITIONS_SHOWN = 8


def status(
    pipeline: Annotated[str | None, typer.Argument(help="Pipeline name. Default: all pipelines.")] = None, json: Json = False
) -> None:
    """Show services, disks and pipelines: desired state, application, lag, freshness, last commit and next offsets.

    It also asks Airflow and the brokers that the pipelines' YAML names whether they answer. Airflow is the one at
    LAKEBOUND_AIRFLOW_URL, or else the one that `lakebound up` started.
    """
    from lakebound.alerts.load import load_alerts_or_default
    from lakebound.control.status import pipeline_statuses
    from lakebound.errors import UnknownPipelineError
    from lakebound.inspection.disk_look import look_at_disks
    from lakebound.landing.brokers import ASK_SECONDS, look_at_brokers
    from lakebound.local.airflow_view import airflow_health
    from lakebound.local.stack import status as services_status
    from lakebound.settings import load_settings, state_address
    from lakebound.tables.declared import shown_pipelines

    settings, state = load_settings(), state_address()
    services = services_status(settings)
    loaded = shown_pipelines(settings)
    airflow = airflow_health(settings)
    paused = (airflow.paused if airflow is not None else None) or {}
    pipelines = [_with_small_files(one, settings) for one in pipeline_statuses(settings, pipeline, paused, loaded)]
    if pipeline is not None and not pipelines:
        raise UnknownPipelineError(pipeline, list(loaded.specs), settings.pipelines)
    chosen = [spec for name, spec in loaded.specs.items() if pipeline in (None, name)]
    brokers = look_at_brokers(chosen, ASK_SECONDS)
    disks, silent = look_at_disks(settings, load_alerts_or_default(settings)[0].disks, time.time(), remember=False)
    if json:
        asked = {"brokers": [asdict(found) for found in brokers], "airflow": None if airflow is None else asdict(airflow)}
        print_json(
            {
                "home": str(settings.home),
                "state": state,
                **_body(services, disks, pipelines, [*loaded.problems, *silent]),
                **asked,
            }
        )
        return
    show(f"LAKEBOUND_HOME: {settings.home}")
    if state is not None:
        show(f"LAKEBOUND_STATE: {state} (logs, checkpoints and rollups: LAKEBOUND_HOME of the application's machine)")
    _print_services(services, brokers, airflow)
    _print_disks(disks)
    _print_pipelines(pipelines)
    for problem in (*loaded.problems, *silent):
        show(problem)


def _with_small_files(found: PipelineStatus, settings: Settings) -> PipelineStatus:
    """Return the status with a note of each table whose small files become more, although maintenance runs."""
    from lakebound.control.folder import ControlFolder
    from lakebound.operations.maintenance.health_history import read_health_history
    from lakebound.operations.maintenance.keeping_up import not_keeping_up

    try:
        told = not_keeping_up(read_health_history(ControlFolder(settings.home, found.pipeline)))
    except OSError:
        return found  # it is only for looking at
    return found.model_copy(update={"notes": (*found.notes, *told)}) if told else found


def _body(
    services: Sequence[ServiceStatus], disks: Sequence[DiskState], pipelines: Sequence[PipelineStatus], problems: list[str]
) -> dict[str, Any]:
    return {
        "services": [asdict(service) for service in services],
        "disks": [asdict(disk) for disk in disks],
        "pipelines": [found.model_dump(mode="json") for found in pipelines],
        "problems": problems,
    }


def _print_services(services: Sequence[ServiceStatus], brokers: Sequence[BrokerView], airflow: AirflowHealth | None) -> None:
    """Print the services of ``lakebound up``, and what stands in their place."""
    embedded = {service.address for service in services if service.running}
    others = [found for found in brokers if found.bootstrap_servers not in embedded]
    own = airflow if airflow is not None and not airflow.is_embedded else None
    replaced = {"kafka": bool(others), "airflow": own is not None}
    rows = [
        (
            service.name,
            "running" if service.running else "down",
            (service.address or "-") if service.running else "-",
            f"{service.memory_megabytes} MB" if service.running else "-",
            str(service.log) if service.log.exists() else "-",
        )
        for service in services
        if service.running or not replaced[service.name]
    ]
    rows += [("kafka", "answers" if one.problem is None else "no answer", one.bootstrap_servers, "-", "-") for one in others]
    if own is not None:
        rows.append(("airflow", "answers" if own.problem is None else "no answer", own.address, "-", "-"))
    print_rows(("SERVICE", "STATE", "ADDRESS", "MEMORY", "LOG"), rows)
    for line in [*_broker_lines(brokers), *_airflow_lines(airflow)]:
        show(line)


def _broker_lines(brokers: Sequence[BrokerView]) -> list[str]:
    """Return why brokers do not answer, and whose they are."""
    silent = [found for found in brokers if found.problem is not None]
    return [f"kafka {found.bootstrap_servers} (of {', '.join(found.pipelines)}): {found.problem}" for found in silent]


def _airflow_lines(airflow: AirflowHealth | None) -> list[str]:
    """Return what is wrong with Airflow, and what of it is not known."""
    from lakebound.control.airflow_health import told_components

    if airflow is None:
        return []
    dead = f"gives no sign of life: {told_components(airflow.components, airflow.dead)}" if airflow.dead else None
    return [f"airflow: {text}" for text in (airflow.problem, dead, airflow.paused_problem) if text]


def _print_disks(disks: Sequence[DiskState]) -> None:
    rows = [
        (str(state.disk.mount), in_words(state.disk.free_bytes), in_words(state.disk.size_bytes), ", ".join(state.disk.uses))
        for state in disks
    ]
    print_rows(("DISK", "FREE", "SIZE", "USED FOR"), rows, right=("FREE", "SIZE"))
    for state in disks:
        if state.level is not None:
            show(f"{state.level}: the disk {state} (runbook disk-full)")


def _print_pipelines(pipelines: Sequence[PipelineStatus]) -> None:
    from lakebound.control.schemas_in_use import told_schemas

    if not pipelines:
        show("no pipelines")
        return
    headers = ("PIPELINE", "DESIRED", "APPLICATION", "LAG*", "FRESHNESS*", "LAST COMMIT", "NEXT OFFSETS")
    print_rows(headers, [_row(found) for found in pipelines])
    for found in pipelines:
        by = f" by {found.desired_by}" if found.desired_by else ""
        notes = [*found.notes] if not found.reason else [f"{found.desired}{by}: {found.reason}", *found.notes]
        for note in notes:
            show(f"{found.pipeline}: {note}")
        for line in told_schemas(found.schemas):
            show(f"{found.pipeline}: {line}")
        for name, one in found.references.items():
            loaded, checked = duration(one.loaded_seconds_ago), duration(one.checked_seconds_ago)
            held = f"version {one.version}, {number(one.rows)} rows"
            show(f"{found.pipeline}: reference {name}: {held}, loaded {loaded} ago, checked {checked} ago")
        if (code := found.source) is not None:
            commit = f", Git commit {code.revision}" if code.revision else ""
            show(f"{found.pipeline}: rows are made by source {code.hash}{commit}, since {in_utc(round(code.since) * 1000)}")
        if found.alive and found.app_id:
            show(f"{found.pipeline}: application {found.app_id}" + (f", Spark UI {found.spark_ui}" if found.spark_ui else ""))
    show(
        "* as the application reports: lag behind Kafka's end offsets when it last read them; age of the newest record at its "
        "last commit; idle: all has landed, and nothing came for a minute"
    )


def _row(found: PipelineStatus) -> tuple[str, ...]:
    """Return the line of a pipeline. Of one that rests there are no figures: somebody may have rewound its tables since."""
    app = found.app + (" (outdated)" if found.outdated else "")
    last_commit = duration(found.last_commit_age_seconds) + (" ago" if found.last_commit_age_seconds is not None else "")
    desired = found.desired if found.is_asked_for else "not started"
    if found.desired != "running" and not found.alive:
        return (found.pipeline, desired, app, "-", "-", last_commit, "-")
    lag = number(found.lag_records) + (" records" if found.lag_records is not None else "")
    freshness = "idle" if found.is_idle else duration(found.freshness_seconds)
    return (found.pipeline, desired, app, lag, freshness, last_commit, _marks(found.high_water_marks))


def _marks(marks: NextOffsets) -> str:
    return "\n".join(f"{topic} {_partitions(partitions)}" for topic, partitions in sorted(marks.items())) or "-"


def _partitions(partitions: Mapping[int, int]) -> str:
    shown = [f"{partition}:{mark}" for partition, mark in sorted(partitions.items())[:MAX_PARTITIONS_SHOWN]]
    rest = len(partitions) - len(shown)
    return " ".join(shown) + (f" and {rest} more (--json)" if rest else "")
