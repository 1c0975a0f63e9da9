"""From topic to topic: how late an outside consumer gets each row, what a kill sends again, and what it all costs.

Each part is a command of its own, whose runs are kept in ``docs/benchmarks/real-time.jsonl`` and not made again
(``--anew``). Latency is the receipt by a consumer in another process (``received.py``, ``read_committed``) less Kafka's
timestamp of the source record. The page is docs/benchmarks/real-time.md (``real_time_page.py``).
"""

from __future__ import annotations

import argparse
import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from arms import setting_of
from generator import values
from kept_runs import REAL_TIME as LOG
from kept_runs import Run, keep, kept
from real_time_arms import ARMS, PARTITIONS, REAL_TIME, TARGET, Case, prepare, start, topics_of
from real_time_page import write_page
from received_facts import Received, doubles_seen, latencies_ms, read_received, source_times_ms, wrong_values
from running import cpu_seconds_of, ending, family_of, own_broker, producing

from lakebound.control.processes import wait_until
from lakebound.local.broker import Broker
from lakebound.local.stack import create_topics
from lakebound.settings import Settings

PERCENTILES = (50, 90, 99, 100)
START_SECONDS = 600.0
SETTLE_SECONDS = 5.0


def main() -> None:
    """Make the runs of a part that are not kept yet, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--part", choices=("latency", "replay", "idle"), required=True)
    parser.add_argument("--arm", choices=ARMS, action="append", help="default: all")
    parser.add_argument("--work", choices=("encode", "enrich"), action="append")
    parser.add_argument("--rate", type=int, action="append")
    parser.add_argument("--warm-up-seconds", type=float, default=90)
    parser.add_argument("--seconds", type=float, default=90, help="at least; one epoch more where that is longer")
    parser.add_argument("--short", action="store_true", help="seconds instead of minutes; nothing is kept")
    parser.add_argument("--anew", action="store_true", help="make the runs again that are kept already")
    args = parser.parse_args()
    if args.short:
        args.warm_up_seconds, args.seconds = 15.0, 15.0
    part = {"latency": latency, "replay": replay, "idle": idle}[args.part]
    done = [] if args.anew else [_key(run) for run in kept(LOG)]
    cases = [case for case in _cases(args) if (args.part, case.arm, case.work, case.rate) not in done]
    print(f"{args.part}: {len(cases)} runs, about {sum(_minutes(args, case) for case in cases):.0f} minutes", flush=True)
    for case in cases:
        with own_broker() as (settings, broker):
            run = {"part": args.part, "arm": case.arm, "work": case.work, "rate": case.rate} | part(
                args, case, settings, broker
            )
        print(json.dumps(run), flush=True)
        if not args.short:
            keep(LOG, run, lambda one, run=run: _key(one) == _key(run))  # type: ignore[misc]
    write_page()


def _cases(args: argparse.Namespace) -> Iterator[Case]:
    every = REAL_TIME if args.part == "replay" else ARMS
    rates = {"latency": (1_000, 10_000), "replay": (1_000,), "idle": (0,)}[args.part]
    for rate in args.rate or rates:
        for work in args.work or (("encode", "enrich") if args.part == "latency" else ("encode",)):
            for arm in args.arm or every:
                if arm in every:
                    yield Case(arm, work, rate)


def _minutes(args: argparse.Namespace, case: Case) -> float:
    seconds = {"latency": _measured(args, case), "replay": 2.8 * case.epoch_seconds + 60, "idle": args.seconds}[args.part]
    return (45 + args.warm_up_seconds + seconds) / 60


def _measured(args: argparse.Namespace, case: Case) -> float:
    return args.seconds if args.short else max(args.seconds, case.epoch_seconds + 30)


def _key(run: Run) -> tuple[Any, ...]:
    return run["part"], run["arm"], run["work"], run["rate"]


def latency(args: argparse.Namespace, case: Case, settings: Settings, broker: Broker) -> Run:
    """Measure how late rows are, and what a million records cost."""
    topic = f"{case.arm}-{case.work}-{case.rate}".replace(":", "-").replace("_", "-")
    setting = setting_of(settings, broker.bootstrap_servers, topic)
    create_topics(broker.bootstrap_servers, topics_of(topic))
    prepare(case, setting)
    with receiving(broker, topic, setting.folder) as out, ending(start(case, setting)) as app:
        with producing(case, topic, broker, linger_ms=0) as generator:
            _wait_sent(broker, topic, app)
            time.sleep(args.warm_up_seconds)
            began, cpu = time.time() * 1000, cpu_seconds_of(app.pid)
            time.sleep(_measured(args, case))
            ended, cpu = time.time() * 1000, cpu_seconds_of(app.pid) - cpu
            memory = sum(process.memory_info().rss for process in family_of(app.pid))
            time.sleep(SETTLE_SECONDS)
            generator.send_signal(signal.SIGTERM)
            generator.wait(60)
        received = out()
    times = source_times_ms(broker.bootstrap_servers, topic, PARTITIONS)
    found = latencies_ms(received, times, began, ended)
    records = sum(int(np.count_nonzero((one >= began) & (one < ended))) for one in times.values())
    return {
        "percentiles_ms": {str(p): round(float(np.percentile(found, p)), 1) for p in PERCENTILES},
        "mean_ms": round(float(found.mean()), 1),
        "rows": len(found),
        "wrong_values": wrong_values(received, case.work, values(case.record_bytes, dirty=False)),
        "cpu_seconds_per_million": round(cpu / records * 1e6, 1),
        "resident_mb": round(memory / 1e6),
        "seconds": round((ended - began) / 1000),
    }


def replay(args: argparse.Namespace, case: Case, settings: Settings, broker: Broker) -> Run:
    """Kill the application late in an epoch, start the next one at once, and count what comes again."""
    topic = f"replay-{case.epoch_seconds}"
    setting = setting_of(settings, broker.bootstrap_servers, topic)
    create_topics(broker.bootstrap_servers, topics_of(topic))
    prepare(case, setting)
    with receiving(broker, topic, setting.folder) as out, producing(case, topic, broker, linger_ms=0) as generator:
        with ending(start(case, setting)) as app:
            _wait_sent(broker, topic, app)
            # The second epoch begins about one epoch after the first row; it is killed when most of it has passed.
            time.sleep(1.8 * case.epoch_seconds)
        killed = time.time() * 1000
        with ending(start(case, setting, "bench-2")):
            _wait_new(broker, topic)
            # Until the restarted application has caught up with the time of the kill, and some more.
            time.sleep(max(15.0, min(case.epoch_seconds, 60.0)))
            generator.send_signal(signal.SIGTERM)
            generator.wait(60)
            time.sleep(SETTLE_SECONDS)
        received = out()
    times = source_times_ms(broker.bootstrap_servers, topic, PARTITIONS)
    again, first_new = doubles_seen(received, killed + 1000)  # what was under way when it was killed
    return {
        "records_read_again": again.plain,
        "seconds_until_first_new": None if first_new is None else round((first_new - killed) / 1000, 1),
        "doubles_seen_plain": again.plain,
        "doubles_seen_deduplicating": again.deduplicating,
        "skipped_by_deduplicating": again.wrongly_skipped,
        "records_sent": sum(len(one) for one in times.values()),
    }


def idle(args: argparse.Namespace, case: Case, settings: Settings, broker: Broker) -> Run:
    """Measure what an application takes while nothing comes, after some records to warm it up."""
    topic = f"idle-{case.arm}".replace(":", "-").replace("_", "-")
    setting = setting_of(settings, broker.bootstrap_servers, topic)
    create_topics(broker.bootstrap_servers, topics_of(topic))
    prepare(case, setting)
    with ending(start(case, setting)) as app:
        with producing(Case(case.arm, case.work, 100), topic, broker, linger_ms=0) as generator:
            _wait_sent(broker, topic, app)
            time.sleep(args.warm_up_seconds)
            generator.send_signal(signal.SIGTERM)
            generator.wait(60)
        time.sleep(2)
        began, cpu = time.monotonic(), cpu_seconds_of(app.pid)
        time.sleep(args.seconds)
        share = (cpu_seconds_of(app.pid) - cpu) / (time.monotonic() - began)
        memory = sum(process.memory_info().rss for process in family_of(app.pid))
    held = PARTITIONS if case.epoch_seconds else 0
    return {"cpu_percent_of_one_core": round(share * 100, 1), "resident_mb": round(memory / 1e6), "slots_held": held}


@contextmanager
def receiving(broker: Broker, topic: str, folder: Path) -> Iterator[Any]:
    """Run the outside consumer; what is yielded ends it, and returns what it received."""
    folder.mkdir(parents=True, exist_ok=True)
    out = folder / "received.txt"
    words = ["--bootstrap-servers", broker.bootstrap_servers, "--topic", TARGET.format(topic), "--out", str(out)]
    words += ["--partitions", str(PARTITIONS)]
    process = subprocess.Popen([sys.executable, str(Path(__file__).with_name("received.py")), *words])

    def ended() -> Received:
        process.send_signal(signal.SIGTERM)
        assert process.wait(120) == 0, "the consumer failed"
        return read_received(out)

    try:
        yield ended
    finally:
        if process.poll() is None:
            process.kill()
            process.wait(30)


def _wait_sent(broker: Broker, topic: str, app: subprocess.Popen[bytes]) -> None:
    """Wait for the first row in the target topic."""

    def is_sent() -> bool:
        assert app.poll() is None, f"{topic}: the arm has ended; see app.log in its folder"
        return _sent(broker, topic) > 0

    wait_until(is_sent, START_SECONDS, f"the first row of {topic}")


def _wait_new(broker: Broker, topic: str) -> None:
    before = _sent(broker, topic)
    wait_until(lambda: _sent(broker, topic) > before, START_SECONDS, f"a row of {topic} after the kill")


def _sent(broker: Broker, topic: str) -> int:
    from lakebound.landing.kafka import KafkaFacts
    from lakebound.spec.connection import ConnectionSpec

    facts = KafkaFacts(ConnectionSpec(bootstrap_servers=broker.bootstrap_servers))
    return sum(facts.topics([TARGET.format(topic)])[TARGET.format(topic)].latest.values())


if __name__ == "__main__":
    main()
