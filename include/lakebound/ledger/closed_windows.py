"""Which closed windows can be computed again from the records that Kafka still has, and of which offsets. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from lakebound.ledger.windows import Ends, WindowPosition, WindowState


@dataclass(frozen=True)
class ClosedWindows:
    """Windows of which Kafka has every record that was not late.

    Attributes:
        begins: First offset of each partition that may be in one of them.
        ends: Offset after the last one.
        after_ms: They end after it; None: all windows since the table's first record.
        until_ms: They end at or before it: the watermark of the newest landed batch.
    """

    begins: Ends
    ends: Ends
    after_ms: int | None
    until_ms: int


def closed_windows(first: Ends, states: Iterable[WindowState], earliest: Ends) -> ClosedWindows | None:
    """Return which windows of a table can be computed again; None where there are none.

    A window that was open after a batch has all of its records at or after that batch's horizon. So where Kafka has deleted
    records, the windows count that end after the watermark of the oldest batch of which it still has the horizon. Windows that
    other code has made the rows of do not count.

    Args:
        first: First offset of each partition that the table covers.
        states: What the table's entries say, newest first; at least one.
        earliest: Kafka's first offset of each partition.
    """
    states = list(states)
    positions = [state.after for state in states]
    newest = positions[0]
    begins = {partition: first.get(partition, end) for partition, end in newest.ends.items()}
    since_ms = states[0].rows_since_ms
    if all(earliest.get(partition, 0) <= begin for partition, begin in begins.items()):
        return None if _is_none_after(since_ms, newest) else ClosedWindows(begins, newest.ends, since_ms, newest.watermark_ms)
    oldest: WindowPosition | None = None
    for position in positions:
        if any(earliest.get(partition, 0) > begin for partition, begin in position.horizon.items()):
            break
        oldest = position
    if oldest is None:
        return None
    after_ms = max(oldest.watermark_ms, since_ms or 0)
    if _is_none_after(after_ms, newest):
        return None
    # A partition that came later is read from its beginning.
    begins = {partition: oldest.horizon.get(partition, earliest.get(partition, 0)) for partition in newest.ends}
    return ClosedWindows(begins, newest.ends, after_ms, newest.watermark_ms)


def _is_none_after(after_ms: int | None, newest: WindowPosition) -> bool:
    return after_ms is not None and after_ms >= newest.watermark_ms
