"""Numbers and blocks of items in the bytes of a record, and what is wrong with them. Pure."""

from __future__ import annotations

from lakebound.formats.avro.shape import RepeatedPart

_MOST_SHIFT = 63


class MalformedError(ValueError):
    """The bytes are not as the schema says: the path of the part, and what is wrong with it."""

    def __init__(self, path: str, told: str) -> None:
        super().__init__(f"{path}: {told}" if path else told)


def number_at(data: bytes, at: int, end: int, path: str) -> tuple[int, int]:
    """Return a number, and the position behind it.

    Args:
        data: The bytes.
        at: Where it begins.
        end: Of the record.
        path: Of the part that it is of, or is a length in.

    Raises:
        MalformedError: The record ends before it, or it has more than 64 bits.
    """
    found = shift = 0
    while at < end:
        byte = data[at]
        at += 1
        found |= (byte & 0x7F) << shift
        if byte < 0x80:
            if shift == _MOST_SHIFT and byte > 1:
                break
            return (found >> 1) ^ -(found & 1), at
        if shift == _MOST_SHIFT:
            break
        shift += 7
    else:
        raise MalformedError(path, "the record ends within a number" if shift else "the record ends before it")
    raise MalformedError(path, "a number has more than 64 bits")


def block_at(part: RepeatedPart, data: bytes, at: int, end: int) -> tuple[int, int | None, int]:
    """Return how many items a block has, where it claims to end (None: it does not), and where they begin.

    Raises:
        MalformedError: The record has fewer bytes than it claims.
    """
    items, at = number_at(data, at, end, part.path)
    stop = None
    if items < 0:
        items = -items
        size, at = number_at(data, at, end, part.path)
        if not 0 <= size <= end - at:
            raise MalformedError(part.path, f"a block claims {bytes_told(size)}, and the record has {end - at} more")
        stop = at + size
    if items * part.least_bytes > end - at:
        raise MalformedError(part.path, f"it claims {items:,} items, and the record has {bytes_told(end - at)} more")
    return items, stop, at


def bytes_told(number: int) -> str:
    """Return a number of bytes in words."""
    return f"{number:,} byte" + ("" if number == 1 else "s")
