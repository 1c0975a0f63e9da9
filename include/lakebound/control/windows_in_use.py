"""The state of a pipeline with windows, as its application sees it: how much of it there is, and what a start reads again."""

from __future__ import annotations

from collections.abc import Iterator

from pydantic import Field

from lakebound.control.bounds import Count, MomentMs
from lakebound.frozen import FrozenRecord
from lakebound.spec.times import in_utc

_MOST_PARTITIONS = 8
"""Of which the horizon is shown."""


class WindowsProgress(FrozenRecord):
    """Open windows after the newest batch."""

    watermark_ms: MomentMs = Field(description="Windows that end at or before it are closed; epoch milliseconds.")
    newest_ms: MomentMs | None = Field(default=None, description="The latest event time so far; None: no record had one.")
    open_rows: Count | None = Field(default=None, description="Rows of open windows in Spark's state; None: not known yet.")
    state_bytes: Count | None = Field(default=None, description="Memory of Spark's state, as Spark reports it.")
    horizon: dict[int, Count] = Field(
        default_factory=dict, description="Oldest offset of each partition that an open window may hold."
    )
    rebuilt_offsets: Count = Field(default=0, description="How many offsets a start would read again.")
    is_rebuilding: bool = Field(default=False, description="Whether the start is just reading them: nothing lands meanwhile.")


def told_windows(found: WindowsProgress) -> Iterator[str]:
    """Yield what people should know of open windows, a line each. Pure."""
    if found.is_rebuilding:
        yield f"windows: {found.rebuilt_offsets:,} offsets are read again to rebuild the open windows; nothing lands until then"
        return
    if found.newest_ms is None:
        yield "windows: no record with an event time has come yet"
        return
    rows = "" if found.open_rows is None else f"; {found.open_rows:,} rows of open windows"
    memory = "" if not found.state_bytes else f" in {found.state_bytes / 2**20:,.0f} MiB"
    yield f"windows: the watermark is {in_utc(found.watermark_ms)}: what ends until then is closed{rows}{memory}"
    horizon = ", ".join(f"{partition}: {offset}" for partition, offset in sorted(found.horizon.items())[:_MOST_PARTITIONS])
    more = " …" if len(found.horizon) > _MOST_PARTITIONS else ""
    yield (
        f"windows: a start reads {found.rebuilt_offsets:,} offsets again to rebuild the open windows; Kafka must keep the "
        f"offsets since the horizon ({horizon}{more})"
    )
