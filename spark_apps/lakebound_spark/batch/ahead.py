"""The next item of a generator made by a thread, while the one before is used."""

from __future__ import annotations

import sys
from collections.abc import Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from typing import Any, TypeVar

T = TypeVar("T")

_TURN_SECONDS = 0.0005
"""How long Python runs one thread while another one waits. The thread that talks to the JVM waits about 40 times per slice.
With Python's own 5 ms that takes as long as to transform the slice."""
_END: Any = object()


def ahead(items: Generator[T]) -> Generator[T]:
    """Yield what a generator yields; a thread of its own asks for the next item, and closing waits for it.

    Raises:
        Exception: What the generator raises, when its turn comes.
    """
    with closing(items), _short_turns(), ThreadPoolExecutor(1, "reads-ahead") as thread:
        coming = thread.submit(next, items, _END)
        while (item := coming.result()) is not _END:
            coming = thread.submit(next, items, _END)
            yield item


@contextmanager
def _short_turns() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(_TURN_SECONDS)
    try:
        yield
    finally:
        sys.setswitchinterval(before)
