"""Which of many items a trial raises on, found by halving. Pure: the trial is the caller's."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeVar

Found = TypeVar("Found")


class TooManyFoundError(Exception):
    """The search was given up, because it would take too long."""


def halved(count: int, trial: Callable[[int, int], Found | None], most: int) -> dict[int, Found]:
    """Return what the trial found of single items, by their positions; it is empty where only several together are bad.

    Of ``n`` items with ``k`` bad ones there are at most ``1 + 2 k (1 + ceil(log2 n))`` trials, and never more than ``2 n``:
    where the first half of bad items is good, the second one is bad without a trial. Each item that is found had its own trial.

    Args:
        count: Number of items.
        trial: Returns what is wrong with the items from the first position up to before the second; None where nothing is.
        most: Number of bad items that are looked for.

    Raises:
        TooManyFoundError: There are more.
    """
    found: dict[int, Found] = {}
    parts = [_Part(0, count)] if count else []
    while parts:
        part = parts.pop()
        wrong = None
        if not part.is_bad or part.size == 1:
            wrong = trial(part.first, part.end)
            if wrong is None:
                if part.is_first_half:
                    parts.append(replace(parts.pop(), is_bad=True))
                continue
        if part.size > 1:
            middle = (part.first + part.end) // 2
            parts += [_Part(middle, part.end), _Part(part.first, middle, is_first_half=True)]
            continue
        if len(found) == most:
            raise TooManyFoundError
        if wrong is not None:
            found[part.first] = wrong
    return found


@dataclass(frozen=True)
class _Part:
    """Items from ``first`` up to before ``end``; of a first half, the second one is the next part."""

    first: int
    end: int
    is_first_half: bool = False
    is_bad: bool = False

    @property
    def size(self) -> int:
        return self.end - self.first
