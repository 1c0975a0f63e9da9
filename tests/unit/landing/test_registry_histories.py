"""Any history of a registry: each record is read with the schema that wrote it, or with none, and no stream ends.

A registry is emptied, restored, loses versions and subjects, gives ids out again, is away, and does not let its user read
everything; the pipeline is restarted in between. The truth is a dictionary of what each id has meant.
"""

from __future__ import annotations

import heapq
import json
import random
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from tests.support.registry.named_schemas import ask_for
from tests.support.streams.long_form import LONG_FORM
from tests.support.waiting import STRETCH

from lakebound.control.folder import ControlFolder
from lakebound.errors import RegistryForbiddenError, RegistryUnavailableError, SchemaChangedError
from lakebound.formats.schemas import SchemaId, SchemaText
from lakebound.landing import at_once, listed_versions, registry_subjects
from lakebound.landing.at_once import AT_ONCE, Deadline
from lakebound.landing.listed_versions import MOST_AGAIN
from lakebound.landing.read_schemas import SchemaBook
from lakebound.landing.registry_subjects import RegistrySubjects
from lakebound.registry import asking
from lakebound.registry.client import (
    Imported,
    RegisteredSchema,
    RegistryClient,
    UnusableSchemaError,
    UnusableVersionError,
)
from lakebound.spec.pipeline import PipelineSpec
from lakebound.spec.registry import RegistrySpec
from lakebound.spec.value import SchemaValueSpec

SUBJECTS = ("orders-value", "returns-value")


def schema_of(names: str, kind: str) -> SchemaText:
    fields = [{"name": name, "type": ["null", kind], "default": None} for name in names]
    return SchemaText("avro", json.dumps({"type": "record", "name": "Order", "fields": fields}))


SCHEMAS = [schema_of(names, kind) for kind in ("long", "string") for names in ("a", "ab", "abc", "bc", "c")]


@dataclass
class Store:
    """What a registry has.

    Attributes:
        versions: Of each subject, ids by number.
        deleted: Subject and number of those that were deleted, but not for good.
        schemas: By id.
    """

    versions: dict[str, dict[int, int]] = field(default_factory=lambda: {one: {} for one in SUBJECTS})
    deleted: set[tuple[str, int]] = field(default_factory=set)
    schemas: dict[int, SchemaText] = field(default_factory=dict)

    def copy(self) -> Store:
        return Store({one: dict(of) for one, of in self.versions.items()}, set(self.deleted), dict(self.schemas))

    def only_deleted(self) -> set[int]:
        """Return the ids of which no version is there that was not deleted."""
        every = {(subject, number): one for subject, of in self.versions.items() for number, one in of.items()}
        return {*every.values()} - {one for place, one in every.items() if place not in self.deleted}

    def register(self, subject: str, schema: SchemaText) -> None:
        known = next((one for one, text in self.schemas.items() if text == schema), None)
        number = known or max(self.schemas, default=0) + 1
        self.schemas[number] = schema
        of = self.versions[subject]
        if number not in of.values():
            of[max(of, default=0) + 1] = number
        else:
            self.deleted -= {(subject, at) for at, one in of.items() if one == number}


class Registry(RegistryClient):
    """Answers from a store.

    Attributes:
        forbidden: Ids that its user may not read, by id or by version.
        forbidden_ids: The same, by id alone.
        torn: Ids of schemas that cannot be put together with what they import.
        behind: Lists that one server tells before it has the newest versions.
    """

    def __init__(self) -> None:
        super().__init__("shop", RegistrySpec.model_validate({"url": "http://registry.invalid"}))
        self.store, self.is_away = Store(), False
        self.forbidden: set[int] = set()
        self.forbidden_ids: set[int] = set()
        self.torn: set[int] = set()
        self.behind: dict[tuple[str, bool], list[int]] = {}
        self.clock = Clock()

    def _answers(self) -> None:
        self.clock.passes()
        if self.is_away:
            raise RegistryUnavailableError("shop", "http://registry.invalid", "no answer")

    def be_behind(self) -> None:
        """Tell the next reader of each list what is there now."""
        both = ((subject, deleted) for subject in self.store.versions for deleted in (False, True))
        self.behind = {(subject, deleted): self._listed(subject, deleted) for subject, deleted in both}

    def _listed(self, subject: str, deleted: bool) -> list[int]:
        return sorted(one for one in self.store.versions[subject] if deleted or (subject, one) not in self.store.deleted)

    def _allows(self, schema_id: SchemaId) -> None:
        if schema_id in self.forbidden:
            raise RegistryForbiddenError("shop", "http://registry.invalid", f"schema {schema_id}", "status 403")

    def schema(self, schema_id: SchemaId) -> SchemaText | None:
        if self.is_away:
            raise RegistryUnavailableError("shop", "http://registry.invalid", "no answer")
        self._allows(schema_id)
        if schema_id in self.forbidden_ids:
            raise RegistryForbiddenError("shop", "http://registry.invalid", f"schema {schema_id}", "status 403")
        if schema_id in self.torn and schema_id in self.store.schemas:
            raise UnusableSchemaError("what it imports is gone")
        return self.store.schemas.get(schema_id) if isinstance(schema_id, int) else None

    def versions(self, subject: str, *, deleted: bool = False) -> list[int]:
        self._answers()
        return self.behind.pop((subject, deleted), None) or self._listed(subject, deleted)

    def version(
        self, subject: str, number: int | None = None, *, deleted: bool = False, imported: Imported | None = None
    ) -> RegisteredSchema | None:
        self._answers()
        there = self._listed(subject, deleted)
        number = number or max(there, default=0)
        if number not in there:
            return None
        known = self.store.versions[subject][number]
        self._allows(known)
        if known in self.torn:
            raise UnusableVersionError("what it imports is gone", known, self.store.schemas[known])
        return RegisteredSchema(subject, number, known, self.store.schemas[known])

    def compatibility(self, subject: str) -> str | None:
        self._answers()
        return None


class Clock:
    """The time of deadlines: each answer of a registry takes some, and eight are under way at once."""

    def __init__(self) -> None:
        self.now, self.seconds = 0.0, 0.0

    def monotonic(self) -> float:
        self.now += 1e-6
        return self.now

    def passes(self) -> None:
        self.now += self.seconds

    def all_at_once(self, ask: Callable[[Any], Any], what: Sequence[Any], deadline: Deadline) -> list[Any]:
        """Do what ``at_once.all_at_once`` does, one after the other."""
        began = self.now
        free, found, late = [began] * AT_ONCE, [], False
        for one in what:
            self.now = heapq.heappop(free)
            if self.now >= deadline.ends and self.seconds:
                late = True
                break
            found.append(ask(one))
            heapq.heappush(free, self.now)
        self.now = max(free, default=began)
        if late or (self.now > deadline.ends and self.seconds):
            self.now = max(began, deadline.ends)
            raise TimeoutError
        return found

    def use(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(at_once, "time", self)
        monkeypatch.setattr(listed_versions, "all_at_once", self.all_at_once)


class World:
    """A pipeline of two topics, its table, and its registry."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.dice = random.Random(seed)
        self.control = ControlFolder(folder, "orders", None)
        self.registry, self.backups = Registry(), [Store()]
        self.table: dict[str, Any] = {}
        self.used: dict[SchemaId, str] = {}
        self.said: dict[SchemaId, str] = {}
        self.deleted: set[int] = set()
        self.read = self.refused = 0
        for subject in SUBJECTS:
            self.registry.store.register(subject, SCHEMAS[0])
        self.restart()

    def restart(self) -> None:
        spec = RegistrySpec.model_validate({"url": "http://registry.invalid"})
        subjects = RegistrySubjects("shop", spec, self.control, self.registry)
        body: dict[str, Any] = {"pipeline": "orders", "topics": ["orders", "returns"], "freshness": "1s"}
        body |= {"connection": {"bootstrap_servers": "nowhere:9092"}, "value": {"format": "avro", "registry": "shop"}}
        body |= {"tables": [{"format": "delta", "name": "orders"}]}
        self.book = SchemaBook(PipelineSpec.model_validate(body), {}, {"value": subjects}, learns=True)
        self.follow()

    def follow(self) -> None:
        """Settle the table, which takes further columns and no other types."""

        def settle(spec: PipelineSpec) -> None:
            assert isinstance(spec.value, SchemaValueSpec)
            columns = {one.name: one.type for one in spec.value.read.columns}
            if any(self.table.get(name, kind) != kind for name, kind in columns.items()):
                raise SchemaChangedError("orders", {"orders": ["another type"]})
            self.table |= columns

        self.book.followed(settle)

    def register(self) -> None:
        self.registry.store.register(self.dice.choice(SUBJECTS), self.dice.choice(SCHEMAS))

    def delete_softly(self) -> None:
        subject = self.dice.choice(SUBJECTS)
        self.registry.store.deleted |= {
            (subject, one) for one in self.registry.store.versions[subject] if self.dice.random() < 0.5
        }

    def delete_for_good(self) -> None:
        store, subject = self.registry.store, self.dice.choice(SUBJECTS)
        for number in [*store.versions[subject]]:
            if self.dice.random() < 0.5:
                del store.versions[subject][number]
        left = {one for of in store.versions.values() for one in of.values()}
        store.schemas = {one: schema for one, schema in store.schemas.items() if one in left}

    def empty(self) -> None:
        self.registry.store = Store()

    def empty_and_register(self) -> None:
        self.registry.store = Store()
        for _ in range(self.dice.randint(1, 3)):
            self.register()

    def give_ids_out_again(self) -> None:
        """Empty it, and fill it in the same shape: each subject has as many versions, by the same ids."""
        store = self.registry.store
        some = [*{schema.fingerprint: schema for schema in store.schemas.values()}.values()]
        others = self.dice.choice([self.dice.sample(SCHEMAS, len(some)), self.dice.sample(some, len(some)), some])
        store.schemas = dict(zip(store.schemas, others, strict=False))
        if others is some and store.schemas:  # Another one by one id alone, as that of an old version.
            unused = [one for one in SCHEMAS if one not in store.schemas.values()] or SCHEMAS[:1]
            store.schemas[self.dice.choice([*store.schemas])] = self.dice.choice(unused)

    def forbid_or_allow(self) -> None:
        self.registry.forbidden = set() if self.registry.forbidden else {self.dice.randint(1, 12) for _ in range(3)}

    def forbid_ids_or_allow(self) -> None:
        self.registry.forbidden_ids = set() if self.registry.forbidden_ids else {*range(1, 13)}

    def tear_or_mend(self) -> None:
        self.registry.torn = set() if self.registry.torn else {self.dice.randint(1, 12) for _ in range(3)}

    def register_and_be_behind(self) -> None:
        self.registry.be_behind()
        self.register()

    def back_up(self) -> None:
        self.backups.append(self.registry.store.copy())

    def restore(self) -> None:
        self.registry.store = self.dice.choice(self.backups).copy()

    def come_or_go(self) -> None:
        self.registry.is_away = not self.registry.is_away

    def live(self) -> None:
        """Do what an application does: look now and then, ask for what records name, settle, or start again."""
        wanted = {self.dice.randint(1, 12) for _ in range(3)}
        try:
            if self.dice.random() < 0.3:
                self.restart()
            if self.dice.random() < 0.5:
                self.book.look()
            before = {*self.refused_now()}
            ask_for(self.book, {"value": wanted})
            self.follow()
            self.judge_wanted(wanted - before)
            self.registry.behind = {}
            self.book.look()
            self.follow()
        except RegistryUnavailableError:
            assert self.registry.is_away
        if not self.registry.is_away:
            store = self.registry.store
            self.deleted = store.only_deleted()
            listed = {one for of in store.versions.values() for one in of.values()} - self.registry.forbidden
            self.said |= {one: store.schemas[one].fingerprint for one in listed}
        self.judge()

    def refused_now(self) -> dict[SchemaId, str]:
        value = self.book.followed(lambda spec: spec.value)
        assert isinstance(value, SchemaValueSpec) and value.read.known is not None
        return dict(value.read.known.refused)

    def judge_wanted(self, wanted: set[int]) -> None:
        """No record of a version of the pipeline's subjects is taken for one of another subject, or of none."""
        refused, store = self.refused_now(), self.registry.store
        own = {one for of in store.versions.values() for one in of.values()} - self.registry.forbidden - self.registry.torn
        for one in own & wanted & {*refused}:
            assert "no version of subject" not in refused[one] and "no schema with this id" not in refused[one], refused[one]
            assert "does not allow" not in refused[one], refused[one]

    def judge(self) -> None:
        value = self.book.followed(lambda spec: spec.value)
        assert isinstance(value, SchemaValueSpec) and value.read.known is not None
        writers = dict(value.read.known.writers)
        for one, schema in writers.items():
            if one in self.deleted and one not in self.used:
                continue  # It is read while the registry has it, and not kept.
            assert self.used.setdefault(one, schema.fingerprint) == schema.fingerprint, f"id {one} is read with two schemas"
            assert self.said.get(one, schema.fingerprint) == schema.fingerprint, f"id {one} means another schema now"
        reused = {one for one, used in self.used.items() if self.said.get(one, used) != used}
        gone = {*self.used} - reused - {*writers}
        assert not gone, f"{gone} was read before"
        assert not reused & {*writers}
        self.read += len(writers)
        self.refused += len(reused)


DEEDS: list[Callable[[World], None]] = [
    World.register, World.register, World.register, World.delete_softly, World.delete_for_good, World.empty,
    World.empty_and_register, World.back_up, World.restore, World.come_or_go,
    World.give_ids_out_again, World.forbid_or_allow, World.forbid_ids_or_allow, World.tear_or_mend,
    World.register_and_be_behind,
]  # fmt: skip


SEEDS, STEPS = (400, 25) if LONG_FORM else (12, 20)


@pytest.mark.parametrize("seed", range(SEEDS))
def test_any_history_of_a_registry_gives_each_record_its_own_schema_or_none(
    tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asking, "_AGAIN_SECONDS", 0.0)
    monkeypatch.setattr(registry_subjects, "_BEHIND_SECONDS", 0.0)
    world = World(tmp_path, seed)
    world.judge()
    for _ in range(STEPS):
        world.dice.choice(DEEDS)(world)
        world.live()
    assert world.read


def slow_registry(topics: int, versions: int, monkeypatch: pytest.MonkeyPatch) -> tuple[Registry, RegistrySubjects, list[str]]:
    """Return a registry of many versions, its subjects as a stream has read them, and their names."""
    registry = Registry()
    names = [f"topic{at}-value" for at in range(topics)]
    registry.store.versions = {name: {} for name in names}
    for name in names:
        for number in range(versions):
            registry.store.register(name, schema_of(f"a{chr(ord('c') + number % 20)}", "long" if number < 20 else "string"))
    registry.clock.use(monkeypatch)
    monkeypatch.setattr(registry_subjects, "_BEHIND_SECONDS", 0.0)
    spec = RegistrySpec.model_validate({"url": "http://registry.invalid"})
    subjects = RegistrySubjects("shop", spec, None, registry)
    subjects.versions(names)
    return registry, subjects, names


SLOW = [(1, 33, 3.0), (1, 40, 9.0), (100, 1, 0.5), (100, 1, 3.0), (20, 3, 9.0)]


@pytest.mark.parametrize(("topics", "versions", "seconds"), SLOW)
def test_a_registry_that_is_slow_gets_through(
    monkeypatch: pytest.MonkeyPatch, topics: int, versions: int, seconds: float
) -> None:
    """A new version is found by a record and by a look, in a bounded time, and each known version has its turn."""
    registry, subjects, names = slow_registry(topics, versions, monkeypatch)
    clock = registry.clock
    clock.seconds = seconds
    bound = 2 * (seconds * (2 * topics + versions) / AT_ONCE + 25)
    for look in (False, True):
        schema = schema_of("xy" if look else "x", "long")
        registry.store.register(names[-1], schema)
        new = max(registry.store.schemas)
        began, is_known = clock.now, False
        while not is_known:
            before = clock.now
            try:
                found = subjects.versions(names, or_kept=False) if look else subjects.newer(names, {new: schema})
                is_known = any(new in one.ids for one in found[names[-1]])
                assert is_known
            except RegistryUnavailableError:
                assert clock.now - before >= 19, "it is asked until the deadline"
            assert clock.now - before <= 26 + 2 * seconds, "records wait no longer than for a deadline"
            assert clock.now - began <= bound, "each try gets further"
    asked: set[tuple[str, int]] = set()
    version = registry.version

    def noting(subject: str, number: int | None = None, **named: Any) -> RegisteredSchema | None:
        asked.add((subject, number or 0))
        return version(subject, number, **named)

    monkeypatch.setattr(registry, "version", noting)
    places = {(subject, number) for subject, of in registry.store.versions.items() for number in of}
    looks = 0
    while asked != places:
        looks += 1
        assert looks <= 60 + len(places)
        try:
            subjects.versions(names, or_kept=False)
        except RegistryUnavailableError:
            continue


def test_a_registry_with_many_subjects_is_asked_for_its_modes_within_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    registry, subjects, names = slow_registry(100, 1, monkeypatch)
    registry.clock.seconds = 3.0
    asked = list[str]()

    def compatibility(subject: str) -> str:
        registry.clock.passes()
        asked.append(subject)
        return "BACKWARD"

    monkeypatch.setattr(registry, "compatibility", compatibility)
    while len(subjects.compatibility(names)) < len(names):
        before = registry.clock.now
        assert len(asked) <= 2 * len(names), "each look gets further"
        subjects.compatibility(names)
        assert registry.clock.now - before <= 8
    registry.clock.seconds = 0.0
    asked.clear()
    assert len(subjects.compatibility(names)) == len(names) and len(asked) == MOST_AGAIN


def test_a_look_while_a_record_is_asked_for_takes_no_version_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another version is deleted for good in between: the look forgets what is known while the other thread waits."""
    monkeypatch.setattr(registry_subjects, "_BEHIND_SECONDS", 0.0)
    world = World(tmp_path, 0)
    registry, subject = world.registry, SUBJECTS[0]
    for schema in SCHEMAS[1:5]:
        registry.store.register(subject, schema)
    world.book.look()
    world.follow()
    for schema in (SCHEMAS[5], schema_of("abcd", "long")):
        registry.store.register(subject, schema)
    asked, answer, version = threading.Event(), threading.Event(), registry.version
    numbers = sorted(registry.store.versions[subject])

    def gated(of: str, number: int | None = None, **named: Any) -> RegisteredSchema | None:
        if of == subject and number == numbers[-1] and not asked.is_set():
            asked.set()
            assert answer.wait(30 * STRETCH)
        return version(of, number, **named)

    monkeypatch.setattr(registry, "version", gated)
    new = registry.store.versions[subject][numbers[-1]]
    learning = threading.Thread(target=ask_for, args=(world.book, {"value": {new}}))
    learning.start()
    try:
        assert asked.wait(30 * STRETCH)
        gone = registry.store.versions[subject].pop(2)
        del registry.store.schemas[gone]
        world.book.look()
    finally:
        answer.set()
        learning.join(30 * STRETCH)
    assert not learning.is_alive()
    value = world.book.followed(lambda spec: spec.value)
    assert isinstance(value, SchemaValueSpec) and value.read.known is not None
    read, refused = {one for one, _ in value.read.known.writers}, dict(value.read.known.refused)
    assert new in read and new not in refused
    assert read >= {one for one, schema in registry.store.schemas.items() if schema in SCHEMAS[:5]}
    assert gone in read, "it was used"
