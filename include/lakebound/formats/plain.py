"""Values that are not decoded: each is one column, as text or as bytes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import pyarrow as pa

from lakebound.formats.contract import NO_VALUE, Decoded, Problem, Records, ValueDecoder

PlainKind = Literal["string", "bytes"]
NOT_UTF8 = "not_utf8"
"""Reason of a text that is no UTF-8."""


@dataclass(frozen=True)
class PlainFormat:
    """Values are texts or bytes.

    Attributes:
        column: Name of their column.
        kind: Whether they are texts, in UTF-8, or bytes.
    """

    column: str
    kind: PlainKind

    @property
    def columns(self) -> pa.Schema:
        """What the decoder gives."""
        return pa.schema([pa.field(self.column, pa.string() if self.kind == "string" else pa.binary())])

    @property
    def reads_headers(self) -> bool:
        """Whether the decoder needs the records' headers."""
        return False

    @property
    def reads_topics(self) -> bool:
        """Whether the decoder needs the records' topics."""
        return False

    def decoder(self) -> ValueDecoder:
        """Return a decoder."""
        return self

    def decode(self, records: Records) -> Decoded:
        """Return what becomes of records."""
        values = records.values
        problems: dict[int, Problem] = {}
        if None in values:
            problems = {at: NO_VALUE for at, value in enumerate(values) if value is None}
        column, wrong = text_column(values) if self.kind == "string" else (pa.array(values, pa.binary()), {})
        problems |= {at: Problem(NOT_UTF8, f"the value is not UTF-8: {what}") for at, what in wrong.items()}
        decoded = Decoded({self.column: column}, problems, len(values))
        if not problems:
            return decoded
        return Decoded({self.column: column.take(pa.array(decoded.good, pa.int64()))}, problems, len(values))


def text_column(values: Sequence[bytes | None]) -> tuple[pa.Array, dict[int, str]]:
    """Return texts as a column, and by their positions what is wrong with those that are no UTF-8, which are null in it."""
    raw = pa.array(values, pa.binary())
    try:
        return raw.cast(pa.string()), {}
    except pa.ArrowInvalid:
        wrong = {at: what for at, value in enumerate(values) if value is not None and (what := _wrong(value)) is not None}
    kept = [None if at in wrong else value for at, value in enumerate(values)]
    return pa.array(kept, pa.binary()).cast(pa.string()), wrong


def _wrong(value: bytes) -> str | None:
    try:
        value.decode()
    except UnicodeDecodeError as exc:
        return f"byte {exc.start + 1} of {len(value)} is {value[exc.start]:02x}"
    return None
