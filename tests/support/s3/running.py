"""The test's side: starts the server as a process, chooses its faults, and counts requests."""

from __future__ import annotations

import json
import subprocess
import sys
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import httpx

from tests.support.s3.access import AccessKey
from tests.support.s3.faults import Fault
from tests.support.s3.request_log import LoggedRequest, round_trips
from tests.support.waiting import HANGS_SECONDS

_ROOT = Path(__file__).parents[3]


@dataclass
class Counted:
    """The requests between two marks."""

    requests: list[LoggedRequest] = field(default_factory=list)

    @property
    def total(self) -> int:
        """How many there were."""
        return len(self.requests)

    @property
    def round_trips(self) -> int:
        """How many of them must have followed each other; count while a delay is in force."""
        return round_trips(self.requests)

    def by(self, *names: str) -> Counter[Any]:
        """Return how many there were of each ``method``, ``operation``, ``key_class`` …; of several names, of each tuple."""
        return Counter(
            values[0] if len(names) == 1 else values
            for values in (tuple(getattr(request, name) for name in names) for request in self.requests)
        )

    def only(self, choose: Callable[[LoggedRequest], bool]) -> Counted:
        """Return the requests for which it is true."""
        return Counted([request for request in self.requests if choose(request)])


class _Control:
    def __init__(self, address: str) -> None:
        self._client = httpx.Client(base_url=address, timeout=HANGS_SECONDS, trust_env=False)

    def get(self, path: str, **query: Any) -> Any:
        return _said(self._client.get(path, params=query))

    def post(self, path: str, **sent: Any) -> Any:
        return _said(self._client.post(path, json=sent))

    def close(self) -> None:
        self._client.close()


class FaultControl:
    """The server's faults."""

    def __init__(self, control: _Control) -> None:
        self._control = control

    def add(self, fault: Fault) -> int:
        """Bring a fault into force; return its number."""
        return int(self._control.post("/faults", **asdict(fault)))

    def delay(self, seconds: float, **chosen: Any) -> int:
        """Let every request take longer, or those that ``chosen`` names; return the fault's number."""
        return self.add(Fault("delay", seconds=seconds, count=None, **chosen))

    def hits(self, number: int) -> int:
        """Return how many requests a fault has hit."""
        return int(self._control.get("/faults").get(str(number), 0))

    def remove(self, number: int) -> None:
        """End one fault."""
        self._control.post("/faults/remove", number=number)

    def clear(self) -> None:
        """End all faults; connections that are held in silence are closed."""
        self._control.post("/faults/clear")

    def go_away(self, seconds: float | None = None, refuse: bool = True) -> None:
        """Answer nothing for a time, or until `come_back`; connections are refused, or accepted and left hanging."""
        self._control.post("/away", seconds=seconds, refuse=refuse)

    def come_back(self) -> None:
        """End the time without answers."""
        self._control.post("/back")


class RequestCounters:
    """The server's log of requests."""

    def __init__(self, control: _Control) -> None:
        self._control = control

    def mark(self) -> int:
        """Return the mark of now."""
        return int(self._control.get("/mark"))

    def since(self, mark: int) -> Counted:
        """Return the requests from a mark on."""
        return Counted([LoggedRequest(**request) for request in self._control.get("/requests", since=mark)])

    @contextmanager
    def counting(self) -> Iterator[Counted]:
        """Yield what holds, when the block has ended, the requests of the block."""
        counted = Counted()
        mark = self.mark()
        yield counted
        counted.requests.extend(self.since(mark).requests)


class S3Server:
    """A running server.

    Args:
        folder: Where objects are kept as well, so that the next server finds them; None keeps them in memory only.
    """

    region = "us-east-1"

    def __init__(self, folder: Path | None = None) -> None:
        command = [sys.executable, "-m", "tests.support.s3.server", "--end-with-stdin"]
        command += [] if folder is None else ["--folder", str(folder)]
        self._process = subprocess.Popen(
            command, cwd=_ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True
        )
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"the S3 server did not start: exit code {self._process.wait()}")
        about = json.loads(line)
        self.endpoint: str = about["endpoint"]
        self.access_key = AccessKey(about["access_key_id"], about["secret_access_key"])
        self._control = _Control(about["control"])
        self.faults = FaultControl(self._control)
        self.counters = RequestCounters(self._control)

    def new_bucket(self, prefix: str = "bucket") -> str:
        """Create an empty bucket; return its name."""
        name = f"{prefix}-{uuid.uuid4().hex[:10]}"
        self._control.post("/buckets", name=name)
        return name

    def put_access_key(self, key: AccessKey) -> AccessKey:
        """Let the server know a key, or exchange the one with the same id."""
        self._control.post("/access-keys", **asdict(key))
        return key

    def remove_access_key(self, access_key_id: str) -> None:
        """Let the server forget a key."""
        self._control.post("/access-keys/remove", access_key_id=access_key_id)

    def stop(self) -> None:
        """End the process."""
        self._control.close()
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()


def _said(answer: httpx.Response) -> Any:
    if answer.status_code != 200:
        raise RuntimeError(f"the S3 server's control says: {answer.text}")
    return answer.json()
