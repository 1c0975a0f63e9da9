"""A zombie on a local disk; those with tables in a bucket or behind a catalog are beside the kills there."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.kafka.makers import TopicMaker
from tests.support.streams.long_form import LONG_FORM
from tests.support.streams.pipelines import LANES, Lane, make_pipeline
from tests.support.streams.zombies import assert_a_zombie_is_refused

from lakebound.local.broker import Broker

pytestmark = pytest.mark.chaos

SHORT: list[tuple[Lane, str]] = [("direct", "stop@before_commit/iceberg#2")]
"""The lane whose batches cost least: the tables refuse a commit, whoever made its files."""
LONG = [
    *SHORT,
    *(
        (lane, rule)
        for lane in LANES
        for rule in (
            "stop@after_trim#2",
            f"stop@after_data_files/{lane}#{1 if lane == 'driver' else 2}",
            "stop@before_commit/delta#2",
            "stop@before_commit/iceberg#2",
        )
    ),
]


@pytest.mark.parametrize(("lane", "rule"), LONG if LONG_FORM else SHORT)
def test_zombie_is_refused_by_the_tables(lane: Lane, rule: str, tmp_path: Path, broker: Broker, topic: TopicMaker) -> None:
    assert_a_zombie_is_refused(make_pipeline(tmp_path, broker.bootstrap_servers, topic("zombie"), lane=lane), rule)
