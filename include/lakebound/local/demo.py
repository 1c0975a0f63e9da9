"""The demo: starts Kafka and Airflow, lands two topics for a minute, and proves that no record is missing or duplicated.

It also does so with services that run already, and then leaves them and the streams as they are.
"""

from __future__ import annotations

import csv
import shutil
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from types import FrameType
from typing import NoReturn

from lakebound.control.folder import ControlFolder
from lakebound.control.ports import free_port
from lakebound.control.processes import wait_until
from lakebound.control.progress import readable_progress
from lakebound.errors import LakeboundError
from lakebound.inspection.proof.collect import prove
from lakebound.inspection.proof.result import Proof
from lakebound.inspection.visible_freshness import FreshnessObserver, VisibleFreshness
from lakebound.landing.kafka import KafkaFacts
from lakebound.landing.kafka_settings import client_config
from lakebound.landing.spark_command import QUICK_START
from lakebound.landing.topic_creation import create_topics
from lakebound.ledger.entry import high_water_marks
from lakebound.ledger.marks import NextOffsets
from lakebound.local import stack
from lakebound.local.airflow_client import AirflowClient
from lakebound.local.airflow_view import running_airflow
from lakebound.local.demo_broker import check_brokers
from lakebound.local.earlier_demo import demo_home, end_demo, forget_demo, record_demo
from lakebound.local.produce import Feed, Produced, produce
from lakebound.settings import Settings
from lakebound.spec.load import load_pipeline
from lakebound.spec.pipeline import PipelineSpec
from lakebound.spec.state_store import refuse_with_shared_state
from lakebound.tables.places import Places, places_of
from lakebound.tables.table import open_table

PIPELINES = ("orders", "sensor_readings")
SETTLE_SECONDS = 15.0
"""At the full rate, before freshness is measured: a JVM compiles while it meets its first full batches."""
STEADY_SECONDS = 45.0
WARM_UP_DEADLINE_SECONDS = 40.0
WARM_UP_MESSAGES_PER_SECOND = 100.0
WARM_UP_COMMITS = 3
MESSAGES_PER_SECOND = 1_000.0
BAD_SHARE = 0.001
START_DEADLINE_SECONDS = 150.0
LANDED_DEADLINE_SECONDS = 60.0

Say = Callable[[str], None]
Key = tuple[str, int, int]
Placed = tuple[PipelineSpec, Places]
"""A pipeline, and where its tables are: each may name a warehouse of its own."""


class DemoFailedError(LakeboundError):
    """The demo ran, but records are missing or duplicated, or freshness was not measured."""

    def __init__(self, problems: list[str], home: Path) -> None:
        super().__init__(f"{'; '.join(problems)}. State and logs are kept in {home}; see the logs in pipelines/*/logs there")


@dataclass(frozen=True)
class Judgement:
    """What the journal of acknowledged records says of the tables; independent of any ledger entry.

    Attributes:
        records: Acknowledged records that are in every table of their pipeline, or in its quarantine.
        landed: Distinct records of the journal per format.
        quarantined: Distinct records of the journal in quarantine.
        missing: Acknowledged records that are in neither.
        duplicated: Rows beyond one per record, over all tables.
    """

    records: int
    landed: Mapping[str, int]
    quarantined: int
    missing: int
    duplicated: int


def run_demo(settings: Settings, say: Say | None = None) -> int:
    """Run the demo in a home of its own, and return the exit code; nothing that it starts is left running.

    Raises:
        DemoFailedError: Records are missing or doubled, or a proof does not hold.
        LakeboundError: A part could not be started.
        OtherBrokerError: An example pipeline was edited, and reads from another broker.
        NotWithSharedStateError: LAKEBOUND_STATE is set.
    """
    refuse_with_shared_state("lakebound demo", "Unset LAKEBOUND_STATE")
    check_brokers(settings, PIPELINES)
    say = say or _stopwatch()
    home = demo_home(settings)
    end_demo(settings, say, "demo")
    shutil.rmtree(home, ignore_errors=True)
    # With the second compiler the orders' p50 was 5.4 s on two cores instead of 1.9 s. A stream that stays keeps it.
    jvm_options = f"{QUICK_START} {settings.jvm_options}".strip()
    own = replace(settings, home=home, warehouse=home / "warehouse", jvm_options=jvm_options)
    try:
        with _handling((signal.SIGTERM, signal.SIGHUP), _interrupt):
            record_demo(home)
            services = stack.up(own, say, kafka_port=free_port(), airflow_port=free_port())
            own = replace(own, kafka=services.kafka)
            report = _land(own, stack.airflow_of(own).client(), home / "journal.csv", say)
    finally:
        # Stopping is under way: nothing may cut it short. Not SIG_IGN, which processes started meanwhile would inherit.
        with _handling((signal.SIGINT, signal.SIGTERM, signal.SIGHUP), lambda *_: None):
            stack.down(own, say)
            forget_demo(home)
    print(report)
    return 0


def run_demo_on_running(settings: Settings, say: Say | None = None) -> int:
    """Run the demo with the Kafka of the pipelines' YAML and an Airflow that runs already; return the exit code.

    Nothing is stopped at the end: the streams go on, and the tables keep what was landed before.

    Raises:
        DemoFailedError: Records are missing or doubled, or a proof does not hold.
        LakeboundError: A service does not answer.
    """
    say = say or _stopwatch()
    journal = demo_home(settings) / "journal.csv"
    journal.unlink(missing_ok=True)  # that of an earlier demo
    for spec in (load_pipeline(name, settings) for name in PIPELINES):
        create_topics(spec.connection, spec.topics, partitions=stack.EXAMPLE_TOPICS[spec.pipeline])
    print(_land(settings, running_airflow(settings), journal, say))
    return 0


def _land(settings: Settings, airflow: AirflowClient, journal: Path, say: Say) -> str:
    specs = [load_pipeline(name, settings) for name in PIPELINES]
    placed = [(spec, places_of(settings, spec.warehouse)) for spec in specs]
    _start_streams(settings, airflow, specs, say)
    with ExitStack() as watching:
        observers = [watching.enter_context(FreshnessObserver(places, spec.tables)) for spec, places in placed]
        warm_up = _warm_up(settings, specs, journal, say)
        steady_from_ms = (time.time() + SETTLE_SECONDS) * 1000
        produced = _produce(specs[0], journal, say)
        _wait_until_landed(placed, say)
    say("prove: every offset of both topics, against the rows of all tables (--deep)")
    proofs = [prove(spec, places, deep=True) for spec, places in placed]
    judgement = judge(journal, placed)
    freshness = {
        table: seen for observer in observers for table, seen in observer.measure(produced_after_ms=steady_from_ms).items()
    }
    watched = [table.id for spec in specs for table in spec.tables]
    problems = find_problems(warm_up.total + produced.total, proofs, judgement, watched, freshness)
    if problems:
        raise DemoFailedError(problems, settings.home)
    for line in _details(proofs, judgement, freshness):
        say(line)
    return last_line(judgement, freshness)


def _start_streams(settings: Settings, airflow: AirflowClient, specs: list[PipelineSpec], say: Say) -> None:
    with airflow as client:
        dags = [f"ingest__{spec.pipeline}" for spec in specs]
        wait_until(lambda: set(dags) <= set(client.dags()), START_DEADLINE_SECONDS, "the DAGs made from include/pipelines")
        for dag in dags:
            client.unpause(dag)
    say(f"airflow: {' and '.join(dags)} unpaused; Airflow starts their Spark applications (about 30 s)")
    for spec in specs:
        control = ControlFolder(settings.home, spec.pipeline)
        wait_until(partial(_is_running, control), START_DEADLINE_SECONDS, f"the stream of {spec.pipeline}")
        say(f"spark: {spec.pipeline} is running")


def _is_running(control: ControlFolder) -> bool:
    progress = readable_progress(control)
    return progress is not None and progress.state == "running"


def _warm_up(settings: Settings, specs: list[PipelineSpec], journal: Path, say: Say) -> Produced:
    """Send a trickle until every stream has committed a few times: a JVM's first batch takes it seconds of compiling."""
    say("produce: a few records, until each stream has committed a few times")
    feeds = [Feed(name, WARM_UP_MESSAGES_PER_SECOND) for name in PIPELINES]
    controls = [ControlFolder(settings.home, spec.pipeline) for spec in specs]
    warm = threading.Event()

    def watch() -> None:
        deadline = time.monotonic() + WARM_UP_DEADLINE_SECONDS
        while time.monotonic() < deadline and not all(_has_committed(control) for control in controls):
            time.sleep(0.2)
        warm.set()

    threading.Thread(target=watch, daemon=True).start()
    config = client_config(specs[0].connection)
    return produce(config, feeds, WARM_UP_DEADLINE_SECONDS, journal=journal, seed=2, stop=warm, say=say)


def _has_committed(control: ControlFolder) -> bool:
    progress = readable_progress(control)
    tables = {} if progress is None else progress.tables
    return bool(tables) and all(table.commits >= WARM_UP_COMMITS for table in tables.values())


def _produce(spec: PipelineSpec, journal: Path, say: Say) -> Produced:
    feeds = [Feed(name, MESSAGES_PER_SECOND, bad_share=BAD_SHARE) for name in PIPELINES]
    seconds = SETTLE_SECONDS + STEADY_SECONDS
    say(
        f"produce: {MESSAGES_PER_SECOND:,.0f} records/s to each of {' and '.join(PIPELINES)} for {seconds:.0f} s; "
        f"freshness is that of the last {STEADY_SECONDS:.0f} s"
    )
    return produce(client_config(spec.connection), feeds, seconds, journal=journal, say=say)


def _wait_until_landed(placed: Sequence[Placed], say: Say) -> None:
    say("land: waiting until the tables' ledgers have all records")
    for spec, places in placed:
        ends = {topic: known.latest for topic, known in KafkaFacts(spec.connection).topics(spec.topics).items()}
        wait_until(
            partial(_is_landed, spec, places, ends),
            LANDED_DEADLINE_SECONDS,
            f"{spec.pipeline} in its tables",
        )


def _is_landed(spec: PipelineSpec, places: Places, ends: NextOffsets) -> bool:
    for table in spec.tables:
        marks = high_water_marks(open_table(table, places).read_ledger().coverage)
        if any(marks.get(topic, {}).get(p, 0) < end for topic, partitions in ends.items() for p, end in partitions.items()):
            return False
    return True


def judge(journal: Path, placed: Sequence[Placed]) -> Judgement:
    """Compare the journal of acknowledged records with the rows of tables and quarantines.

    Args:
        journal: CSV file with one line per record that Kafka acknowledged.
        placed: Pipelines that were to land these records.
    """
    acknowledged = set(_acknowledged(journal))
    landed: dict[str, set[Key]] = {"delta": set(), "iceberg": set()}
    complete: set[Key] = set()
    quarantined: set[Key] = set()
    duplicated = 0
    for spec, places in placed:
        per_table: list[set[Key]] = []
        for table in (*spec.tables, spec.quarantine_table):
            rows = open_table(table, places).scan_kafka()
            keys = list(zip(*(rows.column(name).to_pylist() for name in ("topic", "partition", "offset")), strict=True))
            duplicated += len(keys) - len(set(keys))
            per_table.append(set(keys))
        *targets, bad = per_table
        quarantined |= bad
        for table, found in zip(spec.tables, targets, strict=True):
            landed[table.format] |= found
        complete |= set.intersection(*targets) | bad
    missing = sum(1 for key in acknowledged if key not in complete)
    counts = {name: len(keys & acknowledged) for name, keys in landed.items()}
    return Judgement(len(acknowledged) - missing, counts, len(quarantined & acknowledged), missing, duplicated)


def _acknowledged(journal: Path) -> Iterator[Key]:
    with journal.open(newline="") as file:
        for row in csv.DictReader(file):
            yield row["topic"], int(row["partition"]), int(row["offset"])


def find_problems(
    acknowledged: int,
    proofs: Sequence[Proof],
    judgement: Judgement,
    watched: Sequence[str],
    freshness: Mapping[str, VisibleFreshness],
) -> list[str]:
    """Return why the demo failed; nothing where it did not.

    Args:
        acknowledged: How many records Kafka acknowledged.
        proofs: Of the pipelines.
        judgement: What the journal says.
        watched: Ids of the tables whose freshness is to be reported.
        freshness: By those of which a commit was seen.
    """
    problems = []
    if judgement.missing or judgement.duplicated:
        problems.append(
            f"of {acknowledged} acknowledged records {judgement.missing} are in no table and no quarantine, "
            f"{judgement.duplicated} rows are duplicated"
        )
    for proof in proofs:
        problems += [f"{proof.pipeline}: {table.table}: {text}" for table in proof.tables for text in table.problems]
    problems += [f"{table}: no commit was seen after the warm-up" for table in watched if table not in freshness]
    return problems


def _details(proofs: list[Proof], judgement: Judgement, freshness: Mapping[str, VisibleFreshness]) -> Iterator[str]:
    for proof in proofs:
        yield f"proof: {proof.pipeline}: missing {proof.missing}, duplicated {proof.duplicated}"
    yield f"quarantine: {judgement.quarantined} records that could not be decoded, with reason and bytes"
    for table, seen in freshness.items():
        yield (
            f"freshness: {table}: mean {seen.mean_ms:.0f} ms, p50 {seen.p50_ms:.0f} ms, p95 {seen.p95_ms:.0f} ms, "
            f"p99 {seen.p99_ms:.0f} ms, {seen.commits} commits"
        )


def last_line(judgement: Judgement, freshness: Mapping[str, VisibleFreshness]) -> str:
    """Return the report in one line; the freshness is that of the table which is worst at it."""
    p50 = max(seen.p50_ms for seen in freshness.values())
    p99 = max(seen.p99_ms for seen in freshness.values())
    return (
        f"landed {judgement.records} records: delta {judgement.landed['delta']}, iceberg {judgement.landed['iceberg']}, "
        f"missing {judgement.missing}, duplicated {judgement.duplicated}, freshness p50 {p50:.0f} ms, p99 {p99:.0f} ms"
    )


@contextmanager
def _handling(signals: tuple[signal.Signals, ...], handler: Callable[[int, FrameType | None], object]) -> Iterator[None]:
    before = {number: signal.signal(number, handler) for number in signals}
    try:
        yield
    finally:
        for number, previous in before.items():
            signal.signal(number, previous)


def _interrupt(*_: object) -> NoReturn:
    """Treat SIGTERM like Ctrl-C, so that it stops everything that was started."""
    raise KeyboardInterrupt


def _stopwatch() -> Say:
    started = time.monotonic()

    def say(text: str) -> None:
        print(f"[{time.monotonic() - started:4.0f} s] {text}", flush=True)

    return say
