"""JSON of Kafka Connect's converter with ``schemas.enable=true``: each record has a schema and a payload.

The payload is decoded as any JSON. Before, what the record's schema says to be of one of Connect's own types (Decimal, Date,
Time, Timestamp) is written as JSON has it, unless its column takes the bytes or the number as it is. All else stays as it was
sent.
Source: https://kafka.apache.org/41/javadoc/org/apache/kafka/connect/data/package-summary.html.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from decimal import Decimal, localcontext
from typing import Any

import msgspec
import pyarrow as pa

from lakebound.formats.contract import Decoded, Problem, Records, ValueDecoder
from lakebound.formats.json.record import RecordReader

Convert = Callable[[bytes], bytes]
"""The JSON of a value, as another JSON."""
_CONNECTS = "org.apache.kafka.connect.data."
_NO_ENVELOPE = Problem(
    "does_not_fit",
    "the record is not Kafka Connect's JSON with schema and payload: set value.converter.schemas.enable=true in the connector, "
    "or remove envelope: connect",
)
_REFUSED = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
_WHOLE = re.compile(rb"-?\d{1,19}")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_DAY_MS = 86_400_000
_MOST_DECIMAL_BYTES, _MOST_SCALE = 64, 400
"""No database has larger scales than Oracle's 127. A value of few bytes must not become a long text: this is some 60 each."""
_MOST_SCHEMAS, _MOST_SCHEMA_BYTES = 256, 4 << 20
"""What is kept of the records' schemas; one that is larger is kept alone."""

_members = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_elements = msgspec.json.Decoder(list[msgspec.Raw]).decode
_text = msgspec.json.Decoder(str).decode


class _MisfitError(ValueError):
    """A value, or a schema, is not what Kafka Connect would write; the text names it."""


class ConnectDecoder:
    """Decodes the payloads of values."""

    def __init__(self, columns: pa.Schema, payloads: ValueDecoder) -> None:
        """Decode nothing yet.

        Args:
            columns: What is made of each payload.
            payloads: Decodes them.
        """
        self._columns, self._payloads = pa.struct(list(columns)), payloads
        self._malformed = RecordReader(pa.schema([]))
        self._conversions: dict[bytes, Convert | Problem | None] = {}
        self._conversion_bytes = 0

    def decode(self, records: Records) -> Decoded:
        """Return what becomes of records."""
        problems: dict[int, Problem] = {}
        payloads: list[bytes | None] = []
        places: list[int] = []
        for at, value in enumerate(records.values):
            made = None if value is None else self._payload(value)
            if isinstance(made, Problem):
                problems[at] = made
                continue
            payloads.append(made)
            places.append(at)
        decoded = self._payloads.decode(Records([None] * len(payloads), payloads))
        problems |= {places[at]: problem for at, problem in decoded.problems.items()}
        return Decoded(decoded.columns, problems, len(records.values))

    def _payload(self, value: bytes) -> bytes | Problem | None:
        """Return the payload as JSON has it; None where the record has no value."""
        try:
            members = _members(value)
        except _REFUSED:
            found = self._malformed.read(value)
            return found if isinstance(found, Problem) else _NO_ENVELOPE
        if not {"schema", "payload"} <= members.keys():
            return _NO_ENVELOPE
        payload = bytes(members["payload"])
        if payload == b"null":
            return None
        convert = self._conversion(bytes(members["schema"]))
        if convert is None or isinstance(convert, Problem):
            return payload if convert is None else convert
        try:
            return convert(payload)
        except _MisfitError as exc:
            return Problem("does_not_fit", str(exc))
        except RecursionError:
            return payload  # Whoever decodes it says that it is too deep.

    def _conversion(self, schema: bytes) -> Convert | Problem | None:
        """Return what makes JSON of payloads of a schema; None where they are JSON already."""
        if schema not in self._conversions:
            self._conversion_bytes += len(schema)
            if len(self._conversions) >= _MOST_SCHEMAS or self._conversion_bytes > _MOST_SCHEMA_BYTES:
                self._conversions.clear()
                self._conversion_bytes = len(schema)
            self._conversions[schema] = self._conversion_of(schema)
        return self._conversions[schema]

    def _conversion_of(self, schema: bytes) -> Convert | Problem | None:
        try:
            node = msgspec.json.decode(schema)
            return None if node is None else conversion(node, self._columns, "")
        except _MisfitError as exc:
            return Problem("does_not_fit", f"the record's schema is none of Kafka Connect: {exc}")
        except _REFUSED as exc:
            return Problem("does_not_fit", f"the record's schema cannot be read: {type(exc).__name__}")


def conversion(node: Any, kind: pa.DataType, path: str) -> Convert | None:
    """Return what makes the JSON of a column of the JSON of a value; None where it is the same.

    Args:
        node: The value's schema, as Kafka Connect writes it.
        kind: Of the column.
        path: Dotted path of the value; empty for all of the payload.

    Raises:
        ValueError: It is no schema of Kafka Connect.
    """
    if not isinstance(node, dict) or not isinstance(node.get("type"), str):
        raise _MisfitError(f"{path or 'the record'} has no type")
    written, name = node["type"], node.get("name")
    if written == "struct" and pa.types.is_struct(kind):
        return _of_struct(node, kind, path)
    if written == "array" and pa.types.is_list(kind):
        inside = conversion(node.get("items"), kind.value_type, f"{path}[]")
        return None if inside is None else _of_elements(inside)
    if written == "map" and pa.types.is_map(kind):
        inside = conversion(node.get("values"), kind.item_type, f"{path}[]")
        return None if inside is None else _of_members(inside)
    if not isinstance(name, str) or written not in ("bytes", "int32", "int64"):
        return None
    return _of_leaf(name, written, node.get("parameters"), kind, path)


def _of_struct(node: Mapping[str, Any], kind: pa.StructType, path: str) -> Convert | None:
    fields = node.get("fields")
    if not isinstance(fields, list) or not all(isinstance(one, dict) and isinstance(one.get("field"), str) for one in fields):
        raise _MisfitError(f"{path or 'the record'} is a struct without fields")
    known = {one["field"]: one for one in fields}
    inside = {
        column.name: convert
        for column in kind
        if column.name in known
        and (convert := conversion(known[column.name], column.type, f"{path}.{column.name}".lstrip("."))) is not None
    }
    return _of_chosen(inside) if inside else None


def _of_chosen(inside: Mapping[str, Convert]) -> Convert:
    def convert(value: bytes) -> bytes:
        members = _read(_members, value)
        if members is None:
            return value
        for name, one in inside.items():
            if name in members:
                members[name] = msgspec.Raw(one(bytes(members[name])))
        return msgspec.json.encode(members)

    return convert


def _of_members(inside: Convert) -> Convert:
    def convert(value: bytes) -> bytes:
        members = _read(_members, value)
        if members is None:
            return value
        return msgspec.json.encode({name: msgspec.Raw(inside(bytes(one))) for name, one in members.items()})

    return convert


def _of_elements(inside: Convert) -> Convert:
    def convert(value: bytes) -> bytes:
        elements = _read(_elements, value)
        return value if elements is None else msgspec.json.encode([msgspec.Raw(inside(bytes(one))) for one in elements])

    return convert


def _read(decode: Callable[[bytes], Any], value: bytes) -> Any:
    """Return what is inside of a value; None where it is something else: whoever decodes it then says what is wrong."""
    try:
        return decode(value)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return None


def _of_leaf(name: str, written: str, parameters: Any, kind: pa.DataType, path: str) -> Convert | None:
    is_number = pa.types.is_integer(kind) or pa.types.is_floating(kind)
    if name == f"{_CONNECTS}Decimal" and written == "bytes":
        return None if pa.types.is_binary(kind) else _decimal(_scale(parameters, path), path)
    if is_number or pa.types.is_decimal(kind) or written == "bytes":
        return None
    if name == f"{_CONNECTS}Date":
        return _moment(path, "Date", lambda days: _iso(timedelta(days=days))[:10])
    if name == f"{_CONNECTS}Timestamp":
        zone = "" if pa.types.is_timestamp(kind) and kind.tz is None else "Z"
        return _moment(path, "Timestamp", lambda ms: _iso(timedelta(milliseconds=ms)) + zone)
    if name == f"{_CONNECTS}Time" and pa.types.is_string(kind):
        return _moment(path, "Time", _time_of_day)
    if pa.types.is_temporal(kind):
        # As a plain number it would be read as seconds.
        return _refused(f"{path}: its type {name} is not read; take it as BIGINT, and convert it in the transform")
    return None


def _scale(parameters: Any, path: str) -> int:
    scale = parameters.get("scale") if isinstance(parameters, dict) else None
    if not isinstance(scale, str) or re.fullmatch(r"-?\d{1,4}", scale) is None or abs(int(scale)) > _MOST_SCALE:
        raise _MisfitError(f"{path} is a Decimal without a scale of at most {_MOST_SCALE} digits")
    return int(scale)


def _decimal(scale: int, path: str) -> Convert:
    def convert(value: bytes) -> bytes:
        if not value.startswith(b'"'):
            return value  # null, or a number: decimal.format=NUMERIC.
        try:
            raw = base64.b64decode(_text(value), validate=True)
        except (binascii.Error, ValueError):
            raise _MisfitError(f"{path}: a Decimal of Kafka Connect is base64") from None
        if not 0 < len(raw) <= _MOST_DECIMAL_BYTES:
            raise _MisfitError(f"{path}: a Decimal of {len(raw)} bytes")
        with localcontext(prec=3 * _MOST_DECIMAL_BYTES):
            return format(Decimal(int.from_bytes(raw, "big", signed=True)).scaleb(-scale), "f").encode()

    return convert


def _moment(path: str, kind: str, made: Callable[[int], str]) -> Convert:
    def convert(value: bytes) -> bytes:
        if value == b"null":
            return value
        try:
            if _WHOLE.fullmatch(value) is None:
                raise ValueError
            return f'"{made(int(value))}"'.encode()
        except (OverflowError, ValueError):
            told = value[:40].decode(errors="replace")
            raise _MisfitError(f"{path}: {told} is no {kind} of Kafka Connect, or not of the years 1 to 9999") from None

    return convert


def _iso(since_epoch: timedelta) -> str:
    return (_EPOCH + since_epoch).replace(tzinfo=None).isoformat(timespec="milliseconds")


def _time_of_day(milliseconds: int) -> str:
    if not 0 <= milliseconds < _DAY_MS:
        raise ValueError
    return _iso(timedelta(milliseconds=milliseconds))[11:]


def _refused(told: str) -> Convert:
    def convert(value: bytes) -> bytes:
        if value == b"null":
            return value
        raise _MisfitError(told)

    return convert
