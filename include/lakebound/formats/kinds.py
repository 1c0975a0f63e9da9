"""The value formats that there are: what a pipeline says of its values, and the decoder that it gives.

A format is a frozen value that can be pickled, so that each of Spark's executors makes its own decoder.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

import pyarrow as pa

from lakebound.formats.contract import NO_VALUE, Decoded, Records, ValueDecoder
from lakebound.formats.json.decoder import JsonDecoder


class ValueFormat(Protocol):
    """What tells how values are decoded."""

    @property
    def columns(self) -> pa.Schema:
        """What the decoder gives; a field that is not nullable is required."""

    def decoder(self) -> ValueDecoder:
        """Return a decoder."""

    def __hash__(self) -> int:
        """Equal formats have one decoder in a process."""


_BYTES = pa.schema([pa.field("key", pa.binary()), pa.field("value", pa.binary())])


@dataclass(frozen=True)
class JsonFormat:
    """Values are JSON objects.

    Attributes:
        columns: Fields of the objects.
        unhoused: Those of them for which a table has no column.
        unknown_refused: Whether a field that is not among them is a problem.
    """

    columns: pa.Schema
    unhoused: tuple[str, ...] = ()
    unknown_refused: bool = False

    def decoder(self) -> ValueDecoder:
        """Return a decoder."""
        return JsonDecoder(self.columns, self.unhoused, unknown_refused=self.unknown_refused)


@dataclass(frozen=True)
class BytesFormat:
    """Values are not decoded: key and value are columns as they are."""

    @property
    def columns(self) -> pa.Schema:
        """What the decoder gives."""
        return _BYTES

    def decoder(self) -> ValueDecoder:
        """Return a decoder."""
        return self

    def decode(self, records: Records) -> Decoded:
        """Return what becomes of records."""
        missing = [at for at, value in enumerate(records.values) if value is None]
        columns = {"key": pa.array(records.keys, pa.binary()), "value": pa.array(records.values, pa.binary())}
        decoded = Decoded(columns, dict.fromkeys(missing, NO_VALUE), len(records.values))
        if not missing:
            return decoded
        good = pa.array(decoded.good, pa.int64())
        return Decoded({name: column.take(good) for name, column in columns.items()}, decoded.problems, decoded.count)


@lru_cache(maxsize=16)
def decoder_of(form: ValueFormat) -> ValueDecoder:
    """Return the decoder of a format; one per process."""
    return form.decoder()
