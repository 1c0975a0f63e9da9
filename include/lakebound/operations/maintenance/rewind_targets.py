"""To which versions a rewind can go back, and until when maintenance keeps them: by the policy by which it removes. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise

from lakebound.control.bounds import LAST_MOMENT
from lakebound.control.table_history import MOST_TARGETS, RewindTarget, TableHistory
from lakebound.operations.maintenance.history import TablePast, Version
from lakebound.operations.maintenance.keep import undo_until_ms
from lakebound.operations.maintenance.planning_rules import planning_of
from lakebound.spec.maintenance import HistorySpec

_MOST_NEWEST = 20
_MOST_EVENTS = 60
_USUAL = (None, "land", "carry")
"""Kinds of which only some are kept; all others are events."""
_CHOSEN = ((3600, 60), (6 * 3600, 600), (8 * 86_400, 3600))
"""For versions of so many seconds, one per so many seconds is kept."""


def table_history(
    past: TablePast, policy: HistorySpec, properties: Mapping[str, str], now_ms: int, most: int = MOST_TARGETS
) -> TableHistory:
    """Return the history that is written down of a table.

    Args:
        past: All of its versions.
        policy: What is kept of them.
        properties: The table's own.
        now_ms: The time.
        most: How many targets at most.
    """
    targets = [
        one for one in rewind_targets(past, policy, properties, now_ms) if one.until is None or one.until * 1000 > now_ms
    ]
    return TableHistory(
        looked_at=now_ms / 1000,
        targets=chosen_targets(targets, now_ms / 1000, most),
        versions=len(past.versions),
        grains=planning_of(past.table).grains(policy, properties),
        problems=past.problems,
    )


def rewind_targets(past: TablePast, policy: HistorySpec, properties: Mapping[str, str], now_ms: int) -> Iterator[RewindTarget]:
    """Yield every version that a rewind would go back to, oldest first, also those that may be removed any moment.

    Args:
        past: All of its versions.
        policy: What is kept of them.
        properties: The table's own.
        now_ms: The time.
    """
    timeline = past.over_time()
    ends = [at_ms for at_ms, _ in timeline[1:]]
    spans = [
        (grain.every_seconds * 1000, grain.kept_seconds * 1000) for grain in planning_of(past.table).grains(policy, properties)
    ]
    kept_ms, awaited = _kept_ms(timeline, spans, now_ms), _awaited_by_readers(past)
    for (at_ms, version), left_ms, stays_ms in zip(timeline, [*ends, None], kept_ms, strict=True):
        until = None
        if left_ms is not None and version.version not in awaited:
            until = max(0.0, left_ms + stays_ms) / 1000
            if version.version in past.was_current:
                until = max(until, undo_until_ms(policy, past.was_current[version.version]) / 1000)
        bounded = None if until is None else min(LAST_MOMENT, until)
        yield RewindTarget(max(0, at_ms) / 1000, str(version.version), version.kind, bounded)


def chosen_targets(targets: Sequence[RewindTarget], now: float, most: int) -> tuple[RewindTarget, ...]:
    """Return the newest targets, those with events, the oldest one, and of the others the last one of each stretch of time.

    Args:
        targets: Oldest first.
        now: Epoch seconds.
        most: How many at most: the newest, but the oldest one always.
    """
    events = [place for place, one in enumerate(targets) if one.kind not in _USUAL][-_MOST_EVENTS:]
    chosen = {*range(max(0, len(targets) - _MOST_NEWEST), len(targets)), *events}
    last: dict[tuple[int, int], int] = {}
    for place, one in enumerate(targets):
        every = next((every for seconds, every in _CHOSEN if now - one.at < seconds), None)
        if every is not None:
            last[every, int(one.at // every)] = place
    ordered = sorted({*chosen, *last.values()})[-most:]
    if targets and 0 not in ordered:
        ordered = [0, *ordered[-(most - 1) :]]
    return tuple(targets[place] for place in ordered)


def _kept_ms(timeline: Sequence[tuple[int, Version]], spans: Iterable[tuple[float, float]], now_ms: int) -> list[float]:
    """Return for how long each version stays after another took its place: by the longest span of which it is the last.

    A span that is not over has no last one yet.
    """
    kept = [0.0] * len(timeline)
    for every_ms, kept_ms in spans:
        if not every_ms:
            return [kept_ms] * len(timeline)
        slots = [int(at_ms // every_ms) for at_ms, _ in timeline]
        for place, (slot, following) in enumerate(pairwise([*slots, int(now_ms // every_ms)])):
            if slot != following:
                counted = _last_that_counts(timeline, slots, place)
                kept[counted] = max(kept[counted], kept_ms)
    return kept


def _last_that_counts(timeline: Sequence[tuple[int, Version]], slots: Sequence[int], last: int) -> int:
    """Return the last version of a span whose own entry counts, as the thinning does; else the last one."""
    for place in range(last, -1, -1):
        if slots[place] != slots[last]:
            break
        kind = timeline[place][1].kind
        if kind is not None and kind != "carry":
            return place
    return last


def _awaited_by_readers(past: TablePast) -> frozenset[int]:
    """Return the versions on which a reader stands, and those that it has still to read: they stay meanwhile."""
    pins = set(past.pins.values())
    first = next((place for place, one in enumerate(past.versions) if one.version in pins), len(past.versions))
    return frozenset(one.version for one in past.versions[first:])
