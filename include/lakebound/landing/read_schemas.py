"""The schemas that a pipeline's records are read with: read before it is planned, and again when a record names a newer one."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from threading import RLock
from typing import Protocol, TypeVar, cast

from lakebound.control.schemas_in_use import SchemasInUse
from lakebound.errors import LakeboundError, ReusedSchemaIdError, SchemaChangedError, TransformRefusedError
from lakebound.first_line import first_line
from lakebound.formats.schemas import ReadSchemas, SchemaId, SchemaText, UnreadableSchemaError
from lakebound.formats.versions import Version, schemas_of_file, schemas_of_subjects
from lakebound.landing.registry_subjects import RegistrySubjects
from lakebound.landing.run_spec import RunSpec
from lakebound.landing.schema_origins import schemas_in_use
from lakebound.spec.pipeline import PipelineSpec
from lakebound.spec.value import SchemaValueSpec

log = logging.getLogger(__name__)

Settled = TypeVar("Settled")

MOST_STRANGE = 1_000
"""Ids that are in no subject of the pipeline: where more came, no further one is asked for until some time has passed."""
_ASK_AGAIN_SECONDS = 300.0
MOST_IN_VAIN = 20
"""Questions for nothing but such ids: each ends a query, which takes about as long as a second of landing."""


class SchemaRefusedError(LakeboundError, is_refusal=True, runbook="schema-changed"):
    """No version of a pipeline's schema has columns that its tables can have."""

    def __init__(self, pipeline: str, kind: str, problem: str) -> None:
        super().__init__(f"pipeline {pipeline!r}: value: its {kind} schema cannot be landed: {problem}")


class Subjects(Protocol):
    """What has the versions of subjects: a registry, and what is kept of it."""

    def versions(self, subjects: Collection[str]) -> Mapping[str, Sequence[Version]]:
        """Return all versions of subjects, deleted ones too; as far as they are kept while the registry is away.

        Raises:
            LakeboundError: There is no such subject, or the registry is away and nothing of it is kept.
        """

    def sign(self, subjects: Collection[str]) -> object:
        """Return what differs when a subject has another version, or the newest version another schema."""

    def used(self, ids: Collection[SchemaId]) -> Mapping[SchemaId, SchemaText]:
        """Return those of the ids by which the pipeline has read a schema before, also where the registry has it no more."""

    def compatibility(self, subjects: Collection[str]) -> Mapping[str, str]:
        """Return which changes of its schemas each subject allows, as far as that is told.

        Raises:
            LakeboundError: The registry is away, or refuses.
        """

    def find(self, ids: Collection[SchemaId]) -> Mapping[SchemaId, SchemaText | str]:
        """Return of each id the schema that there is by it, or why there is none.

        Raises:
            LakeboundError: The registry is away, or refuses.
        """


class SchemaBook:
    """The schemas of one pipeline while an application runs. Threads may share it."""

    def __init__(
        self,
        spec: PipelineSpec,
        files: Mapping[str, SchemaText],
        subjects: Subjects | None,
        *,
        learns: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Read nothing yet.

        Args:
            spec: The pipeline.
            files: The schemas that it may name as files, by what the YAML calls them.
            subjects: Has those of its registry.
            learns: Whether schemas that records name are asked for later; a bounded job knows at its start all that there are.
            clock: Seconds.
        """
        self._spec, self._files, self._subjects, self._learns = spec, files, subjects, learns
        self._versions: Mapping[str, Sequence[Version]] = {}
        self._passed_over: dict[SchemaId, str] = {}
        self._deleted: dict[SchemaId, SchemaText] = {}
        self._strange: dict[SchemaId, str] = {}
        self._in_vain, self._strange_since, self._clock = 0, clock(), clock
        self._sign: object = None
        self._read: ReadSchemas | None = None
        self._lock = RLock()

    @property
    def has_registry(self) -> bool:
        """Whether a registry has the schemas."""
        return self._subjects is not None

    @property
    def has_newer(self) -> bool:
        """Whether something was learnt since the pipeline was last asked for."""
        return self._read is None and isinstance(self._spec.value, SchemaValueSpec)

    @property
    def passed_over(self) -> Mapping[SchemaId, str]:
        """Schemas that the tables cannot follow, and why."""
        return dict(self._passed_over)

    @property
    def spec(self) -> PipelineSpec:
        """The pipeline with its schemas, as they were last read.

        Raises:
            SchemaRefusedError: No version of one has columns.
            LakeboundError: What the registry raises.
        """
        value = self._spec.value
        if not isinstance(value, SchemaValueSpec):
            return self._spec
        with self._lock:
            if self._read is None:
                self._read = self._read_all(value)
            return self._spec.model_copy(update={"value": value.with_schemas(self._read)})

    def look(self) -> None:
        """Ask whether the registry has other versions now; ``has_newer`` says it then.

        Raises:
            LakeboundError: The registry is away, or refuses.
        """
        if self._subjects is None:
            return
        with self._lock:
            if not self._asks and self._forgets_strange():
                self._read = None
        sign = self._subjects.sign(self._subject_names())
        if self._sign is not None and sign != self._sign:
            versions = self._subjects.versions(self._subject_names())
            with self._lock:
                self._versions, self._read = versions, None
        self._sign = sign

    def in_use(self) -> tuple[SchemasInUse, ...]:
        """Return what the records are read with, and what their columns come from; nothing before it was read.

        Raises:
            LakeboundError: The registry is away, or refuses.
        """
        value = self._spec.value
        with self._lock:
            read, versions = self._read, self._all_versions()
        if self._subjects is None or not isinstance(value, SchemaValueSpec) or read is None or read.known is None:
            return ()
        allowed = self._subjects.compatibility(self._subject_names())
        return (schemas_in_use(value, versions, dict(read.known.refused), allowed),)

    def learn(self, ids: Collection[SchemaId]) -> None:
        """Ask for schemas that records name: afterwards it is known of each what becomes of its records.

        Raises:
            LakeboundError: The registry is away, or refuses.
        """
        if self._subjects is None or not ids:
            return
        with self._lock:
            self._versions = self._subjects.versions(self._subject_names())
            by_id = {one: version for versions in self._all_versions().values() for version in versions for one in version.ids}
            self._forgets_strange()
            asked = [one for one in ids if one not in by_id][: MOST_STRANGE - len(self._strange)]
            known = len(self._strange)
            same = {version.schema: version for version in by_id.values() if version.schema is not None}
            used = self._subjects.used(asked) if asked and len(self._subject_names()) == 1 else {}
            for one, schema in (self._subjects.find(asked) if asked else {}).items():
                if one in used and schema != used[one] and not isinstance(schema, str):
                    registry = cast(SchemaValueSpec, self._spec.value).registry or ""
                    reused = ReusedSchemaIdError(registry, one, used[one].fingerprint, schema.fingerprint)
                    self._strange[one] = str(reused)
                elif one in used:
                    self._deleted[one] = used[one]
                elif not isinstance(schema, str) and schema in same:
                    self._name_also(same[schema], one)
                else:
                    subjects = " and ".join(sorted(self._subject_names()))
                    self._strange[one] = schema if isinstance(schema, str) else f"it is no version of subject {subjects}"
            self._in_vain += len(self._strange) - known == len(ids)
            self._read = None

    def followed(self, settle: Callable[[PipelineSpec], Settled]) -> Settled:
        """Return what a function makes of the pipeline with the newest schemas that it takes; older ones where it refuses.

        Args:
            settle: Plans the pipeline, and compares it with its tables.

        Raises:
            LakeboundError: What it refuses of the oldest, or of a pipeline without a registry.
        """
        while True:
            try:
                return settle(self.spec)
            except (SchemaChangedError, TransformRefusedError) as exc:
                if not self.pass_over_newest(first_line(exc)):
                    raise
            except BaseException:
                self._read = None  # Nothing was settled with it: whoever tries again must not take it for what is in use.
                raise

    def pass_over_newest(self, reason: str) -> bool:
        """Read on with older versions, because the tables cannot follow the newest; return whether there is an older one.

        Args:
            reason: Why, for the records that have it.
        """
        with self._lock:
            newest = self._read.reader if self._read is not None else None
            every = [version for versions in self._versions.values() for version in versions]
            gone = [version for version in every if version.schema == newest]
            if not gone or not any(
                version.schema not in (newest, None) and not self._is_passed_over(version) for version in every
            ):
                return False
            for version in gone:
                self._passed_over |= dict.fromkeys(version.ids, reason)
                log.warning("schema %s does not fit, its records go to quarantine: %s", version.ids, reason)
            self._read = None
            return True

    @property
    def _asks(self) -> bool:
        return self._learns and len(self._strange) < MOST_STRANGE and self._in_vain < MOST_IN_VAIN

    def _forgets_strange(self) -> bool:
        """Forget from time to time which ids are strange; return whether it was time."""
        now = self._clock()
        if now - self._strange_since <= _ASK_AGAIN_SECONDS:
            return False
        self._strange, self._in_vain, self._strange_since = {}, 0, now
        return True

    def _all_versions(self) -> Mapping[str, Sequence[Version]]:
        """Return the versions of the subjects; older than all others are those that the registry has no more."""
        deleted = [Version(0, (one,), schema) for one, schema in self._deleted.items()]
        return {subject: [*deleted, *versions] for subject, versions in self._versions.items()}

    def _is_passed_over(self, version: Version) -> bool:
        return version.problem is not None or any(one in self._passed_over for one in version.ids)

    def _subject_names(self) -> tuple[str, ...]:
        value = self._spec.value
        assert isinstance(value, SchemaValueSpec)
        return tuple(dict.fromkeys(value.subject_of(topic) for topic in self._spec.topics))

    def _name_also(self, version: Version, name: SchemaId) -> None:
        """Note a further name by which records call a version, such as a GUID."""
        more = replace(version, ids=(*version.ids, name))
        self._versions = {
            subject: [more if one == version else one for one in versions] for subject, versions in self._versions.items()
        }

    def _read_all(self, value: SchemaValueSpec) -> ReadSchemas:
        try:
            if value.schema_file is not None:
                return schemas_of_file(self._files[value.schema_file], value.record)
            assert self._subjects is not None
            self._versions = self._versions or self._subjects.versions(self._subject_names())
            return schemas_of_subjects(self._all_versions(), value.record, self._passed_over, self._strange, asks=self._asks)
        except UnreadableSchemaError as exc:
            raise SchemaRefusedError(self._spec.pipeline, value.format, str(exc)) from exc


def open_schemas(run: RunSpec, *, learns: bool = False, keeps: bool = True) -> SchemaBook:
    """Return the schemas of an application's records; none is read yet.

    Args:
        run: The orders.
        learns: Whether schemas that records name are asked for later.
        keeps: Whether what is used is kept with the pipeline's state, and read from there while the registry is away.
    """
    value = run.spec.value
    if not isinstance(value, SchemaValueSpec):
        return SchemaBook(run.spec, {}, None)
    subjects = None
    if value.registry is not None:
        subjects = RegistrySubjects(value.registry, run.registries[value.registry], run.control if keeps else None)
    return SchemaBook(run.spec, run.schema_files, subjects, learns=learns)
