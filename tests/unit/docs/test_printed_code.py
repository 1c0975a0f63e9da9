"""The YAML, SQL and Python that pages print: each piece goes through the parser that reads it when somebody copies it."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import duckdb
import pytest
import yaml
from tests.support.page_blocks import PAGES, Block, blocks
from tests.support.printed_commands import REPOSITORY, in_shell

from lakebound.alerts.routes import AlertsSpec
from lakebound.inspection.validation.expectation_mistakes import parse
from lakebound.settings import load_settings, load_yaml_access
from lakebound.spec.installation_file import InstallationSpec
from lakebound.spec.load import load_pipelines, load_unbound
from lakebound.spec.pipeline import PipelineSpec
from lakebound.spec.registries_file import RegistriesSpec
from lakebound.spec.wanted_bindings import wanted_bindings, wanted_lines
from lakebound.spec.warehouses_file import WarehousesSpec
from lakebound.spec.yaml_model import read_model
from lakebound.spec.yaml_source import UnreadableYamlError, read_yaml

Piece = tuple[Path, Block]
PIPELINE: dict[str, Any] = {
    "pipeline": "orders",
    "topics": ["orders"],
    "connection": {"bootstrap_servers": "127.0.0.1:1"},
    "value": {"format": "json", "schema": "order_id STRING NOT NULL, total DOUBLE, placed_at TIMESTAMP"},
    "freshness": "1s",
    "tables": [{"format": "delta", "name": "sales.orders"}, {"format": "iceberg", "name": "sales.orders"}],
}
"""What a part of a pipeline stands in."""
INSTALLATION = {
    "spark_profiles": {"event-log": {"conf": {"spark.eventLog.enabled": "true"}}},
    "token_servers": ["*.example.com:443"],
}
"""What whoever runs Lakebound lets the printed pipelines use."""
WAREHOUSE = {"location": "s3://bucket/lake", "store": {"region": "eu-central-1"}}
CHANNELS = {"channels": {name: {"webhook": {"connection": "hook"}} for name in ("team", "ops", "pager")}}


def pieces(*languages: str) -> list[Piece]:
    """Return the pieces of all pages in these languages."""
    return [(page, block) for page in PAGES for block in blocks(page) if block.language in languages]


def named(piece: Piece) -> str:
    """Return where a piece is."""
    return f"{piece[0].relative_to(REPOSITORY)}:{piece[1].line}"


def pipeline_mistakes(root: Any, folder: Path) -> list[str]:
    """Return what is wrong with a pipeline, or with a part of one, by the reader of pipelines."""
    others = {"to_topics", "to_stores"} & set(root)
    needed = {"transform": "transforms.orders.clean"} if "reference" in root else {}
    given = {**{key: value for key, value in PIPELINE.items() if not (key == "tables" and others)}, **needed, **root}
    folder = folder / "pipelines"
    folder.mkdir()
    (folder / f"{given['pipeline']}.yaml").write_text(yaml.safe_dump(given))
    (folder.parent / "installation.yaml").write_text("\n".join([yaml.safe_dump(INSTALLATION), *bound_secrets(folder)]))
    return load_pipelines(folder).problems


def bound_secrets(folder: Path) -> list[str]:
    """Return the lines by which the operator lets the pipelines of a folder send their secrets: ``lakebound bind-secrets``."""
    specs = load_unbound(replace(load_settings({}), pipelines=folder))
    return wanted_lines(wanted_bindings(specs, InstallationSpec(), load_yaml_access({}).secrets_folder))


def model_mistakes(model: type[Any], around: dict[str, Any]) -> Callable[[Any, Path], list[str]]:
    """Return who says what is wrong with a file, or a part of one, that a model reads."""

    def mistakes(root: Any, folder: Path) -> list[str]:
        path = folder / "file.yaml"
        path.write_text(yaml.safe_dump({**around, **root}))
        return read_model(path, model, "")[1]

    return mistakes


def store_mistakes(root: Any, folder: Path) -> list[str]:
    """Return what is wrong with the store of a warehouse."""
    whole = {"warehouses": {"lake": {**WAREHOUSE, "store": {**WAREHOUSE["store"], **root["store"]}}}}  # type: ignore[dict-item]
    return model_mistakes(WarehousesSpec, {})(whole, folder)


def expectation_mistakes(root: Any, folder: Path) -> list[str]:
    """Return what is wrong with a list of expectations."""
    path = folder / "orders.yaml"
    path.write_text(yaml.safe_dump({"pipeline": "orders", "expectations": root}))
    return [mistake.what for mistake in parse(read_yaml(path))[1]]


def reader_of(root: Any) -> Callable[[Any, Path], list[str]]:
    """Return who reads a piece of YAML, by its keys."""
    if isinstance(root, list):
        return expectation_mistakes
    keys = set(root)
    if keys <= {field.alias or name for name, field in PipelineSpec.model_fields.items()}:
        return pipeline_mistakes
    if keys <= set(AlertsSpec.model_fields):
        return model_mistakes(AlertsSpec, {} if "channels" in keys else CHANNELS)
    if keys <= set(InstallationSpec.model_fields):
        return model_mistakes(InstallationSpec, {})
    return {
        frozenset({"warehouses"}): model_mistakes(WarehousesSpec, {}),
        frozenset({"registries"}): model_mistakes(RegistriesSpec, {}),
        frozenset({"store"}): store_mistakes,
        frozenset({"scrape_configs"}): lambda root, folder: [],  # is Prometheus'
    }[frozenset(keys)]


@pytest.mark.parametrize("piece", pieces("yaml", "yml"), ids=named)
def test_printed_yaml_is_what_its_reader_takes(piece: Piece, tmp_path: Path) -> None:
    path = tmp_path / "printed" / "orders.yaml"
    path.parent.mkdir()
    path.write_text(piece[1].text)
    try:
        source = read_yaml(path)
    except UnreadableYamlError as exc:
        pytest.fail(str(exc))
    assert source.mistakes == ()
    folder = tmp_path / "read"
    folder.mkdir()
    assert reader_of(source.root)(source.root, folder) == []


@pytest.mark.parametrize("piece", pieces("python"), ids=named)
def test_printed_python_compiles_and_imports_what_there_is(piece: Piece) -> None:
    for node in ast.walk(ast.parse(piece[1].text)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "lakebound":
            module = import_module(node.module or "")
            assert [alias.name for alias in node.names if not hasattr(module, alias.name)] == []


def queries() -> list[str]:
    """Return the SQL of the pages: pieces of it, and what they give to the command ``lakebound query``."""
    commands = [words for _, block in pieces("bash", "sh", "") for words in in_shell(block.text)]
    given = [words[2] for words in commands if words[:2] == ["lakebound", "query"] and " " in "".join(words[2:3])]
    # Spark quotes names by backticks.
    return [*given, *(block.text.replace("`", '"') for _, block in pieces("sql"))]


@pytest.mark.parametrize("query", queries())
def test_printed_sql_is_sql(query: str) -> None:
    assert len(duckdb.extract_statements(query)) == 1


def test_the_pieces_are_found() -> None:
    assert "README.md" in {page.name for page, _ in pieces("yaml")}
    assert len(pieces("yaml")) > 25 and len(pieces("python")) > 10 and len(queries()) > 4
