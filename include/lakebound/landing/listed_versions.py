"""The versions of subjects as a registry lists them: several asked for at once, within a deadline, and only what is new."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from lakebound.errors import RegistryForbiddenError, RegistryUnavailableError
from lakebound.formats.schemas import SchemaId, SchemaText
from lakebound.formats.versions import Version
from lakebound.landing.at_once import Deadline, all_at_once, clock
from lakebound.landing.known_answers import KnownAnswers, has_lost
from lakebound.registry.client import Imported, RegistryClient, UnusableSchemaError, UnusableVersionError

_Asked = TypeVar("_Asked")
_Answer = TypeVar("_Answer")
_Place = tuple[str, int]
"""A subject and the number of a version."""
MOST_AGAIN = 32
"""Versions that are read again each time, besides the newest: all those of most pipelines."""


@dataclass(frozen=True)
class _Numbers:
    """Of a subject's versions.

    Attributes:
        asked_at: When they were asked for, by the clock of deadlines.
        every: Of all, the oldest first.
        there: Of those that are not deleted.
    """

    asked_at: float
    every: tuple[int, ...]
    there: frozenset[int]

    def is_older(self, version: Version, used: Collection[SchemaId]) -> bool:
        """Return whether a version was deleted before it was ever used."""
        return bool(self.there) and version.number not in self.there and not {*version.ids} & {*used}


@dataclass(frozen=True)
class _Told:
    """What a registry told of a version.

    Attributes:
        version: The version.
        own: Its schema without what it imports, where it cannot be put together with that.
    """

    version: Version
    own: SchemaText | None = None


class ListedVersions:
    """What a registry has of subjects. Threads may share it."""

    def __init__(self, client: RegistryClient) -> None:
        """Ask nothing yet."""
        self._client = client
        self._numbers: dict[str, _Numbers] = {}
        self._versions = KnownAnswers[_Place, _Told | None](MOST_AGAIN, _is_usable)
        self._meanings = KnownAnswers[SchemaId, SchemaText | None](MOST_AGAIN, lambda one: one is not None)
        self._modes = KnownAnswers[str, str | None](MOST_AGAIN, lambda _: False)
        self._imported: tuple[float, Imported] = clock(), {}

    @property
    def is_read(self) -> bool:
        """Whether the registry has told some version."""
        return bool(self._versions.known())

    def read(
        self, subjects: Collection[str], used: Mapping[str, Collection[SchemaId]], deadline: Deadline, since: float
    ) -> dict[str, Sequence[Version]]:
        """Return the versions that the registry has; none of a subject that it does not have.

        A version that was deleted before it was ever used says so. One that was used stays what it was: rows came of it.

        Args:
            subjects: Their names.
            used: What records say of schemas of each that were used.
            deadline: Of the registry. What it has told by then is not asked for again.
            since: Numbers of versions, and imports, that were asked for then or later, by the clock of deadlines, are new
                enough.

        Raises:
            RegistryUnavailableError: It is away, or has not told all.
            LakeboundError: It refuses.
        """
        old = [one for one in subjects if one not in self._numbers or self._numbers[one].asked_at < since]
        self._all_at_once(self._list, old, deadline, "subjects")
        listed = {subject: self._numbers[subject] for subject in subjects}
        places = _places(listed)
        if has_lost(self._versions.known(), {*places}):
            self._forget()  # It may have been emptied, and have given the same numbers to other schemas.
        if self._imported[0] < since:
            self._imported = clock(), {}
        imported = self._imported[1]
        versions = self._versions.read(
            places,
            lambda place: self._version(place, imported),
            lambda ask, what: self._all_at_once(ask, what, deadline, "versions"),
        )
        self._imported = clock(), {}  # Only until all is read, imports are not read again.
        found: dict[str, Sequence[Version]] = {}
        for subject, numbers in listed.items():
            own = (versions[subject, number] for number in numbers.every)
            found[subject] = [
                replace(one.version, is_older=numbers.is_older(one.version, used[subject])) for one in own if one is not None
            ]
        return found

    def again(self, subjects: Collection[str], deadline: Deadline) -> None:
        """Ask for some of what is known again; where some of it is not what it was, the rest is unknown from then on.

        Args:
            subjects: Their names; all have been read.
            deadline: Of the registry. What it has not told by then has its turn the next time.

        Raises:
            LakeboundError: It refuses.
        """
        listed = {subject: self._numbers[subject] for subject in subjects}
        imported: Imported = {}
        newest = {(subject, max(numbers.every)) for subject, numbers in listed.items() if numbers.every}
        is_other = self._versions.again(
            _places(listed),
            newest,
            lambda place: self._version(place, imported),
            lambda ask, what: all_at_once(ask, what, deadline),
        )
        ids = [*self._meanings.known()]
        if not is_other and ids:
            is_other = self._meanings.again(ids, (), self._meaning, lambda ask, what: all_at_once(ask, what, deadline))
        if is_other:
            self._meanings.forget()

    def meanings(self, ids: Sequence[SchemaId], deadline: Deadline) -> dict[SchemaId, SchemaText]:
        """Return what the registry has by ids that none of the versions has, as far as it has something.

        Raises:
            RegistryUnavailableError: It is away, or has not told all.
            LakeboundError: It refuses.
        """

        def at_once(ask: Callable[[SchemaId], None], what: Sequence[SchemaId]) -> None:
            self._all_at_once(ask, what, deadline, "ids that it had before")

        found = self._meanings.read(ids, self._meaning, at_once)
        return {one: schema for one, schema in found.items() if schema is not None}

    def own_schemas(self) -> dict[SchemaId, SchemaText]:
        """Return the schemas of versions that cannot be put together with what they import, without that, by their ids."""
        told = (one for one in self._versions.known().values() if one is not None and one.own is not None)
        return {known: one.own for one in told for known in one.version.ids if one.own is not None}

    def compatibility(self, subjects: Collection[str], deadline: Deadline) -> dict[str, str]:
        """Return which changes of its schemas each subject allows, as far as the registry has told it.

        Of those that it has told, some are asked for again each time.

        Args:
            subjects: Their names.
            deadline: Of the registry. What it has not told by then has its turn the next time.

        Raises:
            LakeboundError: It refuses.
        """
        known = self._modes.known()
        unknown = [one for one in subjects if one not in known]
        try:
            self._modes.read(unknown, self._client.compatibility, lambda ask, what: all_at_once(ask, what, deadline))
        except (TimeoutError, RegistryUnavailableError):
            pass
        else:
            self._modes.again([*known], (), self._client.compatibility, lambda ask, what: all_at_once(ask, what, deadline))
        return {one: mode for one, mode in self._modes.known().items() if mode is not None and one in subjects}

    def _forget(self) -> None:
        self._versions.forget()
        self._meanings.forget()
        self._imported = clock(), {}

    def _list(self, subject: str) -> None:
        """Note the numbers of a subject's versions."""
        asked_at = clock()
        there = frozenset(self._client.versions(subject))
        found = _Numbers(asked_at, tuple(self._client.versions(subject, deleted=True)), there)
        before = self._numbers.get(subject)
        if before is None or before.asked_at <= asked_at:
            self._numbers[subject] = found

    def _version(self, place: _Place, imported: Imported) -> _Told | None:
        """Return a version; None where it is gone meanwhile."""
        subject, number = place
        try:
            found = self._client.version(subject, number, deleted=True, imported=imported)
        except UnusableVersionError as exc:
            return _Told(Version(number, () if exc.id is None else (exc.id,), None, str(exc)), exc.own)
        except (UnusableSchemaError, RegistryForbiddenError) as exc:
            return _Told(Version(number, (), None, str(exc)))
        return None if found is None or found.id is None else _Told(Version(number, (found.id,), found.schema))

    def _meaning(self, schema_id: SchemaId) -> SchemaText | None:
        try:
            return self._client.schema(schema_id)
        except (UnusableSchemaError, RegistryForbiddenError):
            return None

    def _all_at_once(
        self, ask: Callable[[_Asked], _Answer], what: Sequence[_Asked], deadline: Deadline, told: str
    ) -> list[_Answer]:
        try:
            return all_at_once(ask, what, deadline)
        except TimeoutError:
            late = f"no answer within {deadline.seconds:g} s for the {len(what):,} {told}"
            raise RegistryUnavailableError(self._client.name, self._client.url, late) from None


def _places(listed: Mapping[str, _Numbers]) -> list[_Place]:
    return [(subject, number) for subject, numbers in listed.items() for number in numbers.every]


def _is_usable(told: _Told | None) -> bool:
    return told is not None and told.version.problem is None
