"""The example with a registry does what its page says: a newer schema lands in the same application."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from tests.support.registry.server import SchemaRegistry
from tests.support.streams.long_form import only_in_long_form

from lakebound.local.broker import Broker

pytestmark = pytest.mark.integration

REPOSITORY = Path(__file__).parents[2]


@pytest.fixture
def example(tmp_path: Path, schema_registry: SchemaRegistry) -> Path:
    """A copy of the example beside all that it uses, with the address of the tests' registry."""
    shutil.copytree(REPOSITORY / "examples" / "avro_registry", tmp_path / "examples" / "avro_registry")
    shutil.copy(REPOSITORY / "examples" / "prepare.sh", tmp_path / "examples")
    for used in ("spark_apps", ".venv"):
        (tmp_path / used).symlink_to(REPOSITORY / used)
    folder = tmp_path / "examples" / "avro_registry"
    registries = folder / "registries.yaml"
    text = registries.read_text()
    assert "http://127.0.0.1:8081/apis/ccompat/v7" in text
    registries.write_text(text.replace("http://127.0.0.1:8081/apis/ccompat/v7", schema_registry.url))
    return folder


@only_in_long_form  # shortly: test_a_newer_version_lands_without_a_restart in test_registered_schemas.py
def test_a_newer_schema_lands_as_the_page_says(example: Path, broker: Broker, tmp_path: Path) -> None:
    own = {"LAKEBOUND_HOME": str(tmp_path / "home"), "LAKEBOUND_KAFKA": broker.bootstrap_servers}
    done = subprocess.run(
        [str(example / "run.sh")], env={**os.environ, **own}, capture_output=True, text=True, timeout=900, check=False
    )
    said = done.stdout + done.stderr
    assert done.returncode == 0, said
    assert "2 versions in use" in said and "version 2 added channel" in said, said
    assert "web" in done.stdout and "missing 0" in said and "duplicated 0" in said, said
