"""The application notes what it reads its records with, and again when the registry has another version."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from tests.support.registry.named_schemas import ask_for
from tests.support.waiting import wait_until

from lakebound.control.folder import ControlFolder
from lakebound.control.schemas_in_use import read_schemas_in_use, told_schemas
from lakebound.errors import LakeboundError, RegistryUnavailableError
from lakebound.formats.schemas import SchemaId, SchemaText
from lakebound.formats.versions import Version
from lakebound.landing.read_schemas import SchemaBook
from lakebound.spec.pipeline import PipelineSpec
from lakebound_spark.stream.schema_watch import SchemaWatch

SPEC = PipelineSpec.model_validate(
    {
        "pipeline": "orders",
        "topics": ["orders"],
        "connection": {"bootstrap_servers": "nowhere:9092"},
        "value": {"format": "avro", "registry": "shop"},
        "freshness": "1s",
        "tables": [{"format": "delta", "name": "orders"}],
    }
)


def avro(*names: str) -> SchemaText:
    fields = [{"name": name, "type": ["null", "long"], "default": None} for name in names]
    return SchemaText("avro", json.dumps({"type": "record", "name": "Order", "fields": fields}))


class Subjects:
    """A registry in memory, away for the first answers."""

    def __init__(self) -> None:
        self.schemas, self.looks = [avro("a")], 0

    def versions(self, subjects: Collection[str], *, or_kept: bool = True) -> Mapping[str, list[Version]]:
        self.looks += 1
        if 1 < self.looks < 4:
            raise LakeboundError("the registry is away")
        return {"orders-value": [Version(number, (number,), one) for number, one in enumerate(self.schemas, 1)]}

    def newer(self, subjects: Collection[str], found: Mapping[SchemaId, SchemaText | str]) -> Mapping[str, Sequence[Version]]:
        return self.versions(subjects, or_kept=False)

    def keep(self, versions: Mapping[str, Sequence[Version]]) -> None:
        pass

    def compatibility(self, subjects: Collection[str]) -> Mapping[str, str]:
        return dict.fromkeys(subjects, "BACKWARD")

    def find(self, ids: Collection[SchemaId]) -> Mapping[SchemaId, SchemaText | str]:
        raise AssertionError("no record names another schema")


class AwayAtFirst(Subjects):
    """A registry that does not know at first what a record names."""

    def __init__(self) -> None:
        super().__init__()
        self.is_away, self.asked, self.looks = True, 0, 4

    def find(self, ids: Collection[SchemaId]) -> Mapping[SchemaId, SchemaText | str]:
        self.asked += 1
        if self.is_away:
            raise RegistryUnavailableError("shop", "http://nowhere", "refused")
        return {one: self.schemas[one - 1] if one in (1, 2)[: len(self.schemas)] else "there is none" for one in ids}


def lines(control: ControlFolder) -> str:
    record = read_schemas_in_use(control)
    return " ".join(told_schemas(record.parts)) if record is not None else ""


def test_what_is_in_use_is_noted_and_a_newer_version_when_it_is_read(tmp_path: Path) -> None:
    control, subjects = ControlFolder(tmp_path, "orders"), Subjects()
    book = SchemaBook(SPEC, {}, {"value": subjects}, learns=True)
    assert book.in_use() == (), "nothing was read yet"
    assert book.spec is not None
    watch = SchemaWatch(book, control, look_seconds=0.01)
    watch.start()
    try:
        wait_until(lambda: "version 1 (id 1); compatibility BACKWARD" in lines(control), 30, "what is in use is noted")
        subjects.schemas.append(avro("a", "b"))
        wait_until(lambda: book.has_newer, 30, "the newer version is seen")
        assert book.spec is not None
        wait_until(lambda: "version 2 added b" in lines(control), 30, "the newer version is noted")
    finally:
        watch.end()


def test_what_is_in_use_is_noted_as_soon_as_the_tables_follow(tmp_path: Path) -> None:
    control, subjects = ControlFolder(tmp_path, "orders"), AwayAtFirst()
    book = SchemaBook(SPEC, {}, {"value": subjects}, learns=True)
    book.followed(lambda spec: spec)
    watch = SchemaWatch(book, control, look_seconds=3_600)
    watch.start()
    try:
        wait_until(lambda: "version 1 (id 1)" in lines(control), 30, "what is in use is noted")
        subjects.is_away = False
        subjects.schemas.append(avro("a", "b"))
        ask_for(book, {"value": {2}})
        book.followed(lambda spec: spec)
        wait_until(lambda: "version 2 added b" in lines(control), 30, "the newer version is noted")
    finally:
        watch.end()


def test_a_schema_that_was_asked_for_in_vain_is_asked_for_again(tmp_path: Path) -> None:
    subjects = AwayAtFirst()
    book = SchemaBook(SPEC, {}, {"value": subjects}, learns=True)
    assert book.spec is not None
    book.want("value", {7})
    with suppress(RegistryUnavailableError):
        book.ask()
    assert book.away is not None
    watch = SchemaWatch(book, ControlFolder(tmp_path, "orders"), look_seconds=0.01)
    watch.start()
    try:
        wait_until(lambda: subjects.asked >= 3, 30, "the registry is asked again")
        assert not book.has_newer
        subjects.is_away = False
        wait_until(lambda: book.has_newer and book.away is None, 30, "what the record names is known")
    finally:
        watch.end()
