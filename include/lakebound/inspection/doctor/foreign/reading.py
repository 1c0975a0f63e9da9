"""Reading a foreign checkpoint, its tables and Kafka, while the query may be running. Never writes."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlparse

from lakebound.errors import LakeboundError, MissingTopicError
from lakebound.first_line import first_line
from lakebound.inspection.doctor.foreign.checkpoint_facts import CheckpointFacts, parse_checkpoint
from lakebound.inspection.doctor.foreign.delta_history import read_delta_history
from lakebound.inspection.doctor.foreign.facts import ForeignFacts, TopicSeen
from lakebound.inspection.doctor.foreign.iceberg_history import read_iceberg_history
from lakebound.inspection.doctor.foreign.standing import Standing
from lakebound.inspection.doctor.foreign.table_facts import ForeignHistory

if TYPE_CHECKING:
    from lakebound.landing.kafka import KafkaFacts

_READINGS = 5
_MAX_FILE_BYTES = 16 * 1024 * 1024
# Producers' clocks may be wrong by less than this.
_PRODUCER_SLACK_MS = 600_000
_SCHEME = re.compile(r"^[a-zA-Z][a-zA-Z0-9+.-]*://")

_READERS: Mapping[str, Callable[[str, Path, str | None], ForeignHistory]] = {
    "delta": read_delta_history,
    "iceberg": lambda name, place, query_id: read_iceberg_history(name, place),
}
"""By what a person writes before the place of a table."""

FolderListing = frozenset[tuple[str, int, int]]


class NotACheckpointError(LakeboundError):
    """There is no checkpoint to examine at this place."""

    def __init__(self, place: str, reason: str) -> None:
        super().__init__(
            f"checkpoint {place}: {reason}; give the folder that is the query's checkpointLocation, or a local copy of it"
        )


class BadTableNameError(LakeboundError):
    """The name of a table is not one that the doctor accepts."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f"table {name!r}: write delta:FOLDER, iceberg:FOLDER or iceberg:FILE.metadata.json, with a path on this machine"
        )


def local_path(place: str) -> Path | None:
    """Return the path that a path or a ``file:`` address names; None for another scheme."""
    if place.startswith("file:"):
        return Path(unquote(urlparse(place).path))
    return None if _SCHEME.match(place) else Path(place).expanduser().absolute()


def read_foreign(checkpoint: str, tables: Sequence[str], bootstrap_servers: str | None = None) -> ForeignFacts:
    """Collect the facts.

    Commits and offsets are listed before and after the tables are read. The facts are used if neither list has changed.

    Args:
        checkpoint: Path or ``file:`` address of the checkpoint's folder.
        tables: ``delta:PLACE`` or ``iceberg:PLACE`` of each table that the query writes.
        bootstrap_servers: Kafka's addresses, ``host:port`` separated by commas; None: Kafka is not asked.

    Raises:
        NotACheckpointError: The checkpoint is not on this machine's file system.
        BadTableNameError: A table is not named ``delta:PLACE`` or ``iceberg:PLACE``.
        BrokerUnavailableError: Kafka does not answer.
    """
    folder = local_path(checkpoint)
    if folder is None:
        raise NotACheckpointError(checkpoint, "only local file systems can be read")
    if not folder.is_dir():
        raise NotACheckpointError(checkpoint, "there is no such folder")
    places = [_place(table) for table in tables]
    facts = ForeignFacts(CheckpointFacts(), is_moving=True)
    for _ in range(_READINGS):
        before = _listing(folder)
        read = parse_checkpoint(read_files(folder))
        seen = tuple(_history(name, kind, place, read.query_id) for name, kind, place in places)
        facts = ForeignFacts(read, seen, is_moving=_listing(folder) != before)
        if not facts.is_moving:
            break
    return _with_kafka(facts, bootstrap_servers) if bootstrap_servers else facts


def read_files(folder: Path) -> dict[str, bytes]:
    """Return the contents of a checkpoint's files by path; of ``state/`` and of temporary files only the names."""
    files: dict[str, bytes] = {}
    for parent, folders, names in os.walk(folder):
        relative = Path(parent).relative_to(folder).as_posix()
        if relative == "state":
            files |= {"state/": b""} if folders or names else {}
            folders.clear()
            continue
        for name in names:
            path = Path(parent) / name
            key = name if relative == "." else f"{relative}/{name}"
            try:
                files[key] = b"" if name.endswith((".tmp", ".tmp.crc")) else _content(path)
            except FileNotFoundError:
                continue  # removed or renamed by a running query: the second listing shows it
    return files


def _content(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(_MAX_FILE_BYTES)


def _listing(folder: Path) -> FolderListing:
    found = set()
    for name in ("commits", "offsets"):
        try:
            entries = [(entry.name, entry.stat()) for entry in os.scandir(folder / name)]
        except FileNotFoundError:
            continue
        found |= {(f"{name}/{entry}", stat.st_size, stat.st_mtime_ns) for entry, stat in entries}
    return frozenset(found)


def _place(table: str) -> tuple[str, str, Path]:
    kind, _, place = table.partition(":")
    path = local_path(place) if place and kind in _READERS else None
    if path is None:
        raise BadTableNameError(table)
    return table, kind, path


def _history(name: str, kind: str, place: Path, query_id: str | None) -> ForeignHistory:
    try:
        return _READERS[kind](name, place, query_id)
    except Exception as exc:  # a table that cannot be read is a finding
        return ForeignHistory(name, problem=first_line(exc))


def _with_kafka(facts: ForeignFacts, bootstrap_servers: str) -> ForeignFacts:
    from lakebound.landing.kafka import KafkaFacts
    from lakebound.spec.connection import ConnectionSpec

    standing = Standing(facts)
    plans = [found for batch in (standing.lowest, standing.planned) if (found := standing.checkpoint.sound_offsets(batch))]
    topics = sorted({topic for plan in plans for _, topic, _ in plan.marks})
    asked = KafkaFacts(ConnectionSpec(bootstrap_servers=bootstrap_servers), needs_topic_ids=False)
    planned_at = plans[0].planned_at_ms if plans else None
    kafka = {topic: _topic(asked, topic, planned_at) for topic in topics}
    return ForeignFacts(facts.checkpoint, facts.tables, kafka, facts.is_moving)


def _topic(asked: KafkaFacts, topic: str, planned_at_ms: int | None) -> TopicSeen | None:
    try:
        # A plain Spark source reads uncommitted records, too: its offsets go up to the high watermark.
        seen = asked.topics([topic], isolation="read_uncommitted")[topic]
        younger: Mapping[int, int] = {}
        if planned_at_ms is not None:
            younger = asked.offsets_at([topic], planned_at_ms + _PRODUCER_SLACK_MS)[topic]
    except MissingTopicError:
        return None
    return TopicSeen(seen.topic_id, seen.earliest, seen.latest, younger)
