"""Where the page is in Airflow: the entry in its navigation, and the app behind it.

Every component of Airflow loads plugins, and only the API server answers requests. So the app is made at the first request:
a task that starts does not wait for FastAPI.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

URL_PREFIX = "/lakebound"

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]


class PageApp:
    """The app of the page, made when it is first asked for."""

    def __init__(self) -> None:
        self._app: Callable[[Message, Receive, Send], Awaitable[None]] | None = None

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if self._app is None:
            from lakebound_airflow.page.app import make_app  # only where a request comes in

            self._app = make_app()
        await self._app(scope, receive, send)


FASTAPI_APP: dict[str, Any] = {"app": PageApp(), "url_prefix": URL_PREFIX, "name": "Lakebound"}
"""For ``fastapi_apps`` of the plugin."""

EXTERNAL_VIEW: dict[str, Any] = {
    "name": "Lakebound",
    # Relative: Airflow may be behind a base path.
    "href": "lakebound/",
    "destination": "nav",
    "url_route": "lakebound",
    "nav_top_level": True,
}
"""For ``external_views`` of the plugin: Airflow shows the page inside its own."""
