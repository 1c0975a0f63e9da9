"""A commit that was seen from outside, and how often a watch looks for the next one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol, TypeVar

from lakebound.errors import LakeboundError
from lakebound.storage.location import Location

T = TypeVar("T")

POLL_SECONDS = 0.005
REMOTE_POLL_SECONDS = 0.1
"""Where each look is a request to a store or a server. A commit counts as seen by up to this and a request's time too late."""


@dataclass(frozen=True)
class SeenCommit:
    """A commit that was seen: when, and the files that it added."""

    visible_at_ms: float
    files: tuple[Location, ...]


class CommitWatch(Protocol):
    """Watches one table of one format. What is there when it is made is not new."""

    def watch(self) -> None:
        """Note what becomes visible, until the watch is to end."""

    def commits(self) -> Iterator[SeenCommit]:
        """Yield the commits with new rows that became visible so far."""


def answer(ask: Callable[[], T]) -> T | None:
    """Return what a store or a server answers; None where it fails now: the next look sees the commit, later."""
    try:
        return ask()
    except (LakeboundError, OSError):
        return None
