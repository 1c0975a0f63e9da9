"""``lakebound control``: stops, starts, restarts or holds a pipeline, with or without Airflow."""

from __future__ import annotations

import json as json_text
from dataclasses import asdict
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lakebound.cli.output import Json, print_json, say, show

if TYPE_CHECKING:
    from lakebound.control.desired import Desired
    from lakebound.control.folder import ControlFolder
    from lakebound.control.progress import Progress
    from lakebound.control.requests import Request, RequestState
    from lakebound.control.submission import Submission
    from lakebound.settings import Settings
    from lakebound.spec.pipeline import PipelineSpec

WAIT_SECONDS = 120.0
NEW_DAG_SECONDS = 90.0
"""Airflow reads the DAG files again within this time, so that it knows a pipeline whose file was just written."""


class Action(StrEnum):
    """What can be asked of a pipeline; the control DAG offers the same."""

    START = "start"
    STOP = "stop"
    RESTART = "restart"
    HOLD = "hold"
    BOUNDED_RUN = "bounded-run"


Pipeline = Annotated[str, typer.Argument(help="Pipeline name.")]
Reason = Annotated[str, typer.Option("--reason", help="The reason; `lakebound status` shows it.")]
Wait = Annotated[float, typer.Option(min=0, help="How long to wait for the end of the running application, in seconds.")]


def control(
    pipeline: Pipeline,
    action: Annotated[Action, typer.Argument(help="What the pipeline must do.")],
    reason: Reason = "",
    freshness: Annotated[
        str | None, typer.Option(help="Replaces the freshness in the YAML until the next action: 500ms, 5s, real_time, ...")
    ] = None,
    offsets: Annotated[
        str | None, typer.Option(help='For bounded-run: up to these offsets (exclusive), as JSON: {"topic": {"0": 1200}}')
    ] = None,
    until_time: Annotated[
        str | None, typer.Option(help="For bounded-run: the records older than this time, such as 2026-01-31T14:05:00Z")
    ] = None,
    wait: Wait = WAIT_SECONDS,
    json: Json = False,
) -> None:
    """Set the desired state of a pipeline: start, stop, restart, hold or bounded-run. Works without Airflow, too.

    stop: the application ends after the current batch, and is not started again. hold: like stop, but only start or stop ends
    it. start: ends a stop, a hold or a crash loop, and unpauses the ingest DAG. restart: the application ends, and the next one
    has the current YAML and transform. bounded-run: lands records up to the given offsets or time, then stops.
    """
    fields: dict[str, Any] = {"freshness": freshness, "until_time": until_time, "offsets": _offsets(offsets)}
    act(pipeline, action, reason, wait_seconds=wait, as_json=json, fields=fields)


def act(
    pipeline: str,
    action: Action,
    reason: str,
    *,
    wait_seconds: float = WAIT_SECONDS,
    as_json: bool = False,
    fields: dict[str, Any] | None = None,
) -> None:
    """Write the request, wait for the end of an application that it ends, and say what follows.

    Args:
        pipeline: Its name.
        action: What is asked.
        reason: Why; the command's own name where none is given.
        wait_seconds: How long the running application may take to end.
        as_json: Whether to print JSON.
        fields: Further fields of the form.

    Raises:
        ControlFileError: A file of the state folder is damaged.
        HeldError: The pipeline is held, and this action may not end that.
        typer.Exit: The application did not end in time, or somebody set another desired state meanwhile.
    """
    from lakebound.control.applications import living_submission
    from lakebound.control.crash_loop import read_crash_loop
    from lakebound.control.desired import read_desired
    from lakebound.control.folder import ControlFolder
    from lakebound.control.person import operating_system_user
    from lakebound.control.progress import readable_progress
    from lakebound.control.request_file import write_request
    from lakebound.errors import ControlFileError
    from lakebound.first_line import first_line
    from lakebound.settings import load_settings

    settings = load_settings()
    folder = ControlFolder(settings.home, pipeline)
    spec = _spec(pipeline, settings, folder, action)
    request = _request(spec, action, reason or _command(action), fields or {})
    try:
        before, loop, living = read_desired(folder), read_crash_loop(folder), living_submission(folder)
        desired = write_request(folder, request, by=operating_system_user())
    except ValueError as exc:
        raise ControlFileError(pipeline, folder.shared, first_line(exc)) from exc
    ended = _ended_by(before, len(loop.since(before.since).ends), spec) if action is Action.START else ""
    # Another freshness or bound than before is a new generation, too.
    ends_it = not desired.wants_app or desired.generation > before.generation
    replaced = living.app_id if living is not None and ends_it else None
    if replaced is not None and wait_seconds:
        say(f"{pipeline}: {replaced} {how_it_ends(readable_progress(folder), replaced)}")
    found = _wait(folder, desired, replaced, wait_seconds)
    goes_on = living.app_id if living is not None and replaced is None else None
    starts = _starts(spec, settings, request) if spec is not None and desired.wants_app else None
    if as_json:
        body = {"pipeline": pipeline, "action": action.value, "desired": desired.model_dump(mode="json")}
        print_json({**body, "application": goes_on or replaced, **asdict(found), "starts": starts})
    else:
        runs = _goes_on(living, spec, settings) if living is not None and replaced is None else starts
        rest = "; ".join(text for text in (found.reason if found.state != "met" or runs is None else None, runs) if text)
        show(f"{pipeline}: the desired state is {desired.state}{ended}; {rest}. See: lakebound status {pipeline}")
    if found.state != "met":
        raise typer.Exit(1)


def how_it_ends(progress: Progress | None, app_id: str) -> str:
    """Return what an application does when it is asked to end."""
    search = progress.search if progress is not None and progress.app_id == app_id else None
    if search is None or search.is_over:
        return "ends after its current batch"
    return "gives up its search for records on which the transform raises, of which nothing is committed, and ends"


def _goes_on(living: Submission, spec: PipelineSpec | None, settings: Settings) -> str:
    """Return that an application goes on, and how it is replaced where it has not what the files say now."""
    from lakebound.control.situations import outdated
    from lakebound.control.supervision import is_outdated
    from lakebound.spec.source import source_hash

    runs = f"{living.app_id} runs"
    if spec is None or not is_outdated(living.source_hash, source_hash(spec, settings.apps)):
        return runs
    return f"{runs}, {outdated(spec.pipeline)}"


def _command(action: Action) -> str:
    return f"lakebound {action.value}" if action in (Action.START, Action.STOP) else f"lakebound control: {action.value}"


def _offsets(text: str | None) -> Any:
    try:
        return None if text is None else json_text.loads(text)
    except ValueError as exc:
        raise typer.BadParameter(f"not JSON: {exc}", param_hint="--offsets") from exc


def _spec(pipeline: str, settings: Settings, folder: ControlFolder, action: Action) -> PipelineSpec | None:
    """Return the pipeline; None where its YAML is wrong or gone, which must keep nobody from stopping it."""
    from lakebound.errors import InvalidSpecError, UnknownPipelineError
    from lakebound.tables.declared import owned_pipeline

    try:
        return owned_pipeline(pipeline, settings)
    except (InvalidSpecError, UnknownPipelineError):
        if action in (Action.STOP, Action.HOLD) and folder.exists():
            return None
        raise


def _request(spec: PipelineSpec | None, action: Action, reason: str, fields: dict[str, Any]) -> Request:
    from pydantic import ValidationError

    from lakebound.control.requests import RequestForm, rest_request

    try:
        form = RequestForm.model_validate({"action": action.value.replace("-", "_"), "reason": reason, **fields})
    except ValidationError as exc:
        problems = "; ".join(f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in exc.errors())
        raise typer.BadParameter(problems) from exc
    return rest_request(form.action, reason) if spec is None else form.request(spec)


def _ended_by(before: Desired, failed_starts: int, spec: PipelineSpec | None) -> str:
    """Return what a start ends besides, in words."""
    if before.state == "held":
        return f", which ends the hold ({before.reason})"
    if spec is not None and failed_starts >= spec.limits.max_failed_starts:
        return f", which ends the crash loop of {failed_starts} starts"
    return ""


def _wait(folder: ControlFolder, desired: Desired, replaced: str | None, wait_seconds: float) -> RequestState:
    from lakebound.control.applications import wait_ended
    from lakebound.control.progress import readable_progress
    from lakebound.control.request_file import wait_for_request
    from lakebound.control.requests import RequestState

    if desired.state != "running":
        found = wait_for_request(folder, "stopped", desired, wait_seconds)
        if found.state == "waiting" and not wait_seconds:
            return RequestState("met", f"{replaced} {how_it_ends(readable_progress(folder), replaced or '')}")
        hangs = f" after {wait_seconds:g} s; if it hangs, follow the runbook stall" if found.state == "waiting" else ""
        return RequestState(found.state, found.reason + hangs)
    if replaced is None or not wait_seconds or wait_ended(folder, replaced, wait_seconds):
        return RequestState("met", "it is written")
    return RequestState("waiting", f"{replaced} has not ended after {wait_seconds:g} s; if it hangs, follow the runbook stall")


def say_who_starts(spec: PipelineSpec, settings: Settings) -> None:
    """Print who starts the pipeline's application, if one is wanted and none lives: after a repair, for instance."""
    from lakebound.control.applications import app_is_alive
    from lakebound.control.desired import read_desired
    from lakebound.control.folder import ControlFolder
    from lakebound.control.starters import who_starts
    from lakebound.local.airflow_view import look_at_airflow

    folder = ControlFolder(settings.home, spec.pipeline)
    if read_desired(folder).wants_app and not app_is_alive(folder):
        schedule = None if spec.runs_continuously else spec.schedule
        airflow = look_at_airflow(settings, spec.pipeline, unpause=False)
        show(f"{spec.pipeline}: {who_starts(spec.pipeline, schedule, airflow)}")


def _starts(spec: PipelineSpec, settings: Settings, request: Request) -> str:
    from lakebound.control.requests import await_kind
    from lakebound.control.starters import who_starts
    from lakebound.local.airflow_view import look_at_airflow

    schedule = spec.schedule if await_kind(request, spec) is None and not spec.runs_continuously else None
    airflow = look_at_airflow(settings, spec.pipeline, unpause=True, wait_seconds=NEW_DAG_SECONDS, tell=say)
    return who_starts(spec.pipeline, schedule, airflow)
