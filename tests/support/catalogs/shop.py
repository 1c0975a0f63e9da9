"""A database of customers in a real PostgreSQL, and how a pipeline names it as reference data."""

from __future__ import annotations

import os
from typing import Any

import psycopg

from tests.support.catalogs.postgresql import PASSWORD, USER, PostgreSQL, PostgreSQLProxy

SECRET = "LAKEBOUND_SECRET_OF_SHOP"


class Shop:
    """A database of its own, reached by way of a proxy.

    Attributes:
        proxy: Before the server.
    """

    def __init__(self, server: PostgreSQL) -> None:
        self.proxy, self._database = PostgreSQLProxy(server), server.new_database()
        self._folder = os.path.dirname(server.socket)

    def run(self, statements: str) -> None:
        """Run SQL as the owner of the database."""
        login = {"host": self._folder, "user": USER, "password": PASSWORD, "dbname": self._database}
        with psycopg.connect(**login, autocommit=True) as own:
            own.execute(statements.encode())

    def reference(self, login: dict[str, Any] | None = None, **reference: Any) -> dict[str, Any]:
        """Return the YAML of a reference: the table ``customers`` with the key ``id``, unless said otherwise."""
        database = {"host": "127.0.0.1", "port": self.proxy.port, "database": self._database, "username": USER}
        what = {} if "query" in reference else {"name": "customers"}
        logged_in = {**database, "password": {"env": SECRET}, **(login or {})}
        return {"format": "postgres", "postgres": logged_in, "key": ["id"], **what, **reference}
