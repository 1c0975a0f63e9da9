"""Which of many items a trial raises on, found by halving. Pure: the trial is the caller's."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

Found = TypeVar("Found")


class TooManyFoundError(Exception):
    """The search was given up, because it would take too long."""


def halved(count: int, trial: Callable[[int, int], Found | None], most: int) -> dict[int, Found]:
    """Return what the trial found of single items, by their positions; it is empty where only several together are bad.

    Of ``n`` items with ``k`` bad ones there are at most ``1 + 2 k (1 + ceil(log2 n))`` trials.

    Args:
        count: Number of items.
        trial: Returns what is wrong with the items from the first position up to before the second; None where nothing is.
        most: Number of bad items that are looked for.

    Raises:
        TooManyFoundError: There are more.
    """
    found: dict[int, Found] = {}
    parts = [(0, count)] if count else []
    while parts:
        first, end = parts.pop()
        wrong = trial(first, end)
        if wrong is None:
            continue
        if end - first > 1:
            middle = (first + end) // 2
            parts += [(middle, end), (first, middle)]
            continue
        if len(found) == most:
            raise TooManyFoundError
        found[first] = wrong
    return found
