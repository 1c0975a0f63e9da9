"""Which records name a schema that is not known: those before the first of them land while the registry is away."""

from __future__ import annotations

import uuid

import pyarrow as pa

from lakebound.formats.headers import headers_array
from lakebound_spark.batch.decode import HEADERS, KEY, VALUE
from lakebound_spark.stream.unknown_schemas import Known, are_unknown

GUID = uuid.UUID("d9b6a9c4-5f7b-4a4e-8e6b-2d6a4f7f3a11")


def framed(number: int) -> bytes:
    return b"\0" + number.to_bytes(4, "big") + b"abc"


def unknown(known: Known, *records: tuple[bytes | None, bytes | None, list[tuple[str, bytes]] | None]) -> list[bool]:
    keys, values, headers = zip(*records, strict=True)
    columns = [pa.array(keys, pa.binary()), pa.array(values, pa.binary()), headers_array(headers)]
    return are_unknown(pa.record_batch(columns, [KEY, VALUE, HEADERS]), known)


def test_a_schema_of_key_or_value_that_is_not_known_is_found_in_the_bytes_and_in_headers() -> None:
    both: Known = {"key": frozenset({1}), "value": frozenset({2, str(GUID)})}
    in_header = [("__value_schema_id", b"\1" + GUID.bytes)]
    other = [("__value_schema_id", b"\1" + bytes(16)), ("x", b"")]
    records = [
        (framed(1), framed(2), None),
        (framed(2), framed(2), None),
        (framed(1), framed(1), []),
        (None, None, None),
        (b"{}", b"", None),
        (framed(1), b"abc", in_header),
        (framed(1), framed(2), other),
    ]
    assert unknown(both, *records) == [False, True, True, False, False, False, True]
    assert unknown({"value": frozenset({2})}, *records) == [False, False, True, False, False, True, True]


def test_without_a_part_that_asks_nothing_is_unknown() -> None:
    assert unknown({}, (framed(1), framed(2), None)) == [False]
