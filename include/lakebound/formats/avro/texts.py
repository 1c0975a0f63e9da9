"""Columns of Avro's texts, bytes and symbols."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from lakebound.formats.avro.making import FEW, Making
from lakebound.formats.avro.numbers import Convert
from lakebound.formats.avro.tape import Numbers
from lakebound.formats.room import PER_BYTE

_HEX = np.frombuffer(b"0123456789abcdef", np.uint8)
_UUID_CHARACTERS, _UUID_DASHES = 36, (8, 13, 18, 23)


def spans_of(values: Numbers, size: int | None) -> Numbers:
    """Return where values begin and end.

    Args:
        values: What is on the tape: both, or where they begin.
        size: Bytes of each, where they begin.
    """
    return values.reshape(-1, 2) if size is None else np.stack([values, values + size], axis=1)


def binaries(size: int | None = None) -> Convert:
    """Return what makes bytes, of a size or of any."""
    return lambda making, values, owners, path: making.binary(_within(making, spans_of(values, size)))


def _within(making: Making, spans: Numbers) -> Numbers:
    return np.minimum(spans, len(making.data))


def texts(making: Making, values: Numbers, owners: Numbers, path: str) -> pa.Array:
    """Make texts; one that is not UTF-8 does not fit."""
    spans = spans_of(values, None)
    try:
        return making.few_texts(spans) if len(spans) < FEW else making.binary(spans).cast(pa.string())
    except (UnicodeDecodeError, pa.ArrowInvalid):  # at least one is not
        pass
    raw = making.binary(spans).to_pylist()
    bad = np.array([not _is_utf8(one) for one in raw], np.bool_)
    making.note(bad, owners, path, lambda at: f"{raw[at][:20]!r} is not UTF-8", "not_utf8")
    return pa.array([b"" if wrong else one for one, wrong in zip(raw, bad, strict=True)], pa.binary()).cast(pa.string())


def symbols(names: Sequence[str | None], written: Sequence[str], reader: str) -> Convert:
    """Return what makes texts of the numbers of symbols.

    Args:
        names: As what each is read; None: it is not among the reader's.
        written: As what each was written.
        reader: The reader's type, in words.
    """
    table, missing = pa.array(names, pa.string()), np.array([name is None for name in names], np.bool_)
    lengths = np.array([len((name or "").encode()) for name in names], np.int64)
    is_long = bool(lengths.max(initial=0) > PER_BYTE)  # a shorter one is within what its own byte may take

    def convert(making: Making, values: Numbers, owners: Numbers, path: str) -> pa.Array:
        if missing.any():
            told = f"is not a symbol of the reader's {reader}, which has no default"
            making.note(missing[values], owners, path, lambda at: f"{written[values[at]]} {told}")
        if is_long:
            making.take(owners, lengths[values])
        return table.take(pa.array(values))

    return convert


def uuid_texts(making: Making, values: Numbers, owners: Numbers, path: str) -> pa.Array:
    """Make texts of UUIDs in 16 bytes."""
    raw = making.fixed(values, 16)
    made = np.full((len(raw), _UUID_CHARACTERS), ord("-"), np.uint8)
    places = [at for at in range(_UUID_CHARACTERS) if at not in _UUID_DASHES]
    made[:, places[0::2]] = _HEX[raw >> 4]
    made[:, places[1::2]] = _HEX[raw & 15]
    offsets = np.arange(len(raw) + 1, dtype=np.int32) * _UUID_CHARACTERS
    return pa.Array.from_buffers(pa.string(), len(raw), [None, pa.py_buffer(offsets), pa.py_buffer(made)])


def durations(making: Making, values: Numbers, owners: Numbers, path: str) -> pa.Array:
    """Make structs of months, days and milliseconds."""
    found = np.ascontiguousarray(making.fixed(values, 12)).view("<u4").astype(np.int64)
    names = ("months", "days", "milliseconds")
    return pa.StructArray.from_arrays([pa.array(found[:, at].copy()) for at in range(3)], names)


def _is_utf8(raw: bytes) -> bool:
    try:
        raw.decode()
    except UnicodeDecodeError:
        return False
    return True
