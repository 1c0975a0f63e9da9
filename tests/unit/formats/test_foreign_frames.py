"""Values that another registry's serialisers wrote are refused by name; Confluent's frame is never taken for one of theirs."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakebound.formats.contract import Records
from lakebound.formats.framing import foreign_frame
from lakebound.formats.registered import NO_SCHEMA_ID, KnownSchemas, RegisteredDecoder

FRAMES = {
    b"\x03\x00" + bytes(16): "AWS Glue's serialisers",
    b"\x03\x05" + bytes(20): "AWS Glue's serialisers",
    b"\xc3\x01" + bytes(8): "Avro's single-object encoding",
    b"Obj\x01" + bytes(8): "an Avro file",
}


@pytest.mark.parametrize("value", FRAMES)
def test_a_foreign_frame_is_named(value: bytes) -> None:
    decoder = RegisteredDecoder(pa.schema([]), KnownSchemas(), lambda schema: pytest.fail("no schema was named"))
    problem = decoder.decode(Records([None], [value])).problems[0]
    assert problem.reason == NO_SCHEMA_ID and FRAMES[value] in problem.detail and "not supported" in problem.detail


@given(st.binary(max_size=40))
def test_no_value_in_confluents_frame_is_foreign(payload: bytes) -> None:
    assert foreign_frame(b"\x00" + payload) is None
