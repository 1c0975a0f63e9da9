"""Properties of a Delta table under which maintenance, a rewind or the ledger would suffer. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from lakebound.operations.maintenance.delta.kept_log import CLEANS_LOG
from lakebound.operations.maintenance.property_values import is_false, is_true
from lakebound.spec.maintenance import DAY_SECONDS, MaintenanceSpec
from lakebound.tables.delta.durations import DELETED_FILES, LOG, TRANSACTIONS, parse_ms
from lakebound.tables.delta.log import CHECKPOINT_INTERVAL

_TRANSACTIONS_SECONDS = 7 * DAY_SECONDS
_AUTO = ("delta.autoOptimize", "delta.autoOptimize.autoCompact", "delta.autoOptimize.optimizeWrite")


def warnings(properties: Mapping[str, str], policy: MaintenanceSpec) -> Iterator[str]:
    """Yield a sentence for each dangerous property.

    Args:
        properties: The table's.
        policy: What maintenance promises.
    """
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
        if is_true(properties, name):
            yield f"{name} = true: Spark then compacts within its writes, a second engine on the log: unset it"
    if is_false(properties, CLEANS_LOG):
        yield f"{CLEANS_LOG} = false: the log is never cleaned, and grows with each commit without limit: unset it"
    if properties.get("delta.checkpointPolicy", "").strip().lower() == "v2":
        yield "delta.checkpointPolicy = v2: the sidecars of such log checkpoints are never cleaned up: set it to classic"
    interval = properties.get(CHECKPOINT_INTERVAL, "")
    if interval.strip().isdigit() and int(interval) > policy.max_log_tail_commits:
        yield (
            f"{CHECKPOINT_INTERVAL} = {interval}: each reader must read up to this number of commits: set it to at most "
            f"{policy.max_log_tail_commits} (max_log_tail_commits)"
        )
    if is_true(properties, "delta.enableDeletionVectors"):
        yield "delta.enableDeletionVectors = true: maintenance does not compact files with them: unset it"
    if properties.get("delta.columnMapping.mode", "none").strip().lower() != "none":
        yield "delta.columnMapping.mode is set: maintenance does not compact such a table: set it to none"


def _short(properties: Mapping[str, str], name: str, needed_seconds: float, danger: str) -> Iterator[str]:
    text = properties.get(name)
    if text is None:
        return
    found = parse_ms(text)
    if found is None:
        yield f"{name} = {text!r} is not a duration: write it as 'interval 7 days'"
    elif found < needed_seconds * 1000:
        yield f"{name} = {text!r} is less than {needed_seconds / 3600:g} hours: {danger}"
