"""A real Kafka broker (KRaft, one node, broker and controller in one process) from its jars."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

from confluent_kafka import KafkaException

from lakebound.control import processes
from lakebound.control.ports import LOOPBACK, free_port, is_free, is_open
from lakebound.control.private_files import make_private_folder
from lakebound.errors import ServiceError
from lakebound.landing.class_archive import archive_options, broker_archive
from lakebound.landing.java import check_java, java_command
from lakebound.landing.kafka_clients import make_admin
from lakebound.local.broker_config import BrokerPorts, SaslUser, log4j2_properties, server_properties
from lakebound.local.ports_file import read_ports, write_ports

START_DEADLINE_SECONDS = 300.0
"""A process that ends is noticed at once: this only ends the wait for one that hangs."""
STOP_DEADLINE_SECONDS = 30.0

# A fixed id: the data folder belongs to this cluster, and to no other.
CLUSTER_ID = "bGFrZWJvdW5kLWxha2Vib3"


class Broker:
    """One broker with its own folder. A second object on the same folder sees, and can stop, the same broker."""

    jvm_options: tuple[str, ...] = ()
    """Further options of the broker's JVM."""

    def __init__(
        self,
        folder: Path,
        jars: Path,
        port: int | None = None,
        sasl: SaslUser | None = None,
        heap_megabytes: int = 512,
    ) -> None:
        """Describe the broker; nothing is started yet.

        Args:
            folder: Where data, configuration and logs are kept. Starting again on it keeps data and ports.
            jars: The folder of checked jars that holds ``broker/`` (``Settings.jars``).
            port: The port of the plaintext listener (default: the folder's own from last time, else a free one).
            sasl: Adds a SASL_PLAINTEXT listener (mechanism PLAIN) on a further port for this user.
            heap_megabytes: The most heap that the JVM may take.
        """
        self.folder = folder.absolute()
        self.jars = jars.absolute()
        self.sasl = sasl
        self.heap_megabytes = heap_megabytes
        self._wanted_port = port

    @property
    def log(self) -> Path:
        """The broker's log file."""
        return self.folder / "logs" / "broker.log"

    @property
    def record(self) -> processes.ProcessRecord | None:
        """The process that was started last, or None."""
        return processes.ProcessRecord.load(self.folder / "process.json")

    @property
    def is_running(self) -> bool:
        """Whether the broker's process lives."""
        record = self.record
        return record is not None and processes.is_alive(record)

    @property
    def ports(self) -> BrokerPorts:
        """The ports of the last start.

        Raises:
            ServiceError: It was never started.
        """
        try:
            return BrokerPorts(**(read_ports(self._ports_file) or {}))
        except TypeError as error:
            raise ServiceError("Kafka broker", f"was never started in {self.folder}; start it first") from error

    @property
    def bootstrap_servers(self) -> str:
        """Address of the plaintext listener."""
        return f"{LOOPBACK}:{self.ports.plaintext}"

    def configuration(self, ports: BrokerPorts, sasl_host: str = LOOPBACK) -> str:
        """Return the text of its ``server.properties``."""
        return server_properties(self.folder / "data", ports, self.sasl, sasl_host)

    def start(self, deadline_seconds: float = START_DEADLINE_SECONDS) -> None:
        """Start the broker if it does not run, and return when it answers.

        Raises:
            ServiceError: Its jars, Java or port are missing, or it ended while starting.
            DeadlineExceededError: It does not answer in time.
        """
        self.launch()
        self.wait_ready(deadline_seconds)

    def launch(self) -> None:
        """Start the broker if it does not run, without waiting for it.

        Raises:
            ServiceError: Its jars, Java or port are missing.
        """
        if self.is_running:
            return
        command = self.prepare()
        processes.start("Kafka broker", command, self._console).save(self.folder / "process.json")

    def prepare(self, ports: BrokerPorts | None = None, *, sasl_host: str = LOOPBACK, to_console: bool = False) -> list[str]:
        """Write the configuration, format the storage at the first start, and return the command that runs the broker.

        Args:
            ports: Where it listens; None: the ports of the last start, or free ones.
            sasl_host: Name by which other machines reach the authenticated listener.
            to_console: Whether its log also goes to the console.

        Raises:
            ServiceError: Its jars, Java or port are missing.
        """
        self._check_jars()
        check_java("Kafka broker")
        make_private_folder(self.folder)
        ports = ports or self._choose_ports()
        write_ports(self._ports_file, ports)
        self._write_configuration(self.configuration(ports, sasl_host))
        (self.folder / "log4j2.properties").write_text(log4j2_properties(self.log, to_console=to_console))
        self._format_storage()
        self.log.parent.mkdir(exist_ok=True)
        return broker_command(self.jars, self.folder, self.heap_megabytes, self.jvm_options)

    def wait_ready(self, deadline_seconds: float = START_DEADLINE_SECONDS) -> None:
        """Return when the broker answers a client.

        Raises:
            ServiceError: Its process has ended.
            DeadlineExceededError: It does not answer in time.
        """
        processes.wait_until(self._answers, deadline_seconds, f"the Kafka broker on {self.bootstrap_servers}")

    def stop(self, deadline_seconds: float = STOP_DEADLINE_SECONDS) -> None:
        """Stop the broker gracefully, by force after the deadline; data stays."""
        if record := self.record:
            processes.stop(record, deadline_seconds)

    def kill(self) -> None:
        """End the broker at once (SIGKILL), as a crash would; data stays."""
        if record := self.record:
            processes.kill(record)

    @property
    def _console(self) -> Path:
        return self.folder / "logs" / "console.log"

    @property
    def _ports_file(self) -> Path:
        return self.folder / "ports.json"

    def _choose_ports(self) -> BrokerPorts:
        known = self.ports if read_ports(self._ports_file) else BrokerPorts(0, 0)
        plaintext = self._wanted_port or known.plaintext or free_port()
        if not is_free(plaintext):
            raise ServiceError("Kafka broker", f"port {plaintext} is used by another program; choose another port")
        return BrokerPorts(
            plaintext=plaintext,
            controller=free_port(known.controller or None),
            sasl=(known.sasl or free_port()) if self.sasl else 0,
        )

    def _check_jars(self) -> None:
        if not any((self.jars / "broker").glob("kafka_*.jar")):
            raise ServiceError("Kafka broker", f"its jars are not in {self.jars / 'broker'}; run: make jars")

    def _write_configuration(self, text: str) -> None:
        properties = self.folder / "server.properties"
        properties.touch(mode=0o600)
        properties.chmod(0o600)
        properties.write_text(text)

    def _format_storage(self) -> None:
        if (self.folder / "data" / "meta.properties").exists():
            return
        finished = subprocess.run(format_command(self.jars, self.folder), capture_output=True, text=True, check=False)
        if finished.returncode != 0:
            raise ServiceError("Kafka broker", f"its storage could not be formatted: {finished.stderr.strip()[-800:]}")

    def _answers(self) -> bool:
        if not self.is_running:
            tail = processes.last_lines(self._console) or processes.last_lines(self.log)
            raise ServiceError("Kafka broker", f"ended before it was ready. Its last lines:\n{tail}", self.log)
        if not is_open(self.ports.plaintext):
            return False
        try:
            client = make_admin({"bootstrap.servers": self.bootstrap_servers})
            return bool(client.list_topics(timeout=2).brokers)
        except KafkaException:
            return False


def broker_command(jars: Path, folder: Path, heap_megabytes: int, jvm_options: Sequence[str] = ()) -> list[str]:
    """Return the command line that runs a broker on the configuration in ``folder``.

    Args:
        jars: The folder of checked jars.
        folder: Of the broker.
        heap_megabytes: The most heap that the JVM may take.
        jvm_options: Further options of the JVM.
    """
    return [
        *_java(jars, folder),
        *jvm_options,
        f"-Xmx{heap_megabytes}m",
        "-Xms128m",
        "-XX:+ExitOnOutOfMemoryError",
        "kafka.Kafka",
        str(folder / "server.properties"),
    ]


def format_command(jars: Path, folder: Path) -> list[str]:
    """Return the command line that formats the data folder named by the configuration in ``folder``."""
    return [
        *_java(jars, folder),
        "-XX:TieredStopAtLevel=1",
        "kafka.tools.StorageTool",
        "format",
        "--ignore-formatted",
        "--cluster-id",
        CLUSTER_ID,
        "--config",
        str(folder / "server.properties"),
    ]


def _java(jars: Path, folder: Path) -> list[str]:
    return [
        java_command(),
        *archive_options(broker_archive(jars)),
        "-Djava.awt.headless=true",
        f"-Dlog4j2.configurationFile=file:{folder}/log4j2.properties",
        "-cp",
        str(jars / "broker" / "*"),
    ]
