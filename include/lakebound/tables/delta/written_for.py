"""For which columns a Delta table's files were written: those of the version that added them first, by the log."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from lakebound.ledger.entry import ENTRY_KEY
from lakebound.storage.location import Location
from lakebound.tables.delta.column_mapping import columns_of
from lakebound.tables.delta.log import commit_lines, contents
from lakebound.tables.delta.open import open_at
from lakebound.tables.misread import Column

_ACTIONS = ("commitInfo", "metaData", "add", "remove")


@dataclass(frozen=True)
class WrittenFor:
    """What the log's JSON commits say of the files in question.

    Attributes:
        columns: By path: the table's columns in the version that added the file. Files of older versions are not in it, nor
            are those that were put in place of others, whose columns they may have had.
        foreign: Paths of files that others added.
    """

    columns: Mapping[str, tuple[Column, ...]] = field(default_factory=dict)
    foreign: Collection[str] = ()


def read_written_for(folder: Location, version: int, paths: Collection[str]) -> WrittenFor:
    """Return for which columns files were written.

    Args:
        folder: The table's.
        version: Its newest version.
        paths: The files, as the log names them.
    """
    columns: dict[str, tuple[Column, ...]] = {}
    foreign: set[str] = set()
    waiting: set[str] = set()
    oldest = version
    for number, content in contents(folder, version):
        oldest, commit = number, _Commit.of(content.decode())
        for path in commit.added & {*paths}:
            (foreign.discard if commit.has_entry else foreign.add)(path)
            if commit.adds_rows and path not in commit.removed:
                columns.pop(path, None)
                waiting.add(path)
        if commit.columns is not None:
            columns |= dict.fromkeys(waiting, commit.columns)
            waiting.clear()
    if waiting and (known := _columns_at(folder, oldest)) is not None:
        columns |= dict.fromkeys(waiting, known)
    return WrittenFor(columns, foreign)


@dataclass(frozen=True)
class _Commit:
    """What counts of a commit: a restore, and whatever changes no row, adds files that were there before, or copies."""

    has_entry: bool
    adds_rows: bool
    columns: tuple[Column, ...] | None
    added: frozenset[str]
    removed: frozenset[str]

    @classmethod
    def of(cls, text: str) -> _Commit:
        """Return it from the commit's text."""
        actions: dict[str, list[Any]] = {name: [] for name in _ACTIONS}
        for name, body in _actions(text):
            actions[name].append(body)
        info = actions["commitInfo"][0] if actions["commitInfo"] else {}
        metadata = actions["metaData"][-1] if actions["metaData"] else None
        is_new = [bool(one.get("dataChange", True)) for one in actions["add"]]
        return cls(
            has_entry=ENTRY_KEY in str(info.get("userMetadata") or ""),
            adds_rows=info.get("operation") != "RESTORE" and all(is_new),
            columns=None if metadata is None else columns_of(metadata["schemaString"], metadata.get("configuration") or {}),
            added=frozenset(one["path"] for one in actions["add"]),
            removed=frozenset(one["path"] for one in actions["remove"]),
        )


def _actions(text: str) -> Iterator[tuple[str, Any]]:
    for line in commit_lines(text):
        action = json.loads(line)
        yield from ((name, action[name]) for name in _ACTIONS if isinstance(action.get(name), dict))


def _columns_at(folder: Location, version: int) -> tuple[Column, ...] | None:
    """Return the columns of the oldest version that can be opened, None where it cannot: its log checkpoint is gone."""
    try:
        return columns_of_handle(open_at(folder, version))
    except (DeltaError, OSError):
        return None


def columns_of_handle(handle: DeltaTable) -> tuple[Column, ...]:
    """Return the columns of a handle's version."""
    return columns_of(handle.schema().to_json(), handle.metadata().configuration)
