"""Why bytes are no message, in words: the first field that cannot be read, by its path. Pure."""

from __future__ import annotations

from google.protobuf.descriptor import Descriptor

_DEEPEST = 100
_VARINT, _FIXED64, _BYTES, _GROUP, _END, _FIXED32 = range(6)
_FIXED = {_FIXED64: 8, _FIXED32: 4}
_MOST_VARINT_BYTES = 10


class _BrokenError(Exception):
    """Bytes cannot be read on."""


def why_malformed(payload: bytes, message: Descriptor) -> str:
    """Return what is wrong with bytes that Protobuf's reader refuses.

    Args:
        payload: The bytes.
        message: Which they should be.
    """
    try:
        _Walk(payload).message(message, 0, len(payload), ())
    except _BrokenError as exc:
        return f"it is no {message.full_name}: {exc}"
    return f"it is no {message.full_name}: messages lie more than {_DEEPEST} levels deep, or a text is not UTF-8"


class _Walk:
    """Reads over bytes."""

    def __init__(self, payload: bytes) -> None:
        self._payload = payload

    def message(self, message: Descriptor | None, at: int, end: int, path: tuple[str, ...], group: int = 0) -> int:
        """Read a message, or a group up to its end; return where it ends.

        Args:
            message: Which one; None: a field that the schema does not have.
            at: Where it begins.
            end: Where the bytes end in which it lies.
            path: Names that lead to it.
            group: Number of the field, of a group.
        """
        if len(path) > _DEEPEST:
            raise _BrokenError(f"messages lie more than {_DEEPEST} levels deep")
        while at < end:
            start = at
            tag, at = self._varint(at, end, path)
            number, kind = tag >> 3, tag & 7
            if kind == _END and group:
                if number != group:
                    raise _BrokenError(f"{_told(path)} ends as field {number} does, at byte {start}")
                return at
            field = message.fields_by_number.get(number) if message is not None else None
            inside = (*path, field.name if field is not None else f"field {number}")
            if not 0 < number < 1 << 29 or kind not in (_VARINT, _BYTES, _GROUP, *_FIXED):
                raise _BrokenError(f"no field of {_told(path)} begins at byte {start}")
            at = self._value(kind, at, end, inside, field.message_type if field is not None else None, number)
        if group:
            raise _BrokenError(f"{_told(path)} does not end")
        return at

    def _value(self, kind: int, at: int, end: int, path: tuple[str, ...], message: Descriptor | None, number: int) -> int:
        if kind == _VARINT:
            return self._varint(at, end, path)[1]
        if kind == _GROUP:
            return self.message(message, at, end, path, number)
        size = _FIXED.get(kind)
        if size is None:
            size, at = self._varint(at, end, path)
        if size > end - at:
            raise _BrokenError(f"{_told(path)} has {size:,} bytes, and {end - at:,} are left")
        if kind == _BYTES and message is not None:
            self.message(message, at, at + size, path)
        return at + size

    def _varint(self, at: int, end: int, path: tuple[str, ...]) -> tuple[int, int]:
        number = 0
        for place, byte in enumerate(self._payload[at : min(end, at + _MOST_VARINT_BYTES)]):
            number |= (byte & 127) << 7 * place
            if byte < 128:
                return number, at + place + 1
        raise _BrokenError(f"{_told(path)} breaks off, or has too long a number, at byte {at}")


def _told(path: tuple[str, ...]) -> str:
    return ".".join(path) or "the record"
