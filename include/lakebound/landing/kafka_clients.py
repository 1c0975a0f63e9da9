"""The only place where Kafka clients are made: their library's own log goes to Python's logging, at levels of its meaning.

librdkafka prints to stderr by itself, and calls a warning or an error what it tries again and gets right: a refused connection,
a coordinator that loads. What does go wrong reaches the caller as an exception, so a person needs to read none of that.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from confluent_kafka import Consumer, KafkaError, Producer
from confluent_kafka.admin import AdminClient

LOG_NAME = "lakebound.kafka.client"
"""Name of the logger. At level INFO it shows what the clients try again, at DEBUG all that they say."""

TRANSPORT = frozenset({"FAIL", "ERROR"})
"""What librdkafka calls its messages about connections; it connects again by itself."""


def level_of(level: int, facility: str) -> int:
    """Return the level at which a message of librdkafka's is logged.

    Args:
        level: Python's counterpart of the message's syslog level.
        facility: What librdkafka calls messages of its kind, such as ``GETPID``.
    """
    if level >= logging.CRITICAL:
        return logging.ERROR  # the client is of no use any more
    if level >= logging.ERROR and facility not in TRANSPORT:
        return logging.WARNING
    return logging.INFO if level >= logging.WARNING else logging.DEBUG


class ClientLog:
    """What confluent_kafka takes for a logger."""

    def __init__(self, logger: logging.Logger) -> None:
        self._logger = logger

    def log(self, level: int, text: str, facility: str, client: str, message: str) -> None:
        """Log a message; confluent_kafka's own text, a format of the other three, is left out.

        Args:
            level: Python's counterpart of the message's syslog level.
            text: Format string that confluent_kafka made for the other three.
            facility: What librdkafka calls messages of its kind, such as ``GETPID``.
            client: Name that librdkafka gave the client, such as ``rdkafka#consumer-1``.
            message: What the client has to say.
        """
        self._logger.log(level_of(level, facility), "Kafka client %s: %s: %s", client, facility, message)


_LOG: Any = ClientLog(logging.getLogger(LOG_NAME))


def make_consumer(config: Mapping[str, Any]) -> Consumer:
    """Return a consumer. ``poll`` and ``consume`` pass its log on."""
    return Consumer({**config, "logger": _LOG})


def make_producer(config: Mapping[str, Any]) -> Producer:
    """Return a producer. ``poll`` and ``flush`` pass its log on."""
    return Producer({**config, "logger": _LOG})


def _telling(error: KafkaError) -> int:
    """Return how much an error says of why there is no connection: a refused login more than another broker that is away."""
    if error.code() in (KafkaError._AUTHENTICATION, KafkaError._SSL):
        return 2
    return 0 if error.code() == KafkaError._ALL_BROKERS_DOWN else 1


class Troubles:
    """What clients say of their connections. It is asked for when a request has failed."""

    def __init__(self) -> None:
        self._latest: KafkaError | None = None

    def __call__(self, error: KafkaError) -> None:
        """Note an error, unless it says less than the one before: that all brokers are down follows from the others."""
        if self._latest is None or _telling(error) >= _telling(self._latest):
            self._latest = error

    def told(self, client: AdminClient) -> KafkaError | None:
        """Return the last error since the question before; None where there was none."""
        while client.poll(0):
            pass  # only then are the errors told
        latest, self._latest = self._latest, None
        return latest


def make_admin(config: Mapping[str, Any], troubles: Troubles | None = None) -> AdminClient:
    """Return an admin client. It logs nothing: nobody polls it, so that its messages would pile up.

    Args:
        config: Its settings.
        troubles: Gets what the client says of its connections.
    """
    told: dict[str, Any] = {} if troubles is None else {"error_cb": troubles}
    return AdminClient({**config, **told, "log_level": 0, "logger": _LOG})
