"""The embedded services together: a broker with the topics of the example pipelines, and Airflow."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

import psutil
from confluent_kafka import KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from lakebound.control.applications import stop_streams
from lakebound.control.ports import free_port, is_free
from lakebound.control.private_files import make_home, make_private_folder, tighten
from lakebound.control.processes import ProcessRecord, members, wait_until
from lakebound.errors import ServiceError
from lakebound.landing.kafka import OffsetSpec
from lakebound.landing.kafka_clients import make_admin
from lakebound.local.airflow import Airflow
from lakebound.local.broker import Broker
from lakebound.settings import Settings
from lakebound.spec.state_store import refuse_with_shared_state

KAFKA_PORT = 9092
AIRFLOW_PORT = 8080
LEADER_DEADLINE_SECONDS = 60.0

# Topic → partitions.
EXAMPLE_TOPICS: Mapping[str, int] = {"orders": 4, "sensor_readings": 4}

Say = Callable[[str], None]


@dataclass(frozen=True)
class Services:
    """Where the embedded services are.

    Attributes:
        kafka: Bootstrap servers.
        airflow_url: Address of the UI and the REST API.
        airflow_user: The name to log in with.
        airflow_password_file: The JSON file (mode 0600) that holds its password.
    """

    kafka: str
    airflow_url: str
    airflow_user: str
    airflow_password_file: Path


@dataclass(frozen=True)
class ServiceStatus:
    """The status of one embedded service.

    Attributes:
        name: ``kafka`` or ``airflow``.
        running: Whether its process lives.
        address: Where it listens, or listened last; None if it was never started.
        pid: Its process while it runs.
        memory_megabytes: Memory of all its processes; what they share is counted once per process.
        log: Its log file.
    """

    name: str
    running: bool
    address: str | None
    pid: int | None
    memory_megabytes: int
    log: Path


def broker_of(settings: Settings, port: int | None = None) -> Broker:
    """Return the embedded broker of this home, started or not."""
    return Broker(settings.home / "embedded" / "kafka", settings.jars, port=port)


def airflow_of(settings: Settings, port: int | None = None) -> Airflow:
    """Return the embedded Airflow of this home, started or not."""
    return Airflow(settings, port=port)


def up(
    settings: Settings,
    say: Say = print,
    kafka_port: int = KAFKA_PORT,
    airflow_port: int = AIRFLOW_PORT,
    environment: Mapping[str, str] | None = None,
) -> Services:
    """Start the services that do not run, and return when all of them answer.

    Args:
        settings: Whose home holds the services' data.
        say: Receives lines of progress.
        kafka_port: The broker's port; if it is not free, another one is used, and ``say`` gets a line about it.
        airflow_port: The same for the API server.
        environment: Further variables for Airflow, such as ``AIRFLOW_CONN_*``.

    Raises:
        ServiceError: A service could not start.
        DeadlineExceededError: A service does not answer in time.
    """
    refuse_with_shared_state("The stack of `lakebound up`", "Unset LAKEBOUND_STATE, or use a Kafka and an Airflow of your own")
    make_home(settings.home)
    tighten(settings.home)
    broker = broker_of(settings)
    if not broker.is_running:
        broker = broker_of(settings, _choose_port("Kafka", kafka_port, say))
        say("up: starting the Kafka broker (about 5 s)")
        broker.launch()
    with_broker = replace(settings, kafka=broker.bootstrap_servers)
    airflow = airflow_of(with_broker)
    if not airflow.is_led:
        airflow.stop()  # what a killed Airflow may have left holds the port
        port = _choose_port("Airflow", airflow_port, say)
        airflow = Airflow(with_broker, port=port, environment=environment)
        say("up: starting Airflow: scheduler, DAG processor, triggerer, API server (about 30 s)")
        airflow.launch()
    broker.wait_ready()
    create_topics(broker.bootstrap_servers, EXAMPLE_TOPICS)
    say(f"up: Kafka answers on {broker.bootstrap_servers}")
    airflow.wait_ready()
    say(f"up: Airflow is healthy on {airflow.url}")
    services = Services(broker.bootstrap_servers, airflow.url, airflow.user, airflow.password_file)
    _write_services(settings, services, broker.record, airflow.record)
    return services


def down(settings: Settings, say: Say = print) -> None:
    """Stop Airflow, the streams and the broker, gracefully; tables and all other state stay.

    Args:
        settings: Whose home holds the services' data.
        say: Receives lines of progress.

    Raises:
        DeadlineExceededError: A stream runs where this machine cannot end it.
        ServiceError: A process survived SIGKILL.
    """
    airflow, broker = airflow_of(settings), broker_of(settings)
    if airflow.is_running:
        # Before the streams: a task that sees its application end would start the next one.
        say("down: stopping Airflow (about 10 s)")
        airflow.stop()
    for application in stop_streams(settings):
        say(f"down: {application} ended")
    if broker.is_running:
        say("down: stopping the Kafka broker")
        broker.stop()
    settings.services_file.unlink(missing_ok=True)
    say(f"down: all services have stopped; tables are kept in {settings.warehouse}, state and logs in {settings.home}")


def status(settings: Settings) -> list[ServiceStatus]:
    """Return the status of each embedded service."""
    airflow, broker = airflow_of(settings), broker_of(settings)
    return [
        _status("kafka", broker.is_running, broker.record, broker.log, lambda: broker.bootstrap_servers),
        _status("airflow", airflow.is_running, airflow.record, airflow.log, lambda: airflow.url),
    ]


def create_topics(bootstrap_servers: str, topics: Mapping[str, int]) -> None:
    """Create the missing topics, each with its number of partitions, and return when all can be written to.

    Args:
        bootstrap_servers: Of the broker.
        topics: Number of partitions by name.

    Raises:
        KafkaException: The broker refused one for another reason.
        DeadlineExceededError: A partition has no leader in time.
    """
    client = make_admin({"bootstrap.servers": bootstrap_servers})
    wanted = [NewTopic(name, num_partitions=count, replication_factor=1) for name, count in topics.items()]
    for created in client.create_topics(wanted).values():
        try:
            created.result(timeout=30)
        except KafkaException as error:
            if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
                raise
    wait_led(client, topics)


def wait_led(client: AdminClient, topics: Mapping[str, int]) -> None:
    """Return when the leader of every partition answers.

    A topic is told to be created before its broker takes records for it. Of an idempotent producer's batches in flight the
    broker may then refuse the first and take the second; the first one's retry counts as a duplicate, is acknowledged
    without an offset, and is lost.

    Args:
        client: Asks the broker.
        topics: Number of partitions by name.
    """
    partitions = [TopicPartition(name, number) for name, count in topics.items() for number in range(count)]

    def led() -> bool:
        try:
            futures = client.list_offsets({partition: OffsetSpec.latest() for partition in partitions}, request_timeout=10)
            return all(future.result(timeout=11).offset >= 0 for future in futures.values())
        except (KafkaException, TimeoutError):
            return False

    wait_until(led, LEADER_DEADLINE_SECONDS, f"the leaders of {', '.join(topics)}")


def _choose_port(name: str, preferred: int, say: Say) -> int:
    if is_free(preferred):
        return preferred
    port = free_port()
    say(f"up: port {preferred} is used by another program; {name} uses port {port}")
    return port


def _status(name: str, running: bool, record: ProcessRecord | None, log: Path, address: Callable[[], str]) -> ServiceStatus:
    known: str | None = None
    with suppress(ServiceError):  # the file of its ports is damaged
        known = address() if record else None
    return ServiceStatus(
        name=name,
        running=running,
        address=known,
        pid=record.pid if record and running else None,
        memory_megabytes=_memory_megabytes(record) if record and running else 0,
        log=log,
    )


def _memory_megabytes(record: ProcessRecord) -> int:
    total = 0
    for process in members(record):
        try:
            total += process.memory_info().rss
        except psutil.NoSuchProcess:
            continue
    return total // 1_000_000


def _write_services(
    settings: Settings, services: Services, broker: ProcessRecord | None, airflow: ProcessRecord | None
) -> None:
    file = settings.services_file
    make_private_folder(file.parent)
    content = {
        "kafka": services.kafka,
        "airflow": {
            "url": services.airflow_url,
            "user": services.airflow_user,
            "password_file": str(services.airflow_password_file),
        },
        "pids": {"kafka": broker.pid if broker else None, "airflow": airflow.pid if airflow else None},
    }
    partial = file.with_name(f".{file.name}.{os.getpid()}")
    partial.write_text(json.dumps(content, indent=2) + "\n")
    partial.replace(file)
