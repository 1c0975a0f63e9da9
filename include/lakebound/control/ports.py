"""Free TCP ports on the loopback interface."""

from __future__ import annotations

import random
import socket

from lakebound.errors import ServiceError

LOOPBACK = "127.0.0.1"

# Below the range from which the kernel takes the ports of outgoing connections: a client that keeps dialling a stopped
# service there can be connected to itself, and then holds the port that the service needs when it comes back.
FIRST_PORT, LAST_PORT = 20_000, 29_999


def is_free(port: int) -> bool:
    """Return whether a service could listen on this loopback port now."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
        except OSError:
            return False
    return True


def is_open(port: int, timeout_seconds: float = 0.5) -> bool:
    """Return whether something accepts connections on this loopback port."""
    try:
        with socket.create_connection((LOOPBACK, port), timeout=timeout_seconds):
            return True
    except OSError:
        return False


def free_port(preferred: int | None = None) -> int:
    """Return ``preferred`` if it is free, else any free port.

    Raises:
        ServiceError: No free port was found.
    """
    if preferred is not None and is_free(preferred):
        return preferred
    for port in random.sample(range(FIRST_PORT, LAST_PORT + 1), 200):
        if is_free(port):
            return port
    raise ServiceError("ports", f"no free port between {FIRST_PORT} and {LAST_PORT} on {LOOPBACK}")
