"""What maintenance prepared, handed to the stream to commit: beside ten commits a second a slower commit loses its race.

Maintenance has written and synced everything that the commit names. What is left is small, and goes as a file into the
pipeline's folder: ``offered``. The stream, after a commit of its own to that table, takes it by renaming it, commits or refuses
it, and writes an ``answer``. Each step is one rename, and only one of two can succeed: the stream takes the offer, or
maintenance withdraws it. An offer that was taken and never answered may still be committed, so it is kept until nobody can.

Only pace depends on it. That a commit takes place once, on a table that is still what it was prepared for, is for the commit
itself to see to: who commits compares and swaps.
"""

from __future__ import annotations

import json
import os
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import structlog

from lakebound.control.folder import ControlFolder
from lakebound.control.lease import lease_is_live, readable_lease
from lakebound.control.private_files import make_private_folder, open_private

_YOUNG_SECONDS = 10.0
"""Maintenance withdraws an offer sooner; an older one was left by a run that was killed."""

_LOOKS_EVERY_SECONDS = 0.005
_LOOKS_FOR_TAKER = 400
"""Two seconds: a stream that lands records commits more often, and one that does not is no rival."""

_LOOKS_FOR_ANSWER = 4000
_MOST_REFUSALS = 3
"""One after the other: then the commit competes as it would without a hand-over."""

_KEPT_SECONDS = 24 * 3600.0
"""How long an offer that was taken and not answered counts as one that may still be committed."""

_OFFERED, _TAKEN, _ANSWER = "offered", "taken", "answer"
_log = structlog.get_logger(__name__)

OfferOutcome = Literal["committed", "refused", "unknown"]


@dataclass(frozen=True)
class Answer:
    """What became of an offer that the stream took.

    Attributes:
        outcome: ``unknown``: it may have been committed, or may still be; the table says it, and nothing that it names may be
            deleted.
        version: Of the commit.
        reason: Why not.
    """

    outcome: OfferOutcome
    version: str = ""
    reason: str = ""


Hands = Callable[[str, int], Answer | None]
"""A ``HandOver``, by what its call takes and returns."""


class HandOver:
    """Maintenance's side: offers commits to the stream that holds the pipeline's lease."""

    def __init__(self, control: ControlFolder, table: str) -> None:
        self._control = control
        self._folder = control.prepared(table)
        self._is_deaf = False
        self._refusals = 0

    def __call__(self, body: str, prepared_since_ms: int) -> Answer | None:
        """Offer a commit, and wait for what becomes of it.

        Args:
            body: The commit; what it means is for who commits it.
            prepared_since_ms: Epoch milliseconds before which nothing that it names was written.

        Returns:
            None: nobody took it, and nobody will. Once that has happened, or the stream has refused several in a row, no more
            are made.
        """
        if not self.is_open():
            return None
        try:
            path = self._offer(body, prepared_since_ms)
        except OSError as exc:
            _log.warning("not_handed_over", folder=str(self._folder), reason=str(exc))
            self._is_deaf = True
            return None
        answer = self._wait(path)
        self._refusals = self._refusals + 1 if answer is not None and answer.outcome == "refused" else 0
        self._is_deaf = answer is None or answer.outcome == "unknown" or self._refusals >= _MOST_REFUSALS
        return answer

    def is_open(self) -> bool:
        """Whether an offer would be made: a stream runs, and has not shown that it takes none.

        Where machines share state, the stream may be on another one, and does not see this folder: no offer is made.
        """
        if self._is_deaf or self._control.is_shared:
            return False
        lease = readable_lease(self._control)
        return lease is not None and lease_is_live(self._control, lease, time.time())

    def _offer(self, body: str, prepared_since_ms: int) -> Path:
        make_private_folder(self._folder)
        self._forget_old()
        path = self._folder / f"{uuid.uuid4().hex}.{_OFFERED}"
        draft = path.with_suffix(".draft")
        with open_private(draft, "w") as file:
            json.dump({"prepared_since_ms": prepared_since_ms, "body": body}, file)
        os.replace(draft, path)
        return path

    def _wait(self, path: Path) -> Answer | None:
        taken, answered = path.with_suffix(f".{_TAKEN}"), path.with_suffix(f".{_ANSWER}")
        for _ in range(_LOOKS_FOR_TAKER):
            if not path.exists():
                break
            time.sleep(_LOOKS_EVERY_SECONDS)
        try:
            os.unlink(path)
            return None
        except FileNotFoundError:
            pass
        for _ in range(_LOOKS_FOR_ANSWER):
            with suppress(FileNotFoundError):
                answer = Answer(**json.loads(answered.read_text()))
                for one in (taken, answered):
                    one.unlink(missing_ok=True)
                return answer
            time.sleep(_LOOKS_EVERY_SECONDS)
        return Answer("unknown", reason="the stream took it and did not answer")

    def _forget_old(self) -> None:
        for path in self._folder.iterdir():
            with suppress(OSError):
                if time.time() - path.stat().st_mtime > _KEPT_SECONDS:
                    path.unlink()


@dataclass(frozen=True)
class Offer:
    """A commit that the stream has taken from maintenance, and must answer."""

    path: Path
    body: str

    def answer(self, answer: Answer) -> None:
        """Say what became of it. Where that fails maintenance finds it out from the table."""
        answered = self.path.with_suffix(f".{_ANSWER}")
        draft = answered.with_suffix(".reply")
        with suppress(OSError):
            with open_private(draft, "w") as file:
                json.dump(vars(answer), file)
            os.replace(draft, answered)


class TakeOffers:
    """The stream's side."""

    def __init__(self, control: ControlFolder, *, clock: Callable[[], float] = time.time) -> None:
        self._control = control
        self._clock = clock

    def __call__(self, table: str) -> Iterator[Offer]:
        """Take what is offered for a table, the oldest first; where nothing is, that costs one look at a folder."""
        folder = self._control.prepared(table)
        try:
            names = os.listdir(folder)
        except OSError:
            return
        for path in sorted(folder / name for name in names if name.endswith(f".{_OFFERED}")):
            offer = self._take(path)
            if offer is not None:
                yield offer

    def _take(self, path: Path) -> Offer | None:
        taken = path.with_suffix(f".{_TAKEN}")
        try:
            if abs(self._clock() - path.stat().st_mtime) > _YOUNG_SECONDS:
                return None
            os.rename(path, taken)
            return Offer(taken, str(json.loads(taken.read_text())["body"]))
        except FileNotFoundError:
            return None  # withdrawn
        except (OSError, ValueError, KeyError, TypeError) as exc:
            _log.warning("offer_unreadable", offer=path.name, reason=f"{type(exc).__name__}: {exc}")
            return None


def outstanding_since_ms(control: ControlFolder, table: str, now_ms: int) -> int | None:
    """Return since when files were prepared for commits that may still take place; None where there are none.

    Args:
        control: The pipeline's folder.
        table: Id of the table.
        now_ms: Epoch milliseconds.
    """
    found: list[int] = []
    with suppress(OSError):
        for path in control.prepared(table).iterdir():
            with suppress(OSError, ValueError, KeyError, TypeError):
                if path.suffix in (f".{_OFFERED}", f".{_TAKEN}") and now_ms / 1000 - path.stat().st_mtime < _KEPT_SECONDS:
                    found.append(int(json.loads(path.read_text())["prepared_since_ms"]))
    return min(found, default=None)
