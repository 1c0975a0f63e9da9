"""Histories of tables as values: what a stream, maintenance, rewinds, rollbacks and readers do, with nothing forgotten."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lakebound.ledger.entry import ENTRY_KEY, Entry, EntryKind, encode
from lakebound.operations.maintenance.history import TablePast, Version
from lakebound.operations.maintenance.iceberg.expiry import without
from lakebound.operations.maintenance.table_past import past_of
from lakebound.tables.iceberg.history import history_of_body
from lakebound.tables.places import local_places
from lakebound.tables.table import TableVersion

TABLE = "iceberg:shop.orders"
START_MS = 1_800_000_000_000
_KINDS = ("land", "land", "land", "carry", "carry", "open", "skip", "replay", None)
_PAUSES_SECONDS = (1, 5, 20, 50, 130, 700, 2400, 9000)


@dataclass
class Commit:
    """One version, as it was; ``files`` are those that it has."""

    number: int
    at_ms: int
    parent: int | None
    kind: EntryKind | None
    plan: str | None = None
    files: frozenset[str] = frozenset()

    @property
    def counts(self) -> bool:
        """Whether its own entry is one that counts."""
        return self.kind not in (None, "carry")

    def entry(self) -> Entry | None:
        """Its entry."""
        if self.kind is None:
            return None
        return Entry(kind=self.kind, pipeline="orders", epoch=1, commit=str(self.number), rewind=self.plan)


@dataclass
class History:
    """Everything that ever happened to a table, and its clock.

    Attributes:
        left: What each rewind left, with the time and the hash of its plan.
        readers: Reader to the version on which it stands.
    """

    now_ms: int = START_MS
    commits: dict[int, Commit] = field(default_factory=dict)
    current: int = 0
    left: list[tuple[int, int, str]] = field(default_factory=list)
    tags: set[int] = field(default_factory=set)
    readers: dict[str, int] = field(default_factory=dict)
    removed_at_ms: dict[str, int] = field(default_factory=dict)

    def commit(self, kind: EntryKind | None, parent: int | None = None, plan: str | None = None) -> Commit:
        """Add a version on top of the current one, or of another one."""
        number = len(self.commits) + 1
        base = self.commits.get(self.current if parent is None else parent)
        before = self.commits[self.current].files if self.current else frozenset[str]()
        found = self._files(kind, number, base.files if base else frozenset())
        self.removed_at_ms |= dict.fromkeys(before - found, self.now_ms)
        made = Commit(number, self.now_ms, base.number if base else None, kind, plan, found)
        self.commits[number] = made
        self.current = number
        return made

    def rewind(self, target: int) -> None:
        """Go back to a version by a reset on top of it."""
        plan = f"plan-{len(self.left)}"
        self.left.append((self.current, self.now_ms, plan))
        self.commit("reset", parent=target, plan=plan)

    def counting(self, version: int) -> int | None:
        """Return the version whose entry counts at a version."""
        at: int | None = version
        while at is not None:
            if self.commits[at].counts:
                return at
            at = self.commits[at].parent
        return None

    def ancestry(self, version: int) -> list[int]:
        """Return a version and all before it, newest first."""
        found = []
        at: int | None = version
        while at is not None:
            found.append(at)
            at = self.commits[at].parent
        return found

    @staticmethod
    def _files(kind: EntryKind | None, number: int, base: frozenset[str]) -> frozenset[str]:
        if kind in ("land", "replay"):
            return base | {f"file-{number}"}
        return frozenset({f"compacted-{number}"}) if kind == "carry" and base else base


@dataclass
class IcebergHistory(History):
    """With the metadata file of what has not expired yet."""

    body: dict[str, Any] = field(default_factory=lambda: {"snapshots": [], "snapshot-log": [], "refs": {}})
    log: list[TableVersion] = field(default_factory=list)
    rollbacks: int = 0

    def commit(self, kind: EntryKind | None, parent: int | None = None, plan: str | None = None) -> Commit:
        """Add a snapshot."""
        made = super().commit(kind, parent, plan)
        entry = made.entry()
        snapshot = {
            "snapshot-id": made.number,
            "sequence-number": made.number,
            "timestamp-ms": made.at_ms,
            "summary": {ENTRY_KEY: encode(entry)} if entry else {},
        }
        if made.parent is not None:
            snapshot["parent-snapshot-id"] = made.parent
        self.body["snapshots"] = [*self.body["snapshots"], snapshot]
        self._point_to(made.number)
        return made

    def roll_back(self, target: int) -> None:
        """Make an old snapshot the current one, as Spark's procedure does: without a commit."""
        if target == self.current:
            return
        if self.current == len(self.commits):  # nobody promised to keep what an earlier rollback had gone back to
            self.left.append((self.current, self.now_ms, ""))
        self.left = [one for one in self.left if one[0] != target or one[2]]
        self.current = target
        self.rollbacks += 1
        self._point_to(target)

    def tag(self) -> None:
        """Tag the current snapshot."""
        self.tags.add(self.current)
        self.body["refs"] = {**self.body["refs"], f"tag-{self.current}": {"snapshot-id": self.current}}

    def expire(self, ids: set[int]) -> None:
        """Expire snapshots as the engine does."""
        self.body = without(ids, self.body)

    def past(self) -> TablePast:
        """Return what is left, as it is read."""
        history = history_of_body(self.body, TABLE, local_places(Path("/nowhere"), Path("/nowhere")))
        return past_of(history, TABLE).model_copy(update={"pins": dict(self.readers)})

    def known(self) -> set[int]:
        """Return the snapshots that are left."""
        return {snapshot["snapshot-id"] for snapshot in self.body["snapshots"]}

    def versions(self) -> list[TableVersion]:
        """Return what ``lakebound.tables.history.History.versions`` yields: newest first."""
        return [
            TableVersion(str(one["snapshot-id"]), one["timestamp-ms"], self.commits[one["snapshot-id"]].entry())
            for one in reversed(self.body["snapshot-log"])
        ]

    def all_versions(self) -> list[TableVersion]:
        """Return the same as if nothing had ever expired."""
        return self.log[::-1]

    def _point_to(self, number: int) -> None:
        self.log.append(TableVersion(str(number), self.now_ms, self.commits[number].entry()))
        self.body["current-snapshot-id"] = number
        self.body["snapshot-log"] = [*self.body["snapshot-log"], {"snapshot-id": number, "timestamp-ms": self.now_ms}]
        self.body["refs"] = {**self.body["refs"], "main": {"snapshot-id": number}}


@dataclass
class DeltaHistory(History):
    """With the first version that its log still has, and log checkpoints."""

    first: int = 1
    checkpoint_every: int = 5

    @property
    def checkpoints(self) -> tuple[int, ...]:
        """Versions with a log checkpoint."""
        return tuple(number for number in self.commits if number % self.checkpoint_every == 0 and number >= self.first)

    def counting(self, version: int) -> int | None:
        """Return the version whose entry counts at a version: in a log, one simply goes back."""
        return max((number for number in self.commits if number <= version and self.commits[number].counts), default=None)

    def vacuumed(self, retention_seconds: float) -> set[str]:
        """Return the files that VACUUM deletes: removed so long ago, and not live."""
        before_ms = self.now_ms - round(retention_seconds * 1000)
        live = self.commits[self.current].files
        return {file for file, at_ms in self.removed_at_ms.items() if at_ms < before_ms and file not in live}

    def all_versions(self) -> list[TableVersion]:
        """Return the same as ``versions`` if nothing had ever been deleted."""
        return [TableVersion(str(one.number), one.at_ms, one.entry()) for one in reversed(self.commits.values())]

    def known(self) -> list[int]:
        """Return the versions that are left."""
        return list(range(self.first, len(self.commits) + 1))

    def past(self) -> TablePast:
        """Return what is left, as it is read."""
        versions = tuple(
            Version(version=number, committed_at_ms=self.commits[number].at_ms, kind=self.commits[number].kind)
            for number in self.known()
        )
        return TablePast(
            table="delta:shop.orders",
            versions=versions,
            current=self.current,
            pins=dict(self.readers),
            checkpoints=self.checkpoints,
        )

    def versions(self) -> list[TableVersion]:
        """Return what ``lakebound.tables.history.History.versions`` yields: newest first."""
        return [
            TableVersion(str(number), self.commits[number].at_ms, self.commits[number].entry())
            for number in reversed(self.known())
        ]


def live_one(history: History, chance: random.Random, present: list[int]) -> None:
    """Do one thing that may happen to a table."""
    history.now_ms += chance.choice(_PAUSES_SECONDS) * 1000 + chance.randrange(1000)
    what = chance.random()
    targets = [number for number in present if history.counting(number) is not None]
    if what < 0.06 and targets:
        history.rewind(chance.choice(targets[-30:]))
    elif what < 0.08 and isinstance(history, IcebergHistory) and targets:
        # To a reset itself is another matter: the same rewind would seem to have happened twice.
        plain = [number for number in targets if history.commits[number].kind != "reset"]
        history.roll_back(chance.choice(plain[-30:] or [history.current]))
    elif what < 0.1 and isinstance(history, IcebergHistory):
        history.tag()
    elif what < 0.13 and history.current == len(history.commits):
        # A reader begins at the newest version, and goes on from there.
        pin = history.readers.get("dashboard", history.current)
        history.readers["dashboard"] = chance.choice([number for number in present if number >= pin] or [pin])
    elif what < 0.14:
        history.readers.pop("dashboard", None)
    else:
        history.commit(chance.choice(_KINDS))
