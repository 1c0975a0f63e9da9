"""What aliases of fields say: which of the writer's fields a field takes, and where two meanings are possible."""

from __future__ import annotations

import io
import itertools
import json
import random
from typing import Any

import fastavro
import pyarrow as pa
import pytest

from lakebound.formats.avro import schema_reader
from lakebound.formats.schemas import SchemaText, UnreadableSchemaError

Aliases = dict[str, list[str]]
"""Fields by name, each with its aliases."""


def schema(fields: Aliases, place: str = "top") -> dict[str, Any]:
    own = [{"name": name, "type": "long", "default": -1, "aliases": aliases} for name, aliases in fields.items()]
    inner: dict[str, Any] = {"type": "record", "name": "In", "fields": own}
    around = {"record": inner, "list": {"type": "array", "items": inner}, "map": {"type": "map", "values": inner}}
    return inner if place == "top" else {"type": "record", "name": "T", "fields": [{"name": "at", "type": around[place]}]}


def read(writer: Aliases, reader: Aliases, place: str = "top") -> dict[str, int]:
    """Return what becomes of a record whose fields are 1, 2, 3 in their order."""
    wrote, own = schema(writer, place), schema(reader, place)
    sent = {name: number for number, name in enumerate(writer, 1)}
    around: dict[str, Any] = {"record": sent, "list": [sent], "map": {"k": sent}}
    content = io.BytesIO()
    value = sent if place == "top" else {"at": around[place]}
    fastavro.schemaless_writer(content, fastavro.parse_schema(json.loads(json.dumps(wrote))), value)
    texts = [SchemaText("avro", json.dumps(one)) for one in (wrote, own)]
    columns = schema_reader.columns_of(texts[1], None)
    made = schema_reader.payload_decoder(*texts, columns, None, is_framed=False).decode([content.getvalue()])
    assert not made.problems
    row: Any = pa.table(dict(made.columns)).to_pylist()[0]
    if place != "top":
        row = row["at"] if place == "record" else row["at"][0] if place == "list" else row["at"][0][1]
    return {name: row[name] for name in reader}


TWO_MEANINGS: list[tuple[Aliases, Aliases]] = [
    ({"a": []}, {"b": ["a"], "a": []}),
    ({"a": []}, {"b": ["a"], "c": ["a"]}),
    ({"a": [], "b": []}, {"a": ["b"], "b": ["a"]}),
    ({"a": [], "b": []}, {"a": [], "b": ["a"], "c": ["b"]}),
    ({"a": [], "b": [], "c": []}, {"a": ["c"], "b": ["a"], "c": ["b"]}),
]


@pytest.mark.parametrize("place", ["top", "record", "list", "map"])
@pytest.mark.parametrize(("writer", "reader"), TWO_MEANINGS)
def test_a_field_with_two_meanings_is_refused(writer: Aliases, reader: Aliases, place: str) -> None:
    with pytest.raises(UnreadableSchemaError, match="would be read as") as found:
        read(writer, reader, place)
    assert found.value.path.rpartition(".")[2] in reader


@pytest.mark.parametrize(
    ("writer", "reader", "want"),
    [
        ({"a": []}, {"b": ["a"]}, {"b": 1}),
        ({"b": []}, {"b": ["a"], "a": []}, {"b": 1, "a": -1}),
        ({"a": [], "b": []}, {"b": ["a"], "a": []}, {"b": 2, "a": 1}),
        ({"b": ["a"], "a": []}, {"b": ["a"], "a": [], "c": []}, {"b": 1, "a": 2, "c": -1}),
        ({"a": ["b"], "b": ["a"]}, {"a": ["b"], "b": ["a"], "c": []}, {"a": 1, "b": 2, "c": -1}),
        ({"a": [], "b": []}, {"c": ["a", "b"]}, {"c": 1}),
        ({"a": []}, {"a": ["a"]}, {"a": 1}),
    ],
)
def test_a_field_with_one_meaning_is_read(writer: Aliases, reader: Aliases, want: dict[str, int]) -> None:
    assert read(writer, reader) == want


def test_what_is_read_is_what_libraries_read_that_take_names_first_and_those_that_take_aliases_first() -> None:
    """Of schemas with aliases in any way: what both ways read alike lands so, what they differ on is refused or by name."""
    draw, landed, refused = random.Random(16), 0, 0
    for _ in range(200):
        writer: Aliases = {name: [] for name in draw.sample("abc", draw.randrange(1, 4))}
        reader: Aliases = {name: draw.sample("abcd", draw.randrange(3)) for name in draw.sample("abcd", draw.randrange(1, 4))}
        numbers = {name: number for number, name in enumerate(writer, 1)}
        by_name = {name: next((numbers[one] for one in (name, *also) if one in numbers), -1) for name, also in reader.items()}
        try:
            assert read(writer, reader) == by_name
            landed += 1
            sent = [number for number in by_name.values() if number > 0]
            assert len({*sent}) == len(sent), (writer, reader)
        except UnreadableSchemaError:
            orders = {_by_alias(numbers, dict(one)) for one in itertools.permutations(reader.items())}
            assert orders != {tuple(sorted(by_name.items()))}, (writer, reader)
            refused += 1
    assert landed > 50 and refused > 10


def _by_alias(numbers: dict[str, int], reader: Aliases) -> tuple[tuple[str, int], ...]:
    """Return what is read where aliases rename the writer's fields first."""
    renamed = {alias: name for name, also in reader.items() for alias in also}
    found = dict.fromkeys(reader, -1) | {
        renamed.get(name, name): number for name, number in numbers.items() if renamed.get(name, name) in reader
    }
    return tuple(sorted(found.items()))
