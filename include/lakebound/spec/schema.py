"""The JSON Schema of pipeline files, for editors."""

from __future__ import annotations

import json

from lakebound.spec.pipeline import PipelineSpec


def pipeline_schema() -> str:
    """Return the schema as JSON text."""
    body = PipelineSpec.model_json_schema(by_alias=True)
    body = {"$schema": "https://json-schema.org/draft/2020-12/schema", **body, "title": "Lakebound pipeline"}
    return json.dumps(body, indent=2) + "\n"
