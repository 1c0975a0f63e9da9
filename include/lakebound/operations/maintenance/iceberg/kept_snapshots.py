"""Which snapshots of an Iceberg table must stay: each is kept by itself, so its history is thinned. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import pairwise

from lakebound.operations.maintenance.history import TablePast, Version
from lakebound.operations.maintenance.keep import Timeline, at, counts, left_by_repairs, since, to_ms
from lakebound.spec.maintenance import HistorySpec

MIN_SNAPSHOTS = "history.expire.min-snapshots-to-keep"
COLLECTS = "gc.enabled"

_SECOND_MS = 1_000
_MINUTE_MS = 60_000
_HOUR_MS = 3_600_000


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
    kept = {past.current, *left_by_repairs(past, policy, now_ms)}
    kept |= {version.version for version in past.versions if version.is_referenced}
    timeline = past.over_time()
    kept |= _recent(timeline, policy, now_ms)
    kept |= _thinned(timeline, policy, now_ms)
    kept |= _after_pins(past)
    kept |= _newest(past.versions, properties)
    return _closed(past, known, kept)


def _recent(timeline: Timeline, policy: HistorySpec, now_ms: int) -> set[int]:
    """Return the newest versions, as many as all stay, and what the table was when each promised time began."""
    starts = [seconds for seconds, _ in _spans(policy)]
    newest = timeline[-policy.keep_all_snapshots :]
    found = since(newest, now_ms - to_ms(policy.keep_all_seconds))
    return found | {version for start in starts for version in at(timeline, now_ms - to_ms(start))}


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
    spans = [(now_ms - to_ms(seconds), span_ms) for seconds, span_ms in _spans(policy)]
    last: dict[tuple[int, int], Version] = {}
    for at_ms, version in timeline:
        span_ms = next((span_ms for since_ms, span_ms in spans if at_ms >= since_ms), None)
        if span_ms is None:
            continue
        span = (span_ms, at_ms // span_ms)
        if span not in last or counts(version) or not counts(last[span]):
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
        if not counts(version) and version.parent is not None and version.parent in known:
            todo.append(version.parent)
        if version.kind == "reset":
            todo += [*before.get(version.version, ()), *([newest_reset] if newest_reset is not None else [])]
    return frozenset(found)


def _ancestry(known: Mapping[int, Version], newest: int) -> Iterator[Version]:
    number: int | None = newest
    while number is not None and number in known:
        yield known[number]
        number = known[number].parent


def _counting_on(known: Mapping[int, Version], newest: int) -> Version | None:
    return next((version for version in _ancestry(known, newest) if counts(version)), None)
