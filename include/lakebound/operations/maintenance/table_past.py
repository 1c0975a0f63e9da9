"""What must not be taken from a table: its versions as its history tells them, and the readers that stand on them. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import TypeVar

from lakebound.errors import BadEntryError
from lakebound.ledger.entry import redo_in
from lakebound.operations.maintenance.history import TablePast, Version
from lakebound.operations.maintenance.reader_positions import ReaderUnreadableError
from lakebound.spec.maintenance import ReaderSpec
from lakebound.tables.history import History, TableCommit

P = TypeVar("P")
"""Where a reader stands."""

_Change = tuple[Version, Version, int]
"""A version, the one after it, and when that came."""


def past_of(history: History, table: str) -> TablePast:
    """Return the versions that a history has, without readers and log checkpoints. An entry that cannot be read is a problem.

    Args:
        history: Read to its end.
        table: ``format:name``.
    """
    versions: list[Version] = []
    numbers: dict[int, int] = {}
    problems: list[str] = []
    counting: TableCommit | None = None
    for commit in history.commits():
        version = _version(commit, problems)
        versions.append(version)
        numbers[version.version] = commit.number
        if counting is None and version.kind not in (None, "carry"):
            counting = commit
    versions.reverse()
    is_undoing = counting is not None and _is_undoing(counting, problems)
    since = tuple((at_ms, int(version)) for at_ms, version in history.current_since)
    known = {version.version: version for version in versions}
    changes: list[_Change] = [(before, after, after.committed_at_ms) for before, after in pairwise(versions)]
    # A rollback makes no commit. Others' expiry cuts the log of what was current short.
    changes += [(known[before], known[after], at_ms) for (_, before), (at_ms, after) in pairwise(since)]
    return TablePast(
        table=table,
        versions=tuple(versions),
        current=None if history.current is None else int(history.current),
        was_current=_left(changes, numbers),
        current_since=since,
        is_undoing=is_undoing,
        problems=tuple(problems),
    )


def _version(commit: TableCommit, problems: list[str]) -> Version:
    kind = None
    try:
        kind = commit.kind
    except BadEntryError as exc:
        problems.append(str(exc))
    return Version(
        version=int(commit.version),
        committed_at_ms=commit.committed_at_ms,
        parent=None if commit.parent is None else int(commit.parent),
        kind=kind,
        is_referenced=commit.is_referenced,
    )


def _is_undoing(counting: TableCommit, problems: list[str]) -> bool:
    """Return whether the entry that counts says that a redo is undone in part; of the others the kind alone was read.

    One that cannot be read is a problem.
    """
    try:
        entry = counting.entry
    except BadEntryError as exc:
        problems.append(str(exc))
        return False
    return redo_in(entry).is_undoing


def _left(changes: Iterable[_Change], numbers: Mapping[int, int]) -> dict[int, int]:
    """Return each version from which the table did not go on, with the time at which it was left.

    Where versions between two have expired, the later one has another parent, too, and nothing was left: the numbers of the
    commits tell that.
    """
    found: dict[int, int] = {}
    for before, after, at_ms in changes:
        number, missing = before.version, numbers[after.version] - numbers[before.version] - 1
        if after is not before and after.parent != number and missing <= 0:
            found[number] = max(found.get(number, 0), at_ms)
    return found


def positions(readers: Iterable[ReaderSpec], position: Callable[[ReaderSpec], P]) -> tuple[dict[str, P], list[str]]:
    """Return where readers stand, by name, and why that cannot be read of the others.

    Args:
        readers: Those of a table.
        position: Reads one's checkpoint.
    """
    found: dict[str, P] = {}
    problems: list[str] = []
    for reader in readers:
        try:
            found[reader.name] = position(reader)
        except ReaderUnreadableError as exc:
            problems.append(str(exc))
    return found, problems


def with_pins(
    past: TablePast, found: Mapping[str, tuple[int, ...]], problems: Sequence[str], *, to_come: Sequence[int] = ()
) -> TablePast:
    """Return the past with its readers. A query of several Iceberg tables names none: a snapshot's id identifies its table.

    Args:
        past: Of the table.
        found: Reader's name to the versions that it may stand on.
        problems: Why the position of others is not known.
        to_come: Versions that there are not yet, where a reader stands that has read everything.
    """
    known = {*(version.version for version in past.versions), *to_come}
    pins: dict[str, int] = {}
    gone: list[str] = []
    for name, versions in found.items():
        own = [version for version in versions if version in known]
        pins |= {f"{name}#{number}" if number else name: version for number, version in enumerate(own)}
        if not own:
            gone.append(
                f"reader {name!r} is at version {versions[0]} of {past.table}, which no longer exists, so it cannot "
                f"continue; give it a new checkpoint, or remove it from maintenance.readers; until then nothing is removed"
            )
    return past.model_copy(update={"pins": pins, "problems": (*past.problems, *problems, *gone)})
