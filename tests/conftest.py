"""The marker rule, and what tests share: a table of each format, a real broker and an S3 server."""

from __future__ import annotations

import gc
import itertools
import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import pytest
import structlog
from hypothesis import settings as hypothesis_settings
from xdist.remote import Producer
from xdist.scheduler import Scheduling

from lakebound.landing.spark_command import QUICK_START
from lakebound.local.broker import Broker
from lakebound.local.broker_config import SaslUser
from lakebound.settings import load_settings
from lakebound.spec.table import TableSpec
from lakebound.tables.places import Places
from tests.support.kafka.brokers import ShortLivedBroker
from tests.support.kafka.makers import BrokerMaker, TopicMaker, topic_maker
from tests.support.s3.running import S3Server
from tests.support.shared_parts import SharedParts
from tests.support.streams.long_form import LONG_FORM, examples, left_to_the_long_form
from tests.support.tables.local_tables import places

if TYPE_CHECKING:
    from tests.support.catalogs.postgresql import PostgreSQL
    from tests.support.registry.server import SchemaRegistry

BEHIND_AIRFLOW = 5
"""Niceness of the processes that have other tests first: beside one of them, Airflow gets three quarters of a core."""
_first_test: list[str] = []
MARKERS = ("local", "enumeration", "spark", "airflow", "integration", "chaos")


def pytest_configure() -> None:
    """Every Spark that a test starts, by whatever command, lives for seconds: its JVM compiles once, as a quick start does."""
    os.environ.setdefault("SPARK_SUBMIT_OPTS", QUICK_START)
    # On a busy machine an example may take long: that is no failure (seen: 0.7 s for one that takes 1 ms).
    # `make test` tries the same examples each time, so that it fails for what was changed; `make test-generated` tries others,
    # and four times as many.
    hypothesis_settings.register_profile("lakebound", deadline=None, derandomize=not LONG_FORM, max_examples=examples(100))
    hypothesis_settings.load_profile("lakebound")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """The folder ``local`` is a marker; a test that needs no real part carries no marker, and is a unit test."""
    if left := left_to_the_long_form(items):
        config.hook.pytest_deselected(items=left)
        away = set(left)
        items[:] = [item for item in items if item not in away]
    for item in items:
        if item.path.relative_to(Path(__file__).parent).parts[0] == "local":
            item.add_marker(pytest.mark.local)
        if not any(item.get_closest_marker(marker) for marker in MARKERS):
            item.add_marker(pytest.mark.unit)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[object]:
    """Collecting makes a million objects that stay: Python's collector does not walk them, neither now nor in the tests."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_unconfigure() -> None:
    """At the end it walks them, or extension modules would tell of each as a leak."""
    gc.unfreeze()


@pytest.hookimpl(tryfirst=True)  # before xdist's own
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> Scheduling | None:
    """With ``--dist loadgroup``, tests that share a part run in one process; see SharedParts."""
    return SharedParts(config, log) if config.getvalue("dist") == "loadgroup" else None


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say how much was asked of the readers of generated tables."""
    sums: Counter[str] = Counter()
    for report in terminalreporter.getreports("passed"):
        sums.update({name: value for name, value in report.user_properties if name.startswith("readers ")})
    if sums:
        terminalreporter.write_line(", ".join(f"{value:,} {name.removeprefix('readers ')}" for name, value in sums.items()))


def pytest_runtest_logstart(nodeid: str) -> None:
    """The process with the tests of Airflow goes before the others: it mostly waits, and Airflow has deadlines of its own."""
    if "PYTEST_XDIST_WORKER" in os.environ and not _first_test:
        _first_test.append(nodeid)
        if not nodeid.startswith("tests/airflow/"):
            os.nice(BEHIND_AIRFLOW)


@pytest.fixture(autouse=True)
def structlog_as_it_is() -> None:
    """What another test of the process made of the log is gone: a command configures it, and Airflow when it is imported."""
    structlog.reset_defaults()


@pytest.fixture(params=["delta", "iceberg"])
def spec(request: pytest.FixtureRequest) -> TableSpec:
    """A table of each format."""
    return TableSpec(format=request.param, name="shop.orders")


@pytest.fixture
def at(tmp_path: Path) -> Places:
    """Places of the test's own, of which nothing exists yet."""
    return places(tmp_path)


@pytest.fixture(scope="session")
def jars() -> Path:
    """The folder of checked jars, with ``spark/`` and ``broker/``."""
    return load_settings().jars


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory, jars: Path) -> Iterator[Broker]:
    """A real broker for the whole session; do not stop it (use ``new_broker`` for that)."""
    shared = ShortLivedBroker(tmp_path_factory.mktemp("broker"), jars)
    try:
        shared.start()
        yield shared
    finally:
        shared.stop()


@pytest.fixture
def new_broker(tmp_path: Path, jars: Path) -> Iterator[BrokerMaker]:
    """Makes started brokers that one test may kill; whatever is left of them is stopped."""
    made: list[Broker] = []
    numbers = itertools.count(1)

    def make(sasl: SaslUser | None = None) -> Broker:
        own = ShortLivedBroker(tmp_path / f"broker-{next(numbers)}", jars, sasl=sasl)
        made.append(own)
        own.start()
        return own

    try:
        yield make
    finally:
        for own in made:
            own.stop()


@pytest.fixture
def topic(broker: Broker) -> TopicMaker:
    """Makes uniquely named topics on the shared broker."""
    return topic_maker(broker.bootstrap_servers)


@pytest.fixture(scope="session")
def schema_registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SchemaRegistry]:
    """A real schema registry for the whole session; each test has subjects of its own."""
    from tests.support.registry.server import SchemaRegistry  # few runs need its packages

    server = SchemaRegistry(tmp_path_factory.mktemp("schema-registry"))
    try:
        server.wait_ready()
        yield server
    finally:
        server.stop()


@pytest.fixture(scope="session")
def postgresql() -> Iterator[PostgreSQL]:
    """A real PostgreSQL for the whole session; each test has a database of its own."""
    from tests.support.catalogs.postgresql import PostgreSQL  # few runs need its package

    # Not in pytest's folder: the server runs as a user of its own, and pytest lets nobody else in.
    with TemporaryDirectory(prefix="lakebound-postgresql-") as folder:
        server = PostgreSQL(Path(folder))
        yield server
        server.stop()


@pytest.fixture(scope="session")
def shared_s3_server() -> Iterator[S3Server]:
    """An S3 server for the whole session; tests take ``s3_server``."""
    shared = S3Server()
    try:
        yield shared
    finally:
        shared.stop()


@pytest.fixture
def s3_server(shared_s3_server: S3Server) -> Iterator[S3Server]:
    """An S3 server without faults; what a test breaks is whole again for the next."""
    yield shared_s3_server
    shared_s3_server.faults.come_back()
    shared_s3_server.faults.clear()


@pytest.fixture
def s3_bucket(s3_server: S3Server) -> str:
    """An empty bucket of the test's own."""
    return s3_server.new_bucket()
