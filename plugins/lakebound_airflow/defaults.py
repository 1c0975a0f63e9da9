"""What all DAGs of Lakebound have in common."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from lakebound.plain_text import markdown_text
from lakebound.spec.pipeline import PipelineSpec
from lakebound.spec.real_time import has_both_ends
from lakebound_airflow.access import access_of

START_DATE = datetime(2026, 1, 1, tzinfo=UTC)
TASK_DEFAULTS: dict[str, Any] = {"owner": "lakebound", "retries": 0}


def pipeline_dag(purpose: str, spec: PipelineSpec, doc: str | None, **task_defaults: Any) -> dict[str, Any]:
    """Return the arguments that the DAGs of a pipeline have in common.

    Args:
        purpose: What the DAG is for; its id begins with it.
        spec: The pipeline.
        doc: The docstring of the DAG file.
        **task_defaults: Of its tasks, beside those of all DAGs.
    """
    return {
        "dag_id": f"{purpose}__{spec.pipeline}",
        "doc_md": describe(doc, spec),
        "catchup": False,
        "default_args": TASK_DEFAULTS | task_defaults,
        "tags": tags(purpose, spec),
        "access_control": access_of(spec),
    }


def tags(purpose: str, spec: PipelineSpec) -> list[str]:
    """Return the tags of a pipeline's DAG: its purpose, its pipeline, and the formats that it lands in."""
    return ["lakebound", purpose, spec.pipeline, *sorted({table.format for table in spec.tables})]


def describe(doc: str | None, spec: PipelineSpec) -> str:
    """Return a DAG's page: the DAG file's own docstring, then the pipeline. Its description is text, and not Markdown."""
    beside = f" (tables: `{spec.tables_freshness()}`)" if has_both_ends(spec, spec.freshness) else ""
    rows = "\n".join(f"| `{table.id}` | {', '.join(table.partition_by) or '—'} |" for table in spec.tables)
    return (
        f"{(doc or '').strip()}\n\n### Pipeline `{spec.pipeline}`\n\n{markdown_text(spec.description)}\n\n"
        f"Topics: {', '.join(f'`{topic}`' for topic in spec.topics)} · freshness: `{spec.freshness}`{beside}\n\n"
        f"| table | partitioned by |\n| --- | --- |\n{rows}\n"
    )
