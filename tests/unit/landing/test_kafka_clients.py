"""What the Kafka clients say by themselves does not look like an error of Lakebound's."""

from __future__ import annotations

import ast
import logging
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka import KafkaError, Producer
from tests.support.syntax import nodes_of

from lakebound.landing.kafka_clients import LOG_NAME, ClientLog, Troubles, level_of, make_admin, make_consumer, make_producer
from lakebound.local.produce import producer_config

ROOT = Path(__file__).parents[3]
NOBODY = {"bootstrap.servers": "127.0.0.1:1"}


@pytest.mark.parametrize(
    ("level", "facility", "expected"),
    [
        (logging.CRITICAL, "FATAL", logging.ERROR),
        (logging.ERROR, "FAIL", logging.INFO),
        (logging.ERROR, "ERROR", logging.INFO),
        (logging.ERROR, "OFFSET", logging.WARNING),
        (logging.WARNING, "GETPID", logging.INFO),
        (logging.WARNING, "CONFWARN", logging.INFO),
        (logging.INFO, "BGQUEUE", logging.DEBUG),
        (logging.DEBUG, "BROKER", logging.DEBUG),
    ],
)
def test_what_a_client_tries_again_is_no_warning(level: int, facility: str, expected: int) -> None:
    assert level_of(level, facility) == expected


def test_the_line_names_client_and_kind(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, LOG_NAME):
        log = ClientLog(logging.getLogger(LOG_NAME))
        log.log(logging.WARNING, "%s [%s] %s", "GETPID", "rdkafka#producer-3", "Coordinator load in progress: retrying")
    (record,) = caplog.records
    assert record.levelno == logging.INFO
    assert record.getMessage() == "Kafka client rdkafka#producer-3: GETPID: Coordinator load in progress: retrying"


def test_a_producer_without_a_broker_prints_nothing(
    capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    """That the library's own way prints shows that the test sees what it would print."""
    _try_to_send(Producer(producer_config(NOBODY)))
    assert "Connection refused" in capfd.readouterr().err
    with caplog.at_level(logging.DEBUG, LOG_NAME):
        _try_to_send(make_producer(producer_config(NOBODY)))
    assert capfd.readouterr().err == ""
    refused = [record for record in caplog.records if "Connection refused" in record.getMessage()]
    assert refused and {record.levelno for record in refused} == {logging.INFO}


def test_neither_do_a_consumer_and_an_admin_client(capfd: pytest.CaptureFixture[str]) -> None:
    consumer = make_consumer({**NOBODY, "group.id": "x"})
    consumer.subscribe(["orders"])
    _for_half_a_second(lambda: consumer.poll(0.1))
    consumer.close()
    admin = make_admin(NOBODY)
    admin.list_consumer_groups(request_timeout=0.5)
    _for_half_a_second(lambda: time.sleep(0.1))
    del admin
    assert capfd.readouterr().err == ""


def test_clients_are_made_in_one_place() -> None:
    makers = {"Consumer", "Producer", "AdminClient"}
    files = [path for folder in ("include", "spark_apps", "plugins", "dags") for path in (ROOT / folder).rglob("*.py")]
    named = [path for path in files if any(f"{maker}(" in path.read_text() for maker in makers)]
    found = {path.name for path in named for node in nodes_of(path) if _called(node) in makers}
    assert found == {"kafka_clients.py"}, "make clients with lakebound.landing.kafka_clients: their log would go to stderr"


def _try_to_send(producer: Producer) -> None:
    producer.produce("orders", value=b"x")
    _for_half_a_second(lambda: producer.poll(0.1))
    producer.purge()
    producer.flush(1)


def _for_half_a_second(once: Callable[[], object]) -> None:
    end = time.monotonic() + 0.5
    while time.monotonic() < end:
        once()


def _called(node: ast.AST) -> str:
    return node.func.id if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) else ""


def test_of_what_a_client_says_of_its_connections_a_refused_login_counts_most_and_is_told_once() -> None:
    client, troubles = make_admin(NOBODY), Troubles()
    for code in (KafkaError._TRANSPORT, KafkaError._AUTHENTICATION, KafkaError._ALL_BROKERS_DOWN, KafkaError._TRANSPORT):
        troubles(KafkaError(code))
    told = troubles.told(client)
    assert told is not None and told.code() == KafkaError._AUTHENTICATION
    assert troubles.told(client) is None


def test_an_admin_client_tells_why_nobody_answers() -> None:
    troubles = Troubles()
    client = make_admin(NOBODY, troubles)
    deadline = time.monotonic() + 20
    while (told := troubles.told(client)) is None:
        assert time.monotonic() < deadline, "it says nothing"
        time.sleep(0.05)
    assert "Connection refused" in told.str()
