"""The versions of a pipeline's subjects in its registry; those that belong to it are kept with its state."""

from __future__ import annotations

import logging
import time
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
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
_VERSIONS_SECONDS = 300.0
"""For all versions of all subjects together: a registry that takes longer counts as away."""
_AT_ONCE = 8
"""Versions that are asked for: a subject may have hundreds, and a registry take its time for each."""


class NoSuchSubjectError(LakeboundError, is_refusal=True):
    """A registry does not have a subject."""

    def __init__(self, registry: str, subject: str) -> None:
        super().__init__(
            f"the schema registry {registry!r} has no subject {subject!r}; register the schema first (a producer does it with "
            f"its first record), or name the subject: value.subject, value.subject_strategy"
        )


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
        self._finder = SchemaFinder(self._client)
        self._control = control

    def versions(self, subjects: Collection[str], *, or_kept: bool = True) -> Mapping[str, Sequence[Version]]:
        """Return all versions of subjects.

        While the registry is away, or has a subject no more, they are those that the pipeline has used.

        Args:
            subjects: Their names.
            or_kept: Whether those that are kept do while the registry is away.

        Raises:
            NoSuchSubjectError: The registry does not have one, and nothing of it is kept.
            RegistryUnavailableError: It is away, and nothing of a subject is kept, or that does not do.
            LakeboundError: It refuses.
        """
        kept, ends = self._kept(), time.monotonic() + _VERSIONS_SECONDS
        try:
            found = {subject: self._versions(subject, kept, ends) for subject in subjects}
        except RegistryUnavailableError as exc:
            found = {subject: _numbered(kept.of(subject)) for subject in subjects}
            if not or_kept or not all(found.values()):
                raise
            log.warning("schemas are read as they were last used: %s", redacted(exc))
            return found
        self._keep(found)
        return {subject: self._judged(versions, kept) or self._gone(subject, kept) for subject, versions in found.items()}

    def sign(self, subjects: Collection[str]) -> object:
        """Return what differs when a subject has another version, or the newest version another schema.

        Raises:
            LakeboundError: The registry is away, or refuses.
        """
        return [(self._client.versions(one, deleted=True), self._newest(one)) for one in subjects]

    def _newest(self, subject: str) -> object:
        try:
            return self._client.version(subject, deleted=True)
        except UnusableSchemaError as exc:
            return str(exc)

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

    def used(self, subjects: Collection[str], ids: Collection[SchemaId]) -> Mapping[str, Mapping[SchemaId, SchemaText]]:
        """Return of each subject those of the ids by which the pipeline has read a schema of it before, also deleted ones."""
        kept = self._kept()
        return {one: {known: schema for known, schema in kept.of(one).items() if known in ids} for one in subjects}

    def _versions(self, subject: str, kept: KeptSchemas, ends: float) -> Sequence[Version]:
        """Return the versions that the registry has; none where it has no such subject.

        A version that was deleted before it was ever used says so. One that was used stays what it was: rows came of it.
        """
        there, used = {*self._client.versions(subject)}, kept.of(subject)
        return [
            replace(one, is_deleted=bool(there) and one.number not in there and used.keys().isdisjoint(one.ids))
            for one in self._all_versions(subject, ends)
        ]

    def _all_versions(self, subject: str, ends: float) -> Sequence[Version]:
        numbers = self._client.versions(subject, deleted=True)
        pool = ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="schema-versions")
        try:
            found = pool.map(partial(self._version, subject), numbers, timeout=ends - time.monotonic())
            return [one for one in found if one is not None]
        except TimeoutError:
            late = f"no answer within {_VERSIONS_SECONDS:g} s for the {len(numbers):,} versions of subject {subject!r}"
            raise RegistryUnavailableError(self._client.name, self._client.url, late) from None
        finally:
            pool.shutdown(wait=False, cancel_futures=True)  # What is under way ends by its own limit of time.

    def _version(self, subject: str, number: int) -> Version | None:
        """Return a version; None where it is gone meanwhile."""
        try:
            found = self._client.version(subject, number, deleted=True)
        except UnusableSchemaError as exc:
            return Version(number, (), None, str(exc))
        return None if found is None or found.id is None else Version(number, (found.id,), found.schema)

    def _gone(self, subject: str, kept: KeptSchemas) -> Sequence[Version]:
        """Return the versions of a subject that the registry has no more."""
        error = NoSuchSubjectError(self._client.name, subject)
        versions = _numbered(kept.of(subject))
        if not versions:
            raise error
        log.warning("schemas are read as they were last used: %s", redacted(error))
        return versions

    def _judged(self, versions: Sequence[Version], kept: KeptSchemas) -> Sequence[Version]:
        """Return versions; one whose id had another schema before says so."""
        found = []
        for version in versions:
            for one in version.ids:
                used = kept.schemas.get(one, version.schema)
                if used is not None and version.schema is not None and used.fingerprint != version.schema.fingerprint:
                    error = ReusedSchemaIdError(self._client.name, one, used.fingerprint, version.schema.fingerprint)
                    version = replace(version, problem=str(error))
            found.append(version)
        return found

    def _kept(self) -> KeptSchemas:
        return KeptSchemas({}, {}) if self._control is None else read_kept_schemas(self._control, self._client.name)

    def _keep(self, found: Mapping[str, Sequence[Version]]) -> None:
        used: dict[SchemaId, SchemaText] = {}
        numbers: dict[SchemaId, dict[str, int]] = {}
        for subject, versions in found.items():
            for version in versions:
                # What was deleted before is not kept: it would be one that was used, and the newest, at the next start.
                if version.schema is not None and not version.is_deleted:
                    used |= dict.fromkeys(version.ids, version.schema)
                    for one in version.ids:
                        of = numbers.setdefault(one, {})
                        of[subject] = max(version.number, of.get(subject, 0))
        if self._control is not None and used:
            keep_schemas(self._control, self._client.name, used, time.time(), numbers, numbers)


def _numbered(schemas: Mapping[SchemaId, SchemaText]) -> Sequence[Version]:
    """Return kept schemas as versions, in their order."""
    return [Version(at, (one,), schema) for at, (one, schema) in enumerate(schemas.items(), 1)]
