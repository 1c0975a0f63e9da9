"""What outlives a round: the memory of alerts, and the messages that are still to be delivered. One file, changed under a lock.

A message is written down together with the memory that says that it was said, and taken out when it was delivered. So none
is lost; one may be delivered twice if the sender dies between sending and writing, and then it has the same id.

While the disk of the state takes no file, the file is kept on a RAM disk of this machine, and without one in this process.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from pydantic import ValidationError

from lakebound.alerts.model import Memory, Message
from lakebound.control.fallback_files import (
    cannot_write,
    locked_anyway,
    locked_anyway_if_free,
    newest_copy,
    read_newest_json,
    write_json_anyway,
)
from lakebound.frozen import FrozenRecord

MOST_SHOWN_BYTES = 64 * 1024 * 1024
"""Of the file, for who only looks: that of a channel which takes nothing is large."""

MAX_OUTBOX = 1000
"""Of one channel: what is older is dropped when a channel takes nothing for so long."""

_in_this_process: dict[Path, AlertState] = {}
"""By file: what neither the disk of the state nor a RAM disk took."""


class Delivery(FrozenRecord):
    """A message on its way to one channel.

    Attributes:
        number: Grows; deliveries of one channel go out in its order.
        next_try_at: Epoch seconds.
        problem: Why the last try failed, without addresses or secrets.
        is_refused: Its channel took another message and not this one, so it comes after all others.
        is_unconnected: The last try found no connection, and the channel is one that may have none.
    """

    number: int
    channel: str
    message: Message
    tries: int = 0
    next_try_at: float = 0.0
    problem: str = ""
    is_refused: bool = False
    is_unconnected: bool = False


class AlertState(FrozenRecord):
    """The whole file.

    Attributes:
        dropped: Messages that were given up because their channel did not take them for too long.
        tidied_at: When old files of the state were last removed, in epoch seconds.
        reported_day: The last day (UTC) of which the daily report was made; None before the first one.
    """

    memory: Memory = Memory()
    outbox: tuple[Delivery, ...] = ()
    last_number: int = 0
    round_at: float = 0.0
    dropped: int = 0
    tidied_at: float = 0.0
    reported_day: date | None = None

    def queued(self, channel: str, message: Message) -> AlertState:
        """Return the state with one more delivery."""
        number = self.last_number + 1
        outbox = (*self.outbox, Delivery(number=number, channel=channel, message=message))
        own = [delivery for delivery in outbox if delivery.channel == channel]
        too_many = {delivery.number for delivery in own[: max(0, len(own) - MAX_OUTBOX)]}
        return self.model_copy(
            update={
                "outbox": tuple(delivery for delivery in outbox if delivery.number not in too_many),
                "last_number": number,
                "dropped": self.dropped + len(too_many),
            }
        )

    def without(self, number: int) -> AlertState:
        """Return the state after a delivery."""
        return self.model_copy(update={"outbox": tuple(one for one in self.outbox if one.number != number)})

    def replaced(self, delivery: Delivery) -> AlertState:
        """Return the state with another version of a delivery."""
        outbox = tuple(delivery if one.number == delivery.number else one for one in self.outbox)
        return self.model_copy(update={"outbox": outbox})

    def put_behind(self, number: int) -> AlertState:
        """Return the state with a delivery that comes after all others of its channel."""
        outbox = tuple(one.model_copy(update={"is_refused": True}) if one.number == number else one for one in self.outbox)
        return self.model_copy(update={"outbox": outbox})


@dataclass(frozen=True)
class Kept:
    """Where a state is kept.

    Attributes:
        problem: Why the disk of the state did not take it; None where it did.
        is_known_later: Whether the next round knows it. A process that ends after its round, where there is no RAM disk, takes
            it along; one that lives on for another round does not.
    """

    problem: OSError | None = None
    is_known_later: bool = True


class AlertStore:
    """The file ``<home>/alerts/state.json``."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.folder = home / "alerts"
        self.file = self.folder / "state.json"

    def read(self) -> AlertState:
        """Return the state; an unreadable file is moved aside, never deleted, and what is still wrong is reported again."""
        if self.file in _in_this_process:
            return _in_this_process[self.file]
        try:
            body = read_newest_json(self.file, None)
            return AlertState() if body is None else AlertState.model_validate(body)
        except (ValueError, ValidationError):
            unreadable = newest_copy(self.file)
            with contextlib.suppress(OSError):
                unreadable.replace(unreadable.with_suffix(".unreadable"))
            return AlertState()
        except PermissionError:
            if os.access(self.folder, os.W_OK):
                raise  # what is there would be replaced
            return AlertState()

    def look(self) -> AlertState | None:
        """Return the state for somebody who only looks and moves no file; None where it cannot be read."""
        try:
            body = read_newest_json(self.file, MOST_SHOWN_BYTES)
            return AlertState() if body is None else AlertState.model_validate(body)
        except (OSError, ValueError):
            return None

    def write(self, state: AlertState) -> Kept:
        """Replace the file; survives a power cut where the disk of the state takes it."""
        try:
            problem = write_json_anyway(self.file, state.model_dump(mode="json"), durable=True)
        except OSError as exc:
            if not cannot_write(exc):
                raise
            lives_on = self.file in _in_this_process
            _in_this_process[self.file] = state
            return Kept(exc, is_known_later=lives_on)
        _in_this_process.pop(self.file, None)
        return Kept(problem)

    @contextlib.contextmanager
    def changing(self) -> Iterator[None]:
        """Hold the file against everybody else who changes it. Nothing is sent meanwhile."""
        with locked_anyway(self.file):
            yield

    @contextlib.contextmanager
    def sending(self) -> Iterator[bool]:
        """Yield whether this process may send now; another may be at it, and then takes what is queued along."""
        with locked_anyway_if_free(self.folder / "sending") as is_mine:
            yield is_mine
