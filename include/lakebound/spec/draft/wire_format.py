"""Values that a serializer of a schema registry has written: they name their schema. Pure; the bytes: ``formats.framing``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from lakebound.formats.contract import Headers
from lakebound.formats.framing import VALUE_HEADER, Header, foreign_frame, schema_of
from lakebound.formats.schemas import SchemaId

_MOST_IDS = 20
"""Bytes that are no ids differ more."""
_LARGEST_NUMBER = 2**31
_MOST_NAMED = 5
_LEAST_SHARE = 0.1


@dataclass(frozen=True)
class WireFormat:
    """What sampled records say of the registry.

    Attributes:
        records: How many of the records name a schema.
        ids: Of their schemas, the commonest first.
        payloads: Of each schema, what stands behind its id in one of the records.
    """

    records: int
    ids: tuple[SchemaId, ...]
    payloads: Mapping[SchemaId, bytes] = field(default_factory=dict, repr=False, compare=False)

    @property
    def named(self) -> str:
        """The ids, in words."""
        ids = ", ".join(map(str, self.ids[:_MOST_NAMED])) + (", …" if len(self.ids) > _MOST_NAMED else "")
        return f"schema id {ids}" if len(self.ids) == 1 else f"schema ids {ids}"

    def __str__(self) -> str:
        """Return what it is, and what works."""
        count = "1 record begins" if self.records == 1 else f"{self.records:,} records begin"
        return (
            f"{count} with a byte 0 and the id of a schema in four bytes ({self.named}), or have it in a header: this is "
            "Confluent's wire format, that is, Avro, Protobuf or JSON Schema with a schema registry. Write format: avro, "
            "protobuf or json_schema, with registry: and a name of registries.yaml (docs/how-to/formats.md). With format: "
            "bytes the values land undecoded"
        )


def wire_format_of(
    values: Sequence[bytes | None], headers: Sequence[Headers | None] = (), name: Header = VALUE_HEADER
) -> WireFormat | None:
    """Return what a sample says of a registry; None where too few of the records name a schema.

    Args:
        values: The bytes of sampled records, or of their keys.
        headers: Of each of them; may be left out.
        name: Of the header that may name the schema.
    """
    present = [(value, of) for value, of in zip(values, [*headers] or [None] * len(values), strict=True) if value is not None]
    framed = [found for value, of in present if (found := schema_of(value, of, name)) is not None and found[1]]
    ids = Counter(one for one, _ in framed)
    if not ids or len(ids) > _MOST_IDS or ids.total() < _LEAST_SHARE * len(present):
        return None
    if any(isinstance(one, int) and one >= _LARGEST_NUMBER for one in ids):
        return None
    return WireFormat(ids.total(), tuple(one for one, _ in ids.most_common()), dict(reversed(framed)))


def foreign_frame_of(values: Sequence[bytes | None]) -> str | None:
    """Return what nearly all of a sample begins with that names a schema in a way that is not read; None where it does not."""
    present = [value for value in values if value]
    found = Counter(foreign_frame(value) for value in present).most_common(1)
    return found[0][0] if found and found[0][1] > len(present) / 2 else None
