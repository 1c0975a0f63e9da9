"""The page ``/lakebound/metrics`` of Airflow's API server, for Prometheus.

Airflow's login is none that Prometheus knows, so the page has a token of its own, in a file. Without one there is no page. The
file is read at each request: a new token needs no restart.
"""

from __future__ import annotations

import logging
import secrets

from fastapi import FastAPI, Request, Response, status
from fastapi.responses import PlainTextResponse

from lakebound.settings import load_settings, metrics_token_file

log = logging.getLogger(__name__)

_CHALLENGE = {"WWW-Authenticate": 'Bearer realm="lakebound metrics"'}


def make_app() -> FastAPI:
    """Return the application; it has one page, and no documentation of itself."""
    app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None)
    app.add_api_route("/", page, methods=["GET"], include_in_schema=False)
    return app


def page(request: Request) -> Response:
    """Return the metrics to who has the token. FastAPI runs it in a thread: it reads files."""
    token = _token()
    if token is None:
        return PlainTextResponse("Not Found\n", status.HTTP_404_NOT_FOUND)
    if not has_token(request.headers.get("Authorization", ""), token):
        return PlainTextResponse("a bearer token is needed\n", status.HTTP_401_UNAUTHORIZED, _CHALLENGE)
    from lakebound.metrics.page import CONTENT_TYPE, metrics_page

    return Response(metrics_page(load_settings()), headers={"Content-Type": CONTENT_TYPE, "Cache-Control": "no-store"})


def has_token(authorization: str, token: str) -> bool:
    """Return whether a request's header names the token; takes the same time whatever it names instead.

    Args:
        authorization: The header; empty without one.
        token: The right one.
    """
    scheme, _, given = authorization.partition(" ")
    return secrets.compare_digest(given.strip().encode(), token.encode()) and scheme.lower() == "bearer"


def _token() -> str | None:
    """Return the token; None where none is set. A file that cannot be read, or is empty, opens nothing."""
    file = metrics_token_file()
    if file is None:
        return None
    try:
        token = file.read_text().strip()
    except (OSError, ValueError) as exc:
        log.error("%s (LAKEBOUND_METRICS_TOKEN_FILE) cannot be read: %s", file, type(exc).__name__)
        return None
    if not token:
        log.error("%s (LAKEBOUND_METRICS_TOKEN_FILE) is empty; write a token into it", file)
    return token or None
