"""Which message of a schema a record is: by its name, and by the indexes that Confluent's serialisers put before it. Pure.

The indexes lead from the file to the message: ``[1]`` is its second message, ``[1, 0]`` the first one inside of that. Numbers
are zigzag varints, the count first; a single zero byte is ``[0]``.
Source: https://docs.confluent.io/platform/current/schema-registry/fundamentals/serdes-develop/index.html#wire-format.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache

from google.protobuf.descriptor import Descriptor, FieldDescriptor, FileDescriptor
from google.protobuf.descriptor_pb2 import FileDescriptorProto

from lakebound.formats.schemas import UnreadableSchemaError

Indexes = tuple[int, ...]
_MOST_INDEXES = 32
_MOST_BYTES = 5
"""Of a number: with more it is beyond 32 bits."""


def record_of(file: FileDescriptor, name: str | None) -> Descriptor:
    """Return a message of a file.

    Args:
        file: The file.
        name: Full name of the message; None: the first one.

    Raises:
        UnreadableSchemaError: It has no such message.
    """
    messages = dict(_messages(file))
    if not messages:
        raise UnreadableSchemaError("", "the schema has no message")
    if name is None:
        return next(iter(messages.values()))
    if name not in messages:
        raise UnreadableSchemaError("", f"the schema has no message {name}; it has {_some(messages)}")
    return messages[name]


def counterpart(message: Descriptor, file: FileDescriptor) -> Descriptor | None:
    """Return the message of another version of a file that stands for the same records; None where nothing says which.

    It is the one of the same name, whatever the package; of two files that each have one message at their top it is that one:
    a registry lets a subject rename both.

    Args:
        message: Of one version.
        file: The other version.
    """
    name = _name_in_package(message)
    found = next((one for _, one in _messages(file) if _name_in_package(one) == name), None)
    tops, others = [*file.message_types_by_name.values()], message.file.message_types_by_name
    return tops[0] if found is None and message.containing_type is None and len(others) == len(tops) == 1 else found


def messages_of(file: FileDescriptor) -> tuple[str, ...]:
    """Return the full names of the messages at the top of a file; the first one is that of its records."""
    return tuple(one.full_name for one in file.message_types_by_name.values())


def _name_in_package(message: Descriptor) -> str:
    name: str = message.full_name
    return name.removeprefix(f"{message.file.package}.")


def indexes_of(message: Descriptor) -> frozenset[Indexes]:
    """Return the indexes by which a message is named, and no other one.

    Mostly they are one. Where a map or a group stands before a nested message, serialisers differ: in Python and Go the
    messages that Protobuf makes of these count, in Java they do not. Indexes that are of one message in one way to count and
    of another one in the other way name neither.

    Raises:
        UnreadableSchemaError: All of its indexes name another message, too.
    """
    found = {_indexes(message, counts_all=True), _indexes(message, counts_all=False)}
    named = {one: [each.full_name for each in messages_at(message.file, one)] for one in found}
    alone = frozenset(one for one, names in named.items() if {*names} <= {message.full_name})
    if not alone:
        others = ", ".join(sorted({name for names in named.values() for name in names} - {message.full_name}))
        told = "messages of maps before it count in some serialisers: put it at the top of the schema, or before the maps"
        raise UnreadableSchemaError("", f"nothing tells records of {message.full_name} from those of {others}: {told}")
    return alone


def messages_at(file: FileDescriptor, indexes: Indexes) -> list[Descriptor]:
    """Return the messages that indexes name in the two ways to count; none of a map or a group, which nobody sends alone."""
    found: dict[str, Descriptor] = {}
    for counts_all in (True, False):
        one = _message_at(file, indexes, counts_all=counts_all)
        if one is not None and (one.containing_type is None or one.full_name not in _unwritten(one.containing_type)):
            found.setdefault(one.full_name, one)
    return [*found.values()]


def message_at(file: FileDescriptor, indexes: Indexes) -> Descriptor | None:
    """Return the message that indexes name; None where there is none, or where they name two."""
    found = messages_at(file, indexes)
    return found[0] if len(found) == 1 else None


def _message_at(file: FileDescriptor, indexes: Indexes, *, counts_all: bool) -> Descriptor | None:
    found, inside = None, [*file.message_types_by_name.values()]
    for index in indexes:
        if not 0 <= index < len(inside):
            return None
        found = inside[index]
        unwritten = frozenset[str]() if counts_all else _unwritten(found)
        inside = [one for one in found.nested_types if one.full_name not in unwritten]
    return found


def read_indexes(payload: bytes) -> tuple[Indexes, int] | None:
    """Return the indexes with which a payload begins, and where the message begins; None where it does not begin so."""
    found = _zigzag(payload, 0)
    if found is None:
        return None
    count, at = found
    if count == 0:
        return (0,), at
    if not 0 < count <= _MOST_INDEXES:
        return None
    indexes = []
    for _ in range(count):
        found = _zigzag(payload, at)
        if found is None:
            return None
        indexes.append(found[0])
        at = found[1]
    return tuple(indexes), at


def written(indexes: Indexes) -> bytes:
    """Return indexes as serialisers write them."""
    return b"\0" if indexes == (0,) else b"".join(varint(2 * number) for number in (len(indexes), *indexes))


def varint(number: int) -> bytes:
    """Return a number that is not negative as Protobuf writes it."""
    found = bytearray()
    while number > 127:
        found.append(number & 127 | 128)
        number >>= 7
    return bytes([*found, number])


def _zigzag(payload: bytes, at: int) -> tuple[int, int] | None:
    number = 0
    for place, byte in enumerate(payload[at : at + _MOST_BYTES]):
        number |= (byte & 127) << 7 * place
        if byte < 128:
            return (number >> 1) ^ -(number & 1), at + place + 1
    return None


def _messages(file: FileDescriptor) -> Iterator[tuple[str, Descriptor]]:
    waiting = [*reversed(file.message_types_by_name.values())]
    while waiting:
        one = waiting.pop()
        if not is_entry(one):
            yield one.full_name, one
            waiting += [*reversed(one.nested_types)]


def is_entry(message: Descriptor) -> bool:
    """Whether a message stands for the entries of a map."""
    return bool(message.GetOptions().map_entry)


def _indexes(message: Descriptor, *, counts_all: bool) -> Indexes:
    found: list[int] = []
    one: Descriptor | None = message
    while one is not None:
        around: Descriptor | None = one.containing_type
        beside = [*(one.file.message_types_by_name.values() if around is None else around.nested_types)]
        before = beside[: [each.full_name for each in beside].index(one.full_name)]
        unwritten = frozenset() if counts_all or around is None else _unwritten(around)
        found.insert(0, sum(each.full_name not in unwritten for each in before))
        one = around
    return tuple(found)


@lru_cache(maxsize=256)  # It is asked for each record of another message.
def _unwritten(message: Descriptor) -> frozenset[str]:
    """Return the messages inside of a message that no ``message`` in the text defines: of maps, and of proto2's groups."""
    entries = {one.full_name for one in message.nested_types if is_entry(one)}
    if FileDescriptorProto.FromString(message.file.serialized_pb).syntax not in ("", "proto2"):
        return frozenset(entries)
    fields = (*message.fields, *message.extensions)
    return frozenset(entries | {one.message_type.full_name for one in fields if one.type == FieldDescriptor.TYPE_GROUP})


def _some(names: Iterable[str]) -> str:
    named = [*names]
    return ", ".join(named[:5]) + (f" and {len(named) - 5} more" if len(named) > 5 else "")
