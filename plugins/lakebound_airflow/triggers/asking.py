"""Asks for the state of a pipeline in a trigger: a store that does not answer is asked again, and ends no task."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, TypeVar

import structlog

T = TypeVar("T")

_AGAIN_SECONDS = 5.0

log = structlog.get_logger(__name__)


async def ask_state(ask: Callable[..., T], *arguments: Any) -> T:
    """Return what is answered, when it is.

    Args:
        ask: Reads state; runs in a thread.
        *arguments: Of it.
    """
    while True:
        try:
            return await asyncio.to_thread(ask, *arguments)
        except ConnectionError as exc:
            log.warning("the state does not answer; it is asked again", error=str(exc))
            await asyncio.sleep(_AGAIN_SECONDS)
