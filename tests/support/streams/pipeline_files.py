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
SMALL = """\
pipeline: NAME
topics: [orders]
connection: {bootstrap_servers: "127.0.0.1:9092"}
value: {format: json, schema: a STRING}
freshness: 1s
tables: [{format: delta, name: sales.NAME}]
"""
"""A right one of a few lines, for several pipelines: NAME is replaced."""
WITH_SASL = RIGHT.replace(
    "value:\n",
    "  sasl:\n    username: lakebound\n    password: {env: LAKEBOUND_SECRET_KAFKA}\nvalue:\n",
)


BOUND = """\
token_servers: [idp.example.com:443]
secrets:
  files:
    lander.key: [kafka:9092, kafka:9093]
  variables:
    LAKEBOUND_SECRET_KAFKA: [kafka:9092, kafka:9093, idp.example.com:443]
    LAKEBOUND_SECRET_KEY: [kafka:9092, kafka:9093]
    LAKEBOUND_SECRET_DB: [db:5432, db:6379]
"""
"""What ``installation.yaml`` says of the secrets of these tests."""


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """Places of a test's own, with an empty folder of pipelines."""
    folder = tmp_path / "pipelines"
    folder.mkdir()
    (tmp_path / "installation.yaml").write_text(BOUND)
    return replace(load_settings({}), home=tmp_path / "home", pipelines=folder, kafka="kafka:9092")


def write(settings: Settings, text: str | bytes, name: str = "orders.yaml") -> Path:
    """Write a file into the folder of pipelines."""
    path = settings.pipelines / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path
