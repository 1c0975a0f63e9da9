"""The plan phase of ``lakebound check``: Spark plans a pipeline's schema and transform, without Kafka."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass, field

from lakebound.desired import Desired
from lakebound.errors import LakeboundError
from lakebound.run_spec import make_run_spec
from lakebound.settings import Settings
from lakebound.spec import PipelineSpec
from lakebound.submit import spark_environment
from lakebound.validation.expectation_files import conditions
from lakebound.yaml_source import Keys

APPLICATION = "check_pipeline.py"
DEADLINE_SECONDS = 300.0


class CheckFailedError(LakeboundError):
    """The plan could not be checked: Spark did not start, or ended without an answer."""

    def __init__(self, pipeline: str, reason: str) -> None:
        super().__init__(f"pipeline {pipeline!r}: its plan could not be checked: {reason}; --static leaves this phase out")


@dataclass(frozen=True)
class Plan:
    """What Spark says.

    Attributes:
        problems: What is wrong.
        tables: The columns of each table, by the table's id.
        columns: The names of these columns.
        conditions: What is wrong with conditions in SQL of the pipeline's expectations, and where in their file each stands.
        changes: What the next start does with the columns of each table that exists, by its id.
    """

    problems: list[str] = field(default_factory=list)
    tables: dict[str, str] = field(default_factory=dict)
    columns: dict[str, list[str]] = field(default_factory=dict)
    conditions: list[tuple[Keys, str]] = field(default_factory=list)
    changes: dict[str, list[str]] = field(default_factory=dict)


def check_plan(spec: PipelineSpec, settings: Settings) -> Plan:
    """Return what Spark says of the pipeline; takes some seconds.

    Raises:
        CheckFailedError: It says nothing.
    """
    run_spec = make_run_spec(spec, settings, Desired(), f"check-{spec.pipeline}")
    orders = run_spec.model_dump_json(by_alias=True)
    asked = conditions(spec, settings)
    command = [sys.executable, str(settings.apps / APPLICATION), "--run-spec", orders]
    command += ["--conditions", json.dumps([{"sql": text, "tables": tables} for _, text, tables in asked])]
    try:
        done = subprocess.run(
            command,
            env=spark_environment(settings),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=DEADLINE_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise CheckFailedError(spec.pipeline, f"no answer within {DEADLINE_SECONDS:.0f} s") from None
    return _plan_in(done, spec.pipeline, [keys for keys, _, _ in asked])


def _plan_in(done: subprocess.CompletedProcess[str], pipeline: str, asked: list[Keys]) -> Plan:
    answer = (done.stdout.strip().splitlines() or [""])[-1]
    try:
        body = json.loads(answer)
        wrong = [(keys, what) for keys, what in zip(asked, body.get("conditions", []), strict=False) if what]
        columns, changes = (dict(body.get(name, {})) for name in ("columns", "changes"))
        return Plan(list(body["problems"]), dict(body["tables"]), columns, wrong, changes)
    except (ValueError, KeyError, TypeError):
        last = (done.stderr.strip().splitlines() or ["it said nothing"])[-1]
        raise CheckFailedError(pipeline, f"exit code {done.returncode}: {last}") from None
