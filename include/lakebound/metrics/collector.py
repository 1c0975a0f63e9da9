"""Metrics in Prometheus' own terms. Labels are names from YAML and fixed words, never partitions: their number is bounded."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from lakebound.control.findings import Severity
from lakebound.control.histogram import BOUNDS_SECONDS, Histogram
from lakebound.control.rollups import TableFigures
from lakebound.control.status import waiting_records
from lakebound.metrics.facts import MetricFacts, PipelineMetrics

_OF_PIPELINE = ("pipeline",)
_OF_TABLE = ("pipeline", "table", "format")

Family = TypeVar("Family", GaugeMetricFamily, CounterMetricFamily)
Labelled = Iterator[tuple[tuple[str, ...], float | None]]


class LakeboundCollector(Collector):
    """Turns facts into metrics; each scrape reads the facts anew."""

    def __init__(self, read: Callable[[], MetricFacts]) -> None:
        self._read = read

    def describe(self) -> Iterable[Metric]:
        """Return every metric without values."""
        return metrics_of(MetricFacts(pipelines=(), read_at=0.0))

    def collect(self) -> Iterable[Metric]:
        """Return every metric with its values now."""
        return metrics_of(self._read())


def metrics_of(facts: MetricFacts) -> list[Metric]:
    """Return all metrics, also those without a value. Pure."""
    pipelines = facts.pipelines
    return [
        _gauge(
            "lakebound_up", "Whether an application of the pipeline lives (1) or not (0).", pipelines, lambda one: one.is_up
        ),
        _gauge(
            "lakebound_wanted", "Whether the desired state is running (1) or not (0).", pipelines, lambda one: one.is_wanted
        ),
        _gauge(
            "lakebound_lag_records",
            "Records that wait in Kafka, as the application last saw it.",
            pipelines,
            lambda one: waiting_records(one.progress),
        ),
        _gauge(
            "lakebound_progress_timestamp_seconds",
            "When the application last wrote its progress, each second while it lives.",
            pipelines,
            lambda one: one.progress.updated_at if one.progress is not None else None,
        ),
        _histogram(
            "lakebound_freshness_seconds",
            "Age of records as they landed; each counts as old as the oldest one of its batch.",
            _OF_PIPELINE,
            (((one.pipeline,), one.figures.freshness) for one in pipelines),
        ),
        _counter("lakebound_records_read_total", "Records read.", pipelines, lambda one: one.figures.read),
        _counter("lakebound_records_filtered_total", "Records that gave no row.", pipelines, lambda one: one.figures.filtered),
        _counter(
            "lakebound_records_quarantined_total", "Records in quarantine.", pipelines, lambda one: one.figures.quarantined
        ),
        _counter(
            "lakebound_cpu_seconds_total",
            "CPU seconds of the applications on their machines, Spark's JVM and their starts included.",
            pipelines,
            lambda one: one.figures.cpu_seconds,
        ),
        *_table_metrics(pipelines),
        *_batch_metrics(pipelines),
        *_problem_metrics(facts),
    ]


def _table_metrics(pipelines: Iterable[PipelineMetrics]) -> list[Metric]:
    tables = [(_table_labels(one.pipeline, table), found) for one in pipelines for table, found in one.figures.tables.items()]

    def each(value: Callable[[TableFigures], float]) -> Labelled:
        yield from ((labels, value(found)) for labels, found in tables)

    commits = CounterMetricFamily("lakebound_commits_total", "Commits with rows.", labels=_OF_TABLE)
    rows = CounterMetricFamily("lakebound_rows_landed_total", "Rows landed by the stream.", labels=_OF_TABLE)
    last = GaugeMetricFamily(
        "lakebound_last_commit_timestamp_seconds", "When the last commit with rows returned.", labels=_OF_TABLE
    )
    return [
        _filled(commits, each(lambda found: found.commits)),
        _filled(rows, each(lambda found: found.rows)),
        _filled(last, each(lambda found: found.last_commit_at)),
    ]


def _table_labels(pipeline: str, table_id: str) -> tuple[str, str, str]:
    table_format, _, name = table_id.partition(":")
    return pipeline, name, table_format


def _batch_metrics(pipelines: Iterable[PipelineMetrics]) -> list[Metric]:
    labels = ("pipeline", "lane", "step")
    steps = CounterMetricFamily(
        "lakebound_batch_step_seconds_total", "Seconds in each step of batches; commits run side by side.", labels=labels
    )
    return [
        _histogram(
            "lakebound_batch_duration_seconds",
            "How long batches took.",
            ("pipeline", "lane"),
            (((one.pipeline, lane), found) for one in pipelines for lane, found in sorted(one.figures.batches.items())),
        ),
        _filled(
            steps,
            (
                ((one.pipeline, lane, step), seconds)
                for one in pipelines
                for lane, found in sorted(one.figures.steps.items())
                for step, seconds in sorted(found.items())
            ),
        ),
    ]


def _problem_metrics(facts: MetricFacts) -> list[Metric]:
    """Return alerts with a zero for each severity, so that a rule sees the end of one; ``*`` stands for no single pipeline."""
    alerts = Counter((alert.pipeline, alert.severity.value) for alert in facts.alerts)
    names = sorted({*(one.pipeline for one in facts.pipelines), *(pipeline for pipeline, _ in alerts)})
    opened = GaugeMetricFamily("lakebound_open_alerts", "Alerts that are open.", labels=("pipeline", "severity"))
    found = GaugeMetricFamily(
        "lakebound_findings", "What is wrong now, by its runbook.", labels=("pipeline", "severity", "runbook")
    )
    findings = Counter(
        (one.pipeline, finding.severity.value, finding.runbook or "") for one in facts.pipelines for finding in one.findings
    )
    round_at = GaugeMetricFamily("lakebound_alert_round_timestamp_seconds", "When alerts were last looked at; 0: never.")
    if facts.read_at:
        round_at.add_metric((), facts.alert_round_at)
    return [
        _filled(opened, (((name, one.value), alerts[name, one.value]) for name in names for one in Severity)),
        _filled(found, ((labels, findings[labels]) for labels in sorted(findings))),
        round_at,
    ]


def _gauge(
    name: str, said: str, pipelines: Iterable[PipelineMetrics], value: Callable[[PipelineMetrics], float | None]
) -> GaugeMetricFamily:
    return _filled(GaugeMetricFamily(name, said, labels=_OF_PIPELINE), (((one.pipeline,), value(one)) for one in pipelines))


def _counter(
    name: str, said: str, pipelines: Iterable[PipelineMetrics], value: Callable[[PipelineMetrics], float]
) -> CounterMetricFamily:
    return _filled(CounterMetricFamily(name, said, labels=_OF_PIPELINE), (((one.pipeline,), value(one)) for one in pipelines))


def _filled(family: Family, values: Iterable[tuple[tuple[str, ...], float | None]]) -> Family:
    """Return the family with these values; what is not known has none."""
    for labels, value in values:
        if value is not None:
            family.add_metric(labels, float(value))
    return family


def _histogram(
    name: str, said: str, labels: tuple[str, ...], found: Iterable[tuple[tuple[str, ...], Histogram]]
) -> HistogramMetricFamily:
    family = HistogramMetricFamily(name, said, labels=labels)
    bounds = (*(f"{bound:g}" for bound in BOUNDS_SECONDS), "+Inf")
    for values, histogram in found:
        buckets = [(bound, float(count)) for bound, count in zip(bounds, histogram.cumulated, strict=True)]
        family.add_metric(values, buckets, sum_value=histogram.total_seconds)
    return family
