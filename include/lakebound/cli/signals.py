"""Ctrl-C and SIGTERM as requests that a command hears, not as exceptions in the middle of its work."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def on_stop_signals(ask: Callable[[int], None]) -> Iterator[None]:
    """Call ``ask`` with how many requests there have been, at each Ctrl-C and SIGTERM inside the block."""
    requests = 0

    def handler(_: int, __: FrameType | None) -> None:
        nonlocal requests
        requests += 1
        ask(requests)

    before = {number: signal.signal(number, handler) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, previous in before.items():
            signal.signal(number, previous)
