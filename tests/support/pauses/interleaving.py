"""Threads that run one at a time, each suspended and let go where a test says: the same schedule is the same run.

An actor passes a gate before each of its file operations (``tests.support.pauses.file_operations``). It stops at
the gate that it is told, or where it needs a lock that another actor holds.
"""

from __future__ import annotations

import sys
import threading
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

_own = threading.local()
DEADLINE_SECONDS = 120.0
"""An actor that neither ends nor passes a gate for so long hangs."""


class StuckError(AssertionError):
    """An actor hangs, or all wait for each other."""


class _AbandonedError(BaseException):
    """Ends an actor's thread whose run is over."""


@dataclass(frozen=True)
class Turn:
    """Let an actor run.

    Attributes:
        actor: Its number.
        stop_at: How many gates it has passed when it is suspended; None: it runs to its end.
    """

    actor: int
    stop_at: int | None = None


@dataclass
class Actor:
    """One who runs.

    Attributes:
        name: For messages.
        body: What it does.
        gates: What it was about to do at each gate that it passed.
        error: What it raised.
        was_blocked: Whether it ever waited for another actor's lock.
    """

    name: str
    body: Callable[[], None]
    gates: list[str] = field(default_factory=list)
    error: BaseException | None = None
    was_blocked: bool = False
    state: str = "new"
    stop_at: int | None = None
    _thread: threading.Thread | None = None
    _changed: threading.Condition = field(default_factory=threading.Condition)

    @property
    def has_ended(self) -> bool:
        """Whether it came to its end."""
        return self.state == "ended"

    def go_on(self, stop_at: int | None) -> None:
        """Let it run, and return when it is suspended, waits for a lock, or has ended.

        Raises:
            StuckError: It does none of it.
        """
        with self._changed:
            self.stop_at, is_new, self.state = stop_at, self.state == "new", "running"
            self._changed.notify_all()
            if is_new:
                self._thread = threading.Thread(target=self._run, name=f"actor {self.name}", daemon=True)
                self._thread.start()
            if not self._changed.wait_for(lambda: self.state != "running", DEADLINE_SECONDS):
                raise StuckError(f"{self.name} hangs after {self.gates[-3:]}:\n{self._stack()}")

    def pass_gate(self, operation: str) -> None:
        """Note what it is about to do, and suspend it where it is told to stop. Called in its thread."""
        if self.stop_at is not None and len(self.gates) >= self.stop_at:
            self._wait("suspended")
        self.gates.append(operation)

    def wait_for_lock(self) -> None:
        """Suspend it until another actor has gone on. Called in its thread."""
        self.was_blocked = True
        self._wait("blocked")

    def abandon(self) -> None:
        """End its thread where it stands."""
        if self._thread is None or self.has_ended:
            return
        with self._changed:
            self.state = "abandoned"
            self._changed.notify_all()
        self._thread.join(DEADLINE_SECONDS)

    def _wait(self, state: str) -> None:
        with self._changed:
            if self.state == "abandoned":
                return  # it is cleaning up behind itself
            self.state = state
            self._changed.notify_all()
            self._changed.wait_for(lambda: self.state in ("running", "abandoned"))
            if self.state == "abandoned":
                raise _AbandonedError

    def _run(self) -> None:
        _own.actor = self
        try:
            self.body()
        except BaseException as exc:  # the test decides what it means
            self.error = exc
        finally:
            _own.actor = None
            with self._changed:
                self.state = "ended"
                self._changed.notify_all()

    def _stack(self) -> str:
        frame = sys._current_frames().get(self._thread.ident or 0) if self._thread else None
        return "".join(traceback.format_stack(frame)) if frame else ""


def this_actor() -> Actor | None:
    """Return the actor whose thread this is, None in every other thread."""
    found: Actor | None = getattr(_own, "actor", None)
    return found


def interleave(actors: Sequence[Actor], turns: Sequence[Turn]) -> None:
    """Run the actors as the turns say, and then all to their ends.

    An actor that has ended misses its turn. One that waits for a lock goes on after the others.

    Raises:
        StuckError: An actor hangs, or all wait for each other.
    """
    try:
        for turn in turns:
            if not actors[turn.actor].has_ended:
                actors[turn.actor].go_on(turn.stop_at)
        while waiting := [actor for actor in actors if not actor.has_ended]:
            passed = sum(len(actor.gates) for actor in actors)
            for actor in waiting:
                actor.go_on(None)
            if all(actor.state == "blocked" for actor in waiting) and passed == sum(len(actor.gates) for actor in actors):
                raise StuckError(f"{', '.join(actor.name for actor in waiting)} wait for each other")
    finally:
        for actor in actors:
            actor.abandon()
