"""The files of a Delta log's commits, and the table properties that keep statistics on ``_kafka``."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from lakebound.spec.pipeline import KAFKA_COLUMN
from lakebound.storage.location import Location
from lakebound.storage.requests import ahead
from lakebound.tables.reconstruction import FileRange
from lakebound.tables.schemas import leaves

CHECKPOINT_INTERVAL = "delta.checkpointInterval"
INDEXED_COLUMNS = "delta.dataSkippingNumIndexedCols"
STATS_COLUMNS = "delta.dataSkippingStatsColumns"
_DEFAULT_INDEXED_COLUMNS = 32


def commit_file(folder: Location, version: int) -> Location:
    """Return where the log of the table in ``folder`` keeps a version.

    Source: https://github.com/delta-io/delta/blob/master/PROTOCOL.md#delta-log-entries.

    Args:
        folder: The table's.
        version: The version.
    """
    return folder / "_delta_log" / f"{version:020d}.json"


def commit_lines(text: str) -> list[str]:
    """Return the lines of a commit, one action each; Python's ``splitlines`` would end lines at characters of texts in it."""
    return [line for line in text.split("\n") if line]


def moment_ms(info: Mapping[str, Any]) -> int:
    """Return when a commit says that it was made; 0 where it does not: a writer may put anything there.

    Source: https://github.com/delta-io/delta/blob/master/PROTOCOL.md#commit-provenance-information.

    Args:
        info: Its ``commitInfo``.
    """
    try:
        return int(info.get("inCommitTimestamp") or info.get("timestamp") or 0)
    except (TypeError, ValueError, OverflowError):
        return 0


def last_checkpoint(folder: Location) -> int:
    """Return the version of the newest log checkpoint, -1 without one."""
    try:
        return int(json.loads((folder / "_delta_log" / "_last_checkpoint").read())["version"])
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        return -1
    except OSError:
        if folder.is_local:
            return -1
        raise


def with_kafka_statistics(schema: pa.Schema, properties: Mapping[str, str]) -> dict[str, str]:
    """Return table properties under which every writer collects statistics of ``_kafka``; what the user set is widened only."""
    result = dict(properties)
    chosen = result.get(STATS_COLUMNS)
    if chosen is not None:
        names = [name.strip() for name in chosen.split(",") if name.strip()]
        if KAFKA_COLUMN not in names:
            result[STATS_COLUMNS] = ",".join([*names, KAFKA_COLUMN])
        return result
    needed = max((number for number, (path, _) in enumerate(leaves(schema), 1) if path[0] == KAFKA_COLUMN), default=0)
    bound = int(result.get(INDEXED_COLUMNS, _DEFAULT_INDEXED_COLUMNS))
    if 0 <= bound < needed:
        result[INDEXED_COLUMNS] = str(needed)
    return result


def statistics_columns(
    schema: pa.Schema, properties: Mapping[str, str | None], partition_by: Sequence[str] = ()
) -> frozenset[tuple[str, ...]]:
    """Return the paths of the columns whose statistics the properties ask for; lists and maps are none.

    Args:
        schema: The table's.
        properties: Likewise.
        partition_by: Its partition columns: what a file holds of them is told beside its statistics.
    """
    paths = [(path, kind) for path, kind in leaves(schema) if path[0] not in partition_by]
    chosen = properties.get(STATS_COLUMNS)
    if chosen is not None:
        wanted = [tuple(name.strip().split(".")) for name in chosen.split(",")]
        paths = [(path, kind) for path, kind in paths if any(path[: len(prefix)] == prefix for prefix in wanted)]
    else:
        bound = int(properties.get(INDEXED_COLUMNS) or _DEFAULT_INDEXED_COLUMNS)
        paths = paths if bound < 0 else paths[:bound]
    return frozenset(path for path, kind in paths if not pa.types.is_nested(kind))


def file_range(row: Mapping[str, Any]) -> FileRange:
    """Return the statistics on ``_kafka`` of a file, as deltalake's flattened add actions give them."""

    def bounds(name: str) -> tuple[Any, Any]:
        return row.get(f"min.{KAFKA_COLUMN}.{name}"), row.get(f"max.{KAFKA_COLUMN}.{name}")

    return FileRange(
        rows=row.get("num_records"),
        topic=bounds("topic"),
        topic_id=bounds("topic_id"),
        partition=bounds("partition"),
        offset=bounds("offset"),
        ordinal=bounds("ordinal"),
    )


def contents(folder: Location, version: int) -> Iterator[tuple[int, bytes]]:
    """Yield the commits from a version down to the oldest that is kept; of a store, several are asked for ahead."""

    def read(number: int) -> bytes | None:
        try:
            return commit_file(folder, number).read()
        except FileNotFoundError:
            return None

    numbers = range(version, -1, -1)
    contents = map(read, numbers) if folder.is_local else ahead(read, numbers)
    for number, content in zip(numbers, contents, strict=False):
        if content is None:
            return
        yield number, content
