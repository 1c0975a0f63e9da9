"""The pages of the reference, made from the code: models of YAML files and of the ledger, commands, metrics."""

from __future__ import annotations

import inspect
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import typer.main
from pydantic import BaseModel
from typer.cli import get_docs_for_click

from lakebound.alerts.routes import AlertsSpec
from lakebound.cli import app
from lakebound.ledger.entry import Entry, encode
from lakebound.metrics.collector import metrics_of
from lakebound.metrics.facts import MetricFacts
from lakebound.spec.pipeline import PipelineSpec
from lakebound.spec.registries_file import RegistriesSpec
from lakebound.spec.warehouses_file import WarehousesSpec

Schema = Mapping[str, Any]
_BOUNDS = {"minimum": "≥", "exclusiveMinimum": ">", "maximum": "≤", "exclusiveMaximum": "&lt;"}


def reference_pages() -> dict[str, str]:
    """Return the text of each page, by its name."""
    return {
        "pipeline": model_page(
            "A pipeline's YAML", "`include/pipelines/<pipeline>.yaml`, one file per pipeline.", PipelineSpec
        ),
        "alerts": model_page("alerts.yaml", "`include/alerts.yaml`: who is told what.", AlertsSpec),
        "warehouses": model_page("warehouses.yaml", "`include/warehouses.yaml`: where tables may be.", WarehousesSpec),
        "registries": model_page("registries.yaml", "`include/registries.yaml`: the schema registries.", RegistriesSpec),
        "cli": cli_page(),
        "metrics": metrics_page(),
        "ledger": ledger_page(),
    }


def model_page(title: str, intro: str, model: type[BaseModel]) -> str:
    """Return the page of a file that people write: its keys, then those of each block."""
    schema = model.model_json_schema()
    blocks = schema.get("$defs", {})
    parts = [f"# {title}", intro, "Keys in **bold** are required. A key that is not here is refused.", _fields(schema, blocks)]
    for name, block in blocks.items():
        if "properties" in block:
            parts += [f"## {_title(name)}", _cell(block.get("description", "").partition("\n\n")[0]), _fields(block, blocks)]
    return "\n\n".join(parts) + "\n"


def cli_page() -> str:
    """Return the page of all commands."""
    command = typer.main.get_command(app)
    text = get_docs_for_click(
        obj=command, ctx=typer.Context(command, info_name="lakebound"), name="lakebound", title="Commands"
    )
    return text.rstrip() + "\n"


def metrics_page() -> str:
    """Return the page of all metrics."""
    rows = []
    for metric in metrics_of(MetricFacts(pipelines=(), read_at=0.0)):
        name = metric.name + ("_total" if metric.type == "counter" else "")
        labels = getattr(metric, "_labelnames", ())
        rows.append((f"`{name}`", metric.type, ", ".join(f"`{label}`" for label in labels) or "–", _cell(metric.documentation)))
    intro = "How Prometheus gets them, and what they are good for: [metrics](../docs/how-to/metrics.md)."
    return f"# Metrics\n\n{intro}\n\n{_table(('metric', 'type', 'labels', 'what'), rows)}\n"


def ledger_page() -> str:
    """Return the page of the ledger's entries."""
    offsets = {"orders": {"topic_id": "q0dEYv0bQmKxq4JOkI2PVw", "partitions": {0: ((0, 81_234),)}}}
    added = {"orders": {"topic_id": "q0dEYv0bQmKxq4JOkI2PVw", "partitions": {0: ((81_000, 81_234),)}}}
    counts = {"read": 234, "landed": 234, "rows": 234, "lane": "driver"}
    entry = Entry.model_validate(
        {"kind": "land", "pipeline": "orders", "epoch": 3, "commit": "6b1f…", "coverage": offsets, "range": added, **counts}
    )
    example = json.dumps(json.loads(encode(entry)), indent=2, ensure_ascii=False)
    schema = Entry.model_json_schema()
    blocks = schema["$defs"]
    parts = [
        "# The ledger's entries",
        "Each commit that Lakebound makes to a table carries one entry: in a Delta commit it is `commitInfo.userMetadata`, in "
        "an Iceberg snapshot the property `lakebound`. `lakebound ledger PIPELINE` shows them. "
        "Why: [decision 1](../docs/decisions/0001-the-table-is-the-checkpoint.md).",
        inspect.cleandoc(Entry.__doc__ or "").replace("``", "`"),
        _fields(schema, blocks),
        *(part for name, block in blocks.items() for part in (f"## {name}", _fields(block, blocks))),
        "## An example",
        f"```json\n{example}\n```",
    ]
    return "\n\n".join(parts) + "\n"


def _fields(schema: Schema, blocks: Schema) -> str:
    required = schema.get("required", ())
    rows = []
    for name, field in schema["properties"].items():
        shown = f"**`{name}`**" if name in required else f"`{name}`"
        rows.append((shown, _type(field, blocks), _default(field), _cell(field.get("description") or _said_of(field, blocks))))
    return _table(("key", "type", "default", "what"), rows)


def _default(field: Schema) -> str:
    """Return the default; of a block it is in the block's own table."""
    default = field.get("default")
    if "default" not in field or (isinstance(default, dict) and default):
        return "–"
    return f"`{json.dumps(default, ensure_ascii=False)}`"


def _said_of(field: Schema, blocks: Schema) -> str:
    block: Schema = blocks.get(field.get("$ref", "").rpartition("/")[2], {})
    said: str = block.get("description", "")
    return said.partition("\n\n")[0] if "properties" in block else ""


def _type(field: Schema, blocks: Schema) -> str:
    return ", ".join(_types(field, blocks)) or "any"


def _types(field: Schema, blocks: Schema) -> Iterator[str]:
    """Yield the words for a type, of which one fits."""
    if "$ref" in field:
        name = field["$ref"].rpartition("/")[2]
        block = blocks.get(name, {})
        if "properties" in block:
            yield f"[{_title(name)}](#{_title(name).lower()})"
        else:
            yield from _types(block, blocks)
    for key in ("anyOf", "oneOf", "allOf"):
        for one in field.get(key, ()):
            yield from _types(one, blocks)
    if "enum" in field or "const" in field:
        yield from (f"`{json.dumps(value)}`" for value in field.get("enum", [field.get("const")]))
    elif field.get("type") == "array":
        yield f"list of {_type(field.get('items', {}), blocks)}"
    elif field.get("type") == "object":
        inner = field.get("additionalProperties")
        yield f"keys with {_type(inner, blocks)}" if isinstance(inner, dict) and inner else "keys"
    elif "type" in field:
        bounds = [f" {sign} {field[bound]:,}" for bound, sign in _BOUNDS.items() if bound in field]
        yield "".join([field["type"], *bounds])


def _title(name: str) -> str:
    return name.removesuffix("Spec")


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (heads, ["---"] * len(heads), *rows))


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;").replace("``", "`").replace("*", "\\*")
