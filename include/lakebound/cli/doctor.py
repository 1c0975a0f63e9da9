"""``lakebound doctor``: of a pipeline, or of any Structured Streaming checkpoint."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from lakebound.cli.output import Json, print_json, say

if TYPE_CHECKING:
    from lakebound.inspection.doctor.diagnosis import Diagnosis, Finding
    from lakebound.inspection.doctor.foreign.mending import Mending

MAX_RANGES_SHOWN = 12


def doctor(
    pipeline: Annotated[str | None, typer.Argument(help="Its name; or give --checkpoint.")] = None,
    checkpoint: Annotated[str | None, typer.Option("--checkpoint", help="Checkpoint folder of any Spark stream.")] = None,
    table: Annotated[
        list[str] | None, typer.Option("--table", help="What it writes: delta:FOLDER or iceberg:FOLDER. Can be repeated.")
    ] = None,
    bootstrap_servers: Annotated[
        str | None, typer.Option("--bootstrap-servers", help="Kafka that it reads, to compare offsets with.")
    ] = None,
    json: Json = False,
) -> None:
    """Say what is wrong, what it costs and what mends it; writes nothing. Exit code 1 if somebody must act."""
    if (pipeline is None) == (checkpoint is None):
        raise typer.BadParameter("give the name of a pipeline, or --checkpoint with --table")
    if checkpoint is None:
        if table or bootstrap_servers:
            raise typer.BadParameter("--table and --bootstrap-servers belong to --checkpoint; a pipeline's YAML names its own")
        diagnosis, mending = _examine_pipeline(pipeline or ""), None
    else:
        if not table:
            raise typer.BadParameter("--checkpoint needs --table: a checkpoint alone does not say what has landed")
        diagnosis, mending = _examine_checkpoint(checkpoint, table, bootstrap_servers)
    if json:
        print_json(diagnosis.model_dump(mode="json") | ({} if mending is None else {"mending": _body(mending)}))
    else:
        _print(diagnosis)
        if mending is not None:
            _print_mending(mending)
    raise typer.Exit(1 if diagnosis.verdict in ("needs_approval", "needs_person") else 0)


def _examine_pipeline(pipeline: str) -> Diagnosis:
    from lakebound.inspection.doctor.examine import examine_pipeline
    from lakebound.settings import load_settings
    from lakebound.spec.load import load_pipeline

    settings = load_settings()
    return examine_pipeline(load_pipeline(pipeline, settings), settings)


def _examine_checkpoint(checkpoint: str, tables: list[str], bootstrap_servers: str | None) -> tuple[Diagnosis, Mending | None]:
    from lakebound.inspection.doctor.foreign.doctor import examine_checkpoint

    if bootstrap_servers is None:
        say("doctor: without --bootstrap-servers nothing is said about what Kafka still has")
    return examine_checkpoint(checkpoint, tables, bootstrap_servers)


def _print(diagnosis: Diagnosis) -> None:
    typer.echo(f"{diagnosis.subject}: {diagnosis.verdict.replace('_', ' ')}")
    for finding in diagnosis.findings:
        _print_finding(finding)
    for name, value in diagnosis.numbers.items():
        if value is not None:
            typer.echo(
                f"  {name.replace('_', ' ')}: {value:,g}" if value % 1 else f"  {name.replace('_', ' ')}: {int(value):,}"
            )


def _print_finding(finding: Finding) -> None:
    typer.echo(f"\n  [{finding.verdict.replace('_', ' ')}] {finding.rule}: {finding.sentence}")
    if finding.replays_records:
        typer.echo(f"    reads again: {finding.replays_records:,} offsets")
    for lost in finding.loses[:MAX_RANGES_SHOWN]:
        typer.echo(f"    lost: {lost.topic} partition {lost.partition} [{lost.start}, {lost.end}), {lost.records:,} offsets")
    if len(finding.loses) > MAX_RANGES_SHOWN:
        typer.echo(f"    lost: {len(finding.loses) - MAX_RANGES_SHOWN} more ranges, see --json")
    if finding.evidence:
        typer.echo(f"    facts: {', '.join(f'{name}={value}' for name, value in finding.evidence.items())}")
    if finding.runbook:
        typer.echo(f"    runbook: {finding.runbook}")


def _print_mending(mending: Mending) -> None:
    typer.echo(f"\nWhat would mend it: {mending.sentence}.")
    if mending.files:
        typer.echo("Stop the query. Write these files into a new folder (NEW), run the doctor on it, and give the query that")
        typer.echo("folder as its checkpointLocation. Keep the old one.\n")
        typer.echo(mending.script())


def _body(mending: Mending) -> dict[str, object]:
    files = {path: content.decode("latin-1") for path, content in mending.files.items()}
    return {"sentence": mending.sentence, "files_latin1": files, "script": mending.script() if files else None}
