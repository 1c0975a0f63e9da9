"""Finds the schemas that records name: in the pipeline's state, and by asking the registry within one deadline for all."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from lakebound.control.folder import ControlFolder
from lakebound.control.kept_schemas import KeptSchemas, keep_schemas, read_kept_schemas
from lakebound.errors import LakeboundError, RegistryUnavailableError, ReusedSchemaIdError
from lakebound.formats.schemas import SchemaId, SchemaText
from lakebound.registry.asking import Asker, Registry
from lakebound.registry.finding import Answers, Found, Known, Late, found_of, ids_to_ask, reused_ids

REFUSED_SECONDS = 60.0
"""So long an id that the registry does not have, or that cannot be used, is not asked for again."""
AWAY_SECONDS = 15.0
"""So long a registry that was away is not asked whether known ids still mean the same."""
MOST_REFUSED = 50_000
MOST_CHECKED = 100
"""Ids about which a registry is asked again at a time; of more, each in its turn."""
_PER_DAY = 86_400.0


class Keeper(Protocol):
    """What keeps schemas; ``StateKeeper`` is one."""

    def read(self, registry: str) -> KeptSchemas:
        """Return what is kept of a registry."""

    def keep(self, registry: str, schemas: Mapping[SchemaId, SchemaText], now: float) -> None:
        """Keep schemas that were used."""


@dataclass(frozen=True)
class StateKeeper:
    """Keeps schemas with the state of a pipeline."""

    control: ControlFolder

    def read(self, registry: str) -> KeptSchemas:
        """Return what is kept of a registry."""
        return read_kept_schemas(self.control, registry)

    def keep(self, registry: str, schemas: Mapping[SchemaId, SchemaText], now: float) -> None:
        """Keep schemas that were used."""
        keep_schemas(self.control, registry, schemas, now)


@dataclass
class _Memory:
    """What this process knows; ``refused`` and ``reused`` have reasons, the former with the time until which it counts."""

    schemas: dict[SchemaId, SchemaText]
    used_at: dict[SchemaId, float]
    checked: set[SchemaId] = field(default_factory=set)
    refused: dict[SchemaId, tuple[float, str]] = field(default_factory=dict)
    reused: dict[SchemaId, str] = field(default_factory=dict)
    away_until: float = 0.0


class SchemaFinder:
    """Finds schemas of one registry for one pipeline. One thread uses it."""

    def __init__(self, registry: Registry, keeper: Keeper, clock: Callable[[], float] = time.time) -> None:
        """Read what is kept.

        Args:
            registry: Is asked for what is not known.
            keeper: Keeps what was used.
            clock: Epoch seconds.

        Raises:
            OSError: The state cannot be read.
        """
        self._registry, self._keeper, self._clock = registry, keeper, clock
        self._asker = Asker(registry)
        kept = keeper.read(registry.name)
        self._memory = _Memory(dict(kept.schemas), dict(kept.used_at))
        self._checked_to = 0

    def close(self) -> None:
        """Ask the registry nothing more."""
        self._asker.close()

    def find(self, ids: Iterable[SchemaId], deadline_seconds: float) -> Found:
        """Return the schemas of ids; new ones are kept with the state.

        An id that was used before keeps the schema that it had, also while the registry is away or refuses the login, and when
        it has deleted the schema. It is refused when the registry has another schema by it.

        Args:
            ids: What records say of their schemas.
            deadline_seconds: How long the registry may take for all of them together.

        Raises:
            RegistryLoginError: The registry refuses the login, and an id is unknown; as are the next three.
            RegistryForbiddenError: It lets its user read none.
            RegistryAnswerError: It is no registry with Confluent's API.
            MissingSecretError: A secret is not where registries.yaml says.
            OSError: The state cannot be written.
        """
        ids, now = list(dict.fromkeys(ids)), self._clock()
        known = self._known(now)
        asked = ids_to_ask(ids, known)
        if now < self._memory.away_until:
            asked = [one for one in asked if one not in known.schemas]
        try:
            answers = self._asker.ask(asked, deadline_seconds)
        except LakeboundError:
            if any(one not in known.schemas for one in asked):
                raise
            answers = Answers(unanswered=asked)  # Whether known ids still mean the same is asked again later.
        self._learn(answers, now)
        found = found_of(ids, self._known(now), answers, self._late(len(answers.unanswered), deadline_seconds))
        self._keep_used(found.schemas, now)
        return found

    def check(self, deadline_seconds: float) -> dict[SchemaId, str]:
        """Ask whether ids that this process has used still mean the same; return why not, by id. Called now and then.

        Args:
            deadline_seconds: How long the registry may take for all of them together; those that it leaves out are not told.

        Raises:
            RegistryLoginError: As of ``find``, as are its other errors.
        """
        now = self._clock()
        if now >= self._memory.away_until:
            self._learn(self._asker.ask(self._next_to_check(), deadline_seconds), now)
        return dict(self._memory.reused)

    def _next_to_check(self) -> list[SchemaId]:
        used = sorted(self._memory.checked, key=lambda one: (isinstance(one, str), f"{one:>12}"))
        at = self._checked_to if self._checked_to < len(used) else 0
        self._checked_to = at + MOST_CHECKED
        return used[at : self._checked_to]

    def _known(self, now: float) -> Known:
        memory = self._memory
        memory.refused = {one: (until, why) for one, (until, why) in memory.refused.items() if until > now}
        refused = {one: why for one, (_, why) in memory.refused.items()}
        return Known(memory.schemas, memory.checked, {**refused, **memory.reused})

    def _learn(self, answers: Answers, now: float) -> None:
        memory, name = self._memory, self._registry.name
        for one, schema in reused_ids(memory.schemas, answers.schemas).items():
            used = memory.schemas[one].fingerprint
            memory.reused[one] = str(ReusedSchemaIdError(name, one, used, schema.fingerprint))
        for one, schema in answers.schemas.items():
            memory.schemas.setdefault(one, schema)
            memory.checked.add(one)
        for one, why in answers.refused.items():
            if one in memory.schemas:
                memory.checked.add(one)  # It was deleted: what it meant is kept.
            elif len(memory.refused) < MOST_REFUSED:
                memory.refused[one] = (now + REFUSED_SECONDS, why)
        if answers.away is not None or answers.unanswered:
            memory.away_until = now + AWAY_SECONDS

    def _keep_used(self, schemas: Mapping[SchemaId, SchemaText], now: float) -> None:
        memory = self._memory
        used = {one: schema for one, schema in schemas.items() if memory.used_at.get(one, 0.0) < now - _PER_DAY}
        if used:
            self._keeper.keep(self._registry.name, used, now)
            memory.used_at.update(dict.fromkeys(used, now))

    def _late(self, unanswered: int, deadline_seconds: float) -> Late:
        name = self._registry.name
        reason = (
            f"it is one of {unanswered:,} unknown schemas for which the registry {name!r} did not answer within "
            f"{deadline_seconds:g} s"
        )
        slow = f"no answer within {deadline_seconds:g} s for unknown schemas"
        return Late(reason, RegistryUnavailableError(name, self._registry.url, slow))
