"""The versions of subjects, of a registry that is slow, away, emptied or wrong: what was used stays readable."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from tests.support.registry.named_schemas import ask_for
from tests.support.registry.said_answers import HANG_UP, Said, Seen, answering_requests

from lakebound.control.folder import ControlFolder
from lakebound.errors import RegistryAnswerError, RegistryRefusalError, RegistryUnavailableError
from lakebound.formats.schemas import SchemaId
from lakebound.landing import registry_subjects
from lakebound.landing.listed_versions import MOST_AGAIN
from lakebound.landing.read_schemas import SchemaBook
from lakebound.landing.registry_subjects import NoSuchSubjectError, RegistrySubjects
from lakebound.registry import client
from lakebound.spec.pipeline import PipelineSpec
from lakebound.spec.registry import RegistrySpec
from lakebound.spec.value import SchemaValueSpec

SUBJECT = "orders-value"


def order(*names: str) -> str:
    fields = [{"name": name, "type": ["null", "long"], "default": None} for name in names]
    return json.dumps({"type": "record", "name": "Order", "fields": fields})


@dataclass
class Registry:
    """A registry with one subject.

    Attributes:
        versions: Ids of its versions, by their numbers.
        schemas: By id.
        is_away: Whether it hangs up.
        answer: What it says to everything, if not what it should.
        together: How many requests have to come before the first is answered.
        deleted: Numbers of versions that it tells only to who asks for deleted ones, too.
        guids: Schemas by their GUID.
    """

    versions: dict[int, int] = field(default_factory=dict)
    schemas: dict[int, str] = field(default_factory=dict)
    is_away: bool = False
    answer: Said | None = None
    together: threading.Barrier | None = None
    deleted: set[int] = field(default_factory=set)
    guids: dict[str, str] = field(default_factory=dict)
    url: str = ""

    def say(self, request: Seen) -> Said:
        path = urlsplit(request.path).path.strip("/").split("/")
        if self.is_away:
            return HANG_UP
        if self.answer is not None:
            return self.answer
        if path[:2] == ["schemas", "ids"] and int(path[2]) in self.schemas:
            return said({"schema": self.schemas[int(path[2])]})
        if path[:2] == ["schemas", "guids"] and path[2] in self.guids:
            return said({"schema": self.guids[path[2]]})
        if path[:2] == ["subjects", SUBJECT] and self.versions:
            if len(path) == 3:
                is_asked = "deleted=true" in urlsplit(request.path).query
                return said(sorted(set(self.versions) - (set() if is_asked else self.deleted)))
            number = max(self.versions) if path[3] == "latest" else int(path[3])
            if number in self.versions:
                if self.together is not None:
                    self.together.wait(30)
                known = self.versions[number]
                return said({"subject": SUBJECT, "version": number, "id": known, "schema": self.schemas[known]})
        return Said(b'{"error_code": 40401, "message": "not found"}', 404)


def said(content: Any) -> Said:
    return Said(json.dumps(content).encode())


@contextmanager
def running(registry: Registry) -> Iterator[Registry]:
    with answering_requests(lambda seen: registry.say(seen)) as server:
        registry.url = server.url
        yield registry


@pytest.fixture
def registry() -> Iterator[Registry]:
    with running(Registry({1: 11, 2: 12}, {11: order("a"), 12: order("a", "b")})) as made:
        yield made


@pytest.fixture
def control(tmp_path: Path) -> ControlFolder:
    return ControlFolder(tmp_path, "orders", None)


def subjects_of(registry: Registry, control: ControlFolder | None) -> RegistrySubjects:
    spec = RegistrySpec.model_validate({"url": registry.url, "request_timeout_seconds": 30})
    return RegistrySubjects("shop", spec, control)


def book_of(registry: Registry, control: ControlFolder) -> SchemaBook:
    body: dict[str, Any] = {"pipeline": "orders", "topics": ["orders"], "freshness": "1s"}
    body |= {"connection": {"bootstrap_servers": "nowhere:9092"}}
    body |= {"value": {"format": "avro", "registry": "shop"}, "tables": [{"format": "delta", "name": "orders"}]}
    return SchemaBook(PipelineSpec.model_validate(body), {}, {"value": subjects_of(registry, control)}, learns=True)


def known(book: SchemaBook) -> tuple[list[str], set[SchemaId], dict[SchemaId, str]]:
    """Return the columns, the ids that are read, and those that are not, as of a pipeline whose tables follow them."""
    value = book.followed(lambda spec: spec.value)
    assert isinstance(value, SchemaValueSpec) and value.read.known is not None
    found = value.read.known
    return list(value.read.columns.names), {one for one, _ in found.writers}, dict(found.refused)


def test_a_slow_registry_is_asked_for_several_versions_at_once(control: ControlFolder) -> None:
    many = Registry({number: number for number in range(1, 25)}, {number: order("a", f"b{number}") for number in range(1, 25)})
    many.together = threading.Barrier(8)
    with running(many):
        [versions] = subjects_of(many, control).versions([SUBJECT]).values()
    assert [one.number for one in versions] == list(many.versions)


def test_a_registry_that_takes_too_long_for_all_versions_counts_as_away(
    registry: Registry, control: ControlFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    subjects = subjects_of(registry, control)
    used = subjects.versions([SUBJECT])
    subjects.keep(used)
    registry.together = threading.Barrier(100)  # So many never come.
    monkeypatch.setattr(registry_subjects, "_VERSIONS_SECONDS", 0.05)
    try:
        kept = subjects_of(registry, control).versions([SUBJECT])
        assert [one.schema for one in kept[SUBJECT]] == [one.schema for one in used[SUBJECT]]
        with pytest.raises(RegistryUnavailableError, match=r"within 0\.05 s for the 2 versions"):
            subjects_of(registry, None).versions([SUBJECT])
    finally:
        registry.together.abort()


def test_of_very_many_versions_the_newest_are_read(
    registry: Registry, control: ControlFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "MOST_VERSIONS", 1)
    [versions] = subjects_of(registry, control).versions([SUBJECT]).values()
    assert [one.number for one in versions] == [2]


def test_a_registry_that_was_emptied_takes_nothing_away(registry: Registry, control: ControlFolder) -> None:
    assert known(book_of(registry, control)) == (["a", "b"], {11, 12}, {})
    registry.versions, registry.schemas = {}, {}
    book = book_of(registry, control)
    assert known(book) == (["a", "b"], {11, 12}, {})
    # Random bytes meanwhile: nobody knows the schema, and the others go on.
    ask_for(book, {"value": [99]})
    columns, read, refused = known(book)
    assert (columns, read, set(refused)) == (["a", "b"], {11, 12}, {99})


def test_without_anything_that_was_used_a_missing_subject_is_a_refusal(registry: Registry, control: ControlFolder) -> None:
    registry.versions = {}
    with pytest.raises(NoSuchSubjectError, match="orders-value"):
        _ = book_of(registry, control).spec
    # A check keeps nothing, and tells of a subject that is gone also where a stream goes on without it.
    registry.versions = {1: 11}
    assert known(book_of(registry, control))[1] == {11}
    registry.versions = {}
    with pytest.raises(NoSuchSubjectError):
        subjects_of(registry, None).versions([SUBJECT])


def test_a_version_that_is_deleted_for_good_is_read_on(registry: Registry, control: ControlFolder) -> None:
    assert known(book_of(registry, control))[1] == {11, 12}
    del registry.versions[1], registry.schemas[11]
    book = book_of(registry, control)
    for _ in range(2):
        ask_for(book, {"value": [11, 98]})
        columns, read, refused = known(book)
        assert (columns, read, set(refused)) == (["a", "b"], {11, 12}, {98})
    # It stays known when another version comes.
    registry.versions[3], registry.schemas[13] = 13, order("c")
    ask_for(book, {"value": [13]})
    assert known(book)[:2] == (["c", "a", "b"], {11, 12, 13})


def test_an_id_that_another_schema_has_now_is_not_read(registry: Registry, control: ControlFolder) -> None:
    assert known(book_of(registry, control))[1] == {11, 12}
    del registry.versions[1]
    registry.schemas[11] = order("quite", "another")
    book = book_of(registry, control)
    ask_for(book, {"value": [11]})
    _, read, refused = known(book)
    assert read == {12} and "another schema by the id 11" in refused[11]


@pytest.mark.parametrize("used", [1, 2, 3])
def test_a_registry_that_counts_from_1_again_stops_nobody(registry: Registry, control: ControlFolder, used: int) -> None:
    """The producers of today register their newest schema again, which takes the id that the oldest one had."""
    names = ["a", "b", "c"][:used]
    registry.versions = {number: 10 + number for number in range(1, used + 1)}
    registry.schemas = {10 + number: order(*names[:number]) for number in range(1, used + 1)}
    running = book_of(registry, control)
    assert known(running) == (names, {*registry.schemas}, {})
    registry.versions, registry.schemas = {1: 11}, {11: order(*names, "d")}
    running.look()
    for book in (running, book_of(registry, control)):
        columns, read, refused = known(book)
        assert columns == names and read == {10 + number for number in range(2, used + 1)}
        assert [*refused] == [11] and "another schema by the id 11" in refused[11]
    # A newer version with an id of its own is read, and gives the columns.
    registry.versions[2], registry.schemas[99] = 99, order(*names, "d", "e")
    book = book_of(registry, control)
    columns, read, refused = known(book)
    assert {*columns} == {*names, "d", "e"} and read == {99, *range(12, 11 + used)} and [*refused] == [11]


def test_after_an_emptied_registry_the_newest_schema_stays_the_newest_while_it_is_away(
    registry: Registry, control: ControlFolder
) -> None:
    registry.versions, registry.schemas = {1: 11, 2: 12, 3: 13}, {11: order("a"), 12: order("b"), 13: order("c")}
    assert known(book_of(registry, control))[1] == {11, 12, 13}
    registry.versions, registry.schemas = {1: 21}, {21: order("z")}
    assert known(book_of(registry, control))[0] == ["z", "c", "b", "a"]
    registry.is_away = True
    columns, read, _ = known(book_of(registry, control))
    assert columns[0] == "z" and read == {11, 12, 13, 21}


def test_a_guid_that_was_used_is_read_like_an_id_when_the_registry_has_it_no_more(
    registry: Registry, control: ControlFolder
) -> None:
    first, other = "11111111-1111-1111-1111-111111111111", "22222222-2222-2222-2222-222222222222"
    registry.guids = {first: order("a"), other: order("strange")}
    book = book_of(registry, control)
    ask_for(book, {"value": {first, other}})
    _, read, refused = known(book)
    assert read == {11, 12, first} and [*refused] == [other]
    registry.is_away = True
    assert known(book_of(registry, control))[1] == {11, 12, first}
    # The version is deleted for good, by each of its names.
    registry.is_away, registry.guids = False, {}
    del registry.versions[1], registry.schemas[11]
    book = book_of(registry, control)
    ask_for(book, {"value": {11, first, other}})
    _, read, refused = known(book)
    assert read == {11, 12, first} and [*refused] == [other]


ODD: dict[str, dict[str, Any]] = {
    "a reference to the latest version": {"references": [{"name": "x", "subject": "x", "version": -1}]},
    "an id beyond 32 bits": {"id": 2**32},
    "a rule that is not said to be off or on": {
        "ruleSet": {"domainRules": [{"name": None, "type": "CEL", "disabled": None}]},
    },
    "a version that is no number": {"version": "three"},
}


@pytest.mark.parametrize("what", ODD)
def test_an_odd_answer_for_one_version_or_id_refuses_it_alone(
    registry: Registry, control: ControlFolder, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    registry.versions[3], registry.schemas[13], registry.schemas[77] = 13, order("c"), order("c")
    say = registry.say

    def odd(seen: Seen) -> Said:
        is_odd = seen.path.partition("?")[0].endswith(("/latest", "/3", "/13", "/77"))
        return said({"subject": SUBJECT, "version": 3, "id": 13, "schema": order("c"), **ODD[what]}) if is_odd else say(seen)

    monkeypatch.setattr(registry, "say", odd)
    with running(registry):
        book = book_of(registry, control)
        assert known(book)[:2] == (["a", "b"], {11, 12})
        book.look()
        ask_for(book, {"value": {13, 77}})
        columns, read, refused = known(book)
        assert (columns, read, {*refused}) == (["a", "b"], {11, 12}, {13, 77})


def test_what_was_used_since_the_last_look_is_nothing_new(registry: Registry, control: ControlFolder) -> None:
    """Each newer thing ends a query, which takes about a second."""
    guid = "11111111-1111-1111-1111-111111111111"
    registry.guids = {guid: order("a")}
    book = book_of(registry, control)
    for _ in range(2):
        assert known(book)[1] >= {11, 12}
        book.look()
        assert not book.has_newer
        registry.versions[3], registry.schemas[13] = 13, order("c")
        ask_for(book, {"value": {13, guid}})
    assert known(book)[1] == {11, 12, 13, guid}
    book.look()
    assert not book.has_newer


def test_a_look_that_the_registry_answers_in_part_is_no_look(
    registry: Registry, control: ControlFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each request is left without an answer once: afterwards the newer version is known all the same."""
    asked = 0
    while True:
        with running(Registry({1: 11}, {11: order("a")})) as some:
            book = book_of(some, ControlFolder(control.home / str(asked), "orders", None))
            assert known(book)[1] == {11}
            book.look()
            some.versions, some.schemas, count, say = {1: 11, 2: 12}, {11: order("a"), 12: order("a", "b")}, 0, some.say

            def once(seen: Seen, say: Any = say, silent: int = asked) -> Said:
                nonlocal count
                count += 1
                return HANG_UP if count == silent + 1 else say(seen)

            monkeypatch.setattr(some, "say", once)
            with suppress(RegistryUnavailableError):
                book.look()
            if count <= asked:
                break  # All of its requests had an answer.
            book.look()
            assert known(book)[1] == {11, 12}, f"request {asked + 1} had no answer"
        asked += 1
    assert asked >= 4


def test_an_id_beyond_those_of_a_registry_is_not_asked_for(registry: Registry, control: ControlFolder) -> None:
    """Half of all random bytes name one; Confluent's registry answers as of a path that it does not know."""
    book = book_of(registry, control)
    ask_for(book, {"value": [2**31, 2**32 - 1, 12]})
    _, read, refused = known(book)
    assert read == {11, 12} and {*refused} == {2**31, 2**32 - 1}


def test_a_version_that_one_of_several_registries_lacks_for_a_moment_is_asked_for_again(
    registry: Registry, control: ControlFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    book = book_of(registry, control)
    assert known(book)[1] == {11, 12}
    behind, say = dict(registry.versions), registry.say
    registry.versions[3], registry.schemas[13], there = 13, order("c"), {1: 11, 2: 12, 3: 13}

    def one_of_two(seen: Seen) -> Said:
        registry.versions = there if "/schemas/" in seen.path or one_of_two.found else behind  # type: ignore[attr-defined]
        one_of_two.found |= "/schemas/" in seen.path  # type: ignore[attr-defined]
        return say(seen)

    one_of_two.found = False  # type: ignore[attr-defined]
    monkeypatch.setattr(registry, "say", one_of_two)
    with running(registry):
        again = book_of(registry, control)
        ask_for(again, {"value": [13]})
        assert known(again)[1] == {11, 12, 13}


@pytest.mark.parametrize("others", [["c", "ab"], ["ab", "a"], ["c", "d"]])
def test_a_registry_that_is_filled_again_in_the_same_shape_is_noticed_by_the_next_look(
    registry: Registry, control: ControlFolder, others: list[str]
) -> None:
    """All producers register at once when it is back: the same numbers, and the same ids for other schemas."""
    book = book_of(registry, control)
    before = known(book)
    assert before == (["a", "b"], {11, 12}, {})
    registry.schemas = {11: order(*others[0]), 12: order(*others[1])}
    book.look()
    columns, read, refused = known(book)
    same = {one for one, names in ((11, "a"), (12, "ab")) if names == others[one - 11]}
    assert read == same and {*refused} == {11, 12} - same
    assert all("another schema by the id" in why for why in refused.values()) and {*columns} == {"a", "b"}


def test_a_look_reads_a_bounded_number_of_versions_and_each_in_its_turn(control: ControlFolder) -> None:
    numbers = range(1, 4 * MOST_AGAIN)
    many = Registry({number: number for number in numbers}, {number: order("a", f"b{number}") for number in numbers})
    with answering_requests(many.say) as server:
        many.url = server.url
        book = book_of(many, control)
        _ = known(book)
        for _ in range(2):
            before = len(server.seen)
            book.look()
            assert MOST_AGAIN < len(server.seen) - before <= MOST_AGAIN + 3
        many.schemas[3] = order("quite", "another")
        looks = 0
        while not book.has_newer:
            book.look()
            looks += 1
        assert looks <= 4
        assert "another schema by the id 3" in known(book)[2][3]


@pytest.mark.parametrize("count", [1, 3, 15])
def test_random_ids_take_no_versions_to_be_refused(control: ControlFolder, count: int) -> None:
    """A slow registry with many versions would hold records back for as long as it takes for all of them."""
    numbers = range(1, 101)
    many = Registry({number: number for number in numbers}, {number: order("a") for number in numbers})
    with answering_requests(many.say) as server:
        many.url = server.url
        book = book_of(many, control)
        _ = book.spec
        before = len(server.seen)
        ask_for(book, {"value": range(10_000, 10_000 + count)})
        asked = [one.path for one in server.seen[before:]]
        assert len(asked) == 2 * count + 2 and not any("/versions/" in one for one in asked)
        assert len([one for one in asked if "/schemas/ids/1" in one]) == 2 * count
        many.versions[101], many.schemas[101] = 101, order("a", "new")
        before = len(server.seen)
        ask_for(book, {"value": [101]})
        assert 101 in known(book)[1]
        assert len(server.seen) - before == 4, "the id, two lists, and the version"


def test_what_a_slow_registry_has_told_within_the_deadline_is_not_asked_for_again(
    control: ControlFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    numbers = range(1, 61)
    many = Registry({number: number for number in numbers}, {number: order("a", f"b{number}") for number in numbers})
    monkeypatch.setattr(registry_subjects, "_VERSIONS_SECONDS", 0.25)
    monkeypatch.setattr(registry_subjects, "_FURTHER_SECONDS", 0.25)

    def slow(seen: Seen) -> Said:
        time.sleep(0.02)
        return many.say(seen)

    with answering_requests(slow) as server:
        many.url = server.url
        subjects, tries = subjects_of(many, control), 0
        while True:
            try:
                [versions] = subjects.versions([SUBJECT]).values()
                break
            except RegistryUnavailableError:
                tries += 1
                assert tries < 20, "each try gets further"
        assert [one.number for one in versions] == [*numbers] and tries


def test_one_id_that_the_registry_never_has_holds_nobody_back(registry: Registry, control: ControlFolder) -> None:
    book = book_of(registry, control)
    for _ in range(3):
        ask_for(book, {"value": [77, 12]})
        _, read, refused = known(book)
        assert read == {11, 12} and "no schema with this id" in refused[77]


def test_a_registry_that_is_away_at_the_start_is_waited_for(registry: Registry, control: ControlFolder) -> None:
    registry.is_away = True
    book = book_of(registry, control)
    with pytest.raises(RegistryUnavailableError) as caught:
        _ = book.spec
    assert caught.value.passes
    registry.is_away = False
    assert known(book)[1] == {11, 12}


def test_away_between_two_records_a_new_schema_waits_and_the_others_stay(registry: Registry, control: ControlFolder) -> None:
    book = book_of(registry, control)
    before = known(book)
    registry.versions[3], registry.schemas[13] = 13, order("c")
    registry.is_away = True
    with pytest.raises(RegistryUnavailableError):
        ask_for(book, {"value": [13]})
    assert known(book) == before
    registry.is_away = False
    ask_for(book, {"value": [13]})
    assert known(book)[1] == {11, 12, 13}


NO_REGISTRY = {
    "a page": Said(b"<html>maintenance</html>"),
    "nothing": Said(b""),
    "other JSON": Said(b'{"status": "ok"}'),
    "a redirect": Said(b"", 302, {"Location": "http://127.0.0.1:1/login"}),
    "a gateway's 404": Said(b"<html>default backend - 404</html>", 404),
    "a 404 in JSON": Said(b'{"error": "no route"}', 404),
    "another status": Said(b"<html>not here</html>", 405),
    "a compressed page": Said(b"x", 200, {"Content-Encoding": "gzip"}),
}


@pytest.mark.parametrize("what", NO_REGISTRY)
def test_what_answers_in_place_of_the_registry_for_a_while_is_an_outage(
    registry: Registry, control: ControlFolder, what: str
) -> None:
    """Only where no registry has answered before, a person has to correct the address."""
    registry.answer = NO_REGISTRY[what]
    with pytest.raises(RegistryAnswerError, match="correct url"):
        _ = book_of(registry, control).spec
    registry.answer = None
    running = book_of(registry, control)
    before = known(running)
    registry.versions[3], registry.schemas[13], registry.answer = 13, order("a", "b"), NO_REGISTRY[what]
    started_meanwhile = book_of(registry, control)
    for book in (running, started_meanwhile):
        assert known(book) == before
        for ask in (lambda book=book: ask_for(book, {"value": {13}}), book.look):
            with pytest.raises(RegistryUnavailableError, match="what answers there at this moment is no schema registry"):
                ask()
        assert known(book) == before and book.away is not None
    with pytest.raises(RegistryAnswerError):  # As a check, which keeps nothing.
        subjects_of(registry, None).versions([SUBJECT])
    registry.answer = None
    for book in (running, started_meanwhile):
        book.ask()
        assert known(book)[1] == {11, 12, 13} and book.away is None


FIREWALL = {
    403: "what answers there at this moment is no schema registry: status 403 without a reason",
    401: "what answers there at this moment is no schema registry: status 401 without a reason; if it stays so, check",
}


@pytest.mark.parametrize("status", FIREWALL)
@pytest.mark.parametrize("body", [b"<html>blocked</html>", b"", b"[]"])
def test_a_refusal_without_a_reason_passes_where_a_registry_has_answered(
    registry: Registry, control: ControlFolder, status: int, body: bytes
) -> None:
    """Firewalls and limits of requests refuse like this; at a first start it may be the login, which a person mends."""
    registry.answer = Said(body, status)
    with pytest.raises(RegistryRefusalError):
        _ = book_of(registry, control).spec
    registry.answer = None
    book = book_of(registry, control)
    before = known(book)
    registry.versions[3], registry.schemas[13], registry.answer = 13, order("a", "b"), Said(body, status)
    for ask in (lambda: ask_for(book, {"value": {13}}), book.look):
        with pytest.raises(RegistryUnavailableError, match=FIREWALL[status]):
            ask()
    assert known(book) == before and known(book_of(registry, control)) == before
    registry.answer = Said(b'{"message": "Forbidden"}', status)
    with pytest.raises(RegistryRefusalError):
        book.look()
    registry.answer = None
    book.ask()
    assert known(book)[1] == {11, 12, 13}


GONE = {
    "an import that may not be read": Said(b'{"error_code": 40301, "message": "no"}', 403),
    "an import that is gone": Said(b'{"error_code": 40402, "message": "no"}', 404),
    "a version that may not be read": Said(b'{"error_code": 40301, "message": "no"}', 403),
}


@pytest.mark.parametrize("what", GONE)
def test_a_used_version_that_the_registry_cannot_give_any_more_stays_in_its_place(
    registry: Registry, control: ControlFolder, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    """It is the newest one, and its defaults are those of older records."""
    say, answers = registry.say, dict[str, Said]()
    imports = [{"name": "Pay", "subject": "pay", "version": 1}]
    pay = json.dumps({"type": "record", "name": "Pay", "fields": [{"name": "p", "type": "long"}]})
    newest = json.loads(order("a"))
    newest["fields"].append({"name": "pay", "type": ["null", "Pay"], "default": None})

    def with_imports(seen: Seen) -> Said:
        path = urlsplit(seen.path).path
        if path in answers:
            return answers[path]
        if path == "/subjects/pay/versions/1":
            return said({"subject": "pay", "version": 1, "id": 50, "schema": pay})
        if path == f"/subjects/{SUBJECT}/versions/2":
            return said({"subject": SUBJECT, "version": 2, "id": 12, "schema": json.dumps(newest), "references": imports})
        if path == "/schemas/ids/12":
            return said({"schema": json.dumps(newest), "references": imports})
        return say(seen)

    monkeypatch.setattr(registry, "say", with_imports)
    with running(registry):
        book = book_of(registry, control)
        before = known(book)
        assert before == (["a", "pay"], {11, 12}, {})
        answers["/subjects/pay/versions/1" if "import" in what else f"/subjects/{SUBJECT}/versions/2"] = GONE[what]
        if "import" not in what:
            answers["/schemas/ids/12"] = GONE[what]
        for one in (book, book, book_of(registry, control)):
            one.look()
            assert not one.has_newer or one is not book
            assert known(one) == before
            [subject] = one.in_use()[0].subjects
            assert [(version.number, version.problem) for version in subject.versions] == [(2, ""), (1, "")]
        # Another schema by its id is another schema, also without what it imports.
        newest["fields"].append({"name": "quite", "type": "long", "default": 7})
        if "import" in what:
            book.look()
            assert known(book)[1] == {11} and "another schema by the id 12" in known(book)[2][12]


def test_a_version_that_cannot_be_used_is_told_before_a_record_names_it(
    registry: Registry, control: ControlFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    book, say, count = book_of(registry, control), registry.say, 0
    assert known(book)[1] == {11, 12}
    registry.versions |= {3: 13, 4: 14}
    rules = {"domainRules": [{"name": "pii", "type": "ENCRYPT"}]}

    def odd(seen: Seen) -> Said:
        nonlocal count
        path = urlsplit(seen.path).path
        if path.endswith("/versions/3"):
            return said({"subject": SUBJECT, "version": 3, "id": 13, "schema": order("c"), "ruleSet": rules})
        if path.endswith("/versions/4"):
            count += 1
            return Said(json.dumps({"error_code": 40301, "message": f"request {count}"}).encode(), 403)
        return say(seen)

    monkeypatch.setattr(registry, "say", odd)
    with running(registry):
        book = book_of(registry, control)
        for _ in range(3):
            assert known(book)[1] == {11, 12}
            told = book.not_followed["value"]
            assert "encryption rule (pii)" in told[13] and "does not allow" in told[f"4 of subject {SUBJECT}"]
            assert len(told) == 2
            book.look()
            assert not book.has_newer, "a reason in other words is nothing new"
        assert count > 2


def text_order() -> str:
    fields = [{"name": "a", "type": "string"}, {"name": "slip", "type": "long", "default": 0}]
    return json.dumps({"type": "record", "name": "Order", "fields": fields})


def test_a_version_that_was_deleted_before_it_was_used_is_never_the_newest(registry: Registry, control: ControlFolder) -> None:
    registry.schemas[12], registry.deleted = text_order(), {2}
    for _ in range(2):  # A second start finds what the first one kept.
        columns, read, refused = known(book_of(registry, control))
        assert (columns, read) == (["a", "slip"], {11}) and "string" in refused[12]
    registry.is_away = True
    assert known(book_of(registry, control))[:2] == (["a"], {11})


def test_a_version_that_was_used_before_it_was_deleted_stays_the_newest(registry: Registry, control: ControlFolder) -> None:
    before = known(book_of(registry, control))
    assert before == (["a", "b"], {11, 12}, {})
    registry.deleted = {2}
    assert known(book_of(registry, control)) == before
    assert known(book_of(registry, ControlFolder(control.home / "other", "orders", None)))[1] == {11, 12}


def test_where_all_versions_are_deleted_the_newest_of_them_is_read(registry: Registry, control: ControlFolder) -> None:
    registry.schemas[12], registry.deleted = text_order(), {1, 2}
    columns, read, _ = known(book_of(registry, control))
    assert (columns, read) == (["a", "slip"], {12})


def test_versions_that_are_kept_say_of_no_record_that_its_schema_is_of_none(
    registry: Registry, control: ControlFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the registry does not answer a request for versions, and then knows the schema that a record names."""
    book = book_of(registry, control)
    assert known(book) == (["a", "b"], {11, 12}, {})
    registry.versions[3], registry.schemas[13] = 13, order("a", "b", "c")
    say = registry.say
    monkeypatch.setattr(registry, "say", lambda seen: HANG_UP if "/versions" in seen.path else say(seen))
    with running(registry):
        again = book_of(registry, control)
        assert known(again) == (["a", "b"], {11, 12}, {})
        with pytest.raises(RegistryUnavailableError):
            ask_for(again, {"value": {13}})
        assert known(again)[2] == {}
        monkeypatch.undo()
    with running(registry):
        later = book_of(registry, control)
        ask_for(later, {"value": {13}})
        assert known(later) == (["a", "b", "c"], {11, 12, 13}, {})


def test_a_newest_version_that_cannot_be_used_ends_no_look(
    registry: Registry, control: ControlFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    book = book_of(registry, control)
    assert known(book)[0] == ["a", "b"]
    registry.versions[3], registry.schemas[13] = 13, order("c")
    say = registry.say

    def refuses(seen: Seen) -> Said:
        rules = {"encodingRules": [{"name": "all", "type": "ENCRYPT_PAYLOAD"}]}
        if seen.path.partition("?")[0].endswith(("/latest", "/3")):
            return said({"subject": SUBJECT, "version": 3, "id": 13, "schema": order("c"), "ruleSet": rules})
        return say(seen)

    monkeypatch.setattr(registry, "say", refuses)
    with running(registry):
        book = book_of(registry, control)
        assert known(book)[:2] == (["a", "b"], {11, 12})
        book.look()
        book.look()
        assert not book.has_newer
        assert [one.part for one in book.in_use()] == ["value"]
