"""A pipeline under load, and a random fault now and then: nothing is lost, nothing is doubled, and it always lands again.

``make chaos MINUTES=30`` runs the long form and keeps its table as docs/reliability.md. LAKEBOUND_CHAOS_SEED repeats a run.
"""

from __future__ import annotations

import os
import random
import statistics
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from pathlib import Path

import pytest
from tests.support.kafka.journal import Journal
from tests.support.kafka.makers import topic_maker
from tests.support.kafka.producing import JournalingProducer, Load
from tests.support.streams.applications import applications
from tests.support.streams.pipelines import REPOSITORY, assert_exactly_once, make_pipeline
from tests.support.streams.soak_faults import (
    BROKER_GONE_SECONDS,
    CATALOG_LOCKED_SECONDS,
    DISK_FULL_SECONDS,
    FAULTS,
    World,
)

MINUTES = float(os.environ.get("LAKEBOUND_SOAK_MINUTES") or 0)
RATE = 2000 if MINUTES else 200
EVERY_SECONDS = 60.0
SHORT = ("kill while starting",)
"""Of ``make test``, at random moments: other tests inject the others, each into a stream of its own."""

pytestmark = [pytest.mark.chaos, pytest.mark.timeout(max(900, MINUTES * 60 * 4))]


@dataclass(frozen=True)
class Injected:
    """One fault, and how long after it records that came after it were landed."""

    kind: str
    seconds: float


def test_soak_loses_nothing_doubles_nothing_and_always_lands_again(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    seed = int(os.environ.get("LAKEBOUND_CHAOS_SEED", time.time_ns() % 1_000_000))
    print(f"LAKEBOUND_CHAOS_SEED={seed}", flush=True)
    # No fault of the short form strikes the broker, so the one of all tests serves.
    broker = request.getfixturevalue("new_broker")() if MINUTES else request.getfixturevalue("broker")
    journal, dice = Journal(), random.Random(seed)
    topic = topic_maker(broker.bootstrap_servers)("soak")
    pipeline = make_pipeline(
        tmp_path, broker.bootstrap_servers, topic, freshness="250ms", limits={"lease_ttl_seconds": 5, "outage_seconds": 300}
    )
    injected: list[Injected] = []
    started = time.monotonic()
    with applications() as starter:
        world = World(pipeline, broker, topic, starter, dice, starter.start(pipeline, own_jvm=True))
        with Load(JournalingProducer(broker.bootstrap_servers, journal), topic, RATE) as load:
            world.wait_landing_of(time.time())
            for kind in _kinds(dice):
                injected.append(_inject(world, kind))
                print(
                    f"{time.monotonic() - started:6.0f} s  {kind}: landed again after {injected[-1].seconds:.1f} s", flush=True
                )
            minutes = (time.monotonic() - started) / 60
        world.ensure_app()
        world.app.wait_landed(journal.ends(), 300)
        assert world.app.stop().verdict == "stopped", world.app
    assert_exactly_once(pipeline, journal)
    if MINUTES:
        page = report(injected, minutes, load.sent, world.starts + 1, seed)
        (REPOSITORY / "docs" / "reliability.md").write_text(page)
        print(page)


def _kinds(dice: random.Random) -> Iterator[str]:
    """Yield the faults to inject, each about a minute after the one before; all of them before any comes again."""
    if not MINUTES:
        yield from SHORT
        return
    end = time.monotonic() + MINUTES * 60
    waiting: list[str] = []
    while time.monotonic() < end:
        due = time.monotonic() + dice.uniform(0.5, 1.5) * EVERY_SECONDS
        waiting = waiting or dice.sample(sorted(FAULTS), len(FAULTS))
        yield waiting.pop()
        time.sleep(max(0.0, min(due, end) - time.monotonic()))


def _inject(world: World, kind: str) -> Injected:
    moment = time.time()
    FAULTS[kind](world)
    world.wait_landing_of(moment)
    return Injected(kind, time.time() - moment)


def report(injected: list[Injected], minutes: float, records: int, applications_started: int, seed: int) -> str:
    """Return the page. It is written only after the oracle and the deep proof found nothing missing and nothing doubled."""
    lines = [
        "# Reliability",
        "",
        f"Made by `make chaos MINUTES={MINUTES:g}` on {date.today()}, {os.cpu_count()} cores, seed {seed}:",
        f"{minutes:.0f} minutes, {records:,} records at {RATE:,} per second into one Delta and one Iceberg table,",
        f"{applications_started} applications, a fault about every {EVERY_SECONDS:.0f} s.",
        "At the end, by the journal of acknowledged records and by `prove --deep`: **missing 0, duplicated 0**.",
        "",
        "Seconds from the injection until records that Kafka received after it were landed. The outage's own length is part of",
        f"it (catalog locked {CATALOG_LOCKED_SECONDS:g} s, broker gone {BROKER_GONE_SECONDS:g} s,",
        f"disk full {DISK_FULL_SECONDS:g} s), and so is the start of Spark after a kill.",
        "",
        "| fault | times | median s | max s |",
        "|---|---|---|---|",
    ]
    for kind in sorted({fault.kind for fault in injected}):
        seconds = [fault.seconds for fault in injected if fault.kind == kind]
        lines.append(f"| {kind} | {len(seconds)} | {statistics.median(seconds):.1f} | {max(seconds):.1f} |")
    every = [fault.seconds for fault in injected]
    lines.append(f"| **all** | {len(every)} | {statistics.median(every):.1f} | {max(every):.1f} |")
    return "\n".join([*lines, ""])
