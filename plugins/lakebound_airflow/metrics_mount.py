"""Where the page of metrics is in Airflow's API server. What it answers is in ``metrics_app``."""

from __future__ import annotations

from typing import Any

from lakebound_airflow.late_app import App, LateApp, Message, Receive, Send

NAME = "lakebound metrics"
URL_PREFIX = "/lakebound/metrics"


class WithoutSlash:
    """Middleware that takes ``/lakebound/metrics`` for ``/lakebound/metrics/``: a mount alone does not have the former."""

    def __init__(self, app: App) -> None:
        self._app = app

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Pass a request on."""
        if scope["type"] == "http" and scope["path"] == scope.get("root_path", "").rstrip("/") + URL_PREFIX:
            scope = {**scope, "path": scope["path"] + "/"}
        await self._app(scope, receive, send)


def _metrics_app() -> App:
    from lakebound_airflow.metrics_app import make_app  # only where a request comes in

    return make_app()


FASTAPI_APP: dict[str, Any] = {"app": LateApp(_metrics_app), "url_prefix": URL_PREFIX, "name": NAME}
"""For ``fastapi_apps`` of the plugin. Of two prefixes that fit, the one that is mounted first counts."""

ROOT_MIDDLEWARE: dict[str, Any] = {"name": NAME, "middleware": WithoutSlash}
"""For ``fastapi_root_middlewares`` of the plugin."""
