"""How each pipeline is, from its folder of state: no table and no Kafka is asked; who calls says which DAGs are paused."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeVar

from pydantic import Field

from lakebound.control import situations
from lakebound.control.applications import living_submission, pipelines_with_state
from lakebound.control.crash_loop import CrashLoop, read_crash_loop
from lakebound.control.desired import Desired, read_desired
from lakebound.control.findings import Findings, read_sources, told_by_others
from lakebound.control.folder import ControlFolder, StateFile
from lakebound.control.lease import Lease, read_lease
from lakebound.control.progress import Outcome, Progress, RecentRecords, SourceProgress, read_outcome, read_progress
from lakebound.control.quarantine_rate import recent_records, told_share
from lakebound.control.recent_ledger import read_recent_ledger
from lakebound.control.schemas_in_use import SchemasInUse, read_schemas_in_use
from lakebound.control.situations import Situation
from lakebound.control.submission import Submission, read_submission
from lakebound.control.supervision import is_outdated
from lakebound.control.unknown_fields import RUNBOOK, FieldsRecord, dropped_fields, read_record, sentence
from lakebound.control.windows_in_use import WindowsProgress, told_windows
from lakebound.first_line import first_line
from lakebound.frozen import Frozen
from lakebound.ledger.marks import NextOffsets, lag
from lakebound.settings import Settings
from lakebound.spec.limits import LimitsSpec
from lakebound.spec.load import LoadedPipelines, load_pipelines
from lakebound.spec.pipeline import PipelineSpec
from lakebound.spec.source import source_hash

ROWS_CHANGED = "rows-changed-by-others"
"""The doctor's rule; the causes of its findings are this name, a colon and the table."""
DOCTOR = "doctor"

# Progress is written every second; an application that is silent for longer is not well.
SILENT_SECONDS = 10.0
IDLE_SECONDS = 60.0
"""A pipeline that has landed all, and for so long nothing new, is idle."""

T = TypeVar("T")


class ReferenceStatus(Frozen):
    """Reference data, as the application uses it."""

    version: str
    rows: int
    loaded_seconds_ago: float = Field(description="Since the version in use was read.")
    checked_seconds_ago: float = Field(description="Since the source last said that there is no newer version, or gave one.")
    problem: str | None = Field(default=None, description="Why a newer version is not used.")


class PipelineStatus(Frozen):
    """One pipeline as it stands.

    ``freshness_seconds`` is the application's own figure: its last commit minus the time of the newest record in it. What a
    reader sees is measured by ``make bench-freshness``, from outside.
    """

    pipeline: str
    desired: str = "running"
    is_asked_for: bool = Field(
        default=True, description="False: nobody has started it, and its desired state is only what a start would obey."
    )
    reason: str = Field(default="", description="Of the desired state.")
    desired_by: str = Field(default="", description="Who set the desired state: a user, a DAG or an application.")
    app: str = Field(default="never started", description="State of the application, or how the last one ended.")
    alive: bool = False
    app_id: str | None = None
    epoch: int | None = None
    outdated: bool = Field(default=False, description="It runs with an older YAML or transform; a restart takes the new.")
    lag_records: int | None = Field(default=None, description="As the application last saw Kafka's ends.")
    freshness_seconds: float | None = None
    is_idle: bool = Field(
        default=False,
        description="It has landed all that Kafka has, and nothing came for a minute: its freshness is an old one.",
    )
    last_commit_age_seconds: float | None = Field(
        default=None, description="After a restart that of the application before, as far as it is known."
    )
    high_water_marks: NextOffsets = Field(default_factory=dict)
    records: int | None = Field(default=None, description="Read by the application so far.")
    quarantined: int | None = None
    recent: RecentRecords | None = Field(default=None, description="The records of the last minutes, and why some are bad.")
    references: dict[str, ReferenceStatus] = Field(default_factory=dict, description="Reference data in use, by name.")
    schemas: tuple[SchemasInUse, ...] = Field(
        default=(), description="Of which registry, subjects and versions the stream reads, and what its columns come from."
    )
    source: SourceProgress | None = Field(default=None, description="The code that makes the rows, and since when.")
    windows: WindowsProgress | None = Field(default=None, description="Of a pipeline with state: its open windows.")
    spark_ui: str | None = None
    log: Path | None = None
    rows_changed_by_others: tuple[str, ...] = Field(
        default=(), description="Tables of which others changed rows, by what application and doctor last saw."
    )
    situation: str | None = Field(default=None, description="What keeps it from landing, in kebab-case; None: nothing does.")
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class StatusFacts:
    """What the state folder and the YAML say.

    Attributes:
        spec: None when no valid YAML file declares the pipeline.
        source_hash: Of YAML and transform as they are now.
        living: The application that lives.
        last: The application that was submitted last, living or not.
        outcome: How ``last`` ended.
        crash_loop: The starts in a row that landed nothing.
        is_paused: Whether its DAG is paused in Airflow; None where that is not known.
        landed_at: When rows were last committed, in epoch seconds, where the last application has not yet; None: not known.
        doctor: What the doctor last found, when the watch or Airflow had it look; None: it did not.
        fields: What the last looks at its records found; None where nobody has looked.
        schemas: What the stream last read its records with.
        unreadable: What of the folder could not be read.
    """

    pipeline: str
    spec: PipelineSpec | None = None
    source_hash: str | None = None
    desired: Desired | None = None
    living: Submission | None = None
    last: Submission | None = None
    lease: Lease | None = None
    progress: Progress | None = None
    outcome: Outcome | None = None
    crash_loop: CrashLoop = field(default_factory=CrashLoop)
    is_paused: bool | None = None
    landed_at: float | None = None
    doctor: Findings | None = None
    sources: tuple[Findings, ...] = ()
    fields: FieldsRecord | None = None
    schemas: tuple[SchemasInUse, ...] = ()
    unreadable: tuple[str, ...] = ()


def pipeline_statuses(
    settings: Settings,
    only: str | None = None,
    paused: Mapping[str, bool] | None = None,
    loaded: LoadedPipelines | None = None,
) -> list[PipelineStatus]:
    """Return the status of every pipeline that is declared or ever ran here, by name.

    Args:
        settings: Of this machine.
        only: A single pipeline.
        paused: Whether a DAG is paused, by its id; what is not in it is not known.
        loaded: What the YAML files declare; None: they are read, and none that names another's table is valid.
    """
    known = paused or {}
    loaded = loaded or load_pipelines(settings)
    chosen = [name for name in known_pipelines(settings, loaded) if only in (None, name)]
    found = [(read_facts(name, loaded.specs.get(name), settings), known.get(f"ingest__{name}")) for name in chosen]
    return [status_of(replace(facts, is_paused=is_paused), time.time()) for facts, is_paused in found]


def known_pipelines(settings: Settings, loaded: LoadedPipelines) -> list[str]:
    """Return the names of the pipelines that are declared, rightly or not, or ever ran here; sorted.

    Args:
        settings: Of this machine.
        loaded: What the YAML files declare.
    """
    ran = (control.pipeline for control in pipelines_with_state(settings))
    return sorted({*loaded.specs, *ran, *_wrong(loaded)})


def read_facts(pipeline: str, spec: PipelineSpec | None, settings: Settings) -> StatusFacts:
    """Read what there is; a file that cannot be read becomes a note and hides nothing else.

    Args:
        pipeline: Name of the pipeline; its state folder has this name.
        spec: What its YAML says; None when the YAML is missing or has mistakes.
        settings: This machine's settings; they say where state folders and transforms are.
    """
    control = ControlFolder(settings.home, pipeline)
    unreadable: list[str] = []
    progress = _try(lambda: read_progress(control), control.progress, unreadable)
    last = _try(lambda: read_submission(control), control.submission, unreadable)
    sources, _ = read_sources(control)
    return StatusFacts(
        pipeline=pipeline,
        spec=spec,
        source_hash=source_hash(spec, settings.apps) if spec else None,
        desired=_try(lambda: read_desired(control), control.desired, unreadable),
        living=_try(lambda: living_submission(control), control.lease, unreadable),
        last=last,
        lease=_try(lambda: read_lease(control), control.lease, unreadable),
        progress=progress,
        outcome=_try(lambda: read_outcome(control, last.app_id), control.outcome(last.app_id), unreadable) if last else None,
        crash_loop=read_crash_loop(control),
        landed_at=_landed_before(control) if progress is not None and progress.last_commit_at is None else None,
        doctor=next((one for one in sources if one.source == DOCTOR), None),
        sources=tuple(sources),
        fields=read_record(control),
        schemas=_schemas(control, spec),
        unreadable=tuple(dict.fromkeys(unreadable)),
    )


def _schemas(control: ControlFolder, spec: PipelineSpec | None) -> tuple[SchemasInUse, ...]:
    """Return what the stream last read its records with, where the pipeline still has a registry."""
    if spec is None or all(one.registry is None for one in spec.schema_sources.values()):
        return ()
    record = read_schemas_in_use(control)
    return () if record is None else record.parts


def _landed_before(control: ControlFolder) -> float | None:
    """Return when rows were last committed, by whichever application; the file is read only while the newest has not."""
    try:
        ledger = read_recent_ledger(control)
    except (OSError, ValueError):
        return None  # it is only for looking at
    return max((batch.at for batch in ledger.batches if batch.tables), default=None) if ledger is not None else None


def status_of(facts: StatusFacts, now: float) -> PipelineStatus:
    """Return the pipeline's status at ``now`` (epoch seconds). Pure."""
    desired, progress = facts.desired or Desired(), facts.progress
    app = facts.living or facts.last
    own = progress if progress and app and progress.app_id == app.app_id else None
    runs = (own.source_hash if own else "") or facts.living.source_hash if facts.living else ""
    outdated = is_outdated(runs, facts.source_hash or "")
    committed_at = (progress.last_commit_at if progress else None) or facts.landed_at
    recent = recent_records(own, now)
    return PipelineStatus(
        pipeline=facts.pipeline,
        desired=desired.state,
        is_asked_for=is_asked_for(facts),
        reason=desired.reason,
        desired_by=desired.by,
        app=_app_state(facts, own, now),
        alive=facts.living is not None,
        app_id=app.app_id if app else None,
        epoch=own.epoch if own else facts.lease.epoch if facts.lease else None,
        outdated=outdated,
        lag_records=waiting_records(progress),
        freshness_seconds=_freshness_seconds(progress),
        is_idle=facts.living is not None and own is not None and _is_idle(own, now),
        last_commit_age_seconds=max(0.0, now - committed_at) if committed_at is not None else None,
        high_water_marks=progress.high_water_marks if progress else {},
        records=own.records if own else None,
        quarantined=own.quarantined if own else None,
        recent=recent,
        references=_references(own, now) if facts.living else {},
        schemas=facts.schemas,
        source=own.source if own else None,
        windows=own.windows if own else None,
        spark_ui=(own.spark_ui if own else None) if facts.living else None,
        log=app.log if app else None,
        rows_changed_by_others=tuple(_changed_by_others(facts)),
        situation=situation.name if (situation := situation_of(facts, now)) else None,
        notes=tuple(_notes(facts, situation, outdated, recent)),
    )


def is_asked_for(facts: StatusFacts) -> bool:
    """Return whether somebody has started or stopped a pipeline, it has run, or its DAG is on so that it will be started.

    What cannot be read may say so.
    """
    has_run = facts.living is not None or facts.last is not None or facts.progress is not None
    is_said = facts.desired is not None and (facts.desired.since > 0 or facts.desired.state != "running")
    return has_run or is_said or facts.is_paused is False or bool(facts.unreadable)


def _changed_by_others(facts: StatusFacts) -> dict[str, str]:
    """Return the tables of which others changed rows, each with the commits as far as they are known.

    The application knows it since its last commit to the table, the doctor since it last looked: the later of the two counts.
    """
    looked_at = facts.doctor.at if facts.doctor is not None else 0.0
    found = {}
    for finding in facts.doctor.findings if facts.doctor is not None else ():
        rule, _, table = finding.cause.partition(":")
        if rule == ROWS_CHANGED:
            found[table] = f"found by the doctor at {situations.clock_time(looked_at)}"
    for table, own in (facts.progress.tables if facts.progress is not None else {}).items():
        if own.committed_at < looked_at:
            continue
        found.pop(table, None)
        if own.changed_by_others:
            number = "1 commit" if own.changed_by_others == 1 else f"{own.changed_by_others} commits, the newest"
            found[table] = f"{number}: {own.newest_change}"
    return found


def _references(progress: Progress | None, now: float) -> dict[str, ReferenceStatus]:
    return {
        name: ReferenceStatus(
            version=one.version,
            rows=one.rows,
            loaded_seconds_ago=max(0.0, now - one.loaded_at),
            checked_seconds_ago=max(0.0, now - one.checked_at),
            problem=one.problem,
        )
        for name, one in (progress.references if progress else {}).items()
    }


def situation_of(facts: StatusFacts, now: float) -> Situation | None:
    """Return what keeps the pipeline from landing; None where nothing does, or nobody wants it to. Pure."""
    progress, desired = facts.progress, facts.desired or Desired()
    if facts.living is not None:
        if progress is None or progress.app_id != facts.living.app_id:
            return None
        if progress.state == "waiting":
            return situations.waiting(progress)
        if progress.search is not None and not progress.search.is_over:
            return situations.searching(progress.search)
        return situations.failing(progress) if progress.failures else None
    if facts.spec is None or not desired.wants_app:
        return None  # without a valid file every start is refused: none of the situations below is what a person has to end
    return _why_nothing_lives(facts, facts.spec.limits, facts.crash_loop.since(desired.since), now)


def _why_nothing_lives(facts: StatusFacts, limits: LimitsSpec, loop: CrashLoop, now: float) -> Situation | None:
    if loop.is_over_limit(limits.max_failed_starts):
        return situations.crash_looping(facts.pipeline, loop)
    if facts.last is None and facts.progress is None:
        return situations.never_started(facts.pipeline)
    not_before = loop.not_before(limits.failed_start_pause_seconds)
    if facts.outcome is not None and facts.outcome.verdict == "refused":
        return situations.refused(facts.pipeline, facts.outcome, not_before, now, is_paused=facts.is_paused is True)
    if facts.is_paused:
        return situations.dag_paused(facts.pipeline)
    if now < not_before:
        return situations.start_awaited(facts.pipeline, loop, limits.max_failed_starts, not_before)
    if facts.outcome is not None and facts.outcome.verdict == "failed":
        return situations.failed(facts.outcome)
    return None


def _app_state(facts: StatusFacts, own: Progress | None, now: float) -> str:
    if facts.living is not None:
        if own is None:
            return "starting"
        silent = now - own.updated_at
        return f"silent for {silent:.0f} s" if silent > SILENT_SECONDS else own.state
    if facts.last is None:
        return "none" if facts.progress else "never started"
    return facts.outcome.verdict if facts.outcome else "died"


def waiting_records(progress: Progress | None) -> int | None:
    """Return how far the newest marks are behind Kafka's ends: the application looks at those less often than it commits."""
    if progress is None or not progress.latest_offsets or not progress.high_water_marks:
        return progress.lag_records if progress else None
    return lag(progress.high_water_marks, progress.latest_offsets)


def _is_idle(progress: Progress, now: float) -> bool:
    quiet = now - max(progress.started_at, progress.last_commit_at or 0.0)
    is_well = progress.state == "running" and now - progress.updated_at <= SILENT_SECONDS
    return is_well and waiting_records(progress) == 0 and quiet >= IDLE_SECONDS


def _freshness_seconds(progress: Progress | None) -> float | None:
    if progress is None or progress.last_commit_at is None or progress.newest_record_ms is None:
        return None
    return max(0.0, progress.last_commit_at - progress.newest_record_ms / 1000)


def _notes(facts: StatusFacts, situation: Situation | None, outdated: bool, recent: RecentRecords | None) -> list[str]:
    notes = [*facts.unreadable]
    if facts.spec is None:
        notes.append("no valid YAML file declares it (lakebound check)")
    if outdated:
        notes.append(situations.outdated(facts.pipeline))
    notes += [situations.rows_changed(facts.pipeline, table, text) for table, text in _changed_by_others(facts).items()]
    if situation is not None:
        notes.append(str(situation) + (f" (runbook {situation.runbook})" if situation.runbook else ""))
    notes += told_by_others(facts.sources)
    if recent is not None and recent.quarantined:
        notes.append(f"{told_share(recent)} (lakebound quarantine {facts.pipeline})")
    if facts.living is not None and facts.progress is not None and facts.progress.app_id == facts.living.app_id:
        notes += [situations.stale_reference(name, one) for name, one in facts.progress.references.items() if one.problem]
        notes += told_windows(facts.progress.windows) if facts.progress.windows is not None else ()
    if facts.spec is not None and (dropped := dropped_fields(facts.fields, facts.spec)):
        notes.append(f"{sentence(dropped, facts.spec.value)} (runbook {RUNBOOK})")
    if facts.living is None and facts.last is not None and not _says_how_it_ended(situation):
        notes.append(_how_it_ended(facts.last, facts.outcome))
    return notes


def _says_how_it_ended(situation: Situation | None) -> bool:
    return situation is not None and situation.name.startswith("last-start-")


def _how_it_ended(last: Submission, outcome: Outcome | None) -> str:
    if outcome is None:
        return f"the last application died without an outcome; read its log: {last.log or 'unknown'}"
    return f"the last application {outcome.verdict}: {outcome.reason}"


def _wrong(loaded: LoadedPipelines) -> list[str]:
    return [path.stem for path in loaded.mistakes if path.suffix]


def _try(read: Callable[[], T], path: StateFile, unreadable: list[str]) -> T | None:
    try:
        return read()
    except (OSError, ValueError) as exc:
        unreadable.append(f"{path} cannot be read: {first_line(exc)}")
        return None
