"""What a store has to offer, whatever it is: its newest entry, and a commit that takes place as a whole or not at all."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from lakebound.landing.to_stores.shape import StoreShape
from lakebound.landing.to_stores.store_rows import Changes
from lakebound.landing.to_topics.ledger_record import LedgerRecord


@dataclass(frozen=True)
class Held:
    """The ledger of a store as it was read.

    Attributes:
        commit: UUID of the newest commit, by which the next one finds out whether another came between.
        record: The entry, with the sums of all entries before it.
    """

    commit: str
    record: LedgerRecord


@dataclass(frozen=True)
class StoreCommit:
    """A commit that is to take place.

    Attributes:
        expected: UUID of the commit before it; None of the first.
        epoch: Of the application.
        commit: Its own UUID.
        pipeline: Whose it is.
        value: The ledger's new record (``ledger_record.encode_record``).
        now_ms: When it is made.
    """

    expected: str | None
    epoch: int
    commit: str
    pipeline: str
    value: bytes
    now_ms: int


class TargetStore(Protocol):
    """Reads and writes one store. Used by one thread at a time; connects when it is first asked."""

    def newest(self, *, settled: bool) -> Held | None:
        """Return the newest entry; None without any.

        Args:
            settled: Wait for a commit that is under way. Who only looks does not.

        Raises:
            StoreUnavailableError: The store does not answer.
            StoreRefusedError: It refuses the login, or is not fit to be written to.
            StoreTornError: A commit was cut in the middle.
            BadEntryError: The entry cannot be read.
        """

    def check(self, schema: pa.Schema) -> None:
        """Check, before a start, that the rows can be written; leaves nothing behind.

        Args:
            schema: Columns of the files in which rows wait.

        Raises:
            StoreUnavailableError: The store does not answer.
            StoreRefusedError: It cannot take these rows, or the user may not write them.
        """

    def contradiction(self, shape: StoreShape, at: int) -> str | None:
        """Return what shows that another shape has filled the store, where its ledger does not say it; None: nothing does.

        Args:
            shape: That of the pipeline.
            at: When the newest commit was made, in seconds.

        Raises:
            StoreUnavailableError: The store does not answer.
        """

    def advice(self) -> str | None:
        """Return what a person should know of how the store is set up; None where nothing is to be said. Only looks.

        Raises:
            StoreUnavailableError: The store does not answer.
            StoreRefusedError: It is not fit to be written to.
        """

    def server_id(self) -> str:
        """Return what tells this database on this server from every other one, by whatever name it was reached.

        Raises:
            StoreUnavailableError: The store does not answer.
            StoreRefusedError: It does not tell.
        """

    def make(self, schema: pa.Schema) -> str:
        """Make what is not there yet, and return by what the store is known again. Called where there is no entry.

        Args:
            schema: Columns of the files in which rows wait.

        Raises:
            StoreNotEmptyError: It has rows.
            StoreUnavailableError: The store does not answer.
            StoreRefusedError: It cannot take these rows.
        """

    def held(self) -> int:
        """Return how many rows or keys it holds, whatever its ledger says.

        Raises:
            StoreUnavailableError: The store does not answer.
            StoreRefusedError: The user may not look.
        """

    def empty(self) -> str:
        """Make it as if it had never been filled, so that the next start fills it: what was done, in words.

        An end in the middle leaves a store without a ledger, which a start refuses while it holds anything.

        Raises:
            StoreUnavailableError: The store does not answer.
            StoreRefusedError: The user may not do this.
        """

    def begin_anew(self, schema: pa.Schema, first: Callable[[str], StoreCommit]) -> str:
        """Make it as if it had never been filled, with a first entry: what was done, in words.

        There is no moment at which the store is empty and has no ledger: an end in the middle leaves the ledger of before, or
        the first entry, perhaps with keys that are not removed yet.

        Args:
            schema: Columns of the files in which rows wait.
            first: Returns the commit of the first entry, given by what the store is known again.

        Raises:
            StoreUnavailableError: The store does not answer.
            StoreRefusedError: The user may not do this, or the store cannot take these rows.
        """

    def commit(self, what: StoreCommit, changes: Changes) -> int:
        """Change the store and its ledger, together: the version, which grows with each commit.

        Args:
            what: The commit.
            changes: The rows or counters.

        Raises:
            CommitRefusedError: Another commit came between, or a later application has committed: nothing was changed.
            Exception: The outcome is unknown until the ledger is read again.
        """

    def close(self) -> None:
        """Disconnect."""
