"""The page docs/benchmarks/real-time.md, written from the kept runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from kept_runs import DOCS, Run, kept
from kept_runs import REAL_TIME as LOG

from lakebound.control.folder import write_text

PAGE = DOCS / "benchmarks" / "real-time.md"
_ARMS = {
    "real_time:5s": "Lakebound `real_time`, `epoch: 5s`",
    "real_time:30s": "Lakebound `real_time`, `epoch: 30s`",
    "real_time:5m": "Lakebound `real_time`, `epoch: 5m`",
    "0ms": "Lakebound `0ms` (exactly once)",
    "flink:at-least-once": "Flink, at least once",
    "flink:exactly-once:100ms": "Flink, exactly once, checkpoints 100 ms",
    "flink:exactly-once:250ms": "Flink, exactly once, checkpoints 250 ms",
}
_HEAD = """# From topic to topic

`make bench-real-time` reads a Kafka topic, encodes or enriches each record, and sends it to another topic: Lakebound in real
time and in batches, and Flink 2.1.3 with both of its guarantees. One arm runs at a time, each on a broker of its own, on the
same machine as the broker, the generator and the consumer.

- **Records**: JSON of 1,200 bytes, two partitions. `encode` is a filter, a SHA-256 and three columns of one column each,
  `enrich` a left join with a table of 1,000 rows (`spark_apps/transforms/`, and the same in SQL for Flink:
  `bench/peers/flink/FlinkTopics.java`).
- **Latency** is the receipt by a consumer in another process (`bench/received.py`, `read_committed`) less Kafka's timestamp of
  the source record. Of copies the first counts. The producers of Flink and of `real_time` have `linger.ms` 0, Flink a buffer
  timeout of 0.
- **Seconds in p99 or max** at 10,000 records/s: broker, generator, consumer and the arm share two cores, which are nearly full.
  A pause of one of them is felt by all. The arms did not all run on the same day: small differences say nothing.
- **The pause between two epochs**: each run of `epoch: 5m` contains one, of 0.7 s. At 10,000 records/s it takes seconds to
  catch up, and this is about one percent of the rows: it decides the p99.
- **Warm-up**: rows count 90 s after the first one was received (30 s in runs before 28 November), because each arm starts
  with a backlog.
- **Values**: a part of the messages is compared with what Python makes of the source records; `wrong` must be 0.
- **Replay**: the application is killed with SIGKILL when four fifths of its second epoch have passed, and the next one is
  started at once. *Deduplicating* is a consumer that keeps the highest source offset per partition of the target and of the
  source, and skips what is not above it.
"""
_CLAIMS = """## Published claims

- Spark's own benchmark of Real-Time Mode (`connector/kafka-0-10-sql/benchmarks`: 1,000 records/s, 5 partitions, 15 cores, epoch
  of 5 minutes) has p50 69 ms and p99 85 ms. The same engine and rate are in the tables above, on two cores that everything else
  shares.
- Databricks (`latency-benchmarks`: 10,000 records/s of 1,200 bytes, 40 partitions) has a p99 of 3 ms, and 3 ms for Flink,
  and with a broadcast join 9 ms against 95 ms. This cannot be repeated here: their runtime is not open source, and it ran on a
  managed cluster with three brokers. `enrich` is this join on other hardware; Flink looks the rows up in memory here, which is
  its best.
"""


def write_page() -> None:
    """Write the page of the runs that are kept."""
    runs = kept(LOG)
    parts = [_HEAD, _latency(runs), _replay(runs), _idle(runs), _CLAIMS]
    write_text(PAGE, "\n".join(part for part in parts if part))


def _latency(runs: Sequence[Run]) -> str:
    text = "## Latency and cost\n\n"
    found = [run for run in runs if run["part"] == "latency"]
    if not found:
        return f"{text}No run is kept yet: `python bench/real_time.py --part latency`.\n"
    for work, rate in sorted({(run["work"], run["rate"]) for run in found}):
        headers = ("", "p50", "p90", "p99", "max", "mean ms", "CPU s per million", "MB", "rows", "wrong")
        text += f"### {work}, {rate:,} records/s\n\n" + _table(
            headers, _of(found, lambda run, work=work, rate=rate: (run["work"], run["rate"]) == (work, rate), _latency_cells)
        )
    return text


def _latency_cells(run: Run) -> list[Any]:
    percentiles = [run["percentiles_ms"][p] for p in ("50", "90", "99", "100")]
    costs = [run[name] for name in ("mean_ms", "cpu_seconds_per_million", "resident_mb")]
    return [*percentiles, *costs, f"{run['rows']:,}", run["wrong_values"]]


def _replay(runs: Sequence[Run]) -> str:
    found = [run for run in runs if run["part"] == "replay"]
    text = "## What a kill sends again, at 1,000 records/s\n\n"
    if not found:
        return f"{text}No run is kept yet: `python bench/real_time.py --part replay`.\n"
    headers = (
        "",
        "records read again",
        "s until the first new row",
        "doubles, plain",
        "doubles, deduplicating",
        "skipped though new",
    )
    names = ("records_read_again", "seconds_until_first_new", "doubles_seen_plain", "doubles_seen_deduplicating")
    return text + _table(
        headers, _of(found, lambda _: True, lambda run: [run[n] for n in (*names, "skipped_by_deduplicating")])
    )


def _idle(runs: Sequence[Run]) -> str:
    found = [run for run in runs if run["part"] == "idle"]
    text = "## What it takes while nothing comes\n\n"
    if not found:
        return f"{text}No run is kept yet: `python bench/real_time.py --part idle`.\n"
    names = ("cpu_percent_of_one_core", "resident_mb", "slots_held")
    return text + _table(
        ("", "% of a core", "MB", "slots held"), _of(found, lambda _: True, lambda run: [run[n] for n in names])
    )


def _of(runs: Sequence[Run], wanted: Callable[[Run], bool], cells: Callable[[Run], list[Any]]) -> Iterable[list[Any]]:
    order = list(_ARMS)
    for run in sorted((one for one in runs if wanted(one)), key=lambda one: order.index(one["arm"])):
        yield [_ARMS[run["arm"]], *cells(run)]


def _table(headers: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    lines = [headers, ["---", *("---:" for _ in headers[1:])], *rows]
    return "".join(f"| {' | '.join(str(cell) for cell in line)} |\n" for line in lines) + "\n"


if __name__ == "__main__":
    write_page()
