"""How late the late records of a pipeline with state are, and what a longer watermark would have changed. No Spark.

The quarantine says of each late record which window it missed, and by which watermark. Batches end where they end, whatever the
watermark is: one that is longer by x is always x behind the other, so a record counts again if its window was closed for less
than x. The text also names the delay of that watermark, because the YAML may have another one now.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow.compute as pc
from pydantic import Field

from lakebound.control.windows_in_use import WindowsProgress
from lakebound.errors import LakeboundError
from lakebound.formats.reasons import LATE, LATE_IN_PART, WINDOW_REASONS
from lakebound.frozen import Frozen
from lakebound.landing.missed_window import read_missed
from lakebound.spec.pipeline import PipelineSpec
from lakebound.spec.state import StateSpec
from lakebound.tables.contents import Selection, contents_of
from lakebound.tables.places import Places
from lakebound.tables.table import open_table

_PERCENTILES = (50, 90, 99, 100)
_SECOND, _MINUTE, _HOUR = 1000, 60_000, 3_600_000
Missed = Mapping[tuple[str, int], npt.NDArray[np.int64]]
"""By reason and size of the window in milliseconds: how long the first window of each record had been closed."""
Delays = npt.NDArray[np.int64]
"""Of each late record the longest delay of the watermark with which it would not have counted, in milliseconds, sorted."""


class NoWindowsError(LakeboundError):
    """A pipeline without state was asked for late records."""

    def __init__(self, pipeline: str) -> None:
        super().__init__(
            f"pipeline {pipeline!r} has no 'state', so it makes no windows and has no late records; `lakebound quarantine "
            f"{pipeline}` shows its quarantine"
        )


class LateRecords(Frozen):
    """Late records of one reason and one size of windows.

    Attributes:
        reason: ``late``: in none of its windows; ``late_in_part``: in those of its windows that were open.
        window_ms: Length of the windows.
        records: How many.
        p50_ms: How long the first window of a record had been closed when it came: half of them at most this.
        p90_ms: The same of nine in ten.
        p99_ms: The same of 99 in a hundred.
        max_ms: The longest.
    """

    reason: str
    window_ms: int
    records: int
    p50_ms: int
    p90_ms: int
    p99_ms: int
    max_ms: int


class LongerWatermark(Frozen):
    """What another watermark would have changed.

    Attributes:
        watermark_ms: It.
        counted: Late records that would have been in all of their windows.
        later_ms: How much later each row would have landed, in event time.
        open_rows: Rows of open windows in Spark's state, about; None where the application has not told how many there are.
        rebuilt_offsets: Offsets that a start would read again, about; None likewise.
    """

    watermark_ms: int
    counted: int
    later_ms: int
    open_rows: int | None = None
    rebuilt_offsets: int | None = None


class LateReport(Frozen):
    """The late records in the quarantine of a pipeline.

    Attributes:
        pipeline: Its name.
        table: The quarantine's id.
        watermark_ms: The watermark's delay in the YAML.
        counted_now: Late records that would have counted with it: they came under a shorter one.
        late: By reason and size of windows.
        others: Records that are in no window for another reason than lateness, by reason.
        unread: Late records whose text says nothing that can be read.
        open_rows: Rows of open windows in Spark's state now; None where that is not known.
        rebuilt_offsets: Offsets that a start would read again now; None likewise.
        longer: What longer watermarks would have changed, the shortest first.
    """

    pipeline: str
    table: str
    watermark_ms: int
    counted_now: int = 0
    late: tuple[LateRecords, ...] = ()
    others: dict[str, int] = Field(default_factory=dict)
    unread: int = 0
    open_rows: int | None = None
    rebuilt_offsets: int | None = None
    longer: tuple[LongerWatermark, ...] = ()

    @property
    def records(self) -> int:
        """Late records of which it is known how late they are."""
        return sum(one.records for one in self.late)


def late_report(spec: PipelineSpec, places: Places, windows: WindowsProgress | None) -> LateReport:
    """Return what the quarantine says of late records.

    Args:
        spec: The pipeline.
        places: Where its tables are.
        windows: The open windows, as its application has told of them last; None where it has not.

    Raises:
        NoWindowsError: The pipeline makes no windows.
    """
    state = spec.state
    if state is None:
        raise NoWindowsError(spec.pipeline)
    table = spec.quarantine_table
    if not open_table(table, places).exists():
        return judge(spec.pipeline, table.id, state, {}, np.zeros(0, dtype=np.int64), Counter(), windows)
    selection = Selection(("ordinal",), ("reason", "error"), {"reason": WINDOW_REASONS})
    missed: dict[tuple[str, int], list[int]] = {}
    delays: list[int] = []
    others: Counter[str] = Counter()
    for rows in contents_of(table, places).rows(selection):
        # A copy of what a validation found wrong has the name of its expectation.
        batch = rows.filter(pc.fill_null(pc.greater_equal(rows.column("ordinal"), 0), True))
        for reason, error in zip(batch.column("reason").to_pylist(), batch.column("error").to_pylist(), strict=True):
            found = read_missed(error) if reason in (LATE, LATE_IN_PART) else None
            if found is None:
                others[reason] += 1
            else:
                missed.setdefault((reason, found.end_ms - found.start_ms), []).append(found.late_ms)
                delays.append((state.watermark_ms if found.delay_ms is None else found.delay_ms) + found.late_ms)
    sorted_ms = {key: np.sort(np.array(values, dtype=np.int64)) for key, values in missed.items()}
    return judge(spec.pipeline, table.id, state, sorted_ms, np.sort(np.array(delays, dtype=np.int64)), others, windows)


def judge(
    pipeline: str,
    table: str,
    state: StateSpec,
    missed: Missed,
    delays: Delays,
    others: Counter[str],
    windows: WindowsProgress | None,
) -> LateReport:
    """Return what follows from late records. Pure.

    Args:
        pipeline: Its name.
        table: The quarantine's id.
        state: What the YAML says of its windows.
        missed: How long windows had been closed, sorted.
        delays: Of each late record, with which delay it would not have counted.
        others: Records that are in no window for another reason, and late ones that cannot be read, by reason.
        windows: The open windows; None where they are not known.
    """
    late = [_of_size(reason, size_ms, values) for (reason, size_ms), values in sorted(missed.items()) if len(values)]
    size_ms = max((one.window_ms for one in late), default=0)
    return LateReport(
        pipeline=pipeline,
        table=table,
        watermark_ms=state.watermark_ms,
        counted_now=int(np.searchsorted(delays, state.watermark_ms, side="left")),
        late=tuple(late),
        others={reason: number for reason, number in sorted(others.items()) if reason not in (LATE, LATE_IN_PART)},
        unread=others[LATE] + others[LATE_IN_PART],
        open_rows=None if windows is None else windows.open_rows,
        rebuilt_offsets=None if windows is None else windows.rebuilt_offsets,
        longer=tuple(_longer(state.watermark_ms, delays, size_ms, windows)),
    )


def _of_size(reason: str, size_ms: int, values: npt.NDArray[np.int64]) -> LateRecords:
    found = dict(zip(("p50_ms", "p90_ms", "p99_ms", "max_ms"), _percentiles(values), strict=True))
    return LateRecords(reason=reason, window_ms=size_ms, records=len(values), **found)


def _percentiles(values: npt.NDArray[np.int64]) -> list[int]:
    return [int(one) for one in np.percentile(values, _PERCENTILES, method="inverted_cdf")]


def _longer(watermark_ms: int, delays: Delays, size_ms: int, windows: WindowsProgress | None) -> Iterable[LongerWatermark]:
    """Yield the watermarks with which about half, nine in ten, 99 in a hundred, and all late records would have counted."""
    if not len(delays):
        return
    for other_ms in sorted({rounded_up(delay_ms + 1) for delay_ms in _percentiles(delays) if delay_ms >= watermark_ms}):
        later_ms = other_ms - watermark_ms
        # A window is open for its length and the watermark's delay.
        factor = (other_ms + size_ms) / (watermark_ms + size_ms)
        known: dict[str, Any] = {}
        if windows is not None:
            known["rebuilt_offsets"] = round(windows.rebuilt_offsets * factor)
            known["open_rows"] = None if windows.open_rows is None else round(windows.open_rows * factor)
        counted = int(np.searchsorted(delays, other_ms, side="left"))
        yield LongerWatermark(watermark_ms=other_ms, counted=counted, later_ms=later_ms, **known)


def rounded_up(time_ms: int) -> int:
    """Return a time that a person would write: whole seconds up to two minutes, then whole minutes, from two hours on hours."""
    unit = _SECOND if time_ms <= 2 * _MINUTE else _MINUTE if time_ms <= 2 * _HOUR else _HOUR
    return -(-time_ms // unit) * unit


def as_yaml(time_ms: int) -> str:
    """Return a time as ``state.watermark`` takes it, such as ``90s`` or ``10m``."""
    units: Sequence[tuple[str, int]] = (("h", _HOUR), ("m", _MINUTE), ("s", _SECOND), ("ms", 1))
    name, unit = next((name, unit) for name, unit in units if time_ms % unit == 0)
    return f"{time_ms // unit}{name}"
