"""What a stream knows of its schemas: read once, asked for again when records name others, older where tables refuse."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import Event
from typing import Any

import pyarrow as pa
import pytest
from tests.support.registry.named_schemas import ask_for
from tests.support.waiting import STRETCH

from lakebound.control.findings import Finding, read_source
from lakebound.control.folder import ControlFolder
from lakebound.errors import LakeboundError, RegistryLoginError, RegistryUnavailableError, SchemaChangedError
from lakebound.formats.schemas import PartOfRecord, SchemaId, SchemaText
from lakebound.formats.versions import Version
from lakebound.landing.part_schemas import MOST_IN_VAIN, MOST_STRANGE
from lakebound.landing.read_schemas import ColumnsRefusedError, SchemaBook, SchemaRefusedError
from lakebound.landing.schema_findings import tell_not_followed
from lakebound.landing.table_settling import SOURCE
from lakebound.landing.used_schemas import MOST_NAMED
from lakebound.spec.key import SchemaKeySpec
from lakebound.spec.pipeline import PipelineSpec
from lakebound.spec.value import SchemaValueSpec


def avro(*names: str) -> SchemaText:
    fields = [{"name": name, "type": ["null", "long"], "default": None} for name in names]
    return SchemaText("avro", json.dumps({"type": "record", "name": "Order", "fields": fields}))


def pipeline(*, key: Mapping[str, Any] | None = None, topics: tuple[str, ...] = ("orders",), **value: Any) -> PipelineSpec:
    return PipelineSpec.model_validate(
        {
            "pipeline": "orders",
            "topics": topics,
            "connection": {"bootstrap_servers": "nowhere:9092"},
            "value": {"format": "avro", "registry": "shop", **value},
            **({"key": {"format": "avro", "registry": "shop", **key}} if key is not None else {}),
            "freshness": "1s",
            "tables": [{"format": "delta", "name": "orders"}],
        }
    )


@dataclass
class Subjects:
    """A registry in memory."""

    schemas: list[SchemaText]
    first_id: int = 1
    others: dict[SchemaId, SchemaText] = field(default_factory=dict)
    asked: list[SchemaId] = field(default_factory=list)

    def versions(self, subjects: Collection[str], *, or_kept: bool = True) -> Mapping[str, list[Version]]:
        versions = [Version(number, (self.first_id + number - 1,), one) for number, one in enumerate(self.schemas, 1)]
        return dict.fromkeys(subjects, versions)

    def newer(self, subjects: Collection[str], found: Mapping[SchemaId, SchemaText | str]) -> Mapping[str, Sequence[Version]]:
        return self.versions(subjects, or_kept=False)

    def keep(self, versions: Mapping[str, Sequence[Version]]) -> None:
        pass

    def compatibility(self, subjects: Collection[str]) -> Mapping[str, str]:
        return dict.fromkeys(subjects, "BACKWARD")

    def find(self, ids: Collection[SchemaId]) -> Mapping[SchemaId, SchemaText | str]:
        self.asked += ids
        known = {**dict(enumerate(self.schemas, self.first_id)), **self.others}
        return {one: known.get(one, "there is none") for one in ids}


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
    book = SchemaBook(pipeline(), {}, {"value": subjects}, learns=True)
    assert columns(book) == ["a"]
    subjects.schemas.append(avro("a", "b"))
    assert columns(book) == ["a"]
    ask_for(book, {"value": {2}})
    assert book.has_newer
    assert columns(book) == ["a", "b"]
    assert (book.has_newer, subjects.asked) == (False, [2])


def test_a_look_finds_a_version_before_a_record_names_it() -> None:
    subjects = Subjects([avro("a")])
    book = SchemaBook(pipeline(), {}, {"value": subjects}, learns=True)
    columns(book)
    book.look()
    assert not book.has_newer
    subjects.schemas.append(avro("a", "b"))
    book.look()
    assert book.has_newer
    assert columns(book) == ["a", "b"]


def test_the_first_look_finds_a_version_that_came_since_they_were_read() -> None:
    """Such as while the tables are settled."""
    subjects = Subjects([avro("a")])
    book = SchemaBook(pipeline(), {}, {"value": subjects}, learns=True)
    assert columns(book) == ["a"]
    subjects.schemas.append(avro("a", "b"))
    book.look()
    assert book.has_newer and columns(book) == ["a", "b"]
    book.look()
    assert not book.has_newer


def test_a_version_that_a_record_has_named_is_none_that_a_look_finds() -> None:
    subjects = Subjects([avro("a")])
    book = SchemaBook(pipeline(), {}, {"value": subjects}, learns=True)
    columns(book)
    book.look()
    subjects.schemas.append(avro("a", "b"))
    ask_for(book, {"value": {2}})
    assert columns(book) == ["a", "b"]
    book.look()
    assert not book.has_newer, "the query would end once more"


def test_a_schema_of_another_subject_is_none_of_this_pipeline() -> None:
    guid = "d9b6a9c4-5f7b-4a4e-8e6b-2d6a4f7f3a11"
    subjects = Subjects([avro("a")], 1, {7: avro("x"), guid: avro("a")})
    book = SchemaBook(pipeline(), {}, {"value": subjects}, learns=True)
    ask_for(book, {"value": {7, 8, guid}})
    assert refused(book) == {7: "it is no version of subject orders-value", 8: "there is none"}
    value = book.spec.value
    assert isinstance(value, SchemaValueSpec)
    assert value.read.known is not None
    assert guid in dict(value.read.known.writers)


def test_a_schema_that_is_laid_out_with_other_blanks_is_the_same() -> None:
    guid = "d9b6a9c4-5f7b-4a4e-8e6b-2d6a4f7f3a11"
    other = SchemaText("avro", json.dumps(json.loads(avro("a").text), indent=2))
    book = SchemaBook(pipeline(), {}, {"value": Subjects([avro("a")], 1, {guid: other})}, learns=True)
    ask_for(book, {"value": {guid}})
    assert refused(book) == {}


def test_versions_of_another_format_are_passed_over() -> None:
    other = SchemaText("json_schema", json.dumps({"type": "object", "properties": {"z": {"type": "integer"}}}))
    book = SchemaBook(pipeline(), {}, {"value": Subjects([avro("a"), other])}, learns=True)
    assert columns(book) == ["a"]
    assert refused(book) == {2: "it is a schema of json_schema, and the pipeline says `format: avro`"}


def test_two_versions_that_records_name_by_guids_are_read_side_by_side() -> None:
    """Also where the second one is learnt, and versions are read anew, after the first one."""
    first, second = "11111111-1111-1111-1111-111111111111", "22222222-2222-2222-2222-222222222222"
    subjects = Subjects([avro("a")], 1, {first: avro("a"), second: avro("a", "b")})
    book = SchemaBook(pipeline(), {}, {"value": subjects}, learns=True)
    ask_for(book, {"value": {first}})
    subjects.schemas.append(avro("a", "b"))
    for wanted in ({second}, {77}, {first, second}):
        ask_for(book, {"value": wanted})
        book.look()
    value = book.spec.value
    assert isinstance(value, SchemaValueSpec) and value.read.known is not None
    assert {one for one, _ in value.read.known.writers} == {1, 2, first, second}
    assert subjects.asked == [first, second, 77], "each is asked for once"
    book.look()
    assert not book.has_newer, "the query would end once more"


def test_random_ids_are_asked_for_up_to_a_bound() -> None:
    subjects = Subjects([avro("a")])
    book = SchemaBook(pipeline(), {}, {"value": subjects}, learns=True)
    ask_for(book, {"value": range(1_000, 1_000 + 5 * MOST_STRANGE)})
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
    book = SchemaBook(pipeline(), {}, {"value": subjects}, learns=True, clock=lambda: now[0])
    ask_for(book, {"value": range(1_000, 1_000 + MOST_STRANGE)})
    assert not asks(book)
    for seconds, is_asked_again in ((299.0, False), (2.0, True)):
        now[0] += seconds
        book.look()
        assert book.has_newer == is_asked_again
        assert asks(book) == is_asked_again


def test_ids_that_come_one_after_the_other_end_few_queries() -> None:
    subjects = Subjects([avro("a")])
    book = SchemaBook(pipeline(), {}, {"value": subjects}, learns=True)
    for number in range(MOST_IN_VAIN):
        assert asks(book)
        ask_for(book, {"value": [1_000 + number]})
    assert not asks(book)
    # What a look finds is read all the same.
    book.look()
    subjects.schemas.append(avro("a", "b"))
    book.look()
    assert book.has_newer and columns(book) == ["a", "b"]


def tables_with(*, without: Collection[str]) -> Callable[[PipelineSpec], list[str]]:
    """Return what refuses a pipeline with one of these columns of key or value, as tables do that have another type there."""

    def settle(spec: PipelineSpec) -> list[str]:
        names = [name for one in spec.schema_sources.values() for name in one.read.columns.names]
        if wrong := [name for name in names if name in without]:
            raise SchemaChangedError("orders", {"orders": [f"{name} is there already" for name in wrong]})
        return names

    return settle


def test_where_the_tables_cannot_follow_the_version_before_is_read() -> None:
    book = SchemaBook(pipeline(), {}, {"value": Subjects([avro("a"), avro("a", "b"), avro("a", "c")])}, learns=True)
    assert columns(book) == ["a", "c", "b"]
    assert book.followed(tables_with(without="c")) == ["a", "b"]
    assert list(refused(book)) == [3] and "c is there already" in refused(book)[3]
    assert book.followed(tables_with(without="bc")) == ["a"]
    assert sorted(refused(book), key=str) == [2, 3] and not book.has_newer
    with pytest.raises(SchemaChangedError, match="a is there already"):
        book.followed(tables_with(without="abc"))
    assert book.has_newer, "nothing was settled"
    assert list(book.passed_over["value"]) == [3, 2], "what was passed over before stays so"


@pytest.mark.parametrize(
    ("versions", "without", "gone"),
    [
        (["a", "ab", "ac"], "b", [2]),
        (["a", "ab", "ac", "acd", "abe"], "b", [2, 5]),
        (["a", "ab", "ac", "ad", "ae"], "bd", [2, 4]),
        (["a", "ab", "acb", "ac"], "b", [2, 3]),
    ],
)
def test_newer_versions_that_fit_are_read_though_one_between_them_does_not(
    versions: list[str], without: str, gone: list[int]
) -> None:
    """As at a start: nothing is known yet of versions that came while no application ran, or that did not fit before."""
    calls: list[list[str]] = []

    def settle(spec: PipelineSpec) -> list[str]:
        found = tables_with(without=without)(spec)
        calls.append(found)
        return found

    book = SchemaBook(pipeline(), {}, {"value": Subjects([avro(*one) for one in versions])}, learns=True)
    landed = book.followed(settle)
    assert sorted(book.passed_over["value"], key=str) == gone and not book.has_newer
    assert calls[-1] == landed == columns(book), "the tables are settled with what is read, at last"
    for one in gone:
        assert any(f"{name} is there already" in refused(book)[one] for name in without if name in versions[one - 1])


def test_newer_versions_that_cannot_be_read_are_told_before_a_record_comes(tmp_path: Path) -> None:
    nanos = {"name": "at", "type": {"type": "long", "logicalType": "timestamp-nanos"}}
    unreadable = SchemaText("avro", json.dumps(json.loads(avro("a").text) | {"fields": [nanos]}))
    subjects = Subjects([avro("a"), unreadable, avro("a", "b"), unreadable, unreadable])
    book = SchemaBook(pipeline(), {}, {"value": subjects}, learns=True)
    assert book.followed(tables_with(without="")) == ["a", "b"]
    assert not book.passed_over["value"] and sorted(book.not_followed["value"], key=str) == [4, 5], "not 2: a newer one is read"
    control = ControlFolder(tmp_path, "orders")

    def findings() -> tuple[Finding, ...]:
        found = read_source(control, SOURCE)
        assert found is not None
        return found.findings

    tell_not_followed(control, book.not_followed, {"value": frozenset({5})})
    found = {one.evidence["schema"]: one for one in findings()}
    assert {name: one.runbook for name, one in found.items()} == {"4": "schema-changed", "5": "schema-id-reused"}
    assert "at" in found["4"].what
    subjects.schemas.append(avro("a", "b", "c"))
    book.look()
    assert book.followed(tables_with(without="")) == ["a", "b", "c"]
    tell_not_followed(control, book.not_followed, book.reused)
    assert not findings()


def both(values: list[SchemaText], keys: list[SchemaText], **key: Any) -> SchemaBook:
    subjects: dict[PartOfRecord, Any] = {"value": Subjects(values), "key": Subjects(keys, 101)}
    return SchemaBook(pipeline(key=key), {}, subjects, learns=True)


@pytest.mark.parametrize(
    ("without", "landed", "gone"),
    [
        ("", "abxyz", {"value": [], "key": []}),
        ("b", "axyz", {"value": [2], "key": []}),
        ("z", "abxy", {"value": [], "key": [103]}),
        ("yz", "abx", {"value": [], "key": [102, 103]}),
        ("bz", "axy", {"value": [2], "key": [103]}),
    ],
)
def test_only_the_part_at_fault_is_read_with_the_version_before(without: str, landed: str, gone: dict[str, list[int]]) -> None:
    book = both([avro("a"), avro("a", "b")], [avro("x"), avro("x", "y"), avro("x", "z")])
    assert sorted(book.followed(tables_with(without=without))) == [*landed]
    assert {part: sorted(found, key=str) for part, found in book.passed_over.items()} == gone


def test_ids_that_records_name_are_those_of_key_or_value() -> None:
    book = both([avro("a")], [avro("x")])
    assert book.followed(tables_with(without="")) == ["a", "x"]
    ask_for(book, {"key": {5}})
    assert book.has_newer
    key = book.spec.key
    assert isinstance(key, SchemaKeySpec) and key.read.known is not None
    assert dict(key.read.known.refused) == {5: "there is none"} and refused(book) == {}


def test_columns_of_key_and_value_with_one_name_are_a_named_mistake() -> None:
    with pytest.raises(ColumnsRefusedError, match=r"key\.columns\[0\]: value gives a column a, too") as caught:
        _ = both([avro("a")], [avro("A")], columns=["A"]).spec
    assert caught.value.part == "key" and caught.value.is_refusal
    with pytest.raises(ColumnsRefusedError, match="key: columns: y is not one of the columns of the schema: x"):
        _ = both([avro("a")], [avro("x")], columns=["y"]).spec
    with pytest.raises(ColumnsRefusedError, match="one value without fields; name its column with as"):
        _ = both([avro("a")], [SchemaText("avro", '"long"')], columns=["value"]).spec
    with pytest.raises(ColumnsRefusedError, match=r"key\.as: value gives a column key, too"):
        _ = both([avro("key")], [SchemaText("avro", '"long"')]).spec


def test_a_version_whose_field_has_the_name_of_a_key_s_column_is_passed_over() -> None:
    book = both([avro("a"), avro("a", "k")], [avro("x")], **{"as": "k"})
    assert book.followed(tables_with(without="")) == ["a", "x"]
    assert "key.as: value gives a column k, too" in refused(book)[2]


def test_of_two_topics_only_the_one_at_fault_goes_back() -> None:
    class TwoSubjects(Subjects):
        def versions(self, subjects: Collection[str], *, or_kept: bool = True) -> Mapping[str, list[Version]]:
            assert list(subjects) == ["orders-value", "returns-value"]
            of_returns = [Version(1, (11,), avro("a", "r")), Version(2, (12,), avro("a", "s"))]
            return {**super().versions(["orders-value"]), "returns-value": of_returns}

    subjects: dict[PartOfRecord, Any] = {"value": TwoSubjects([avro("a"), avro("a", "b")])}
    book = SchemaBook(pipeline(topics=("orders", "returns")), {}, subjects, learns=True)
    assert sorted(book.followed(tables_with(without="s"))) == ["a", "b", "r"]
    assert [*book.passed_over["value"]] == [12]


@pytest.mark.parametrize("name", ["t", "A"])
def test_new_versions_of_two_topics_that_do_not_go_together_end_nothing(name: str) -> None:
    """They differ in the type of a column, or in the case of its name: one subject goes back by a version."""
    text = json.dumps(
        {"type": "record", "name": "Order", "fields": [{"name": "a", "type": "long"}, {"name": name, "type": "string"}]}
    )
    later = SchemaText("avro", text if name == "t" else text.replace('{"name": "a", "type": "long"}, ', ""))

    class TwoSubjects(Subjects):
        def versions(self, subjects: Collection[str], *, or_kept: bool = True) -> Mapping[str, list[Version]]:
            of_returns = [Version(1, (11,), avro("a")), Version(2, (12,), avro("a", "t"))][: len(self.schemas)]
            return {**super().versions(["orders-value"]), "returns-value": of_returns}

    subjects = TwoSubjects([avro("a")])
    book = SchemaBook(pipeline(topics=("orders", "returns")), {}, {"value": subjects}, learns=True)
    assert book.followed(tables_with(without="")) == ["a"]
    book.look()
    subjects.schemas.append(later)
    book.look()
    assert book.has_newer
    assert "a" in book.followed(tables_with(without=""))
    assert len(book.passed_over["value"]) == 1
    assert not book.has_newer, "the query would end once more"


def test_a_bounded_job_asks_for_nothing_later() -> None:
    value = SchemaBook(pipeline(), {}, {"value": Subjects([avro("a")])}).spec.value
    assert isinstance(value, SchemaValueSpec)
    assert value.read.known is not None
    assert not value.read.known.asks


def test_a_schema_without_columns_is_refused_by_name() -> None:
    with pytest.raises(SchemaRefusedError, match=r"orders.*avro"):
        _ = SchemaBook(pipeline(), {}, {"value": Subjects([SchemaText("avro", "{")])}).spec
    assert issubclass(SchemaRefusedError, LakeboundError)
    assert SchemaRefusedError.is_refusal
    with pytest.raises(SchemaRefusedError, match=r"orders.*key: its avro schema") as caught:
        _ = both([avro("a")], [SchemaText("avro", "{")]).spec
    assert caught.value.part == "key"


def test_newer_schemas_that_could_not_be_settled_are_still_newer() -> None:
    """Such as when a commit failed: the next query must not go on with the tables' old columns."""
    subjects = Subjects([avro("a")])
    book = SchemaBook(pipeline(), {}, {"value": subjects}, learns=True)
    assert book.followed(lambda spec: spec.pipeline) == "orders"
    assert not book.has_newer
    subjects.schemas.append(avro("a", "b"))
    ask_for(book, {"value": {2}})

    def fails(spec: PipelineSpec) -> None:
        raise OSError("the store is away")

    with pytest.raises(OSError, match="away"):
        book.followed(fails)
    assert book.has_newer
    assert book.followed(lambda spec: columns(book)) == ["a", "b"]
    assert not book.has_newer


class AwayForAWhile(Subjects):
    """A registry that does not answer at first."""

    error: LakeboundError | None = None

    def versions(self, subjects: Collection[str], *, or_kept: bool = True) -> Mapping[str, list[Version]]:
        self._answers()
        return super().versions(subjects)

    def find(self, ids: Collection[SchemaId]) -> Mapping[SchemaId, SchemaText | str]:
        self._answers()
        return super().find(ids)

    def compatibility(self, subjects: Collection[str]) -> Mapping[str, str]:
        self._answers()
        return super().compatibility(subjects)

    def _answers(self) -> None:
        if self.error is not None:
            raise self.error


@pytest.mark.parametrize("question", ["versions", "find"])
def test_while_a_registry_takes_its_time_what_is_known_is_read(monkeypatch: pytest.MonkeyPatch, question: str) -> None:
    subjects = Subjects([avro("a")], others={7: avro("other")})  # Something is found: so versions are read, too.
    book = SchemaBook(pipeline(), {}, {"value": subjects}, learns=True)
    assert columns(book) == ["a"]
    asked, answer, ask = Event(), Event(), getattr(subjects, question)

    def slow(*arguments: Any, **named: Any) -> Any:
        asked.set()
        assert answer.wait(30 * STRETCH)
        return ask(*arguments, **named)

    monkeypatch.setattr(subjects, question, slow)
    with ThreadPoolExecutor(2) as pool:
        learning = pool.submit(ask_for, book, {"value": {7}})
        try:
            assert asked.wait(30 * STRETCH)
            assert pool.submit(columns, book).result(30 * STRETCH) == ["a"]
        finally:
            answer.set()
        learning.result(30 * STRETCH)
    assert refused(book) == {7: "it is no version of subject orders-value"}


@pytest.mark.parametrize("away", ["value", "key"])
def test_one_registry_that_is_away_keeps_nobody_from_asking_the_other(away: PartOfRecord) -> None:
    """The first refusal is told, and where there is none the first outage: a person has to look at the former."""
    subjects = {"value": AwayForAWhile([avro("a")]), "key": AwayForAWhile([avro("k")], 101)}
    here: PartOfRecord = "key" if away == "value" else "value"
    book = SchemaBook(pipeline(key={}), {}, subjects, learns=True)
    book.followed(tables_with(without=""))
    subjects[away].error = RegistryUnavailableError("shop", "http://nowhere", "refused")
    subjects[here].schemas.append(avro("a" if here == "value" else "k", "new"))
    with pytest.raises(RegistryUnavailableError):
        book.look()
    assert book.has_newer and "new" in book.followed(tables_with(without=""))
    subjects[here].schemas.append(avro("a" if here == "value" else "k", "new", "newest"))
    for part, ids in (("value", {2, 3}), ("key", {102, 103})):
        book.want(part, ids)  # type: ignore[arg-type]
    with pytest.raises(RegistryUnavailableError):
        book.ask()
    assert book.away is not None and "newest" in book.followed(tables_with(without=""))
    assert [one.part for one in book.in_use()] == ["value", "key"]
    subjects[here].error = LakeboundError("no login")
    for asks in (book.look, book.ask):
        book.want(here, {999})
        with pytest.raises(LakeboundError, match="no login"):
            asks()


def test_what_records_want_is_asked_for_until_the_registry_answers() -> None:
    subjects = {"value": AwayForAWhile([avro("a")]), "key": AwayForAWhile([avro("k")], 100)}
    book = SchemaBook(pipeline(key={}), {}, subjects, learns=True)
    book.followed(tables_with(without=""))
    book.ask()
    assert (book.away, book.has_newer) == (None, False), "nothing is wanted"
    for part, ids in (("value", {2}), ("key", {101}), ("value", {3})):
        book.want(part, ids)  # type: ignore[arg-type]
    away = RegistryUnavailableError("shop", "http://nowhere", "refused")
    subjects["key"].error = away
    with pytest.raises(RegistryUnavailableError):
        book.ask()
    assert book.away is away and book.has_newer, "the part whose registry answers is read"
    book.followed(tables_with(without=""))
    with pytest.raises(RegistryUnavailableError):
        book.ask()
    assert not book.has_newer, "nothing is asked for twice, or the query would end again and again"
    subjects["key"].error = LakeboundError("no login")
    with pytest.raises(LakeboundError, match="no login"):
        book.ask()
    assert book.away is None, "a person has to look at it: it is not waited for"
    subjects["key"].error = None
    subjects["key"].schemas.append(avro("k", "l"))
    book.ask()
    assert book.away is None and book.has_newer
    book.followed(tables_with(without=""))
    book.ask()
    assert not book.has_newer
    assert sorted(subjects["value"].asked) == [2, 3]


def test_an_entry_names_the_schemas_in_use_and_a_later_start_compares_them() -> None:
    book = both([avro("a"), avro("a", "b")], [SchemaText("avro", '"long"')])
    book.followed(tables_with(without=""))
    named = book.named()
    assert sorted(named["shop"]) == ["1", "101", "2"] and {len(one) for one in named["shop"].values()} == {16}
    # The same registry: nothing is wrong.
    again = both([avro("a"), avro("a", "b")], [SchemaText("avro", ' "long" ')])
    again.know_entries([named, {}])
    assert again.followed(tables_with(without="")) == ["a", "b", "value"] and again.named() == named
    # A registry that was set up again gives the ids to other schemas, and the state is lost, too.
    other = both([avro("a"), avro("a", "c")], [SchemaText("avro", '"long"')])
    other.know_entries([{}, named])
    assert other.followed(tables_with(without="")) == ["a", "value"], "no table gets its columns"
    assert "has another schema by the id 2" in refused(other)[2]
    assert other.named() == named, "the next start must notice it, too"
    with pytest.raises(SchemaRefusedError, match="another schema by the id 1"):
        nothing = both([avro("z")], [SchemaText("avro", '"long"')])
        nothing.know_entries([named])
        nothing.followed(tables_with(without=""))
    # Under another name it is another registry.
    elsewhere = both([avro("z")], [SchemaText("avro", '"long"')])
    elsewhere.know_entries([{"old": named["shop"]}])
    assert elsewhere.followed(tables_with(without="")) == ["z", "value"]


def test_an_entry_names_a_bounded_number_of_schemas_the_newest_ones() -> None:
    texts = [avro(f"a{number}") for number in range(MOST_NAMED + 20)]
    book = SchemaBook(pipeline(), {}, {"value": Subjects(texts)}, learns=True)
    assert len(columns(book)) == len(texts)
    assert [*book.named()["shop"]] == [str(one) for one in range(len(texts), 20, -1)]


def test_what_is_in_use_is_told_of_key_and_value() -> None:
    book = both([avro("a")], [avro("x"), avro("x", "y")])
    assert book.in_use() == ()
    book.followed(tables_with(without=""))
    told = {one.part: (one.subjects[0].subject, [column.name for column in one.columns]) for one in book.in_use()}
    assert told == {"value": ("orders-value", ["a"]), "key": ("orders-key", ["x", "y"])}


def test_a_registry_that_refuses_keeps_nothing_of_the_other_part_from_being_told() -> None:
    subjects: dict[PartOfRecord, AwayForAWhile] = {"value": AwayForAWhile([avro("a")]), "key": AwayForAWhile([avro("k")])}
    book = SchemaBook(pipeline(key={}), {}, subjects, learns=True)
    book.followed(tables_with(without=""))
    subjects["value"].error = RegistryLoginError("shop", "http://nowhere", "status 401", "password")
    assert [one.part for one in book.in_use()] == ["value", "key"]


def test_a_version_that_is_refused_in_one_topic_alone_is_told() -> None:
    class TwoSubjects(Subjects):
        def versions(self, subjects: Collection[str], *, or_kept: bool = True) -> Mapping[str, list[Version]]:
            other = SchemaText("avro", avro("x").text.replace("Order", "Payment"))
            shared = Version(1, (2,), avro("a"))
            return {"orders-value": [Version(1, (1,), other), replace(shared, number=2)], "returns-value": [shared]}

    book = SchemaBook(pipeline(topics=("orders", "returns")), {}, {"value": TwoSubjects([])}, learns=True)
    book.followed(tables_with(without=""))
    assert "its record is Order" in book.not_followed["value"][2] and 2 not in refused(book)
    problems = {one.subject: one.versions[0].problem for one in book.in_use()[0].subjects}
    assert "its record is Order" in problems["orders-value"] and not problems["returns-value"]


def test_columns_that_the_pipeline_names_say_which_versions_are_read() -> None:
    nanos = {"type": "long", "logicalType": "timestamp-nanos"}
    fields = [[{"name": "at", "type": nanos}, {"name": "x", "type": kind}] for kind in ("int", "string")]
    texts = [
        SchemaText("avro", json.dumps({"type": "record", "name": "Order", "fields": one})) for one in (*fields, fields[0][1:])
    ]
    ddl, wanted = "at BIGINT NOT NULL", pa.schema([pa.field("at", pa.int64(), nullable=False)])
    book = SchemaBook(
        pipeline(schema=ddl), {}, {"value": Subjects(texts)}, learns=True, columns_of=lambda text: {ddl: wanted}[text]
    )
    value = book.spec.value
    assert isinstance(value, SchemaValueSpec) and value.read.known is not None
    assert value.read.columns == wanted and value.read.reader == texts[1]
    assert {one for one, _ in value.read.known.writers} == {1, 2} and "required" in refused(book)[3]
    (shown,) = book.in_use()
    assert [bool(one.problem) for one in shown.subjects[0].versions] == [True, False, False]
    of_file = pipeline(schema=ddl, registry=None, schema_file="order.avsc")
    value = SchemaBook(of_file, {"value": texts[0]}, {}, columns_of=lambda _: wanted).spec.value
    assert isinstance(value, SchemaValueSpec) and value.read.columns == wanted
