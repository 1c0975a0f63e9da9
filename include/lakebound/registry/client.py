"""Asks a schema registry with Confluent's API: schemas with all that they import, versions of a subject, what it allows."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TypeVar
from urllib.parse import quote

from lakebound.errors import RegistryAnswerError, RegistryForbiddenError, RegistryUnavailableError
from lakebound.formats.schemas import SchemaId, SchemaText
from lakebound.registry.answers import (
    NoSuchPathError,
    SchemaAnswer,
    TooLargeAnswerError,
    UnreadableAnswerError,
    UnusableSchemaError,
    UnusableVersionError,
    read_compatibility,
    read_schema,
    read_subjects,
    read_types,
    read_versions,
)
from lakebound.registry.references import with_references
from lakebound.registry.session import RegistrySession
from lakebound.spec.registry import RegistrySpec

__all__ = ["RegisteredSchema", "RegistryClient", "UnusableSchemaError", "UnusableVersionError"]

MOST_VERSIONS = 5_000
"""That are read of one subject: the newest. So many schemas are kept with a pipeline's state."""
MOST_ID = 2**31 - 1
"""Registries count no further, and Confluent's does not understand a larger one, as half of all random bytes name."""
_DELETED_TOO = {"deleted": "true"}
_R = TypeVar("_R")
Imported = dict[tuple[str, int], SchemaAnswer | None]
"""By subject and version."""


@dataclass(frozen=True)
class RegisteredSchema:
    """A version of a subject.

    Attributes:
        subject: Name of the subject.
        version: Its number.
        id: What records say of it; None where the registry does not tell.
        schema: With all that it imports.
    """

    subject: str
    version: int
    id: int | None
    schema: SchemaText


class RegistryClient:
    """Asks one registry. Threads may share it. Its methods also raise what ``RegistrySession.get`` raises."""

    def __init__(self, name: str, spec: RegistrySpec) -> None:
        """Ask nothing yet.

        Args:
            name: Of the registry in registries.yaml.
            spec: How it is reached.

        Raises:
            NamedFileError: A file of certificates or the key cannot be used.
            MissingSecretError: A secret is not where the file says.
        """
        self.name, self.url = name, spec.url
        self._session = RegistrySession(name, spec)

    def note_registry(self) -> None:
        """Note that schemas of it were read before: anything else that answers stands before it for a while, and passes."""
        self._session.note_registry()

    def close(self) -> None:
        """Close its connections."""
        self._session.close()

    def schema(self, schema_id: SchemaId) -> SchemaText | None:
        """Return a schema by what records say of it; None where the registry has none. A deleted one is found while it can be.

        Args:
            schema_id: A number, or a GUID.

        Raises:
            UnusableSchemaError: Values cannot be read with it.
        """
        if isinstance(schema_id, int) and schema_id > MOST_ID:
            return None
        what = f"schema {schema_id}"
        if isinstance(schema_id, int):
            answer = self._schema(f"schemas/ids/{schema_id}", {}, what)
        else:
            answer = self._schema_by_guid(uuid.UUID(schema_id), what)
        return None if answer is None else self._resolved(answer)

    def types(self) -> list[str]:
        """Return the formats of schemas that the registry knows, such as AVRO; every user may ask for them."""
        return self._get("schemas/types", {}, "the formats that it knows", read_types) or []

    def subjects(self, schema_id: int) -> list[str]:
        """Return the subjects that have a schema; none where the registry has no such schema, or cannot be asked for them.

        Args:
            schema_id: Its number.
        """
        try:
            return (
                self._get(f"schemas/ids/{schema_id}/versions", {}, f"the subjects of schema {schema_id}", read_subjects) or []
            )
        except (RegistryAnswerError, RegistryUnavailableError) as exc:
            if not isinstance(exc.__cause__, NoSuchPathError):
                raise
            return []

    def versions(self, subject: str, *, deleted: bool = False) -> list[int]:
        """Return the numbers of a subject's newest versions, oldest first; none where the registry has no such subject.

        Args:
            subject: Name of the subject.
            deleted: Whether those that were deleted, but not for good, are among them.
        """
        parameters = _DELETED_TOO if deleted else {}
        found = self._get(f"{_path(subject)}/versions", parameters, f"subject {subject!r}", read_versions) or []
        return found[-MOST_VERSIONS:]

    def version(
        self, subject: str, number: int | None = None, *, deleted: bool = False, imported: Imported | None = None
    ) -> RegisteredSchema | None:
        """Return a version of a subject; None where the registry has none.

        Args:
            subject: Name of the subject.
            number: Of the version; None: the latest.
            deleted: Whether one that was deleted, but not for good, counts.
            imported: What versions import, where several are read that may import the same; it is added to.

        Raises:
            UnusableVersionError: Values cannot be read with its schema.
            UnusableSchemaError: The same, and the registry's answer cannot be read in full.
        """
        answer = self._version(subject, "latest" if number is None else number, deleted=deleted)
        if answer is None:
            return None
        try:
            schema = self._resolved(answer, imported)
        except UnusableSchemaError as exc:
            raise UnusableVersionError(str(exc), answer.id, answer.own) from None
        return RegisteredSchema(subject, answer.version or number or 0, answer.id, schema)

    def compatibility(self, subject: str) -> str | None:
        """Return which changes of its schemas a subject allows, such as BACKWARD; by default the registry's own.

        None where the registry does not tell, or its user may not read it: schemas can be read all the same.
        """
        for path in (f"config/{quote(subject, safe='')}", "config"):
            try:
                found = self._get(
                    path, {"defaultToGlobal": "true"}, f"the compatibility mode of {subject!r}", read_compatibility
                )
            except RegistryForbiddenError:
                continue
            if found is not None:
                return found
        return None

    def _version(self, subject: str, number: int | str, *, deleted: bool) -> SchemaAnswer | None:
        path, parameters = f"{_path(subject)}/versions/{number}", _DELETED_TOO if deleted else {}
        return self._schema(path, parameters, f"subject {subject!r}, version {number}")

    def _resolved(self, answer: SchemaAnswer, imported: Imported | None = None) -> SchemaText:
        return with_references(answer, partial(self._import, {} if imported is None else imported))

    def _import(self, known: Imported, subject: str, number: int) -> SchemaAnswer | None:
        try:
            if (subject, number) not in known:
                known[subject, number] = self._version(subject, number, deleted=True)
            return known[subject, number]
        except RegistryForbiddenError:
            raise UnusableSchemaError(
                f"it imports subject {subject!r}, version {number}, which the registry does not let its user read"
            ) from None

    def _schema_by_guid(self, guid: uuid.UUID, what: str) -> SchemaAnswer | None:
        try:
            return self._schema(f"schemas/guids/{guid}", {}, what)
        except (RegistryAnswerError, RegistryUnavailableError) as exc:
            if not isinstance(exc.__cause__, NoSuchPathError):
                raise
            self.types()  # Raises where it is no registry at all.
            raise UnusableSchemaError(
                "a header of the record names it by a GUID, and this registry cannot be asked for GUIDs; let the producer "
                "write the id into the value"
            ) from None

    def _schema(self, path: str, parameters: Mapping[str, str], what: str) -> SchemaAnswer | None:
        try:
            return self._get(path, parameters, what, read_schema)
        except TooLargeAnswerError as exc:
            raise UnusableSchemaError(f"{what}: {exc}") from None

    def _get(self, path: str, parameters: Mapping[str, str], what: str, read: Callable[[bytes], _R]) -> _R | None:
        """Return what the registry has at a path; None where it has nothing there."""
        try:
            body = self._session.get(path, parameters, what).body
            found = None if body is None else read(body)
        except TooLargeAnswerError:
            raise
        except UnreadableAnswerError as exc:
            raise self._session.no_registry(str(exc)) from exc
        self._session.note_registry()
        return found


def _path(subject: str) -> str:
    return f"subjects/{quote(subject, safe='')}"
