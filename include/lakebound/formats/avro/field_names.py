"""Which field that a writer wrote a field of the reader takes: by its name, else by its aliases. Pure.

By Avro's rules an alias renames the writer's field before names are compared. Libraries differ on it where the reader has a
field of the alias' name, too: Java's takes the alias first, others the name. Nothing says which of the two the schema means.
"""

from __future__ import annotations

from collections.abc import Mapping

from lakebound.formats.avro import types
from lakebound.formats.schemas import UnreadableSchemaError


class FieldNames:
    """The names of a record, as it was written and as it is read."""

    def __init__(self, writer: types.Record, reader: types.Record) -> None:
        """Compare the names of two records."""
        self._written = {one.name: one for one in writer.fields}
        self._read = {one.name: one for one in reader.fields}
        self._takers: dict[str, list[str]] = {}
        for one in reader.fields:
            name = self._taken_by(one)
            if name is not None:
                self._takers.setdefault(name, []).append(one.name)
        self._renamed = self._renames()

    def written_for(self, name: str, path: str) -> types.Field | None:
        """Return the writer's field that a column takes; None where it has none.

        Args:
            name: Of the column.
            path: Of the column.

        Raises:
            UnreadableSchemaError: The reader's names and aliases give a field two meanings.
        """
        read_as = self._read.get(name)
        if read_as is None:
            return self._written.get(name)
        taken = self._taken_by(read_as)
        if taken is None:
            return None
        takers = self._takers[taken]
        if len(takers) > 1 or self._is_in_circle(taken):
            others = " and ".join(takers) if len(takers) > 1 else f"{taken}, and by an alias as {self._renamed[taken]}"
            told = "leave out the alias in a newer version"
            raise UnreadableSchemaError(path, f"the field {taken} of the writer's schema would be read as {others}: {told}")
        return self._written[taken]

    def _taken_by(self, read_as: types.Field) -> str | None:
        return next((name for name in (read_as.name, *read_as.aliases) if name in self._written), None)

    def _renames(self) -> Mapping[str, str]:
        """Return what aliases make of names that both schemas have; a writer with the same alias had renamed them before."""
        return {
            alias: one.name
            for one in self._read.values()
            for alias in one.aliases
            if alias != one.name
            and alias in self._read
            and alias in self._written
            and one.name in self._written
            and alias not in self._written[one.name].aliases
        }

    def _is_in_circle(self, name: str) -> bool:
        """Whether aliases swap a field with others: each of these has a field of its name, and another one by its alias."""
        seen: set[str] = set()
        at = self._renamed.get(name)
        while at is not None and at != name and at not in seen:
            seen.add(at)
            at = self._renamed.get(at)
        return at == name
