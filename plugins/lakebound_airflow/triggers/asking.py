"""Asks for the state of a pipeline in a trigger: what cannot be read at one moment is asked again, and ends no task."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable
from typing import Any, TypeVar

import structlog

from lakebound.control.folder import ControlFolder
from lakebound.errors import ControlFileError, LakeboundError, MissingSecretError, StateAwayError
from lakebound.first_line import first_line
from lakebound.tables.outages import passes

T = TypeVar("T")

PATIENCE_SECONDS = 300.0
"""So long may a store refuse its keys, as while a session token is renewed, or a file be torn, as while it is written again."""
_AGAIN_SECONDS = 5.0
_NUMBER = re.compile(r"[0-9.]+")

log = structlog.get_logger(__name__)


class StateUnreadableError(LakeboundError):
    """The state of a pipeline cannot be read, and that does not pass by itself."""

    def __init__(self, control: ControlFolder, seconds: float, error: Exception) -> None:
        page = ControlFileError.runbook if isinstance(error, ValueError) else StateAwayError.runbook
        super().__init__(
            f"pipeline {control.pipeline!r}: its state in {control.shared} could not be read for {seconds:.0f} s: "
            f"{first_line(error)}. An application that runs goes on. Run `lakebound status {control.pipeline}`, and follow the "
            f"runbook {page}; then the next run of the DAG continues"
        )


async def ask_state(
    control: ControlFolder, ask: Callable[..., T], *arguments: Any, patience_seconds: float | None = PATIENCE_SECONDS
) -> T:
    """Return what is answered, when it is. Each reason why it is not is told once in the log.

    An outage is waited out. So is whatever else keeps the state from being read, but not for ever.

    Args:
        control: State folder of the pipeline.
        ask: Reads state; runs in a thread.
        *arguments: Of it.
        patience_seconds: For how long the state may be unreadable without an outage; None: for ever.

    Raises:
        StateUnreadableError: It was for longer.
    """
    told: str | None = None
    unreadable_since: float | None = None
    while True:
        try:
            answer = await asyncio.to_thread(ask, *arguments)
        except (OSError, ValueError, MissingSecretError) as exc:
            now, reason = time.monotonic(), first_line(exc)
            unreadable_since = None if passes(exc) else unreadable_since or now
            if unreadable_since is not None and patience_seconds is not None and now - unreadable_since >= patience_seconds:
                raise StateUnreadableError(control, now - unreadable_since, exc) from exc
            # An object store's error says how long the request took.
            kind = _NUMBER.sub("", reason)
            if kind != told:
                told = kind
                log.warning("the state cannot be read; it is asked again", pipeline=control.pipeline, error=reason)
            await asyncio.sleep(_AGAIN_SECONDS)
        else:
            if told is not None:
                log.info("the state can be read again", pipeline=control.pipeline)
            return answer
