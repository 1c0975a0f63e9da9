"""Properties of an Iceberg table under which maintenance, a rewind or the ledger would suffer. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from lakebound.operations.maintenance.iceberg.kept_snapshots import COLLECTS, MIN_SNAPSHOTS
from lakebound.operations.maintenance.packing import small_below
from lakebound.operations.maintenance.property_values import is_false, number
from lakebound.operations.maintenance.wording import count_words, size_words
from lakebound.spec.maintenance import HistorySpec, MaintenanceSpec

MAX_SNAPSHOT_AGE = "history.expire.max-snapshot-age-ms"
DELETES_METADATA = "write.metadata.delete-after-commit.enabled"
METADATA_KEPT = "write.metadata.previous-versions-max"
TARGET_SIZE = "write.target-file-size-bytes"
DISTRIBUTION = "write.distribution-mode"
RETRIES = "commit.retry.num-retries"

_MAX_METADATA_FILES = 1000
_MIN_RETRIES = 4
_MAX_SNAPSHOTS = 20_000


def warnings(properties: Mapping[str, str], policy: MaintenanceSpec) -> Iterator[str]:
    """Yield a sentence for each dangerous property.

    Args:
        properties: The table's.
        policy: What maintenance promises.
    """
    if is_false(properties, COLLECTS):
        yield f"{COLLECTS} = false: nothing is ever expired or removed, so metadata grows without limit: unset it"
    if is_false(properties, DELETES_METADATA):
        yield f"{DELETES_METADATA} = false: each commit leaves a metadata file behind: set it to true"
    kept = number(properties, METADATA_KEPT)
    if kept is not None and kept > _MAX_METADATA_FILES:
        yield f"{METADATA_KEPT} = {kept:,}: that many metadata files are kept, each with all snapshots: set it to at most 100"
    age_ms, horizon_ms = number(properties, MAX_SNAPSHOT_AGE), round(horizon_seconds(policy.history) * 1000)
    if age_ms is not None and age_ms < horizon_ms:
        yield (
            f"{MAX_SNAPSHOT_AGE} = {age_ms:,}: expire_snapshots of any tool then removes what maintenance.history must "
            f"keep: set it to at least {horizon_ms}, or unset it"
        )
    snapshots = number(properties, MIN_SNAPSHOTS)
    if snapshots is not None and snapshots > _MAX_SNAPSHOTS:
        yield f"{MIN_SNAPSHOTS} = {snapshots:,}: each commit writes that many snapshots to the metadata: lower it, or unset it"
    target, small = number(properties, TARGET_SIZE), small_below(policy.compaction)
    if target is not None and target < small:
        yield (
            f"{TARGET_SIZE} = {target:,}: files that Spark writes at that size are small (below {size_words(small)}), and are "
            f"rewritten again: set it to {policy.compaction.target_file_bytes} (target_file_bytes)"
        )
    mode = properties.get(DISTRIBUTION, "none").strip().lower()
    if mode != "none":
        yield f"{DISTRIBUTION} = {mode}: Lakebound does not use it, and each write by another Spark shuffles: set it to none"
    retries = number(properties, RETRIES)
    if retries is not None and retries < _MIN_RETRIES:
        yield (
            f"{RETRIES} = {retries}: a rewrite beside the stream then gives up after {count_words(retries + 1, 'attempt')}: "
            f"unset it, and maintenance sets its own"
        )


def horizon_seconds(history: HistorySpec) -> float:
    """Return how far back something of an Iceberg table is promised to be there."""
    return max(history.keep_all_seconds, history.keep_minutely_seconds, history.keep_hourly_seconds, history.undo_seconds)
