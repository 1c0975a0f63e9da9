"""The Kafka broker of docker-compose.yaml: in the foreground, and reached by other containers with a login only.

``python -m lakebound.local.container.broker run`` becomes the broker; ``… check`` ends with 0 when it answers.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from confluent_kafka import KafkaException

from lakebound.control.ports import LOOPBACK
from lakebound.errors import LakeboundError, ServiceError
from lakebound.landing.kafka_clients import make_admin
from lakebound.local.broker import Broker
from lakebound.local.broker_config import BrokerPorts, SaslUser
from lakebound.settings import load_settings

CHECK_SECONDS = 5.0

PORTS = BrokerPorts(plaintext=19092, controller=19093, sasl=9092)
"""Only the last one is for others; the first two listen on the container's loopback."""


def read_password(file: Path) -> str:
    """Return the password in a file.

    Raises:
        ServiceError: There is none.
    """
    try:
        password = file.read_text(encoding="utf-8").strip()
    except OSError as error:
        raise ServiceError("Kafka broker", f"the file with its password cannot be read: {error}") from error
    if not password:
        raise ServiceError("Kafka broker", f"the file with its password is empty: {file}")
    return password


def run(folder: Path, host: str, user: str, password_file: Path) -> None:
    """Become the broker; signals reach it as they are.

    Args:
        folder: Where its data, configuration and logs are.
        host: Name by which other containers reach it.
        user: Who may log in.
        password_file: Holds that user's password.

    Raises:
        ServiceError: Its jars, Java or the password are missing.
    """
    broker = Broker(folder, load_settings().jars, sasl=SaslUser(user, read_password(password_file)))
    command = broker.prepare(PORTS, sasl_host=host, to_console=True)
    os.execvp(command[0], command)


def answers() -> bool:
    """Whether the broker of this container answers a client."""
    client = make_admin({"bootstrap.servers": f"{LOOPBACK}:{PORTS.plaintext}"})
    try:
        return bool(client.list_topics(timeout=CHECK_SECONDS).brokers)
    except KafkaException:
        return False


def main(arguments: list[str] | None = None) -> int:
    """Run ``python -m lakebound.local.container.broker``; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m lakebound.local.container.broker", description=__doc__)
    parser.add_argument("action", choices=("run", "check"))
    parser.add_argument("--folder", type=Path, default=Path("/var/lib/kafka"), help="where its data is")
    parser.add_argument("--host", default="kafka", help="name by which other containers reach it")
    parser.add_argument("--user", default="lakebound", help="who may log in")
    password_file = Path("/run/lakebound/kafka/password")
    parser.add_argument("--password-file", type=Path, default=password_file, help="holds that user's password")
    chosen = parser.parse_args(arguments)
    if chosen.action == "check":
        return 0 if answers() else 1
    try:
        run(chosen.folder, chosen.host, chosen.user, chosen.password_file)
    except LakeboundError as error:
        print(error, file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
