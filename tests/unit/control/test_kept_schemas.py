"""Schemas that a pipeline used are kept with its state: bounded, private, whole, in backups, and never changed."""

from __future__ import annotations

import json
import random
import stat
from pathlib import Path, PurePosixPath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakebound.control import kept_schemas
from lakebound.control.folder import ControlFolder
from lakebound.control.kept_schemas import KeptId, KeptSchemas, keep_schemas, kept_ids, read_kept_schemas
from lakebound.formats.schemas import Reference, SchemaId, SchemaText, canonical_text
from lakebound.operations.backup.manifest import is_state

GUID = "8d7c1f60-6f3a-4a0e-9a6e-0f3a5a2b1c4d"
BASE = SchemaText("protobuf", 'syntax = "proto3";\nmessage Base {}\n')
MIDDLE = SchemaText("protobuf", 'import "base.proto";', (Reference("base.proto", BASE),))
TOP = SchemaText("protobuf", "é", (Reference("base.proto", BASE), Reference("middle.proto", MIDDLE)))
PLAIN = SchemaText("avro", '"string"')


@pytest.fixture
def control(tmp_path: Path) -> ControlFolder:
    return ControlFolder(tmp_path, "orders", None)


def test_what_is_kept_is_read_again_with_all_that_it_imports(control: ControlFolder) -> None:
    assert read_kept_schemas(control, "company").schemas == {}
    keep_schemas(control, "company", {1: TOP, GUID: PLAIN}, 100.0)
    keep_schemas(control, "company", {2: MIDDLE}, 200.0)
    keep_schemas(control, "other", {1: PLAIN}, 300.0)
    found = read_kept_schemas(control, "company")
    assert found.schemas == {1: TOP, GUID: PLAIN, 2: MIDDLE}
    assert read_kept_schemas(control, "other").schemas == {1: PLAIN}


def test_an_id_keeps_its_schema(control: ControlFolder) -> None:
    keep_schemas(control, "company", {1: TOP}, 100.0)
    keep_schemas(control, "company", {1: PLAIN}, 200.0)
    assert read_kept_schemas(control, "company").schemas == {1: TOP}


def test_the_schemas_of_each_subject_are_known(control: ControlFolder) -> None:
    keep_schemas(control, "company", {1: TOP, 2: PLAIN}, 100.0, {1: ["orders-value"], 2: ["orders-key", "users-key"]})
    keep_schemas(control, "company", {1: TOP}, 200.0, {1: {"users-value"}})
    found = read_kept_schemas(control, "company")
    assert found.of("orders-value") == found.of("users-value") == {1: TOP}
    assert found.of("orders-key") == found.of("users-key") == {2: PLAIN}
    assert found.of("orders") == {}


@pytest.mark.parametrize("unnumbered", range(9))
def test_the_schemas_of_a_subject_are_in_the_order_of_their_versions(unnumbered: int) -> None:
    """A version may have a lower id than the one before it. Of those whose version was not kept, ids count."""
    subjects: dict[SchemaId, list[str]] = {one: ["orders-value"] for one in range(1, 9)}
    orders = random.Random(unnumbered)
    for _ in range(50):
        ids = orders.sample(range(1, 9), 8)
        numbers = {one: {"orders-value": at, "users-value": 99 - at} for at, one in enumerate(ids, 1) if at > unnumbered}
        found = KeptSchemas(dict.fromkeys(range(1, 9), PLAIN), subjects, numbers)
        assert list(found.of("orders-value")) == sorted(ids[:unnumbered]) + ids[unnumbered:]


def test_versions_are_kept_and_those_of_an_index_without_them_are_added(control: ControlFolder) -> None:
    old = ["orders-value"]
    keep_schemas(control, "company", {9: TOP, 5: PLAIN}, 100.0, {9: old, 5: old})
    assert list(read_kept_schemas(control, "company").of("orders-value")) == [5, 9]
    keep_schemas(
        control, "company", {9: TOP, 5: PLAIN}, 200.0, {9: old, 5: old}, {9: {"orders-value": 1}, 5: {"orders-value": 2}}
    )
    keep_schemas(control, "company", {9: TOP}, 300.0, {9: ["users-value"]})
    keep_schemas(control, "company", {9: PLAIN}, 400.0, {9: old}, {9: {"orders-value": 3}})
    found = read_kept_schemas(control, "company")
    assert list(found.of("orders-value")) == [9, 5], "the number of another schema is none of this one"
    assert found.numbers == {9: {}, 5: {"orders-value": 3}}, "the registry has the schema of id 9 no more"


def test_a_registry_that_counts_from_1_again_makes_no_older_schema_the_newest(control: ControlFolder) -> None:
    of = ["orders-value"]
    first = {1: BASE, 2: MIDDLE, 3: TOP}
    keep_schemas(control, "company", first, 100.0, dict.fromkeys(first, of), {one: {"orders-value": one} for one in first})
    keep_schemas(control, "company", {7: PLAIN}, 200.0, {7: of}, {7: {"orders-value": 1}})
    keep_schemas(control, "company", {GUID: PLAIN}, 300.0, {GUID: of})
    assert list(read_kept_schemas(control, "company").of("orders-value"))[:3] == [1, 2, 3]
    keep_schemas(control, "company", {7: PLAIN}, 400.0, {7: of}, {7: {"orders-value": 1}})
    found = read_kept_schemas(control, "company")
    assert {*list(found.of("orders-value"))[3:]} == {7, GUID} and found.numbers[GUID] == {"orders-value": 1}
    # Of another subject, and of another registry, nothing was said.
    keep_schemas(control, "company", {3: TOP}, 500.0, {3: ["users-value"]}, {3: {"users-value": 4}})
    keep_schemas(control, "other", {3: TOP}, 500.0, {3: of}, {3: {"orders-value": 4}})
    assert read_kept_schemas(control, "company").numbers[7] == {"orders-value": 1}


def test_the_files_are_private_and_in_backups(control: ControlFolder) -> None:
    keep_schemas(control, "company", {1: TOP}, 100.0)
    files = sorted(file for file in control.folder.rglob("*") if file.is_file())
    assert len(files) == 5, "three schemas, the index and its lock"
    assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}
    assert stat.S_IMODE((control.folder / "schemas").stat().st_mode) == 0o700
    saved = [file.name for file in files if is_state(PurePosixPath(file.relative_to(control.folder)))]
    assert sorted(saved) == sorted([f"{one.fingerprint}.json" for one in (TOP, MIDDLE, BASE)] + ["ids.json"])


DAMAGES = {
    "a schema is gone": lambda file: file.unlink(),
    "a schema is torn": lambda file: file.write_text(file.read_text()[:-5]),
    "a schema is another one": lambda file: file.write_text(file.read_text().replace("Base", "Other")),
    "a schema imports itself": lambda file: file.write_text(
        json.dumps({"kind": "protobuf", "text": "", "references": [{"name": "a", "fingerprint": BASE.fingerprint}]})
    ),
    "a schema is no text": lambda file: file.write_bytes(b"\xff\xfe"),
}


@pytest.mark.parametrize("what", DAMAGES)
def test_what_is_damaged_is_not_used_and_is_kept_anew(control: ControlFolder, what: str) -> None:
    keep_schemas(control, "company", {1: TOP, 2: PLAIN}, 100.0)
    DAMAGES[what](control.folder / "schemas" / f"{BASE.fingerprint}.json")
    assert read_kept_schemas(control, "company").schemas == {2: PLAIN}
    keep_schemas(control, "company", {1: TOP}, 200.0)
    assert read_kept_schemas(control, "company").schemas == {1: TOP, 2: PLAIN}


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"ids": 1}', '{"ids": [{"registry": "company", "id": 1, "fingerprint": "../x"}]}']
)
def test_an_index_that_cannot_be_read_says_nothing(control: ControlFolder, text: str) -> None:
    keep_schemas(control, "company", {1: TOP}, 100.0)
    (control.folder / "schemas" / "ids.json").write_text(text)
    assert read_kept_schemas(control, "company").schemas == {}
    keep_schemas(control, "company", {2: PLAIN}, 200.0)
    assert read_kept_schemas(control, "company").schemas == {2: PLAIN}


def test_the_number_is_bounded_and_files_that_nobody_needs_go(control: ControlFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_schemas, "MOST_IDS", 2)
    keep_schemas(control, "company", {1: TOP}, 100.0)
    keep_schemas(control, "company", {2: PLAIN}, 200.0)
    keep_schemas(control, "company", {3: MIDDLE}, 300.0)
    assert read_kept_schemas(control, "company").schemas == {3: MIDDLE, 2: PLAIN}
    names = {file.name for file in (control.folder / "schemas").glob("*.json")}
    assert names == {"ids.json", *(f"{one.fingerprint}.json" for one in (MIDDLE, BASE, PLAIN))}


KEPT = st.builds(
    KeptId,
    registry=st.sampled_from(["a", "b"]),
    id=st.integers(0, 20),
    fingerprint=st.sampled_from(["0" * 64, "1" * 64]),
    characters=st.integers(0, 40_000_000),
    used_at=st.integers(0, 100).map(float),
)


@given(
    st.lists(KEPT, unique_by=lambda one: (one.registry, one.id)), st.lists(KEPT, unique_by=lambda one: (one.registry, one.id))
)
def test_what_was_used_last_stays_and_no_id_changes(before: list[KeptId], used: list[KeptId]) -> None:
    after = kept_ids(before, used)
    known = {(one.registry, one.id): one.fingerprint for one in before}
    assert all(known.get((one.registry, one.id), one.fingerprint) == one.fingerprint for one in after)
    assert sum(one.characters for one in after) <= kept_schemas.MOST_CHARACTERS
    assert [one.used_at for one in after] == sorted((one.used_at for one in after), reverse=True)
    assert len({(one.registry, one.id) for one in after}) == len(after)


def test_a_fingerprint_is_of_what_a_schema_says_and_not_of_its_layout() -> None:
    avro = '{"type": "record", "name": "R", "fields": [{"name": "a", "type": "int", "default": 1.0}]}'
    same = json.dumps(json.loads(avro), indent=3, sort_keys=True)
    other = avro.replace("1.0", "1")
    prints = [SchemaText("avro", text).fingerprint for text in (avro, same, other)]
    assert prints[0] == prints[1] != prints[2]
    proto = 'syntax = "proto3";\r\n\r\n  message A {}\r\n'
    assert SchemaText("protobuf", proto).fingerprint == SchemaText("protobuf", 'syntax = "proto3";\nmessage A {}').fingerprint
    ordered = [
        SchemaText("json_schema", text).fingerprint for text in ('{"a": 1, "b": 2}', '{"b": 2, "a": 1}', '{"a":1,"b":2}')
    ]
    assert ordered[0] == ordered[2] != ordered[1], "the order of properties is that of columns"
    assert len({SchemaText(kind, "x").fingerprint for kind in ("avro", "protobuf", "json_schema")}) == 3
    assert TOP.fingerprint != SchemaText("protobuf", "é").fingerprint


@pytest.mark.parametrize("text", ["", "{", "[" * 100_000, "1" * 5000, '{"a": 1e999999}', '"\\ud800"', "\ud800"])
def test_any_text_has_a_fingerprint(text: str) -> None:
    assert isinstance(canonical_text("avro", text), str) and len(SchemaText("avro", text).fingerprint) == 64
