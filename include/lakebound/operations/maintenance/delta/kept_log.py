"""Which commits and removed files of a Delta table must stay: its log has no gaps, so it is cut off at one place. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from lakebound.operations.maintenance.history import TablePast
from lakebound.operations.maintenance.keep import counts, left_by_repairs, since, to_ms
from lakebound.spec.maintenance import HistorySpec, MaintenanceSpec
from lakebound.tables.delta.durations import DELETED_FILES, LOG, explicit_ms

CLEANS_LOG = "delta.enableExpiredLogCleanup"


def clean_before(past: TablePast, policy: HistorySpec, properties: Mapping[str, str], now_ms: int) -> int | None:
    """Return the version before which a Delta table's log may be deleted; None where nothing of it may.

    It has a log checkpoint, from which it and everything after it can be read. A carried entry does not count, so the commit
    with the newest entry that does stays, and so does the one that counts at the oldest version that is kept.

    Args:
        past: The table's commits, oldest first, and the positions of its readers.
        policy: How long versions are kept, and how long a rewind can be undone.
        properties: The table's own.
        now_ms: Epoch milliseconds.
    """
    if past.problems or past.current is None or properties.get(CLEANS_LOG, "true").strip().lower() == "false":
        return None
    counting = [version.version for version in past.versions if counts(version)]
    if not counting:
        return None
    promised_ms = max(to_ms(policy.keep_delta_seconds), explicit_ms(properties, LOG) or 0)
    needed = {past.current, counting[-1], *past.pins.values(), *past.restarts.values()}
    needed |= left_by_repairs(past, policy, now_ms)
    needed |= since(past.over_time(), now_ms - promised_ms)
    oldest = min(needed)
    entry = max((version for version in counting if version <= oldest), default=None)
    if entry is None:
        return None
    base = max((version for version in past.checkpoints if version <= entry), default=None)
    first = min((past.versions[0].version, *past.checkpoints))
    return base if base is not None and base > first else None


def vacuum_retention_seconds(
    past: TablePast, policy: MaintenanceSpec, properties: Mapping[str, str], now_ms: int, *, is_full: bool
) -> float:
    """Return how long files of a Delta table stay after they were removed from it.

    Long enough for every version that the log keeps to be read, for a rewind to be undone, and for each reader to read on. FULL
    also deletes files that no commit ever named, and so waits as long as the look for orphans does.

    Args:
        past: The table's commits, oldest first, and the positions of its readers.
        policy: The pipeline's maintenance; its history and, for FULL, its orphans are used.
        properties: The table's own.
        now_ms: Epoch milliseconds.
        is_full: Whether the vacuum is FULL; else it is LITE.
    """
    history = policy.history
    seconds = [history.removed_files_seconds, history.keep_delta_seconds, history.undo_seconds]
    seconds.append((explicit_ms(properties, DELETED_FILES) or 0) / 1000)
    if is_full:
        seconds.append(policy.orphans.min_age_seconds)
    for pin in past.pins.values():
        # A reader that has read everything stands one version ahead.
        unread_ms = [version.committed_at_ms for version in past.versions if version.version >= pin]
        seconds.append((now_ms - min(unread_ms, default=now_ms)) / 1000)
    return max(seconds)
