"""What differs from table format to table format, found by the format's name: one module or folder per format in each room."""

from __future__ import annotations

from importlib import import_module
from typing import Generic, TypeVar

T = TypeVar("T")


class PerFormat(Generic[T]):
    """What a room needs of each table format, imported when it is first used, and with it the library.

    ``PerFormat("lakebound.tables", "health:read_facts")`` finds ``lakebound.tables.delta.health.read_facts`` for Delta.
    A new format is a folder of its name in each room that has such a registry; no list names the formats but the YAML's
    (``lakebound.spec.table_format``). ``tests/unit/architecture/test_table_formats.py`` says what a format lacks.

    Args:
        room: Package that holds a package or module per format.
        name: ``module:name`` below the format's package, or ``name`` in the format's module.
    """

    def __init__(self, room: str, name: str) -> None:
        self._room = room
        module, _, self._name = name.rpartition(":")
        self._module = f".{module}" if module else ""

    def of(self, format_: str) -> T:
        """Return what a format has.

        Args:
            format_: Its name, as in the YAML.
        """
        found: T = getattr(import_module(f"{self._room}.{format_}{self._module}"), self._name)
        return found


def format_of(table: str) -> str:
    """Return the format in a table's id, ``format:name``."""
    return table.partition(":")[0]
