"""JSON Schemas that name each other: their texts, and what a reference points to. Nothing is fetched from anywhere. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote, urljoin

from lakebound.formats.schemas import SchemaText, UnreadableSchemaError

MOST_CHARACTERS = 2_000_000
"""Of a schema with all that it imports."""
_MOST_STEPS = 100
"""References that point to each other in a row."""
_ROOT = ""
_MOST_NAMED = 20
Place = tuple[str, str]
"""Where a part is: the name of its document, and the way to it within that."""


class Documents:
    """A schema, and those that it imports, by the names by which it does."""

    def __init__(self, root: Mapping[str, Any], imported: Mapping[str, Mapping[str, Any]] | None = None) -> None:
        """Follow nothing yet.

        Args:
            root: The schema.
            imported: The others.
        """
        self.root = root
        self._imported = dict(imported or {})
        self._documents = {**self._imported, _ROOT: root}
        self._names = {name: name for name in self._imported}
        for name, document in self._documents.items():
            address = document.get("$id")
            if isinstance(address, str) and address:
                self._names.setdefault(address.removesuffix("#"), name)
        self._found: dict[tuple[str, str], tuple[Place, Any]] = {}

    def resolved(self, part: Mapping[str, Any], document: str, path: str) -> tuple[Mapping[str, Any], str, tuple[Place, ...]]:
        """Return what a part stands for, the document in which that is, and the places to which its references point.

        Args:
            part: The part.
            document: Name of the document in which it is.
            path: Dotted path of the column.

        Raises:
            UnreadableSchemaError: A reference points to nothing, or back to itself.
        """
        places: list[Place] = []
        while "$ref" in part:
            reference = str(part["$ref"])
            place, found = self._at(reference, document, path)
            if place in places:
                raise UnreadableSchemaError(path, f"{reference} contains itself; a column type cannot be recursive")
            if len(places) == _MOST_STEPS:
                raise UnreadableSchemaError(path, f"{reference} comes after {_MOST_STEPS} references that point to each other")
            if not isinstance(found, Mapping):
                raise UnreadableSchemaError(path, f"{reference} {self._elsewhere(reference)}")
            places.append(place)
            part, document = found, place[0]
        return part, document, tuple(places)

    def _at(self, reference: str, document: str, path: str) -> tuple[Place, Any]:
        known = self._found.get((document, reference))
        if known is not None:
            return known
        address, _, way = reference.partition("#")
        name = self._named(address, document) if address else document
        if name is None or (way and not way.startswith("/")):
            raise UnreadableSchemaError(path, f"{reference} {self._elsewhere(reference)}")
        found: Any = self._documents[name]
        for word in way[1:].split("/") if way else ():
            # An own name may have a percent sign: it is looked up as it is written first.
            plain = word.replace("~1", "/").replace("~0", "~")
            found = found.get(plain, found.get(unquote(plain))) if isinstance(found, Mapping) else None
        return self._found.setdefault((document, reference), ((name, way), found))

    def _named(self, address: str, document: str) -> str | None:
        """Return the name of the document that an address means; None where it is not here."""
        base = self._documents[document].get("$id")
        try:
            whole = urljoin(base if isinstance(base, str) else document, address)
        except ValueError:  # no address at all
            whole = address
        return self._names.get(address, self._names.get(whole))

    def _elsewhere(self, reference: str) -> str:
        if not self._imported or reference.startswith("#"):
            return "is not in this schema; only references such as #/$defs/address are followed"
        names = ", ".join(sorted(self._imported)[:_MOST_NAMED])
        return f"is not in this schema, nor among the references that the registry has of it: {names}"


def documents_of(schema: SchemaText) -> Documents:
    """Return a schema with all that it imports.

    Raises:
        UnreadableSchemaError: A text is no JSON Schema, or all together are too long.
    """
    imported: dict[str, SchemaText] = {}
    _gather(schema, imported)
    if sum(len(one.text) for one in (schema, *imported.values())) > MOST_CHARACTERS:
        raise UnreadableSchemaError("", f"the schema has more than {MOST_CHARACTERS:,} characters with all that it imports")
    return Documents(_parsed(schema, ""), {name: _parsed(one, f" {name}") for name, one in imported.items()})


def _gather(schema: SchemaText, imported: dict[str, SchemaText]) -> None:
    for one in schema.references:
        known = imported.get(one.name)
        if known is None:
            imported[one.name] = one.schema
            _gather(one.schema, imported)
        elif known.fingerprint != one.schema.fingerprint:
            raise UnreadableSchemaError("", f"two different schemas are imported as {one.name}")


def _parsed(schema: SchemaText, name: str) -> Mapping[str, Any]:
    try:
        found = json.loads(schema.text)
    except RecursionError as exc:
        raise UnreadableSchemaError("", f"the schema{name} has too many levels") from exc
    except ValueError as exc:
        raise UnreadableSchemaError("", f"the schema{name} is not JSON, as a JSON Schema is: {exc}") from exc
    if not isinstance(found, dict):
        raise UnreadableSchemaError("", f"the schema{name} is not a JSON object")
    return found
