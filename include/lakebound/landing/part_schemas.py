"""The schemas of one part of a pipeline's records, its keys or its values, while an application runs."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from threading import RLock
from typing import TYPE_CHECKING, Protocol

from lakebound.control.schemas_in_use import SchemasInUse
from lakebound.errors import LakeboundError, ReusedSchemaIdError
from lakebound.formats.schemas import KnownSchemas, ReadSchemas, SchemaId, SchemaText
from lakebound.formats.versions import Version, schemas_of_file, schemas_of_subjects
from lakebound.landing.older_schemas import Newest
from lakebound.landing.schema_origins import schemas_in_use
from lakebound.landing.used_schemas import Named, reused_ids, to_name
from lakebound.redaction import redacted
from lakebound.registry.finding import ids_to_ask
from lakebound.spec.schema_source import SchemaSourceSpec

if TYPE_CHECKING:
    import pyarrow as pa

log = logging.getLogger(__name__)

ColumnsOfDdl = Callable[[str], "pa.Schema"]
"""Returns the columns of a text in Spark's DDL, which Spark alone reads in full."""

MOST_STRANGE = 1_000
"""Ids that are in no subject of the pipeline: where more came, no further one is asked for until some time has passed."""
_ASK_AGAIN_SECONDS = 300.0
MOST_IN_VAIN = 20
"""Questions for nothing but such ids: each ends a query, which takes about as long as a second of landing."""


class Subjects(Protocol):
    """What has the versions of subjects: a registry, and what is kept of it."""

    def versions(self, subjects: Collection[str], *, or_kept: bool = True) -> Mapping[str, Sequence[Version]]:
        """Return all versions of subjects, those too that were deleted, or that the registry had when they were used.

        Args:
            subjects: Their names.
            or_kept: Whether those that are kept do while the registry is away.

        Raises:
            LakeboundError: There is no such subject, or the registry is away and nothing of it is kept.
        """

    def keep(self, versions: Mapping[str, Sequence[Version]]) -> None:
        """Keep the versions of subjects that records are read with, for a time when the registry does not have them."""

    def compatibility(self, subjects: Collection[str]) -> Mapping[str, str]:
        """Return which changes of its schemas each subject allows, as far as that is told.

        Raises:
            LakeboundError: The registry refuses.
        """

    def newer(self, subjects: Collection[str], found: Mapping[SchemaId, SchemaText | str]) -> Mapping[str, Sequence[Version]]:
        """Return what ``versions`` returns, with what is new; what is known is asked for again only where that is not enough.

        Args:
            subjects: Their names.
            found: What there is by ids that no known version has, or why nothing.

        Raises:
            LakeboundError: The registry is away, or refuses.
        """

    def find(self, ids: Collection[SchemaId]) -> Mapping[SchemaId, SchemaText | str]:
        """Return of each id the schema that there is by it, or why there is none.

        Args:
            ids: In the order in which they are asked for.

        Raises:
            LakeboundError: The registry is away, or refuses.
        """


class PartSchemas:
    """The schemas of one part. Threads may share it."""

    def __init__(
        self,
        source: SchemaSourceSpec,
        topics: Sequence[str],
        origin: SchemaText | Subjects,
        *,
        learns: bool,
        clock: Callable[[], float] = time.monotonic,
        columns_of: ColumnsOfDdl | None = None,
    ) -> None:
        """Read nothing yet.

        Args:
            source: What the pipeline says of them.
            topics: The pipeline's.
            origin: The schema of a file, or what has those of a registry.
            learns: Whether schemas that records name are asked for later.
            clock: Seconds.
            columns_of: Says which columns the pipeline names; needed where it names any.
        """
        self.source, self._learns, self._columns_of = source, learns, columns_of
        self._file = origin if isinstance(origin, SchemaText) else None
        self._subjects = None if isinstance(origin, SchemaText) else origin
        self._topics: dict[str, list[str]] = {}
        for topic in topics:
            self._topics.setdefault(source.subject_of(topic), []).append(topic)
        self._names = tuple(self._topics)
        self._versions: Mapping[str, Sequence[Version]] = {}
        self._passed_over: Mapping[SchemaId, str] = {}
        self._passed_prints: Mapping[SchemaId, str] = {}
        self._further_names: dict[str, tuple[SchemaId, ...]] = {}
        self._strange: dict[SchemaId, str] = {}
        self._in_vain, self._strange_since, self._clock = 0, clock(), clock
        self._read: ReadSchemas | None = None
        self._named: dict[str, str] = {}
        self._allowed: Mapping[str, str] = {}
        self._lock, self._asking = RLock(), RLock()

    @property
    def has_registry(self) -> bool:
        """Whether a registry has the schemas."""
        return self._subjects is not None

    @property
    def has_newer(self) -> bool:
        """Whether something was learnt since the schemas were last read."""
        return self._read is None

    @property
    def passed_over(self) -> Mapping[SchemaId, str]:
        """Schemas that the tables cannot follow, and why."""
        return dict(self._passed_over)

    def read(self) -> ReadSchemas:
        """Return the schemas.

        Raises:
            UnreadableSchemaError: No version of one has columns.
            LakeboundError: What the registry raises.
        """
        with self._lock:
            if self._read is None:
                self._read = self._read_all()
            return self._read

    @property
    def named(self) -> Named:
        """What an entry says of the schemas that are in use."""
        return self._named

    def know_named(self, named: Named) -> None:
        """Read nothing with ids that meant another schema before, as entries say.

        Args:
            named: What the entries of all tables name of the registry.
        """
        with self._lock:
            self._named, self._read = {**self._named, **named}, None

    def forget_read(self) -> None:
        """Read the schemas again when they are asked for, as nothing was made of them."""
        self._read = None

    @property
    def reused_ids(self) -> frozenset[SchemaId]:
        """Ids that meant another schema before."""
        with self._lock:
            return frozenset(self._reused())

    @property
    def unreadable_newest(self) -> Mapping[SchemaId, str]:
        """The versions that came after all that can be read, by what records say of them, and why nothing is read with them.

        Ids that meant another schema before are among them, of whatever version they are now.
        """
        with self._lock:
            read, reused = self._read, self._reused()
            if read is None or read.known is None:
                return {}
            refused, found = dict(read.known.refused), dict[SchemaId, str]()
            for subject, versions in self._all_versions().items():
                own = _refused_in(read.known, self._topics.get(subject, ()))
                live = (one for one in versions if not one.is_older)
                for version in sorted(live, key=lambda one: one.rank, reverse=True):
                    told = own.get(version.ids[0]) if version.ids else version.problem
                    if told is None:
                        break
                    found[version.ids[0] if version.ids else f"{version.number} of subject {subject}"] = told
            return {**found, **{one: refused[one] for one in reused if one in refused}}

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
        versions = self._subjects.versions(self._names, or_kept=False)
        with self._lock:
            before = _without_reasons(self._all_versions())
            self._take(versions)
            # A record may have named the new version before. And a registry may say each time in other words what it refuses.
            if _without_reasons(self._all_versions()) != before:
                self._read = None

    def in_use(self) -> SchemasInUse | None:
        """Return what the part is read with, and what its columns come from; None before it was read, or without a registry.

        While the registry is away, or refuses, the compatibility modes are those that it told last.
        """
        with self._lock:
            read, versions = self._read, self._all_versions()
        if self._subjects is None or read is None or read.known is None:
            return None
        try:
            self._allowed = self._subjects.compatibility(self._names)
        except LakeboundError as exc:
            log.warning("the compatibility modes are not known: %s", redacted(exc))
        refused = {subject: _refused_in(read.known, topics) for subject, topics in self._topics.items()}
        return schemas_in_use(self.source, versions, refused, self._allowed)

    def learn(self, ids: Collection[SchemaId]) -> None:
        """Ask for schemas that records name: afterwards it is known of each what becomes of its records.

        Raises:
            LakeboundError: The registry is away, or refuses.
        """
        if self._subjects is None or not ids:
            return
        with self._asking:  # Not with the other lock: a slow registry would keep what is known from being read.
            with self._lock:
                self._forgets_strange()
                known = self._known()
                unknown = ids_to_ask(ids, known)
                asked = unknown[: max(0, MOST_STRANGE - len(self._strange))]
            found = self._subjects.find(asked) if asked else {}
            # Also where an id is refused: what the registry does not tell by an id, it may tell by a version. Of random bytes
            # it has none, and these take only the lists of versions.
            prints = _fingerprints(known.values())
            is_newer = any(not isinstance(one, SchemaText) or one.fingerprint not in prints for one in found.values())
            versions = self._subjects.newer(self._names, found) if is_newer or len(asked) < len(unknown) else None
            with self._lock:
                strange = len(self._strange)
                if versions is not None:
                    self._take(versions)
                self._note(found, self._known())
                self._in_vain += len(self._strange) - strange == len(ids)
                self._read = None

    def _known(self) -> dict[SchemaId, SchemaText | None]:
        """Return the schemas of versions by what records say of them."""
        every = (version for each in self._all_versions().values() for version in each)
        return {one: version.schema for version in every for one in version.ids}

    def _take(self, versions: Mapping[str, Sequence[Version]]) -> None:
        """Take versions for those that there are. An id that means another schema now is no longer passed over."""
        self._versions = versions
        prints = self._prints()
        same = {one for one, known in self._passed_prints.items() if prints.get(one, known) == known}
        self._passed_over = {one: told for one, told in self._passed_over.items() if one in same}

    def _prints(self) -> dict[SchemaId, str]:
        """Return the fingerprints of schemas by what records say of them."""
        both = ((one.ids, one.schema) for versions in self._versions.values() for one in versions)
        return {one: schema.fingerprint for ids, schema in both if schema is not None for one in ids}

    def _note(self, found: Mapping[SchemaId, SchemaText | str], known: Mapping[SchemaId, SchemaText | None]) -> None:
        """Note further names of versions, and ids that are of none.

        Args:
            found: What the registry has by each id.
            known: The schemas of versions.
        """
        same = _fingerprints(known.values())
        for one, schema in found.items():
            if one in known:
                continue
            if isinstance(schema, SchemaText) and schema.fingerprint in same:
                # Such as a GUID. Kept beside the versions, which are read anew each time.
                self._further_names[schema.fingerprint] = (*self._further_names.get(schema.fingerprint, ()), one)
            else:
                subjects = " and ".join(sorted(self._names))
                self._strange[one] = schema if isinstance(schema, str) else f"it is no version of subject {subjects}"

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

    def _all_versions(self) -> dict[str, list[Version]]:
        """Return the versions of the subjects, each with all names that records have for it."""
        listed = self._prints() if self._further_names else {}
        return {subject: [self._told(one, listed) for one in versions] for subject, versions in self._versions.items()}

    def _told(self, version: Version, listed: Collection[SchemaId]) -> Version:
        """Return a version with all names that records have for it; one of another format is not read."""
        schema, kind = version.schema, self.source.format
        if schema is None:
            return version
        if schema.kind != kind and version.problem is None:
            version = replace(version, problem=f"it is a schema of {schema.kind}, and the pipeline says `format: {kind}`")
        further = [one for one in self._further_names.get(schema.fingerprint, ()) if one not in listed]
        return replace(version, ids=tuple(dict.fromkeys((*version.ids, *further)))) if further else version

    def newest(self) -> list[Newest]:
        """Return of each subject the schemas that may be passed over: all but one of those that can be read.

        Those that were used before come last: the tables had followed them. Those that the registry has no more are by
        themselves: they may be older or newer than what the tables cannot follow.
        """
        found: list[Newest] = []
        gone = {**self._passed_over, **self._reused()}
        for versions in self._all_versions().values():
            live = _readable([one for one in versions if not one.is_older], gone)
            older = _readable([one for one in versions if one.is_older], gone)
            for ids, others in ((live, older), (older, live)):
                some = [one for one in (ids if others else ids[:-1]) if one]
                found += [Newest(self.source.part, some)] if some else []
        return found

    def keep(self) -> None:
        """Keep the schemas that records are read with: tables follow them.

        Raises:
            OSError: The state cannot be written.
        """
        with self._lock:
            if self._subjects is None or self._read is None or self._read.known is None:
                return
            read = {one for one, _ in self._read.known.writers}
            # One that the registry had deleted before it was used is none of these: it would be the newest at the next start.
            used = {
                subject: [one for one in versions if not one.is_older and read.intersection(one.ids)]
                for subject, versions in self._all_versions().items()
            }
        self._subjects.keep(used)

    def pass_over(self, reasons: Mapping[SchemaId, str]) -> None:
        """Read without some schemas, because the tables cannot follow them.

        Args:
            reasons: Why, for the records that have one, by what these say of the schema; of all that are passed over.
        """
        with self._lock:
            if reasons != self._passed_over:
                self._passed_over, self._passed_prints, self._read = dict(reasons), self._prints(), None

    def _read_all(self) -> ReadSchemas:
        record = self.source.record
        if self._file is not None:
            return schemas_of_file(self._file, record, self._wanted())
        assert self._subjects is not None
        if not self._versions:
            self._take(self._subjects.versions(self._names))
        reused = self._reused()
        passed_over = {**self._passed_over, **reused}
        found = schemas_of_subjects(
            self._all_versions(),
            record,
            passed_over,
            self._strange,
            asks=self._asks,
            wanted=self._wanted(),
            topics=self._topics,
            part=self.source.part,
        )
        if found.known is not None:
            self._named = to_name(found.known.writers, self._named, reused)
        return found

    def _wanted(self) -> pa.Schema | None:
        """Return the columns that the pipeline names; None where it names none."""
        if self.source.value_schema is None:
            return None
        assert self._columns_of is not None, "the pipeline names columns, and nothing was given that reads DDL"
        return self._columns_of(self.source.value_schema)

    def _reused(self) -> dict[SchemaId, str]:
        """Return why nothing is read with the ids that meant another schema before, as entries say."""
        every = (version for versions in self._all_versions().values() for version in versions if version.problem is None)
        name = self.source.registry or ""
        return {
            one: str(ReusedSchemaIdError(name, one, self._named[str(one)], schema.fingerprint))
            for one, schema in reused_ids(every, self._named).items()
        }


def _refused_in(known: KnownSchemas, topics: Collection[str]) -> dict[SchemaId, str]:
    """Return why records of topics are not read, by what they say of their schema; records of other topics may be."""
    of_topics = {one.schema: one.problem for one in known.of_topics if one.topic in topics and one.problem is not None}
    return {**dict(known.refused), **of_topics}


def _readable(versions: Sequence[Version], gone: Mapping[SchemaId, str]) -> list[tuple[SchemaId, ...]]:
    """Return what records say of each schema that can be read, the newest first, those that were used behind all others."""
    by_schema: dict[SchemaText, tuple[SchemaId, ...]] = {}
    for version in sorted(versions, key=lambda one: (not one.is_used, one.rank), reverse=True):
        if version.schema is not None and version.problem is None:
            by_schema[version.schema] = (*by_schema.get(version.schema, ()), *version.ids)
    return [ids for ids in by_schema.values() if not any(one in gone for one in ids)]


def _without_reasons(versions: Mapping[str, Sequence[Version]]) -> dict[str, list[Version]]:
    return {
        subject: [one if one.problem is None else replace(one, problem="") for one in every]
        for subject, every in versions.items()
    }


def _fingerprints(schemas: Iterable[SchemaText | str | None]) -> set[str]:
    return {one.fingerprint for one in schemas if isinstance(one, SchemaText)}
