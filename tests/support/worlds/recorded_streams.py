"""The recorded streams of tests/recordings, and what checkpoint and table were after each of their file effects."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from lakebound.inspection.doctor.foreign import delta_history, iceberg_history
from lakebound.inspection.doctor.foreign.table_facts import ForeignHistory
from tests.support.worlds.spark_restart import Ends, NativeTable

RECORDINGS = Path(__file__).parents[2] / "recordings"
FORMATS = ("delta", "iceberg")


@dataclass(frozen=True)
class Moment:
    """Checkpoint and table after an effect.

    Attributes:
        number: How many effects have happened.
        phase: k0 to k5 of the batch: before offsets, within its temporary file, planned, committed to the table, within the
            temporary file of its commit, finished.
        table: What the table holds.
        log: Texts of Delta's commits, newest first; or the one metadata of an Iceberg table.
    """

    number: int
    batch: int
    phase: str
    files: dict[str, bytes]
    table: NativeTable
    log: tuple[Any, ...]


@dataclass(frozen=True)
class Recording:
    """One recorded stream."""

    kind: str
    topic: str
    query: str
    latest: Ends
    ends: dict[int, Ends]
    moments: tuple[Moment, ...]
    other: dict[str, bytes] = field(repr=False)

    def history(self, log: tuple[Any, ...]) -> ForeignHistory:
        """Return what the doctor reads of the table."""
        name = f"{self.kind}:/lake/main"
        if not log:
            return ForeignHistory(name, exists=False)
        if self.kind == "delta":
            return delta_history.history_of(name, iter(log))
        return iceberg_history.history_of(name, log[0])


@cache
def recording(kind: str) -> Recording:
    """Load the recording of one format."""
    body = json.loads((RECORDINGS / f"native_{kind}.json").read_text())
    effects = body["effects"]
    texts = {effect["path"]: effect["content"] for effect in effects if effect["op"] == "rename"}
    query = json.loads(texts["metadata"])["id"]
    ends = {
        int(path.removeprefix("offsets/")): _ends(text.splitlines()[2], body["topic"])
        for path, text in texts.items()
        if path.startswith("offsets/") and path.removeprefix("offsets/").isdecimal()
    }
    ends[-1] = _ends(texts["sources/0/0"].splitlines()[1], body["topic"])
    latest = {int(partition): count for partition, count in body["records"].items()}
    other = {path: text.encode("latin-1") for path, text in body["other"].items()}
    return Recording(kind, body["topic"], query, latest, ends, tuple(_moments(effects, query, ends)), other)


def _moments(effects: list[dict[str, Any]], query: str, ends: dict[int, Ends]) -> Iterator[Moment]:
    files: dict[str, bytes] = {}
    table, log = NativeTable(), ()
    batch, phase = 0, "k0"
    for number, effect in enumerate(effects):
        yield Moment(number, batch, phase, dict(files), table.copy(), log)
        if effect["op"] == "create":
            files[effect["path"]] = b""
            phase = _phase_of_temporary(effect["path"], phase)
        elif effect["op"] == "rename":
            files.pop(effect["from"], None)
            files[effect["path"]] = effect["content"].encode("latin-1")
            batch, phase = _after_rename(effect["path"], batch, phase)
        elif effect["op"] == "delete":
            files.pop(effect["path"], None)
        elif effect["op"] == "table":
            log = _table(effect, log)
            epoch = _epoch(effect, query)
            if epoch is not None:
                table.commit(query, epoch, ends[epoch - 1], ends[epoch])
                phase = "k4"
    yield Moment(len(effects), batch, phase, files, table, log)


def _phase_of_temporary(path: str, phase: str) -> str:
    if path.startswith("offsets/."):
        return "k1"
    return "k4 within commit" if path.startswith("commits/.") else phase


def _after_rename(path: str, batch: int, phase: str) -> tuple[int, str]:
    folder, _, name = path.partition("/")
    if folder == "offsets" and name.isdecimal():
        return int(name), "k2"
    if folder == "commits" and name.isdecimal():
        return int(name), "k5"
    return batch, phase


def _table(effect: dict[str, Any], log: tuple[Any, ...]) -> tuple[Any, ...]:
    return ((effect["version"], effect["text"]), *log) if "version" in effect else (effect["metadata"],)


def _epoch(effect: dict[str, Any], query: str) -> int | None:
    if "version" in effect:
        for line in effect["text"].splitlines():
            transaction = json.loads(line).get("txn", {})
            if transaction.get("appId") == query:
                return int(transaction["version"])
        return None
    newest = effect["metadata"].get("current-snapshot-id")
    for snapshot in effect["metadata"].get("snapshots") or ():
        if snapshot["snapshot-id"] == newest and snapshot["summary"].get("spark.sql.streaming.queryId") == query:
            return int(snapshot["summary"]["spark.sql.streaming.epochId"])
    return None


def _ends(line: str, topic: str) -> Ends:
    return {int(partition): offset for partition, offset in json.loads(line)[topic].items()}
