"""A schema for sampled records, and what a reader of it should know. Pure: records in, schema out.

Each sampled record that is a JSON object fits the schema. Where the sample leaves a doubt, the wider type is taken, and a note
says so.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal

from lakebound.formats.contract import Headers
from lakebound.formats.epoch_units import Unit
from lakebound.formats.same_names import as_compared
from lakebound.spec.draft.observation import Seen
from lakebound.spec.draft.varying_keys import map_values
from lakebound.spec.draft.wire_format import WireFormat, wire_format_of

MOST_FIELDS = 200
"""An object with more different fields is kept as text."""
MOST_DEEP = 6
"""What is nested deeper is kept as text."""
FEW_VALUES = 6
_PLAIN = re.compile(r"^[A-Za-z_][A-Za-z0-9_]*$")
_TAKEN = re.compile(r"^[A-Za-z0-9_@$-]{1,100}$")
_OF_TIME = re.compile(
    r"(^|_)(at|on|ts|time|timestamp|date|datetime|epoch|when|created|updated|modified)(_?(ms|s|us|ns|millis))?$"
    r"|[a-z](At|Time|Date|Ts|Timestamp)(Ms|Millis)?$",
    re.ASCII,
)
_OF_MONEY = re.compile(
    r"amount|price|total|cost|fee|tax|balance|sum|charge|refund|discount|revenue|salary|payment", re.IGNORECASE
)
_LARGEST_DOUBLE = Decimal("1.7976931348623157e308")


@dataclass(frozen=True)
class Column:
    """A field of the schema.

    Attributes:
        name: As in the records.
        type: As Spark DDL.
        is_required: Whether every sampled record has it.
        unit: Of a number that the transform makes a timestamp of.
        notes: What a reader should know.
        values: All of its texts, where they are few.
        is_unique: Whether no two sampled records have the same.
    """

    name: str
    type: str
    is_required: bool = False
    unit: Unit | None = None
    notes: tuple[str, ...] = ()
    values: tuple[str, ...] = ()
    is_unique: bool = False


@dataclass(frozen=True)
class Inferred:
    """The schema of a sample.

    Attributes:
        columns: In the order in which the fields were first seen; none where no record is a JSON object.
        records: How many records were looked at.
        objects: How many of them are JSON objects.
        left_out: Fields that no column can be made of, and why.
        wire_format: Of records that a serializer of a schema registry has written; None where there are none.
    """

    columns: tuple[Column, ...]
    records: int
    objects: int
    left_out: tuple[str, ...] = ()
    wire_format: WireFormat | None = None


def infer(values: Sequence[bytes | None], headers: Sequence[Headers | None] = ()) -> Inferred:
    """Return the schema of records.

    Args:
        values: Their bytes. Values that are not JSON objects have no columns: they go to quarantine with any schema.
        headers: Of each of them, by which a schema may be named; may be left out.
    """
    root = Seen()
    for value in values:
        body = as_object(value)
        if body is not None:
            root.add(body)
    wire_format = wire_format_of(values, headers)
    if not root.present:
        return Inferred((), len(values), 0, wire_format=wire_format)
    kept, left_out = _columns_of(root.fields)
    columns = tuple(_column(name, seen, root.present) for name, seen in kept.items())
    return Inferred(columns, len(values), root.present, tuple(left_out), wire_format)


def is_object(value: bytes | None) -> bool:
    """Whether a record is a JSON object."""
    return as_object(value) is not None


def proposed_type(name: str, seen: Seen) -> str:
    """Return the type for a column that is added to an existing schema, as Spark DDL.

    Args:
        name: Of the column.
        seen: Its values.
    """
    return _type(name, seen, 1)[0]


def unfit_name(name: str, *, is_top: bool) -> str | None:
    """Return why no column can have a name; None where one can.

    Args:
        name: As in the records.
        is_top: Whether it is a field of the record itself.
    """
    if not _TAKEN.fullmatch(name):
        return "a table cannot have a column of this name"
    if is_top and as_compared(name) == "_kafka":
        return "Lakebound uses this name for the source of a row"
    return None


def ddl_name(name: str) -> str:
    """Return a name as DDL has it."""
    return name if _PLAIN.fullmatch(name) else f"`{name}`"


def as_object(value: bytes | None) -> dict[str, object] | None:
    """Return a record that is a JSON object, its numbers with a point as ``Decimal``; None where it is none."""
    try:
        body = json.loads((value or b"").decode(), parse_float=Decimal)
    except (ValueError, ArithmeticError, RecursionError):
        return None
    return body if isinstance(body, dict) else None


def _columns_of(fields: dict[str, Seen], *, top: bool = True) -> tuple[dict[str, Seen], list[str]]:
    """Return the fields that can be columns, and why the others cannot."""
    kept: dict[str, Seen] = {}
    left_out: list[str] = []
    folded: dict[str, str] = {}
    for name, seen in fields.items():
        if (problem := unfit_name(name, is_top=top)) is not None:
            left_out.append(f"{name[:60] if _TAKEN.fullmatch(name) else repr(name[:60])}: {problem}")
        elif as_compared(name) in folded:
            left_out.append(f"{name}: differs from {folded[as_compared(name)]} only in upper and lower case")
        else:
            folded[as_compared(name)] = name
            kept[name] = seen
    return kept, left_out


def _column(name: str, seen: Seen, records: int) -> Column:
    is_required = seen.present == records and not seen.kinds["null"]
    kind, notes = _type(name, seen, 1)
    unit = _unit(name, seen) if kind == "BIGINT" else None
    if unit is not None:
        notes = [f"is a number of epoch {unit}; the transform converts it to a timestamp"]
    # A text that cannot be printed is left to people: YAML has no way to write half of a surrogate pair.
    few = (
        all(map(str.isprintable, seen.texts))
        and sum(seen.texts.values()) == seen.kinds["text"]
        and len(seen.texts) <= FEW_VALUES
        and kind == "STRING"
    )
    values = tuple(sorted(seen.texts)) if few and seen.kinds["text"] >= 10 * len(seen.texts) > 10 else ()
    return Column(name, kind, is_required, unit, tuple(notes), values, is_unique=seen.is_unique)


def _type(name: str, seen: Seen, depth: int) -> tuple[str, list[str]]:
    """Return the type of a field, and notes on it."""
    kinds = {kind for kind, count in seen.kinds.items() if count and kind != "null"}
    if not kinds:
        return "STRING", ["was null in every sampled record: its type is a guess"]
    if kinds == {"boolean"}:
        return "BOOLEAN", []
    if kinds == {"integer"}:
        return _integer(name, seen)
    if kinds <= {"integer", "number"}:
        return _number(name, seen)
    if kinds == {"text"}:
        return _text(name, seen)
    if kinds == {"array"} and depth < MOST_DEEP:
        return _array(name, seen, depth)
    if kinds == {"object"} and depth < MOST_DEEP:
        values = map_values(seen)
        return _struct(seen, depth) if values is None else _map(name, values, len(seen.fields), depth)
    if len(kinds) > 1:
        return "STRING", [f"has values of several kinds ({', '.join(sorted(kinds))}): kept as text"]
    return "STRING", ["is nested deeply: kept as the text of its JSON"]


def _integer(name: str, seen: Seen) -> tuple[str, list[str]]:
    if not -(2**63) <= seen.least <= seen.most < 2**63:
        if seen.before <= 38:
            return "DECIMAL(38,0)", ["is beyond BIGINT"]
        return "STRING", ["is a number of more than 38 digits: kept as text"]
    unit = _same_unit(seen)
    if unit is None:
        return "BIGINT", []
    if _OF_TIME.search(name):
        if unit == "seconds":
            return "TIMESTAMP", ["is a number of epoch seconds, which Spark reads as a timestamp"]
        return "BIGINT", [f"is a number of epoch {unit}: see lakebound_spark.columns.from_epoch"]
    told = [f"may be a time in epoch {unit}: see lakebound_spark.columns.from_epoch"]
    return "BIGINT", told if unit != "seconds" else []


def _unit(name: str, seen: Seen) -> Unit | None:
    """Return the unit of a number that is certainly a time, and that Spark does not read as one."""
    unit = _same_unit(seen)
    return unit if unit != "seconds" and _OF_TIME.search(name) else None


def _same_unit(seen: Seen) -> Unit | None:
    return next(iter(seen.units)) if len(seen.units) == 1 else None


def _number(name: str, seen: Seen) -> tuple[str, list[str]]:
    after = max(seen.after)
    if after <= 4 and _OF_MONEY.search(name):
        scale = max(2, after)
        if seen.before <= 18 - scale:
            return f"DECIMAL(18,{scale})", [f"looks like money, with up to {after} digits after the point; more are rounded"]
    if seen.largest > _LARGEST_DOUBLE:
        return "STRING", ["is beyond DOUBLE: kept as text"]
    return "DOUBLE", []


def _text(name: str, seen: Seen) -> tuple[str, list[str]]:
    forms = {form for form, count in seen.forms.items() if count}
    if forms == {"date"}:
        return "DATE", []
    if forms <= {"date", "time"}:
        return "TIMESTAMP", ["is a time as a text; without a zone it is UTC"]
    if forms == {"decimal"} and (_OF_MONEY.search(name) or (len(seen.after) == 1 and 2 <= max(seen.after) <= 4)):
        scale = max(seen.after)
        if seen.before <= 18 - scale:
            return f"DECIMAL(18,{scale})", ["is a decimal number in a text"]
    return "STRING", []


def _array(name: str, seen: Seen, depth: int) -> tuple[str, list[str]]:
    if seen.element is None or not seen.element.present:
        return "ARRAY<STRING>", ["was empty in every sampled record: the type of its elements is a guess"]
    kind, notes = _type(name, seen.element, depth + 1)
    return f"ARRAY<{kind}>", [f"elements: {note}" for note in notes]


def _map(name: str, values: Seen, keys: int, depth: int) -> tuple[str, list[str]]:
    kind, notes = _type(name, values, depth + 1)
    told = f"its keys vary: {keys:,} different ones, each in few records; if these are fields, write a STRUCT"
    return f"MAP<STRING, {kind}>", [told, *(f"values: {note}" for note in notes)]


def _struct(seen: Seen, depth: int) -> tuple[str, list[str]]:
    kept, left_out = _columns_of(seen.fields, top=False)
    if len(kept) > MOST_FIELDS:
        return "STRING", [f"has more than {MOST_FIELDS} different fields: kept as JSON text; MAP<STRING, STRING> may be better"]
    if not kept:
        return "STRING", ["has no field that can be a column: kept as the text of its JSON"]
    notes, fields = [f"left out: {line}" for line in left_out], []
    for name, inside in kept.items():
        kind, own = _type(name, inside, depth + 1)
        fields.append(f"{ddl_name(name)}: {kind}")
        notes += [f"{name}: {note}" for note in own]
    return f"STRUCT<{', '.join(fields)}>", notes


def notes_of(inferred: Inferred) -> Iterator[str]:
    """Yield what a reader of the schema should know, a line each."""
    if inferred.wire_format is not None:
        yield str(inferred.wire_format)
    for column in inferred.columns:
        for note in column.notes:
            yield f"{column.name}: {note}"
    for line in inferred.left_out:
        yield f"left out: {line}"
