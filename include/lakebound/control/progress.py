"""What an application says of itself: progress while it lives, an outcome when it ends."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from lakebound.control.bounds import Count, Int64, Moment
from lakebound.control.folder import ControlFolder, read_json, write_json
from lakebound.control.windows_in_use import WindowsProgress
from lakebound.errors import error_named
from lakebound.frozen import FrozenRecord
from lakebound.ledger.marks import NextOffsets

AppState = Literal["starting", "running", "waiting", "ended"]
EndVerdict = Literal["stopped", "completed", "failed", "refused", "superseded"]
"""stopped: on request · completed: nothing more to read · failed · refused: a person must decide · superseded: a zombie."""


class TableProgress(FrozenRecord):
    """One table's last commit by this application."""

    version: str = Field(description="Delta version or Iceberg snapshot id.")
    committed_at: float = Field(description="Epoch seconds at which the commit returned.")
    commits: int = 0
    rows: int = 0
    changed_by_others: Count = Field(
        default=0, description="Commits by which others changed its rows, and which nobody has acknowledged."
    )
    newest_change: str | None = Field(default=None, description="The newest of these commits; None: there is none.")


class RecentRecords(FrozenRecord):
    """The records that an application handled recently.

    ``reasons`` holds the commonest reasons of quarantine: a word, and the schema's column where one is known
    (``does_not_fit: amount``); never anything that stands in a record.
    """

    over_seconds: Moment = Field(description="Of how long.")
    newest_at: float = Field(description="Epoch seconds of the newest batch among them.")
    records: Count = Field(description="Records read.")
    quarantined: Count = 0
    reasons: dict[str, Count] = Field(default_factory=dict, description="Quarantined records, by reason.")

    @property
    def share(self) -> float:
        """The part that went to quarantine."""
        return self.quarantined / self.records if self.records else 0.0


class SourceProgress(FrozenRecord):
    """The code that makes the rows: the YAML and the transform."""

    hash: str
    revision: str = Field(default="", description="The commit of the Git checkout that it lies in; empty: none.")
    since: float = Field(description="When the first application with it opened the tables, in epoch seconds.")


class ReferenceProgress(FrozenRecord):
    """The version of reference data that the application uses. Times are epoch seconds."""

    version: str = Field(description="Delta version, Iceberg snapshot id, or a hash of the files' names, sizes and times.")
    rows: int = 0
    loaded_at: float = Field(description="When it was read.")
    checked_at: float = Field(description="When the source last said that this is its newest version, or gave a newer one.")
    problem: str | None = Field(default=None, description="Why a newer version is not used; None: nothing is wrong.")
    problem_since: float | None = None


class SearchProgress(FrozenRecord):
    """The search for records of a batch on which the transform raises. Times are epoch seconds."""

    since: float = Field(description="When it began.")
    changed_at: float = Field(description="When the last part of the records was tried.")
    records: Count = Field(default=0, description="Offsets of the batch.")
    tried: Count = Field(default=0, description="Parts of the records that were tried.")
    found: Count = Field(default=0, description="Records on which the transform raises.")
    is_over: bool = Field(default=False, description="Whether it has ended; the batch may not have landed yet.")


class Progress(FrozenRecord):
    """The application's latest state. Times are epoch seconds; offsets are per topic and partition."""

    pipeline: str
    app_id: str
    epoch: int = 0
    generation: int = 0
    source_hash: str = ""
    state: AppState = "starting"
    state_since: float | None = Field(default=None, description="Since when it is in this state, as far as that is noted.")
    waiting_for: str | None = Field(default=None, description="What is waited for, in state 'waiting'.")
    waiting_since: float | None = Field(default=None, description="Since when it has been waited for.")
    waiting_error: str | None = Field(default=None, description="The class of the error that is waited out.")
    search: SearchProgress | None = Field(default=None, description="The last search for records that cannot land; None: none.")
    failures: int = Field(default=0, description="Attempts in a row that failed since a batch was landed.")
    failing_since: float | None = None
    failing_error: str | None = Field(default=None, description="The class of the last error.")
    last_failure: str | None = None
    started_at: float
    updated_at: float
    batch: int | None = None
    lane: Literal["driver", "cluster"] | None = None
    records: int = Field(default=0, description="Records read by this application.")
    filtered: int = 0
    quarantined: int = 0
    recent: RecentRecords | None = Field(default=None, description="The records of the last minutes; None without any.")
    high_water_marks: NextOffsets = Field(default_factory=dict)
    has_gaps: bool = Field(
        default=False, description="Whether a table lacks offsets below its mark, which a replay has to land."
    )
    latest_offsets: NextOffsets = Field(default_factory=dict, description="Kafka's, at the last look.")
    lag_records: int | None = None
    complete_until: float | None = Field(
        default=None, description="Everything that Kafka had at this time, in epoch seconds, has landed; None: not known."
    )
    newest_record_ms: Int64 | None = Field(default=None, description="Kafka timestamp of the newest landed record.")
    last_commit_at: float | None = None
    freshness_p99_seconds: float | None = Field(
        default=None, description="Of the records of the last five minutes, as they landed; an upper bound."
    )
    durations_ms: dict[str, float] = Field(default_factory=dict, description="Of the last batch, per step.")
    tables: dict[str, TableProgress] = Field(default_factory=dict)
    references: dict[str, ReferenceProgress] = Field(default_factory=dict, description="Reference data, by name.")
    source: SourceProgress | None = Field(default=None, description="The code that makes the rows.")
    windows: WindowsProgress | None = Field(default=None, description="Of a pipeline with state: its open windows.")
    spark_ui: str | None = None


class Outcome(FrozenRecord):
    """How an application ended."""

    app_id: str
    verdict: EndVerdict
    reason: str
    error_class: str | None = None
    page: str | None = Field(default=None, description="The runbook of the error; None in files of older applications.")
    passes: bool | None = Field(
        default=None, description="Whether the error is known to pass by itself; None in files of older applications."
    )
    records: int = Field(default=0, description="Records read; of these, the next two.")
    filtered: int = 0
    quarantined: int = 0
    rows: dict[str, int] = Field(default_factory=dict, description="Rows landed, by table.")
    commits: int = Field(default=0, description="Commits with rows: what makes a crash an incident rather than a crash loop.")
    stuck: str | None = Field(
        default=None, description="The query that ended it and had landed nothing, although another one had; None: none."
    )
    started_at: float
    ended_at: float

    @property
    def is_outage(self) -> bool:
        """Whether it failed by something that passes by itself: a broker or a catalog that is away, a full disk."""
        passes = error_named(self.error_class).passes if self.passes is None else self.passes
        return self.verdict == "failed" and passes

    @property
    def runbook(self) -> str:
        """The page of include/runbooks that says what to do."""
        return self.page or error_named(self.error_class).runbook


def write_progress(control: ControlFolder, progress: Progress) -> None:
    """Replace the progress file."""
    write_json(control.progress, progress.model_dump(mode="json"))


def read_progress(control: ControlFolder) -> Progress | None:
    """Return the latest progress, or None where there is none.

    Raises:
        ValueError: It cannot be read: a power cut may tear it, as it is written every second and not synced.
    """
    body: Any = read_json(control.progress)
    return None if body is None else Progress.model_validate(body)


def readable_progress(control: ControlFolder) -> Progress | None:
    """Return the latest progress, or None if there is no readable one: the next application writes it again."""
    try:
        return read_progress(control)
    except ValueError:
        return None


def write_outcome(control: ControlFolder, outcome: Outcome) -> None:
    """Write how the application ended."""
    write_json(control.outcome(outcome.app_id), outcome.model_dump(mode="json"), durable=True)


def read_outcome(control: ControlFolder, app_id: str) -> Outcome | None:
    """Return how that application ended, or None while it lives or when it died without an outcome."""
    body: Any = read_json(control.outcome(app_id))
    return None if body is None else Outcome.model_validate(body)
