"""The versions of a pipeline's subjects in its registry; those that belong to it are kept with its state."""

from __future__ import annotations

import logging
import time
from collections.abc import Collection, Mapping, Sequence
from threading import RLock

from lakebound.control.folder import ControlFolder
from lakebound.control.kept_schemas import KeptSchemas, keep_schemas, note_reused_ids, read_kept_schemas
from lakebound.errors import LakeboundError, RegistryUnavailableError, ReusedSchemaIdError
from lakebound.formats.schemas import SchemaId, SchemaText
from lakebound.formats.versions import Version
from lakebound.landing.kept_versions import reused_ids, with_kept
from lakebound.landing.listed_versions import Deadline, ListedVersions
from lakebound.redaction import redacted
from lakebound.registry.client import RegistryClient
from lakebound.registry.finder import SchemaFinder
from lakebound.spec.registry import RegistrySpec

log = logging.getLogger(__name__)

_FIND_SECONDS = 20.0
_VERSIONS_SECONDS = 300.0
"""For all versions of all subjects together, at the first time: a registry that takes longer counts as away."""
_FURTHER_SECONDS = 20.0
"""Afterwards: records wait for it. What has come by then is not asked for again."""


class NoSuchSubjectError(LakeboundError, is_refusal=True):
    """A registry does not have a subject."""

    def __init__(self, registry: str, subject: str) -> None:
        super().__init__(
            f"the schema registry {registry!r} has no subject {subject!r}; register the schema first (a producer does it with "
            f"its first record), or name the subject: value.subject, value.subject_strategy"
        )


class RegistrySubjects:
    """See ``lakebound.landing.read_schemas.Subjects``. Threads may share it."""

    def __init__(
        self, name: str, spec: RegistrySpec, control: ControlFolder | None, client: RegistryClient | None = None
    ) -> None:
        """Ask nothing yet.

        Args:
            name: Of the registry.
            spec: How it is reached.
            control: The pipeline's state; None: nothing is kept.
            client: Asks it; None: one that is made of ``spec``.
        """
        self._client = RegistryClient(name, spec) if client is None else client
        self._finder = SchemaFinder(self._client)
        self._control = control
        self._listed = ListedVersions(self._client)
        self._kept_before: KeptSchemas | None = None
        self._keeping = RLock()

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
        kept = self._kept()
        if kept.schemas:
            self._client.note_registry()
        deadline = Deadline.within(_FURTHER_SECONDS if self._listed.is_read else _VERSIONS_SECONDS)
        try:
            found: Mapping[str, Sequence[Version]] = self._listed.read(
                subjects, {subject: kept.of(subject) for subject in subjects}, deadline
            )
            reused = self._reused(found, kept, deadline)
        except RegistryUnavailableError as exc:
            if not or_kept or not all(kept.of(subject) for subject in subjects):
                raise
            log.warning("schemas are read as they were last used: %s", redacted(exc))
            found, reused = dict.fromkeys(subjects, ()), kept.reused
        else:
            kept = self._kept()
            self._check(found, kept)
        problems = {one: self._told(one, kept.schemas[one], other) for one, other in reused.items()}
        return {subject: with_kept(versions, kept.of(subject), problems) for subject, versions in found.items()}

    def compatibility(self, subjects: Collection[str]) -> Mapping[str, str]:
        """Return which changes of its schemas each subject allows, such as BACKWARD, as far as the registry tells.

        Raises:
            LakeboundError: The registry is away, or refuses.
        """
        return {one: mode for one in subjects if (mode := self._client.compatibility(one)) is not None}

    def find(self, ids: Collection[SchemaId], subjects: Collection[str]) -> Mapping[SchemaId, SchemaText | str]:
        """Return of each id the schema that the registry has by it, or why there is none.

        Args:
            ids: In the order in which they are asked for.
            subjects: Of the pipeline: whoever may read these may read the registry, if not each schema.

        Raises:
            RegistryUnavailableError: It is away.
            RegistryForbiddenError: It does not let its user read a schema, and not a subject, either.
            LakeboundError: It refuses.
        """
        found = self._finder.find(ids, _FIND_SECONDS)
        if found.forbidden:
            self._listed.check_rights(subjects, Deadline.within(_FURTHER_SECONDS))
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
            with self._keeping:
                keep_schemas(self._control, self._client.name, used, time.time(), numbers, numbers)
                self._kept_before = None

    def _reused(self, found: Mapping[str, Sequence[Version]], kept: KeptSchemas, deadline: Deadline) -> Mapping[SchemaId, str]:
        """Return by which ids that were used the registry has another schema now; it is noted with the state.

        Of what it said so before, that counts on until it says otherwise.
        """
        both = [(version.ids, version.schema) for each in found.values() for version in each]
        now = {one: schema for ids, schema in both if schema is not None for one in ids}
        gone = [one for subject in found for one in kept.of(subject) if one not in now]
        now |= self._listed.meanings(list(dict.fromkeys(gone)), deadline)
        reused = _reused_now(kept, now)
        if self._control is None or reused == kept.reused:
            return reused
        with self._keeping:
            self._kept_before = None  # Keys and values may have one registry, and each notes what it finds.
            noted = _reused_now(self._kept(), now)
            note_reused_ids(self._control, self._client.name, noted)
            self._kept_before = None
        return noted

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
        """Return what is kept. This application alone changes it, and it may lie in an object store."""
        if self._control is None:
            return KeptSchemas({}, {})
        with self._keeping:
            if self._kept_before is None:
                self._kept_before = read_kept_schemas(self._control, self._client.name)
            return self._kept_before


def _reused_now(kept: KeptSchemas, now: Mapping[SchemaId, SchemaText]) -> dict[SchemaId, str]:
    """Return the ids by which a registry has another schema than the one that is kept, as far as it tells, or told last."""
    return {**{one: other for one, other in kept.reused.items() if one not in now}, **reused_ids(kept.schemas, now)}
