"""Any history of a registry: each record is read with the schema that wrote it, or with none, and no stream ends.

A registry is emptied, restored, loses versions and subjects, gives ids out again, is away, and does not let its user read
everything; the pipeline is restarted in between. The truth is a dictionary of what each id has meant.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from tests.support.registry.named_schemas import ask_for
from tests.support.streams.long_form import LONG_FORM

from lakebound.control.folder import ControlFolder
from lakebound.errors import RegistryForbiddenError, RegistryUnavailableError, SchemaChangedError
from lakebound.formats.schemas import SchemaId, SchemaText
from lakebound.landing.read_schemas import SchemaBook
from lakebound.landing.registry_subjects import RegistrySubjects
from lakebound.registry import asking
from lakebound.registry.client import Imported, RegisteredSchema, RegistryClient
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
    """Answers from a store."""

    def __init__(self) -> None:
        super().__init__("shop", RegistrySpec.model_validate({"url": "http://registry.invalid"}))
        self.store, self.is_away = Store(), False
        self.forbidden: set[int] = set()

    def _answers(self) -> None:
        if self.is_away:
            raise RegistryUnavailableError("shop", "http://registry.invalid", "no answer")

    def _allows(self, schema_id: SchemaId) -> None:
        if schema_id in self.forbidden:
            raise RegistryForbiddenError("shop", "http://registry.invalid", f"schema {schema_id}", "status 403")

    def schema(self, schema_id: SchemaId) -> SchemaText | None:
        self._answers()
        self._allows(schema_id)
        return self.store.schemas.get(schema_id) if isinstance(schema_id, int) else None

    def versions(self, subject: str, *, deleted: bool = False) -> list[int]:
        self._answers()
        return sorted(one for one in self.store.versions[subject] if deleted or (subject, one) not in self.store.deleted)

    def version(
        self, subject: str, number: int | None = None, *, deleted: bool = False, imported: Imported | None = None
    ) -> RegisteredSchema | None:
        self._answers()
        there = self.versions(subject, deleted=deleted)
        number = number or max(there, default=0)
        if number not in there:
            return None
        known = self.store.versions[subject][number]
        self._allows(known)
        return RegisteredSchema(subject, number, known, self.store.schemas[known])

    def compatibility(self, subject: str) -> str | None:
        self._answers()
        return None


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

    def back_up(self) -> None:
        self.backups.append(self.registry.store.copy())

    def restore(self) -> None:
        self.registry.store = self.dice.choice(self.backups).copy()

    def come_or_go(self) -> None:
        self.registry.is_away = not self.registry.is_away

    def live(self) -> None:
        """Do what an application does: look now and then, ask for what records name, settle, or start again."""
        try:
            if self.dice.random() < 0.3:
                self.restart()
            self.book.look()
            ask_for(self.book, {"value": {self.dice.randint(1, 12)}})
            self.follow()
        except RegistryUnavailableError:
            assert self.registry.is_away
        if not self.registry.is_away:
            store = self.registry.store
            self.deleted = store.only_deleted()
            listed = {one for of in store.versions.values() for one in of.values()} - self.registry.forbidden
            self.said |= {one: store.schemas[one].fingerprint for one in listed}
        self.judge()

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
    World.give_ids_out_again, World.forbid_or_allow,
]  # fmt: skip


SEEDS, STEPS = (400, 25) if LONG_FORM else (12, 20)


@pytest.mark.parametrize("seed", range(SEEDS))
def test_any_history_of_a_registry_gives_each_record_its_own_schema_or_none(
    tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asking, "_AGAIN_SECONDS", 0.0)
    world = World(tmp_path, seed)
    world.judge()
    for _ in range(STEPS):
        world.dice.choice(DEEDS)(world)
        world.live()
    assert world.read
