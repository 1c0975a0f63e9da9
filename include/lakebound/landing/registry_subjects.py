"""The versions of a pipeline's subjects in its registry; those that belong to it are kept with its state."""

from __future__ import annotations

import logging
import time
from collections.abc import Collection, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial

from lakebound.control.folder import ControlFolder
from lakebound.control.kept_schemas import KeptSchemas, keep_schemas, read_kept_schemas
from lakebound.errors import LakeboundError, RegistryUnavailableError, ReusedSchemaIdError
from lakebound.formats.schemas import SchemaId, SchemaText
from lakebound.formats.versions import Version
from lakebound.redaction import redacted
from lakebound.registry.client import RegistryClient, UnusableSchemaError
from lakebound.registry.finder import SchemaFinder
from lakebound.spec.registry import RegistrySpec

log = logging.getLogger(__name__)

_FIND_SECONDS = 20.0
_AT_ONCE = 8
"""Versions that are asked for: a subject may have hundreds, and a registry take its time for each."""
_KEPT = "what is kept of the registry"


class NoSuchSubjectError(LakeboundError, is_refusal=True):
    """A registry does not have a subject."""

    def __init__(self, registry: str, subject: str) -> None:
        super().__init__(
            f"the schema registry {registry!r} has no subject {subject!r}; register the schema first (a producer does it with "
            f"its first record), or name the subject: value.subject, value.subject_strategy"
        )


@dataclass(frozen=True)
class _NothingKept:
    """Keeps nothing of schemas that only are asked for: they may belong to others."""

    def read(self, registry: str) -> KeptSchemas:
        return KeptSchemas({}, {})

    def keep(self, registry: str, schemas: Mapping[SchemaId, SchemaText], now: float) -> None:
        """Do nothing."""


class RegistrySubjects:
    """See ``lakebound.landing.read_schemas.Subjects``. Used by one thread at a time."""

    def __init__(self, name: str, spec: RegistrySpec, control: ControlFolder | None) -> None:
        """Ask nothing yet.

        Args:
            name: Of the registry.
            spec: How it is reached.
            control: The pipeline's state; None: nothing is kept.
        """
        self._client = RegistryClient(name, spec)
        self._finder = SchemaFinder(self._client, _NothingKept())
        self._control = control

    def versions(self, subjects: Collection[str]) -> Mapping[str, tuple[Version, ...]]:
        """Return all versions of subjects.

        While the registry is away, or has a subject no more, they are those that the pipeline has used, as of one subject.

        Raises:
            NoSuchSubjectError: The registry does not have one, and nothing of it is kept.
            RegistryUnavailableError: It is away, and nothing of it is kept.
            LakeboundError: It refuses.
        """
        kept = self._kept()
        try:
            found = {subject: self._versions(subject) for subject in subjects}
        except (RegistryUnavailableError, NoSuchSubjectError) as exc:
            if not kept:
                raise
            log.warning("schemas are read as they were last used: %s", redacted(exc))
            numbered = sorted(kept.items(), key=lambda one: str(one[0]).zfill(20))
            return {_KEPT: tuple(Version(at, (one,), schema) for at, (one, schema) in enumerate(numbered, 1))}
        self._keep(version for versions in found.values() for version in versions)
        return {subject: tuple(self._judged(one, kept) for one in versions) for subject, versions in found.items()}

    def sign(self, subjects: Collection[str]) -> object:
        """Return what differs when a subject has another version, or the newest version another schema.

        Raises:
            LakeboundError: The registry is away, or refuses.
        """
        return [(self._client.versions(one, deleted=True), self._client.version(one, deleted=True)) for one in subjects]

    def compatibility(self, subjects: Collection[str]) -> Mapping[str, str]:
        """Return which changes of its schemas each subject allows, such as BACKWARD, as far as the registry tells.

        Raises:
            LakeboundError: The registry is away, or refuses.
        """
        return {one: mode for one in subjects if (mode := self._client.compatibility(one)) is not None}

    def find(self, ids: Collection[SchemaId]) -> Mapping[SchemaId, SchemaText | str]:
        """Return of each id the schema that the registry has by it, or why there is none.

        Raises:
            RegistryUnavailableError: It is away.
            LakeboundError: It refuses.
        """
        found = self._finder.find(ids, _FIND_SECONDS)
        if found.away is not None:
            raise found.away
        return {**found.schemas, **found.refused}

    def used(self, ids: Collection[SchemaId]) -> Mapping[SchemaId, SchemaText]:
        """Return those of the ids by which the pipeline has read a schema before, also where the registry has it no more."""
        kept = self._kept()
        return {one: kept[one] for one in ids if one in kept}

    def _versions(self, subject: str) -> list[Version]:
        numbers = self._client.versions(subject, deleted=True)
        if not numbers:
            raise NoSuchSubjectError(self._client.name, subject)
        with ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="schema-versions") as pool:
            try:
                return [one for one in pool.map(partial(self._version, subject), numbers) if one is not None]
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                raise

    def _version(self, subject: str, number: int) -> Version | None:
        """Return a version; None where it is gone meanwhile."""
        try:
            found = self._client.version(subject, number, deleted=True)
        except UnusableSchemaError as exc:
            return Version(number, (), None, str(exc))
        return None if found is None or found.id is None else Version(number, (found.id,), found.schema)

    def _judged(self, version: Version, kept: Mapping[SchemaId, SchemaText]) -> Version:
        """Return a version; one whose id had another schema before says so."""
        for one in version.ids:
            used = kept.get(one, version.schema)
            if used is not None and version.schema is not None and used.fingerprint != version.schema.fingerprint:
                error = ReusedSchemaIdError(self._client.name, one, used.fingerprint, version.schema.fingerprint)
                return replace(version, problem=str(error))
        return version

    def _kept(self) -> Mapping[SchemaId, SchemaText]:
        return {} if self._control is None else read_kept_schemas(self._control, self._client.name).schemas

    def _keep(self, versions: Iterable[Version]) -> None:
        used = {one: version.schema for version in versions for one in version.ids if version.schema is not None}
        if self._control is not None and used:
            keep_schemas(self._control, self._client.name, used, time.time())
