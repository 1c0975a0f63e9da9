"""Apps that are made at their first request.

Every component of Airflow loads plugins, and only the API server answers requests: a task that starts does not wait for
FastAPI.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Message, Receive, Send], Awaitable[None]]


class LateApp:
    """An app, made when it is first asked for."""

    def __init__(self, make: Callable[[], App]) -> None:
        """Remember how.

        Args:
            make: Returns the app; it imports what the app needs.
        """
        self._make = make
        self._app: App | None = None

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if self._app is None:
            self._app = self._make()
        await self._app(scope, receive, send)
