"""The facts from which repairs are planned: the tables, Kafka, who may write, and the desired state."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from lakebound.control.applications import living_submission
from lakebound.control.crash_loop import read_crash_loop
from lakebound.control.desired import Desired, read_desired
from lakebound.control.folder import ControlFolder
from lakebound.control.lease import Lease, lease_is_live, readable_lease
from lakebound.control.progress import Progress, readable_progress
from lakebound.control.submission import Submission
from lakebound.control.supervision import KafkaView, stall
from lakebound.errors import BrokerUnavailableError, CatalogBehindError, KafkaRefusalError, LakeboundError, MissingTopicError
from lakebound.first_line import first_line
from lakebound.landing.kafka import KafkaFacts
from lakebound.ledger.entry import FormerCoverage, Offsets, check_owner, high_water_marks
from lakebound.ledger.marks import NextOffsets, lag, lowest_of_all, unlanded
from lakebound.ledger.topics import TopicFacts
from lakebound.operations.recovery.landing_rate import slowest_rate
from lakebound.operations.recovery.rebuild import Rebuilt, rebuild, rebuild_behind
from lakebound.settings import Settings
from lakebound.spec.pipeline import PipelineSpec
from lakebound.spec.table import TableRole, TableSpec
from lakebound.tables.places import Places, places_of
from lakebound.tables.table import open_table

KAFKA_SECONDS = 10.0


class TornControlFileError(LakeboundError):
    """The desired state of a pipeline, or its submission, cannot be read."""

    def __init__(self, pipeline: str, folder: object, reason: ValueError) -> None:
        super().__init__(
            f"pipeline {pipeline!r}: desired.json or submission.json in {folder} cannot be read "
            f"({first_line(reason)}); move the file to another folder first, as the runbook control-files says"
        )


@dataclass(frozen=True)
class HeldTable:
    """One table as it is now.

    Attributes:
        table: Its id.
        role: What it is to the pipeline.
        exists: Whether there is such a table.
        coverage: From its ledger; empty if the ledger is refused.
        former: Coverage of earlier incarnations of recreated topics.
        released: How many offsets were released from quarantine so far.
        refusal: Why its ledger is refused; None if it is not.
        runbook: The page for that refusal.
        rebuilt: The offsets that its rows have nevertheless; None if the ledger is right or they are not known.
        behind: The metadata file that the catalog names, and the newest one, where these differ and there is one newest.
    """

    table: str
    role: TableRole = "target"
    exists: bool = True
    coverage: Offsets = field(default_factory=dict)
    former: FormerCoverage = field(default_factory=dict)
    released: int = 0
    refusal: str | None = None
    runbook: str = "refused"
    rebuilt: Rebuilt | None = None
    behind: tuple[str, str] | None = None

    @property
    def marks(self) -> NextOffsets:
        """Next offset to read, per topic and partition."""
        return high_water_marks(self.coverage)


@dataclass(frozen=True)
class BrokerFacts:
    """Facts from the broker.

    Attributes:
        topics: Of the pipeline's topics, None for one that is not there.
        silence: Why it did not answer, None when it did.
    """

    topics: Mapping[str, TopicFacts | None] = field(default_factory=dict)
    silence: str | None = None

    @property
    def ids(self) -> dict[str, str]:
        """Topic id per topic that is there."""
        return {topic: facts.topic_id for topic, facts in self.topics.items() if facts is not None}


@dataclass(frozen=True)
class Control:
    """Who may write, what runs, and what should run. Times are epoch seconds.

    Attributes:
        desired: The desired state.
        lease: As in its file; None if there never was one.
        lease_is_live: Whether its holder still counts as alive.
        app: The application that runs or is starting.
        stall: Why that application counts as stalled; None if it does not.
        barren_ends: How many starts in a row landed nothing, once there are enough of them that a person is asked; else 0.
        last_seen_ends: Kafka's end offsets as the last application saw them.
        now: When this was read.
    """

    desired: Desired = field(default_factory=Desired)
    lease: Lease | None = None
    lease_is_live: bool = False
    app: Submission | None = None
    stall: str | None = None
    barren_ends: int = 0
    last_seen_ends: NextOffsets = field(default_factory=dict)
    now: float = 0.0


@dataclass(frozen=True)
class RecoveryFacts:
    """Everything that a repair is planned from; the rate is that of landing, None if no entry shows it."""

    pipeline: str
    tables: tuple[HeldTable, ...] = ()
    kafka: BrokerFacts = field(default_factory=BrokerFacts)
    control: Control = field(default_factory=Control)
    records_per_second: float | None = None

    @property
    def targets(self) -> tuple[HeldTable, ...]:
        """The tables that decide where landing continues."""
        return tuple(table for table in self.tables if table.role == "target" and table.exists)

    @property
    def records_behind(self) -> int:
        """How many offsets Kafka has that the table furthest behind lacks."""
        return unlanded(lowest_of_all([self._marks_now(table) for table in self.targets]), self.kafka.topics)

    def _marks_now(self, table: HeldTable) -> NextOffsets:
        """Return a table's marks in the topics' current incarnations; from its rows if its ledger is refused."""
        coverage = table.rebuilt.coverage if table.rebuilt else table.coverage
        return high_water_marks({topic: held for topic, held in coverage.items() if held.topic_id == self.kafka.ids.get(topic)})


def collect(spec: PipelineSpec, settings: Settings) -> RecoveryFacts:
    """Return the facts as they are now; writes nothing."""
    kafka = collect_kafka(spec)
    tables = collect_tables(spec, places_of(settings, spec.warehouse), kafka)
    control = collect_control(spec, settings.home, kafka)
    return RecoveryFacts(spec.pipeline, tables, kafka, control, _rate(spec, places_of(settings, spec.warehouse)))


def _rate(spec: PipelineSpec, places: Places) -> float | None:
    tables = [open_table(table, places) for table in spec.tables]
    # A ledger that cannot be read is going to be repaired: only the estimate is missing.
    with suppress(LakeboundError):
        return slowest_rate([table for table in tables if table.exists()])
    return None


def collect_kafka(spec: PipelineSpec) -> BrokerFacts:
    """Return the broker's facts of the pipeline's topics."""
    try:
        broker = KafkaFacts(spec.connection, timeout_seconds=KAFKA_SECONDS)
        return BrokerFacts({topic: _topic(broker, topic) for topic in spec.topics})
    except (BrokerUnavailableError, KafkaRefusalError) as exc:
        return BrokerFacts(silence=str(exc))


def collect_tables(spec: PipelineSpec, places: Places, kafka: BrokerFacts) -> tuple[HeldTable, ...]:
    """Return every target and the quarantine, the quarantine last.

    Args:
        spec: The pipeline.
        places: Where its tables are.
        kafka: What the broker says; offsets are rebuilt by its topic ids.
    """
    tables = [_held(table, "target", spec.pipeline, places, kafka) for table in spec.tables]
    return (*tables, _held(spec.quarantine_table, "quarantine", spec.pipeline, places, kafka))


def collect_control(spec: PipelineSpec, home: Path, kafka: BrokerFacts) -> Control:
    """Return who may write, what runs, and what should run.

    Raises:
        TornControlFileError: The desired state or the submission cannot be read.
    """
    control = ControlFolder(home, spec.pipeline)
    now, lease, progress = time.time(), readable_lease(control), readable_progress(control)
    try:
        app, desired = living_submission(control), read_desired(control)
    except ValueError as exc:
        raise TornControlFileError(spec.pipeline, control.shared, exc) from exc
    loop = read_crash_loop(control).since(desired.since)
    return Control(
        desired=desired,
        lease=lease,
        lease_is_live=lease is not None and lease_is_live(control, lease, now),
        app=app,
        stall=None if app is None else _stall(spec, desired, app, progress, kafka, now),
        barren_ends=len(loop.ends) if loop.is_over_limit(spec.limits.max_failed_starts) else 0,
        last_seen_ends={} if progress is None else progress.latest_offsets,
        now=now,
    )


def _topic(broker: KafkaFacts, topic: str) -> TopicFacts | None:
    try:
        return broker.topics([topic])[topic]
    except MissingTopicError:
        return None


def _held(spec: TableSpec, role: TableRole, pipeline: str, places: Places, kafka: BrokerFacts) -> HeldTable:
    table = open_table(spec, places)
    if not table.exists():
        return HeldTable(spec.id, role, exists=False)
    try:
        entry = table.read_ledger().entry
        if entry is None:
            return HeldTable(spec.id, role)
        check_owner(entry, pipeline, spec.id)
        ahead = rebuild_behind(table, entry, kafka.ids)
    except LakeboundError as exc:
        return _refused(spec, role, places, kafka, exc)
    if ahead is not None:
        reason = f"the entry of table {spec.id} is older than its rows"
        return HeldTable(spec.id, role, refusal=reason, runbook="ledger-behind", rebuilt=ahead)
    return HeldTable(spec.id, role, coverage=entry.coverage, former=entry.former, released=entry.released)


def _refused(spec: TableSpec, role: TableRole, places: Places, kafka: BrokerFacts, reason: LakeboundError) -> HeldTable:
    runbook = reason.runbook
    if isinstance(reason, CatalogBehindError) and reason.newest is not None:
        return HeldTable(spec.id, role, refusal=str(reason), runbook=runbook, behind=(reason.named, reason.newest))
    try:
        rebuilt = rebuild(open_table(spec, places), reason, kafka.ids)
    except LakeboundError as exc:
        return HeldTable(spec.id, role, refusal=str(exc), runbook=runbook)
    return HeldTable(spec.id, role, refusal=str(reason), runbook=runbook, rebuilt=rebuilt)


def _stall(
    spec: PipelineSpec, desired: Desired, app: Submission, progress: Progress | None, kafka: BrokerFacts, now: float
) -> str | None:
    """Return why the application counts as stalled, from one reading: its last commit stands for an earlier reading."""
    found = stall(spec.thresholds, spec.pace(desired.freshness), app, progress, _view(progress, kafka, now), now)
    return None if found is None else found.reason


def _view(progress: Progress | None, kafka: BrokerFacts, now: float) -> KafkaView:
    if progress is None:
        return KafkaView()
    ends = {topic: facts.latest for topic, facts in kafka.topics.items() if facts is not None}
    waiting = lag(progress.high_water_marks, ends) or 0
    since = progress.last_commit_at or progress.started_at
    return KafkaView(since if waiting else None, progress.high_water_marks, waiting)
