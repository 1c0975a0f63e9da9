"""The versions of a pipeline's subjects in its registry; those that belong to it are kept with its state."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import TypeVar

from lakebound.control.folder import ControlFolder
from lakebound.control.kept_schemas import KeptSchemas, keep_schemas, note_reused_ids, read_kept_schemas
from lakebound.errors import LakeboundError, RegistryForbiddenError, RegistryUnavailableError, ReusedSchemaIdError
from lakebound.formats.schemas import SchemaId, SchemaText
from lakebound.formats.versions import Version
from lakebound.landing.kept_versions import reused_ids, with_kept
from lakebound.redaction import redacted
from lakebound.registry.client import RegistryClient, UnusableSchemaError
from lakebound.registry.finder import SchemaFinder
from lakebound.spec.registry import RegistrySpec

log = logging.getLogger(__name__)

_FIND_SECONDS = 20.0
_VERSIONS_SECONDS = 300.0
"""For all versions of all subjects together: a registry that takes longer counts as away."""
_Asked = TypeVar("_Asked")
_Answer = TypeVar("_Answer")
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
        """Return all versions of subjects, and the schemas of them that the pipeline has used and the registry has no more.

        While the registry is away, they are the latter alone.

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
            reused = self._reused(found, kept, ends)
        except RegistryUnavailableError as exc:
            if not or_kept or not all(kept.of(subject) for subject in subjects):
                raise
            log.warning("schemas are read as they were last used: %s", redacted(exc))
            found, reused = dict.fromkeys(subjects, ()), kept.reused
        else:
            self._check(found, kept)
        problems = {one: self._told(one, kept.schemas[one], other) for one, other in reused.items()}
        return {subject: with_kept(versions, kept.of(subject), problems) for subject, versions in found.items()}

    def sign(self, subjects: Collection[str]) -> object:
        """Return what differs when a subject has another version, or the newest version another schema.

        Raises:
            LakeboundError: The registry is away, or refuses.
        """
        return [(self._client.versions(one, deleted=True), self._newest(one)) for one in subjects]

    def _newest(self, subject: str) -> object:
        try:
            return self._client.version(subject, deleted=True)
        except (UnusableSchemaError, RegistryForbiddenError) as exc:
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

    def keep(self, versions: Mapping[str, Sequence[Version]]) -> None:
        """Keep versions of subjects that records are read with; they are all that the registry has and that are.

        Args:
            versions: Of each subject.

        Raises:
            OSError: The state cannot be written.
        """
        used: dict[SchemaId, SchemaText] = {}
        numbers: dict[SchemaId, dict[str, int]] = {}
        for subject, every in versions.items():
            for version in every:
                if version.schema is not None:
                    used |= dict.fromkeys(version.ids, version.schema)
                    for one in version.ids:
                        of = numbers.setdefault(one, {})
                        of[subject] = max(version.number, of.get(subject, 0))
        if self._control is not None and used:
            keep_schemas(self._control, self._client.name, used, time.time(), numbers, numbers)

    def _versions(self, subject: str, kept: KeptSchemas, ends: float) -> Sequence[Version]:
        """Return the versions that the registry has; none where it has no such subject.

        A version that was deleted before it was ever used says so. One that was used stays what it was: rows came of it.
        """
        there, used = {*self._client.versions(subject)}, kept.of(subject)
        return [
            replace(one, is_older=bool(there) and one.number not in there and used.keys().isdisjoint(one.ids))
            for one in self._all_versions(subject, ends)
        ]

    def _all_versions(self, subject: str, ends: float) -> Sequence[Version]:
        numbers = self._client.versions(subject, deleted=True)
        found = self._all_at_once(partial(self._version, subject), numbers, ends, f"versions of subject {subject!r}")
        return [one for one in found if one is not None]

    def _all_at_once(self, ask: Callable[[_Asked], _Answer], what: Sequence[_Asked], ends: float, told: str) -> list[_Answer]:
        pool = ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="schema-versions")
        try:
            return list(pool.map(ask, what, timeout=ends - time.monotonic()))
        except TimeoutError:
            late = f"no answer within {_VERSIONS_SECONDS:g} s for the {len(what):,} {told}"
            raise RegistryUnavailableError(self._client.name, self._client.url, late) from None
        finally:
            pool.shutdown(wait=False, cancel_futures=True)  # What is under way ends by its own limit of time.

    def _version(self, subject: str, number: int) -> Version | None:
        """Return a version; None where it is gone meanwhile."""
        try:
            found = self._client.version(subject, number, deleted=True)
        except (UnusableSchemaError, RegistryForbiddenError) as exc:
            return Version(number, (), None, str(exc))
        return None if found is None or found.id is None else Version(number, (found.id,), found.schema)

    def _reused(self, found: Mapping[str, Sequence[Version]], kept: KeptSchemas, ends: float) -> Mapping[SchemaId, str]:
        """Return by which ids that were used the registry has another schema now; it is noted with the state.

        Of what it said so before, that counts on until it says otherwise.
        """
        both = [(version.ids, version.schema) for each in found.values() for version in each]
        now = {one: schema for ids, schema in both if schema is not None for one in ids}
        gone = [one for subject in found for one in kept.of(subject) if one not in now]
        now |= self._meanings(list(dict.fromkeys(gone)), ends)
        reused = {**{one: other for one, other in kept.reused.items() if one not in now}, **reused_ids(kept.schemas, now)}
        if self._control is not None and reused != kept.reused:
            note_reused_ids(self._control, self._client.name, reused)
        return reused

    def _meanings(self, ids: Sequence[SchemaId], ends: float) -> dict[SchemaId, SchemaText]:
        """Return what the registry has by ids that none of the versions has, as far as it has something."""
        found = self._all_at_once(self._meaning, ids, ends, "ids that it had before")
        return {one: schema for one, schema in zip(ids, found, strict=True) if schema is not None}

    def _meaning(self, schema_id: SchemaId) -> SchemaText | None:
        try:
            return self._client.schema(schema_id)
        except (UnusableSchemaError, RegistryForbiddenError):
            return None

    def _check(self, found: Mapping[str, Sequence[Version]], kept: KeptSchemas) -> None:
        """Say which subjects the registry has no more.

        Raises:
            NoSuchSubjectError: Nothing of one is kept, either.
        """
        for subject, versions in found.items():
            if not versions:
                error = NoSuchSubjectError(self._client.name, subject)
                if not kept.of(subject):
                    raise error
                log.warning("schemas are read as they were last used: %s", redacted(error))

    def _told(self, schema_id: SchemaId, used: SchemaText, other: str) -> str:
        return str(ReusedSchemaIdError(self._client.name, schema_id, used.fingerprint, other))

    def _kept(self) -> KeptSchemas:
        return KeptSchemas({}, {}) if self._control is None else read_kept_schemas(self._control, self._client.name)
