"""Puts a schema together with all that it imports. It fetches nothing itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from lakebound.formats.schemas import Reference, SchemaText
from lakebound.registry.answers import SchemaAnswer, UnusableSchemaError, check_rules

MOST_DEPTH = 20
MOST_FETCHED = 200
"""Schemas that one imports, directly or by others."""
MOST_IMPORTS = 2000
"""The same, counted once for each way that leads to one: who walks through all of them takes that many steps."""
MOST_CHARACTERS = 8 * 1024 * 1024
"""Of all texts together."""

Place = tuple[str, int]
"""A subject and a version."""


def with_references(answer: SchemaAnswer, fetch: Callable[[str, int], SchemaAnswer | None]) -> SchemaText:
    """Return a schema with all that it imports.

    Args:
        answer: The schema.
        fetch: Returns the schema of a subject's version, deleted ones included; None where there is none.

    Raises:
        UnusableSchemaError: What it imports is missing, imports itself, or is too much; or a schema has rules.
    """
    return _Walk(fetch).resolve(answer, ()).schema


@dataclass(frozen=True)
class _Resolved:
    schema: SchemaText
    imports: int


@dataclass
class _Walk:
    fetch: Callable[[str, int], SchemaAnswer | None]
    known: dict[Place, _Resolved] = field(default_factory=dict)
    characters: int = 0

    def resolve(self, answer: SchemaAnswer, path: tuple[Place, ...]) -> _Resolved:
        """Return a schema with all that it imports.

        Args:
            answer: The schema.
            path: What imports it, from the first schema on.
        """
        check_rules(answer)
        self.characters += len(answer.schema_text)
        if self.characters > MOST_CHARACTERS:
            raise UnusableSchemaError(f"it and what it imports have more than {MOST_CHARACTERS:,} characters")
        references, imports = [], 0
        for reference in answer.references or ():
            found = self._imported((reference.subject, reference.version), reference.name, path)
            references.append(Reference(reference.name, found.schema))
            imports += 1 + found.imports
        if imports > MOST_IMPORTS:
            raise UnusableSchemaError(f"it imports other schemas by more than {MOST_IMPORTS:,} ways")
        return _Resolved(SchemaText(answer.kind, answer.schema_text, tuple(references)), imports)

    def _imported(self, place: Place, name: str, path: tuple[Place, ...]) -> _Resolved:
        if place in self.known:
            return self.known[place]
        where = f"subject {place[0]!r}, version {place[1]}"
        if place in path:
            raise UnusableSchemaError(f"what it imports imports itself: {name!r} ({where})")
        if len(path) >= MOST_DEPTH or len(self.known) + len(path) >= MOST_FETCHED:
            raise UnusableSchemaError(
                f"it imports more than {MOST_FETCHED} schemas, or {MOST_DEPTH} deep: at {name!r} ({where})"
            )
        answer = self.fetch(*place)
        if answer is None:
            raise UnusableSchemaError(f"it imports {name!r}, which the registry does not have ({where})")
        self.known[place] = self.resolve(answer, (*path, place))
        return self.known[place]
