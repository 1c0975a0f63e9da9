"""Commit a batch exactly once, whatever the commit answers: read the ledger again, and let it decide."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import gettempdir

import structlog
from tenacity import RetryError, Retrying, retry_if_exception, stop_after_delay, wait_random_exponential

from lakebound import faults
from lakebound.errors import (
    BadEntryError,
    CommitFailedError,
    CommitUnknownError,
    DiskFullError,
    FilesOutdatedError,
    LakeboundError,
    LeaseLostError,
    TableFeatureError,
    TableMismatchError,
)
from lakebound.ledger import entry as ledger
from lakebound.ledger.entry import Entry
from lakebound.ledger.foreign_changes import remembered
from lakebound.redaction import redacted
from lakebound.tables.full_disk import full_disk_error
from lakebound.tables.outages import is_full_disk, passes
from lakebound.tables.prepared import StalePreparedError
from lakebound.tables.stale_ledger import check_rows_known
from lakebound.tables.table import CommittedEntry, DataFile, LedgerView
from lakebound.tables.target import LandingTarget

_FIRST_WAIT_SECONDS = 0.05
_LONGEST_WAIT_SECONDS = 5.0
_log = structlog.get_logger(__name__)

_LAND_ELSEWHERE: tuple[ledger.EntryKind, ...] = ("open", "land", "carry")
"""Kinds whose commits bring no row of an offset that was covered before."""

Commit = Callable[[Entry], str]
"""Commits something to a table, with an entry, and returns the version."""


class BatchOverlapError(LakeboundError):
    """Another commit landed offsets of the batch that is about to be committed: trim it again and redo it."""

    def __init__(self, table: str, offsets: int) -> None:
        super().__init__(
            f"table {table}: another commit landed {offsets} offsets of this batch; the batch must be trimmed and written again"
        )


class LedgerWentBackError(LakeboundError):
    """A table was rolled back while it was written: the batches after that point must be read again."""

    def __init__(self, table: str, offsets: int) -> None:
        super().__init__(
            f"table {table} was rolled back while the stream wrote to it: {offsets} offsets are no longer in its ledger; "
            f"nothing was written after the rollback, and these offsets are read again"
        )


class ReleaseOvertakenError(LakeboundError, passes=True):
    """The rows of a table have changed since a release or recall was planned from them: it must be planned again."""

    def __init__(self, table: str, reason: str) -> None:
        super().__init__(
            f"table {table}: a release from quarantine, or a recall into it, was not committed: {reason}; run it again"
        )


@dataclass(frozen=True)
class Committed:
    """A commit that took place.

    Attributes:
        version: Delta version or Iceberg snapshot id.
        entry: The entry as it was committed.
        attempts: How often it was tried.
        read_again: The ledger as it was read after an unknown outcome; None where the commit was answered. Others may have
            committed after this commit, and the table's handle is that of the newest one.
    """

    version: str
    entry: Entry
    attempts: int
    read_again: LedgerView | None = None

    @property
    def view(self) -> LedgerView:
        """The ledger from which the next commit goes on."""
        return self.read_again or LedgerView(self.entry, self.version)


@dataclass(frozen=True)
class Waits:
    """How a commit waits for its table.

    Attributes:
        between: Waits the given seconds before the next attempt.
        reread_seconds: How long to try to read the ledger after a failed attempt.
    """

    between: Callable[[float], None] = time.sleep
    reread_seconds: float = 120.0


WAITS = Waits()


def commit_entry(
    table: LandingTarget,
    view: LedgerView,
    files: Sequence[DataFile] | Commit,
    draft: Entry,
    *,
    own_epoch: int,
    check_lease: Callable[[], None],
    attempts: int,
    waits: Waits = WAITS,
) -> Committed:
    """Commit files and an entry to a table, and return when it is known that they are there, once.

    Args:
        table: The table; its handle is the one from which ``view`` was read or committed.
        view: The ledger as this application last saw it.
        files: Data files, perhaps none; or what commits something else to the table.
        draft: The entry: ``range`` is what the commit adds, ``commit`` its UUID; its ``coverage`` is worked out here. A
            ``reset`` brings its own coverage, and may be committed where no entry counts.
        own_epoch: Of this application's lease.
        check_lease: Raises LeaseLostError when the lease is gone; called before each attempt after the first.
        attempts: How often to try.
        waits: How it waits for the table.

    Raises:
        BatchOverlapError: The table meanwhile holds offsets of the batch; trim it and write it again.
        LedgerWentBackError: The table was rolled back meanwhile, perhaps with this commit.
        LedgerBehindError: All that is left of the ledger is an entry carried on before rows landed that are in the table.
        ReleaseOvertakenError: Of a ``release`` or a ``recall``: another one was faster, or its offsets are not covered; look at
            the rows again.
        LeaseLostError: A later application writes for this pipeline.
        CommitUnknownError: All attempts failed for reasons that pass by themselves, or the ledger could not be read.
        DiskFullError: All attempts failed, and the last one because a disk is full.
        CommitFailedError: All attempts failed, and the last one for a reason that would come again; the ledger says that the
            commit is not there.
        FilesOutdatedError: The table has other columns than those for which the files were written; write them again.
        TableFeatureError: The table has got a feature that is not written here.
        TableMismatchError: The files do not fit the table.
        StalePreparedError: What was to be committed beside files no longer fits the table; nothing was written.
    """
    commit = files if callable(files) else (lambda entry: table.commit(files, entry))
    reason, is_passing, full = "", True, None
    _check_rows_known(table, view, draft)
    for attempt in range(1, attempts + 1):
        entry = _next_entry(table, view, draft, own_epoch)
        try:
            faults.reach("before_commit", _fault_detail(table, draft))
            version = commit(entry)
            faults.reach("after_commit", _fault_detail(table, draft))
            if view.foreign_changes:
                changes = [str(one) for one in view.foreign_changes]
                _log.warning("rows_changed_by_others", table=table.spec.id, commit=draft.commit, changes=changes)
            return Committed(version, entry, attempt)
        except (TableMismatchError, TableFeatureError, FilesOutdatedError, StalePreparedError):
            raise  # it does not fit the table: nothing was committed, and never will be
        except Exception as exc:
            reason, is_passing = redacted(exc), passes(exc)
            full = _full_disk(table, exc)
            whole = f"{type(exc).__name__}: {exc}"
            _log.warning("commit_failed", table=table.spec.id, commit=draft.commit, attempt=attempt, reason=whole)
        if attempt < attempts:
            # Before the reading, not after it: a ledger that was read a while ago is stale where somebody else commits often.
            waits.between(_wait_seconds(attempt))
        before, view = view, _reread(table, draft, attempt, waits.reread_seconds)
        _check_epoch(view, draft, own_epoch)
        _check_rows_known(table, view, draft)
        found = _own_commit(table, before, draft)
        if found is not None:
            _check_holds(table, found.entry.coverage, view, draft)
            return Committed(found.version, found.entry, attempt, view)
        check_lease()
        _check_goes_on(table, before, view, draft)
    raise full or (
        CommitUnknownError(table.spec.id, attempts, reason)
        if is_passing
        else CommitFailedError(table.spec.id, attempts, reason)
    )


def read_on(table: LandingTarget, view: LedgerView, draft: Entry, own_epoch: int) -> LedgerView:
    """Read the ledger again, from a table that must still hold what it held.

    Args:
        table: The table.
        view: The ledger as this application last saw it.
        draft: What it wanted to commit.
        own_epoch: Of this application's lease.

    Raises:
        LeaseLostError: A later application writes for this pipeline.
        LedgerWentBackError: The table was rolled back meanwhile.
        LedgerBehindError: As ``commit_entry`` says.
        CommitUnknownError: The ledger cannot be read.
    """
    after = _reread(table, draft, 1, WAITS.reread_seconds)
    _check_epoch(after, draft, own_epoch)
    _check_rows_known(table, after, draft)
    _check_goes_on(table, view, after, draft)
    return after


def _check_epoch(view: LedgerView, draft: Entry, own_epoch: int) -> None:
    if view.epoch > own_epoch:
        raise LeaseLostError(draft.pipeline, own_epoch, view.epoch)


def _check_rows_known(table: LandingTarget, view: LedgerView, draft: Entry) -> None:
    """Raise when rows lie beyond an entry that may lag: whatever follows it would be read again. A reset says what is there."""
    if draft.kind != "reset" and view.may_lag:
        check_rows_known(table, view)


def _next_entry(table: LandingTarget, view: LedgerView, draft: Entry, own_epoch: int) -> Entry:
    """Return the entry for the table as ``view`` shows it."""
    if view.entry is not None:
        ledger.check_owner(view.entry, draft.pipeline, table.spec.id)
    _check_epoch(view, draft, own_epoch)
    entry = ledger.following(draft, view.entry)
    foreign = remembered(entry.foreign_changes, view.foreign_changes, draft.acknowledges)
    # That no redo stands any more is said only where one did: whoever reads the entry then has to know what a redo is.
    redo = entry.newest_redo or ("" if view.newest_redo else None)
    entry = entry.model_copy(update={"epoch": own_epoch, "foreign_changes": foreign, "newest_redo": redo})
    if draft.changes_seen is None:
        entry = entry.model_copy(update={"changes_seen": view.changes_seen or entry.changes_seen})
    if draft.kind == "reset":
        return entry
    overlap = ledger.count(ledger.common(view.coverage, draft.range))
    if overlap:
        raise BatchOverlapError(table.spec.id, overlap)
    _check_releases(table, view, draft)
    _check_redoes(table, view, draft)
    coverage = ledger.add(view.coverage, draft.range)
    released = view.released + ledger.count(draft.releases) + draft.from_quarantine
    entry = entry.model_copy(update={"coverage": coverage, "released": released})
    if draft.kind != "redo":
        return entry
    return entry.model_copy(update={"redo_before": view.newest_redo or None, "newest_redo": draft.commit})


def _check_goes_on(table: LandingTarget, before: LedgerView, view: LedgerView, draft: Entry) -> None:
    """Raise when the table no longer holds what it held: a batch on top of it would leave a gap that nobody reads again."""
    _check_holds(table, before.coverage, view, draft)
    is_decided_again = (view.released, view.newest_redo) != (before.released, before.newest_redo)
    if draft.kind in ledger.DECIDE_ANEW and is_decided_again:
        raise ReleaseOvertakenError(table.spec.id, f"another {draft.kind}, or a redo, was committed meanwhile")
    if draft.kind == "redo":
        _check_only_landed(table, before)


def _check_only_landed(table: LandingTarget, before: LedgerView) -> None:
    """Raise when since a version more was committed than new offsets and the same rows in other files.

    A release or another redo may have brought rows of the offsets that are redone, and no file that goes need hold them.
    """
    for committed in table.entries():
        if committed.version == before.version:
            return
        if committed.entry.kind not in _LAND_ELSEWHERE:
            raise StalePreparedError(table.spec.id, f"a {committed.entry.kind} was committed meanwhile")
    raise StalePreparedError(table.spec.id, f"its history no longer reaches back to version {before.version}")


def _check_holds(table: LandingTarget, held: ledger.Offsets, view: LedgerView, draft: Entry) -> None:
    """Raise when the table no longer holds offsets; a reset takes them away."""
    gone = 0 if draft.kind == "reset" else ledger.count(ledger.missing(held, view.coverage))
    if gone:
        raise LedgerWentBackError(table.spec.id, gone)


def _check_releases(table: LandingTarget, view: LedgerView, draft: Entry) -> None:
    """Raise when a release or recall names an offset that the table does not cover: the stream or a replay will land it."""
    ids = {topic: held.topic_id for topic, held in draft.releases.items()}
    uncovered = ledger.count(ledger.missing(draft.releases, view.coverage))
    if uncovered or any(view.coverage[topic].topic_id != known for topic, known in ids.items()):
        raise ReleaseOvertakenError(table.spec.id, "the table does not cover all of these offsets")


def _check_redoes(table: LandingTarget, view: LedgerView, draft: Entry) -> None:
    """Raise when a redo names an offset that the table does not cover: its new rows would land once more."""
    uncovered = ledger.count(ledger.missing(draft.redoes, view.coverage))
    if uncovered or any(view.coverage[topic].topic_id != held.topic_id for topic, held in draft.redoes.items()):
        raise StalePreparedError(table.spec.id, "it does not cover all offsets that are to be redone")


def _reread(table: LandingTarget, draft: Entry, attempts: int, patience_seconds: float) -> LedgerView:
    """Read the ledger, waiting while catalog or disk do not answer."""
    reading = Retrying(
        retry=retry_if_exception(lambda error: not isinstance(error, LakeboundError) or error.passes),
        stop=stop_after_delay(patience_seconds),
        wait=wait_random_exponential(multiplier=_FIRST_WAIT_SECONDS, max=_LONGEST_WAIT_SECONDS),
    )
    try:
        return reading(table.read_ledger, to_reset=draft.kind == "reset")
    except RetryError as exc:
        cause = exc.last_attempt.exception()
        raise CommitUnknownError(table.spec.id, attempts, f"its ledger cannot be read: {cause}") from cause


def _own_commit(table: LandingTarget, before: LedgerView, draft: Entry) -> CommittedEntry | None:
    """Return the commit of this draft, if it is among the table's entries since ``before``."""
    try:
        for committed in table.entries():
            if committed.entry.commit == draft.commit:
                return committed
            if committed.version == before.version:
                return None
    except BadEntryError:
        return None  # only a reset is committed on top of one, and would have been found before it
    return None


def _full_disk(table: LandingTarget, error: Exception) -> DiskFullError | None:
    if not is_full_disk(error):
        return None
    folder = table.layout().folder
    # What goes into a store is written to a scratch file first.
    return full_disk_error(error, f"table {table.spec.id}", folder.path if folder.is_local else Path(gettempdir()))


def _fault_detail(table: LandingTarget, draft: Entry) -> str:
    """A batch's rows are named by the format of their table, so that tests can count batches; other commits by their kind."""
    return table.spec.format if draft.lane else draft.kind


def _wait_seconds(attempt: int) -> float:
    longest = min(_FIRST_WAIT_SECONDS * 2**attempt, _LONGEST_WAIT_SECONDS)
    return random.uniform(longest / 2, longest)
