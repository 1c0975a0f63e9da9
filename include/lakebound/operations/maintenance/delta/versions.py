"""The versions of a Delta table as its log's JSON commits tell them: quickly, for there may be tens of thousands."""

from __future__ import annotations

import re
from collections.abc import Iterator

from lakebound.errors import BadEntryError
from lakebound.ledger.entry import EntryKind
from lakebound.operations.maintenance.history import TablePast, Version
from lakebound.storage.location import Location
from lakebound.storage.requests import ahead
from lakebound.tables.delta.checkpoints import list_log, whole_checkpoints
from lakebound.tables.delta.log import DeltaCommit, commit_file, commits

_QUICK = re.compile(
    rb'\{"commitInfo":\{"timestamp":(\d+),"operation":"([A-Z ]+)",[^\n]*?"userMetadata":"\{\\"lakebound\\":\{\\"kind\\":\\"'
    rb"(genesis|open|land|replay|skip|reset|carry)\\\""
)
"""A commit of ours, as ``deltalake`` writes it and ``lakebound.ledger.entry.encode`` begins it."""

_IN_COMMIT_TIMESTAMP = b'"inCommitTimestamp"'
_HEAD_BYTES = 64 * 1024
_RESTORE = "RESTORE"


def read_versions(folder: Location, table: str) -> TablePast:
    """Return the versions that the log leads to without a gap, without pins.

    Args:
        folder: The table's folder.
        table: ``format:name``.
    """
    files = list_log(folder)
    numbers = {file.version for file in files if file.is_commit}
    current = max(numbers, default=None)
    if current is None:
        return TablePast(table=table)
    found: list[Version] = []
    was_current: dict[int, int] = {}
    at, problems = current, list[str]()
    heads = _heads(folder, (number for number in range(current, -1, -1) if number in numbers))
    while at in numbers:
        try:
            version, is_restore = _read(folder, at, next(heads))
        except FileNotFoundError:  # cleaned up meanwhile
            break
        except BadEntryError as exc:
            problems.append(str(exc))
            break
        found.append(version)
        if is_restore:
            was_current[at - 1] = version.committed_at_ms
        at -= 1
    return TablePast(
        table=table,
        versions=tuple(reversed(found)),
        current=current,
        was_current=was_current,
        checkpoints=tuple(sorted(whole_checkpoints(files))),
        problems=(*problems, *_unreadable_entry(folder, found)),
    )


def _heads(folder: Location, numbers: Iterator[int]) -> Iterator[bytes]:
    """Yield how commits begin; of a store, several are asked for ahead."""

    def head(number: int) -> bytes:
        with commit_file(folder, number).path.open("rb") as file:
            return file.read(_HEAD_BYTES)

    return map(head, numbers) if folder.is_local else ahead(lambda number: commit_file(folder, number).read(), numbers)


def _read(folder: Location, number: int, head: bytes) -> tuple[Version, bool]:
    quick = _QUICK.match(head) if _IN_COMMIT_TIMESTAMP not in head else None
    if quick is not None:
        kind: EntryKind = quick[3].decode()  # type: ignore[assignment]
        version = Version(version=number, committed_at_ms=int(quick[1]), parent=_parent(number), kind=kind)
        return version, quick[2].decode() == _RESTORE
    commit = _slowly(folder, number)
    kind_or_none = commit.entry.kind if commit.entry else None
    version = Version(version=number, committed_at_ms=commit.timestamp_ms, parent=_parent(number), kind=kind_or_none)
    return version, commit.operation == _RESTORE


def _slowly(folder: Location, number: int) -> DeltaCommit:
    found = next(commits(folder, number), None)
    if found is None:
        raise FileNotFoundError(number)
    return found


def _parent(number: int) -> int | None:
    return number - 1 if number else None


def _unreadable_entry(folder: Location, newest_first: list[Version]) -> tuple[str, ...]:
    """Return why the entry that counts cannot be read; the quick look has read its kind alone."""
    counting = next((version for version in newest_first if version.kind not in (None, "carry")), None)
    try:
        if counting is not None:
            _slowly(folder, counting.version)
    except BadEntryError as exc:
        return (str(exc),)
    except FileNotFoundError:
        return ()
    return ()
