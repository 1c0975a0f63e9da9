"""Whether the brokers of pipelines answer: each is asked as its pipeline's YAML says, all at the same time."""

from __future__ import annotations

import time
from collections.abc import Iterable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

from confluent_kafka import KafkaException

from lakebound.errors import KafkaRefusalError, LakeboundError
from lakebound.landing.kafka_clients import Troubles, make_admin
from lakebound.landing.kafka_errors import told_error
from lakebound.landing.kafka_settings import client_config
from lakebound.spec.connection import ConnectionSpec
from lakebound.spec.pipeline import PipelineSpec

ASK_SECONDS = 3.0
"""How long a command waits for answers."""


@dataclass(frozen=True)
class BrokerView:
    """The brokers of one connection.

    Attributes:
        bootstrap_servers: Where they are, as the YAML says.
        pipelines: The pipelines that read from there with the same settings.
        brokers: How many brokers the cluster says it has; None without an answer.
        problem: Why there is no answer; None when there is one.
    """

    bootstrap_servers: str
    pipelines: tuple[str, ...]
    brokers: int | None = None
    problem: str | None = None


def look_at_brokers(specs: Iterable[PipelineSpec], timeout_seconds: float) -> list[BrokerView]:
    """Return whether the brokers of pipelines answer. It takes no longer than the timeout, however many there are.

    Args:
        specs: The pipelines.
        timeout_seconds: How long to wait for answers.
    """
    pipelines: dict[str, tuple[ConnectionSpec, list[str]]] = {}
    for spec in specs:
        pipelines.setdefault(spec.connection.model_dump_json(), (spec.connection, []))[1].append(spec.pipeline)
    deadline = time.monotonic() + timeout_seconds
    asked = [(connection, names, _ask(connection, timeout_seconds)) for connection, names in pipelines.values()]
    return [_view(connection, names, question, deadline) for connection, names, question in asked]


@dataclass(frozen=True)
class _Question:
    client: Any
    troubles: Troubles
    answer: Future[Any]


def _ask(connection: ConnectionSpec, timeout_seconds: float) -> _Question | str:
    """Ask the cluster what it is, and return the answer to come; or why it cannot be asked."""
    try:
        troubles = Troubles()
        client = make_admin(client_config(connection), troubles)
        return _Question(client, troubles, client.describe_cluster(request_timeout=timeout_seconds))
    except LakeboundError as exc:
        return str(exc)
    except KafkaException as exc:
        return f"the settings of the connection do not work: {exc.args[0].str()}"


def _view(connection: ConnectionSpec, pipelines: list[str], question: _Question | str, deadline: float) -> BrokerView:
    servers, names = connection.bootstrap_servers, tuple(sorted(pipelines))
    if isinstance(question, str):
        return BrokerView(servers, names, problem=question)
    try:
        # A little longer than the request itself, whose error says more than a timeout.
        cluster = question.answer.result(timeout=max(0.0, deadline - time.monotonic()) + 0.5)
    except KafkaException as exc:
        error = told_error(connection, exc.args[0], question.troubles.told(question.client), "")
        outage = f"no answer: {exc.args[0].str()}"
        return BrokerView(servers, names, problem=str(error) if isinstance(error, KafkaRefusalError) else outage)
    except TimeoutError:
        return BrokerView(servers, names, problem="no answer in time")
    return BrokerView(servers, names, brokers=len(cluster.nodes))
