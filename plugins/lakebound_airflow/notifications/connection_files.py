"""Connections in files, for processes that ask no Airflow: ``lakebound watch`` and a test alert."""

from __future__ import annotations

import os
from collections.abc import Iterable

from lakebound.alerts.connection_places import as_airflow_reads_it, file_of, variable_of
from lakebound.settings import load_yaml_access


class ConnectionFiles:
    """Gives Airflow's hooks the connections that are in files: they look for them in the environment of this process."""

    def __init__(self) -> None:
        self._given: set[str] = set()

    def read(self, connections: Iterable[str]) -> list[str]:
        """Read the files again, as a secret may have changed; return what cannot be read.

        Args:
            connections: Ids. A variable that the process was started with is not replaced by a file.
        """
        access, problems = load_yaml_access(), []
        for connection in connections:
            name = variable_of(connection)
            if name in os.environ and name not in self._given:
                os.environ[name] = as_airflow_reads_it(os.environ[name])
                continue
            os.environ.pop(name, None)
            file = file_of(connection, access)
            try:
                if file is not None:
                    os.environ[name] = as_airflow_reads_it(file.read_text(encoding="utf-8").strip())
                    self._given.add(name)
            except (OSError, ValueError) as exc:
                # The class alone: the text of a decoding error holds the secret.
                problems.append(f"{file} cannot be read: {type(exc).__name__}")
        return problems
