"""A stream in small that commits without a pause, and takes over what maintenance has prepared."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from lakebound.control.folder import ControlFolder
from lakebound.control.handover import Answer, Offer, TakeOffers
from lakebound.control.lease import acquire, release
from lakebound.spec.table import TableSpec
from lakebound.tables.places import Places
from lakebound.tables.take_over import Committer, take_over
from tests.support.tables.local_tables import PIPELINE, Lander, lander


@dataclass
class Answers:
    """Offers that note how they were answered."""

    control: ControlFolder
    given: list[Answer] = field(default_factory=list)
    kinds: list[str] = field(default_factory=list)

    def offers(self, table: str) -> Iterator[Any]:
        """Take what is offered."""
        for offer in TakeOffers(self.control)(table):
            self.kinds.append(offer.body.partition('"kind":"')[2].partition('"')[0])
            yield _Noting(offer, self.given)


@dataclass(frozen=True)
class _Noting:
    offer: Offer
    given: list[Answer]

    @property
    def body(self) -> str:
        return self.offer.body

    def answer(self, answer: Answer) -> None:
        self.given.append(answer)
        self.offer.answer(answer)


@dataclass
class Inline:
    """Hands over to an application that takes it at once, after something has happened."""

    app: Lander
    before: Callable[[], object] = lambda: None
    answer_: Answer | None = None
    body: str = ""

    def __call__(self, body: str, since_ms: int) -> Answer | None:
        self.before()
        self.before, self.body, app = (lambda: None), body, self.app
        app.view = take_over([self], app.table, app.view, Committer(app.epoch, lambda: None))
        return self.answer_

    def answer(self, answer: Answer) -> None:
        self.answer_ = answer


@dataclass
class TakingStream:
    """What such a stream did.

    Attributes:
        landed: One offset per commit, up to this one.
        answers: What it took.
        slowest_seconds: The longest time between two of its own commits.
    """

    app: Lander
    answers: Answers
    landed: int
    slowest_seconds: float = 0.0

    def land(self) -> None:
        """Land an offset, and take over what is there."""
        self.app.land(self.landed, self.landed + 1)
        self.landed += 1
        committer = Committer(self.app.epoch, lambda: None)
        offers = self.answers.offers(self.app.table.spec.id)
        self.app.view = take_over(offers, self.app.table, self.app.view, committer)


@contextmanager
def taking_stream(spec: TableSpec, at: Places, landed: int, *, every_seconds: float = 0.0) -> Iterator[TakingStream]:
    """Run such a stream, which holds the pipeline's lease, beside the block.

    Args:
        spec: The table, which has landed so many offsets.
        at: Where it is.
        landed: The first offset to land.
        every_seconds: How long it rests after each commit.
    """
    control = ControlFolder(at.home, PIPELINE)
    lease = acquire(control, "stream", 3600, by_force=True)
    stream, stop = TakingStream(lander(spec, at, lease.epoch), Answers(control), landed), threading.Event()
    failed: list[Exception] = []

    def run() -> None:
        try:
            while not stop.wait(every_seconds):
                began = time.monotonic()
                stream.land()
                stream.slowest_seconds = max(stream.slowest_seconds, time.monotonic() - began)
        except Exception as exc:
            failed.append(exc)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield stream
    finally:
        stop.set()
        thread.join()
        release(control, lease)
    if failed:
        raise failed[0]
