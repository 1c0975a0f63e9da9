"""The pages of the site that are made from the code: nothing is left out, and no text breaks a table."""

from __future__ import annotations

import importlib.util
import re

import pytest
import typer.main
from tests.support.printed_commands import REPOSITORY

from lakebound.cli import app
from lakebound.ledger.entry import Entry
from lakebound.metrics.collector import metrics_of
from lakebound.metrics.facts import MetricFacts
from lakebound.spec.pipeline import PipelineSpec


@pytest.fixture(scope="module")
def pages() -> dict[str, str]:
    """The pages as ``make docs`` makes them."""
    spec = importlib.util.spec_from_file_location("reference", REPOSITORY / "docs" / "site" / "reference.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    found: dict[str, str] = module.reference_pages()
    return found


def test_every_key_command_metric_and_field_is_on_its_page(pages: dict[str, str]) -> None:
    commands = typer.main.get_command(app).commands  # type: ignore[attr-defined]
    metrics = [metric.name for metric in metrics_of(MetricFacts(pipelines=(), read_at=0.0))]
    expected = {
        "pipeline": [f"`{field.alias or name}`" for name, field in PipelineSpec.model_fields.items()],
        "cli": [f"## `lakebound {name}`" for name in commands],
        "metrics": [f"| `{name}" for name in metrics],
        "ledger": [f"`{name}`" for name in Entry.model_fields],
        "alerts": ["`remind_after_seconds`", "`heartbeat`", '`"critical"`'],
        "warehouses": ["`warehouses`"],
        "registries": ["`registries`"],
    }
    assert {page: [part for part in parts if part not in pages[page]] for page, parts in expected.items()} == {
        page: [] for page in pages
    }


def test_every_row_of_a_table_has_as_many_cells_as_its_head_and_every_block_is_there(pages: dict[str, str]) -> None:
    for name, text in pages.items():
        for block in re.findall(r"(?:^\|.*\n?)+", text, re.MULTILINE):
            assert len({len(re.findall(r"(?<!\\)\|", line)) for line in block.splitlines()}) == 1, f"{name}: {block[:200]}"
        headings = {line[3:].lower() for line in text.splitlines() if line.startswith("## ")}
        assert set(re.findall(r"\]\(#([a-z0-9]+)\)", text)) <= headings, name
