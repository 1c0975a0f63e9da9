"""Every address of the page, with a value in place of each parameter."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from fastapi.routing import APIRoute


@dataclass(frozen=True)
class Address:
    """One address below the page's prefix; ``holds_values`` says that record values are behind it."""

    path: str
    is_of_a_pipeline: bool
    holds_values: bool


def addresses(pipeline: str) -> Iterator[Address]:
    """Yield the address of each route.

    Args:
        pipeline: Name for the routes that are about one; it has the table ``delta:lake.<pipeline>``.
    """
    from lakebound_airflow.page.app import make_app  # it imports Airflow's API server

    values = {"/static/{name}": "/static/page.css", "/runbooks/{name}": "/runbooks/lag"}
    for route in make_app().routes:
        assert isinstance(route, APIRoute) and route.methods == {"GET"}, "the page itself changes nothing"
        path = values.get(route.path, route.path.replace("{pipeline}", pipeline)).replace(
            "{table:path}", f"delta:lake.{pipeline}"
        )
        yield Address(path, "{pipeline}" in route.path, route.path.endswith("/samples"))
