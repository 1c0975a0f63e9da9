"""Value, key and headers of records, each decoded by its own format, to columns beside each other."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from lakebound.formats.contract import NO_VALUE, Decoded, Problem, Records, ValueDecoder
from lakebound.formats.headers import HeadersFormat
from lakebound.formats.kinds import SchemaFormat, ValueFormat
from lakebound.formats.same_names import as_compared

KEY = "key"
"""With it begins the detail of a problem of a key."""
MISSING = "missing_field"
"""Reason of a record without a key or a value, where one of its columns must not be null."""


@dataclass(frozen=True)
class KeyColumns:
    """Which columns become of keys.

    Attributes:
        form: Decodes keys: a format of values, whose decoder gets the keys.
        whole: Name of the one column that gets the whole key; None: fields of it are columns of their own.
        fields: Which fields these are.
        is_one_value: Whether the whole key has no fields, and is what the format's only column holds.
    """

    form: ValueFormat
    whole: str | None = None
    fields: tuple[str, ...] = ()
    is_one_value: bool = False

    @property
    def columns(self) -> pa.Schema:
        """The columns; each is null where a record has no key."""
        if self.whole is None:
            return pa.schema([self.form.columns.field(name).with_nullable(True) for name in self.fields])
        if self.is_one_value:
            return pa.schema([pa.field(self.whole, self.form.columns.field(0).type)])
        return pa.schema([pa.field(self.whole, pa.struct([field.with_nullable(True) for field in self.form.columns]))])

    @property
    def is_required(self) -> bool:
        """Whether a record without a key has a problem: the pipeline says that one of the key's fields must not be null."""
        return bool(_required(self.form))

    def made(self, decoded: Mapping[str, pa.Array]) -> dict[str, pa.Array]:
        """Return the columns of what was decoded."""
        if self.whole is None:
            return {name: decoded[name] for name in self.fields}
        if self.is_one_value:
            return {self.whole: decoded[self.form.columns.names[0]]}
        kind = self.columns.field(self.whole).type
        return {self.whole: pa.StructArray.from_arrays([decoded[field.name] for field in kind], fields=list(kind))}


@dataclass(frozen=True)
class ComposedFormat:
    """Values, keys and headers together.

    Attributes:
        value: Decodes values.
        key: What becomes of keys; None: nothing.
        headers: What becomes of headers; None: nothing.
        null_is_row: Whether a record without a value has columns: those of the value are null. It has a problem where the
            pipeline says that one of them must not be null.
    """

    value: ValueFormat
    key: KeyColumns | None = None
    headers: HeadersFormat | None = None
    null_is_row: bool = False

    def __post_init__(self) -> None:
        names = [as_compared(name) for name in self.columns.names]
        if len(set(names)) < len(names):
            raise ValueError(f"two columns of key, value and headers have one name: {', '.join(self.columns.names)}")

    @property
    def columns(self) -> pa.Schema:
        """What the decoder gives: columns of the key, of the value, of headers."""
        key, headers = ([] if part is None else list(part.columns) for part in (self.key, self.headers))
        return pa.schema([*key, *self.value.columns, *headers])

    @property
    def reads_headers(self) -> bool:
        """Whether the decoder needs the records' headers."""
        parts = (self.value, None if self.key is None else self.key.form, self.headers)
        return any(part.reads_headers for part in parts if part is not None)

    @property
    def reads_topics(self) -> bool:
        """Whether the decoder needs the records' topics."""
        return self.value.reads_topics or (self.key is not None and self.key.form.reads_topics)

    def decoder(self) -> ValueDecoder:
        """Return a decoder."""
        return _ComposedDecoder(self)


class _ComposedDecoder:
    def __init__(self, form: ComposedFormat) -> None:
        self._form = form
        self._value = form.value.decoder()
        self._key = None if form.key is None else form.key.form.decoder()
        self._headers = None if form.headers is None else form.headers.decoder()
        required = _required(form.value)
        self._no_value = Problem(MISSING, f"required but missing or null: {', '.join(required)}") if required else None

    def decode(self, records: Records) -> Decoded:
        """Return what becomes of records; of several problems of one the value's is told, then the key's."""
        value, count = self._value.decode(records), len(records.values)
        parts: list[tuple[Mapping[str, pa.Array], Mapping[int, Problem]]] = [(value.columns, value.problems)]
        problems: dict[int, Problem] = {}
        if self._headers is not None:
            headers = self._headers.decode(records)
            parts.append((headers.columns, headers.problems))
            problems |= headers.problems
        if self._key is not None and self._form.key is not None:
            key = self._key.decode(Records(records.keys, records.keys, records.headers, records.topics))
            parts.insert(0, (self._form.key.made(key.columns), key.problems))
            problems |= _told(key.problems, self._key_problem)
        problems |= _told(value.problems, self._value_problem)
        if not any(own for _, own in parts):
            return Decoded({name: column for columns, _ in parts for name, column in columns.items()}, {}, count)
        made: dict[str, pa.Array] = {}
        for columns, own in parts:
            rows = _rows(own, problems, count)
            made |= {name: column.take(rows) for name, column in columns.items()}
        return Decoded(made, problems, count)

    def _value_problem(self, problem: Problem) -> Problem | None:
        return self._no_value if self._form.null_is_row and problem == NO_VALUE else problem

    def _key_problem(self, problem: Problem) -> Problem | None:
        """Return a key's problem as one of its record; None where a key that is not there is none."""
        if problem == NO_VALUE:
            is_required = self._form.key is not None and self._form.key.is_required
            return Problem(MISSING, f"{KEY}: the record has no key, and its columns must not be null") if is_required else None
        return Problem(problem.reason, f"{KEY}: {problem.detail}")


def _required(form: ValueFormat) -> list[str]:
    """Return the fields without which a record has a problem also where the part is missing that has them.

    What a schema of its own requires, such as Avro's, is in each value; of a record without a value it says nothing.
    """
    return [] if isinstance(form, SchemaFormat) else [field.name for field in form.columns if not field.nullable]


def _told(problems: Mapping[int, Problem], tell: Callable[[Problem], Problem | None]) -> dict[int, Problem]:
    return {at: told for at, problem in problems.items() if (told := tell(problem)) is not None}


def _rows(own: Mapping[int, Problem], all_of: Mapping[int, Problem], count: int) -> pa.Array:
    """Return for each record without a problem which of a part's rows is its own; null where the part has none."""
    has_none, is_bad = np.zeros(count, np.bool_), np.zeros(count, np.bool_)
    has_none[[*own]] = True
    is_bad[[*all_of]] = True
    rows = np.cumsum(~has_none) - 1
    return pa.array(rows[~is_bad], pa.int64(), mask=has_none[~is_bad])
