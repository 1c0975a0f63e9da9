"""What a registry has answered: asked for once, and a few of it again each time, so that another answer is noticed.

A schema by its version, or by its id, never changes, unless a registry is set up again. Then it may have the same numbers for
other schemas. So some answers are asked for again from time to time, those first that were longest ago; where one has changed,
all are. Nobody waits for these: an answer that comes too late is noted, and the others have their turn the next time.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from threading import Lock
from typing import Generic, TypeVar

from lakebound.errors import RegistryUnavailableError

Key = TypeVar("Key")
Answer = TypeVar("Answer")
AtOnce = Callable[[Callable[[Key], None], Sequence[Key]], object]
"""Calls a function with each of many values, several at once, until a deadline. It raises TimeoutError then."""


class KnownAnswers(Generic[Key, Answer]):
    """Answers of a registry. Threads may share it."""

    def __init__(self, most_again: int, is_final: Callable[[Answer], bool] = lambda _: True) -> None:
        """Know nothing yet.

        Args:
            most_again: How many answers are asked for again at one time, besides those of the newest.
            is_final: Whether an answer is one that usually stays. Of the others as many are asked for again, and where one of
                them is another, that says nothing of the rest.
        """
        self._most_again, self._is_final = most_again, is_final
        self._known: dict[Key, Answer] = {}
        """Those first that were asked for longest ago."""
        self._lock = Lock()

    def known(self) -> Mapping[Key, Answer]:
        """Return all answers."""
        with self._lock:
            return dict(self._known)

    def forget(self) -> None:
        """Forget all answers."""
        with self._lock:  # Answers to questions that are under way go into the dictionary of before.
            self._known = {}

    def read(self, keys: Sequence[Key], ask: Callable[[Key], Answer], at_once: AtOnce[Key]) -> dict[Key, Answer]:
        """Return the answer for each key; only those that are not known are asked for.

        What was answered before an error is there the next time. Where another thread forgets all meanwhile, they are asked for
        again: no key is left out.

        Args:
            keys: All that the registry has.
            ask: Asks the registry.
            at_once: Calls it.

        Raises:
            Exception: What ``ask`` and ``at_once`` raise.
        """
        while True:
            with self._lock:
                unknown = [one for one in keys if one not in self._known]
                if not unknown:
                    return {one: self._known[one] for one in keys}
            self._ask(unknown, ask, at_once)

    def again(self, keys: Sequence[Key], newest: Collection[Key], ask: Callable[[Key], Answer], at_once: AtOnce[Key]) -> bool:
        """Ask for some of the known answers again; return whether one is not what it was.

        Then all that were not asked for again just now are forgotten. That the registry is away, or slow, is no error.

        Args:
            keys: All that the registry has.
            newest: Those of them that are asked for in any case.
            ask: Asks the registry.
            at_once: Calls it.

        Raises:
            Exception: The registry refuses.
        """
        with self._lock:
            before = self._known
        try:
            self._ask(self._turn(keys, newest), ask, at_once, waits=False)
        except TimeoutError:
            pass
        with self._lock:
            return self._known is not before

    def _turn(self, keys: Sequence[Key], newest: Collection[Key]) -> list[Key]:
        """Return which are asked for again, those first that were asked for longest ago."""
        wanted = {*keys}
        left = {True: self._most_again, False: self._most_again}
        turn: list[Key] = []
        with self._lock:
            for one, answer in self._known.items():
                is_final = self._is_final(answer)
                if one in wanted and (one in newest or left[is_final] > 0):
                    turn.append(one)
                    left[is_final] -= one not in newest
        return turn

    def _ask(self, keys: Sequence[Key], ask: Callable[[Key], Answer], at_once: AtOnce[Key], *, waits: bool = True) -> None:
        """Ask for answers. Where one is not what it was, those that were not asked for with it are forgotten.

        Args:
            keys: What is asked for.
            ask: Asks the registry.
            at_once: Calls it.
            waits: Whether that the registry is away is an error; otherwise it was the turn of what it has not answered.
        """
        with self._lock:
            into = self._known
        answered: set[Key] = set()

        def note(key: Key) -> None:
            nonlocal into
            try:
                answer = ask(key)
            except RegistryUnavailableError:
                if waits:
                    raise
                with self._lock:
                    if key in into:
                        into[key] = into.pop(key)
                return
            with self._lock:  # Also after the deadline.
                is_other = key in into and self._is_another(into.pop(key), answer)
                into[key] = answer
                answered.add(key)
                if is_other and into is self._known:
                    into = self._known = {one: known for one, known in into.items() if one in answered}

        if keys:
            at_once(note, keys)

    def _is_another(self, before: Answer, answer: Answer) -> bool:
        return self._is_final(before) and self._is_final(answer) and before != answer


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
