"""Fields that the schema does not name: which are named, what is proposed for them, and that no value is."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError
from tests.support.streams.stand_ins import ORDERS

from lakebound.settings import load_settings
from lakebound.spec.draft import unknown_fields as unknown_fields_module
from lakebound.spec.draft.unknown_fields import (
    MOST_FIELDS,
    MOST_TYPE_CHARACTERS,
    UnknownField,
    is_dropped,
    shown_name,
    unknown_fields,
)
from lakebound.spec.pipeline import PipelineSpec
from lakebound.spec.source import source_hash
from lakebound.spec.value import ValueSpec

SCHEMA = (
    "id BIGINT NOT NULL, `first name` STRING, customer STRUCT<name: STRING, address: STRUCT<zip: STRING>>, "
    "items ARRAY<STRUCT<sku: STRING>>, tags MAP<STRING, STRUCT<at: TIMESTAMP>>, raw STRING"
)


def json_value(schema: str = SCHEMA, **others: Any) -> ValueSpec:
    return TypeAdapter[ValueSpec](ValueSpec).validate_python({"format": "json", "schema": schema, **others})


def found(*bodies: Any, value: ValueSpec | None = None) -> dict[str, str]:
    """Return the line of each field that is named."""
    value = value or json_value()
    return {one.path: one.line_for(value) for one in unknown_fields([json.dumps(body).encode() for body in bodies], value)}


def test_what_the_schema_names_is_not_named() -> None:
    body = {
        "id": 1,
        "first name": "a",
        "customer": {"name": "a", "address": {"zip": "1"}},
        "items": [{"sku": "a"}],
        "tags": {"x": {"at": "2026-01-01"}},
        "raw": {"anything": {"deep": 1}},
    }
    assert found(body, {"id": 2}, {}) == {}


def test_a_field_is_named_with_the_line_to_add() -> None:
    assert found({"id": 1, "amount": 1.25}, {"id": 2, "amount": 3, "with-dash": True}) == {
        "amount": "amount DECIMAL(18,2)",
        "with-dash": "`with-dash` BOOLEAN",
    }


def test_a_field_inside_of_a_column_is_named_by_its_path() -> None:
    first = {"customer": {"tier": "gold", "address": {"city": "X"}}, "items": [{"sku": "a", "count": 1}, {"count": 2}]}
    assert found(first, {"tags": {"a": {"by": "x"}, "b": {"by": "y", "at": None}}}) == {
        "customer.tier": "tier: STRING",
        "customer.address.city": "city: STRING",
        "items.count": "count: BIGINT",
        "tags.by": "by: STRING",
    }


def test_the_fields_of_the_most_records_come_first_and_few_are_named() -> None:
    bodies = [{f"f{number}": 1 for number in range(50)}, {"f49": 2}]
    named = list(found(*bodies))
    assert named[0] == "f49" and len(named) == MOST_FIELDS


def test_a_name_that_no_column_can_have_is_named_with_the_reason() -> None:
    values = [json.dumps({"ID": 1, "_kafka": 2, "a b": 3, "x\x1b[2J\nx" + "y" * 200: 4}).encode()]
    named = {one.path: one.problem for one in unknown_fields(values, json_value())}
    assert named["ID"] == "it differs from id only in upper and lower case"
    assert "Lakebound uses this name" in named["_kafka"] and "cannot have" in named["a b"]
    [escaped] = [path for path in named if path.startswith("x\\x1b[2J\\n")]
    assert escaped.isprintable() and len(escaped) <= 80
    assert all(one.line_for(json_value()) == "" for one in unknown_fields(values, json_value()))


def test_a_name_calls_nobody_and_leads_nowhere() -> None:
    names = ["<!channel>", "<https://x.org|click>"]
    named = unknown_fields([json.dumps(dict.fromkeys(names, 1)).encode()], json_value())
    assert [one.path for one in named] == [r"\x3c!channel\x3e", r"\x3chttps://x.org|click\x3e"]
    assert unknown_fields([json.dumps({names[0]: 1}).encode()], json_value(ignored_fields=names[:1])) == ()


def test_keys_that_vary_are_data_and_are_not_named() -> None:
    bodies = [{"customer": {"name": "a", f"a{number}@x.org": number, f"b{number}@x.org": "x"}} for number in range(20)]
    values = [json.dumps(body).encode() for body in bodies]
    [one] = unknown_fields(values, json_value())
    assert one == UnknownField("customer.*", problem="40 different keys; a MAP would hold them", records=1)
    assert unknown_fields(values, json_value(ignored_fields=["customer.*"])) == ()
    assert not is_dropped("customer.*", json_value("customer MAP<STRING, STRING>"))
    assert list(found(*({"seats": {f"s{body}-{seat}": 1 for seat in range(3)}} for body in range(9)))) == ["seats"]
    assert list(found(*({f"key {number}": 1} for number in range(30)))) == ["*"]


def test_keys_that_vary_are_not_named_beside_a_field_that_all_have() -> None:
    values = [json.dumps({"id": number, "new": 1, f"a{number}@x.org": 1}).encode() for number in range(100)]
    assert unknown_fields(values, json_value()) == (
        UnknownField("new", "BIGINT", records=100),
        UnknownField("*", problem="100 different keys; a MAP would hold them", records=1),
    )


def test_keys_that_vary_inside_of_the_values_of_a_map_are_not_named() -> None:
    values = [
        json.dumps({"tags": {f"t{number}": {"at": None, "by": "x", f"a{number}@x.org": 1}}}).encode() for number in range(50)
    ]
    assert {one.path: one.records for one in unknown_fields(values, json_value())} == {"tags.by": 50, "tags.*": 1}


def test_the_schema_is_read_once_whatever_number_of_fields_there_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """With 60 columns it takes a millisecond, and four records of 1 MB may have 200,000 fields."""
    read, seen = unknown_fields_module.read_columns, []

    def counted(text: str) -> Any:
        seen.append(text)
        return read(text)

    monkeypatch.setattr(unknown_fields_module, "read_columns", counted)
    values = [json.dumps({f"key_{record}_{number}": 1 for number in range(200)}).encode() for record in range(4)]
    assert len(unknown_fields(values, json_value())) == MOST_FIELDS and len(seen) == 1


@pytest.mark.parametrize("levels", [90, 500, 900, 960, 980, 990, 1500])
def test_a_value_of_many_levels_is_a_field_as_any_other(levels: int) -> None:
    for deep in ('{"a":' * levels + "1" + "}" * levels, "[" * levels + "]" * levels):
        values = [b'{"id": 1, "new": 2}', f'{{"deep": {deep}}}'.encode()]
        assert {"new"} <= {one.path for one in unknown_fields(values, json_value())} <= {"new", "deep"}


def test_a_path_that_is_too_long_for_the_record_is_not_named() -> None:
    schema, body = "INT", {"new": 1}
    for number in range(15):
        name = f"n{number}" + "x" * 76
        schema, body = f"STRUCT<{name}: {schema}>" if number else f"STRUCT<{name}: STRUCT<known: INT>>", {name: body}
    value = json_value(f"top {schema}")
    found = unknown_fields([json.dumps({"top": body, "new": 1}).encode()], value)
    assert [one.path for one in found] == ["new"]


def test_an_object_with_many_fields_is_proposed_as_text() -> None:
    wide = {"wide": {f"some_rather_long_name_{number}": number for number in range(40)}}
    assert found(wide) == {"wide": "wide STRING"}
    assert found({"pair": {"a": 1, "b": "x"}}) == {"pair": "pair STRUCT<a: BIGINT, b: STRING>"}
    assert MOST_TYPE_CHARACTERS < 500


def test_a_name_or_a_path_is_ignored_with_all_inside_of_it() -> None:
    body = {"debug": {"a": 1}, "customer": {"tier": 1, "address": {"city": 1, "lane": 1}}}
    value = json_value(ignored_fields=["debug", "customer.address"])
    assert list(found(body, value=value)) == ["customer.tier"]


def test_of_records_that_go_to_quarantine_for_it_only_fields_inside_of_columns_are_named() -> None:
    body = {"new": 1, "customer": {"tier": 1}}
    assert list(found(body, value=json_value(unknown_fields="quarantine"))) == ["customer.tier"]
    with pytest.raises(ValidationError, match="goes to quarantine"):
        json_value(unknown_fields="quarantine", ignored_fields=["new"])
    assert json_value(unknown_fields="quarantine", ignored_fields=["customer.tier"])


def test_values_that_are_not_json_have_no_fields() -> None:
    value = TypeAdapter[ValueSpec](ValueSpec).validate_python({"format": "bytes"})
    assert unknown_fields([b'{"a": 1}'], value) == ()
    assert unknown_fields([None, b"", b"[1]", b"\xff", b"{"], json_value()) == ()


def test_a_json_schema_gets_properties() -> None:
    value = TypeAdapter[ValueSpec](ValueSpec).validate_python(
        {"format": "json", "json_schema": {"type": "object", "properties": {"id": {"type": "integer"}}}}
    )
    body = {"id": 1, "n": 2, "amount": "1.25", "at": "2026-01-01T00:00:00Z", "tags": ["a"], "who": {"a": 1}}
    assert found(body, value=value) == {
        "n": "'n': {type: integer}",
        "amount": 'amount: {type: number, format: "decimal(18,2)"}',
        "at": "at: {type: string, format: date-time}",
        "tags": "tags: {type: array, items: {type: string}}",
        "who": "who: {type: object, properties: …}",
    }
    names = ["no", "on", "1e3", "2026-01-31", "@x", "-", "with-dash"]
    for name, line in found(dict.fromkeys(names, 1), value=value).items():
        assert yaml.safe_load(line) == {name: {"type": "integer"}}


def test_a_field_that_was_added_or_ignored_since_is_not_dropped_any_more() -> None:
    assert is_dropped("amount", json_value()) and not is_dropped("amount", json_value(SCHEMA + ", amount DOUBLE"))
    assert not is_dropped("amount", json_value(ignored_fields=["amount"]))
    assert is_dropped("customer.tier", json_value())
    assert not is_dropped("customer.tier", json_value("customer STRING")), "text holds all of it"


names = st.text(max_size=8)
bodies = st.recursive(
    st.none() | st.integers() | st.text("SECRET", min_size=6, max_size=12),
    lambda inside: st.lists(inside, max_size=3) | st.dictionaries(names, inside, max_size=4),
    max_leaves=12,
)


@given(st.lists(st.dictionaries(names, bodies, max_size=5), max_size=4))
def test_whatever_is_sent_names_are_short_and_printable_and_no_known_field_is_among_them(sent: list[dict[str, Any]]) -> None:
    value = json_value("a STRUCT<b: STRING>, b BIGINT, c ARRAY<STRUCT<d: STRING>>")
    named = unknown_fields([json.dumps(body).encode() for body in sent], value)
    assert len(named) <= MOST_FIELDS
    assert not {one.path for one in named} & {"a", "b", "c", "a.b", "c.d"}
    for one in named:
        assert (
            one.path.isprintable()
            and not {*one.path} & {*"<>"}
            and (one.problem or one.line_for(value))
            and is_dropped(one.path, value)
        )
    top = {shown_name(name) for body in sent for name in body} - {"a", "b", "c"}
    assert len(top) >= MOST_FIELDS or top <= {one.path for one in named} or len(named) == MOST_FIELDS


def test_a_change_of_the_ignored_fields_asks_for_no_restart() -> None:
    def sign(**value: Any) -> str:
        spec = PipelineSpec.model_validate({**ORDERS, "value": {"format": "json", "schema": "id BIGINT", **value}})
        return source_hash(spec, load_settings().apps)

    assert sign() == sign(ignored_fields=["x"]) != sign(schema="id BIGINT, x STRING")
