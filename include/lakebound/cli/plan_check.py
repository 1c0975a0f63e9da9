"""The plan phase of ``lakebound check``: Spark plans pipelines' schemas and transforms, without Kafka, in one session."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

from lakebound.cli.small_spark import small_spark
from lakebound.control.desired import Desired
from lakebound.errors import LakeboundError
from lakebound.inspection.validation.expectation_files import conditions
from lakebound.landing.run_spec import RunSpec, make_run_spec
from lakebound.landing.spark_resources import planning_conf
from lakebound.settings import Settings
from lakebound.spec.pipeline import PipelineSpec
from lakebound.spec.placed import PlacedProblem, placed_problems
from lakebound.spec.spark import SparkSpec
from lakebound.spec.yaml_source import Keys

APPLICATION = "check_pipelines.py"
START_SECONDS = 120.0
EACH_SECONDS = 30.0

_Asked = tuple[RunSpec, list[tuple[Keys, str, Any]]]
"""A pipeline's orders, and the conditions of its expectations, as ``conditions`` gives them."""


class CheckFailedError(LakeboundError):
    """The plans could not be checked: Spark did not start, or ended without an answer."""

    def __init__(self, pipeline: str, reason: str) -> None:
        super().__init__(
            f"pipeline {pipeline!r}: Spark could not check its plan: {reason}. Use --static to check the files without Spark"
        )


@dataclass(frozen=True)
class SparkPlan:
    """What Spark says of one pipeline.

    Attributes:
        pipeline: Its name.
        problems: What keeps it from starting.
        tables: The columns of each table, by the table's id.
        columns: The types of these columns, by their names.
        conditions: What is wrong with conditions in SQL of the pipeline's expectations, and where in their file each stands.
        changes: What the next start does with each table, by its id.
        schemas: From which registry, subjects and versions its records are read, in sentences.
    """

    pipeline: str
    problems: list[PlacedProblem] = field(default_factory=list)
    tables: dict[str, str] = field(default_factory=dict)
    columns: dict[str, dict[str, str]] = field(default_factory=dict)
    conditions: list[tuple[Keys, str]] = field(default_factory=list)
    changes: dict[str, list[str]] = field(default_factory=dict)
    schemas: list[str] = field(default_factory=list)


def check_plans(specs: Sequence[PipelineSpec], settings: Settings) -> Iterator[SparkPlan]:
    """Yield what Spark says of each pipeline, as soon as it says it; its session takes some seconds to start.

    Args:
        specs: Pipelines whose files have no mistake (``lakebound.inspection.schema_check``).
        settings: This machine's.

    Raises:
        CheckFailedError: It says nothing more.
    """
    wanted = [_asked(spec, settings) for spec in specs]
    # A transform runs in the session, and sees the secrets of no other pipeline. Most need none: those share one session.
    for secrets, group in groupby(wanted, lambda asked: frozenset(asked[0].planning_secrets)):
        yield from _check_in_one_session(list(group), settings, secrets)


def _asked(spec: PipelineSpec, settings: Settings) -> _Asked:
    """Return what Spark is asked of a pipeline."""
    return make_run_spec(spec, settings, Desired(), f"check-{spec.pipeline}"), conditions(spec, settings)


def _check_in_one_session(group: Sequence[_Asked], settings: Settings, secrets: frozenset[str]) -> Iterator[SparkPlan]:
    orders = [_orders(run, [text for _, text, _ in own]) for run, own in group]
    limit_seconds = START_SECONDS + EACH_SECONDS * len(group)
    # Those of each pipeline are its orders'; one session plans them all.
    conf = planning_conf(settings, SparkSpec())
    with small_spark(
        settings, APPLICATION, orders, limit_seconds=limit_seconds, failure=CheckFailedError, secrets=secrets, conf=conf
    ) as answers:
        for run, own in group:
            yield _plan(answers.of(run.spec.pipeline), [keys for keys, _, _ in own])


def _orders(run: RunSpec, texts: Sequence[str]) -> str:
    return json.dumps({"run_spec": run.model_dump(mode="json", by_alias=True), "conditions": list(texts)})


def _plan(body: dict[str, Any], asked: list[Keys]) -> SparkPlan:
    wrong = [(keys, what) for keys, what in zip(asked, body.pop("conditions"), strict=False) if what]
    problems = placed_problems(body.pop("problems"))
    return SparkPlan(**body, problems=problems, conditions=wrong)
