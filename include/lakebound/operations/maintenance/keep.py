"""Which versions of a table must stay: the heart of what makes maintenance safe. Pure.

Iceberg keeps each snapshot by itself, so its history is thinned. Delta's log has no gaps, so it is cut off at one place. Of
both stays whatever somebody stands on or was promised, and the way from each kept version back to the entry that counts there:
a carried entry may lag behind its version's rows, and a version that is gone ends the walk back to a better one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import pairwise

from lakebound.operations.maintenance.history import TablePast, Version
from lakebound.spec.maintenance import HistorySpec, MaintenanceSpec
from lakebound.tables.delta.durations import DELETED_FILES, LOG, explicit_ms

MIN_SNAPSHOTS = "history.expire.min-snapshots-to-keep"
COLLECTS = "gc.enabled"
CLEANS_LOG = "delta.enableExpiredLogCleanup"

_SECOND_MS = 1_000
_MINUTE_MS = 60_000
_HOUR_MS = 3_600_000

Timeline = Sequence[tuple[int, Version]]
"""Since when each version was what the table was, oldest first."""


def undo_until_ms(policy: HistorySpec, left_at_ms: int) -> int:
    """Return until when a version stays that a rewind left at a time: what a rewind promises, and what is kept here."""
    return left_at_ms + _ms(policy.undo_seconds)


def expirable(past: TablePast, policy: HistorySpec, properties: Mapping[str, str], now_ms: int) -> tuple[int, ...]:
    """Return the snapshots of an Iceberg table that may be expired, oldest first.

    Args:
        past: All of its snapshots.
        policy: What is promised.
        properties: The table's own.
        now_ms: The time.
    """
    if past.problems or properties.get(COLLECTS, "true").strip().lower() == "false":
        return ()
    kept = kept_snapshots(past, policy, properties, now_ms)
    return tuple(version.version for version in past.versions if version.version not in kept)


def kept_snapshots(past: TablePast, policy: HistorySpec, properties: Mapping[str, str], now_ms: int) -> frozenset[int]:
    """Return the snapshots that must stay.

    All of them where no entry that counts can be reached, so that nobody knows what the table holds; and where a reader stands
    on none of them, until somebody says what becomes of it.
    """
    known = {version.version: version for version in past.versions}
    if past.current not in known or _counting_on(known, past.current) is None:
        return frozenset(known)
    if any(pin not in known for pin in past.pins.values()):
        return frozenset(known)
    kept = {past.current, *_left_by_rewinds(past, policy, now_ms)}
    kept |= {version.version for version in past.versions if version.is_referenced}
    timeline = past.over_time()
    kept |= _recent(timeline, policy, now_ms)
    kept |= _thinned(timeline, policy, now_ms)
    kept |= _after_pins(past)
    kept |= _newest(past.versions, properties)
    return _closed(past, known, kept)


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
    counting = [version.version for version in past.versions if _counts(version)]
    if not counting:
        return None
    promised_ms = max(_ms(policy.keep_delta_seconds), explicit_ms(properties, LOG) or 0)
    needed = {past.current, counting[-1], *past.pins.values(), *past.restarts.values()}
    needed |= _left_by_rewinds(past, policy, now_ms)
    needed |= _since(past.over_time(), now_ms - promised_ms)
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


def _left_by_rewinds(past: TablePast, policy: HistorySpec, now_ms: int) -> set[int]:
    """Return what rewinds and rollbacks left, as long as that can be undone, and the commits after it, which show that.

    Undoing looks for the reset; of a rollback nothing else tells once the log of what was current is cut short.
    """
    known = {version.version for version in past.versions}
    held = {one for one, at_ms in past.was_current.items() if one in known and undo_until_ms(policy, at_ms) >= now_ms}
    found = set(held)
    for before, version in pairwise(past.versions):
        is_reset = version.kind == "reset" and undo_until_ms(policy, version.committed_at_ms) >= now_ms
        if is_reset or before.version in held:
            found |= {before.version, version.version}
    return found


def _recent(timeline: Timeline, policy: HistorySpec, now_ms: int) -> set[int]:
    """Return the newest versions, as many as all stay, and what the table was when each promised time began."""
    starts = [seconds for seconds, _ in _spans(policy)]
    newest = timeline[-policy.keep_all_snapshots :]
    found = _since(newest, now_ms - _ms(policy.keep_all_seconds))
    return found | {version for start in starts for version in _at(timeline, now_ms - _ms(start))}


def _since(timeline: Timeline, moment_ms: int) -> set[int]:
    """Return the versions since a time, and what the table was at that time."""
    return {one.version for at_ms, one in timeline if max(at_ms, one.committed_at_ms) >= moment_ms} | _at(timeline, moment_ms)


def _at(timeline: Timeline, moment_ms: int) -> set[int]:
    """Return what a rewind to a time goes back to: the last that was current and is not younger."""
    return {next((version.version for at_ms, version in reversed(timeline) if at_ms <= moment_ms), -1)} - {-1}


def _after_pins(past: TablePast) -> set[int]:
    """Return each version on which a reader stands, and all that follow: these it has still to read."""
    ids = [version.version for version in past.versions]
    first = min((ids.index(pin) for pin in past.pins.values()), default=len(ids))
    return set(ids[first:])


def _newest(versions: Sequence[Version], properties: Mapping[str, str]) -> set[int]:
    text = properties.get(MIN_SNAPSHOTS, "").strip()
    count = int(text) if text.isdigit() else 0
    return {version.version for version in versions[len(versions) - min(count, len(versions)) :]}


def _thinned(timeline: Timeline, policy: HistorySpec, now_ms: int) -> set[int]:
    """Return the last version of each second, beyond that of each minute, and beyond that of each hour.

    Also of what a rewind left: a later one goes back to what the table was at its time. Of each such span it is the last
    version whose own entry counts, where there is one: another would have to be kept together with the way to its entry.
    """
    spans = [(now_ms - _ms(seconds), span_ms) for seconds, span_ms in _spans(policy)]
    last: dict[tuple[int, int], Version] = {}
    for at_ms, version in timeline:
        span_ms = next((span_ms for since_ms, span_ms in spans if at_ms >= since_ms), None)
        if span_ms is None:
            continue
        span = (span_ms, at_ms // span_ms)
        if span not in last or _counts(version) or not _counts(last[span]):
            last[span] = version
    return {version.version for version in last.values()}


def _spans(policy: HistorySpec) -> tuple[tuple[float, int], ...]:
    """Return for how many seconds the last version of each span stays, and how many milliseconds such a span has."""
    return (
        (policy.keep_all_seconds, _SECOND_MS),
        (policy.keep_minutely_seconds, _MINUTE_MS),
        (policy.keep_hourly_seconds, _HOUR_MS),
    )


def _closed(past: TablePast, known: Mapping[int, Version], kept: Collection[int]) -> frozenset[int]:
    """Return the kept versions with what they need: the way to their entry, and of rewinds what makes undoing right.

    Undoing takes the newest reset for the last rewind, and the version before it for what that left: they must be these, or
    no reset be there at all.
    """
    before = {version.version: {earlier.version} for earlier, version in pairwise(past.versions)}
    for (_, earlier), (_, version) in pairwise(past.over_time()):
        before.setdefault(version.version, set()).add(earlier.version)
    newest_reset = next((version.version for version in reversed(past.versions) if version.kind == "reset"), None)
    found: set[int] = set()
    todo = list(kept)
    while todo:
        version = known[todo.pop()]
        if version.version in found:
            continue
        found.add(version.version)
        if not _counts(version) and version.parent is not None and version.parent in known:
            todo.append(version.parent)
        if version.kind == "reset":
            todo += [*before.get(version.version, ()), *([newest_reset] if newest_reset is not None else [])]
    return frozenset(found)


def _ancestry(known: Mapping[int, Version], newest: int) -> Iterator[Version]:
    at: int | None = newest
    while at is not None and at in known:
        yield known[at]
        at = known[at].parent


def _counting_on(known: Mapping[int, Version], newest: int) -> Version | None:
    return next((version for version in _ancestry(known, newest) if _counts(version)), None)


def _counts(version: Version) -> bool:
    return version.kind is not None and version.kind != "carry"


def _ms(seconds: float) -> int:
    return round(seconds * 1000)
