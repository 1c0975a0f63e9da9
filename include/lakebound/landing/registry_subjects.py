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
from lakebound.landing.at_once import Deadline, clock
from lakebound.landing.kept_versions import others_by_themselves, reused_ids, with_kept
from lakebound.landing.listed_versions import ListedVersions
from lakebound.redaction import redacted
from lakebound.registry.client import RegistryClient
from lakebound.registry.finder import SchemaFinder
from lakebound.spec.registry import RegistrySpec

log = logging.getLogger(__name__)

_FIND_SECONDS = 20.0
_VERSIONS_SECONDS = 300.0
"""For all versions of all subjects together, at the first time: a registry that takes longer counts as away."""
_FURTHER_SECONDS = 20.0
"""Afterwards, for what is not known: records wait for it. What has come by then is not asked for again."""
_AGAIN_SECONDS = 5.0
"""For what is known, and asked for again; nobody waits for it."""
_COMPATIBILITY_SECONDS = 5.0
_BEHIND_SECONDS = 0.2
"""So long one of several servers of a registry may be behind the others."""
_TRIES_SECONDS = 300.0
"""So long tries of one question go on where the one before was left."""


class NoSuchSubjectError(LakeboundError, is_refusal=True):
    """A registry does not have a subject."""

    def __init__(self, registry: str, subject: str) -> None:
        super().__init__(
            f"the schema registry {registry!r} has no subject {subject!r}; register the schema first (a producer does it with "
            f"its first record), or name the subject: value.subject, value.subject_strategy"
        )


class _Tries:
    """Of one question, of which each try asks for what the ones before did not get: so a slow registry gets through."""

    def __init__(self) -> None:
        self._began: tuple[float, frozenset[SchemaId]] | None = None

    def since(self, ids: Collection[SchemaId] = ()) -> float:
        """Return from when on answers count, by the clock of deadlines.

        Args:
            ids: What is asked about: a try that began before one of them was known says nothing of it.
        """
        if self._began is None or not self.goes_on(ids):
            self._began = clock(), frozenset(ids)
        return self._began[0]

    def goes_on(self, ids: Collection[SchemaId] = ()) -> bool:
        """Return whether a try of the same question has begun."""
        return self._began is not None and self._began[1].issuperset(ids) and clock() - self._began[0] <= _TRIES_SECONDS

    def end(self) -> None:
        """Note that it has its answer."""
        self._began = None


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
        self._looks, self._questions, self._doubts = _Tries(), _Tries(), _Tries()
        self._lost: set[tuple[str, int]] = set()
        self._kept_before: KeptSchemas | None = None
        self._keeping = RLock()

    def versions(self, subjects: Collection[str], *, or_kept: bool = True) -> Mapping[str, Sequence[Version]]:
        """Return all versions of subjects, and the schemas of them that the pipeline has used and the registry has no more.

        While the registry is away, they are the latter alone. Some of what is known is asked for again, as far as the registry
        answers in time.

        Args:
            subjects: Their names.
            or_kept: Whether those that are kept do while the registry is away.

        Raises:
            NoSuchSubjectError: The registry does not have one, and nothing of it is kept.
            RegistryUnavailableError: It is away, and nothing of a subject is kept, or that does not do.
            LakeboundError: It refuses.
        """
        kept = self._kept_before_outages()
        deadline = Deadline.within(_FURTHER_SECONDS if self._listed.is_read else _VERSIONS_SECONDS)
        since = self._looks.since()
        is_first = not self._listed.is_read
        try:
            found, reused = self._read(subjects, kept, deadline, since)
            if not is_first:
                self._listed.again(subjects, deadline.part(_AGAIN_SECONDS))
                found, reused = self._read(subjects, kept, deadline, since)
        except RegistryUnavailableError as exc:
            if not or_kept or not all(kept.of(subject) for subject in subjects):
                raise
            log.warning("schemas are read as they were last used: %s", redacted(exc))
            found, reused = dict.fromkeys(subjects, ()), kept.reused
        else:
            self._looks.end()
            self._check(found)
        return self._with_kept(found, reused)

    def newer(self, subjects: Collection[str], found: Mapping[SchemaId, SchemaText | str]) -> Mapping[str, Sequence[Version]]:
        """Return what ``versions`` returns; of versions that are known some are asked for again only where that is not enough.

        A registry may have a version, and not let its user ask for it by id. And where it has a schema that no version has,
        one of its servers may be behind, or it was set up again.

        Args:
            subjects: Their names.
            found: What it has by ids that no known version has, or why nothing.

        Raises:
            NoSuchSubjectError: The registry does not have one, and nothing of it is kept.
            RegistryUnavailableError: It is away.
            LakeboundError: It refuses.
        """
        kept = self._kept_before_outages()
        deadline = Deadline.within(_FURTHER_SECONDS)
        told, reused = self._read(subjects, kept, deadline, self._questions.since(found))
        versions = self._with_kept(told, reused)
        if _are_in_none(found, versions):
            if not self._doubts.goes_on(found):
                time.sleep(_BEHIND_SECONDS)
            since = self._doubts.since(found)
            self._read(subjects, kept, deadline, since)
            self._listed.again(subjects, deadline.part(_AGAIN_SECONDS))
            told, reused = self._read(subjects, kept, deadline, since)
            versions = self._with_kept(told, reused)
        self._questions.end()
        self._doubts.end()
        self._check(told)
        return versions

    def compatibility(self, subjects: Collection[str]) -> Mapping[str, str]:
        """Return which changes of its schemas each subject allows, such as BACKWARD, as far as the registry has told it.

        Raises:
            LakeboundError: The registry refuses.
        """
        return self._listed.compatibility(subjects, Deadline.within(_COMPATIBILITY_SECONDS))

    def find(self, ids: Collection[SchemaId]) -> Mapping[SchemaId, SchemaText | str]:
        """Return of each id the schema that the registry has by it, or why there is none.

        Args:
            ids: In the order in which they are asked for.

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
            with self._keeping:
                keep_schemas(self._control, self._client.name, used, time.time(), numbers, numbers)
                self._kept_before = None

    def _read(
        self, subjects: Collection[str], kept: KeptSchemas, deadline: Deadline, since: float
    ) -> tuple[Mapping[str, Sequence[Version]], Mapping[SchemaId, str]]:
        """Return the versions that the registry has, and by which ids that were used it has another schema now."""
        found = self._listed.read(subjects, {subject: kept.of(subject) for subject in subjects}, deadline, since)
        return found, self._reused(found, kept, deadline)

    def _reused(self, found: Mapping[str, Sequence[Version]], kept: KeptSchemas, deadline: Deadline) -> Mapping[SchemaId, str]:
        """Return by which ids that were used the registry has another schema now; it is noted with the state.

        Of what it said so before, that counts on until it says otherwise.
        """
        both = [(version.ids, version.schema) for each in found.values() for version in each]
        now = {one: schema for ids, schema in both if schema is not None for one in ids}
        gone = [one for subject in found for one in kept.of(subject) if one not in now]
        now |= self._listed.meanings(list(dict.fromkeys(gone)), deadline)
        now = {**others_by_themselves(kept.schemas, self._listed.own_schemas()), **now}
        reused = _reused_now(kept, now)
        if self._control is None or reused == kept.reused:
            return reused
        with self._keeping:
            self._kept_before = None  # Keys and values may have one registry, and each notes what it finds.
            noted = _reused_now(self._kept(), now)
            note_reused_ids(self._control, self._client.name, noted)
            self._kept_before = None
        return noted

    def _with_kept(
        self, found: Mapping[str, Sequence[Version]], reused: Mapping[SchemaId, str]
    ) -> dict[str, Sequence[Version]]:
        """Return the versions with those that were used."""
        kept = self._kept()
        problems = {one: self._told(one, kept.schemas[one], other) for one, other in reused.items()}
        every: dict[str, Sequence[Version]] = {}
        lost: set[tuple[str, int]] = set()
        for subject, versions in found.items():
            every[subject] = with_kept(versions, kept.of(subject), problems, kept.numbers_of(subject))
            readable = {one.number for one in every[subject] if not one.is_older and one.problem is None}
            for one in versions:
                if one.problem is not None and one.number in readable:
                    lost.add((subject, one.number))
                    if (subject, one.number) not in self._lost:
                        known_as = "subject %r, version %d, is read as it was last used: %s"
                        log.warning(known_as, subject, one.number, one.problem)
        self._lost = lost
        return every

    def _check(self, found: Mapping[str, Sequence[Version]]) -> None:
        """Say which subjects the registry has no more.

        Raises:
            NoSuchSubjectError: Nothing of one is kept, either.
        """
        kept = self._kept()
        for subject, versions in found.items():
            if not versions:
                error = NoSuchSubjectError(self._client.name, subject)
                if not kept.of(subject):
                    raise error
                log.warning("schemas are read as they were last used: %s", redacted(error))

    def _told(self, schema_id: SchemaId, used: SchemaText, other: str) -> str:
        return str(ReusedSchemaIdError(self._client.name, schema_id, used.fingerprint, other))

    def _kept_before_outages(self) -> KeptSchemas:
        """Return what is kept. Where something is, the registry has answered before, and what answers in its place passes."""
        kept = self._kept()
        if kept.schemas:
            self._client.note_registry()
        return kept

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


def _are_in_none(found: Mapping[SchemaId, SchemaText | str], versions: Mapping[str, Sequence[Version]]) -> bool:
    """Return whether some schema is that of no version."""
    every = [version for each in versions.values() for version in each]
    ids = {one for version in every for one in version.ids}
    prints = {version.schema.fingerprint for version in every if version.schema is not None}
    return any(
        isinstance(schema, SchemaText) and one not in ids and schema.fingerprint not in prints for one, schema in found.items()
    )
