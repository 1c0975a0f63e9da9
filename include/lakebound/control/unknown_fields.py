"""Which fields of the newest records a pipeline's schema does not name: the record of the looks, and the sentence on it.

The watch, or the DAG ``checkpoint_health``, looks at a few records now and then (``lakebound.alerts.field_look``). The record
holds names and types, never a value.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Annotated

from pydantic import Field, StringConstraints

from lakebound.control.bounds import Count, Moment
from lakebound.control.folder import ControlFolder, read_json, write_json
from lakebound.frozen import FrozenRecord
from lakebound.spec.draft.unknown_fields import MOST_FIELDS, MOST_PATH_CHARACTERS, UnknownField, in_yaml, is_dropped
from lakebound.spec.pipeline import PipelineSpec
from lakebound.spec.value import JsonValueSpec, ValueSpec

KEPT_SECONDS = 7 * 86_400.0
"""A field that was in no sampled record for so long is forgotten."""
RUNBOOK = "unknown-fields"
_MOST_NAMED = 5

_Short = Annotated[str, StringConstraints(max_length=MOST_PATH_CHARACTERS)]


class SeenField(FrozenRecord):
    """A field that was in a sampled record.

    Attributes:
        path: Its name; inside of a column the dotted path to it.
        type: Proposed, as Spark DDL; empty where no column can be made of it.
        problem: Why no column can be made of it.
        records: In how many records of the sample.
        seen_at: When it was last in a sample, in epoch seconds.
    """

    path: _Short
    type: _Short = ""
    problem: _Short = ""
    records: Count = 0
    seen_at: Moment

    @property
    def field(self) -> UnknownField:
        """The field, as the comparison with the schema has it."""
        return UnknownField(self.path, self.type, self.problem, self.records)


class FieldsRecord(FrozenRecord):
    """What the looks at a pipeline's records found.

    Attributes:
        looked_at: When records were last read, in epoch seconds.
        read: How many records the last look read.
        schema_sign: Tells the schema, by which they were compared, from others.
        fields: Those of the most records first.
    """

    looked_at: Moment
    read: Count = 0
    schema_sign: str = ""
    fields: tuple[SeenField, ...] = Field(default=(), max_length=2 * MOST_FIELDS)


def schema_sign(spec: PipelineSpec) -> str:
    """Return what changes whenever the schema of the records does."""
    text = spec.value.value_schema if isinstance(spec.value, JsonValueSpec) else ""
    return hashlib.sha256(text.encode(errors="replace")).hexdigest()[:16]


def record_after(
    before: FieldsRecord | None, found: Sequence[UnknownField], *, read: int, sign: str, now: float
) -> FieldsRecord:
    """Return the record after a look. Pure.

    Args:
        before: The record of the looks before.
        found: What this look found.
        read: How many records it read.
        sign: Of the schema that it compared them with.
        now: Epoch seconds.
    """
    fields = {one.path: SeenField(seen_at=now, **vars(one)) for one in found}
    for one in before.fields if before is not None and before.schema_sign == sign else ():
        if one.path not in fields and 0 <= now - one.seen_at <= KEPT_SECONDS:
            fields[one.path] = one
    newest = sorted(fields.values(), key=lambda one: (-one.seen_at, -one.records, one.path))[:MOST_FIELDS]
    return FieldsRecord(looked_at=now, read=read, schema_sign=sign, fields=tuple(newest))


def dropped_fields(record: FieldsRecord | None, spec: PipelineSpec) -> tuple[UnknownField, ...]:
    """Return the fields that are still dropped by the YAML as it is now. Pure.

    Args:
        record: What the looks found; None where none was.
        spec: The pipeline.
    """
    if record is None:
        return ()
    return tuple(one.field for one in record.fields if is_dropped(one.path, spec.value))


def sentence(fields: Sequence[UnknownField], value: ValueSpec) -> str:
    """Return what is dropped, and the lines to add, in a sentence; of many fields a few are named. Pure.

    Args:
        fields: At least one.
        value: How the pipeline decodes values.
    """
    named, rest = fields[:_MOST_NAMED], len(fields) - _MOST_NAMED
    more = f" and {rest} more" if rest > 0 else ""
    told = ", ".join(f"{one.path} ({one.problem})" if one.problem else one.path for one in named)
    lines = [_placed(one, line) for one in named if (line := one.line_for(value))]
    is_property = isinstance(value, JsonValueSpec) and value.json_schema is not None
    key = "value.json_schema.properties" if is_property else "value.schema"
    add = f"to land them, add to {key}: {', '.join(lines)}; " if lines else ""
    which = "a field that is" if len(fields) == 1 else "fields that are"
    return (
        f"the topic's records have {which} not in the schema and not landed: {told}{more}; {add}"
        f"to leave them out on purpose, add to value: ignored_fields: [{', '.join(in_yaml(one.path) for one in named)}]"
    )


def _placed(field: UnknownField, line: str) -> str:
    inside, _, _ = field.path.rpartition(".")
    return f"`{line}`" + (f" in {inside}" if inside else "")


def read_record(control: ControlFolder) -> FieldsRecord | None:
    """Return the record; None where nobody has looked, or the file cannot be read: the next look writes it anew."""
    try:
        body = read_json(control.unknown_fields)
        return None if body is None else FieldsRecord.model_validate(body)
    except (OSError, ValueError):
        return None


def write_record(control: ControlFolder, record: FieldsRecord) -> None:
    """Replace the record.

    Raises:
        OSError: The folder cannot be written.
    """
    write_json(control.unknown_fields, record.model_dump(mode="json"))
