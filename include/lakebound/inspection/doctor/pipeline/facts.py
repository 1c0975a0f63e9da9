"""What is known of a pipeline when the doctor judges it: values only. ``collect`` beside this file reads them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

from lakebound.control.crash_loop import CrashLoop
from lakebound.control.desired import Desired
from lakebound.control.last_end import LastEnd
from lakebound.control.lease import Lease
from lakebound.control.progress import Outcome, Progress
from lakebound.control.submission import Submission
from lakebound.ledger.entry import Entry, Offsets, high_water_marks
from lakebound.ledger.foreign_changes import ForeignChange
from lakebound.ledger.intervals import Intervals
from lakebound.ledger.marks import NextOffsets, lowest
from lakebound.ledger.topics import TopicFacts
from lakebound.spec.pipeline import PipelineSpec
from lakebound.spec.table import TableRole

TableState = Literal[
    "entry",
    "empty",
    "absent",
    "no_ledger",
    "bad_entry",
    "newer_entry",
    "foreign",
    "restored",
    "behind",
    "feature",
    "unreadable",
]
"""entry: its newest entry can be used · empty: it exists, and has no rows · absent · the others: why no entry can be used."""

KafkaProblem = Literal["unavailable", "missing_secret", "refused"]


@dataclass(frozen=True)
class FeatureRefusal:
    """Why no row is written to a table: it asks something of its writers that is not done here.

    Attributes:
        sentence: In the words of the refusal.
        runbook: Its page.
    """

    sentence: str
    runbook: str


@dataclass(frozen=True)
class LedgerFacts:
    """One table, by its ledger.

    Attributes:
        table: Its id.
        role: The quarantine's coverage does not decide where reading begins.
        problem: Why no entry can be used, in the words of the refusal.
        entry: The one that counts.
        version: Delta version or Iceberg snapshot id at which it was read.
        landed_epoch: Of the newest commit with rows among the recent ones; 0 without any.
        committed_at_ms: When that one was committed.
        newest_record_ms: Kafka's timestamp of the newest record in that commit.
        txn_epoch: Delta: the epoch in the log's ``txn``, which no log clean-up removes.
        beyond_ledger: Offsets of rows that are not in the entry; determined only where the entry is a ``carry``.
        foreign_changes: Commits by which others changed rows and which nobody has acknowledged, oldest first.
        refusal: Why each commit of rows is refused, whatever the ledger says; None where it is not.
        quarantined_range: What the newest of the recent commits with quarantined records added.
    """

    table: str
    role: TableRole
    state: TableState
    problem: str = ""
    entry: Entry | None = None
    version: str = ""
    landed_epoch: int = 0
    committed_at_ms: int | None = None
    newest_record_ms: int | None = None
    txn_epoch: int | None = None
    beyond_ledger: Offsets = field(default_factory=dict)
    quarantined_range: Offsets = field(default_factory=dict)
    foreign_changes: tuple[ForeignChange, ...] = ()
    refusal: FeatureRefusal | None = None

    @property
    def coverage(self) -> Offsets:
        """Everything landed so far; empty without an entry."""
        return self.entry.coverage if self.entry else {}


@dataclass(frozen=True)
class Waiting:
    """The oldest record that waits in a partition: the one at the mark.

    Attributes:
        timestamp_ms: Kafka's; None when it could not be read in time.
        per_second: Records produced per second in recent time.
    """

    timestamp_ms: int | None = None
    per_second: float = 0.0


@dataclass(frozen=True)
class TopicRetention:
    """After what time or size Kafka deletes records of a topic; None: no such limit."""

    milliseconds: int | None = None
    bytes: int | None = None


@dataclass(frozen=True)
class KafkaLook:
    """What the broker said.

    Attributes:
        topics: Per topic of the pipeline; None for one that is not there. Empty when Kafka did not answer.
        problem: Why it did not.
        sentence: The same in words.
        waiting: Per topic and partition in which records wait.
        retention: Per topic.
        unread: Other facts that could not be read, with the reason.
    """

    topics: Mapping[str, TopicFacts | None] = field(default_factory=dict)
    problem: KafkaProblem | None = None
    sentence: str = ""
    waiting: Mapping[tuple[str, int], Waiting] = field(default_factory=dict)
    retention: Mapping[str, TopicRetention] = field(default_factory=dict)
    unread: tuple[str, ...] = ()


@dataclass(frozen=True)
class ScratchFacts:
    """The application's temporary checkpoint folder: never needed, but its size is watched.

    Attributes:
        exists: Whether the last application's folder is there; None where it may be on another machine.
        bytes: Size of all checkpoint folders of this machine.
        torn: Damaged files.
    """

    exists: bool | None = False
    bytes: int = 0
    torn: tuple[str, ...] = ()


@dataclass(frozen=True)
class PipelineFacts:
    """Everything that the rules look at. Times are epoch seconds.

    Attributes:
        living: The application that runs or is starting.
        submission_alive: Whether the process of the newest submission lives; None where that cannot be known.
        lease_written_at: When the file system or the store says that this lease was written; None where it was renewed
            meanwhile.
        crash_loop: The failed starts in a row, that of the last application included.
        unreadable: Per control file that cannot be read, why.
        repairing: Whether somebody holds the lock of repairs; looked at only where a redo is not finished.
        targets_seen: What the targets beside tables are like, by the key of their kind; each kind has rules of its own for it.
    """

    spec: PipelineSpec
    now: float
    tables: tuple[LedgerFacts, ...]
    kafka: KafkaLook = KafkaLook()
    desired: Desired | None = None
    lease: Lease | None = None
    lease_live: bool = False
    lease_written_at: float | None = None
    submission: Submission | None = None
    submission_alive: bool | None = None
    living: str | None = None
    progress: Progress | None = None
    outcome: Outcome | None = None
    last_end: LastEnd | None = None
    crash_loop: CrashLoop = field(default_factory=CrashLoop)
    scratch: ScratchFacts = ScratchFacts()
    unreadable: Mapping[str, str] = field(default_factory=dict)
    repairing: bool = False
    targets_seen: Mapping[str, object] = field(default_factory=dict)

    @property
    def targets(self) -> tuple[LedgerFacts, ...]:
        """The tables without the quarantine."""
        return tuple(table for table in self.tables if table.role == "target")

    @property
    def wanted_freshness(self) -> str | None:
        """The freshness that a start was asked for instead of the YAML's; None where it is the YAML's."""
        return self.desired.freshness if self.desired else None

    @property
    def is_wanted(self) -> bool:
        """Whether an application should be running; true if the desired state cannot be read."""
        return self.desired is None or self.desired.wants_app

    @property
    def own_progress(self) -> Progress | None:
        """The progress of the running application."""
        return self.progress if self.progress is not None and self.progress.app_id == self.living else None

    @property
    def has_run(self) -> bool:
        """Whether any application ever did anything here."""
        return self.lease is not None or self.submission is not None or any(table.entry for table in self.tables)

    def held(self, *, targets_only: bool = True) -> Iterator[tuple[LedgerFacts, str, int, Intervals]]:
        """Yield (table, topic, partition, intervals) of every coverage in the topic's current incarnation."""
        for table in self.targets if targets_only else self.tables:
            for topic, offsets in table.coverage.items():
                known = self.kafka.topics.get(topic)
                if known is None or known.topic_id != offsets.topic_id:
                    continue
                for partition, intervals in offsets.partitions.items():
                    yield table, topic, partition, intervals

    def lowest_marks(self) -> NextOffsets:
        """Return where a start would read from: the lowest high-water mark of the targets, per topic and partition."""
        return lowest({topic: {partition: intervals[-1][1]}} for _, topic, partition, intervals in self.held() if intervals)

    def table_marks(self) -> list[NextOffsets]:
        """Return the high-water marks of each target that has any."""
        return [high_water_marks(table.coverage) for table in self.targets if table.coverage]
