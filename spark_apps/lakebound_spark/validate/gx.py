"""Great Expectations on Spark DataFrames: a suite in, its results and their JSON out. The only importer of GX.

Nothing is sent anywhere: the context is in memory, its analytics are off, and it knows no cloud. Its Data Docs are not
made: they show what records hold as markup (``lakebound.inspection.validation.page`` makes the page).
"""

from __future__ import annotations

import json
import logging
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import great_expectations as gx
from great_expectations.core import ExpectationValidationResult
from great_expectations.data_context.types.base import (
    DataContextConfig,
    InMemoryStoreBackendDefaults,
    ProgressBarsConfig,
)
from great_expectations.expectations.metadata_types import FailureSeverity
from great_expectations.expectations.registry import get_expectation_impl, get_metric_kwargs
from great_expectations.expectations.row_conditions import PassThroughCondition
from great_expectations.validator.metric_configuration import MetricConfiguration
from great_expectations.validator.metrics_calculator import MetricsCalculator
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from lakebound.control.findings import Severity
from lakebound.inspection.validation.verdict import MAX_SAMPLES, ExpectationResult
from lakebound.redaction import redacted_text
from lakebound.spec.pipeline import KAFKA_COLUMN

_INDEX = tuple(f"{KAFKA_COLUMN}.{name}" for name in ("topic", "partition", "offset"))
_OF_NO_VALUES = ("expect_table_",)
"""Kinds that observe rows and columns; others may observe what a record holds, which the page alone shows."""
_log = logging.getLogger(__name__)
_FORMAT = {
    "result_format": "SUMMARY",
    "partial_unexpected_count": MAX_SAMPLES,
    "unexpected_index_column_names": list(_INDEX),
}


@dataclass(frozen=True)
class Question:
    """One expectation as GX is asked it.

    Attributes:
        label: By which its result is known again.
        name: GX's name of it.
        kwargs: Its arguments.
        severity: Of a failure.
        is_of_rows: Whether it judges each row alone.
        where: Condition in Spark's SQL.
        notes: For whoever reads the page.
    """

    label: str
    name: str
    kwargs: Mapping[str, Any]
    severity: Severity
    is_of_rows: bool
    where: str | None = None
    notes: str = ""

    def expectation(self) -> Any:
        """Return GX's object."""
        given = dict(self.kwargs)
        if self.where is not None:
            given["row_condition"] = PassThroughCondition(pass_through_filter=self.where)
        notes = f"{self.label}. {self.notes}" if self.notes else self.label
        severity = FailureSeverity(self.severity.value)
        return get_expectation_impl(self.name)(**given, severity=severity, meta={"label": self.label}, notes=notes)


@dataclass
class Suite:
    """Asks one suite of one DataFrame."""

    name: str
    frame: DataFrame
    questions: Sequence[Question]
    _batch: Any = field(init=False, default=None)

    def run(self) -> tuple[list[ExpectationResult], dict[str, Any]]:
        """Return the results, in the order of the questions, and all that GX says of them.

        GX computes what several expectations need in one pass, so one that raises takes others with it, or all. Those that got
        no answer together are asked alone: what then still raises is a problem of that expectation.
        """
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            self._batch = self._open()
            answers = self._together()
            for question in self.questions:
                if (answer := answers.get(question.label)) is None or _problem(answer.exception_info):
                    answers[question.label] = self._alone(question)
        found = [answers[question.label] for question in self.questions]
        results = [_result(question, answer) for question, answer in zip(self.questions, found, strict=True)]
        body = {"suite_name": self.name, "results": [_as_json(one, answer) for one, answer in zip(results, found, strict=True)]}
        return results, body

    def failing_rows(self, label: str) -> DataFrame:
        """Return the rows that an expectation about rows does not accept."""
        question = next(one for one in self.questions if one.label == label)
        expectation = question.expectation()
        engine = self._batch.data.execution_engine
        engine.batch_manager.load_batch_list(batch_list=[self._batch])
        name = f"{expectation.map_metric}.condition"
        kwargs = get_metric_kwargs(metric_name=name, configuration=expectation.configuration)
        metric = MetricConfiguration(
            metric_name=name,
            metric_domain_kwargs={**kwargs["metric_domain_kwargs"], "batch_id": self._batch.id},
            metric_value_kwargs=kwargs.get("metric_value_kwargs"),
        )
        condition, compute_domain, accessor = MetricsCalculator(engine).get_metric(metric)
        rows: DataFrame = engine.get_domain_records({**compute_domain, **accessor})
        return rows.withColumn("__unexpected", condition).where(F.col("__unexpected")).drop("__unexpected")

    def _open(self) -> Any:
        source = _context().data_sources.add_spark("spark", persist=False)
        definition = source.add_dataframe_asset(self.name).add_batch_definition_whole_dataframe("range")
        return definition.get_batch({"dataframe": self.frame})

    def _together(self) -> dict[str, Any]:
        """Return the answers by label; none where GX itself fails, for example on what an expectation returned."""
        suite = gx.ExpectationSuite(name=self.name)
        for question in self.questions:
            suite.add_expectation(question.expectation())
        try:
            answers = self._batch.validate(suite, result_format=dict(_FORMAT)).results
        except Exception:
            _log.warning("%s: the expectations cannot be judged together; each is judged alone", self.name, exc_info=True)
            return {}
        return {answer.expectation_config.meta["label"]: answer for answer in answers}

    def _alone(self, question: Question) -> Any:
        try:
            return self._batch.validate(question.expectation(), result_format=dict(_FORMAT))
        except Exception as exc:
            _log.warning("%s: %s cannot be judged", self.name, question.label, exc_info=True)
            raised = {"raised_exception": True, "exception_message": str(exc)}
            configuration = question.expectation().configuration
            return ExpectationValidationResult(success=False, expectation_config=configuration, exception_info=raised)


def _context() -> Any:
    stores = InMemoryStoreBackendDefaults()
    configuration = DataContextConfig(
        store_backend_defaults=stores,
        data_docs_sites={},
        analytics_enabled=False,
        progress_bars=ProgressBarsConfig(globally=False),
    )
    return gx.get_context(mode="ephemeral", project_config=configuration, cloud_mode=False)


def _result(question: Question, found: Any) -> ExpectationResult:
    problem = _problem(found.exception_info)
    said: dict[str, Any] = {} if problem else dict(found.result or {})
    return ExpectationResult(
        label=question.label,
        severity=question.severity,
        passed=bool(found.success) and not problem,
        checked=_number(said.get("element_count")),
        unexpected=_number(said.get("unexpected_count")),
        samples=_samples(said.get("partial_unexpected_index_list")),
        observed=_short(said.get("observed_value")) if question.name.startswith(_OF_NO_VALUES) else "",
        problem=problem,
        is_of_rows=question.is_of_rows,
    )


def _problem(info: Any) -> str:
    """Return the first exception; GX keeps one, or one per metric."""
    if not info:
        return ""
    every = [info] if "raised_exception" in info else list(info.values())
    raised = [one for one in every if isinstance(one, Mapping) and one.get("raised_exception")]
    return redacted_text("it failed", str(raised[0].get("exception_message") or ""))[:300] if raised else ""


def _as_json(result: ExpectationResult, answer: Any) -> dict[str, Any]:
    """Return what GX says of one expectation; without its details where these have no JSON."""
    try:
        body: dict[str, Any] = json.loads(json.dumps(answer.to_json_dict(), default=str))
    except Exception as exc:
        _log.warning("%s: the details have no JSON: %s", result.label, exc)
        return {"success": result.passed, "expectation_config": {"meta": {"label": result.label}}}
    return body


def _samples(found: Any) -> tuple[str, ...]:
    topic, partition, offset = _INDEX
    return tuple(
        f"{one.get(topic)}/{one.get(partition)}:{one.get(offset)}" for one in (found or ()) if isinstance(one, Mapping)
    )[:MAX_SAMPLES]


def _number(value: Any) -> int | None:
    return None if value is None else int(value)


def _short(value: Any) -> str:
    return "" if value is None else str(value)[:200]
