"""``lakebound doctor``: of a pipeline, or of any Structured Streaming checkpoint."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated

import typer

from lakebound.cli.output import Json, print_json, say, show

if TYPE_CHECKING:
    from lakebound.inspection.doctor.diagnosis import Diagnosis, RuleFinding
    from lakebound.inspection.doctor.foreign.mending import Mending

MAX_RANGES_SHOWN = 12


def doctor(
    pipeline: Annotated[str | None, typer.Argument(help="Pipeline name. Not with --checkpoint.")] = None,
    checkpoint: Annotated[
        str | None, typer.Option("--checkpoint", help="Checkpoint folder of any Structured Streaming query.")
    ] = None,
    table: Annotated[
        list[str] | None,
        typer.Option(
            "--table",
            help="With --checkpoint: a table that the query writes, as delta:FOLDER or iceberg:FOLDER. Can be repeated.",
        ),
    ] = None,
    bootstrap_servers: Annotated[
        str | None,
        typer.Option(
            "--bootstrap-servers", help="With --checkpoint: the Kafka brokers that the query reads, to compare offsets."
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Diagnose a pipeline or a checkpoint: what is wrong, which records are affected, and how to repair it.

    Nothing is written. Exit code 1 if a person must act.
    """
    if (pipeline is None) == (checkpoint is None):
        raise typer.BadParameter("give the name of a pipeline, or --checkpoint with --table")
    if checkpoint is None:
        if table or bootstrap_servers:
            raise typer.BadParameter("--table and --bootstrap-servers need --checkpoint; for a pipeline, its YAML names them")
        diagnosis, mending = _examine_pipeline(pipeline or ""), None
    else:
        if not table:
            raise typer.BadParameter("--checkpoint needs --table: a checkpoint alone does not say what has landed")
        diagnosis, mending = _examine_checkpoint(checkpoint, table, bootstrap_servers)
    if json:
        print_json(diagnosis.model_dump(mode="json") | ({} if mending is None else {"mending": _body(mending)}))
    else:
        _print(diagnosis)
        if checkpoint is None:
            _print_told_by_others(diagnosis.subject)
            _print_schemas(diagnosis.subject)
            _print_disks()
        if mending is not None:
            _print_mending(mending)
    raise typer.Exit(1 if diagnosis.verdict in ("needs_approval", "needs_person") else 0)


def _examine_pipeline(pipeline: str) -> Diagnosis:
    from lakebound.inspection.doctor.examine import examine_pipeline
    from lakebound.settings import load_settings
    from lakebound.tables.declared import owned_pipeline

    settings = load_settings()
    return examine_pipeline(owned_pipeline(pipeline, settings), settings)


def _examine_checkpoint(checkpoint: str, tables: list[str], bootstrap_servers: str | None) -> tuple[Diagnosis, Mending | None]:
    from lakebound.inspection.doctor.foreign.doctor import examine_checkpoint

    if bootstrap_servers is None:
        say("doctor: without --bootstrap-servers the offsets are not compared with Kafka")
    return examine_checkpoint(checkpoint, tables, bootstrap_servers)


def _print(diagnosis: Diagnosis) -> None:
    show(f"{diagnosis.subject}: {diagnosis.verdict.replace('_', ' ')}")
    for finding in diagnosis.findings:
        _print_finding(finding)
    for name, value in diagnosis.numbers.items():
        if value is not None:
            show(f"  {name.replace('_', ' ')}: {value:,g}" if value % 1 else f"  {name.replace('_', ' ')}: {int(value):,}")


def _print_told_by_others(pipeline: str) -> None:
    """Print what validation and others last found: the doctor does not look at that, and it is no part of its verdict."""
    from lakebound.control.findings import read_sources, told_by_others
    from lakebound.control.folder import ControlFolder
    from lakebound.settings import load_settings

    for line in told_by_others(read_sources(ControlFolder(load_settings().home, pipeline))[0]):
        show(f"\n  open alert, {line}")


def _print_schemas(pipeline: str) -> None:
    """Print what the stream reads its records with, as it last noted it."""
    from lakebound.control.folder import ControlFolder
    from lakebound.control.schemas_in_use import read_schemas_in_use, told_schemas
    from lakebound.settings import load_settings

    record = read_schemas_in_use(ControlFolder(load_settings().home, pipeline))
    for line in told_schemas(record.parts if record is not None else ()):
        show(f"\n  [note] schemas: {line}")


def _print_disks() -> None:
    """Print which disks are too full: that is about no single pipeline, so it is no finding of this one."""
    from lakebound.alerts.load import load_alerts_or_default
    from lakebound.inspection.disk_look import look_at_disks
    from lakebound.settings import load_settings

    settings = load_settings()
    for state in look_at_disks(settings, load_alerts_or_default(settings)[0].disks, time.time(), remember=False)[0]:
        if state.level is not None:
            show(f"\n  {state.level}: the disk {state}\n    runbook: disk-full")


def _print_finding(finding: RuleFinding) -> None:
    show(f"\n  [{label_of(finding)}] {finding.rule}: {finding.sentence}")
    if finding.replays_records:
        show(f"    reads again: {finding.replays_records:,} offsets")
    for lost in finding.loses[:MAX_RANGES_SHOWN]:
        show(f"    lost: {lost.topic} partition {lost.partition} [{lost.start}, {lost.end}), {lost.records:,} offsets")
    if len(finding.loses) > MAX_RANGES_SHOWN:
        show(f"    lost: {len(finding.loses) - MAX_RANGES_SHOWN} more ranges; --json shows all")
    if finding.evidence:
        show(f"    facts: {', '.join(f'{name}={value}' for name, value in finding.evidence.items())}")
    if finding.runbook:
        show(f"    runbook: {finding.runbook}")


def label_of(finding: RuleFinding) -> str:
    """Return what a finding is called: where the verdict stays healthy, what its alert is called, or a note without any."""
    from lakebound.alerts.doctor_findings import severity_of

    if finding.verdict != "healthy":
        return finding.verdict.replace("_", " ")
    severity = severity_of(finding)
    return "note" if severity is None else severity.value


def _print_mending(mending: Mending) -> None:
    show(f"\nRepair: {mending.sentence}.")
    if mending.files:
        show("Stop the query. Write these files into a new folder (NEW) and run the doctor on that folder. Then set it as")
        show("the query's checkpointLocation. Keep the old folder.\n")
        typer.echo(mending.script())


def _body(mending: Mending) -> dict[str, object]:
    files = {path: content.decode("latin-1") for path, content in mending.files.items()}
    return {"sentence": mending.sentence, "files_latin1": files, "script": mending.script() if files else None}
