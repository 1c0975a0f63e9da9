"""Intervals of offsets as short text: 10,000 scattered offsets are 178 kB as JSON, and 19 kB packed. Pure.

Each interval is its distance from the one before and its length, as variable-length integers of seven bits per byte
(https://protobuf.dev/programming-guides/encoding/#varints), deflated, in base64.
"""

from __future__ import annotations

import base64
import binascii
import zlib
from collections.abc import Iterator, Sequence

from lakebound.ledger.intervals import Intervals

_PLAIN = 16
"""Up to this number, intervals are not packed: a person can read them."""

_MAX_BYTES = 16 * 1024 * 1024
"""Of the unpacked bytes; anybody who may write to a table could have forged them."""

_MAX_OFFSET = 2**63 - 1


def pack(intervals: Sequence[Sequence[int]]) -> str | list[list[int]]:
    """Return merged intervals as text, or as a list where they are few."""
    if len(intervals) <= _PLAIN:
        return [list(interval) for interval in intervals]
    packed, last = bytearray(), 0
    for start, end in intervals:
        _append(packed, start - last)
        _append(packed, end - start)
        last = end
    return base64.b64encode(zlib.compress(bytes(packed), 9)).decode()


def unpack(text: str) -> Intervals:
    """Return the intervals in a text of ``pack``.

    Raises:
        ValueError: It is none.
    """
    try:
        inflating = zlib.decompressobj()
        packed = inflating.decompress(base64.b64decode(text, validate=True), _MAX_BYTES)
    except (binascii.Error, zlib.error) as exc:
        raise ValueError(f"cannot be unpacked: {exc}") from exc
    if not inflating.eof:
        raise ValueError(f"are cut off, or more than {_MAX_BYTES} bytes")
    numbers = list(_numbers(packed))
    if len(numbers) % 2:
        raise ValueError("end in the middle of an interval")
    found, last = [], 0
    for distance, length in zip(numbers[::2], numbers[1::2], strict=True):
        start = last + distance
        last = start + length
        found.append((start, last))
    if last > _MAX_OFFSET:
        raise ValueError(f"go up to {last}, which is more than Kafka can have")
    return tuple(found)


def _append(packed: bytearray, number: int) -> None:
    while number >= 0x80:
        packed.append(number & 0x7F | 0x80)
        number >>= 7
    packed.append(number)


def _numbers(packed: bytes) -> Iterator[int]:
    number = shift = 0
    for byte in packed:
        number |= (byte & 0x7F) << shift
        if shift > 63:
            raise ValueError("hold a number of more than 64 bits")
        if byte & 0x80:
            shift += 7
        else:
            yield number
            number = shift = 0
    if shift:
        raise ValueError("end in the middle of a number")
