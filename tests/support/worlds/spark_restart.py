"""The oracle of native checkpoints: what a plain restart of Spark would do to the records, from what the files really hold.

It follows Spark's restart (populateStartOffsets, the log files, the sinks' rule to skip epochs), proved against a real Spark in
tests/spark/test_native_checkpoints.py. It imports nothing of lakebound.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Ends = dict[int, int]
Outcome = Literal["exact", "loses", "doubles", "fails"]

_LONG = re.compile(r"^[+-]?[0-9]+$")


class SparkFailsError(Exception):
    """The query would not start, or would end with an error."""


@dataclass
class NativeTable:
    """What a table really holds.

    Attributes:
        epochs: Newest epoch per query id, as the sink sees it: it skips every batch up to that.
        rows: Ranges that were landed and are still there, as (partition, start, end).
    """

    epochs: dict[str, int] = field(default_factory=dict)
    rows: list[tuple[int, int, int]] = field(default_factory=list)

    def copy(self) -> NativeTable:
        """Return an independent copy."""
        return NativeTable(dict(self.epochs), list(self.rows))

    def commit(self, query: str, epoch: int, start: Ends, end: Ends) -> None:
        """Land a batch, unless the sink skips it."""
        if self.epochs.get(query, -1) >= epoch:
            return
        self.epochs[query] = epoch
        self.rows += [(p, start[p], end[p]) for p in end if start[p] < end[p]]


def restart(files: Mapping[str, bytes], table: NativeTable, topic: str, latest: Ends, *, spark: str = "4.1") -> Outcome:
    """Return what becomes of the records of ``topic`` when the query is started and reads all up to ``latest``.

    The query subscribes to the topic from its beginning. ``table`` is not changed.
    """
    after = table.copy()
    try:
        _restart(files, after, topic, latest, spark)
    except SparkFailsError:
        return "fails"
    return judge(after, latest)


def judge(table: NativeTable, latest: Ends) -> Outcome:
    """Return whether every offset below ``latest`` is landed once."""
    outcome: Outcome = "exact"
    for partition, end in latest.items():
        at = 0
        for start, stop in sorted((start, stop) for p, start, stop in table.rows if p == partition):
            if start < at:
                return "doubles"
            if start > at:
                outcome = "loses"
            at = stop
        if at != end:
            outcome = "loses"
    return outcome


def _restart(files: Mapping[str, bytes], table: NativeTable, topic: str, latest: Ends, spark: str) -> None:
    planned, finished = _newest(files, "offsets"), _newest(files, "commits")
    query = _query(files, spark, is_used=planned is not None or finished is not None)
    beginning = dict.fromkeys(latest, 0)
    if planned is None:
        if finished is not None:
            raise SparkFailsError("STATE_STORE_CHECKPOINT_LOCATION_NOT_EMPTY")
        _catch_up(files, table, query, 0, _initial(files, topic, beginning), latest, {})
        return
    end = _offsets(files, planned, topic)
    start = None if planned == 0 else _offsets(files, planned - 1, topic)
    if finished is not None:
        _read_commit(files, finished)
    batch, written = planned, {}
    if finished != planned:
        start = _initial(files, topic, beginning) if start is None else start
        table.commit(query, batch, *_range(start, end, latest))
        _finish(files, batch, written)
    _catch_up(files, table, query, batch + 1, end, latest, written)


def _catch_up(
    files: Mapping[str, bytes], table: NativeTable, query: str, batch: int, start: Ends, latest: Ends, written: dict[str, bytes]
) -> None:
    start, end = _range(start, latest, latest)
    if start == end:
        return
    if f"offsets/{batch}" in files:
        raise SparkFailsError("CONCURRENT_STREAM_LOG_UPDATE")
    table.commit(query, batch, start, end)
    _finish(files, batch, written)


def _finish(files: Mapping[str, bytes], batch: int, written: dict[str, bytes]) -> None:
    name = f"commits/{batch}"
    if name in files or name in written:
        raise SparkFailsError("CONCURRENT_STREAM_LOG_UPDATE")
    written[name] = b""


def _range(start: Ends, end: Ends, latest: Ends) -> tuple[Ends, Ends]:
    """Return start and end per partition; a new partition begins at its beginning, a deleted one is an error."""
    if set(start) - set(end) or set(end) - set(latest):
        raise SparkFailsError("KAFKA_DATA_LOSS.PARTITIONS_DELETED")
    full = {partition: start.get(partition, 0) for partition in end}
    if any(full[p] > end[p] or end[p] > latest[p] for p in end):
        raise SparkFailsError("KAFKA_DATA_LOSS.PARTITION_OFFSET_CHANGED")
    return full, end


def _newest(files: Mapping[str, bytes], folder: str) -> int | None:
    names = [path.removeprefix(f"{folder}/") for path in files if path.startswith(f"{folder}/")]
    return max((int(name) for name in names if _LONG.match(name)), default=None)


def _query(files: Mapping[str, bytes], spark: str, *, is_used: bool) -> str:
    if "metadata" not in files:
        if spark != "4.1" and is_used:
            raise SparkFailsError("STREAMING_CHECKPOINT_MISSING_METADATA_FILE")
        return "a new id"
    body = _json(_read(files, "metadata"))
    if not isinstance(body, dict) or not isinstance(body.get("id"), str):
        raise SparkFailsError("metadata")
    if not re.fullmatch(r"[0-9a-fA-F]{1,8}(-[0-9a-fA-F]{1,4}){3}-[0-9a-fA-F]{1,12}", body["id"]):
        raise SparkFailsError("UUID.fromString")
    return body["id"]


def _read(files: Mapping[str, bytes], path: str) -> str:
    if path not in files:
        raise SparkFailsError(f"{path} doesn't exist")
    # Spark writes checksum files and does not compare them (measured: FileContext of Hadoop 3.4 on a local disk).
    try:
        return files[path].decode()
    except UnicodeDecodeError as exc:
        raise SparkFailsError("MalformedInputException") from exc


def _lines(text: str, versions: tuple[str, ...]) -> list[str]:
    lines = re.split(r"\r\n|\n|\r", text)
    if lines[-1] == "":
        lines.pop()
    if not lines:
        raise SparkFailsError("Incomplete log file")
    if lines[0] not in versions:
        raise SparkFailsError("MALFORMED_LOG_FILE")
    return lines[1:]


def _offsets(files: Mapping[str, bytes], batch: int, topic: str) -> Ends:
    lines = _lines(_read(files, f"offsets/{batch}"), ("v1",))
    if len(lines) != 2:
        raise SparkFailsError("There are [n] sources in the checkpoint offsets")
    if lines[0].strip() and not isinstance(_json(lines[0]), dict):
        raise SparkFailsError("metadata of the batch")
    return _ends(lines[1], topic)


def _initial(files: Mapping[str, bytes], topic: str, beginning: Ends) -> Ends:
    if "sources/0/0" not in files:
        return beginning
    text = _read(files, "sources/0/0")
    if not text:
        raise SparkFailsError("sources/0/0")
    lines = _lines(text[1:], ("v1",))
    if len(lines) != 1:
        raise SparkFailsError("sources/0/0")
    return _ends(lines[0], topic)


def _read_commit(files: Mapping[str, bytes], batch: int) -> None:
    lines = _lines(_read(files, f"commits/{batch}"), ("v1", "v2"))
    if lines and not isinstance(_json(lines[0]), dict):
        raise SparkFailsError("commit metadata")


def _ends(line: str, topic: str) -> Ends:
    body = _json(line)
    try:
        found = {name: {int(partition): offset for partition, offset in of.items()} for name, of in body.items()}
    except (AttributeError, ValueError) as exc:
        raise SparkFailsError("Expected e.g.") from exc
    if any(type(offset) is not int for of in found.values() for offset in of.values()):
        raise SparkFailsError("Expected e.g.")
    if set(found) != {topic}:
        raise SparkFailsError("KAFKA_DATA_LOSS.PARTITIONS_DELETED")
    return found[topic]


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as exc:
        raise SparkFailsError("parse error") from exc
