"""The names of the table formats. A module of its own: the commands' help needs them, and nothing of the YAML's models."""

from __future__ import annotations

from typing import Literal, get_args

TableFormat = Literal["delta", "iceberg"]
"""The table formats: each has a folder of its name in ``lakebound.tables``, and in each room that has a registry per format."""
TABLE_FORMATS: tuple[TableFormat, ...] = get_args(TableFormat)
