"""Which schema a record says that it was written with."""

from __future__ import annotations

import uuid

import pyarrow as pa
import pytest

from lakebound.formats.contract import Records
from lakebound.formats.framing import KEY_HEADER, VALUE_HEADER, schema_of
from lakebound.formats.registered import RegisteredDecoder
from lakebound.formats.schemas import KnownSchemas, PayloadDecoder

GUID = "7f6a2c1e-52a4-4c1b-9d0e-3f0f3a5b8c11"


def written(*, number: int | None = None, guid: str | None = None, indexes: list[int] | None = None) -> bytes:
    """What a serialiser of Confluent's writes of a schema, into a value or into a header."""
    frame = b"\x00" + (number or 0).to_bytes(4, "big") if guid is None else b"\x01" + uuid.UUID(guid).bytes
    if indexes is None:
        return frame
    return frame + (b"\x00" if indexes == [0] else b"".join(map(zigzag, [len(indexes), *indexes])))


def zigzag(number: int) -> bytes:
    left, found = number * 2, b""
    while left > 127:
        found, left = found + bytes([left & 127 | 128]), left >> 7
    return found + bytes([left])


@pytest.mark.parametrize("indexes", [None, [0], [1], [2, 0, 300]])
def test_what_stands_behind_the_id_is_the_same_in_the_value_and_in_a_header(indexes: list[int] | None) -> None:
    behind = written(number=17, indexes=indexes)[5:]
    assert schema_of(written(number=17, indexes=indexes) + b"body") == (17, behind + b"body")
    header = [(VALUE_HEADER, written(guid=GUID, indexes=indexes))]
    assert schema_of(b"body", header) == (str(uuid.UUID(GUID)), behind + b"body")
    assert schema_of(b"body", [(VALUE_HEADER, written(number=17, indexes=indexes))]) == (17, behind + b"body")


@pytest.mark.parametrize("value", [b"", b"\x00", b"\x00\x00\x00\x00", b"\x01\x00\x00\x00\x07body", b'{"a":1}'])
def test_a_value_without_a_frame_names_no_schema(value: bytes) -> None:
    assert schema_of(value) is None


def test_of_headers_the_last_one_of_the_name_counts() -> None:
    first, last = written(number=1), written(number=2)
    headers = [(VALUE_HEADER, first), (VALUE_HEADER, last), (KEY_HEADER, first), ("other", last), (VALUE_HEADER, None)]
    assert schema_of(b"body", headers) == (2, b"body")
    assert schema_of(b"body", headers, KEY_HEADER) == (1, b"body")


@pytest.mark.parametrize("content", [b"", b"\x01" + bytes(15), b"\x02" + bytes(16)])
def test_a_header_that_names_no_schema_is_none(content: bytes) -> None:
    assert schema_of(b"\x00\x00\x00\x00\x07body", [(VALUE_HEADER, content)]) is None


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"17", "has 2 bytes: 31 37"),
        (b"", "is empty"),
        (b"\x02" + bytes(16), "begins with 02 00"),
        (b"\x01\x02", "has 2 bytes: 01"),
    ],
)
def test_where_a_header_names_the_schema_it_is_what_the_reason_tells(content: bytes, told: str) -> None:
    """The value may have a right frame: it does not count then."""

    def none_is_made(*_: object) -> PayloadDecoder:
        raise AssertionError("no schema is named")

    decoder = RegisteredDecoder(pa.schema([("a", pa.int64())]), KnownSchemas((), asks=False), none_is_made)
    for value in (b"\x00\x00\x00\x00\x01\x0e", b"", b"\x02"):
        [problem] = decoder.decode(Records([None], [value], [[(VALUE_HEADER, content)]])).problems.values()
        assert f"its header __value_schema_id {told}" in problem.detail
    [problem] = decoder.decode(Records([None], [b"17"], [[]])).problems.values()
    assert "it has 2 bytes: 31 37, and not with 00" in problem.detail
