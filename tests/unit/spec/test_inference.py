"""The schema of a sample: every sampled record fits it, and what is in doubt is said."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tests.support.streams.long_form import examples
from tests.support.tables.inferred_types import schema_of

from lakebound.formats.contract import Records
from lakebound.formats.epoch_units import unit_of
from lakebound.spec.ddl import ddl_mistakes
from lakebound.spec.draft.inference import Inferred, ddl_name, infer, notes_of
from lakebound.spec.draft.observation import Seen
from lakebound_spark.batch.record_format import json_format


def sample(*bodies: Any) -> Inferred:
    return infer([json.dumps(body).encode() for body in bodies])


def column(name: str, *values: Any) -> str:
    [found] = sample(*({name: value} for value in values)).columns
    return found.type


@pytest.mark.parametrize(
    ("name", "values", "expected"),
    [
        ("ok", [True, None], "BOOLEAN"),
        ("n", [1, 2**40, None], "BIGINT"),
        ("n", [2**63], "DECIMAL(38,0)"),
        ("n", [10**40], "STRING"),
        ("d", [1, 2.5], "DOUBLE"),
        ("amount", [1, 2.5, 10.25], "DECIMAL(18,2)"),
        ("unit_price", [0.125], "DECIMAL(18,3)"),
        ("amount", [1e30], "DOUBLE"),
        ("amount", ["12.50", "7.00"], "DECIMAL(18,2)"),
        ("rate", ["1.2345", "2.0000"], "DECIMAL(18,4)"),
        ("version", ["2.10.1", "2.9"], "STRING"),
        ("version", ["2.10", "2.9"], "STRING"),
        ("zip", ["01234", "99999"], "STRING"),
        ("day", ["2026-01-31", None], "DATE"),
        ("day", ["2026-02-30"], "STRING"),
        ("at", ["2026-01-31T10:00:00Z", "2026-01-31 10:00:00.123+01:00"], "TIMESTAMP"),
        ("at", ["2026-01-31T10:00:00Z", "2026-01-31"], "TIMESTAMP"),
        ("at", ["2026-01-31T10:00:00Z", ""], "STRING"),
        ("at", ["10:00"], "STRING"),
        ("at", [1_700_000_000, 1_700_000_100], "TIMESTAMP"),
        ("at", [1_700_000_000, 5], "BIGINT"),
        ("at", [1_700_000_000_000], "BIGINT"),
        ("number", [1_700_000_000], "BIGINT"),
        ("x", [None], "STRING"),
        ("x", [1, "a"], "STRING"),
        ("x", [{}], "STRING"),
        ("tags", [["a"], []], "ARRAY<STRING>"),
        ("tags", [[]], "ARRAY<STRING>"),
        ("tags", [[1, None], [2]], "ARRAY<BIGINT>"),
        (
            "items",
            [[{"sku": "a", "price": 1.5}], [{"sku": None, "n": 1}]],
            "ARRAY<STRUCT<sku: STRING, price: DECIMAL(18,2), n: BIGINT>>",
        ),
        ("who", [{"a-b": {"c": [True]}}], "STRUCT<`a-b`: STRUCT<c: ARRAY<BOOLEAN>>>"),
    ],
)
def test_the_type_of_a_field(name: str, values: list[Any], expected: str) -> None:
    assert column(name, *values) == expected


def test_what_every_record_has_is_required() -> None:
    found = {one.name: one.is_required for one in sample({"a": 1, "b": None, "c": 2}, {"a": 2, "b": 3}).columns}
    assert found == {"a": True, "b": False, "c": False}


@pytest.mark.parametrize("unit, number", [("milliseconds", 1_700_000_000_123), ("microseconds", 1_700_000_000_123_456)])
def test_the_unit_of_a_time_is_said_and_given_to_the_transform(unit: str, number: int) -> None:
    found = sample({"created_at": number, "serial": number})
    units = {one.name: one.unit for one in found.columns}
    assert units == {"created_at": unit, "serial": None}, "a number that is only as large is not changed"
    assert [line.split(":")[0] for line in notes_of(found)] == ["created_at", "serial"]
    assert unit_of(number) == unit


def test_fields_that_no_table_can_hold_are_left_out_and_named() -> None:
    found = sample({"id": 1, "ID": 2, "_kafka": 3, "a b": 4, "": 5, "in": {"x": 1, "X": 2}})
    assert [(one.name, one.type) for one in found.columns] == [("id", "BIGINT"), ("in", "STRUCT<x: BIGINT>")]
    told = "\n".join(notes_of(found))
    assert all(word in told for word in ("ID: differs from id", "_kafka", "'a b'", "X: differs from x"))


def test_what_is_no_object_is_passed_over() -> None:
    found = infer([None, b"", b"[1]", b"{", b"\xff", b'{"a": 1e99999999999999999999}', b'{"a": 1}', b"[" * 100_000])
    assert (found.records, found.objects, [one.type for one in found.columns]) == (8, 1, ["BIGINT"])
    assert infer([b"\x00\x01"]) == Inferred((), 1, 0)


def varying(*values: Any, keys: int = 3, records: int = 10) -> list[Any]:
    """Return objects of which no two have a key in common; their values are taken in turn."""
    numbers = range(records * keys)
    pairs = [(f"user {number}", values[number % len(values)]) for number in numbers]
    return [dict(pairs[number::records]) for number in range(records)]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (varying(1, 2), "MAP<STRING, BIGINT>"),
        (varying(1, 2.5, None), "MAP<STRING, DOUBLE>"),
        (varying("a"), "MAP<STRING, STRING>"),
        (varying({"n": 1}, {"at": "2026-01-31"}), "MAP<STRING, STRUCT<n: BIGINT, at: DATE>>"),
        (varying([1], []), "MAP<STRING, ARRAY<BIGINT>>"),
        ([varying(1), varying(2)], "ARRAY<MAP<STRING, BIGINT>>"),
        (
            varying({f"k{number}": number for number in range(3)}, keys=2),
            "MAP<STRING, STRUCT<k0: BIGINT, k1: BIGINT, k2: BIGINT>>",
        ),
    ],
)
def test_an_object_whose_keys_vary_is_a_map(values: list[Any], expected: str) -> None:
    assert column("x", *values) == expected
    told = list(notes_of(sample(*({"x": value} for value in values))))
    assert any("its keys vary" in line for line in told)


@pytest.mark.parametrize(
    "values",
    [
        varying(1, "a"),
        varying(1, records=4, keys=9),
        varying(1, records=9, keys=2),
        [{**one, "kind": 1} for one in varying(1)],
        [{f"field_{number}": number for number in range(30)}] * 10,
    ],
    ids=["values of several kinds", "few records", "few keys", "a key that all have", "fields"],
)
def test_an_object_with_fields_is_no_map(values: list[Any]) -> None:
    assert "MAP" not in column("x", *values)


@given(
    st.lists(st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.none() | st.text("ab1-", max_size=3)),
    st.integers(1, 9),
)
def test_values_that_are_taken_together_are_as_if_they_were_of_one_field(values: list[Any], cut: int) -> None:
    def seen(of: list[Any]) -> Seen:
        found = Seen()
        for value in of:
            found.add(Decimal(repr(value)) if isinstance(value, float) else value)
        return found

    whole, first = seen(values), seen(values[:cut])
    first.include(seen(values[cut:]))
    assert first == whole


def header(number: int, payload: bytes = b"payload") -> bytes:
    return b"\x00" + number.to_bytes(4, "big") + payload


def test_confluents_wire_format_is_said_with_what_works() -> None:
    found = infer([header(7), header(7), header(12), None])
    assert not found.columns
    [told] = notes_of(found)
    assert told.startswith("3 records begin with a byte 0") and "schema ids 7, 12" in told and "format: bytes" in told
    beside = infer([header(7), b'{"a": 1}', b'{"a": 2}'])
    assert [one.name for one in beside.columns] == ["a"]
    assert any("1 record begins" in line and "schema id 7)" in line for line in notes_of(beside))


@pytest.mark.parametrize(
    "values",
    [
        [b"", None, b"\x00", b"\x00\x00\x00\x00\x07"],
        [header(2**31), header(2**31 + 5)],
        [header(number * 1000) for number in range(50)],
        [header(7), *[b'{"a": 1}'] * 20],
        [b'{"a": 1}', b"\x01\x00\x00\x00\x07ab"],
    ],
    ids=["too short", "negative ids", "too many ids", "few of the records", "another first byte"],
)
def test_what_only_looks_like_it_is_no_wire_format(values: list[bytes | None]) -> None:
    assert infer(values).wire_format is None


def test_few_values_of_many_records_are_kept_for_the_expectations() -> None:
    def values(*texts: str) -> tuple[str, ...]:
        return sample(*({"x": text} for text in texts)).columns[0].values

    assert values(*["open", "paid"] * 10) == ("open", "paid")
    assert values(*["open", "paid"] * 9) == (), "too few records to say so"
    assert values(*["open"] * 30) == ()
    assert values(*["open", "\ud800"] * 30) == (), "no YAML can hold it"
    assert values(*map(str, range(7)), *["0"] * 100) == ()


def test_what_is_nested_too_deeply_or_too_wide_is_kept_as_text() -> None:
    deep: Any = 1
    for _ in range(20):
        deep = {"in": deep}
    assert column("x", deep).count("STRUCT") == 5
    assert column("x", {f"k{number}": 1 for number in range(300)}) == "STRING"


NAMES = st.sampled_from(["id", "amount", "at", "createdAt", "d", "in-ner"])
TEXTS = st.text(max_size=5) | st.sampled_from(
    ["2026-01-31", "2026-01-31T10:00:00Z", "12.50", "1.5", "12:30", "NaN", "2026-02-30"]
)
NUMBERS = (
    st.integers()
    | st.integers(10**9, 4 * 10**9)
    | st.integers(10**12, 4 * 10**12)
    | st.floats(allow_nan=False, allow_infinity=False)
)
VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXTS,
    lambda inside: st.lists(inside, max_size=3) | st.dictionaries(NAMES, inside, max_size=3),
    max_leaves=6,
)
MAPS = st.lists(st.none() | st.integers(0, 9) | st.sampled_from([1.5, 2.25]), min_size=1, max_size=30).map(
    lambda some: varying(*some)
)
BODIES = st.lists(st.dictionaries(NAMES, VALUES, max_size=4), min_size=1, max_size=6) | MAPS.map(
    lambda values: [{"amount": value} for value in values]
)


@settings(max_examples=examples(150))
@given(BODIES)
def test_every_sampled_record_fits(bodies: list[dict[str, Any]]) -> None:
    values = [json.dumps(body).encode() for body in bodies]
    found = infer(values)
    assume(found.columns)
    problems = json_format(schema_of(found)).decoder().decode(Records([None] * len(values), values)).problems
    assert {problem.reason for problem in problems.values()} <= {"not_utf8"}
    assert all("\\ud" in values[at].decode() for at in problems), "a text that is no Unicode"
    ddl = ", ".join(f"{ddl_name(one.name)} {one.type}" for one in found.columns)
    assert ddl_mistakes(ddl) == []


def plain(kind: st.SearchStrategy[Any]) -> st.SearchStrategy[list[dict[str, Any]]]:
    """Records with a field of one kind each, or null."""
    return st.lists(st.fixed_dictionaries({"f": st.none() | kind}), min_size=1, max_size=5)


PLAIN = st.one_of(
    plain(st.booleans()),
    plain(st.integers(-(2**63), 2**63 - 1)),
    plain(st.floats(allow_nan=False, allow_infinity=False)),
    plain(st.text()),
    plain(st.datetimes().map(lambda moment: moment.isoformat() + "Z").filter(lambda text: text >= "1900" and text < "2100")),
    plain(st.lists(st.integers(0, 9))),
    plain(st.fixed_dictionaries({"a": st.text(), "b": st.lists(st.booleans())})),
)


@settings(max_examples=examples(100))
@given(PLAIN)
def test_records_of_plain_types_are_decoded(bodies: list[dict[str, Any]]) -> None:
    values = [json.dumps(body).encode() for body in bodies]
    found = infer(values)
    decoded = json_format(schema_of(found)).decoder().decode(Records([None] * len(values), values))
    if decoded.problems:
        assert all("\\ud" in values[at].decode() for at in decoded.problems), "a text that is no Unicode"
        return
    assert [value is None for value in decoded.columns["f"].to_pylist()] == [body["f"] is None for body in bodies]
