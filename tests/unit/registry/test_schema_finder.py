"""Which schemas are found: within one deadline for all ids, and with a registry that is away."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.waiting import STRETCH

from lakebound.errors import RegistryForbiddenError, RegistryLoginError, RegistryUnavailableError
from lakebound.formats.schemas import SchemaId, SchemaText
from lakebound.registry.client import UnusableSchemaError
from lakebound.registry.finder import REFUSED_SECONDS, SchemaFinder
from lakebound.registry.finding import MANY_IDS, Answers, Late, found_of, ids_to_ask

A, B = SchemaText("avro", '"int"'), SchemaText("avro", '"string"')
AWAY = RegistryUnavailableError("company", "http://registry", "it is away")
LATE = Late("too late", RegistryUnavailableError("company", "http://registry", "slow"))
GUID = "8d7c1f60-6f3a-4a0e-9a6e-0f3a5a2b1c4d"


class Registry:
    """A registry that says what a test puts into it."""

    name, url = "company", "http://registry"

    def __init__(self, schemas: Mapping[SchemaId, SchemaText | Exception] | None = None) -> None:
        self.schemas: dict[SchemaId, SchemaText | Exception] = dict(schemas or {})
        self.before: Callable[[SchemaId], None] = lambda schema_id: None
        self.asked: list[SchemaId] = []
        self._lock = threading.Lock()

    def schema(self, schema_id: SchemaId) -> SchemaText | None:
        with self._lock:
            self.asked.append(schema_id)
        self.before(schema_id)
        found = self.schemas.get(schema_id)
        if isinstance(found, Exception):
            raise found
        return found


class Clock:
    now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


def make(registry: Registry, clock: Clock | None = None) -> SchemaFinder:
    return SchemaFinder(registry, clock or Clock())


def test_new_schemas_are_found_and_asked_for_once() -> None:
    registry = Registry({1: A, 2: B, GUID: A})
    finder = make(registry)
    for _ in range(3):
        found = finder.find([1, 2, GUID, 1], 5)
        assert (found.schemas, found.refused, found.away) == ({1: A, 2: B, GUID: A}, {}, None)
    assert sorted(registry.asked, key=str) == [1, 2, GUID]


def test_an_id_that_the_registry_does_not_have_is_asked_for_again_after_a_while_only() -> None:
    registry, clock = Registry({1: A}), Clock()
    finder = make(registry, clock)
    found = finder.find([1, 9], 5)
    assert found.schemas == {1: A} and found.away is None
    assert found.refused == {9: "the schema registry 'company' has no schema with this id"}
    assert registry.asked.count(9) == 2, "a registry may be behind for a moment"
    assert finder.find([9], 5).refused and registry.asked.count(9) == 2
    registry.schemas[9] = B
    clock.now += REFUSED_SECONDS + 1
    assert finder.find([9], 5).schemas == {9: B}


def test_a_registry_that_is_behind_for_a_moment_makes_no_refusal() -> None:
    registry = Registry()

    def comes_late(schema_id: SchemaId) -> None:
        if registry.asked.count(schema_id) == 2:
            registry.schemas[schema_id] = A

    registry.before = comes_late
    found = make(registry).find([7], 5)
    assert (found.schemas, found.refused) == ({7: A}, {})


def test_the_frame_of_apicurio_is_named() -> None:
    assert "Apicurio's serialisers write ids of eight bytes" in make(Registry()).find([0], 5).refused[0]


def test_a_schema_that_cannot_be_used_is_refused_by_name() -> None:
    registry = Registry({1: UnusableSchemaError("it has migration rules (x)")})
    found = make(registry).find([1], 5)
    assert found.refused == {1: "Lakebound cannot use the schema: it has migration rules (x)"} and found.away is None


def test_while_the_registry_is_away_known_ids_are_found_and_unknown_ones_are_waited_for() -> None:
    registry = Registry({1: A, 2: AWAY})
    finder = make(registry)
    assert finder.find([1], 5).schemas == {1: A}
    found = finder.find([1, 2], 5)
    assert (found.schemas, found.refused) == ({1: A}, {}) and found.away is AWAY
    before = len(registry.asked)
    assert finder.find([1], 5).schemas == {1: A} and finder.find([1], 5).away is None
    assert len(registry.asked) == before, "a known id does not wait for it"
    registry.schemas = {2: B}
    found = finder.find([1, 2], 5)
    assert (found.schemas, found.away) == ({1: A, 2: B}, None)


def test_a_refusal_of_the_registry_is_raised() -> None:
    with pytest.raises(RegistryLoginError):
        make(Registry({1: RegistryLoginError("company", "u", "no", "x")})).find([1], 5)


@pytest.mark.parametrize("there", [{}, {1: A}])
def test_one_schema_that_may_not_be_read_stops_nobody_who_may_read_others(there: dict[SchemaId, SchemaText]) -> None:
    registry = Registry({**there, 2: RegistryForbiddenError("company", "u", "schema 2", "status 403")})
    found = make(registry).find([*there, 2], 5)
    assert found.schemas == there and "does not allow its user to read schema 2" in found.refused[2]
    assert registry.asked.count(2) == 1


def test_thousands_of_ids_have_one_deadline_and_real_ones_come_first() -> None:
    registry = Registry({1: A, 17: B})
    registry.before = lambda schema_id: time.sleep(0.01)
    finder = make(registry)
    ids = [number * 7919 % 2**32 for number in range(10_000, 14_000)] + [17, 1]
    started = time.monotonic()
    found = finder.find(ids, 0.5)
    assert time.monotonic() - started < 5 * STRETCH
    assert found.schemas == {1: A, 17: B} and found.away is None and len(found.refused) == 4000
    assert len(registry.asked) < 4000 and any("did not answer within 0.5 s" in why for why in found.refused.values())


def test_a_registry_that_is_too_slow_for_one_id_is_an_outage() -> None:
    registry, hold = Registry({1: A}), threading.Event()

    def wait(schema_id: SchemaId) -> None:
        hold.wait(10)

    registry.before = wait
    found = make(registry).find([1], 0.2)
    hold.set()
    assert (found.schemas, found.refused) == ({}, {}) and found.away is not None and "within 0.2 s" in str(found.away)


def test_many_ids_and_a_registry_that_says_nothing_are_an_outage_and_no_refusal() -> None:
    registry, hold = Registry({1: A}), threading.Event()

    def wait(schema_id: SchemaId) -> None:
        hold.wait(10)

    registry.before = wait
    finder = make(registry)
    found = finder.find(range(5000), 0.2)
    assert (found.schemas, found.refused) == ({}, {}) and found.away is not None
    hold.set()
    assert finder.find([1], 5).schemas == {1: A}


def test_an_answer_that_comes_after_the_deadline_is_there_the_next_time() -> None:
    registry, hold = Registry({1: A}), threading.Event()

    def wait(schema_id: SchemaId) -> None:
        hold.wait(10)

    registry.before = wait
    finder = make(registry)
    for _ in range(3):
        assert finder.find([1], 0.05).away is not None
    assert registry.asked == [1]
    hold.set()
    assert finder.find([1], 5).schemas == {1: A} and registry.asked == [1]


def test_a_registry_that_goes_away_is_not_asked_for_all_the_others() -> None:
    registry = Registry()
    registry.schemas = dict.fromkeys(range(5000), AWAY)
    found = make(registry).find(range(5000), 5)
    assert found.away is AWAY and found.refused == {} and len(registry.asked) < 1000


IDS = st.lists(st.integers(0, 300) | st.uuids().map(str), max_size=200)


@given(IDS, st.sets(st.integers(0, 300)), st.sets(st.integers(0, 300)), st.sets(st.integers(0, 300)), st.booleans())
def test_each_id_has_one_fate(ids: list[SchemaId], kept: set[int], there: set[int], gone: set[int], is_away: bool) -> None:
    known: dict[SchemaId, SchemaText] = dict.fromkeys(kept, A)
    asked = ids_to_ask(ids, known)
    assert set(asked) == set(ids) - kept and len(asked) == len(set(asked))
    numbers = [one for one in asked if isinstance(one, int)]
    assert numbers == sorted(numbers) and asked[: len(numbers)] == numbers
    answers = Answers(
        {one: B for one in asked if one in there},
        {one: "no" for one in asked if one in gone - there},
        AWAY if is_away else None,
    )
    found = found_of(ids, {**known, **answers.schemas}, answers.refused, answers, LATE)
    left = {one for one in ids if one not in found.schemas and one not in found.refused}
    assert not set(found.schemas) & set(found.refused)
    assert {one for one in ids if one in kept | there} <= set(found.schemas)
    assert all(found.schemas[one] is A for one in ids if one in kept), "a known id never changes its schema"
    assert (found.away is not None) == bool(left)
    assert not left or is_away or len(left) <= MANY_IDS or not (answers.schemas or answers.refused)
    assert not (is_away and set(found.refused) - gone), "a registry that is away is no reason for a refusal"
