"""What stands before a real registry: the same answers, later, never, from another registry, or after a login."""

from __future__ import annotations

import base64
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from tests.support.registry.said_answers import HANG_UP, Said, SaidAnswers, Seen, answering_requests
from tests.support.registry.server import SchemaRegistry


@dataclass
class Front:
    """A running front.

    Attributes:
        registry: Which one answers.
        delay_seconds: How long each answer takes.
        is_away: Whether it hangs up.
        is_empty: Whether it has lost all that it had.
        login: User and password that it asks for.
        server: Where it listens.
    """

    registry: SchemaRegistry
    delay_seconds: float = 0.0
    is_away: bool = False
    is_empty: bool = False
    login: str | None = None
    server: SaidAnswers = field(init=False)

    @property
    def url(self) -> str:
        """Address of Confluent's API."""
        return self.server.url

    def answer(self, request: Seen) -> Said:
        """Return what the registry answers, or not."""
        time.sleep(self.delay_seconds)
        if self.is_away:
            return HANG_UP
        if self.login is not None and request.authorization != f"Basic {base64.b64encode(self.login.encode()).decode()}":
            return Said(b'{"error_code": 401, "message": "Unauthorized"}', 401)
        if self.is_empty:
            return Said(b'{"error_code": 40401, "message": "nothing is here"}', 404)
        try:
            with urllib.request.urlopen(f"{self.registry.url}{request.path}", timeout=60) as answer:
                return Said(answer.read(), answer.status)
        except urllib.error.HTTPError as exc:
            return Said(exc.read(), exc.code)


@contextmanager
def front_of(registry: SchemaRegistry) -> Iterator[Front]:
    """Run a front of a registry."""
    front = Front(registry)
    with answering_requests(front.answer) as front.server:
        yield front
