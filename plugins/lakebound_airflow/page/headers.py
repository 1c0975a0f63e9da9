"""What every answer of the page says to the browser: load nothing from elsewhere, run no script but ours, keep no answer."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from urllib.parse import quote

from fastapi import FastAPI, HTTPException, Request, Response
from fastapi.exception_handlers import http_exception_handler
from fastapi.responses import RedirectResponse
from starlette.status import HTTP_303_SEE_OTHER, HTTP_401_UNAUTHORIZED

from lakebound_airflow.page.navigation import URL_PREFIX

HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; "
    "frame-ancestors 'self'; base-uri 'none'; form-action 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cache-Control": "no-store",
}


def set_headers(app: FastAPI) -> None:
    """Have the app send them with every answer, refusals included."""

    @app.middleware("http")
    async def with_headers(request: Request, answer: Callable[[Request], Awaitable[Response]]) -> Response:
        response = await answer(request)
        response.headers.update(HEADERS)
        return response


def ask_for_login(app: FastAPI) -> None:
    """Have the app send a browser without a login to Airflow's login page, which leads back: alerts are opened on phones."""

    @app.exception_handler(HTTPException)
    async def to_the_login(request: Request, exc: Exception) -> Response:
        assert isinstance(exc, HTTPException)
        wants_page = request.method == "GET" and "text/html" in request.headers.get("accept", "")
        if exc.status_code != HTTP_401_UNAUTHORIZED or not wants_page:
            return await http_exception_handler(request, exc)
        prefix = str(request.scope.get("root_path", "")).removesuffix(URL_PREFIX)
        return RedirectResponse(f"{prefix}/api/v2/auth/login?next={quote(request.url.path, safe='')}", HTTP_303_SEE_OTHER)
