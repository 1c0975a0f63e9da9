"""Table properties under which maintenance, a rewind or the ledger would suffer, each with the fix in its sentence. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from lakebound.operations.maintenance.keep import CLEANS_LOG, COLLECTS, MIN_SNAPSHOTS
from lakebound.operations.maintenance.packing import small_below
from lakebound.operations.maintenance.wording import count_words, size_words
from lakebound.spec.maintenance import DAY_SECONDS, HistorySpec, MaintenanceSpec
from lakebound.tables.delta.durations import DELETED_FILES, LOG, TRANSACTIONS, parse_ms
from lakebound.tables.delta.log import CHECKPOINT_INTERVAL

MAX_SNAPSHOT_AGE = "history.expire.max-snapshot-age-ms"
DELETES_METADATA = "write.metadata.delete-after-commit.enabled"
METADATA_KEPT = "write.metadata.previous-versions-max"
TARGET_SIZE = "write.target-file-size-bytes"
DISTRIBUTION = "write.distribution-mode"
RETRIES = "commit.retry.num-retries"

_TRANSACTIONS_SECONDS = 7 * DAY_SECONDS
_MAX_METADATA_FILES = 1000
_MIN_RETRIES = 4
_MAX_SNAPSHOTS = 20_000
_AUTO = ("delta.autoOptimize", "delta.autoOptimize.autoCompact", "delta.autoOptimize.optimizeWrite")


def property_warnings(table: str, properties: Mapping[str, str], policy: MaintenanceSpec) -> tuple[str, ...]:
    """Return a sentence for each dangerous property of a table.

    Args:
        table: ``format:name``.
        properties: As the table has them, or as the pipeline's YAML gives them for a new one.
        policy: What maintenance promises.
    """
    found = _delta(properties, policy) if table.startswith("delta:") else _iceberg(properties, policy)
    return tuple(f"{table}: {sentence}" for sentence in found)


def _delta(properties: Mapping[str, str], policy: MaintenanceSpec) -> Iterator[str]:
    history = policy.history
    yield from _short(
        properties,
        TRANSACTIONS,
        _TRANSACTIONS_SECONDS,
        "if a stream commits nothing for this time, the table forgets that stream's last transaction: unset the property",
    )
    yield from _short(
        properties,
        LOG,
        max(history.keep_delta_seconds, history.undo_seconds),
        "a write by Spark then removes log files of versions that maintenance.history must keep: raise it, or unset it",
    )
    yield from _short(
        properties,
        DELETED_FILES,
        max(history.removed_files_seconds, history.keep_delta_seconds, history.undo_seconds),
        "any VACUUM then deletes files that maintenance.history promises to keep: raise it, or unset it",
    )
    for name in _AUTO:
        if _is_true(properties, name):
            yield f"{name} = true: Spark then compacts within its writes, a second engine on the log: unset it"
    if _is_false(properties, CLEANS_LOG):
        yield f"{CLEANS_LOG} = false: the log is never cleaned, and grows with each commit without limit: unset it"
    if properties.get("delta.checkpointPolicy", "").strip().lower() == "v2":
        yield "delta.checkpointPolicy = v2: the sidecars of such log checkpoints are never cleaned up: set it to classic"
    interval = properties.get(CHECKPOINT_INTERVAL, "")
    if interval.strip().isdigit() and int(interval) > policy.max_log_tail_commits:
        yield (
            f"{CHECKPOINT_INTERVAL} = {interval}: each reader must read up to this number of commits: set it to at most "
            f"{policy.max_log_tail_commits} (max_log_tail_commits)"
        )
    if _is_true(properties, "delta.enableDeletionVectors"):
        yield "delta.enableDeletionVectors = true: maintenance does not compact files with them: unset it"
    if properties.get("delta.columnMapping.mode", "none").strip().lower() != "none":
        yield "delta.columnMapping.mode is set: maintenance does not compact such a table: set it to none"


def _iceberg(properties: Mapping[str, str], policy: MaintenanceSpec) -> Iterator[str]:
    if _is_false(properties, COLLECTS):
        yield f"{COLLECTS} = false: nothing is ever expired or removed, so metadata grows without limit: unset it"
    if _is_false(properties, DELETES_METADATA):
        yield f"{DELETES_METADATA} = false: each commit leaves a metadata file behind: set it to true"
    kept = _number(properties, METADATA_KEPT)
    if kept is not None and kept > _MAX_METADATA_FILES:
        yield f"{METADATA_KEPT} = {kept:,}: that many metadata files are kept, each with all snapshots: set it to at most 100"
    age_ms, horizon_ms = _number(properties, MAX_SNAPSHOT_AGE), round(horizon_seconds(policy.history) * 1000)
    if age_ms is not None and age_ms < horizon_ms:
        yield (
            f"{MAX_SNAPSHOT_AGE} = {age_ms:,}: expire_snapshots of any tool then removes what maintenance.history must "
            f"keep: set it to at least {horizon_ms}, or unset it"
        )
    snapshots = _number(properties, MIN_SNAPSHOTS)
    if snapshots is not None and snapshots > _MAX_SNAPSHOTS:
        yield f"{MIN_SNAPSHOTS} = {snapshots:,}: each commit writes that many snapshots to the metadata: lower it, or unset it"
    target, small = _number(properties, TARGET_SIZE), small_below(policy.compaction)
    if target is not None and target < small:
        yield (
            f"{TARGET_SIZE} = {target:,}: files that Spark writes at that size are small (below {size_words(small)}), and are "
            f"rewritten again: set it to {policy.compaction.target_file_bytes} (target_file_bytes)"
        )
    mode = properties.get(DISTRIBUTION, "none").strip().lower()
    if mode != "none":
        yield f"{DISTRIBUTION} = {mode}: Lakebound does not use it, and each write by another Spark shuffles: set it to none"
    retries = _number(properties, RETRIES)
    if retries is not None and retries < _MIN_RETRIES:
        yield (
            f"{RETRIES} = {retries}: a rewrite beside the stream then gives up after {count_words(retries + 1, 'attempt')}: "
            f"unset it, and maintenance sets its own"
        )


def horizon_seconds(history: HistorySpec) -> float:
    """Return how far back something of an Iceberg table is promised to be there."""
    return max(history.keep_all_seconds, history.keep_minutely_seconds, history.keep_hourly_seconds, history.undo_seconds)


def _short(properties: Mapping[str, str], name: str, needed_seconds: float, danger: str) -> Iterator[str]:
    text = properties.get(name)
    if text is None:
        return
    found = parse_ms(text)
    if found is None:
        yield f"{name} = {text!r} is not a duration: write it as 'interval 7 days'"
    elif found < needed_seconds * 1000:
        yield f"{name} = {text!r} is less than {needed_seconds / 3600:g} hours: {danger}"


def _number(properties: Mapping[str, str], name: str) -> int | None:
    text = properties.get(name, "").strip()
    return int(text) if text.isdigit() else None


def _is_true(properties: Mapping[str, str], name: str) -> bool:
    return properties.get(name, "").strip().lower() in ("true", "auto")


def _is_false(properties: Mapping[str, str], name: str) -> bool:
    return properties.get(name, "").strip().lower() == "false"
