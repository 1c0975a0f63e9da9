"""The dashboard and the alert rules use metrics, labels and runbooks that exist."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from lakebound.control.histogram import histogram_of
from lakebound.control.rollups import Figures, TableFigures
from lakebound.metrics.collector import metrics_of
from lakebound.metrics.facts import MetricFacts, PipelineMetrics

INCLUDE = Path(__file__).parents[3] / "include"
DASHBOARD = json.loads((INCLUDE / "grafana" / "dashboard.json").read_text())
RULES = [
    rule
    for group in yaml.safe_load((INCLUDE / "grafana" / "alert-rules.yaml").read_text())["groups"]
    for rule in group["rules"]
]


@pytest.fixture(scope="module")
def known() -> tuple[set[str], set[str]]:
    """The names of all samples and labels."""
    figures = Figures(
        tables={"delta:a.b": TableFigures(1, 1, 1.0)}, batches={"direct": histogram_of(1)}, steps={"direct": {"verify": 1.0}}
    )
    families = metrics_of(MetricFacts(pipelines=(PipelineMetrics("orders", figures=figures),)))
    samples = [sample for family in families for sample in family.samples]
    described = {family.name for family in families if family.type == "gauge"}
    labels = {label for sample in samples for label in sample.labels} | {"runbook", "instance"}
    return {sample.name for sample in samples} | described, labels


def queries() -> Iterator[str]:
    for panel in DASHBOARD["panels"]:
        yield from (target["expr"] for target in panel["targets"])
    yield from (variable["query"]["query"] for variable in DASHBOARD["templating"]["list"] if variable["type"] == "query")
    yield from (rule["expr"] for rule in RULES)


@pytest.mark.parametrize("query", list(queries()))
def test_a_query_uses_metrics_and_labels_that_exist(query: str, known: tuple[set[str], set[str]]) -> None:
    names, labels = known
    used = set(re.findall(r"\blakebound_\w+", query))
    assert used and used <= names
    grouped = {label.strip() for found in re.findall(r"(?:by|on) \(?([\w, ]+)\)", query) for label in found.split(",")}
    assert (grouped | set(re.findall(r"[{,]\s*(\w+)[=!]", query))) - {"le"} <= labels
    assert query.count("(") == query.count(")") and query.count("{") == query.count("}")


def test_legends_name_labels_that_exist(known: tuple[set[str], set[str]]) -> None:
    legends = [target["legendFormat"] for panel in DASHBOARD["panels"] for target in panel["targets"]]
    assert {label for legend in legends for label in re.findall(r"{{(\w+)}}", legend)} <= known[1]
    assert len({panel["id"] for panel in DASHBOARD["panels"]}) == len(DASHBOARD["panels"])


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule["alert"])
def test_a_rule_names_its_runbook(rule: dict[str, Any]) -> None:
    runbook = rule["annotations"]["runbook"]
    assert runbook == "{{ $labels.runbook }}" or (INCLUDE / "runbooks" / f"{runbook}.md").is_file()
    assert rule["labels"]["severity"] in ("critical", "warning") and rule["annotations"]["summary"]
