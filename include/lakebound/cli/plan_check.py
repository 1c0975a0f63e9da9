"""The plan phase of ``lakebound check``: Spark plans pipelines' schemas and transforms, without Kafka, in one session."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from tempfile import TemporaryFile
from threading import Timer
from typing import IO, Any

from lakebound.control.desired import Desired
from lakebound.errors import LakeboundError
from lakebound.inspection.validation.expectation_files import conditions
from lakebound.landing.run_spec import make_run_spec
from lakebound.landing.spark_command import driver_java_options, spark_environment
from lakebound.settings import Settings
from lakebound.spec.pipeline import PipelineSpec
from lakebound.spec.placed import PlacedProblem
from lakebound.spec.yaml_source import Keys

APPLICATION = "check_pipelines.py"
START_SECONDS = 120.0
EACH_SECONDS = 30.0


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
        columns: The names of these columns.
        conditions: What is wrong with conditions in SQL of the pipeline's expectations, and where in their file each stands.
        changes: What the next start does with each table, by its id.
    """

    pipeline: str
    problems: list[PlacedProblem] = field(default_factory=list)
    tables: dict[str, str] = field(default_factory=dict)
    columns: dict[str, list[str]] = field(default_factory=dict)
    conditions: list[tuple[Keys, str]] = field(default_factory=list)
    changes: dict[str, list[str]] = field(default_factory=dict)


def check_plans(specs: Sequence[PipelineSpec], settings: Settings) -> Iterator[SparkPlan]:
    """Yield what Spark says of each pipeline, as soon as it says it; its session takes some seconds to start.

    Raises:
        CheckFailedError: It says nothing more.
    """
    asked = [conditions(spec, settings) for spec in specs]
    with TemporaryFile("w+", errors="replace") as noise:
        process = start_spark(settings, noise, APPLICATION)
        limit = Timer(START_SECONDS + EACH_SECONDS * len(specs), process.kill)
        limit.start()
        try:
            texts = [[text for _, text, _ in own] for own in asked]
            tell(process, [_orders(spec, settings, own) for spec, own in zip(specs, texts, strict=True)])
            for spec, own in zip(specs, asked, strict=True):
                yield _answer(process, spec.pipeline, [keys for keys, _, _ in own], noise)
        finally:
            limit.cancel()
            process.kill()
            process.wait()


def start_spark(settings: Settings, noise: IO[str], application: str) -> subprocess.Popen[str]:
    """Start an entry point with a small Spark of its own; it takes its orders, and answers, as lines of JSON.

    Args:
        settings: This machine's.
        noise: Gets what it says on its standard error.
        application: Name of the entry point in ``settings.apps``.
    """
    java = driver_java_options(settings, "-XX:+UseSerialGC -XX:TieredStopAtLevel=1", local=True)
    submit = ["--master", "local[1]", "--driver-java-options", f"'{java}'", "--conf", "spark.ui.enabled=false"]
    submit += ["--conf", f"spark.driver.extraClassPath={settings.jars}/spark/*", "--conf", "spark.sql.session.timeZone=UTC"]
    environment = {**spark_environment(settings), "SPARK_LOCAL_IP": "127.0.0.1"}
    return subprocess.Popen(
        [sys.executable, str(settings.apps / application)],
        env={**environment, "PYSPARK_SUBMIT_ARGS": " ".join([*submit, "pyspark-shell"])},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=noise,
        text=True,
        errors="replace",
    )


def tell(process: subprocess.Popen[str], orders: Sequence[str]) -> None:
    """Give an application its orders. One that has ended takes none: then no answer comes, and its last words say why."""
    assert process.stdin is not None
    with suppress(BrokenPipeError):
        process.stdin.write("".join(f"{line}\n" for line in orders))
        process.stdin.flush()
    with suppress(BrokenPipeError):
        process.stdin.close()


def _orders(spec: PipelineSpec, settings: Settings, texts: Sequence[str]) -> str:
    run_spec = make_run_spec(spec, settings, Desired(), f"check-{spec.pipeline}")
    return json.dumps({"run_spec": run_spec.model_dump(mode="json", by_alias=True), "conditions": list(texts)})


def _answer(process: subprocess.Popen[str], pipeline: str, asked: list[Keys], noise: IO[str]) -> SparkPlan:
    """Return the next answer; lines that are none are passed over."""
    assert process.stdout is not None
    for line in process.stdout:
        body = answer_of(line, pipeline)
        if body is not None:
            wrong = [(keys, what) for keys, what in zip(asked, body.pop("conditions"), strict=False) if what]
            problems = placed_problems(body.pop("problems"))
            return SparkPlan(**body, problems=problems, conditions=wrong)
    raise CheckFailedError(pipeline, f"exit code {process.wait()}: {last_words(noise)}")


def placed_problems(bodies: Iterable[Mapping[str, Any]]) -> list[PlacedProblem]:
    """Return problems that came as JSON."""
    return [PlacedProblem(**{**body, "keys": tuple(body["keys"]), "column": tuple(body["column"])}) for body in bodies]


def last_words(noise: IO[str]) -> str:
    """Return the last line that a process has said."""
    noise.seek(0)
    return next(
        (line.strip() for line in reversed(noise.read().splitlines()) if line.strip()), "the process printed no message"
    )


def answer_of(line: str, pipeline: str) -> dict[str, Any] | None:
    """Return the answer for a pipeline that a line holds; None where it is no answer."""
    try:
        body = json.loads(line)
    except ValueError:
        return None
    return body if isinstance(body, dict) and body.get("pipeline") == pipeline else None
