"""Stands in for the application of a pipeline with complete hours, in a world whose clock a test sets.

It lands in a real Delta table, and has the real keeper look which hours are complete; only Kafka's ends are made up. Record n
of partition 0 comes in hour n and lands when its grace is over already. Record n of partition 1 is of hour n, too, and is late.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass
from pathlib import Path

from lakebound.control.folder import ControlFolder, write_text
from lakebound.landing.complete_hours_watch import CompleteHoursKeeper
from lakebound.ledger.hours import HOUR_MS
from lakebound.ledger.topics import TopicFacts
from lakebound.spec.complete_hours import CompleteHoursSpec
from lakebound.spec.pipeline import PipelineSpec
from lakebound.spec.table import TableSpec
from tests.support.streams.stand_ins import ORDERS
from tests.support.tables.hourly_rows import BEGIN_MS, land_hours
from tests.support.tables.local_tables import TOPIC, TOPIC_ID, lander, make_table, places

TABLE = TableSpec(format="delta", name="lake.moves")
WANTED = {"column": "at", "grace": "5m"}
TICK_SECONDS = 0.2
_COMES_MS = HOUR_MS // 2
_LANDS_MS = HOUR_MS + HOUR_MS // 6
"""After the beginning of its hour: five minutes after the hour's grace."""
LATE_HOURS = 4
"""In this hour comes the first record of partition 1, and every two hours another one."""


@dataclass(frozen=True)
class World:
    """Its clock is a file, which the test sets: hours and minutes since it began."""

    clock: Path

    def set_to(self, hours: int, minutes: int) -> None:
        """Have it be this time."""
        write_text(self.clock, str(BEGIN_MS + (hours * 60 + minutes) * 60_000))

    def now_ms(self) -> int:
        """Its time now."""
        return int(self.clock.read_text())


def ends(now_ms: int) -> dict[int, int]:
    """Return how many records of each partition have come."""
    age = now_ms - BEGIN_MS
    return {0: max(0, (age - _COMES_MS) // HOUR_MS + 1), 1: max(0, (age // HOUR_MS - LATE_HOURS) // 2 + 1)}


def landed(now_ms: int) -> dict[int, int]:
    """Return how many records of each partition have landed."""
    return {0: max(0, (now_ms - BEGIN_MS - _LANDS_MS) // HOUR_MS + 1), 1: ends(now_ms - HOUR_MS // 6)[1]}


def write(home: Path, tables: Path, pipeline: str, world: World) -> None:
    """Land and look, for ever.

    Args:
        home: ``LAKEBOUND_HOME``.
        tables: Where the table is.
        pipeline: Its name.
        world: Its clock.
    """
    at = places(tables)
    spec = PipelineSpec.model_validate(
        {**ORDERS, "pipeline": pipeline, "topics": [TOPIC], "tables": [TABLE.model_dump(mode="json")], "complete_hours": WANTED}
    )
    wanted = CompleteHoursSpec.model_validate(WANTED)
    if not at.delta_path(TABLE).exists():
        make_table(TABLE, at)
        lander(TABLE, at).open()
    app = lander(TABLE, at)

    def facts() -> dict[str, TopicFacts]:
        return {TOPIC: TopicFacts(topic_id=TOPIC_ID, earliest={0: 0, 1: 0}, latest=ends(world.now_ms()))}

    clock = lambda: world.now_ms() / 1000  # noqa: E731
    keeper = CompleteHoursKeeper(spec, wanted, at, ControlFolder(home, pipeline), facts, lambda: None, clock)
    while True:
        keeper.look()
        for partition, end in landed(now_ms := world.now_ms()).items():
            held = app.view.coverage[TOPIC].partitions.get(partition, ()) if TOPIC in app.view.coverage else ()
            start = held[-1][1] if held else 0
            if end > start:
                land_hours(app, start, end, now_ms, partition=partition)
        time.sleep(TICK_SECONDS)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("home", type=Path)
    parser.add_argument("tables", type=Path)
    parser.add_argument("pipeline")
    parser.add_argument("clock", type=Path)
    told = parser.parse_args()
    write(told.home, told.tables, told.pipeline, World(told.clock))
