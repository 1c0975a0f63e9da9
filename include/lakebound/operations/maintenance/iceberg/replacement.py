"""The commit of rewritten files: tried again while the stream is faster. Where it is lost, what was written for it goes."""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from lakebound.control.folder import ControlFolder
from lakebound.control.turns import AskForTurn
from lakebound.errors import CommitRefusedError, FilesOutdatedError, TableFeatureError, TableMismatchError
from lakebound.ledger.entry import carried
from lakebound.operations.maintenance.engines import StepLostError, UnknownLedgerError
from lakebound.storage.location import delete_all
from lakebound.tables.iceberg.live_files import KnownManifests
from lakebound.tables.iceberg.replacing import NotReplaceableError
from lakebound.tables.iceberg.table import IcebergTable
from lakebound.tables.table import DataFile

_ATTEMPTS = 60
_UNKNOWN_OUTCOMES = 3
_LONGEST_WAIT_SECONDS = 0.2
"""A turn that was asked for is short."""
_LEAST_SECONDS = 60.0
"""For the attempts of one commit: the step may have used up its time when the files were written."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Replacement:
    """Files that come in the place of others.

    Attributes:
        removed: Paths of the files that go, as manifests name them.
        files: The files that come.
        ends_at: When attempts end, by the monotonic clock.
    """

    removed: Collection[str]
    files: Sequence[DataFile]
    ends_at: float


def replace(opened: IcebergTable, replacement: Replacement, known: KnownManifests, control: ControlFolder) -> int:
    """Commit a replacement, and return how often somebody else was faster.

    Args:
        opened: The table; nothing else was replaced by it.
        replacement: The files.
        known: What was read of the table's manifests.
        control: The pipeline's folder: its stream is asked for a turn.

    Raises:
        StepLostError: Others changed the table each time, or what was rewritten is not in it any more.
        UnknownLedgerError: It has no entry yet.
        TableMismatchError: The new files do not fit it any more.
        Exception: The outcome is unknown.
    """
    try:
        with AskForTurn(control, opened.spec.id) as turn:
            conflicts = _commit(opened, replacement, known, turn)
    except BaseException:
        _clear(opened, replacement.files)
        raise
    if conflicts:
        _clear(opened, ())
    return conflicts


def _commit(opened: IcebergTable, replacement: Replacement, known: KnownManifests, turn: AskForTurn) -> int:
    table, unknown, attempt = opened.spec.id, 0, 0
    ends_at = max(replacement.ends_at, time.monotonic() + _LEAST_SECONDS)
    while attempt < _ATTEMPTS and time.monotonic() < ends_at:
        try:
            entry = opened.read_ledger().entry
            if entry is None:
                raise UnknownLedgerError(table)
            _check_there(table, replacement.files)
            opened.replace_files(replacement.removed, replacement.files, carried(entry), known)
            return attempt
        except NotReplaceableError as exc:
            if exc.is_replaced:
                return attempt
            raise StepLostError(table, str(exc), attempt) from exc
        except FilesOutdatedError as exc:
            raise StepLostError(table, str(exc), attempt) from exc
        except (UnknownLedgerError, StepLostError, TableFeatureError, TableMismatchError):
            raise
        except CommitRefusedError:
            turn()
        except Exception:
            unknown += 1
            if unknown == _UNKNOWN_OUTCOMES:
                raise
        time.sleep(random.uniform(0, min(0.02 * 2**attempt, _LONGEST_WAIT_SECONDS)))
        attempt += 1
    raise StepLostError(table, f"its commit was refused {attempt} times", attempt)


def _check_there(table: str, files: Sequence[DataFile]) -> None:
    """Check that nobody has taken the new files for orphans, as happens to a process that was suspended for days."""
    gone = [file.path.name for file in files if not file.path.exists()]
    if gone:
        raise StepLostError(table, f"its new files were removed before they were committed ({', '.join(gone)})")


def _clear(opened: IcebergTable, files: Sequence[DataFile]) -> None:
    """Delete what refused attempts wrote, and the files if all of them were refused for certain.

    What stays although no snapshot names it, the look for orphans finds: ``remove_orphans`` lists all that the table does not
    need, moves it aside on a disk, and names it in the report where it is in a bucket.
    """
    try:
        if opened.delete_refused():
            delete_all(file.path for file in files)
    except Exception:
        _log.warning("%s: files of a lost rewrite stay, to be found as orphans", opened.spec.id, exc_info=True)
