"""Freshness of the last hour as a line of the size of a word, for each pipeline of the overview."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from lakebound.control.folder import ControlFolder
from lakebound.control.rollup_files import read_file, rollup_file
from lakebound.control.rollups import MINUTE
from lakebound.frozen import Frozen
from lakebound_airflow.page.charts.svg import path_of

WIDTH, HEIGHT = 80, 18
SECONDS = 3600

Values = Sequence[tuple[int, float]]
"""When a minute began, in epoch seconds, and the p99 of freshness in it, in seconds."""


class Sparkline(Frozen):
    """The line of one pipeline.

    Attributes:
        path: Commands of an SVG path in a box of 80 by 18.
        highest_seconds: Its highest value, which is at the top of the box.
        latest_seconds: Its latest value.
    """

    path: str
    highest_seconds: float
    latest_seconds: float


@dataclass(frozen=True)
class _Read:
    """What a file held when it had this time of change (nanoseconds) and this size (bytes)."""

    signature: tuple[int, int]
    values: Values


class Sparklines:
    """Reads a pipeline's rollups again only after their file has changed: once a minute."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: dict[Path, _Read] = {}

    def read(self, home: Path, names: Iterable[str], now: float) -> dict[str, Sparkline]:
        """Return the lines of these pipelines; one without values in the last hour has none.

        Args:
            home: LAKEBOUND_HOME.
            names: The pipelines.
            now: Epoch seconds.
        """
        found = {name: sparkline(self._values(ControlFolder(home, name), now), now) for name in names}
        return {name: line for name, line in found.items() if line is not None}

    def _values(self, control: ControlFolder, now: float) -> Values:
        file = rollup_file(control, MINUTE)
        try:
            said = file.stat()
            signature = (said.st_mtime_ns, said.st_size)
            with self._lock:
                known = self._known.get(file)
                if known is None or known.signature != signature:
                    known = self._known[file] = _Read(signature, _p99s(control, now - SECONDS))
            return known.values
        except OSError:
            return ()


def sparkline(values: Values, now: float) -> Sparkline | None:
    """Return the line over the hour before ``now`` (epoch seconds); None without values in it."""
    shown = [(at, value) for at, value in values if now - SECONDS <= at <= now]
    if not shown:
        return None
    highest = max(value for _, value in shown)
    places: list[tuple[float, float] | None] = []
    before = shown[0][0]
    for at, value in shown:
        if at - before > MINUTE.seconds:
            places.append(None)
        x = (at - now + SECONDS) / SECONDS * (WIDTH - 2) + 1
        places.append((round(x, 1), round(HEIGHT - 1 - value / (highest or 1.0) * (HEIGHT - 2), 1)))
        before = at
    return Sparkline(path=path_of(places), highest_seconds=highest, latest_seconds=shown[-1][1])


def _p99s(control: ControlFolder, since: float) -> Values:
    found = ((bucket.at, bucket.figures.freshness.quantile(0.99)) for bucket in read_file(control, MINUTE, since).buckets)
    return [(at, value) for at, value in found if value is not None]
