"""Several requests to an object store at once: what is asked one after the other costs a round trip each."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import lru_cache
from typing import TypeVar

_T = TypeVar("_T")
_R = TypeVar("_R")

AT_ONCE = 32
"""How many requests one process has under way through ``begin`` and ``each``."""


def begin(ask: Callable[[], _R]) -> Future[_R]:
    """Begin a request, and return what its answer will be in. What is begun must not begin others and wait for them."""
    return _pool(os.getpid()).submit(ask)


def each(ask: Callable[[_T], _R], of: Iterable[_T]) -> list[_R]:
    """Return the answers of as many requests, in order.

    Raises:
        BaseException: What the first request that failed raised, when all have ended.
    """
    asked = [begin(lambda one=one: ask(one)) for one in of]  # type: ignore[misc]
    errors = [error for one in asked if (error := one.exception()) is not None]
    if errors:
        raise errors[0]
    return [one.result() for one in asked]


def ahead(ask: Callable[[_T], _R], of: Iterable[_T]) -> Iterator[_R]:
    """Yield the answers in order. Who takes one gets it alone; who goes on has ever more of them asked for ahead."""
    rest, asked, wanted = iter(of), deque[Future[_R]](), 1
    try:
        while True:
            while len(asked) < wanted and (one := next(rest, None)) is not None:
                asked.append(begin(lambda one=one: ask(one)))  # type: ignore[misc]
            if not asked:
                return
            yield asked.popleft().result()
            wanted = min(2 * wanted, AT_ONCE)
    finally:
        for future in asked:
            future.cancel()


@lru_cache(maxsize=2)
def _pool(process: int) -> ThreadPoolExecutor:
    """Return the threads of a process: a fork has none of its parent's."""
    return ThreadPoolExecutor(AT_ONCE, thread_name_prefix="lakebound-store")
