"""A broker as it was before Kafka 2.8, which gives topics no ids: a proxy before a real one that hides the newer requests.

A client learns from the first answer of a broker which versions of each request the broker knows (ApiVersions). The proxy
lowers there what is said of Metadata to version 9, the last one without topic ids.
"""

from __future__ import annotations

import socket
import socketserver
import struct
import threading
from contextlib import suppress

API_VERSIONS, METADATA, LAST_WITHOUT_IDS = 18, 3, 9
_FLEXIBLE_SINCE = 3


class OldBroker:
    """Listens on one port of the loopback, and passes everything on to another."""

    def __init__(self, port: int, behind: int) -> None:
        """Start it.

        Args:
            port: Where it listens: the port that the real broker tells its clients.
            behind: Where the real broker listens.
        """

        class Handler(socketserver.BaseRequestHandler):
            def handle(self) -> None:
                with socket.create_connection(("127.0.0.1", behind)) as broker, suppress(OSError):
                    _serve(self.request, broker)

        socketserver.ThreadingTCPServer.allow_reuse_address = True
        self._server = socketserver.ThreadingTCPServer(("127.0.0.1", port), Handler)
        self._server.daemon_threads = True
        self.servers = f"127.0.0.1:{port}"
        threading.Thread(target=self._server.serve_forever, name="old broker", daemon=True).start()

    def end(self) -> None:
        """End it."""
        self._server.shutdown()
        self._server.server_close()


def lowered(answer: bytes, version: int) -> bytes:
    """Return the body of an answer to ApiVersions in which Metadata has no version with topic ids.

    Args:
        answer: After the correlation id.
        version: Of the request.
    """
    body, is_flexible = bytearray(answer), version >= _FLEXIBLE_SINCE
    # error code; then the number of entries, in a flexible version as a varint of one more (below 128: one byte)
    at, count = (3, body[2] - 1) if is_flexible else (6, struct.unpack_from(">i", body, 2)[0])
    assert not is_flexible or body[2] < 128, "so many requests need a longer varint"
    for _ in range(count):
        key, lowest, highest = struct.unpack_from(">hhh", body, at)
        if key == METADATA:
            struct.pack_into(">hhh", body, at, key, lowest, min(highest, LAST_WITHOUT_IDS))
        at += 7 if is_flexible else 6  # a flexible entry ends with its number of tags, 0
    return bytes(body)


def _serve(client: socket.socket, broker: socket.socket) -> None:
    asked: dict[int, int] = {}

    def requests() -> None:
        with suppress(OSError):
            while frame := _read_frame(client):
                key, version, correlation = struct.unpack_from(">hhi", frame)
                if key == API_VERSIONS:
                    asked[correlation] = version
                broker.sendall(struct.pack(">i", len(frame)) + frame)
            broker.shutdown(socket.SHUT_WR)

    threading.Thread(target=requests, daemon=True).start()
    while frame := _read_frame(broker):
        (correlation,) = struct.unpack_from(">i", frame)
        if (version := asked.pop(correlation, None)) is not None:
            frame = frame[:4] + lowered(frame[4:], version)
        client.sendall(struct.pack(">i", len(frame)) + frame)


def _read_frame(connection: socket.socket) -> bytes:
    head = _read(connection, 4)
    return _read(connection, struct.unpack(">i", head)[0]) if len(head) == 4 else b""


def _read(connection: socket.socket, count: int) -> bytes:
    parts = b""
    while len(parts) < count and (part := connection.recv(count - len(parts))):
        parts += part
    return parts
