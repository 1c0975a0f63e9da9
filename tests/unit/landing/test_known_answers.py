"""What a registry has answered is asked for once, and again in turns: each answer that changes is noticed, by few requests."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

import pytest

from lakebound.errors import RegistryUnavailableError
from lakebound.landing.known_answers import KnownAnswers, has_lost

MOST_AGAIN = 4


class Registry:
    """Counts what it is asked for, and may stop answering after some requests."""

    def __init__(self, answers: dict[int, str]) -> None:
        self.answers, self.asked = answers, list[int]()
        self.answers_left: int | None = None

    def ask(self, key: int) -> str:
        self.asked.append(key)
        return self.answers[key]

    def at_once(self, ask: Callable[[int], None], keys: Sequence[int]) -> None:
        for key in keys:
            if self.answers_left is not None:
                self.answers_left -= 1
                if self.answers_left < 0:
                    raise TimeoutError
            ask(key)

    def read(self, known: KnownAnswers[int, str]) -> dict[int, str]:
        """Read all answers, and some again, as a look does; return them. ``asked`` is what it took."""
        self.asked = []
        before = known.read([*self.answers], self.ask, self.at_once)
        if self.asked and len(self.asked) == len(before):
            return before
        known.again([*self.answers], {max(self.answers)}, self.ask, self.at_once)
        return known.read([*self.answers], self.ask, self.at_once)


@pytest.mark.parametrize("count", [1, 2, 4, 5, 6, 20, 41])
def test_each_answer_that_changes_is_noticed_within_a_bound_of_readings(count: int) -> None:
    for changed in range(count):
        registry, known = Registry(dict.fromkeys(range(count), "before")), KnownAnswers[int, str](MOST_AGAIN)
        assert registry.read(known) == registry.answers and len(registry.asked) == count
        for _ in range(random.Random(changed).randrange(3)):
            assert registry.read(known) == registry.answers
            assert len(registry.asked) <= MOST_AGAIN + 1, "what is known is asked for again in turns"
        registry.answers[changed] = "after"
        readings = 1
        while registry.read(known) != registry.answers:
            readings += 1
        assert readings <= -(-(count - 1) // MOST_AGAIN) or count == 1
        assert sorted(registry.asked) == [*range(count)], "where one has changed, all are asked for, each once"


def test_further_keys_are_asked_for_by_themselves() -> None:
    registry, known = Registry(dict.fromkeys(range(100), "there")), KnownAnswers[int, str](MOST_AGAIN)
    registry.read(known)
    registry.answers |= {100: "new", 101: "new"}
    assert registry.read(known) == registry.answers
    assert registry.asked[:2] == [100, 101] and len(registry.asked) <= 3 + MOST_AGAIN


def test_what_was_answered_before_an_error_is_not_asked_for_again() -> None:
    registry, known = Registry(dict.fromkeys(range(50), "there")), KnownAnswers[int, str](0)
    tries, asked = 0, list[int]()
    while True:
        registry.answers_left, registry.asked = 10, []
        try:
            found = known.read([*registry.answers], registry.ask, registry.at_once)
            break
        except TimeoutError:
            tries += 1
            asked += registry.asked
    assert found == registry.answers and tries == 4
    assert len(asked) == len({*asked})


@pytest.mark.parametrize("answered", range(1, 7))
def test_nobody_waits_for_what_is_known_and_each_has_its_turn(answered: int) -> None:
    registry, known = Registry(dict.fromkeys(range(30), "before")), KnownAnswers[int, str](MOST_AGAIN)
    registry.read(known)
    seen = set[int]()
    for _ in range(-(-30 // min(answered, MOST_AGAIN)) * 2):
        registry.answers_left, registry.asked = answered, []
        known.again([*registry.answers], {29}, registry.ask, registry.at_once)
        seen |= {*registry.asked}
        assert known.read([*registry.answers], registry.ask, registry.at_once) == registry.answers
    assert seen == {*range(30)}


@pytest.mark.parametrize("answered", range(1, 6))
def test_a_change_that_is_noticed_before_the_deadline_counts_at_the_next_reading(answered: int) -> None:
    registry, known = Registry(dict.fromkeys(range(30), "before")), KnownAnswers[int, str](MOST_AGAIN)
    registry.read(known)
    registry.answers = dict.fromkeys(range(30), "after")
    registry.answers_left = answered
    known.again([*registry.answers], {29}, registry.ask, registry.at_once)
    registry.answers_left = None
    assert known.read([*registry.answers], registry.ask, registry.at_once) == registry.answers


def test_a_change_that_is_noticed_after_the_deadline_counts_at_the_next_reading() -> None:
    registry, known = Registry(dict.fromkeys(range(30), "before")), KnownAnswers[int, str](MOST_AGAIN)
    registry.read(known)
    registry.answers = dict.fromkeys(range(30), "after")
    under_way: list[Callable[[], None]] = []

    def too_late(ask: Callable[[int], None], keys: Sequence[int]) -> None:
        under_way.append(lambda: ask(keys[0]))
        raise TimeoutError

    assert not known.again([*registry.answers], (), registry.ask, too_late)
    under_way[0]()
    assert known.read([*registry.answers], registry.ask, registry.at_once) == registry.answers


def test_one_answer_that_the_registry_never_gives_takes_no_turn_of_another() -> None:
    registry, known = Registry(dict.fromkeys(range(30), "there")), KnownAnswers[int, str](MOST_AGAIN)
    registry.read(known)
    seen = set[int]()

    def ask(key: int) -> str:
        if key < 3:
            raise RegistryUnavailableError("shop", "http://nowhere", "status 503")
        seen.add(key)
        return registry.answers[key]

    for _ in range(10):
        assert not known.again([*registry.answers], {29}, ask, registry.at_once)
    assert seen == {*range(3, 30)}


def test_a_problem_that_is_said_in_other_words_changes_nothing() -> None:
    answers = dict.fromkeys(range(60), "final")
    registry = Registry(answers)
    known = KnownAnswers[int, str](MOST_AGAIN, lambda one: one == "final")
    registry.read(known)
    for count in range(20):
        registry.answers[3] = f"refused for the {count}th time"
        registry.asked = []
        assert not known.again([*answers], {3, 59}, registry.ask, registry.at_once)
        assert len(registry.asked) <= 2 * MOST_AGAIN + 2 and known.known()[3] == registry.answers[3]


def test_answers_that_another_thread_forgets_meanwhile_are_asked_for_again() -> None:
    registry, known = Registry(dict.fromkeys(range(20), "there")), KnownAnswers[int, str](MOST_AGAIN)
    known.read([*range(10)], registry.ask, registry.at_once)

    forgets = iter([True])

    def ask(key: int) -> str:
        if key == 15 and next(forgets, False):
            known.forget()
        return registry.answers[key]

    assert known.read([*registry.answers], ask, registry.at_once) == registry.answers


def test_answers_that_may_change_any_time_have_a_bound_of_their_own() -> None:
    answers = {key: "final" if key % 2 else "missing" for key in range(60)}
    registry, known = Registry(answers), KnownAnswers[int, str](MOST_AGAIN, lambda one: one == "final")
    registry.read(known)
    seen: list[int] = []
    for _ in range(8):
        registry.read(known)
        assert len(registry.asked) <= 2 * MOST_AGAIN + 1
        seen += registry.asked
    assert {*seen} == {*range(60)}


@pytest.mark.parametrize(
    ("known", "listed", "lost"),
    [
        ([], [], False),
        ([1, 2], [1, 2, 3], False),
        ([1, 2, 3], [2, 3, 4], False),
        ([1, 2, 3], [1, 3], True),
        ([1, 2, 3], [1, 2], True),
        ([1, 2], [], True),
    ],
)
def test_a_subject_that_lacks_a_version_may_have_been_emptied(known: list[int], listed: list[int], lost: bool) -> None:
    assert has_lost([("s", one) for one in known], {("s", one) for one in listed}) == lost
    assert has_lost([("other", 1), *(("s", one) for one in known)], {("other", 1), *(("s", one) for one in listed)}) == lost
