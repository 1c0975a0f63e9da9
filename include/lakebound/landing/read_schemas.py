"""The schemas that a pipeline's records are read with: read before it is planned, and again when a record names a newer one."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from itertools import islice
from threading import Lock
from typing import TypeVar

from lakebound.control.schemas_in_use import SchemasInUse
from lakebound.errors import LakeboundError, SchemaChangedError, TransformRefusedError
from lakebound.first_line import first_line
from lakebound.formats.schemas import PartOfRecord, SchemaId, UnreadableSchemaError
from lakebound.landing.older_schemas import Counts, Ids, choices, oldest_first, passed_over
from lakebound.landing.part_schemas import ColumnsOfDdl, PartSchemas, Subjects
from lakebound.landing.registry_subjects import RegistrySubjects
from lakebound.landing.run_spec import RunSpec
from lakebound.landing.schema_files import SchemaFiles
from lakebound.landing.used_schemas import Named
from lakebound.spec.input_columns import clash
from lakebound.spec.key import SchemaKeySpec, check_key_columns
from lakebound.spec.pipeline import PipelineSpec
from lakebound.spec.schema_source import SchemaSourceSpec

log = logging.getLogger(__name__)

Settled = TypeVar("Settled")
PassedOver = Mapping[PartOfRecord, Mapping[SchemaId, str]]
"""Why tables cannot follow schemas, by what records say of them."""

_MOST_TRIES = 1_000


def refused_schema(kind: str, problem: str) -> str:
    """Return that a schema of a format gives no columns, and why."""
    return f"its {kind} schema cannot be landed: {problem}"


class SchemaRefusedError(LakeboundError, is_refusal=True, runbook="schema-changed"):
    """No version of a schema of a pipeline has columns that its tables can have.

    Attributes:
        part: Of which part of the records.
    """

    def __init__(self, pipeline: str, part: PartOfRecord, kind: str, problem: str) -> None:
        self.part = part
        super().__init__(f"pipeline {pipeline!r}: {part}: {refused_schema(kind, problem)}")


class ColumnsRefusedError(LakeboundError, is_refusal=True, runbook="schema-changed"):
    """The columns of key, value and headers cannot stand beside each other, or one that is named is not there.

    Attributes:
        part: The part of the records by which it is told.
        problem: What is wrong with them.
    """

    def __init__(self, pipeline: str, part: PartOfRecord, problem: str) -> None:
        self.part, self.problem = part, problem
        super().__init__(f"pipeline {pipeline!r}: {problem}")


_TABLES_CANNOT_FOLLOW = (SchemaChangedError, TransformRefusedError, ColumnsRefusedError, SchemaRefusedError)
"""The last one also where the newest versions of two subjects differ in the type of a column."""


class SchemaBook:
    """The schemas of one pipeline while an application runs. Threads may share it."""

    def __init__(
        self,
        spec: PipelineSpec,
        files: SchemaFiles,
        subjects: Mapping[PartOfRecord, Subjects],
        *,
        learns: bool = False,
        clock: Callable[[], float] = time.monotonic,
        columns_of: ColumnsOfDdl | None = None,
    ) -> None:
        """Read nothing yet.

        Args:
            spec: The pipeline.
            files: The schemas that it names as files.
            subjects: What has those of a registry.
            learns: Whether schemas that records name are asked for later; a bounded job knows at its start all that there are.
            clock: Seconds.
            columns_of: Says which columns the pipeline names; needed where it names any.
        """
        self._spec = spec
        self._wanted: dict[PartOfRecord, frozenset[SchemaId]] = {}
        self._away: LakeboundError | None = None
        self._lock = Lock()
        self._settled = 0
        self._parts = {
            part: PartSchemas(
                source,
                spec.topics,
                files[part] if source.schema_file is not None else subjects[part],
                learns=learns,
                clock=clock,
                columns_of=columns_of,
            )
            for part, source in spec.schema_sources.items()
        }

    @property
    def has_registry(self) -> bool:
        """Whether a registry has some of the schemas."""
        return any(one.has_registry for one in self._parts.values())

    @property
    def has_newer(self) -> bool:
        """Whether something was learnt since the pipeline was last asked for."""
        return any(one.has_newer for one in self._parts.values())

    @property
    def settled(self) -> int:
        """How often tables were settled with the schemas."""
        return self._settled

    @property
    def passed_over(self) -> PassedOver:
        """Schemas that the tables cannot follow, and why."""
        return {part: one.passed_over for part, one in self._parts.items()}

    @property
    def not_followed(self) -> PassedOver:
        """What ``passed_over`` has, and newer versions that cannot be read at all: records of them go to quarantine."""
        return {part: {**one.unreadable_newest, **one.passed_over} for part, one in self._parts.items()}

    @property
    def reused(self) -> Mapping[PartOfRecord, frozenset[SchemaId]]:
        """Ids that meant another schema before."""
        return {part: one.reused_ids for part, one in self._parts.items()}

    @property
    def spec(self) -> PipelineSpec:
        """The pipeline with its schemas, as they were last read.

        Raises:
            SchemaRefusedError: No version of one has columns.
            ColumnsRefusedError: Columns of key, value and headers have one name, or one of the key is not there.
            LakeboundError: What the registry raises.
        """
        if not self._parts:
            return self._spec
        spec = self._spec.model_copy(update={part: self._with_schemas(part, one) for part, one in self._parts.items()})
        _check_columns(spec)
        return spec

    def named(self) -> dict[str, dict[str, str]]:
        """Return what the entry of a commit says of the schemas that are in use, by registry."""
        found: dict[str, dict[str, str]] = {}
        for one in self._parts.values():
            if one.source.registry is not None:
                found.setdefault(one.source.registry, {}).update(one.named)
        return found

    def know_entries(self, entries: Iterable[Mapping[str, Named]]) -> None:
        """Read nothing with ids that meant another schema before; called before anything is read.

        Args:
            entries: What the newest entry of each table names, by registry.
        """
        for entry in entries:
            for one in self._parts.values():
                if named := entry.get(one.source.registry or ""):
                    one.know_named(named)

    def look(self) -> None:
        """Ask whether the registries have other versions now; ``has_newer`` says it then.

        Raises:
            LakeboundError: A registry is away, or refuses; all others have been asked.
        """
        _each(one.look for one in self._parts.values())

    def in_use(self) -> tuple[SchemasInUse, ...]:
        """Return what the records are read with, and what their columns come from; nothing before it was read."""
        return tuple(found for one in self._parts.values() if (found := one.in_use()) is not None)

    @property
    def away(self) -> LakeboundError | None:
        """Why schemas that records want were asked for in vain; None: nobody has asked since they are wanted."""
        return self._away

    def want(self, part: PartOfRecord, ids: Collection[SchemaId]) -> None:
        """Note schemas that records name, and that ``ask`` is to ask for."""
        with self._lock:
            self._wanted[part] = self._wanted.get(part, frozenset()) | frozenset(ids)

    def ask(self) -> None:
        """Ask for the schemas that records want: afterwards none is, and it is known of each what becomes of its records.

        Raises:
            LakeboundError: A registry is away, as ``away`` says then, or refuses; all others have been asked.
        """
        with self._lock:
            wanted = dict(self._wanted)
        try:
            _each(partial(self._learn, part, ids) for part, ids in wanted.items())
        except LakeboundError as exc:
            self._away = exc if exc.passes else None
            raise
        self._away = None

    def _learn(self, part: PartOfRecord, ids: frozenset[SchemaId]) -> None:
        self._parts[part].learn(ids)
        with self._lock:
            self._wanted[part] -= ids

    def followed(self, settle: Callable[[PipelineSpec], Settled]) -> Settled:
        """Return what a function makes of the pipeline with the newest schemas that it takes; older ones where it refuses.

        As few schemas are passed over as possible: first the newest of one subject, then of another, then of both. Of several,
        each is read all the same that does fit.

        Args:
            settle: Plans the pipeline, and compares it with its tables.

        Raises:
            LakeboundError: What it refuses of the newest, where no older ones help, or of a pipeline without a registry.
        """
        before = self.passed_over
        try:
            found = self._followed(settle, before)
            for one in self._parts.values():
                one.keep()
            self._settled += 1
            return found
        except BaseException:
            for part, one in self._parts.items():
                one.pass_over(before[part])
                one.forget_read()  # Nothing was settled with it: whoever tries again must not take it for what is in use.
            raise

    def _followed(self, settle: Callable[[PipelineSpec], Settled], before: PassedOver) -> Settled:
        try:
            return settle(self.spec)
        except _TABLES_CANNOT_FOLLOW as exc:
            refusal = exc
        subjects = [one for part in self._parts.values() for one in part.newest()]
        refusals: dict[Counts, str] = {(0,) * len(subjects): first_line(refusal)}
        for counts in islice(choices(subjects), 1, _MOST_TRIES):
            gone: PassedOver = passed_over(subjects, counts, refusals)
            self._pass_over(before, gone)
            try:
                settled = settle(self.spec)
            except _TABLES_CANNOT_FOLLOW as exc:
                refusals[counts] = first_line(exc)
                continue
            schemas = oldest_first(subjects, counts)
            if len(schemas) > 1:
                settled, gone = self._taken_back(settle, before, gone, schemas, settled)
            for part, found in gone.items():
                for schema, reason in found.items():
                    log.warning("%s: schema %s does not fit, its records go to quarantine: %s", part, schema, reason)
            return settled
        raise refusal

    def _taken_back(
        self,
        settle: Callable[[PipelineSpec], Settled],
        before: PassedOver,
        gone: PassedOver,
        schemas: Sequence[tuple[PartOfRecord, Ids]],
        settled: Settled,
    ) -> tuple[Settled, PassedOver]:
        """Return what is settled with the schemas that fit all the same, because another one did not, and what is left."""
        is_refused = False
        for part, ids in schemas:
            fewer = {**gone, part: {one: told for one, told in gone[part].items() if one not in ids}}
            self._pass_over(before, fewer)
            try:
                settled, gone, is_refused = settle(self.spec), fewer, False
            except _TABLES_CANNOT_FOLLOW as exc:
                gone, is_refused = {**gone, part: {**gone[part], **dict.fromkeys(ids, first_line(exc))}}, True
        if is_refused:  # What is settled last is what is read.
            self._pass_over(before, gone)
            settled = settle(self.spec)
        return settled, gone

    def _pass_over(self, before: PassedOver, gone: PassedOver) -> None:
        for part, one in self._parts.items():
            one.pass_over({**before[part], **gone.get(part, {})})

    def _with_schemas(self, part: PartOfRecord, schemas: PartSchemas) -> SchemaSourceSpec:
        try:
            return schemas.source.with_schemas(schemas.read())
        except UnreadableSchemaError as exc:
            raise SchemaRefusedError(self._spec.pipeline, part, schemas.source.format, str(exc)) from exc


def _each(asks: Iterable[Callable[[], None]]) -> None:
    """Ask all registries, also where one of them is away: each knows other schemas.

    Raises:
        LakeboundError: The first refusal; where there is none, the first outage.
    """
    errors: list[LakeboundError] = []
    for ask in asks:
        try:
            ask()
        except LakeboundError as exc:
            errors.append(exc)
    if errors:
        raise min(errors, key=lambda one: one.passes)


def open_schemas(run: RunSpec, columns_of: ColumnsOfDdl, *, learns: bool = False, keeps: bool = True) -> SchemaBook:
    """Return the schemas of an application's records; none is read yet.

    Args:
        run: The orders.
        columns_of: Says which columns the pipeline names.
        learns: Whether schemas that records name are asked for later.
        keeps: Whether what is used is kept with the pipeline's state, and read from there while the registry is away.
    """
    subjects = {
        part: RegistrySubjects(source.registry, run.registries[source.registry], run.control if keeps else None)
        for part, source in run.spec.schema_sources.items()
        if source.registry is not None
    }
    return SchemaBook(run.spec, run.schema_files, subjects, learns=learns, columns_of=columns_of)


def _check_columns(spec: PipelineSpec) -> None:
    """Check the columns of parts whose schemas are known now.

    Raises:
        ColumnsRefusedError: Two have one name, or one that the key is to have is not there.
    """
    key = spec.key
    if isinstance(key, SchemaKeySpec) and key.columns is not None:
        try:
            if key.read.is_one_value:
                raise ValueError("columns: its schema is one value without fields; name its column with as")
            check_key_columns(key.columns, key.read.columns.names)
        except ValueError as exc:
            raise ColumnsRefusedError(spec.pipeline, "key", f"key: {exc}") from exc
    if (problem := clash(spec)) is not None:
        raise ColumnsRefusedError(spec.pipeline, "key" if key is not None else "value", problem)
