"""The benchmark's records have the same fields in Avro and in Protobuf as in JSON."""

from __future__ import annotations

import io
import json

import fastavro
import pytest
import value_formats
from arm_names import WORKS
from generator import values
from value_formats import AVRO, FORMATS, Encoding, Format, encoded, encoding_of


@pytest.mark.parametrize("form", FORMATS)
def test_the_same_fields_behind_the_id_of_a_schema(form: Format) -> None:
    bodies = values(180, dirty=False)[:20]
    made = encoded(bodies, Encoding(form, "mock://registry"), "events")
    assert all(value[:5] == made[0][:5] and value[0] == 0 for value in made)
    if form == "avro":
        schema = fastavro.parse_schema(json.loads(AVRO))
        assert [fastavro.schemaless_reader(io.BytesIO(one[5:]), schema, None) for one in made] == [*map(json.loads, bodies)]
        return
    kind = value_formats._message_class()
    found = [kind.FromString(one[6:]) for one in made]
    assert [{name: getattr(one, name) for name in value_formats.FIELDS} for one in found] == [*map(json.loads, bodies)]


def test_only_some_works_have_another_format() -> None:
    assert [work for work in WORKS if encoding_of(work, "http://registry") is not None] == [*FORMATS]
    assert encoding_of("avro", None) is None
    assert encoded([b"{}"], None, "events") == [b"{}"]
