"""What an entry says of open windows, and from where a start rebuilds them. Pure.

The state of an aggregation is never read from a checkpoint. It is made anew at each start from the records between the
*horizon*, the oldest offset of each partition that an open window may hold, and the end of the last landed batch, with the
watermark of that batch (docs/decisions/0044).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from pydantic import Field

from lakebound.errors import WindowsMismatchError
from lakebound.frozen import FrozenRecord
from lakebound.ledger.far_ahead import FarAhead, FarAheadRanges, since

Ends = dict[int, int]
"""Per partition, the offset after the last one."""
_MOST_TIMES = 256
"""At which windows close, of one partition."""
_MOST_KEPT_TIMES = 256
"""Of all partitions together, in an entry."""


class WindowPosition(FrozenRecord):
    """Where a stream with state stands after a batch.

    Attributes:
        ends: Offset after the last one of the batch, by partition.
        watermark_ms: With which Spark ran the batch: windows that end at or before it are closed by it.
        newest_ms: The latest event time so far, in epoch milliseconds; None before the first record that has one.
        horizon: Oldest offset of each partition that a window may hold which is still open.
        open_until_ms: End of the newest window of each partition's records since the horizon; none where there are none.
        open_from: Per partition, by a few times at which windows close, the first offset of the windows that close then.
        far_ahead: Offsets since the horizon among which records were far ahead, by partition.
    """

    ends: Ends
    watermark_ms: int = Field(default=0, ge=0)
    newest_ms: int | None = None
    horizon: Ends = Field(default_factory=dict)
    open_until_ms: Ends = Field(default_factory=dict)
    open_from: dict[int, dict[int, int]] = Field(default_factory=dict)
    far_ahead: dict[int, tuple[FarAhead, ...]] = Field(default_factory=dict)

    @property
    def has_state(self) -> bool:
        """Whether there was a record by which Spark's state can be other than at its very beginning."""
        return self.newest_ms is not None

    @property
    def rebuilt_offsets(self) -> int:
        """How many offsets a start reads again."""
        return sum(end - self.horizon.get(partition, end) for partition, end in self.ends.items())

    def next_watermark_ms(self, delay_ms: int) -> int:
        """Return the watermark with which Spark runs the batch after this one.

        Args:
            delay_ms: The watermark's delay.
        """
        return self.watermark_ms if self.newest_ms is None else max(self.watermark_ms, self.newest_ms - delay_ms)


class WindowCounts(FrozenRecord):
    """Records of a commit: of its batch, and of the batches before it that had nothing to say."""

    read: int = Field(default=0, ge=0)
    filtered: int = Field(default=0, ge=0)
    landed: int = Field(default=0, ge=0)
    quarantined: int = Field(default=0, ge=0)


class WindowState(FrozenRecord):
    """What a commit of a pipeline with state says of the batch that it lands.

    Attributes:
        id: Of the aggregation: another one cannot go on with the windows that this one has opened.
        serial: How many batches were committed so far, this one included; the same in every table that has the batch.
        before: Where the stream stood before the batch; from there it is repeated in a table that lacks it.
        after: Where it stands with the batch.
        counts: Of the commit, in each table: who repeats the batch alone has not read the ones before it.
        rows_id: Of the code that made the rows of the aggregation: it may change, and the windows go on.
        rows_since_ms: Windows that end after it have rows that this code has made.
    """

    id: str
    serial: int = Field(ge=1)
    before: WindowPosition
    after: WindowPosition
    counts: WindowCounts = WindowCounts()
    rows_id: str = ""
    rows_since_ms: int | None = None


@dataclass(frozen=True)
class WindowStart:
    """From where a stream with state goes on.

    Attributes:
        position: What is rebuilt first; nothing is landed by that.
        serial: How many batches every table has.
        newest: What the newest entry says; None before the first.
        repeated: The batch that only some of the tables have, or the quarantine has alone: it is run again with exactly its
            ends and watermark; None where all stand at one batch.
    """

    position: WindowPosition
    serial: int
    repeated: WindowState | None = None
    newest: WindowState | None = None

    def rows_since_ms(self, rows_id: str) -> int | None:
        """Return the end after which windows have rows of some code; None: all.

        Args:
            rows_id: Of the code.
        """
        if self.newest is None:
            return None
        return self.newest.rows_since_ms if self.newest.rows_id == rows_id else self.known.watermark_ms

    @property
    def known(self) -> WindowPosition:
        """Up to where records are judged as they were before."""
        return self.position if self.repeated is None else self.repeated.after


def plan_windows(
    pipeline: str,
    window_id: str,
    rows_id: str,
    tables: Mapping[str, WindowState | None],
    quarantine: WindowState | None,
    marks: Ends,
) -> WindowStart:
    """Return from where a stream with state goes on.

    Args:
        pipeline: Its name, for errors.
        window_id: Of the aggregation as the transform makes it now.
        rows_id: Of the rows that it makes of them.
        tables: What the newest entry of each table says, by the table's id.
        quarantine: What that of the quarantine says, which is committed before the tables.
        marks: Next offset of each partition, by the tables' coverage; a start without state begins there.

    Raises:
        WindowsMismatchError: The tables are more than one batch apart, or were landed with another aggregation, or offsets
            were skipped.
    """
    known = {name: state for name, state in tables.items() if state is not None}
    if not known and quarantine is None:
        return WindowStart(WindowPosition(ends=marks, horizon=marks), 0)
    told = [*known.values(), *([] if quarantine is None else [quarantine])]
    newest = max(told, key=lambda state: (state.serial, len(state.after.ends)))
    if newest.id != window_id:
        reason = (
            f"the aggregation (transform, null_values or the schema of records) is another one ({window_id}) than that of the "
            f"landed windows ({newest.id})"
        )
        raise WindowsMismatchError(pipeline, reason)
    serials = {name: 0 if state is None else state.serial for name, state in tables.items()}
    ahead = next((name for name, state in known.items() if state.serial == newest.serial), "the quarantine table")
    for name, serial in serials.items():
        if serial < newest.serial - 1:
            reason = f"table {name} has {serial} batches of windows, and {ahead} has {newest.serial}"
            raise WindowsMismatchError(pipeline, reason)
    if any(state.serial == newest.serial and not is_same_batch(state, newest) for state in told):
        raise WindowsMismatchError(pipeline, f"the ledgers of the tables describe batch {newest.serial} differently")
    if all(serial == newest.serial for serial in serials.values()):
        if any(marks.get(partition, end) != end for partition, end in newest.after.ends.items()):
            reason = "the next offsets of the tables are not where the last batch of windows ended"
            raise WindowsMismatchError(pipeline, reason)
        return WindowStart(newest.after, newest.serial, newest=newest)
    if newest.rows_id not in ("", rows_id) and any(serial == newest.serial for serial in serials.values()):
        reason = (
            f"the code was changed while batch {newest.serial} was landed in part: the tables would get different rows of it; "
            f"put the code back, let the stream land the batch, then change the code"
        )
        raise WindowsMismatchError(pipeline, reason)
    return WindowStart(newest.before, newest.serial - 1, newest, newest)


def is_same_batch(one: WindowState, other: WindowState) -> bool:
    """Whether two entries name one batch: with the same ends, watermark and latest event time.

    Horizons may differ: a stream that has rebuilt its windows knows less of their ranges. Nor has the one that repeats a batch
    to know the same partitions.
    """
    return one.serial == other.serial and _agree(one.before, other.before) and _agree(one.after, other.after)


def _agree(one: WindowPosition, other: WindowPosition) -> bool:
    both = one.ends.keys() & other.ends.keys()
    times = all(getattr(one, name) == getattr(other, name) for name in ("watermark_ms", "newest_ms"))
    return times and all(one.ends[partition] == other.ends[partition] for partition in both)


def with_new_partitions(position: WindowPosition, earliest: Ends) -> WindowPosition:
    """Return the position with partitions that have come since; of them nothing has been read.

    Args:
        position: As it was landed.
        earliest: Kafka's first offset of each partition.
    """
    fresh = {partition: offset for partition, offset in earliest.items() if partition not in position.ends}
    return position.model_copy(update={"ends": {**position.ends, **fresh}, "horizon": {**position.horizon, **fresh}})


def start_with(windows: WindowStart, earliest: Ends) -> WindowStart:
    """Return a start that knows the partitions that have come since, also in the batch that it repeats.

    Args:
        windows: As the ledgers say.
        earliest: Kafka's first offset of each partition.
    """
    state = windows.repeated
    if state is not None:
        known = {name: with_new_partitions(getattr(state, name), earliest) for name in ("before", "after")}
        state = state.model_copy(update=known)
    return WindowStart(with_new_partitions(windows.position, earliest), windows.serial, state, windows.newest)


def gone_before(position: WindowPosition, earliest: Ends) -> dict[int, tuple[int, int]]:
    """Return per partition the offsets since the horizon that Kafka has deleted: windows that are open held them.

    Args:
        position: As it was landed.
        earliest: Kafka's first offset of each partition.
    """
    return {
        partition: (offset, earliest[partition])
        for partition, offset in sorted(position.horizon.items())
        if offset < min(earliest.get(partition, offset), position.ends.get(partition, offset))
    }


@dataclass(frozen=True)
class ReadRange:
    """What a batch has read of one partition.

    Attributes:
        start: First offset.
        open_until_ms: End of the newest window of its records.
    """

    start: int
    open_until_ms: int


class OpenRanges:
    """Which offsets may still be in an open window: of each time at which windows close the first one, in any disorder."""

    def __init__(self, position: WindowPosition) -> None:
        """Know what an entry says.

        Args:
            position: After the last landed batch.
        """
        horizon, until, known = position.horizon, position.open_until_ms, position.open_from
        self._starts: dict[int, dict[int, int]] = {
            partition: dict(known.get(partition) or {until_ms: horizon[partition]}) for partition, until_ms in until.items()
        }

    def read(self, ranges: Mapping[int, ReadRange]) -> None:
        """Add what a batch has read."""
        for partition, one in ranges.items():
            starts = self._starts.setdefault(partition, {})
            starts[one.open_until_ms] = min(one.start, starts.get(one.open_until_ms, one.start))
            if len(starts) > _MOST_TIMES:
                self._starts[partition] = _coarser(starts, _MOST_TIMES // 4)

    def close(self, watermark_ms: int) -> None:
        """Forget the offsets whose windows are all closed.

        Args:
            watermark_ms: With which the newest batch was run.
        """
        left = {p: {at: start for at, start in starts.items() if at > watermark_ms} for p, starts in self._starts.items()}
        self._starts = {p: starts for p, starts in left.items() if starts}

    def position(
        self, ends: Ends, watermark_ms: int, newest_ms: int | None, far_ahead: FarAheadRanges | None = None
    ) -> WindowPosition:
        """Return where the stream stands.

        Args:
            ends: Offset after the last one read, by partition.
            watermark_ms: With which the newest batch was run.
            newest_ms: The latest event time so far.
            far_ahead: Ranges in which records were far ahead.
        """
        parts = max(2, min(8, _MOST_KEPT_TIMES // max(len(self._starts), 1)))
        horizon = {p: min(self._starts.get(p, {}).values(), default=end) for p, end in ends.items()}
        return WindowPosition(
            ends=ends,
            watermark_ms=watermark_ms,
            newest_ms=newest_ms,
            horizon=horizon,
            open_until_ms={p: max(starts) for p, starts in self._starts.items()},
            open_from={p: _coarser(starts, parts) if len(starts) > parts else starts for p, starts in self._starts.items()},
            far_ahead=since(far_ahead or {}, horizon),
        )


def _coarser(starts: Mapping[int, int], parts: int) -> dict[int, int]:
    """Return fewer times, each a little later than those for which it stands.

    They lie on a grid whose step is a power of two: a time that is on it already stays, however often this is done, so that
    each closes late by a small part of the span and not ever later.

    Args:
        starts: First offset by the time at which its windows close.
        parts: About how many times are left.
    """
    last = max(starts)
    step = 1 << max((last - min(starts)) // parts, 1).bit_length()
    found: dict[int, int] = {}
    for until, start in starts.items():
        at = min(-(-until // step) * step, last)
        found[at] = min(start, found.get(at, start))
    return found


def latest_of(times_ms: Iterable[int | None]) -> int | None:
    """Return the latest of some times; None where none is known."""
    return max((one for one in times_ms if one is not None), default=None)
