"""Which fields of sampled records the schema of a pipeline does not name, and what to add for them. Pure.

Only names and types are kept of a record, never a value. Keys that vary from record to record are data: they are counted, and
not named. A name comes from whoever sends records: it is cut, and what is not
printable, or markup to a reader of messages, is escaped.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from lakebound.formats.same_names import as_compared
from lakebound.plain_text import visible_text
from lakebound.spec.ddl import DdlColumn, DdlType, UnclearDdlError, read_columns
from lakebound.spec.draft.inference import as_object, ddl_name, proposed_type, unfit_name
from lakebound.spec.draft.observation import Seen
from lakebound.spec.draft.varying_keys import varying_keys
from lakebound.spec.value import JsonValueSpec, ValueSpec

MOST_FIELDS = 20
"""Maximum number of fields that are named."""
MOST_NAME_CHARACTERS = 80
ANY_KEY = "*"
"""Stands for keys that vary: they are data, such as ids, and are not named."""
MOST_TYPE_CHARACTERS = 160
"""A longer type is proposed as STRING, which holds the JSON text."""
MOST_PATH_CHARACTERS = 1000
"""What has a longer path is not named."""
_WORDS_OF_YAML = frozenset({"y", "n", "yes", "no", "on", "off", "true", "false", "null"})
_PROPERTIES = {
    "BIGINT": "{type: integer}",
    "BOOLEAN": "{type: boolean}",
    "DATE": "{type: string, format: date}",
    "DOUBLE": "{type: number}",
    "STRUCT": "{type: object, properties: …}",
    "TIMESTAMP": "{type: string, format: date-time}",
}


@dataclass(frozen=True)
class UnknownField:
    """A field that is dropped when its record is landed.

    Attributes:
        path: Its name; inside of a column the dotted path to it.
        type: Proposed, as Spark DDL; empty where no column can be made of the field.
        problem: Why no column can be made of it; empty where one can.
        records: In how many of the sampled records, or elements, it was.
    """

    path: str
    type: str = ""
    problem: str = ""
    records: int = 0

    def line_for(self, value: ValueSpec) -> str:
        """Return what to add to the schema: a column, or inside of a STRUCT a field; empty where there is none."""
        if not self.type:
            return ""
        *inside, name = self.path.split(".")
        if isinstance(value, JsonValueSpec) and value.json_schema is not None:
            return f"{in_yaml(name)}: {_as_property(self.type)}"
        return f"{ddl_name(name)}{':' if inside else ''} {self.type}"


def schema_of(value: ValueSpec) -> tuple[DdlColumn, ...] | None:
    """Return the columns of JSON records; None where values are not JSON, or only Spark understands the schema."""
    if not isinstance(value, JsonValueSpec):
        return None
    try:
        return read_columns(value.value_schema)
    except UnclearDdlError:
        return None


def unknown_fields(values: Sequence[bytes | None], value: ValueSpec) -> tuple[UnknownField, ...]:
    """Return the fields that are dropped, those of the most records first.

    Args:
        values: The bytes of sampled records; what is not a JSON object goes to quarantine, and is ignored here.
        value: How the pipeline decodes them. Where unknown fields go to quarantine, only those inside of columns are dropped.
    """
    columns = schema_of(value)
    if columns is None:
        return ()
    root = Seen()
    for one in values:
        body = as_object(one)
        if body is not None and isinstance(value, JsonValueSpec) and value.envelope is not None:
            body = inside if isinstance(inside := body.get("payload"), dict) else None
        if body is not None:
            root.add(body)
    named = (one for one in _in_object(root, columns, ()) if len(one.path) <= MOST_PATH_CHARACTERS)
    found = [one for one in named if _is_dropped(one.path, columns, value)]
    return tuple(sorted(found, key=lambda one: (-one.records, one.path))[:MOST_FIELDS])


def is_dropped(path: str, value: ValueSpec) -> bool:
    """Whether a field of this path is dropped without a word: not named by the schema, not ignored, not for quarantine.

    Args:
        path: As ``UnknownField`` has it.
        value: How the pipeline decodes values, as its YAML is now.
    """
    columns = schema_of(value)
    return columns is not None and _is_dropped(path, columns, value)


def _is_dropped(path: str, columns: tuple[DdlColumn, ...], value: ValueSpec) -> bool:
    if not isinstance(value, JsonValueSpec):
        return False
    if value.unknown_fields == "quarantine" and "." not in path:
        return False
    ignored = {".".join(map(shown_name, name.split("."))) for name in value.ignored_fields}
    parts = path.split(".")
    if any(".".join(parts[:length]) in ignored for length in range(1, len(parts) + 1)):
        return False
    return not _names(columns, parts)


def shown_name(name: str) -> str:
    """Return a field's name as people may read it anywhere: short, every character of it printable, and no markup.

    In angle brackets, Slack reads who is to be called (``<!channel>``) and where a link leads.
    """
    told = visible_text(name).replace("<", "\\x3c").replace(">", "\\x3e")
    return told if len(told) <= MOST_NAME_CHARACTERS else f"{told[: MOST_NAME_CHARACTERS - 1]}…"


def in_yaml(name: str) -> str:
    """Return a name or a path as YAML takes it for a text: quoted, unless it is plain and no word of YAML's."""
    if not name.isprintable():
        return json.dumps(name)
    plain = re.fullmatch(r"[A-Za-z_][\w.]*", name, re.ASCII) and name.lower() not in _WORDS_OF_YAML
    return name if plain else "'" + name.replace("'", "''") + "'"


def _as_property(ddl: str) -> str:
    """Return a type as JSON Schema has it; of an object only the beginning, as its fields are for a person to choose."""
    kind, _, rest = ddl.partition("<")
    if kind == "ARRAY":
        return f"{{type: array, items: {_as_property(rest.removesuffix('>'))}}}"
    if kind == "MAP":
        return f"{{type: object, additionalProperties: {_as_property(rest.removesuffix('>').partition(', ')[2])}}}"
    if kind.startswith("DECIMAL"):
        return f'{{type: number, format: "{kind.lower()}"}}'
    return _PROPERTIES.get(kind, "{type: string}")


def _in_object(seen: Seen, columns: tuple[DdlColumn, ...], path: tuple[str, ...]) -> Iterator[UnknownField]:
    known = {column.name: column for column in columns}
    folded = {as_compared(name): name for name in known}
    unknown = {name: inside for name, inside in seen.fields.items() if name not in known}
    data = varying_keys(unknown, seen.kinds["object"])
    if data:
        records = max(unknown[name].present for name in data)
        yield UnknownField(
            ".".join((*path, ANY_KEY)), problem=f"{len(data):,} different keys; a MAP would hold them", records=records
        )
    for name, inside in seen.fields.items():
        if name in data:
            continue
        own = (*path, shown_name(name))
        if (column := known.get(name)) is not None:
            yield from _inside(inside, column.shape, own)
            continue
        found = UnknownField(".".join(own), records=inside.present)
        problem = unfit_name(name, is_top=not path)
        if problem is None and as_compared(name) in folded:
            problem = f"it differs from {shown_name(folded[as_compared(name)])} only in upper and lower case"
        yield replace(found, problem=problem) if problem is not None else replace(found, type=_proposed(name, inside))


def _inside(seen: Seen, shape: DdlType, path: tuple[str, ...]) -> Iterator[UnknownField]:
    """Yield what a known field holds and its type does not; a STRING holds all of it, as text."""
    if shape.name == "STRUCT":
        yield from _in_object(seen, shape.fields, path)
    elif shape.name == "ARRAY" and shape.inside is not None and seen.element is not None:
        yield from _inside(seen.element, shape.inside, path)
    elif shape.name == "MAP" and shape.inside is not None:
        values = Seen()
        for one in seen.fields.values():
            values.include(one)
        yield from _inside(values, shape.inside, path)


def _proposed(name: str, seen: Seen) -> str:
    proposed = proposed_type(name, seen)
    return proposed if len(proposed) <= MOST_TYPE_CHARACTERS else "STRING"


def _names(columns: tuple[DdlColumn, ...], parts: Sequence[str]) -> bool:
    """Whether the schema names a field, or holds all of what it is in as text."""
    shape = next((column.shape for column in columns if shown_name(column.name) == parts[0]), None)
    while shape is not None and shape.inside is not None:
        shape = shape.inside
    if shape is None:
        return False
    return len(parts) == 1 or shape.name != "STRUCT" or _names(shape.fields, parts[1:])
