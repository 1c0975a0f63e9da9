"""Entry point: check a pipeline's plan (schema, transform) without reading Kafka; existing tables are only looked at.

Prints one JSON object as its last line: ``{"problems": [...], "tables": {"delta:x": "schema"}, "columns": {"delta:x": ["id"]},
"changes": {"delta:x": ["column y (int) is added"]}, "conditions": [null, "what is wrong"]}``; exit code 0 or 1.
"""

from __future__ import annotations

import argparse
import json
import sys

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import BooleanType

from lakebound.errors import LakeboundError
from lakebound.run_spec import RunSpec
from lakebound.schema_settling import compare_schemas
from lakebound.table_size import may_exist
from lakebound_spark.decode import value_fields
from lakebound_spark.schema import table_schema
from lakebound_spark.session import make_session
from lakebound_spark.transform import load_transform, planned_output


def main() -> int:
    """Check the pipeline in ``--run-spec`` and return the exit code."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--run-spec", required=True)
    parser.add_argument("--conditions", default="[]", help='[{"sql": "total > 0", "tables": ["delta:x"]}]')
    arguments = parser.parse_args()
    run = RunSpec.model_validate_json(arguments.run_spec)
    problems: list[str] = []
    tables: dict[str, str] = {}
    columns: dict[str, list[str]] = {}
    conditions: list[str | None] = []
    changes: dict[str, list[str]] = {}
    try:
        session = make_session(f"lakebound-check-{run.spec.pipeline}")
        output = planned_output(session, run.spec, load_transform(run.spec))
        schemas = {table.id: table_schema(output.schema, table) for table in run.spec.tables}
        tables = {name: str(schema) for name, schema in schemas.items()}
        columns = {name: list(schema.names) for name, schema in schemas.items()}
        conditions = [_wrong(output, one["sql"]) for one in json.loads(arguments.conditions)]
        there = {one.id: schemas[one.id] for one in run.spec.tables if may_exist(one, run.places)}
        settled = compare_schemas(run.spec, run.places.read_only(), there, value_fields(run.spec))
        for name, plan in settled.plans.items():
            problems += [f"pipeline {run.spec.pipeline!r}: {name}: {one}" for one in plan.differences]
            changes[name] = [] if plan.differences else plan.told()
    except LakeboundError as exc:
        problems.append(str(exc))
    except Exception as exc:  # a DDL mistake arrives as whatever Spark raises
        problems.append(f"pipeline {run.spec.pipeline!r}: {str(exc).splitlines()[0]}")
    print(
        json.dumps({"problems": problems, "tables": tables, "columns": columns, "conditions": conditions, "changes": changes})
    )
    return 1 if problems else 0


def _wrong(rows: DataFrame, condition: str) -> str | None:
    """Return what Spark finds wrong with a condition on the rows."""
    try:
        kind = rows.select(F.expr(condition)).schema[0].dataType
    except AnalysisException as exc:
        return f"is not a condition on the columns: {str(exc).splitlines()[0]}"
    return None if isinstance(kind, BooleanType) else f"is {kind.simpleString()}, not true or false"


if __name__ == "__main__":
    sys.exit(main())
