"""What a stream knows of its schemas: read once, asked for again when records name others, older where tables refuse."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from lakebound.errors import LakeboundError
from lakebound.formats.schemas import SchemaId, SchemaText
from lakebound.formats.versions import Version
from lakebound.landing.read_schemas import MOST_IN_VAIN, MOST_STRANGE, SchemaBook, SchemaRefusedError
from lakebound.spec.pipeline import PipelineSpec
from lakebound.spec.value import SchemaValueSpec


def avro(*names: str) -> SchemaText:
    fields = [{"name": name, "type": ["null", "long"], "default": None} for name in names]
    return SchemaText("avro", json.dumps({"type": "record", "name": "Order", "fields": fields}))


def pipeline(**value: Any) -> PipelineSpec:
    return PipelineSpec.model_validate(
        {
            "pipeline": "orders",
            "topics": ["orders"],
            "connection": {"bootstrap_servers": "nowhere:9092"},
            "value": {"format": "avro", "registry": "shop", **value},
            "freshness": "1s",
            "tables": [{"format": "delta", "name": "orders"}],
        }
    )


@dataclass
class Subjects:
    """A registry in memory."""

    schemas: list[SchemaText]
    others: dict[SchemaId, SchemaText] = field(default_factory=dict)
    asked: list[SchemaId] = field(default_factory=list)

    def versions(self, subjects: Collection[str]) -> Mapping[str, list[Version]]:
        assert list(subjects) == ["orders-value"]
        return {"orders-value": [Version(number, (number,), one) for number, one in enumerate(self.schemas, 1)]}

    def sign(self, subjects: Collection[str]) -> object:
        return len(self.schemas)

    def used(self, ids: Collection[SchemaId]) -> Mapping[SchemaId, SchemaText]:
        return {}

    def find(self, ids: Collection[SchemaId]) -> Mapping[SchemaId, SchemaText | str]:
        self.asked += ids
        return {one: self.others.get(one, "there is none") for one in ids}


def columns(book: SchemaBook) -> list[str]:
    value = book.spec.value
    assert isinstance(value, SchemaValueSpec)
    return list(value.read.columns.names)


def refused(book: SchemaBook) -> dict[SchemaId, str]:
    value = book.spec.value
    assert isinstance(value, SchemaValueSpec)
    assert value.read.known is not None
    return dict(value.read.known.refused)


def test_tables_that_follow_a_registry_get_new_columns() -> None:
    assert pipeline().schema_evolution == "add_columns"
    assert pipeline(schema="a BIGINT").schema_evolution == "refuse"


def test_a_version_that_a_record_names_is_read() -> None:
    subjects = Subjects([avro("a")])
    book = SchemaBook(pipeline(), {}, subjects, learns=True)
    assert columns(book) == ["a"]
    subjects.schemas.append(avro("a", "b"))
    assert columns(book) == ["a"]
    book.learn({2})
    assert book.has_newer
    assert columns(book) == ["a", "b"]
    assert (book.has_newer, subjects.asked) == (False, [])


def test_a_look_finds_a_version_before_a_record_names_it() -> None:
    subjects = Subjects([avro("a")])
    book = SchemaBook(pipeline(), {}, subjects, learns=True)
    columns(book)
    book.look()
    assert not book.has_newer
    subjects.schemas.append(avro("a", "b"))
    book.look()
    assert book.has_newer
    assert columns(book) == ["a", "b"]


def test_a_schema_of_another_subject_is_none_of_this_pipeline() -> None:
    guid = "d9b6a9c4-5f7b-4a4e-8e6b-2d6a4f7f3a11"
    subjects = Subjects([avro("a")], {7: avro("x"), guid: avro("a")})
    book = SchemaBook(pipeline(), {}, subjects, learns=True)
    book.learn({7, 8, guid})
    assert refused(book) == {7: "it is no version of subject orders-value", 8: "there is none"}
    value = book.spec.value
    assert isinstance(value, SchemaValueSpec)
    assert value.read.known is not None
    assert guid in dict(value.read.known.writers)


def test_random_ids_are_asked_for_up_to_a_bound() -> None:
    subjects = Subjects([avro("a")])
    book = SchemaBook(pipeline(), {}, subjects, learns=True)
    book.learn(range(1_000, 1_000 + 5 * MOST_STRANGE))
    value = book.spec.value
    assert isinstance(value, SchemaValueSpec)
    assert value.read.known is not None
    assert not value.read.known.asks
    assert len(subjects.asked) == len(refused(book)) == MOST_STRANGE


def asks(book: SchemaBook) -> bool:
    value = book.spec.value
    assert isinstance(value, SchemaValueSpec) and value.read.known is not None
    return value.read.known.asks


def test_after_some_minutes_random_ids_are_asked_for_again() -> None:
    """Also where no record can say so: a decoder that asks for nothing names no id."""
    now = [1_000.0]
    subjects = Subjects([avro("a")])
    book = SchemaBook(pipeline(), {}, subjects, learns=True, clock=lambda: now[0])
    book.learn(range(1_000, 1_000 + MOST_STRANGE))
    assert not asks(book)
    for seconds, is_asked_again in ((299.0, False), (2.0, True)):
        now[0] += seconds
        book.look()
        assert book.has_newer == is_asked_again
        assert asks(book) == is_asked_again


def test_ids_that_come_one_after_the_other_end_few_queries() -> None:
    subjects = Subjects([avro("a")])
    book = SchemaBook(pipeline(), {}, subjects, learns=True)
    for number in range(MOST_IN_VAIN):
        assert asks(book)
        book.learn([1_000 + number])
    assert not asks(book)
    # What a look finds is read all the same.
    book.look()
    subjects.schemas.append(avro("a", "b"))
    book.look()
    assert book.has_newer and columns(book) == ["a", "b"]


def test_where_the_tables_cannot_follow_the_version_before_is_read() -> None:
    book = SchemaBook(pipeline(), {}, Subjects([avro("a"), avro("a", "b"), avro("a", "c")]), learns=True)
    assert columns(book) == ["a", "c", "b"]
    assert book.pass_over_newest("table orders has c already")
    assert columns(book) == ["a", "b"]
    assert refused(book) == {3: "table orders has c already"}
    assert book.pass_over_newest("nor b")
    assert columns(book) == ["a"]
    assert not book.pass_over_newest("nor a")


def test_a_bounded_job_asks_for_nothing_later() -> None:
    value = SchemaBook(pipeline(), {}, Subjects([avro("a")])).spec.value
    assert isinstance(value, SchemaValueSpec)
    assert value.read.known is not None
    assert not value.read.known.asks


def test_a_schema_without_columns_is_refused_by_name() -> None:
    with pytest.raises(SchemaRefusedError, match=r"orders.*avro"):
        _ = SchemaBook(pipeline(), {}, Subjects([SchemaText("avro", "{")])).spec
    assert issubclass(SchemaRefusedError, LakeboundError)
    assert SchemaRefusedError.is_refusal


def test_newer_schemas_that_could_not_be_settled_are_still_newer() -> None:
    """Such as when a commit failed: the next query must not go on with the tables' old columns."""
    subjects = Subjects([avro("a")])
    book = SchemaBook(pipeline(), {}, subjects, learns=True)
    assert book.followed(lambda spec: spec.pipeline) == "orders"
    assert not book.has_newer
    subjects.schemas.append(avro("a", "b"))
    book.learn({2})

    def fails(spec: PipelineSpec) -> None:
        raise OSError("the store is away")

    with pytest.raises(OSError, match="away"):
        book.followed(fails)
    assert book.has_newer
    assert book.followed(lambda spec: columns(book)) == ["a", "b"]
    assert not book.has_newer
