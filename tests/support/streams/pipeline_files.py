"""Pipeline files of tests: a right one, and a folder to write others into."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from lakebound.settings import Settings, load_settings

RIGHT = """\
pipeline: orders
topics: [orders]
connection:
  bootstrap_servers: ${LAKEBOUND_KAFKA}
value:
  format: json
  schema: order_id STRING NOT NULL
freshness: 500ms
tables:
  - format: delta
    name: sales.orders
"""
WITH_SASL = RIGHT.replace(
    "value:\n",
    "  sasl:\n    username: lakebound\n    password: {env: LAKEBOUND_SECRET_KAFKA}\nvalue:\n",
)


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """Places of a test's own, with an empty folder of pipelines."""
    folder = tmp_path / "pipelines"
    folder.mkdir()
    return replace(load_settings({}), home=tmp_path / "home", pipelines=folder, kafka="kafka:9092")


def write(settings: Settings, text: str | bytes, name: str = "orders.yaml") -> Path:
    """Write a file into the folder of pipelines."""
    path = settings.pipelines / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path
