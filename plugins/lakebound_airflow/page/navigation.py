"""Where the page is in Airflow: the entry in its navigation, and the app behind it."""

from __future__ import annotations

from typing import Any

from lakebound_airflow.late_app import App, LateApp

URL_PREFIX = "/lakebound"


def _page_app() -> App:
    from lakebound_airflow.page.app import make_app  # only where a request comes in

    return make_app()


FASTAPI_APP: dict[str, Any] = {"app": LateApp(_page_app), "url_prefix": URL_PREFIX, "name": "Lakebound"}
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
