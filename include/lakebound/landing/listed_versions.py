"""The versions of subjects as a registry lists them: several asked for at once, within a deadline, and only what is new."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TypeVar

from lakebound.errors import RegistryForbiddenError, RegistryUnavailableError
from lakebound.formats.schemas import SchemaId, SchemaText
from lakebound.formats.versions import Version
from lakebound.landing.known_answers import KnownAnswers, has_lost
from lakebound.registry.client import Imported, RegistryClient, UnusableSchemaError

_Asked = TypeVar("_Asked")
_Answer = TypeVar("_Answer")
_Place = tuple[str, int]
"""A subject and the number of a version."""
_AT_ONCE = 8
"""Versions that are asked for: a subject may have hundreds, and a registry take its time for each."""
MOST_AGAIN = 32
"""Versions that are read again each time, besides the newest: all those of most pipelines."""


@dataclass(frozen=True)
class Deadline:
    """For all requests together.

    Attributes:
        seconds: That there were at its beginning.
        ends: By the monotonic clock.
    """

    seconds: float
    ends: float

    @classmethod
    def within(cls, seconds: float) -> Deadline:
        """Return one that begins now."""
        return cls(seconds, time.monotonic() + seconds)


class ListedVersions:
    """What a registry has of subjects. Threads may share it."""

    def __init__(self, client: RegistryClient) -> None:
        """Ask nothing yet."""
        self._client = client
        self._versions = KnownAnswers[_Place, Version | None](MOST_AGAIN, lambda one: one is not None and one.problem is None)
        self._meanings = KnownAnswers[SchemaId, SchemaText | None](MOST_AGAIN)

    @property
    def is_read(self) -> bool:
        """Whether the registry has told some version."""
        return bool(self._versions.known())

    def read(
        self, subjects: Collection[str], used: Mapping[str, Collection[SchemaId]], deadline: Deadline
    ) -> dict[str, Sequence[Version]]:
        """Return the versions that the registry has; none of a subject that it does not have.

        A version that was deleted before it was ever used says so. One that was used stays what it was: rows came of it.

        Args:
            subjects: Their names.
            used: What records say of schemas of each that were used.
            deadline: Of the registry. What it has told by then is not asked for again.

        Raises:
            RegistryUnavailableError: It is away, or has not told all.
            LakeboundError: It refuses.
        """
        listed = dict(zip(subjects, self._all_at_once(self._listed, [*subjects], deadline, "subjects"), strict=True))
        places = [(subject, number) for subject, (every, _) in listed.items() for number in every]
        if has_lost(self._versions.known(), {*places}):
            self._versions.forget()  # It may have been emptied, and have given the same numbers to other schemas.
            self._meanings.forget()
        imported: Imported = {}
        versions = self._versions.read(
            places,
            {(subject, max(every)) for subject, (every, _) in listed.items() if every},
            lambda place: self._version(*place, imported),
            lambda ask, what: self._all_at_once(ask, what, deadline, "versions"),
        )
        found: dict[str, Sequence[Version]] = {}
        for subject, (every, there) in listed.items():
            own = (versions.get((subject, number)) for number in every)
            found[subject] = [
                replace(one, is_older=bool(there) and one.number not in there and not {*one.ids} & {*used[subject]})
                for one in own
                if one is not None
            ]
        return found

    def check_rights(self, subjects: Collection[str], deadline: Deadline) -> None:
        """Raise an error where subjects may not be read.

        Raises:
            RegistryForbiddenError: The registry does not let its user read one.
            LakeboundError: It is away, or refuses.
        """
        self._all_at_once(self._listed, [*subjects], deadline, "subjects")

    def meanings(self, ids: Sequence[SchemaId], deadline: Deadline) -> dict[SchemaId, SchemaText]:
        """Return what the registry has by ids that none of the versions has, as far as it has something.

        Raises:
            RegistryUnavailableError: It is away, or has not told all.
            LakeboundError: It refuses.
        """

        def at_once(ask: Callable[[SchemaId], None], what: Sequence[SchemaId]) -> None:
            self._all_at_once(ask, what, deadline, "ids that it had before")

        found = self._meanings.read(ids, (), self._meaning, at_once)
        return {one: schema for one, schema in found.items() if schema is not None}

    def _listed(self, subject: str) -> tuple[list[int], set[int]]:
        """Return the numbers of a subject's versions, and of those that are not deleted."""
        there = {*self._client.versions(subject)}
        return self._client.versions(subject, deleted=True), there

    def _version(self, subject: str, number: int, imported: Imported) -> Version | None:
        """Return a version; None where it is gone meanwhile."""
        try:
            found = self._client.version(subject, number, deleted=True, imported=imported)
        except (UnusableSchemaError, RegistryForbiddenError) as exc:
            return Version(number, (), None, str(exc))
        return None if found is None or found.id is None else Version(number, (found.id,), found.schema)

    def _meaning(self, schema_id: SchemaId) -> SchemaText | None:
        try:
            return self._client.schema(schema_id)
        except (UnusableSchemaError, RegistryForbiddenError):
            return None

    def _all_at_once(
        self, ask: Callable[[_Asked], _Answer], what: Sequence[_Asked], deadline: Deadline, told: str
    ) -> list[_Answer]:
        if not what:
            return []
        pool = ThreadPoolExecutor(min(_AT_ONCE, len(what)), thread_name_prefix="schema-versions")
        try:
            return list(pool.map(ask, what, timeout=deadline.ends - time.monotonic()))
        except TimeoutError:
            late = f"no answer within {deadline.seconds:g} s for the {len(what):,} {told}"
            raise RegistryUnavailableError(self._client.name, self._client.url, late) from None
        finally:
            pool.shutdown(wait=False, cancel_futures=True)  # What is under way ends by its own limit of time.
