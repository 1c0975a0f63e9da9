"""What a registry has answered: asked for once, and a few of it again each time, so that another answer is noticed.

A schema by its version, or by its id, never changes, unless a registry is set up again. Then it may have the same numbers for
other schemas. So some answers are asked for again at each reading, those first that were longest ago; where one has changed,
all are.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from threading import Lock
from typing import Generic, TypeVar

Key = TypeVar("Key")
Answer = TypeVar("Answer")
AtOnce = Callable[[Callable[[Key], None], Sequence[Key]], object]
"""Calls a function with each of many values, several at once, until a deadline."""


class KnownAnswers(Generic[Key, Answer]):
    """Answers of a registry. Threads may share it."""

    def __init__(self, most_again: int, is_final: Callable[[Answer], bool] = lambda _: True) -> None:
        """Know nothing yet.

        Args:
            most_again: How many answers are asked for again at one reading, besides those of the newest.
            is_final: Whether an answer is one that usually stays. Of the others as many are asked for again.
        """
        self._most_again, self._is_final = most_again, is_final
        self._known: dict[Key, Answer] = {}
        """Those first that were asked for longest ago."""
        self._lock = Lock()

    def known(self) -> Collection[Key]:
        """Return what has an answer."""
        with self._lock:
            return [*self._known]

    def forget(self, kept: Collection[Key] = ()) -> None:
        """Forget all answers but some."""
        with self._lock:  # Answers to questions that are under way go into the dictionary of before.
            self._known = {one: answer for one, answer in self._known.items() if one in kept}

    def read(
        self, keys: Sequence[Key], newest: Collection[Key], ask: Callable[[Key], Answer], at_once: AtOnce[Key]
    ) -> dict[Key, Answer]:
        """Return the answer for each key.

        What was answered before an error is there the next time.

        Args:
            keys: All that the registry has.
            newest: Those of them that are asked for again in any case.
            ask: Asks the registry.
            at_once: Calls it.

        Raises:
            Exception: What ``ask`` and ``at_once`` raise.
        """
        if self._ask(self._unknown(keys) + self._again(keys, newest), ask, at_once):
            self._ask(self._unknown(keys), ask, at_once)
        with self._lock:
            return {one: self._known[one] for one in keys if one in self._known}

    def _unknown(self, keys: Sequence[Key]) -> list[Key]:
        with self._lock:
            return [one for one in keys if one not in self._known]

    def _again(self, keys: Sequence[Key], newest: Collection[Key]) -> list[Key]:
        wanted = {*keys}
        with self._lock:
            there = [(one, answer) for one, answer in self._known.items() if one in wanted]
        again = [one for one, _ in there if one in newest]
        for is_final in (True, False):
            some = [one for one, answer in there if one not in newest and self._is_final(answer) == is_final]
            again += some[: self._most_again]
        return again

    def _ask(self, keys: Sequence[Key], ask: Callable[[Key], Answer], at_once: AtOnce[Key]) -> bool:
        """Ask for answers; return whether one is not what it was, and all others are forgotten therefore."""
        with self._lock:
            into = self._known
        answered: set[Key] = set()
        changed: set[Key] = set()

        def note(key: Key) -> None:
            answer = ask(key)
            with self._lock:
                if key in into and into.pop(key) != answer:
                    changed.add(key)
                into[key] = answer
                answered.add(key)

        try:
            if keys:
                at_once(note, keys)
        finally:
            if changed:
                self.forget(answered)
        return bool(changed)


def has_lost(known: Iterable[tuple[str, int]], listed: Collection[tuple[str, int]]) -> bool:
    """Return whether a subject has a version no more that it had, and that is not one of its oldest. Pure.

    Args:
        known: Subjects and numbers of versions that it had.
        listed: Those that it has.
    """
    first: dict[str, int] = {}
    for subject, number in listed:
        first[subject] = min(number, first.get(subject, number))
    return any(one not in listed and one[1] > first.get(one[0], 0) for one in known)
