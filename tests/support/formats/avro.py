"""A plain reader of Avro, written from the specification alone: what a payload is in its columns, or that it is none.

It imports nothing of lakebound, and reads one value after the other, as strictly as can be.
"""

from __future__ import annotations

import struct
import uuid
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

EPOCH = datetime(1970, 1, 1)
PRIMITIVES = ("null", "boolean", "int", "long", "float", "double", "bytes", "string")


class RefusedError(Exception):
    """The payload is no value of the schema, or one that no column holds."""


class PlainReader:
    """Reads one payload."""

    def __init__(self, payload: bytes) -> None:
        self.left = payload
        self.named: dict[str, Any] = {}

    def whole(self, schema: Any) -> Any:
        """Return the value of all of the payload."""
        found = self.value(schema)
        if self.left:
            raise RefusedError(f"{len(self.left)} bytes left")
        return found

    def take(self, size: int) -> bytes:
        if not 0 <= size <= len(self.left):
            raise RefusedError(f"{size} of {len(self.left)} bytes")
        found, self.left = self.left[:size], self.left[size:]
        return found

    def long(self) -> int:
        found = 0
        for place in range(10):
            byte = self.take(1)[0]
            found += (byte % 128) * 128**place
            if byte < 128:
                break
        else:
            raise RefusedError("no end of a number")
        if found >= 2**64:
            raise RefusedError("a long number")
        return -(found + 1) // 2 if found % 2 else found // 2

    def value(self, schema: Any) -> Any:
        if isinstance(schema, list):
            return self.union(schema)
        if isinstance(schema, str):
            schema = {"type": schema} if schema in PRIMITIVES else self.named[schema]
        if "name" in schema:
            self.named[schema["name"]] = schema
        return getattr(self, f"of_{schema['type']}")(schema)

    def union(self, schema: list[Any]) -> Any:
        number = self.long()
        if not 0 <= number < len(schema):
            raise RefusedError("no branch")
        found = self.value(schema[number])
        several = [name_of(one) for one in schema if one != "null"]
        if len(several) == 1 or schema[number] == "null":
            return found
        return dict.fromkeys(several) | {name_of(schema[number]): found}

    def of_null(self, schema: Any) -> None:
        return None

    def of_boolean(self, schema: Any) -> bool:
        byte = self.take(1)[0]
        if byte > 1:
            raise RefusedError("no boolean")
        return bool(byte)

    def of_int(self, schema: Any) -> Any:
        found = self.long()
        if not -(2**31) <= found < 2**31:
            raise RefusedError("no int")
        return whole(found, schema.get("logicalType"))

    def of_long(self, schema: Any) -> Any:
        return whole(self.long(), schema.get("logicalType"))

    def of_float(self, schema: Any) -> float:
        return float(struct.unpack("<f", self.take(4))[0])

    def of_double(self, schema: Any) -> float:
        return float(struct.unpack("<d", self.take(8))[0])

    def of_bytes(self, schema: Any) -> Any:
        found = self.take(self.long())
        return decimal(found, schema) if schema.get("logicalType") == "decimal" else found

    def of_string(self, schema: Any) -> str:
        try:
            return self.take(self.long()).decode()
        except UnicodeDecodeError as exc:
            raise RefusedError from exc

    def of_fixed(self, schema: Any) -> Any:
        found, logical = self.take(schema["size"]), schema.get("logicalType")
        if logical == "decimal":
            return decimal(found, schema)
        if logical == "uuid":
            return str(uuid.UUID(bytes=found))
        if logical == "duration":
            return dict(zip(("months", "days", "milliseconds"), struct.unpack("<III", found), strict=True))
        return found

    def of_enum(self, schema: Any) -> str:
        number = self.long()
        if not 0 <= number < len(schema["symbols"]):
            raise RefusedError("no symbol")
        return str(schema["symbols"][number])

    def of_record(self, schema: Any) -> dict[str, Any]:
        return {field["name"]: self.value(field["type"]) for field in schema["fields"]}

    def of_array(self, schema: Any) -> list[Any]:
        return self.items(lambda: self.value(schema["items"]))

    def of_map(self, schema: Any) -> list[tuple[str, Any]]:
        found = self.items(lambda: (self.of_string({}), self.value(schema["values"])))
        if len(dict(found)) < len(found):
            raise RefusedError("a key twice")
        return found

    def items(self, read: Any) -> list[Any]:
        found = []
        while count := self.long():
            end = None
            if count < 0:
                size = self.long()
                end = len(self.left) - size
                if not 0 <= end <= len(self.left):
                    raise RefusedError("no size of a block")
            if abs(count) > len(self.left):
                raise RefusedError("more items than bytes")
            found += [read() for _ in range(abs(count))]
            if end is not None and len(self.left) != end:
                raise RefusedError("another size of a block")
        return found


def name_of(schema: Any) -> str:
    """Return the name of a type in a union."""
    if isinstance(schema, str):
        return schema.split(".")[-1]
    return str(schema.get("name", schema["type"])).split(".")[-1]


def whole(number: int, logical: str | None) -> Any:
    """Return what a whole number stands for."""
    try:
        if logical == "date":
            return date(1970, 1, 1) + timedelta(days=number)
        if logical in ("time-millis", "time-micros"):
            return clock(number, 1000 if logical == "time-millis" else 1_000_000)
        if logical is None:
            return number
        moment = EPOCH + timedelta(microseconds=number * (1000 if logical.endswith("millis") else 1))
    except OverflowError as exc:
        raise RefusedError("no such day") from exc
    return moment if logical.startswith("local") else moment.replace(tzinfo=UTC)


def clock(number: int, per_second: int) -> str:
    """Return a time of day."""
    if not 0 <= number < 86400 * per_second:
        raise RefusedError("no time of day")
    seconds, fraction = divmod(number, per_second)
    digits = len(str(per_second)) - 1
    return f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}.{fraction:0{digits}}"


def decimal(raw: bytes, schema: Any) -> Decimal:
    """Return a decimal."""
    if not raw:
        raise RefusedError("no digits")
    number = int.from_bytes(raw, "big", signed=True)
    if abs(number) >= 10 ** schema["precision"]:
        raise RefusedError("too many digits")
    return Decimal((number < 0, tuple(map(int, str(abs(number)))), -schema.get("scale", 0)))
