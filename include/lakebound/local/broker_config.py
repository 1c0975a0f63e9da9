"""The configuration of the embedded broker, as the text of its two files."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from lakebound.control.ports import LOOPBACK
from lakebound.landing.jaas import jaas_quoted


@dataclass(frozen=True)
class SaslUser:
    """Who may use the second, authenticated listener."""

    username: str
    password: str = field(repr=False)


@dataclass(frozen=True)
class BrokerPorts:
    """The loopback ports of one broker; ``sasl`` is 0 when there is no authenticated listener."""

    plaintext: int
    controller: int
    sasl: int = 0


def server_properties(data: Path, ports: BrokerPorts, sasl: SaslUser | None, sasl_host: str = LOOPBACK) -> str:
    """Return the broker's configuration; with ``sasl`` it holds the password, so keep it from other users.

    Args:
        data: Folder for the broker's log segments.
        ports: The broker's ports on this machine.
        sasl: Who may use the authenticated listener; None: there is no such listener.
        sasl_host: Name by which clients reach the authenticated listener. If it is not the loopback address, that listener
            takes connections on every address of the machine or container; the others stay on the loopback.
    """
    listeners = [f"PLAINTEXT://{LOOPBACK}:{ports.plaintext}"]
    advertised = list(listeners)
    if sasl:
        bound = sasl_host if sasl_host == LOOPBACK else "0.0.0.0"
        listeners.append(f"SASL_PLAINTEXT://{bound}:{ports.sasl}")
        advertised.append(f"SASL_PLAINTEXT://{sasl_host}:{ports.sasl}")
    settings: dict[str, object] = {
        "process.roles": "broker,controller",
        "node.id": 1,
        "controller.quorum.voters": f"1@{LOOPBACK}:{ports.controller}",
        "controller.listener.names": "CONTROLLER",
        "listeners": ",".join([*listeners, f"CONTROLLER://{LOOPBACK}:{ports.controller}"]),
        "advertised.listeners": ",".join(advertised),
        "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SASL_PLAINTEXT:SASL_PLAINTEXT",
        "inter.broker.listener.name": "PLAINTEXT",
        "log.dirs": data,
        "auto.create.topics.enable": "false",
        "default.replication.factor": 1,
        "offsets.topic.replication.factor": 1,
        "offsets.topic.num.partitions": 3,
        "transaction.state.log.replication.factor": 1,
        "transaction.state.log.min.isr": 1,
        "transaction.state.log.num.partitions": 3,
        "share.coordinator.state.topic.replication.factor": 1,
        "share.coordinator.state.topic.min.isr": 1,
        "group.initial.rebalance.delay.ms": 0,
        # After a crash the controller refuses the same broker until the old session has ended.
        "broker.session.timeout.ms": 6000,
        "broker.heartbeat.interval.ms": 1000,
        # A record of 1 MiB, which is in the test data, needs more than Kafka's default of 1 MiB per batch.
        "message.max.bytes": 4 * 1024 * 1024,
        "replica.fetch.max.bytes": 4 * 1024 * 1024,
        # Compaction and retention take effect soon, so that tests can wait for them; the cleaner's default
        # buffer of 128 MiB is a quarter of the heap.
        "log.cleaner.dedupe.buffer.size": 4 * 1024 * 1024,
        "log.cleaner.backoff.ms": 1000,
        "log.retention.check.interval.ms": 2000,
        "log.segment.delete.delay.ms": 1000,
        "num.network.threads": 2,
        "num.io.threads": 4,
        "background.threads": 2,
    }
    if sasl:
        settings["sasl.enabled.mechanisms"] = "PLAIN"
        settings["listener.name.sasl_plaintext.plain.sasl.jaas.config"] = (
            "org.apache.kafka.common.security.plain.PlainLoginModule required "
            f"user_{sasl.username}={jaas_quoted(sasl.password)};"
        )
    return "".join(f"{name}={_escaped(str(value))}\n" for name, value in settings.items())


def _escaped(value: str) -> str:
    """Return a value as Java's properties hold it: in Latin-1, everything else as UTF-16 in hexadecimal digits."""
    units = value.replace("\\", "\\\\").encode("utf-16-be")
    codes = [int.from_bytes(units[at : at + 2]) for at in range(0, len(units), 2)]
    return "".join(chr(code) if 32 <= code < 127 else f"\\u{code:04x}" for code in codes)


def log4j2_properties(log: Path, *, to_console: bool = False) -> str:
    """Return the logging configuration: one file at INFO, three of 10 MB kept, nothing on the console but errors.

    Args:
        log: The file.
        to_console: Whether what goes to the file goes to the console, too, which is a container's log.
    """
    pattern = "%d{ISO8601} %-5p %c{1} - %m%n"
    console = f"""\
appender.console.type = Console
appender.console.name = console
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = {pattern}
rootLogger.appenderRef.console.ref = console
"""
    file = f"""\
status = error
appender.file.type = RollingFile
appender.file.name = file
appender.file.fileName = {_escaped(str(log))}
appender.file.filePattern = {_escaped(str(log))}.%i
appender.file.layout.type = PatternLayout
appender.file.layout.pattern = {pattern}
appender.file.policies.type = SizeBasedTriggeringPolicy
appender.file.policies.size = 10MB
appender.file.strategy.type = DefaultRolloverStrategy
appender.file.strategy.max = 3
rootLogger.level = info
rootLogger.appenderRef.file.ref = file
"""
    return file + console if to_console else file
