"""Which requests came, and when each was under way."""

from __future__ import annotations

import itertools
import re
import threading
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass

_MOST_KEPT = 500_000

_KEY_CLASSES = (
    ("delta commit", re.compile(r"_delta_log/\d{20}\.json$")),
    ("delta log", re.compile(r"_delta_log/")),
    ("iceberg metadata", re.compile(r"metadata/[^/]*\.metadata\.json$")),
    ("iceberg manifest list", re.compile(r"metadata/snap-[^/]*\.avro$")),
    ("iceberg manifest", re.compile(r"metadata/[^/]*\.avro$")),
    ("data", re.compile(r"\.(parquet|orc|avro)$")),
)


@dataclass(frozen=True)
class LoggedRequest:
    """A request that was answered, or hit by a fault.

    Args:
        number: They are numbered in the order in which they ended.
        method: GET, PUT …
        operation: S3's name of what was asked.
        bucket: The bucket, or nothing.
        key: The key; of a list, its prefix.
        access_key_id: Who signed; nothing if that could not be told.
        status: Of the answer; None if none was sent.
        fault: The kind of the fault that hit it.
        received_bytes: Size of the request's body.
        sent_bytes: Size of the answer's body.
        began: Seconds of the server's monotonic clock, when its first line came.
        ended: When its answer was ready; it is logged before it is sent, so that who has the answer finds it here.
    """

    number: int
    method: str
    operation: str
    bucket: str
    key: str
    access_key_id: str
    status: int | None
    fault: str | None
    received_bytes: int
    sent_bytes: int
    began: float
    ended: float

    @property
    def key_class(self) -> str:
        """What kind of object it is about, by its key."""
        return key_class(self.key)


def key_class(key: str) -> str:
    """Return what kind of object a key is of."""
    return next((name for name, pattern in _KEY_CLASSES if pattern.search(key)), "other")


def round_trips(requests: Iterable[LoggedRequest]) -> int:
    """Return how many requests must have followed each other.

    It is the greatest number of requests of which no two were under way at once: three at the same time and then one are two
    round trips. Requests that could run at once must also be seen at once: count while a delay is in force (30 ms), because
    without one a fast answer is there before the next thread has asked.
    """
    count, free_from = 0, float("-inf")
    for request in sorted(requests, key=lambda request: request.ended):
        if request.began >= free_from:
            count, free_from = count + 1, request.ended
    return count


class RequestLog:
    """The requests, the oldest forgotten after many."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._requests: deque[LoggedRequest] = deque(maxlen=_MOST_KEPT)
        self._next = 0

    def add(self, **of_request: object) -> None:
        """Append a request."""
        with self._lock:
            self._requests.append(LoggedRequest(number=self._next, **of_request))  # type: ignore[arg-type]
            self._next += 1

    def mark(self) -> int:
        """Return the number that the next request will have."""
        with self._lock:
            return self._next

    def since(self, mark: int) -> list[LoggedRequest]:
        """Return the requests from a mark on."""
        with self._lock:
            first = self._requests[0].number if self._requests else 0
            return list(itertools.islice(self._requests, max(0, mark - first), None))
