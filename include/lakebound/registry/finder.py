"""Finds the schemas that records name: in the pipeline's state, and by asking the registry within one deadline for all."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Mapping
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from typing import Protocol

from lakebound.control.folder import ControlFolder
from lakebound.control.kept_schemas import KeptSchemas, keep_schemas, read_kept_schemas
from lakebound.errors import RegistryForbiddenError, RegistryUnavailableError, ReusedSchemaIdError
from lakebound.formats.schemas import SchemaId, SchemaText
from lakebound.registry.answers import UnusableSchemaError, cut
from lakebound.registry.finding import Answers, Found, Known, Late, found_of, ids_to_ask, reused_ids

REFUSED_SECONDS = 60.0
"""So long an id that the registry does not have, or that cannot be used, is not asked for again."""
AWAY_SECONDS = 15.0
"""So long a registry that was away is not asked whether known ids still mean the same."""
MOST_REFUSED = 50_000
_PER_DAY = 86_400.0
_AT_ONCE = 8
_AGAIN_SECONDS = 0.2
_FEW = 20
"""So few ids that a registry does not have are asked for twice: of several registries, one may be behind for a moment."""


class Registry(Protocol):
    """What is asked of a registry; ``RegistryClient`` is one."""

    @property
    def name(self) -> str:
        """Its name in registries.yaml."""

    @property
    def url(self) -> str:
        """Its address."""

    def schema(self, schema_id: SchemaId) -> SchemaText | None:
        """Return a schema; None where there is none."""


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


@dataclass(frozen=True)
class _Outcome:
    """What came of asking for one id: a schema, or the reason why there is none."""

    schema: SchemaText | None
    reason: str


@dataclass
class _Round:
    """Of asking for many ids: the first error that says that the registry is away."""

    away: RegistryUnavailableError | None = None


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
        kept = keeper.read(registry.name)
        self._memory = _Memory(dict(kept.schemas), dict(kept.used_at))
        self._has_answered = False

    def find(self, ids: Iterable[SchemaId], deadline_seconds: float) -> Found:
        """Return the schemas of ids; new ones are kept with the state.

        An id that was used before keeps the schema that it had, also while the registry is away, and when it has deleted it. It
        is refused when the registry has another schema by it.

        Args:
            ids: What records say of their schemas.
            deadline_seconds: How long the registry may take for all of them together.

        Raises:
            RegistryLoginError: The registry refuses the login.
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
        answers = self._ask(asked, deadline_seconds)
        self._learn(answers, now)
        found = found_of(ids, self._known(now), answers, self._late(len(answers.unanswered), deadline_seconds))
        self._keep_used(found.schemas, now)
        return found

    def check(self, deadline_seconds: float) -> dict[SchemaId, str]:
        """Ask whether the ids that this process has used still mean the same; return why not, by id. Called now and then.

        Args:
            deadline_seconds: How long the registry may take for all of them together; those that it leaves out are not told.

        Raises:
            RegistryLoginError: As of ``find``, as are its other errors.
        """
        now = self._clock()
        if now >= self._memory.away_until:
            self._learn(self._ask(sorted(self._memory.checked, key=str), deadline_seconds), now)
        return dict(self._memory.reused)

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

    def _ask(self, ids: Collection[SchemaId], deadline_seconds: float) -> Answers:
        """Ask for ids until the deadline, several at once.

        Raises:
            LakeboundError: The registry refuses; see ``find``.
        """
        if not ids:
            return Answers()
        ends, round_ = time.monotonic() + deadline_seconds, _Round()
        pool = ThreadPoolExecutor(min(_AT_ONCE, len(ids)), thread_name_prefix="schema-registry")
        try:
            asked = {one: pool.submit(self._ask_one, one, round_) for one in ids}
            self._wait(asked, ends)
            missing = [one for one, future in asked.items() if _is_missing(future)]
            left = ends - time.monotonic() - _AGAIN_SECONDS
            if missing and len(missing) <= _FEW and left > 0:
                time.sleep(_AGAIN_SECONDS)
                asked |= {one: pool.submit(self._ask_one, one, round_) for one in missing}
                self._wait(asked, ends)
            return self._gathered(asked)
        finally:
            pool.shutdown(wait=False, cancel_futures=True)

    def _wait(self, asked: Mapping[SchemaId, Future[_Outcome]], ends: float) -> None:
        """Return at the deadline, when all is answered, or soon after the registry turned out to be away."""
        waiting = set(asked.values())
        while waiting and (left := ends - time.monotonic()) > 0:
            done, waiting = wait(waiting, left, FIRST_EXCEPTION)
            if any(future.exception() is not None for future in done):
                return

    def _ask_one(self, schema_id: SchemaId, round_: _Round) -> _Outcome:
        """Ask for one schema; of a registry that has turned out to be away no further one."""
        if round_.away is not None:
            raise round_.away
        try:
            schema = self._registry.schema(schema_id)
        except RegistryUnavailableError as exc:
            round_.away = exc
            raise
        except UnusableSchemaError as exc:
            return _Outcome(None, f"Lakebound cannot use the schema: {cut(str(exc))}")
        except RegistryForbiddenError as exc:
            if not self._has_answered:
                raise
            return _Outcome(None, str(exc))
        self._has_answered = self._has_answered or schema is not None
        return _Outcome(schema, "" if schema is not None else _no_schema(self._registry.name, schema_id))

    def _gathered(self, asked: Mapping[SchemaId, Future[_Outcome]]) -> Answers:
        schemas: dict[SchemaId, SchemaText] = {}
        refused: dict[SchemaId, str] = {}
        unanswered: list[SchemaId] = []
        away: RegistryUnavailableError | None = None
        for one, future in asked.items():
            error = future.exception() if future.done() and not future.cancelled() else None
            if error is not None and not isinstance(error, RegistryUnavailableError):
                raise error
            away = away or error
            outcome = future.result() if future.done() and error is None else None
            if outcome is None:
                unanswered.append(one)
            elif outcome.schema is None:
                refused[one] = outcome.reason
            else:
                schemas[one] = outcome.schema
        return Answers(schemas, refused, away, unanswered)


def _is_missing(future: Future[_Outcome]) -> bool:
    return future.done() and future.exception() is None and future.result().schema is None


def _no_schema(registry: str, schema_id: SchemaId) -> str:
    said = f"the schema registry {registry!r} has no schema with this id"
    if schema_id != 0:
        return said
    return (
        f"{said}: ids begin with 1. Apicurio's serialisers write ids of eight bytes, which begin like this, unless they are "
        f"set to write Confluent's"
    )
