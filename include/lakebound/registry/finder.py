"""Finds the schemas that records name by asking the registry, within one deadline for all of them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable

from lakebound.errors import RegistryUnavailableError
from lakebound.formats.schemas import SchemaId, SchemaText
from lakebound.registry.asking import Asker, Registry
from lakebound.registry.finding import Found, Late, found_of, ids_to_ask

REFUSED_SECONDS = 60.0
"""So long an id that the registry does not have, or that cannot be used, is not asked for again."""
MOST_REFUSED = 50_000


class SchemaFinder:
    """Finds schemas of one registry. What it was told it does not ask for again. One thread uses it."""

    def __init__(self, registry: Registry, clock: Callable[[], float] = time.time) -> None:
        """Ask nothing yet.

        Args:
            registry: Is asked for what is not known.
            clock: Epoch seconds.
        """
        self._registry, self._clock = registry, clock
        self._asker = Asker(registry)
        self._schemas: dict[SchemaId, SchemaText] = {}
        self._refused: dict[SchemaId, tuple[float, str]] = {}

    def close(self) -> None:
        """Ask the registry nothing more."""
        self._asker.close()

    def find(self, ids: Iterable[SchemaId], deadline_seconds: float) -> Found:
        """Return the schemas of ids.

        Args:
            ids: What records say of their schemas.
            deadline_seconds: How long the registry may take for all of them together.

        Raises:
            RegistryLoginError: The registry refuses the login, and an id is unknown; as are the next three.
            RegistryAnswerError: It is no registry with Confluent's API.
            MissingSecretError: A secret is not where registries.yaml says.
        """
        ids, now = list(dict.fromkeys(ids)), self._clock()
        self._refused = {one: (until, why) for one, (until, why) in self._refused.items() if until > now}
        refused = {one: why for one, (_, why) in self._refused.items()}
        answers = self._asker.ask(ids_to_ask(ids, {*self._schemas, *refused}), deadline_seconds)
        self._schemas |= answers.schemas
        for one, why in answers.refused.items():
            if len(self._refused) < MOST_REFUSED:
                self._refused[one] = (now + REFUSED_SECONDS, why)
        late = self._late(len(answers.unanswered), deadline_seconds)
        return found_of(ids, self._schemas, {**refused, **answers.refused}, answers, late)

    def _late(self, unanswered: int, deadline_seconds: float) -> Late:
        name = self._registry.name
        reason = (
            f"it is one of {unanswered:,} unknown schemas for which the registry {name!r} did not answer within "
            f"{deadline_seconds:g} s"
        )
        slow = f"no answer within {deadline_seconds:g} s for unknown schemas"
        return Late(reason, RegistryUnavailableError(name, self._registry.url, slow))
