"""A topic as a target: its rows and its ledger entry are one transaction, and the newest committed entry is the checkpoint."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from lakebound.errors import CommitRefusedError, TableMismatchError, TargetNotEmptyError, TargetRecreatedError
from lakebound.landing.other_target import OtherTarget
from lakebound.landing.staged_rows import StagedRows
from lakebound.landing.to_topics.ledger_record import LedgerRecord, TargetTotals, encode_record
from lakebound.landing.to_topics.ledger_topic import LedgerTopic
from lakebound.landing.to_topics.messages import RowMessage, messages_of
from lakebound.landing.to_topics.producer import LedgerMessage, TopicProducer
from lakebound.landing.to_topics.scan import scan_sources
from lakebound.ledger.entry import Entry
from lakebound.spec.connection import ConnectionSpec
from lakebound.spec.to_topics import ToTopicSpec
from lakebound.tables.table import CommittedEntry, DataFile, LedgerView

_ROWS_AT_ONCE = 8192


def check_target_ids(written: Mapping[str, str | None], found: Mapping[str, str]) -> None:
    """Raise TargetRecreatedError when a topic that rows go to is another one now.

    Args:
        written: Ids that the topics had when their ledgers were read, by the topic's name.
        found: Present ids, by the topic's name.

    Raises:
        TargetRecreatedError: A topic has another id now.
    """
    for topic, known in written.items():
        if known is not None and found[topic] != known:
            raise TargetRecreatedError(topic, known, found[topic])


class TopicTarget(OtherTarget):
    """One target topic; a ``LandingTarget``. Each is committed by one thread; those of one pipeline share a producer."""

    def __init__(
        self,
        spec: ToTopicSpec,
        pipeline: str,
        connection: ConnectionSpec,
        *,
        producer: TopicProducer | None = None,
        schema: pa.Schema | None = None,
        scratch: Path | None = None,
    ) -> None:
        """Connect to nothing yet.

        Args:
            spec: The topic.
            pipeline: The pipeline.
            connection: Its broker.
            producer: That of the pipeline's application; None for who only looks, and fences nobody.
            schema: Columns of the files in which rows wait (``messages.staged_schema``); None for who only looks.
            scratch: Folder for these files; None for who only looks.
        """
        self._spec = spec
        self._pipeline = pipeline
        self._connection = connection
        self._producer = producer
        self._staged = StagedRows(spec.id, schema, scratch)
        self._ledger = LedgerTopic(connection, pipeline)
        self._generation = 0
        self._totals: TargetTotals | None = None

    @property
    def spec(self) -> ToTopicSpec:
        """What the pipeline says of it."""
        return self._spec

    @property
    def topic_id(self) -> str | None:
        """Kafka's id of the topic; None before the ledger was read."""
        return None if self._totals is None else self._totals.topic_id

    @property
    def totals(self) -> TargetTotals | None:
        """What the commits up to the one last seen have counted; None before the first."""
        return self._totals

    def exists(self) -> bool:
        """Whether the ledger topic has an entry of it."""
        end = self._ledger.end()
        return end is not None and next(self._ledger.newest_first(self.spec.id, end), None) is not None

    def create(self, schema: pa.Schema, genesis: Entry) -> None:
        """Make the ledger topic and commit the ``genesis`` entry, each where there is none. The topic itself must be there.

        Args:
            schema: Is not used: a topic has no columns.
            genesis: The first entry.

        Raises:
            MissingTopicError: There is no such topic.
            TargetNotEmptyError: It has had messages already.
        """
        self._ledger.make()
        # Who only looked may not have seen it yet: a commit is visible some moments after it has succeeded.
        if self.read_ledger().entry is None:
            self.commit([], genesis)

    def read_ledger(self, *, to_reset: bool = False) -> LedgerView:
        """Return the newest committed entry.

        Who writes has a producer first, so that no transaction of an earlier one is open or can still be committed; the end up
        to which it reads is taken after that. Who only looks sees what a reader of committed records sees.

        Args:
            to_reset: Is not used: a topic is never reset.

        Raises:
            TargetNotEmptyError: There is no entry, and the topic has had messages.
            TargetRecreatedError: The topic is another one than that of the entry.
            BadEntryError: The entry cannot be read.
            LeaseLostError: The lease is gone, so that no producer was made.
            OpenTransactionError: A transaction of somebody else is open in the ledger topic.
            MissingTopicError: There is no such topic.
        """
        if self._producer is None:
            return self._view(self._ledger.end())
        with self._producer.lock:
            self._generation = self._producer.ready()
            return self._view(self._ledger.settled_end())

    def commit(self, files: Sequence[DataFile], entry: Entry) -> str:
        """Send the rows of the files and the entry in one transaction: the offset of the entry in the ledger topic.

        Args:
            files: Files of ``layout``; all that lie there are removed when the commit has succeeded.
            entry: Says what they hold; in real time what was sent before.

        Raises:
            TableMismatchError: The files do not hold the rows that the entry counts: they lie on another machine.
            CommitRefusedError: The ledger must be read again before.
            Exception: The outcome is unknown until the ledger is read again.
        """
        if self._producer is None or self._totals is None:
            raise CommitRefusedError(self.spec.id, "its ledger was not read")
        found = sum(file.rows for file in files)
        if found != entry.rows and entry.delivery is None:
            reason = (
                f"{found} of its {entry.rows} rows are on this machine; rows of a topic must be written where the driver is"
            )
            raise TableMismatchError(self.spec.id, reason)
        totals = self._totals.plus(entry)
        record = LedgerMessage(self.spec.id.encode(), encode_record(entry, totals))
        offset = self._producer.commit(self._generation, self.spec.id, self.spec.topic, self._rows(files), record)
        self._totals = totals
        self._staged.remove()
        return str(offset)

    def entries(self) -> Iterator[CommittedEntry]:
        """Yield entries newest first, as far back as compaction has left them; the newest is always there."""
        end = self._ledger.end()
        for record in self._ledger.newest_first(self.spec.id, end) if end is not None else ():
            yield CommittedEntry(str(record.offset), record.timestamp_ms, record.entry)

    def scan_sources(self, topic_ids: Mapping[str, str]) -> pa.Table | None:
        """Return the origin of every committed message; see ``scan.scan_sources``."""
        return scan_sources(self._connection, self.spec.topic, topic_ids)

    def keep_cheap(self) -> None:
        """Serve the client while nothing is sent."""
        if self._producer is not None:
            self._producer.poll()

    def _view(self, end: int | None) -> LedgerView:
        record = next(self._ledger.newest_first(self.spec.id, end), None) if end is not None else None
        self._totals = self._checked(record)
        return LedgerView(record.entry, str(record.offset)) if record is not None else LedgerView(None, "")

    def _checked(self, record: LedgerRecord | None) -> TargetTotals:
        """Return the totals of the record, or of nothing; check that the topic is the one that they are of."""
        facts = self._ledger.facts.topics([self.spec.topic], isolation="read_uncommitted")[self.spec.topic]
        if record is None:
            if any(facts.latest.values()):
                raise TargetNotEmptyError(self.spec.topic, self._ledger.name)
            return TargetTotals(topic_id=facts.topic_id)
        if record.totals.topic_id != facts.topic_id:
            raise TargetRecreatedError(self.spec.topic, record.totals.topic_id, facts.topic_id)
        return record.totals

    def _rows(self, files: Sequence[DataFile]) -> Iterator[RowMessage]:
        for file in files:
            with pq.ParquetFile(file.path.path) as staged:
                for rows in staged.iter_batches(_ROWS_AT_ONCE):
                    yield from messages_of(rows, self.spec.key)
