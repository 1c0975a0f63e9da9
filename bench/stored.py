"""Freshness at ``1s`` of tables in an object store behind a REST catalog, also with a slow network, beside a local disk.

The arms run one after the other, in turn, on one broker, with the S3 server and the REST catalog of the tests. Writes
``docs/benchmarks/stored.md``.
"""

from __future__ import annotations

import os
import platform
import statistics
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from datetime import date

from rounds import Plan, Result, make_page, measure
from running import pipeline, producing, running_application
from tests.support.catalogs.rest_server import RestServer
from tests.support.s3.clients import iceberg_properties
from tests.support.s3.running import S3Server
from tests.support.tables.stored import tell_key, warehouse_in, write_warehouse

from lakebound.control.desired import Desired
from lakebound.inspection.visible_commits.seen import POLL_SECONDS, REMOTE_POLL_SECONDS
from lakebound.landing.run_spec import make_run_spec
from lakebound.landing.spark_command import spark_submit_command
from lakebound.local.broker import Broker
from lakebound.local.stack import create_topics
from lakebound.settings import Settings
from lakebound.spec.warehouse import RestCatalogSpec

DISK = "disk"
SLOW = "store, 30 ms more"
DELAYS_SECONDS = {"store": 0.0, SLOW: 0.03}
ARMS = (DISK, *DELAYS_SECONDS)
PARTITIONS = 4
START_DEADLINE_SECONDS = 180.0


@contextmanager
def in_store(settings: Settings, delay_seconds: float) -> Iterator[None]:
    """Give the machine a warehouse ``bucket``, on servers of its own that take so much longer for each request."""
    with ExitStack() as servers:
        store = S3Server()
        servers.callback(store.stop)
        tell_key(store)
        warehouse = warehouse_in(store, store.new_bucket())
        catalog = RestServer(f"{warehouse.location}/iceberg", iceberg_properties(store))
        servers.callback(catalog.close)
        write_warehouse(settings, warehouse.model_copy(update={"catalog": RestCatalogSpec(type="rest", uri=catalog.uri)}))
        if delay_seconds:
            store.faults.delay(delay_seconds)
            catalog.delay_seconds = delay_seconds
        yield


def run_arm(arm: str, number: int, plan: Plan, base: Settings, broker: Broker) -> Result:
    """Run one arm in a home and topic of its own."""
    home = base.home / f"run-{number}"
    settings = replace(base, home=home / "home", warehouse=home / "warehouse", pipelines=home / "pipelines")
    settings.pipelines.mkdir(parents=True)
    topic = f"bench-{number}"
    create_topics(broker.bootstrap_servers, {topic: PARTITIONS})
    with ExitStack() as opened:
        if arm != DISK:
            opened.enter_context(in_store(settings, DELAYS_SECONDS[arm]))
        warehouse = {} if arm == DISK else {"warehouse": "bucket"}
        spec = pipeline(topic, broker.bootstrap_servers, freshness="1s", **warehouse)
        run = make_run_spec(spec, settings, Desired(), f"bench-{number}")
        command, secrets = spark_submit_command(run, settings), run.secret_variables
        app = opened.enter_context(running_application(command, settings, secrets=secrets))
        generator = opened.enter_context(producing(plan, topic, broker))
        return measure(arm, run, plan, app, generator, start_seconds=START_DEADLINE_SECONDS, settle_seconds=4.0)


def report(plan: Plan, results: Sequence[Result]) -> str:
    """Return the page."""
    lines = [
        "# Freshness on an object store",
        "",
        f"Made by `make bench-stored` on {date.today()}; {os.cpu_count()} cores, {platform.machine()}; broker, generator, the",
        f"tests' S3 server and REST catalog on the same machine. {plan.rate:,} records/s of about {plan.record_bytes} B into",
        f"{PARTITIONS} partitions, `freshness: 1s`, one Delta and one Iceberg table; {plan.seconds:.0f} s after",
        f"{plan.warm_up_seconds:.0f} s of warm-up; {plan.rounds} rounds, the arms in turn.",
        "",
        "Freshness is when an outside reader first sees the commit, minus the record's CreateTime. The reader asks the disk",
        f"every {POLL_SECONDS * 1000:.0f} ms. It asks the store and the catalog {REMOTE_POLL_SECONDS * 1000:.0f} ms after each",
        'answer. With "30 ms more", each request to the store and to the catalog takes so much longer: those of the pipeline,',
        "those of the catalog to the store, and those of the reader.",
        "",
        "The reader sees a commit late: on average by half of the time between two of its looks, which is its pause, and the",
        f"30 ms where they are added: {_reader_waits_ms('store'):.0f} ms for the store, {_reader_waits_ms(SLOW):.0f} ms with",
        f"30 ms more, {_reader_waits_ms(DISK):.1f} ms for the disk. The last column leaves it out: what the store costs the",
        "pipeline.",
        "",
        "| tables on | table | mean ms | p50 | p99 | max | commits | CPU s | ÷ disk, mean | ÷ disk, without the reader |",
        "| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for arm in ARMS:
        for table in results[0].tables:
            seen = [result.tables[table] for result in results if result.arm == arm]
            fields = ("mean_ms", "p50_ms", "p99_ms", "max_ms", "commits")
            figures = [f"{statistics.median(getattr(one, field) for one in seen):.0f}" for field in fields]
            cpu = statistics.median(result.cpu_seconds for result in results if result.arm == arm)
            ratio = _mean_ms(results, arm, table) / _mean_ms(results, DISK, table)
            alone = _without_reader_ms(results, arm, table) / _without_reader_ms(results, DISK, table)
            lines.append(f"| {arm} | {table} | {' | '.join(figures)} | {cpu:.1f} | {ratio:.2f} | {alone:.2f} |")
    return "\n".join([*lines, ""])


def _mean_ms(results: Sequence[Result], arm: str, table: str) -> float:
    return statistics.median(result.tables[table].mean_ms for result in results if result.arm == arm)


def _without_reader_ms(results: Sequence[Result], arm: str, table: str) -> float:
    return _mean_ms(results, arm, table) - _reader_waits_ms(arm)


def _reader_waits_ms(arm: str) -> float:
    """Return by how much the reader sees a commit too late on average: half of the time between two of its looks."""
    seconds = POLL_SECONDS if arm == DISK else REMOTE_POLL_SECONDS + DELAYS_SECONDS[arm]
    return seconds * 1000 / 2


def main() -> None:
    """Run all arms, and write the page."""
    make_page(__doc__, ARMS, run_arm, report, "docs/benchmarks/stored.md", rounds=1)


if __name__ == "__main__":
    main()
