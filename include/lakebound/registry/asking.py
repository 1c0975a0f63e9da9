"""Asks a registry for many ids at once, until a deadline. What it answers later is there the next time."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import Protocol

from lakebound.errors import RegistryForbiddenError, RegistryUnavailableError
from lakebound.formats.schemas import SchemaId, SchemaText
from lakebound.registry.answers import UnusableSchemaError, cut
from lakebound.registry.finding import Answers

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


@dataclass(frozen=True)
class _Outcome:
    """What came of asking for one id: a schema, or the reason why there is none."""

    schema: SchemaText | None
    reason: str
    is_missing: bool = False


@dataclass
class _Round:
    """Of asking for many ids: the first error that says that the registry is away."""

    away: RegistryUnavailableError | None = None


class Asker:
    """Asks one registry. One thread uses it; its own threads ask."""

    def __init__(self, registry: Registry) -> None:
        """Ask nothing yet."""
        self._registry = registry
        self._pool = ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="schema-registry")
        self._under_way: dict[SchemaId, Future[_Outcome]] = {}

    def close(self) -> None:
        """Ask nothing more; requests that are under way end by their own limit of time."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    def ask(self, ids: Collection[SchemaId], deadline_seconds: float) -> Answers:
        """Return what the registry answers until the deadline.

        Args:
            ids: In the order in which they are asked for.
            deadline_seconds: For all of them together.

        Raises:
            RegistryLoginError: The registry refuses the login.
            RegistryAnswerError: It is no registry with Confluent's API.
            MissingSecretError: A secret is not where registries.yaml says.
        """
        ends, round_ = time.monotonic() + deadline_seconds, _Round()
        for one in ids:
            self._submit(one, round_)
        try:
            self._wait(ids, ends)
            missing = [one for one in ids if _is_missing(self._under_way[one])]
            if missing and len(missing) <= _FEW and ends - time.monotonic() > _AGAIN_SECONDS:
                time.sleep(_AGAIN_SECONDS)
                for one in missing:
                    del self._under_way[one]
                    self._submit(one, round_)
                self._wait(ids, ends)
            return _gathered({one: self._under_way[one] for one in ids})
        finally:
            self._forget(ids)

    def _submit(self, one: SchemaId, round_: _Round) -> None:
        if one not in self._under_way:
            self._under_way[one] = self._pool.submit(self._ask_one, one, round_)

    def _forget(self, ids: Collection[SchemaId]) -> None:
        """Leave those under way that the registry is asked for at this moment: it may only be slow."""
        for one in ids:
            future = self._under_way[one]
            if future.cancel() or future.done():
                del self._under_way[one]

    def _wait(self, ids: Collection[SchemaId], ends: float) -> None:
        """Return at the deadline, when all is answered, or when the registry turned out to be away, or refuses."""
        waiting = {self._under_way[one] for one in ids}
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
            # Of this one: with a registry's rights by subject, a record can name any.
            return _Outcome(None, str(exc))
        if schema is None:
            return _Outcome(None, _no_schema(self._registry.name, schema_id), is_missing=True)
        return _Outcome(schema, "")


def _gathered(asked: Mapping[SchemaId, Future[_Outcome]]) -> Answers:
    """Return what was answered by now.

    Raises:
        Exception: The registry refuses.
    """
    schemas: dict[SchemaId, SchemaText] = {}
    refused: dict[SchemaId, str] = {}
    unanswered: list[SchemaId] = []
    away: RegistryUnavailableError | None = None
    for one, future in asked.items():
        error = future.exception() if future.done() else None
        if error is not None and not isinstance(error, RegistryUnavailableError):
            raise error
        away = away or error
        if error is not None or not future.done():
            unanswered.append(one)
        elif (outcome := future.result()).schema is None:
            refused[one] = outcome.reason
        else:
            schemas[one] = outcome.schema
    return Answers(schemas, refused, away, unanswered)


def _is_missing(future: Future[_Outcome]) -> bool:
    return future.done() and future.exception() is None and future.result().is_missing


def _no_schema(registry: str, schema_id: SchemaId) -> str:
    said = f"the schema registry {registry!r} has no schema with this id"
    if schema_id != 0:
        return said
    return (
        f"{said}: ids begin with 1. Apicurio's serialisers write ids of eight bytes, which begin like this, unless they are "
        f"set to write Confluent's"
    )
