"""Values that a serializer of a schema registry has written: a byte 0, and the schema's id in four bytes. Pure.

Source: https://docs.confluent.io/platform/current/schema-registry/fundamentals/serdes-develop/index.html#wire-format.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

_HEADER_BYTES = 5
_MOST_IDS = 20
"""Bytes that are no ids differ more."""
_MOST_NAMED = 5
_LEAST_SHARE = 0.1


@dataclass(frozen=True)
class WireFormat:
    """What sampled records say of the registry.

    Attributes:
        records: How many of the records have the header.
        ids: Of their schemas, the commonest first.
    """

    records: int
    ids: tuple[int, ...]

    def __str__(self) -> str:
        """Return what it is, and what works."""
        count = "1 record begins" if self.records == 1 else f"{self.records:,} records begin"
        ids = ", ".join(map(str, self.ids[:_MOST_NAMED])) + (", …" if len(self.ids) > _MOST_NAMED else "")
        named = f"schema id {ids}" if len(self.ids) == 1 else f"schema ids {ids}"
        return (
            f"{count} with a byte 0 and the id of a schema in four bytes ({named}): this is Confluent's wire format, that is, "
            "Avro, Protobuf or JSON Schema with a schema registry. Write format: avro, protobuf or json_schema, with registry: "
            "and a name of registries.yaml (docs/how-to/formats.md). With format: bytes the values land undecoded"
        )


def wire_format_of(values: Sequence[bytes | None]) -> WireFormat | None:
    """Return what a sample says of a registry; None where too few of the records have such a header.

    Args:
        values: The bytes of sampled records.
    """
    present = [value for value in values if value is not None]
    ids = Counter(
        int.from_bytes(value[1:_HEADER_BYTES], "big", signed=True)
        for value in present
        if len(value) > _HEADER_BYTES and value[0] == 0
    )
    if not ids or min(ids) < 0 or len(ids) > _MOST_IDS or ids.total() < _LEAST_SHARE * len(present):
        return None
    return WireFormat(ids.total(), tuple(number for number, _ in ids.most_common()))
