"""One field after the other, and what is wrong with the bytes. Pure."""

from __future__ import annotations

from lakebound.formats.protobuf.buffer import Buffer
from lakebound.formats.protobuf.shape import Shape

VARINT, FIXED64, LENGTH, GROUP, END, FIXED32 = range(6)
"""Kinds of fields, the lowest three bits of a tag."""
FIXED_SIZES = {FIXED64: 8, FIXED32: 4}
DEEPEST = 100
"""Messages and groups within each other: the bound of Protobuf's own readers."""
_MOST_TAG_BYTES = 5
_MOST_TAG = (1 << 32) - 1


class BrokenError(Exception):
    """Bytes are no message; the text says why."""


def field_at(buffer: Buffer, at: int, end: int, shape: Shape) -> tuple[int, int, int, int, int]:
    """Return tag, position, value and end of the field that begins at a position, and where the next one begins.

    The value of a varint is its number, of any other field the position of its first byte; a group ends before its last tag.

    Args:
        buffer: The bytes.
        at: Where the field begins.
        end: Where its message ends.
        shape: Which message it is.

    Raises:
        BrokenError: The bytes are no field.
    """
    raw = buffer.raw
    tag = raw[at]
    if 8 <= tag < 0x80 and tag & 7 == LENGTH and at + 2 + (size := raw[at + 1]) <= end and size < 0x80:
        return tag, at + 1, at + 2, at + 2 + size, at + 2 + size  # the usual one: number and size are short
    tag, at = _tag(buffer, at, end, shape)
    if tag & 7 == VARINT:
        found = buffer.varint(at, end)
        if found is None:
            raise BrokenError(f"{shape.told(tag >> 3)} breaks off, or is too long a number")
        return tag, at, *found, found[1]
    if tag & 7 == GROUP:
        last, behind = _group(buffer, at, end, tag >> 3, shape)
        return tag, at, at, last, behind
    if tag & 7 == END:
        raise BrokenError(f"{shape.told(tag >> 3)} ends, and has not begun")
    start, behind = _sized(buffer, tag, at, end, shape)
    return tag, at, start, behind, behind


def _tag(buffer: Buffer, at: int, end: int, shape: Shape) -> tuple[int, int]:
    found = buffer.varint(at, min(end, at + _MOST_TAG_BYTES))
    if found is None or not 8 <= found[0] <= _MOST_TAG or found[0] & 7 > FIXED32:
        raise BrokenError(f"no field of {'.'.join(shape.path) or 'the record'} begins where one should")
    return found


def _sized(buffer: Buffer, tag: int, at: int, end: int, shape: Shape) -> tuple[int, int]:
    """Return where a value begins and ends that has a size, or is told one."""
    size = FIXED_SIZES.get(tag & 7)
    if size is None:
        found = buffer.varint(at, end)
        if found is None:
            raise BrokenError(f"{shape.told(tag >> 3)} breaks off")
        size, at = found
    if size > end - at:
        raise BrokenError(f"{shape.told(tag >> 3)} has {size:,} bytes, and {end - at:,} are left")
    return at, at + size


def _group(buffer: Buffer, at: int, end: int, number: int, shape: Shape) -> tuple[int, int]:
    """Return where a group's fields end, and where the group does."""
    waiting = [number]
    while at < end:
        if len(shape.path) + len(waiting) > DEEPEST:
            raise BrokenError(f"messages lie more than {DEEPEST} levels deep within each other")
        start = at
        tag, at = _tag(buffer, at, end, shape)
        kind = tag & 7
        if kind == GROUP:
            waiting.append(tag >> 3)
        elif kind == END:
            if waiting.pop() != tag >> 3:
                raise BrokenError(f"{shape.told(number)} ends as field {tag >> 3} does")
            if not waiting:
                return start, at
        elif kind == VARINT:
            found = buffer.varint(at, end)
            if found is None:
                raise BrokenError(f"{shape.told(number)} breaks off, or has too long a number")
            at = found[1]
        else:
            at = _sized(buffer, tag, at, end, shape)[1]
    raise BrokenError(f"{shape.told(number)} does not end")
