"""The page's app on a port of this machine, behind a base path, for somebody who may do all; and Chromium to look at it."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import uvicorn
from fastapi import FastAPI

from lakebound.control.ports import free_port
from lakebound.settings import Settings
from tests.support.airflow.page_app import ROLE, app_of_the_page
from tests.support.waiting import HANGS_SECONDS, wait_until

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")


@contextmanager
def served_page(settings: Settings) -> Iterator[str]:
    """Yield the address of the page over the state of these settings."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in settings.environment().items():
            patch.setenv(name, value)
        with app_of_the_page(patch) as app:

            async def as_editor(scope: Any, receive: Any, send: Any) -> None:
                await app({**scope, "headers": [*scope["headers"], (ROLE.lower().encode(), b"editor")]}, receive, send)

            root = FastAPI()
            root.mount("/base/lakebound", as_editor)
            port = free_port()
            server = uvicorn.Server(uvicorn.Config(root, host="127.0.0.1", port=port, log_level="warning", lifespan="off"))
            thread = threading.Thread(target=server.run)
            thread.start()
            try:
                wait_until(lambda: server.started, 30, "the page's server")
                yield f"http://127.0.0.1:{port}/base/lakebound/"
            finally:
                server.should_exit = True
                thread.join(HANGS_SECONDS)
