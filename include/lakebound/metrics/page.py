"""The page that Prometheus reads: the metrics of all pipelines as text."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from prometheus_client import CollectorRegistry, generate_latest, write_to_textfile
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4

from lakebound.metrics.collector import LakeboundCollector
from lakebound.metrics.facts import read_metric_facts
from lakebound.settings import Settings

CONTENT_TYPE = CONTENT_TYPE_PLAIN_0_0_4
"""Of ``metrics_page``."""


def metrics_page(settings: Settings, only: Sequence[str] = ()) -> bytes:
    """Return the metrics in Prometheus' text format.

    Args:
        settings: Of this machine.
        only: Names of pipelines; none: all.

    Raises:
        UnknownPipelineError: One of these never ran here.
    """
    return generate_latest(_registry(settings, only))


def write_metrics(file: Path, settings: Settings, only: Sequence[str] = ()) -> None:
    """Replace a file by the page in one step, with the mode that the umask gives: the node exporter is another user.

    Args:
        file: Where; its folder must be there.
        settings: Of this machine.
        only: Names of pipelines; none: all.

    Raises:
        UnknownPipelineError: One of these never ran here.
        OSError: The file cannot be written; it is as it was.
    """
    write_to_textfile(str(file), _registry(settings, only))


def _registry(settings: Settings, only: Sequence[str]) -> CollectorRegistry:
    """Return a registry of its own, without the figures of this process."""
    facts = read_metric_facts(settings, only)
    registry = CollectorRegistry(auto_describe=False)
    registry.register(LakeboundCollector(lambda: facts))
    return registry
