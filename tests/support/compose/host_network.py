"""Writes docker-compose.yaml for a Docker without a bridge: every service on the host's network, under its own name.

``python -m tests.support.compose.host_network > FILE``, then ``docker-compose --project-directory . --file FILE up``. All names
of services are the loopback address then, so the addresses in the file stay as they are. No two services listen on one port.
"""

from __future__ import annotations

import socket
import sys
from pathlib import Path
from typing import Any

import yaml

COMPOSE = Path(__file__).parents[3] / "docker-compose.yaml"


def on_host_network(compose: dict[str, Any]) -> dict[str, Any]:
    """Return the file's content with all services on the host's network."""
    # The machine's own name, too: Java asks for its address, and the container's file of names does not have it.
    names = dict.fromkeys([*compose["services"], socket.gethostname()], "127.0.0.1")
    services = {}
    for name, service in compose["services"].items():
        changed = {key: value for key, value in service.items() if key != "ports"}
        if service.get("network_mode") != "none":
            changed |= {"network_mode": "host", "extra_hosts": names}
        if "build" in service:
            changed["build"] = {"context": ".", "network": "host"}
        services[name] = changed
    return {key: value for key, value in compose.items() if not key.startswith("x-")} | {"services": services}


def main() -> None:
    """Print the changed file."""
    yaml.safe_dump(on_host_network(yaml.safe_load(COMPOSE.read_text())), sys.stdout, sort_keys=False)


if __name__ == "__main__":
    main()
